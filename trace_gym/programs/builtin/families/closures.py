"""Closures: counters, makers, accounts, decorators, handlers, meters."""

from __future__ import annotations

from trace_gym.programs.builtin.vocabulary import ANIMALS, COLOURS, NOUNS, PEOPLE, TASKS
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
    under,
)


def counters(w: Writer) -> str:
    """Counters that keep their own count."""
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
            f"{value} += by",
            f"{value} = {value} * 2 + by",
            f"{value} += by\nif {value} > {w.between(8, 40)}:\n    {value} -= {w.between(5, 30)}",
            f"if {value} % 2 == 0:\n    {value} += by\nelse:\n    {value} += 1",
            f"{value} = ({value} + by) % {w.between(7, 60)}",
            f"{value} -= by\nif {value} < 0:\n    {value} = -{value}",
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
        keep="past.append($value)\nif len(past) > $most:\n    past.pop(0)".replace(
            "$most", str(w.between(2, 4))
        )
        if history
        else "",
        also=", past" if history else "",
    )
    if w.level < 4:
        name = w.choice(("next_value", "tick", "a", "first", "go"))
        calls = w.size(1, 6)
        if w.level == 1:
            lines = [
                f"{name} = {maker}({w.below(20)}, {w.between(1, 9)})",
                *[f"{name}()"] * (calls - 1),
                f"print({name}())",
            ]
        else:
            other = w.choice(("other", "second", "b"))
            lines = [
                f"{name} = {maker}({w.below(20)}, {w.between(1, 9)})",
                f"{other} = {maker}({w.below(20)}, {w.between(1, 9)})",
            ]
            lines += w.picks(
                (f"print({name}())", f"print({other}())", f"{name}()", f"print({name}(), {other}())"), calls
            )
            lines += [f"print({name}() + {other}())"]
        return program(function, join(*lines))
    names = w.sample(w.choice((ANIMALS, COLOURS, PEOPLE)), min(w.size(2, 6), 6))
    made = [
        f'"{name}": {maker}({w.below(20)}, {w.between(1, 9)})' for name in w.fork().sample(names, len(names))
    ]
    rounds = w.size(1, 40)
    body = fill(
        """
        $data
        $total
        for turn in range(1, $stop):
            for name in $c:
                $when
                $call
                $add
            $report
        $show
        $history
        """,
        data=spread("counters", made, "{}")
        if not history
        else "counters = {}\npasts = {}\n"
        + join(
            *(
                f'counters["{name}"], pasts["{name}"] = {maker}({w.below(20)}, {w.between(1, 9)})'
                for name in names
            )
        ),
        c="counters",
        total="total = 0",
        stop=rounds + 1,
        when=w.maybe(5, f"if (turn + len(name)) % {w.between(2, 4)} == 0:\n    continue", 60),
        call="value = counters[name]()",
        add=w.choice(
            ("total += value", "total = (total * 3 + value) % 1000", "if value % 2 == 1:\n    total += value")
        ),
        report=w.sometimes("turn", rounds, w.tell("turn", "turn", "total")),
        show=w.show("total", "total"),
        history="for name in pasts:\n    print(name, pasts[name])" if history else "",
    )
    return program(function, w.main(body))


def makers(w: Writer) -> str:
    """Functions that make functions, and lines of them."""
    pool = {
        "adder": "return x + n",
        "multiplier": "return x * n",
        "remainder": "return x % (n + $m)",
        "limiter": "return min(x, n * $k)",
        "stepper": "if x > n:\n    return x - n\nreturn x + n",
        "mixer": "return x * 2 - n if x % 2 else x // 2 + n",
        "scaler": "return x * n // $d",
    }
    used = w.sample(list(pool), 1 if w.level < 2 or w.level == 4 else 2 if w.level < 6 else 3)
    inner = w.choice(("apply", "change", "inner", "run"))
    functions = [
        define(
            f"make_{name}(n)",
            f"def {inner}(x):\n    $body\n\nreturn {inner}",
            body=pool[name],
            m=w.between(2, 9),
            k=w.between(3, 12),
            d=w.between(2, 4),
        )
        for name in used
    ]
    made = [f"make_{name}({w.between(2, 9)})" for name in used]
    if w.level < 4:
        names = w.sample(("f", "g", "first", "second", "double_up", "change"), len(used))
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
    compose = define(
        "compose(steps)",
        """
        def run(x):
            for step in steps:
                $log
                x = step(x)
            return x

        return run
        """,
        log="print(x)" if w.level < 6 and w.chance(50) else "",
    )
    steps = w.picks(used, w.grow(2, 4))
    if w.level < 6:
        parts = ", ".join(f"make_{name}({w.between(2, 9)})" for name in steps)
        values = w.numbers(w.size(1, 9), 1, 40)
        inside = join("result = pipeline(x)", "total += result", "print(x, result)")
        body = join(
            f"pipeline = compose([{parts}])",
            "total = 0",
            under(f"for x in {values}:", inside),
            w.show("total", "total"),
        )
        return program(*functions, compose, w.main(body))
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
        steps=spread("steps", [f"make_{name}({w.between(2, 9)})" for name in steps]),
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
    return program(*functions, compose, w.main(body))


