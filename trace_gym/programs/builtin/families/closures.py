"""Closures: counters, makers, accounts, decorators, handlers, meters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trace_gym.programs.builtin.vocabulary import ANIMALS, COLOURS, NOUNS, PEOPLE, TASKS
from trace_gym.programs.builtin.writer import (
    Family,
    Template,
    Writer,
    define,
    fill,
    join,
    program,
    spread,
    strings,
    under,
)

#: Names for one counter.
_COUNTERS = ("next_value", "tick", "a", "first", "go")


def counters(w: Writer) -> str:
    """Counters that keep their own count: one, two or a table of them."""
    maker, inner = w.choice(
        (
            ("make_counter", "count"),
            ("counter", "step"),
            ("make_clock", "tick"),
            ("start_at", "advance"),
            ("make_dial", "turn"),
        )
    )
    value = w.choice(("value", "total", "current", "state", "number"))
    rule = w.choice(
        (
            "$value += by",
            "$value = $value * 2 + by",
            f"$value += by\nif $value > {w.between(8, 40)}:\n    $value -= {w.between(5, 30)}",
            "if $value % 2 == 0:\n    $value += by\nelse:\n    $value += 1",
            f"$value = ($value + by) % {w.between(7, 60)}",
            "$value -= by\nif $value < 0:\n    $value = -$value",
        )
    )
    history = w.level > 5 and w.chance(60)
    function = define(
        f"{maker}({value}, by)",
        """
        $past

        def $inner():
            nonlocal $value
            $rule
            $keep
            return $value

        return $inner$also
        """,
        past="past = []" if history else "",
        inner=inner,
        value=value,
        rule=rule,
        keep=f"past.append({value})\nif len(past) > {w.between(2, 4)}:\n    past.pop(0)" if history else "",
        also=", past" if history else "",
    )
    if w.level == 1:
        return _one_counter(w, maker, function)
    if w.level < 4:
        return _two_counters(w, maker, function)
    return _many_counters(w, maker, function, history)


def _one_counter(w: Writer, maker: str, function: str) -> str:
    """Counter called a few times, its last count printed."""
    name = w.choice(_COUNTERS)
    lines = [
        f"{name} = {_new_counter(w, maker)}",
        *[f"{name}()"] * (w.size(1, 6) - 1),
        f"print({name}())",
    ]
    return program(function, join(*lines))


def _two_counters(w: Writer, maker: str, function: str) -> str:
    """Two counters of one maker, called in turns."""
    name = w.choice(_COUNTERS)
    other = w.choice(("other", "second", "b"))
    lines = [f"{counter} = {_new_counter(w, maker)}" for counter in (name, other)]
    lines += w.picks(
        (f"print({name}())", f"print({other}())", f"{name}()", f"print({name}(), {other}())"), w.size(1, 6)
    )
    return program(function, join(*lines, f"print({name}() + {other}())"))


def _many_counters(w: Writer, maker: str, function: str, history: bool) -> str:
    """Dictionary of counters, all called in every round."""
    names = w.sample(w.choice((ANIMALS, COLOURS, PEOPLE)), min(w.size(2, 6), 6))
    made = [f'"{name}": {_new_counter(w, maker)}' for name in w.fork().sample(names, len(names))]
    data = spread("counters", made, "{}")
    if history:
        pairs = (f'counters["{name}"], pasts["{name}"] = {_new_counter(w, maker)}' for name in names)
        data = join("counters = {}", "pasts = {}", *pairs)
    rounds = w.size(1, 40)
    body = fill(
        """
        $data
        total = 0
        for turn in range(1, $stop):
            for name in counters:
                $when
                value = counters[name]()
                $add
            $report
        $show
        $history
        """,
        data=data,
        stop=rounds + 1,
        when=w.maybe(5, f"if (turn + len(name)) % {w.between(2, 4)} == 0:\n    continue", 60),
        add=w.choice(
            ("total += value", "total = (total * 3 + value) % 1000", "if value % 2 == 1:\n    total += value")
        ),
        report=w.sometimes("turn", rounds, w.tell("turn", "turn", "total")),
        show=w.show("total", "total"),
        history="for name in pasts:\n    print(name, pasts[name])" if history else "",
    )
    return program(function, w.main(body))


def _new_counter(w: Writer, maker: str) -> str:
    """Returns a call that makes a counter."""
    return f"{maker}({w.below(20)}, {w.between(1, 9)})"


#: Per maker: the body of the function it makes.
_MAKERS = {
    "adder": "return x + n",
    "multiplier": "return x * n",
    "remainder": "return x % (n + $m)",
    "limiter": "return min(x, n * $k)",
    "stepper": "if x > n:\n    return x - n\nreturn x + n",
    "mixer": "return x * 2 - n if x % 2 else x // 2 + n",
    "scaler": "return x * n // $d",
}


def makers(w: Writer) -> str:
    """Functions that make functions, called directly or in pipelines."""
    used = w.sample(list(_MAKERS), 1 if w.level < 2 or w.level == 4 else 2 if w.level < 6 else 3)
    inner = w.choice(("apply", "change", "inner", "run"))
    functions = [
        define(
            f"make_{name}(n)",
            f"def {inner}(x):\n    $body\n\nreturn {inner}",
            body=_MAKERS[name],
            m=w.between(2, 9),
            k=w.between(3, 12),
            d=w.between(2, 4),
        )
        for name in used
    ]
    made = _maker_calls(w, used)
    if w.level < 4:
        return _made_functions(w, functions, made)
    return _pipeline_of_list(w, used, functions) if w.level < 6 else _pipeline_of_rounds(w, used, functions)


def _made_functions(w: Writer, functions: list[str], made: list[str]) -> str:
    """Calls of one or two functions that were made by functions."""
    names = w.sample(("f", "g", "first", "second", "double_up", "change"), len(made))
    x = w.between(1, 40)
    lines = [f"{name} = {call}" for name, call in zip(names, made, strict=True)]
    calls = [
        f"{names[0]}({x})",
        f"{names[-1]}({names[0]}({w.between(1, 30)}))",
        f"{names[0]}({names[-1]}({x}))",
        f"{names[-1]}({w.between(1, 30)})",
    ]
    chosen = [calls[0]] if w.level == 1 else w.sample(calls, 2 if w.level < 3 else 3)
    return program(*functions, join(*lines, *(f"print({call})" for call in chosen)))


def _pipeline_of_list(w: Writer, used: list[str], functions: list[str]) -> str:
    """Pipeline of made functions, applied to each number of a list."""
    compose = _compose("print(x)" if w.chance(50) else "")
    steps = _maker_calls(w, w.picks(used, w.grow(2, 4)))
    values = w.numbers(w.size(1, 9), 1, 40)
    inside = join("result = pipeline(x)", "total += result", "print(x, result)")
    body = join(
        f"pipeline = compose([{', '.join(steps)}])",
        "total = 0",
        under(f"for x in {values}:", inside),
        w.show("total", "total"),
    )
    return program(*functions, compose, w.main(body))


def _pipeline_of_rounds(w: Writer, used: list[str], functions: list[str]) -> str:
    """Pipeline of made functions, applied to its own result while its steps change."""
    steps = w.picks(used, w.grow(2, 4))
    rounds = w.size(2, 60)
    limit = w.between(100, 400)
    body = fill(
        """
        $steps
        pipeline = compose(steps)
        value = $x
        for turn in range(1, $stop):
            value = pipeline(value + turn)
            $swap
            if value > $limit:
                value %= $modulus
            $report
        $show
        """,
        steps=spread("steps", _maker_calls(w, steps)),
        x=w.between(1, 30),
        stop=rounds + 1,
        swap=w.maybe(
            6,
            w.choice(
                (
                    f"if turn % {w.between(2, 5)} == 0:\n    steps.append(steps.pop(0))",
                    "if value % 3 == 0:\n    steps.reverse()",
                    f"if turn == {w.between(3, 6)}:\n    steps.pop()",
                )
            ),
            70,
        ),
        limit=limit,
        modulus=w.between(20, 90),
        report=w.sometimes("turn", rounds, w.tell("turn", "turn", "value")),
        show=w.show("value", "value"),
    )
    return program(*functions, _compose(""), w.main(body))


def _maker_calls(w: Writer, names: list[str]) -> list[str]:
    """Returns one call per maker."""
    return [f"make_{name}({w.between(2, 9)})" for name in names]


def _compose(log: str) -> str:
    """Returns the text of a function that makes a pipeline of steps; each step begins with ``log``."""
    return define(
        "compose(steps)",
        """
        def run(x):
            for step in steps:
                $log
                x = step(x)
            return x

        return run
        """,
        log=log,
    )


@dataclass(frozen=True, slots=True)
class _Account:
    """The functions of an account.

    Attributes:
        maker: The name of the function that makes the account.
        value: The name of what the account keeps.
        put, take: The names of the two functions that change the value.
        put_text, take_text: The texts of these two functions.
        refused: Whether the account counts refusals.
    """

    maker: str
    value: str
    put: str
    take: str
    put_text: str
    take_text: str
    refused: bool

    def names(self, level: int) -> str:
        """Returns the names of the account's functions, as its maker returns them."""
        return f"{self.put}, {self.take}" + (", report" if level > 3 else "")


