"""Programs that read: numbers, commands, records, settings, moves, expressions.

The order and the number of draws decide which program a task id has. Some draws therefore stay although one
of the programs ignores them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

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

_GROUPINGS = (
    "totals[name] = totals.get(name, 0) + value",
    "if value > totals.get(name, 0):\n    totals[name] = value",
    "totals[name[0]] = totals.get(name[0], 0) + 1",
)

_GROUP_REPORTS = (
    "for name in sorted(totals):\n    print(name, totals[name])",
    "print(totals)",
    "best = max(totals, key=totals.get)\nprint(best, totals[best])",
)

_SUMMARY = """
    total = 0
    longest = run = 0
    last = None
    for value in values:
        total += value
        run = run + 1 if last is not None and value $sign last else 1
        longest = max(longest, run)
        last = value
    return total // len(values), longest
    """

_FACTOR = """
    token = tokens.pop(0)
    $nested
    return int(token)
    """

_NESTED = """
    if token == "(":
        value = total(tokens)
        tokens.pop(0)
        return value
    """

_TERM = """
    value = factor(tokens)
    while tokens and tokens[0] == "*":
        tokens.pop(0)
        value *= factor(tokens)
        $log
    return value
    """

_TOTAL = """
    value = term(tokens)
    while tokens and tokens[0] in "+-":
        sign = tokens.pop(0)
        if sign == "+":
            value += term(tokens)
        else:
            value -= term(tokens)
    return value
    """

_TOKENIZE = """
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
    """

_NEAREST = define(
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

_WORD_FUNCTIONS = {
    "squeeze": """
        result = ""
        for letter in word:
            if not result or result[-1] != letter:
                result += letter
        return result
        """,
    "swap_case": """
        result = ""
        for i, letter in enumerate(word):
            if i % $k == 0:
                result += letter.upper()
            else:
                result += letter
        return result
        """,
    "hide": """
        result = ""
        for letter in word:
            if letter in "$vowels":
                result += "$m"
            else:
                result += letter
        return result
        """,
    "turn": """
        place = 0
        while place < len(word) and word[place] not in "aeiou":
            place += 1
        return word[place:] + word[:place] + "$end"
        """,
    "score": """
        total = 0
        for letter in word:
            total += (ord(letter) - 96) $op
        return total
        """,
}


def _typed(*lines: object) -> str:
    """Returns standard input with these lines."""
    return "".join(f"{line}\n" for line in lines)


def _one_or_two(w: Writer, texts: Sequence[str]) -> str:
    """Returns two of the texts at level 1, where they are the whole program; one of them at other levels."""
    return "\n".join(w.sample(texts, 2 if w.level < 2 else 1))


@dataclass(frozen=True, slots=True)
class _Act:
    """A statement for each number that is read.

    Attributes:
        name: The variable that it changes.
        zero: The first value of the variable.
        text: The statement.
    """

    name: str
    zero: str
    text: str


def numbers(w: Writer) -> Draft:
    """Program that reads numbers, all on one line or one per line after their count."""
    values = w.numbers(w.size(1, 22), 1, 60)
    counted = w.chance(50) or w.level == 1
    acts = _number_acts(w)
    if w.level == 1:
        return one_or_two_numbers(w)
    if w.level < 8:
        return summed_numbers(w, values, counted, acts)
    return scored_numbers(w, values, counted, acts)


def _number_acts(w: Writer) -> list[_Act]:
    """Returns one to three statements about a number ``x``."""
    return w.sample(
        [
            _Act("total", "0", "total += x"),
            _Act("best", "0", "if x > best:\n    best = x"),
            _Act("odd", "0", "if x % 2 == 1:\n    odd += 1"),
            _Act("kept", "[]", f"if x % {w.between(2, 4)} == 0:\n    kept.append(x)"),
            _Act("mixed", "0", f"mixed = (mixed * {w.between(2, 4)} + x) % {w.choice((97, 100, 101))}"),
            _Act("rises", "0", "if x > last:\n    rises += 1\nlast = x"),
        ],
        1 if w.level < 4 else 2 if w.level < 7 else 3,
    )


def one_or_two_numbers(w: Writer) -> Draft:
    """A few statements about one or two numbers that are read."""
    a, b = w.numbers(2, 1, 90)
    text, stdin = w.choice(
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
    return Draft(program(fill(text, act=act)), stdin)


def summed_numbers(w: Writer, values: list[int], counted: bool, acts: list[_Act]) -> Draft:
    """Loop over numbers that are read, with one to three statements about each."""
    body, stdin = _number_loop(w, values, counted, acts, _zeros(acts), f"print(x, {acts[0].name})")
    return Draft(program(w.main(body)), stdin)


def scored_numbers(w: Writer, values: list[int], counted: bool, acts: list[_Act]) -> Draft:
    """Loop over numbers that are read, each of which a function scores."""
    name = w.choice(("weigh", "rate", "work_out"))
    function = define(
        f"{name}(x)",
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
    scored = [*acts, _Act("score", "0", f"score += {name}(x)")]
    zeros = [*_zeros(acts), "score = 0"]
    body, stdin = _number_loop(w, values, counted, scored, zeros, f"print(x, {acts[0].name}, score)")
    return Draft(program(function, w.main(body)), stdin)


def _zeros(acts: list[_Act]) -> list[str]:
    """Returns the assignments of first values that the statements need."""
    zeros = [f"{act.name} = {act.zero}" for act in acts]
    return [*zeros, "last = 0"] if any("last" in act.text for act in acts) else zeros


def _number_loop(
    w: Writer, values: list[int], counted: bool, acts: list[_Act], zeros: list[str], report: str
) -> tuple[str, str]:
    """Returns a loop over numbers with the prints after it, and the standard input it reads."""
    if counted:
        text = """
            n = int(input())
            $zeros
            for _ in range(n):
                x = int(input())
                $acts
                $report
            $shows
            """
        stdin = _typed(len(values), *values)
    else:
        text = """
            numbers = input().split()
            $zeros
            for text in numbers:
                x = int(text)
                $acts
                $report
            $shows
            """
        stdin = _typed(" ".join(map(str, values)))
    body = fill(
        text,
        zeros=join(*zeros),
        acts=join(*(act.text for act in acts)),
        report=report,
        shows=join(*(w.show(act.name, act.name) for act in acts)),
    )
    return body, stdin


@dataclass(frozen=True, slots=True)
class _Command:
    """A command that a program knows.

    Attributes:
        verb: The word for it in the standard input.
        act: The statements that carry it out.
        takes: Whether a number follows the word.
        prints: Whether it prints something.
    """

    verb: str
    act: str
    takes: bool = False
    prints: bool = False


def commands(w: Writer) -> Draft:
    """Program with a little machine that carries out commands line by line."""
    name = w.choice(("stack", "tape", "shelf", "box"))
    used = _used_commands(w, name)
    stream = w.fork()
    lines = [f"{used[0].verb} {stream.between(1, 20)}" for _ in range(2)]
    for _ in range(w.size(1, 26)):
        command = stream.choice(used)
        lines.append(f"{command.verb} {stream.between(1, 20)}" if command.takes else command.verb)
    if w.level < 5:
        return counted_commands(w, name, used, lines)
    unknown = [w.choice(("help", "JUMP 3", "exit", "?"))] if w.chance(60) else []
    repeat = w.size(1, 16) if w.level > 7 else 1
    if repeat == 1:
        return ended_commands(w, name, used, [*lines[:3], *unknown, *lines[3:]])
    return repeated_commands(w, name, used, lines, repeat)


def _used_commands(w: Writer, name: str) -> list[_Command]:
    """Returns the commands of a program, first the one that adds a number to the list ``name``."""
    pool = [
        _Command("PUSH", f"{name}.append(int(words[1]))", takes=True),
        _Command("ADD", f"if len({name}) > 1:\n    {name}.append({name}.pop() + {name}.pop())"),
        _Command("MUL", f"if len({name}) > 1:\n    {name}.append({name}.pop() * {name}.pop() % 1000)"),
        _Command("DUP", f"{name}.append({name}[-1])"),
        _Command("SWAP", f"{name}[-1], {name}[0] = {name}[0], {name}[-1]"),
        _Command("SHOW", f"print({name})", prints=True),
        _Command("TOP", f"print({name}[-1])", prints=True),
        _Command("DROP", f"if len({name}) > 1:\n    {name}.pop()"),
        _Command("INC", f"{name}[-1] += int(words[1])", takes=True),
        _Command("ROLL", f"{name}.append({name}.pop(0))"),
        _Command("NEG", f"{name}[-1] = -{name}[-1]"),
    ]
    used = [
        pool[0],
        *w.sample(pool[1:5], 1 if w.level < 5 else 2),
        w.choice(pool[5:7]),
        *w.sample(pool[7:], 0 if w.level < 4 else 1 if w.level < 7 else 3),
    ]
    lower = w.choice((False, True))
    return [replace(command, verb=command.verb.lower()) for command in used] if lower else used


def _dispatch(used: Sequence[_Command]) -> str:
    """Returns the ``if`` statement that carries out the command in ``words``."""
    return join(
        *(
            under(f'{"if" if k == 0 else "elif"} words[0] == "{command.verb}":', command.act)
            for k, command in enumerate(used)
        )
    )


def counted_commands(w: Writer, name: str, used: list[_Command], lines: list[str]) -> Draft:
    """Loop over commands whose number is read first."""
    body = fill(
        """
        $n = []
        for _ in range(int(input())):
            words = input().split()
            $dispatch
        print($end)
        """,
        n=name,
        dispatch=_dispatch(used),
        end=w.choice((name, f"{name}[-1]", f"len({name}), {name}[-1]")),
    )
    return Draft(program(w.main(body)), _typed(len(lines), *lines))


def ended_commands(w: Writer, name: str, used: list[_Command], lines: list[str]) -> Draft:
    """Commands that are read and carried out up to the line END; one may be unknown."""
    every = max(2, len(lines) // w.prints + 1)
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
        steps=w.at(6, "steps = 0"),
        log=w.at(6, f"steps += 1\nif steps % {every} == 0:\n    print(steps, len({name}))"),
    )
    unknown = 'else:\n    print("what?", words[0])'
    function = define(f"run({name}, words)", join(_dispatch(used), unknown))
    return Draft(program(function, w.main(body)), _typed(*lines, "END"))


def repeated_commands(w: Writer, name: str, used: list[_Command], lines: list[str], repeat: int) -> Draft:
    """Silent commands that are read up to the line END, then carried out several times."""
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
    printing = [command.verb for command in used if command.prints]
    silent = [line for line in lines if line not in printing][:14]
    dispatch = _dispatch([command for command in used if not command.prints])
    function = define(f"run({name}, words)", dispatch)
    return Draft(program(function, w.main(body)), _typed(*silent, "END"))


def records(w: Writer) -> Draft:
    """Program that reads records: lines of a name and two numbers."""
    things = w.picks(w.choice((FRUITS, GOODS, PEOPLE)), 24)
    names = w.choice((("count", "price"), ("hours", "rate"), ("boxes", "weight"), ("games", "points")))
    rows = [
        f"{thing},{a},{b}"
        for thing, a, b in zip(things, w.numbers(24, 1, 12), w.numbers(24, 1, 30), strict=True)
    ]
    if w.level == 1:
        return one_record(w, names, rows[0])
    separator = w.choice((",", ";", ":", " "))
    rows = [row.replace(",", separator) for row in rows]
    if w.level > 5:
        rows = _spoiled(w, rows, separator)
    parse = _parse_function(w, separator)
    rows = rows[: w.size(1, 18)]
    if w.level > 5:
        return checked_records(w, names, parse, rows)
    return summed_records(w, names, separator, rows)


def one_record(w: Writer, names: tuple[str, str], row: str) -> Draft:
    """A few statements about one record that is read."""
    first, second = names
    body = fill(
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
    return Draft(program(body), _typed(row))


def summed_records(w: Writer, names: tuple[str, str], separator: str, rows: list[str]) -> Draft:
    """Sum over records, and from level 4 on a table by name."""
    first, second = names
    split = f'input().split("{separator}")' if separator != " " else "input().split()"
    read = f"name, {first}, {second} = {split}\nvalue = int({first}) * int({second})"
    _, body = _record_loop(w, read)
    return Draft(program(w.main(body)), _typed(len(rows), *rows))


def checked_records(w: Writer, names: tuple[str, str], parse: str, rows: list[str]) -> Draft:
    """Sum over records and a table by name; a function parses the records and finds the wrong ones."""
    first, second = names
    read = (
        "row = parse(input())\nif row is None:\n    wrong += 1\n    continue\n"
        f"name, {first}, {second} = row\nvalue = {first} * {second}"
    )
    bar, body = _record_loop(w, read)
    return Draft(program(parse, bar, w.main(body)), _typed(len(rows), *rows))


def _spoiled(w: Writer, rows: list[str], separator: str) -> list[str]:
    """Returns the rows, of which about 15% have too few fields, too many fields or a bad number."""
    return [
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


def _parse_function(w: Writer, separator: str) -> str:
    """Returns the definition of a function that parses a record, or returns None for a wrong one."""
    return define(
        "parse(line)",
        """
        parts = line.split($separator)
        if len(parts) != 3:
            return None
        $check
        return parts[0], int(parts[1]), int(parts[2])
        """,
        separator=f'"{separator}"' if separator != " " else "",
        check=w.choice(
            (
                "if not parts[1].isdigit():\n    return None",
                'for mark in parts[1]:\n    if mark not in "0123456789":\n        return None',
            )
        ),
    )


def _record_loop(w: Writer, read: str) -> tuple[str, str]:
    """Returns a function ``bar`` (from level 9 on), and a loop that sums over records.

    Args:
        w: The writer.
        read: The statements that read a record and assign its ``value``.
    """
    groups = w.level > 3
    add = w.choice(
        (
            "total += value",
            f"if value > {w.between(20, 90)}:\n    total += value",
            f"total += value % {w.between(20, 90)}",
        )
    )
    body = fill(
        """
        n = int(input())
        total = 0
        $wrong
        $totals
        for _ in range(n):
            $read
            $add
            $group
            $report
        $shows
        $table
        """,
        wrong=w.at(6, "wrong = 0"),
        totals="totals = {}" if groups else "",
        read=read,
        add=add,
        group=w.choice(_GROUPINGS) if groups else "",
        report="print(name, value)"
        if w.level < 8
        else f"if value % 2 == 0:\n    print(name, value, {'total' if w.level < 9 else 'bar(value)'})",
        shows=join(w.show("total", "total"), w.at(6, w.show("wrong", "wrong"))),
        table=w.choice(_GROUP_REPORTS) if groups else "",
    )
    bar = define(
        "bar(value)",
        f'text = ""\nwhile value > 0:\n    text += "{w.choice("#*=")}"\n'
        f"    value -= {w.between(9, 30)}\nreturn text",
    )
    return w.at(9, bar), body


def settings(w: Writer) -> Draft:
    """Program that reads settings or log lines."""
    keys = w.sample(("speed", "depth", "limit", "width", "height", "delay", "volume", "power"), 4)
    levels = ("info", "warn", "error", "debug")
    count = w.size(1, 20)
    stream = w.fork()
    logs = w.chance(50)
    mark = w.choice(("=", ":", "->"))
    pairs = [f"{stream.choice(keys)}{mark}{stream.between(1, 90)}" for _ in range(count)]
    if not logs:
        return one_setting(w, mark, pairs) if w.level < 3 else setting_lines(w, mark, keys[0], pairs)
    lines = [f"{stream.choice(levels)} {stream.choice(NOUNS)} {stream.between(1, 90)}" for _ in range(count)]
    return one_log_line(w, lines) if w.level < 3 else log_lines(w, lines)


def one_setting(w: Writer, mark: str, lines: list[str]) -> Draft:
    """A few statements about a setting that is read, in a loop at level 2."""
    body = fill(
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
    return _once_or_for_each(w, body, lines)


def one_log_line(w: Writer, lines: list[str]) -> Draft:
    """A few statements about a log line that is read, in a loop at level 2."""
    body = fill(
        "level, word, number = input().split()\n$act",
        act=_one_or_two(
            w,
            (
                "print(level.upper(), len(word))",
                'if level == "error":\n    print(word)\nelse:\n    print(number)',
                "print(word, int(number) * 2)",
                f"if int(number) > {w.between(20, 60)}:\n    print(level, word)\nelse:\n    print(word)",
            ),
        ),
    )
    return _once_or_for_each(w, body, lines)


def _once_or_for_each(w: Writer, body: str, lines: list[str]) -> Draft:
    """Returns a program that runs ``body`` for the first line at level 1, and for each line at level 2."""
    if w.level == 1:
        return Draft(program(body), _typed(lines[0]))
    return Draft(program(under(f"for _ in range({len(lines)}):", body)), _typed(*lines))


def setting_lines(w: Writer, mark: str, key: str, lines: list[str]) -> Draft:
    """Table of settings that are read up to an empty line."""
    act = w.choice(
        (
            "counts[key] = int(value)",
            "counts[key] = counts.get(key, 0) + int(value)",
            "if int(value) > counts.get(key, 0):\n    counts[key] = int(value)",
        )
    )
    special = w.choice(
        (
            f'if key == "{key}":\n    print("{key} is now", counts.get(key))',
            "if int(value) % 3 == 0:\n    print(key, value)",
        )
    )
    return _counted_lines(w, lines, f'key, value = line.split("{mark}")', act, special, "value")


def log_lines(w: Writer, lines: list[str]) -> Draft:
    """Table of log lines that are read up to an empty line."""
    act = w.choice(
        (
            "counts[level] = counts.get(level, 0) + 1",
            "counts[level] = counts.get(level, 0) + int(number)",
            "if level not in counts:\n    counts[level] = 0\ncounts[level] += len(word)",
        )
    )
    special = w.choice(
        (
            'if line.startswith("e"):\n    print("!", line)',
            "if int(number) > 50:\n    print(word, number)",
            'if level == "warn" and int(number) % 2 == 0:\n    print(word)',
        )
    )
    return _counted_lines(w, lines, "level, word, number = line.split()", act, special, "number")


def _counted_lines(w: Writer, lines: list[str], split: str, act: str, special: str, number: str) -> Draft:
    """Returns a program that reads lines up to an empty one and prints what ``act`` counts.

    Args:
        w: The writer.
        lines: The lines of the standard input; a comment may be added.
        split: The statement that takes a line apart.
        act: The statements that count.
        special: A condition with a print, used from level 5 on.
        number: The variable whose values a summary from level 7 on is about.
    """
    skip = w.at(4, w.choice(('if line.startswith("#"):\n    line = input()\n    continue', "")))
    if skip:
        lines = [*lines[:2], f"# {w.choice(NOUNS)}", *lines[2:]]
    helper = define("summary(values)", _SUMMARY, sign=w.choice((">", "<", ">=", "!=")))
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
            $summary
            line = input()
        for name in sorted(counts):
            print(name, counts[name])
        $last
        """,
        history=w.at(7, "values = []"),
        skip=skip,
        split=split,
        act=act,
        special=w.at(5, special),
        keep=w.at(7, f"values.append(int({number}))"),
        summary=w.at(8, "if len(values) % 2 == 0:\n    print(len(values), summary(values))"),
        last=w.at(7, "print(summary(values))"),
    )
    return Draft(program(w.at(7, helper), w.main(body)), _typed(*lines, ""))


