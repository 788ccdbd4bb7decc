"""Strings: ciphers, runs, word statistics, palindromes, labels, rewriting."""

from __future__ import annotations

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
)


def ciphers(w: Writer) -> str:
    """Letters moved along the alphabet."""
    shift = w.between(1, 12)
    name = w.choice(("secret", "result", "coded", "out"))
    move = f"chr(ord(letter) {w.choice('+-')} {shift})"
    if w.level < 4:
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
            test = w.choice(
                ('letter in "aeiou"', f'letter > "{w.choice("ghklmp")}"', 'letter not in "aeiou"')
            )
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
    place = w.choice(
        (
            "ALPHABET[(ALPHABET.index(letter) + key) % 26]",
            'chr((ord(letter) - ord("a") + key) % 26 + ord("a"))',
            "chr((ord(letter) - 97 - key) % 26 + 97)",
        )
    )
    apart = w.level >= 6
    indexed = w.level >= 5 and w.chance(50)
    vowels = w.maybe(4, 'if letter in "aeiou":\n    result += letter.upper()\n    continue', 50)
    encode = define(
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
        doc=w.maybe(5, '"""Replace each letter by one further along."""', 40),
        loop="i, letter in enumerate(word)" if indexed else "letter in word",
        skip=vowels,
        move=("move(letter, key + i)" if indexed else "move(letter, key)") if apart else place,
        turn=f"key += {w.choice(('1', 'i', '2'))}" if indexed and not apart else "",
    )
    checksum = w.at(
        7,
        define(
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
        ),
    )
    message = w.sample(up_to(w.choice(THEMES), w.size(4, 12)), w.size(1, 13))
    growing = w.level >= 5 and w.chance(60)
    many = len(message) > 1 or w.chance(40)
    body = fill(
        """
        message = "$message"
        $key
        $total
        $loop
        """,
        message=" ".join(message),
        key=f"key = {shift}" if growing else "",
        total="total = 0" if checksum else "",
        loop="for word in message.split():\n    $inside\n$last" if many else "$inside\n$last",
        inside=fill(
            "secret = encode(word, $key)\n$check\n$show\n$change"
            if many
            else "secret = encode(message, $key)\n$check\nprint(secret)",
            key="key" if growing else shift,
            check="total += checksum(secret)" if checksum else "",
            show=f"print({w.choice(('word, secret', 'secret', 'secret, len(secret)'))})",
            change=f"key += {w.choice(('len(word)', '1', '2', '3'))}" if growing else "",
        ),
        last=w.show("total", "total") if checksum else "",
    )
    alphabet = 'ALPHABET = "abcdefghijklmnopqrstuvwxyz"' if "ALPHABET" in place else ""
    return program(
        alphabet,
        define("move(letter, key)", f"return {place}") if apart else "",
        encode,
        checksum,
        w.main(body),
    )


