"""State machines: tables of moves, vending, recognisers, scanners, workflows, little computers."""

from __future__ import annotations

from typing import NamedTuple

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
    strings,
    under,
)

#: Things with their three states and three events.
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

_COINS = (5, 10, 20, 50)

#: Pairs of marks that recognisers read.
_MARKS = (("0", "1"), ("a", "b"), ("x", "y"), ("-", "+"), ("L", "R"))

#: Marks around quoted text and marks before a comment.
_QUOTES = (("'", "#"), ("|", ";"), ("`", "%"), ("*", "~"))

#: Things with the states they pass through in order.
_JOURNEYS = (
    ("order", ("new", "paid", "packed", "sent", "done")),
    ("ticket", ("open", "taken", "fixed", "tested", "closed")),
    ("parcel", ("home", "depot", "truck", "street", "delivered")),
    ("book", ("draft", "edited", "printed", "shelved", "sold")),
    ("plant", ("seed", "sprout", "leaf", "bud", "flower")),
)

#: Words for a step forward, a step back and a step of another kind.
_ACTS = (("next", "back", "skip"), ("forward", "undo", "jump"), ("advance", "return", "leap"))


class _Thing(NamedTuple):
    """A thing that events move between states.

    Attributes:
        name: The variable that has its state.
        states: Its three states.
        events: Its three events.
        moves: The next state by state and event.
        first: The state that it starts in.
    """

    name: str
    states: tuple[str, ...]
    events: tuple[str, ...]
    moves: dict[str, dict[str, str]]
    first: str


def tables(w: Writer) -> str:
    """Returns a program about a thing that events move between states, by level."""
    thing = _thing(w)
    if w.level == 1:
        return thing_after_one_event(w, thing)
    if w.level < 4:
        return thing_without_table(w, thing)
    if w.level < 6:
        return table_of_moves(w, thing)
    return table_with_visits(w, thing)


def _thing(w: Writer) -> _Thing:
    """Returns a thing from the stories, with moves and a first state."""
    name, states, events = w.choice(_STORIES)
    stream = w.fork()
    moves = {state: {event: stream.choice(states) for event in events} for state in states}
    for i, state in enumerate(states):
        moves[state][events[i]] = states[(i + 1) % len(states)]
        if stream.chance(40):
            del moves[state][events[(i + 1) % len(events)]]
    return _Thing(name, states, events, moves, first=w.choice(states))


def thing_after_one_event(w: Writer, thing: _Thing) -> str:
    """Program that moves a thing by one event and prints its state."""
    name, states, events, _, first = thing
    event = w.picks(events, 1)[0]
    other_event = w.choice(events[1:])
    more = w.choice(
        (
            f'if {name} != "{w.choice(states)}":\n    event = "{w.choice(events)}"',
            f'if event == "{w.choice(events)}":\n    {name} = "{w.choice(states)}"',
            f"{name} = {name}.upper()",
            f"count = len({name})",
        )
    )
    shown = w.choice((name, f"{name}, event", f"event, {name}"))
    if "count =" in more and shown == name:
        shown = f"{name}, count"
    body = fill(
        """
        $thing = "$first"
        event = "$event"
        if $thing == "$first" and event == "$e1":
            $thing = "$b"
        elif event == "$e2":
            $thing = "$c"
        $more
        print($shown)
        """,
        thing=name,
        first=first,
        event=event,
        e1=events[0],
        e2=other_event,
        b=states[1],
        c=states[2],
        more=more,
        shown=shown,
    )
    return program(body)


def thing_without_table(w: Writer, thing: _Thing) -> str:
    """Loop over events that moves a thing by conditions on event and state."""
    a, b, c = thing.states
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
        thing=thing.name,
        first=thing.first,
        events=strings(w.picks(thing.events, w.size(2, 8))),
        e1=w.choice(thing.events),
        b=b,
        c=w.choice((a, c)),
        report=w.at(3, f"print(event, {thing.name})") if w.chance(70) else "",
    )
    return program(body)


def table_of_moves(w: Writer, thing: _Thing) -> str:
    """Loop over events that moves a thing by a table and prints each state."""
    step = _step(w, thing)
    body = fill(
        """
        $thing = "$first"
        for event in $events:
            $thing = step($thing, event)
            $shown
        print($thing)
        """,
        thing=thing.name,
        first=thing.first,
        events=strings(w.picks(thing.events, w.size(2, 12))),
        shown="" if "->" in step else f"print(event, {thing.name})",
    )
    return program(_moves(thing), step, w.main(body))


