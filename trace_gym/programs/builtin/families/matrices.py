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
    strings,
)


def _matrix(name: str, rows: list[list[int]]) -> str:
    """Returns an assignment of a matrix: one line if it is short, else one line per row."""
    line = f"{name} = {rows}"
    return line if len(line) < 60 else f"{name} = [\n" + "".join(f"    {row},\n" for row in rows) + "]"


def _numbers(w: Writer, rows: int, columns: int, low: int, high: int) -> list[list[int]]:
    """Returns a matrix of at most 8 rows. More rows leave the first ones as they are."""
    return [w.numbers(columns, low, high) for _ in range(8)][:rows]


#: Loops over the rows of a matrix: the head, the lines in the loop, the value printed at the end.
_ROW_LOOPS = (
    ("for row in $g:", "total += sum(row)", "total"),
    ("for i, row in enumerate($g):", "total += row[i % len(row)]", "total"),
    ("for row in $g:", "if row[0] > row[-1]:\n    total += 1", "total"),
    ("for row in $g:", "row.append(sum(row))", "$g"),
    ("for row in $g:", "total += max(row) - min(row)", "total"),
    ("for i, row in enumerate($g):", "row[i % len(row)] = 0", "$g"),
    ("for row in $g:", "for value in row:\n    if value % 2 == 0:\n        total += value", "total"),
    ("for i, row in enumerate($g):", "for c in range(len(row)):\n    row[c] += i * c", "$g"),
    ("for row in $g:", "for value in row:\n    total = max(total, value)", "total"),
)

#: Per function over a matrix: its body.
_SUM_FUNCTIONS = {
    "row_sums": """
        result = []
        for row in $g:
            total = 0
            for value in row:
                total += value
            result.append(total)
        return result
        """,
    "column_sums": """
        result = [0] * len($g[0])
        for row in $g:
            for c, value in enumerate(row):
                result[c] += value
        return result
        """,
    "peaks": """
        count = 0
        for row in $g:
            for c in range(1, len(row) - 1):
                if row[c] > row[c - 1] and row[c] > row[c + 1]:
                    count += 1
        return count
        """,
    "border": """
        total = 0
        for r, row in enumerate($g):
            for c, value in enumerate(row):
                if r in (0, len($g) - 1) or c in (0, len(row) - 1):
                    total += value
        return total
        """,
    "diagonal": """
        total = 0
        for i in range(min(len($g), len($g[0]))):
            total += $g[i][i] - $g[i][-i - 1]
        return total
        """,
    "saddles": """
        found = []
        for r, row in enumerate($g):
            low = min(row)
            for c, value in enumerate(row):
                if value == low and value == max(line[c] for line in $g):
                    found.append((r, c))
        return found
        """,
}


def sums(w: Writer) -> str:
    """Rows, columns and diagonals of a matrix, added up."""
    name = w.choice(("grid", "matrix", "table", "board"))
    rows, columns = w.size(2, 8), w.between(2, 3) if w.level < 5 else w.size(2, 7)
    data = _matrix(name, _numbers(w, rows, columns, 0, 9 if w.level < 5 else 20))
    if w.level == 1:
        return _changed_cells(w, name, data)
    if w.level < 5:
        return _row_loop(w, name, data)
    used = w.sample(list(_SUM_FUNCTIONS), 1 if w.level < 6 else 2 if w.level < 9 else 3)
    functions = [define(f"{function}($g)", _SUM_FUNCTIONS[function], g=name) for function in used]
    calls = [f"{function}({name})" for function in used]
    if w.level < 7:
        return _one_matrix(w, name, data, functions, calls)
    return _changing_matrix(w, name, functions, calls)


def _changed_cells(w: Writer, name: str, data: str) -> str:
    """Matrix changed by two statements."""
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


def _row_loop(w: Writer, name: str, data: str) -> str:
    """Loop over the rows of a matrix."""
    head, act, result = w.choice(_ROW_LOOPS[0 if w.level < 3 else 6 :])
    totals = "total" in act
    body = fill(
        """
        $data
        $total
        $head
            $act
            $report
        print($result)
        """,
        data=data,
        total="total = 0" if totals else "",
        head=head,
        g=name,
        act=act,
        report=w.at(2, w.choice(("print(row)", "print(row, total)" if totals else "print(row[0])"))),
        result=result,
    )
    return program(body)


