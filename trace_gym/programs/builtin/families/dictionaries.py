"""Dictionaries: stock, counts, leagues, friends, signposts, grades."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from trace_gym.programs.builtin.vocabulary import (
    CITIES,
    COURSES,
    FRUITS,
    GOODS,
    PEOPLE,
    TEAMS,
    THEMES,
    up_to,
)
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

#: Statements that fill an order; ``$s`` is the store.
_ORDER_RULES = (
    "if $s[item] >= amount:\n    $s[item] -= amount\nelse:\n    missing += 1",
    "if amount > $s[item]:\n    missing += amount - $s[item]\n    $s[item] = 0\n"
    "else:\n    $s[item] -= amount",
    "$s[item] -= amount\nif $s[item] < 0:\n    missing += 1\n    $s[item] += 20",
)


class _Counter(NamedTuple):
    """A function that makes a dictionary from words.

    Attributes:
        body: The function's body.
        use: Statements that call it and print all of the result.
        summary: Statements that call it and print one line.
    """

    body: str
    use: str
    summary: str


_COUNTERS = {
    "count_letters": _Counter(
        """
        counts = {}
        for word in words:
            for letter in word:
                counts[letter] = counts.get(letter, 0) + 1
        return counts
        """,
        "letters = count_letters(words)\nfor letter in sorted(letters):\n"
        "    if letters[letter] > $few:\n        print(letter, letters[letter])",
        "letters = count_letters(words)\nprint(turn, len(letters), max(letters.values()))",
    ),
    "group_by_length": _Counter(
        """
        groups = {}
        for word in words:
            size = len(word)
            if size not in groups:
                groups[size] = []
            groups[size].append(word)
        return groups
        """,
        "groups = group_by_length(words)\nfor size in sorted(groups):\n    print(size, $group)",
        "groups = group_by_length(words)\nprint(turn, sorted(groups))",
    ),
    "positions": _Counter(
        """
        places = {}
        for i, word in enumerate(words):
            places.setdefault(word, []).append(i)
        return places
        """,
        "places = positions(words)\nfor word in places:\n    total = 0\n    for place in places[word]:\n"
        "        total += place * $factor\n    print(word, places[word], total)",
        "places = positions(words)\nprint(turn, len(places), words[0])",
    ),
    "next_words": _Counter(
        """
        table = {}
        for word, after in zip(words, words[1:]):
            table.setdefault(word, {})
            table[word][after] = table[word].get(after, 0) + 1
        return table
        """,
        "table = next_words(words)\nfor word in table:\n"
        "    best = max(table[word], key=table[word].get)\n    print(word, best, len(table[word]))",
        "table = next_words(words)\nprint(turn, len(table), words[-1])",
    ),
}

#: Loops over people: the variable, its first value and what is done for each person; ``$name`` is the table.
_FRIEND_LOOPS = (
    ("total", "0", "total += len($name[person])"),
    ("mutual", "0", "for other in $name[person]:\n    if person in $name[other]:\n        mutual += 1"),
    ("known", "{}", "for other in $name[person]:\n    known[other] = known.get(other, 0) + 1"),
    ("most", '""', 'if most == "" or len($name[person]) > len($name[most]):\n    most = person'),
)


def _pairs(keys: Sequence[str], values: Sequence[object]) -> list[str]:
    """Returns the items of a dictionary as written in a program."""
    return [f'"{key}": {value}' for key, value in zip(keys, values, strict=True)]


class _Store(NamedTuple):
    """A store and its orders.

    Attributes:
        name: The variable that has the store.
        data: The assignment of the store, a dictionary from items to amounts.
        orders: The assignment of ``orders``, a list of pairs of an item and an amount.
    """

    name: str
    data: str
    orders: str


def stock(w: Writer) -> str:
    """Returns a program about a store, its orders and its refills, by level."""
    items = w.sample(w.choice((GOODS, FRUITS)), w.grow(2, 6))
    amounts = [w.between(1, 30) for _ in items]
    name = w.choice(("stock", "pantry", "shelf", "store", "basket"))
    data = spread(name, _pairs(items, amounts), "{}")
    if w.level < 3:
        return stock_changed(w, name, data, items)
    count = w.size(2, 11)
    orders = zip(w.picks(items, count), w.numbers(count, 1, 14), strict=True)
    store = _Store(name, data, spread("orders", [f'("{item}", {amount})' for item, amount in orders]))
    rule = fill(w.choice(_ORDER_RULES), s=name)
    days = w.size(1, 14) if w.level > 5 else 1
    refill = _refill(w, name)
    serve = _serve(w, name)
    if w.level < 7 and days == 1:
        return orders_filled(w, store, rule)
    if w.level < 7:
        return orders_filled_daily(w, store, rule, refill, days)
    if days == 1:
        return orders_served(w, store, serve)
    return orders_served_daily(w, store, serve, refill, days)


def stock_changed(w: Writer, name: str, data: str, items: list[str]) -> str:
    """Store changed by two or three statements, then printed at once or item by item."""
    other = w.choice([*items, w.choice(GOODS)])
    acts = w.sample(
        [
            f'{name}["{items[0]}"] += {w.between(1, 20)}',
            f'{name}["{items[1]}"] = {name}["{items[0]}"] {w.choice("+-*")} {w.between(2, 9)}',
            f'{name}["{w.choice(GOODS)}"] = {w.between(1, 9)}',
            f'last = {name}.pop("{items[1]}")\n{name}["{items[0]}"] += last',
            f'{name}["{items[0]}"] = {name}.get("{other}", 0) + {w.between(1, 9)}',
        ],
        w.level + 1,
    )
    acts.sort(key=lambda act: "pop" in act)
    end = w.choice(
        (f"print({name})", f"print(len({name}), sum({name}.values()))", f"print(max({name}.values()))")
    )
    loop = f"for item in {name}:\n    print(item, {name}[item]{w.choice(('', ' * 2', ' + 1', ' % 5'))})"
    return program(join(data, *acts, end if w.level == 1 else loop))


def _refill(w: Writer, name: str) -> str:
    """Returns statements that refill a store at the end of a day."""
    return w.choice(
        (
            f"for item in {name}:\n"
            f"    if {name}[item] < {w.between(3, 8)}:\n        {name}[item] += {w.between(10, 25)}",
            f"low = min({name}, key={name}.get)\n{name}[low] += {w.between(10, 30)}",
            f"for item in {name}:\n    {name}[item] += day % 3",
        )
    )


def _serve(w: Writer, name: str) -> str:
    """Returns the function ``serve``, which sells at most the amount in the store."""
    return define(
        f"serve({name}, item, amount)",
        """
        $doc
        if $s[item] >= amount:
            $s[item] -= amount
            return amount
        sold = $s[item]
        $s[item] = 0
        return sold
        """,
        s=name,
        doc=w.maybe(5, '"""Take what is there, at most the amount asked for."""', 40),
    )


def orders_filled(w: Writer, store: _Store, rule: str) -> str:
    """Store and one day's orders, the stock printed after each."""
    loop = under("for item, amount in orders:", join(rule, f"print(item, {store.name}[item])"))
    return program(w.main(_orders_body(w, store, "missing", loop)))


