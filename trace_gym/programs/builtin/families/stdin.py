"""Programs that read: numbers, commands, records, settings, moves, expressions."""

from __future__ import annotations

from collections.abc import Sequence

from trace_gym.programs.builtin.vocabulary import CITIES, FRUITS, GOODS, NOUNS, PEOPLE, THEMES, up_to
from trace_gym.programs.builtin.writer import (
    Draft,
    Family,
    Template,
    Writer,
    define,
    fill,
    join,
    program,
    under,
)
from trace_gym.programs.draws import Draws


def _typed(*lines: object) -> str:
    """Standard input of these lines."""
    return "".join(f"{line}\n" for line in lines)


def _one_or_two(w: Writer, texts: Sequence[str]) -> str:
    """One of the texts, or, at level 1, where it is all that is done, two."""
    return "\n".join(w.sample(texts, 2 if w.level < 2 else 1))


def numbers(w: Writer) -> Draft:
    """A line of numbers, or a count and then one a line."""
    count = w.size(1, 22)
    values = w.numbers(count, 1, 60)
    counted = w.chance(50) or w.level == 1
    acts = w.sample(
        [
            ("total", "0", "total += x"),
            ("best", "0", "if x > best:\n    best = x"),
            ("odd", "0", "if x % 2 == 1:\n    odd += 1"),
            ("kept", "[]", f"if x % {w.between(2, 4)} == 0:\n    kept.append(x)"),
            ("mixed", "0", f"mixed = (mixed * {w.between(2, 4)} + x) % {w.choice((97, 100, 101))}"),
            ("rises", "0", "if x > last:\n    rises += 1\nlast = x"),
        ],
        1 if w.level < 4 else 2 if w.level < 7 else 3,
    )
    zeros = [f"{name} = {zero}" for name, zero, _ in acts] + (
        ["last = 0"] if any("last" in act for *_, act in acts) else []
    )
    loop = (
        "n = int(input())\n$zeros\nfor _ in range(n):\n    x = int(input())\n    $acts\n    $report"
        if counted
        else "numbers = input().split()\n$zeros\nfor text in numbers:\n"
        "    x = int(text)\n    $acts\n    $report"
    )
    stdin = _typed(count, *values) if counted else _typed(" ".join(map(str, values)))
    report = w.at(2, f"print(x, {acts[0][0]})")
    if w.level == 1:
        a, b = w.numbers(2, 1, 90)
        simple = w.choice(
            (
                ("a = int(input())\nb = int(input())\n$act", _typed(a, b)),
                ("a, b = map(int, input().split())\n$act", _typed(f"{a} {b}")),
                (
                    f"n = int(input())\ntotal = {w.below(30)}\nfor i in range({w.between(2, 3)}):\n"
                    "    total += i * n\nprint(total)",
                    _typed(a),
                ),
            )
        )
        act = w.choice(
            (
                "print(a + b)\nprint(a * b)",
                "if a > b:\n    print(a - b)\nelse:\n    print(b - a)",
                f"a += {w.between(2, 9)}\nb -= {w.between(1, 9)}\nprint(a, b)\nprint(a % 10)",
                "a, b = b, a + b\nprint(a, b)\nprint(b - a)",
                f'total = a * {w.between(2, 9)} + b\nprint("total:", total)',
                "print(max(a, b))\nprint(min(a, b) * 2)",
            )
        )
        return Draft(program(fill(simple[0], act=act)), simple[1])
    if w.level < 8:
        body = fill(loop, zeros=join(*zeros), acts=join(*(act for *_, act in acts)), report=report)
        shows = join(*(w.show(name, name) for name, *_ in acts))
        return Draft(program(w.main(join(body, shows))), stdin)
    function = define(
        f"{(name := w.choice(('weigh', 'rate', 'work_out')))}(x)",
        w.choice(
            (
                "steps = 0\nwhile x > 1:\n    if x % 2 == 0:\n        x //= 2\n"
                "    else:\n        x = x * 3 + 1\n    steps += 1\nreturn steps",
                "total = 0\nfor d in range(1, x + 1):\n    if x % d == 0:\n        total += d\nreturn total",
                f"a, b = x, {w.between(20, 90)}\nwhile b:\n    a, b = b, a % b\nreturn a",
                "digits = 0\nwhile x:\n    digits += x % 3\n    x //= 3\nreturn digits",
            )
        ),
    )
    acts = [*acts, ("score", "0", f"score += {name}(x)")]
    body = fill(
        loop,
        zeros=join(*zeros, "score = 0"),
        acts=join(*(act for *_, act in acts)),
        report=f"print(x, {acts[0][0]}, score)",
    )
    return Draft(program(function, w.main(join(body, *(w.show(name, name) for name, *_ in acts)))), stdin)


