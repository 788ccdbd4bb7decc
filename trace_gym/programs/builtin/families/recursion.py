"""Recursion: numbers, words, nested lists, trees, towers, choices, folders."""

from __future__ import annotations

from collections.abc import Iterator

from trace_gym.programs.builtin.vocabulary import COLOURS, FRUITS, NOUNS, THEMES, up_to
from trace_gym.programs.builtin.writer import (
    Family,
    Template,
    Writer,
    define,
    fill,
    join,
    program,
    quoted,
    spaced,
    spread,
    under,
)
from trace_gym.programs.draws import Draws


def numbers(w: Writer) -> str:
    """Recursive function over numbers: over one number below level 4, else one of four kinds."""
    if w.level < 4:
        return _countdown(w)
    kind = w.choice((_two_calls, _mutual_calls, _triangle, _common_divisors))
    return kind(w)


#: Functions of one number: names, the case that ends, the step, and which argument the call takes.
_COUNTDOWNS = (
    ("total,add_up,climb", "if $x == 0:\n    return $zero", "return $x + $f($x - 1)", "size"),
    ("product,multiply,grow", "if $x < 2:\n    return $one", "return $x * $f($x - 1)", "size"),
    ("power,scale,raised", "if $x == 0:\n    return $one", "return $base * $f($x - 1)", "size"),
    ("jumps,hops,steps", "if $x <= 0:\n    return $zero", "return 1 + $f($x - $k)", "length"),
    ("digits,cross_sum", "if $x < 10:\n    return $x", "return $x % 10 + $f($x // 10)", "digits"),
    ("halve,shrink,fold", "if $x < 2:\n    return $one", "return $x + $f($x // 2)", "halved"),
    ("mix,blend,stir", "if $x == 0:\n    return $zero", "return $f($x - 1) * 2 + $x", "size"),
    ("zigzag,swing", "if $x == 0:\n    return $zero", "return $x * $base - $f($x - 1)", "size"),
    ("collect,gather", "if $x == 0:\n    return []", "return [$x * $k] + $f($x - 1)", "size"),
    ("binary,bits", "if $x < 2:\n    return str($x)", "return $f($x // 2) + str($x % 2)", "written"),
)


def _countdown(w: Writer) -> str:
    """Recursive function over one number, its result printed."""
    size = w.size(2, 12)
    arguments = {
        "size": size,
        "length": size * 2 + w.below(2),
        "halved": w.between(3, 7) << (size - 2),
        "written": w.between(3, 7) << (size - 2),
    }
    names, stop, step, argument = w.choice(_COUNTDOWNS)
    name = w.choice(names.split(","))
    arguments["digits"] = int("".join(map(str, w.numbers(size, 1, 9))))
    x = w.choice(("n", "x", "k", "number", "left"))
    result = w.choice(("result", "answer", "value", "end"))
    function = define(
        "$f($x)",
        join(w.at(3, w.choice((f'print("{name}", {x})', f"print({x})"))), stop, step),
        f=name,
        x=x,
        zero=w.below(9),
        one=w.between(1, 5),
        base=w.between(2, 7),
        k=w.between(2, 4),
    )
    call = f"{name}({min(arguments[argument], 4000)})"
    plain = stop.endswith("[]") or "str(" in step
    more = "" if plain else f" {w.choice('+-*')} {w.between(2, 9)}"
    direct = w.choice((f"print({call})", f"print({call}{more})", w.show(name, call)))
    end = f"{result} = {call}\n{w.show(result, result)}"
    return program(function, direct if w.chance(50) else end)


def _two_calls(w: Writer) -> str:
    """Recursive function that calls itself twice, as for Fibonacci numbers."""
    name = w.choice(("grow", "spread", "breed", "count", "rabbits", "tiles", "steps", "leaves"))
    a, b, k = w.between(0, 9), w.between(1, 9), w.between(1, 9)
    memo = w.level >= 8 and w.chance(50)
    function = define(
        "$f(n)",
        """
        if n < 2:
            return $base
        $known
        $log
        result = $f(n - 1) $sign $f(n - 2)$more
        $keep
        return result
        """,
        f=name,
        base=w.choice((f"{b}", f"n + {a}", f"{a} if n == 0 else {a + b}", f"{b} - n")),
        known="if n in known:\n    return known[n]" if memo else "",
        log=w.at(4, f'print("{name}", n)', below=7),
        sign=w.choice(("+", "+", "-")),
        more=w.choice(("", f" + {k}", " * 2", " + n", f" - {k}")),
        keep="known[n] = result" if memo else "",
    )
    if w.level < 7:
        return program(function, w.main(w.show("result", f"{name}({w.size(2, 6)})")))
    return program("known = {}" if memo else "", function, w.main(_two_call_values(w, name, memo)))


