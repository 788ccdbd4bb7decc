"""Dynamic programming: coins, stairs, knapsacks, two texts, runs of numbers, grids."""

from __future__ import annotations

from trace_gym.programs.builtin.vocabulary import GOODS, THEMES, up_to
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
)


def coins(w: Writer) -> str:
    """Ways to pay, and the fewest coins."""
    pool = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12)
    amount = w.size(3, 46)
    kinds = sorted(w.sample(pool, w.between(1, 2) if w.level < 4 else w.grow(2, 4)))
    if w.level > 3 and w.chance(60):
        kinds = [1, *kinds[:-1]]
    name = w.choice(("ways", "counts", "paths", "table"))
    coin = w.choice(("coin", "step", "size", "stamp"))
    fewest = w.level > 3 and w.chance(50)
    pay = w.choice(("ways_to_pay", "count_ways", "combinations", "ways_to_fill"))
    if w.level < 4:
        if w.level == 1:
            body = fill(
                """
                $n = [$first] + [$fill] * $amount
                for i in range($coin, $stop):
                    $n[i] += $n[i - $coin]$extra
                print($n)
                """,
                n=name,
                first=w.between(1, 20),
                fill=w.below(4),
                amount=min(amount, 9),
                coin=min(kinds[0], amount),
                stop=min(amount, 9) + 1,
                extra=w.choice(("", " + 1", f" + {w.between(2, 5)}")),
            )
            return program(body)
        body = fill(
            """
            $n = [1] + [0] * $amount
            for $coin in $kinds:
                for i in range($coin, $stop):
                    $n[i] += $n[i - $coin]
                print($shown)
            $end
            """,
            n=name,
            amount=amount,
            coin=coin,
            kinds=kinds,
            stop=amount + 1,
            shown=w.choice((f"{coin}, {name}[{amount}]", f"{name}", f"{coin}, sum({name})"))
            if amount < 16
            else f"{coin}, {name}[{amount}]",
            end=w.choice((f"print({name}[{amount}])", w.show(name, f"{name}[-1]"))),
        )
        return program(body)
    ways = define(
        f"{pay}(amount, {coin}s)",
        """
        $n = [1] + [0] * amount
        for $coin in $coins:
            for i in range($coin, amount + 1):
                $n[i] $add
            $log
        return $n[amount]
        """,
        n=name,
        coin=coin,
        coins=f"{coin}s",
        add=w.choice(
            (
                f"+= {name}[i - {coin}]",
                f"+= {name}[i - {coin}]",
                f"= ({name}[i] + {name}[i - {coin}]) % {w.choice((10, 97, 100))}",
            )
        ),
        log=w.at(4, f"print({coin}, {name})" if amount < 14 else f"print({coin}, {name}[amount])", below=8),
    )
    few = define(
        f"fewest(amount, {coin}s)",
        """
        best = [0]
        for i in range(1, amount + 1):
            options = []
            for $coin in $coins:
                if $coin <= i and best[i - $coin] is not None:
                    options.append(best[i - $coin] + 1)
            best.append($pick if options else None)
            $log
        return best[amount]
        """,
        coin=coin,
        coins=f"{coin}s",
        pick=w.choice(("min(options)", "min(options)", "max(options)")),
        log=w.at(4, "print(i, best[i])", below=7),
    )
    functions = [few] if fewest else [ways]
    call = "fewest" if fewest else pay
    if w.level < 7:
        body = w.show(
            call.replace("_", " "), f"{call}({amount if w.level > 4 else min(amount, 12)}, {kinds})"
        )
        return program(*functions, w.main(body))
    both = w.level > 8
    start = w.between(2, 9)
    stop = start + w.size(3, 16)
    body = fill(
        """
        $coins = $kinds
        total = 0
        for amount in range($start, $stop$stride):
            $first
            $use
            $tell
        $show
        """,
        coins=f"{coin}s",
        kinds=kinds,
        start=start,
        stop=stop,
        stride=w.choice(("", "", ", 2")),
        first=f"value = {call}(amount, {coin}s)",
        use="if value is not None:\n    total += value" if fewest else "total += value",
        tell=w.tell(
            "amount",
            "amount",
            "value",
            *([f"{pay}(amount, {coin}s)" if fewest else f"fewest(amount, {coin}s)"] if both else []),
        ),
        show=w.show("total", "total"),
    )
    return program(*([ways, few] if both else functions), w.main(body))


