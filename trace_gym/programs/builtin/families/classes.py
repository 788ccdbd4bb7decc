"""Classes and inheritance: accounts, shapes, fights, pay, containers, arithmetic of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


def _subclasses(base: str, kinds: Sequence[tuple[str, str]], /, **values: object) -> list[str]:
    """Subclasses of ``base`` from their names and bodies, filled."""
    return [define(f"class {kind}({base})", body, **values) for kind, body in kinds]


@dataclass(frozen=True, slots=True)
class _Account:
    """Names for an account: the class, its field, and the methods that add and take."""

    base: str
    field: str
    put: str
    take: str


_ACCOUNTS = (
    _Account("Account", "balance", "deposit", "withdraw"),
    _Account("Tank", "level", "fill", "drain"),
    _Account("Purse", "coins", "earn", "spend"),
    _Account("Battery", "charge", "load", "use"),
    _Account("Store", "grain", "add", "remove"),
)

#: Names and bodies of accounts with a rule of their own. A new order would change the programs.
_ACCOUNT_KINDS = (
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
)


def accounts(w: Writer) -> str:
    """Account: one at level 1, a subclass at level 2, calls below level 6, else days of several."""
    account = w.choice(_ACCOUNTS)
    if w.level == 1:
        return _one_account(w, account)
    if w.level == 2:
        return _special_account(w, account)
    if w.level < 6:
        return _account_calls(w, account)
    return _account_days(w, account)


def _one_account(w: Writer, account: _Account) -> str:
    """Account with one method, called a few times."""
    cls, name, calls = _short_account(w, account)
    made = f"{name} = {account.base}({w.between(1, 50)})"
    return program(cls, join(made, *calls, f"print({name}.{account.field})"))


def _special_account(w: Writer, account: _Account) -> str:
    """Subclass of an account that overrides its one method."""
    cls, name, calls = _short_account(w, account)
    kind = w.choice(("Special", "Big", "Slow", "Other")) + account.base
    child = define(
        f"class {kind}({account.base})",
        f"def {account.put}(self, amount):\n"
        f"    super().{account.put}(amount{w.choice(('', ' + 1', ' * 2'))})\n"
        f"    self.{account.field} -= {w.between(1, 6)}",
    )
    made = f"{name} = {kind}({w.between(5, 50)})"
    return program(cls, child, join(made, *calls[:2], f"print({name}.{account.field})"))


def _short_account(w: Writer, account: _Account) -> tuple[str, str, list[str]]:
    """The class of accounts with one method, the name of a variable for an account, and calls."""
    field = account.field
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
    calls = [f"{name}.{account.put}({amount})" for amount in w.numbers(w.size(1, 4), 1, 40)]
    cls = define(
        f"class {account.base}",
        f"def __init__(self, {field}):\n    self.{field} = {field}\n\n"
        f"def {account.put}(self, amount):\n    {rule}",
    )
    return cls, name, calls


def _account_calls(w: Writer, account: _Account) -> str:
    """Account with a rule of its own, called several times."""
    classes, names = _account_classes(w, account)
    owners = w.sample(PEOPLE, len(names))
    name = w.choice(("a", "b", "mine", "yours"))
    count = w.size(2, 12)
    owner = f"{quoted(owners[0])}, " if w.level > 4 else ""
    made = f"{name} = {names[-1]}({owner}{w.between(10, 90)})"
    calls = [
        f"print({name}.{call}({amount}))"
        for call, amount in zip(
            w.picks((account.put, account.take), count), w.numbers(count, 2, 60), strict=True
        )
    ]
    return program(*classes, w.main(join(made, *calls, w.at(5, f"print({name})"))))


def _account_days(w: Writer, account: _Account) -> str:
    """Accounts with different rules, with amounts added and taken day by day."""
    classes, names = _account_classes(w, account)
    owners = w.sample(PEOPLE, len(names))
    days = w.size(1, 40)
    fields = [f"accounts[{i}].{account.field}" for i in range(min(3, len(names)))]
    body = fill(
        """
        $accounts
        for day in range(1, $stop):
            for i, item in enumerate(accounts):
                amount = (day * $a + i * $b) % $m
                if $test:
                    item.$put(amount)
                else:
                    item.$take(amount)
            $report
        for item in accounts:
            print(item)
        """,
        accounts=spread(
            "accounts",
            [f'{kind}("{owner}", {w.between(5, 90)})' for kind, owner in zip(names, owners, strict=True)],
        ),
        stop=days + 1,
        a=w.between(2, 17),
        b=w.between(3, 17),
        m=w.between(15, 70),
        test=w.choice(("(day + i) % 2 == 0", "amount % 3 == 0", "amount % 2 == 1", "day % 3 != i")),
        put=account.put,
        take=account.take,
        report=w.sometimes("day", days, w.tell("day", "day", *fields)),
    )
    return program(*classes, w.main(body))


def _account_classes(w: Writer, account: _Account) -> tuple[list[str], list[str]]:
    """The class of accounts and one to three subclasses with a rule of their own, and all names."""
    base, field = account.base, account.field
    parent = define(
        f"class {base}",
        """
        def __init__(self, $named$field):
            $set
            self.$field = $field

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
        named="name, " if w.level > 4 else "",
        set=w.at(5, "self.name = name"),
        put=account.put,
        take=account.take,
        field=field,
        refuse=w.choice(("return -1", f"amount = self.{field}", f"return self.{field}")),
        text=w.at(5, f'def __str__(self):\n    return self.name + " " + str(self.{field})'),
    )
    chosen = w.sample(_ACCOUNT_KINDS, 1 if w.level < 6 else 2 if w.level < 8 else 3)
    kinds = [
        define(
            f"class {kind}({base})",
            body,
            put=account.put,
            take=account.take,
            field=field,
            a=w.between(1, 6),
            k=w.between(2, 5),
            m=w.between(20, 90),
        )
        for kind, body in chosen
    ]
    return [parent, *kinds], [base, *(kind for kind, _ in chosen)]


