"""Generators: producers, pipelines, walks, conversations, turns, windows."""

from __future__ import annotations

from typing import NamedTuple

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
    strings,
    under,
)
from trace_gym.programs.draws import Draws

#: Producers: names to choose from and the generator's body.
_PRODUCERS = (
    ("countdown,falling,backwards", "while n > 0:\n    yield n\n    n -= $k"),
    ("doubles,growing,rising", "x = $c\nfor _ in range(n):\n    yield x\n    x *= 2"),
    ("squares,areas", "for i in range(1, n + 1):\n    yield i * i + $c"),
    ("pairs,rabbits,sums", "a, b = $c, $k\nfor _ in range(n):\n    yield a\n    a, b = b, a + b"),
    ("halves,shrinking", "n = n * $big\nwhile n > 0:\n    yield n\n    n //= 2"),
    ("zigzag,swing", "for i in range(n):\n    yield i * $k + $c\n    if i % 2 == 1:\n        yield -i"),
    ("steps,climb,stairs", "total = $c\nfor i in range(n):\n    total += i * $k\n    yield total"),
    ("letters,marks,notes", 'for i in range(n):\n    yield "$text"[i % $k]'),
    ("bounce,mixed", "x = $c\nfor i in range(n):\n    x = x + $big if i % 2 else x - $k\n    yield x"),
)

#: Stages of a pipeline: names and bodies.
_STAGES = {
    "keep": "for x in values:\n    if x % $k != 0:\n        yield x",
    "grow": "for x in values:\n    yield x * $k + $c",
    "differences": "last = 0\nfor x in values:\n    yield x - last\n    last = x",
    "running": "total = 0\nfor x in values:\n    total += x\n    yield total",
    "doubled": "for x in values:\n    yield x\n    if x % 2 == 0:\n        yield x // 2",
    "capped": "for x in values:\n    if x > $limit:\n        x %= $limit\n    yield x",
    "paired": "waiting = None\nfor x in values:\n    if waiting is None:\n        waiting = x\n"
    "    else:\n        yield waiting + x\n        waiting = None",
    "until": "for x in values:\n    if x > $stop:\n        return\n    yield x",
    "changes": "last = None\nfor x in values:\n    if x != last:\n        yield x\n    last = x",
}

