"""Strings: ciphers, runs, word statistics, palindromes, labels, rewriting."""

from __future__ import annotations

from collections.abc import Sequence

from trace_gym.programs.builtin.vocabulary import NOUNS, PEOPLE, THEMES, up_to
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


def ciphers(w: Writer) -> str:
    """Cipher that replaces letters: of one word below level 4, else of a message."""
    shift = w.between(1, 12)
    # Drawn at every level: a choice left out would change all choices after it.
    name = w.choice(("secret", "result", "coded", "out"))
    move = f"chr(ord(letter) {w.choice('+-')} {shift})"
    return _coded_word(w, name, move) if w.level < 4 else _coded_message(w, shift)


def _coded_word(w: Writer, name: str, move: str) -> str:
    """Word that is coded letter by letter, some letters by another rule."""
    step = w.choice(
        (
            f"$name += {move}",
            "$name = letter + $name",
            f'$name += letter + "{w.choice("-.*+x")}"',
            f'$name = letter + $name + "{w.choice("-.*+")}"',
            "$name += letter * 2",
        )
    )
    if w.level > 1:
        test = w.choice(('letter in "aeiou"', f'letter > "{w.choice("ghklmp")}"', 'letter not in "aeiou"'))
        step = f"if {test}:\n    $name += {w.choice((move, 'letter.upper()'))}\nelse:\n    {step}"
    body = fill(
        """
        $word = "$text"
        $name = ""
        for letter in $word:
            $step
            $report
        print($name)
        """,
        word=w.choice(("word", "text", "plain", "message")),
        text=w.choice(up_to(w.choice(THEMES), w.size(3, 10))),
        name=name,
        step=step,
        report=w.maybe(3, "print(letter, $name)", 60),
    )
    return program(body)


def _coded_message(w: Writer, shift: int) -> str:
    """Message that is coded word by word or as a whole, with a key that can change."""
    place = w.choice(
        (
            "ALPHABET[(ALPHABET.index(letter) + key) % 26]",
            'chr((ord(letter) - ord("a") + key) % 26 + ord("a"))',
            "chr((ord(letter) - 97 - key) % 26 + 97)",
        )
    )
    encode = _encode_function(w, place)
    checksum = _checksum_function(w)
    message = w.sample(up_to(w.choice(THEMES), w.size(4, 12)), w.size(1, 13))
    growing = w.level >= 5 and w.chance(60)
    many = len(message) > 1 or w.chance(40)
    body = fill(
        """
        message = "$message"
        $start
        $total
        $loop
        $last
        """,
        message=" ".join(message),
        start=f"key = {shift}" if growing else "",
        total="total = 0" if checksum else "",
        loop=under("for word in message.split():", "secret = encode(word, $key)\n$check\n$show\n$change")
        if many
        else "secret = encode(message, $key)\n$check\nprint(secret)",
        key="key" if growing else shift,
        check="total += checksum(secret)" if checksum else "",
        show=f"print({w.choice(('word, secret', 'secret', 'secret, len(secret)'))})",
        change=f"key += {w.choice(('len(word)', '1', '2', '3'))}" if growing else "",
        last=w.show("total", "total") if checksum else "",
    )
    return program(
        'ALPHABET = "abcdefghijklmnopqrstuvwxyz"' if "ALPHABET" in place else "",
        w.at(6, define("move(letter, key)", f"return {place}")),
        encode,
        checksum,
        w.main(body),
    )


def _encode_function(w: Writer, place: str) -> str:
    """A function that codes a word; from level 6 it calls ``move`` for the place of a letter."""
    apart = w.level >= 6
    indexed = w.level >= 5 and w.chance(50)
    return define(
        "encode(word, key)",
        """
        $doc
        result = ""
        for $loop:
            $skip
            result += $move
            $turn
        return result
        """,
        skip=w.maybe(4, 'if letter in "aeiou":\n    result += letter.upper()\n    continue', 50),
        doc=w.maybe(5, '"""Replace each letter by one further along."""', 40),
        loop="i, letter in enumerate(word)" if indexed else "letter in word",
        move=("move(letter, key + i)" if indexed else "move(letter, key)") if apart else place,
        turn=f"key += {w.choice(('1', 'i', '2'))}" if indexed and not apart else "",
    )


