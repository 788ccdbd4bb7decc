"""Classes and inheritance: accounts, shapes, fights, pay, containers, arithmetic of one's own."""

from __future__ import annotations

from trace_gym.programs.builtin.vocabulary import ANIMALS, PEOPLE, ROBOTS, SHIPS
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
)


def accounts(w: Writer) -> str:
    """An account and the kinds of account made from it."""
    base, field, put, take = w.choice(
        (
            ("Account", "balance", "deposit", "withdraw"),
            ("Tank", "level", "fill", "drain"),
            ("Purse", "coins", "earn", "spend"),
            ("Battery", "charge", "load", "use"),
            ("Store", "grain", "add", "remove"),
        )
    )
    init = f"def __init__(self, {field}):\n    self.{field} = {field}"
    if w.level < 3:
        rule = w.choice(
            (
                f"self.{field} += amount",
                f"self.{field} += amount * {w.between(2, 3)}",
                f"self.{field} = amount - self.{field}",
                f"self.{field} += amount - {w.between(1, 4)}",
                f"self.{field} = max(amount, self.{field})",
            )
        )
        name = w.choice(("a", "mine", "box", "first", "x"))
        calls = [f"{name}.{put}({amount})" for amount in w.numbers(w.size(1, 4), 1, 40)]
        one = define(f"class {base}", f"{init}\n\ndef {put}(self, amount):\n    {rule}")
        if w.level == 1:
            return program(
                one, join(f"{name} = {base}({w.between(1, 50)})", *calls, f"print({name}.{field})")
            )
        child = define(
            f"class {w.choice(('Special', 'Big', 'Slow', 'Other'))}{base}({base})",
            f"def {put}(self, amount):\n"
            f"    super().{put}(amount{w.choice(('', ' + 1', ' * 2'))})\n"
            f"    self.{field} -= {w.between(1, 6)}",
        )
        made = child[6 : child.index("(")]
        return program(
            one, child, join(f"{name} = {made}({w.between(5, 50)})", *calls[:2], f"print({name}.{field})")
        )
    parent = define(
        f"class {base}",
        """
        $init

        def $put(self, amount):
            self.$field += amount
            return self.$field

        def $take(self, amount):
            if amount > self.$field:
                $refuse
            self.$field -= amount
            return self.$field
        $text
        """,
        init=init.replace("self, ", "self, name, ").replace(":\n", ":\n    self.name = name\n")
        if w.level > 4
        else init,
        put=put,
        take=take,
        field=field,
        refuse=w.choice(("return -1", f"amount = self.{field}", f"return self.{field}")),
        text=f'\ndef __str__(self):\n    return self.name + " " + str(self.{field})' if w.level > 4 else "",
    )
    kinds = [
        define(
            f"class {kind}({base})",
            fill(
                body,
                put=put,
                take=take,
                field=field,
                a=w.between(1, 6),
                k=w.between(2, 5),
                m=w.between(20, 90),
            ),
        )
        for kind, body in w.sample(
            [
                ("Saver", "def $put(self, amount):\n    return super().$put(amount + $a)"),
                (
                    "Lender",
                    "def $take(self, amount):\n    if amount > $m:\n"
                    "        amount = $m\n    return super().$take(amount)",
                ),
                (
                    "Collector",
                    "def $put(self, amount):\n    super().$put(amount // $k)\n"
                    "    super().$put($a)\n    return self.$field",
                ),
                (
                    "Careful",
                    "def $take(self, amount):\n    if amount > self.$field // $k:\n"
                    "        return self.$field\n    return super().$take(amount)",
                ),
                (
                    "Leaky",
                    "def $put(self, amount):\n    result = super().$put(amount)\n"
                    "    if result > $m:\n        self.$field -= $a\n"
                    "    return self.$field",
                ),
                ("Taxed", "def $take(self, amount):\n    return super().$take(amount + $a)"),
            ],
            1 if w.level < 6 else 2 if w.level < 8 else 3,
        )
    ]
    made_names = [base, *(kind[6 : kind.index("(")] for kind in kinds)]
    named = w.level > 4
    owners = w.sample(PEOPLE, len(made_names))
    if w.level < 6:
        name = w.choice(("a", "b", "mine", "yours"))
        count = w.size(2, 12)
        lines = [f"{name} = {made_names[-1]}({quoted(owners[0]) + ', ' if named else ''}{w.between(10, 90)})"]
        lines += [
            f"print({name}.{call}({amount}))"
            for call, amount in zip(w.picks((put, take), count), w.numbers(count, 2, 60), strict=True)
        ]
        return program(parent, *kinds, w.main(join(*lines, f"print({name})" if named else "")))
    rounds = w.size(1, 40)
    body = fill(
        """
        $all
        for day in range(1, $stop):
            for i, item in enumerate($c):
                amount = (day * $a + i * $b) % $m
                if $test:
                    item.$put(amount)
                else:
                    item.$take(amount)
            $report
        for item in $c:
            print(item)
        """,
        all=spread(
            "accounts",
            [
                f'{kind}("{owner}", {w.between(5, 90)})'
                for kind, owner in zip(made_names, owners, strict=True)
            ],
        ),
        c="accounts",
        stop=rounds + 1,
        a=w.between(2, 17),
        b=w.between(3, 17),
        m=w.between(15, 70),
        test=w.choice(("(day + i) % 2 == 0", "amount % 3 == 0", "amount % 2 == 1", "day % 3 != i")),
        put=put,
        take=take,
        report=w.sometimes(
            "day",
            rounds,
            w.tell("day", "day", *(f"accounts[{i}].{field}" for i in range(min(3, len(made_names))))),
        ),
    )
    return program(parent, *kinds, w.main(body))


