"""Dynamic programming: coins, stairs, knapsacks, two texts, runs of numbers, grids."""

from __future__ import annotations

from dataclasses import dataclass

from trace_gym.programs.builtin.vocabulary import GOODS, THEMES, up_to
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


@dataclass(frozen=True, slots=True)
class _Till:
    """An amount and the coins to pay it with.

    Attributes:
        amount: The amount to pay.
        kinds: The values of the coins, ascending.
        coin: The name of the variable for one coin.
        table: The name of the list of ways to pay each amount.
    """

    amount: int
    kinds: list[int]
    coin: str
    table: str


def coins(w: Writer) -> str:
    """Ways to pay an amount, or the fewest coins for it."""
    pool = (2, 3, 4, 5, 6, 7, 8, 9, 10, 12)
    kinds = sorted(w.sample(pool, w.between(1, 2) if w.level < 4 else w.grow(2, 4)))
    if w.level > 3 and w.chance(60):
        kinds = [1, *kinds[:-1]]
    table = w.choice(("ways", "counts", "paths", "table"))
    coin = w.choice(("coin", "step", "size", "stamp"))
    till = _Till(w.size(3, 46), kinds, coin, table)
    fewest = w.level > 3 and w.chance(50)
    pay = w.choice(("ways_to_pay", "count_ways", "combinations", "ways_to_fill"))
    if w.level < 4:
        return _one_coin(w, till) if w.level == 1 else _coins_in_a_loop(w, till)
    functions = {pay: _ways_function(w, till, pay), "fewest": _fewest_function(w, till)}
    call, other = ("fewest", pay) if fewest else (pay, "fewest")
    if w.level < 7:
        return _one_amount(w, till, call, functions[call])
    if w.level < 9:
        return _many_amounts(w, till, [call], [functions[call]])
    return _many_amounts(w, till, [call, other], list(functions.values()))


def _one_coin(w: Writer, till: _Till) -> str:
    """Loop over a list in which each item adds the item one coin before it."""
    body = fill(
        """
        $n = [$first] + [$fill] * $most
        for i in range($coin, $stop):
            $n[i] += $n[i - $coin]$extra
        print($n)
        """,
        n=till.table,
        first=w.between(1, 20),
        fill=w.below(4),
        most=min(till.amount, 9),
        coin=min(till.kinds[0], till.amount),
        stop=min(till.amount, 9) + 1,
        extra=w.choice(("", " + 1", f" + {w.between(2, 5)}")),
    )
    return program(body)


def _coins_in_a_loop(w: Writer, till: _Till) -> str:
    """Loop over one or two coins that counts the ways to pay up to an amount."""
    n, amount, coin = till.table, till.amount, till.coin
    last = f"{coin}, {n}[{amount}]"
    body = fill(
        """
        $n = [1] + [0] * $amount
        for $coin in $kinds:
            for i in range($coin, $stop):
                $n[i] += $n[i - $coin]
            print($shown)
        $end
        """,
        n=n,
        amount=amount,
        coin=coin,
        kinds=till.kinds,
        stop=amount + 1,
        shown=w.choice((last, n, f"{coin}, sum({n})")) if amount < 16 else last,
        end=w.choice((f"print({n}[{amount}])", w.show(n, f"{n}[-1]"))),
    )
    return program(body)


def _one_amount(w: Writer, till: _Till, call: str, function: str) -> str:
    """Function for the ways to pay or the fewest coins, called with one amount."""
    amount = till.amount if w.level > 4 else min(till.amount, 12)
    return program(function, w.main(w.show(call.replace("_", " "), f"{call}({amount}, {till.kinds})")))


def _many_amounts(w: Writer, till: _Till, calls: list[str], functions: list[str]) -> str:
    """One or two functions for paying, called with each amount of a range."""
    start = w.between(2, 9)
    coins_ = f"{till.coin}s"
    first, *more = (f"{call}(amount, {coins_})" for call in calls)
    body = fill(
        """
        $coins = $kinds
        total = 0
        for amount in range($start, $stop$stride):
            value = $first
            $use
            $tell
        $show
        """,
        coins=coins_,
        kinds=till.kinds,
        start=start,
        stop=start + w.size(3, 16),
        stride=w.choice(("", "", ", 2")),
        first=first,
        use="if value is not None:\n    total += value" if calls[0] == "fewest" else "total += value",
        tell=w.tell("amount", "amount", "value", *more),
        show=w.show("total", "total"),
    )
    return program(*functions, w.main(body))