def _checksum_function(w: Writer) -> str:
    """A function that calculates a checksum of a text from level 7, else nothing."""
    checksum = define(
        "checksum(text)",
        """
        value = $start
        for letter in text:
            value = (value * $factor + ord(letter)) % $modulus
        return value
        """,
        start=w.below(10),
        factor=w.between(2, 9),
        modulus=w.choice((89, 97, 101, 251)),
    )
    return w.at(7, checksum)


def runs(w: Writer) -> str:
    """Runs of equal letters: counted in one text below level 4, else shortened in several."""
    letters = w.sample("abcdefghkmnopqrstuvwxyz", w.between(2, 4))
    return _counted_runs(w, letters) if w.level < 4 else _shortened_runs(w, letters)


def _pattern(w: Writer, letters: Sequence[str], length: int) -> str:
    """A text of runs of these letters."""
    stream = w.fork()
    return "".join(stream.choice(letters) * stream.between(1, 4) for _ in range(length))[:length]


def _counted_runs(w: Writer, letters: Sequence[str]) -> str:
    """Neighbouring letters of a text that are equal or differ, counted or collected."""
    count, zero, add = w.choice(
        (("count", "0", "1"), ("runs", "1", "1"), ("picked", '""', "text[i]"), ("marks", '""', "str(i)"))
    )
    body = fill(
        """
        text = "$text"
        $count = $zero
        for i in range(1, len(text)):
            if text[i] $sign text[i - 1]:
                $count += $add
                $report
            $other
        $show
        """,
        text=_pattern(w, letters, w.size(3, 16)),
        count=count,
        zero=zero,
        add=add,
        sign="!=" if count == "runs" else w.choice(("==", "!=")),
        report=w.at(2, f"print(i, {count})"),
        other=w.at(3, w.choice((f'elif text[i] == "{letters[0]}":\n    print(i, "again")', ""))),
        show=w.show(count, count),
    )
    return program(body)


_LONGEST_RUN = """
    def longest_run(text):
        best = current = 1
        for before, after in zip(text, text[1:]):
            if before == after:
                current += 1
                best = max(best, current)
            else:
                current = 1
        return best
    """


def _shortened_runs(w: Writer, letters: Sequence[str]) -> str:
    """Texts whose runs are written in a shorter form, with the letters saved added up."""
    squeeze = _squeeze_function(w)
    longest = w.at(7, _LONGEST_RUN)
    least = w.size(2, 14)
    samples = [_pattern(w, letters, length) for length in w.numbers(10, least, least + 2)][: w.size(1, 10)]
    body = fill(
        """
        $samples
        saved = 0
        for $text in samples:
            short = squeeze($text)
            saved += len($text) - len(short)
            $again
            print($shown)
        $show
        """,
        samples=spread("samples", [quoted(sample) for sample in samples]),
        text=w.choice(("text", "sample", "line")),
        again=w.at(8, "twice = squeeze(short)"),
        shown=w.choice(("$text, short", "short", "short, len(short)"))
        + (", longest_run($text)" if longest else "")
        + w.at(8, ", len(twice)"),
        show=w.show("saved", "saved"),
    )
    return program(squeeze, longest, w.main(body))


def _squeeze_function(w: Writer) -> str:
    """A function that writes the runs of a text in another form."""
    return define(
        "squeeze(text)",
        """
        $doc
        result = ""
        i = 0
        while i < len(text):
            j = i
            while j < len(text) and text[j] == text[i]:
                j += 1
            $write
            i = j
        return result
        """,
        doc=w.maybe(4, '"""Write each run as its letter and its length."""', 40),
        write=w.choice(
            (
                "result += text[i] + str(j - i)",
                "result += str(j - i) + text[i]",
                "if j - i > 1:\n    result += str(j - i)\nresult += text[i]",
                "result += text[i] * 2 if j - i > 1 else text[i]",
            )
        ),
    )


