"""Exceptions: readings that do not parse, refusals, clean-up, retries, checks, look-ups."""

from __future__ import annotations

from trace_gym.programs.builtin.vocabulary import COLOURS, FRUITS, GOODS, NOUNS, PEOPLE, TASKS
from trace_gym.programs.builtin.writer import (
    Family,
    Template,
    Writer,
    define,
    fill,
    join,
    program,
    quoted,
    spread,
    strings,
    under,
)


def parsing(w: Writer) -> str:
    """Texts that should be numbers, and some that are not."""
    good = [str(number) for number in w.numbers(16, 1, 90)]
    bad = [
        w.choice(
            (
                word,
                word[:2],
                f"{w.between(1, 9)}{word[0]}",
                f"{w.between(1, 9)},{w.between(1, 9)}",
                "",
                "-",
                "--",
                "1e",
                "x1",
            )
        )
        for word in w.picks(NOUNS, 16)
    ]
    chosen = [quoted(a if k < 60 else b) for a, b, k in zip(good, bad, w.numbers(16, 0, 99), strict=True)]
    name = w.choice(("texts", "fields", "entries", "inputs", "parts"))
    handler = w.choice(("failed += 1", f"total -= {w.between(1, 5)}", "failed += 1", "wrong.append(text)"))
    zero = {"f": "failed = 0", "t": "", "w": "wrong = []"}[handler[0]]
    last = {"f": "failed", "t": "total", "w": "wrong"}[handler[0]]
    if w.level < 4:
        if w.level == 1:
            text = w.choice((good[0], bad[0]))
            return program(
                fill(
                    """
                    text = "$text"
                    try:
                        $act
                    except ValueError:
                        $other
                    $end
                    """,
                    text=text,
                    act=w.choice(
                        (
                            "number = int(text)",
                            f"number = int(text) {w.choice('+-*')} {w.between(2, 9)}",
                            "number = int(text[:1])",
                            "number = int(text * 2)",
                        )
                    ),
                    other=w.choice(
                        (
                            f"number = {w.below(20)}",
                            "number = len(text)",
                            'print("not a number")\n    number = 0'.replace("\n    ", "\n"),
                        )
                    ),
                    end=w.choice(("print(number)", "print(text, number)", w.show("number", "number"))),
                )
            )
        body = fill(
            """
            $data
            total = 0
            $zero
            for text in $name:
                try:
                    total += int(text)
                    $seen
                except ValueError:
                    $handler
                    $report
            $show
            $last
            """,
            data=spread(name, chosen[: w.size(2, 8)]),
            zero=zero,
            name=name,
            seen=w.at(3, w.choice(("print(text, total)", "print(total)", ""))),
            handler=handler,
            report=w.at(2, 'print("bad:", text)') if w.chance(60) else "",
            show=w.show("total", "total"),
            last=w.show(last, last) if last != "total" else "",
        )
        return program(body)
    convert = define(
        "convert(text)",
        """
        try:
            value = int(text)
        except ValueError:
            $fallback
        $other
        $end
        """,
        fallback=w.choice(
            (
                f"return {w.choice(('None', '-1', '0'))}",
                "return convert(text[1:]) if len(text) > 1 else 0",
                'digits = ""\nfor mark in text:\n    if mark.isdigit():\n'
                "        digits += mark\nreturn len(digits)",
                "return -len(text)",
            )
        ),
        other=w.choice(
            ("", "else:\n    if value > $k:\n        value -= $k", "finally:\n    seen.append(len(text))")
        ),
        k=w.between(20, 60),
        end=w.choice(("return value", "return value", f"return value * {w.between(2, 4)}")),
    )
    seen = "seen.append" in convert
    rounds = w.size(1, 12) if w.level > 6 else 1
    strict = define(
        "check(value)",
        """
        if value is None:
            raise TypeError("nothing")
        if value < 0:
            raise ValueError("negative")
        if value > $top:
            raise OverflowError("too big")
        return value
        """,
        top=w.between(30, 80),
    )
    checked = w.level > 5
    inside = (
        fill(
            """
            try:
                total += check(convert(text))
            except ValueError as error:
                $small
            except (TypeError, OverflowError) as error:
                $big
            else:
                good += 1
            """,
            small=w.choice(("print(text, error)", "total -= 1", "names.append(str(error))"))
            if rounds == 1
            else w.choice(("total -= 1", "names.append(str(error))")),
            big=w.choice(
                ("names.append(str(error))", f"total += {w.between(1, 9)}\nnames.append(str(error))")
            ),
        )
        if checked
        else "value = convert(text)\nprint(text, value)\ntotal += value or 0"
    )
    loop = under(f"for text in {name}:", inside)
    body = fill(
        """
        $data
        total = 0
        $good
        $loop
        $show
        $last
        $seen
        """,
        data=spread(name, chosen[: w.size(2, 14)]),
        good="good = 0\nnames = []" if checked else "",
        loop=loop
        if rounds == 1
        else under(
            f"for turn in range(1, {rounds + 1}):",
            join(
                loop,
                w.choice(
                    (
                        f"{name} = {name}[1:] + [{name}[0] + str(turn)]",
                        f"{name} = [text[::-1] for text in {name}]",
                        f"{name}.append(str(total % {w.between(40, 99)}))",
                    )
                ),
                w.tell("turn", "turn", "total", "good"),
            ),
        ),
        show=w.show("total", "total"),
        last="print(good, len(names), names[-3:])" if checked else "",
        seen="print(len(seen), sum(seen))" if seen else "",
    )
    return program("seen = []" if seen else "", convert, strict if checked else "", w.main(body))


