"""Generators: sources, pipelines, walks, conversations, turns, windows."""

from __future__ import annotations

from trace_gym.programs.builtin.vocabulary import ANIMALS, FRUITS, PEOPLE, TASKS, THEMES, up_to
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
    under,
)


def sources(w: Writer) -> str:
    """Numbers that come one at a time."""
    names, body = w.choice(
        (
            ("countdown,falling,backwards", "while n > 0:\n    yield n\n    n -= $k"),
            ("doubles,growing,rising", "x = $c\nfor _ in range(n):\n    yield x\n    x *= 2"),
            ("squares,areas", "for i in range(1, n + 1):\n    yield i * i + $c"),
            ("pairs,rabbits,sums", "a, b = $c, $k\nfor _ in range(n):\n    yield a\n    a, b = b, a + b"),
            ("halves,shrinking", "n = n * $big\nwhile n > 0:\n    yield n\n    n //= 2"),
            (
                "zigzag,swing",
                "for i in range(n):\n    yield i * $k + $c\n    if i % 2 == 1:\n        yield -i",
            ),
            ("steps,climb,stairs", "total = $c\nfor i in range(n):\n    total += i * $k\n    yield total"),
            ("letters,marks,notes", 'for i in range(n):\n    yield "$text"[i % $k]'),
            (
                "bounce,mixed",
                "x = $c\nfor i in range(n):\n    x = x + $big if i % 2 else x - $k\n    yield x",
            ),
        )
    )
    name, item = w.choice(names.split(",")), w.choice(("value", "x", "item", "number"))
    k = w.between(2, 5)
    text = "".join(w.sample("abcdefghikmnoprstuxyz", 5))
    n = w.size(2, 14)
    source = define(f"{name}(n)", body, k=k, c=w.between(1, 30), big=w.between(2, 9), text=text)
    if "n -=" in body:
        n = n * k - w.below(k)
    if "n //=" in body:
        n = min(1 << min(n, 8), 300) // 2 + w.between(1, 2)
    if w.level < 4:
        lines = w.choice(
            (
                f"print(list({name}({n})))",
                f"for {item} in {name}({n}):\n    print({item})",
                f"{item}s = {name}({n})\nprint(next({item}s))\nprint(next({item}s, {w.below(3)}))",
                f"print(*{name}({n}))",
                f"{item}s = list({name}({n}))\nprint({item}s[-1], len({item}s))",
            )
        )
        if w.level > 1 and "letters" not in names:
            more = w.choice((f"{name}({n + 1})", f"range({w.between(1, 9)}, 90)", f"{w.numbers(n, 1, 30)}"))
            lines = w.choice(
                (
                    f"total = {w.below(9)}\nfor {item} in {name}({n}):\n"
                    f"    total += {item}\n    print({item}, total)",
                    f"for i, {item} in enumerate({name}({n}), start={w.below(3)}):\n    print(i, {item})",
                    f"{item}s = {name}({n})\nfirst = next({item}s)\nprint(first, sum({item}s))",
                    f"for a, b in zip({name}({n}), {more}):\n    print(a {w.choice('+-*')} b)",
                    f"print(max({name}({n})), sum({name}({n})))",
                    f"for {item} in {name}({n}):\n"
                    f"    if {item} % {w.between(2, 4)} == 0:\n        print({item})",
                )
            )
        return program(source, lines)
    endless = define(
        w.choice(("stream", "ticker", "dice")) + "(x)",
        "while True:\n    x = (x * $a + $b) % $m\n    yield x",
        a=w.between(2, 14),
        b=w.between(1, 30),
        m=w.choice((17, 23, 31, 50, 64, 97, 100)),
    )
    stream = endless[4 : endless.index("(")]
    take = define(
        "take(values, count)",
        """
        taken = 0
        for value in values:
            if taken == count:
                return
            $skip
            taken += 1
            yield value
        """,
        skip=w.maybe(5, f"if value % {w.between(2, 4)} == {w.below(2)}:\n    continue", 60),
    )
    if w.level < 7:
        inside = w.choice(
            (
                "total += value",
                "total = max(total, value)",
                "total = value - total",
                "if value > total:\n    total = value",
            )
        )
        body = fill(
            """
            total = 0
            for value in take($stream($x), $count):
                $inside
                print($shown)
            $show
            """,
            stream=stream,
            x=w.between(1, 20),
            count=w.size(2, 16),
            inside=inside,
            shown=w.choice(("value", "value, total")),
            show=w.show("total", "total"),
        )
        return program(endless, take, w.main(body))
    rounds = w.size(2, 16)
    number = "letters" not in names
    body = fill(
        """
        score = 0
        numbers = $stream($x)
        for turn in range(1, $stop):
            chosen = list(take(numbers, $count))
            score += sum(chosen)
            $other
            $tell
        $show
        """,
        stream=stream,
        x=w.between(1, 20),
        stop=rounds + 1,
        count=w.choice(("turn % 4 + 1", str(w.size(2, 9)), f"{w.size(1, 6)} + turn % 3")),
        other=f"for value in {name}(turn % {w.between(3, 5)} + 2):\n    score = (score * 2 + value) % 1000"
        if number
        else f'text = "".join({name}(turn % 5 + 1))\nscore += text.count("{text[0]}")',
        tell=w.tell("turn", "turn", w.choice(("chosen", "len(chosen)", "chosen[-1]")), "score"),
        show=w.show("score", "score"),
    )
    return program(endless, take, source, w.main(body))


