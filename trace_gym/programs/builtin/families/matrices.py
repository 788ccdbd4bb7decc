"""Matrices: sums, products, turns, neighbours, fillings, islands."""

from __future__ import annotations

from trace_gym.programs.builtin.writer import (
    Family,
    Template,
    Writer,
    define,
    fill,
    join,
    program,
    quoted,
    under,
)


def _matrix(name: str, rows: list[list[int]]) -> str:
    """An assignment of a matrix: on a line where it is short, else a row a line."""
    line = f"{name} = {rows}"
    return line if len(line) < 60 else f"{name} = [\n" + "".join(f"    {row},\n" for row in rows) + "]"


def _numbers(w: Writer, rows: int, columns: int, low: int, high: int) -> list[list[int]]:
    """A matrix whose rows stay the same where it grows."""
    return [w.numbers(columns, low, high) for _ in range(8)][:rows]


def sums(w: Writer) -> str:
    """Rows, columns and diagonals added up."""
    name = w.choice(("grid", "matrix", "table", "board"))
    rows, columns = w.size(2, 8), w.between(2, 3) if w.level < 5 else w.size(2, 7)
    data = _matrix(name, _numbers(w, rows, columns, 0, 9 if w.level < 5 else 20))
    if w.level < 5:
        if w.level == 1:
            r, c = w.below(2), w.below(2)
            acts = w.sample(
                (
                    f"{name}[{r}][{c}] += {w.between(2, 9)}",
                    f"{name}[{r}][{c}] = {name}[{1 - r}][{1 - c}] * {w.between(2, 4)}",
                    f"{name}[0], {name}[1] = {name}[1], {name}[0]",
                    f"{name}[1].append({name}[0][{c}])",
                    f"{name}[{r}].reverse()",
                ),
                2,
            )
            end = w.choice(
                (
                    f"print({name})",
                    f"print({name}[0][0] + {name}[1][1])",
                    f"print(sum({name}[{r}]))",
                    f"for row in {name}:\n    print(row)",
                )
            )
            return program(join(data, *acts, end))
        act, end = w.choice(
            (
                ("total += sum(row)", "print(total)"),
                ("total += row[i]", "print(total)"),
                ("if row[0] > row[-1]:\n    total += 1", "print(total)"),
                ("row.append(sum(row))", f"print({name})"),
                ("total += max(row) - min(row)", "print(total)"),
                ("row[i] = 0", f"print({name})"),
                ("for value in row:\n    if value % 2 == 0:\n        total += value", "print(total)"),
                ("for c in range(len(row)):\n    row[c] += i * c", f"print({name})"),
                ("for value in row:\n    total = max(total, value)", "print(total)"),
            )[0 if w.level < 3 else 6 :]
        )
        indexed = "[i]" in act or "i *" in act
        act = act.replace("[i]", "[i % len(row)]")
        body = join(
            data,
            "total = 0" if "total" in act else "",
            under(
                f"for i, row in enumerate({name}):" if indexed else f"for row in {name}:",
                join(
                    act,
                    w.at(
                        2,
                        w.choice(("print(row)", "print(row, total)" if "total" in act else "print(row[0])")),
                    ),
                ),
            ),
            end,
        )
        return program(body)
    pool = {
        "row_sums": "result = []\nfor row in $g:\n    total = 0\n"
        "    for value in row:\n        total += value\n"
        "    result.append(total)\nreturn result",
        "column_sums": "result = [0] * len($g[0])\nfor row in $g:\n"
        "    for c, value in enumerate(row):\n"
        "        result[c] += value\nreturn result",
        "peaks": "count = 0\nfor row in $g:\n"
        "    for c in range(1, len(row) - 1):\n"
        "        if row[c] > row[c - 1] and row[c] > row[c + 1]:\n"
        "            count += 1\nreturn count",
        "border": "total = 0\nfor r, row in enumerate($g):\n"
        "    for c, value in enumerate(row):\n"
        "        if r in (0, len($g) - 1) or c in (0, len(row) - 1):\n"
        "            total += value\nreturn total",
        "diagonal": "total = 0\nfor i in range(min(len($g), len($g[0]))):\n"
        "    total += $g[i][i] - $g[i][-i - 1]\nreturn total",
        "saddles": "found = []\nfor r, row in enumerate($g):\n    low = min(row)\n"
        "    for c, value in enumerate(row):\n"
        "        if value == low and value == max(line[c] for line in $g):\n"
        "            found.append((r, c))\nreturn found",
    }
    used = w.sample(list(pool), 1 if w.level < 6 else 2 if w.level < 9 else 3)
    functions = [define(f"{f}($g)", pool[f], g=name) for f in used]
    calls = [f"{f}({name})" for f in used]
    if w.level < 7:
        body = join(
            data,
            *(f"print({call})" for call in calls),
            w.at(5, f"for row in {name}:\n    print(max(row), min(row))"),
        )
        return program(*functions, w.main(body))
    rounds, modulus = w.size(1, 16), w.between(15, 40)
    data = _matrix(name, _numbers(w, w.size(2, 4), 4, 0, 20))
    body = fill(
        """
        $data
        for turn in range(1, $stop):
            $change
            print(turn, $calls)
        $last
        """,
        data=data,
        stop=rounds + 1,
        change=w.choice(
            (
                f"for row in {name}:\n    row.append((row.pop(0) + turn) % {w.between(15, 40)})",
                f"line = [(value * {w.between(2, 5)} + turn) % {modulus} for value in {name}[0]]\n"
                f"{name} = {name}[1:] + [line]",
                f"for r, row in enumerate({name}):\n    row[turn % len(row)] += r + turn",
            )
        ),
        calls=", ".join(calls),
        last=f"for row in {name}:\n    print(row)",
    )
    return program(*functions, w.main(body))