def table_with_visits(w: Writer, thing: _Thing) -> str:
    """Loop over turns that moves one or two things by a table and counts each state's visits."""
    name, states, events, _, first = thing
    step = _step(w, thing)
    rounds = w.size(2, 90)
    two = w.level > 7
    if two:
        # Not used, but drawn: each id keeps its program.
        w.sample(PEOPLE, 2)
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
        start=f'{name} = "{first}"' + (f'\nother = "{w.choice(states)}"' if two else ""),
        stop=rounds + 1,
        a=w.between(2, 5),
        thing=name,
        other=f"if turn % {w.between(2, 3)} == 0:\n"
        f"    other = step(other, event)\n"
        f"    visits[other] = visits.get(other, 0) + 1"
        if two
        else "",
        rule=w.choice(
            (
                f'if visits[{name}] % {w.between(4, 7)} == 0:\n    {name} = "{first}"',
                f"if turn % {w.between(4, 9)} == 0:\n    events.append(events.pop(0))",
                f'if {name} == "{w.choice(states)}" and turn % 2 == 0:\n    events.reverse()',
            )
        ),
        report=w.sometimes("turn", rounds, f"print(turn, event, {name})"),
    )
    return program(_moves(thing), step, w.main(body))


def _moves(thing: _Thing) -> str:
    """Returns the table of a thing's moves as written in a program."""
    rows = [
        f'"{state}": {{{", ".join(f"{quoted(event)}: {quoted(after)}" for event, after in row.items())}}}'
        for state, row in thing.moves.items()
    ]
    return spread("MOVES", rows, "{}", 60)


def _step(w: Writer, thing: _Thing) -> str:
    """Returns the function ``step``, which looks a move up in the table."""
    unknown = ("return state", f'return "{thing.first}"', 'print("no", event)\nreturn state')
    return define(
        "step(state, event)",
        """
        row = MOVES[state]
        if event not in row:
            $unknown
        $log
        return row[event]
        """,
        unknown=w.choice(unknown if w.level < 7 else unknown[:2]),
        log=w.at(4, w.choice(("", 'print(state, "->", row[event])')), below=7),
    )


def vending(w: Writer) -> str:
    """Returns a program about a machine that sells goods, by level."""
    goods = w.sample(GOODS, 3)
    prices = [w.between(2, 9) * 5 for _ in goods]
    if w.level < 4:
        slot = coin_slot(w, goods[0], prices[0])
        # Not used at level 1, but drawn: each id keeps its program.
        return single_purchase(w, goods[0], prices[0]) if w.level == 1 else slot
    machine = _vending_machine(w, goods, prices)
    if w.level < 8:
        return words_to_machine(w, machine)
    return turns_at_machine(w, goods, machine)


def coin_slot(w: Writer, good: str, price: int) -> str:
    """Loop over coins that sells one kind of goods."""
    given = w.picks(_COINS, w.size(1, 6))
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
        goods=good,
        report=w.at(2, w.choice(('else:\n    print("more")', "print(coin)"))),
    )
    return program(body)


def single_purchase(w: Writer, good: str, price: int) -> str:
    """Purchase without a loop, printed as state and credit."""
    body = fill(
        """
        state = "idle"
        credit = $a
        $act
        if credit >= $price:
            state = "$out"
            credit -= $price
        $more
        print(state, credit)
        """,
        a=w.choice(_COINS),
        act=w.choice(
            (
                f"credit += {w.choice(_COINS)}",
                f"credit = credit * 2 + {w.choice(_COINS)}",
                f"if credit < {w.choice(_COINS)}:\n    credit += {w.choice(_COINS)}",
            )
        ),
        price=price,
        out=w.choice((good, "done", "sold")),
        more=w.choice(
            (
                "if credit == 0:\n    state = state.upper()",
                f"credit += {w.choice(_COINS)}",
                f'if state == "idle":\n    credit += {w.choice(_COINS)}',
            )
        ),
    )
    return program(body)


class _VendingMachine(NamedTuple):
    """A vending machine as written in a program.

    Attributes:
        prices: The table ``PRICES``.
        handle: The function ``handle``, which takes the machine and a word.
        start: The assignment of ``machine``.
        words: Words that the machine is given: coins, goods and others.
        sells: Whether the machine has a list of the goods that it sold.
    """

    prices: str
    handle: str
    start: str
    words: list[str]
    sells: bool