def orders_filled_daily(w: Writer, store: _Store, rule: str, refill: str, days: int) -> str:
    """Store and several days' orders, with a refill each day."""
    loop = _daily(w, store, "missing", rule, refill, days)
    return program(w.main(_orders_body(w, store, "missing", loop)))


def orders_served(w: Writer, store: _Store, serve: str) -> str:
    """Store and one day's orders, each served by a function."""
    loop = under("for item, amount in orders:", f"sold += serve({store.name}, item, amount)")
    return program(serve, w.main(_orders_body(w, store, "sold", loop)))


def orders_served_daily(w: Writer, store: _Store, serve: str, refill: str, days: int) -> str:
    """Store and several days' orders, each served by a function, with a refill each day."""
    loop = _daily(w, store, "sold", f"sold += serve({store.name}, item, amount)", refill, days)
    return program(serve, w.main(_orders_body(w, store, "sold", loop)))


def _daily(w: Writer, store: _Store, tally: str, rule: str, refill: str, days: int) -> str:
    """Returns a loop over days with all orders, their amounts different each day."""
    amount = f"amount = (amount + {w.between(1, 7)} * day) % {w.between(11, 17)}"
    return under(
        f"for day in range(1, {days + 1}):",
        join(
            under("for item, amount in orders:", join(amount, rule)),
            refill,
            w.tell("day", "day", tally, f"sum({store.name}.values())"),
        ),
    )