def moves(w: Writer) -> Draft:
    """Program with a walker that reads its moves."""
    marks = w.choice((("L", "R", "F"), ("<", ">", "^"), ("l", "r", "f")))
    left, right, forward = marks
    stream = w.fork()
    steps = "".join(stream.choice((left, right, forward, forward, forward)) for _ in range(w.size(2, 34)))
    if w.level < 4:
        return compass_moves(w, stream)
    size = w.between(3, 7)
    rule = w.choice(
        (
            f"x = (x + dx) % {size}\ny = (y + dy) % {size}",
            f"if 0 <= x + dx < {size} and 0 <= y + dy < {size}:\n    x += dx\n    y += dy\n"
            "else:\n    bumps += 1",
            f"x = max(-{size}, min({size}, x + dx))\ny = max(-{size}, min({size}, y + dy))",
        )
    )
    if w.level > 4 and w.chance(60):
        return counted_moves(w, marks, rule, stream)
    return lettered_moves(w, marks, rule, steps)


def compass_moves(w: Writer, stream: Draws) -> Draft:
    """Walker whose moves are the directions of the compass."""
    east, south, west = w.choice((("E", "S", "W"), (">", "v", "<"), ("r", "d", "l"), ("+", "*", "-")))
    directions = (east, south, west) if w.level > 1 else (east, south)
    steps = "".join(stream.choice(directions) for _ in range(w.size(1, 9)))
    body = fill(
        """
        x, y = $x, $y
        for move in input():
            if move == "$e":
                x += $k
            elif move == "$s":
                y += 1
            $other
            $report
        print(x, y)
        """,
        e=east,
        x=w.below(30),
        y=w.below(30),
        s=south,
        k=w.between(1, 4),
        other=w.at(2, f"else:\n    x -= {w.between(1, 2)}"),
        report=w.at(3, "print(move, x, y)"),
    )
    return Draft(program(body), _typed(steps))