def pipelines(w: Writer) -> str:
    """One generator feeding the next."""
    pool = {
        "keep": "for x in values:\n    if x % $k != 0:\n        yield x",
        "grow": "for x in values:\n    yield x * $k + $c",
        "differences": "last = 0\nfor x in values:\n    yield x - last\n    last = x",
        "running": "total = 0\nfor x in values:\n    total += x\n    yield total",
        "doubled": "for x in values:\n    yield x\n    if x % 2 == 0:\n        yield x // 2",
        "capped": "for x in values:\n    if x > $limit:\n        x %= $limit\n    yield x",
        "paired": "waiting = None\nfor x in values:\n    if waiting is None:\n"
        "        waiting = x\n    else:\n        yield waiting + x\n"
        "        waiting = None",
        "until": "for x in values:\n    if x > $stop:\n        return\n    yield x",
        "changes": "last = None\nfor x in values:\n    if x != last:\n        yield x\n    last = x",
    }
    used = w.sample(list(pool), 1 if w.level < 5 else 2 if w.level < 7 else 3 if w.level < 9 else 4)
    stages = [
        define(
            f"{name}(values)",
            pool[name],
            k=w.between(2, 4),
            c=w.below(6),
            limit=w.between(12, 40),
            stop=w.between(60, 300),
        )
        for name in used
    ]
    if w.level < 4:
        values = w.numbers(w.size(2, 8), 1, 30)
        call = f"{used[0]}({values})"
        lines = (
            f"print(list({call}))"
            if w.level == 1
            else w.choice(
                (
                    f"for x in {call}:\n    print(x)",
                    f"values = {values}\nprint(list({used[0]}(values)), len(values))",
                    f"result = list({call})\nprint(result, sum(result))",
                )
            )
        )
        return program(*stages, lines)
    call = "values"
    for name in used:
        call = f"{name}({call})"
    count = w.size(2, 30)
    if w.level < 8:
        numbers = w.choice((f"range({w.between(1, 9)}, {count + 9})", str(w.numbers(min(count, 16), 1, 40))))
        body = fill(
            """
            values = $numbers
            $total
            for x in $call:
                $add
                print($shown)
            $show
            """,
            numbers=numbers,
            total="total = 0",
            call=call,
            add="total += x",
            shown=w.choice(("x", "x, total")),
            show=w.show("total", "total"),
        )
        return program(*stages, w.main(body))
    source = define(
        "numbers(x, count)",
        "for i in range(count):\n    x = (x * $a + i) % $m\n    yield x",
        a=w.between(3, 17),
        m=w.choice((29, 37, 41, 53)),
    )
    body = fill(
        """
        grand = 0
        for start in range(1, $stop):
            values = numbers(start, $count)
            result = list($call)
            grand += sum(result) % $m
            print(start, len(result), $shown)
        $show
        """,
        stop=w.size(4, 18) + 1,
        count=w.size(3, 22),
        call=call,
        m=w.choice((10, 50, 97)),
        shown=w.choice(("result[:3]", "grand", "sum(result)", "result[-1:]")),
        show=w.show("grand", "grand"),
    )
    return program(source, *stages, w.main(body))