def _orders_body(w: Writer, store: _Store, tally: str, loop: str) -> str:
    """Returns the main part of a program about orders."""
    return fill(
        """
        $data
        $orders
        $tally = 0
        $loop
        $show
        $rest
        """,
        data=store.data,
        orders=store.orders,
        tally=tally,
        loop=loop,
        show=w.show(tally, tally),
        rest=f"for item in sorted({store.name}):\n    print(item, {store.name}[item])"
        if w.chance(60)
        else f"print({store.name})",
    )


def counts(w: Writer) -> str:
    """Returns a program about words that are counted or grouped, by level."""
    pool = up_to(w.choice(THEMES), w.size(4, 9))
    chosen = w.sample(pool, min(len(pool), w.grow(2, 5)))
    text = " ".join(w.picks(chosen, w.size(2, 18)))
    key = w.choice(("word", "len(word)", "word[0]", "word[-1]", "len(word) % 3"))
    names = ("counts", "tally", "seen", "groups")
    name = w.choice(names[:3] if key == "word" else names)
    if w.level < 6:
        return words_counted(w, text, key, name)
    used = w.sample(list(_COUNTERS), 1 if w.level < 7 else 2 if w.level < 10 else 3)
    if w.level < 8:
        return words_in_tables(w, text, used)
    return words_in_tables_by_turn(w, text, used)


def words_counted(w: Writer, text: str, key: str, name: str) -> str:
    """Loop over words that counts, groups or numbers them by a key."""
    act = w.choice(
        (
            "$n[$k] = $n.get($k, 0) + 1",
            "if $k in $n:\n    $n[$k] += 1\nelse:\n    $n[$k] = 1",
            "if $k not in $n:\n    $n[$k] = []\n$n[$k].append(word)" if key != "word" else "$n[$k] = len($n)",
        )
    )
    many = "append" in act
    size = f"len({name}[key])" if many else f"{name}[key]"
    ranked = w.choice(
        (
            f"for key in sorted({name}):\n    print(key, {name}[key])",
            f'best = max({name}, key=lambda key: {size})\nprint("best:", best)',
            f"for key, value in {name}.items():\n"
            f"    if {'len(value)' if many else 'value'} > 1:\n        print(key, value)",
        )
    )
    body = fill(
        """
        text = "$text"
        $n = {}
        for word in text.split():
            $act
            $report
        print($n)
        $ranked
        """,
        text=text,
        n=name,
        k=key,
        act=act,
        report=w.at(3, f"print(word, len({name}))") if w.chance(50) else "",
        ranked=w.at(4, ranked),
    )
    return program(w.main(body))


def words_in_tables(w: Writer, text: str, used: list[str]) -> str:
    """Words that functions put into dictionaries, all of each printed."""
    uses = _counter_uses(w, used)
    # Not used, but drawn: each id keeps its program.
    _word_change(w)
    return program(*_counters(used), w.main(join(f'words = "{text}".split()', uses)))


def words_in_tables_by_turn(w: Writer, text: str, used: list[str]) -> str:
    """Words that functions put into dictionaries each turn and that change between turns."""
    rounds = w.size(2, 9)
    uses = _counter_uses(w, used)
    change = _word_change(w)
    summaries = join(*(_COUNTERS[name].summary for name in used))
    loop = under(f"for turn in range({rounds}):", join(summaries, change))
    return program(*_counters(used), w.main(join(f'words = "{text}".split()', loop, uses)))


def _counters(used: list[str]) -> list[str]:
    """Returns the functions of these names."""
    return [define(f"{name}(words)", _COUNTERS[name].body) for name in used]


def _counter_uses(w: Writer, used: list[str]) -> str:
    """Returns statements that call the functions and print all of their results."""
    return fill(
        join(*(_COUNTERS[name].use for name in used)),
        few=w.between(1, 3) if w.level < 9 else w.between(3, 5),
        group=w.choice(("groups[size]", "len(groups[size])", "groups[size][-1]")),
        factor=w.between(1, 5),
    )


