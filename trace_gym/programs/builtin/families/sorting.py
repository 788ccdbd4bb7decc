"""Sorting and searching: swaps, insertions, halving, splitting, tables, pairs."""

from __future__ import annotations

from dataclasses import dataclass

from trace_gym.programs.builtin.vocabulary import FRUITS, NOUNS, PEOPLE, THEMES, up_to
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


def _values(w: Writer, count: int, high: int = 99) -> list[int]:
    """``count`` numbers between 1 and ``high``."""
    return w.numbers(count, 1, high)


#: One pass over a list: of a bubble sort, of a selection sort and of a gnome sort.
_PASSES = (
    "for i in range(len($n) - 1):\n    if $n[i] $s $n[i + 1]:\n"
    "        $n[i], $n[i + 1] = $n[i + 1], $n[i]\n    $report\n"
    "print($n)",
    "best = 0\nfor i in range(1, len($n)):\n"
    "    if $n[i] $s $n[best]:\n        best = i\n    $report\n"
    "$n[0], $n[best] = $n[best], $n[0]\nprint($n)",
    "i = 1\nwhile i < len($n) and $n[i - 1] $s $n[i]:\n"
    "    $n[i - 1], $n[i] = $n[i], $n[i - 1]\n    i += 1\n"
    "    $report\nprint(i, $n)",
)

#: Bodies of sorts by exchanges, by name. A new order would change the programs.
_EXCHANGE_SORTS = {
    "bubble_sort": """
        swaps = 0
        for end in range(len($n) - 1, 0, -1):
            for i in range(end):
                if $n[i] $s $n[i + 1]:
                    $n[i], $n[i + 1] = $n[i + 1], $n[i]
                    swaps += 1
            $trace
        return swaps
        """,
    "selection_sort": """
        swaps = 0
        for start in range(len($n) - 1):
            best = start
            for i in range(start + 1, len($n)):
                if $n[best] $s $n[i]:
                    best = i
            if best != start:
                $n[start], $n[best] = $n[best], $n[start]
                swaps += 1
            $trace
        return swaps
        """,
    "gnome_sort": """
        swaps = 0
        i = 1
        while i < len($n):
            if i > 0 and $n[i - 1] $s $n[i]:
                $n[i - 1], $n[i] = $n[i], $n[i - 1]
                swaps += 1
                i -= 1
            else:
                i += 1
                $trace
        return swaps
        """,
    "insertion_sort": """
        swaps = 0
        for i in range(1, len($n)):
            value = $n[i]
            j = i
            while j > 0 and $n[j - 1] $s value:
                $n[j] = $n[j - 1]
                j -= 1
                swaps += 1
            $n[j] = value
            $trace
        return swaps
        """,
    "shell_sort": """
        swaps = 0
        gap = len($n) // 2
        while gap > 0:
            for i in range(gap, len($n)):
                j = i
                while j >= gap and $n[j - gap] $s $n[j]:
                    $n[j - gap], $n[j] = $n[j], $n[j - gap]
                    j -= gap
                    swaps += 1
            $trace
            gap //= 2
        return swaps
        """,
    "cocktail_sort": """
        swaps = 0
        left, right = 0, len($n) - 1
        while left < right:
            for i in range(left, right):
                if $n[i] $s $n[i + 1]:
                    $n[i], $n[i + 1] = $n[i + 1], $n[i]
                    swaps += 1
            right -= 1
            for i in range(right, left, -1):
                if $n[i - 1] $s $n[i]:
                    $n[i], $n[i - 1] = $n[i - 1], $n[i]
                    swaps += 1
            left += 1
            $trace
        return swaps
        """,
}