def refusals(w: Writer) -> str:
    """Rules of one's own, broken and caught."""
    base, small, big = w.choice(
        (
            ("AccountError", "TooLittle", "Blocked"),
            ("StockError", "SoldOut", "TooMany"),
            ("TravelError", "NoTicket", "WrongTrain"),
            ("GameError", "NotYourTurn", "OutOfBounds"),
            ("KitchenError", "TooHot", "NothingLeft"),
        )
    )
    act, field = w.choice(
        (("take", "left"), ("spend", "money"), ("use", "fuel"), ("eat", "cakes"), ("lift", "strength"))
    )
    limit = w.between(10, 40)
    classes = (
        f"class {base}(Exception):\n    pass"
        + (f"\n\n\nclass {small}({base}):\n    pass" if w.level > 2 else "")
        + (f"\n\n\nclass {big}({base}):\n    pass" if w.level > 3 else "")
    )
    first = small if w.level > 2 else base
    if w.level < 4:
        function = define(
            f"{act}({field}, amount)",
            f"if amount > {field}:\n    raise {first}($text)\nreturn {field} - amount",
            text=w.choice(('"not enough"', "amount", f"amount - {field}", '"too much"')),
        )
        amounts = w.numbers(w.size(1, 5), 1, 40)
        if w.level < 3:
            body = fill(
                """
                try:
                    print($act($a, $b))
                    $more
                except $base as error:
                    print($text)
                $last
                """,
                act=act,
                a=w.between(5, 40),
                b=amounts[0],
                more=w.at(2, f"print({act}({w.between(5, 30)}, {w.between(1, 40)}))"),
                base=base,
                text=w.choice(('"failed:", error', "error", '"error", error')),
                last=w.choice(('print("done")', "", 'print("end")')),
            )
            return program(classes, function, body)
        body = fill(
            """
            $f = $start
            for amount in $amounts:
                try:
                    $f = $act($f, amount)
                    $seen
                except $first as error:
                    print("$word", error)
            print($f)
            """,
            f=field,
            start=w.between(20, 90),
            amounts=amounts,
            act=act,
            seen=w.choice((f"print({field})", "", "print(amount)")),
            first=w.choice((first, base)),
            word=w.choice(("no:", "refused:", "cannot:")),
        )
        return program(classes, function, body)
    function = define(
        f"{act}({field}, amount)",
        """
        if amount $sign:
            raise $big($text)
        if amount > $f:
            raise $small(amount - $f)
        return $f - amount$more
        """,
        sign=w.choice((f"% {w.between(3, 7)} == 0", f"> {limit}", f"% 10 == {w.below(10)}")),
        big=big,
        small=small,
        text=w.choice(("amount", '"not today"', f'f"{{amount}} {w.choice(("at once", "blocked", "no"))}"')),
        f=field,
        more=w.choice(("", "", f" + amount // {w.between(4, 9)}")),
    )
    log = w.at(4, f'print("{w.choice(("missing", "short by", "lacks"))}", error)', below=8)
    less = w.choice(
        (
            f"{field} += {w.between(5, 25)}",
            f"return {field} + error.args[0]",
            f"{field} = {field} // 2 + {w.between(10, 30)}",
        )
    )
    wrapper = define(
        f"try_to_{act}({field}, amount)",
        """
        try:
            $f = $act($f, amount)
        except $small$named:
            $log
            $less
        $also
        return $f
        """,
        f=field,
        act=act,
        small=small,
        named=" as error" if "error" in log + less else "",
        log=log,
        less=less,
        also=w.choice(("", f"else:\n    {field} += 1", "finally:\n    history.append(amount)")),
    )
    history = "history" in wrapper
    count = w.size(2, 14)
    if w.level < 7:
        loop = under(
            f"for amount in {w.numbers(count, 1, 45)}:",
            fill(
                "try:\n    $f = try_to_$a($f, amount)\n    print(amount, $f)\n"
                "except $b as error:\n    print(type(error).__name__, error)\n"
                "    $more",
                f=field,
                a=act,
                b=base,
                more=w.choice(("", f"{field} -= 1", f"{field} += {w.between(1, 4)}")),
            ),
        )
        body = join(
            f"{field} = {w.between(20, 80)}",
            loop,
            f"print({field})",
            "print(len(history), sum(history))" if history else "",
        )
    else:
        rounds = w.size(3, 90)
        body = fill(
            """
            $f = $start
            errors = {}
            for turn in range(1, $stop):
                amount = turn * $a % $m
                try:
                    $f = try_to_$act($f, amount)
                except $base as error:
                    name = type(error).__name__
                    errors[name] = errors.get(name, 0) + 1
                    $f += $k
                $report
            print($f, errors)
            $history
            """,
            f=field,
            start=w.between(20, 80),
            stop=rounds + 1,
            a=w.between(3, 17),
            m=w.between(25, 60),
            act=act,
            base=base,
            k=w.between(1, 6),
            report=w.sometimes("turn", rounds, w.tell("turn", "turn", "amount", field)),
            history="print(len(history), sum(history))" if history else "",
        )
    return program("history = []" if history else "", classes, function, wrapper, w.main(body))


