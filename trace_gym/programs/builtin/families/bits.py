"""Bit operations: flags, counting, shift registers, packed fields, sets as masks, check sums.

The order and the number of draws decide which program a task id has. Some draws therefore stay although one
of the programs ignores them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trace_gym.programs.builtin.vocabulary import COLOURS, FRUITS, NOUNS, PEOPLE
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

_COUNTING = {
    "ones": "count = 0\nwhile n:\n    count += n & 1\n    n >>= 1\nreturn count",
    "strip": "count = 0\nwhile n:\n    n &= n - 1\n    count += 1\nreturn count",
    "parity": "result = 0\nwhile n:\n    result ^= n & 1\n    n >>= 1\nreturn result",
    "flips": "count = 0\nwhile n > 1:\n    if (n & 1) != (n >> 1 & 1):\n"
    "        count += 1\n    n >>= 1\nreturn count",
    "mirror": "result = 0\nfor _ in range($width):\n"
    "    result = result << 1 | n & 1\n    n >>= 1\nreturn result",
    "lowest": "place = 0\nwhile n and not n & 1:\n    n >>= 1\n    place += 1\nreturn place",
    "longest_run": "best = run = 0\nwhile n:\n    if n & 1:\n        run += 1\n"
    "        best = max(best, run)\n    else:\n        run = 0\n"
    "    n >>= 1\nreturn best",
}

#: What a program counts about a register, and the first value of each.
_COUNTERS = {
    "ones": "0",
    "rises": "0",
    "last": "0",
    "sum_of": "0",
    "folded": "0",
    "repeats": "0",
    "seen": "[]",
    "buckets": "[0, 0, 0, 0]",
}

_WEIGH = """
    total = 0
    for i, weight in enumerate(WEIGHTS):
        if mask >> i & 1:
            total += weight
    return total
    """

_MEMBERS = """
    result = []
    for i, item in enumerate(ITEMS):
        if mask & 1 << i:
            result.append(item)
    return result
    """

_EQUAL_PAIRS = """
    pairs = 0
    for first in range(1, $first_stop):
        for second in range(first, $second_stop):
            if first & second == 0 and weigh(first) == weigh(second):
                pairs += 1
                print(members(first), members(second))
    print(pairs)
    """


def _shown(w: Writer, value: str, width: int) -> str:
    """Returns a print of a value in decimal, binary or hexadecimal."""
    return w.choice(
        (
            f"print({value})",
            f"print(bin({value}))",
            f'print(f"{{{value}:0{width}b}}")',
            f"print(hex({value}))",
            f'print({value}, f"{{{value}:b}}")',
        )
    )


@dataclass(frozen=True, slots=True)
class _Flags:
    """Flags of a program.

    Attributes:
        names: The constants for the flags, lowest bit first.
        state: The variable that has the flags set.
    """

    names: tuple[str, ...]
    state: str

    @property
    def every(self) -> int:
        """The number that has all flags set."""
        return (1 << len(self.names)) - 1


def flags(w: Writer) -> str:
    """Program about rights, switches or states as single bits."""
    names = w.choice(
        (
            ("READ", "WRITE", "SHARE", "DELETE", "ADMIN"),
            ("LIGHT", "HEAT", "ALARM", "DOOR", "RADIO"),
            ("RED", "GREEN", "BLUE", "WHITE", "BLACK"),
            ("SWORD", "SHIELD", "ROPE", "LAMP", "MAP"),
            ("BOLD", "ITALIC", "UNDERLINE", "STRIKE", "SMALL"),
        )
    )
    used = names[: 3 if w.level < 5 else w.between(4, 5)]
    flag_set = _Flags(used, w.choice(("rights", "state", "mode", "bag", "style", "flags")))
    if w.level < 4:
        return changed_flags(w, flag_set)
    change = _change_function(w, flag_set)
    steps = _flag_steps(w, flag_set, change)
    if w.level < 7:
        return stepped_flags(w, flag_set, change, steps)
    return users_flags(w, flag_set, change, steps)


def _flag_constants(w: Writer, flag_set: _Flags) -> str:
    """Returns the assignments of the flags, with shifts from level 3 on."""
    return "\n".join(
        f"{name} = {1 << i}" if w.level < 3 else f"{name} = 1 << {i}" for i, name in enumerate(flag_set.names)
    )


def changed_flags(w: Writer, flag_set: _Flags) -> str:
    """Flags that a few statements set, clear and toggle."""
    state = flag_set.state
    a, b, c = w.shuffled(flag_set.names)
    start = w.choice((a, f"{a} | {b}", str(w.between(1, 7)), "0"))
    acts = w.sample(
        (
            f"{state} |= {b}",
            f"{state} &= ~{a}",
            f"{state} ^= {c}",
            f"{state} ^= {a} | {c}",
            f"{state} &= {a} | {b}",
            f"{state} |= {c}",
            f"{state} = {state} << 1 & 7",
        ),
        w.level + (w.level > 1),
    )
    reports = w.choice((f"print({state})", f"print({state}, {state} & {b})", f"print(bin({state}))"))
    tests = w.at(
        2,
        f"if {state} & {w.choice(flag_set.names)}:\n"
        f'    print("{w.choice(("on", "yes", "set"))}")\nelse:\n'
        f'    print("{w.choice(("off", "no", "clear"))}")',
    )
    lines = [acts[0], *(f"{act}\nprint({state})" if w.level > 2 else act for act in acts[1:])]
    return program(join(_flag_constants(w, flag_set), f"{state} = {start}", *lines, tests, reports))


def _change_function(w: Writer, flag_set: _Flags) -> str:
    """Returns the definition of ``change``, sometimes with a fourth action from level 5 on."""
    state, names = flag_set.state, flag_set.names
    return define(
        f"change({state}, action, flag)",
        """
        if action == "set":
            return $s | flag
        if action == "clear":
            return $s & ~flag
        $rule
        return $s ^ flag
        """,
        s=state,
        rule=w.maybe(
            5,
            w.choice(
                (
                    f'if action == "only":\n    return {state} & flag',
                    f'if action == "swap":\n    return {state} ^ flag ^ {names[0]}',
                    f'if action == "move":\n'
                    f"    return ({state} << 1 | {state} >> {len(names) - 1}) & {flag_set.every}",
                )
            ),
        ),
    )


def _flag_steps(w: Writer, flag_set: _Flags, change: str) -> list[str]:
    """Returns nine pairs of an action that ``change`` knows and a flag, as the program writes them."""
    extra = [word for word in ("only", "swap", "move") if f'"{word}"' in change]
    actions = w.picks(["set", "clear", "toggle", *extra], 9)
    names = flag_set.names
    targets = w.picks([*names, f"{names[0]} | {names[-1]}"], 9)
    return [f'("{action}", {target})' for action, target in zip(actions, targets, strict=True)]


def _flag_program(w: Writer, flag_set: _Flags, change: str, body: str) -> str:
    """Returns the program with the constants and functions its body needs; from level 6 on it lists names."""
    constants = _flag_constants(w, flag_set)
    if w.level < 6:
        return program(constants, change, w.main(body))
    table = spread("FLAGS", [f'"{name.lower()}": {name}' for name in flag_set.names], "{}")
    names_of = define(
        f"names({flag_set.state})",
        """
        result = []
        for name, flag in FLAGS.items():
            if $s & flag:
                result.append(name)
        return result
        """,
        s=flag_set.state,
    )
    return program(constants, table, change, names_of, w.main(body))


def stepped_flags(w: Writer, flag_set: _Flags, change: str, steps: list[str]) -> str:
    """Flags that a list of actions changes through a function."""
    state, names = flag_set.state, flag_set.names
    body = fill(
        """
        $s = $start
        $steps
        for action, flag in steps:
            $s = change($s, action, flag)
            $shown
        print(bin($s))
        """,
        s=state,
        start=w.choice(("0", names[1], f"{names[0]} | {names[2]}")),
        steps=spread("steps", steps[: w.size(2, 9)]),
        shown=f"print(action, {state}, names({state}))" if w.level > 5 else f"print(action, {state})",
    )
    return _flag_program(w, flag_set, change, body)


def users_flags(w: Writer, flag_set: _Flags, change: str, steps: list[str]) -> str:
    """Flags of two or three users, changed in turns by a list of actions."""
    names = flag_set.names
    rounds = w.size(2, 44)
    people = w.sample(PEOPLE, w.between(2, 3))
    body = fill(
        """
        $steps
        users = {$users}
        for turn in range(1, $stop):
            for i, user in enumerate(users):
                action, flag = steps[(turn * $a + i) % len(steps)]
                users[user] = change(users[user], action, flag)
            $spread
            $report
        for user in users:
            print(user, users[user], names(users[user]))
        """,
        steps=spread("steps", steps[: max(3, w.size(2, 9))]),
        users=", ".join(f'"{person}": {w.below(flag_set.every + 1)}' for person in people),
        stop=rounds + 1,
        a=w.between(2, 3),
        spread=w.choice(
            (
                f'users["{people[0]}"] ^= turn & {flag_set.every}',
                f'users["{people[-1]}"] |= users["{people[0]}"] & {names[1]}',
                f'if users["{people[0]}"] & {names[0]} and users["{people[1]}"] & {names[0]}:\n'
                f'    users["{people[1]}"] &= ~{names[-1]}',
            )
        ),
        report=w.sometimes(
            "turn", rounds, w.tell("turn", "turn", *(f'users["{person}"]' for person in people))
        ),
    )
    return _flag_program(w, flag_set, change, body)


def counting(w: Writer) -> str:
    """Program that counts ones, runs and the like in binary numbers."""
    width = w.between(4, 8)
    return counted_bits(w) if w.level < 4 else counted_numbers(w, width)


def counted_bits(w: Writer) -> str:
    """Loop over the bits of one number."""
    n = w.between(3, (1 << w.size(3, 11)) - 1) | 1
    zero, step, end = w.choice(
        (
            (f"count = {w.below(20)}", "count += n & 1", "count"),
            ("parity = $b", "parity ^= n & 1", "parity"),
            (f'text = "{w.choice(("", "-", ":", "b", "="))}"', "text = str(n & 1) + text", "text"),
            (f"last = {w.below(8)}", "last = last << 1 | n & 1", "last"),
            (f"zeros = {w.below(9)}", "if not n & 1:\n    zeros += 1", "zeros"),
            (f"total = {w.below(60)}", "total += n", "total"),
        )
    )
    body = fill(
        """
        n = $n
        $zero
        while n > 0:
            $step
            n >>= $shift
            $report
        $show
        """,
        n=n,
        zero=zero,
        b=w.below(2),
        step=step,
        shift=w.choice((1, 1, 2)),
        report=w.at(2, w.choice((f"print({end})", "print(n)", f"print(n, {end})"))),
        show=w.show(end, end),
    )
    return program(body)


def counted_numbers(w: Writer, width: int) -> str:
    """One to three functions that count bits, called for a range of numbers."""
    used = w.sample(list(_COUNTING), 1 if w.level < 7 else 2 if w.level < 9 else 3)
    functions = [define(f"{name}(n)", _COUNTING[name], width=width) for name in used]
    mask = (1 << width) - 1
    start = w.between(1, 60) if w.level < 6 else w.between(20, 900)
    change = w.choice(
        ("n ^= n >> 1", f"n = n * {w.between(3, 9)} & 255", "n |= n << 1", f"n ^= {w.between(3, mask)}", "")
    )
    count = w.size(1, 32)
    stride = w.between(1, 23)
    values = [f"{name}(n)" for name in used]
    every = max(1, count // w.prints)
    shown = f"print({', '.join(['n', 'value', *values[1:]])})"
    body = fill(
        """
        total = 0
        $seen
        for n in range($numbers):
            $change
            value = $first
            total = $add
            $report
        $show
        """,
        seen="seen = 0" if every > 1 else "",
        numbers=f"{start}, {start + count * stride}" + (f", {stride}" if stride > 1 else ""),
        change=change,
        first=values[0],
        add=w.choice(("total + value", "total ^ value", "total + value * n", "(total << 1 ^ value) & 1023")),
        report=f"seen += 1\nif seen % {every} == 0:\n    {shown}" if every > 1 else shown,
        show=w.show("total", "total"),
    )
    return program(*functions, w.main(body))


@dataclass(frozen=True, slots=True)
class _Register:
    """A register that changes step by step.

    Attributes:
        name: Its variable.
        width: Its number of bits.
        kind: The key of its step, such as "gray".
        step: The statements of one step.
        start: Its first value.
        count: The number of steps.
    """

    name: str
    width: int
    kind: str
    step: str
    start: int
    count: int

    @property
    def mask(self) -> int:
        """The number whose ``width`` bits are all set."""
        return (1 << self.width) - 1


def registers(w: Writer) -> str:
    """Program with a shift register, a Gray code or numbers that only look random."""
    width = w.between(4, 6) if w.level < 6 else w.between(6, 16)
    mask = (1 << width) - 1
    name = w.choice(("state", "reg", "x", "seed", "word"))
    taps = sorted(w.sample(range(width), 2), reverse=True)
    steps = {
        "lfsr": f"bit = ($x >> {taps[0]} ^ $x >> {taps[1]}) & 1\n$x = ($x << 1 | bit) & {mask}",
        "galois": f"low = $x & 1\n$x >>= 1\nif low:\n    $x ^= {w.between(mask // 2 + 1, mask)}",
        "xorshift": f"$x ^= $x << {w.between(1, 3)} & {mask}\n$x ^= $x >> {w.between(1, 3)}",
        "rotate": f"$x = ($x << {(turn := w.between(1, 3))} | $x >> {width - turn}) & {mask}\n"
        f"$x = ($x + {w.between(0, 9) * 2 + 1}) & {mask}",
        "gray": f"i += 1\n$x = (i ^ i >> 1) & {mask}",
        "multiply": f"$x = ($x * {w.between(1, 6) * 4 + 1} + {w.between(0, 9) * 2 + 1}) & {mask}",
    }
    kind = w.choice(list(steps))
    register = _Register(name, width, kind, fill(steps[kind], x=name), w.between(1, mask), w.size(2, 130))
    return stepped_register(w, register) if w.level < 5 else watched_register(w, register)


def stepped_register(w: Writer, register: _Register) -> str:
    """Register that a loop steps and prints."""
    name, width = register.name, register.width
    shown = w.choice((f"print({name})", f'print(f"{{{name}:0{width}b}}")', f"print({name}, {name} & 1)"))
    body = fill(
        """
        $x = $start
        $zero
        for _ in range($count):
            $step
            $report
        $last
        """,
        x=name,
        start=register.start,
        zero="i = 0" if register.kind == "gray" else "",
        count=register.count,
        step=register.step,
        report=w.at(2, shown),
        last=_shown(w, name, width),
    )
    return program(body)


def watched_register(w: Writer, register: _Register) -> str:
    """Register that a function steps, while a loop counts what happens to it."""
    name, count = register.name, register.count
    if register.kind == "gray":
        step = define("step(i)", f"return (i ^ i >> 1) & {register.mask}")
        move = f"{name} = step(turn)"
    else:
        step = define(f"step({name})", join(register.step, f"return {name}"))
        move = f"{name} = step({name})"
    pieces = _register_pieces(w, name, count)
    needed = [
        key
        for key in _COUNTERS
        if any(part in pieces for part in (f"{key} ", f"{key}:", f"{key}[", f"{key}."))
    ]
    body = fill(
        """
        $x = $start
        $zeros
        for turn in range(1, $stop):
            $move
            $pieces
            $report
        $shows
        """,
        x=name,
        start=register.start,
        zeros=join(*(f"{key} = {_COUNTERS[key]}" for key in needed)),
        stop=count + 1,
        move=move,
        pieces=pieces,
        report=w.sometimes(
            "turn",
            count,
            w.choice((f"print(turn, {name})", f'print(turn, f"{{{name}:0{register.width}b}}")')),
        ),
        shows=join(*(w.show(key, key) for key in needed if key not in ("last", "seen")), f"print({name})"),
    )
    return program(step, w.main(body))


def _register_pieces(w: Writer, name: str, count: int) -> str:
    """Returns one to three statements that count something about a register of ``count`` steps."""
    return w.some(
        [
            f"if {name} & 1:\n    ones += 1",
            f"if {name} > last:\n    rises += 1\nlast = {name}",
            f"sum_of = (sum_of + {name}) & 255",
            f"folded ^= {name}",
            f"if {name} in seen:\n    repeats += 1\nelse:\n    seen.append({name})"
            if count < 40
            else f"folded ^= {name}",
            f"buckets[{name} & 3] += 1",
        ],
        1,
        3,
    )


@dataclass(frozen=True, slots=True)
class _Layout:
    """Three fields of a packed number, lowest bits first.

    Attributes:
        names: Their variables.
        widths: Their numbers of bits.
    """

    names: tuple[str, str, str]
    widths: tuple[int, int, int]

    @property
    def bits(self) -> int:
        """The number of bits of all fields."""
        return sum(self.widths)

    @property
    def limits(self) -> list[int]:
        """The largest value of each field."""
        return [(1 << width) - 1 for width in self.widths]

    @property
    def shifts(self) -> tuple[int, int]:
        """The lowest bits of the second and of the third field."""
        return self.widths[0], self.widths[0] + self.widths[1]


def fields(w: Writer) -> str:
    """Program that packs several small numbers into one."""
    names = w.choice(
        (
            ("red", "green", "blue"),
            ("day", "month", "year"),
            ("row", "column", "layer"),
            ("hour", "minute", "second"),
            ("suit", "rank", "deck"),
        )
    )
    layout = _Layout(names, (w.between(2, 4), w.between(3, 5), w.between(4, 6)))
    if w.level < 4:
        a, b = w.between(1, layout.limits[0]), w.between(1, layout.limits[1])
        packed = w.between(20, 1 << layout.shifts[1])
        return packed_pair(w, layout, a, b) if w.chance(50) else unpacked_pair(w, layout, packed)
    pack = _pack_function(w, layout)
    return packed_rows(w, layout, pack) if w.level < 7 else packed_turns(w, layout, pack)


def packed_pair(w: Writer, layout: _Layout, a: int, b: int) -> str:
    """Two fields packed into a number, which is then changed."""
    first, second, _ = layout.names
    shift, top = layout.shifts
    lines = [
        f"{first} = {a}",
        f"{second} = {b}",
        f"packed = {second} << {shift} | {first}",
        _shown(w, "packed", top),
    ]
    return program(join(*lines, _packed_changes(w, layout)))


def unpacked_pair(w: Writer, layout: _Layout, packed: int) -> str:
    """Number taken apart into two fields and then changed."""
    first, second, _ = layout.names
    lines = [
        f"packed = {packed}",
        f"{first} = packed & {layout.limits[0]}",
        f"{second} = packed >> {layout.shifts[0]}",
        f"print({first}, {second})",
    ]
    return program(join(*lines, _packed_changes(w, layout)))


def _packed_changes(w: Writer, layout: _Layout) -> str:
    """Returns a change of ``packed``, once or in a loop; nothing at level 1."""
    shift, top = layout.shifts
    low = layout.limits[0]
    changes = [
        f"packed ^= {w.between(1, low)}",
        f"packed |= {1 << w.below(top)}",
        f"packed = packed << 1 & {(1 << top) - 1}",
        f"packed &= ~{1 << w.below(top)}",
    ]
    if w.level == 1:
        return ""
    act = w.choice(changes)
    rounds = w.size(1, 6)
    if rounds == 1:
        return join(act, "print(packed)")
    report = w.choice(("print(packed)", f"print(packed & {low}, packed >> {shift})"))
    return under(f"for _ in range({rounds}):", join(act, report))


def _pack_function(w: Writer, layout: _Layout) -> str:
    """Returns the definition of ``pack``, in one expression or step by step."""
    first, second, third = layout.names
    shift, top = layout.shifts
    return define(
        f"pack({first}, {second}, {third})",
        w.choice(
            (
                f"return {third} << {top} | {second} << {shift} | {first}",
                f"packed = {third}\npacked = packed << {layout.widths[1]} | {second}\n"
                f"packed = packed << {layout.widths[0]} | {first}\nreturn packed",
            )
        ),
    )


def _unpack_function(layout: _Layout) -> str:
    """Returns the definition of ``unpack``."""
    first, second, third = layout.names
    shift, top = layout.shifts
    return define(
        "unpack(packed)",
        f"{first} = packed & {layout.limits[0]}\n"
        f"{second} = packed >> {shift} & {layout.limits[1]}\n"
        f"{third} = packed >> {top}\nreturn {first}, {second}, {third}",
    )


def packed_rows(w: Writer, layout: _Layout, pack: str) -> str:
    """Rows of three fields, each row packed into a number."""
    columns = [w.numbers(9, 0, limit) for limit in layout.limits]
    rows = [f"({a}, {b}, {c})" for a, b, c in zip(*columns, strict=True)]
    names = ", ".join(layout.names)
    inside = join(
        f"code = pack({names})",
        w.at(
            5,
            w.choice(
                (
                    f"code ^= {w.between(1, 63)}",
                    f"code = code >> 1 | (code & 1) << {layout.bits - 1}",
                    f"code |= {1 << w.below(layout.bits)}",
                )
            ),
        ),
        w.at(5, "print(code, unpack(code))"),
        w.at(4, "print(code, hex(code))", below=5),
        "total += code",
    )
    body = join(
        spread("rows", rows[: w.size(1, 9)]),
        "total = 0",
        under(f"for {names} in rows:", inside),
        w.show("total", "total"),
        w.at(4, "print(unpack(total & 255))"),
    )
    return program(pack, _unpack_function(layout), w.main(body))


def packed_turns(w: Writer, layout: _Layout, pack: str) -> str:
    """Packed number that every turn takes apart, changes and packs again."""
    first, second, third = layout.names
    limits = layout.limits
    rounds = w.size(2, 60)
    rule = w.choice(
        (
            f"{first} = ({first} + 1) & {limits[0]}\nif {first} == 0:\n"
            f"    {second} = ({second} + 1) & {limits[1]}",
            f"{first}, {second} = {second} & {limits[0]}, {first} + turn & {limits[1]}",
            f"if {first} > {second}:\n    {third} ^= {first}\nelse:\n"
            f"    {first} = {second} - {first} & {limits[0]}",
        )
    )
    names = ", ".join(layout.names)
    body = fill(
        """
        code = pack($a, $b, $c)
        total = 0
        for turn in range(1, $stop):
            $names = unpack(code)
            $rule
            $third = ($third + $k) & $limit
            code = pack($names) ^ turn & $low
            total = (total + code) & $mask
            $report
        print(unpack(code))
        $show
        """,
        a=w.below(limits[0]),
        b=w.below(limits[1]),
        c=w.below(limits[2]),
        stop=rounds + 1,
        names=names,
        rule=rule,
        third=third,
        k=w.between(1, 7),
        limit=limits[2],
        low=w.choice((1, 3, 7)),
        mask=(1 << layout.bits) - 1,
        report=w.sometimes(
            "turn",
            rounds,
            w.choice(("print(turn, code)", "print(turn, unpack(code))", f"print(turn, {names})")),
        ),
        show=w.show("total", "total"),
    )
    return program(pack, _unpack_function(layout), w.main(body))


def masks(w: Writer) -> str:
    """Program with sets written as the bits of a number."""
    count = 6 if w.level < 4 else w.between(3, 4) if w.level < 8 else w.between(4, 5)
    items = w.sample(w.choice((FRUITS, COLOURS, NOUNS)), count)
    weights = w.numbers(count, 1, 20)
    return masked_items(w, items, weights) if w.level < 4 else weighed_masks(w, items, weights)


def masked_items(w: Writer, items: Sequence[str], weights: Sequence[int]) -> str:
    """Loop over items that a mask chooses."""
    mask = w.between(1, (1 << len(items)) - 1)
    inside = w.choice(
        (
            "if mask >> i & 1:\n    print(item)",
            "if mask & 1 << i:\n    total += weights[i]",
            "if not mask >> i & 1:\n    mask |= 1 << i\n    print(i, mask)",
            "mask ^= 1 << i\nprint(item, mask)",
        )
    )
    total = "total" in inside
    shown = items[: w.size(2, 6)]
    body = join(
        spread("items", [quoted(item) for item in shown]),
        f"weights = {weights[: len(shown)]}\ntotal = 0" if total else "",
        f"mask = {mask}",
        under("for i, item in enumerate(items):", inside),
        "print(total)" if total else "print(mask)",
    )
    return program(body)


def weighed_masks(w: Writer, items: Sequence[str], weights: Sequence[int]) -> str:
    """Search through masks for a set of items of good weight."""
    limit = w.between(10, 40)
    constants = join(spread("ITEMS", [quoted(item) for item in items]), f"WEIGHTS = {weights}")
    masks_count = w.size(2, 1 << len(items))
    pair = w.choice(("mask & mask << 1", f"mask & {w.choice((1, 2, 4))}", "mask % 3 == 0"))
    named = w.level > 4
    body = fill(
        """
        best = 0
        most = 0
        for mask in range($low, $high):
            $skip
            total = weigh(mask)
            if total $sign $limit and total > most:
                best = mask
                most = total
                print(mask, total$mask_members)
            $report
        print(best$best_members)
        $pairs
        """,
        low=(low := w.between(1, 3)),
        high=low + masks_count,
        skip=w.maybe(6, f"if {pair}:\n    continue"),
        sign=w.choice(("<=", "<")),
        limit=limit,
        mask_members=", members(mask)" if named else "",
        best_members=", members(best)" if named else "",
        report=w.at(
            7, f"if total == {limit} or mask % {max(2, masks_count // 5)} == 0:\n    print(mask, total)"
        ),
        pairs=w.at(8, _EQUAL_PAIRS),
        first_stop=w.size(2, 9),
        second_stop=w.size(4, 1 << len(items)),
    )
    members = define("members(mask)", _MEMBERS) if named else ""
    return program(constants, define("weigh(mask)", _WEIGH), members, w.main(body))


@dataclass(frozen=True, slots=True)
class _CheckSum:
    """A check sum.

    Attributes:
        name: Its variable or function.
        width: Its number of bits.
        poly: The number that it is combined with.
        numbers: Numbers to sum.
        text: A text to sum.
    """

    name: str
    width: int
    poly: int
    numbers: list[int]
    text: str

    @property
    def mask(self) -> int:
        """The number whose ``width`` bits are all set."""
        return (1 << self.width) - 1


def sums(w: Writer) -> str:
    """Program with a check sum of a text or a list."""
    width = w.choice((4, 5, 8, 8, 12, 16))
    poly = w.between(3, (1 << width) - 1)
    name = w.choice(("check", "crc", "digest", "code", "sum_of"))
    check = _CheckSum(name, width, poly, w.numbers(w.size(2, 8), 1, 99), w.choice(NOUNS))
    if w.level < 4:
        return looped_sum(w, check)
    function = _sum_function(w, check)
    mixer = define(
        "mix(values, key)",
        f"result = []\nfor i, value in enumerate(values):\n"
        f"    key = (key * {w.between(3, 9)} + i) & 255\n"
        f"    result.append(value ^ key)\nreturn result",
    )
    use_text = w.chance(50)
    if w.level < 7:
        return called_sum(w, check, function, use_text)
    return mixed_sums(w, check, function, mixer, use_text)


def looped_sum(w: Writer, check: _CheckSum) -> str:
    """Loop over numbers that computes a simple check sum."""
    name = check.name
    step = w.choice(
        (
            f"{name} ^= value",
            f"{name} = ({name} << 1) ^ value",
            f"{name} = ({name} + value) & {check.mask}",
            f"{name} ^= value << {w.between(1, 3)}",
            f"{name} = {name} >> 1 ^ value",
            f"{name} |= value & {w.between(1, 31)}",
        )
    )
    body = fill(
        """
        $n = $start
        for value in $data:
            $step
            $report
        $show
        """,
        n=name,
        start=w.below(20),
        data=check.numbers,
        step=step,
        report=w.at(2, f"print(value, {name})"),
        show=_shown(w, name, check.width),
    )
    return program(body)


def _sum_function(w: Writer, check: _CheckSum) -> str:
    """Returns the definition of a check sum that works bit by bit."""
    return define(
        f"{check.name}(values)",
        """
        result = $start
        for value in values:
            result ^= value
            for _ in range($bits):
                if result & 1:
                    result = result >> 1 ^ $poly
                else:
                    result >>= 1
            $log
        return result & $mask
        """,
        start=w.choice((0, check.mask, w.below(check.mask))),
        bits=w.size(2, 9),
        poly=check.poly,
        log=w.at(4, "print(value, result)", below=7),
        mask=check.mask,
    )


def _codes(text: str) -> str:
    """Returns the list of a text's letters as numbers, as the program writes it."""
    return f"[ord(letter) for letter in {quoted(text)}]"


