"""Bit operations: flags, counting, shift registers, packed fields, sets as masks, check sums."""

from __future__ import annotations

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


def _shown(w: Writer, value: str, width: int) -> str:
    """A print of a value in decimal, binary or hexadecimal."""
    return w.choice(
        (
            f"print({value})",
            f"print(bin({value}))",
            f'print(f"{{{value}:0{width}b}}")',
            f"print(hex({value}))",
            f'print({value}, f"{{{value}:b}}")',
        )
    )


def flags(w: Writer) -> str:
    """Rights, switches and states as single bits."""
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
    constants = "\n".join(
        f"{name} = {1 << i}" if w.level < 3 else f"{name} = 1 << {i}" for i, name in enumerate(used)
    )
    what = w.choice(("rights", "state", "mode", "bag", "style", "flags"))
    if w.level < 4:
        a, b, c = w.shuffled(used)
        start = w.choice((a, f"{a} | {b}", str(w.between(1, 7)), "0"))
        acts = w.sample(
            (
                f"{what} |= {b}",
                f"{what} &= ~{a}",
                f"{what} ^= {c}",
                f"{what} ^= {a} | {c}",
                f"{what} &= {a} | {b}",
                f"{what} |= {c}",
                f"{what} = {what} << 1 & 7",
            ),
            w.level + (w.level > 1),
        )
        reports = w.choice((f"print({what})", f"print({what}, {what} & {b})", f"print(bin({what}))"))
        tests = w.at(
            2,
            f"if {what} & {w.choice(used)}:\n"
            f'    print("{w.choice(("on", "yes", "set"))}")\nelse:\n'
            f'    print("{w.choice(("off", "no", "clear"))}")',
        )
        lines = [acts[0], *(f"{act}\nprint({what})" if w.level > 2 else act for act in acts[1:])]
        return program(join(constants, f"{what} = {start}", *lines, tests, reports))
    change = define(
        f"change({what}, action, flag)",
        """
        if action == "set":
            return $s | flag
        if action == "clear":
            return $s & ~flag
        $rule
        return $s ^ flag
        """,
        s=what,
        rule=w.maybe(
            5,
            w.choice(
                (
                    f'if action == "only":\n    return {what} & flag',
                    f'if action == "swap":\n    return {what} ^ flag ^ {used[0]}',
                    f'if action == "move":\n'
                    f"    return ({what} << 1 | {what} >> {len(used) - 1}) & {(1 << len(used)) - 1}",
                )
            ),
        ),
    )
    actions = ["set", "clear", "toggle"] + [
        word for word in ("only", "swap", "move") if f'"{word}"' in change
    ]
    names_of = define(
        f"names({what})",
        "result = []\nfor name, flag in FLAGS.items():\n"
        "    if $s & flag:\n        result.append(name)\nreturn result",
        s=what,
    )
    table = spread("FLAGS", [f'"{name.lower()}": {name}' for name in used], "{}")
    count = w.size(2, 9)
    steps = [
        f'("{action}", {flag})'
        for action, flag in zip(
            w.picks(actions, 9), w.picks([*used, f"{used[0]} | {used[-1]}"], 9), strict=True
        )
    ]
    listed = w.level > 5
    if w.level < 7:
        body = fill(
            """
            $s = $start
            $steps
            for action, flag in steps:
                $s = change($s, action, flag)
                $shown
            $last
            """,
            s=what,
            start=w.choice(("0", used[1], f"{used[0]} | {used[2]}")),
            steps=spread("steps", steps[:count]),
            shown=f"print(action, {what}, names({what}))" if listed else f"print(action, {what})",
            last=f"print(bin({what}))",
        )
    else:
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
            steps=spread("steps", steps[: max(3, count)]),
            users=", ".join(f'"{person}": {w.below(1 << len(used))}' for person in people),
            stop=rounds + 1,
            a=w.between(2, 3),
            spread=w.choice(
                (
                    f'users["{people[0]}"] ^= turn & {(1 << len(used)) - 1}',
                    f'users["{people[-1]}"] |= users["{people[0]}"] & {used[1]}',
                    f'if users["{people[0]}"] & {used[0]} and users["{people[1]}"] & {used[0]}:\n'
                    f'    users["{people[1]}"] &= ~{used[-1]}',
                )
            ),
            report=w.sometimes(
                "turn", rounds, w.tell("turn", "turn", *(f'users["{person}"]' for person in people))
            ),
        )
    return program(constants, table if listed else "", change, names_of if listed else "", w.main(body))


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