def lettered_moves(w: Writer, marks: tuple[str, str, str], rule: str, steps: str) -> Draft:
    """Walker that turns and walks, one letter per move."""
    report = "print(move, x, y)" if w.level < 6 else 'if move not in "LRlr<>":\n    print(x, y)'
    if _walks(w) > 1:
        report = ""
    return _walk(w, rule, "input()", under("for move in path:", join(_move(w, marks, rule), report)), steps)


def counted_moves(w: Writer, marks: tuple[str, str, str], rule: str, stream: Draws) -> Draft:
    """Walker that turns and walks, each move with a count."""
    left, right, forward = marks
    steps = " ".join(
        f"{stream.choice((left, right))}{stream.between(1, 3)} {forward}{stream.between(1, 4)}"
        for _ in range(w.size(1, 14))
    )
    loop = under(
        "for word in path:",
        join(
            "move, count = word[0], int(word[1:])",
            under("for _ in range(count):", _move(w, marks, rule)),
            "print(move, x, y)" if _walks(w) == 1 else "",
        ),
    )
    return _walk(w, rule, "input().split()", loop, steps)


def _walks(w: Writer) -> int:
    """Returns how often the path is walked: once below level 8."""
    return w.size(1, 6) if w.level > 7 else 1


def _move(w: Writer, marks: tuple[str, str, str], rule: str) -> str:
    """Returns the ``if`` statement that turns the walker or moves it by ``rule``."""
    return fill(
        """
        if move == "$l":
            dx, dy = dy, -dx
        elif move == "$r":
            dx, dy = -dy, dx
        else:
            $rule
            $visit
        """,
        l=marks[0],
        r=marks[1],
        rule=rule,
        visit=w.at(6, "if (x, y) in seen:\n    again += 1\nelse:\n    seen.append((x, y))"),
    )