def _ways_function(w: Writer, till: _Till, name: str) -> str:
    """Returns the text of a function that counts the ways to pay an amount."""
    n, coin = till.table, till.coin
    return define(
        f"{name}(amount, {coin}s)",
        """
        $n = [1] + [0] * amount
        for $coin in $coins:
            for i in range($coin, amount + 1):
                $n[i] $add
            $log
        return $n[amount]
        """,
        n=n,
        coin=coin,
        coins=f"{coin}s",
        add=w.choice(
            (
                f"+= {n}[i - {coin}]",
                f"+= {n}[i - {coin}]",
                f"= ({n}[i] + {n}[i - {coin}]) % {w.choice((10, 97, 100))}",
            )
        ),
        log=w.at(4, f"print({coin}, {n})" if till.amount < 14 else f"print({coin}, {n}[amount])", below=8),
    )


def _fewest_function(w: Writer, till: _Till) -> str:
    """Returns the text of a function that finds the fewest coins, or the most, for an amount."""
    coin = till.coin
    return define(
        f"fewest(amount, {coin}s)",
        """
        best = [0]
        for i in range(1, amount + 1):
            options = []
            for $coin in $coins:
                if $coin <= i and best[i - $coin] is not None:
                    options.append(best[i - $coin] + 1)
            best.append($pick if options else None)
            $log
        return best[amount]
        """,
        coin=coin,
        coins=f"{coin}s",
        pick=w.choice(("min(options)", "min(options)", "max(options)")),
        log=w.at(4, "print(i, best[i])", below=7),
    )


def stairs(w: Writer) -> str:
    """Terms made of earlier terms, in a list or by a function that remembers."""
    n = w.size(2, 40)
    name = w.choice(("ways", "f", "memo", "table", "best"))
    a, b = (w.between(1, 30), w.between(1, 30)) if w.level < 3 else (w.between(1, 4), w.between(1, 5))
    rule = w.choice(
        (
            f"{name}[i - 1] + {name}[i - 2]",
            f"{name}[i - 1] + 2 * {name}[i - 2]",
            f"{name}[i - 1] * 2 - {name}[i - 2] + i",
            f"max({name}[i - 1], {name}[i - 2] + i)",
            f"{name}[i // 2] + {name}[i - 1]",
            f"{name}[i - 1] + {name}[i - 2] - {w.between(1, 3)}",
            f"min({name}[i - 1] + {w.between(3, 6)}, {name}[i - 2] * 2)",
        )
    )
    modulus = w.choice((10, 50, 97, 100, 1000)) if n > 14 or w.level > 6 else 0
    value = f"({rule}) % {modulus}" if modulus else rule
    if w.level < 5:
        return _listed_terms(w, name, n, (a, b), value)
    blocks = _remembering_function(w, name, (a, b), value)
    return _one_term(w, name, blocks) if w.level < 7 else _many_terms(w, name, blocks)


def _listed_terms(w: Writer, name: str, count: int, first: tuple[int, int], value: str) -> str:
    """List that grows by one term in each pass of a loop."""
    body = fill(
        """
        $n = [$a, $b]
        for i in range(2, $stop):
            $n.append($value)
            $report
        $show
        $more
        """,
        n=name,
        a=first[0],
        b=first[1],
        stop=count + 2,
        value=value,
        report=w.at(2, w.choice((f"print(i, {name}[i])", f"print({name}[-1])"))),
        show=w.show(w.choice((name, "result", "last")), f"{name}[{count + 1}]")
        if w.level > 1
        else f"print({name})",
        more=w.at(
            3,
            w.choice((f"print(sum({name}))", f"print(max({name}), min({name}))", f"print({name}[::2])")),
        ),
    )
    return program(w.main(body))


def _one_term(w: Writer, name: str, blocks: list[str]) -> str:
    """Recursive function that remembers its terms, called once."""
    shown = w.show("result", f"count({w.size(2, 14)})")
    return program(*blocks, join(shown, w.at(6, "print(calls)"), f"print(len({name}))"))