def _two_call_values(w: Writer, name: str, memo: bool) -> str:
    """A loop that adds up the function's values for consecutive numbers."""
    return fill(
        """
        total = 0
        for n in range($low, $high):
            value = $f(n)
            total $add
            $shown
        $show
        """,
        f=name,
        add=w.choice(("+= value", f"= (total + value) % {w.choice((97, 100, 1000))}", "= value - total")),
        low=(low := w.between(1, 3)),
        high=low + (w.size(2, 60) if memo else w.size(2, 11)),
        shown="print(n, value, len(known))" if memo else "print(n, value)",
        show=w.show("total", "total"),
    )


def _mutual_calls(w: Writer) -> str:
    """Two functions that call each other until a number is small."""
    k = w.between(2, 3)
    first = define(
        "down(n, marks)",
        "if n <= 0:\n    return marks\nif n % $k == 0:\n"
        "    return jump(n // $k, marks + $a)\n"
        "return down(n - 1, marks + 1)",
        k=k,
        a=w.between(2, 9),
    )
    second = define(
        "jump(n, marks)",
        "$log\nif n < $low:\n    return marks * $b + n\nreturn down(n - $c, marks + n)",
        log=w.at(4, w.choice(('print("jump", n, marks)', "print(n, marks)")), below=8),
        low=w.between(2, 4),
        b=w.between(1, 3),
        c=w.between(1, 2),
    )
    start, stride = w.between(9, 40), w.between(1, 7)
    body = fill(
        """
        $best
        for n in range($numbers):
            marks = down(n, 0)
            print(n, marks)
            $compare
        $show
        """,
        best=w.at(6, "best = 0"),
        numbers=spaced(start, start + stride * (w.size(1, 40) - 1) + 1, stride),
        compare=w.at(6, "best = max(best, marks % 50)"),
        show=w.at(6, w.show("best", "best")),
    )
    return program(first, second, w.main(body))


def _triangle(w: Writer) -> str:
    """Triangle of numbers in which a cell is calculated from two cells above it."""
    modulus = w.choice((0, 0, 2, 3, 5, 10))
    edge = w.choice((str(w.between(1, 9)), "row", "place + 1", f"row + {w.between(1, 5)}"))
    if modulus:
        value = f"(cell(row - 1, place - 1) + cell(row - 1, place)) % {modulus}"
    else:
        value = f"cell(row - 1, place - 1) + {w.choice(('', '2 * '))}cell(row - 1, place)"
    function = define(
        "cell(row, place)",
        "if place == 0 or place == row:\n    return $edge\nreturn $value",
        edge=edge,
        value=value,
    )
    body = fill(
        """
        for row in range($rows):
            values = [cell(row, place) for place in range(row + 1)]
            print(values)
        print(sum(values))
        """,
        rows=w.size(2, 9),
    )
    return program(function, w.main(body))


def _common_divisors(w: Writer) -> str:
    """Greatest common divisors of pairs of numbers."""
    function = define(
        "common(a, b)",
        "$log\nif b == 0:\n    return a\nreturn common(b, a % b)",
        log=w.at(4, "print(a, b)", below=7),
    )
    count = w.size(1, 8)
    pairs = zip(w.numbers(count, 20, 300), w.numbers(count, 10, 200), strict=True)
    body = fill(
        """
        $pairs
        product = 1
        for a, b in pairs:
            shared = common(a, b)
            product = product * shared % $m
            print(a // shared, b // shared)
            $all
        $show
        """,
        pairs=spread("pairs", [f"({a}, {b})" for a, b in pairs]),
        m=w.choice((97, 101, 1000)),
        all=w.at(7, "for c, d in pairs:\n    if common(shared, c + d) > 1:\n        product += 1"),
        show=w.show("product", "product"),
    )
    return program(function, w.main(body))


def spelling(w: Writer) -> str:
    """Recursive function over letters: over one word below level 5, else one of three kinds."""
    if w.level < 5:
        return _word(w)
    letters = "".join(w.sample("abcdefghklmnoprstuvw", 8))
    kind = w.choice(("arrange", "choose", "build"))
    if kind == "arrange":
        return _arrangements(w, letters)
    if kind == "choose":
        return _combinations(w, letters)
    return _built_texts(w)


