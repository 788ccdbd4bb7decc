"""State machines: tables of moves, vending, recognisers, scanners, workflows, little computers."""

from __future__ import annotations

from trace_gym.programs.builtin.vocabulary import GOODS, NOUNS, PEOPLE, up_to
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

_STORIES = (
    ("light", ("red", "green", "amber"), ("timer", "button", "night")),
    ("door", ("open", "closed", "locked"), ("push", "pull", "key")),
    ("turnstile", ("locked", "free", "broken"), ("coin", "push", "kick")),
    ("player", ("stopped", "playing", "paused"), ("play", "pause", "stop")),
    ("cat", ("asleep", "hungry", "playful"), ("noise", "food", "string")),
    ("oven", ("cold", "warming", "hot"), ("on", "wait", "off")),
    ("phone", ("idle", "ringing", "talking"), ("call", "answer", "hang_up")),
    ("kettle", ("empty", "full", "boiling"), ("fill", "heat", "pour")),
)


def tables(w: Writer) -> str:
    """A thing with a few states, and events that move it."""
    thing, states, events = w.choice(_STORIES)
    stream = w.fork()
    table = {state: {event: stream.choice(states) for event in events} for state in states}
    for i, state in enumerate(states):
        table[state][events[i]] = states[(i + 1) % len(states)]
        if stream.chance(40):
            del table[state][events[(i + 1) % len(events)]]
    first = w.choice(states)
    if w.level < 4:
        a, b, c = states
        if w.level == 1:
            seen = w.picks(events, 1)
            body = fill(
                """
                $thing = "$a"
                event = "$event"
                if $thing == "$a" and event == "$e1":
                    $thing = "$b"
                elif event == "$e2":
                    $thing = "$c"
                $more
                print($shown)
                """,
                thing=thing,
                a=first,
                b=b,
                c=c,
                event=seen[0],
                e1=events[0],
                e2=w.choice(events[1:]),
                more=w.choice(
                    (
                        f'if {thing} != "{w.choice(states)}":\n    event = "{w.choice(events)}"',
                        f'if event == "{w.choice(events)}":\n    {thing} = "{w.choice(states)}"',
                        f"{thing} = {thing}.upper()",
                        f"count = len({thing})",
                    )
                ),
                shown=w.choice((thing, f"{thing}, event", f"event, {thing}")),
            )
            return program(
                body.replace(f"print({thing})", f"print({thing}, count)") if "count =" in body else body
            )
        body = fill(
            """
            $thing = "$first"
            for event in $events:
                if event == "$e1":
                    $thing = "$b"
                elif $thing == "$b":
                    $thing = "$c"
                $report
            print($thing)
            """,
            thing=thing,
            first=first,
            events="[" + ", ".join(map(quoted, w.picks(events, w.size(2, 8)))) + "]",
            e1=w.choice(events),
            b=b,
            c=w.choice((a, c)),
            report=w.at(3, f"print(event, {thing})") if w.chance(70) else "",
        )
        return program(body)
    moves = spread(
        "MOVES",
        [
            f'"{state}": {{{", ".join(f"{quoted(e)}: {quoted(s)}" for e, s in row.items())}}}'
            for state, row in table.items()
        ],
        "{}",
        60,
    )
    counted = w.level > 5
    step = define(
        "step(state, event)",
        """
        row = MOVES[state]
        if event not in row:
            $unknown
        $log
        return row[event]
        """,
        unknown=w.choice(
            ("return state", f'return "{first}"', 'print("no", event)\nreturn state')
            if w.level < 7
            else ("return state", f'return "{first}"')
        ),
        log=w.at(4, w.choice(("", 'print(state, "->", row[event])')), below=7),
    )
    if w.level < 6:
        body = fill(
            """
            $thing = "$first"
            for event in $events:
                $thing = step($thing, event)
                $shown
            $end
            """,
            thing=thing,
            first=first,
            events="[" + ", ".join(map(quoted, w.picks(events, w.size(2, 12)))) + "]",
            shown="" if "->" in step else f"print(event, {thing})",
            end=f"print({thing})",
        )
        return program(moves, step, w.main(body))
    rounds = w.size(2, 90)
    names = w.sample(PEOPLE, 2) if w.level > 7 else []
    body = fill(
        """
        events = [$events]
        visits = {}
        $start
        for turn in range(1, $stop):
            event = events[turn * $a % len(events)]
            $thing = step($thing, event)
            visits[$thing] = visits.get($thing, 0) + 1
            $other
            $rule
            $report
        for state in sorted(visits):
            print(state, visits[state])
        """,
        events=", ".join(map(quoted, [*events, *w.picks(events, w.between(1, 4))])),
        start=f'{thing} = "{first}"' + (f'\nother = "{w.choice(states)}"' if names else ""),
        stop=rounds + 1,
        a=w.between(2, 5),
        thing=thing,
        other=f"if turn % {w.between(2, 3)} == 0:\n"
        f"    other = step(other, event)\n"
        f"    visits[other] = visits.get(other, 0) + 1"
        if names
        else "",
        rule=w.choice(
            (
                f'if visits[{thing}] % {w.between(4, 7)} == 0:\n    {thing} = "{first}"',
                f"if turn % {w.between(4, 9)} == 0:\n    events.append(events.pop(0))",
                f'if {thing} == "{w.choice(states)}" and turn % 2 == 0:\n    events.reverse()',
            )
        ),
        report=w.sometimes("turn", rounds, f"print(turn, event, {thing})"),
    )
    return program(moves, step, w.main(body)) if counted else program(moves, step, body)