def _word_change(w: Writer) -> str:
    """Returns a statement that changes the words after a turn."""
    return w.choice(
        (
            "words = words[1:] + [words[0][::-1]]",
            "words = [word[1:] + word[0] for word in words]",
            "words = words[::2] + words[1::2]",
            f"words.append(words[turn % len(words)] + words[0][:{w.between(1, 2)}])",
        )
    )


def league(w: Writer) -> str:
    """Returns a program about matches and points, by level."""
    teams = w.sample(TEAMS, w.grow(2, 6))
    win, draw = w.choice(((3, 1), (2, 1), (4, 2)))
    if w.level < 6:
        return matches_listed(w, teams, win, draw)
    return season(w, teams, win, draw)


def matches_listed(w: Writer, teams: list[str], win: int, draw: int) -> str:
    """Loop over a list of matches that adds up points."""
    stream = w.fork()
    matches = []
    for _ in range(w.size(1, 8)):
        home, away = stream.sample(teams, 2)
        matches.append(f'("{home}", "{away}", {stream.below(5)}, {stream.below(5)})')
    with_goals = w.level > 3 and w.chance(60)
    body = fill(
        """
        $points
        $matches
        for home, away, a, b in matches:
            if a > b:
                points[home] += $win
            elif a < b:
                points[away] += $win
            $draw
            $goals
            $report
        $last
        """,
        points=spread("points", _pairs(teams, [0] * len(teams)), "{}"),
        matches=spread("matches", matches),
        win=win,
        draw=w.at(3, f"else:\n    points[home] += {draw}\n    points[away] += {draw}"),
        goals=f"points[home] += a // {w.between(2, 4)}" if with_goals else "",
        report=w.at(
            3,
            w.choice(
                (
                    "print(home, points[home])",
                    "print(away, points[away])",
                    "print(a - b, points[home], points[away])",
                )
            ),
        ),
        last=w.choice(
            (
                "print(points)",
                "for team in points:\n    print(team, points[team])",
                "print(max(points, key=points.get))",
            )
        ),
    )
    return program(w.main(body))


def season(w: Writer, teams: list[str], win: int, draw: int) -> str:
    """Season of days on which all teams play each other, with the leader of each day."""
    a, b, c = w.between(2, 9), w.between(2, 9), w.between(3, 6)
    goals = define(
        "goals(home, away, day)", f"return (home * {a} + away * {b} + day * {w.between(1, 5)}) % {c}"
    )
    days = w.size(1, 12)
    count = min(len(teams), w.size(2, 6))
    body = fill(
        """
        $teams
        table = {}
        for team in teams:
            table[team] = {"points": 0, "for": 0}
        for day in range(1, $stop):
            for i, home in enumerate(teams):
                for j, away in enumerate(teams):
                    if $when:
                        play(table, home, away, goals(i, j, day), goals(j, i, day))
            leader = max(teams, key=lambda team: table[team]["points"])
            $tell
        ranking = sorted(teams, key=lambda team: (-table[team]["points"], team))
        for team in ranking:
            print(team, table[team]["points"], table[team]["for"])
        """,
        teams=spread("teams", [quoted(team) for team in teams[:count]]),
        stop=days + 1,
        when=w.choice(("i < j", "i != j", f"i < j and (i + j + day) % {w.between(2, 3)} != 0")),
        tell=w.tell("day", "day", "leader", 'table[leader]["points"]'),
    )
    return program(goals, _play(win, draw), w.main(body))


def _play(win: int, draw: int) -> str:
    """Returns the function ``play``, which notes a match in the table."""
    return define(
        "play(table, home, away, scored, conceded)",
        """
        table[home]["for"] += scored
        table[away]["for"] += conceded
        if scored > conceded:
            table[home]["points"] += $win
        elif scored < conceded:
            table[away]["points"] += $win
        else:
            table[home]["points"] += $draw
            table[away]["points"] += $draw
        """,
        win=win,
        draw=draw,
    )