def commands(w: Writer) -> Draft:
    """A little machine that does what it is told line by line."""
    name = w.choice(("stack", "tape", "shelf", "box"))
    pool = [
        ("PUSH", f"{name}.append(int(words[1]))", True),
        ("ADD", f"if len({name}) > 1:\n    {name}.append({name}.pop() + {name}.pop())", False),
        ("MUL", f"if len({name}) > 1:\n    {name}.append({name}.pop() * {name}.pop() % 1000)", False),
        ("DUP", f"{name}.append({name}[-1])", False),
        ("SWAP", f"{name}[-1], {name}[0] = {name}[0], {name}[-1]", False),
        ("SHOW", f"print({name})", False),
        ("TOP", f"print({name}[-1])", False),
        ("DROP", f"if len({name}) > 1:\n    {name}.pop()", False),
        ("INC", f"{name}[-1] += int(words[1])", True),
        ("ROLL", f"{name}.append({name}.pop(0))", False),
        ("NEG", f"{name}[-1] = -{name}[-1]", False),
    ]
    used = [
        pool[0],
        *w.sample(pool[1:5], 1 if w.level < 5 else 2),
        w.choice(pool[5:7]),
        *w.sample(pool[7:], 0 if w.level < 4 else 1 if w.level < 7 else 3),
    ]
    verbs = dict(
        zip(
            (verb for verb, *_ in pool),
            w.choice((tuple(verb for verb, *_ in pool), tuple(verb.lower() for verb, *_ in pool))),
            strict=True,
        )
    )
    stream = w.fork()
    lines = [f"{verbs['PUSH']} {stream.between(1, 20)}" for _ in range(1 if w.level < 3 else 2)]
    for _ in range(w.size(1, 26)):
        verb, _, takes = stream.choice(used)
        lines.append(f"{verbs[verb]} {stream.between(1, 20)}" if takes else verbs[verb])
    dispatch = join(
        *(
            under(f'{"if" if k == 0 else "elif"} words[0] == "{verbs[verb]}":', act)
            for k, (verb, act, _) in enumerate(used)
        )
    )
    unknown = w.at(5, 'else:\n    print("what?", words[0])')
    if unknown and w.chance(60):
        lines.insert(min(3, len(lines)), w.choice(("help", "JUMP 3", "exit", "?")))
    log = w.at(
        6, f"steps += 1\nif steps % {max(2, len(lines) // w.prints + 1)} == 0:\n    print(steps, len({name}))"
    )
    if w.level < 5:
        body = fill(
            """
            $n = []
            for _ in range(int(input())):
                words = input().split()
                $dispatch
            print($end)
            """,
            n=name,
            dispatch=dispatch,
            end=w.choice((name, f"{name}[-1]", f"len({name}), {name}[-1]")),
        )
        return Draft(program(w.main(body)), _typed(len(lines), *lines))
    function = define(f"run({name}, words)", join(dispatch, unknown), n=name)
    repeat = w.size(1, 16) if w.level > 7 else 1
    if repeat > 1:
        body = fill(
            """
            program = []
            line = input()
            while line != "END":
                program.append(line.split())
                line = input()
            $n = []
            for turn in range(1, $stop):
                for words in program:
                    run($n, words)
                $n = $n[-$keep:]
                print(turn, sum($n), len($n))
            """,
            n=name,
            stop=repeat + 1,
            keep=w.between(3, 6),
        )
        lines = [
            line for line in lines if line.upper() not in ("SHOW", "TOP", "HELP", "?", "EXIT", "JUMP 3")
        ][:14]
        dispatch = join(
            *(
                under(f'{"if" if k == 0 else "elif"} words[0] == "{verbs[verb]}":', act)
                for k, (verb, act, _) in enumerate([u for u in used if u[0] not in ("SHOW", "TOP")])
            )
        )
        function = define(f"run({name}, words)", dispatch, n=name)
        return Draft(program(function, w.main(body)), _typed(*lines, "END"))
    body = fill(
        """
        $n = []
        $steps
        line = input()
        while line != "END":
            run($n, line.split())
            $log
            line = input()
        print($n)
        """,
        n=name,
        steps="steps = 0" if log else "",
        log=log,
    )
    return Draft(program(function, w.main(body)), _typed(*lines, "END"))