def products(w: Writer) -> str:
    """Matrices multiplied, and raised to powers."""
    n = 2 if w.level < 10 else w.between(2, 3)
    a, b = _numbers(w, n, n, 0, 4), _numbers(w, n, n, 0, 5)
    modulus = w.choice((0, 10, 97, 100)) if w.level < 8 else w.choice((10, 97, 100, 1000))
    if w.level < 4:
        vector = w.numbers(2, 1, 40)
        text = w.choice(
            (
                "m = $a\nv = $v\nresult = []\nfor row in m:\n"
                "    result.append(row[0] * v[0] + row[1] * v[1])\n    $report\n"
                "print(result)",
                "m = $a\nk = $k\nfor row in m:\n    for c in range(2):\n"
                "        row[c] *= k\n    $report2\nprint(m)",
                "x, y = $x, $y\nfor _ in range($n):\n    x, y = $next, x\n    $report3\nprint(x, y)",
            )
        )
        return program(
            fill(
                text,
                a=a,
                v=vector,
                k=w.between(2, 5),
                x=vector[0],
                y=vector[1],
                n=w.size(1, 10),
                next=w.choice(("x + y", "x + 2 * y", "2 * x + y", "2 * x - y", "3 * y - x", "x + 3 * y")),
                report=w.at(2, "print(row, result)"),
                report2=w.at(2, "print(row)"),
                report3=w.at(2, "print(x)"),
            )
        )
    multiply = define(
        "multiply(a, b)",
        """
        result = []
        for row in a:
            line = []
            for c in range(len(b[0])):
                total = 0
                for k in range(len(b)):
                    total += row[k] * b[k][c]
                line.append(total$mod)
            result.append(line)
            $log
        return result
        """,
        mod=f" % {modulus}" if modulus else "",
        log=w.at(4, "print(line)", below=6),
    )
    power = define(
        "power(m, n)",
        w.choice(
            (
                "result = m\nfor _ in range(n - 1):\n"
                "    result = multiply(result, m)\n    $log\nreturn result",
                "if n == 1:\n    return m\nhalf = power(m, n // 2)\n"
                "square = multiply(half, half)\n$log2\nif n % 2 == 1:\n"
                "    return multiply(square, m)\nreturn square",
            )
        ),
        log=w.at(6, "print(result)", below=8),
        log2=w.at(6, "print(n, square)", below=8),
    )
    trace = define("trace(m)", "total = 0\nfor i in range(len(m)):\n    total += m[i][i]\nreturn total")
    if w.level < 6:
        columns = w.size(1, 4)
        body = fill(
            "a = $a\nb = $b\nproduct = multiply(a, b)\nprint(product)\n$more",
            a=a,
            b=_numbers(w, 2, columns, 0, 6),
            more=w.at(5, "print(sum(product[0]), sum(product[1]))"),
        )
        return program(multiply, w.main(body))
    if w.level < 8:
        body = fill(
            "m = $a\nprint(power(m, $n))\n$more",
            a=a,
            n=w.size(2, 14),
            more=w.at(7, f"print(power(m, {w.between(2, 3)}))"),
        )
        return program(multiply, power, w.main(body))
    body = fill(
        """
        $m
        total = 0
        for n in range(1, $stop):
            result = power(m, n)
            total += trace(result)
            $swap
            print(n, $shown)
        $show
        """,
        m=_matrix("m", a),
        stop=w.size(3, 10) + 1,
        swap=w.maybe(
            9, w.choice(("if total % 2 == 0:\n    m = multiply(m, b)", "m[0][0] = (m[0][0] + n) % 7")), 60
        ),
        shown=w.choice(("result[0]", "trace(result)", "result[-1], trace(result)")),
        show=w.show("total", "total"),
    )
    if "multiply(m, b)" in body:
        body = f"{_matrix('b', b)}\n{body}"
    return program(multiply, power, trace, w.main(body))