def stairs(w: Writer) -> str:
    """Sums over what came before: stairs, tiles, rabbits."""
    n = w.size(2, 40)
    name = w.choice(("ways", "f", "memo", "table", "best"))
    a, b = (w.between(1, 30), w.between(1, 30)) if w.level < 3 else (w.between(1, 4), w.between(1, 5))
    rule = w.choice(
        (
            f"{name}[i - 1] + {name}[i - 2]",
            f"{name}[i - 1] + 2 * {name}[i - 2]",
            f"{name}[i - 1] * 2 - {name}[i - 2] + i",
            f"max({name}[i - 1], {name}[i - 2] + i)",
            f"{name}[i // 2] + {name}[i - 1]",
            f"{name}[i - 1] + {name}[i - 2] - {w.between(1, 3)}",
            f"min({name}[i - 1] + {w.between(3, 6)}, {name}[i - 2] * 2)",
        )
    )
    modulus = w.choice((10, 50, 97, 100, 1000)) if n > 14 or w.level > 6 else 0
    value = f"({rule}) % {modulus}" if modulus else rule
    if w.level < 5:
        body = fill(
            """
            $n = [$a, $b]
            for i in range(2, $stop):
                $n.append($value)
                $report
            $show
            $more
            """,
            n=name,
            a=a,
            b=b,
            stop=n + 2,
            value=value,
            report=w.at(2, w.choice((f"print(i, {name}[i])", f"print({name}[-1])"))),
            show=w.show(w.choice((name, "result", "last")), f"{name}[{n + 1}]")
            if w.level > 1
            else f"print({name})",
            more=w.at(
                3,
                w.choice((f"print(sum({name}))", f"print(max({name}), min({name}))", f"print({name}[::2])")),
            ),
        )
        return program(w.main(body))
    inner = rule
    for k in ("i - 1", "i - 2", "i // 2"):
        inner = inner.replace(f"{name}[{k}]", f"count({k})")
    memo = define(
        "count(i)",
        """
        $work
        if i < 2:
            return $base
        if i in $n:
            return $n[i]
        $log
        $n[i] = $inner
        return $n[i]
        """,
        work="global calls\ncalls += 1" if w.level > 5 else "",
        base=w.choice((f"[{a}, {b}][i]", f"{a} if i == 0 else {a + b}", f"i + {a}")),
        n=name,
        log=w.at(5, 'print("new", i)', below=8),
        inner=f"({inner}) % {modulus}" if modulus else inner,
    )
    stored = join(f"{name} = {{}}", "calls = 0" if w.level > 5 else "")
    if w.level < 7:
        body = join(
            w.show("result", f"count({w.size(2, 14)})"), w.at(6, "print(calls)"), f"print(len({name}))"
        )
        return program(stored, memo, body)
    low = w.between(1, 4)
    rounds = w.size(3, 60)
    body = fill(
        """
        total = 0
        for k in range($low, $high):
            value = count(k $how)
            total += value
            $forget
            $report
        print(total, calls, len($n))
        """,
        low=low,
        high=low + rounds,
        how=w.choice(
            (f"% {w.between(9, 30)}", f"* {w.between(2, 7)} % {w.between(11, 30)}", f"+ {w.between(1, 5)}")
        ),
        forget=w.choice(
            (
                f"if len({name}) > {w.between(6, 14)}:\n    {name}.clear()",
                f"if k % {w.between(4, 8)} == 0:\n    {name}.pop(max({name}, default=0), None)",
                f"if value % {w.between(3, 5)} == 0:\n    {name}.clear()",
            )
        ),
        n=name,
        report=w.sometimes("k", rounds, w.choice(("print(k, value)", "print(k, value, calls)"))),
    )
    return program(stored, memo, body)