def exchanges(w: Writer) -> str:
    """Sort by exchanges: one pass below level 3, one list below level 8, else lists of growing size."""
    values = _values(w, w.size(2, 12))
    name = w.choice(("values", "numbers", "cards", "heights", "data"))
    sign = w.choice((">", ">", "<"))
    if w.level < 3:
        return _one_pass(w, values, name, sign)
    # Drawn at every level: a choice left out would change all choices after it.
    trace = "print($n)" if w.level < 7 else f"if swaps % {w.between(2, 4)} == 0:\n    print(swaps, $n)"
    used = w.sample(list(_EXCHANGE_SORTS), 1 if w.level < 9 else 2)
    if w.level < 8:
        return _one_exchange_sort(w, values, name, used[0], {"s": sign, "trace": trace})
    return _exchange_sorts(w, name, used, {"s": sign, "trace": ""})


def _one_pass(w: Writer, values: list[int], name: str, sign: str) -> str:
    """One pass of exchanges over a list."""
    text = w.choice(_PASSES)
    if "i = 1" in text:
        # Here ``i`` can be past the end of the list.
        report = w.at(2, "print(i)")
    else:
        report = w.at(2, f"print(i, {name})" if w.chance(50) else f"print({name}[i])")
    return program(join(f"{name} = {values}", fill(text, n=name, s=sign, report=report)))


def _one_exchange_sort(w: Writer, values: list[int], name: str, sort: str, holes: dict[str, str]) -> str:
    """Sort of one list by exchanges, which are counted and traced."""
    function = define(f"{sort}($n)", _EXCHANGE_SORTS[sort], n=name, **holes)
    body = join(f"{name} = {values}", f"swaps = {sort}({name})", w.show("swaps", "swaps"), f"print({name})")
    return program(function, w.main(body))


def _exchange_sorts(w: Writer, name: str, sorts: list[str], holes: dict[str, str]) -> str:
    """Sorts by exchanges of lists of growing size, their exchanges added up."""
    functions = [define(f"{sort}($n)", _EXCHANGE_SORTS[sort], n=name, **holes) for sort in sorts]
    a, m = w.between(3, 30), w.choice((31, 47, 61, 97))
    body = fill(
        """
        total = 0
        for size in range($low, $high):
            $n = [(i * $a + size) % $m for i in range(size)]
            swaps = $first($n)
            total += swaps
            $second
            print(size, swaps, $n[$cut])
        $show
        """,
        low=(low := w.between(2, 4)),
        high=low + w.size(4, 15),
        n=name,
        a=a,
        m=m,
        first=sorts[0],
        second=f"swaps -= {sorts[1]}({name}[::-1])" if len(sorts) > 1 else "",
        cut=w.choice(("0", "-1", ":2", "-2:", "size // 2")),
        show=w.show("total", "total"),
    )
    return program(*functions, w.main(body))


def halving(w: Writer) -> str:
    """Search in a sorted list: without a function below level 4, else with one, for several targets."""
    values = sorted({*w.numbers(w.size(3, 16) + 2, 1, 99)})
    target = w.choice((w.choice(values), w.between(1, 99)))
    name = w.choice(("values", "numbers", "shelf", "pages", "marks"))
    if w.level == 1:
        return _short_search(w, values, target, name)
    if w.level < 4:
        return _binary_search(w, values, target, name)
    search = _search_function(w)
    if w.level < 7:
        return _searches(w, values, name, search)
    return _search_rounds(w, values, name, search)


def _short_search(w: Writer, values: list[int], target: int, name: str) -> str:
    """Search in a list of at most five numbers, or one step of it."""
    text = w.choice(
        (
            "for i, value in enumerate($n):\n    if value == $t:\n        print(i)\nprint(len($n))",
            "place = 0\nwhile place < len($n) and $n[place] < $t:\n    place += 1\nprint(place)",
            "low, high = 0, len($n)\nmiddle = (low + high) // 2\n"
            "if $n[middle] < $t:\n    low = middle + 1\nelse:\n"
            "    high = middle\nprint(low, high)",
        )
    )
    return program(join(f"{name} = {values[:5]}", fill(text, n=name, t=target)))