def turning(w: Writer) -> str:
    """Matrices turned, mirrored, shifted and read in spirals."""
    rows, columns = w.size(2, 5), w.between(2, 3) if w.level < 5 else w.size(2, 6)
    name = w.choice(("grid", "picture", "tile", "m"))
    values = _numbers(w, rows, columns, 0, 9)
    data = _matrix(name, values)
    if w.level < 4:
        step = w.choice(
            (
                f"{name} = {name}[::-1]",
                f"{name} = [row[::-1] for row in {name}]",
                f"{name} = [list(row) for row in zip(*{name})]",
                f"{name}.append({name}.pop(0))",
                f"{name} = [row[1:] + row[:1] for row in {name}]",
            )
        )
        more = w.choice(
            (
                f"{name}[0][0] += {w.between(2, 9)}",
                f"print({name}[0])",
                f"{name}[-1][-1] = {name}[0][0]",
                f"print(len({name}), len({name}[0]))",
            )
        )
        second = w.choice(
            (
                f"{name} = {name}[::-1]",
                f"for row in {name}:\n    row.append(row[0])",
                f"for row in {name}:\n    print(row[-1])",
            )
        )
        return program(
            join(
                data,
                step,
                more,
                w.at(2, second),
                f"print({name})",
                w.at(3, f"for row in {name}:\n    print(sum(row))"),
            )
        )
    pool = {
        "turn_right": "result = []\nfor c in range(len($g[0])):\n    line = []\n"
        "    for r in range(len($g) - 1, -1, -1):\n"
        "        line.append($g[r][c])\n    result.append(line)\n"
        "return result",
        "transpose": "result = []\nfor c in range(len($g[0])):\n"
        "    result.append([row[c] for row in $g])\nreturn result",
        "slide": "result = []\nfor r, row in enumerate($g):\n"
        "    k = r % len(row)\n    result.append(row[k:] + row[:k])\n"
        "return result",
        "mirror": "result = []\nfor row in $g:\n    line = row[:]\n"
        "    left, right = 0, len(line) - 1\n    while left < right:\n"
        "        line[left], line[right] = line[right], line[left]\n"
        "        left += 1\n        right -= 1\n"
        "    result.append(line)\nreturn result",
        "raise_by": "result = []\nfor r, row in enumerate($g):\n    line = []\n"
        "    for c, value in enumerate(row):\n"
        "        line.append((value + r * c + $k) % $m)\n"
        "    result.append(line)\nreturn result",
    }
    spiral = define(
        "spiral(g)",
        """
        path = []
        g = [row[:] for row in g]
        while g and g[0]:
            path += g.pop(0)
            for row in g:
                path.append(row.pop())
            if g:
                path += g.pop()[::-1]
            for row in g[::-1]:
                if row:
                    path.append(row.pop(0))
            $log
        return path
        """,
        log=w.at(4, "print(path)", below=7),
    )
    used = w.sample(list(pool), 1 if w.level < 6 else 2 if w.level < 9 else 3)
    functions = [define(f"{f}({name})", pool[f], g=name, k=w.between(1, 5), m=w.between(9, 12)) for f in used]
    with_spiral = w.level > 5 or w.chance(40)
    if w.level < 7:
        show = f"for row in {name}:\n    print(row)"
        body = join(
            data,
            *(f"{name} = {f}({name})" for f in used[: 1 if with_spiral and w.level < 6 else 2]),
            show if not with_spiral or w.level > 5 else "",
            f"print(spiral({name}))" if with_spiral else "",
        )
        return program(*functions, spiral if with_spiral else "", w.main(body))
    data = _matrix(name, _numbers(w, w.size(2, 4), w.between(3, 4), 0, 9))
    rounds = w.size(2, 14)
    steps = fill(
        "if turn % $n == 0:\n    $a\nelse:\n    $b",
        n=w.between(2, 3),
        a=f"{name} = {used[0]}({name})",
        b=join(*(f"{name} = {f}({name})" for f in used[1:])) or "pass",
    )
    body = fill(
        """
        $data
        score = 0
        for turn in range(1, $stop):
            $steps
            path = spiral($g)
            score = (score * $k + path[turn % len(path)]) % $m
            print(turn, score, $shown)
        $last
        """,
        data=data,
        stop=rounds + 1,
        steps=steps,
        g=name,
        k=w.between(2, 7),
        m=w.choice((97, 100, 500, 1000)),
        shown=w.choice(("path[:3]", f"{name}[0]", "path[-1]")),
        last=f"for row in {name}:\n    print(row)",
    )
    return program(*functions, spiral, w.main(body))