def shapes(w: Writer) -> str:
    """Things of one kind that answer the same question differently."""
    base, question, kinds = w.choice(
        (
            (
                "Shape",
                "area",
                [
                    ("Square", "side"),
                    ("Box", "width, height"),
                    ("Strip", "length"),
                    ("Frame", "outer, inner"),
                    ("Tile", "edge"),
                ],
            ),
            (
                "Vehicle",
                "cost",
                [
                    ("Car", "doors"),
                    ("Truck", "load, wheels"),
                    ("Bike", "gears"),
                    ("Bus", "seats, doors"),
                    ("Tram", "cars"),
                ],
            ),
            (
                "Animal",
                "meals",
                [
                    ("Cat", "age"),
                    ("Dog", "weight, age"),
                    ("Horse", "height"),
                    ("Bird", "wings, age"),
                    ("Fish", "length"),
                ],
            ),
            (
                "Plant",
                "water",
                [
                    ("Tree", "height"),
                    ("Bush", "width, height"),
                    ("Cactus", "arms"),
                    ("Vine", "length, leaves"),
                    ("Moss", "patches"),
                ],
            ),
        )
    )
    chosen = w.sample(kinds, 1 if w.level < 4 else 2 if w.level < 6 else 3 if w.level < 9 else 4)
    classes = []
    made: dict[str, int] = {}
    for kind, fields in chosen:
        names = fields.split(", ")
        made[kind] = len(names)
        first, last = names[0], names[-1]
        rule = w.choice(
            (
                f"return self.{first} * self.{last}"
                if len(names) > 1
                else f"return self.{first} * {w.between(2, 6)}",
                f"return self.{first} * {w.between(2, 5)} + self.{last}",
                f"if self.{first} > {w.between(3, 8)}:\n"
                f"    return self.{last} + {w.between(2, 9)}\n"
                f"return self.{last} * {w.between(2, 4)}",
                f"return super().{question}() + self.{first}" + (f" * self.{last}" if len(names) > 1 else ""),
            )
        )
        sets = "\n".join(f"    self.{name} = {name}" for name in names)
        heading = f"class {kind}({base})" if w.level > 2 else f"class {kind}"
        if w.level < 3:
            rule = rule.replace(f"super().{question}()", str(w.between(2, 9)))
        grow = f"\n\ndef grow(self, by):\n    self.{w.choice(names)} += by" if w.level > 5 else ""
        classes.append(
            define(
                heading,
                f"def __init__(self, {fields}):\n{sets}\n\ndef {question}(self):\n    $rule{grow}",
                rule=rule,
            )
        )
    parent = define(
        f"class {base}",
        f"def {question}(self):\n    return {w.between(1, 9)}"
        + ("\n\ndef name(self):\n    return type(self).__name__.lower()" if w.level > 3 else "")
        + ("\n\ndef grow(self, by):\n    pass" if w.level > 5 else ""),
    )

    def call(kind: str, stream: list[int]) -> str:
        return f"{kind}({', '.join(str(value) for value in stream[: made[kind]])})"

    if w.level < 3:
        kind = chosen[0][0]
        name = w.choice(("thing", "item", "x", kind.lower()))
        values = w.numbers(12, 1, 12)
        count = w.size(1, 3)
        if w.level == 1:
            return program(classes[0], join(f"{name} = {call(kind, values)}", f"print({name}.{question}())"))
        lines = [f"{name}{i} = {call(kind, values[2 * i :])}" for i in range(1, count + 2)]
        shown = w.choice((" + ", ", ", " - ")).join(f"{name}{i}.{question}()" for i in range(1, count + 2))
        return program(classes[0], join(*lines, f"print({name}1.{question}())", f"print({shown})"))
    items = [call(kind, w.numbers(2, 1, 12)) for kind in w.picks(list(made), 12)][: w.size(2, 9)]
    plural = base.lower() + "s"
    shown = f"item.name(), item.{question}()" if w.level > 3 else f"item.{question}()"
    if w.level < 6:
        body = fill(
            """
            $all
            total = 0
            for item in $plural:
                print($shown)
                total += item.$question()
            $show
            $best
            """,
            all=spread(plural, items),
            plural=plural,
            shown=shown,
            question=question,
            show=w.show("total", "total"),
            best=w.at(5, f"best = max({plural}, key=lambda item: item.{question}())\nprint(best.name())"),
        )
        return program(parent, *classes, w.main(body))
    rounds = w.size(1, 24)
    body = fill(
        """
        $all
        for turn in range(1, $stop):
            total = 0
            for i, item in enumerate($plural):
                $grow
                total += item.$question()
            best = max($plural, key=lambda item: item.$question())
            $report
        for item in $plural:
            print(item.name(), item.$question())
        """,
        all=spread(plural, items[:7]),
        plural=plural,
        stop=rounds + 1,
        question=question,
        grow=w.choice(
            (
                f"if (turn + i) % {w.between(2, 3)} == 0:\n    item.grow({w.between(1, 4)})",
                "item.grow(turn % 3)",
                f"if item.{question}() < {w.between(20, 60)}:\n    item.grow(i + 1)",
            )
        ),
        report=w.sometimes("turn", rounds, w.tell("turn", "turn", "total", "best.name()")),
    )
    return program(parent, *classes, w.main(body))