def _binary_search(w: Writer, values: list[int], target: int, name: str) -> str:
    """Binary search without a function."""
    body = fill(
        """
        $n = $values
        low, high = 0, len($n)
        while low < high:
            middle = (low + high) // 2
            $report
            if $n[middle] < $t:
                low = middle + 1
            else:
                high = middle
        print(low)
        """,
        n=name,
        values=values,
        t=target,
        report=w.at(3, w.choice(("print(low, high)", "print(middle)", f"print({name}[middle])"))),
    )
    return program(body)


def _searches(w: Writer, values: list[int], name: str, search: str) -> str:
    """Searches for several targets in one list."""
    targets = w.numbers(w.size(1, 8), 1, 99)
    targets[0] = w.choice(values)
    body = join(
        f"{name} = {values}", under(f"for target in {targets}:", f"print(target, search({name}, target))")
    )
    return program(search, w.main(body))


def _search_rounds(w: Writer, values: list[int], name: str, search: str) -> str:
    """Searches in rounds, with hits and steps added up."""
    a = w.between(2, 9)
    rounds = w.size(2, 60)
    body = fill(
        """
        $n = $values
        hits = work = 0
        for turn in range(1, $stop):
            target = turn * $a % $m
            place, steps = search($n, target)
            work += steps
            $use
            $report
        print(hits, work)
        print($n)
        """,
        n=name,
        values=values[:12],
        stop=rounds + 1,
        a=a,
        m=w.between(60, 110),
        use=w.choice(
            (
                f"if place < len({name}) and {name}[place] == target:\n    hits += 1",
                f"if place < len({name}) and {name}[place] == target:\n"
                f"    hits += 1\nelif turn % {w.between(5, 9)} == 0:\n"
                f"    {name}.append(target)\n    {name}.sort()",
                f"if {name}[place % len({name})] == target:\n    hits += place",
            )
        ),
        report=w.sometimes("turn", rounds, w.tell("turn", "turn", "target", "place", "steps")),
    )
    return program(search, w.main(body))


#: Bodies of searches: by halves until found, by jumps, by halves or thirds to the place.
_SEARCHES = (
    """
    low, high = 0, len(values) - 1
    $count
    while low <= high:
        middle = (low + high) // 2
        $step
        $log
        if values[middle] == target:
            return $found
        if values[middle] < target:
            low = middle + 1
        else:
            high = middle - 1
    return $missing
    """,
    """
    place = 0
    jump = $jump
    $count
    while place + jump < len(values) and values[place + jump] <= target:
        place += jump
        $step
        $log
    while place < len(values) and values[place] < target:
        place += 1
        $step
    return $place
    """,
    """
    low, high = 0, len(values)
    $count
    while low < high:
        middle = low + (high - low) // $part
        $step
        $log
        if values[middle] < target:
            low = middle + 1
        else:
            high = middle
    return $low
    """,
)


def _search_function(w: Writer) -> str:
    """A function that searches a sorted list; from level 6 it returns its steps too."""
    counted = w.level > 5
    steps = ", steps" if counted else ""
    search = define(
        "search(values, target)",
        w.choice(_SEARCHES),
        count="steps = 0" if counted else "",
        step="steps += 1" if counted else "",
        log=w.at(4, w.choice(("print(values[middle])", "print(middle)")), below=7),
        found=f"middle{steps}",
        missing=f"-1{steps}",
        jump=w.between(2, 4),
        part=w.between(2, 3),
        place=f"place{steps}",
        low=f"low{steps}",
    )
    if "jump" in search:
        search = search.replace("values[middle]", "values[place]").replace("print(middle)", "print(place)")
    return search


def splitting(w: Writer) -> str:
    """Sort or selection by splitting: merge sort, quick sort or the number at a rank."""
    kind = w.choice((_merge_sort, _quick_sort, _selection))
    values = _values(w, w.size(2, 15))
    log = w.at(4, w.choice(("print(values)", "print(len(values), values)")), below=7)
    compare = w.choice(("<=", "<=", ">="))
    return kind(w, values, log, compare)