def called_sum(w: Writer, check: _CheckSum, function: str, use_text: bool) -> str:
    """Check sum of one list or text; from level 6 on also of the reverse."""
    name = check.name
    data = _codes(check.text[: w.size(2, 8)]) if use_text else str(check.numbers[: w.size(1, 8)])
    body = join(f"data = {data}", f"print({name}(data))", w.at(6, f"print({name}(data[::-1]))"))
    return program(function, w.main(body))


def mixed_sums(w: Writer, check: _CheckSum, function: str, mixer: str, use_text: bool) -> str:
    """Check sums of data that every key mixes anew."""
    body = fill(
        """
        data = $values
        seen = []
        for key in range(1, $stop):
            data = mix(data, key$times)
            value = $name(data)
            $test
            print($shown)
        print(seen)
        """,
        values=_codes(check.text[: w.size(3, 8)]) if use_text else str(check.numbers),
        stop=w.size(2, 14) + 1,
        times=w.choice(("", f" * {w.between(3, 40)}")),
        name=check.name,
        test=w.choice(
            (
                f"if value % {w.between(2, 4)} == 0:\n    seen.append(value)",
                "if not seen or value > seen[-1]:\n    seen.append(value)",
                "seen.append(value & 7)",
            )
        ),
        shown=w.choice(("key, value", 'key, f"{value:x}"', "key, value, data[0]")),
    )
    return program(function, mixer, w.main(body))


FAMILY = Family(
    "bits",
    (
        Template(flags),
        Template(counting),
        Template(registers),
        Template(fields),
        Template(masks),
        Template(sums),
    ),
)