def vending(w: Writer) -> str:
    """A machine that takes coins and gives things."""
    goods = w.sample(GOODS, 3)
    prices = [w.between(2, 9) * 5 for _ in goods]
    coins = (5, 10, 20, 50)
    if w.level < 4:
        price = prices[0]
        given = w.picks(coins, w.size(1, 6))
        body = fill(
            """
            $credit = 0
            for coin in $coins:
                $credit += coin
                if $credit >= $price:
                    print("$goods", $credit - $price)
                    $credit = 0
                $report
            print($credit)
            """,
            credit=w.choice(("credit", "paid", "inserted")),
            coins=given,
            price=price,
            goods=goods[0],
            report=w.at(2, w.choice(('else:\n    print("more")', "print(coin)"))),
        )
        if w.level == 1:
            body = fill(
                'state = "idle"\ncredit = $a\n$act\nif credit >= $price:\n'
                '    state = "$out"\n    credit -= $price\n$more\n'
                "print(state, credit)",
                a=w.choice(coins),
                act=w.choice(
                    (
                        f"credit += {w.choice(coins)}",
                        f"credit = credit * 2 + {w.choice(coins)}",
                        f"if credit < {w.choice(coins)}:\n    credit += {w.choice(coins)}",
                    )
                ),
                price=price,
                out=w.choice((goods[0], "done", "sold")),
                more=w.choice(
                    (
                        "if credit == 0:\n    state = state.upper()",
                        f"credit += {w.choice(coins)}",
                        f'if state == "idle":\n    credit += {w.choice(coins)}',
                    )
                ),
            )
        return program(body)
    kind = w.chance(50)
    handle = define(
        "handle(machine, word)",
        """
        if word.isdigit():
            machine["credit"] += int(word)
            machine["state"] = "ready"
            return "credit " + str(machine["credit"])
        if word == "back":
            change = machine["credit"]
            machine["credit"] = 0
            machine["state"] = "idle"
            return "returned " + str(change)
        if machine["state"] != "ready":
            return $refuse
        price = PRICES.get(word, $unknown)
        if price > machine["credit"]:
            return "need " + str(price - machine["credit"])
        machine["credit"] -= price
        $sold
        if machine["credit"] == 0:
            machine["state"] = "idle"
        return word
        """,
        refuse=w.choice(('"insert coins"', '"wait"', '"no credit"')),
        unknown=w.between(5, 30),
        sold='machine["sold"].append(word)' if (sold := w.level > 5) else "",
    )
    words_ = w.picks([*map(str, coins), *goods, *goods, "back", w.choice(NOUNS)], w.size(2, 14))
    data = spread("PRICES", [f'"{good}": {price}' for good, price in zip(goods, prices, strict=True)], "{}")
    credit = w.choice((0, 0, 5, 10)) if kind else 0
    entries = ['"state": "idle"', f'"credit": {credit}', *(['"sold": []'] if sold else [])]
    start = spread("machine", entries, "{}")
    if w.level < 8:
        body = fill(
            '$start\nfor word in $words:\n    $shown\nprint(machine["state"], machine["credit"])\n$sold',
            start=start,
            words="[" + ", ".join(map(quoted, words_)) + "]",
            shown=w.choice(
                (
                    "print(handle(machine, word))",
                    "print(word, handle(machine, word))",
                    'answer = handle(machine, word)\nprint(answer, machine["state"])',
                )
            ),
            sold='print(machine["sold"])' if sold else "",
        )
        return program(data, handle, w.main(body))
    rounds = w.size(8, 90)
    words_ = [*map(str, w.sample(coins, 2)), goods[0], goods[1], "back", goods[2], str(w.choice(coins))]
    body = fill(
        """
        $start
        words = [$words]
        for turn in range(1, $stop):
            word = words[turn * turn % len(words)] if turn % $k else words[turn % len(words)]
            answer = handle(machine, word)
            if answer.startswith("need"):
                $need
            $report
        print(machine["state"], machine["credit"], len(machine["sold"]))
        for good in PRICES:
            print(good, machine["sold"].count(good))
        """,
        start=start,
        words=", ".join(map(quoted, w.shuffled(words_))),
        stop=rounds + 1,
        k=w.between(2, 4),
        need=w.choice(
            (
                f'machine["credit"] += {w.choice((5, 10))}',
                "PRICES[word] = PRICES.get(word, 20) - 5",
                'handle(machine, "10")',
            )
        ),
        report=w.sometimes("turn", rounds, "print(turn, word, answer)"),
    )
    return program(data, handle, w.main(body))