def neighbours(w: Writer) -> str:
    """Cells that look at the cells around them."""
    live, dead = w.sample("#*oX1@+=", 1)[0], w.sample(".-_0~:", 1)[0]
    if w.level < 4:
        width = w.between(3, 5)
        field = ["".join(w.picks((live, dead), width)) for _ in range(9)][: w.size(2, 9)]
        c = w.below(width)
        act, zero = w.choice(
            (
                (f'count += row.count("{live}")', "count = 0"),
                (f'if row[{c}] == "{live}":\n    count += 1', f"count = {w.below(9)}"),
                (f"text += row[{c}]", 'text = ""'),
                (f"if row[{c - 1}] == row[{c}]:\n    count += {w.between(1, 4)}", f"count = {w.below(9)}"),
                (f'if row[0] != "{live}" and row[-1] == "{live}":\n    count += 1', f"count = {w.below(9)}"),
                ("flipped.append(row[::-1])", "flipped = []"),
                (f'lengths.append(len(row.strip("{dead}")))', "lengths = []"),
            )
        )
        found = zero.split()[0]
        body = fill(
            """
            field = [$field]
            $zero
            for row in field:
                $act
                $report
            print($found)
            """,
            field=", ".join(map(quoted, field)),
            zero=zero,
            act=act,
            report=w.at(2, f"print({w.choice(('row', f'row, {found}', found))})"),
            found=found,
        )
        return program(body)
    if w.level < 7:
        row = "".join(w.picks((live, dead), w.size(3, 14)))
        test = w.choice(
            (
                "row[i - 1] == row[(i + 1) % len(row)]",
                "row[i] == row[i - 1]",
                'row[i - 1] == "$live" or row[i] == "$live" and i % 2 == 0',
                "row[i - 1] != row[(i + 1) % len(row)]",
                'row[i - 1] + row[i] != "$live$dead"',
            )
        )
        function = define(
            "next_row(row)",
            """
            result = ""
            for i in range(len(row)):
                if $test:
                    result += "$one"
                else:
                    result += "$other"
            return result
            """,
            test=test,
            live=live,
            dead=dead,
            one=dead if (flip := w.chance(50)) else live,
            other=live if flip else dead,
        )
        body = fill(
            """
            row = "$row"
            for turn in range($turns):
                row = next_row(row)
                print($shown)
            $end
            """,
            row=row,
            turns=w.size(2, 9),
            shown=w.choice(("row", "turn, row", f'row, row.count("{live}")')),
            end=w.at(5, f'print(row.count("{live}"))'),
        )
        return program(function, w.main(body))
    count = define(
        "count_around(field, r, c)",
        """
        count = 0
        for dr, dc in STEPS:
            i, j = r + dr, c + dc
            if $inside and field[i][j] == "$live":
                count += 1
        return count
        """,
        inside="0 <= i < len(field) and 0 <= j < len(field[0])",
        live=live,
    )
    offsets = w.choice(
        (
            "((0, 1), (1, 0), (0, -1), (-1, 0))",
            "((1, 1), (1, -1), (-1, 1), (-1, -1))",
            "((0, 1), (1, 1), (1, 0), (-1, -1))",
        )
    )
    rule = w.choice(
        (
            f'"{live}" if n == {w.between(1, 2)} else "{dead}"',
            f'"{live}" if n in (1, 3) else cell',
            f'"{dead}" if n > 1 else "{live}"',
            f'cell if n == 2 else "{live}" if n == 1 else "{dead}"',
        )
    )
    step = define(
        "step(field)",
        """
        result = []
        for r, row in enumerate(field):
            line = ""
            for c, cell in enumerate(row):
                n = count_around(field, r, c)
                line += $rule
            result.append(line)
        return result
        """,
        rule=rule,
    )
    rows = 2 if w.level < 9 else w.between(2, 4)
    field = ["".join(w.picks((live, dead), w.size(2, 5))) for _ in range(4)][:rows]
    body = fill(
        """
        field = [$field]
        for turn in range(1, $stop):
            field = step(field)
            print(turn, $shown)
        for row in field:
            print(row)
        """,
        field=", ".join(f'"{line}"' for line in field),
        stop=w.size(1, 10) + 1,
        shown=w.choice(("field[0]", f'sum(row.count("{live}") for row in field)', '"|".join(field)')),
    )
    return program(f"STEPS = {offsets}", count, step, w.main(body))