def _one_matrix(w: Writer, name: str, data: str, functions: list[str], calls: list[str]) -> str:
    """One or two functions over a matrix, each called once."""
    body = join(
        data,
        *(f"print({call})" for call in calls),
        w.at(5, f"for row in {name}:\n    print(max(row), min(row))"),
    )
    return program(*functions, w.main(body))


def _changing_matrix(w: Writer, name: str, functions: list[str], calls: list[str]) -> str:
    """Two or three functions over a matrix that changes in every round."""
    rounds, modulus = w.size(1, 16), w.between(15, 40)
    body = fill(
        """
        $data
        for turn in range(1, $stop):
            $change
            print(turn, $calls)
        for row in $g:
            print(row)
        """,
        data=_matrix(name, _numbers(w, w.size(2, 4), 4, 0, 20)),
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
        g=name,
    )
    return program(*functions, w.main(body))


#: Loops that multiply, each with the print in it.
_SMALL_PRODUCTS = (
    (
        """
        m = $a
        v = $v
        result = []
        for row in m:
            result.append(row[0] * v[0] + row[1] * v[1])
            $report
        print(result)
        """,
        "print(row, result)",
    ),
    (
        """
        m = $a
        k = $k
        for row in m:
            for c in range(2):
                row[c] *= k
            $report
        print(m)
        """,
        "print(row)",
    ),
    (
        """
        x, y = $x, $y
        for _ in range($n):
            x, y = $next, x
            $report
        print(x, y)
        """,
        "print(x)",
    ),
)

#: Bodies of a function that raises a matrix to a power.
_POWERS = (
    """
    result = m
    for _ in range(n - 1):
        result = multiply(result, m)
        $log
    return result
    """,
    """
    if n == 1:
        return m
    half = power(m, n // 2)
    square = multiply(half, half)
    $log_square
    if n % 2 == 1:
        return multiply(square, m)
    return square
    """,
)


def products(w: Writer) -> str:
    """Matrices multiplied, and raised to powers."""
    n = 2 if w.level < 10 else w.between(2, 3)
    a, b = _numbers(w, n, n, 0, 4), _numbers(w, n, n, 0, 5)
    modulus = w.choice((0, 10, 97, 100)) if w.level < 8 else w.choice((10, 97, 100, 1000))
    if w.level < 4:
        return _small_product(w, a)
    multiply = _multiply_function(w, modulus)
    power = define(
        "power(m, n)",
        w.choice(_POWERS),
        log=w.at(6, "print(result)", below=8),
        log_square=w.at(6, "print(n, square)", below=8),
    )
    if w.level < 6:
        return _one_product(w, a, multiply)
    return _one_power(w, a, multiply, power) if w.level < 8 else _many_powers(w, a, b, multiply, power)


def _small_product(w: Writer, a: list[list[int]]) -> str:
    """Loop that multiplies a matrix, a vector or two numbers."""
    x, y = w.numbers(2, 1, 40)
    text, report = w.choice(_SMALL_PRODUCTS)
    body = fill(
        text,
        a=a,
        v=[x, y],
        k=w.between(2, 5),
        x=x,
        y=y,
        n=w.size(1, 10),
        next=w.choice(("x + y", "x + 2 * y", "2 * x + y", "2 * x - y", "3 * y - x", "x + 3 * y")),
        report=w.at(2, report),
    )
    return program(body)


def _one_product(w: Writer, a: list[list[int]], multiply: str) -> str:
    """Product of two matrices."""
    body = fill(
        "a = $a\nb = $b\nproduct = multiply(a, b)\nprint(product)\n$more",
        a=a,
        b=_numbers(w, 2, w.size(1, 4), 0, 6),
        more=w.at(5, "print(sum(product[0]), sum(product[1]))"),
    )
    return program(multiply, w.main(body))


def _one_power(w: Writer, a: list[list[int]], multiply: str, power: str) -> str:
    """One or two powers of a matrix."""
    body = fill(
        "m = $a\nprint(power(m, $n))\n$more",
        a=a,
        n=w.size(2, 14),
        more=w.at(7, f"print(power(m, {w.between(2, 3)}))"),
    )
    return program(multiply, power, w.main(body))