def _walk(w: Writer, rule: str, path: str, loop: str, steps: str) -> Draft:
    """Returns a program that reads a path and walks it, from level 8 on several times.

    Args:
        w: The writer.
        rule: The statements of one move forward.
        path: The expression that reads the path.
        loop: The loop over the path.
        steps: The path, as the standard input has it.
    """
    walks = _walks(w)
    if walks > 1:
        loop = under(f"for turn in range(1, {walks + 1}):", join(loop, "print(turn, x, y, dx, dy)"))
    bumps = "bumps" in rule
    body = fill(
        """
        path = $path
        x, y = 0, 0
        dx, dy = 1, 0
        $bumps
        $seen
        $loop
        print(x, y)
        $ends
        """,
        path=path,
        bumps="bumps = 0" if bumps else "",
        seen=w.at(6, "seen = [(0, 0)]\nagain = 0"),
        loop=loop,
        ends=join(w.show("bumps", "bumps") if bumps else "", w.at(6, "print(len(seen), again)")),
    )
    return Draft(program(w.main(body)), _typed(steps))


def expressions(w: Writer) -> Draft:
    """Program that reads sums and computes them."""
    stream = w.fork()
    return computed_sum(w, stream) if w.level < 5 else parsed_sums(w, stream)


def _expression(stream: Draws, size: int, nested: bool) -> str:
    """Returns a random sum with ``size`` operators, if ``nested`` also with parentheses."""
    parts = [str(stream.between(1, 20))]
    for _ in range(size):
        parts.append(stream.choice("+-*"))
        if nested and stream.chance(35):
            parts += ["(", str(stream.between(1, 9)), stream.choice("+-"), str(stream.between(1, 9)), ")"]
        else:
            parts.append(str(stream.between(1, 20)))
    return " ".join(parts)