def fights(w: Writer) -> str:
    """Two sides with strength and tricks, blow by blow."""
    base = w.choice(("Fighter", "Robot", "Player", "Beast", "Ship"))
    pool = ROBOTS if base == "Robot" else SHIPS if base == "Ship" else ANIMALS if base == "Beast" else PEOPLE
    first, second = (name.title() for name in w.sample(pool, 2))
    field = w.choice(("health", "energy", "armor", "points"))
    plain = define(
        f"class {base}",
        """
        def __init__(self, name, $field, power):
            self.name = name
            self.$field = $field
            self.power = power
        $hit
        """,
        field=field,
        hit=f"\ndef hit(self, other):\n    other.{field} -= self.power"
        if w.level > 1
        else f"\ndef rest(self):\n    self.{field} += self.power",
    )
    if w.level == 1:
        name = first.lower()
        count = w.size(1, 2)
        return program(
            plain,
            join(
                f'{name} = {base}("{first}", {w.between(5, 60)}, {w.between(2, 9)})',
                *[f"{name}.rest()"] * count,
                f"print({name}.name, {name}.{field})",
            ),
        )
    tricks = w.sample(
        [
            (
                "Healer",
                f"def hit(self, other):\n    super().hit(other)\n    self.{field} += {w.between(1, 4)}",
            ),
            (
                "Brute",
                f"def hit(self, other):\n"
                f"    other.{field} -= self.power + {w.between(1, 4)}\n"
                f"    self.{field} -= 1",
            ),
            (
                "Trickster",
                f"def hit(self, other):\n    if other.{field} % 2 == 0:\n"
                f"        other.{field} -= self.power * 2\n    else:\n"
                f"        super().hit(other)",
            ),
            ("Grower", "def hit(self, other):\n    super().hit(other)\n    self.power += 1"),
            (
                "Coward",
                f"def hit(self, other):\n"
                f"    if self.{field} > {w.between(8, 20)}:\n"
                f"        super().hit(other)\n    else:\n"
                f"        self.{field} += {w.between(2, 5)}",
            ),
            (
                "Drainer",
                f"def hit(self, other):\n"
                f"    stolen = other.{field} // {w.between(6, 12)}\n"
                f"    other.{field} -= stolen + {w.between(1, 3)}\n"
                f"    self.{field} += stolen",
            ),
        ],
        1 if w.level < 5 else 2 if w.level < 8 else 3,
    )
    kinds = [define(f"class {kind}({base})", body) for kind, body in tricks]
    names = [base, *(kind for kind, _ in tricks)]
    if w.level < 5:
        a, b = first.lower(), second.lower()
        blows = w.picks((f"{a}.hit({b})", f"{b}.hit({a})"), w.size(1, 9))
        if w.level > 2:
            blows.insert(1, f"print({a}.{field}, {b}.{field})")
        lines = [
            f'{a} = {names[-1]}("{first}", {w.between(10, 60)}, {w.between(2, 9)})',
            f'{b} = {base}("{second}", {w.between(10, 60)}, {w.between(2, 9)})',
        ]
        end = w.choice(
            (
                f"print({a}.{field}, {b}.{field})",
                f"print({a}.name, {a}.{field})\nprint({b}.name, {b}.{field})",
                f"print({a}.{field} - {b}.{field})",
            )
        )
        return program(plain, *kinds, join(*lines, *blows, end))
    strength = w.size(6, 400)
    count = 2 if w.level < 7 else 3 if w.level < 9 else 4
    team = [name.title() for name in w.sample(pool, count)]
    most = w.size(3, 60)
    duel = define(
        "fight(a, b)",
        """
        turn = 0
        while a.$field > 0 and b.$field > 0 and turn < $most:
            turn += 1
            if turn % 2 == 1:
                a.hit(b)
            else:
                b.hit(a)
            $report
        return $winner
        """,
        field=field,
        most=most,
        report=w.sometimes("turn", most, f"print(turn, a.{field}, b.{field})") if w.level < 8 else "",
        winner=f"a if a.{field} {w.choice(('>=', '>'))} b.{field} else b",
    )
    team_line = spread(
        "team",
        [
            f'{w.choice(names)}("{name}", {strength // 2 + w.below(strength)}, {w.between(2, 9)})'
            for name in team
        ],
    )
    body = fill(
        """
        $team
        $fights
        for member in team:
            print(member.name, member.$field, member.power)
        """,
        team=team_line,
        fights='winner = fight(team[0], team[1])\nprint(winner.name, "wins")'
        if count == 2
        else "for i, first in enumerate(team):\n"
        "    for second in team[i + 1:]:\n"
        "        winner = fight(first, second)\n"
        "        print(first.name, second.name, winner.name, winner.$field)\n"
        "        $rest",
        rest=w.choice(
            (
                f"winner.{field} += {w.between(10, 40)}",
                f"first.{field} = max(first.{field}, {w.between(10, 30)})\n"
                f"second.{field} = max(second.{field}, {w.between(10, 30)})",
            )
        ),
        field=field,
    )
    return program(plain, *kinds, duel, w.main(body))