def recognisers(w: Writer) -> str:
    """Machines that read marks and say yes or no."""
    a, b = w.choice((("0", "1"), ("a", "b"), ("x", "y"), ("-", "+"), ("L", "R")))
    k = w.between(3, 5)
    text = "".join(w.picks((a, b), w.size(3, 14)))
    kind = w.choice(("remainder", "pattern", "balance", "table"))
    one = w.between(1, k - 1)
    zero = w.between(0, k - 1)
    rules = {
        "remainder": f'state = (state * 2 + (mark == "{b}")) % {k}',
        "pattern": f'if mark == "{b}":\n    state = min(state + 1, {k})\nelif state < {k}:\n    state = 0',
        "balance": f'if mark == "{a}":\n    state += 1\nelse:\n    state -= {w.between(1, 2)}',
        "table": f'if mark == "{a}":\n    state = (state + {zero}) % {k}\nelse:\n'
        f"    state = (state * {one} + 1) % {k}",
    }
    if w.level < 5:
        body = fill(
            """
            state = $start
            for mark in "$text":
                $rule
                $report
            $end
            """,
            start=w.below(3),
            text=text[: 4 if w.level == 1 else 14],
            rule=rules[kind],
            report=w.at(2, w.choice(("print(mark, state)", "print(state)"))),
            end=w.choice(
                (
                    "print(state)",
                    f'print("yes" if state == {w.below(k)} else "no")',
                    f"print(state, state == {w.below(k)})",
                )
            ),
        )
        return program(body)
    states = ("start", "middle", "done", "lost")[: w.between(3, 4)]
    stream = w.fork()
    rows = {state: {a: stream.choice(states), b: stream.choice(states)} for state in states}
    rows["start"][a] = "middle"
    rows["middle"][b] = "done"
    table = spread(
        "TABLE",
        [f'"{state}": {{"{a}": "{row[a]}", "{b}": "{row[b]}"}}' for state, row in rows.items()],
        "{}",
        60,
    )
    use_table = w.level > 6 or w.chance(50)
    accept = define(
        "accepts(text)",
        """
        state = $start
        $steps
        for mark in text:
            $rule
            $log
        return $result
        """,
        start='"start"' if use_table else "0",
        steps="changes = 0" if (changes := w.level > 7 and use_table) else "",
        rule=("if TABLE[state][mark] != state:\n    changes += 1\n" if changes else "")
        + "state = TABLE[state][mark]"
        if use_table
        else rules[kind],
        log=w.at(5, "print(mark, state)", below=6),
        result=('state == "done", changes' if changes else 'state == "done"')
        if use_table
        else f"state == {w.below(3)}",
    )
    if w.level < 8:
        texts = ["".join(w.fork().picks((a, b), w.size(2, 12))) for _ in range(9)][: w.size(1, 9)]
        body = join(
            spread("texts", [quoted(text) for text in texts]),
            "count = 0",
            under(
                "for text in texts:",
                'if accepts(text):\n    count += 1\n    print(text, "yes")\nelse:\n    print(text, "no")',
            ),
            "print(count)",
        )
        return program(table if use_table else "", accept, w.main(body))
    widths = w.between(4, 8)
    rounds = w.size(5, 60)
    body = fill(
        """
        accepted = []
        total = 0
        for n in range($low, $high$stride):
            text = ""
            value = n
            while value > 0:
                text = ("$b" if value % 2 else "$a") + text
                value //= 2
            $pad
            good, changes = accepts(text)
            total += changes
            if good:
                accepted.append(n)
            $report
        print(len(accepted), accepted[-4:], total)
        """,
        low=(low := w.between(2, 30)),
        high=low + rounds,
        stride="",
        a=a,
        b=b,
        pad=w.maybe(8, f'text = text.rjust({widths}, "{a}")'),
        report=w.sometimes("n", rounds, w.choice(("print(n, text, good)", "print(text, good, changes)"))),
    )
    return program(table, accept, w.main(body))