def computed_sum(w: Writer, stream: Draws) -> Draft:
    """One sum, computed from left to right."""
    text = _expression(stream, w.size(1, 9), False)
    body = fill(
        """
        words = input().split()
        result = int(words[0])
        for i in range(1, len(words), 2):
            number = int(words[i + 1])
            if words[i] == "+":
                result += number
            elif words[i] == "-":
                result -= number
            else:
                result *= number
            $report
        $show
        """,
        report=w.choice(("print(result)", "print(words[i], result)")),
        show=w.show("result", "result"),
    )
    return Draft(program(w.main(body)), _typed(text))


def parsed_sums(w: Writer, stream: Draws) -> Draft:
    """Several sums, computed by a recursive parser; from level 8 on it reads them letter by letter."""
    nested = w.level > 6
    lines = [_expression(stream, w.size(1, 5 if w.level < 8 else 2), nested) for _ in range(14)]
    lines = lines[: w.size(1, 14)]
    parser = _parser(w)
    if w.level > 7 and w.chance(50):
        lines = [line.replace(" ", "") for line in lines]
    add = w.at(6, f"grand += result {w.choice(('% 100', '', '* length'))}".rstrip())
    shown = w.choice(("result", "length, result"))
    body = fill(
        """
        $grand
        for _ in range(int(input())):
            tokens = $tokens
            $length
            result = total(tokens)
            $add
            print($shown)
        $show
        """,
        grand=w.at(6, "grand = 0"),
        tokens=w.at(8, "tokenize(input())") or "input().split()",
        length="length = len(tokens)" if "length" in add + shown else "",
        add=add,
        shown=shown,
        show=w.at(6, w.show("grand", "grand")),
    )
    return Draft(program(*parser, w.main(body)), _typed(len(lines), *lines))