def knapsack(w: Writer) -> str:
    """The most that can be carried."""
    names = w.sample(GOODS, 6)
    count = w.size(1, 6)
    items = [
        (name, weight, value)
        for name, weight, value in zip(names, w.numbers(6, 1, 6), w.numbers(6, 2, 30), strict=True)
    ][:count]
    capacity = w.size(3, 22)
    best = w.choice(("best", "bag", "most", "table"))
    plain = [f"({weight}, {value})" for _, weight, value in items]
    named = [f'("{name}", {weight}, {value})' for name, weight, value in items]
    order = w.choice(("range(capacity, weight - 1, -1)", "range(weight, capacity + 1)"))
    if w.level < 5:
        body = fill(
            """
            capacity = $capacity
            $best = [0] * (capacity + 1)
            $loop
            """,
            capacity=min(capacity, 4 if w.level < 2 else 9),
            best=best,
            loop=fill(
                "weight, value = $w, $v\nfor space in $order:\n    $best[space] = $rule\nprint($best)"
                if w.level < 3
                else "for weight, value in [$items]:\n    for space in $order:\n"
                "        $rule2\n    print($shown)\nprint($best[capacity])",
                w=min(items[0][1], 3),
                v=items[0][2],
                order=order,
                best=best,
                rule=w.choice(
                    (
                        f"{best}[space - weight] + value",
                        f"max({best}[space], {best}[space - weight] + value)",
                        f"{best}[space] + value - space",
                    )
                ),
                rule2=w.choice(
                    (
                        f"{best}[space] = max({best}[space], {best}[space - weight] + value)",
                        f"if {best}[space - weight] + value > {best}[space]:\n"
                        f"    {best}[space] = {best}[space - weight] + value",
                    )
                ),
                items=", ".join(plain[:3]),
                shown=w.choice((best, f"weight, {best}[capacity]")),
            ),
        )
        return program(w.main(body) if w.level > 3 else body)
    function = define(
        "pack(items, capacity)",
        """
        $best = [0] * (capacity + 1)
        $chosen
        for name, weight, value in items:
            for space in $order:
                if $best[space - weight] + value $sign $best[space]:
                    $best[space] = $best[space - weight] + value
                    $keep
            $log
        return $result
        """,
        best=best,
        chosen=w.at(6, f"chosen = [[] for _ in {best}]"),
        order=order,
        sign=w.choice((">", ">", ">=")),
        keep=w.at(6, "chosen[space] = chosen[space - weight] + [name]"),
        log=w.at(5, f"print(name, {best}[capacity])", below=8),
        result=f"{best}[capacity], chosen[capacity]" if w.level > 5 else f"{best}[capacity]",
    )
    if w.level < 8:
        body = join(
            spread("items", named),
            f"print(pack(items, {capacity}))",
            w.at(6, f"print(pack(items[1:], {max(3, capacity // 2)}))"),
        )
        return program(function, w.main(body))
    rounds = w.size(3, 12)
    body = fill(
        """
        $items
        total = 0
        for capacity in range($low, $high):
            value, names = pack(items, capacity)
            total += value
            print(capacity, value, $shown)
            $change
        $show
        """,
        items=spread("items", named[: max(2, count)]),
        low=(low := w.between(3, 6)),
        high=low + rounds,
        shown=w.choice(("names", "len(names)", "names[-1:]")),
        change=w.choice(
            (
                "",
                "items.append(items.pop(0))",
                "items = [(name, weight, value + weight % 3) for name, weight, value in items]",
            )
        ),
        show=w.show("total", "total"),
    )
    return program(function, w.main(body))