def _merge_sort(w: Writer, values: list[int], log: str, compare: str) -> str:
    """Merge sort of one list below level 7, else of lists of growing size."""
    merge = define(
        "merge(left, right)",
        """
        $count
        result = []
        while left and right:
            $step
            if left[0] $compare right[0]:
                result.append(left.pop(0))
            else:
                result.append(right.pop(0))
        return result + left + right
        """,
        count=w.at(7, "global moves"),
        step=w.at(7, "moves += 1"),
        compare=compare,
    )
    sort = define(
        "sort(values)",
        """
        if len(values) < 2:
            return values
        middle = len(values) // 2
        $log
        return merge(sort(values[:middle]), sort(values[middle:]))
        """,
        log=log,
    )
    return _sort_program(w, values, merge, sort)


def _quick_sort(w: Writer, values: list[int], log: str, compare: str) -> str:
    """Quick sort of one list below level 7, else of lists of growing size."""
    sort = define(
        "sort(values)",
        """
        $count
        if len(values) < 2:
            return values
        pivot = values[$pivot]
        small, equal, large = [], [], []
        for value in values:
            $step
            if value $low pivot:
                small.append(value)
            elif value == pivot:
                equal.append(value)
            else:
                large.append(value)
        $log
        return sort(small) + equal + sort(large)
        """,
        count=w.at(7, "global moves"),
        step=w.at(7, "moves += 1"),
        pivot=w.choice(("0", "-1", "len(values) // 2")),
        low=compare[0],
        log=w.choice((log, w.at(4, "print(pivot, small, large)", below=7))),
    )
    return _sort_program(w, values, sort)


def _selection(w: Writer, values: list[int], log: str, compare: str) -> str:
    """Number at a rank of one list below level 7, else of lists of growing size."""
    kth = define(
        "kth(values, k)",
        """
        $count
        pivot = values[$pivot]
        low = [value for value in values if value $low pivot]
        high = [value for value in values if value $high pivot]
        same = len(values) - len(low) - len(high)
        $step
        $log
        if k < len(low):
            return kth(low, k)
        if k < len(low) + same:
            return pivot
        return kth(high, k - len(low) - same)
        """,
        count=w.at(7, "global moves"),
        step=w.at(7, "moves += len(values)"),
        pivot=w.choice(("0", "-1", "len(values) // 2")),
        low=compare[0],
        high="<" if compare[0] == ">" else ">",
        log=w.at(4, "print(pivot, low, high)", below=7),
    )
    if w.level > 6:
        return program("moves = 0", kth, _growing_lists(w, "kth(values, size // 2)", []))
    body = join(
        f"values = {values}",
        f"print(kth(values, {w.below(len(values))}))",
        w.at(5, "print(kth(values, 0))"),
    )
    return program(kth, w.main(body))


def _sort_program(w: Writer, values: list[int], *functions: str) -> str:
    """Program that sorts one list with these functions below level 7, else lists of growing size."""
    if w.level > 6:
        parts = ["result[0], result[-1]", "result[:3]", "result[size // 2]"]
        return program("moves = 0", *functions, _growing_lists(w, "sort(values)", parts))
    return program(*functions, w.main(join(f"values = {values}", "print(sort(values))")))


def _growing_lists(w: Writer, result: str, parts: list[str]) -> str:
    """A loop over lists of growing size. It prints one of ``parts`` of each result, or the result."""
    a, b, m = w.between(3, 40), w.between(1, 20), w.choice((37, 53, 61, 97))
    return fill(
        """
        for size in range($low, $high, $stride):
            values = [(i * $a + size * $b) % $m for i in range(size)]
            result = $result
            print(size, $shown, moves)
        """,
        low=(low := w.between(2, 4)),
        high=low + w.size(3, 12) * (stride := w.between(1, 2)),
        stride=stride,
        a=a,
        b=b,
        m=m,
        result=result,
        shown=w.choice(parts) if parts else "result",
    ).replace(", 1):", "):")