def accounts(w: Writer) -> str:
    """Accounts made of closures that put in, take out and report."""
    maker, value, put, take = w.choice(
        (
            ("make_account", "balance", "deposit", "withdraw"),
            ("make_tank", "level", "fill_up", "drain"),
            ("make_wallet", "coins", "earn", "spend"),
            ("make_battery", "charge", "load", "use"),
        )
    )
    fee = w.between(1, 5)
    refuse = w.choice(("return -1", f"refused += 1\nreturn {value}", f"return {value} - amount"))
    refused = "refused" in refuse
    put_text = define(
        f"{put}(amount)",
        f"nonlocal {value}\n{value} += amount$extra\nreturn {value}",
        extra=w.choice(("", "", f" - {fee}", f" + amount // {w.between(4, 10)}")),
    )
    take_text = define(
        f"{take}(amount)",
        f"nonlocal {value}{', refused' if refused else ''}\n"
        f"if amount > {value}:\n    $refuse\n{value} -= amount\n"
        f"return {value}",
        refuse=refuse,
    )
    account = _Account(maker, value, put, take, put_text, take_text, refused)
    if w.level < 3:
        return _half_account(w, account)
    return _one_account(w, account) if w.level < 6 else _many_accounts(w, account)


def _half_account(w: Writer, account: _Account) -> str:
    """Account with one function, called a few times."""
    puts = w.chance(50) or w.level == 1
    name, text = (account.put, account.put_text) if puts else (account.take, account.take_text)
    function = define(
        f"{account.maker}({account.value})",
        "$start\n\n$inner\n\nreturn $name",
        start="refused = 0" if account.refused and not puts else "",
        inner=text,
        name=name,
    )
    lines = [f"{name} = {account.maker}({w.between(5, 90)})"]
    lines += [f"print({name}({amount}))" for amount in w.numbers(w.size(1, 4), 1, 60)]
    return program(function, join(*lines))