#: Functions of one word: names, the case that ends and the step.
_WORD_FUNCTIONS = (
    ("flip,mirror,turn", 'if $t == "":\n    return ""', "return $f($t[1:]) + $t[0]"),
    ("spell,string,link", "if len($t) == 1:\n    return $t", 'return $t[0] + "$mark" + $f($t[1:])'),
    ("vowels,count", "if not $t:\n    return 0", 'return ($t[0] in "aeiou") + $f($t[1:])'),
    ("peel,swap", "if len($t) < 2:\n    return $t", "return $t[-1] + $f($t[1:-1]) + $t[0]"),
    ("double,stretch", 'if $t == "":\n    return "$mark"', "return $t[0] * 2 + $f($t[1:])"),
    ("shrink,lengths", "if len($t) < 2:\n    return len($t)", "return len($t) + $f($t[:-2])"),
    ("shout,upper", "if not $t:\n    return $t", "return $f($t[1:]) + $t[0].upper()"),
    ("weave,zip_up", "if len($t) < 2:\n    return $t", "return $t[0] + $t[-1] + $f($t[1:-1])"),
)


def _word(w: Writer) -> str:
    """Recursive function over the letters of a word, its result printed."""
    word = w.choice(up_to(w.choice(THEMES), w.size(3, 9) if w.level > 2 else 4))
    if w.level == 1:
        word = "".join(w.sample("abcdeghilmnoprstuw", w.size(2, 6)))
    mark = w.choice("-.*+~=:")
    names, stop, step = w.choice(_WORD_FUNCTIONS)
    name = w.choice(names.split(","))
    parameter = w.choice(("text", "word", "s", "letters", "name"))
    log = w.maybe(3, w.choice(("print($t)", f'print("{name}", $t)')))
    function = define("$f($t)", join(log, stop, step), f=name, t=parameter, mark=mark)
    result = w.choice(("result", "answer", "out"))
    call = w.choice(
        (
            f"print({name}({quoted(word)}))",
            f"start = {quoted(word)}\nprint(start, {name}(start))",
            f"{result} = {name}({quoted(word)})\n{w.show(result, result)}",
            w.show(word, f"{name}({quoted(word)})"),
        )
    )
    return program(function, call)


def _arrangements(w: Writer, letters: str) -> str:
    """Arrangements of a word's letters, some left out by a rule."""
    length = 2 if w.level < 7 else 3
    texts = ["".join(w.fork().sample(letters, length + (w.level > 8 and w.chance(30)))) for _ in range(14)]
    rule = w.choice(
        (
            f"if done and letter {w.choice('<>')} done[-1] and len(done) {w.choice('<>')} 1:\n    continue",
            f'if letter == "{letters[1]}" and len(done) == {w.below(2)}:\n    continue',
            "if done and abs(ord(letter) - ord(done[-1])) == 1:\n    continue",
        )
    )
    function = define(
        "arrange(left, done)",
        """
        if left == "":
            $found
            return 1
        count = 0
        for i, letter in enumerate(left):
            $rule
            count += arrange(left[:i] + left[i + 1:], $done)
        return count
        """,
        found="print(done)" if w.level < 8 else f'if done {w.choice("<>")} "{letters[2]}":\n    print(done)',
        rule=rule if w.chance(70) else "",
        done=w.choice(("done + letter", "done + letter", "letter + done")),
    )
    body = fill(
        """
        $words
        for word in words:
            count = arrange(word, "")
            print(word, count)
        """,
        words=spread("words", [quoted(text) for text in texts[: w.size(1, 14)]]),
    )
    return program(function, w.main(body))


def _combinations(w: Writer, letters: str) -> str:
    """Combinations of letters, of growing size, in one list."""
    function = define(
        "choose(letters, size, done)",
        """
        if len(done) == size:
            $found
            return
        for i in range(len(letters)):
            choose(letters[i + 1:], size, $done)
        """,
        found=w.choice(
            (
                "found.append(done)",
                f"if len(found) < {w.between(9, 30)}:\n    found.append(done)",
                "found.insert(0, done)",
            )
        ),
        done=w.choice(("done + letters[i]", "letters[i] + done")),
    )
    start = w.between(1, 2)
    body = fill(
        """
        for size in range($low, $high):
            choose("$letters", size, "")
            print(size, len(found), $shown)
        print(found[$cut])
        """,
        low=start,
        high=start + w.size(1, 4),
        letters=letters[: w.size(2, 5)],
        shown=w.choice(("found[-1]", "found[0]", "max(found)", "min(found)")),
        cut=w.choice(("::2", "1::3", "-4:", ":5", "::-1")),
    )
    return program("found = []", function, w.main(body))