@dataclass(frozen=True, slots=True)
class _Records:
    """Records of a name and two numbers.

    Attributes:
        names: The names, drawn with the records.
        rows: The text of each record.
        field, other: The names of the two numbers.
        key: The text of a function that gives the sort key of a record.
    """

    names: list[str]
    rows: list[str]
    field: str
    other: str
    key: str


def _records(w: Writer) -> _Records:
    """Draws two to nine records."""
    names = w.sample(w.choice((PEOPLE, FRUITS)), w.size(2, 9))
    field, other = w.choice(
        (("score", "level"), ("age", "height"), ("price", "weight"), ("points", "games"), ("wins", "losses"))
    )
    numbers = zip(names, w.numbers(12, 1, 20 if w.chance(50) else 60), w.numbers(12, 1, 9), strict=False)
    key = w.choice(
        (
            "lambda row: row[1]",
            "lambda row: (-row[1], row[0])",
            "lambda row: (row[2], row[1])",
            "lambda row: row[1] * row[2]",
            "lambda row: (len(row[0]), row[0])",
            "lambda row: row[0][-1]",
        )
    )
    return _Records(names, [f'("{name}", {a}, {b})' for name, a, b in numbers], field, other, key)


def tables(w: Writer) -> str:
    """Records in order: a plain list below level 3, a table below level 5, else a table with ranks."""
    records = _records(w)
    if w.level < 3:
        return _ordered_list(w, records)
    # Drawn at every level: a choice left out would change all choices after it.
    place = _place_function(w)
    if w.level < 5:
        return _ordered_records(w, records)
    rounds = w.size(1, 14) if w.level > 6 else 1
    change = w.choice(
        (
            f"rows = [(name, (a + turn * b) % {w.between(20, 70)}, b) for name, a, b in rows]",
            f"name, {records.field}, {records.other} = rows.pop(0)\n"
            f"rows.append((name, {records.field} // 2 + turn, {records.other} + 1))",
            "rows = [(name, a + len(name) * (i % 3), b) for i, (name, a, b) in enumerate(table)]",
        )
    )
    if rounds == 1:
        return _ranked_table(w, records, place)
    return _ranked_tables(w, records, place, rounds, change)


def _ordered_list(w: Writer, records: _Records) -> str:
    """List of names, numbers or words that a method or a function orders."""
    name = w.choice(("names", "values", "words"))
    data = {
        "names": strings(records.names[:4]),
        "values": str(w.numbers(w.size(3, 7), 1, 60)),
        "words": strings(w.sample(up_to(w.choice(THEMES), 6), w.size(2, 5))),
    }[name]
    act = w.choice(
        {
            "names": ("$n.sort(key=len)", "$n.sort(reverse=True)", "$n = sorted($n)"),
            "values": (f"$n.sort(key=lambda x: x % {w.between(3, 10)})", "$n = sorted($n, reverse=True)"),
            "words": (f"$n.sort(key=lambda word: word[{w.choice((1, -1, 2))}])", "$n.sort()"),
        }[name]
    )
    more = w.choice(
        (
            "print(len($n))",
            "last = $n[-1]\nprint(last)",
            "$n.reverse()\nprint($n[0])",
            "first = $n.pop(0)\nprint(first)",
        )
    )
    loop = "for i, item in enumerate($n):\n    print(i, item)"
    end = w.choice(("print($n)", "print($n[0], $n[-1])", "print($n[:2])")) if w.level < 2 else loop
    return program(fill(join(f"$n = {data}", act, more, end), n=name))