def accounts(w: Writer) -> str:
    """An account of closures: put in, take out, look."""
    kind = w.choice(
        (
            ("make_account", "balance", "deposit", "withdraw"),
            ("make_tank", "level", "fill_up", "drain"),
            ("make_wallet", "coins", "earn", "spend"),
            ("make_battery", "charge", "load", "use"),
        )
    )
    maker, value, put, take = kind
    fee = w.between(1, 5)
    refuse = w.choice(("return -1", f"refused += 1\nreturn {value}", f"return {value} - amount"))
    refused = "refused" in refuse
    inner_put = define(
        f"{put}(amount)",
        f"nonlocal {value}\n{value} += amount$extra\nreturn {value}",
        extra=w.choice(("", "", f" - {fee}", f" + amount // {w.between(4, 10)}")),
    )
    inner_take = define(
        f"{take}(amount)",
        f"nonlocal {value}{', refused' if refused else ''}\n"
        f"if amount > {value}:\n    $refuse\n{value} -= amount\n"
        f"return {value}",
        refuse=refuse,
    )
    if w.level < 3:
        one = w.chance(50) or w.level == 1
        function = define(
            f"{maker}({value})",
            "$start\n\n$inner\n\nreturn $name",
            start="refused = 0" if refused and not one else "",
            inner=inner_put if one else inner_take,
            name=put if one else take,
        )
        name = put if one else take
        lines = [f"{name} = {maker}({w.between(5, 90)})"]
        lines += [f"print({name}({amount}))" for amount in w.numbers(w.size(1, 4), 1, 60)]
        return program(function, join(*lines))
    look = define("report()", f"return {value}{', refused' if refused else ''}")
    function = define(
        f"{maker}({value})",
        """
        $start

        $put

        $take

        $look

        return $names
        """,
        start="refused = 0" if refused else "",
        put=inner_put,
        take=inner_take,
        look=look if w.level > 3 else "",
        names=f"{put}, {take}" + (", report" if w.level > 3 else ""),
    )
    names = f"{put}, {take}" + (", report" if w.level > 3 else "")
    if w.level < 6:
        count = w.size(2, 12)
        lines = [f"{put}, {take}{', report' if w.level > 3 else ''} = {maker}({w.between(20, 120)})"]
        lines += [
            f"print({call}({amount}))"
            for call, amount in zip(w.picks((put, take, take), count), w.numbers(count, 3, 70), strict=True)
        ]
        lines += ["print(report())"] if w.level > 3 else []
        return program(function, w.main(join(*lines)))
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
        people=f"[{', '.join(map(quoted, people))}]",
        maker=maker,
        k=w.between(3, 20),
        stop=rounds + 1,
        names=names,
        a=w.between(2, 13),
        b=w.between(2, 13),
        m=w.between(17, 60),
        test=w.choice(("amount % 2 == 0", "(day + i) % 3 == 0", f"amount < {w.between(8, 20)}")),
        put=put,
        take=take,
        swap=w.maybe(7, f"if day % {w.between(3, 6)} == 0:\n    owners.append(owners.pop(0))"),
        tell=w.sometimes("day", rounds, w.tell("day", "day", "owners[0]", "books[owners[0]][2]()")),
    )
    return program(function, w.main(body))


def decorators(w: Writer) -> str:
    """Functions wrapped in others that count, log, remember and change."""
    log = w.choice(('print("call", x)', 'print("->", x)', 'print("in", x)'))
    a, b = w.between(2, 9), w.between(1, 9)
    pool = {
        "doubled": f"def wrapper(x):\n    return func(x) * {w.between(2, 3)}\n\nreturn wrapper",
        "shifted": f"def wrapper(x):\n    return func(x + {w.between(1, 6)})\n\nreturn wrapper",
        "logged": f"def wrapper(x):\n    {log}\n    return func(x)\n\nreturn wrapper",
        "twice": "def wrapper(x):\n    return func(func(x))\n\nreturn wrapper",
        "counted": "calls = 0\n\ndef wrapper(x):\n    nonlocal calls\n"
        "    calls += 1\n    return func(x) + calls\n\nreturn wrapper",
        "cached": "known = {}\n\ndef wrapper(x):\n    if x not in known:\n"
        "        $miss\n        known[x] = func(x)\n"
        "    return known[x]\n\nreturn wrapper",
        "clamped": f"def wrapper(x):\n    result = func(x)\n"
        f"    if result > {w.between(30, 90)}:\n"
        f"        return result % {w.between(11, 29)}\n"
        f"    return result\n\nreturn wrapper",
    }
    names = w.sample(
        [name for name in pool if w.level > 2 or name not in ("cached", "counted")],
        1 if w.level < 4 else 2 if w.level < 8 else 3,
    )
    miss = 'print("new", x)' if w.level < 7 else ""
    functions = [define(f"{name}(func)", pool[name], miss=miss) for name in names]
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
    wrapped = "".join(f"@{name}\n" for name in names) + define(f"{target}(x)", rule)
    if w.level < 4:
        values = w.numbers(w.size(1, 4), 1, 20)
        calls = [f"print({target}({value}))" for value in values]
        return program(*functions, wrapped, join(*calls))
    rounds = w.size(2, 90)
    modulus = w.between(7, 40)
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
        x=f"x = {w.between(1, 20)}" if (chained := w.chance(50)) else "",
        stop=rounds + 1,
        target=target,
        argument="x"
        if chained
        else w.choice((f"turn % {modulus}", f"turn * {w.between(2, 7)} % {modulus}", "total % 10 + turn")),
        m=w.choice((100, 500, 997, 1000)),
        next=f"x = (value + turn) % {modulus}" if chained else "",
        report=w.sometimes("turn", rounds, w.tell("turn", "turn", "value", "total")),
        show=w.show("total", "total"),
    )
    if w.level > 6:
        functions = [f.replace(log, f"if x % {w.between(5, 9)} == 0:\n            {log}") for f in functions]
    return program(*functions, wrapped, w.main(body))