def texts(w: Writer) -> str:
    """What two texts share, and how far apart they are."""
    pool = up_to(w.choice(THEMES), w.size(3, 9))
    first, second = w.sample(pool, 2)
    a, b = first[: w.size(2, 9)], second[: w.size(2, 9)]
    if w.level < 3:
        text = w.choice(
            (
                'a, b = "$a", "$b"\ncount = 0\nfor x, y in zip(a, b):\n'
                "    if x $sign y:\n        count += 1\n    $report\n"
                "print(count)",
                'a, b = "$a", "$b"\nrow = [0]\nfor letter in a:\n'
                "    row.append(row[-1] + (letter in b))\n    $report\n"
                "print(row)",
                'a, b = "$a", "$b"\nbest = run = 0\nfor x, y in zip(a, b):\n'
                "    run = run + 1 if x $sign y else 0\n"
                "    best = max(best, run)\n    $report\nprint(best, run)",
            )
        )
        sign = w.choice(("==", "!=", "<", ">"))
        return program(
            fill(
                text, a=a, b=b, sign=sign, report=w.at(2, "print(x, y)" if "zip" in text else "print(letter)")
            )
        )
    kind = w.choice(("common", "edit", "substring", "palindrome"))
    small = w.choice(("row", "line", "cells"))
    if kind == "common":
        rule = "if x == y:\n    $row.append(above[j] + 1)\nelse:\n    $row.append(max(above[j + 1], $row[j]))"
        start, first_row = "[0]", "[0] * (len(b) + 1)"
    elif kind == "edit":
        cost = w.choice(("1", "1", "2"))
        rule = (
            f"if x == y:\n    $row.append(above[j])\nelse:\n"
            f"    $row.append({cost} + min(above[j], above[j + 1], $row[j]))"
        )
        start, first_row = "[i + 1]", "list(range(len(b) + 1))"
    elif kind == "substring":
        rule = "$row.append(above[j] + 1 if x == y else 0)\nbest = max(best, $row[-1])"
        start, first_row = "[0]", "[0] * (len(b) + 1)"
    else:
        rule = ""
        start = first_row = ""
    log = w.at(4, f"print(x, {small})", below=7)
    if kind == "palindrome":
        function = define(
            "longest(text)",
            """
            size = len(text)
            best = [[1] * size for _ in range(size)]
            for length in range(2, size + 1):
                for start in range(size - length + 1):
                    end = start + length - 1
                    if text[start] == text[end]:
                        best[start][end] = 2 + (best[start + 1][end - 1] if length > 2 else 0)
                    else:
                        best[start][end] = max(best[start + 1][end], best[start][end - 1])
                $log
            return best[0][size - 1]
            """,
            log=w.at(4, "print(length, best[0][length - 1])", below=7),
        )
        call, what = "longest", "text"
    else:
        function = define(
            "compare(a, b)",
            """
            above = $first
            $best
            for i, x in enumerate(a):
                $row = $start
                for j, y in enumerate(b):
                    $rule
                $log
                above = $row
            return $result
            """,
            first=first_row,
            best="best = 0" if kind == "substring" else "",
            row=small,
            start=start,
            rule=rule,
            log=log,
            result="best" if kind == "substring" else "above[-1]",
        )
        if "i + 1" not in start:
            function = function.replace("for i, x in enumerate(a)", "for x in a")
        call, what = "compare", "pair"
    if w.level < 7:
        argument = f'"{a}{b[::-1]}"' if what == "text" else f'"{a}", "{b}"'
        if w.level < 4:
            argument = f'"{(a + b)[:4]}"' if what == "text" else f'"{a[:3]}", "{b[:2]}"'
        return program(function, w.main(f"print({call}({argument}))"))
    count = w.size(3, 9)
    words_ = w.sample(up_to(w.choice(THEMES), w.size(3, 8)), count)
    far = w.level > 8
    body = fill(
        """
        $words
        total = 0
        for $pairs:
            $second
            score = $score
            total += score
            print($shown)
        $show
        """,
        words=spread("words", [quoted(word) for word in words_]),
        pairs="i, first in enumerate(words)" if far else "first, second in zip(words, words[1:] + words[:1])",
        second=f"second = words[(i * {w.between(2, 4)} + 1) % len(words)]" if far else "",
        score="longest(first + second)" if what == "text" else "compare(first, second)",
        shown=w.choice(("first, second, score", "score", "first, score")),
        show=w.show("total", "total"),
    )
    return program(function, w.main(body))