def _many_terms(w: Writer, name: str, blocks: list[str]) -> str:
    """Recursive function that remembers its terms, called in a loop that forgets some of them."""
    low = w.between(1, 4)
    rounds = w.size(3, 60)
    body = fill(
        """
        total = 0
        for k in range($low, $high):
            value = count(k $how)
            total += value
            $forget
            $report
        print(total, calls, len($n))
        """,
        low=low,
        high=low + rounds,
        how=w.choice(
            (f"% {w.between(9, 30)}", f"* {w.between(2, 7)} % {w.between(11, 30)}", f"+ {w.between(1, 5)}")
        ),
        forget=w.choice(
            (
                f"if len({name}) > {w.between(6, 14)}:\n    {name}.clear()",
                f"if k % {w.between(4, 8)} == 0:\n    {name}.pop(max({name}, default=0), None)",
                f"if value % {w.between(3, 5)} == 0:\n    {name}.clear()",
            )
        ),
        n=name,
        report=w.sometimes("k", rounds, w.choice(("print(k, value)", "print(k, value, calls)"))),
    )
    return program(*blocks, body)


def _remembering_function(w: Writer, name: str, first: tuple[int, int], value: str) -> list[str]:
    """Returns the memory of a function, and the text of the function, which returns a term."""
    a, b = first
    for k in ("i - 1", "i - 2", "i // 2"):
        value = value.replace(f"{name}[{k}]", f"count({k})")
    function = define(
        "count(i)",
        """
        $work
        if i < 2:
            return $base
        if i in $n:
            return $n[i]
        $log
        $n[i] = $value
        return $n[i]
        """,
        work="global calls\ncalls += 1" if w.level > 5 else "",
        base=w.choice((f"[{a}, {b}][i]", f"{a} if i == 0 else {a + b}", f"i + {a}")),
        n=name,
        log=w.at(5, 'print("new", i)', below=8),
        value=value,
    )
    return [join(f"{name} = {{}}", w.at(6, "calls = 0")), function]


#: Rules for one item at levels 1 and 2, and for each item of a list at levels 3 and 4.
_SPACE_RULES = (
    "$best[space - weight] + value",
    "max($best[space], $best[space - weight] + value)",
    "$best[space] + value - space",
)
_ITEM_RULES = (
    "$best[space] = max($best[space], $best[space - weight] + value)",
    "if $best[space - weight] + value > $best[space]:\n    $best[space] = $best[space - weight] + value",
)


@dataclass(frozen=True, slots=True)
class _Load:
    """The items and the capacity of a knapsack.

    Attributes:
        items: Names, weights and values of the items.
        capacity: The weight that the knapsack can carry.
        best: The name of the list of best values.
        order: The order in which the capacities are updated.
    """

    items: list[tuple[str, int, int]]
    capacity: int
    best: str
    order: str

    @property
    def named(self) -> list[str]:
        """The items as they are written in a program."""
        return [f'("{name}", {weight}, {value})' for name, weight, value in self.items]


def knapsack(w: Writer) -> str:
    """Most valuable items that a knapsack can carry."""
    names = w.sample(GOODS, 6)
    items = list(zip(names, w.numbers(6, 1, 6), w.numbers(6, 2, 30), strict=True))[: w.size(1, 6)]
    best = w.choice(("best", "bag", "most", "table"))
    order = w.choice(("range(capacity, weight - 1, -1)", "range(weight, capacity + 1)"))
    load = _Load(items, w.size(3, 22), best, order)
    if w.level < 5:
        space_rule, item_rule = w.choice(_SPACE_RULES), w.choice(_ITEM_RULES)
        shown = w.choice((best, f"weight, {best}[capacity]"))
        return _one_item(w, load, space_rule) if w.level < 3 else _items_in_a_loop(w, load, item_rule, shown)
    function = _pack_function(w, load)
    return _one_pack(w, load, function) if w.level < 8 else _many_packs(w, load, function)


def _one_item(w: Writer, load: _Load, rule: str) -> str:
    """Best values for one item, by capacity."""
    _, weight, value = load.items[0]
    body = fill(
        """
        capacity = $capacity
        $best = [0] * (capacity + 1)
        weight, value = $weight, $value
        for space in $order:
            $best[space] = $rule
        print($best)
        """,
        capacity=min(load.capacity, 4 if w.level < 2 else 9),
        best=load.best,
        weight=min(weight, 3),
        value=value,
        order=load.order,
        rule=rule,
    )
    return program(body)