def pay(w: Writer) -> str:
    """People who are paid by different rules, week by week."""
    base, method = w.choice(
        (("Worker", "pay"), ("Guest", "bill"), ("Driver", "fare"), ("Member", "fee"), ("Farmer", "income"))
    )
    rate = w.between(4, 20)
    first = define(
        f"class {base}",
        """
        rate = $rate

        def __init__(self, name):
            self.name = name
            self.hours = 0

        def work(self, hours):
            self.hours += hours

        def $method(self):
            return self.hours * self.rate$more
        """
        if w.level > 1
        else """
        rate = $rate

        def __init__(self, hours):
            self.hours = hours

        def $method(self):
            return self.hours * self.rate$more
        """,
        rate=rate,
        method=method,
        more=w.choice(("", "", f" + {w.between(2, 30)}")),
    )
    if w.level == 1:
        name = w.choice(PEOPLE)
        change = w.choice(
            (
                f"{name}.hours += {w.between(1, 9)}",
                f"{name}.rate = {w.between(5, 30)}",
                f"{name}.rate += {w.between(1, 5)}",
                f"{base}.rate = {w.between(3, 12)}",
            )
        )
        return program(
            first, join(f"{name} = {base}({w.between(1, 20)})", change, f"print({name}.{method}())")
        )
    pool = [
        ("Manager", f"def {method}(self):\n    return super().{method}() + {w.between(10, 90)}"),
        ("Trainee", f"rate = {max(1, rate - w.between(1, 3))}"),
        (
            "Expert",
            f"rate = {rate + w.between(2, 9)}\n\ndef work(self, hours):\n"
            f"    super().work(hours + {w.between(1, 3)})",
        ),
        (
            "Nightly",
            f"def {method}(self):\n    if self.hours > {w.between(5, 20)}:\n"
            f"        return super().{method}() * 2\n"
            f"    return super().{method}()",
        ),
        ("Helper", f"def work(self, hours):\n    self.hours += min(hours, {w.between(3, 6)})"),
        (
            "Partner",
            f"def __init__(self, name):\n    super().__init__(name)\n    self.hours = {w.between(3, 15)}",
        ),
    ]
    used = w.sample(pool, 1 if w.level < 5 else 2 if w.level < 7 else 3)
    kinds = [define(f"class {kind}({base})", body) for kind, body in used]
    names = [base, *(kind for kind, _ in used)]
    if w.level < 5:
        people = w.sample(PEOPLE, 1 if w.level < 3 else 2)
        lines = [f'{person} = {names[-1 - i]}("{person.title()}")' for i, person in enumerate(people)]
        count = w.size(1, 20)
        lines += [
            f"{person}.work({hours})"
            for person, hours in zip(w.picks(people, count), w.numbers(count, 1, 12), strict=True)
        ]
        lines += [f"print({person}.name, {person}.{method}())" for person in people]
        return program(first, *kinds, join(*lines))
    people = [name.title() for name in w.sample(PEOPLE, min(w.size(2, 6), 6))]
    weeks = w.size(1, 28)
    bonus = w.maybe(
        6,
        w.choice(
            (
                f"if person.hours > {w.between(30, 90)}:\n    person.hours //= 2",
                f"if week % {w.between(3, 5)} == 0:\n    person.rate += 1",
                f"person.hours -= week % {w.between(2, 4)}",
            )
        ),
        70,
    )
    body = fill(
        """
        $staff
        $paid
        for week in range(1, $stop):
            $zero
            for i, person in enumerate(staff):
                person.work((week * $a + i * $b) % $m)
                $bonus
                total += person.$method()
            $report
        for person in staff:
            print(person.name, person.hours, person.$method())
        """,
        staff=spread(
            "staff",
            [f'{kind}("{person}")' for kind, person in zip(w.picks(names, len(people)), people, strict=True)],
        ),
        paid="",
        stop=weeks + 1,
        zero="total = 0",
        a=w.between(2, 9),
        b=w.between(2, 9),
        m=w.between(6, 13),
        bonus=bonus,
        method=method,
        report=w.sometimes("week", weeks, w.tell("week", "week", "total")),
    )
    return program(first, *kinds, w.main(body))