def statistics(w: Writer) -> str:
    """Statistics of a sentence: one in a loop below level 4, else functions of each word."""
    pools = [up_to(pool, w.size(4, 12)) for pool in w.sample(THEMES, 2)]
    sentence = " ".join(w.picks([*pools[0], *pools[1]], w.size(1, 14)))
    return _one_statistic(w, sentence) if w.level < 4 else _word_statistics(w, sentence)


#: Statistics by name: the start value, the loop and what it does. A new order would change the programs.
_STATISTICS = {
    "vowels": ("0", 'for letter in "$word":', 'if letter in "aeiou":\n    vowels += 1'),
    "letters": ("0", 'for word in "$sentence".split():', "letters += len(word)"),
    "big": ('""', 'for word in "$sentence".split():', "big += word[0].upper()"),
    "short": ('""', 'for word in "$sentence".split():', "short += word[:$size]"),
    "spelled": ('""', 'for letter in "$word":', 'spelled += letter.upper() + "-"'),
    "longest": (
        '""',
        'for word in "$sentence".split():',
        "if len(word) > len(longest):\n    longest = word",
    ),
}


def _one_statistic(w: Writer, sentence: str) -> str:
    """Statistic of a sentence or of a word, calculated in one loop."""
    word = w.choice(up_to(NOUNS, w.size(3, 9)))
    size = w.between(1, 3)
    what = w.choice(list(_STATISTICS))
    zero, loop, act = _STATISTICS[what]
    item = "letter" if "letter in" in loop else "word"
    report = w.choice((f"print({item})", f"print({item}, {what})", f"print({what})"))
    return program(
        fill(
            "$what = $zero\n$loop\n    $act\n    $report\n$show",
            what=what,
            zero=zero,
            loop=loop,
            act=act,
            sentence=sentence,
            word=word,
            size=size,
            report=w.at(2, report),
            show=w.show(what, what),
        )
    )


#: Functions of a word, by name. A new order would change the programs.
_WORD_FUNCTIONS = {
    "count_vowels": """
        def count_vowels(word):
            count = 0
            for letter in word:
                if letter in "aeiou":
                    count += 1
            return count
        """,
    "first_repeat": """
        def first_repeat(word):
            seen = ""
            for letter in word:
                if letter in seen:
                    return letter
                seen += letter
            return "-"
        """,
    "zigzag": """
        def zigzag(word):
            result = ""
            for i, letter in enumerate(word):
                if i % 2 == 0:
                    result += letter.upper()
                else:
                    result += letter
            return result
        """,
    "rises": """
        def rises(word):
            count = 0
            for i in range(1, len(word)):
                if word[i] > word[i - 1]:
                    count += 1
            return count
        """,
    "weight": """
        def weight(word):
            total = 0
            for position, letter in enumerate(word, start=1):
                total += position * (ord(letter) - 96)
            return total
        """,
}


def _word_statistics(w: Writer, sentence: str) -> str:
    """Functions of a word, called for each word of a sentence."""
    used = w.sample(list(_WORD_FUNCTIONS), 1 if w.level < 6 else 2 if w.level < 9 else 3)
    number = next((name for name in used if name not in ("first_repeat", "zigzag")), None)
    body = fill(
        """
        sentence = "$sentence"
        $total
        longest = ""
        for word in sentence.split():
            $add
            if len(word) $sign len(longest):
                longest = word
            print($shown)
        $shows
        """,
        sentence=sentence,
        total="total = 0" if number else "",
        add=f"total += {number}(word)" if number else "",
        sign=w.choice((">", ">=")),
        shown=", ".join(
            [
                w.choice(("word", "word.title()", "word[::-1]", "len(word)")),
                *(f"{name}(word)" for name in used),
            ]
        ),
        shows=join(w.show("total", "total") if number else "", w.show("longest", "longest")),
    )
    return program(*(fill(_WORD_FUNCTIONS[name]) for name in used), w.main(body))


#: Tests of a word: a statement before the test, and the test.
_MIRROR_TESTS = (
    ("back = word[::-1]", "word == back"),
    ("middle = len(word) // 2", "word[:middle] == word[-middle:]"),
    ("first, last = word[0], word[-1]", "first == last"),
    ('ordered = "".join(sorted(word))', "ordered[0] == word[0]"),
    ("odd = word[::2]", "odd == odd[::-1]"),
)