def _ordered_records(w: Writer, records: _Records) -> str:
    """Records sorted by a key, inserted in order or ranked by a number."""
    field, other = records.field, records.other
    act = w.choice(
        (
            f"rows.sort(key={records.key})\nfor name, {field}, {other} in rows:\n"
            f"    print(name, {w.choice((field, other, f'{field} * {other}'))})",
            "table = []\nfor row in rows:\n    place = 0\n"
            "    while place < len(table) and table[place][1] >= row[1]:\n"
            "        place += 1\n    table.insert(place, row)\n"
            "for row in table:\n    print(row[0], row[1])",
            f"rank = 0\nlast = None\n"
            f"for name, {field}, {other} in sorted(rows, key=lambda row: -row[2]):\n"
            f"    if {other} != last:\n        rank += 1\n"
            f"    last = {other}\n    print(rank, name)",
        )
    )
    return program(w.main(join(spread("rows", records.rows), act)))


def _place_function(w: Writer) -> str:
    """A function that inserts a record into an ordered table."""
    return define(
        "place_in(table, row)",
        """
        place = 0
        while place < len(table) and $test:
            place += 1
        table.insert(place, row)
        return place
        """,
        test=w.choice(
            (
                "table[place][1] >= row[1]",
                "table[place][1] <= row[1]",
                "table[place][2] > row[2]",
                "(table[place][2], table[place][0]) < (row[2], row[0])",
            )
        ),
    )


#: A function that ranks the records of an ordered table; equal records have the same rank.
_RANKS_FUNCTION = define(
    "ranks(table)",
    "result = []\nfor i, row in enumerate(table):\n"
    "    if i > 0 and row[1] == table[i - 1][1]:\n"
    "        result.append(result[-1])\n    else:\n"
    "        result.append(i + 1)\nreturn result",
)

#: Statements that build a table from rows.
_BUILD = "table = []\nfor row in rows:\n    place = place_in(table, row)\n    $log"

#: Statements that print a table with ranks.
_PRINT_RANKS = "for rank, row in zip(ranks(table), table):\n    print(rank, row[0], row[1])"


def _ranked_table(w: Writer, records: _Records, place: str) -> str:
    """Table built by insertion, with ranks."""
    log = w.choice(("print(place, row[0])", "print(row[0], place)")) if w.level < 7 else ""
    body = fill(
        "$rows\n$build\n$ranks", rows=spread("rows", records.rows), build=_BUILD, log=log, ranks=_PRINT_RANKS
    )
    return program(place, _RANKS_FUNCTION, w.main(body))


def _ranked_tables(w: Writer, records: _Records, place: str, rounds: int, change: str) -> str:
    """Table built by insertion in rounds, from records that change."""
    body = fill(
        """
        $rows
        moves = 0
        for turn in range(1, $stop):
            $build
            $change
            $tell
        $ranks
        """,
        rows=spread("rows", records.rows),
        stop=rounds + 1,
        build=_BUILD,
        log="moves += place",
        change=change,
        tell=w.tell("turn", "turn", "table[0][0]", "table[-1][0]", "moves"),
        ranks=_PRINT_RANKS,
    )
    return program(place, _RANKS_FUNCTION, w.main(body))


def pairs(w: Writer) -> str:
    """Sorted list: walked through below level 4, else searched for pairs with a given sum."""
    values = sorted(_values(w, w.size(3, 12), 30))
    target = w.between(15, 45)
    walk = w.choice(list(_WALKS))
    if w.level < 4:
        return _walk(w, values, target, walk)
    start, find = _find_function(w)
    # Drawn at every level: a choice left out would change all choices after it.
    counting = _counting_function(w)
    if w.level < 7:
        return _pair_sums(w, values, find)
    return _pair_sum_rounds(w, start, find, counting)