def friends(w: Writer) -> str:
    """Returns a program about who knows whom, by level."""
    people = w.sample(up_to(PEOPLE, 5), w.size(2 if w.level < 3 else 3, 10))
    links = _links(w, people)
    name = w.choice(("friends", "knows", "follows", "calls"))
    data = spread(
        name, [f'"{person}": [{", ".join(map(quoted, others))}]' for person, others in links.items()], "{}"
    )
    if w.level < 5:
        return friends_counted(w, name, data)
    distances = _distances(w, name)
    if w.level == 5:
        return friends_reached(w, people[0], data, distances)
    if w.level < 8:
        return distances_added(w, name, people, data, distances)
    return distances_and_pairs(w, name, data, distances)


def _links(w: Writer, people: list[str]) -> dict[str, list[str]]:
    """Returns the friends of each person."""
    links = {
        person: [other for other in w.shuffled(people) if other != person][
            : w.between(0 if i else 1, 3 if w.level > 2 else 2)
        ]
        for i, person in enumerate(people)
    }
    for before, after in pairwise(people):
        if after not in links[before] and w.chance(70):
            links[before].insert(0, after)
    return links


def friends_counted(w: Writer, name: str, data: str) -> str:
    """Loop over people that counts or compares their friends."""
    result, first, act = w.choice(_FRIEND_LOOPS)
    body = fill(
        """
        $data
        $result = $first
        for person in $name:
            $act
            $report
        $show
        """,
        data=data,
        result=result,
        first=first,
        name=name,
        act=act,
        report=w.at(3, "print(person, len($name[person]))"),
        show="print(known)" if result == "known" else w.show(result, result),
    )
    return program(body)


def _distances(w: Writer, name: str) -> str:
    """Returns the function ``distances``, which counts the steps to everyone who can be reached."""
    return define(
        "distances(start)",
        """
        $doc
        found = {start: 0}
        waiting = [start]
        while waiting:
            person = waiting.pop($end)
            for other in $name[person]:
                if other not in found:
                    found[other] = found[person] + 1
                    waiting.append(other)
        return found
        """,
        doc=w.maybe(5, '"""Count the steps to everyone who can be reached."""', 50),
        end=w.choice(("0", "0", "")),
        name=name,
    )


def friends_reached(w: Writer, first: str, data: str, distances: str) -> str:
    """People reached from one person, each with the number of steps."""
    body = fill(
        """
        for start in ["$first"]:
            steps = distances(start)
            for person in steps:
                print(person, steps[person])
        """,
        first=first,
    )
    return program(data, distances, w.main(body))


def distances_added(w: Writer, name: str, people: list[str], data: str, distances: str) -> str:
    """People reached from two people or from all, with a sum of the longest ways."""
    starts = name if w.level > 6 else strings(people[:2])
    return program(data, distances, w.main(_distance_loop(w, starts, "print(start, steps)")))


def distances_and_pairs(w: Writer, name: str, data: str, distances: str) -> str:
    """People reached from all people, and the pairs with the most friends in common."""
    shared = define(
        "shared(first, second)",
        """
        count = 0
        for other in $name[first]:
            if other in $name[second]:
                count += 1
        return count
        """,
        name=name,
    )
    pairs = fill(
        """
        best = 0
        for first in $name:
            for second in $name:
                if first < second and shared(first, second) > best:
                    best = shared(first, second)
                    print(first, second, best)
        """,
        name=name,
    )
    loop = _distance_loop(w, name, "print(start, len(steps), sum(steps.values()))")
    return program(data, distances, shared, w.main(join(loop, pairs)))


def _distance_loop(w: Writer, starts: str, shown: str) -> str:
    """Returns a loop over people that prints ``shown`` or another line, and adds up the longest ways."""
    return fill(
        """
        total = 0
        for start in $starts:
            steps = distances(start)
            total += max(steps.values())
            $shown
        $show
        """,
        starts=starts,
        shown=w.choice((shown, "print(start, len(steps))", "print(start, max(steps.values()))")),
        show=w.show("total", "total"),
    )


class _Road(NamedTuple):
    """Places with a signpost each.

    Attributes:
        name: The variable that has the signposts.
        signposts: The assignment of the signposts, a dictionary from place to place.
        costs: The assignment of ``cost``, a dictionary from places to tolls.
        start: The first place.
    """

    name: str
    signposts: str
    costs: str
    start: str