def filling(w: Writer) -> str:
    """Tables that are filled by a rule."""
    rows, columns = w.size(2, 7), w.size(2, 7)
    a, b, m = w.between(2, 20), w.between(1, 40), w.between(7, 99)
    name = w.choice(("table", "grid", "square", "board"))
    rule = w.choice(
        (
            f"r * {a} + c",
            f"(r * {a} + c * {b + 1}) % {m}",
            f"r * c + {b}",
            f"max(r, c) * {a}",
            f"abs(r - c) * {a} + {b}",
            f"(r + c) % {a} * {b + 1}",
            f"r ** 2 + c * {a}",
        )
    )
    if w.level < 5:
        inner = w.choice(
            (
                f"row.append({rule})",
                f"if r == c:\n    row.append({b})\nelse:\n    row.append({rule})"
                if w.level > 2
                else f"row.append({rule})",
            )
        )
        body = fill(
            """
            $keep
            for r in range($rows):
                row = []
                for c in range($columns):
                    $inner
                print($shown)
                $append
            $last
            """,
            keep=f"{name} = []" if (kept := w.level > 2) else "",
            rows=rows if w.level > 1 else 1,
            columns=columns if w.level > 1 else 2,
            inner=inner if w.level > 1 else f"row.append(c * {a} + {b})" if "r" in rule else inner,
            shown=w.choice(("row", "row, sum(row)", "sum(row)", "*row")),
            append=f"{name}.append(row)" if kept else "",
            last=w.choice((f"print({name}[-1][0])", f"print(len({name}), {name}[0])")) if kept else "",
        )
        if w.level == 1:
            k, b = w.between(2, 20), w.between(1, 60)
            rules = (
                f"c * {k} + {b}",
                f"c ** 2 + {b}",
                f"(c * {k} + {b}) % {m}",
                f"{b} - c * {k}",
                f"{k} ** c - {b}",
            )
            body = fill(
                "$row = []\nfor c in range($n):\n    $row.append($rule)\nprint($shown)",
                row=w.choice(("row", "line", "values", "cells")),
                n=w.size(2, 4),
                rule=w.choice(rules),
                shown=w.choice(("$row", "$row, sum($row)", "$row[::-1]", "$row[-1] - $row[0]")),
            )
        return program(body)
    build = define(
        "build(rows, columns)",
        f"{name} = []\nfor r in range(rows):\n    row = []\n"
        f"    for c in range(columns):\n        row.append({rule})\n"
        f"    {name}.append(row)\nreturn {name}",
    )
    prefix = define(
        "prefix_sums($g)",
        """
        result = []
        for r, row in enumerate($g):
            line = []
            total = 0
            for c, value in enumerate(row):
                total += value
                above = result[r - 1][c] if r > 0 else 0
                line.append(total + above)
            result.append(line)
        return result
        """,
        g=name,
    )
    magic = define(
        "is_even($g)",
        "target = sum($g[0])\nfor row in $g:\n"
        "    if sum(row) $sign target:\n        return False\n"
        "return True",
        g=name,
        sign=w.choice(("!=", "<")),
    )
    if w.level < 7:
        use_prefix = w.level > 5 or w.chance(50)
        body = join(
            f"{name} = build({rows}, {columns})",
            f"for row in {'prefix_sums(' + name + ')' if use_prefix else name}:\n    print(row)",
            "" if use_prefix else f"print(is_even({name}))",
        )
        return program(build, prefix if use_prefix else magic, w.main(body))
    rounds = w.size(2, 12)
    body = fill(
        """
        best = 0
        for size in range($low, $high):
            $g = build(size, $columns)
            sums = prefix_sums($g)
            corner = sums[-1][-1]
            if corner % $k == 0:
                best = size
            print(size, corner, $shown)
        $show
        """,
        low=(low := w.between(1, 3) if w.level > 8 else 1),
        high=low + rounds,
        g=name,
        columns=w.choice(("size", "size + 1", str(w.between(2, 4)))) if w.level > 8 else 2,
        k=w.between(2, 5),
        shown=w.choice((f"is_even({name})", f"{name}[-1]", "sums[0]", f"is_even({name}), {name}[0][-1]")),
        show=w.show("best", "best"),
    )
    return program(build, prefix, magic if "is_even" in body else "", w.main(body))