def _one_account(w: Writer, account: _Account) -> str:
    """Account with two or three functions, called in random order."""
    count = w.size(2, 12)
    lines = [f"{account.names(w.level)} = {account.maker}({w.between(20, 120)})"]
    calls = w.picks((account.put, account.take, account.take), count)
    amounts = w.numbers(count, 3, 70)
    lines += [f"print({call}({amount}))" for call, amount in zip(calls, amounts, strict=True)]
    lines += ["print(report())"] if w.level > 3 else []
    return program(_account_function(w.level, account), w.main(join(*lines)))


def _many_accounts(w: Writer, account: _Account) -> str:
    """Dictionary of accounts, changed day by day."""
    people = w.sample(PEOPLE, w.grow(2, 4))
    rounds = w.size(1, 40)
    body = fill(
        """
        owners = $people
        books = {}
        for owner in owners:
            books[owner] = $maker(len(owner) * $k)
        for day in range(1, $stop):
            for i, owner in enumerate(owners):
                $names = books[owner]
                amount = (day * $a + i * $b) % $m
                if $test:
                    $put(amount)
                else:
                    $take(amount)
            $swap
            $tell
        for owner in owners:
            print(owner, books[owner][2]())
        """,
        people=strings(people),
        maker=account.maker,
        k=w.between(3, 20),
        stop=rounds + 1,
        names=account.names(w.level),
        a=w.between(2, 13),
        b=w.between(2, 13),
        m=w.between(17, 60),
        test=w.choice(("amount % 2 == 0", "(day + i) % 3 == 0", f"amount < {w.between(8, 20)}")),
        put=account.put,
        take=account.take,
        swap=w.maybe(7, f"if day % {w.between(3, 6)} == 0:\n    owners.append(owners.pop(0))"),
        tell=w.sometimes("day", rounds, w.tell("day", "day", "owners[0]", "books[owners[0]][2]()")),
    )
    return program(_account_function(w.level, account), w.main(body))