def signposts(w: Writer) -> str:
    """Returns a program about a path from signpost to signpost, by level."""
    places = w.sample(CITIES, w.between(3, 4) if w.level < 4 else w.grow(4, 8))
    order = w.shuffled(places)
    after = [order[(order.index(place) + w.between(1, 2)) % len(order)] for place in places]
    costs = [w.between(2, 30) for _ in places]
    name = w.choice(("next_stop", "route", "road", "leads_to"))
    changes = _road_changes(w, name)
    road = _Road(
        name,
        signposts=spread(name, _pairs(places, list(map(quoted, after))), "{}"),
        costs=spread("cost", _pairs(places, costs), "{}"),
        start=places[0],
    )
    if w.level < 3:
        return path(w, road)
    return path_with_tolls(w, road, "" if w.level < 4 else changes)


def _road_changes(w: Writer, name: str) -> str:
    """Returns statements that change signposts, tolls or the place on the way."""
    changes = w.some(
        [
            "visits[here] = visits.get(here, 0) + 1\nif visits[here] > $n:\n    $r[here] = start",
            "if cost[here] % 2 == 0:\n    cost[here] += $k",
            "if here == start:\n    rounds += 1\n    $r[start] = places[rounds % len(places)]",
            "if hop % $m == 0:\n    here = places[hop % len(places)]",
        ],
        -1,
        4,
    )
    return fill(changes, r=name, n=w.between(2, 5), k=w.between(1, 5), m=w.between(4, 9))


def path(w: Writer, road: _Road) -> str:
    """Path along signposts."""
    hops = w.size(2, 90)
    body = fill(
        """
        $signposts
        here = "$start"
        for hop in range(1, $stop):
            here = $r[here]
            $report
        print($end)
        """,
        signposts=road.signposts,
        start=road.start,
        stop=hops + 1,
        r=road.name,
        report=w.at(2, w.sometimes("hop", hops, "print(here)")),
        end=w.choice(("here", f"here, {road.name}[here]")),
    )
    return program(w.main(body))


def path_with_tolls(w: Writer, road: _Road, changes: str) -> str:
    """Path along signposts with tolls, and with changes on the way."""
    hops = w.size(2, 90)
    visits = "visits" in changes
    body = fill(
        """
        $signposts
        $costs
        $places
        $first
        here = "$start"
        $zeros
        for hop in range(1, $stop):
            here = $r[here]
            paid += cost[here]
            $changes
            $report
        print(here, paid)
        $last
        """,
        signposts=road.signposts,
        costs=road.costs,
        places=f"places = sorted({road.name})" if "places[" in changes else "",
        first=f'start = "{road.start}"' if "start" in changes else "",
        start=road.start,
        zeros=join("paid = 0", "visits = {}" if visits else "", "rounds = 0" if "rounds" in changes else ""),
        stop=hops + 1,
        r=road.name,
        changes=changes,
        report=w.sometimes("hop", hops, "print(hop, here, paid)"),
        last="for place in sorted(visits):\n    print(place, visits[place])" if visits else "",
    )
    return program(w.main(body))


def grades(w: Writer) -> str:
    """Returns a program about people's marks in courses, by level."""
    people = w.sample(PEOPLE, 2 if w.level < 3 else w.size(2, 9) if w.level < 7 else w.size(2, 4))
    courses = w.sample(
        COURSES, w.between(1, 2) if w.level < 4 else w.grow(2, 4) if w.level < 7 else w.between(2, 3)
    )
    marks = {person: [w.between(30, 99) for _ in courses] for person in people}
    if w.level < 3:
        data, act = _two_marks(w, people)
        return marks_of_one(w, people, data, act) if w.level == 1 else marks_of_two(w, data, act)
    rows = [f'"{person}": {{{", ".join(_pairs(courses, row))}}}' for person, row in marks.items()]
    data = spread("marks", rows, "{}")
    limit = w.between(45, 75)
    adjust = _adjust(w)
    if w.level == 3:
        return marks_added(w, courses, data)
    if w.level < 7:
        return marks_averaged(w, data, limit)
    return marks_by_term(w, courses, data, limit, adjust)