def records(w: Writer) -> Draft:
    """Lines of fields with commas between."""
    things = w.picks(w.choice((FRUITS, GOODS, PEOPLE)), 24)
    first, second = w.choice(
        (("count", "price"), ("hours", "rate"), ("boxes", "weight"), ("games", "points"))
    )
    rows = [
        f"{thing},{a},{b}"
        for thing, a, b in zip(things, w.numbers(24, 1, 12), w.numbers(24, 1, 30), strict=True)
    ]
    count = w.size(1, 18)
    if w.level == 1:
        return Draft(
            program(
                fill(
                    'name, $a, $b = input().split(",")\n$act',
                    a=first,
                    b=second,
                    act=_one_or_two(
                        w,
                        (
                            f"total = int({first}) * int({second})\nprint(name, total)",
                            f"print(name, int({first}) + int({second}))",
                            f"if int({first}) > {w.between(3, 8)}:\n    print(name.upper())\n"
                            f"else:\n    print(name, {second})",
                            f"print({first} + {second}, len(name))",
                            f"more = int({first}) + {w.between(1, 9)}\nprint(name * 2, more)",
                        ),
                    ),
                )
            ),
            _typed(rows[0]),
        )
    separator = w.choice((",", ";", ":", " "))
    rows = [row.replace(",", separator) for row in rows]
    split = f'input().split("{separator}")' if separator != " " else "input().split()"
    bad = w.level > 5
    if bad:
        rows = [
            row
            if k < 85
            else w.choice(
                (
                    row.rsplit(separator, 1)[0],
                    f"{row}{separator}1",
                    row.replace(separator, separator + "x", 1),
                )
            )
            for row, k in zip(rows, w.numbers(24, 0, 99), strict=True)
        ]
    groups = w.level > 3
    parse = define(
        "parse(line)",
        f'parts = line.split("{separator}")\n'
        + "if len(parts) != 3:\n    return None\n"
        + w.choice(
            (
                "if not parts[1].isdigit():\n    return None\n",
                'for mark in parts[1]:\n    if mark not in "0123456789":\n        return None\n',
            )
        )
        + "return parts[0], int(parts[1]), int(parts[2])",
    ).replace('split(" ")', "split()")
    inside = join(
        f"row = parse(input())\nif row is None:\n    wrong += 1\n    continue\nname, {first}, {second} = row"
        if bad
        else f"name, {first}, {second} = {split}",
        f"value = {first} * {second}" if bad else f"value = int({first}) * int({second})",
        w.choice(
            (
                "total += value",
                f"if value > {w.between(20, 90)}:\n    total += value",
                f"total += value % {w.between(20, 90)}",
            )
        ),
        w.choice(
            (
                "totals[name] = totals.get(name, 0) + value",
                "if value > totals.get(name, 0):\n    totals[name] = value",
                "totals[name[0]] = totals.get(name[0], 0) + 1",
            )
        )
        if groups
        else "",
        "print(name, value)" if w.level < 8 else "if value % 2 == 0:\n    print(name, value, total)",
    )
    body = fill(
        """
        n = int(input())
        total = 0
        $wrong
        $totals
        for _ in range(n):
            $inside
        $show
        $bad
        $groups
        """,
        wrong="wrong = 0" if bad else "",
        totals="totals = {}" if groups else "",
        inside=inside,
        show=w.show("total", "total"),
        bad=w.show("wrong", "wrong") if bad else "",
        groups=w.choice(
            (
                "for name in sorted(totals):\n    print(name, totals[name])",
                "print(totals)",
                "best = max(totals, key=totals.get)\nprint(best, totals[best])",
            )
        )
        if groups
        else "",
    )
    bars = w.at(
        9,
        define(
            "bar(value)",
            f'text = ""\nwhile value > 0:\n    text += "{w.choice("#*=")}"\n'
            f"    value -= {w.between(9, 30)}\nreturn text",
        ),
    )
    if bars:
        body = body.replace("print(name, value, total)", "print(name, value, bar(value))")
    return Draft(program(parse if bad else "", bars, w.main(body)), _typed(count, *rows[:count]))


