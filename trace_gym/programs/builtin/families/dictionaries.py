"""Dictionaries: stock, counts, leagues, friends, signposts, grades."""

from __future__ import annotations

from itertools import pairwise

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


def _pairs(keys: list[str], values: list[object]) -> list[str]:
    return [f'"{key}": {value}' for key, value in zip(keys, values, strict=True)]


def stock(w: Writer) -> str:
    """A store room, its orders and its refills."""
    items = w.sample(w.choice((GOODS, FRUITS)), w.grow(2, 6))
    amounts = [w.between(1, 30) for _ in items]
    name = w.choice(("stock", "pantry", "shelf", "store", "basket"))
    data = spread(name, _pairs(items, list(amounts)), "{}")
    if w.level < 3:
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
    count = w.size(2, 11)
    orders = list(zip(w.picks(items, count), w.numbers(count, 1, 14), strict=True))
    rule = w.choice(
        (
            "if $s[item] >= amount:\n    $s[item] -= amount\nelse:\n    missing += 1",
            "if amount > $s[item]:\n    missing += amount - $s[item]\n"
            "    $s[item] = 0\nelse:\n    $s[item] -= amount",
            "$s[item] -= amount\nif $s[item] < 0:\n    missing += 1\n    $s[item] += 20",
        )
    )
    days = w.size(1, 14) if w.level > 5 else 1
    refill = w.choice(
        (
            f"for item in $s:\n    if $s[item] < {w.between(3, 8)}:\n        $s[item] += {w.between(10, 25)}",
            f"low = min($s, key=$s.get)\n$s[low] += {w.between(10, 30)}",
            "for item in $s:\n    $s[item] += day % 3",
        )
    )
    apart = w.level > 6
    serve = define(
        "serve($s, item, amount)",
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
    change = f"amount = (amount + {w.between(1, 7)} * day) % {w.between(11, 17)}" if days > 1 else ""
    loop = under(
        "for item, amount in orders:", join(change, f"sold += serve({name}, item, amount)" if apart else rule)
    )
    if days == 1 and not apart:
        loop += f"\n    print(item, {name}[item])"
    tally = "sold" if apart else "missing"
    body = fill(
        """
        $data
        $orders
        $tally = 0
        $loop
        $show
        $rest
        """,
        data=data,
        orders=spread("orders", [f'("{item}", {amount})' for item, amount in orders]),
        tally=tally,
        loop=under(
            f"for day in range(1, {days + 1}):",
            join(loop, refill, w.tell("day", "day", tally, f"sum({name}.values())")),
        )
        if days > 1
        else loop,
        s=name,
        show=w.show(tally, tally),
        rest=f"for item in sorted({name}):\n    print(item, {name}[item])"
        if w.chance(60)
        else f"print({name})",
    )
    return program(serve if apart else "", w.main(body))


def counts(w: Writer) -> str:
    """How often words and letters occur, and words grouped by what they share."""
    pool = up_to(w.choice(THEMES), w.size(4, 9))
    chosen = w.sample(pool, min(len(pool), w.grow(2, 5)))
    text = " ".join(w.picks(chosen, w.size(2, 18)))
    key = w.choice(("word", "len(word)", "word[0]", "word[-1]", "len(word) % 3"))
    name = (
        w.choice(("counts", "tally", "seen", "groups"))
        if key != "word"
        else w.choice(("counts", "tally", "seen"))
    )
    if w.level < 6:
        act = w.choice(
            (
                "$n[$k] = $n.get($k, 0) + 1",
                "if $k in $n:\n    $n[$k] += 1\nelse:\n    $n[$k] = 1",
                "if $k not in $n:\n    $n[$k] = []\n$n[$k].append(word)"
                if key != "word"
                else "$n[$k] = len($n)",
            )
        )
        many = "append" in act
        size = f"len({name}[key])" if many else f"{name}[key]"
        ranked = w.choice(
            (
                f"for key in sorted({name}):\n    print(key, {name}[key])",
                f'best = max({name}, key=lambda key: {size})\nprint("best:", best)',
                f"for key, value in {name}.items():\n"
                f"    if {'len(value)' if many else 'value'} > 1:\n"
                f"        print(key, value)",
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
    functions = {
        "count_letters": """
            counts = {}
            for word in words:
                for letter in word:
                    counts[letter] = counts.get(letter, 0) + 1
            return counts
            """,
        "group_by_length": """
            groups = {}
            for word in words:
                size = len(word)
                if size not in groups:
                    groups[size] = []
                groups[size].append(word)
            return groups
            """,
        "positions": """
            places = {}
            for i, word in enumerate(words):
                places.setdefault(word, []).append(i)
            return places
            """,
        "next_words": """
            table = {}
            for word, after in zip(words, words[1:]):
                table.setdefault(word, {})
                table[word][after] = table[word].get(after, 0) + 1
            return table
            """,
    }
    uses = {
        "count_letters": "letters = count_letters(words)\n"
        "for letter in sorted(letters):\n"
        "    if letters[letter] > $few:\n"
        "        print(letter, letters[letter])",
        "group_by_length": "groups = group_by_length(words)\nfor size in sorted(groups):\n"
        "    print(size, $group)",
        "positions": "places = positions(words)\nfor word in places:\n    total = 0\n"
        "    for place in places[word]:\n"
        "        total += place * $factor\n"
        "    print(word, places[word], total)",
        "next_words": "table = next_words(words)\nfor word in table:\n"
        "    best = max(table[word], key=table[word].get)\n"
        "    print(word, best, len(table[word]))",
    }
    used = w.sample(list(functions), 1 if w.level < 7 else 2 if w.level < 10 else 3)
    turns = w.size(2, 9) if w.level > 7 else 1
    inside = fill(
        join(*(uses[name] for name in used)),
        few=w.between(1, 3) if w.level < 9 else w.between(3, 5),
        group=w.choice(("groups[size]", "len(groups[size])", "groups[size][-1]")),
        factor=w.between(1, 5),
    )
    change = w.choice(
        (
            "words = words[1:] + [words[0][::-1]]",
            "words = [word[1:] + word[0] for word in words]",
            "words = words[::2] + words[1::2]",
            f"words.append(words[turn % len(words)] + words[0][:{w.between(1, 2)}])",
        )
    )
    body = fill(
        """
        words = "$text".split()
        $rest
        """,
        text=text,
        rest=inside
        if turns == 1
        else under(f"for turn in range({turns}):", join(_summaries(used), change)) + "\n" + inside,
    )
    return program(*(define(f"{name}(words)", functions[name]) for name in used), w.main(body))


def _summaries(used: list[str]) -> str:
    """A line for each function, where all of its result would be too much."""
    lines = {
        "count_letters": "letters = count_letters(words)\nprint(turn, len(letters), max(letters.values()))",
        "group_by_length": "groups = group_by_length(words)\nprint(turn, sorted(groups))",
        "positions": "places = positions(words)\nprint(turn, len(places), words[0])",
        "next_words": "table = next_words(words)\nprint(turn, len(table), words[-1])",
    }
    return join(*(lines[name] for name in used))


def league(w: Writer) -> str:
    """Matches, points and a table."""
    teams = w.sample(TEAMS, w.grow(2, 6))
    win, draw = w.choice(((3, 1), (2, 1), (4, 2)))
    if w.level < 6:
        matches = []
        stream = w.fork()
        for _ in range(w.size(1, 8)):
            home, away = stream.sample(teams, 2)
            matches.append(f'("{home}", "{away}", {stream.below(5)}, {stream.below(5)})')
        goals = w.level > 3 and w.chance(60)
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
            goals=f"points[home] += a // {w.between(2, 4)}" if goals else "",
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
    a, b, c = w.between(2, 9), w.between(2, 9), w.between(3, 6)
    score = define(
        "goals(home, away, day)", f"return (home * {a} + away * {b} + day * {w.between(1, 5)}) % {c}"
    )
    play = define(
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
            $leader
            $tell
        $ranking
        for team in ranking:
            print(team, table[team]["points"], table[team]["for"])
        """,
        teams=spread("teams", [quoted(team) for team in teams[:count]]),
        stop=days + 1,
        when=w.choice(("i < j", "i != j", f"i < j and (i + j + day) % {w.between(2, 3)} != 0")),
        leader='leader = max(teams, key=lambda team: table[team]["points"])',
        tell=w.tell("day", "day", "leader", 'table[leader]["points"]'),
        ranking='ranking = sorted(teams, key=lambda team: (-table[team]["points"], team))',
    )
    return program(score, play, w.main(body))


def friends(w: Writer) -> str:
    """Who knows whom, and who is reached over how many steps."""
    count = w.size(2 if w.level < 3 else 3, 10)
    people = w.sample(up_to(PEOPLE, 5), count)
    links = {
        person: [other for other in w.shuffled(people) if other != person][
            : w.between(0 if i else 1, 3 if w.level > 2 else 2)
        ]
        for i, person in enumerate(people)
    }
    for before, after in pairwise(people):
        if after not in links[before] and w.chance(70):
            links[before].insert(0, after)
    name = w.choice(("friends", "knows", "follows", "calls"))
    data = spread(
        name, [f'"{person}": [{", ".join(map(quoted, others))}]' for person, others in links.items()], "{}"
    )
    if w.level < 5:
        body = fill(
            """
            $data
            $zero
            for person in $name:
                $act
                $report
            $show
            """,
            **w.choice(
                (
                    {
                        "zero": "total = 0",
                        "act": f"total += len({name}[person])",
                        "show": w.show("total", "total"),
                    },
                    {
                        "zero": "mutual = 0",
                        "act": f"for other in {name}[person]:\n    if person in {name}[other]:\n"
                        f"        mutual += 1",
                        "show": w.show("mutual", "mutual"),
                    },
                    {
                        "zero": "known = {}",
                        "act": f"for other in {name}[person]:\n    known[other] = known.get(other, 0) + 1",
                        "show": "print(known)",
                    },
                    {
                        "zero": 'most = ""',
                        "act": f'if most == "" or len({name}[person]) > len({name}[most]):\n'
                        f"    most = person",
                        "show": w.show("most", "most"),
                    },
                )
            ),
            data=data,
            name=name,
            report=w.at(3, f"print(person, len({name}[person]))"),
        )
        return program(body)
    reach = define(
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
    common = define(
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
    starts = name if w.level > 6 else f'["{people[0]}"]' if w.level < 6 else strings(people[:2])
    pairs = """
        best = 0
        for first in $name:
            for second in $name:
                if first < second and shared(first, second) > best:
                    best = shared(first, second)
                    print(first, second, best)
        """
    body = fill(
        """
        $total
        for start in $starts:
            steps = distances(start)
            $add
            $shown
        $show
        $pairs
        """,
        total=w.at(6, "total = 0"),
        starts=starts,
        add=w.at(6, "total += max(steps.values())"),
        shown="for person in steps:\n    print(person, steps[person])"
        if w.level < 6
        else w.choice(
            (
                "print(start, steps)" if w.level < 8 else "print(start, len(steps), sum(steps.values()))",
                "print(start, len(steps))",
                "print(start, max(steps.values()))",
            )
        ),
        show=w.at(6, w.show("total", "total")),
        pairs=w.at(8, pairs),
        name=name,
    )
    return program(data, reach, common if w.level > 7 else "", w.main(body))


def signposts(w: Writer) -> str:
    """A path from entry to entry, with tolls on the way."""
    places = w.sample(CITIES, w.between(3, 4) if w.level < 4 else w.grow(4, 8))
    order = w.shuffled(places)
    table = {place: order[(order.index(place) + w.between(1, 2)) % len(order)] for place in places}
    costs = {place: w.between(2, 30) for place in places}
    name = w.choice(("next_stop", "route", "road", "leads_to"))
    hops = w.size(2, 90)
    start = places[0]
    toll = w.level > 2
    extra = w.some(
        [
            "visits[here] = visits.get(here, 0) + 1\nif visits[here] > $n:\n    $r[here] = start",
            "if cost[here] % 2 == 0:\n    cost[here] += $k",
            "if here == start:\n    rounds += 1\n    $r[start] = places[rounds % len(places)]",
            "if hop % $m == 0:\n    here = places[hop % len(places)]",
        ],
        -1,
        4,
    )
    if w.level < 4:
        extra = ""
    body = fill(
        """
        $table
        $costs
        $places
        $start
        here = "$first"
        $zeros
        for hop in range(1, $stop):
            here = $r[here]
            $pay
            $extra
            $report
        print($end)
        $last
        """,
        table=spread(name, _pairs(places, [quoted(table[place]) for place in places]), "{}"),
        costs=spread("cost", _pairs(places, [costs[place] for place in places]), "{}") if toll else "",
        places=f"places = sorted({name})" if "places[" in extra else "",
        start=f'start = "{start}"' if "start" in extra else "",
        first=start,
        zeros=join(
            "paid = 0" if toll else "",
            "visits = {}" if "visits" in extra else "",
            "rounds = 0" if "rounds" in extra else "",
        ),
        stop=hops + 1,
        r=name,
        n=w.between(2, 5),
        k=w.between(1, 5),
        m=w.between(4, 9),
        pay="paid += cost[here]" if toll else "",
        extra=extra,
        report=w.at(2, w.sometimes("hop", hops, "print(hop, here, paid)" if toll else "print(here)")),
        end="here, paid" if toll else w.choice(("here", f"here, {name}[here]")),
        last="for place in sorted(visits):\n    print(place, visits[place])" if "visits" in extra else "",
    )
    return program(w.main(body))


def grades(w: Writer) -> str:
    """Marks in courses: averages, best of each, who has passed."""
    people = w.sample(PEOPLE, 2 if w.level < 3 else w.size(2, 9) if w.level < 7 else w.size(2, 4))
    courses = w.sample(
        COURSES, w.between(1, 2) if w.level < 4 else w.grow(2, 4) if w.level < 7 else w.between(2, 3)
    )
    marks = {person: {course: w.between(30, 99) for course in courses} for person in people}
    if w.level < 3:
        data = spread(
            "marks", _pairs(people, [f"[{', '.join(map(str, w.numbers(2, 30, 99)))}]" for _ in people]), "{}"
        )
        act = w.choice(
            (
                "print(person, sum(marks[person]))",
                "print(person, max(marks[person]))",
                "print(person, marks[person][0] - marks[person][1])",
                f"marks[person].append({w.between(40, 90)})\nprint(person, min(marks[person]))",
            )
        )
        if w.level == 1:
            act = join(
                f'marks["{people[0]}"].append({w.between(40, 90)})',
                w.choice(
                    (
                        f'marks["{people[0]}"][0] += {w.between(1, 9)}',
                        f'marks["{people[1]}"].append(marks["{people[0]}"][1])',
                        f'marks["{people[1]}"] = marks["{people[0]}"]',
                    )
                ),
                act,
            )
            return program(
                join(
                    data,
                    act.replace("person]", f'"{people[0]}"]').replace("print(person", f'print("{people[0]}"'),
                )
            )
        bonus = w.choice(
            (
                f"marks[person].append({w.between(40, 90)})",
                f"marks[person][0] += {w.between(2, 9)}",
                "marks[person].sort()",
            )
        )
        return program(join(data, under("for person in marks:", join(bonus, act)), "print(len(marks))"))
    data = spread(
        "marks",
        [
            f'"{person}": {{{", ".join(_pairs(list(row), list(row.values())))}}}'
            for person, row in marks.items()
        ],
        "{}",
    )
    limit = w.between(45, 75)
    average = define(
        "average(row)",
        """
        total = 0
        for course in row:
            total += row[course]
        return total // len(row)
        """,
    )
    best = define(
        "best_in(marks, course)",
        """
        winner = None
        for person in marks:
            if winner is None or marks[person][course] > marks[winner][course]:
                winner = person
        return winner
        """,
    )
    adjust = define(
        "adjust(row, course, bonus)",
        """
        row[course] += bonus
        if row[course] > 100:
            row[course] = row[course] % 100 + $low
        return row[course]
        """,
        low=w.between(30, 60),
    )
    terms = w.size(2, 14) if w.level > 6 else 1
    mean = "mean" if w.level > 3 else "sum(marks[person].values())"
    body = fill(
        """
        $data
        $passed
        for person in marks:
            $value
            $test
            print(person, $mean)
        $final
        $passed_show
        $best
        $terms
        """,
        data=data,
        passed="passed = []" if w.level > 3 else "best = 0",
        value="mean = average(marks[person])" if w.level > 3 else "",
        test=f"if mean > {limit}:\n    passed.append(person)"
        if w.level > 3
        else f'best = max(best, marks[person]["{courses[0]}"])',
        mean=mean,
        final=w.show("best", "best") if w.level < 4 else "",
        passed_show=w.at(4, w.show("passed", "passed")),
        best=w.at(
            8, f"for course in {courses}:\n    print(course, best_in(marks, course))".replace("'", '"')
        ),
        terms=fill(
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
            stop=terms + 1,
            a=w.between(2, 9),
            m=w.between(9, 25),
            tell=w.tell(
                "term", "term", "total" if w.chance(50) or w.level < 8 else f'best_in(marks, "{courses[0]}")'
            ),
            show=w.show("total", "total"),
        )
        if terms > 1
        else "",
    )
    return program(
        average if w.level > 3 else "", best if w.level > 7 else "", adjust if terms > 1 else "", w.main(body)
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