def walks(w: Writer) -> str:
    """Generators that yield from themselves."""
    kind = w.choice(("nest", "tree", "combos") if w.level < 4 else ("nest", "tree", "ruler", "combos"))
    if kind == "nest":
        stream = w.fork()

        def nested(budget: int, depth: int) -> str:
            items = []
            while budget > 0:
                part = stream.between(1, budget)
                if depth and stream.chance(50) and part > 1:
                    items.append(nested(part, depth - 1))
                    budget -= part
                else:
                    items.append(str(stream.between(1, 30)))
                    budget -= 1
            return f"[{', '.join(items)}]"

        function = define(
            "flat(items$level)",
            """
            for item in items:
                if isinstance(item, list):
                    $enter
                    yield from flat(item$deeper)
                else:
                    yield $value
            """,
            level=", level" if w.level > 3 else "",
            deeper=", level + 1" if w.level > 3 else "",
            enter=w.maybe(5, "yield level"),
            value=w.choice(("item * level", "item + level", "item"))
            if w.level > 3
            else w.choice(("item", f"item * {w.between(2, 4)}", f"item + {w.between(1, 9)}")),
        )
        data = nested(w.size(2, 26), 1 if w.level < 4 else 3)
        call = f"flat(data{', 1' if w.level > 3 else ''})"
        if w.level < 4:
            return program(
                function,
                f"data = {data}\n"
                + w.choice(
                    (f"print(list({call}))", f"for x in {call}:\n    print(x)", f"print(sum({call}))")
                ),
            )
        loop = under(f"for x in {call}:", "total += x\nprint(x, total)")
        if w.level > 7:
            rounds = w.size(3, 14)
            loop = under(
                f"for turn in range({rounds}):",
                join(
                    under(f"for x in {call}:", "total = (total * 2 + x) % 1000"),
                    "print(turn, total)",
                    w.choice(
                        ("data = data[1:] + [[turn, data[0]]]", "data = [data[-1], [turn]] + data[:-1]")
                    ),
                ),
            )
        return program(function, w.main(join(f"data = {data}", "total = 0", loop, w.show("total", "total"))))
    if kind == "tree":
        function = define(
            "walk(low, high)",
            """
            if low > high:
                return
            middle = $middle
            $before
            yield from walk(low, middle - 1)
            $between
            yield from walk(middle + 1, high)
            $after
            """,
            middle=w.choice(("(low + high) // 2", "(low + high + 1) // 2", "low + (high - low) // 3")),
            **dict(
                zip(
                    w.shuffled(("before", "between", "after")),
                    (
                        w.choice(
                            ("yield middle", f"yield middle * {w.between(2, 5)}", "yield middle, high - low")
                        ),
                        w.maybe(
                            5,
                            w.choice(
                                (
                                    "if low == high:\n    yield -middle",
                                    "if middle % 3 == 0:\n    yield low + high",
                                )
                            ),
                            60,
                        ),
                        "",
                    ),
                    strict=True,
                )
            ),
        )
        low = w.between(1, 60)
        high = low + w.size(1, 60)
        if w.level < 5 or "yield middle, " in function:
            item = w.choice(("item", "node", "x"))
            body = f"for {item} in walk({low}, {high}):\n    print({item})"
            if w.level > 7:
                body = fill(
                    "count = 0\nfor item in walk($a, $b):\n    count += 1\n    $report\nprint(count)",
                    a=low,
                    b=high,
                    report=w.sometimes("count", high - low, "print(count, item)"),
                )
            return program(function, body)
        body = fill(
            """
            count = total = 0
            for item in walk($low, $high):
                count += 1
                total = (total * $k + item) % $m
                $report
            $show
            """,
            low=low,
            high=high,
            k=w.between(2, 5),
            m=w.choice((97, 100, 997)),
            report=w.sometimes("count", high - low, "print(count, item, total)"),
            show=w.show("total", "total"),
        )
        return program(function, w.main(body))
    if kind == "ruler":
        function = define(
            "ruler(n)",
            "if n == 0:\n    return\n$first\nyield $value\nyield from ruler(n - 1)\n$last",
            first="yield from ruler(n - 1)" if w.level > 3 else "",
            value=w.choice(("n", f"n * {w.between(2, 9)}", "-n", '"-" * n', "str(n)")),
            last=w.choice(("", "yield 0", f"if n % {w.between(2, 3)} == 0:\n    yield 0")),
        )
        n = w.size(1, 7 if w.level > 3 else 9)
        if w.level < 7:
            body = w.choice(
                (
                    f"for mark in ruler({n}):\n    print(mark)",
                    f"for place, mark in enumerate(ruler({n})):\n    print(place, mark)",
                )
            )
            return program(function, w.main(body))
        body = (
            f"for n in range(1, {n + 1}):\n    marks = list(ruler(n))\n"
            f"    print(n, len(marks), marks[:{w.between(3, 7)}], marks.count(marks[0]))"
        )
        return program(function, w.main(body))
    pool = w.choice((FRUITS, ANIMALS, PEOPLE))
    function = define(
        "teams(people, size)",
        """
        if size == 0:
            yield []
            return
        for i in range(len(people)):
            for rest in teams(people[i + 1:], size - 1):
                yield $team
        """,
        team=w.choice(("[people[i]] + rest", "rest + [people[i]]")),
    )
    people = w.sample(up_to(pool, 5), w.size(2, 6))
    if w.level < 8:
        size = 1 if w.level < 4 else 2
        body = (
            f"people = [{', '.join(map(quoted, people))}]\n"
            f"for team in teams(people, {min(size, len(people))}):\n"
            f"    print({w.choice(('team', '*team', '*sorted(team)'))})"
        )
        return program(function, w.main(body))
    body = fill(
        "people = [$people]\nfor size in range(1, $stop):\n"
        "    count = 0\n    for team in teams(people, size):\n"
        "        count += 1\n        if $test:\n"
        "            print(size, *team)\n    print(size, count)",
        people=", ".join(map(quoted, people)),
        stop=min(len(people), 4) + 1,
        test=w.choice(
            (f"count % {w.between(3, 5)} == 0", f"len(team[0]) == {w.between(3, 5)}", "team[0] > team[-1]")
        ),
    )
    return program(function, w.main(body))