def _parser(w: Writer) -> list[str]:
    """Returns the definitions of a parser for sums; parentheses from level 7, ``tokenize`` from level 8."""
    return [
        define("factor(tokens)", _FACTOR, nested=w.at(7, _NESTED)),
        define("term(tokens)", _TERM, log=w.at(5, w.choice(("", 'print("*", value)')), below=9)),
        define("total(tokens)", _TOTAL),
        w.at(8, define("tokenize(text)", _TOKENIZE)),
    ]


def journeys(w: Writer) -> Draft:
    """Program that reads roads between cities."""
    places = w.sample(CITIES, 4 if w.level < 6 else 6)
    stream = w.fork()
    roads = []
    for _ in range(w.size(1, 14)):
        start, end = stream.sample(places, 2)
        roads.append(f"{start} {end} {stream.between(1, 30)}")
    return listed_roads(w, roads) if w.level < 5 else shortest_roads(w, places, roads)


def listed_roads(w: Writer, roads: list[str]) -> Draft:
    """Loop over roads that counts something about them."""
    zero, act, show = w.choice(
        (
            ("total = 0", "total += int(miles)", w.show("total", "total")),
            ("visits = {}", "visits[end] = visits.get(end, 0) + 1", "print(visits)"),
            ('here = ""', 'if start == here:\n    print("on to", end)\nhere = end', "print(here)"),
            ("longest = 0", "longest = max(longest, int(miles))", w.show("longest", "longest")),
        )
    )
    body = fill(
        """
        $zero
        for _ in range(int(input())):
            start, end, miles = input().split()
            $act
            $report
        $show
        """,
        zero=zero,
        act=act,
        show=show,
        report=w.at(3, "print(start, miles)"),
    )
    return Draft(program(body), _typed(len(roads), *roads))