def _items_in_a_loop(w: Writer, load: _Load, rule: str, shown: str) -> str:
    """Best values for up to three items, by capacity."""
    body = fill(
        """
        capacity = $capacity
        $best = [0] * (capacity + 1)
        for weight, value in [$items]:
            for space in $order:
                $rule
            print($shown)
        print($best[capacity])
        """,
        capacity=min(load.capacity, 9),
        best=load.best,
        items=", ".join(f"({weight}, {value})" for _, weight, value in load.items[:3]),
        order=load.order,
        rule=rule,
        shown=shown,
    )
    return program(w.main(body) if w.level > 3 else body)


def _one_pack(w: Writer, load: _Load, function: str) -> str:
    """Function that packs a knapsack, called once or twice."""
    body = join(
        spread("items", load.named),
        f"print(pack(items, {load.capacity}))",
        w.at(6, f"print(pack(items[1:], {max(3, load.capacity // 2)}))"),
    )
    return program(function, w.main(body))


def _many_packs(w: Writer, load: _Load, function: str) -> str:
    """Function that packs a knapsack, called with each capacity of a range."""
    rounds = w.size(3, 12)
    body = fill(
        """
        $items
        total = 0
        for capacity in range($low, $high):
            value, names = pack(items, capacity)
            total += value
            print(capacity, value, $shown)
            $change
        $show
        """,
        items=spread("items", load.named),
        low=(low := w.between(3, 6)),
        high=low + rounds,
        shown=w.choice(("names", "len(names)", "names[-1:]")),
        change=w.choice(
            (
                "",
                "items.append(items.pop(0))",
                "items = [(name, weight, value + weight % 3) for name, weight, value in items]",
            )
        ),
        show=w.show("total", "total"),
    )
    return program(function, w.main(body))


def _pack_function(w: Writer, load: _Load) -> str:
    """Returns the text of a function that packs a knapsack; from level 6 on it lists the items too."""
    best = load.best
    return define(
        "pack(items, capacity)",
        """
        $best = [0] * (capacity + 1)
        $chosen
        for name, weight, value in items:
            for space in $order:
                if $best[space - weight] + value $sign $best[space]:
                    $best[space] = $best[space - weight] + value
                    $keep
            $log
        return $result
        """,
        best=best,
        chosen=w.at(6, f"chosen = [[] for _ in {best}]"),
        order=load.order,
        sign=w.choice((">", ">", ">=")),
        keep=w.at(6, "chosen[space] = chosen[space - weight] + [name]"),
        log=w.at(5, f"print(name, {best}[capacity])", below=8),
        result=f"{best}[capacity], chosen[capacity]" if w.level > 5 else f"{best}[capacity]",
    )


#: Loops over two short texts, each with the print in it.
_TEXT_LOOPS = (
    (
        """
        a, b = "$a", "$b"
        count = 0
        for x, y in zip(a, b):
            if x $sign y:
                count += 1
            $report
        print(count)
        """,
        "print(x, y)",
    ),
    (
        """
        a, b = "$a", "$b"
        row = [0]
        for letter in a:
            row.append(row[-1] + (letter in b))
            $report
        print(row)
        """,
        "print(letter)",
    ),
    (
        """
        a, b = "$a", "$b"
        best = run = 0
        for x, y in zip(a, b):
            run = run + 1 if x $sign y else 0
            best = max(best, run)
            $report
        print(best, run)
        """,
        "print(x, y)",
    ),
)


def texts(w: Writer) -> str:
    """Comparisons of two texts: their common part or their distance."""
    pool = up_to(w.choice(THEMES), w.size(3, 9))
    first, second = w.sample(pool, 2)
    a, b = first[: w.size(2, 9)], second[: w.size(2, 9)]
    if w.level < 3:
        return _text_loop(w, a, b)
    kind = w.choice(("common", "edit", "substring", "palindrome"))
    row = w.choice(("row", "line", "cells"))
    if kind == "palindrome":
        function = _palindrome_function(w)
        return _palindrome(w, a, b, function) if w.level < 7 else _palindromes(w, function)
    function = _compare_function(w, kind, row)
    return _comparison(w, a, b, function) if w.level < 7 else _comparisons(w, function)


def _text_loop(w: Writer, a: str, b: str) -> str:
    """Loop over the letters of two texts."""
    text, report = w.choice(_TEXT_LOOPS)
    sign = w.choice(("==", "!=", "<", ">"))
    return program(fill(text, a=a, b=b, sign=sign, report=w.at(2, report)))


def _palindrome(w: Writer, a: str, b: str, function: str) -> str:
    """Longest palindromic subsequence of one text."""
    text = a + b[::-1] if w.level > 3 else (a + b)[:4]
    return program(function, w.main(f"print(longest({quoted(text)}))"))