#: Statements that print something about a word.
_MIRROR_PRINTS = (
    "print(word[::-1])",
    "print(word.upper())",
    "print(word[1:])",
    "print(word * 2)",
    'print("-".join(word))',
    "print(len(word))",
    "print(word[-2:] + word[:2])",
)

_IS_PALINDROME = """
    def is_palindrome(word):
        left, right = 0, len(word) - 1
        while left < right:
            if word[left] != word[right]:
                return False
            left += 1
            right -= 1
        return True
    """

_ARE_ANAGRAMS = """
    def are_anagrams(first, second):
        if len(first) != len(second):
            return False
        left = list(second)
        for letter in first:
            if letter not in left:
                return False
            left.remove(letter)
        return True
    """

_LONGEST_INSIDE = """
    def longest_inside(word):
        best = ""
        for start in range(len(word)):
            for end in range(start + 1, len(word) + 1):
                part = word[start:end]
                if len(part) > len(best) and is_palindrome(part):
                    best = part
        return best
    """


def mirrors(w: Writer) -> str:
    """Words compared with their mirror images: one or a few below level 4, else by functions."""
    # Drawn at every level: a choice left out would change all choices after it.
    yes, no = w.choice(
        (("same", "different"), ("yes", "no"), ("mirror", "plain"), ("palindrome", "not a palindrome"))
    )
    setup, test = w.choice(_MIRROR_TESTS)
    verdict = f'{setup}\nif {test}:\n    print("{yes}")\nelse:\n    print("{no}")'
    if w.level == 1:
        return _mirrored_word(w, verdict)
    if w.level < 4:
        return _mirrored_words(w, verdict)
    return _palindromes(w)


def _mirror(w: Writer, letters: int) -> str:
    """A word of two halves that are often mirror images, ``letters`` letters each."""
    half = "".join(w.sample("abdeilmnorst", letters))
    return w.choice(
        (
            half + half[::-1],
            half + w.choice("abe") + half[::-1],
            half + w.choice("abe") + half,
            "".join(w.shuffled(half + half)),
        )
    )


def _mirrored_word(w: Writer, verdict: str) -> str:
    """Test of one word."""
    (shown,) = w.sample(_MIRROR_PRINTS, 1)
    words = [_mirror(w, letters) for letters in w.numbers(6, 1, 3)]
    return program(join(f'word = "{words[0] + _mirror(w, 1)}"', verdict, shown))


def _mirrored_words(w: Writer, verdict: str) -> str:
    """Test of a few words in a loop."""
    shown = w.sample(_MIRROR_PRINTS, 1 if w.level < 3 else 2)
    words = [_mirror(w, letters) for letters in w.numbers(6, 1, 3)][: w.size(1, 6)]
    loop = under("for word in words:", verdict)
    return program(join(spread("words", [quoted(word) for word in words]), loop, *shown))


def _palindromes(w: Writer) -> str:
    """Words tested by functions: for palindromes, from level 7 for anagrams too."""
    items = [_mirror(w, w.size(1, 4)) for _ in range(9)][: w.size(2, 9)]
    items = ["".join(w.shuffled(item)) if w.chance(20) else item for item in items]
    items[-1] = "".join(w.shuffled(items[0]))
    name = w.choice(("words", "names", "labels", "codes"))
    body = fill(
        """
        $items
        found = 0
        for word in $name:
            if is_palindrome(word):
                found += 1
                print(word, "reads the same both ways")
            else:
                print(word, "becomes", $other)
            $inside
        $show
        $pairs
        """,
        items=spread(name, [quoted(item) for item in items]),
        name=name,
        other=w.choice(("word[::-1]", "word[::-1].upper()", "word + word[::-1]")),
        inside=w.at(8, "inside = longest_inside(word)\nprint(len(word), inside)"),
        show=w.show("found", "found"),
        pairs=w.at(
            7,
            """
            for i in range(len($name)):
                for j in range(i + 1, len($name)):
                    if are_anagrams($name[i], $name[j]):
                        print($name[i], $name[j])
            """,
        ),
    )
    return program(fill(_IS_PALINDROME), w.at(7, _ARE_ANAGRAMS), w.at(8, _LONGEST_INSIDE), w.main(body))