def _vending_machine(w: Writer, goods: list[str], prices: list[int]) -> _VendingMachine:
    """Returns a vending machine with these goods and prices."""
    with_credit = w.chance(50)
    sells = w.level > 5
    handle = _handle(w, sells)
    words = w.picks([*map(str, _COINS), *goods, *goods, "back", w.choice(NOUNS)], w.size(2, 14))
    credit = w.choice((0, 0, 5, 10)) if with_credit else 0
    entries = ['"state": "idle"', f'"credit": {credit}', *(['"sold": []'] if sells else [])]
    return _VendingMachine(
        prices=spread(
            "PRICES", [f'"{good}": {price}' for good, price in zip(goods, prices, strict=True)], "{}"
        ),
        handle=handle,
        start=spread("machine", entries, "{}"),
        words=words,
        sells=sells,
    )


def _handle(w: Writer, sells: bool) -> str:
    """Returns the function ``handle``, which takes a vending machine and a word."""
    return define(
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
        sold='machine["sold"].append(word)' if sells else "",
    )


def words_to_machine(w: Writer, machine: _VendingMachine) -> str:
    """Loop over words that a vending machine answers, each printed."""
    body = fill(
        """
        $start
        for word in $words:
            $shown
        print(machine["state"], machine["credit"])
        $sold
        """,
        start=machine.start,
        words=strings(machine.words),
        shown=w.choice(
            (
                "print(handle(machine, word))",
                "print(word, handle(machine, word))",
                'answer = handle(machine, word)\nprint(answer, machine["state"])',
            )
        ),
        sold='print(machine["sold"])' if machine.sells else "",
    )
    return program(machine.prices, machine.handle, w.main(body))


def turns_at_machine(w: Writer, goods: list[str], machine: _VendingMachine) -> str:
    """Loop over turns at a vending machine, with a remedy when the credit is short."""
    rounds = w.size(8, 90)
    words = [*map(str, w.sample(_COINS, 2)), goods[0], goods[1], "back", goods[2], str(w.choice(_COINS))]
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
        start=machine.start,
        words=", ".join(map(quoted, w.shuffled(words))),
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
    return program(machine.prices, machine.handle, w.main(body))


def recognisers(w: Writer) -> str:
    """Returns a program about a machine that accepts or refuses texts of two marks, by level."""
    marks = w.choice(_MARKS)
    k = w.between(3, 5)
    text = "".join(w.picks(marks, w.size(3, 14)))
    rule = _mark_rule(w, marks, k)
    if w.level < 5:
        return marks_read(w, text, rule, k)
    if w.level < 8:
        return texts_accepted(w, marks, rule)
    return numbers_accepted(w, marks)


def _mark_rule(w: Writer, marks: tuple[str, str], k: int) -> str:
    """Returns statements that change a numeric ``state`` by one ``mark``."""
    a, b = marks
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
    return rules[kind]


def marks_read(w: Writer, text: str, rule: str, k: int) -> str:
    """Loop over one text's marks that changes a numeric state."""
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
        rule=rule,
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


def texts_accepted(w: Writer, marks: tuple[str, str], rule: str) -> str:
    """Loop over texts that a recogniser accepts or not, by a table or by a rule."""
    table = _mark_table(w, marks)
    use_table = w.level > 6 or w.chance(50)
    accepts = define(
        "accepts(text)",
        """
        state = $start
        for mark in text:
            $rule
            $log
        return $result
        """,
        start='"start"' if use_table else "0",
        rule="state = TABLE[state][mark]" if use_table else rule,
        log=w.at(5, "print(mark, state)", below=6),
        result='state == "done"' if use_table else f"state == {w.below(3)}",
    )
    texts = ["".join(w.fork().picks(marks, w.size(2, 12))) for _ in range(9)][: w.size(1, 9)]
    body = join(
        spread("texts", [quoted(text) for text in texts]),
        "count = 0",
        under(
            "for text in texts:",
            'if accepts(text):\n    count += 1\n    print(text, "yes")\nelse:\n    print(text, "no")',
        ),
        "print(count)",
    )
    return program(table if use_table else "", accepts, w.main(body))