def cleaning(w: Writer) -> str:
    """What runs when: try, except, else, finally."""
    words = w.sample(("open", "start", "enter", "begin", "load", "connect"), 2)
    error = w.choice(("ValueError", "KeyError", "RuntimeError", "TypeError"))
    k = w.between(2, 5)
    log = w.choice(("print", "log.append"))
    steps = define(
        "work(n)",
        """
        $first
        try:
            $check
            $second
        except $error:
            $caught
        $also
        finally:
            $last
        $end
        """,
        first=f'{log}("{words[0]}")' if w.level > 1 else "",
        check=w.choice(
            (
                f"if n % {k} == 0:\n    raise {error}(n)",
                f"if n > {w.between(4, 12)}:\n    raise {error}(n)",
                f"if n < {w.between(4, 9)}:\n    raise {error}(n)",
            )
        ),
        second=w.choice(
            (
                f"n += {w.between(2, 9)}",
                f"n *= {w.between(2, 4)}",
                f'{log}("{words[1]}")',
                f"return n * {w.between(2, 5)}" if w.level > 2 else f"n -= {w.between(1, 4)}",
            )
        ),
        error=error,
        caught=w.choice(
            (
                f'{log}("error")',
                "n = -n",
                f'{log}("caught")\nn += 1',
                f"return {w.below(9)}" if w.level > 2 else "n = 0",
            )
        ),
        also=w.maybe(2, w.choice((f'else:\n    {log}("fine")', "else:\n    n += 100")), 60),
        last=w.choice((f'{log}("close")', f"{log}(n)", f'{log}("always")')),
        end="return n",
    )
    if w.level < 4:
        lines = [f"print(work({n}))" for n in w.numbers(w.size(1, 4), 1, 16)]
        return program(
            "log = []" if log != "print" else "", steps, join(*lines, "print(log)" if log != "print" else "")
        )
    loop = w.choice(("for", "while"))
    outer = define(
        "run(start, count)",
        """
        total = 0
        $head
            try:
                $value
                if value $test:
                    $leave
                total += value
            except $error:
                $caught
            finally:
                total $step
            $next
        $other
        return total
        """,
        head="for n in range(start, start + count):"
        if loop == "for"
        else "n = start\nwhile n < start + count:",
        value="value = work(n)",
        test=w.choice((f"> {w.between(30, 120)}", f"% {w.between(5, 9)} == 0", f"< {w.between(-9, 4)}")),
        leave=w.choice(("break", "continue") if loop == "for" else ("break",)),
        error=error,
        caught=w.choice(("total -= 1", f"total += {w.between(2, 5)}")),
        step=w.choice(("+= 1", "*= 2" if w.level < 6 else "+= 2", "-= 1")),
        next="n += 1" if loop == "while" else "",
        other=f"else:\n    total += {w.between(10, 90)}",
    )
    rounds = w.size(1, 16) if w.level > 5 else 1
    if log == "print" and w.level > 6:
        steps = steps.replace("print(", "log.append(")
        log = "log.append"
    if rounds == 1:
        body = join(
            w.show("total", f"run({w.between(1, 12)}, {w.size(2, 20)})"),
            "print(len(log), log[-4:])" if log != "print" else "",
        )
    else:
        body = fill(
            """
            best = 0
            for start in range($numbers):
                value = run(start, $count)
                best = max(best, value)
                print(start, value$logged)
            $show
            """,
            numbers=f"{(low := w.between(1, 12))}, {low + rounds * 2}, 2",
            count=w.size(2, 12),
            logged=", len(log)" if log != "print" else "",
            show=w.show("best", "best"),
        )
    return program("log = []" if log != "print" else "", steps, outer, w.main(body))