def settings(w: Writer) -> Draft:
    """Settings and log lines, up to an empty line."""
    keys = w.sample(("speed", "depth", "limit", "width", "height", "delay", "volume", "power"), 4)
    levels = ("info", "warn", "error", "debug")
    count = w.size(1, 20)
    stream = w.fork()
    logs = w.chance(50)
    mark = w.choice(("=", ":", "->"))
    lines = [f"{stream.choice(keys)}{mark}{stream.between(1, 90)}" for _ in range(count)]
    if logs:
        lines = [
            f"{stream.choice(levels)} {stream.choice(NOUNS)} {stream.between(1, 90)}" for _ in range(count)
        ]
    if w.level < 3:
        body = (
            fill(
                "level, word, number = input().split()\n$act",
                act=_one_or_two(
                    w,
                    (
                        "print(level.upper(), len(word))",
                        'if level == "error":\n    print(word)\nelse:\n    print(number)',
                        "print(word, int(number) * 2)",
                        f"if int(number) > {w.between(20, 60)}:\n    print(level, word)\n"
                        f"else:\n    print(word)",
                    ),
                ),
            )
            if logs
            else fill(
                'line = input()\nkey, value = line.split("$m")\n$act',
                m=mark,
                act=_one_or_two(
                    w,
                    (
                        "print(key, int(value) + 1)",
                        "print(len(key), value)",
                        "print(key, int(value) // 2, int(value) % 2)",
                        "print(key.upper(), value * 2)",
                    ),
                ),
            )
        )
        if w.level == 2:
            body = under(f"for _ in range({count}):", body)
        return Draft(program(body), _typed(*lines[: 1 if w.level == 1 else count]))
    split = "level, word, number = line.split()" if logs else f'key, value = line.split("{mark}")'
    act = (
        w.choice(
            (
                "counts[level] = counts.get(level, 0) + 1",
                "counts[level] = counts.get(level, 0) + int(number)",
                "if level not in counts:\n    counts[level] = 0\ncounts[level] += len(word)",
            )
        )
        if logs
        else w.choice(
            (
                "counts[key] = int(value)",
                "counts[key] = counts.get(key, 0) + int(value)",
                "if int(value) > counts.get(key, 0):\n    counts[key] = int(value)",
            )
        )
    )
    special = w.at(
        5,
        w.choice(
            (
                'if line.startswith("e"):\n    print("!", line)',
                "if int(number) > 50:\n    print(word, number)",
                'if level == "warn" and int(number) % 2 == 0:\n    print(word)',
            )
            if logs
            else (
                f'if key == "{keys[0]}":\n    print("{keys[0]} is now", counts.get(key))',
                "if int(value) % 3 == 0:\n    print(key, value)",
            )
        ),
    )
    skip = w.at(4, w.choice(('if line.startswith("#"):\n    line = input()\n    continue', "")))
    if "#" in skip:
        lines.insert(min(2, len(lines)), f"# {w.choice(NOUNS)}")
    history = w.level > 6
    helper = define(
        "summary(values)",
        """
        total = 0
        longest = run = 0
        last = None
        for value in values:
            total += value
            run = run + 1 if last is not None and value $sign last else 1
            longest = max(longest, run)
            last = value
        return total // len(values), longest
        """,
        sign=w.choice((">", "<", ">=", "!=")),
    )
    body = fill(
        """
        counts = {}
        $history
        line = input()
        while line != "":
            $skip
            $split
            $act
            $special
            $keep
            line = input()
        for name in sorted(counts):
            print(name, counts[name])
        $last
        """,
        history="values = []" if history else "",
        skip=skip,
        split=split,
        act=act,
        special=special,
        keep=f"values.append(int({'number' if logs else 'value'}))"
        + ("\nif len(values) % 2 == 0:\n    print(len(values), summary(values))" if w.level > 7 else "")
        if history
        else "",
        last="print(summary(values))" if history else "",
    )
    return Draft(program(helper if history else "", w.main(body)), _typed(*lines, ""))