def numbers_accepted(w: Writer, marks: tuple[str, str]) -> str:
    """Loop over numbers that a recogniser reads as texts of two marks."""
    table = _mark_table(w, marks)
    accepts = define(
        "accepts(text)",
        """
        state = "start"
        changes = 0
        for mark in text:
            if TABLE[state][mark] != state:
                changes += 1
            state = TABLE[state][mark]
        return state == "done", changes
        """,
    )
    a, b = marks
    width = w.between(4, 8)
    rounds = w.size(5, 60)
    low = w.between(2, 30)
    body = fill(
        """
        accepted = []
        total = 0
        for n in range($low, $high):
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
        low=low,
        high=low + rounds,
        a=a,
        b=b,
        pad=w.maybe(8, f'text = text.rjust({width}, "{a}")'),
        report=w.sometimes("n", rounds, w.choice(("print(n, text, good)", "print(text, good, changes)"))),
    )
    return program(table, accepts, w.main(body))


def _mark_table(w: Writer, marks: tuple[str, str]) -> str:
    """Returns the table ``TABLE``: the next state of a recogniser by state and mark."""
    a, b = marks
    states = ("start", "middle", "done", "lost")[: w.between(3, 4)]
    stream = w.fork()
    rows = {state: {a: stream.choice(states), b: stream.choice(states)} for state in states}
    rows["start"][a] = "middle"
    rows["middle"][b] = "done"
    items = [f'"{state}": {{"{a}": "{row[a]}", "{b}": "{row[b]}"}}' for state, row in rows.items()]
    return spread("TABLE", items, "{}", 60)


def scanners(w: Writer) -> str:
    """Returns a program about text that a machine with modes reads mark by mark, by level."""
    words = w.picks(up_to(NOUNS, 6), 10)
    numbers = w.numbers(10, 1, 99)
    quote, comment = w.choice(_QUOTES)
    pieces = [
        w.choice((word, str(number), f"{word} {number}", f"{quote}{word}{quote}", f"{word}+{number}"))
        for word, number in zip(words, numbers, strict=True)
    ]
    text = " ".join(pieces)[: w.size(4, 26)].strip()
    if w.level < 5:
        return groups_of_marks(w, text)
    scan = _scan(w, quote, comment)
    if "break" in scan and w.chance(60):
        text = text[: len(text) // 2] + comment + text[len(text) // 2 :]
    if w.level < 7:
        return tokens_of_text(w, scan, text)
    return tokens_of_lines(w, scan, pieces)


def groups_of_marks(w: Writer, text: str) -> str:
    """Loop over a text's marks that counts the groups of marks of one kind."""
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


def _scan(w: Writer, quote: str, comment: str) -> str:
    """Returns the function ``scan``, which splits a text into tokens."""
    return define(
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
        quoted=w.choice(("current.upper()", '"<" + current + ">"', 'current + "!"')),
        inside=w.choice(
            ("mark.isalnum()", "mark.isalpha()", "mark.isdigit() == current.isdigit() and mark.isalnum()")
        ),
        log=w.at(5, "print(current)", below=7),
        comment=w.maybe(6, f'elif mark == "{comment}":\n    break'),
    )


def tokens_of_text(w: Writer, scan: str, text: str) -> str:
    """Scanner of one text, its tokens printed as a list."""
    body = join(
        f'tokens = scan("{text[: w.size(3, 26)]}")',
        "print(tokens)",
        w.at(6, "print(len(tokens), tokens[-1:])"),
    )
    return program(scan, w.main(body))


def tokens_of_lines(w: Writer, scan: str, pieces: list[str]) -> str:
    """Scanner of lines that counts tokens by kind and adds up the numbers."""
    kind = define(
        "kind(token)",
        """
        if token.isdigit():
            return "number"
        if token.isalpha():
            return "name"
        return "mark"
        """,
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
    return program(scan, kind, w.main(body))


class _Workflow(NamedTuple):
    """A thing that passes through states in order.

    Attributes:
        name: The thing.
        states: Its five states.
        back: How many states a step back goes back.
        acts: The words for a step forward, a step back and a step of another kind.
    """

    name: str
    states: tuple[str, ...]
    back: int
    acts: tuple[str, ...]


def workflows(w: Writer) -> str:
    """Returns a program about an order, ticket or parcel on its way, by level."""
    name, states = w.choice(_JOURNEYS)
    flow = _Workflow(name, states, back=w.between(1, 2), acts=w.choice(_ACTS))
    if w.level < 4:
        return place_in_states(w, flow)
    if w.level < 7:
        return acts_on_one(w, flow)
    return acts_on_many(w, flow)


def place_in_states(w: Writer, flow: _Workflow) -> str:
    """Loop over acts that moves a place in a list of states."""
    skipped = w.sample(range(5), 2) if w.level < 3 else []
    used = [state for i, state in enumerate(flow.states) if i not in skipped]
    listed = w.choice(("states", "stages", "steps", f"{flow.name}_states"))
    at = w.choice(("place", "stage", "position", "i"))
    body = fill(
        """
        $states = [$listed]
        $at = $start
        for act in [$acts]:
            if act == "$forward":
                $at = min($at + 1, $last)
            elif $at > 0:
                $at -= 1
            $report
        print($end)
        """,
        at=at,
        end=w.choice((f"{listed}[{at}]", f'"{flow.name}", {listed}[{at}]', f"{at}, {listed}[{at}]")),
        states=listed,
        listed=", ".join(map(quoted, used)),
        start=w.below(3),
        acts=", ".join(map(quoted, w.picks(flow.acts[:2], w.size(1, 7)))),
        forward=flow.acts[0],
        last=len(used) - 1,
        report=w.at(2, f"print(act, {listed}[{at}])"),
    )
    return program(body)


def acts_on_one(w: Writer, flow: _Workflow) -> str:
    """Class of a workflow, one object of it and a loop over acts."""
    workflow = _workflow_class(w, flow)
    forward = flow.acts[0]
    x = flow.name[0]
    body = fill(
        """
        $x = $workflow("$who")
        for act in [$acts]:
            print(act, $x.handle(act))
        print($x.name, $x.state()$length)
        """,
        x=x,
        workflow=flow.name.title(),
        who=w.choice(PEOPLE),
        acts=", ".join(map(quoted, w.picks((forward, *flow.acts), w.size(1, 12)))),
        length=w.at(6, f", len({x}.history)"),
    )
    return program(f"STATES = {strings(flow.states)}", workflow, w.main(body))


def acts_on_many(w: Writer, flow: _Workflow) -> str:
    """Class of a workflow, several objects of it and a loop over turns."""
    workflow = _workflow_class(w, flow)
    people = w.sample(PEOPLE, w.between(2, 4))
    rounds = w.size(2, 34)
    forward, backward, leap = flow.acts
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
        made=", ".join(f'{flow.name.title()}("{person}")' for person in people),
        acts=", ".join(map(quoted, [*flow.acts, *w.picks((forward, forward, leap), w.between(1, 3))])),
        stop=rounds + 1,
        a=w.between(2, 5),
        b=w.between(2, 5),
        react=w.choice(
            (
                f'if answer == "{flow.states[2]}":\n    items[0].handle("{forward}")',
                "if answer not in STATES:\n    item.place = i",
                f'if item.place == {w.between(3, 4)} and turn % 2 == 0:\n    item.handle("{backward}")',
            )
        ),
        report=w.sometimes("turn", rounds, w.tell("turn", "turn", "items[0].state()", "items[-1].state()")),
        last=w.choice(flow.states),
    )
    return program(f"STATES = {strings(flow.states)}", workflow, w.main(body))


def _workflow_class(w: Writer, flow: _Workflow) -> str:
    """Returns the class of a workflow, whose method ``handle`` takes an act."""
    return define(
        f"class {flow.name.title()}",
        """
        def __init__(self, name):
            self.name = name
            self.place = 0
            $history

        def state(self):
            return STATES[self.place]

        def handle(self, act):
            if act == "$forward":
                if self.place == len(STATES) - 1:
                    $end
                self.place += 1
            elif act == "$backward":
                self.place = max(0, self.place - $back)
            elif self.place $test:
                self.place = min(self.place + 2, len(STATES) - 1)
            else:
                $bad
            $keep
            return self.state()
        """,
        history=w.at(6, "self.history = []"),
        forward=flow.acts[0],
        backward=flow.acts[1],
        end=w.choice((f'return "{w.choice(("finished", "no", "stuck"))}"', "self.place = -1")),
        back=flow.back,
        test=w.choice(("% 2 == 0", "< 2", "> 0")),
        bad=w.choice(('return "refused"', "self.place = 0", 'return "not " + act')),
        keep=w.at(6, "self.history.append(self.state())"),
    )


def computers(w: Writer) -> str:
    """Returns a program about a tiny processor or a head on a tape, by level."""
    kind = "tape" if w.level < 6 else w.choice(("processor", "tape"))
    if w.level < 4:
        return operations(w)
    if kind == "processor":
        return processor(w)
    return head_on_tape(w)


def operations(w: Writer) -> str:
    """Loop over the names of operations on one number."""
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
            $dec
            $shown
        print(x)
        """,
        x=w.between(1, 90),
        ops=", ".join(map(quoted, ops)),
        k=w.between(1, 9),
        dec=w.at(2, 'elif op == "dec":\n    x -= 1'),
        shown=shown,
    )
    return program(body)


def processor(w: Writer) -> str:
    """Processor with three registers that runs a loop in its own code."""
    loops = w.size(1, 60)
    target = w.choice(("b", "c"))
    setup = [
        f'("set", "a", {loops})',
        f'("set", "b", {w.between(0, 9)})',
        f'("set", "c", {w.between(1, 5)})',
    ]
    inner = _inner_code(w, target)
    code = setup + inner
    if w.level > 6:
        code += [
            f'("even", "{target}", {len(code) + 2})',
            f'("out", "{target}", 0)' if w.level < 9 else f'("add", "{target}", 1)',
        ]
    elif loops < 12:
        code.append(f'("out", "{target}", 0)')
    code += ['("sub", "a", 1)', f'("jump", "a", {len(setup)})', '("out", "b", 0)']
    every = max(2, loops * (len(inner) + 3) // w.prints)
    run = _run(w, multiplies=any("mul" in line for line in code), every=every)
    body = join(spread("code", code, width=0), "regs, steps = run(code)", "print(regs, steps)")
    return program(run, w.main(body))


def _inner_code(w: Writer, target: str) -> list[str]:
    """Returns the instructions inside a processor's loop; one of them takes a remainder."""
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
        3 if w.level < 9 else 4,
    )
    if not any("mod" in line for line in inner):
        inner.append(f'("mod", "{target}", {w.between(20, 90)})')
    return inner