def labels(w: Writer) -> str:
    """Names changed: by statements below level 4, else by functions that make labels."""
    count = w.size(2 if w.level in (2, 3) else 1, 12)
    people = [" ".join(both) for both in zip(w.picks(PEOPLE, count), w.picks(NOUNS, count), strict=True)]
    return _changed_names(w, people) if w.level < 4 else _labelled_names(w, people)


#: Statements that change a name. A new order would change the programs.
_NAME_STEPS = (
    "name = name.title()",
    'name = name.replace("$a", "$b")',
    "name = name[$n:] + name[:$n]",
    "name = name.upper()",
    'name = "$mark" + name + "$mark"',
    "name = name[::-1]",
    "name = name + str(len(name))",
    "name = name[:-1] + name[0]",
)


def _changed_names(w: Writer, people: list[str]) -> str:
    """One or more names changed by two or three statements."""
    steps = w.sample(_NAME_STEPS, 2 if w.level < 3 else 3)
    steps.append(w.choice(("print(name)", "print(name, len(name))")))
    if w.level > 2 or w.chance(30):
        steps.insert(0, w.choice(("first, last = name.split()", "last, first = name.split()")))
        steps.append(w.choice(("print(last, first)", "print(first[0] + last)", "print(last[:3])")))
    names = spread("names", [quoted(person) for person in people])
    return program(
        fill(
            f"{names}\nfor name in names:\n    $steps" if w.level > 1 else f'name = "{people[0]}"\n$steps',
            steps=join(*steps),
            a=w.choice(people[0].replace(" ", "")),
            b=w.choice("aeou_"),
            n=w.between(1, 4),
            mark=w.choice("*-+=#"),
        )
    )


#: Functions that make a label of a name. A new order would change the programs.
_LABEL_FUNCTIONS = {
    "initials": """
        def initials(name):
            result = ""
            for part in name.split():
                result += part[0].upper()
            return result
        """,
    "slug": """
        def slug(name):
            result = ""
            for letter in name.lower():
                if letter in "aeiou":
                    continue
                result += "$mark" if letter == " " else letter
            return result
        """,
    "badge": """
        def badge(name, width):
            text = name.title()
            while len(text) < width:
                text += "$dot"
                if len(text) < width:
                    text = "$dot" + text
            return text
        """,
    "code": """
        def code(name):
            number = $seed
            for letter in name:
                number = (number * $factor + ord(letter)) % 1000
            return "$letter" + str(number).rjust(3, "0")
        """,
}


def _labelled_names(w: Writer, people: list[str]) -> str:
    """Labels of names, made by functions; from level 5 they are collected."""
    count = 1 if w.level < 6 else 2 if w.level < 8 else 3 if w.level < 10 else 4
    used = w.sample(list(_LABEL_FUNCTIONS), count)
    badge = f"badge(name, {w.between(14, 24)})"
    first, *others = (badge if name == "badge" else f"{name}(name)" for name in used)
    width = w.between(8, 16)
    body = fill(
        """
        $names
        $taken
        for name in names:
            $collect
            print($shown)
        $last
        """,
        names=spread("names", [quoted(name) for name in people]),
        taken=w.at(5, "taken = []"),
        collect=w.at(
            5, f'tag = {first}\nif tag in taken:\n    tag += "{w.choice("+*!2")}"\ntaken.append(tag)'
        ),
        shown=", ".join(["tag" if w.level >= 5 else first, *others]),
        last=w.at(
            5,
            w.choice(
                (
                    f'print("-" * {width})\nprint(" ".join(taken[-3:]))',
                    "print(max(taken), min(taken))",
                    'print(len("".join(taken)))',
                )
            ),
        ),
    )
    functions = [_label_function(w, name) for name in used]
    return program(*functions, w.main(body))


def _label_function(w: Writer, name: str) -> str:
    """A function that makes a label of a name."""
    return fill(
        _LABEL_FUNCTIONS[name],
        mark=w.choice("-_."),
        dot=w.choice(".*~"),
        seed=w.between(1, 99),
        factor=w.between(3, 31),
        letter=w.choice("ABKPQX"),
    )