#: Generators that are sent values: names, first statements and the loop's body.
_TALKERS = {
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

#: Bodies of generators that yield a name and a step.
_WORKERS = (
    "for step in range(1, count + 1):\n    yield name, step",
    "while count > 0:\n    yield name, count\n    count -= $k",
    "done = 0\nwhile done < count:\n    done += $k\n    yield name, done",
    "for step in range(count):\n    if step % 2 == 0:\n        yield name, step * $k\n"
    "    else:\n        yield name.upper(), step",
)

#: Generators of parts of a list or text: names and bodies.
_SLICERS = {
    "windows": "for i in range(len(items) - size + 1):\n    yield items[i:i + size]",
    "chunks": "for i in range(0, len(items), size):\n    yield items[i:i + size]",
    "prefixes": "for i in range(1, len(items) + 1, size):\n    yield items[:i]",
    "spins": "for _ in range(len(items)):\n    yield items\n    items = items[size:] + items[:size]",
    "ends": "while len(items) > size:\n    yield items[0], items[-1]\n    items = items[1:-1]",
}


class _Producer(NamedTuple):
    """A generator of numbers or letters.

    Attributes:
        name: Its name.
        code: Its function as written in a program.
        item: The variable for what it yields.
        n: Its argument.
        letter: The first letter that it yields; "" if it yields numbers.
    """

    name: str
    code: str
    item: str
    n: int
    letter: str


def producers(w: Writer) -> str:
    """Returns a program about values that come one at a time, by level."""
    producer = _producer(w)
    if w.level < 4:
        plain = producer_printed(w, producer)
        # Not used by numbers from level 2 on, but drawn: each id keeps its program.
        return plain if w.level == 1 or producer.letter else producer_used(w, producer)
    endless = _endless(w)
    take = _take(w)
    if w.level < 7:
        return values_taken(w, endless, take)
    return values_taken_in_turns(w, endless, take, producer)


def _producer(w: Writer) -> _Producer:
    """Returns one of the producers, and an argument that suits it."""
    names, body = w.choice(_PRODUCERS)
    name = w.choice(names.split(","))
    item = w.choice(("value", "x", "item", "number"))
    k = w.between(2, 5)
    text = "".join(w.sample("abcdefghikmnoprstuxyz", 5))
    code = define(f"{name}(n)", body, k=k, c=w.between(1, 30), big=w.between(2, 9), text=text)
    n = w.size(2, 14)
    if "n -=" in body:
        n = n * k - w.below(k)
    if "n //=" in body:
        n = min(1 << min(n, 8), 300) // 2 + w.between(1, 2)
    return _Producer(name, code, item, n, letter=text[0] if "letters" in names else "")


def producer_printed(w: Writer, producer: _Producer) -> str:
    """Producer whose values are printed as they come."""
    name, code, item, n, _ = producer
    lines = w.choice(
        (
            f"print(list({name}({n})))",
            f"for {item} in {name}({n}):\n    print({item})",
            f"{item}s = {name}({n})\nprint(next({item}s))\nprint(next({item}s, {w.below(3)}))",
            f"print(*{name}({n}))",
            f"{item}s = list({name}({n}))\nprint({item}s[-1], len({item}s))",
        )
    )
    return program(code, lines)


def producer_used(w: Writer, producer: _Producer) -> str:
    """Producer of numbers that are added, counted, paired or filtered."""
    name, code, item, n, _ = producer
    other = w.choice((f"{name}({n + 1})", f"range({w.between(1, 9)}, 90)", f"{w.numbers(n, 1, 30)}"))
    lines = w.choice(
        (
            f"total = {w.below(9)}\n"
            f"for {item} in {name}({n}):\n    total += {item}\n    print({item}, total)",
            f"for i, {item} in enumerate({name}({n}), start={w.below(3)}):\n    print(i, {item})",
            f"{item}s = {name}({n})\nfirst = next({item}s)\nprint(first, sum({item}s))",
            f"for a, b in zip({name}({n}), {other}):\n    print(a {w.choice('+-*')} b)",
            f"print(max({name}({n})), sum({name}({n})))",
            f"for {item} in {name}({n}):\n    if {item} % {w.between(2, 4)} == 0:\n        print({item})",
        )
    )
    return program(code, lines)


def _endless(w: Writer) -> tuple[str, str]:
    """Returns a generator of endless numbers: its name and its function."""
    name = w.choice(("stream", "ticker", "dice"))
    code = define(
        f"{name}(x)",
        "while True:\n    x = (x * $a + $b) % $m\n    yield x",
        a=w.between(2, 14),
        b=w.between(1, 30),
        m=w.choice((17, 23, 31, 50, 64, 97, 100)),
    )
    return name, code


def _take(w: Writer) -> str:
    """Returns the generator ``take``, which ends after a number of values."""
    return define(
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


def values_taken(w: Writer, endless: tuple[str, str], take: str) -> str:
    """Total over the first values of an endless generator."""
    stream, code = endless
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
    return program(code, take, w.main(body))


def values_taken_in_turns(w: Writer, endless: tuple[str, str], take: str, producer: _Producer) -> str:
    """Score over turns that take more of an endless generator and all of a producer."""
    stream, code = endless
    name, letter = producer.name, producer.letter
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
        stop=w.size(2, 16) + 1,
        count=w.choice(("turn % 4 + 1", str(w.size(2, 9)), f"{w.size(1, 6)} + turn % 3")),
        other=f'text = "".join({name}(turn % 5 + 1))\nscore += text.count("{letter}")'
        if letter
        else f"for value in {name}(turn % {w.between(3, 5)} + 2):\n    score = (score * 2 + value) % 1000",
        tell=w.tell("turn", "turn", w.choice(("chosen", "len(chosen)", "chosen[-1]")), "score"),
        show=w.show("score", "score"),
    )
    return program(code, take, producer.code, w.main(body))


def pipelines(w: Writer) -> str:
    """Returns a program about generators of which each feeds the next, by level."""
    used = w.sample(list(_STAGES), 1 if w.level < 5 else 2 if w.level < 7 else 3 if w.level < 9 else 4)
    stages = [
        define(
            f"{name}(values)",
            _STAGES[name],
            k=w.between(2, 4),
            c=w.below(6),
            limit=w.between(12, 40),
            stop=w.between(60, 300),
        )
        for name in used
    ]
    if w.level == 1:
        return stage_listed(w, used[0], stages[0])
    if w.level < 4:
        return stage_used(w, used[0], stages[0])
    call = "values"
    for name in used:
        call = f"{name}({call})"
    if w.level < 8:
        return chain_of_stages(w, stages, call)
    return chain_in_turns(w, stages, call)


def stage_listed(w: Writer, name: str, stage: str) -> str:
    """Generator that takes a list of numbers, its values printed as a list."""
    return program(stage, f"print(list({name}({w.numbers(w.size(2, 8), 1, 30)})))")


def stage_used(w: Writer, name: str, stage: str) -> str:
    """Generator that takes a list of numbers, its values printed singly, or with a count or a sum."""
    values = w.numbers(w.size(2, 8), 1, 30)
    lines = w.choice(
        (
            f"for x in {name}({values}):\n    print(x)",
            f"values = {values}\nprint(list({name}(values)), len(values))",
            f"result = list({name}({values}))\nprint(result, sum(result))",
        )
    )
    return program(stage, lines)


def chain_of_stages(w: Writer, stages: list[str], call: str) -> str:
    """Total over the values of a chain of generators."""
    count = w.size(2, 30)
    numbers = w.choice((f"range({w.between(1, 9)}, {count + 9})", str(w.numbers(min(count, 16), 1, 40))))
    body = fill(
        """
        values = $numbers
        total = 0
        for x in $call:
            total += x
            print($shown)
        $show
        """,
        numbers=numbers,
        call=call,
        shown=w.choice(("x", "x, total")),
        show=w.show("total", "total"),
    )
    return program(*stages, w.main(body))


def chain_in_turns(w: Writer, stages: list[str], call: str) -> str:
    """Total over turns that each run a chain of generators on other numbers."""
    numbers = define(
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
    return program(numbers, *stages, w.main(body))


def walks(w: Writer) -> str:
    """Returns a program about a generator that yields from itself."""
    kind = w.choice(("nest", "tree", "combos") if w.level < 4 else ("nest", "tree", "ruler", "combos"))
    if kind == "nest":
        return _nests(w)
    if kind == "tree":
        return _trees(w)
    if kind == "ruler":
        return _rulers(w)
    return _teams(w)


def _nests(w: Writer) -> str:
    """Returns a program about a nested list that is made flat, by level."""
    stream = w.fork()
    flat = _flat(w)
    data = _nested(stream, w.size(2, 26), 1 if w.level < 4 else 3)
    if w.level < 4:
        return nest_printed(w, flat, data)
    if w.level < 8:
        return nest_with_levels(w, flat, data)
    return nest_in_turns(w, flat, data)


def _nested(stream: Draws, budget: int, depth: int) -> str:
    """Returns a list of ``budget`` numbers as written in a program, nested at most ``depth`` deep."""
    items = []
    while budget > 0:
        part = stream.between(1, budget)
        if depth and stream.chance(50) and part > 1:
            items.append(_nested(stream, part, depth - 1))
            budget -= part
        else:
            items.append(str(stream.between(1, 30)))
            budget -= 1
    return f"[{', '.join(items)}]"


def _flat(w: Writer) -> str:
    """Returns the generator ``flat``, which yields a number for each item of a nested list."""
    return define(
        "flat(items$level)",
        """
        for item in items:
            if isinstance(item, list):
                $enter
                yield from flat(item$deeper)
            else:
                yield $value
        """,
        level=w.at(4, ", level"),
        deeper=w.at(4, ", level + 1"),
        enter=w.maybe(5, "yield level"),
        value=w.choice(("item", f"item * {w.between(2, 4)}", f"item + {w.between(1, 9)}"))
        if w.level < 4
        else w.choice(("item * level", "item + level", "item")),
    )


def nest_printed(w: Writer, flat: str, data: str) -> str:
    """Nested list made flat, its values printed."""
    lines = w.choice(
        (
            "print(list(flat(data)))",
            "for x in flat(data):\n    print(x)",
            "print(sum(flat(data)))",
        )
    )
    return program(flat, f"data = {data}\n{lines}")


def nest_with_levels(w: Writer, flat: str, data: str) -> str:
    """Total over a nested list made flat, with the depth of each item."""
    loop = under("for x in flat(data, 1):", "total += x\nprint(x, total)")
    return program(flat, w.main(join(f"data = {data}", "total = 0", loop, w.show("total", "total"))))


def nest_in_turns(w: Writer, flat: str, data: str) -> str:
    """Total over turns that make a nested list flat and then move its items."""
    loop = under(
        f"for turn in range({w.size(3, 14)}):",
        join(
            under("for x in flat(data, 1):", "total = (total * 2 + x) % 1000"),
            "print(turn, total)",
            w.choice(("data = data[1:] + [[turn, data[0]]]", "data = [data[-1], [turn]] + data[:-1]")),
        ),
    )
    return program(flat, w.main(join(f"data = {data}", "total = 0", loop, w.show("total", "total"))))


def _trees(w: Writer) -> str:
    """Returns a program about a walk over a range as a binary tree, by level and by what it yields."""
    walk = _walk(w)
    low = w.between(1, 60)
    high = low + w.size(1, 60)
    if w.level >= 5 and "yield middle, " not in walk:
        return tree_total(w, walk, low, high)
    item = w.choice(("item", "node", "x"))
    if w.level < 8:
        return tree_nodes(walk, low, high, item)
    return tree_count(w, walk, low, high)


def _walk(w: Writer) -> str:
    """Returns the generator ``walk``, which halves a range and yields numbers around the halves."""
    middle = w.choice(("(low + high) // 2", "(low + high + 1) // 2", "low + (high - low) // 3"))
    places = w.shuffled(("before", "between", "after"))
    node = w.choice(("yield middle", f"yield middle * {w.between(2, 5)}", "yield middle, high - low"))
    leaf = w.choice(
        ("if low == high:\n    yield -middle", "if middle % 3 == 0:\n    yield low + high"),
    )
    texts = (node, w.maybe(5, leaf, 60), "")
    return define(
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
        middle=middle,
        **dict(zip(places, texts, strict=True)),
    )


def tree_nodes(walk: str, low: int, high: int, item: str) -> str:
    """Walk over a binary tree, each node printed."""
    return program(walk, f"for {item} in walk({low}, {high}):\n    print({item})")


def tree_count(w: Writer, walk: str, low: int, high: int) -> str:
    """Walk over a binary tree, its nodes counted and some printed."""
    body = fill(
        """
        count = 0
        for item in walk($low, $high):
            count += 1
            $report
        print(count)
        """,
        low=low,
        high=high,
        report=w.sometimes("count", high - low, "print(count, item)"),
    )
    return program(walk, body)


def tree_total(w: Writer, walk: str, low: int, high: int) -> str:
    """Walk over a binary tree, its nodes mixed into a total."""
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
    return program(walk, w.main(body))


def _rulers(w: Writer) -> str:
    """Returns a program about the marks of a ruler, by level."""
    ruler = define(
        "ruler(n)",
        "if n == 0:\n    return\nyield from ruler(n - 1)\nyield $value\nyield from ruler(n - 1)\n$last",
        value=w.choice(("n", f"n * {w.between(2, 9)}", "-n", '"-" * n', "str(n)")),
        last=w.choice(("", "yield 0", f"if n % {w.between(2, 3)} == 0:\n    yield 0")),
    )
    n = w.size(1, 7)
    return ruler_marks(w, ruler, n) if w.level < 7 else ruler_sizes(w, ruler, n)


def ruler_marks(w: Writer, ruler: str, n: int) -> str:
    """Ruler of one size, each mark printed."""
    body = w.choice(
        (
            f"for mark in ruler({n}):\n    print(mark)",
            f"for place, mark in enumerate(ruler({n})):\n    print(place, mark)",
        )
    )
    return program(ruler, w.main(body))


def ruler_sizes(w: Writer, ruler: str, n: int) -> str:
    """Rulers of several sizes, the first marks of each printed."""
    body = fill(
        """
        for n in range(1, $stop):
            marks = list(ruler(n))
            print(n, len(marks), marks[:$first], marks.count(marks[0]))
        """,
        stop=n + 1,
        first=w.between(3, 7),
    )
    return program(ruler, w.main(body))


def _teams(w: Writer) -> str:
    """Returns a program about the teams that people can form, by level."""
    pool = w.choice((FRUITS, ANIMALS, PEOPLE))
    teams = define(
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
    return teams_of_one_size(w, teams, people) if w.level < 8 else teams_of_each_size(w, teams, people)


def teams_of_one_size(w: Writer, teams: str, people: list[str]) -> str:
    """Teams of one or two people, each team printed."""
    size = 1 if w.level < 4 else 2
    body = fill(
        """
        people = $people
        for team in teams(people, $size):
            print($shown)
        """,
        people=strings(people),
        size=min(size, len(people)),
        shown=w.choice(("team", "*team", "*sorted(team)")),
    )
    return program(teams, w.main(body))


def teams_of_each_size(w: Writer, teams: str, people: list[str]) -> str:
    """Teams of each size, counted and some printed."""
    body = fill(
        """
        people = $people
        for size in range(1, $stop):
            count = 0
            for team in teams(people, size):
                count += 1
                if $test:
                    print(size, *team)
            print(size, count)
        """,
        people=strings(people),
        stop=min(len(people), 4) + 1,
        test=w.choice(
            (f"count % {w.between(3, 5)} == 0", f"len(team[0]) == {w.between(3, 5)}", "team[0] > team[-1]")
        ),
    )
    return program(teams, w.main(body))


def conversations(w: Writer) -> str:
    """Returns a program about generators that are sent values, by level."""
    used = w.sample(list(_TALKERS), 1 if w.level < 6 else 2 if w.level < 8 else 3)
    if w.level < 6:
        return values_sent(w, used[0])
    return values_sent_around(w, used)


def _talker(w: Writer, name: str, function: str) -> str:
    """Returns the function of a generator that is sent values.

    Args:
        w: The program's choices.
        name: The generator's name among the talkers.
        function: The name that its function gets.
    """
    start, loop = _TALKERS[name]
    return define(f"{function}()", join(start, under("while True:", loop)), c=w.below(12), k=w.between(2, 4))


def values_sent(w: Writer, name: str) -> str:
    """Generator that is sent values, each answer printed."""
    function = _talker(w, name, name)
    talker = w.choice((name[:1], "talk", "line", "worker"))
    values = w.numbers(w.size(1, 12), 1, 40)
    lines = [f"{talker} = {name}()", f"next({talker})"]
    if w.level < 3:
        lines += [f"print({talker}.send({value}))" for value in values[:4]]
    else:
        lines.append(f"for x in {values}:\n    print(x, {talker}.send(x))")
    return program(function, w.main(join(*lines)))


def values_sent_around(w: Writer, used: list[str]) -> str:
    """Generators that are each sent a value or another generator's answer, turn by turn."""
    # Each answer has its generator's name, so the functions need names of their own.
    functions = [_talker(w, name, f"make_{name}") for name in used]
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
        made=join(*(f"{name}_line = make_{name}()\nnext({name}_line)" for name in used)),
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
    return program(*functions, w.main(body))


class _Workers(NamedTuple):
    """Generators of one function, each with a name and a count.

    Attributes:
        name: The function's name.
        code: The function as written in a program.
        names: Each generator's name.
        most: The largest count that there can be.
        counts: Each generator's count.
    """

    name: str
    code: str
    names: list[str]
    most: int
    counts: list[int]


def turns(w: Writer) -> str:
    """Returns a program about generators that take turns, by level."""
    workers = _workers(w)
    if w.level < 4:
        return single_workers(w, workers)
    scheduler = _scheduler(w, len(workers.names))
    if w.level < 7:
        return workers_in_turn(w, workers, scheduler)
    return workers_with_latecomers(w, workers, scheduler)


def _workers(w: Writer) -> _Workers:
    """Returns workers with their names and counts."""
    names = w.sample(TASKS if w.chance(50) else ANIMALS, w.grow(2, 4))
    worker = w.choice(("task", "job", "runner", "worker"))
    body = w.choice(_WORKERS)
    code = define(f"{worker}(name, count)", body, k=w.between(1, 2) if "done" in body else w.between(1, 3))
    most = w.size(1, 20)
    return _Workers(worker, code, names, most, counts=[max(1, most - w.below(3)) for _ in names])


def single_workers(w: Writer, workers: _Workers) -> str:
    """One or two workers without a scheduler, their steps printed."""
    worker, code, names, most, counts = workers
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
    return program(code, lines)


def _scheduler(w: Writer, workers: int) -> tuple[str, str]:
    """Returns a generator that runs a queue of this many workers: its name and its function."""
    name = w.choice(("take_turns", "run_all", "schedule"))
    again = "queue.append(current)"
    code = define(
        f"{name}(queue)",
        """
        while queue:
            current = queue.pop(0)
            try:
                yield next(current)
                $again
            except StopIteration:
                $end
        """,
        again=w.choice((again, again, "queue.insert(1, current)" if workers > 2 else again)),
        end=w.choice(("continue", 'yield "end", len(queue)')),
    )
    return name, code


def workers_in_turn(w: Writer, workers: _Workers, scheduler: tuple[str, str]) -> str:
    """Workers that a scheduler runs in turn, each step printed."""
    schedule, code = scheduler
    loop = f"for name, step in {schedule}(queue):\n    print(name, step)"
    return program(workers.code, code, w.main(join(_queue(workers), loop)))


def workers_with_latecomers(w: Writer, workers: _Workers, scheduler: tuple[str, str]) -> str:
    """Workers that a scheduler runs in turn, with a score and with workers added on the way."""
    schedule, code = scheduler
    total, last = sum(workers.counts), w.size(4, 60)
    loop = fill(
        """
        clock = score = 0
        for name, step in $schedule(queue):
            clock += 1
            score = (score * $k + step + len(name)) % $m
            $late
            $report
        $show
        """,
        schedule=schedule,
        k=w.between(1, 5),
        m=w.choice((97, 100, 500, 997)),
        late=f"if clock == {w.between(2, 5)} or score % {w.between(11, 19)} == 0 and clock < {last}:\n"
        f'    queue.append({workers.name}("{w.choice(("late", "extra", "more"))}", {w.between(2, 5)}))',
        report=w.sometimes("clock", total, "print(clock, name, step)"),
        show=w.show("score", "score"),
    )
    return program(workers.code, code, w.main(join(_queue(workers), loop)))


def _queue(workers: _Workers) -> str:
    """Returns the assignment of ``queue``, a list of workers."""
    pairs = zip(workers.names, workers.counts, strict=True)
    return spread("queue", [f'{workers.name}("{name}", {count})' for name, count in pairs])


def windows(w: Writer) -> str:
    """Returns a program about windows, chunks and other parts of a list or a text, by level."""
    used = w.sample(list(_SLICERS), 1 if w.level < 6 else 2 if w.level < 9 else 3)
    text = w.chance(40)
    pool = w.choice(THEMES)
    data = quoted(w.choice(up_to(pool, w.size(3, 10)))) if text else str(w.numbers(w.size(2, 14), 1, 30))
    size = w.between(1, 3)
    if w.level > 5:
        return parts_of_rows(w, used)
    shown = "part" if text or w.chance(50) else "part, sum(part)"
    if w.level == 1:
        return parts_listed(w, used[0], data, size)
    return parts_printed(w, used[0], data, size, shown)


def _slicer(name: str) -> str:
    """Returns the generator ``name``, which takes items and a size."""
    return define(f"{name}(items, size)", _SLICERS[name])


def parts_listed(w: Writer, name: str, data: str, size: int) -> str:
    """Parts of one list or text, printed as a list."""
    return program(_slicer(name), w.main(f"print(list({name}({data}, {size})))"))


def parts_printed(w: Writer, name: str, data: str, size: int, shown: str) -> str:
    """Parts of one list or text, each printed."""
    loop = f"for part in {name}({data}, {size}):\n    print({shown})"
    wider = f"count = 0\nfor part in {name}({data}, {size + 1}):\n    count += len(part)\nprint(count)"
    return program(_slicer(name), w.main(join(loop, w.at(4, wider))))


def parts_of_rows(w: Writer, used: list[str]) -> str:
    """Score over turns that each make a list and use its parts."""
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
        stop=w.size(2, 12) + 1,
        a=w.between(2, 13),
        b=w.between(1, 30),
        m=w.choice((19, 31, 43, 60)),
        count=w.size(4, 14),
        uses=join(*(_scored_parts(w, name) for name in used)),
        k=w.choice((50, 100, 64)),
        tell=w.tell("turn", "turn", "score", "best"),
        show=w.show("best", "best"),
    )
    return program(*(_slicer(name) for name in used), w.main(body))


def _scored_parts(w: Writer, name: str) -> str:
    """Returns a loop over the parts into which the generator ``name`` splits ``items``."""
    size = w.between(2, 4) if name == "windows" else w.between(1, 3)
    score = w.choice(
        (
            "score += max(part)",
            "score += part[0] - part[-1]",
            f"if sum(part) % {w.between(2, 4)} == 0:\n    score += 1",
            "score = (score * 2 + sum(part)) % 500",
        )
    )
    return under(f"for part in {name}(items, {size}):", score)


FAMILY = Family(
    "generators",
    (
        Template(producers),
        Template(pipelines),
        Template(walks, lowest=2),
        Template(conversations),
        Template(turns),
        Template(windows),
    ),
)
