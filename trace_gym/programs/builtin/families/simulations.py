"""Simulations: robots, queues, populations, journeys, rows of cells, games of cards and dice.

The order and the number of draws decide which program a task id has. Some draws therefore stay although one
of the programs ignores them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trace_gym.programs.builtin.vocabulary import ANIMALS, CITIES, PEOPLE, PLANTS, ROBOTS, SHIPS
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

_BLOCKED = define(
    "blocked(x, y)",
    "return x < 0 or y < 0 or x >= SIZE or y >= SIZE or (x, y) in WALLS",
)

_NEXT_FLOOR = define(
    "next_floor(floor, calls, up)",
    """
    above = [call for call in calls if call > floor]
    below = [call for call in calls if call < floor]
    if up and above:
        return floor + 1, True
    if below:
        return floor - 1, False
    if above:
        return floor + 1, True
    return floor, up
    """,
)

_EXCHANGE = define(
    "exchange(aboard, stop, waiting)",
    """
    leaving = [name for name in aboard if name == stop]
    aboard = [name for name in aboard if name != stop]
    while waiting[stop] and len(aboard) < SEATS:
        aboard.append(waiting[stop].pop(0))
    return aboard, len(leaving)
    """,
)

_DRIVE = define(
    "drive(road)",
    """
    cars = list(road)
    moved = 0
    for i in range(len(road)):
        ahead = (i + 1) % len(road)
        if road[i] == ">" and road[ahead] == ".":
            cars[i], cars[ahead] = ".", ">"
            moved += 1
    return "".join(cars), moved
    """,
)


def robots(w: Writer) -> str:
    """Program with a robot that walks over a floor."""
    name = w.choice(ROBOTS)
    size = w.between(4, 8)
    turns = w.choice((("dx, dy = dy, -dx", "dx, dy = -dy, dx"), ("dx, dy = -dy, dx", "dx, dy = dy, -dx")))
    if w.level > 3:
        return robot_on_a_floor(w, name, size, *turns)
    walk = "".join(w.picks(("F", "F", "L", "R"), w.size(1, 8)))
    return moved_robot(w, size) if w.level == 1 else walking_robot(w, walk, *turns)


def moved_robot(w: Writer, size: int) -> str:
    """Robot whose place three statements change."""
    axis = w.choice("xy")
    acts = w.sample(
        (
            f"{axis} += {w.between(2, 9)}",
            f"{axis} -= {w.between(1, 5)}",
            f"x, y = y, x + {w.between(1, 5)}",
            "x, y = -y, x",
            f"y = (y + {w.between(3, 9)}) % {size}",
            f"if x > y:\n    y += {w.between(2, 6)}",
            "battery -= abs(x) + abs(y)",
        ),
        3,
    )
    battery = any("battery" in act for act in acts)
    return program(
        join(
            f"x, y = {w.below(5)}, {w.below(5)}",
            f"battery = {w.between(20, 60)}" if battery else "",
            *acts,
            "print(x, y, battery)" if battery else "print(x, y)",
        )
    )


def walking_robot(w: Writer, walk: str, left: str, right: str) -> str:
    """Robot that follows a string of moves on an open floor."""
    body = fill(
        """
        x, y = $x, $y
        dx, dy = $way
        for $step in "$walk":
            if $step == "F":
                x, y = x + dx, y + dy
            elif $step == "L":
                $left
            $other
            $report
        print(x, y)
        """,
        x=w.below(20),
        y=w.below(20),
        way=w.choice(("1, 0", "0, 1", "-1, 0", "0, -1", "2, 0", "0, 3", "1, 1")),
        step=(step := w.choice(("step", "move", "turn", "order"))),
        walk=walk,
        left=left,
        other=w.at(3, f"else:\n    {right}"),
        report=w.at(2, f"print({step}, x, y)"),
    )
    return program(body)


def robot_on_a_floor(w: Writer, name: str, size: int, left: str, right: str) -> str:
    """Robot on a floor with walls, and from level 6 on with things to pick up."""
    walls = sorted({place for place in _places(w, 5, size) if place != (0, 0)})
    things = [place for place in _places(w, 4, size) if place not in walls and place != (0, 0)]
    pick = w.level > 5
    stuck = w.choice((right, left))
    constants = f"SIZE = {size}\nWALLS = {walls[: 3 if w.level < 7 else 5]}"
    turns = w.size(2, 90)
    extra = w.choice(
        (
            f"if turn % {w.between(3, 8)} == 0:\n    {left}",
            f"if (x + y) % {w.between(3, 6)} == 0:\n    {right}",
            f"if bumps < {w.between(5, 20)} and x == y:\n    dx, dy = dy, dx",
            "",
        )
    )
    body = fill(
        """
        x = y = 0
        dx, dy = 1, 0
        bumps = 0
        $things
        for turn in range(1, $stop):
            if blocked(x + dx, y + dy):
                bumps += 1
                $stuck
            else:
                x += dx
                y += dy
            $pick
            $extra
            $report
        print("$name", x, y, bumps)
        $end
        """,
        things=f"things = {things}\nbag = 0" if pick else "",
        stop=turns + 1,
        stuck=stuck,
        pick="if (x, y) in things:\n    things.remove((x, y))\n    bag += turn" if pick else "",
        extra=extra,
        report=w.sometimes(
            "turn", turns, w.choice(("print(turn, x, y)", "print(turn, x, y, bumps)", "print(turn, (x, y))"))
        ),
        name=name,
        end="print(len(things), bag)" if pick else "",
    )
    return program(constants, _BLOCKED, w.main(body))


def _places(w: Writer, count: int, size: int) -> list[tuple[int, int]]:
    """Returns random places on a square floor, which may repeat."""
    return list(zip(w.numbers(count, 0, size - 1), w.numbers(count, 0, size - 1), strict=True))


def queues(w: Writer) -> str:
    """Program with people who wait to be served."""
    place = w.choice(("shop", "bank", "bridge", "ferry", "clinic", "cafe"))
    a, b, m = w.between(2, 9), w.between(1, 9), w.between(5, 11)
    if w.level < 5:
        return counted_queue(w)
    people = w.sample(PEOPLE, 4)
    minutes = w.size(3, 60)
    desks = 1 if w.level < 8 else w.between(2, 3)
    functions = _arrivals(w, a, b, m), _service_time(w)
    if desks == 1:
        return one_desk(w, functions, place, minutes)
    return several_desks(w, functions, people[:desks], minutes)


def counted_queue(w: Writer) -> str:
    """Number of people waiting, updated for a list of arrivals."""
    arrivals = w.numbers(w.size(2, 9), 0, 6)
    served = w.between(1, 4)
    limited = w.level > 2
    body = fill(
        """
        waiting = $start
        $lost
        for $who in $arrivals:
            waiting += $who
            $serve
            $limit
            $report
        print($end)
        """,
        start=w.below(4),
        lost="lost = 0" if limited else "",
        who=w.choice(("arrived", "guests", "new")),
        arrivals=arrivals,
        serve=w.choice((f"waiting = max(0, waiting - {served})", f"waiting -= min(waiting, {served})")),
        limit=f"if waiting > {w.between(2, 6)}:\n    lost += 1\n    waiting -= 1" if limited else "",
        report=w.at(2, "print(waiting)" if w.level < 4 else "print(waiting, lost)"),
        end="waiting, lost" if limited else "waiting",
    )
    return program(body)


def _arrivals(w: Writer, a: int, b: int, m: int) -> str:
    """Returns the definition of how many people arrive in a minute."""
    return define(
        "arrivals(minute)",
        w.choice(
            (
                f"return (minute * {a} + {b}) % {m} // {w.between(2, 4)}",
                f"if minute % {w.between(2, 4)} == 0:\n    return {w.between(1, 3)}\nreturn minute % 2",
                f"return 1 if minute * {a} % {m} < {w.between(2, 5)} else 0",
            )
        ),
    )


def _service_time(w: Writer) -> str:
    """Returns the definition of how long a guest keeps a desk busy."""
    return define(
        "service_time(number)",
        w.choice(
            (
                f"return number % {w.between(2, 4)} + 1",
                f"return (number * {w.between(2, 7)}) % {w.between(3, 5)} + 1",
                f"if number % {w.between(3, 5)} == 0:\n"
                f"    return {w.between(3, 5)}\nreturn {w.between(1, 2)}",
            )
        ),
    )


def one_desk(w: Writer, functions: Sequence[str], place: str, minutes: int) -> str:
    """Queue before one desk, with the time that guests waited."""
    body = fill(
        """
        queue = []
        number = served = busy = total = 0
        for minute in range(1, $stop):
            for _ in range(arrivals(minute)):
                number += 1
                queue.append((number, minute))
            if busy > 0:
                busy -= 1
            if busy == 0 and queue:
                guest, since = queue.pop($end)
                busy = service_time(guest)
                total += minute - since
                served += 1
            $leave
            $report
        print("$place", served, len(queue), total)
        """,
        stop=minutes + 1,
        end=w.choice(("0", "0", "-1")),
        leave=w.maybe(6, f"if len(queue) > {w.between(2, 5)}:\n    queue.pop()", 60),
        report=w.sometimes("minute", minutes, "print(minute, len(queue), busy)"),
        place=place,
    )
    return program(*functions, w.main(body))


def several_desks(w: Writer, functions: Sequence[str], people: Sequence[str], minutes: int) -> str:
    """Queue before two or three desks, with the number of guests each person served."""
    body = fill(
        """
        queue = []
        desks = [0] * $desks
        names = [$names]
        number = 0
        served = {name: 0 for name in names}
        for minute in range(1, $stop):
            for _ in range(arrivals(minute)):
                number += 1
                queue.append(number)
            for i, left in enumerate(desks):
                if left > 0:
                    desks[i] -= 1
                elif queue:
                    guest = queue.pop(0)
                    desks[i] = service_time(guest)
                    served[names[i]] += 1
            $report
        print(number, len(queue), desks)
        for name in names:
            print(name, served[name])
        """,
        desks=len(people),
        names=", ".join(map(quoted, people)),
        stop=minutes + 1,
        report=w.sometimes("minute", minutes, "print(minute, len(queue), desks)"),
    )
    return program(*functions, w.main(body))


def populations(w: Writer) -> str:
    """Program with animals or plants whose numbers change every year."""
    first, second = w.sample(ANIMALS, 2)
    plant = w.choice(PLANTS)
    a, b = w.between(10, 60), w.between(2, 12)
    if w.level < 4:
        return one_population(w, first, a)
    grow, hunt, graze, season = _grow(w), _hunt(w), _graze(w), _season(w)
    if w.level < 6:
        return hunters_and_prey(w, (first, second), (a, b), hunt)
    return food_chain(w, (first, second, plant), (a, b), (grow, graze, hunt), season)


def one_population(w: Writer, animal: str, start: int) -> str:
    """Number of one animal, changed every year by one to six rules."""
    name = f"{animal}_count" if animal.endswith(("x", "s", "f")) else f"{animal}s"
    years = w.size(2, 110)
    rules = w.some(
        [
            f"$x += $x // {w.between(3, 6)}",
            f"if $x > {w.between(30, 90)}:\n    $x -= {w.between(5, 25)}",
            f"$x -= {w.between(2, 8)}",
            f"if year % 2 == 0:\n    $x += {w.between(3, 15)}",
        ],
        1,
        6,
    )
    body = fill(
        """
        $x = $start
        for year in range(1, $stop):
            $rules
            $report
        $show
        """,
        x=name,
        start=start,
        stop=years + 1,
        rules=rules,
        report=w.at(2, w.sometimes("year", years, "print(year, $x)")),
        show=w.show(animal, name),
    )
    return program(body)


def _grow(w: Writer) -> str:
    """Returns the definition of how plants grow in a year."""
    return define(
        "grow(plants)",
        f"plants += plants // {w.between(2, 4)} + {w.between(1, 9)}\n"
        f"if plants > {(top := w.between(80, 300))}:\n"
        f"    plants = {top}\nreturn plants",
    )


def _hunt(w: Writer) -> str:
    """Returns the definition of how hunters eat prey in a year."""
    return define(
        "hunt(hunters, prey)",
        """
        caught = min(prey, hunters * prey // $k + $c)
        prey -= caught
        hunters += caught // $d
        hunters -= hunters // $e
        return max(1, hunters), prey
        """,
        k=w.between(60, 150),
        c=w.between(1, 3),
        d=w.between(3, 6),
        e=w.between(4, 9),
    )


def _graze(w: Writer) -> str:
    """Returns the definition of how animals eat plants in a year."""
    return define(
        "graze(animals, plants)",
        f"eaten = min(plants, animals * {w.between(1, 2)})\n"
        f"plants -= eaten\nif eaten < animals:\n"
        f"    animals -= (animals - eaten) // 2 + 1\nelse:\n"
        f"    animals += animals // {w.between(3, 7)}\n"
        f"return max(2, animals), plants",
    )


def _season(w: Writer) -> str:
    """Returns a rule for bad years, or nothing; always nothing below level 6."""
    return w.maybe(
        6,
        w.choice(
            (
                f"if year % {w.between(4, 9)} == 0:\n    plants //= 2",
                f"if prey > {w.between(60, 150)}:\n    prey -= prey // 4\n    sick += 1",
                f"if hunters > {w.between(10, 30)}:\n    hunters -= {w.between(2, 5)}",
            )
        ),
        70,
    )


def hunters_and_prey(w: Writer, names: tuple[str, str], start: tuple[int, int], hunt: str) -> str:
    """Two animals, one of which eats the other."""
    years = w.size(2, 110)
    body = fill(
        """
        prey, hunters = $a, $b
        most = 0
        for year in range(1, $stop):
            prey += prey // $k
            hunters, prey = hunt(hunters, prey)
            most = max(most, prey)
            $report
        print("$first", prey)
        print("$second", hunters)
        $end
        """,
        a=start[0],
        b=start[1],
        stop=years + 1,
        k=w.between(2, 5),
        report=w.sometimes("year", years, "print(year, prey, hunters)"),
        first=names[0],
        second=names[1],
        end=w.show("most", "most"),
    )
    return program(hunt, w.main(body))


def food_chain(
    w: Writer, names: tuple[str, str, str], start: tuple[int, int], functions: Sequence[str], season: str
) -> str:
    """Two animals and a plant: one animal eats the other, which eats the plant."""
    years = w.size(2, 110)
    body = fill(
        """
        prey, hunters = $a, $b
        plants = $plants
        $sick
        most = 0
        for year in range(1, $stop):
            plants = grow(plants)
            prey, plants = graze(prey, plants)
            hunters, prey = hunt(hunters, prey)
            $season
            most = max(most, prey)
            $report
        print("$first", prey)
        print("$second", hunters)
        $end
        """,
        a=start[0],
        b=start[1],
        plants=w.between(40, 160),
        sick="sick = 0" if "sick" in season else "",
        stop=years + 1,
        season=season,
        report=w.sometimes("year", years, "print(year, plants, prey, hunters)"),
        first=names[0],
        second=names[1],
        end=join(w.show(names[2], "plants"), w.show("most", "most")),
    )
    return program(*functions, w.main(body))


def journeys(w: Writer) -> str:
    """Program with a bus, a lift or a ship that takes people from stop to stop."""
    stops = w.sample(CITIES, w.between(3, 6))
    ship = w.choice(SHIPS)
    seats = w.between(4, 12)
    if w.level < 4:
        return bus(w, seats)
    return lift(w) if w.chance(50) else ship_route(w, ship, stops)


def bus(w: Writer, seats: int) -> str:
    """Number of people aboard, updated for a list of stops."""
    on, off = w.numbers(w.size(1, 6), 0, 9), w.numbers(6, 0, 5)
    pairs = ", ".join(f"({a}, {b})" for a, b in zip(on, off, strict=False))
    body = fill(
        """
        aboard = $start
        for on, off in [$pairs]:
            aboard -= min(aboard, off)
            $board
            $report
        print(aboard)
        """,
        start=w.below(6),
        pairs=pairs,
        board=w.choice(
            (
                f"aboard = min({seats}, aboard + on)",
                "aboard += on",
                f"if aboard + on <= {seats}:\n    aboard += on",
            )
        ),
        report=w.at(
            2,
            "print(on, off, aboard)"
            if w.level < 3
            else f'if aboard == {seats}:\n    print("full")\nelse:\n    print(aboard)',
        ),
    )
    return program(body)


def lift(w: Writer) -> str:
    """Lift that answers calls from floors, which keep coming."""
    floors = w.between(5, 9)
    rounds = w.size(1, 46)
    body = fill(
        """
        floor, up = $floor, True
        calls = $calls
        stops = moved = 0
        for tick in range(1, $stop):
            if tick % $k == 0:
                calls.append(tick * $a % $floors)
            if floor in calls:
                stops += 1
                calls = [call for call in calls if call != floor]
            before = floor
            floor, up = next_floor(floor, calls, up)
            moved += abs(floor - before)
            $report
        print(floor, stops, moved, calls)
        """,
        floor=w.below(floors),
        calls=sorted({*w.numbers(3, 0, floors - 1)}),
        stop=rounds + 1,
        k=w.between(2, 5),
        a=w.between(2, 7),
        floors=floors,
        report=w.sometimes("tick", rounds, w.choice(("print(tick, floor, calls)", "print(tick, floor, up)"))),
    )
    return program(_NEXT_FLOOR, w.main(body))


def ship_route(w: Writer, ship: str, stops: list[str]) -> str:
    """Ship that carries people between cities until they arrive."""
    rounds = w.size(1, 46)
    body = fill(
        """
        waiting = {stop: [] for stop in STOPS}
        aboard = []
        carried = 0
        for leg in range(1, $end):
            for i, stop in enumerate(STOPS):
                if (leg + i) % $k == 0:
                    waiting[stop].append(STOPS[(i + leg) % len(STOPS)])
            here = STOPS[leg % len(STOPS)]
            aboard, left = exchange(aboard, here, waiting)
            carried += left
            $storm
            $report
        print("$ship", carried, len(aboard))
        for stop in STOPS:
            print(stop, len(waiting[stop]))
        """,
        end=rounds + 1,
        k=w.between(2, 4),
        storm=w.maybe(7, f"if leg % {w.between(4, 9)} == 0 and aboard:\n    aboard.pop()\n    carried -= 1"),
        report=w.sometimes("leg", rounds, "print(leg, here, len(aboard), carried)"),
        ship=ship,
    )
    cities = ", ".join(map(quoted, stops[: w.size(2, 6)]))
    return program(f"STOPS = [{cities}]\nSEATS = {w.between(2, 5)}", _EXCHANGE, w.main(body))


def cells(w: Writer) -> str:
    """Program with a row of cells, each of which changes with its neighbours."""
    kind = w.choice(("rule", "heat", "sand", "traffic"))
    width = w.size(3, 12) if w.level < 4 else w.size(4, 16)
    rounds = w.size(1, 30)
    if w.level < 4:
        return changed_row(w, width)
    marks = w.choice((("#", "."), ("1", "0"), ("x", "_"), ("o", "-")))
    if kind == "rule":
        return cell_rule(w, width, rounds, *marks)
    if kind == "heat":
        return heat(w, width, rounds)
    if kind == "sand":
        return sand(w)
    return traffic(w, width, rounds)


def changed_row(w: Writer, width: int) -> str:
    """Row of numbers that one loop changes in place."""
    row = w.numbers(width, 0, 9)
    act = w.choice(
        (
            "row[i] = (row[i - 1] + row[i]) % 10",
            "if row[i] > row[i - 1]:\n    row[i] -= 1\n    row[i - 1] += 1",
            "row[i] = abs(row[i] - row[i - 1])",
            "row[i], row[i - 1] = row[i - 1], row[i] + 1",
        )
    )
    if w.level == 1:
        loop = under(f"for i in range(1, {min(len(row), 3)}):", act)
    else:
        report = w.choice(("print(row)", "print(i, row[i])", "print(row[i], sum(row))"))
        loop = under("for i in range(len(row)):", join(act, w.at(3, report)))
    return program(join(f"row = {row}", loop, "print(row)", w.at(2, "print(max(row), row.index(max(row)))")))


def cell_rule(w: Writer, width: int, rounds: int, live: str, dead: str) -> str:
    """Cellular automaton with one of the numbered rules."""
    number = w.choice((18, 22, 26, 30, 45, 54, 57, 60, 73, 90, 102, 105, 106, 110, 120, 126, 150))
    start = ["0"] * width
    for position in w.numbers(2, 0, width - 1):
        start[position] = "1"
    step = define(
        "step(cells)",
        """
        result = []
        for i in range(len(cells)):
            left = cells[i - 1]
            right = cells[(i + 1) % len(cells)]
            pattern = left * 4 + cells[i] * 2 + right
            result.append($number >> pattern & 1)
        return result
        """,
        number=number,
    )
    draw = define(
        "draw(cells)",
        f'text = ""\nfor cell in cells:\n    text += "{live}" if cell else "{dead}"\nreturn text',
    )
    drawn = w.level > 5
    body = fill(
        """
        cells = [$start]
        for turn in range($rounds):
            cells = step(cells)
            print($shown)
        print(sum(cells))
        """,
        start=", ".join(start),
        rounds=max(2, rounds),
        shown="draw(cells)" if drawn else "cells",
    )
    return program(step, draw if drawn else "", w.main(body))


def heat(w: Writer, width: int, rounds: int) -> str:
    """Rod along which heat flows from cell to cell."""
    step = define(
        "step(rod)",
        """
        result = [rod[0]]
        for i in range(1, len(rod) - 1):
            flow = rod[i - 1] + rod[i + 1] - 2 * rod[i]
            result.append(rod[i] + flow // $k)
        result.append(rod[-1])
        return result
        """,
        k=w.between(3, 5),
    )
    body = fill(
        """
        rod = $rod
        for second in range(1, $stop):
            rod = step(rod)
            $cool
            print(second, $shown)
        $end
        """,
        rod=[w.between(60, 100), *w.numbers(min(width, 8) - 2, 0, 30), w.between(0, 20)],
        stop=max(2, rounds) + 1,
        cool=w.maybe(5, f"if second % {w.between(2, 4)} == 0:\n    rod[0] -= {w.between(3, 12)}"),
        shown=w.choice(("rod", "rod[1], rod[-2]", "sum(rod)")),
        end=w.choice(("print(max(rod) - min(rod))", "print(rod[len(rod) // 2])")),
    )
    return program(step, w.main(body))


def sand(w: Writer) -> str:
    """Piles of sand that slide where they are too steep."""
    settle = define(
        "settle(piles)",
        """
        slides = 0
        moving = True
        while moving:
            moving = False
            for i in range(len(piles) - 1):
                if piles[i] - piles[i + 1] > $steep:
                    piles[i] -= 1
                    piles[i + 1] += 1
                    slides += 1
                    moving = True
            $edge
        return slides
        """,
        steep=w.between(1, 2),
        edge="piles[-1] = 0" if w.chance(60) else f"if piles[-1] > {w.between(3, 6)}:\n    piles[-1] = 0",
    )
    body = fill(
        """
        piles = [0] * $width
        total = 0
        for grain in range(1, $stop):
            piles[$where] += $k
            slides = settle(piles)
            total += slides
            $report
        print(piles, total)
        """,
        width=w.size(3, 6),
        stop=w.size(2, 60) + 1,
        where=w.choice(("0", "0", "grain % 2", "grain * 2 % 3")),
        k=w.between(1, 3),
        report=w.sometimes("grain", w.size(2, 60), "print(grain, slides, piles)"),
    )
    return program(settle, w.main(body))


def traffic(w: Writer, width: int, rounds: int) -> str:
    """Circular road on which cars move if the next cell is free."""
    road = "".join(w.picks((">", ".", "."), min(width, 12)))
    if ">" not in road:
        road = ">" + road[1:]
    body = fill(
        """
        road = "$road"
        total = 0
        for second in range(1, $stop):
            road, moved = drive(road)
            total += moved
            $jam
            print($shown)
        $show
        """,
        road=road,
        stop=max(2, rounds) + 1,
        jam=w.maybe(5, f'if second % {w.between(2, 4)} == 0:\n    road = road[:-1] + "{w.choice(">.")}"', 60),
        shown=w.choice(("road, moved", "second, road", "road")),
        show=w.show("total", "total"),
    )
    return program(_DRIVE, w.main(body))


def games(w: Writer) -> str:
    """Program that plays with dice or cards."""
    a, c, m = w.between(1, 9) * 4 + 1, w.between(0, 20) * 2 + 1, w.choice((64, 128, 256))
    names = [name.title() for name in w.sample(PEOPLE, 4)]
    if w.level < 4:
        return listed_throws(w)
    if w.chance(50):
        dice = define("throw(seed)", f"seed = (seed * {a} + {c}) % {m}\nreturn seed, seed // 4 % 6 + 1")
        return board_game(w, names, dice, m)
    return card_game(w, names)


def listed_throws(w: Writer) -> str:
    """Score of a list of throws."""
    throws = w.numbers(w.size(2, 8), 1, 6)
    act, start = w.choice(
        (
            (
                f"if throw == {w.between(1, 6)}:\n    score += {w.between(8, 20)}\nelse:\n    score += throw",
                "score = 0",
            ),
            ("if throw == last:\n    score += throw\nlast = throw", "score = last = 0"),
            (
                f"place += throw\nif place % {w.between(3, 5)} == 0:\n    place -= {w.between(1, 3)}",
                f"place = {w.below(30)}",
            ),
            ("if throw % 2 == 0:\n    score += throw\nelse:\n    score -= 1", f"score = {w.below(9)}"),
            ("best = max(best, throw)\nscore += best", f"score, best = {w.below(30)}, {w.between(1, 4)}"),
        )
    )
    end = "score" if "score" in start else "place"
    body = fill(
        "$start\nfor throw in $throws:\n    $act\n    $report\n$show",
        start=start,
        throws=throws,
        act=act,
        report=w.at(2, f"print(throw, {end})"),
        show=w.show(end, end),
    )
    return program(body)


def board_game(w: Writer, names: list[str], dice: str, seeds: int) -> str:
    """Race of two to four players along a board, from level 6 on with jumps."""
    goal = w.size(6, 130)
    players = names[: 2 if w.level < 7 else w.between(3, 4)]
    ladders = w.level > 5
    jumps = {w.between(3, max(4, goal - 2)): w.between(1, goal) for _ in range(w.between(2, 5))}
    most = w.size(3, 34)
    body = fill(
        """
        places = [$places]
        names = [$names]
        seed = $seed
        turn = 0
        while max(places) < $goal and turn < $most:
            turn += 1
            for i, name in enumerate(names):
                seed, dots = throw(seed)
                $rule
                places[i] += dots
                $jump
            $report
        for name, place in zip(names, places):
            print(name, place)
        print(turn)
        """,
        places=", ".join("0" for _ in players),
        names=", ".join(map(quoted, players)),
        seed=w.between(1, seeds - 1),
        goal=goal,
        most=most,
        rule=w.maybe(
            5,
            w.choice(
                (
                    "if dots == 6:\n    seed, more = throw(seed)\n    dots += more",
                    "if dots == 1:\n    places[i] = max(0, places[i] - 3)\n    continue",
                    f"if places[i] % 2 == 1 and dots > {w.between(2, 4)}:\n    dots //= 2",
                )
            ),
            70,
        ),
        jump="places[i] = JUMPS.get(places[i], places[i])" if ladders else "",
        report=w.sometimes("turn", most, "print(turn, places)"),
    )
    return program(f"JUMPS = {jumps}" if ladders else "", dice, w.main(body))


def card_game(w: Writer, names: list[str]) -> str:
    """Game of two players who each turn over a card and take the trick."""
    high = w.between(9, 13)
    stream = w.fork()
    count = w.size(2, 10)
    deck = stream.sample([*range(1, high + 1), *range(1, high + 1)], min(2 * count, 2 * high))
    play = _play_cards(w, short=count < 6)
    body = fill(
        """
        first = $a
        second = $b
        rounds, ties = play(first, second)
        print("$x", sum(first))
        print("$y", sum(second))
        print(rounds, ties)
        """,
        a=deck[: len(deck) // 2],
        b=deck[len(deck) // 2 :],
        x=names[0],
        y=names[1],
    )
    return program(play, w.main(body))


def _play_cards(w: Writer, short: bool) -> str:
    """Returns the definition of a game of cards; only ``short`` hands may be printed."""
    rule = w.choice(
        (
            "if a > b:\n    first += [a, b]\nelif b > a:\n    second += [b, a]\nelse:\n    ties += 1",
            "if (a + b) % 2 == 0:\n    first += [a, b]\nelse:\n    second += [b, a]",
            "if a > b:\n    first.append(a)\n    second.append(b)\n"
            "elif b > a:\n    second += [b, a]\nelse:\n    ties += 1\n"
            "    first.append(a)",
        )
    )
    most = w.size(2, 110)
    trick = w.maybe(
        6,
        w.choice(
            (
                f"if rounds % {w.between(4, 9)} == 0:\n    first, second = second, first",
                f"if len(first) > {w.between(6, 9)}:\n    second.append(first.pop())",
                f"if rounds % {w.between(3, 7)} == 0 and second:\n    second.append(second.pop(0))",
            )
        ),
        60,
    )
    lengths = "print(rounds, a, b, len(first), len(second))"
    report = w.choice((lengths, "print(rounds, first, second)") if short else (lengths,))
    return define(
        "play(first, second)",
        """
        ties = rounds = 0
        while first and second and rounds < $most:
            rounds += 1
            a, b = first.pop(0), second.pop(0)
            $rule
            $trick
            $report
        return rounds, ties
        """,
        most=most,
        rule=rule,
        trick=trick,
        report=w.sometimes("rounds", most, report),
    )


@dataclass(frozen=True, slots=True)
class _Tank:
    """A store of something that flows in and out.

    Attributes:
        thing: What it stores, also its variable.
        empty: The word that a program prints if the store is almost empty.
        low, high: Where its control switches on and off.
        inflow, outflow: How much flows in and out in an hour.
        hours: How long a program looks at it.
    """

    thing: str
    empty: str
    low: int
    high: int
    inflow: int
    outflow: int
    hours: int


def tanks(w: Writer) -> str:
    """Program with water, heat or the like that flows in and out hour by hour."""
    thing, empty = w.choice((("water", "dry"), ("heat", "cold"), ("fuel", "empty"), ("power", "weak")))
    low, high = w.between(10, 40), w.between(50, 95)
    inflow, outflow = w.between(3, 12), w.between(2, 9)
    tank = _Tank(thing, empty, low, high, inflow, outflow, w.size(2, 90))
    if w.level < 3:
        return flowing_tank(w, tank)
    if w.level < 4:
        return switched_tank(w, tank)
    return controlled_tank(w, tank)


def flowing_tank(w: Writer, tank: _Tank) -> str:
    """Tank that a simple rule changes every hour."""
    thing = tank.thing
    flow = w.choice(
        (
            f"$t += {tank.inflow} - hour",
            f"$t -= {tank.outflow}\nif $t < {tank.low - tank.outflow}:\n    $t += {tank.inflow}",
            f"$t += {tank.inflow}\n$t -= $t // {w.between(3, 8)}",
        )
    )
    body = fill(
        """
        $t = $start
        for hour in range(1, $stop):
            $flow
            $report
        $show
        """,
        t=thing,
        start=tank.low,
        stop=tank.hours + 1,
        flow=flow,
        report=w.at(2, w.sometimes("hour", tank.hours, f"print(hour, {thing})")),
        show=w.show(thing, thing),
    )
    return program(body)


def switched_tank(w: Writer, tank: _Tank) -> str:
    """Tank that is filled until it is full, then emptied."""
    thing = tank.thing
    body = fill(
        """
        $t = $start
        on = True
        for hour in range(1, $stop):
            if on:
                $t += $inflow
            else:
                $t -= $outflow
            if $t > $high:
                on = False
            $report
        $show
        """,
        t=thing,
        start=tank.low,
        stop=tank.hours + 1,
        inflow=tank.inflow,
        outflow=tank.outflow,
        high=tank.low + tank.inflow,
        report=w.sometimes("hour", tank.hours, f"print(hour, {thing})"),
        show=w.show(thing, thing),
    )
    return program(body)


def controlled_tank(w: Writer, tank: _Tank) -> str:
    """Tank that a control switches on and off, from level 8 on with a spare tank."""
    thing, hours = tank.thing, tank.hours
    control, use = _control(w, tank), _use(w)
    two = w.level > 7
    body = fill(
        """
        $t = $start
        $other
        on = False
        switches = 0
        for hour in range(1, $stop):
            before = on
            on = control($t, on)
            if on != before:
                switches += 1
            $t += $inflow if on else -use(hour)
            $flow
            $alarm
            $report
        $shows
        """,
        t=thing,
        start=w.between(tank.low, tank.high),
        other=f"spare = {w.between(0, 20)}" if two else "",
        stop=hours + 1,
        inflow=tank.inflow,
        flow=f"move = ($t - spare) // {w.between(4, 8)}\nspare += move\n$t -= move" if two else "",
        alarm=w.maybe(5, f'if $t < {max(2, tank.low - 6)}:\n    print(hour, "{tank.empty}")', 50),
        report=w.sometimes("hour", hours, w.choice((f"print(hour, {thing}, on)", f"print(hour, {thing})"))),
        shows=join(
            w.show(thing, thing),
            w.show("switches", "switches"),
            w.show("spare", "spare") if two else "",
        ),
    )
    return program(control, use, w.main(body))


def _control(w: Writer, tank: _Tank) -> str:
    """Returns the definition of when the inflow is switched on."""
    return define(
        f"control({tank.thing}, on)",
        """
        if $t < $low:
            return True
        if $t > $high:
            return False
        $middle
        return on
        """,
        t=tank.thing,
        low=tank.low,
        high=tank.high,
        middle=w.maybe(6, f"if {tank.thing} % {w.between(5, 9)} == 0:\n    return not on"),
    )


def _use(w: Writer) -> str:
    """Returns the definition of how much is used in an hour."""
    return define(
        "use(hour)",
        w.choice(
            (
                f"return hour * {w.between(2, 7)} % {w.between(5, 9)}",
                f"if hour % {w.between(3, 6)} == 0:\n    return {w.between(8, 15)}\nreturn {w.between(1, 4)}",
                f"return {w.between(2, 4)} + hour % {w.between(2, 5)}",
            )
        ),
    )


FAMILY = Family(
    "simulations",
    (
        Template(robots),
        Template(queues),
        Template(populations),
        Template(journeys),
        Template(cells),
        Template(games),
        Template(tanks),
    ),
)