def _comparison(w: Writer, a: str, b: str, function: str) -> str:
    """Function that compares two texts, called once."""
    if w.level < 4:
        a, b = a[:3], b[:2]
    return program(function, w.main(f"print(compare({quoted(a)}, {quoted(b)}))"))


def _palindromes(w: Writer, function: str) -> str:
    """Longest palindromic subsequences of pairs of words."""
    return program(function, w.main(_pairs(w, "longest(first + second)")))


def _comparisons(w: Writer, function: str) -> str:
    """Function that compares two texts, called with pairs of words."""
    return program(function, w.main(_pairs(w, "compare(first, second)")))


def _pairs(w: Writer, score: str) -> str:
    """Returns a loop over pairs of words that adds up their scores."""
    words = w.sample(up_to(w.choice(THEMES), w.size(3, 8)), w.size(3, 9))
    far = w.level > 8
    return fill(
        """
        $words
        total = 0
        for $pairs:
            $second
            score = $score
            total += score
            print($shown)
        $show
        """,
        words=spread("words", [quoted(word) for word in words]),
        pairs="i, first in enumerate(words)" if far else "first, second in zip(words, words[1:] + words[:1])",
        second=f"second = words[(i * {w.between(2, 4)} + 1) % len(words)]" if far else "",
        score=score,
        shown=w.choice(("first, second, score", "score", "first, score")),
        show=w.show("total", "total"),
    )


def _palindrome_function(w: Writer) -> str:
    """Returns the text of a function that finds the length of a text's longest palindromic subsequence."""
    return define(
        "longest(text)",
        """
        size = len(text)
        best = [[1] * size for _ in range(size)]
        for length in range(2, size + 1):
            for start in range(size - length + 1):
                end = start + length - 1
                if text[start] == text[end]:
                    best[start][end] = 2 + (best[start + 1][end - 1] if length > 2 else 0)
                else:
                    best[start][end] = max(best[start + 1][end], best[start][end - 1])
            $log
        return best[0][size - 1]
        """,
        log=w.at(4, "print(length, best[0][length - 1])", below=7),
    )


#: Per comparison of texts: the row above the first, how a row starts, and how it grows.
_COMPARISONS = {
    "common": (
        "[0] * (len(b) + 1)",
        "[0]",
        "if x == y:\n    $row.append(above[j] + 1)\nelse:\n    $row.append(max(above[j + 1], $row[j]))",
    ),
    "edit": (
        "list(range(len(b) + 1))",
        "[i + 1]",
        "if x == y:\n    $row.append(above[j])\nelse:\n"
        "    $row.append($cost + min(above[j], above[j + 1], $row[j]))",
    ),
    "substring": (
        "[0] * (len(b) + 1)",
        "[0]",
        "$row.append(above[j] + 1 if x == y else 0)\nbest = max(best, $row[-1])",
    ),
}


def _compare_function(w: Writer, kind: str, row: str) -> str:
    """Returns the text of a function that compares two texts row by row."""
    first, start, rule = _COMPARISONS[kind]
    return define(
        "compare(a, b)",
        """
        above = $first
        $best
        for $each in $texts:
            $row = $start
            for j, y in enumerate(b):
                $rule
            $log
            above = $row
        return $result
        """,
        first=first,
        best="best = 0" if kind == "substring" else "",
        each="i, x" if kind == "edit" else "x",
        texts="enumerate(a)" if kind == "edit" else "a",
        row=row,
        start=start,
        rule=rule,
        cost=w.choice(("1", "1", "2")) if kind == "edit" else "",
        log=w.at(4, f"print(x, {row})", below=7),
        result="best" if kind == "substring" else "above[-1]",
    )


#: Per kind of stretch: the lines before the loop, the lines in it, the result, the values printed in it.
_STRETCHES = {
    "stretch": (
        "current = best = 0",
        "current = max(0, current + value)\nbest = max(best, current)",
        "best",
        "value, current, best",
    ),
    "skip": (
        "taken = left = 0",
        "taken, left = left + value, max(taken, left)",
        "max(taken, left)",
        "value, taken, left",
    ),
    "trade": (
        "lowest = $n[0]\nbest = 0",
        "lowest = min(lowest, value)\nbest = max(best, value - lowest)",
        "best",
        "value, best",
    ),
    "climb": (
        "best = run = 1\nlast = $n[0]",
        "run = run + 1 if value > last else 1\nlast = value\nbest = max(best, run)",
        "best",
        "value, run",
    ),
}


