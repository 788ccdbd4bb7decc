"""Lists: readings, circles, shelves, merges, bowls.

The order and the number of draws decide which program a task id has. Some draws therefore stay although one
of the programs ignores them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trace_gym.programs.builtin.vocabulary import ANIMALS, COLOURS, FRUITS, PEOPLE, SHIPS
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

_FILTERS = {
    "smooth": """
        result = []
        for i in range(len(values)):
            left = values[i - 1]
            right = values[(i + 1) % len(values)]
            result.append((left + values[i] + right) // 3)
        return result
        """,
    "differences": """
        result = []
        for i in range(len(values)):
            result.append((values[i] - values[i - 1]) % $modulus)
        return result
        """,
    "running_totals": """
        result = []
        total = 0
        for value in values:
            total = (total + value) % $modulus
            result.append(total)
        return result
        """,
    "bounce": """
        result = []
        for value in values:
            if value > $high:
                result.append(value - $high)
            elif value < $low:
                result.append(value + $low)
            else:
                result.append(value)
        return result
        """,
    "swap_pairs": """
        result = values[:]
        for i in range(0, len(result) - 1, 2):
            if result[i] > result[i + 1]:
                result[i], result[i + 1] = result[i + 1], result[i]
        return result[1:] + result[:1]
        """,
    "fold": """
        result = []
        for i in range(len(values)):
            result.append((values[i] * $factor + values[-i - 1]) % $modulus)
        return result
        """,
}

_MERGES = {
    "merge": """
        result = []
        i = j = 0
        while i < len(a) and j < len(b):
            if a[i] <= b[j]:
                result.append(a[i])
                i += 1
            else:
                result.append(b[j])
                j += 1
        return result + a[i:] + b[j:]
        """,
    "interleave": """
        result = []
        for i in range(max(len(a), len(b))):
            if i < len(a):
                result.append(a[i])
            if i < len(b):
                result.append(b[i])
        return result
        """,
    "without": """
        result = []
        for x in a:
            if x not in b and x not in result:
                result.append(x)
        return result + b[-2:]
        """,
    "longer": """
        result = []
        for x, y in zip(a, b):
            result.append(max(x, y))
        return result + a[len(b):] + b[len(a):]
        """,
}

_CHUNKS = """
    result = []
    for start in range(0, len(values), size):
        result.append(values[start:start + size])
    return result
    """

_SOW = """
    hand = $name[place]
    $name[place] = 0
    while hand > 0:
        place = (place + 1) % len($name)
        $name[place] += 1
        hand -= 1
    """


def readings(w: Writer) -> str:
    """Program over measured values, which counts or filters them."""
    name = w.choice(("readings", "values", "samples", "prices", "heights", "scores", "levels"))
    return counted_readings(w, name) if w.level < 5 else filtered_readings(w, name)


def counted_readings(w: Writer, name: str) -> str:
    """Loop over measured values that keeps one or two counters or lists."""
    values = w.numbers(w.size(2, 12), 1, 40)
    limit = w.between(8, 30)
    acts = w.sample(
        [
            ("total", "0", "total += value"),
            ("peak", "0", "if value > peak:\n    peak = value"),
            ("kept", "[]", f"if value > {limit}:\n    kept.append(value)"),
            ("halves", "[]", "halves.append(value // 2)"),
            ("odd", "0", "if value % 2 == 1:\n    odd += 1"),
            ("sums", "[0]", "sums.append(sums[-1] + value)"),
            ("backwards", "[]", "backwards.insert(0, value)"),
        ],
        1 if w.level < 3 else 2,
    )
    return program(
        fill(
            """
            $data
            $zeros
            for value in $name:
                $acts
                $report
            $shows
            """,
            data=spread(name, list(map(str, values))),
            zeros=join(*(f"{act[0]} = {act[1]}" for act in acts)),
            name=name,
            acts=join(*(act[2] for act in acts)),
            report=w.at(2, f"print(value, {acts[0][0]})"),
            shows=join(*(w.show(act[0], act[0]) for act in acts)),
        )
    )


def filtered_readings(w: Writer, name: str) -> str:
    """Functions that filter measured values, called once or in turns."""
    used = w.sample(list(_FILTERS), 1 if w.level < 6 else 2 if w.level < 9 else 3)
    values = w.numbers(w.size(3, 10), 1, 60)
    rounds = w.size(1, 14)
    calls = [f"{name} = {filter_}({name})" for filter_ in used]
    steps = "\n".join(calls)
    if len(used) > 1 and w.chance(60):
        steps = fill(
            "if turn % $n == 0:\n    $a\nelse:\n    $b",
            n=w.between(2, 3),
            a=calls[0],
            b="\n".join(calls[1:]),
        )
    body = fill(
        """
        $data
        $loop
        $show
        print(max($name), min($name), sum($name))
        """,
        data=spread(name, list(map(str, values))),
        loop=under(f"for turn in range(1, {rounds + 1}):", join(steps, w.tell("turn", "turn", name)))
        if rounds > 1
        else "\n".join(calls),
        show=w.show(name, name) if rounds == 1 else "",
        name=name,
    )
    functions = [
        define(
            f"{filter_}(values)",
            _FILTERS[filter_],
            modulus=w.choice((50, 64, 97, 100)),
            high=w.between(30, 55),
            low=w.between(2, 9),
            factor=w.between(2, 5),
        )
        for filter_ in used
    ]
    return program(*functions, w.main(body))


def circles(w: Writer) -> str:
    """Program about a circle: it is changed, or every k-th of it has to go."""
    pool = w.choice((PEOPLE, ANIMALS, COLOURS, SHIPS))
    circle, person = w.choice((("circle", "out"), ("line", "gone"), ("players", "loser"), ("ring", "picked")))
    step = w.between(1, 4)
    if w.level < 3:
        names = w.sample(pool, w.size(3, 5))
        acts = _circle_acts(w, pool, names, circle, person)
        return changed_circle(circle, names, acts) if w.level == 1 else turned_circle(w, circle, names, acts)
    people = w.sample(pool, min(w.size(3, 13), len(pool)))
    if w.level < 7:
        return emptied_circle(w, people, circle, person, step)
    return numbered_circle(w, circle, person, step)


def _circle_acts(w: Writer, pool: Sequence[str], names: Sequence[str], circle: str, person: str) -> list[str]:
    """Returns the statements that change a circle, in random order: one more than the level."""
    return w.sample(
        [
            f"{circle}.append({circle}.pop(0))",
            f"{person} = {circle}.pop({w.between(0, len(names) - 2)})\nprint({person})",
            f"{circle}.reverse()",
            f"{circle}[0], {circle}[-1] = {circle}[-1], {circle}[0]",
            f"{circle} = {circle}[{w.between(1, 2)}:] + {circle}[:1]",
            f"{circle}.insert({w.between(0, 2)}, {quoted(w.choice(pool))})",
            f"{circle}.sort()",
        ],
        w.level + 1,
    )


def changed_circle(circle: str, names: Sequence[str], acts: Sequence[str]) -> str:
    """Circle of names that is changed once and printed."""
    return program(f"{circle} = {strings(names)}", "\n".join([*acts, f"print({circle})"]))


def turned_circle(w: Writer, circle: str, names: Sequence[str], acts: Sequence[str]) -> str:
    """Circle of names that is changed in a loop without getting smaller."""
    return program(
        fill(
            "$data\nfor turn in range($turns):\n    $acts\nprint($circle)",
            data=spread(circle, list(map(quoted, names))),
            turns=w.size(2, 4),
            acts="\n".join(act for act in acts if "pop(" not in act or "append" in act) or acts[0],
            circle=circle,
        )
    )


def emptied_circle(w: Writer, people: Sequence[str], circle: str, person: str, step: int) -> str:
    """Circle of names that every k-th has to leave until one or two are left."""
    choose = w.choice(
        (
            f"place = (place + {step}) % len({circle})\n{person} = {circle}.pop(place)",
            f"for _ in range({step}):\n    {circle}.append({circle}.pop(0))\n{person} = {circle}.pop(0)",
        )
    )
    extra = w.at(
        4,
        w.choice(
            (
                f"if len({person}) > {w.between(4, 5)}:\n    {circle}.reverse()",
                f"if {person} < {circle}[0]:\n    {circle}[0], {circle}[-1] = {circle}[-1], {circle}[0]",
                f"if len({circle}) % 2 == 0:\n    {circle}.insert(0, {circle}.pop())",
            )
        ),
    )
    body = fill(
        """
        $data
        $place
        while len($circle) > $left:
            $choose
            $extra
            print($shown)
        print($end)
        """,
        data=spread(circle, list(map(quoted, people))),
        place="place = 0" if "place" in choose else "",
        circle=circle,
        left=w.between(1, 2),
        choose=choose,
        extra=extra,
        shown=w.choice((person, f"{person}, len({circle})")),
        end=w.choice((f"{circle}[0]", f'"left:", {circle}', circle)),
    )
    return program(w.main(body))


def numbered_circle(w: Writer, circle: str, person: str, step: int) -> str:
    """Function that counts out a circle of numbers, called for circles of growing size."""
    function = define(
        "play(count, step)",
        """
        $doc
        $circle = list(range(1, count + 1))
        order = []
        while len($circle) > 1:
            for _ in range(step):
                $circle.append($circle.pop(0))
            $person = $circle.pop(0)
            order.append($person)
            $rule
        return $circle[0], order
        """,
        doc=w.maybe(5, '"""Count out every step-th player; the last one wins."""', 50),
        circle=circle,
        person=person,
        rule=w.maybe(
            7,
            w.choice(
                (
                    f"if {person} % 3 == 0:\n    step += 1",
                    f"if {person} > {circle}[0]:\n    {circle}.reverse()",
                )
            ),
        ),
    )
    first = w.between(3, 5)
    body = fill(
        """
        wins = [0] * $size
        for count in range($first, $stop):
            winner, order = play(count, $step)
            wins[winner % $size] += 1
            print($shown)
        print(wins)
        """,
        size=w.between(2, 5),
        first=first,
        stop=first + w.size(2, 13),
        step=step,
        shown=w.choice(("count, winner", "count, winner, order[:3]", "count, winner, order[-1]")),
    )
    return program(function, w.main(body))


def shelves(w: Writer) -> str:
    """Program about a shelf, which statements or a list of orders change."""
    shelf = w.choice(("shelf", "playlist", "stack", "tray", "belt", "queue"))
    pool = w.choice((FRUITS, COLOURS, ANIMALS))
    start = w.sample(pool, 3)
    acts = [
        ("add", f'{shelf}.append("$item")'),
        ("front", f'{shelf}.insert(0, "$item")'),
        ("take", f"{shelf}.pop()"),
        ("turn", f"{shelf}.reverse()"),
        ("shift", f"{shelf} = {shelf}[1:] + {shelf}[:1]"),
        ("swap", f"{shelf}[0], {shelf}[-1] = {shelf}[-1], {shelf}[0]"),
        ("double", f"{shelf} = {shelf} + {shelf}[:1]"),
    ]
    if w.level < 3:
        return changed_shelf(w, shelf, pool, start, acts)
    orders = _shelf_orders(w, shelf, pool, acts)
    limit = w.between(5, 8)
    rounds = w.size(1, 14) if w.level > 6 else 1
    if rounds == 1:
        return ordered_shelf(w, shelf, start, orders)
    return daily_shelf(w, shelf, start, orders, rounds, limit)


def changed_shelf(
    w: Writer, shelf: str, pool: Sequence[str], start: list[str], acts: list[tuple[str, str]]
) -> str:
    """Shelf that a few statements change, printed at the end."""
    lines = [fill(act, item=w.choice(pool)) for _, act in w.sample(acts, 2 * w.level + 1)]
    end = w.sample(
        (f"print({shelf})", f"print(len({shelf}))", f"print({shelf}[-1])", f"print({shelf}[0])"), 2
    )
    if w.level == 2:
        lines.insert(2, f"for item in {shelf}:\n    print(item{w.choice(('', ', len(item)', '.upper()'))})")
        end = end[:1]
    return program(join(f"{shelf} = {strings(start[: 4 - w.level])}", *lines, *end[: w.level]))


@dataclass(frozen=True, slots=True)
class _Orders:
    """Orders for a shelf.

    Attributes:
        written: Pairs of an order and an item, as the program writes them.
        branches: The ``if`` statement that carries out one order.
    """

    written: list[str]
    branches: str


def _shelf_orders(w: Writer, shelf: str, pool: Sequence[str], acts: list[tuple[str, str]]) -> _Orders:
    """Returns random orders: adding, taking and, with the level, more of ``acts``."""
    used = w.sample([act for act in acts if act[0] not in ("take", "add")], w.grow(1, 4))
    take = "taken.append({0}.pop(0))" if w.level > 5 else "{0}.pop()"
    used = [
        ("add", f"{shelf}.append(item)"),
        ("take", f"if len({shelf}) > 1:\n    {take.format(shelf)}"),
        *used,
    ]
    orders = w.picks(used, w.size(3, 13))
    items = iter(w.picks(pool, len(orders)))
    written = [
        f'("{name}", "{next(items)}")' if name in ("add", "front") else f'("{name}", "")'
        for name, _ in orders
    ]
    branches = [
        under(f'{"if" if k == 0 else "elif"} order == "{name}":', act.replace('"$item"', "item"))
        for k, (name, act) in enumerate(dict(orders).items())
    ]
    return _Orders(written, join(*branches))


def ordered_shelf(w: Writer, shelf: str, start: list[str], orders: _Orders) -> str:
    """Shelf that a list of orders changes once."""
    report = f"print(order, {shelf})" if w.level < 7 else f"print(order, len({shelf}))"
    return _shelf_program(w, shelf, start, orders, _order_loop(orders, report))


def daily_shelf(w: Writer, shelf: str, start: list[str], orders: _Orders, rounds: int, limit: int) -> str:
    """Shelf that the same list of orders changes every day, with a limit to its length."""
    loop = fill(
        """
        for day in range(1, $stop):
            $inner
            if len($shelf) > $limit:
                $shelf = $shelf[-$limit:]
            $tell
        """,
        stop=rounds + 1,
        inner=_order_loop(orders, ""),
        shelf=shelf,
        limit=limit,
        tell=w.tell("day", "day", f"len({shelf})", f"{shelf}[0]"),
    )
    return _shelf_program(w, shelf, start, orders, loop)


def _order_loop(orders: _Orders, report: str) -> str:
    """Returns the loop that carries out the orders once."""
    return fill(
        """
        for order, item in orders:
            $branches
            $report
        """,
        branches=orders.branches,
        report=report,
    )


def _shelf_program(w: Writer, shelf: str, start: list[str], orders: _Orders, loop: str) -> str:
    """Returns the program: a shelf, orders, the loop over them, and the prints after the loop."""
    body = fill(
        """
        $data
        $taken
        $orders
        $loop
        print($end)
        $last
        """,
        data=spread(shelf, list(map(quoted, start))),
        taken=w.at(6, "taken = []"),
        orders=spread("orders", orders.written),
        loop=loop,
        end=shelf,
        last=w.at(6, "print(len(taken), taken[-3:])"),
    )
    return program(w.main(body))


def merges(w: Writer) -> str:
    """Program that makes one list of two."""
    left = sorted(w.numbers(w.size(2, 9), 1, 40))
    right = sorted(w.picks([*left[:2], *w.numbers(4, 1, 40)], w.size(2, 9)))
    if w.level < 4:
        return compared_lists(w, left, right)
    used = w.sample(list(_MERGES), 1 if w.level < 6 else 2)
    rounds = w.size(1, 16) if w.level > 4 else 1
    if rounds == 1:
        return merged_once(w, left, right, used)
    return merged_in_turns(w, left, used, rounds)


def compared_lists(w: Writer, left: list[int], right: list[int]) -> str:
    """Loop over one list that makes a third with the help of another."""
    result, act = w.choice(
        (
            ("common", "if x in b:\n    common.append(x)"),
            ("pairs", "pairs.append(x + b[0])"),
            ("only", "if x not in b:\n    only.append(x)"),
            ("mixed", "mixed.append(x)\nmixed.append(b[-1])"),
            ("bigger", "if x > b[0]:\n    bigger.append(x)"),
        )
    )
    return program(
        fill(
            """
            a = $left
            b = $right
            $result = []
            for x in a:
                $act
                $report
            print($result)
            """,
            left=left[:5],
            right=right[:5],
            result=result,
            act=act,
            report=w.at(2, f"print(x, len({result}))" if w.chance(50) else f"print({result})"),
        )
    )


def merged_once(w: Writer, left: list[int], right: list[int], used: list[str]) -> str:
    """One or two functions that merge two lists, each called once."""
    body = fill(
        """
        first = $left
        second = $right
        both = $call(first, second)
        print(both)
        $more
        print(len(both), sum(both))
        """,
        left=left,
        right=right,
        call=used[0],
        more=f"both = {used[-1]}(both, first)\nprint(both)" if len(used) > 1 else "",
    )
    return program(*_merge_functions(used), w.main(body))


def merged_in_turns(w: Writer, left: list[int], used: list[str], rounds: int) -> str:
    """List that functions merge with a new list in every turn."""
    a, b, m = w.between(3, 9), w.between(5, 13), w.between(20, 50)
    pieces = w.at(7, f"for part in chunks(both, {w.between(2, 4)}):\n    total += max(part)")
    body = fill(
        """
        total = 0
        both = $left
        for turn in range(1, $stop):
            other = [(turn * $a + i * $b) % $m for i in range($count)]
            $sort
            both = $first(both, other)
            $second
            $pieces
            $cut
            $tell
        $show
        """,
        left=left,
        stop=rounds + 1,
        a=a,
        b=b,
        m=m,
        count=w.size(2, 7),
        sort="other.sort()" if "merge" in used else "",
        first=used[0],
        second=f"both = {used[-1]}(both, other)" if len(used) > 1 else "",
        pieces=pieces or "total += both[-1]",
        cut=f"if len(both) > {(limit := w.between(8, 14))}:\n"
        f"    both = {w.choice((f'both[:{limit - 3}]', f'both[-{limit - 3}:]', 'both[::2]'))}",
        tell=w.tell("turn", "turn", w.choice(("len(both)", "both[0]")), "both[-1]"),
        show=w.show("total", "total"),
    )
    chunks = define("chunks(values, size)", _CHUNKS) if pieces else ""
    return program(*_merge_functions(used), chunks, w.main(body))


def _merge_functions(used: list[str]) -> list[str]:
    """Returns the definitions of the merging functions with these names."""
    return [define(f"{name}(a, b)", _MERGES[name]) for name in used]


def bowls(w: Writer) -> str:
    """Program that moves stones around bowls."""
    name = w.choice(("bowls", "cups", "jars", "boxes", "pits"))
    count = w.between(3, 4) if w.level < 4 else w.between(4, 8)
    stones = w.numbers(count, 1, w.level + 1 if w.level < 4 else 6)
    if w.level == 1:
        return emptied_bowl(w, name, stones)
    if w.level < 4:
        return sown_once(w, name, stones)
    return sown_in_turns(w, name, stones)


def emptied_bowl(w: Writer, name: str, stones: list[int]) -> str:
    """Bowl that is emptied by one statement after another."""
    count = len(stones)
    emptied = w.below(count)
    return program(
        fill(
            """
            $name = $stones
            hand = $name[$emptied]
            $name[$emptied] = 0
            $act
            print($name)
            """,
            name=name,
            stones=stones,
            emptied=emptied,
            act=w.choice(
                (
                    f"{name}[{(emptied + 1) % count}] += hand",
                    f"{name}.append(hand)",
                    f"for i in range({count}):\n    {name}[i] += {w.between(1, 2)}"
                    if count < 4
                    else f"{name}[0] += hand * 2",
                    f"{name}[-1] += hand - 1\n{name}[0] += 1",
                    f"{name}.insert({w.below(3)}, hand)\nprint(len({name}))",
                )
            ),
        )
    )


def sown_once(w: Writer, name: str, stones: list[int]) -> str:
    """Loop that sows the stones of one bowl into the next ones."""
    end = w.choice((f"print({name})", f"print({name}, place)", f"print({name}[0], {name}[-1])"))
    more = w.choice(
        (f"{name}[place] += {w.between(1, 4)}", f"{name}.append({name}.pop(0))", f"print({name}[place])")
    )
    return program(
        fill(
            "$name = $stones\nplace = $place\n$sow\n$report\n$more\n$end",
            name=name,
            stones=stones,
            place=w.below(len(stones)),
            sow=_SOW,
            report=w.at(3, f"print({name})"),
            more=w.at(3, more),
            end=end,
        )
    )


def sown_in_turns(w: Writer, name: str, stones: list[int]) -> str:
    """Game of turns, each of which sows one bowl; from level 7 on a function sows."""
    bonus = w.at(
        5,
        w.choice(
            (
                f"if {name}[place] == 1:\n    home += 1\n    {name}[place] = 0",
                f"if {name}[place] % 2 == 0:\n    home += {name}[place]\n    {name}[place] = 1",
                f"if {name}[place] > {w.between(3, 7)}:\n    home += 2\n    {name}[place] -= 2",
            )
        ),
    )
    turns = w.size(2, 70)
    apart = w.level >= 7
    report = f"print({name})" if w.chance(50) else w.tell("turn", "turn", "place", name)
    body = fill(
        """
        $name = $stones
        place = $place
        $home
        for turn in range(1, $stop):
            $sow
            $bonus
            $move
            $report
        print($name)
        $shows
        """,
        name=name,
        stones=stones,
        place=w.below(len(stones)),
        home="home = 0" if bonus else "",
        stop=turns + 1,
        sow=f"place = sow({name}, place)" if apart else _SOW,
        bonus=bonus,
        move=w.choice(
            (
                f"place = (place + {w.between(1, 3)}) % len({name})",
                f"place = {name}.index(max({name}))",
                f"place = turn % len({name})",
            )
        ),
        report=w.sometimes("turn", turns, report),
        shows=w.show("home", "home") if bonus else "",
    )
    function = define(f"sow({name}, place)", join(fill(_SOW, name=name), "return place"))
    return program(function if apart else "", w.main(body))


FAMILY = Family(
    "lists",
    (Template(readings), Template(circles), Template(shelves), Template(merges), Template(bowls)),
)