def runs(w: Writer) -> str:
    """Run lengths, counted and written out again."""
    letters = w.sample("abcdefghkmnopqrstuvwxyz", w.between(2, 4))

    def pattern(length: int) -> str:
        stream = w.fork()
        return "".join(stream.choice(letters) * stream.between(1, 4) for _ in range(length))[:length]

    if w.level < 4:
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
            text=pattern(w.size(3, 16)),
            count=count,
            zero=zero,
            add=add,
            sign="!=" if count == "runs" else w.choice(("==", "!=")),
            report=w.at(2, f"print(i, {count})"),
            other=w.at(3, w.choice((f'elif text[i] == "{letters[0]}":\n    print(i, "again")', ""))),
            show=w.show(count, count),
        )
        return program(body)
    squeeze = fill(
        """
        def squeeze(text):
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
    longest = w.at(
        7,
        """
        def longest_run(text):
            best = current = 1
            for before, after in zip(text, text[1:]):
                if before == after:
                    current += 1
                    best = max(best, current)
                else:
                    current = 1
            return best
        """,
    )
    shortest = w.size(2, 14)
    samples = [pattern(length) for length in w.numbers(10, shortest, shortest + 2)][: w.size(1, 10)]
    again = w.level >= 8
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
        again="twice = squeeze(short)" if again else "",
        shown=w.choice(("$text, short", "short", "short, len(short)"))
        + (", longest_run($text)" if longest else "")
        + (", len(twice)" if again else ""),
        show=w.show("saved", "saved"),
    )
    return program(squeeze, longest, w.main(body))


def statistics(w: Writer) -> str:
    """What can be counted about the words of a sentence."""
    pools = [up_to(pool, w.size(4, 12)) for pool in w.sample(THEMES, 2)]
    sentence = " ".join(w.picks([*pools[0], *pools[1]], w.size(1, 14)))
    if w.level < 4:
        word = w.choice(up_to(NOUNS, w.size(3, 9)))
        pieces = {
            "vowels": ("0", f'for letter in "{word}":', 'if letter in "aeiou":\n    vowels += 1'),
            "letters": ("0", f'for word in "{sentence}".split():', "letters += len(word)"),
            "big": ('""', f'for word in "{sentence}".split():', "big += word[0].upper()"),
            "short": ('""', f'for word in "{sentence}".split():', f"short += word[:{w.between(1, 3)}]"),
            "spelled": ('""', f'for letter in "{word}":', 'spelled += letter.upper() + "-"'),
            "longest": (
                '""',
                f'for word in "{sentence}".split():',
                "if len(word) > len(longest):\n    longest = word",
            ),
        }
        what = w.choice(list(pieces))
        zero, loop, act = pieces[what]
        item = "letter" if "letter in" in loop else "word"
        report = w.choice((f"print({item})", f"print({item}, {what})", f"print({what})"))
        text = "$what = $zero\n$loop\n    $act\n    $report\n$show"
        return program(
            fill(
                text,
                what=what,
                zero=zero,
                loop=loop,
                act=act,
                report=w.at(2, report),
                show=w.show(what, what),
            )
        )
    pool = {
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
    used = w.sample(list(pool), 1 if w.level < 6 else 2 if w.level < 9 else 3)
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
    return program(*(fill(pool[name]) for name in used), w.main(body))


def mirrors(w: Writer) -> str:
    """Palindromes and anagrams."""

    def word(letters: int) -> str:
        half = "".join(w.sample("abdeilmnorst", letters))
        return w.choice(
            (
                half + half[::-1],
                half + w.choice("abe") + half[::-1],
                half + w.choice("abe") + half,
                "".join(w.shuffled(half + half)),
            )
        )

    yes, no = w.choice(
        (("same", "different"), ("yes", "no"), ("mirror", "plain"), ("palindrome", "not a palindrome"))
    )
    setup, test = w.choice(
        (
            ("back = word[::-1]", "word == back"),
            ("middle = len(word) // 2", "word[:middle] == word[-middle:]"),
            ("first, last = word[0], word[-1]", "first == last"),
            ('ordered = "".join(sorted(word))', "ordered[0] == word[0]"),
            ("odd = word[::2]", "odd == odd[::-1]"),
        )
    )
    if w.level < 4:
        lines = ["print(word[::-1])", "print(word.upper())", "print(word[1:])", "print(word * 2)"]
        lines += ['print("-".join(word))', "print(len(word))", "print(word[-2:] + word[:2])"]
        more = "\n".join(w.sample(lines, 1 if w.level < 3 else 2))
        setup += f'\nif {test}:\n    print("{yes}")\nelse:\n    print("{no}")'
        items = [word(letters) for letters in w.numbers(6, 1, 3)][: w.size(1, 6)]
        loop = spread("words", [quoted(item) for item in items]) + f"\nfor word in words:\n    $setup\n{more}"
        return program(
            fill(f'word = "{items[0] + word(1)}"\n$setup\n{more}' if w.level == 1 else loop, setup=setup)
        )
    palindrome = """
        def is_palindrome(word):
            left, right = 0, len(word) - 1
            while left < right:
                if word[left] != word[right]:
                    return False
                left += 1
                right -= 1
            return True
        """
    anagram = """
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
    outer = """
        def longest_inside(word):
            best = ""
            for start in range(len(word)):
                for end in range(start + 1, len(word) + 1):
                    part = word[start:end]
                    if len(part) > len(best) and is_palindrome(part):
                        best = part
            return best
        """
    items = [word(w.size(1, 4)) for _ in range(9)][: w.size(2, 9)]
    items = ["".join(w.shuffled(item)) if w.chance(20) else item for item in items]
    items[-1] = "".join(w.shuffled(items[0]))
    body = fill(
        """
        $items
        found = 0
        for word in $name:
            if is_palindrome(word):
                found += 1
                print(word, "reads the same both ways")
            $other
            $inside
        $show
        $pairs
        """,
        items=spread(
            name := w.choice(("words", "names", "labels", "codes")), [quoted(item) for item in items]
        ),
        name=name,
        other=f"else:\n"
        f'    print(word, "becomes", {w.choice(("word[::-1]", "word[::-1].upper()", "word + word[::-1]"))})',
        inside=w.at(8, "inside = longest_inside(word)\nprint(len(word), inside)"),
        show=w.show("found", "found"),
        pairs=w.at(
            7,
            f"""
            for i in range(len({name})):
                for j in range(i + 1, len({name})):
                    if are_anagrams({name}[i], {name}[j]):
                        print({name}[i], {name}[j])
            """,
        ),
    )
    return program(fill(palindrome), w.at(7, anagram), w.at(8, outer), w.main(body))


def labels(w: Writer) -> str:
    """Names made into tags, codes and lines of a fixed width."""
    least = 2 if w.level in (2, 3) else 1
    count = w.size(least, 12)
    people = [" ".join(both) for both in zip(w.picks(PEOPLE, count), w.picks(NOUNS, count), strict=True)]
    if w.level < 4:
        steps = w.sample(
            (
                "name = name.title()",
                'name = name.replace("$a", "$b")',
                "name = name[$n:] + name[:$n]",
                "name = name.upper()",
                'name = "$mark" + name + "$mark"',
                "name = name[::-1]",
                "name = name + str(len(name))",
                "name = name[:-1] + name[0]",
            ),
            2 if w.level < 3 else 3,
        )
        text = w.choice(("print(name)", "print(name, len(name))"))
        if w.level > 2 or w.chance(30):
            steps = [w.choice(("first, last = name.split()", "last, first = name.split()")), *steps]
            text = "\n".join(
                [text, w.choice(("print(last, first)", "print(first[0] + last)", "print(last[:3])"))]
            )
        steps = [*steps, text]
        loop = spread("names", [quoted(person) for person in people]) + "\nfor name in names:\n    $steps"
        straight = f'name = "{people[0]}"\n$steps'
        return program(
            fill(
                loop if w.level > 1 else straight,
                steps="\n".join(steps),
                a=w.choice(people[0].replace(" ", "")),
                b=w.choice("aeou_"),
                n=w.between(1, 4),
                mark=w.choice("*-+=#"),
            )
        )
    pool = {
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
    used = w.sample(list(pool), 1 if w.level < 6 else 2 if w.level < 8 else 3 if w.level < 10 else 4)
    calls = {
        "initials": "initials(name)",
        "slug": "slug(name)",
        "badge": f"badge(name, {w.between(14, 24)})",
        "code": "code(name)",
    }
    width = w.between(8, 16)
    body = fill(
        """
        $names
        $first
        for name in names:
            $collect
            print($shown)
        $last
        """,
        names=spread("names", [quoted(name) for name in people]),
        first=w.at(5, "taken = []"),
        collect=w.at(
            5, f'tag = {calls[used[0]]}\nif tag in taken:\n    tag += "{w.choice("+*!2")}"\ntaken.append(tag)'
        ),
        shown=", ".join((["tag"] if w.level >= 5 else [calls[used[0]]]) + [calls[name] for name in used[1:]]),
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
    functions = [
        fill(
            pool[name],
            mark=w.choice("-_."),
            dot=w.choice(".*~"),
            seed=w.between(1, 99),
            factor=w.between(3, 31),
            letter=w.choice("ABKPQX"),
        )
        for name in used
    ]
    return program(*functions, w.main(body))


def rewriting(w: Writer) -> str:
    """A text that is rewritten round after round."""
    letters = w.sample("abcdxyz", 3)
    a, b, c = letters
    rounds = w.size(2, 14)
    start = "".join(w.choice(letters) for _ in range(w.between(2, 3)))
    if w.level < 4:
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
        more = w.at(
            3,
            w.choice(
                (
                    f'if text.count("{a}") > {w.between(1, 2)}:\n    text = text.replace("{a}", "{c}", 1)',
                    f'if text[0] == "{b}":\n    text += "{c}"',
                )
            ),
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
            more=more,
            report=w.at(2, "print(text)"),
        )
        return program(body)
    limit = w.size(8, 90)
    rule = {a: f"{a}{b}", b: w.choice((f"{c}", f"{c}{a}")), c: w.choice((a, b, f"{b}{b}"))}
    function = w.choice(
        (
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
    )
    tally = w.at(
        5,
        f"""
        def tally(text):
            score = 0
            for i, letter in enumerate(text):
                if letter == "{a}":
                    score += i
                elif letter == "{b}":
                    score -= {w.between(1, 5)}
            return score
        """,
    )
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
        report=w.tell("step", "step", "len(text)", *(["tally(text)"] if tally else ["text[:8]"])),
        show="print(text)" if w.chance(50) else w.show("end", "text[-12:]"),
        count=w.at(6, f'for letter in "{"".join(sorted(letters))}":\n    print(letter, text.count(letter))'),
    )
    return program(fill(function, a=a, b=b, c=c, ra=rule[a], rb=rule[b], rc=rule[c]), tally, w.main(body))


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