def scanners(w: Writer) -> str:
    """Text read mark by mark by a machine with modes."""
    words_ = w.picks(up_to(NOUNS, 6), 10)
    numbers = w.numbers(10, 1, 99)
    quote, comment = w.choice((("'", "#"), ("|", ";"), ("`", "%"), ("*", "~")))
    pieces = [
        w.choice((word, str(number), f"{word} {number}", f"{quote}{word}{quote}", f"{word}+{number}"))
        for word, number in zip(words_, numbers, strict=True)
    ]
    text = " ".join(pieces)[: w.size(4, 26)].strip()
    if w.level < 5:
        on, off = w.choice((("word", "gap"), ("in", "out"), ("on", "off")))
        test = w.choice(('mark != " "', "mark.isalpha()", "mark.isdigit()", 'mark in "aeiou"'))
        body = fill(
            """
            mode = "$off"
            count = 0
            for mark in "$text":
                if $test:
                    if mode == "$off":
                        count += 1
                        $report
                    mode = "$on"
                else:
                    mode = "$off"
            print($end)
            """,
            on=on,
            off=off,
            text=text[: w.size(2, 12)] if w.level < 3 else text,
            test=test,
            report=w.at(3, "print(count, mark)"),
            end=w.choice(("count, mode", "mode, count")),
        )
        return program(body)
    scan = define(
        "scan(text)",
        """
        mode = "out"
        current = ""
        found = []
        for mark in text + " ":
            if mode == "quote":
                if mark == "$quote":
                    found.append($quoted)
                    mode, current = "out", ""
                else:
                    current += mark
            elif mode == "word" and $inside:
                current += mark
            else:
                if mode == "word":
                    found.append(current)
                    $log
                    mode, current = "out", ""
                if mark == "$quote":
                    mode = "quote"
                $comment
                elif mark.isalnum():
                    mode, current = "word", mark
                elif mark != " ":
                    found.append(mark)
        return found
        """,
        quote=quote,
        quoted=w.choice(("current.upper()", "'<' + current + '>'".replace("'", '"'), 'current + "!"')),
        inside=w.choice(
            ("mark.isalnum()", "mark.isalpha()", "mark.isdigit() == current.isdigit() and mark.isalnum()")
        ),
        log=w.at(5, "print(current)", below=7),
        comment=w.maybe(6, f'elif mark == "{comment}":\n    break'),
    )
    if "break" in scan and w.chance(60):
        text = text[: len(text) // 2] + comment + text[len(text) // 2 :]
    text = text.replace("\\", "")
    if w.level < 7:
        body = join(
            f'tokens = scan("{text[: w.size(3, 26)]}")',
            "print(tokens)",
            w.at(6, "print(len(tokens), tokens[-1:])"),
        )
        return program(scan, w.main(body))
    kinds = define(
        "kind(token)",
        'if token.isdigit():\n    return "number"\nif token.isalpha():\n    return "name"\nreturn "mark"',
    )
    lines = [" ".join(w.fork().sample(pieces, 1 if w.level < 9 else 2)) for _ in range(12)][: w.size(3, 12)]
    body = fill(
        """
        $lines
        counts = {}
        total = 0
        for line in lines:
            tokens = scan(line)
            for token in tokens:
                name = kind(token)
                counts[name] = counts.get(name, 0) + 1
                if name == "number":
                    total += int(token)
            print(len(tokens), $shown)
        for name in sorted(counts):
            print(name, counts[name])
        $show
        """,
        lines=spread("lines", [quoted(line) for line in lines]),
        shown=w.choice(("tokens", "tokens[0]", "tokens[-1], total", "total")),
        show=w.show("total", "total"),
    )
    return program(scan, kinds, w.main(body))


def workflows(w: Writer) -> str:
    """Orders, tickets and parcels on their way."""
    name, states = w.choice(
        (
            ("order", ("new", "paid", "packed", "sent", "done")),
            ("ticket", ("open", "taken", "fixed", "tested", "closed")),
            ("parcel", ("home", "depot", "truck", "street", "delivered")),
            ("book", ("draft", "edited", "printed", "shelved", "sold")),
            ("plant", ("seed", "sprout", "leaf", "bud", "flower")),
        )
    )
    back = w.between(1, 2)
    acts = w.choice((("next", "back", "skip"), ("forward", "undo", "jump"), ("advance", "return", "leap")))
    skipped = w.sample(range(5), 2) if w.level < 3 else []
    used = [state for i, state in enumerate(states) if i not in skipped]
    if w.level < 4:
        listed = w.choice(("states", "stages", "steps", f"{name}_states"))
        body = fill(
            """
            $states = [$listed]
            $at = $start
            for act in [$acts]:
                if act == "$a":
                    $at = min($at + 1, $last)
                elif $at > 0:
                    $at -= 1
                $report
            print($end)
            """,
            at=(at := w.choice(("place", "stage", "position", "i"))),
            end=w.choice(
                (f"{listed}[{at}]", f"{name!r}, {listed}[{at}]".replace("'", '"'), f"{at}, {listed}[{at}]")
            ),
            states=listed,
            listed=", ".join(map(quoted, used)),
            start=w.below(3),
            acts=", ".join(map(quoted, w.picks(acts[:2], w.size(1, 7)))),
            a=acts[0],
            last=len(used) - 1,
            report=w.at(2, f"print(act, {listed}[{at}])"),
        )
        return program(body)
    cls = define(
        f"class {name.title()}",
        """
        def __init__(self, name):
            self.name = name
            self.place = 0
            $history

        def state(self):
            return STATES[self.place]

        def handle(self, act):
            if act == "$a":
                if self.place == len(STATES) - 1:
                    $end
                self.place += 1
            elif act == "$b":
                self.place = max(0, self.place - $back)
            elif self.place $test:
                self.place = min(self.place + 2, len(STATES) - 1)
            else:
                $bad
            $keep
            return $ok
        """,
        history="self.history = []" if (kept := w.level > 5) else "",
        a=acts[0],
        b=acts[1],
        end=w.choice((f'return "{w.choice(("finished", "no", "stuck"))}"', "self.place = -1")),
        back=back,
        test=w.choice(("% 2 == 0", "< 2", "> 0")),
        bad=w.choice(('return "refused"', "self.place = 0", 'return "not " + act')),
        keep="self.history.append(self.state())" if kept else "",
        ok="self.state()",
    )
    constants = f"STATES = [{', '.join(map(quoted, used))}]"
    if w.level < 7:
        body = fill(
            '$x = $cls("$who")\nfor act in [$acts]:\n    print(act, $x.handle(act))\n$end',
            x=name[0],
            cls=name.title(),
            who=w.choice(PEOPLE),
            acts=", ".join(map(quoted, w.picks((acts[0], *acts), w.size(1, 12)))),
            end=f"print({name[0]}.name, {name[0]}.state()" + (f", len({name[0]}.history))" if kept else ")"),
        )
        return program(constants, cls, w.main(body))
    people = w.sample(PEOPLE, w.between(2, 4))
    rounds = w.size(2, 34)
    body = fill(
        """
        items = [$made]
        acts = [$acts]
        for turn in range(1, $stop):
            for i, item in enumerate(items):
                act = acts[(turn * $a + i * $b) % len(acts)]
                answer = item.handle(act)
                $react
            $report
        for item in items:
            print(item.name, item.state(), len(item.history), item.history.count("$last"))
        """,
        made=", ".join(f'{name.title()}("{person}")' for person in people),
        acts=", ".join(map(quoted, [*acts, *w.picks((acts[0], acts[0], acts[2]), w.between(1, 3))])),
        stop=rounds + 1,
        a=w.between(2, 5),
        b=w.between(2, 5),
        react=w.choice(
            (
                f'if answer == "{states[2]}":\n    items[0].handle("{acts[0]}")',
                "if answer not in STATES:\n    item.place = i",
                f'if item.place == {w.between(3, 4)} and turn % 2 == 0:\n    item.handle("{acts[1]}")',
            )
        ),
        report=w.sometimes("turn", rounds, w.tell("turn", "turn", "items[0].state()", "items[-1].state()")),
        last=w.choice(used),
    )
    return program(constants, cls, w.main(body))


def computers(w: Writer) -> str:
    """A tiny processor, or a head on a tape."""
    kind = "tape" if w.level < 6 else w.choice(("processor", "tape"))
    if w.level < 4:
        ops = w.picks(("inc", "dec", "dbl", "neg", "half"), w.size(1, 7))
        shown = w.at(2, w.choice(("print(op, x)", "print(x)")))
        body = fill(
            """
            x = $x
            for op in [$ops]:
                if op == "inc":
                    x += $k
                elif op == "dbl":
                    x *= 2
                elif op == "dec":
                    x -= 1
                $shown
            print(x)
            """,
            x=w.between(1, 90),
            ops=", ".join(map(quoted, ops)),
            k=w.between(1, 9),
            shown=shown,
        )
        if w.level == 1:
            body = body.replace('    elif op == "dec":\n        x -= 1\n', "")
        return program(body)
    if kind == "processor":
        loops = w.size(1, 60)
        target = w.choice(("b", "c"))
        code = [
            f'("set", "a", {loops})',
            f'("set", "b", {w.between(0, 9)})',
            f'("set", "c", {w.between(1, 5)})',
        ]
        head = len(code)
        inner = w.sample(
            [
                '("add", "b", "c")',
                '("add", "c", "a")',
                f'("add", "b", {w.between(1, 9)})',
                f'("mod", "b", {w.between(7, 60)})',
                f'("mod", "c", {w.between(5, 30)})',
                '("sub", "c", "b")',
                f'("mul", "c", {w.between(2, 3)})',
            ],
            2 if w.level < 6 else 3 if w.level < 9 else 4,
        )
        if not any("mod" in line for line in inner):
            inner.append(f'("mod", "{target}", {w.between(20, 90)})')
        code += inner
        if w.level > 6:
            code += [
                f'("even", "{target}", {len(code) + 2})',
                f'("out", "{target}", 0)' if w.level < 9 else f'("add", "{target}", 1)',
            ]
        else:
            code += [f'("out", "{target}", 0)'] if loops < 12 else []
        code += ['("sub", "a", 1)', f'("jump", "a", {head})', '("out", "b", 0)']
        run = define(
            "run(code)",
            """
            regs = {"a": 0, "b": 0, "c": 0}
            place = steps = 0
            while place < len(code) and steps < $most:
                op, name, value = code[place]
                if value in regs:
                    value = regs[value]
                place += 1
                steps += 1
                if op == "set":
                    regs[name] = value
                elif op == "add":
                    regs[name] += value
                elif op == "sub":
                    regs[name] -= value
                $mul
                elif op == "mod":
                    regs[name] %= value
                elif op == "out":
                    print(name, regs[name])
                $even
                elif regs[name] != 0:
                    place = value
                $trace
            return regs, steps
            """,
            most=w.between(900, 2000),
            mul='elif op == "mul":\n    regs[name] *= value' if any("mul" in line for line in code) else "",
            even='elif op == "even":\n    if regs[name] % 2 == 1:\n        place = value'
            if w.level > 6
            else "",
            trace=f"if steps % {max(2, loops * (len(inner) + 3) // w.prints)} == 0:\n    print(steps, regs)"
            if w.level > 6
            else "",
        )
        body = join(
            spread("code", code, width=0),
            "regs, steps = run(code)",
            "print(regs, steps)",
        )
        return program(run, w.main(body))
    cells = w.between(4, 7) if w.level < 8 else w.between(5, 9)
    stream = w.fork()
    modes = ("A", "B") if w.level < 7 else ("A", "B", "C")
    rules = {}
    for mode in modes:
        for value in (0, 1):
            rules[(mode, value)] = (stream.below(2), stream.choice((1, 1, -1)), stream.choice(modes))
    rules[("A", 0)] = (1, 1, "B")
    table = spread(
        "RULES", [f'("{m}", {v}): ({n}, {d}, "{t}")' for (m, v), (n, d, t) in rules.items()], "{}", 60
    )
    step = define(
        "step(tape, head, mode)",
        """
        write, move, mode = RULES[mode, tape[head]]
        tape[head] = write
        head = $move
        return head, mode
        """,
        move=w.choice(("(head + move) % len(tape)", "max(0, min(len(tape) - 1, head + move))")),
    )
    rounds = w.size(2, 110)
    text = w.choice(('"".join(map(str, tape))', "tape", "sum(tape), tape"))
    body = fill(
        """
        tape = [0] * $cells
        head, mode = $start, "A"
        $count
        for turn in range(1, $stop):
            head, mode = step(tape, head, mode)
            $extra
            $report
        print(head, mode, $text)
        $last
        """,
        cells=cells,
        start=w.below(cells),
        count=w.at(6, "visits = [0] * len(tape)"),
        stop=rounds + 1,
        extra=w.at(6, "visits[head] += 1")
        + (f"\nif turn % {w.between(7, 15)} == 0:\n    tape[turn % len(tape)] ^= 1" if w.level > 7 else ""),
        report=w.sometimes(
            "turn",
            rounds,
            f"print(turn, head, mode, {text})"
            if rounds < 60 or "join" in text
            else "print(turn, head, mode, sum(tape))",
        ),
        text=text,
        last=w.at(6, "print(visits)"),
    )
    return program(table, step, w.main(body))


FAMILY = Family(
    "machines",
    (
        Template(tables),
        Template(vending),
        Template(recognisers),
        Template(scanners, lowest=2),
        Template(workflows),
        Template(computers),
    ),
)