def retries(w: Writer) -> str:
    """A task that fails now and then and is tried again."""
    task = w.choice(TASKS)
    error = w.choice(("ValueError", "RuntimeError", "OSError", "TimeoutError"))
    k = w.between(2, 4)
    attempt = define(
        f"{task}(item, tries)",
        """
        if $test:
            raise $error($text)
        return $value
        """,
        test=w.choice(
            (
                f"(item + tries) % {k} == 0",
                f"item % {k + 1} > tries",
                f"tries < item % {k + 1}",
                f"item * tries % {k + 1} == 1",
            )
        ),
        error=error,
        text=w.choice(('"busy"', "item", "tries", '"try later"')),
        value=w.choice(
            ("item * tries", "item + tries", f"item * {w.between(2, 9)}", f"item - tries + {w.between(1, 9)}")
        ),
    )
    most = w.between(2, 4)
    if w.level < 4:
        items = w.numbers(w.size(1, 4), 1, 20)
        if w.level == 1:
            body = fill(
                "try:\n    print($call)\nexcept $error as error:\n    print($text)",
                call=f"{task}({items[0]}, {w.between(1, 5)})",
                error=error,
                text=w.choice(('"failed", error', "error", f'"{w.choice(("again", "later", "sorry"))}"')),
            )
            return program(attempt, body)
        body = fill(
            """
            $done
            for $loop:
                try:
                    $act
                    $leave
                except $error as error:
                    print("$word", error)
            $other
            """,
            done="done = 0" if (many := w.chance(60)) else "",
            loop=f"item in {w.numbers(w.size(1, 7), 1, 20)}"
            if many
            else f"tries in range({w.between(0, 1)}, {most + w.size(1, 6)})",
            act=f"done += {task}(item, {w.between(1, 5)})\nprint(item, done)"
            if many
            else f"print({task}({items[0]}, tries))",
            leave="" if many or w.level < 3 else "break",
            error=error,
            word=w.choice(("retry", "failed", "again")),
            other=w.show("done", "done") if many else w.at(3, 'else:\n    print("gave up")'),
        )
        return program(attempt, body)
    final = w.choice(("GaveUp", "Failure", "TooManyTries"))
    retry = define(
        "retry(item)",
        """
        global waited
        for tries in range(1, $stop):
            try:
                return $task(item, tries)
            except $error:
                waited += $wait
                $log
        $end
        """,
        stop=most + 1,
        task=task,
        error=error,
        wait=w.choice(("tries", "tries * 2", "1", "2 ** tries")),
        log=w.at(4, 'print("retry", item, tries)', below=7),
        end=f"raise {final}(item)",
    )
    rounds = w.size(1, 70)
    body = fill(
        """
        done = []
        lost = 0
        for item in range($low, $high):
            try:
                done.append(retry(item))
            except $final as problem:
                lost += 1
                $note
            $report
        print(len(done), sum(done), lost, waited)
        """,
        low=(low := w.between(1, 30)),
        high=low + rounds,
        final=final,
        note=w.choice(('print("lost", problem)', "print(type(problem).__name__, problem)"))
        if w.level < 8
        else w.choice(
            ("waited_for = problem.args[0]\nlost += waited_for % 2", "done.append(-problem.args[0])")
        ),
        report=w.sometimes(
            "item", rounds, w.choice(("print(item, done[-1:], lost)", "print(item, len(done), waited)"))
        ),
    )
    return program(f"class {final}(Exception):\n    pass", "waited = 0", attempt, retry, body)