def _run(w: Writer, multiplies: bool, every: int) -> str:
    """Returns the function ``run`` of a processor.

    Args:
        w: The program's choices.
        multiplies: Whether the processor knows ``mul``.
        every: Steps from one print of the registers to the next, from level 7 on.
    """
    return define(
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
        mul='elif op == "mul":\n    regs[name] *= value' if multiplies else "",
        even=w.at(7, 'elif op == "even":\n    if regs[name] % 2 == 1:\n        place = value'),
        trace=w.at(7, f"if steps % {every} == 0:\n    print(steps, regs)"),
    )


def head_on_tape(w: Writer) -> str:
    """Head that moves on a tape of zeros and ones and writes by rules."""
    cells = w.between(4, 7) if w.level < 8 else w.between(5, 9)
    rules = _tape_rules(w)
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
            $visit
            $flip
            $report
        print(head, mode, $text)
        $last
        """,
        cells=cells,
        start=w.below(cells),
        count=w.at(6, "visits = [0] * len(tape)"),
        stop=rounds + 1,
        visit=w.at(6, "visits[head] += 1"),
        flip=f"if turn % {w.between(7, 15)} == 0:\n    tape[turn % len(tape)] ^= 1" if w.level > 7 else "",
        report=w.sometimes(
            "turn",
            rounds,
            f"print(turn, head, mode, {text if rounds < 60 or 'join' in text else 'sum(tape)'})",
        ),
        text=text,
        last=w.at(6, "print(visits)"),
    )
    return program(rules, step, w.main(body))


def _tape_rules(w: Writer) -> str:
    """Returns the table ``RULES``: the value to write, the move and the next mode by mode and cell."""
    stream = w.fork()
    modes = ("A", "B") if w.level < 7 else ("A", "B", "C")
    rules = {
        (mode, value): (stream.below(2), stream.choice((1, 1, -1)), stream.choice(modes))
        for mode in modes
        for value in (0, 1)
    }
    rules["A", 0] = (1, 1, "B")
    rows = [
        f'("{mode}", {value}): ({write}, {move}, "{after}")'
        for (mode, value), (write, move, after) in rules.items()
    ]
    return spread("RULES", rows, "{}", 60)


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