def islands(w: Writer) -> str:
    """Connected cells, found by spreading."""
    land, sea = w.choice((("#", "."), ("x", "-"), ("1", "0"), ("@", "_"), ("L", "w")))
    rows, columns = w.size(2, 5), w.size(3, 7)
    field = ["".join(w.picks((land, land, sea), columns)) for _ in range(6)][:rows]
    data = "FIELD = [\n" + "".join(f'    "{line}",\n' for line in field) + "]"
    four = w.chance(60)
    around = (
        "((0, 1), (1, 0), (0, -1), (-1, 0))"
        if four
        else "((0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (-1, -1))"
    )
    spread_ = define(
        "spread(r, c, seen)",
        w.choice(
            (
                """
                if not (0 <= r < len(FIELD) and 0 <= c < len(FIELD[0])):
                    return 0
                if FIELD[r][c] == "$sea" or (r, c) in seen:
                    return 0
                seen.append((r, c))
                $log
                size = 1
                for dr, dc in $around:
                    size += spread(r + dr, c + dc, seen)
                return size
                """,
                """
                waiting = [(r, c)]
                size = 0
                while waiting:
                    r, c = waiting.pop($end)
                    if not (0 <= r < len(FIELD) and 0 <= c < len(FIELD[0])):
                        continue
                    if FIELD[r][c] == "$sea" or (r, c) in seen:
                        continue
                    seen.append((r, c))
                    size += 1
                    $log
                    for dr, dc in $around:
                        waiting.append((r + dr, c + dc))
                return size
                """,
            )
        ),
        sea=sea,
        around=around,
        end=w.choice(("0", "")),
        log=w.at(6, "print(r, c)", below=8),
    )
    if w.level < 8:
        r = next((r for r, line in enumerate(field) if land in line), 0)
        body = join(
            "seen = []",
            f"print(spread({r}, {max(field[r].find(land), 0)}, seen))",
            "print(len(seen))",
            "print(seen[-1])",
        )
        return program(data, spread_, body)
    body = fill(
        """
        seen = []
        sizes = []
        for r in range(len(FIELD)):
            for c in range(len(FIELD[0])):
                size = spread(r, c, seen)
                if size > 0:
                    sizes.append(size)
                    print(r, c, size)
            print(r, len(seen))
        print(len(sizes), sizes)
        """
    )
    return program(data, spread_, body)


FAMILY = Family(
    "matrices",
    (
        Template(sums),
        Template(products),
        Template(turning),
        Template(neighbours),
        Template(filling),
        Template(islands, lowest=7),
    ),
)