def _many_powers(w: Writer, a: list[list[int]], b: list[list[int]], multiply: str, power: str) -> str:
    """Powers of a matrix with growing exponents, and the sum of their traces."""
    trace = define("trace(m)", "total = 0\nfor i in range(len(m)):\n    total += m[i][i]\nreturn total")
    swap = w.maybe(
        9, w.choice(("if total % 2 == 0:\n    m = multiply(m, b)", "m[0][0] = (m[0][0] + n) % 7")), 60
    )
    body = fill(
        """
        $b
        $m
        total = 0
        for n in range(1, $stop):
            result = power(m, n)
            total += trace(result)
            $swap
            print(n, $shown)
        $show
        """,
        b=_matrix("b", b) if "multiply(m, b)" in swap else "",
        m=_matrix("m", a),
        stop=w.size(3, 10) + 1,
        swap=swap,
        shown=w.choice(("result[0]", "trace(result)", "result[-1], trace(result)")),
        show=w.show("total", "total"),
    )
    return program(multiply, power, trace, w.main(body))


def _multiply_function(w: Writer, modulus: int) -> str:
    """Returns the text of a function that multiplies two matrices, modulo ``modulus`` unless it is 0."""
    return define(
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


#: Per function that makes a matrix from a matrix: its body.
_TURNS = {
    "turn_right": """
        result = []
        for c in range(len($g[0])):
            line = []
            for r in range(len($g) - 1, -1, -1):
                line.append($g[r][c])
            result.append(line)
        return result
        """,
    "transpose": """
        result = []
        for c in range(len($g[0])):
            result.append([row[c] for row in $g])
        return result
        """,
    "slide": """
        result = []
        for r, row in enumerate($g):
            k = r % len(row)
            result.append(row[k:] + row[:k])
        return result
        """,
    "mirror": """
        result = []
        for row in $g:
            line = row[:]
            left, right = 0, len(line) - 1
            while left < right:
                line[left], line[right] = line[right], line[left]
                left += 1
                right -= 1
            result.append(line)
        return result
        """,
    "raise_by": """
        result = []
        for r, row in enumerate($g):
            line = []
            for c, value in enumerate(row):
                line.append((value + r * c + $k) % $m)
            result.append(line)
        return result
        """,
}


def turning(w: Writer) -> str:
    """Matrices turned, mirrored, shifted and read in spirals."""
    rows, columns = w.size(2, 5), w.between(2, 3) if w.level < 5 else w.size(2, 6)
    name = w.choice(("grid", "picture", "tile", "m"))
    data = _matrix(name, _numbers(w, rows, columns, 0, 9))
    if w.level < 4:
        return _turned_by_slices(w, name, data)
    used = w.sample(list(_TURNS), 1 if w.level < 6 else 2 if w.level < 9 else 3)
    functions = [
        define(f"{function}({name})", _TURNS[function], g=name, k=w.between(1, 5), m=w.between(9, 12))
        for function in used
    ]
    spiral = w.level > 5 or w.chance(40)
    turns = [f"{name} = {function}({name})" for function in used]
    if w.level < 7:
        return _turned_once(w, name, data, functions, turns, spiral)
    return _turned_in_rounds(w, name, functions, turns)


def _turned_by_slices(w: Writer, name: str, data: str) -> str:
    """Matrix turned by slices and list comprehensions."""
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
    last = w.at(3, f"for row in {name}:\n    print(sum(row))")
    return program(join(data, step, more, w.at(2, second), f"print({name})", last))


def _turned_once(
    w: Writer, name: str, data: str, functions: list[str], turns: list[str], spiral: bool
) -> str:
    """Matrix turned by one or two functions, then printed by rows, in a spiral, or both ways."""
    body = join(
        data,
        *turns,
        f"for row in {name}:\n    print(row)" if not spiral or w.level > 5 else "",
        f"print(spiral({name}))" if spiral else "",
    )
    return program(*functions, _spiral_function(w) if spiral else "", w.main(body))


def _turned_in_rounds(w: Writer, name: str, functions: list[str], turns: list[str]) -> str:
    """Matrix turned in every round, its spiral added to a score."""
    body = fill(
        """
        $data
        score = 0
        for turn in range(1, $stop):
            if turn % $n == 0:
                $first
            else:
                $others
            path = spiral($g)
            score = (score * $k + path[turn % len(path)]) % $m
            print(turn, score, $shown)
        for row in $g:
            print(row)
        """,
        data=_matrix(name, _numbers(w, w.size(2, 4), w.between(3, 4), 0, 9)),
        stop=w.size(2, 14) + 1,
        n=w.between(2, 3),
        first=turns[0],
        others=join(*turns[1:]),
        g=name,
        k=w.between(2, 7),
        m=w.choice((97, 100, 500, 1000)),
        shown=w.choice(("path[:3]", f"{name}[0]", "path[-1]")),
    )
    return program(*functions, _spiral_function(w), w.main(body))


def _spiral_function(w: Writer) -> str:
    """Returns the text of a function that reads a matrix in a spiral."""
    return define(
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


def neighbours(w: Writer) -> str:
    """Cells that change with the cells around them, or marks that are counted."""
    live, dead = w.sample("#*oX1@+=", 1)[0], w.sample(".-_0~:", 1)[0]
    if w.level < 4:
        return _marks_by_row(w, live, dead)
    return _row_of_cells(w, live, dead) if w.level < 7 else _field_of_cells(w, live, dead)


def _marks_by_row(w: Writer, live: str, dead: str) -> str:
    """Loop over the rows of a field of marks."""
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
        field = $field
        $zero
        for row in field:
            $act
            $report
        print($found)
        """,
        field=strings(field),
        zero=zero,
        act=act,
        report=w.at(2, f"print({w.choice(('row', f'row, {found}', found))})"),
        found=found,
    )
    return program(body)


def _row_of_cells(w: Writer, live: str, dead: str) -> str:
    """Row of cells in which each follows from its neighbours, over several turns."""
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
    flip = w.chance(50)
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
        one=dead if flip else live,
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


def _field_of_cells(w: Writer, live: str, dead: str) -> str:
    """Field of cells in which each follows from the cells around it, over several turns."""
    offsets = w.choice(
        (
            "((0, 1), (1, 0), (0, -1), (-1, 0))",
            "((1, 1), (1, -1), (-1, 1), (-1, -1))",
            "((0, 1), (1, 1), (1, 0), (-1, -1))",
        )
    )
    step = _step_function(w, live, dead)
    rows = 2 if w.level < 9 else w.between(2, 4)
    field = ["".join(w.picks((live, dead), w.size(2, 5))) for _ in range(4)][:rows]
    body = fill(
        """
        field = $field
        for turn in range(1, $stop):
            field = step(field)
            print(turn, $shown)
        for row in field:
            print(row)
        """,
        field=strings(field),
        stop=w.size(1, 10) + 1,
        shown=w.choice(("field[0]", f'sum(row.count("{live}") for row in field)', '"|".join(field)')),
    )
    return program(f"STEPS = {offsets}", _count_function(live), step, w.main(body))


def _count_function(live: str) -> str:
    """Returns the text of a function that counts the live cells around a cell."""
    return define(
        "count_around(field, r, c)",
        """
        count = 0
        for dr, dc in STEPS:
            i, j = r + dr, c + dc
            if 0 <= i < len(field) and 0 <= j < len(field[0]) and field[i][j] == "$live":
                count += 1
        return count
        """,
        live=live,
    )


def _step_function(w: Writer, live: str, dead: str) -> str:
    """Returns the text of a function that makes the next field of cells."""
    rule = w.choice(
        (
            f'"{live}" if n == {w.between(1, 2)} else "{dead}"',
            f'"{live}" if n in (1, 3) else cell',
            f'"{dead}" if n > 1 else "{live}"',
            f'cell if n == 2 else "{live}" if n == 1 else "{dead}"',
        )
    )
    return define(
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


def filling(w: Writer) -> str:
    """Tables filled by a rule."""
    size = w.size(2, 7)
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
        add = f"row.append({rule})"
        diagonal = f"if r == c:\n    row.append({b})\nelse:\n    {add}"
        inner = w.choice((add, diagonal if w.level > 2 else add))
        shown = w.choice(("row", "row, sum(row)", "sum(row)", "*row"))
        return _filled_row(w, m) if w.level == 1 else _filled_table(w, name, size, inner, shown)
    build, magic = _build_function(name, rule), _even_function(w, name)
    if w.level < 7:
        return _one_table(w, name, size, build, magic)
    return _many_tables(w, name, build, magic)


def _filled_row(w: Writer, modulus: int) -> str:
    """One row filled by a rule."""
    k, b = w.between(2, 20), w.between(1, 60)
    rules = (
        f"c * {k} + {b}",
        f"c ** 2 + {b}",
        f"(c * {k} + {b}) % {modulus}",
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


def _filled_table(w: Writer, name: str, size: int, inner: str, shown: str) -> str:
    """Table filled and printed in a nested loop."""
    keeps = w.level > 2
    body = fill(
        """
        $keep
        for r in range($size):
            row = []
            for c in range($size):
                $inner
            print($shown)
            $append
        $last
        """,
        keep=f"{name} = []" if keeps else "",
        size=size,
        inner=inner,
        shown=shown,
        append=f"{name}.append(row)" if keeps else "",
        last=w.choice((f"print({name}[-1][0])", f"print(len({name}), {name}[0])")) if keeps else "",
    )
    return program(body)


def _one_table(w: Writer, name: str, size: int, build: str, even: str) -> str:
    """Table built by a function, then summed up or tested for equal rows."""
    summed = w.level > 5 or w.chance(50)
    body = join(
        f"{name} = build({size}, {size})",
        f"for row in {f'prefix_sums({name})' if summed else name}:\n    print(row)",
        "" if summed else f"print(is_even({name}))",
    )
    return program(build, _prefix_function(name) if summed else even, w.main(body))


def _many_tables(w: Writer, name: str, build: str, even: str) -> str:
    """Tables of growing size, built and summed up by functions."""
    rounds = w.size(2, 12)
    low = w.between(1, 3) if w.level > 8 else 1
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
        low=low,
        high=low + rounds,
        g=name,
        columns=w.choice(("size", "size + 1", str(w.between(2, 4)))) if w.level > 8 else 2,
        k=w.between(2, 5),
        shown=w.choice((f"is_even({name})", f"{name}[-1]", "sums[0]", f"is_even({name}), {name}[0][-1]")),
        show=w.show("best", "best"),
    )
    return program(build, _prefix_function(name), even if "is_even" in body else "", w.main(body))


def _build_function(name: str, rule: str) -> str:
    """Returns the text of a function that builds a table."""
    return define(
        "build(rows, columns)",
        """
        $g = []
        for r in range(rows):
            row = []
            for c in range(columns):
                row.append($rule)
            $g.append(row)
        return $g
        """,
        g=name,
        rule=rule,
    )


def _prefix_function(name: str) -> str:
    """Returns the text of a function that sums a table up to each cell."""
    return define(
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


def _even_function(w: Writer, name: str) -> str:
    """Returns the text of a function that compares the sums of a table's rows with the first."""
    return define(
        "is_even($g)",
        """
        target = sum($g[0])
        for row in $g:
            if sum(row) $sign target:
                return False
        return True
        """,
        g=name,
        sign=w.choice(("!=", "<")),
    )


#: Bodies of a function that spreads over connected cells and returns their number.
_SPREADS = (
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


def islands(w: Writer) -> str:
    """Connected cells of a field, found by spreading."""
    land, sea = w.choice((("#", "."), ("x", "-"), ("1", "0"), ("@", "_"), ("L", "w")))
    rows, columns = w.size(2, 5), w.size(3, 7)
    field = ["".join(w.picks((land, land, sea), columns)) for _ in range(6)][:rows]
    data = "FIELD = [\n" + "".join(f'    "{line}",\n' for line in field) + "]"
    diagonals = "" if w.chance(60) else ", (1, 1), (-1, -1)"
    spread = define(
        "spread(r, c, seen)",
        w.choice(_SPREADS),
        sea=sea,
        around=f"((0, 1), (1, 0), (0, -1), (-1, 0){diagonals})",
        end=w.choice(("0", "")),
        log=w.at(6, "print(r, c)", below=8),
    )
    return _one_island(field, land, data, spread) if w.level < 8 else _all_islands(data, spread)


def _one_island(field: list[str], land: str, data: str, spread: str) -> str:
    """Size of the island at the first land cell of a field."""
    r = next((r for r, line in enumerate(field) if land in line), 0)
    body = join(
        "seen = []",
        f"print(spread({r}, {max(field[r].find(land), 0)}, seen))",
        "print(len(seen))",
        "print(seen[-1])",
    )
    return program(data, spread, body)


def _all_islands(data: str, spread: str) -> str:
    """Sizes of all islands of a field."""
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
    return program(data, spread, body)


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