def _built_texts(w: Writer) -> str:
    """Texts of two marks that keep to a rule, counted for growing lengths."""
    a, b = w.sample("01abxyLRudop-+", 2)
    function = define(
        "build(text, size)",
        """
        if len(text) == size:
            $found
            return $one
        count = build($a, size)
        if $test:
            count += build($b, size)
        return count
        """,
        found="print(text)"
        if w.level < 8
        else f'if text.count("{b}") == {w.between(1, 2)}:\n    print(text)',
        one=w.choice(("1", f'text.count("{b}")', f'1 if text[0] == "{a}" else 0', "len(text)")),
        a=w.choice((f'text + "{a}"', f'"{a}" + text')),
        b=w.choice((f'text + "{b}"', f'"{b}" + text')),
        test=w.choice(
            (f'not text.endswith("{b}")', f'"{b}{b}" not in text', f'text.count("{b}") < {w.between(1, 2)}')
        ),
    )
    body = (
        f"for size in range(1, {w.size(2, 9)}):\n"
        f'    count = build("", size)\n'
        f"    {w.tell('size', 'size', 'count')}"
    )
    return program(function, w.main(body))


def nests(w: Writer) -> str:
    """Functions over nested lists: over one list below level 8, else over a list that changes."""
    return _one_nest(w) if w.level < 8 else _changing_nest(w)


def _one_nest(w: Writer) -> str:
    """Functions over a nested list, each called once."""
    data = _nested(w.fork(), w.size(2, 16), 3 if w.level > 5 else 2)
    functions, calls = _nest_functions(w, 1 if w.level < 6 else 2)
    body = join(
        f"data = {data}",
        *(f"print({call})" for call in calls.values()),
        w.at(5, "for item in data:\n    print(item)"),
    )
    return program(*functions, w.main(body))


def _changing_nest(w: Writer) -> str:
    """Functions over a nested list, called in rounds that change the list."""
    data = _nested(w.fork(), w.size(2, 9), 3)
    functions, calls = _nest_functions(w, 2 if w.level < 9 else 3)
    lists = ("flatten", "mirror", "prune")
    shown = [f"len({call})" if name in lists else call for name, call in calls.items()]
    body = fill(
        """
        data = $data
        for turn in range($rounds):
            $change
            $results
        print(data)
        """,
        data=data,
        rounds=w.size(3, 12),
        change=w.choice(
            (
                "data = [turn, data[1:], data[0]]",
                "data = data[1:] + [[turn, data[0]]]",
                "data = [data[-1], turn] + data[:-1]",
            )
        ),
        results=f"print(turn, {', '.join(shown)})",
    )
    return program(*functions, w.main(body))


def _nested(stream: Draws, budget: int, depth: int) -> str:
    """The text of a nested list of ``budget`` numbers, at most ``depth`` lists deep inside."""
    items: list[str] = []
    while budget > 0:
        if depth > 0 and budget > 1 and stream.chance(45):
            part = stream.between(1, budget - 1)
            items.append(_nested(stream, part, depth - 1))
            budget -= part
        else:
            items.append(str(stream.between(1, 20)))
            budget -= 1
    return f"[{', '.join(items)}]"


#: Bodies of functions over nested lists, by name. A new order would change the programs.
_NEST_FUNCTIONS = {
    "total": """
        result = 0
        for item in items:
            if isinstance(item, list):
                result += total(item)$weight
            else:
                result += item
        return result
        """,
    "depth": """
        deepest = 0
        for item in items:
            if isinstance(item, list):
                deepest = max(deepest, depth(item))
        return deepest + 1
        """,
    "flatten": """
        flat = []
        for item in items:
            if isinstance(item, list):
                flat.extend(flatten(item))
            else:
                flat.append(item)
        return flat$turn
        """,
    "largest": """
        best = 0
        for item in items:
            value = largest(item) if isinstance(item, list) else item
            if value > best:
                best = value
        return best
        """,
    "mirror": """
        result = []
        for item in items:
            if isinstance(item, list):
                item = mirror(item)
            result.insert(0, item)
        return result
        """,
    "prune": """
        result = []
        for item in items:
            if isinstance(item, list):
                smaller = prune(item, limit)
                if smaller:
                    result.append(smaller)
            elif item <= limit:
                result.append(item)
        return result
        """,
}