def moves(w: Writer) -> Draft:
    """A walker that reads its moves."""
    turn_marks = w.choice((("L", "R", "F"), ("<", ">", "^"), ("l", "r", "f")))
    left, right, forward = turn_marks
    stream = w.fork()
    steps = "".join(stream.choice((left, right, forward, forward, forward)) for _ in range(w.size(2, 34)))
    if w.level < 4:
        text = """
            x, y = $x, $y
            for move in input():
                if move == "$e":
                    x += $k
                elif move == "$s":
                    y += 1
                $other
                $report
            print(x, y)
            """
        east, south, west = w.choice((("E", "S", "W"), (">", "v", "<"), ("r", "d", "l"), ("+", "*", "-")))
        moves_ = "".join(
            stream.choice((east, south, west) if w.level > 1 else (east, south)) for _ in range(w.size(1, 9))
        )
        return Draft(
            program(
                fill(
                    text,
                    e=east,
                    x=w.below(30),
                    y=w.below(30),
                    s=south,
                    k=w.between(1, 4),
                    other=w.at(2, f"else:\n    x -= {w.between(1, 2)}"),
                    report=w.at(3, "print(move, x, y)"),
                )
            ),
            _typed(moves_),
        )
    size = w.between(3, 7)
    rule = w.choice(
        (
            "x = (x + dx) % $n\ny = (y + dy) % $n",
            "if 0 <= x + dx < $n and 0 <= y + dy < $n:\n    x += dx\n    y += dy\nelse:\n    bumps += 1",
            "x = max(-$n, min($n, x + dx))\ny = max(-$n, min($n, y + dy))",
        )
    )
    bumps = "bumps" in rule
    visited = w.level > 5
    counted = w.level > 4 and w.chance(60)
    if counted:
        steps = " ".join(
            f"{stream.choice((left, right))}{stream.between(1, 3)} {forward}{stream.between(1, 4)}"
            for _ in range(w.size(1, 14))
        )
    loop = fill(
        """
        if $move == "$l":
            dx, dy = dy, -dx
        elif $move == "$r":
            dx, dy = -dy, dx
        else:
            $rule
            $visit
        """,
        move="move",
        l=left,
        r=right,
        rule=rule.replace("$n", str(size)),
        visit="if (x, y) in seen:\n    again += 1\nelse:\n    seen.append((x, y))" if visited else "",
    )
    repeats = w.size(1, 6) if w.level > 7 else 1
    body = fill(
        """
        $path
        x, y = 0, 0
        dx, dy = 1, 0
        $bumps
        $seen
        $loop
        print(x, y)
        $ends
        """,
        path="path = input()" + (".split()" if counted else ""),
        bumps="bumps = 0" if bumps else "",
        seen="seen = [(0, 0)]\nagain = 0" if visited else "",
        loop=_walk(w, loop, counted, repeats),
        ends=join(w.show("bumps", "bumps") if bumps else "", "print(len(seen), again)" if visited else ""),
    )
    return Draft(program(w.main(body)), _typed(steps))


def _walk(w: Writer, loop: str, counted: bool, repeats: int) -> str:
    """The loop over the moves, and over the path where it is walked more than once."""
    report = "print(move, x, y)" if repeats == 1 else ""
    if counted:
        inner = under(
            "for word in path:",
            join("move, count = word[0], int(word[1:])", under("for _ in range(count):", loop), report),
        )
    else:
        inner = under(
            "for move in path:",
            join(
                loop,
                report
                if w.level < 6
                else 'if move not in "LRlr<>":\n    print(x, y)'
                if repeats == 1
                else "",
            ),
        )
    if repeats == 1:
        return inner
    return under(f"for turn in range(1, {repeats + 1}):", join(inner, "print(turn, x, y, dx, dy)"))


def _expression(stream: Draws, size: int, nested: bool) -> str:
    parts = [str(stream.between(1, 20))]
    for _ in range(size):
        parts.append(stream.choice("+-*"))
        if nested and stream.chance(35):
            parts += ["(", str(stream.between(1, 9)), stream.choice("+-"), str(stream.between(1, 9)), ")"]
        else:
            parts.append(str(stream.between(1, 20)))
    return " ".join(parts)


