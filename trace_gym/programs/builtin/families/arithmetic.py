"""Arithmetic in loops: savings, digits, chains, divisors, wheels, sequences."""

from __future__ import annotations

from trace_gym.programs.builtin.writer import Family, Template, Writer, define, fill, join, program, spaced


def savings(w: Writer) -> str:
    """A savings account, printed month by month under a few rules."""
    months = w.size(2, 220)
    name = w.choice(("balance", "savings", "account", "fund", "pot"))
    limit = w.between(4, 40) * 50
    rules = w.some(
        [
            f"if $b > {limit}:\n    $b -= {w.between(2, 30)}",
            f"if month % {w.between(2, 6)} == 0:\n    $b += {w.between(5, 90)}",
            f"$b += $b * {w.between(3, 25)} // 1000",
            f"if $b % 2 == 1:\n    $b += 1\nelse:\n    $b -= {w.between(2, 15)}",
            f"if month % {w.choice((3, 4, 6, 12))} == 0:\n    deposit += {w.choice((5, 10, 15))}",
            f"if $b > {3 * limit}:\n    spent = $b // {w.between(3, 6)}\n    $b -= spent",
            f"if $b % 10 == {w.choice((0, 5))}:\n    gifts += 1\n    $b += {w.between(3, 12)}",
        ],
        0,
        5,
    )
    peak = w.level >= 4 and w.chance(60)
    body = fill(
        """
        $b = $start
        deposit = $deposit
        $gifts
        $first
        for month in range(1, $stop):
            $b += deposit
            $rules
            $highest
            $report
        $show
        $gift_count
        $peak
        """,
        b=name,
        start=w.between(4, 90) * 10,
        deposit=w.between(3, 60) * 5,
        gifts="gifts = 0" if "gifts" in rules else "",
        first="highest = 0\nbest_month = 0" if peak else "",
        stop=months + 1,
        rules=rules,
        highest="if $b > highest:\n    highest = $b\n    best_month = month" if peak else "",
        report=w.at(3, w.sometimes("month", months, w.tell("month", "month", name))),
        show=w.show(name, name),
        gift_count=w.show("gifts", "gifts") if "gifts" in rules else "",
        peak=w.tell("best month", "best_month", "highest") if peak else "",
    )
    return program(w.main(body))


#: Per function: its body.
_DIGIT_FUNCTIONS = {
    "digit_sum": """
        total = 0
        while n > 0:
            total += n % $base
            n //= $base
        return total
        """,
    "digit_product": """
        product = 1
        while n > 0:
            digit = n % $base
            if digit != 0:
                product *= digit
            n //= $base
        return product
        """,
    "mirror": """
        result = 0
        while n > 0:
            result = result * $base + n % $base
            n //= $base
        return result
        """,
    "odd_digits": """
        count = 0
        while n > 0:
            if n % $base % 2 == 1:
                count += 1
            n //= $base
        return count
        """,
    "largest_digit": """
        largest = 0
        while n > 0:
            largest = max(largest, n % $base)
            n //= $base
        return largest
        """,
    "alternating_sum": """
        total, sign = 0, 1
        while n > 0:
            total += sign * (n % $base)
            sign = -sign
            n //= $base
        return total
        """,
}


def digits(w: Writer) -> str:
    """Sums, products and mirrors of digits, of one number or of many."""
    base = w.choice((10, 10, 10, 8, 7))
    return _digits_of_one(w, base) if w.level == 1 else _digits_of_many(w, base)


def _digits_of_one(w: Writer, base: int) -> str:
    """Loop over the digits of one number."""
    step = w.choice(
        (
            "$t += $x % $b",
            "$t += $x % $b * 2",
            "$t = $t * $b + $x % $b",
            "$t += ($x % $b) ** 2",
        )
    )
    x, t = w.choice(("n", "number", "code", "ticket")), w.choice(("total", "result", "answer"))
    text = "$x = $n\n$t = 0\nwhile $x > 0:\n    $step\n    $x //= $b\n$show"
    return program(fill(text, x=x, t=t, n=w.between(12, 999), b=base, step=step, show=w.show(t, t)))