def _two_marks(w: Writer, people: list[str]) -> tuple[str, str]:
    """Returns an assignment of two marks for each person, and a print for ``$person``."""
    rows = [f"[{', '.join(map(str, w.numbers(2, 30, 99)))}]" for _ in people]
    act = w.choice(
        (
            "print($person, sum(marks[$person]))",
            "print($person, max(marks[$person]))",
            "print($person, marks[$person][0] - marks[$person][1])",
            f"marks[$person].append({w.between(40, 90)})\nprint($person, min(marks[$person]))",
        )
    )
    return spread("marks", _pairs(people, rows), "{}"), act


def marks_of_one(w: Writer, people: list[str], data: str, act: str) -> str:
    """Marks of two people, changed twice, with a print for one of them."""
    first, second = map(quoted, people)
    changes = join(
        f"marks[{first}].append({w.between(40, 90)})",
        w.choice(
            (
                f"marks[{first}][0] += {w.between(1, 9)}",
                f"marks[{second}].append(marks[{first}][1])",
                f"marks[{second}] = marks[{first}]",
            )
        ),
    )
    return program(join(data, changes, fill(act, person=first)))


def marks_of_two(w: Writer, data: str, act: str) -> str:
    """Marks of two people, changed and printed in a loop."""
    bonus = w.choice(
        (
            f"marks[person].append({w.between(40, 90)})",
            f"marks[person][0] += {w.between(2, 9)}",
            "marks[person].sort()",
        )
    )
    loop = under("for person in marks:", join(bonus, fill(act, person="person")))
    return program(join(data, loop, "print(len(marks))"))


def _adjust(w: Writer) -> str:
    """Returns the function ``adjust``, which adds a bonus to a mark."""
    return define(
        "adjust(row, course, bonus)",
        """
        row[course] += bonus
        if row[course] > 100:
            row[course] = row[course] % 100 + $low
        return row[course]
        """,
        low=w.between(30, 60),
    )


def marks_added(w: Writer, courses: list[str], data: str) -> str:
    """Sum of each person's marks, and the best mark of one course."""
    body = fill(
        """
        $data
        best = 0
        for person in marks:
            best = max(best, marks[person]["$course"])
            print(person, sum(marks[person].values()))
        $show
        """,
        data=data,
        course=courses[0],
        show=w.show("best", "best"),
    )
    return program(w.main(body))


def marks_averaged(w: Writer, data: str, limit: int) -> str:
    """Mean of each person's marks, and who has passed."""
    return program(_average(), w.main(_passed(w, data, limit)))


def marks_by_term(w: Writer, courses: list[str], data: str, limit: int, adjust: str) -> str:
    """Mean of each person's marks, and terms that add bonuses."""
    best_in = w.at(
        8,
        """
        def best_in(marks, course):
            winner = None
            for person in marks:
                if winner is None or marks[person][course] > marks[winner][course]:
                    winner = person
            return winner
        """,
    )
    best = w.at(8, f"for course in {strings(courses)}:\n    print(course, best_in(marks, course))")
    terms = fill(
        """
        total = 0
        for term in range(1, $stop):
            for person in marks:
                for course in marks[person]:
                    bonus = (term * $a + len(person) + len(course)) % $m
                    total += adjust(marks[person], course, bonus)
            $tell
        $show
        """,
        stop=w.size(2, 14) + 1,
        a=w.between(2, 9),
        m=w.between(9, 25),
        tell=w.tell(
            "term", "term", "total" if w.chance(50) or w.level < 8 else f'best_in(marks, "{courses[0]}")'
        ),
        show=w.show("total", "total"),
    )
    return program(_average(), best_in, adjust, w.main(join(_passed(w, data, limit), best, terms)))


def _average() -> str:
    """Returns the function ``average`` over a person's marks."""
    return define(
        "average(row)",
        """
        total = 0
        for course in row:
            total += row[course]
        return total // len(row)
        """,
    )


def _passed(w: Writer, data: str, limit: int) -> str:
    """Returns statements that print each person's mean and who has passed."""
    return fill(
        """
        $data
        passed = []
        for person in marks:
            mean = average(marks[person])
            if mean > $limit:
                passed.append(person)
            print(person, mean)
        $show
        """,
        data=data,
        limit=limit,
        show=w.show("passed", "passed"),
    )


FAMILY = Family(
    "dictionaries",
    (
        Template(stock),
        Template(counts),
        Template(league),
        Template(friends),
        Template(signposts),
        Template(grades),
    ),
)