def shortest_roads(w: Writer, places: list[str], roads: list[str]) -> Draft:
    """Search for the shortest ways, with questions that are read after the roads."""
    questions = w.fork().sample(places * 2, min(w.size(1, 11), 2 * len(places)))
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
    return Draft(program(_NEAREST, w.main(body)), _typed(len(roads), *roads, len(questions), *questions))


def letters(w: Writer) -> Draft:
    """Program that reads words and changes them."""
    pool = up_to(w.choice(THEMES), w.size(4, 12))
    words = w.picks(pool, w.size(1, 14))
    if w.level > 3:
        return converted_words(w, words)
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
    long = w.between(3, 6)
    act = fill(act, m=w.choice("-*_o"))
    return changed_word(start, act, words[0]) if w.level == 1 else changed_words(w, start, act, long, words)


def changed_word(start: str, act: str, word: str) -> Draft:
    """One word that is read and changed."""
    return Draft(program(join(start, "word = input()", act)), _typed(word))


def changed_words(w: Writer, start: str, act: str, long: int, words: list[str]) -> Draft:
    """Words on one line, changed in a loop."""
    body = fill(
        """
        $start
        for word in input().split():
            $act
            $more
        print(word)
        """,
        start=start,
        act=act,
        more=w.at(3, f'if len(word) > {long}:\n    print("long")'),
    )
    return Draft(program(body), _typed(" ".join(words)))


def converted_words(w: Writer, words: list[str]) -> Draft:
    """Words that one to three functions convert."""
    used = w.sample(list(_WORD_FUNCTIONS), 1 if w.level < 7 else 2 if w.level < 9 else 3)
    functions = [
        define(
            f"{name}(word)",
            _WORD_FUNCTIONS[name],
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
            if len(word) > len(longest):
                longest = word
            print($shown)
        $show
        """,
        shown=", ".join(f"{name}(word)" for name in used),
        show=w.show("longest", "longest"),
    )
    return Draft(program(*functions, w.main(body)), _typed(len(words), *words))


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