def _nest_functions(w: Writer, count: int) -> tuple[list[str], dict[str, str]]:
    """``count`` functions over nested lists, and by name the call of each."""
    used = w.sample(list(_NEST_FUNCTIONS), count)
    functions = [
        define(
            f"{name}(items, limit)" if name == "prune" else f"{name}(items)",
            _NEST_FUNCTIONS[name],
            weight=w.choice(("", "", " * 2", " + 1")),
            turn=w.choice(("", "", "[::-1]")),
        )
        for name in used
    ]
    calls = {
        name: f"prune(data, {w.between(6, 15)})" if name == "prune" else f"{name}(data)" for name in used
    }
    return functions, calls


def trees(w: Writer) -> str:
    """Functions over a binary tree: over a given tree below level 7, else over a search tree."""
    values = sorted({*w.numbers(w.size(2, 16), 1, 60)})
    functions, calls = _tree_functions(w)
    if w.level < 7:
        return _given_tree(w, values, functions, calls)
    return _search_tree(w, values, functions, calls)


def _given_tree(w: Writer, values: list[int], functions: list[str], calls: list[str]) -> str:
    """Functions over a binary tree that is written out in the program."""
    tree = f"tree = {_tree(w.fork(), values)}"
    return program(*functions, w.main(join(tree, *calls)))


def _search_tree(w: Writer, values: list[int], functions: list[str], calls: list[str]) -> str:
    """Search tree that grows by insertion, then functions over it."""
    sign = w.choice("<>")
    insert = define(
        "insert(node, value)",
        """
        if node is None:
            return (value, None, None)
        root, left, right = node
        if value $sign root:
            return (root, insert(left, value), right)
        $equal
        return (root, left, insert(right, value))
        """,
        sign=sign,
        equal=w.maybe(7, "if value == root:\n    return node", 60),
    )
    find = define(
        "find(node, value)",
        """
        if node is None:
            return 0
        root, left, right = node
        if root == value:
            return 1
        return 1 + find(left if value $sign root else right, value)
        """,
        sign=sign,
    )
    mixed = w.shuffled(values)
    body = fill(
        """
        $values
        tree = None
        for value in values:
            tree = insert(tree, value)
            $report
        $calls
        $search
        """,
        values=spread("values", [*map(str, mixed), *map(str, mixed[: w.below(3)])]),
        report=w.choice(("", f"if value % {w.between(3, 5)} == 0:\n    print(value, tree[0])")),
        calls=join(*calls),
        search=w.at(
            8,
            f"steps = 0\nfor value in values:\n"
            f"    steps += find(tree, value)\n"
            f"    if find(tree, value) > {w.between(2, 4)}:\n"
            f'        print("deep", value)\nprint(steps)',
        ),
    )
    return program(insert, find if w.level > 7 else "", *functions, w.main(body))


