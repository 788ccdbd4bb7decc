"""Lists: readings, circles, shelves, merges, bowls."""

from __future__ import annotations

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


def readings(w: Writer) -> str:
    """Measured values: sums, peaks, and filters over them."""
    name = w.choice(("readings", "values", "samples", "prices", "heights", "scores", "levels"))
    if w.level < 5:
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
    used = w.sample(list(_FILTERS), 1 if w.level < 6 else 2 if w.level < 9 else 3)
    values = w.numbers(w.size(3, 10), 1, 60)
    rounds = w.size(1, 14)
    steps = "\n".join(f"{name} = {filter_}({name})" for filter_ in used)
    if len(used) > 1 and w.chance(60):
        steps = fill(
            "if turn % $n == 0:\n    $a\nelse:\n    $b",
            n=w.between(2, 3),
            a=f"{name} = {used[0]}({name})",
            b="\n".join(f"{name} = {filter_}({name})" for filter_ in used[1:]),
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
        else "\n".join(f"{name} = {filter_}({name})" for filter_ in used),
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
    """Who is left when every k-th in a circle has to go."""
    pool = w.choice((PEOPLE, ANIMALS, COLOURS, SHIPS))
    circle, person = w.choice((("circle", "out"), ("line", "gone"), ("players", "loser"), ("ring", "picked")))
    step = w.between(1, 4)
    if w.level < 3:
        names = w.sample(pool, w.size(3, 5))
        acts = w.sample(
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
        if w.level == 1:
            return program(f"{circle} = {strings(names)}", "\n".join([*acts, f"print({circle})"]))
        body = "$data\nfor turn in range($turns):\n    $acts\nprint($circle)"
        return program(
            fill(
                body,
                data=spread(circle, list(map(quoted, names))),
                turns=w.size(2, 4),
                acts="\n".join(act for act in acts if "pop(" not in act or "append" in act) or acts[0],
                circle=circle,
            )
        )
    people = w.sample(pool, min(w.size(3, 13), len(pool)))
    if w.level < 7:
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
    """A list that is changed by a list of orders."""
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
        lines = [fill(act, item=w.choice(pool)) for _, act in w.sample(acts, 2 * w.level + 1)]
        end = w.sample(
            (f"print({shelf})", f"print(len({shelf}))", f"print({shelf}[-1])", f"print({shelf}[0])"), 2
        )
        if w.level == 2:
            lines.insert(
                2, f"for item in {shelf}:\n    print(item{w.choice(('', ', len(item)', '.upper()'))})"
            )
            end = end[:1]
        return program(join(f"{shelf} = {strings(start[: 4 - w.level])}", *lines, *end[: w.level]))
    used = w.sample([act for act in acts if act[0] not in ("take", "add")], w.grow(1, 4))
    used = [("add", f"{shelf}.append(item)"), ("take", f"if len({shelf}) > 1:\n    {shelf}.pop()"), *used]
    if w.level > 5:
        used[1] = ("take", f"if len({shelf}) > 1:\n    taken.append({shelf}.pop(0))")
    orders = w.picks(used, w.size(3, 13))
    needs_item = ("add", "front")
    items = iter(w.picks(pool, len(orders)))
    written = [
        f'("{name}", "{next(items)}")' if name in needs_item else f'("{name}", "")' for name, _ in orders
    ]
    seen = dict.fromkeys(name for name, _ in orders)
    branches = [
        under(f'{"if" if k == 0 else "elif"} order == "{name}":', dict(used)[name].replace('"$item"', "item"))
        for k, name in enumerate(seen)
    ]
    rounds = w.size(1, 14) if w.level > 6 else 1
    inner = fill(
        """
        for order, item in orders:
            $branches
            $report
        """,
        branches=join(*branches),
        report=""
        if rounds > 1
        else f"print(order, {shelf})"
        if w.level < 7
        else f"print(order, len({shelf}))",
    )
    limit = w.between(5, 8)
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
        orders=spread("orders", written),
        loop=inner
        if rounds == 1
        else fill(
            "for day in range(1, $stop):\n    $inner\n"
            "    if len($shelf) > $limit:\n"
            "        $shelf = $shelf[-$limit:]\n    $tell",
            stop=rounds + 1,
            inner=inner,
            shelf=shelf,
            limit=limit,
            tell=w.tell("day", "day", f"len({shelf})", f"{shelf}[0]"),
        ),
        end=shelf,
        last=w.at(6, "print(len(taken), taken[-3:])"),
    )
    return program(w.main(body))


def merges(w: Writer) -> str:
    """Two lists made into one, and one into pieces."""
    left = sorted(w.numbers(w.size(2, 9), 1, 40))
    right = sorted(w.picks([*left[:2], *w.numbers(4, 1, 40)], w.size(2, 9)))
    if w.level < 4:
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
    pool = {
        "merge(a, b)": """
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
        "interleave(a, b)": """
            result = []
            for i in range(max(len(a), len(b))):
                if i < len(a):
                    result.append(a[i])
                if i < len(b):
                    result.append(b[i])
            return result
            """,
        "without(a, b)": """
            result = []
            for x in a:
                if x not in b and x not in result:
                    result.append(x)
            return result + b[-2:]
            """,
        "longer(a, b)": """
            result = []
            for x, y in zip(a, b):
                result.append(max(x, y))
            return result + a[len(b):] + b[len(a):]
            """,
    }
    chunk = define(
        "chunks(values, size)",
        """
        result = []
        for start in range(0, len(values), size):
            result.append(values[start:start + size])
        return result
        """,
    )
    used = w.sample(list(pool), 1 if w.level < 6 else 2)
    calls = [head.replace("(a, b)", "") for head in used]
    rounds = w.size(1, 16) if w.level > 4 else 1
    if rounds == 1:
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
            call=calls[0],
            more=f"both = {calls[-1]}(both, first)\nprint(both)" if len(used) > 1 else "",
        )
        return program(*(define(head, pool[head]) for head in used), w.main(body))
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
        sort="other.sort()" if "merge" in calls else "",
        first=calls[0],
        second=f"both = {calls[-1]}(both, other)" if len(used) > 1 else "",
        pieces=pieces or "total += both[-1]",
        cut=f"if len(both) > {(limit := w.between(8, 14))}:\n"
        f"    both = {w.choice((f'both[:{limit - 3}]', f'both[-{limit - 3}:]', 'both[::2]'))}",
        tell=w.tell("turn", "turn", w.choice(("len(both)", "both[0]")), "both[-1]"),
        show=w.show("total", "total"),
    )
    return program(*(define(head, pool[head]) for head in used), chunk if pieces else "", w.main(body))


def bowls(w: Writer) -> str:
    """Stones moved around bowls."""
    name = w.choice(("bowls", "cups", "jars", "boxes", "pits"))
    count = w.between(3, 4) if w.level < 4 else w.between(4, 8)
    stones = w.numbers(count, 1, w.level + 1 if w.level < 4 else 6)
    if w.level == 1:
        source = w.below(count)
        return program(
            fill(
                """
                $name = $stones
                hand = $name[$source]
                $name[$source] = 0
                $act
                print($name)
                """,
                name=name,
                stones=stones,
                source=source,
                act=w.choice(
                    (
                        f"{name}[{(source + 1) % count}] += hand",
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
    turns = w.size(2, 70)
    sow = """
        hand = $name[place]
        $name[place] = 0
        while hand > 0:
            place = (place + 1) % len($name)
            $name[place] += 1
            hand -= 1
        """
    if w.level < 4:
        end = w.choice((f"print({name})", f"print({name}, place)", f"print({name}[0], {name}[-1])"))
        more = w.choice(
            (f"{name}[place] += {w.between(1, 4)}", f"{name}.append({name}.pop(0))", f"print({name}[place])")
        )
        text = "$name = $stones\nplace = $place\n$sow\n$report\n$more\n$end"
        return program(
            fill(
                text,
                name=name,
                stones=stones,
                place=w.below(count),
                sow=sow,
                report=w.at(3, f"print({name})"),
                more=w.at(3, more),
                end=end,
            )
        )
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
        $last
        $shows
        """,
        name=name,
        stones=stones,
        place=w.below(count),
        home="home = 0" if bonus else "",
        stop=turns + 1,
        sow=f"place = sow({name}, place)" if apart else sow,
        bonus=bonus,
        move=w.choice(
            (
                f"place = (place + {w.between(1, 3)}) % len({name})",
                f"place = {name}.index(max({name}))",
                f"place = turn % len({name})",
            )
        ),
        report=w.sometimes("turn", turns, report),
        last=f"print({name})",
        shows=w.show("home", "home") if bonus else "",
    )
    function = define("sow($name, place)", join(fill(sow, name=name), "return place"), name=name)
    return program(function if apart else "", w.main(body))


FAMILY = Family(
    "lists",
    (Template(readings), Template(circles), Template(shelves), Template(merges), Template(bowls)),
)