def _account_function(level: int, account: _Account) -> str:
    """Returns the text of a function that makes a whole account."""
    look = define("report()", f"return {account.value}{', refused' if account.refused else ''}")
    return define(
        f"{account.maker}({account.value})",
        """
        $start

        $put

        $take

        $look

        return $names
        """,
        start="refused = 0" if account.refused else "",
        put=account.put_text,
        take=account.take_text,
        look=look if level > 3 else "",
        names=account.names(level),
    )


#: Per decorator: its body.
_DECORATORS = {
    "doubled": """
        def wrapper(x):
            return func(x) * $factor

        return wrapper
        """,
    "shifted": """
        def wrapper(x):
            return func(x + $shift)

        return wrapper
        """,
    "logged": """
        def wrapper(x):
            $log
            return func(x)

        return wrapper
        """,
    "twice": """
        def wrapper(x):
            return func(func(x))

        return wrapper
        """,
    "counted": """
        calls = 0

        def wrapper(x):
            nonlocal calls
            calls += 1
            return func(x) + calls

        return wrapper
        """,
    "cached": """
        known = {}

        def wrapper(x):
            if x not in known:
                $miss
                known[x] = func(x)
            return known[x]

        return wrapper
        """,
    "clamped": """
        def wrapper(x):
            result = func(x)
            if result > $limit:
                return result % $modulus
            return result

        return wrapper
        """,
}


@dataclass(frozen=True, slots=True)
class _Decorated:
    """A function with decorators.

    Attributes:
        name: The function's name.
        text: The function's definition, below its decorators.
        decorators: The decorators' names.
        values: The values that the decorators' texts are filled with.
    """

    name: str
    text: str
    decorators: list[str]
    values: dict[str, object]

    def texts(self, logs: list[str]) -> list[str]:
        """Returns the decorators' definitions; each that logs does it with its line of ``logs``."""
        return [
            define(f"{name}(func)", _DECORATORS[name], log=log, **self.values)
            for name, log in zip(self.decorators, logs, strict=True)
        ]


def decorators(w: Writer) -> str:
    """Function wrapped in others that count, log, remember and change."""
    log = w.choice(('print("call", x)', 'print("->", x)', 'print("in", x)'))
    a, b = w.between(2, 9), w.between(1, 9)
    values: dict[str, object] = {
        "factor": w.between(2, 3),
        "shift": w.between(1, 6),
        "limit": w.between(30, 90),
        "modulus": w.between(11, 29),
        "miss": 'print("new", x)' if w.level < 7 else "",
    }
    names = w.sample(
        [name for name in _DECORATORS if w.level > 2 or name not in ("cached", "counted")],
        1 if w.level < 4 else 2 if w.level < 8 else 3,
    )
    target = w.choice(("score", "change", "grow", "compute", "mix"))
    rule = w.choice(
        (
            f"return x * {a} + {b}",
            f"return x + {a}",
            f"return x * x - {b}",
            f"if x % 2 == 0:\n    return x // 2 + {b}\nreturn x * {a} - {b}",
            f"return (x * {a} + {b}) % {w.between(20, 99)}",
        )
    )
    text = "".join(f"@{name}\n" for name in names) + define(f"{target}(x)", rule)
    decorated = _Decorated(target, text, names, values)
    return _decorated_calls(w, decorated, log) if w.level < 4 else _decorated_rounds(w, decorated, log)


def _decorated_calls(w: Writer, decorated: _Decorated, log: str) -> str:
    """Decorated function, called with a few numbers."""
    values = w.numbers(w.size(1, 4), 1, 20)
    calls = join(*(f"print({decorated.name}({value}))" for value in values))
    return program(*decorated.texts([log] * len(decorated.decorators)), decorated.text, calls)


def _decorated_rounds(w: Writer, decorated: _Decorated, log: str) -> str:
    """Decorated function, called in every round with the number of the round or its own result."""
    rounds = w.size(2, 90)
    modulus = w.between(7, 40)
    chained = w.chance(50)
    body = fill(
        """
        total = 0
        $x
        for turn in range(1, $stop):
            value = $target($argument)
            total = (total + value) % $m
            $next
            $report
        $show
        """,
        x=f"x = {w.between(1, 20)}" if chained else "",
        stop=rounds + 1,
        target=decorated.name,
        argument="x"
        if chained
        else w.choice((f"turn % {modulus}", f"turn * {w.between(2, 7)} % {modulus}", "total % 10 + turn")),
        m=w.choice((100, 500, 997, 1000)),
        next=f"x = (value + turn) % {modulus}" if chained else "",
        report=w.sometimes("turn", rounds, w.tell("turn", "turn", "value", "total")),
        show=w.show("total", "total"),
    )
    logs = [
        under(f"if x % {w.between(5, 9)} == 0:", log) if w.level > 6 else log for _ in decorated.decorators
    ]
    return program(*decorated.texts(logs), decorated.text, w.main(body))