def stretches(w: Writer) -> str:
    """Best stretch, climb or choice in a row of numbers."""
    name = w.choice(("values", "gains", "days", "prices"))
    kind = w.choice(("stretch", "climb", "skip", "trade"))
    values = w.numbers(w.size(2, 14), -9 if kind == "stretch" else 1, 15 if kind == "stretch" else 30)
    if w.level < 5:
        return _stretch_in_a_loop(w, kind, name, values)
    climb = _climb_function(w)
    if w.level < 7:
        return _one_stretch(w, kind, name, values, climb)
    return _many_stretches(w, kind, climb)


def _stretch_in_a_loop(w: Writer, kind: str, name: str, values: list[int]) -> str:
    """Loop over a row of numbers that keeps its best stretch so far."""
    zero, step, result, shown = _STRETCHES[kind]
    body = fill(
        "$n = $values\n$zero\nfor value in $n:\n    $step\n    $report\nprint($result)",
        n=name,
        values=values,
        zero=zero,
        step=step,
        report=w.at(2, f"print({shown})"),
        result=result,
    )
    return program(body)


def _one_stretch(w: Writer, kind: str, name: str, values: list[int], climb: str) -> str:
    """Function over a row of numbers, called with the row and its reverse."""
    call, function = ("longest_climb", climb) if w.chance(50) else (kind, _stretch_function(w, kind))
    body = join(f"{name} = {values}", f"print({call}({name}))", f"print({call}({name}[::-1]))")
    return program(function, w.main(body))


def _many_stretches(w: Writer, kind: str, climb: str) -> str:
    """One or two functions over rows of numbers, called with a new row in each round."""
    a, b, m = w.between(3, 23), w.between(1, 19), w.choice((17, 19, 23, 29, 31))
    both = w.level > 7
    rounds = w.size(4, 15)
    body = fill(
        """
        total = 0
        for turn in range(1, $stop):
            values = [(i * $a + turn * $b) % $m$shift for i in range($count)]
            first = $kind(values)
            $path
            total += first$more
            print(turn, first, $shown)
        $show
        """,
        stop=rounds + 1,
        a=a,
        b=b,
        m=m,
        shift=f" - {m // 2}" if kind == "stretch" else "",
        count=w.size(3, 12),
        kind=kind,
        path="path = longest_climb(values)" if both else "",
        more=" + len(path)" if both else " * turn",
        shown=w.choice(("path", "len(path)", "path[-1]")) if both else "total",
        show=w.show("total", "total"),
    )
    return program(_stretch_function(w, kind), climb if both else "", w.main(body))


def _stretch_function(w: Writer, kind: str) -> str:
    """Returns the text of a function that finds the best stretch of a row of numbers."""
    zero, step, result, _ = _STRETCHES[kind]
    return define(
        f"{kind}(values)",
        "$zero\nfor value in values:\n    $step\n    $log\nreturn $result",
        n="values",
        zero=zero,
        step=step,
        log=w.at(5, "print(value, best)" if kind != "skip" else "print(taken, left)", below=7),
        result=result,
    )


def _climb_function(w: Writer) -> str:
    """Returns the text of a function that finds the longest climbing, or falling, subsequence."""
    return define(
        "longest_climb(values)",
        """
        lengths = []
        before = []
        for i, value in enumerate(values):
            length, link = 1, -1
            for j in range(i):
                if values[j] $sign value and lengths[j] + 1 > length:
                    length, link = lengths[j] + 1, j
            lengths.append(length)
            before.append(link)
        place = lengths.index(max(lengths))
        path = []
        while place >= 0:
            path.insert(0, values[place])
            place = before[place]
        return path
        """,
        sign=w.choice(("<", "<", "<=", ">")),
    )


#: Loops over a row of costs, each with the name of the list it prints.
_COST_LOOPS = (
    (
        """
        costs = $row
        reached = [costs[0]]
        for i in range(1, len(costs)):
            reached.append(reached[i - 1] $op costs[i])
            $report
        print(reached)
        """,
        "reached",
    ),
    (
        """
        above = $row
        row = [1]
        for i in range(1, len(above)):
            row.append(row[i - 1] + above[i])
            $report
        print(row)
        """,
        "row",
    ),
    (
        """
        costs = $row
        best = [costs[0], costs[1]]
        for cost in costs[2:]:
            best.append(cost + min(best[-1], best[-2]))
            $report
        print(best)
        """,
        "best",
    ),
)