def expressions(w: Writer) -> Draft:
    """Sums that are read and worked out."""
    stream = w.fork()
    if w.level < 5:
        text = _expression(stream, w.size(1, 9), False)
        body = fill(
            """
            words = input().split()
            result = int(words[0])
            for i in range(1, len(words), 2):
                $value
                if words[i] == "+":
                    result += $number
                elif words[i] == "-":
                    result -= $number
                else:
                    result *= $number
                $report
            $show
            """,
            value=w.at(2, "number = int(words[i + 1])"),
            number=w.at(2, "number") or "int(words[i + 1])",
            report=w.at(2, w.choice(("print(result)", "print(words[i], result)"))),
            show=w.show("result", "result"),
        )
        return Draft(program(w.main(body)), _typed(text))
    nested = w.level > 6
    count = w.size(1, 14)
    lines = [_expression(stream, w.size(1, 5 if w.level < 8 else 2), nested) for _ in range(14)][:count]
    factor = define(
        "factor(tokens)",
        """
        token = tokens.pop(0)
        $nested
        return int(token)
        """,
        nested='if token == "(":\n    value = total(tokens)\n    tokens.pop(0)\n    return value'
        if nested
        else "",
    )
    term = define(
        "term(tokens)",
        'value = factor(tokens)\nwhile tokens and tokens[0] == "*":\n'
        "    tokens.pop(0)\n    value *= factor(tokens)\n    $log\n"
        "return value",
        log=w.at(5, w.choice(("", 'print("*", value)')), below=9),
    )
    total = define(
        "total(tokens)",
        'value = term(tokens)\nwhile tokens and tokens[0] in "+-":\n'
        '    sign = tokens.pop(0)\n    if sign == "+":\n'
        "        value += term(tokens)\n    else:\n"
        "        value -= term(tokens)\n$log\nreturn value",
        log="",
    )
    tokenize = define(
        "tokenize(text)",
        """
        tokens = []
        number = ""
        for mark in text + " ":
            if mark.isdigit():
                number += mark
                continue
            if number != "":
                tokens.append(number)
                number = ""
            if mark != " ":
                tokens.append(mark)
        return tokens
        """,
    )
    letters = w.level > 7
    if letters and w.chance(50):
        lines = [line.replace(" ", "") for line in lines]
    add = w.at(6, f"grand += result {w.choice(('% 100', '', '* length'))}".rstrip())
    shown = w.choice(("result", "length, result"))
    body = fill(
        """
        $grand
        for _ in range(int(input())):
            $read
            result = total(tokens)
            $add
            print($shown)
        $show
        """,
        grand=w.at(6, "grand = 0"),
        read=join(
            "tokens = tokenize(input())" if letters else "tokens = input().split()",
            "length = len(tokens)" if "length" in add + shown else "",
        ),
        add=add,
        shown=shown,
        show=w.at(6, w.show("grand", "grand")),
    )
    return Draft(
        program(factor, term, total, tokenize if letters else "", w.main(body)), _typed(len(lines), *lines)
    )


def journeys(w: Writer) -> Draft:
    """Roads between places, read first, and questions about them."""
    places = w.sample(CITIES, 4 if w.level < 6 else 6)
    stream = w.fork()
    roads = [
        f"{a} {b} {stream.between(1, 30)}"
        for a, b in (stream.sample(places, 2) for _ in range(w.size(1, 14)))
    ]
    if w.level < 5:
        body = fill(
            """
            $zero
            for _ in range(int(input())):
                start, end, miles = input().split()
                $act
                $report
            $show
            """,
            **w.choice(
                (
                    {"zero": "total = 0", "act": "total += int(miles)", "show": w.show("total", "total")},
                    {
                        "zero": "visits = {}",
                        "act": "visits[end] = visits.get(end, 0) + 1",
                        "show": "print(visits)",
                    },
                    {
                        "zero": 'here = ""',
                        "act": 'if start == here:\n    print("on to", end)\nhere = end',
                        "show": "print(here)",
                    },
                    {
                        "zero": "longest = 0",
                        "act": "longest = max(longest, int(miles))",
                        "show": w.show("longest", "longest"),
                    },
                )
            ),
            report=w.at(3, "print(start, miles)"),
        )
        return Draft(program(body), _typed(len(roads), *roads))
    questions = w.fork().sample(places * 2, w.size(1, 11))
    reach = define(
        "nearest(roads, start)",
        """
        miles = {start: 0}
        waiting = [start]
        while waiting:
            here = waiting.pop(0)
            for there, length in roads.get(here, []):
                distance = miles[here] + length
                if there not in miles or distance < miles[there]:
                    miles[there] = distance
                    waiting.append(there)
        return miles
        """,
    )
    both = w.maybe(6, "roads.setdefault(end, []).append((start, int(miles)))", 60)
    body = fill(
        """
        roads = {}
        for _ in range(int(input())):
            start, end, miles = input().split()
            roads.setdefault(start, []).append((end, int(miles)))
            $both
        for _ in range(int(input())):
            start = input()
            table = nearest(roads, start)
            print($shown)
            $rows
        """,
        both=both,
        shown=w.choice(("start, len(table), max(table.values())", "start, len(table), sum(table.values())")),
        rows="for place in sorted(table):\n    print(place, table[place])"
        if w.level < 8 or w.chance(40)
        else "",
    )
    return Draft(program(reach, w.main(body)), _typed(len(roads), *roads, len(questions), *questions))