def rewriting(w: Writer) -> str:
    """Text rewritten in rounds: by statements below level 4, else by a rule for each letter."""
    letters = w.sample("abcdxyz", 3)
    rounds = w.size(2, 14)
    start = "".join(w.choice(letters) for _ in range(w.between(2, 3)))
    if w.level < 4:
        return _changed_text(w, letters, rounds, start)
    return _rewritten_text(w, letters, rounds, start)


def _changed_text(w: Writer, letters: list[str], rounds: int, start: str) -> str:
    """Text changed by one or two statements in rounds."""
    a, b, c = letters
    step = w.choice(
        (
            "text = text[1:] + text[0]",
            "text = text[-1] + text[:-1]",
            f'text = text.replace("{a}", "{a}{b}")',
            "text = text + text[0]",
            f'text = "{b}" + text[::-1]',
            "text = text[1:] + text[:2]",
        )
    )
    more = w.choice(
        (
            f'if text.count("{a}") > {w.between(1, 2)}:\n    text = text.replace("{a}", "{c}", 1)',
            f'if text[0] == "{b}":\n    text += "{c}"',
        )
    )
    body = fill(
        """
        text = "$start"
        for $i in range($rounds):
            $step
            $more
            $report
        print(text)
        """,
        start=start + w.choice(letters) + w.choice(letters),
        i=w.choice(("i", "turn", "_")),
        rounds=rounds,
        step=step,
        more=w.at(3, more),
        report=w.at(2, "print(text)"),
    )
    return program(body)


_REWRITE_FUNCTIONS = (
    """
    def rewrite(text):
        result = ""
        for letter in text:
            if letter == "$a":
                result += "$ra"
            elif letter == "$b":
                result += "$rb"
            else:
                result += "$rc"
        return result
    """,
    """
    RULES = {"$a": "$ra", "$b": "$rb", "$c": "$rc"}


    def rewrite(text):
        result = ""
        for letter in text:
            result += RULES[letter]
        return result
    """,
)


def _rewritten_text(w: Writer, letters: list[str], rounds: int, start: str) -> str:
    """Text in which each letter is replaced by letters, in rounds, cut when it is long."""
    limit = w.size(8, 90)
    rewrite = _rewrite_function(w, letters)
    tally = _tally_function(w, letters)
    body = fill(
        """
        text = "$start"
        for step in range(1, $stop):
            text = rewrite(text)
            if len(text) > $limit:
                text = $cut
            $report
        $show
        $count
        """,
        start=start,
        stop=rounds + 1,
        limit=limit,
        cut=w.choice((f"text[:{limit // 2}]", f"text[-{limit // 2}:]", "text[::2]", "text[::-2]")),
        report=w.tell("step", "step", "len(text)", "tally(text)" if tally else "text[:8]"),
        show="print(text)" if w.chance(50) else w.show("end", "text[-12:]"),
        count=w.at(6, f'for letter in "{"".join(sorted(letters))}":\n    print(letter, text.count(letter))'),
    )
    return program(rewrite, tally, w.main(body))


def _rewrite_function(w: Writer, letters: list[str]) -> str:
    """A function that replaces each of three letters."""
    a, b, c = letters
    rb = w.choice((c, f"{c}{a}"))
    rc = w.choice((a, b, f"{b}{b}"))
    return fill(w.choice(_REWRITE_FUNCTIONS), a=a, b=b, c=c, ra=f"{a}{b}", rb=rb, rc=rc)


def _tally_function(w: Writer, letters: list[str]) -> str:
    """A function that calculates a score of a text from level 5, else nothing."""
    tally = define(
        "tally(text)",
        """
        score = 0
        for i, letter in enumerate(text):
            if letter == "$a":
                score += i
            elif letter == "$b":
                score -= $k
        return score
        """,
        a=letters[0],
        b=letters[1],
        k=w.between(1, 5),
    )
    return w.at(5, tally)


FAMILY = Family(
    "strings",
    (
        Template(ciphers),
        Template(runs),
        Template(statistics),
        Template(mirrors),
        Template(labels),
        Template(rewriting),
    ),
)
