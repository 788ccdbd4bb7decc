"""A data set in the hub's format: 200 programs as users write them, with the expected verdicts.

``python -m tests.trace_gym.rows`` writes ``tests/data/programs.jsonl`` anew. Every fifth row is unsound by
construction.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

PATH = Path(__file__).parent.parent / "data" / "programs.jsonl"

SIZE, EVERY = 200, 5
"""Number of rows, and the distance between unsound rows."""


class Row(NamedTuple):
    """A program, its standard input, and a part of the reason against it; "" if it is admitted."""

    program: str
    inputs: str
    reason: str


SOUND: list[tuple[str, list[str]]] = [
    (
        """
        n = int(input())
        total = 0
        for value in input().split():
            total += int(value)
        print(total)
        print(total / n)
        """,
        ["3\n1 2 3\n", "1\n7\n", "4\n10 -4 8 2\n", "2\n0 1\n", "5\n9 9 9 9 4\n"],
    ),
    (
        """
        def gcd(a, b):
            while b:
                a, b = b, a % b
            return a

        a, b = map(int, input().split())
        d = gcd(a, b)
        print("gcd", d)
        print("lcm", a * b // d)
        """,
        ["12 18\n", "7 13\n", "100 75\n", "1 1\n", "270 192\n"],
    ),
    (
        """
        word = input().strip()
        if word == word[::-1]:
            print("YES")
        else:
            print("NO")
        """,
        ["level\n", "python\n", "a\n", "abba\n", "palindrome\n"],
    ),
    (
        """
        import sys

        counts = {}
        for line in sys.stdin:
            for word in line.lower().split():
                counts[word] = counts.get(word, 0) + 1
        for word in sorted(counts, key=lambda w: (-counts[w], w)):
            print(word, counts[word])
        """,
        ["the cat the hat\n", "a b c\na b\na\n", "One one ONE\n", "to be or not\nto be\n", "x\n"],
    ),
    (
        """
        n = int(input())
        sieve = [True] * (n + 1)
        primes = []
        for p in range(2, n + 1):
            if sieve[p]:
                primes.append(p)
                for multiple in range(p * p, n + 1, p):
                    sieve[multiple] = False
        print(*primes)
        print(len(primes))
        """,
        ["10\n", "30\n", "2\n", "50\n", "100\n"],
    ),
    (
        """
        def fib(n, memo={}):
            if n < 2:
                return n
            if n not in memo:
                memo[n] = fib(n - 1) + fib(n - 2)
            return memo[n]

        for _ in range(int(input())):
            print(fib(int(input())))
        """,
        ["1\n10\n", "3\n1\n2\n3\n", "2\n50\n90\n", "1\n0\n", "4\n5\n10\n15\n20\n"],
    ),
    (
        """
        rows, columns = map(int, input().split())
        grid = [list(map(int, input().split())) for _ in range(rows)]
        for column in zip(*grid):
            print(" ".join(map(str, column)))
        """,
        ["1 3\n1 2 3\n", "2 2\n1 2\n3 4\n", "3 1\n5\n6\n7\n", "2 3\n1 0 1\n0 1 0\n", "1 1\n9\n"],
    ),
    (
        """
        class Account:
            def __init__(self, owner):
                self.owner = owner
                self.balance = 0

            def deposit(self, amount):
                self.balance += amount

            def withdraw(self, amount):
                if amount > self.balance:
                    raise ValueError("insufficient funds")
                self.balance -= amount

        account = Account("ann")
        while True:
            try:
                command, amount = input().split()
            except EOFError:
                break
            try:
                getattr(account, command)(int(amount))
            except ValueError as error:
                print("error:", error)
            else:
                print(account.owner, account.balance)
        """,
        [
            "deposit 50\nwithdraw 20\n",
            "withdraw 1\n",
            "deposit 5\nwithdraw 9\nwithdraw 5\n",
            "deposit 1\ndeposit 2\ndeposit 3\n",
            "deposit 100\nwithdraw 100\nwithdraw 1\n",
        ],
    ),
    (
        """
        from collections import deque

        n, m = map(int, input().split())
        graph = {v: [] for v in range(1, n + 1)}
        for _ in range(m):
            a, b = map(int, input().split())
            graph[a].append(b)
            graph[b].append(a)
        distance = {1: 0}
        queue = deque([1])
        while queue:
            v = queue.popleft()
            for w in graph[v]:
                if w not in distance:
                    distance[w] = distance[v] + 1
                    queue.append(w)
        for v in range(1, n + 1):
            print(v, distance.get(v, -1))
        """,
        ["2 1\n1 2\n", "3 1\n2 3\n", "4 4\n1 2\n2 3\n3 4\n4 1\n", "5 4\n1 3\n3 5\n5 2\n2 4\n", "1 0\n"],
    ),
    (
        """
        def bubble(values):
            values = list(values)
            swaps = 0
            for i in range(len(values)):
                for j in range(len(values) - 1 - i):
                    if values[j] > values[j + 1]:
                        values[j], values[j + 1] = values[j + 1], values[j]
                        swaps += 1
            return values, swaps

        result, swaps = bubble(map(int, input().split()))
        print(result)
        print(f"{swaps} swaps")
        """,
        ["3 2 1\n", "1 2 3\n", "5 1 4 2 8\n", "2 2 2\n", "9 -1\n"],
    ),
    (
        """
        text = input()
        shift = int(input())
        out = ""
        for ch in text:
            if ch.isalpha():
                base = ord("A") if ch.isupper() else ord("a")
                out += chr((ord(ch) - base + shift) % 26 + base)
            else:
                out += ch
        print(out)
        """,
        ["abc\n1\n", "Hello, World!\n13\n", "xyz\n3\n", "No change\n0\n", "Back\n-1\n"],
    ),
    (
        """
        n = int(input())
        steps = 0
        while n != 1:
            print(n, end=" ")
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        print(1)
        print("steps:", steps)
        """,
        ["6\n", "1\n", "7\n", "16\n", "19\n"],
    ),
    (
        """
        stack = []
        pairs = {")": "(", "]": "[", "}": "{"}
        balanced = True
        for ch in input():
            if ch in pairs.values():
                stack.append(ch)
            elif ch in pairs:
                if not stack or stack.pop() != pairs[ch]:
                    balanced = False
                    break
        print("balanced" if balanced and not stack else "not balanced")
        """,
        ["([]{})\n", "(]\n", "((\n", "a(b)c\n", "}\n"],
    ),
    (
        """
        from __future__ import annotations

        from dataclasses import dataclass


        @dataclass(order=True)
        class Player:
            score: int
            name: str


        players = []
        for _ in range(int(input())):
            name, score = input().split()
            players.append(Player(int(score), name))
        for player in sorted(players, reverse=True):
            print(player)
        """,
        ["2\nann 3\nbob 5\n", "1\ncy 0\n", "3\na 1\nb 1\nc 1\n", "2\nx -1\ny -2\n", "2\nli 10\nmo 9\n"],
    ),
    (
        """
        def triangle(n):
            row = [1]
            for _ in range(n):
                yield row
                row = [a + b for a, b in zip([0] + row, row + [0])]


        for row in triangle(int(input())):
            print(" ".join(map(str, row)))
        """,
        ["1\n", "3\n", "5\n", "7\n", "10\n"],
    ),
    (
        """
        def solve(weights, values, capacity):
            best = [0] * (capacity + 1)
            for weight, value in zip(weights, values):
                for room in range(capacity, weight - 1, -1):
                    best[room] = max(best[room], best[room - weight] + value)
            return best[capacity]

        capacity = int(input())
        weights = list(map(int, input().split()))
        values = list(map(int, input().split()))
        print(solve(weights, values, capacity))
        """,
        [
            "10\n5 4 6\n10 40 30\n",
            "3\n1 2 3\n1 2 3\n",
            "0\n1\n1\n",
            "7\n3 4 5\n4 5 7\n",
            "50\n10 20 30\n60 100 120\n",
        ],
    ),
    (
        """
        value = int(input())
        print(bin(value)[2:])
        print(oct(value)[2:])
        print(hex(value)[2:].upper())
        print(sum(int(digit) for digit in str(value)))
        """,
        ["10\n", "255\n", "1\n", "1024\n", "48879\n"],
    ),
    (
        """
        def permutations(items):
            if not items:
                return [[]]
            found = []
            for i, item in enumerate(items):
                for rest in permutations(items[:i] + items[i + 1:]):
                    found.append([item] + rest)
            return found

        for p in permutations(input().split()):
            print("".join(p))
        """,
        ["a b\n", "x\n", "1 2 3\n", "a a\n", "p q r\n"],
    ),
    (
        """
        total = 0.0
        for line in iter(input, "end"):
            name, price, count = line.split(",")
            cost = float(price) * int(count)
            total += cost
            print(f"{name:<8}{cost:>8.2f}")
        print(f"{'total':<8}{total:>8.2f}")
        """,
        [
            "tea,2.50,2\nend\n",
            "end\n",
            "nut,0.25,4\nbolt,0.50,2\nend\n",
            "pen,1.20,10\nend\n",
            "a,1,1\nb,2,2\nc,3,3\nend\n",
        ],
    ),
    (
        """
        a = [list(map(int, input().split())) for _ in range(2)]
        b = [list(map(int, input().split())) for _ in range(2)]
        product = [[sum(a[i][k] * b[k][j] for k in range(2)) for j in range(2)] for i in range(2)]
        for row in product:
            print(*row)
        """,
        [
            "1 0\n0 1\n5 6\n7 8\n",
            "1 2\n3 4\n5 6\n7 8\n",
            "0 1\n1 0\n1 2\n3 4\n",
            "2 2\n2 2\n1 1\n1 1\n",
            "-1 0\n0 -1\n4 5\n6 7\n",
        ],
    ),
    (
        """
        import heapq

        n = int(input())
        heap = []
        for _ in range(n):
            operation = input().split()
            if operation[0] == "push":
                heapq.heappush(heap, int(operation[1]))
            elif heap:
                print(heapq.heappop(heap))
            else:
                print("empty")
        """,
        [
            "2\npush 3\npop\n",
            "1\npop\n",
            "4\npush 5\npush 1\npop\npop\n",
            "3\npush 2\npop\npop\n",
            "3\npush 9\npush 8\npop\n",
        ],
    ),
    (
        """
        n = int(input())
        for i in range(1, n + 1):
            if i % 15 == 0:
                print("FizzBuzz")
            elif i % 5 == 0:
                print("Buzz")
            elif i % 3 == 0:
                print("Fizz")
            else:
                print(i)
        """,
        ["1\n", "5\n", "15\n", "3\n", "30\n"],
    ),
    (
        """
        def search(values, target):
            low, high = 0, len(values) - 1
            while low <= high:
                middle = (low + high) // 2
                print("look at", values[middle])
                if values[middle] == target:
                    return middle
                if values[middle] < target:
                    low = middle + 1
                else:
                    high = middle - 1
            return -1

        values = sorted(map(int, input().split()))
        print(search(values, int(input())))
        """,
        ["1 3 5 7 9\n7\n", "1 2 3\n4\n", "5\n5\n", "8 6 4 2\n2\n", "10 20 30 40 50 60\n35\n"],
    ),
    (
        """
        make = lambda k: lambda x: x * k
        functions = [make(k) for k in range(1, int(input()) + 1)]
        x = int(input())
        print([f(x) for f in functions])
        print(sum(map(lambda f: f(x), functions)))
        """,
        ["3\n2\n", "1\n5\n", "5\n1\n", "4\n-3\n", "2\n0\n"],
    ),
    (
        """
        text = input()
        result = []
        i = 0
        while i < len(text):
            j = i
            while j < len(text) and text[j] == text[i]:
                j += 1
            result.append(text[i] + (str(j - i) if j - i > 1 else ""))
            i = j
        print("".join(result))
        """,
        ["aaabbc\n", "abc\n", "zzzz\n", "aabbaa\n", "w\n"],
    ),
    (
        """
        def hanoi(n, a, b, c):
            if n:
                hanoi(n - 1, a, c, b)
                print(a, "->", c)
                hanoi(n - 1, b, a, c)

        hanoi(int(input()), "A", "B", "C")
        """,
        ["1\n", "2\n", "3\n", "4\n", "5\n"],
    ),
    (
        """
        seen = set()
        for value in map(int, input().split()):
            if value in seen:
                print("again:", value)
            seen.add(value)
        print(sorted(seen))
        """,
        ["1 2 1\n", "3 3 3\n", "4 5 6\n", "0 -1 0 -1\n", "7\n"],
    ),
    (
        """
        year = int(input())
        match (year % 4 == 0, year % 100 == 0, year % 400 == 0):
            case (True, False, _) | (_, _, True):
                print(year, "is a leap year")
            case _:
                print(year, "is not a leap year")
        """,
        ["2000\n", "1900\n", "2024\n", "2023\n", "4\n"],
    ),
    (
        """
        def evaluate(expression):
            stack = []
            for token in expression.split():
                if token in "+-*":
                    b, a = stack.pop(), stack.pop()
                    stack.append({"+": a + b, "-": a - b, "*": a * b}[token])
                else:
                    stack.append(int(token))
                print(stack)
            return stack[0]


        if __name__ == "__main__":
            print("=", evaluate(input()))
        """,
        ["1 2 +\n", "3 4 * 5 -\n", "9\n", "2 3 4 + *\n", "1 2 - 3 -\n"],
    ),
    (
        """
        grid = [list(line) for line in iter(input, "")]
        neighbours = [(-1, 0), (1, 0), (0, -1), (0, 1)]

        def fill(r, c):
            if not (0 <= r < len(grid) and 0 <= c < len(grid[r])) or grid[r][c] != "#":
                return 0
            grid[r][c] = "."
            return 1 + sum(fill(r + dr, c + dc) for dr, dc in neighbours)

        sizes = [fill(r, c) for r in range(len(grid)) for c in range(len(grid[r]))]
        print(sorted(size for size in sizes if size))
        """,
        ["#.\n.#\n\n", "##\n##\n\n", "...\n\n", "#.#\n###\n\n", "#\n\n"],
    ),
    (
        """
        print("naïve café: ∑ →", input().upper())
        """,
        ["été\n", "straße\n", "abc\n", "ñandú\n", "日本\n"],
    ),
    (
        """
        s = input()
        vowels = 0
        for ch in s:
            if ch in "aeiou":
                vowels += 1
        print("vowels:", vowels, "others:", len(s) - vowels)
        exit()
        """,
        ["hello\n", "sky\n", "aeiou\n", "banana\n", "q\n"],
    ),
]
"""Sound programs, each with five standard inputs."""

UNSOUND: list[tuple[str, str, str]] = [
    ("n = int(input())\nprint(100 // n)\n", "0\n", "ZeroDivisionError"),
    ("n = int(input())\nprint(n)\nprint([1, 2, 3][n])\n", "3\n", "IndexError"),
    ("print('reading')\nprint(int(input()) + int(input()))\n", "5\n", "EOFError"),
    ("total = 0\nfor v in input().split():\n    total += v\nprint(total)\n", "1 2\n", "TypeError"),
    ("import numpy as np\nprint(np.arange(3))\n", "", "module numpy is not in the standard"),
    (
        "words = set(input().split())\nfor word in words:\n    print(word)\n",
        "red green blue cyan pink grey\n",
        "hash seed",
    ),
    ("print(list({w for w in input().split()}))\n", "one two three four five six seven\n", "hash seed"),
    ("print(hash(input()))\n", "text\n", "of a str follows from a seed"),
    ("import random\nprint(random.random())\n", "", "line 2: a random number without a seed"),
    ("import time\nprint(time.perf_counter_ns())\n", "", "line 2: .* is a clock"),
    ("class Node:\n    pass\n\nprint(Node())\n", "", "varies"),
    ("import secrets\nprint(secrets.token_hex(16))\n", "", "line 1: .* is random"),
    ("n = int(input())\nif n > 100:\n    print(n)\n", "7\n", "prints nothing"),
    ("def main():\n    print(input())\n", "hello\n", "prints nothing"),
    ("print()\nprint(' ')\n", "", "prints nothing"),
    ("x = 1\n", "", "prints nothing"),
    ("for i in range(int(input())):\n    print('line number', i)\n", "400\n", "4096 bytes"),
    ("print('a' * 4096)\n", "", "4096 bytes"),  # and its line end
    ("print('é' * 2048)\n", "", "4096 bytes"),  # two bytes each
    ("while True:\n    print('y')\n", "", "4096 bytes"),
    ("total = 0\nfor i in range(10**6):\n    total += i\nprint(total)\n", "", "1000000 lines"),
    (
        "count = 0\nfor i in range(1000):\n    for j in range(1000):\n        count += i ^ j\nprint(count)\n",
        "",
        "1000000 lines",
    ),
    ("print(sum(i * i for i in range(1_500_000)))\n", "", "1000000 lines"),
    ("f = lambda n: n if n < 2 else f(n - 1) + f(n - 2)\nprint(f(30))\n", "", "1000000 lines"),
    ("n = int(input())\nwhile n != 1:\n    n = n * n % 10\nprint(n)\n", "5\n", "1000000 lines"),
    ("while True:\n    try:\n        pass\n    except BaseException:\n        pass\n", "", "1000000 lines"),
    ("def wait():\n    while True:\n        yield\n\nfor _ in wait():\n    pass\n", "", "1000000 lines"),
    ("import sys\nprint(input())\nprint('warning', file=sys.stderr)\n", "ok\n", "standard error"),
    ("import warnings\nprint(1)\nwarnings.warn('old')\n", "", "standard error"),
    (
        "import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start()\nt.join()\nprint('done')\n",
        "",
        "standard error",
    ),
    ("print(1\n", "", "not Python|parse"),
    ("def f(:\n    return 1\nprint(f())\n", "", "not Python|parse"),
    ("print 'hello'\n", "", "not Python|parse"),
    ("for i in range(3):\nprint(i)\n", "", "not Python|parse"),
    ("```python\nprint(input())\n```\n", "fenced\n", "not Python|parse"),
    ("```\nprint(1)\n", "", "not Python|parse"),
    ("import sys\nprint(input())\nsys.exit(3)\n", "bye\n", "status 'error'"),
    ("print(input())\nraise SystemExit(3)\n", "bye\n", "status 'error'"),
    ("import os\nprint('gone', flush=True)\nos.abort()\n", "", "line 3: os.abort"),
    ("print('answer:')\nprint('```python')\nprint('x = 1')\nprint('```')\n", "", "cleaning"),
]
"""Unsound programs: text, standard input, and a part of the reason against it."""


def rows() -> list[Row]:
    """Returns the 200 rows, every fifth unsound."""
    return list(_rows())


def _rows() -> Iterator[Row]:
    # First all programs with their first input, then all with their second, so that neighbours differ.
    sound = iter((dedent(text).lstrip("\n"), inputs[k]) for k in range(5) for text, inputs in SOUND)
    unsound = iter(UNSOUND)
    for index in range(SIZE):
        if index % EVERY == EVERY - 1:
            yield Row(*next(unsound))
        else:
            yield Row(*next(sound), "")


def text() -> str:
    """Returns the file's content."""
    return "".join(
        json.dumps({"program": row.program, "inputs": row.inputs}, ensure_ascii=False) + "\n"
        for row in rows()
    )


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