def counting(w: Writer) -> str:
    """Ones, runs, mirrors of binary numbers."""
    width = w.between(4, 8)
    if w.level < 4:
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
    body = fill(
        """
        total = 0
        for n in range($numbers):
            $change
            value = $first
            total = $add
            $report
        $show
        """,
        numbers=f"{start}, {start + count * stride}" + (f", {stride}" if stride > 1 else ""),
        change=change,
        first=values[0],
        add=w.choice(("total + value", "total ^ value", "total + value * n", "(total << 1 ^ value) & 1023")),
        report=_every(w, count, f"print({', '.join(['n', 'value', *values[1:]])})"),
        show=w.show("total", "total"),
    )
    if "seen" in body:
        body = body.replace("total = 0\n", "total = 0\nseen = 0\n", 1)
    return program(*functions, w.main(body))


def _every(w: Writer, count: int, line: str) -> str:
    """A print, of every pass or of some, counted by `seen`."""
    every = max(1, count // w.prints)
    return line if every == 1 else f"seen += 1\nif seen % {every} == 0:\n    {line}"


def registers(w: Writer) -> str:
    """Shift registers, Gray codes, and numbers that only look random."""
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
    start = w.between(1, mask)
    count = w.size(2, 130)
    if w.level < 5:
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
            start=start,
            zero="i = 0" if kind == "gray" else "",
            count=count,
            step=steps[kind],
            report=w.at(2, shown),
            last=_shown(w, name, width),
        )
        return program(body)
    if kind == "gray":
        step = define("step(i)", f"return (i ^ i >> 1) & {mask}")
        move = f"{name} = step(turn)"
    else:
        step = define("step($x)", join(steps[kind], "return $x"), x=name)
        move = f"{name} = step({name})"
    pieces = w.some(
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
    counters = {
        "ones": "0",
        "rises": "0",
        "last": "0",
        "sum_of": "0",
        "folded": "0",
        "repeats": "0",
        "seen": "[]",
        "buckets": "[0, 0, 0, 0]",
    }
    needed = [
        key
        for key in counters
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
        start=start,
        zeros=join(*(f"{key} = {counters[key]}" for key in needed)),
        stop=count + 1,
        move=move,
        pieces=pieces,
        report=w.sometimes(
            "turn", count, w.choice((f"print(turn, {name})", f'print(turn, f"{{{name}:0{width}b}}")'))
        ),
        shows=join(*(w.show(key, key) for key in needed if key not in ("last", "seen")), f"print({name})"),
    )
    return program(step, w.main(body))


def fields(w: Writer) -> str:
    """Several small numbers packed into one."""
    names = w.choice(
        (
            ("red", "green", "blue"),
            ("day", "month", "year"),
            ("row", "column", "layer"),
            ("hour", "minute", "second"),
            ("suit", "rank", "deck"),
        )
    )
    widths = [w.between(2, 4), w.between(3, 5), w.between(4, 6)]
    limits = [(1 << width) - 1 for width in widths]
    shift1, shift2 = widths[0], widths[0] + widths[1]
    first, second, third = names
    if w.level < 4:
        a, b = w.between(1, limits[0]), w.between(1, limits[1])
        packed = w.between(20, 1 << shift2)
        kind = w.chance(50)
        lines = (
            [
                f"{first} = {a}",
                f"{second} = {b}",
                f"packed = {second} << {shift1} | {first}",
                _shown(w, "packed", shift2),
            ]
            if kind
            else [
                f"packed = {packed}",
                f"{first} = packed & {limits[0]}",
                f"{second} = packed >> {shift1}",
                f"print({first}, {second})",
            ]
        )
        more = [
            f"packed ^= {w.between(1, limits[0])}",
            f"packed |= {1 << w.below(shift2)}",
            f"packed = packed << 1 & {(1 << shift2) - 1}",
            f"packed &= ~{1 << w.below(shift2)}",
        ]
        if w.level > 1:
            rounds = w.size(1, 6)
            act = w.choice(more)
            lines += (
                [
                    under(
                        f"for _ in range({rounds}):",
                        join(
                            act,
                            w.choice(("print(packed)", f"print(packed & {limits[0]}, packed >> {shift1})")),
                        ),
                    )
                ]
                if rounds > 1
                else [act, "print(packed)"]
            )
        return program(join(*lines))
    pack = define(
        f"pack({first}, {second}, {third})",
        w.choice(
            (
                f"return {third} << {shift2} | {second} << {shift1} | {first}",
                f"packed = {third}\npacked = packed << {widths[1]} | {second}\n"
                f"packed = packed << {widths[0]} | {first}\nreturn packed",
            )
        ),
    )
    unpack = define(
        "unpack(packed)",
        f"{first} = packed & {limits[0]}\n"
        f"{second} = packed >> {shift1} & {limits[1]}\n"
        f"{third} = packed >> {shift2}\nreturn {first}, {second}, {third}",
    )
    if w.level < 7:
        rows = [
            f"({a}, {b}, {c})"
            for a, b, c in zip(
                w.numbers(9, 0, limits[0]),
                w.numbers(9, 0, limits[1]),
                w.numbers(9, 0, limits[2]),
                strict=True,
            )
        ]
        inside = join(
            f"code = pack({', '.join(names)})",
            w.at(
                5,
                w.choice(
                    (
                        f"code ^= {w.between(1, 63)}",
                        f"code = code >> 1 | (code & 1) << {sum(widths) - 1}",
                        f"code |= {1 << w.below(sum(widths))}",
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
            under(f"for {', '.join(names)} in rows:", inside),
            w.show("total", "total"),
            w.at(4, "print(unpack(total & 255))"),
        )
        return program(pack, unpack, w.main(body))
    rounds = w.size(2, 60)
    mask = (1 << sum(widths)) - 1
    rule = w.choice(
        (
            f"{first} = ({first} + 1) & {limits[0]}\nif {first} == 0:\n"
            f"    {second} = ({second} + 1) & {limits[1]}",
            f"{first}, {second} = {second} & {limits[0]}, {first} + turn & {limits[1]}",
            f"if {first} > {second}:\n    {third} ^= {first}\nelse:\n"
            f"    {first} = {second} - {first} & {limits[0]}",
        )
    )
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
        names=", ".join(names),
        rule=rule,
        third=third,
        k=w.between(1, 7),
        limit=limits[2],
        low=w.choice((1, 3, 7)),
        mask=mask,
        report=w.sometimes(
            "turn",
            rounds,
            w.choice(("print(turn, code)", "print(turn, unpack(code))", f"print(turn, {', '.join(names)})")),
        ),
        show=w.show("total", "total"),
    )
    return program(pack, unpack, w.main(body))


def masks(w: Writer) -> str:
    """Sets written as the bits of a number."""
    count = 6 if w.level < 4 else w.between(3, 4) if w.level < 8 else w.between(4, 5)
    items = w.sample(w.choice((FRUITS, COLOURS, NOUNS)), count)
    weights = w.numbers(count, 1, 20)
    if w.level < 4:
        mask = w.between(1, (1 << count) - 1)
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
    limit = w.between(10, 40)
    weigh = define(
        "weigh(mask)",
        """
        total = 0
        for i, weight in enumerate(WEIGHTS):
            if mask >> i & 1:
                total += weight
        return total
        """,
    )
    name = define(
        "members(mask)",
        "result = []\nfor i, item in enumerate(ITEMS):\n"
        "    if mask & 1 << i:\n        result.append(item)\n"
        "return result",
    )
    constants = join(spread("ITEMS", [quoted(item) for item in items]), f"WEIGHTS = {weights}")
    masks_count = w.size(2, 1 << count)
    pair = w.choice(("mask & mask << 1", f"mask & {w.choice((1, 2, 4))}", "mask % 3 == 0"))
    named = w.level > 4
    body = fill(
        """
        best = 0
        $most
        for mask in range($low, $high):
            $skip
            total = weigh(mask)
            if total $sign $limit$and:
                best = mask
                $found
            $report
        print(best$members)
        $more
        """,
        most="most = 0",
        low=(low := w.between(1, 3)),
        high=low + masks_count,
        skip=w.maybe(6, f"if {pair}:\n    continue"),
        sign=w.choice(("<=", "<")),
        limit=limit,
        **{"and": " and total > most"},
        found=join("most = total", f"print(mask, total{', members(mask)' if named else ''})"),
        report=w.at(
            7, f"if total == {limit} or mask % {max(2, masks_count // 5)} == 0:\n    print(mask, total)"
        ),
        members=", members(best)" if named else "",
        more=w.at(
            8,
            fill(
                """
                pairs = 0
                for first in range(1, $a):
                    for second in range(first, $b):
                        if first & second == 0 and weigh(first) == weigh(second):
                            pairs += 1
                            print(members(first), members(second))
                print(pairs)
                """,
                a=w.size(2, 9),
                b=w.size(4, 1 << count),
            ),
        ),
    )
    return program(constants, weigh, name if named else "", w.main(body))


def sums(w: Writer) -> str:
    """Check sums of texts and lists."""
    width = w.choice((4, 5, 8, 8, 12, 16))
    mask = (1 << width) - 1
    poly = w.between(3, mask)
    name = w.choice(("check", "crc", "digest", "code", "sum_of"))
    data = w.numbers(w.size(2, 8), 1, 99)
    text = w.choice(NOUNS)
    if w.level < 4:
        step = w.choice(
            (
                f"{name} ^= value",
                f"{name} = ({name} << 1) ^ value",
                f"{name} = ({name} + value) & {mask}",
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
            data=data,
            step=step,
            report=w.at(2, f"print(value, {name})"),
            show=_shown(w, name, width),
        )
        return program(body)
    bits = w.size(2, 9)
    function = define(
        f"{name}(values)",
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
        start=w.choice((0, mask, w.below(mask))),
        bits=bits,
        poly=poly,
        log=w.at(4, "print(value, result)", below=7),
        mask=mask,
    )
    mixer = define(
        "mix(values, key)",
        f"result = []\nfor i, value in enumerate(values):\n"
        f"    key = (key * {w.between(3, 9)} + i) & 255\n"
        f"    result.append(value ^ key)\nreturn result",
    )
    use_text = w.chance(50)
    values = f'[ord(letter) for letter in "{text}"]' if use_text else str(data)
    if w.level < 7:
        short = quoted(text[: w.size(2, 8)])
        listed = f"[ord(letter) for letter in {short}]" if use_text else str(data[: w.size(1, 8)])
        body = join(f"data = {listed}", f"print({name}(data))", w.at(6, f"print({name}(data[::-1]))"))
        return program(function, w.main(body))
    rounds = w.size(2, 14)
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
        values=values if not use_text else f'[ord(letter) for letter in "{text[: w.size(3, 8)]}"]',
        stop=rounds + 1,
        times=w.choice(("", f" * {w.between(3, 40)}")),
        name=name,
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