def letters(w: Writer) -> Draft:
    """Words that are read and changed."""
    pool = up_to(w.choice(THEMES), w.size(4, 12))
    count = w.size(1, 14)
    words_ = w.picks(pool, count)
    if w.level < 4:
        act = _one_or_two(
            w,
            (
                "print(word[::-1])",
                'print(word.replace("a", "$m"))',
                "print(word.upper(), len(word))",
                "print(word[0] + word[-1])",
                'if word[0] in "aeiou":\n    print(word + "$m")\nelse:\n    print(word[1:] + word[0])',
                "total += len(word)\nprint(total)",
            ),
        )
        start = "total = 0" if "total" in act else ""
        body = fill(
            "$start\nword = input()\n$act"
            if w.level == 1
            else "$start\nfor word in input().split():\n    $act\n    $more\nprint(word)",
            start=start,
            act=act,
            more=w.at(3, f'if len(word) > {w.between(3, 6)}:\n    print("long")'),
            m=w.choice("-*_o"),
        )
        return Draft(program(body), _typed(words_[0] if w.level == 1 else " ".join(words_)))
    pool_functions = {
        "squeeze": 'result = ""\nfor letter in word:\n'
        "    if not result or result[-1] != letter:\n"
        "        result += letter\nreturn result",
        "swap_case": 'result = ""\nfor i, letter in enumerate(word):\n'
        "    if i % $k == 0:\n        result += letter.upper()\n"
        "    else:\n        result += letter\nreturn result",
        "hide": 'result = ""\nfor letter in word:\n    if letter in "$vowels":\n'
        '        result += "$m"\n    else:\n        result += letter\n'
        "return result",
        "turn": "place = 0\n"
        'while place < len(word) and word[place] not in "aeiou":\n'
        '    place += 1\nreturn word[place:] + word[:place] + "$end"',
        "score": "total = 0\nfor letter in word:\n    total += (ord(letter) - 96) $op\nreturn total",
    }
    used = w.sample(list(pool_functions), 1 if w.level < 7 else 2 if w.level < 9 else 3)
    functions = [
        define(
            f"{name}(word)",
            pool_functions[name],
            k=w.between(2, 3),
            vowels=w.choice(("aeiou", "aei", "rst", "lmn")),
            m=w.choice("*-."),
            end=w.choice(("ay", "o", "ish")),
            op=w.choice(("% 5", "* 2", "// 3", "% 7")),
        )
        for name in used
    ]
    body = fill(
        """
        longest = ""
        for _ in range(int(input())):
            word = input()
            $length
            print($shown)
        $show
        """,
        length="if len(word) > len(longest):\n    longest = word",
        shown=", ".join(f"{name}(word)" for name in used),
        show=w.show("longest", "longest"),
    )
    return Draft(program(*functions, w.main(body)), _typed(count, *words_))


FAMILY = Family(
    "stdin",
    (
        Template(numbers),
        Template(commands, lowest=3),
        Template(records),
        Template(settings),
        Template(moves),
        Template(expressions, lowest=2),
        Template(journeys, lowest=2),
        Template(letters),
    ),
)