#: How programs with events begin, and how they end.
_STATE = "handlers = {}\nstate = {}"
_SORTED_STATE = "for key in sorted(state):\n    print(key, state[key])"


def handlers(w: Writer) -> str:
    """Handlers that change a state when their events happen."""
    events = w.sample(TASKS, 2 if w.level < 4 else w.grow(2, 4))
    bodies = w.sample(
        [
            "state[key] = state.get(key, 0) + amount",
            "state[key] = max(state.get(key, 0), amount)",
            "state[key] = state.get(key, 1) * 2 % $m",
            "if amount > $n:\n    state[key] = amount\nelse:\n    state[key] = state.get(key, 0) + 1",
            "state[key] = state.get(key, $n) - amount\nif state[key] < 0:\n    state[key] += $m",
            "if key in state:\n    state[key] += amount * $k\nelse:\n    state[key] = amount",
        ],
        2 if w.level < 7 else 3,
    )
    makers = w.sample(("adder", "keeper", "tracker", "gauge", "meter"), len(bodies))
    functions = [
        define(
            f"{name}(key)",
            "def handle(amount):\n    $body\n\nreturn handle",
            body=body,
            m=w.between(20, 60),
            n=w.between(3, 15),
            k=w.between(2, 4),
        )
        for name, body in zip(makers, bodies, strict=True)
    ]
    if w.level < 4:
        return _called_handlers(w, events, makers, functions)
    if w.level < 6:
        return _listed_events(w, events, makers, functions)
    return _rounds_of_events(w, events, makers, functions)


def _called_handlers(w: Writer, events: list[str], makers: list[str], functions: list[str]) -> str:
    """One or two handlers, called directly."""
    used = 1 if w.level == 1 else 2
    lines = [f'{event} = {maker}("{w.choice(NOUNS)}")' for event, maker in zip(events, makers, strict=True)]
    calls = [f"{event}({amount})" for event, amount in _events(w, events[:used], w.size(1, 14))]
    show = "for key in state:\n    print(key, state[key])" if w.level > 2 else "print(state)"
    return program("state = {}", *functions[:used], join(*lines[:used], *calls, show))


def _listed_events(w: Writer, events: list[str], makers: list[str], functions: list[str]) -> str:
    """Handlers registered for events, which happen one by one as listed."""
    registry, wires = _registry(w, events, makers)
    calls = [f'emit("{event}", {amount})' for event, amount in _events(w, events, w.size(1, 8))]
    return program(_STATE, *functions, *registry, w.main(join(*wires, *calls, _SORTED_STATE)))


def _rounds_of_events(w: Writer, events: list[str], makers: list[str], functions: list[str]) -> str:
    """Handlers registered for events, one of which happens in every round."""
    registry, wires = _registry(w, events, makers)
    rounds = w.size(1, 50)
    loop = fill(
        """
        events = $events
        for turn in range(1, $stop):
            emit(events[turn * $a % len(events)], turn * $b % $m)
            $report
        """,
        events=strings(events),
        stop=rounds + 1,
        a=w.between(1, 3),
        b=w.between(2, 9),
        m=w.between(11, 23),
        report=w.sometimes(
            "turn", rounds, "print(turn, state)" if w.level < 8 else "print(turn, sum(state.values()))"
        ),
    )
    return program(_STATE, *functions, *registry, w.main(join(*wires, loop, _SORTED_STATE)))


def _registry(w: Writer, events: list[str], makers: list[str]) -> tuple[list[str], list[str]]:
    """Returns the functions that register handlers and call them, and calls that register some."""
    on = define(
        "on(event, handler)",
        "if event not in handlers:\n    handlers[event] = []\nhandlers[event].append(handler)",
    )
    emit = define(
        "emit(event, amount)",
        """
        $log
        for handler in handlers.get(event, []):
            handler(amount)
            $less
        """,
        log=w.at(4, 'print("event", event, amount)', below=7),
        less=w.maybe(5, f"amount {w.choice(('+= 1', '-= 1', '//= 2'))}"),
    )
    keys = w.sample(NOUNS, 3)
    wires = [
        f'on("{events[i % len(events)]}", {w.choice(makers)}("{w.choice(keys)}"))'
        for i in range(w.grow(2, 6))
    ]
    return [on, emit], wires