def stretches(w: Writer) -> str:
    """The best stretch, climb or choice in a row of numbers."""
    name = w.choice(("values", "gains", "days", "prices"))
    kind = w.choice(("stretch", "climb", "skip", "trade"))
    signed = kind == "stretch"
    values = w.numbers(w.size(2, 14), -9 if signed else 1, 15 if signed else 30)
    steps = {
        "stretch": (
            "current = best = 0",
            "current = max(0, current + value)\nbest = max(best, current)",
            "best",
        ),
        "skip": ("taken = left = 0", "taken, left = left + value, max(taken, left)", "max(taken, left)"),
        "trade": (
            "lowest = $n[0]\nbest = 0",
            "lowest = min(lowest, value)\nbest = max(best, value - lowest)",
            "best",
        ),
        "climb": (
            "best = run = 1\nlast = $n[0]",
            "run = run + 1 if value > last else 1\nlast = value\nbest = max(best, run)",
            "best",
        ),
    }
    zero, step, result = steps[kind]
    if w.level < 5:
        shown = {
            "stretch": "value, current, best",
            "skip": "value, taken, left",
            "trade": "value, best",
            "climb": "value, run",
        }[kind]
        body = fill(
            "$n = $values\n$zero\nfor value in $n:\n    $step\n    $report\nprint($result)",
            n=name,
            values=values,
            zero=zero,
            step=step,
            report=w.at(2, f"print({shown})"),
            result=result,
        )
        return program(body)
    function = define(
        f"{kind}(values)",
        f"{zero}\nfor value in values:\n    $step\n    $log\nreturn {result}",
        n="values",
        step=step,
        log=w.at(5, "print(value, best)" if kind != "skip" else "print(taken, left)", below=7),
    )
    climb = define(
        "longest_climb(values)",
        """
        lengths = []
        before = []
        for i, value in enumerate(values):
            length, link = 1, -1
            for j in range(i):
                if values[j] $sign value and lengths[j] + 1 > length:
                    length, link = lengths[j] + 1, j
            lengths.append(length)
            before.append(link)
        $trail
        return $result
        """,
        sign=w.choice(("<", "<", "<=", ">")),
        trail="place = lengths.index(max(lengths))\npath = []\n"
        "while place >= 0:\n    path.insert(0, values[place])\n"
        "    place = before[place]",
        result="path",
    )
    if w.level < 7:
        use_climb = w.chance(50)
        call = "longest_climb" if use_climb else kind
        body = join(f"{name} = {values}", f"print({call}({name}))", f"print({call}({name}[::-1]))")
        return program(climb if use_climb else function, w.main(body))
    a, b, m = w.between(3, 23), w.between(1, 19), w.choice((17, 19, 23, 29, 31))
    rounds = w.size(4, 15)
    body = fill(
        """
        total = 0
        for turn in range(1, $stop):
            values = [(i * $a + turn * $b) % $m$shift for i in range($count)]
            first = $kind(values)
            $path
            total += first$more
            print(turn, first, $shown)
        $show
        """,
        stop=rounds + 1,
        a=a,
        b=b,
        m=m,
        shift=f" - {m // 2}" if signed else "",
        count=w.size(3, 12),
        kind=kind,
        path="path = longest_climb(values)" if w.level > 7 else "",
        more=" + len(path)" if w.level > 7 else " * turn",
        shown=w.choice(("path", "len(path)", "path[-1]")) if w.level > 7 else "total",
        show=w.show("total", "total"),
    )
    return program(function, climb if w.level > 7 else "", w.main(body))