def containers(w: Writer) -> str:
    """Stacks, queues and rings, and what is built on them."""
    base = w.choice(("Stack", "Queue", "Shelf", "Line"))
    taken = "self.items.pop()" if base in ("Stack", "Shelf") else "self.items.pop(0)"
    put, take = w.choice((("push", "pop"), ("add", "take"), ("put", "get")))
    size = w.between(2, 5)
    empty = w.at(3, "if not self.items:\n    return None")
    parent = define(
        f"class {base}",
        """
        def __init__(self):
            self.items = []

        def $put(self, item):
            self.items.append(item)
        $take
        $length
        """,
        put=put,
        take=w.at(2, define(f"{take}(self)", "$empty\nreturn $taken", empty=empty, taken=taken)),
        length="\ndef __len__(self):\n    return len(self.items)" if w.level > 3 else "",
    )
    name = w.choice((base.lower(), "box", "s", "pile"))
    if w.level < 3:
        rules = w.choice(
            (
                "self.items.insert(0, item)",
                f"self.items.append(item * {w.between(2, 4)})",
                "self.items = [item] + self.items[:2]",
                "if item not in self.items:\n            self.items.append(item)",
            )
        )
        if w.chance(50):
            parent = parent.replace("self.items.append(item)", rules, 1)
        values = w.numbers(w.size(1, 5), 1, 30)
        lines = [f"{name} = {base}()", *(f"{name}.{put}({value})" for value in values)]
        if w.level == 2:
            lines += [f"print({name}.{take}())", f"{name}.{put}({w.between(1, 9)})"]
        return program(parent, join(*lines, f"print({name}.items)"))
    kinds = w.sample(
        [
            (
                "Limited",
                f"def {put}(self, item):\n    if len(self.items) < {size}:\n"
                f"        super().{put}(item)\n    else:\n"
                f"        self.items[-1] = item",
            ),
            (
                "Summing",
                f"def __init__(self):\n    super().__init__()\n"
                f"    self.total = 0\n\ndef {put}(self, item):\n"
                f"    super().{put}(item)\n    self.total += item",
            ),
            ("Sorted", f"def {put}(self, item):\n    super().{put}(item)\n    self.items.sort()"),
            (
                "Unique",
                f"def {put}(self, item):\n    if item in self.items:\n"
                f"        self.items.remove(item)\n    super().{put}(item)",
            ),
            (
                "Forgetful",
                f"def {put}(self, item):\n    super().{put}(item)\n"
                f"    if len(self.items) > {size}:\n        self.items.pop(0)",
            ),
            (
                "Doubling",
                f"def {put}(self, item):\n    super().{put}(item)\n"
                f"    if item % 2 == 0:\n        super().{put}(item // 2)",
            ),
        ],
        1 if w.level < 6 else 2 if w.level < 9 else 3,
    )
    classes = [define(f"class {kind}{base}({base})", body) for kind, body in kinds]
    made = [f"{kind}{base}" for kind, _ in kinds]
    if w.level < 6:
        count = w.size(2, 12)
        values = w.numbers(count, 1, 20)
        ops = w.picks((put, put, take), count)
        lines = [f"{name} = {made[0]}()"]
        lines += [
            f"{name}.{put}({value})" if op == put else f"print({name}.{take}())"
            for op, value in zip(ops, values, strict=True)
        ]
        return program(
            parent,
            *classes,
            w.main(join(*lines, f"print({name}.items)", f"print(len({name}))" if w.level > 3 else "")),
        )
    rounds = w.size(2, 60)
    boxes = [base, *made][-3:]
    body = fill(
        """
        boxes = [$boxes]
        x = $x
        for turn in range(1, $stop):
            x = (x * $a + $b) % $m
            for box in boxes:
                if $test:
                    box.$put(x)
                else:
                    box.$take()
            $report
        for box in boxes:
            print(type(box).__name__, len(box), box.items[:4])
        """,
        boxes=", ".join(f"{box}()" for box in boxes),
        x=w.between(1, 9),
        stop=rounds + 1,
        a=w.between(3, 13),
        b=w.between(1, 20),
        m=w.choice((17, 23, 31, 40, 53)),
        test=w.choice(
            ("x % 3 != 0", "turn % 3 != 2", "x % 2 == 1 or len(box) < 2", f"len(box) < {w.between(3, 7)}")
        ),
        put=put,
        take=take,
        report=w.sometimes(
            "turn", rounds, w.tell("turn", "turn", "x", *(f"len(boxes[{i}])" for i in range(len(boxes))))
        ),
    )
    return program(parent, *classes, w.main(body))