def _digits_of_many(w: Writer, base: int) -> str:
    """Functions over digits, called for each number of a range."""
    used = w.sample(list(_DIGIT_FUNCTIONS), 1 if w.level < 7 else 2 if w.level < 9 else 3)
    start = w.between(10, 99) if w.level < 5 else w.between(10, 999) if w.level < 8 else w.between(100, 9999)
    stride, count = w.between(1, 99 if w.level > 4 else 9), w.size(1, 26)
    condition = w.choice((f"value % {w.between(2, 4)} == 0", f"value > {w.between(2, 9)}", "value % 3 == 1"))
    picked = w.choice(("matches", "picked", "lucky", "chosen", "hits"))
    others = [f"{name}(number)" for name in used[1:]]
    line = f"print({', '.join(['number', 'value', *others])})"
    every = max(1, count // w.prints)
    body = fill(
        """
        total = 0
        $zero
        $seen
        for number in range($numbers):
            value = $first(number)
            total += value
            $test
            $report
        $totals
        $picked
        """,
        zero=w.at(4, f"{picked} = 0"),
        seen="seen = 0" if every > 1 and w.level > 2 else "",
        numbers=spaced(start, start + (count - 1) * stride + w.between(1, stride), stride),
        first=used[0],
        test=w.at(4, f"if {condition}:\n    {picked} += 1"),
        report=w.at(3, line if every == 1 else f"seen += 1\nif seen % {every} == 0:\n    {line}"),
        totals=w.show("total", "total"),
        picked=w.at(4, w.show(picked, picked)),
    )
    functions = [define(f"{name}(n)", _DIGIT_FUNCTIONS[name], base=base) for name in used]
    return program(*functions, w.main(body))


def chains(w: Writer) -> str:
    """Numbers changed by a rule, step after step."""
    divisor = w.choice((2, 2, 3))
    grow = (
        w.choice(
            (
                f"n * 3 + {w.choice((1, 1, 5, 7))}",
                f"n + {w.between(2, 8) * 2 + 1}",
                f"n * 2 - {w.between(1, 9)}",
            )
        )
        if divisor == 2
        else w.choice((f"n + {w.choice((1, 2, 4, 5, 7))}", "n * 2 + 1"))
    )
    rule = f"if n % {divisor} == 0:\n    n //= {divisor}\nelse:\n    n = {grow}"
    return _one_chain(w, rule) if w.level < 4 else _many_chains(w, divisor, grow, rule)


def _one_chain(w: Writer, rule: str) -> str:
    """Chain from one number, in a loop of a fixed number of steps."""
    body = fill(
        """
        n = $n
        for $step in range($steps):
            $rule
            $report
        $show
        """,
        n=w.between(5, 99),
        step=w.choice(("step", "i", "turn")),
        steps=w.size(2, 20),
        rule=rule,
        report=w.at(2, w.choice(("print(n)", f"if n > {w.between(20, 60)}:\n    print(n)"))),
        show=w.show(w.choice(("end", "result", "n", "last")), "n"),
    )
    return program(body)


def _many_chains(w: Writer, divisor: int, grow: str, rule: str) -> str:
    """Chains from each number of a range, measured by a function."""
    step = _next_value(w, divisor, grow)
    peak = w.level >= 5 and w.chance(60)
    name = w.choice(("chain_length", "count_steps", "walk_down"))
    function = _chain_function(w, name, rule, peak)
    begin, stride, starts = w.between(3, 60), w.between(1, 9), w.size(2, 24)
    names = ["steps", "peak"] if peak else ["steps"]
    body = fill(
        """
        $longest
        $total
        for start in range($numbers):
            $names = $name(start, $most)
            $add
            $compare
            $report
        $show
        $last
        """,
        longest=w.at(5, "longest = 0\nwinner = 0"),
        total="total = 0" if peak else "",
        numbers=spaced(begin, begin + (starts - 1) * stride + 1, stride),
        names=", ".join(names),
        name=name,
        most=w.size(3, 50),
        add="total += peak" if peak else "",
        compare=w.at(5, "if steps > longest:\n    longest = steps\n    winner = start"),
        report=w.tell("start", "start", *names),
        show=w.at(5, w.show("longest", "longest", "winner")),
        last=w.show("total", "total") if peak else "",
    )
    return program(w.at(6, step), function, w.main(body))


def _next_value(w: Writer, divisor: int, grow: str) -> str:
    """Returns the text of a function that takes one step of a chain."""
    return define(
        "next_value(n)",
        """
        if n % $d == 0:
            return n // $d
        $special
        return $grow
        """,
        d=divisor,
        special=w.maybe(6, f"if n % {w.choice((5, 7))} == 0:\n    return n - {w.between(2, 4)}"),
        grow=grow,
    )


def _chain_function(w: Writer, name: str, rule: str, peak: bool) -> str:
    """Returns the text of a function that counts the steps of a chain and, if asked, finds its peak."""
    return define(
        f"{name}(n, most)",
        """
        $doc
        steps = 0
        $peak
        while n > 1 and steps < most:
            $move
            steps += 1
            $higher
        return steps$comma
        """,
        doc=w.maybe(5, '"""Count the steps from n down to 1."""', 40),
        peak="peak = n" if peak else "",
        move="n = next_value(n)" if w.level >= 6 else rule,
        higher="if n > peak:\n    peak = n" if peak else "",
        comma=", peak" if peak else "",
    )


#: Per function: its body.
_DIVISOR_FUNCTIONS = {
    "is_prime": """
        if n < 2:
            return False
        d = 2
        while d * d <= n:
            if n % d == 0:
                return False
            d += 1
        return True
        """,
    "smallest_factor": """
        d = 2
        while d * d <= n and n % d != 0:
            d += 1
        return d if n % d == 0 else n
        """,
    "gcd": """
        while b != 0:
            a, b = b, a % b
        return a
        """,
    "factors": """
        found = []
        d = 2
        while d * d <= n:
            while n % d == 0:
                found.append(d)
                n //= d
            d += 1
        if n > 1:
            found.append(n)
        return found
        """,
    "divisor_count": """
        count = 0
        for d in range(1, n + 1):
            if n % d == 0:
                count += 1
        return count
        """,
}


#: Per function: the line before the loop, the lines in it, the value printed in it, the name printed last.
_DIVISOR_USES = {
    "is_prime": ("primes = []", "if is_prime(n):\n    primes.append(n)", "is_prime(n)", "primes"),
    "smallest_factor": ("total = 0", "total += smallest_factor(n)", "smallest_factor(n)", "total"),
    "gcd": ("coprime = 0", "if gcd(n, $other) == 1:\n    coprime += 1", "gcd(n, $other)", "coprime"),
    "factors": ("most = 0", "parts = factors(n)\nmost = max(most, len(parts))", "parts", "most"),
    "divisor_count": (
        "record = 0",
        "divisors = divisor_count(n)\nif divisors > record:\n    record = divisors",
        "divisors",
        "record",
    ),
}


def divisors(w: Writer) -> str:
    """Primes, factors and common divisors, found by trial."""
    return _divisors_of_one(w) if w.level < 4 else _divisors_of_many(w)


def _divisors_of_one(w: Writer) -> str:
    """Loop over the possible divisors of one number."""
    found, act = w.choice(
        (
            ("divisors", "divisors.append($d)"),
            ("count", "count += 1"),
            ("total", "total += $d"),
            ("last", "last = $d"),
        )
    )
    body = fill(
        """
        n = $n
        $found = $zero
        for $d in range($first, $last):
            if n % $d == 0:
                $act
                $report
        $show
        """,
        n=w.choice((12, 16, 18, 20, 24, 28, 30, 36, 40, 42, 48)) + w.below(7),
        found=found,
        zero="[]" if "append" in act else "0",
        first=(first := w.choice((1, 2))),
        last=first + w.size(2, 30),
        d=w.choice(("d", "i", "k", "divisor")),
        act=act,
        report=w.at(2, w.choice(("print($d)", "print($d, n // $d)"))),
        show=w.show(found, found),
    )
    return program(body)


def _divisors_of_many(w: Writer) -> str:
    """Functions over divisors, called for each number of a range."""
    low, other, count = w.between(10, 60), w.between(12, 90), w.size(1, 40)
    used = w.sample(list(_DIVISOR_USES), 1 if w.level < 6 else 2 if w.level < 9 else 3)
    if "divisor_count" in used and w.level < 7:
        cheaper = next(name for name in ("gcd", "is_prime", "factors") if name not in used)
        used[used.index("divisor_count")] = cheaper
    starts, uses, shown, results = zip(*(_DIVISOR_USES[name] for name in used), strict=True)
    body = fill(
        """
        $starts
        for n in range($low, $high):
            $uses
            $report
        $shows
        """,
        starts=join(*starts),
        low=low,
        high=low + count,
        other=other,
        uses=join(*uses),
        report=w.sometimes(
            "n", count, w.tell("n", "n", *shown) if w.chance(50) else f"print(n, {', '.join(shown)})"
        ),
        shows=join(*(w.show(result, result) for result in results)),
    )
    functions = [
        define("gcd(a, b)" if name == "gcd" else f"{name}(n)", _DIVISOR_FUNCTIONS[name]) for name in used
    ]
    return program(*functions, w.main(body))


def wheels(w: Writer) -> str:
    """Two or three counters that turn at different speeds, with a count of their meetings."""
    turns = w.size(2, 190)
    names = w.sample(("hour", "minute", "gear", "dial", "wheel", "hand", "drum", "ring"), 3)
    used = names[: 3 if w.level >= 5 else 2]
    moduli = [w.between(5, 30) for _ in used]
    meet = w.choice((f"{used[0]} == {used[1]}", f"({used[0]} + {used[1]}) % {w.between(2, 5)} == 0"))
    events = w.choice(("meetings", "clicks", "bells", "strikes"))
    rules = _wheel_rules(w, used, moduli) if w.level > 2 else ""
    scored = "score" in rules
    body = fill(
        """
        $starts
        $no_events
        $zero
        for turn in range(1, $stop):
            $moves
            $count
            $rules
            $report
        $positions
        $show
        $result
        """,
        starts=join(*(f"{name} = {w.below(modulus)}" for name, modulus in zip(used, moduli, strict=True))),
        no_events=w.at(2, f"{events} = 0"),
        zero="score = 0" if scored else "",
        stop=turns + 1,
        moves=join(
            *(
                f"{name} = ({name} + {w.between(1, 9)}) % {modulus}"
                for name, modulus in zip(used, moduli, strict=True)
            )
        ),
        count=w.at(2, f"if {meet}:\n    {events} += 1"),
        rules=rules,
        report=w.at(3, w.sometimes("turn", turns, w.tell("turn", "turn", *used))),
        positions=f"print({', '.join(used)})",
        show=w.at(2, w.show(events, events)),
        result=w.show("score", "score") if scored else "",
    )
    return program(w.main(body))


def _wheel_rules(w: Writer, used: list[str], moduli: list[int]) -> str:
    """Returns a few more rules for one turn of the wheels; some of them change ``score``."""
    return w.some(
        [
            f"if {used[0]} > {used[-1]}:\n    score += {used[0]} - {used[-1]}",
            f"if {used[-1]} == 0:\n    {used[0]} = {w.below(moduli[0])}",
            f"if turn % {w.between(3, 9)} == 0:\n"
            f"    {used[1]} = ({used[1]} + {w.between(1, 4)}) % {moduli[1]}",
            f"if {used[0]} % 2 == 0 and {used[1]} % 2 == 0:\n    score += 1",
            f"if score > {w.between(30, 90)}:\n    score -= {w.between(20, 30)}",
        ],
        -2,
        4,
    )


def sequences(w: Writer) -> str:
    """A number sequence under a modulus, with counts of its terms."""
    modulus = w.choice((50, 64, 97, 100, 101, 128, 256, 500, 997, 1000))
    kind = w.choice(("pair", "linear", "square"))
    step = {
        "pair": f"a, b = b, (a + b * {w.between(1, 3)}) % {modulus}",
        "linear": f"a = (a * {w.between(2, 25)} + {w.between(1, 50)}) % {modulus}",
        "square": f"a = (a * a + {w.between(1, 60)}) % {modulus}",
    }[kind]
    count = w.size(2, 170)
    pieces = w.some(
        [
            "if a % 2 == 0:\n    even += 1\nelse:\n    odd += 1",
            "if a > highest:\n    highest = a",
            f"if a < {modulus // w.between(3, 9)}:\n    small += 1",
            "if a > previous:\n    rises += 1\nprevious = a",
            f"if a % {w.between(3, 7)} == {w.below(3)}:\n"
            f"    checksum = (checksum * 3 + a) % {w.choice((61, 89, 127))}",
        ],
        0,
        4,
    )
    counters = [
        name
        for name in ("even", "odd", "highest", "small", "rises", "previous", "checksum")
        if name in pieces
    ]
    body = fill(
        """
        $start
        $zeros
        $total
        for i in range($count):
            $step
            $add
            $pieces
            $report
        $shows
        """,
        start=f"a = {w.between(1, 9)}" + (f"\nb = {w.between(1, 9)}" if kind == "pair" else ""),
        zeros=join(*(f"{name} = 0" for name in counters)),
        total=w.at(2, "total = 0"),
        count=count,
        step=step,
        add=w.at(2, "total += a"),
        pieces=pieces,
        report=w.at(3, w.sometimes("i", count, "print(i, a)" if w.chance(50) else w.tell("step", "i", "a"))),
        shows=join(
            w.show("last", "a"),
            w.at(2, w.show("total", "total")),
            *(w.show(name, name) for name in counters if name != "previous"),
        ),
    )
    return program(w.main(body))


FAMILY = Family(
    "arithmetic",
    (
        Template(savings),
        Template(digits),
        Template(chains),
        Template(divisors),
        Template(wheels),
        Template(sequences),
    ),
)