def conversations(w: Writer) -> str:
    """Generators that are sent values."""
    pool = {
        "averager": (
            "total = count = 0\naverage = $c",
            "x = yield average\ntotal += x\ncount += 1\naverage = total // count",
        ),
        "recorder": ("best = $c", "x = yield best\nif x > best:\n    best = x"),
        "smoother": ("value = $c", "x = yield value\nvalue = (value + x) // 2"),
        "counter": ("seen = 0", "x = yield seen\nif x % $k == 0:\n    seen += x"),
        "echo": ("last = $c", "x = yield last\nlast = x - last"),
        "keeper": ("kept = []", "x = yield sum(kept)\nkept.append(x)\nif len(kept) > $k:\n    kept.pop(0)"),
        "switch": (
            "on = False\ntotal = 0",
            "x = yield total\nif x % $k == 0:\n    on = not on\nif on:\n    total += x",
        ),
    }
    used = w.sample(list(pool), 1 if w.level < 6 else 2 if w.level < 8 else 3)
    functions = []
    for name in used:
        start, loop = pool[name]
        functions.append(
            define(f"{name}()", join(start, under("while True:", loop)), c=w.below(12), k=w.between(2, 4))
        )
    if w.level < 6:
        name = w.choice((used[0][:1], "talk", "line", "worker"))
        values = w.numbers(w.size(1, 12), 1, 40)
        lines = [f"{name} = {used[0]}()", f"next({name})"]
        if w.level < 3:
            lines += [f"print({name}.send({value}))" for value in values[:4]]
        else:
            lines.append(f"for x in {values}:\n    print(x, {name}.send(x))")
        return program(*functions, w.main(join(*lines)))
    rounds = w.size(2, 80)
    body = fill(
        """
        $made
        x = $x
        for turn in range(1, $stop):
            $sent
            x = (x * $a + $first) % $m
            $report
        print($last)
        """,
        made=join(*(f"{name}_line = {name}()\nnext({name}_line)" for name in used)),
        x=w.between(1, 30),
        stop=rounds + 1,
        sent=join(
            *(
                f"{name} = {name}_line.send({'x' if i == 0 or w.chance(50) else used[i - 1]})"
                for i, name in enumerate(used)
            )
        ),
        a=w.between(2, 9),
        first=w.choice((used[0], used[-1], "turn")),
        m=w.between(30, 99),
        report=w.sometimes("turn", rounds, w.tell("turn", "turn", "x", *used)),
        last=", ".join(used),
    )
    # A function's name is also that of what it sent: told apart by where they live.
    body = body.replace("_line = ", "_line = make_").replace("make_make_", "make_")
    functions = [
        function.replace(f"def {name}()", f"def make_{name}()")
        for function, name in zip(functions, used, strict=True)
    ]
    return program(*functions, w.main(body))