def _events(w: Writer, events: list[str], count: int) -> Iterator[tuple[str, int]]:
    """Returns ``count`` of the events, each with an amount."""
    return zip(w.picks(events, count), w.numbers(count, 1, 20), strict=True)


#: Per meter: the body of the function that makes it.
_METERS = {
    "average": """
        total = count = 0

        def $inner(x):
            nonlocal total, count
            total += x
            count += 1
            return total // count

        return $inner
        """,
    "record": """
        best = 0

        def $inner(x):
            nonlocal best
            if x > best:
                best = x
                return True
            return False

        return $inner
        """,
    "streak": """
        last = length = 0

        def $inner(x):
            nonlocal last, length
            length = length + 1 if x > last else 1
            last = x
            return length

        return $inner
        """,
    "window": """
        kept = []

        def $inner(x):
            kept.append(x)
            if len(kept) > $size:
                kept.pop(0)
            return sum(kept)

        return $inner
        """,
    "toggle": """
        on = False

        def $inner(x):
            nonlocal on
            if x % $k == 0:
                on = not on
            return on

        return $inner
        """,
    "change": """
        last = $start

        def $inner(x):
            nonlocal last
            difference = x - last
            last = x
            return difference

        return $inner
        """,
}


def meters(w: Writer) -> str:
    """Running figures that remember what they were given: averages, records, streaks."""
    names = w.sample(list(_METERS), 1 if w.level < 5 else 2 if w.level < 8 else 3)
    inner = w.choice(("add", "see", "update", "push"))
    functions = [
        define(
            f"make_{name}()",
            _METERS[name],
            inner=inner,
            size=w.between(2, 4),
            k=w.between(2, 4),
            start=w.below(10),
        )
        for name in names
    ]
    if w.level == 1:
        return _called_meter(w, names[0], functions)
    return _meters_of_list(w, names, functions) if w.level < 6 else _meters_of_rounds(w, names, functions)


def _called_meter(w: Writer, name: str, functions: list[str]) -> str:
    """Meter called with up to three numbers."""
    values = w.numbers(w.size(1, 12), 1, 30)
    body = join(_made_meters([name]), *(f"print({name}({value}))" for value in values[:3]))
    return program(*functions, w.main(body))


def _meters_of_list(w: Writer, names: list[str], functions: list[str]) -> str:
    """One or two meters, called with each number of a list."""
    values = w.numbers(w.size(1, 12), 1, 30)
    calls = ", ".join(f"{name}(x)" for name in names)
    body = join(_made_meters(names), f"for x in {values}:\n    print(x, {calls})")
    return program(*functions, w.main(body))


def _meters_of_rounds(w: Writer, names: list[str], functions: list[str]) -> str:
    """Two or three meters, called with the numbers of a sequence."""
    rounds = w.size(2, 70)
    short = len({name[0] for name in names}) == len(names)
    results = [name[0] if short else f"{name}_now" for name in names]
    body = fill(
        """
        $made
        x = $x
        score = 0
        for turn in range(1, $stop):
            x = (x * $a + $b) % $m
            $values
            $tally
            $report
        $show
        """,
        made=_made_meters(names),
        x=w.between(1, 20),
        stop=rounds + 1,
        a=w.between(3, 17),
        b=w.between(1, 30),
        m=w.choice((31, 47, 50, 61, 64, 97, 100)),
        values=join(*(f"{result} = {name}(x)" for result, name in zip(results, names, strict=True))),
        tally=f"score += {results[0]}",
        report=w.sometimes("turn", rounds, w.tell("turn", "turn", "x", *results)),
        show=w.show("score", "score"),
    )
    return program(*functions, w.main(body))


def _made_meters(names: list[str]) -> str:
    """Returns assignments that make the meters."""
    return join(*(f"{name} = make_{name}()" for name in names))


FAMILY = Family(
    "closures",
    (
        Template(counters),
        Template(makers),
        Template(accounts),
        Template(decorators),
        Template(handlers),
        Template(meters),
    ),
)