#: Walks through a sorted list, by name. A new order would change the programs.
_WALKS = {
    "sum": "low, high = 0, len($n) - 1\nwhile low < high:\n"
    "    total = $n[low] + $n[high]\n    if total == $t:\n"
    "        print($n[low], $n[high])\n        low += 1\n"
    "    elif total < $t:\n        low += 1\n    else:\n"
    "        high -= 1\n    $log_sum\nprint(low, high)",
    "count": "counts = [0] * $m\nfor value in $n:\n"
    "    counts[value % $m] += 1\n    $log_count\nprint(counts)",
    "merge": "before = 0\nfor value in $n:\n    if value - before > $g:\n"
    "        print(before, value)\n    before = value\nprint(before)",
    "gap": "best = 0\nfor i in range(1, len($n)):\n"
    "    gap = $n[i] - $n[i - 1]\n    if gap > best:\n"
    "        best = gap\n        $log_gap\nprint(best)",
}


def _walk(w: Writer, values: list[int], target: int, walk: str) -> str:
    """Walk through a sorted list without a function."""
    text = _WALKS[walk]
    name = w.choice(("values", "numbers", "times", "steps"))
    if w.level == 1 and walk in ("sum", "gap"):
        text = (
            "first, last = $n[0], $n[-1]\nif first + last > $t:\n"
            "    last = $n[-2]\nelse:\n    first = $n[1]\nprint(first, last)"
        )
    steps = fill(
        text,
        n=name,
        t=target,
        m=w.between(3, 5),
        g=w.between(2, 8),
        log_sum=w.at(3, "print(low, high)"),
        log_count=w.at(2, "print(value, value % $m)"),
        log_gap=w.at(2, "print(i, gap)"),
    )
    return program(join(f"{name} = {values[: 3 if w.level == 1 else 12]}", steps))


def _pair_sums(w: Writer, values: list[int], find: str) -> str:
    """Pairs of numbers of a sorted list that have a given sum."""
    targets = w.numbers(w.size(1, 7), 10, 50)
    loop = under(f"for target in {targets}:", "print(target, pairs(values, target))")
    return program(find, w.main(join(f"values = {values}", loop)))


def _pair_sum_rounds(w: Writer, start: str, find: str, counting: str) -> str:
    """Pairs of numbers that have a given sum, in lists sorted by counting."""
    a, m = w.between(3, 20), w.between(8, 14) if w.level < 9 else w.between(15, 40)
    body = fill(
        """
        grand = 0
        for turn in range(1, $stop):
            values = [(i * $a + turn * $b) % $m for i in range($count)]
            values = counting_sort(values, $m)
            found = pairs(values, $target)
            grand += $size
            $tell
        $show
        """,
        stop=w.size(3, 14) + 1,
        a=a,
        b=w.between(1, 9),
        m=m,
        count=w.size(3, 12),
        target=w.choice((str(m), f"{m} - turn", f"{m // 2} + turn")),
        size="len(found)" if start == "[]" else "found",
        tell=w.tell("turn", "turn", "values[0]", "values[-1]", "found"),
        show=w.show("grand", "grand"),
    )
    return program(counting, find, w.main(body))


def _find_function(w: Writer) -> tuple[str, str]:
    """The start value of a search for pairs, ``[]`` or ``0``, and the function that searches."""
    start = w.choice(("[]", "0"))
    function = define(
        "pairs(values, target)",
        """
        low, high = 0, len(values) - 1
        found = $start
        while low < high:
            total = values[low] + values[high]
            $log
            if total == target:
                $hit
                low += 1
                high -= 1
            elif total < target:
                low += 1
            else:
                high -= 1
        return found
        """,
        start=start,
        hit="found.append((values[low], values[high]))" if start == "[]" else "found += 1",
        log=w.at(4, "print(low, high, total)", below=6),
    )
    return start, function


def _counting_function(w: Writer) -> str:
    """A function that sorts by counting the values."""
    return define(
        "counting_sort(values, most)",
        """
        counts = [0] * (most + 1)
        for value in values:
            counts[value] += 1
        result = []
        for value, count in enumerate(counts):
            $skip
            result += [value] * $times
        return result
        """,
        skip=w.choice(("", "if count == 0:\n    continue")),
        times=w.choice(("count", "count", "min(count, 2)")),
    )