def turns(w: Writer) -> str:
    """Several generators that take turns."""
    names = w.sample(TASKS if w.chance(50) else ANIMALS, w.grow(2, 4))
    worker = w.choice(("task", "job", "runner", "worker"))
    body = w.choice(
        (
            "for step in range(1, count + 1):\n    yield name, step",
            "while count > 0:\n    yield name, count\n    count -= $k",
            "done = 0\nwhile done < count:\n    done += $k\n    yield name, done",
            "for step in range(count):\n    if step % 2 == 0:\n"
            "        yield name, step * $k\n    else:\n"
            "        yield name.upper(), step",
        )
    )
    function = define(
        f"{worker}(name, count)", body, k=w.between(1, 2) if "done" in body else w.between(1, 3)
    )
    most = w.size(1, 20)
    counts = [max(1, most - w.below(3)) for _ in names]
    if w.level < 4:
        name = names[0]
        lines = w.choice(
            (
                f'for name, step in {worker}("{name}", {most}):\n    print(name, step)',
                f'first = {worker}("{name}", {most + 1})\nprint(next(first))\nprint(list(first))',
                f'first = {worker}("{name}", {most})\n'
                f'second = {worker}("{names[1]}", {counts[1]})\n'
                f"for a, b in zip(first, second):\n    print(*a, *b)",
                f'print(list({worker}("{name}", {most})))',
            )
        )
        return program(function, lines)
    scheduler = define(
        w.choice(("take_turns", "run_all", "schedule")) + "(queue)",
        """
        while queue:
            current = queue.pop(0)
            try:
                yield next(current)
                $again
            except StopIteration:
                $end
        """,
        again=w.choice(
            (
                "queue.append(current)",
                "queue.append(current)",
                "queue.insert(1, current)" if len(names) > 2 else "queue.append(current)",
            )
        ),
        end=w.choice(("continue", 'yield "end", len(queue)')),
    )
    call = scheduler[4 : scheduler.index("(")]
    jobs = spread(
        "queue", [f'{worker}("{name}", {count})' for name, count in zip(names, counts, strict=True)]
    )
    shown = "print(name, step)"
    if w.level < 7:
        loop = f"for name, step in {call}(queue):\n    {shown}"
        return program(function, scheduler, w.main(join(jobs, loop)))
    total, last = sum(counts), w.size(4, 60)
    loop = fill(
        """
        clock = score = 0
        for name, step in $call(queue):
            clock += 1
            score = (score * $k + step + len(name)) % $m
            $late
            $report
        $show
        """,
        call=call,
        k=w.between(1, 5),
        m=w.choice((97, 100, 500, 997)),
        late=f"if clock == {w.between(2, 5)} or score % {w.between(11, 19)} == 0 and clock < {last}:\n"
        f'    queue.append({worker}("{w.choice(("late", "extra", "more"))}", {w.between(2, 5)}))',
        report=w.sometimes("clock", total, "print(clock, name, step)"),
        show=w.show("score", "score"),
    )
    return program(function, scheduler, w.main(join(jobs, loop)))