def handlers(w: Writer) -> str:
    """Handlers that are registered for events and called when they happen."""
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
        lines = [
            f'{event} = {makers[i % len(makers)]}("{w.choice(NOUNS)}")' for i, event in enumerate(events)
        ]
        if w.level == 1:
            lines, functions = lines[:1], functions[:1]
        count = w.size(1, 14)
        lines += [
            f"{event}({amount})"
            for event, amount in zip(
                w.picks(events[: 1 if w.level == 1 else 2], count), w.numbers(count, 1, 20), strict=True
            )
        ]
        return program(
            "state = {}",
            *functions,
            join(*lines, "for key in state:\n    print(key, state[key])" if w.level > 2 else "print(state)"),
        )
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
    wires = []
    for i in range(w.grow(2, 6)):
        wires.append(f'on("{events[i % len(events)]}", {w.choice(makers)}("{w.choice(keys)}"))')
    rounds = w.size(1, 50)
    if w.level < 6:
        count = w.size(1, 8)
        loop = join(
            *(
                f'emit("{event}", {amount})'
                for event, amount in zip(w.picks(events, count), w.numbers(count, 1, 20), strict=True)
            )
        )
    else:
        loop = fill(
            """
            events = $events
            for turn in range(1, $stop):
                emit(events[turn * $a % len(events)], turn * $b % $m)
                $report
            """,
            events=f"[{', '.join(map(quoted, events))}]",
            stop=rounds + 1,
            a=w.between(1, 3),
            b=w.between(2, 9),
            m=w.between(11, 23),
            report=w.sometimes(
                "turn", rounds, "print(turn, state)" if w.level < 8 else "print(turn, sum(state.values()))"
            ),
        )
    body = join(*wires, loop, "for key in sorted(state):\n    print(key, state[key])")
    return program("handlers = {}\nstate = {}", *functions, on, emit, w.main(body))


def meters(w: Writer) -> str:
    """Running figures: averages, records, streaks, that remember what they were given."""
    pool = {
        "make_average": "total = count = 0\n\ndef add(x):\n    nonlocal total, count\n"
        "    total += x\n    count += 1\n    return total // count\n\n"
        "return add",
        "make_record": "best = 0\n\ndef add(x):\n    nonlocal best\n    if x > best:\n"
        "        best = x\n        return True\n    return False\n\n"
        "return add",
        "make_streak": "last = length = 0\n\ndef add(x):\n    nonlocal last, length\n"
        "    length = length + 1 if x > last else 1\n    last = x\n"
        "    return length\n\nreturn add",
        "make_window": "kept = []\n\ndef add(x):\n    kept.append(x)\n"
        "    if len(kept) > $size:\n        kept.pop(0)\n"
        "    return sum(kept)\n\nreturn add",
        "make_toggle": "on = False\n\ndef add(x):\n    nonlocal on\n"
        "    if x % $k == 0:\n        on = not on\n    return on\n\n"
        "return add",
        "make_change": "last = $start\n\ndef add(x):\n    nonlocal last\n"
        "    difference = x - last\n    last = x\n"
        "    return difference\n\nreturn add",
    }
    used = w.sample(list(pool), 1 if w.level < 5 else 2 if w.level < 8 else 3)
    inner = w.choice(("add", "see", "update", "push"))
    functions = [
        define(
            f"{name}()",
            pool[name].replace("add", inner),
            size=w.between(2, 4),
            k=w.between(2, 4),
            start=w.below(10),
        )
        for name in used
    ]
    names = [name.replace("make_", "") for name in used]
    if w.level < 6:
        values = w.numbers(w.size(1, 12), 1, 30)
        loop = w.level > 1
        body = join(
            *(f"{name} = make_{name}()" for name in names),
            f"for x in {values}:\n    print(x, {', '.join(f'{name}(x)' for name in names)})"
            if loop
            else join(*(f"print({names[0]}({value}))" for value in values[:3])),
        )
        return program(*functions, w.main(body))
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
        made=join(*(f"{name} = make_{name}()" for name in names)),
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