def checks(w: Writer) -> str:
    """Records that are checked field by field."""
    things = w.choice((GOODS, FRUITS, PEOPLE))
    field = w.choice(("price", "age", "weight", "count", "score"))
    top = w.between(50, 90)
    count = w.size(1, 11)
    names = w.picks(things, 12)
    rows = [
        f'("{name if k > 15 else ""}", {number if k < 80 else -number})'
        if k < 93
        else f'("{name}", "{number}")'
        for name, number, k in zip(names, w.numbers(12, 1, top + 30), w.numbers(12, 0, 99), strict=True)
    ]
    tests = w.sample(
        [
            'if name == "":\n    raise ValueError("no name")',
            f'if {field} < 0:\n    raise ValueError("negative {field}")',
            f'if {field} > {top}:\n    raise OverflowError("{field} above {top}")',
            f"if len(name) > {w.between(5, 7)}:\n    raise LookupError(name)",
            f'if name[0] in "{"".join(w.sample("abcefmoprst", 3))}":\n    raise LookupError(name[0])',
        ],
        1 if w.level < 3 else 2 if w.level < 6 else 3,
    )
    kinds = w.level > 3
    tests.sort(key=lambda test: "name[0]" in test)
    if any("name[0]" in test for test in tests) and not any('name == ""' in test for test in tests):
        tests = [test.replace("name[0]", "name[:1]") for test in tests]
    function = define(
        f"check(name, {field})",
        join(
            *(
                ["if not isinstance(" + field + ', int):\n    raise TypeError("not a number")']
                if kinds
                else []
            ),
            *tests,
            w.choice(
                (f"return {field}", f"return {field} * {w.between(2, 4)}", f"return {field} + len(name)")
            ),
        ),
    )
    rows = [row if kinds else row.replace(', "', ", ").replace('")', ")") for row in rows]
    if w.level < 3:
        text = "try:\n    print(check($row))\nexcept $kinds as error:\n    print($text)\n$end"
        if w.level > 1:
            text = (
                f"$rows\nfor name, {field} in rows:\n    try:\n"
                f"        print(check(name, {field}))\n"
                f"    except $kinds as error:\n        print($text)"
            )
        body = fill(
            text,
            rows=spread("rows", rows[: w.size(1, 8)]),
            row=rows[0][1:-1],
            kinds="Exception" if "Lookup" in function or "Overflow" in function else "ValueError",
            text=w.choice(('"bad:", error', "error", "type(error).__name__", "type(error).__name__, error")),
            end=w.choice(('else:\n    print("ok")', "", 'print("checked")')),
        )
        return program(function, body)
    rounds = w.size(1, 14) if w.level > 6 else 1
    handlers = [
        ("ValueError", w.choice(("bad += 1", 'print("value:", error)', f"total -= {w.between(1, 9)}")))
    ]
    if kinds:
        handlers.append(("TypeError", f"total += int({field})" if w.chance(50) else "bad += 1"))
    handlers.append(
        (
            "(LookupError, OverflowError)" if w.chance(50) else "Exception",
            w.choice(("bad += 10", "last = str(error)", 'print("other:", error)')),
        )
    )
    if rounds > 1:
        handlers = [(kind, act if not act.startswith("print") else "bad += 2") for kind, act in handlers]
    inside = join(
        "try:",
        f"    total += check(name, {field})",
        "    good += 1",
        *(f"except {kind}{' as error' if 'error' in act else ''}:\n    {act}" for kind, act in handlers),
        "" if rounds > 1 else f"print(name, {w.choice(('good, bad', 'total', 'good, total'))})",
    )
    loop = under(f"for name, {field} in rows:", inside)
    change = w.choice(
        (
            f"rows = [(name[1:] + name[:1], {field}) for name, {field} in rows]",
            "rows.append(rows.pop(0))\nrows[0] = (rows[0][0], total % 100)",
            f"rows = rows[1:] + [(str(turn) * 2, turn * {w.between(3, 30)})]",
        )
    )
    body = fill(
        """
        $rows
        good = bad = total = 0
        last = ""
        $loop
        print(good, bad, total, last)
        """,
        rows=spread("rows", rows[:count] if rounds == 1 else rows[: max(2, count)]),
        loop=loop
        if rounds == 1
        else under(
            f"for turn in range(1, {rounds + 1}):",
            join(loop, change, w.tell("turn", "turn", "good", "bad", "total")),
        ),
    )
    if "last =" not in loop:
        body = body.replace('last = ""\n', "").replace(", last)", ")")
    return program(function, w.main(body))


