"""Exceptions: readings that do not parse, refusals, clean-up, retries, checks, look-ups."""

from __future__ import annotations

from typing import NamedTuple

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

#: First values of the variables that failures are noted in.
_ZEROS = {"failed": "failed = 0", "total": "", "wrong": "wrong = []"}

#: Names of exception classes: the base, and two that derive from it.
_REFUSALS = (
    ("AccountError", "TooLittle", "Blocked"),
    ("StockError", "SoldOut", "TooMany"),
    ("TravelError", "NoTicket", "WrongTrain"),
    ("GameError", "NotYourTurn", "OutOfBounds"),
    ("KitchenError", "TooHot", "NothingLeft"),
)

#: Verbs, and the variable that the verb takes from.
_USES = (("take", "left"), ("spend", "money"), ("use", "fuel"), ("eat", "cakes"), ("lift", "strength"))


def parsing(w: Writer) -> str:
    """Returns a program about texts that should be numbers, by level."""
    good = [str(number) for number in w.numbers(16, 1, 90)]
    bad = [_bad_number(w, word) for word in w.picks(NOUNS, 16)]
    texts = [quoted(a if k < 60 else b) for a, b, k in zip(good, bad, w.numbers(16, 0, 99), strict=True)]
    name = w.choice(("texts", "fields", "entries", "inputs", "parts"))
    handler = w.choice(("failed += 1", f"total -= {w.between(1, 5)}", "failed += 1", "wrong.append(text)"))
    if w.level == 1:
        return single_text(w, good[0], bad[0])
    if w.level < 4:
        return texts_added(w, name, texts, handler)
    convert = _convert(w)
    check = _number_check(w)
    if w.level < 6:
        return texts_converted(w, name, texts, convert)
    rounds = w.size(1, 12) if w.level > 6 else 1
    if rounds == 1:
        return texts_checked(w, name, texts, convert, check)
    return texts_checked_in_turns(w, name, texts, convert, check, rounds)


def _bad_number(w: Writer, word: str) -> str:
    """Returns a text that ``int`` refuses."""
    return w.choice(
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


def single_text(w: Writer, good: str, bad: str) -> str:
    """Single text that is a number or not."""
    text = w.choice((good, bad))
    body = fill(
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
                'print("not a number")\nnumber = 0',
            )
        ),
        end=w.choice(("print(number)", "print(text, number)", w.show("number", "number"))),
    )
    return program(body)


def texts_added(w: Writer, name: str, texts: list[str], handler: str) -> str:
    """Sum over texts, with a note of the texts that are no numbers."""
    noted = handler.replace(".", " ").split()[0]
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
        data=spread(name, texts[: w.size(2, 8)]),
        zero=_ZEROS[noted],
        name=name,
        seen=w.at(3, w.choice(("print(text, total)", "print(total)", ""))),
        handler=handler,
        report=w.at(2, 'print("bad:", text)') if w.chance(60) else "",
        show=w.show("total", "total"),
        last=w.show(noted, noted) if noted != "total" else "",
    )
    return program(body)