def grids(w: Writer) -> str:
    """Paths over a grid: how many, and how dear."""
    rows, columns = w.size(2, 5), w.size(2, 7)
    if w.level > 6:
        rows, columns = (2, 3) if w.level == 7 else (w.between(2, 3), w.between(3, 4))
    costs = [w.numbers(columns, 1, 9) for _ in range(5)][:rows]
    if w.level < 4:
        row = w.numbers(w.size(2, 12), 1, 40 if w.level < 3 else 9)
        text = w.choice(
            (
                "costs = $row\nreached = [costs[0]]\n"
                "for i in range(1, len(costs)):\n"
                "    reached.append(reached[i - 1] $op costs[i])\n    $report\n"
                "print(reached)",
                "above = $row\nrow = [1]\nfor i in range(1, len(above)):\n"
                "    row.append(row[i - 1] + above[i])\n    $report\nprint(row)",
                "costs = $row\nbest = [costs[0], costs[1]]\n"
                "for cost in costs[2:]:\n"
                "    best.append(cost + min(best[-1], best[-2]))\n    $report2\n"
                "print(best)",
            )
        )
        return program(
            fill(
                text,
                row=row if "best" not in text else [*row, *w.numbers(1, 1, 9)],
                op=w.choice(("+", "+", "*", "-")),
                report=w.at(
                    2,
                    "print(i)"
                    if w.chance(40)
                    else w.choice(("print(i, reached[i])" if "reached" in text else "print(i, row[i])",)),
                ),
                report2=w.at(2, "print(cost, best[-1])"),
            )
        )
    grid = "GRID = [\n" + "".join(f"    {row},\n" for row in costs) + "]"
    best = w.choice(("min", "min", "max"))
    function = define(
        "cheapest(grid)",
        """
        reached = []
        for r, row in enumerate(grid):
            line = []
            for c, cost in enumerate(row):
                if r == 0 and c == 0:
                    before = 0
                elif r == 0:
                    before = line[c - 1]
                elif c == 0:
                    before = reached[r - 1][c]
                else:
                    before = $best(line[c - 1], reached[r - 1][c]$diagonal)
                line.append(before + cost)
            reached.append(line)
            $log
        return $result
        """,
        best=best,
        diagonal=w.choice(("", ", reached[r - 1][c - 1]")),
        log=w.at(4, "print(line)", below=8),
        result="reached" if w.level > 6 else "reached[-1][-1]",
    )
    trail = define(
        "trail(reached)",
        """
        r, c = len(reached) - 1, len(reached[0]) - 1
        path = [(r, c)]
        while r > 0 or c > 0:
            if c == 0 or (r > 0 and reached[r - 1][c] $sign reached[r][c - 1]):
                r -= 1
            else:
                c -= 1
            path.append((r, c))
        return path[::-1]
        """,
        sign="<" if best == "min" else ">",
    )
    if w.level < 7:
        return program(grid, function, w.main("print(cheapest(GRID))"))
    rounds = w.size(2, 14)
    change = w.choice(
        (
            "GRID.append(GRID.pop(0))",
            "for row in GRID:\n    row.append(row.pop(0))",
            f"GRID[turn % len(GRID)][turn % len(GRID[0])] += {w.between(3, 9)}",
            "for r, c in trail(reached):\n    GRID[r][c] += 1",
        )
    )
    body = fill(
        """
        total = 0
        for turn in range($rounds):
            reached = cheapest(GRID)
            path = trail(reached)
            total += reached[-1][-1]
            $shown
            $change
        $show
        print(path)
        """,
        rounds=rounds,
        shown=w.choice(
            (
                "print(turn, reached[-1][-1])",
                "print(turn, reached[-1])",
                "print(turn, reached[-1][-1], path[1])",
            )
        ),
        change=change,
        show=w.show("total", "total"),
    )
    return program(grid, function, trail, body)


FAMILY = Family(
    "dynamic",
    (
        Template(coins),
        Template(stairs),
        Template(knapsack),
        Template(texts),
        Template(stretches),
        Template(grids),
    ),
)