def _tree(stream: Draws, values: list[int]) -> str:
    """The text of a tree of tuples (value, left, right) with these values in order."""
    if not values:
        return "None"
    middle = (
        stream.below(len(values))
        if len(values) < 3
        else stream.between(len(values) // 4, 3 * len(values) // 4)
    )
    return f"({values[middle]}, {_tree(stream, values[:middle])}, {_tree(stream, values[middle + 1 :])})"


#: Bodies of functions over a tree that is not empty, by name. A new order would change the programs.
_TREE_FUNCTIONS = {
    "total": "value, left, right = node\nreturn value + total(left) + total(right)",
    "height": "_, left, right = node\nreturn 1 + max(height(left), height(right))",
    "leaves": "value, left, right = node\nif left is None and right is None:\n"
    "    return $leaf\nreturn leaves(left) + leaves(right)",
    "in_order": "value, left, right = node\nreturn in_order(left) + [value] + in_order(right)",
    "weigh": "value, left, right = node\nif value % 2 == 0:\n"
    "    return value + weigh(left)\n"
    "return value + weigh(left) - weigh(right)",
    "outline": 'value, left, right = node\nprint("$dot" * level + str(value))\n'
    "outline(left, level + 1)\noutline(right, level + 1)",
}

#: Results for an empty tree; 0 for the other functions.
_EMPTY_TREES = {"in_order": "[]", "outline": ""}

#: Functions without a log: ``outline`` prints already, and ``height`` doesn't read the value.
_QUIET_TREE_FUNCTIONS = ("height", "outline")


def _tree_functions(w: Writer) -> tuple[list[str], list[str]]:
    """Functions over a binary tree, and their calls."""
    used = w.sample(list(_TREE_FUNCTIONS), 1 if w.level < 6 else 2 if w.level < 8 else 3)
    if w.level < 7 and used[0] in _QUIET_TREE_FUNCTIONS:
        used[0] = next(
            name for name in w.shuffled(("total", "leaves", "in_order", "weigh")) if name not in used
        )
    leaf = w.choice(("1", "value"))
    log = w.choice(
        ("print(value)", f"if value > {w.between(10, 35)}:\n    print(value)", 'print("at", value)')
    )
    functions = []
    for name in used:
        body = _TREE_FUNCTIONS[name]
        if 4 < w.level < 8 and name not in _QUIET_TREE_FUNCTIONS:
            body = body.replace("right = node", f"right = node\n{log}")
        functions.append(
            define(
                f"{name}(node, level)" if name == "outline" else f"{name}(node)",
                f"if node is None:\n    return {_EMPTY_TREES.get(name, '0')}\n{body}",
                leaf=leaf,
                dot=w.choice((".", "  ", "-", "> ")),
            )
        )
    calls = ["outline(tree, 0)" if name == "outline" else f"print({name}(tree))" for name in used]
    return functions, calls


def towers(w: Writer) -> str:
    """Tower of discs moved to another peg, then a smaller tower moved back."""
    a, b, c = w.sample(w.choice((COLOURS, ("A", "B", "C"), ("left", "middle", "right"), NOUNS, FRUITS)), 3)
    moves = w.size(1, 110)
    # A tower of n discs takes 2**n - 1 moves. The tower that goes back takes the moves left.
    discs = (moves + 1).bit_length() - 1
    rest = (moves - (1 << discs) + 2).bit_length() - 1
    count = w.level > 5 or w.chance(40)
    function = _move_function(w, count)
    steps = "steps = " if count else ""
    body = fill(
        """
        $pegs
        $call
        $end
        $again
        $pegs_show
        """,
        pegs=w.at(5, f'pegs = {{"{a}": {list(range(discs, 0, -1))}, "{b}": [], "{c}": []}}'),
        call=f'{steps}move({discs}, "{a}", "{c}", "{b}")',
        end=w.show("steps", "steps") if count else "",
        again=join(f'{steps}move({rest}, "{c}", "{b}", "{a}")', w.show("more", "steps") if count else "")
        if rest
        else "",
        pegs_show=w.at(5, "print(pegs)"),
    )
    return program(function, body)


def _move_function(w: Writer, count: bool) -> str:
    """The function that moves a tower; with ``count`` it returns how many steps that took."""
    return define(
        "move($n, source, target, spare)",
        """
        if $n == 0:
            return$zero
        $first
        $state
        $show
        $second
        $back
        """,
        n=(n := w.choice(("n", "size", "discs", "height"))),
        zero=" 0" if count else "",
        first=f"{'steps = ' if count else ''}move($n - 1, source, spare, target)",
        state=w.at(5, "pegs[target].append(pegs[source].pop())"),
        show=w.choice(
            ("print($n, source, target)", 'print(source, "to", target)', 'print("disc", $n, "to", target)')
        )
        if w.level < 8
        else f"if $n {w.choice(('> 1', '!= 2', '% 2 == 0', '> 2'))}:\n"
        f"    print($n, source, target, len(pegs[target]))",
        second=("steps += $each + " if count else "") + "move($n - 1, spare, target, source)",
        each=w.choice((n, "1", "2")),
        back="return steps" if count else "",
    )


def choices(w: Writer) -> str:
    """Ways to climb, to cross a grid, to pay or to split, found by trying all."""
    kind = w.choice(("climb", "paths", "change", "split"))
    ways = w.choice(("ways", "count", "options", "found"))
    if kind == "climb":
        return _climbs(w, ways)
    if kind == "paths":
        return _paths(w, ways)
    if kind == "change":
        return _payments(w, ways)
    return _splits(w)


def _climbs(w: Writer, ways: str) -> str:
    """Ways to climb a height with steps of given sizes."""
    name, what = w.choice(
        (
            ("climb", "step"),
            ("cut", "piece"),
            ("walk", "stride"),
            ("tile", "tile_size"),
            ("fill_row", "block"),
        )
    )
    sizes = sorted(w.sample((1, 2, 3, 4, 5, 6), w.between(2, 3)))
    path = 5 < w.level < 8 and w.chance(60)
    function = define(
        "$name(left$done)",
        """
        if left == 0:
            $found
            return 1
        $log
        $ways = 0
        for $what in $sizes:
            if $what <= left:
                $ways += $name(left - $what$more)
        return $ways
        """,
        name=name,
        what=what,
        done=", done" if path else "",
        found="print(done)" if path else "",
        log=w.at(4, "print(left)", below=6),
        ways=ways,
        sizes=tuple(sizes),
        more=f", done + [{what}]" if path else "",
    )
    top = w.size(2, 15)
    call = f"{name}({top}{', []' if path else ''})"
    if w.level < 6 or path:
        return program(function, w.main(w.show(ways, call)))
    body = f"for left in range({w.between(0, 2)}, {top + 1}):\n    print(left, {name}(left))"
    return program(function, w.main(body))


def _paths(w: Writer, ways: str) -> str:
    """Ways to cross a grid, in which cells can be blocked."""
    name = w.choice(("paths", "routes", "walks", "tours"))
    r, c = w.choice((("row", "column"), ("r", "c"), ("x", "y"), ("down", "right")))
    rows, columns = w.size(2, 6), w.size(2, 6)
    blocked = [(w.between(0, rows - 1), w.between(1, columns - 1)) for _ in range(w.between(1, 2))]
    function = define(
        "$f($r, $c)",
        """
        $block
        if $r == 0 and $c == 0:
            return $one
        $ways = 0
        if $r > 0:
            $ways += $f($r - 1, $c)
        if $c > 0:
            $ways += $f($r, $c - 1)$more
        $log
        return $ways
        """,
        f=name,
        r=r,
        c=c,
        one=w.choice((1, 1, w.between(2, 9))),
        ways=ways,
        more=w.choice(("", "", " * 2", f" + {w.between(1, 5)}")),
        block=w.at(5, f"if ({r}, {c}) in BLOCKED:\n    return 0"),
        log=w.at(4, f"print({r}, {c}, {ways})", below=6),
    )
    data = w.at(5, f"BLOCKED = {sorted({*blocked})}")
    line = f"[{name}({r}, {c}) for {c} in range({columns})]"
    body = under(f"for {r} in range({rows}):", f"print({line})")
    if w.level < 6:
        body = f"print({name}({min(rows, 2)}, {min(columns, 2) - 1}))"
    return program(data, function, w.main(body))


def _payments(w: Writer, ways: str) -> str:
    """Ways to pay an amount with coins, listed for one amount or counted for several."""
    coins = sorted(w.sample((1, 2, 3, 4, 5, 6, 7, 8, 10), 3), reverse=True)
    listed = w.level < 8 and w.chance(50)
    function = define(
        "pay(amount, coins$used)",
        """
        if amount == 0:
            $found
            return 1
        if not coins or amount < 0:
            return 0
        first = pay(amount - coins[0], coins$more)
        return first + pay(amount, coins[1:]$same)
        """,
        used=", used" if listed else "",
        found=w.choice(("print(used)", "print(len(used), used)")) if listed else "",
        more=w.choice((", used + [coins[0]]", ", [coins[0]] + used")) if listed else "",
        same=", used" if listed else "",
    )
    if listed:
        body = join(f"{ways} = pay({w.size(2, 24)}, {coins}, [])", w.show(ways, ways))
        return program(function, w.main(body))
    first = w.between(1, 4)
    body = fill(
        "$total\nfor amount in range($numbers):\n"
        "    $ways = pay(amount, $coins)\n    $add\n"
        "    print(amount, $ways)\n$show",
        total=w.at(6, "total = 0"),
        numbers=spaced(first, first + (stride := w.between(1, 3)) * w.size(1, 12) + 1, stride),
        ways=ways,
        coins=coins,
        add=w.at(6, f"total += {ways}"),
        show=w.at(6, w.show("total", "total")),
    )
    return program(function, w.main(body))


def _splits(w: Writer) -> str:
    """Split of numbers between two sides, judged by the difference of the sums."""
    values = w.numbers(w.size(2, 8), 2, 25)
    function = define(
        "split(values, left, right)",
        """
        if not values:
            $log
            return abs(left - right)
        $stop
        first = split(values[1:], left + values[0], right)
        second = split(values[1:], left, right + values[0])
        return $best
        """,
        log=w.at(4, "print(left, right)", below=7),
        stop=w.at(6, f"if left > {w.between(20, 60)}:\n    return left - right + sum(values)"),
        best=w.choice(
            (
                "min(first, second)",
                "max(first, second)",
                "first if first < second else second",
                "(first + second) // 2",
            )
        ),
    )
    body = join(f"best = split({values}, 0, 0)", w.show("best", "best"))
    if w.level > 6:
        body = join(
            f"weights = {values}",
            f"for size in range(1, {len(values) + 1}):\n    print(size, split(weights[:size], 0, 0))",
        )
    return program(function, w.main(body))


_FOLDER_SIZE = """
    total = $zero
    for name in folder:
        if isinstance(folder[name], dict):
            total += size(folder[name])
        else:
            total += folder[name]
    return total
    """

_FOLDER_SHOW = """
    for name in $names:
        item = folder[name]
        if isinstance(item, dict):
            print("$dot" * level + name$slash)
            show(item, level + 1)
        else:
            print("$dot" * level + name, item)
    """

_FOLDER_BIGGEST = """
    best = ""
    most = 0
    for name, item in folder.items():
        if isinstance(item, dict):
            inner, value = biggest(item)
            inner = name + "/" + inner
        else:
            inner, value = name, item
        if value > most:
            best, most = inner, value
    return best, most
    """

_FOLDER_SHRINK = """
    for name in folder:
        if isinstance(folder[name], dict):
            shrink(folder[name], limit)
        elif folder[name] > limit:
            folder[name] = folder[name] // 2 + $k
        else:
            folder[name] += $grow
    """


def folders(w: Writer) -> str:
    """Functions over folders in folders: their total below level 5, else a listing and more."""
    stream = w.fork()
    names = iter(w.sample(NOUNS, 40))
    inner = _folder(stream, names, 2, w.size(2, 13))[1:-1]
    data = spread("disk", _entries(inner), "{}")
    size = define("size(folder)", _FOLDER_SIZE, zero=w.choice((0, 0, 1, 4)))
    # Drawn at every level: a choice left out would change all choices after it.
    show = define(
        "show(folder, level)",
        _FOLDER_SHOW,
        names=w.choice(("folder", "sorted(folder)")),
        dot=w.choice(("  ", ".", "-", "| ")),
        slash=w.choice((' + "/"', "", ', "->"')),
    )
    if w.level < 5:
        return _folder_total(w, data, size)
    return _folder_listing(w, data, size, show)


def _folder_total(w: Writer, data: str, size: str) -> str:
    """Total size of folders in folders."""
    return program(
        size,
        join(data, w.choice(("print(size(disk))", "result = size(disk)\nprint(result, result // 2)"))),
    )


def _folder_listing(w: Writer, data: str, size: str, show: str) -> str:
    """Listing of folders in folders, then sizes, the largest file and rounds that shrink files."""
    biggest = define("biggest(folder)", _FOLDER_BIGGEST)
    shrink = define("shrink(folder, limit)", _FOLDER_SHRINK, k=w.between(1, 3), grow=w.between(1, 4))
    limit = w.between(15, 40)
    rounds = w.size(1, 9)
    body = fill(
        """
        $data
        show(disk, 0)
        $size
        $biggest
        $rounds
        """,
        data=data,
        size=w.at(6, "print(size(disk))"),
        biggest=w.at(7, "print(biggest(disk))"),
        rounds=w.at(
            8,
            f"for limit in range({limit}, {limit + 3 * rounds}, 3):\n"
            f"    shrink(disk, limit)\n"
            f"    print(limit, size(disk), biggest(disk)[1])",
        ),
    )
    return program(
        size if w.level > 5 else "",
        show,
        biggest if w.level > 6 else "",
        shrink if w.level > 7 else "",
        w.main(body),
    )


def _folder(stream: Draws, names: Iterator[str], depth: int, budget: int) -> str:
    """The text of a dictionary of ``budget`` files, in folders at most ``depth`` deep inside."""
    items = []
    while budget > 0:
        if depth > 0 and budget > 1 and stream.chance(40):
            part = stream.between(1, budget - 1)
            items.append(f'"{next(names)}": {_folder(stream, names, depth - 1, part)}')
            budget -= part
        else:
            items.append(f'"{next(names)}": {stream.between(1, 60)}')
            budget -= 1
    return f"{{{', '.join(items)}}}"


def _entries(text: str) -> list[str]:
    """The entries of a dictionary's text, at its top level."""
    parts, depth = [""], 0
    for mark in text:
        depth += (mark in "{[(") - (mark in "}])")
        if mark == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += mark
    return [part.strip() for part in parts]


FAMILY = Family(
    "recursion",
    (
        Template(numbers),
        Template(spelling),
        Template(nests, lowest=3),
        Template(trees, lowest=3),
        Template(towers, lowest=4, highest=9),
        Template(choices, lowest=4),
        Template(folders, lowest=3),
    ),
)