def lookups(w: Writer) -> str:
    """Keys, positions and divisions that may fail."""
    keys = w.sample(w.choice((COLOURS, FRUITS, GOODS)), 8)
    table = keys[: w.grow(2, 5)]
    data = spread(
        "table", [f'"{key}": {value}' for key, value in zip(table, w.numbers(8, 0, 12), strict=False)], "{}"
    )
    values = spread("values", [str(v) for v in w.numbers(w.grow(3, 6), 0, 9)])
    if w.level < 3:
        kind = w.choice(("key", "index", "zero"))
        text = {
            "key": f"{data}\ntry:\n"
            f'    $a = table["{w.choice(keys[: len(table) + 2])}"]\n'
            f"except KeyError as error:\n    $b",
            "index": f"{values}\ntry:\n    $a = values[{w.between(0, 6)}]\nexcept IndexError:\n    $b",
            "zero": f"total = {w.between(10, 90)}\n"
            f"n = {w.choice((0, 0, 2, 3, 4, 5, 6))}\ntry:\n"
            f"    $a = total // n\nexcept ZeroDivisionError:\n    $b",
        }[kind]
        name = w.choice(("found", "result", "answer", "x"))
        complaint = f'print("{w.choice(("missing", "oops", "none"))}"{", error" if kind == "key" else ""})'
        handler = w.choice((f"{name} = {w.between(-1, 20)}", f"{complaint}\n{name} = {w.below(9)}"))
        if w.level == 1:
            return program(join(fill(text, a=name, b=handler), f"print({name})"))
        loop, act, error, start = {
            "key": (
                f"key in {strings(w.picks(keys[: len(table) + 2], w.size(2, 9)))}",
                f"{name} += table[key]",
                "KeyError as error",
                data,
            ),
            "index": (
                f"i in {w.numbers(w.size(2, 9), 0, 7)}",
                f"{name} += values[i]",
                "IndexError as error",
                values,
            ),
            "zero": (
                f"n in {w.numbers(w.size(2, 9), -1, 4)}",
                f"{name} += {w.between(10, 60)} // n",
                "ZeroDivisionError as error",
                f"{name} = {w.below(9)}",
            ),
        }[kind]
        other = w.choice(
            (
                f'print("{w.choice(("missing", "oops", "none", "failed"))}", {loop.split()[0]})',
                f"{name} -= {w.between(1, 9)}",
            )
        )
        inside = join(
            "try:",
            f"    {act}",
            f"except {error.split()[0]}:",
            f"    {other}",
            w.choice(("", f"else:\n    print({name})")),
        )
        zero = "" if kind == "zero" else f"{name} = 0"
        return program(join(start, zero, under(f"for {loop}:", inside), f"print({name})"))
    find = define(
        "find(key, place)",
        """
        try:
            number = table[key]
            $log
            return values[number - place] $op place
        except KeyError as error:
            $missing
        except IndexError:
            $index
        except ZeroDivisionError:
            $zero
        """,
        log=w.at(3, "print(key, number)", below=5),
        op=w.choice(("//", "%")),
        missing=w.choice(
            (
                "table[key] = place\nreturn 0",
                f"return -{w.between(1, 9)}",
                "table[error.args[0]] = len(table)\nreturn place",
            )
        ),
        index=w.choice(
            (
                "return number - place",
                "values.append(place)\nreturn len(values)",
                f"return {w.between(10, 40)}",
            )
        ),
        zero=w.choice(
            (
                f"return {w.between(50, 99)}",
                "return number",
                "values.pop()\nreturn 0" if w.level < 4 else "return -number",
            )
        ),
    )
    if w.level < 6:
        count = w.size(1, 9)
        calls = list(zip(w.picks(keys[: len(table) + 2], count), w.numbers(count, 0, 4), strict=True))
        loop = fill(
            "for key, place in $calls:\n    result = find(key, place)\n    print($shown)"
            if w.level > 3
            else "$lines",
            calls=f"[{', '.join(f'({quoted(key)}, {place})' for key, place in calls)}]",
            shown=w.choice(("key, result", "result", "key, place, result")),
            lines=join(*(f'print(find("{key}", {place}))' for key, place in calls)),
        )
        return program(f"{data}\n{values}", find, w.main(join(loop, "print(len(table), len(values))")))
    rounds = w.size(3, 90)
    body = fill(
        """
        $keys
        total = 0
        for turn in range(1, $stop):
            key = keys[turn * $a % len(keys)]
            result = find(key, turn % $b)
            total += result
            $change
            $report
        print(total, len(table), len(values))
        """,
        keys=spread("keys", [quoted(key) for key in keys[: len(table) + 2]]),
        stop=rounds + 1,
        a=w.between(1, 5),
        b=w.between(3, 6),
        change=w.choice(
            (
                f"if turn % {w.between(3, 7)} == 0:\n    table.pop(key, None)",
                f"if result < 0:\n    table[key] = turn % {w.between(4, 9)}",
                f"if len(values) > {w.between(6, 9)}:\n    values.pop(0)",
                f"values[turn % len(values)] = total % {w.between(7, 13)}",
            )
        ),
        report=w.sometimes(
            "turn", rounds, w.choice(("print(turn, key, result)", "print(turn, key, result, total)"))
        ),
    )
    return program(f"{data}\n{values}", find, w.main(body))


FAMILY = Family(
    "exceptions",
    (
        Template(parsing),
        Template(refusals),
        Template(cleaning),
        Template(retries),
        Template(checks),
        Template(lookups),
    ),
)