#: Base classes, each with the method that all its subclasses have, and the subclasses with their fields.
_SHAPES = (
    (
        "Shape",
        "area",
        (
            ("Square", "side"),
            ("Box", "width, height"),
            ("Strip", "length"),
            ("Frame", "outer, inner"),
            ("Tile", "edge"),
        ),
    ),
    (
        "Vehicle",
        "cost",
        (
            ("Car", "doors"),
            ("Truck", "load, wheels"),
            ("Bike", "gears"),
            ("Bus", "seats, doors"),
            ("Tram", "cars"),
        ),
    ),
    (
        "Animal",
        "meals",
        (
            ("Cat", "age"),
            ("Dog", "weight, age"),
            ("Horse", "height"),
            ("Bird", "wings, age"),
            ("Fish", "length"),
        ),
    ),
    (
        "Plant",
        "water",
        (
            ("Tree", "height"),
            ("Bush", "width, height"),
            ("Cactus", "arms"),
            ("Vine", "length, leaves"),
            ("Moss", "patches"),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class _Shapes:
    """A base class and its subclasses.

    Attributes:
        base: The name of the base class.
        question: The method that all classes have.
        fields: How many fields each subclass has, by name.
        parent: The text of the base class.
        classes: The texts of the subclasses.
    """

    base: str
    question: str
    fields: dict[str, int]
    parent: str
    classes: list[str]

    @property
    def plural(self) -> str:
        """The name of a variable for a list of objects."""
        return self.base.lower() + "s"

    def made(self, kind: str, values: Sequence[int]) -> str:
        """The text that makes an object of a subclass from the first of these values."""
        return f"{kind}({', '.join(str(value) for value in values[: self.fields[kind]])})"


def shapes(w: Writer) -> str:
    """Method of several classes: for one class below level 3, a list below level 6, else in turns."""
    drawn = _shapes(w)
    if w.level == 1:
        return _one_shape(w, drawn)
    if w.level == 2:
        return _few_shapes(w, drawn)
    kinds = w.picks(list(drawn.fields), 12)
    items = [drawn.made(kind, w.numbers(2, 1, 12)) for kind in kinds][: w.size(2, 9)]
    if w.level < 6:
        return _shape_list(w, drawn, items)
    return _shape_turns(w, drawn, items[:7])


def _one_shape(w: Writer, drawn: _Shapes) -> str:
    """Class with one method, and one object of it."""
    (kind,) = drawn.fields
    name = w.choice(("thing", "item", "x", kind.lower()))
    made = f"{name} = {drawn.made(kind, w.numbers(12, 1, 12))}"
    return program(*drawn.classes, join(made, f"print({name}.{drawn.question}())"))


def _few_shapes(w: Writer, drawn: _Shapes) -> str:
    """Class with one method, and a few objects of it."""
    (kind,) = drawn.fields
    name = w.choice(("thing", "item", "x", kind.lower()))
    values = w.numbers(12, 1, 12)
    numbers = range(1, w.size(1, 3) + 2)
    made = [f"{name}{i} = {drawn.made(kind, values[2 * i :])}" for i in numbers]
    shown = w.choice((" + ", ", ", " - ")).join(f"{name}{i}.{drawn.question}()" for i in numbers)
    return program(*drawn.classes, join(*made, f"print({name}1.{drawn.question}())", f"print({shown})"))


def _shape_list(w: Writer, drawn: _Shapes, items: list[str]) -> str:
    """List of objects of several classes, their results added up."""
    plural, question = drawn.plural, drawn.question
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
        shown=f"item.name(), item.{question}()" if w.level > 3 else f"item.{question}()",
        question=question,
        show=w.show("total", "total"),
        best=w.at(5, f"best = max({plural}, key=lambda item: item.{question}())\nprint(best.name())"),
    )
    return program(drawn.parent, *drawn.classes, w.main(body))


def _shape_turns(w: Writer, drawn: _Shapes, items: list[str]) -> str:
    """List of objects of several classes that grow turn by turn."""
    plural, question = drawn.plural, drawn.question
    turns = w.size(1, 24)
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
        all=spread(plural, items),
        plural=plural,
        stop=turns + 1,
        question=question,
        grow=w.choice(
            (
                f"if (turn + i) % {w.between(2, 3)} == 0:\n    item.grow({w.between(1, 4)})",
                "item.grow(turn % 3)",
                f"if item.{question}() < {w.between(20, 60)}:\n    item.grow(i + 1)",
            )
        ),
        report=w.sometimes("turn", turns, w.tell("turn", "turn", "total", "best.name()")),
    )
    return program(drawn.parent, *drawn.classes, w.main(body))


def _shapes(w: Writer) -> _Shapes:
    """Draws a base class and one to four subclasses."""
    base, question, kinds = w.choice(_SHAPES)
    chosen = w.sample(kinds, 1 if w.level < 4 else 2 if w.level < 6 else 3 if w.level < 9 else 4)
    classes = [_shape_class(w, base, question, kind, fields) for kind, fields in chosen]
    parent = define(
        f"class {base}",
        "def $question(self):\n    return $value\n\n$name\n\n$grow",
        question=question,
        value=w.between(1, 9),
        name=w.at(4, "def name(self):\n    return type(self).__name__.lower()"),
        grow=w.at(6, "def grow(self, by):\n    pass"),
    )
    return _Shapes(
        base, question, {kind: len(fields.split(", ")) for kind, fields in chosen}, parent, classes
    )


def _shape_class(w: Writer, base: str, question: str, kind: str, fields: str) -> str:
    """A subclass with these fields; below level 3 a class without a base."""
    names = fields.split(", ")
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
    if w.level < 3:
        rule = rule.replace(f"super().{question}()", str(w.between(2, 9)))
    return define(
        f"class {kind}({base})" if w.level > 2 else f"class {kind}",
        "def __init__(self, $fields):\n    $sets\n\ndef $question(self):\n    $rule\n\n$grow",
        fields=fields,
        sets=join(*(f"self.{name} = {name}" for name in names)),
        question=question,
        rule=rule,
        grow=f"def grow(self, by):\n    self.{w.choice(names)} += by" if w.level > 5 else "",
    )


#: Names and bodies of fighters with a trick. A new order would change the programs.
_TRICKS = (
    ("Healer", "def hit(self, other):\n    super().hit(other)\n    self.$field += $healed"),
    ("Brute", "def hit(self, other):\n    other.$field -= self.power + $extra\n    self.$field -= 1"),
    (
        "Trickster",
        "def hit(self, other):\n    if other.$field % 2 == 0:\n"
        "        other.$field -= self.power * 2\n    else:\n"
        "        super().hit(other)",
    ),
    ("Grower", "def hit(self, other):\n    super().hit(other)\n    self.power += 1"),
    (
        "Coward",
        "def hit(self, other):\n    if self.$field > $least:\n"
        "        super().hit(other)\n    else:\n"
        "        self.$field += $rested",
    ),
    (
        "Drainer",
        "def hit(self, other):\n    stolen = other.$field // $part\n"
        "    other.$field -= stolen + $lost\n    self.$field += stolen",
    ),
)


def fights(w: Writer) -> str:
    """Fighters: one that rests at level 1, two that exchange blows below level 5, else a team."""
    base = w.choice(("Fighter", "Robot", "Player", "Beast", "Ship"))
    pool = {"Robot": ROBOTS, "Ship": SHIPS, "Beast": ANIMALS}.get(base, PEOPLE)
    first, second = (name.title() for name in w.sample(pool, 2))
    field = w.choice(("health", "energy", "armor", "points"))
    if w.level == 1:
        return _resting_fighter(w, base, field, first)
    classes, names = _fighter_classes(w, base, field)
    if w.level < 5:
        return _blows(w, field, classes, names, first, second)
    return _team_fights(w, field, classes, names, pool)


def _resting_fighter(w: Writer, base: str, field: str, fighter: str) -> str:
    """Fighter that rests once or twice."""
    rest = "def rest(self):\n    self.$field += self.power"
    name = fighter.lower()
    return program(
        _fighter_class(base, field, rest),
        join(
            f'{name} = {base}("{fighter}", {w.between(5, 60)}, {w.between(2, 9)})',
            *[f"{name}.rest()"] * w.size(1, 2),
            f"print({name}.name, {name}.{field})",
        ),
    )


def _blows(w: Writer, field: str, classes: list[str], names: list[str], first: str, second: str) -> str:
    """Two fighters that hit each other in a given order."""
    a, b = first.lower(), second.lower()
    blows = w.picks((f"{a}.hit({b})", f"{b}.hit({a})"), w.size(1, 9))
    if w.level > 2:
        blows.insert(1, f"print({a}.{field}, {b}.{field})")
    made = [
        f'{a} = {names[-1]}("{first}", {w.between(10, 60)}, {w.between(2, 9)})',
        f'{b} = {names[0]}("{second}", {w.between(10, 60)}, {w.between(2, 9)})',
    ]
    end = w.choice(
        (
            f"print({a}.{field}, {b}.{field})",
            f"print({a}.name, {a}.{field})\nprint({b}.name, {b}.{field})",
            f"print({a}.{field} - {b}.{field})",
        )
    )
    return program(*classes, join(*made, *blows, end))


def _team_fights(w: Writer, field: str, classes: list[str], names: list[str], pool: Sequence[str]) -> str:
    """Fights of each member of a team against each other member."""
    strength = w.size(6, 400)
    count = 2 if w.level < 7 else 3 if w.level < 9 else 4
    team = [name.title() for name in w.sample(pool, count)]
    duel = _duel_function(w, field, w.size(3, 60))
    members = [
        f'{w.choice(names)}("{name}", {strength // 2 + w.below(strength)}, {w.between(2, 9)})'
        for name in team
    ]
    rest = w.choice(
        (
            f"winner.{field} += {w.between(10, 40)}",
            f"first.{field} = max(first.{field}, {w.between(10, 30)})\n"
            f"second.{field} = max(second.{field}, {w.between(10, 30)})",
        )
    )
    body = fill(
        """
        $team
        $fights
        for member in team:
            print(member.name, member.$field, member.power)
        """,
        team=spread("team", members),
        fights='winner = fight(team[0], team[1])\nprint(winner.name, "wins")'
        if count == 2
        else "for i, first in enumerate(team):\n"
        "    for second in team[i + 1:]:\n"
        "        winner = fight(first, second)\n"
        "        print(first.name, second.name, winner.name, winner.$field)\n"
        "        $rest",
        rest=rest,
        field=field,
    )
    return program(*classes, duel, w.main(body))


def _duel_function(w: Writer, field: str, most: int) -> str:
    """A function that lets two fighters fight for at most ``most`` turns and returns the winner."""
    return define(
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


def _fighter_class(base: str, field: str, method: str) -> str:
    """The class of fighters, with one method besides ``__init__``."""
    return define(
        f"class {base}",
        """
        def __init__(self, name, $field, power):
            self.name = name
            self.$field = $field
            self.power = power

        $method
        """,
        field=field,
        method=method,
    )


def _fighter_classes(w: Writer, base: str, field: str) -> tuple[list[str], list[str]]:
    """The class of fighters and one to three subclasses with a trick, and all names."""
    numbers = {
        "healed": w.between(1, 4),
        "extra": w.between(1, 4),
        "least": w.between(8, 20),
        "rested": w.between(2, 5),
        "part": w.between(6, 12),
        "lost": w.between(1, 3),
    }
    tricks = w.sample(_TRICKS, 1 if w.level < 5 else 2 if w.level < 8 else 3)
    plain = _fighter_class(base, field, "def hit(self, other):\n    other.$field -= self.power")
    classes = [plain, *_subclasses(base, tricks, field=field, **numbers)]
    return classes, [base, *(kind for kind, _ in tricks)]


#: Names and bodies of workers with a rule of their own. A new order would change the programs.
_PAY_RULES = (
    ("Manager", "def $method(self):\n    return super().$method() + $extra"),
    ("Trainee", "rate = $low"),
    ("Expert", "rate = $high\n\ndef work(self, hours):\n    super().work(hours + $more)"),
    (
        "Nightly",
        "def $method(self):\n    if self.hours > $limit:\n"
        "        return super().$method() * 2\n"
        "    return super().$method()",
    ),
    ("Helper", "def work(self, hours):\n    self.hours += min(hours, $most)"),
    ("Partner", "def __init__(self, name):\n    super().__init__(name)\n    self.hours = $start"),
)


def pay(w: Writer) -> str:
    """Pay by the hour: of one worker at level 1, of a few below level 5, else week by week."""
    base, method = w.choice(
        (("Worker", "pay"), ("Guest", "bill"), ("Driver", "fare"), ("Member", "fee"), ("Farmer", "income"))
    )
    rate = w.between(4, 20)
    more = w.choice(("", "", f" + {w.between(2, 30)}"))
    if w.level == 1:
        return _one_worker(w, base, method, rate, more)
    classes, names = _worker_classes(w, base, method, rate, more)
    if w.level < 5:
        return _few_workers(w, method, classes, names)
    return _staff(w, method, classes, names)


def _one_worker(w: Writer, base: str, method: str, rate: int, more: str) -> str:
    """Worker whose hours or rate change once."""
    cls = define(
        f"class {base}",
        """
        rate = $rate

        def __init__(self, hours):
            self.hours = hours

        def $method(self):
            return self.hours * self.rate$more
        """,
        rate=rate,
        method=method,
        more=more,
    )
    name = w.choice(PEOPLE)
    change = w.choice(
        (
            f"{name}.hours += {w.between(1, 9)}",
            f"{name}.rate = {w.between(5, 30)}",
            f"{name}.rate += {w.between(1, 5)}",
            f"{base}.rate = {w.between(3, 12)}",
        )
    )
    return program(cls, join(f"{name} = {base}({w.between(1, 20)})", change, f"print({name}.{method}())"))


def _few_workers(w: Writer, method: str, classes: list[str], names: list[str]) -> str:
    """One or two workers who work given hours."""
    people = w.sample(PEOPLE, 1 if w.level < 3 else 2)
    count = w.size(1, 20)
    made = [f'{person} = {names[-1 - i]}("{person.title()}")' for i, person in enumerate(people)]
    work = [
        f"{person}.work({hours})"
        for person, hours in zip(w.picks(people, count), w.numbers(count, 1, 12), strict=True)
    ]
    shown = [f"print({person}.name, {person}.{method}())" for person in people]
    return program(*classes, join(*made, *work, *shown))


def _staff(w: Writer, method: str, classes: list[str], names: list[str]) -> str:
    """Staff paid by different rules, week by week."""
    people = [name.title() for name in w.sample(PEOPLE, w.size(2, 6))]
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
    kinds = w.picks(names, len(people))
    body = fill(
        """
        $staff
        for week in range(1, $stop):
            total = 0
            for i, person in enumerate(staff):
                person.work((week * $a + i * $b) % $m)
                $bonus
                total += person.$method()
            $report
        for person in staff:
            print(person.name, person.hours, person.$method())
        """,
        staff=spread("staff", [f'{kind}("{person}")' for kind, person in zip(kinds, people, strict=True)]),
        stop=weeks + 1,
        a=w.between(2, 9),
        b=w.between(2, 9),
        m=w.between(6, 13),
        bonus=bonus,
        method=method,
        report=w.sometimes("week", weeks, w.tell("week", "week", "total")),
    )
    return program(*classes, w.main(body))


def _worker_classes(w: Writer, base: str, method: str, rate: int, more: str) -> tuple[list[str], list[str]]:
    """The class of workers and one to three subclasses with a rule of their own, and all names."""
    plain = define(
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
        """,
        rate=rate,
        method=method,
        more=more,
    )
    numbers = {
        "extra": w.between(10, 90),
        "low": max(1, rate - w.between(1, 3)),
        "high": rate + w.between(2, 9),
        "more": w.between(1, 3),
        "limit": w.between(5, 20),
        "most": w.between(3, 6),
        "start": w.between(3, 15),
    }
    rules = w.sample(_PAY_RULES, 1 if w.level < 5 else 2 if w.level < 7 else 3)
    classes = [plain, *_subclasses(base, rules, method=method, **numbers)]
    return classes, [base, *(kind for kind, _ in rules)]


#: Name prefixes and bodies of containers with a rule. A new order would change the programs.
_CONTAINER_KINDS = (
    (
        "Limited",
        "def $put(self, item):\n    if len(self.items) < $size:\n"
        "        super().$put(item)\n    else:\n"
        "        self.items[-1] = item",
    ),
    (
        "Summing",
        "def __init__(self):\n    super().__init__()\n"
        "    self.total = 0\n\ndef $put(self, item):\n"
        "    super().$put(item)\n    self.total += item",
    ),
    ("Sorted", "def $put(self, item):\n    super().$put(item)\n    self.items.sort()"),
    (
        "Unique",
        "def $put(self, item):\n    if item in self.items:\n"
        "        self.items.remove(item)\n    super().$put(item)",
    ),
    (
        "Forgetful",
        "def $put(self, item):\n    super().$put(item)\n"
        "    if len(self.items) > $size:\n        self.items.pop(0)",
    ),
    (
        "Doubling",
        "def $put(self, item):\n    super().$put(item)\n"
        "    if item % 2 == 0:\n        super().$put(item // 2)",
    ),
)


def containers(w: Writer) -> str:
    """Container: a few items below level 3, calls of one below level 6, else several in turns."""
    base = w.choice(("Stack", "Queue", "Shelf", "Line"))
    put, take = w.choice((("push", "pop"), ("add", "take"), ("put", "get")))
    size = w.between(2, 5)
    parent = _container_class(w, base, put, take)
    name = w.choice((base.lower(), "box", "s", "pile"))
    if w.level < 3:
        return _few_items(w, base, put, take, parent, name)
    chosen = w.sample(_CONTAINER_KINDS, 1 if w.level < 6 else 2 if w.level < 9 else 3)
    kinds = [(f"{kind}{base}", body) for kind, body in chosen]
    classes = [parent, *_subclasses(base, kinds, put=put, size=size)]
    names = [base, *(kind for kind, _ in kinds)]
    if w.level < 6:
        return _container_calls(w, put, take, classes, names[-1], name)
    return _container_turns(w, put, take, classes, names)


def _container_class(w: Writer, base: str, put: str, take: str) -> str:
    """The class of containers; from level 2 items can be taken, from level 4 it has a length."""
    taken = "self.items.pop()" if base in ("Stack", "Shelf") else "self.items.pop(0)"
    empty = w.at(3, "if not self.items:\n    return None")
    return define(
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
        length=w.at(4, "def __len__(self):\n    return len(self.items)"),
    )


def _few_items(w: Writer, base: str, put: str, take: str, parent: str, name: str) -> str:
    """Container with a few items, sometimes put in by another rule."""
    rule = w.choice(
        (
            "self.items.insert(0, item)",
            f"self.items.append(item * {w.between(2, 4)})",
            "self.items = [item] + self.items[:2]",
            "if item not in self.items:\n            self.items.append(item)",
        )
    )
    if w.chance(50):
        parent = parent.replace("self.items.append(item)", rule, 1)
    values = w.numbers(w.size(1, 5), 1, 30)
    lines = [f"{name} = {base}()", *(f"{name}.{put}({value})" for value in values)]
    if w.level == 2:
        lines += [f"print({name}.{take}())", f"{name}.{put}({w.between(1, 9)})"]
    return program(parent, join(*lines, f"print({name}.items)"))


def _container_calls(w: Writer, put: str, take: str, classes: list[str], kind: str, name: str) -> str:
    """Container with a rule: items are put into it and taken from it."""
    count = w.size(2, 12)
    values = w.numbers(count, 1, 20)
    calls = [
        f"{name}.{put}({value})" if method == put else f"print({name}.{take}())"
        for method, value in zip(w.picks((put, put, take), count), values, strict=True)
    ]
    body = join(f"{name} = {kind}()", *calls, f"print({name}.items)", w.at(4, f"print(len({name}))"))
    return program(*classes, w.main(body))


def _container_turns(w: Writer, put: str, take: str, classes: list[str], names: list[str]) -> str:
    """Containers with different rules: items are put into them and taken from them turn by turn."""
    turns = w.size(2, 60)
    boxes = names[-3:]
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
        stop=turns + 1,
        a=w.between(3, 13),
        b=w.between(1, 20),
        m=w.choice((17, 23, 31, 40, 53)),
        test=w.choice(
            ("x % 3 != 0", "turn % 3 != 2", "x % 2 == 1 or len(box) < 2", f"len(box) < {w.between(3, 7)}")
        ),
        put=put,
        take=take,
        report=w.sometimes(
            "turn", turns, w.tell("turn", "turn", "x", *(f"len(boxes[{i}])" for i in range(len(boxes))))
        ),
    )
    return program(*classes, w.main(body))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Names for a class of two numbers: the class and its fields."""

    name: str
    a: str
    b: str

    @property
    def plural(self) -> str:
        """The name of a variable for a list of objects."""
        return self.name.lower() + "s"


_PAIRS = (
    _Pair("Vector", "x", "y"),
    _Pair("Point", "x", "y"),
    _Pair("Time", "hours", "minutes"),
    _Pair("Money", "coins", "cents"),
    _Pair("Score", "wins", "losses"),
    _Pair("Pair", "left", "right"),
)


def operators(w: Writer) -> str:
    """Class with operators: a sum below level 4, a running total below level 6, else turns."""
    pair = w.choice(_PAIRS)
    cls = _operator_class(w, pair)
    values = w.numbers(40, 1, 59)
    # Drawn at every level: a choice left out would change all choices after it.
    variables = w.sample(("p", "q", "r", "s", "first", "second", "start", "end"), 3)
    if w.level < 4:
        return _two_operands(w, pair, cls, values, variables)
    items = [f"{pair.name}({values[2 * i]}, {values[2 * i + 1]})" for i in range(w.size(2, 8))]
    if w.level < 6:
        return _running_total(w, pair, cls, items)
    return _operator_turns(w, pair, cls, items[:6])


def _two_operands(w: Writer, pair: _Pair, cls: str, values: list[int], variables: list[str]) -> str:
    """Sum of two objects, and more sums with them."""
    p, q, r = variables
    lines = [
        f"{p} = {pair.name}({values[0]}, {values[1]})",
        f"{q} = {pair.name}({values[2]}, {values[3]})",
        f"{r} = {p} + {q}",
    ]
    more = (f"print({r})", f"print({r} + {p})", f"print({q} + {q})", f"{r} = {r} + {q}\nprint({r})")
    return program(cls, join(*lines, *w.picks(more, w.size(1, 5))))


def _running_total(w: Writer, pair: _Pair, cls: str, items: list[str]) -> str:
    """Running total of a list of objects."""
    body = fill(
        """
        $all
        total = $name(0, 0)
        for item in $plural:
            total = total + item$times
            print(total)
        print(total * $k)
        """,
        all=spread(pair.plural, items),
        name=pair.name,
        plural=pair.plural,
        times=w.choice(("", f" * {w.between(2, 3)}")),
        k=w.between(2, 5),
    )
    return program(cls, w.main(body))


def _operator_turns(w: Writer, pair: _Pair, cls: str, items: list[str]) -> str:
    """List of objects that are added, subtracted and compared turn by turn."""
    name, plural, a, b = pair.name, pair.plural, pair.a, pair.b
    turns = w.size(1, 30)
    body = fill(
        """
        $all
        total = $name(0, 0)
        for turn in range(1, $stop):
            for item in $plural:
                if $test:
                    total = total + item
                else:
                    total = total $other
            $change
            $limit
            $report
        print(total, max($plural), min($plural))
        """,
        all=spread(plural, items),
        name=name,
        plural=plural,
        stop=turns + 1,
        test=w.choice(("item < total", "total < item", f"(item.{a} + turn) % 2 == 0")),
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
        report=w.sometimes("turn", turns, "print(turn, total)"),
    )
    return program(cls, w.main(body))


def _operator_class(w: Writer, pair: _Pair) -> str:
    """A class of two numbers with the operators of the level."""
    name, a, b = pair.name, pair.a, pair.b
    carry = name in ("Time", "Money")
    unit = 60 if name == "Time" else 100
    sets = (
        f"self.{a} = {a} + {b} // {unit}\nself.{b} = {b} % {unit}"
        if carry
        else f"self.{a} = {a}\nself.{b} = {b}"
    )
    less = (
        "(self.$a, self.$b) < (other.$a, other.$b)"
        if carry or w.chance(50)
        else "self.$a + self.$b < other.$a + other.$b"
    )
    mark = w.choice((":", "|", "/", ", ", " "))
    return define(
        f"class {name}",
        """
        def __init__(self, $a, $b):
            $sets

        def __add__(self, other):
            return $name(self.$a + other.$a, self.$b + other.$b)

        $sub

        $mul

        $less

        def __str__(self):
            return f"{self.$a}$mark{self.$b}"
        """,
        name=name,
        a=a,
        b=b,
        sets=sets,
        sub=w.at(
            6,
            "def __sub__(self, other):\n    return $name(abs(self.$a - other.$a), abs(self.$b - other.$b))",
        ),
        mul=w.at(4, "def __mul__(self, k):\n    return $name(self.$a * k, self.$b * k)"),
        less=w.at(6, f"def __lt__(self, other):\n    return {less}"),
        mark=mark,
    )


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