def operators(w: Writer) -> str:
    """Values with an arithmetic of their own."""
    name, a, b = w.choice(
        (
            ("Vector", "x", "y"),
            ("Point", "x", "y"),
            ("Time", "hours", "minutes"),
            ("Money", "coins", "cents"),
            ("Score", "wins", "losses"),
            ("Pair", "left", "right"),
        )
    )
    carry = name in ("Time", "Money")
    unit = 60 if name == "Time" else 100
    init = f"def __init__(self, {a}, {b}):\n" + (
        f"    self.{a} = {a} + {b} // {unit}\n    self.{b} = {b} % {unit}"
        if carry
        else f"    self.{a} = {a}\n    self.{b} = {b}"
    )
    methods = {
        "+": define("__add__(self, other)", f"return {name}(self.{a} + other.{a}, self.{b} + other.{b})"),
        "-": define(
            "__sub__(self, other)", f"return {name}(abs(self.{a} - other.{a}), abs(self.{b} - other.{b}))"
        ),
        "*": define("__mul__(self, k)", f"return {name}(self.{a} * k, self.{b} * k)"),
        "<": define(
            "__lt__(self, other)",
            f"return (self.{a}, self.{b}) < (other.{a}, other.{b})"
            if carry or w.chance(50)
            else f"return self.{a} + self.{b} < other.{a} + other.{b}",
        ),
        "str": define(
            "__str__(self)", f'return f"{{self.{a}}}{w.choice((":", "|", "/", ", ", " "))}{{self.{b}}}"'
        ),
    }
    used = (
        ["+"]
        if w.level < 2
        else ["+", "str"]
        if w.level < 4
        else ["+", "*", "str"]
        if w.level < 6
        else ["+", "-", "*", "<", "str"]
    )
    if w.level == 1 and w.chance(50):
        used = ["-"]
    cls = define(f"class {name}", "\n\n".join([init, *(methods[mark] for mark in used)]))
    values = w.numbers(40, 1, 59)
    p, q, r = w.sample(("p", "q", "r", "s", "first", "second", "start", "end"), 3)
    if w.level < 4:
        lines = [
            f"{p} = {name}({values[0]}, {values[1]})",
            f"{q} = {name}({values[2]}, {values[3]})",
            f"{r} = {p} {used[0]} {q}",
        ]
        if w.level == 1:
            lines.append(f"print({r}.{a}, {r}.{b})")
        else:
            lines += w.picks(
                (f"print({r})", f"print({r} + {p})", f"print({q} + {q})", f"{r} = {r} + {q}\nprint({r})"),
                w.size(1, 5),
            )
        return program(cls, join(*lines))
    plural = name.lower() + "s"
    items = [f"{name}({values[2 * i]}, {values[2 * i + 1]})" for i in range(w.size(2, 8))]
    if w.level < 6:
        body = fill(
            """
            $all
            total = $name(0, 0)
            for item in $plural:
                total = total + item$times
                print(total)
            print(total * $k)
            """,
            all=spread(plural, items),
            name=name,
            plural=plural,
            times=w.choice(("", f" * {w.between(2, 3)}")),
            k=w.between(2, 5),
        )
        return program(cls, w.main(body))
    rounds = w.size(1, 30)
    body = fill(
        """
        $all
        total = $name(0, 0)
        for turn in range(1, $stop):
            for item in $plural:
                if $test:
                    total = total $add
                else:
                    total = total $other
            $change
            $limit
            $report
        print(total, max($plural), min($plural))
        """,
        all=spread(plural, items[:6]),
        name=name,
        plural=plural,
        stop=rounds + 1,
        test=w.choice(("item < total", "total < item", f"(item.{a} + turn) % 2 == 0")),
        add="+ item",
        other=w.choice(("- item", "+ item * 2", "- item * 2", "+ item - total")),
        change=w.choice(
            (
                f"{plural}.append({plural}.pop(0))",
                f"{plural}[turn % len({plural})] = {plural}[0] + {plural}[-1]",
                f"if {plural}[-1] < {plural}[0]:\n    {plural}.reverse()\n{plural}[0] = {plural}[0] * 2",
            )
        ),
        limit=f"for i, item in enumerate({plural}):\n"
        f"    if item.{a} > {w.between(60, 200)}:\n"
        f"        {plural}[i] = {name}(item.{a} % {w.between(7, 20)}, item.{b} % {w.between(7, 20)})",
        report=w.sometimes("turn", rounds, "print(turn, total)"),
    )
    return program(cls, w.main(body))


FAMILY = Family(
    "classes",
    (
        Template(accounts),
        Template(shapes),
        Template(fights),
        Template(pay),
        Template(containers),
        Template(operators, lowest=2),
    ),
)