def _convert(w: Writer) -> str:
    """Returns the function ``convert``, which makes a number of any text."""
    return define(
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


def _number_check(w: Writer) -> str:
    """Returns the function ``check``, which refuses some numbers."""
    return define(
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


def texts_converted(w: Writer, name: str, texts: list[str], convert: str) -> str:
    """Sum over converted texts, each printed."""
    seen, shown = _seen(convert)
    body = fill(
        """
        $data
        total = 0
        for text in $name:
            value = convert(text)
            print(text, value)
            total += value or 0
        $show
        $shown
        """,
        data=spread(name, texts[: w.size(2, 14)]),
        name=name,
        show=w.show("total", "total"),
        shown=shown,
    )
    return program(seen, convert, w.main(body))


def texts_checked(w: Writer, name: str, texts: list[str], convert: str, check: str) -> str:
    """Sum over converted and checked texts."""
    small = ("print(text, error)", "total -= 1", "names.append(str(error))")
    loop = _check_loop(w, name, small)
    seen, shown = _seen(convert)
    return program(seen, convert, check, w.main(_checked_texts(w, name, texts, loop, shown)))


def texts_checked_in_turns(
    w: Writer, name: str, texts: list[str], convert: str, check: str, rounds: int
) -> str:
    """Sum over turns that convert and check all texts and then change the texts."""
    loop = _check_loop(w, name, ("total -= 1", "names.append(str(error))"))
    change = w.choice(
        (
            f"{name} = {name}[1:] + [{name}[0] + str(turn)]",
            f"{name} = [text[::-1] for text in {name}]",
            f"{name}.append(str(total % {w.between(40, 99)}))",
        )
    )
    tell = w.tell("turn", "turn", "total", "good")
    loop = under(f"for turn in range(1, {rounds + 1}):", join(loop, change, tell))
    seen, shown = _seen(convert)
    return program(seen, convert, check, w.main(_checked_texts(w, name, texts, loop, shown)))


def _check_loop(w: Writer, name: str, small: tuple[str, ...]) -> str:
    """Returns a loop that converts and checks each text.

    Args:
        w: The program's choices.
        name: The variable that has the texts.
        small: Statements to choose from for a negative number.
    """
    inside = fill(
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
        small=w.choice(small),
        big=w.choice(("names.append(str(error))", f"total += {w.between(1, 9)}\nnames.append(str(error))")),
    )
    return under(f"for text in {name}:", inside)


def _checked_texts(w: Writer, name: str, texts: list[str], loop: str, shown: str) -> str:
    """Returns the main part of a program that checks texts."""
    return fill(
        """
        $data
        total = 0
        good = 0
        names = []
        $loop
        $show
        print(good, len(names), names[-3:])
        $shown
        """,
        data=spread(name, texts[: w.size(2, 14)]),
        loop=loop,
        show=w.show("total", "total"),
        shown=shown,
    )


def _seen(convert: str) -> tuple[str, str]:
    """Returns the first value and the print of ``seen``; both empty if ``convert`` has no use for it."""
    return ("seen = []", "print(len(seen), sum(seen))") if "seen.append" in convert else ("", "")


class _Refusal(NamedTuple):
    """Names for a program with exception classes of its own.

    Attributes:
        base: The base class.
        small: The derived class for an amount above the field.
        big: The derived class for an amount that is never allowed.
        act: The function that may raise.
        field: The variable that the function takes from.
    """

    base: str
    small: str
    big: str
    act: str
    field: str


def refusals(w: Writer) -> str:
    """Returns a program with exception classes of its own, by level."""
    refusal = _Refusal(*w.choice(_REFUSALS), *w.choice(_USES))
    limit = w.between(10, 40)
    if w.level < 3:
        return single_refusal(w, refusal)
    if w.level == 3:
        return refusals_in_loop(w, refusal)
    act = _act_with_two_refusals(w, refusal, limit)
    wrapper = _wrapper(w, refusal)
    if w.level < 7:
        return refusals_wrapped(w, refusal, act, wrapper)
    return refusals_counted(w, refusal, act, wrapper)


def _classes(*names: str) -> str:
    """Returns exception classes: a base, and others that derive from it."""
    base, *others = names
    classes = [
        f"class {base}(Exception):\n    pass",
        *(f"class {name}({base}):\n    pass" for name in others),
    ]
    return "\n\n\n".join(classes)


def _act_with_one_refusal(w: Writer, refusal: _Refusal, error: str) -> str:
    """Returns a function that raises ``error`` for an amount above the field."""
    field = refusal.field
    return define(
        f"{refusal.act}({field}, amount)",
        f"if amount > {field}:\n    raise {error}($text)\nreturn {field} - amount",
        text=w.choice(('"not enough"', "amount", f"amount - {field}", '"too much"')),
    )


def single_refusal(w: Writer, refusal: _Refusal) -> str:
    """One or two calls of a function that may raise, in one ``try``."""
    base, act = refusal.base, refusal.act
    function = _act_with_one_refusal(w, refusal, base)
    amount = w.numbers(1, 1, 40)[0]
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
        b=amount,
        more=w.at(2, f"print({act}({w.between(5, 30)}, {w.between(1, 40)}))"),
        base=base,
        text=w.choice(('"failed:", error', "error", '"error", error')),
        last=w.choice(('print("done")', "", 'print("end")')),
    )
    return program(_classes(base), function, body)


def refusals_in_loop(w: Writer, refusal: _Refusal) -> str:
    """Loop over amounts that a function takes or refuses."""
    base, small, _, act, field = refusal
    function = _act_with_one_refusal(w, refusal, small)
    amounts = w.numbers(w.size(1, 5), 1, 40)
    body = fill(
        """
        $f = $start
        for amount in $amounts:
            try:
                $f = $act($f, amount)
                $seen
            except $caught as error:
                print("$word", error)
        print($f)
        """,
        f=field,
        start=w.between(20, 90),
        amounts=amounts,
        act=act,
        seen=w.choice((f"print({field})", "", "print(amount)")),
        caught=w.choice((small, base)),
        word=w.choice(("no:", "refused:", "cannot:")),
    )
    return program(_classes(base, small), function, body)


def _act_with_two_refusals(w: Writer, refusal: _Refusal, limit: int) -> str:
    """Returns a function that raises one class for some amounts and another for an amount above the field."""
    return define(
        f"{refusal.act}({refusal.field}, amount)",
        """
        if amount $sign:
            raise $big($text)
        if amount > $f:
            raise $small(amount - $f)
        return $f - amount$more
        """,
        sign=w.choice((f"% {w.between(3, 7)} == 0", f"> {limit}", f"% 10 == {w.below(10)}")),
        big=refusal.big,
        small=refusal.small,
        text=w.choice(("amount", '"not today"', f'f"{{amount}} {w.choice(("at once", "blocked", "no"))}"')),
        f=refusal.field,
        more=w.choice(("", "", f" + amount // {w.between(4, 9)}")),
    )


def _wrapper(w: Writer, refusal: _Refusal) -> str:
    """Returns a function that catches one of the two classes."""
    field = refusal.field
    log = w.at(4, f'print("{w.choice(("missing", "short by", "lacks"))}", error)', below=8)
    less = w.choice(
        (
            f"{field} += {w.between(5, 25)}",
            f"return {field} + error.args[0]",
            f"{field} = {field} // 2 + {w.between(10, 30)}",
        )
    )
    return define(
        f"try_to_{refusal.act}({field}, amount)",
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
        act=refusal.act,
        small=refusal.small,
        named=" as error" if "error" in log + less else "",
        log=log,
        less=less,
        also=w.choice(("", f"else:\n    {field} += 1", "finally:\n    history.append(amount)")),
    )


def refusals_wrapped(w: Writer, refusal: _Refusal, act: str, wrapper: str) -> str:
    """Loop over a list of amounts; a wrapper catches one class and the loop catches the base."""
    base, small, big, verb, field = refusal
    history, shown = _history(wrapper)
    loop = fill(
        """
        for amount in $amounts:
            try:
                $f = try_to_$act($f, amount)
                print(amount, $f)
            except $base as error:
                print(type(error).__name__, error)
                $more
        """,
        amounts=w.numbers(w.size(2, 14), 1, 45),
        f=field,
        act=verb,
        base=base,
        more=w.choice(("", f"{field} -= 1", f"{field} += {w.between(1, 4)}")),
    )
    body = join(f"{field} = {w.between(20, 80)}", loop, f"print({field})", shown)
    return program(history, _classes(base, small, big), act, wrapper, w.main(body))


def refusals_counted(w: Writer, refusal: _Refusal, act: str, wrapper: str) -> str:
    """Loop over turns with an amount each, its exceptions counted by class."""
    base, small, big, verb, field = refusal
    history, shown = _history(wrapper)
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
        $shown
        """,
        f=field,
        start=w.between(20, 80),
        stop=rounds + 1,
        a=w.between(3, 17),
        m=w.between(25, 60),
        act=verb,
        base=base,
        k=w.between(1, 6),
        report=w.sometimes("turn", rounds, w.tell("turn", "turn", "amount", field)),
        shown=shown,
    )
    return program(history, _classes(base, small, big), act, wrapper, w.main(body))


def _history(wrapper: str) -> tuple[str, str]:
    """Returns the first value and the print of ``history``; both empty if ``wrapper`` has no use for it."""
    return ("history = []", "print(len(history), sum(history))") if "history" in wrapper else ("", "")


def cleaning(w: Writer) -> str:
    """Returns a program about the order of try, except, else and finally, by level."""
    words = w.sample(("open", "start", "enter", "begin", "load", "connect"), 2)
    error = w.choice(("ValueError", "KeyError", "RuntimeError", "TypeError"))
    k = w.between(2, 5)
    log = w.choice(("print", "log.append"))
    if w.level > 6:
        # Printing each word would give too many lines of output.
        log = "log.append"
    logged = log != "print"
    work = _work(w, words, error, k, log)
    if w.level < 4:
        return work_called(w, work, logged)
    run = _run(w, error)
    rounds = w.size(1, 16) if w.level > 5 else 1
    if rounds == 1:
        return work_in_run(w, work, run, logged)
    return work_in_runs(w, work, run, logged, rounds)


def _work(w: Writer, words: list[str], error: str, k: int, log: str) -> str:
    """Returns the function ``work``, which may raise ``error`` and catches it."""
    return define(
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
        return n
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
    )


def work_called(w: Writer, work: str, logged: bool) -> str:
    """Calls of a function with ``finally``, each result printed."""
    calls = [f"print(work({n}))" for n in w.numbers(w.size(1, 4), 1, 16)]
    return program("log = []" if logged else "", work, join(*calls, "print(log)" if logged else ""))


def _run(w: Writer, error: str) -> str:
    """Returns the function ``run``, a loop over calls of ``work`` with ``finally`` and ``else``."""
    loop = w.choice(("for", "while"))
    return define(
        "run(start, count)",
        """
        total = 0
        $head
            try:
                value = work(n)
                if value $test:
                    $leave
                total += value
            except $error:
                $caught
            finally:
                total $step
            $next
        else:
            total += $bonus
        return total
        """,
        head="for n in range(start, start + count):"
        if loop == "for"
        else "n = start\nwhile n < start + count:",
        test=w.choice((f"> {w.between(30, 120)}", f"% {w.between(5, 9)} == 0", f"< {w.between(-9, 4)}")),
        leave=w.choice(("break", "continue") if loop == "for" else ("break",)),
        error=error,
        caught=w.choice(("total -= 1", f"total += {w.between(2, 5)}")),
        step=w.choice(("+= 1", "*= 2" if w.level < 6 else "+= 2", "-= 1")),
        next="n += 1" if loop == "while" else "",
        bonus=w.between(10, 90),
    )


def work_in_run(w: Writer, work: str, run: str, logged: bool) -> str:
    """Total of one run over numbers."""
    body = join(
        w.show("total", f"run({w.between(1, 12)}, {w.size(2, 20)})"),
        "print(len(log), log[-4:])" if logged else "",
    )
    return program("log = []" if logged else "", work, run, w.main(body))


def work_in_runs(w: Writer, work: str, run: str, logged: bool, rounds: int) -> str:
    """Best total of several runs over numbers."""
    low = w.between(1, 12)
    body = fill(
        """
        best = 0
        for start in range($low, $high, 2):
            value = run(start, $count)
            best = max(best, value)
            print(start, value$logged)
        $show
        """,
        low=low,
        high=low + rounds * 2,
        count=w.size(2, 12),
        logged=", len(log)" if logged else "",
        show=w.show("best", "best"),
    )
    return program("log = []" if logged else "", work, run, w.main(body))


def retries(w: Writer) -> str:
    """Returns a program about a task that fails now and then and is tried again, by level."""
    task = w.choice(TASKS)
    error = w.choice(("ValueError", "RuntimeError", "OSError", "TimeoutError"))
    attempt = _attempt(w, task, error, w.between(2, 4))
    most = w.between(2, 4)
    if w.level > 3:
        return items_retried(w, task, error, attempt, most)
    item = w.numbers(1, 1, 20)[0]
    if w.level == 1:
        return single_attempt(w, task, error, attempt, item)
    if w.chance(60):
        return attempts_by_item(w, task, error, attempt)
    return attempts_at_item(w, task, error, attempt, item, most)


def _attempt(w: Writer, task: str, error: str, k: int) -> str:
    """Returns a function that raises ``error`` for some items and numbers of tries."""
    return define(
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


def single_attempt(w: Writer, task: str, error: str, attempt: str, item: int) -> str:
    """Single try of a task that may fail."""
    body = fill(
        """
        try:
            print($task($item, $tries))
        except $error as error:
            print($text)
        """,
        task=task,
        item=item,
        tries=w.between(1, 5),
        error=error,
        text=w.choice(('"failed", error', "error", f'"{w.choice(("again", "later", "sorry"))}"')),
    )
    return program(attempt, body)


def attempts_by_item(w: Writer, task: str, error: str, attempt: str) -> str:
    """Loop over items, each tried once, with a sum."""
    body = fill(
        """
        done = 0
        for item in $items:
            try:
                done += $task(item, $tries)
                print(item, done)
            except $error as error:
                print("$word", error)
        $show
        """,
        items=w.numbers(w.size(1, 7), 1, 20),
        task=task,
        tries=w.between(1, 5),
        error=error,
        word=w.choice(("retry", "failed", "again")),
        show=w.show("done", "done"),
    )
    return program(attempt, body)


def attempts_at_item(w: Writer, task: str, error: str, attempt: str, item: int, most: int) -> str:
    """Loop over tries at one item, from level 3 on until one succeeds."""
    body = fill(
        """
        for tries in range($low, $high):
            try:
                print($task($item, tries))
                $leave
            except $error as error:
                print("$word", error)
        $other
        """,
        low=w.between(0, 1),
        high=most + w.size(1, 6),
        task=task,
        item=item,
        leave=w.at(3, "break"),
        error=error,
        word=w.choice(("retry", "failed", "again")),
        other=w.at(3, 'else:\n    print("gave up")'),
    )
    return program(attempt, body)


def items_retried(w: Writer, task: str, error: str, attempt: str, most: int) -> str:
    """Loop over items, each tried several times and then given up with an exception."""
    final = w.choice(("GaveUp", "Failure", "TooManyTries"))
    retry = _retry(w, task, error, final, most)
    rounds = w.size(1, 70)
    low = w.between(1, 30)
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
        low=low,
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


def _retry(w: Writer, task: str, error: str, final: str, most: int) -> str:
    """Returns the function ``retry``, which tries a task ``most`` times and then raises ``final``."""
    return define(
        "retry(item)",
        """
        global waited
        for tries in range(1, $stop):
            try:
                return $task(item, tries)
            except $error:
                waited += $wait
                $log
        raise $final(item)
        """,
        stop=most + 1,
        task=task,
        error=error,
        wait=w.choice(("tries", "tries * 2", "1", "2 ** tries")),
        log=w.at(4, 'print("retry", item, tries)', below=7),
        final=final,
    )


def checks(w: Writer) -> str:
    """Returns a program about records that are checked field by field, by level."""
    things = w.choice((GOODS, FRUITS, PEOPLE))
    field = w.choice(("price", "age", "weight", "count", "score"))
    top = w.between(50, 90)
    rows = _records(w, things, top)
    check = _record_check(w, field, top)
    if w.level == 1:
        return single_record(w, rows[0], check)
    if w.level == 2:
        return records_checked(w, field, rows, check)
    rounds = w.size(1, 14) if w.level > 6 else 1
    if rounds == 1:
        return records_tallied(w, field, rows, check)
    return records_tallied_in_turns(w, field, rows, check, rounds)


def _records(w: Writer, things: tuple[str, ...], top: int) -> list[str]:
    """Returns pairs of a name and a number as written in a program; some of them are bad."""
    names = w.picks(things, 12)
    numbers = w.numbers(12, 1, top + 30)
    rows = []
    for name, number, k in zip(names, numbers, w.numbers(12, 0, 99), strict=True):
        if k < 93:
            rows.append(f'("{name if k > 15 else ""}", {number if k < 80 else -number})')
        else:
            rows.append(f'("{name}", "{number}")' if w.level > 3 else f'("{name}", {number})')
    return rows


def _record_check(w: Writer, field: str, top: int) -> str:
    """Returns the function ``check``, which raises for some names and numbers."""
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
    # An empty name has no first letter. Its test comes first; without that test, a slice takes the letter.
    tests.sort(key=lambda test: "name[0]" in test)
    if not any('name == ""' in test for test in tests):
        tests = [test.replace("name[0]", "name[:1]") for test in tests]
    result = w.choice(
        (f"return {field}", f"return {field} * {w.between(2, 4)}", f"return {field} + len(name)")
    )
    kind = w.at(4, f'if not isinstance({field}, int):\n    raise TypeError("not a number")')
    return define(f"check(name, {field})", join(kind, *tests, result))


def single_record(w: Writer, row: str, check: str) -> str:
    """Single record that is checked in a ``try``."""
    body = fill(
        """
        try:
            print(check($row))
        except $kinds as error:
            print($text)
        $end
        """,
        row=row[1:-1],
        kinds=_caught(check),
        text=_complaint(w),
        end=_ending(w),
    )
    return program(check, body)


def records_checked(w: Writer, field: str, rows: list[str], check: str) -> str:
    """Loop over records, each checked in a ``try`` and printed."""
    body = fill(
        """
        $rows
        for name, $field in rows:
            try:
                print(check(name, $field))
            except $kinds as error:
                print($text)
        """,
        rows=spread("rows", rows[: w.size(1, 8)]),
        field=field,
        kinds=_caught(check),
        text=_complaint(w),
    )
    # Not used, but drawn: each id keeps its program.
    _ending(w)
    return program(check, body)


def _caught(check: str) -> str:
    """Returns the class that catches all that ``check`` raises."""
    return "Exception" if "Lookup" in check or "Overflow" in check else "ValueError"


def _complaint(w: Writer) -> str:
    """Returns the arguments of the print that reports an exception."""
    return w.choice(('"bad:", error', "error", "type(error).__name__", "type(error).__name__, error"))


def _ending(w: Writer) -> str:
    """Returns the end of a program with one ``try``."""
    return w.choice(('else:\n    print("ok")', "", 'print("checked")'))


def records_tallied(w: Writer, field: str, rows: list[str], check: str) -> str:
    """Loop over records that counts good and bad ones."""
    handlers = _record_handlers(w, field)
    shown = w.choice(("good, bad", "total", "good, total"))
    loop = _record_loop(field, handlers, f"print(name, {shown})")
    # Not used, but drawn: each id keeps its program.
    _record_change(w, field)
    return program(check, w.main(_tallied_records(rows[: w.size(1, 11)], loop)))


def records_tallied_in_turns(w: Writer, field: str, rows: list[str], check: str, rounds: int) -> str:
    """Loop over turns that check all records and then change them."""
    handlers = [
        (kind, "bad += 2" if act.startswith("print") else act) for kind, act in _record_handlers(w, field)
    ]
    loop = under(
        f"for turn in range(1, {rounds + 1}):",
        join(
            _record_loop(field, handlers, ""),
            _record_change(w, field),
            w.tell("turn", "turn", "good", "bad", "total"),
        ),
    )
    return program(check, w.main(_tallied_records(rows[: max(2, w.size(1, 11))], loop)))


def _record_handlers(w: Writer, field: str) -> list[tuple[str, str]]:
    """Returns pairs of an exception class to catch and the statement that handles it."""
    handlers = [
        ("ValueError", w.choice(("bad += 1", 'print("value:", error)', f"total -= {w.between(1, 9)}")))
    ]
    if w.level > 3:
        handlers.append(("TypeError", f"total += int({field})" if w.chance(50) else "bad += 1"))
    others = "(LookupError, OverflowError)" if w.chance(50) else "Exception"
    handlers.append((others, w.choice(("bad += 10", "last = str(error)", 'print("other:", error)'))))
    return handlers


def _record_loop(field: str, handlers: list[tuple[str, str]], report: str) -> str:
    """Returns a loop that checks each record."""
    inside = join(
        "try:",
        f"    total += check(name, {field})",
        "    good += 1",
        *(f"except {kind}{' as error' if 'error' in act else ''}:\n    {act}" for kind, act in handlers),
        report,
    )
    return under(f"for name, {field} in rows:", inside)


def _record_change(w: Writer, field: str) -> str:
    """Returns statements that change the records after a turn."""
    return w.choice(
        (
            f"rows = [(name[1:] + name[:1], {field}) for name, {field} in rows]",
            "rows.append(rows.pop(0))\nrows[0] = (rows[0][0], total % 100)",
            f"rows = rows[1:] + [(str(turn) * 2, turn * {w.between(3, 30)})]",
        )
    )


def _tallied_records(rows: list[str], loop: str) -> str:
    """Returns the main part of a program that counts good and bad records."""
    last = "last =" in loop
    return fill(
        """
        $rows
        good = bad = total = 0
        $zero
        $loop
        print(good, bad, total$last)
        """,
        rows=spread("rows", rows),
        zero='last = ""' if last else "",
        loop=loop,
        last=", last" if last else "",
    )


class _Places(NamedTuple):
    """A table and a list in which things are looked up.

    Attributes:
        table: The assignment of ``table``, a dictionary.
        values: The assignment of ``values``, a list.
        keys: The keys of the table, and two that it lacks.
        size: How many keys the table has.
    """

    table: str
    values: str
    keys: list[str]
    size: int


def lookups(w: Writer) -> str:
    """Returns a program about keys, positions and divisions that may fail, by level."""
    places = _places(w)
    if w.level < 3:
        kind = w.choice(("key", "index", "zero"))
        setup, value = _risky_value(w, kind, places)
        name = w.choice(("found", "result", "answer", "x"))
        handler = _lookup_handler(w, kind, name)
        if w.level == 1:
            return single_lookup(kind, setup, value, name, handler)
        return lookups_of_one_kind(w, kind, places, name)
    find = _find(w)
    if w.level == 3:
        return lookups_called(w, places, find)
    if w.level < 6:
        return lookups_in_loop(w, places, find)
    return lookups_in_turns(w, places, find)


def _places(w: Writer) -> _Places:
    """Returns a table and a list with keys for them."""
    keys = w.sample(w.choice((COLOURS, FRUITS, GOODS)), 8)
    size = w.grow(2, 5)
    items = [f'"{key}": {value}' for key, value in zip(keys[:size], w.numbers(8, 0, 12), strict=False)]
    values = [str(value) for value in w.numbers(w.grow(3, 6), 0, 9)]
    return _Places(spread("table", items, "{}"), spread("values", values), keys[: size + 2], size)


def _risky_value(w: Writer, kind: str, places: _Places) -> tuple[str, str]:
    """Returns statements to begin with, and an expression that may raise the kind's exception."""
    key = w.choice(places.keys)
    index = w.between(0, 6)
    total = w.between(10, 90)
    n = w.choice((0, 0, 2, 3, 4, 5, 6))
    return {
        "key": (places.table, f'table["{key}"]'),
        "index": (places.values, f"values[{index}]"),
        "zero": (f"total = {total}\nn = {n}", "total // n"),
    }[kind]


def _lookup_handler(w: Writer, kind: str, name: str) -> str:
    """Returns statements that follow a failed look-up."""
    complaint = f'print("{w.choice(("missing", "oops", "none"))}"{", error" if kind == "key" else ""})'
    return w.choice((f"{name} = {w.between(-1, 20)}", f"{complaint}\n{name} = {w.below(9)}"))


def single_lookup(kind: str, setup: str, value: str, name: str, handler: str) -> str:
    """Single look-up that may fail."""
    errors = {"key": "KeyError as error", "index": "IndexError", "zero": "ZeroDivisionError"}
    body = fill(
        """
        $setup
        try:
            $name = $value
        except $error:
            $handler
        print($name)
        """,
        setup=setup,
        name=name,
        value=value,
        error=errors[kind],
        handler=handler,
    )
    return program(body)


def lookups_of_one_kind(w: Writer, kind: str, places: _Places, name: str) -> str:
    """Loop over look-ups of one kind, with a sum."""
    asked = strings(w.picks(places.keys, w.size(2, 9)))
    indices = w.numbers(w.size(2, 9), 0, 7)
    divisors = w.numbers(w.size(2, 9), -1, 4)
    dividend = w.between(10, 60)
    first = w.below(9)
    setup, item, items, value, error = {
        "key": (f"{places.table}\n{name} = 0", "key", asked, "table[key]", "KeyError"),
        "index": (f"{places.values}\n{name} = 0", "i", indices, "values[i]", "IndexError"),
        "zero": (f"{name} = {first}", "n", divisors, f"{dividend} // n", "ZeroDivisionError"),
    }[kind]
    body = fill(
        """
        $setup
        for $item in $items:
            try:
                $name += $value
            except $error:
                $other
            $also
        print($name)
        """,
        setup=setup,
        item=item,
        items=items,
        name=name,
        value=value,
        error=error,
        other=w.choice(
            (
                f'print("{w.choice(("missing", "oops", "none", "failed"))}", {item})',
                f"{name} -= {w.between(1, 9)}",
            )
        ),
        also=w.choice(("", f"else:\n    print({name})")),
    )
    return program(body)


def _find(w: Writer) -> str:
    """Returns the function ``find``, whose look-ups may fail in three ways."""
    return define(
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


def _lookup_calls(w: Writer, places: _Places) -> list[tuple[str, int]]:
    """Returns arguments for calls of ``find``."""
    count = w.size(1, 9)
    return list(zip(w.picks(places.keys, count), w.numbers(count, 0, 4), strict=True))


def _shown_lookup(w: Writer) -> str:
    """Returns the arguments of the print in a loop over look-ups."""
    return w.choice(("key, result", "result", "key, place, result"))


def lookups_called(w: Writer, places: _Places, find: str) -> str:
    """Calls of a function whose look-ups may fail, each printed."""
    calls = _lookup_calls(w, places)
    # Not used, but drawn: each id keeps its program.
    _shown_lookup(w)
    body = join(*(f'print(find("{key}", {place}))' for key, place in calls), "print(len(table), len(values))")
    return program(f"{places.table}\n{places.values}", find, w.main(body))


def lookups_in_loop(w: Writer, places: _Places, find: str) -> str:
    """Loop over the arguments of a function whose look-ups may fail."""
    calls = _lookup_calls(w, places)
    body = fill(
        """
        for key, place in [$calls]:
            result = find(key, place)
            print($shown)
        print(len(table), len(values))
        """,
        calls=", ".join(f"({quoted(key)}, {place})" for key, place in calls),
        shown=_shown_lookup(w),
    )
    return program(f"{places.table}\n{places.values}", find, w.main(body))


def lookups_in_turns(w: Writer, places: _Places, find: str) -> str:
    """Loop over turns that look up and then change the table or the list."""
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
        keys=spread("keys", [quoted(key) for key in places.keys]),
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
    return program(f"{places.table}\n{places.values}", find, w.main(body))


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