def windows(w: Writer) -> str:
    """Windows, chunks and neighbours of a list or a text."""
    pool = {
        "windows": "for i in range(len(items) - size + 1):\n    yield items[i:i + size]",
        "chunks": "for i in range(0, len(items), size):\n    yield items[i:i + size]",
        "prefixes": "for i in range(1, len(items) + 1, size):\n    yield items[:i]",
        "spins": "for _ in range(len(items)):\n    yield items\n    items = items[size:] + items[:size]",
        "ends": "while len(items) > size:\n    yield items[0], items[-1]\n    items = items[1:-1]",
    }
    used = w.sample(list(pool), 1 if w.level < 6 else 2 if w.level < 9 else 3)
    functions = [define(f"{name}(items, size)", pool[name]) for name in used]
    text = w.chance(40)
    pool_words = w.choice(THEMES)
    data = (
        quoted(w.choice(up_to(pool_words, w.size(3, 10)))) if text else str(w.numbers(w.size(2, 14), 1, 30))
    )
    size = w.between(1, 3)
    if w.level < 6:
        shown = "print(part)" if text or w.chance(50) else "print(part, sum(part))"
        lines = (
            f"print(list({used[0]}({data}, {size})))"
            if w.level == 1
            else f"for part in {used[0]}({data}, {size}):\n    {shown}"
        )
        extra = w.at(
            4, f"count = 0\nfor part in {used[0]}({data}, {size + 1}):\n    count += len(part)\nprint(count)"
        )
        return program(*functions, w.main(join(lines, extra)))
    a, b, m = w.between(2, 13), w.between(1, 30), w.choice((19, 31, 43, 60))
    rounds = w.size(2, 12)
    body = fill(
        """
        best = score = 0
        for turn in range(1, $stop):
            items = [(i * $a + turn * $b) % $m for i in range($count)]
            $uses
            best = max(best, score % $k)
            $tell
        $show
        """,
        stop=rounds + 1,
        a=a,
        b=b,
        m=m,
        count=w.size(4, 14),
        uses=join(
            *(
                f"for part in {name}(items, {w.between(1, 3) if name != 'windows' else w.between(2, 4)}):\n"
                f"    "
                + w.choice(
                    (
                        "score += max(part)",
                        "score += part[0] - part[-1]",
                        f"if sum(part) % {w.between(2, 4)} == 0:\n        score += 1",
                        "score = (score * 2 + sum(part)) % 500",
                    )
                )
                for name in used
            )
        ),
        k=w.choice((50, 100, 64)),
        tell=w.tell("turn", "turn", "score", "best"),
        show=w.show("best", "best"),
    )
    return program(*functions, w.main(body))


FAMILY = Family(
    "generators",
    (
        Template(sources),
        Template(pipelines),
        Template(walks, lowest=2),
        Template(conversations),
        Template(turns),
        Template(windows),
    ),
)