def spells(w: Writer) -> str:
    """Words in order: compared below level 4, else sorted by a comparison, once or in rounds."""
    words = w.sample(up_to(w.choice((NOUNS, FRUITS, PEOPLE)), w.size(4, 8)), w.size(2, 9))
    if w.level < 4:
        return _compared_words(w, words)
    before, order = _before_function(w), _order_function(w)
    rounds = w.size(1, 12) if w.level > 7 else 1
    if rounds == 1:
        return _ordered_words(w, words, before, order)
    return _word_rounds(w, words, before, order, rounds)


def _spread_words(words: list[str]) -> str:
    """An assignment of the words."""
    return spread("words", [quoted(word) for word in words])


def _compared_words(w: Writer, words: list[str]) -> str:
    """Comparison of words, or the letters of a word in order."""
    data = _spread_words(words)
    first, second = words[0], words[1] if w.chance(60) else words[0][: w.between(1, 3)] + words[1][:3]
    text = w.choice(
        (
            f'a, b = "{first}", "{second}"\nplace = 0\n'
            f"while place < min(len(a), len(b)) and a[place] == b[place]:\n"
            f"    place += 1\nprint(place, a < b)",
            f"{data}\nfirst = words[0]\nfor word in words:\n"
            f"    if word {w.choice('<>')} first:\n        first = word\n"
            f"    $report\nprint(first)",
            f'letters = list("{first[:6]}")\nletters.sort()\n'
            f'print("".join(letters), letters[0])\n'
            f'print(letters.index("{first[0]}"))',
            f"{data}\ncount = 0\nfor word in words:\n"
            f'    if word > "{w.choice("ghklmp")}":\n        count += 1\n'
            f"        $report\nprint(count)",
        )
    )
    return program(fill(text, report=w.at(2, "print(word)")))


def _ordered_words(w: Writer, words: list[str], before: str, order: str) -> str:
    """Words sorted by a comparison."""
    body = join(_spread_words(words), "print(order(words))", w.at(6, "print(compared)"))
    return program(w.at(6, "compared = 0"), before, order, body)


def _word_rounds(w: Writer, words: list[str], before: str, order: str, rounds: int) -> str:
    """Words sorted by a comparison in rounds that change them."""
    body = fill(
        """
        $data
        for turn in range(1, $stop):
            words = order(words)
            print(turn, words[0], words[-1], compared)
            $change
        print(words)
        """,
        data=_spread_words(words),
        stop=rounds + 1,
        change=w.choice(
            (
                "words = [word[1:] + word[0] for word in words]",
                "words = [word[::-1] for word in words]",
                "words = words[::2] + words[1::2]\nwords[0] = words[0][::-1]",
            )
        ),
    )
    return program("compared = 0", before, order, body)


def _before_function(w: Writer) -> str:
    """A function that compares two words; from level 6 it counts the letters compared."""
    return define(
        "before(a, b)",
        """
        $count
        for x, y in zip(a, b):
            $step
            if x != y:
                return $compare
        return len(a) < len(b)
        """,
        count=w.at(6, "global compared"),
        step=w.at(6, "compared += 1"),
        compare=w.choice(("x < y", "x > y", "x < y")),
    )


def _order_function(w: Writer) -> str:
    """A function that sorts words by insertion."""
    return define(
        "order(words)",
        """
        result = []
        for word in words:
            place = len(result)
            while place > 0 and before(word, result[place - 1]):
                place -= 1
            result.insert(place, word)
            $log
        return result
        """,
        log=w.at(4, w.choice(("print(result)", "print(word, place)")), below=8),
    )


FAMILY = Family(
    "sorting",
    (
        Template(exchanges),
        Template(halving),
        Template(splitting, lowest=3),
        Template(tables),
        Template(pairs),
        Template(spells),
    ),
)