def grids(w: Writer) -> str:
    """Paths over a row or a grid of costs."""
    rows, columns = w.size(2, 5), w.size(2, 7)
    if w.level > 6:
        rows, columns = (2, 3) if w.level == 7 else (w.between(2, 3), w.between(3, 4))
    costs = [w.numbers(columns, 1, 9) for _ in range(5)][:rows]
    if w.level < 4:
        return _row_of_costs(w)
    grid = "GRID = [\n" + "".join(f"    {row},\n" for row in costs) + "]"
    best = w.choice(("min", "min", "max"))
    function = _cheapest_function(w, best)
    if w.level < 7:
        return _one_grid(w, grid, function)
    return _changing_grid(w, grid, function, _trail_function(best))


def _row_of_costs(w: Writer) -> str:
    """Loop over a row of costs that lists the cost to reach each place."""
    row = w.numbers(w.size(2, 12), 1, 40 if w.level < 3 else 9)
    text, result = w.choice(_COST_LOOPS)
    if result == "best":
        row += w.numbers(1, 1, 9)
    op = w.choice(("+", "+", "*", "-"))
    # The choice from one item takes a draw; without it the number of draws would change.
    report = "print(i)" if w.chance(40) else w.choice((f"print(i, {result}[i])",))
    if result == "best":
        report = "print(cost, best[-1])"
    return program(fill(text, row=row, op=op, report=w.at(2, report)))


def _one_grid(w: Writer, grid: str, function: str) -> str:
    """Cheapest path over a grid."""
    return program(grid, function, w.main("print(cheapest(GRID))"))


def _changing_grid(w: Writer, grid: str, function: str, trail: str) -> str:
    """Cheapest paths over a grid that changes in every round."""
    rounds = w.size(2, 14)
    change = w.choice(
        (
            "GRID.append(GRID.pop(0))",
            "for row in GRID:\n    row.append(row.pop(0))",
            f"GRID[turn % len(GRID)][turn % len(GRID[0])] += {w.between(3, 9)}",
            "for r, c in trail(reached):\n    GRID[r][c] += 1",
        )
    )
    body = fill(
        """
        total = 0
        for turn in range($rounds):
            reached = cheapest(GRID)
            path = trail(reached)
            total += reached[-1][-1]
            $shown
            $change
        $show
        print(path)
        """,
        rounds=rounds,
        shown=w.choice(
            (
                "print(turn, reached[-1][-1])",
                "print(turn, reached[-1])",
                "print(turn, reached[-1][-1], path[1])",
            )
        ),
        change=change,
        show=w.show("total", "total"),
    )
    return program(grid, function, trail, body)


def _cheapest_function(w: Writer, best: str) -> str:
    """Returns the text of a function that finds the cheapest, or dearest, path to each cell of a grid."""
    return define(
        "cheapest(grid)",
        """
        reached = []
        for r, row in enumerate(grid):
            line = []
            for c, cost in enumerate(row):
                if r == 0 and c == 0:
                    before = 0
                elif r == 0:
                    before = line[c - 1]
                elif c == 0:
                    before = reached[r - 1][c]
                else:
                    before = $best(line[c - 1], reached[r - 1][c]$diagonal)
                line.append(before + cost)
            reached.append(line)
            $log
        return $result
        """,
        best=best,
        diagonal=w.choice(("", ", reached[r - 1][c - 1]")),
        log=w.at(4, "print(line)", below=8),
        result="reached" if w.level > 6 else "reached[-1][-1]",
    )


def _trail_function(best: str) -> str:
    """Returns the text of a function that goes back along a path to the first cell of a grid."""
    return define(
        "trail(reached)",
        """
        r, c = len(reached) - 1, len(reached[0]) - 1
        path = [(r, c)]
        while r > 0 or c > 0:
            if c == 0 or (r > 0 and reached[r - 1][c] $sign reached[r][c - 1]):
                r -= 1
            else:
                c -= 1
            path.append((r, c))
        return path[::-1]
        """,
        sign="<" if best == "min" else ">",
    )


FAMILY = Family(
    "dynamic",
    (
        Template(coins),
        Template(stairs),
        Template(knapsack),
        Template(texts),
        Template(stretches),
        Template(grids),
    ),
)
