"""Programs whose output is no function of text and input, and sound programs that look like them.

Each varying program prints something short, so that two runs that happen to agree prove nothing.
"""

from __future__ import annotations

from textwrap import dedent

VARYING: list[tuple[str, str]] = [
    # The order of a set of texts.
    ("print(next(iter({'a', 'b', 'c'})))\n", "hash seed"),
    ("colours = {'red', 'green'}\nprint(colours.pop())\n", "hash seed"),
    ("for key in {'k': 1, 'm': 2}.keys() & {'k', 'm'}:\n    print(key)\n    break\n", "hash seed"),
    ("print(min({'a', 'b', 'c', 'd'}, key=len))\n", "hash seed"),
    # Hashes.
    ("print(hash('k') % 7 == 3)\n", "line 1: hash"),
    ("x = 'key'\nprint(x.__hash__() & 1)\n", "line 2: .*__hash__"),
    ("print(max(['a', 'b'], key=hash))\n", "line 1: .*hash"),
    ("print(hash(None) % 4)\n", "line 1: hash"),
    # Addresses.
    ("x = []\nprint(id(x) % 4096)\n", "line 2: id"),
    ("class A:\n    pass\n\nprint(repr(A())[-4])\n", "address|varies"),
    ("print(sorted([[1], [2]], key=id))\n", "line 1: .*id"),
    ("class A:\n    pass\n\nprint(next(iter({A: 1, int: 2}.keys() & {A, int})).__name__)\n", "varies"),
    # Clocks.
    ("import time\nprint(time.time_ns() % 2)\n", "line 2: time.time_ns .*clock"),
    ("from datetime import datetime\nprint(datetime.now().minute)\n", r"line 2: .*now.* clock"),
    ("import datetime as d\nprint(d.date.today().year)\n", r"line 2: .*today.* clock"),
    ("from time import localtime\nprint(localtime().tm_hour)\n", r"line 1: time.localtime .*clock"),
    ("import time\nprint(time.process_time() < 0.5)\n", "line 2: .*clock"),
    # Unseeded random numbers.
    ("import random\nx = [1, 2]\nrandom.shuffle(x)\nprint(x)\n", "line 3: .*seed"),
    ("from random import choice\nprint(choice('ab'))\n", "line 2: .*seed"),
    ("import random\nprint(random.Random().randint(0, 1))\n", "line 2: .*seed"),
    ("from random import SystemRandom\nprint(SystemRandom().randrange(2))\n", "line 1: random.SystemRandom"),
    ("import uuid\nprint(uuid.uuid1().version)\nprint(uuid.uuid1().node % 2)\n", "line 2: uuid.uuid1"),
    ("import uuid\nprint(uuid.uuid4().hex[0] < '8')\n", "line 2: uuid.uuid4"),
    ("import os\nprint(os.urandom(1)[0] % 2)\n", "line 2: os.urandom"),
    # The process.
    ("import os\nprint(os.getpid() % 2)\n", "line 2: os.getpid"),
    ("import threading\nprint(threading.get_ident() // 64 % 2)\n", "line 2: threading.get_ident"),
    ("import sys\nprint(sys.getrefcount(None) % 2)\n", "line 2: sys.getrefcount"),
    ("import resource\nprint(resource.getrusage(0).ru_maxrss > 9000)\n", "line 1: .*resource"),
    # The machine.
    ("import os\nprint(os.getcwd())\n", "line 2: os.getcwd"),
    ("import os\nprint('HOME' in os.environ)\n", "line 2: os.environ"),
    ("import socket\nprint(socket.gethostname())\n", "line 1: .*socket"),
    ("import platform\nprint(platform.node())\n", "line 1: .*platform"),
    ("import time\nprint(time.tzname[0])\n", "line 2: time.tzname"),
    ("import os\nprint(os.stat('.').st_ino % 10)\n", "line 2: os.stat"),
    ("import os\nprint(os.cpu_count())\n", "line 2: os.cpu_count"),
    ("import sys\nprint(sys.executable[0], len(sys.path))\n", "line 2: sys.executable"),
    ("import tempfile\nprint(tempfile.mkdtemp()[-1] < 'm')\n", "line 1: .*tempfile"),
]
"""Programs that vary, and a part of the reason against each."""

_SOUND: list[str] = [
    # Sets whose order does not show.
    "print(sorted(set('banana')))\n",
    "print(len({'a', 'b'} | {'b', 'c'}), 'a' in {'a', 'b'})\n",
    "print({1, 2, 3}, sum({1.5, 2.5}), max({'a', 'b'}))\n",
    "print({'b': 1, 'a': 2}, list({'z': 0}), {7}.pop())\n",
    # Hashes that follow from the program.
    "print(hash(1) == hash(1.0) == hash(True), hash((1, 2)) == hash((1, 2)))\n",
    # Objects without addresses.
    """
    class A:
        def __repr__(self):
            return 'A()'


    print([A(), A()])
    """,
    # Times that are given.
    """
    import datetime
    d = datetime.datetime(2020, 1, 31, 12)
    print(d, repr(d), d.strftime('%A %d %B'))
    """,
    # Random numbers with a seed.
    """
    import random
    random.seed(42)
    print(random.random(), random.sample(range(100), 5))
    """,
    # Digests and ids from names.
    "import uuid\nprint(uuid.uuid5(uuid.NAMESPACE_DNS, 'python.org'))\n",
    """
    import hashlib
    print(hashlib.sha256(b'a').hexdigest()[:8], hashlib.md5(b'').hexdigest())
    """,
    # The interpreter, where it is the same everywhere.
    """
    import sys
    sys.setrecursionlimit(5000)
    print(sys.maxsize > 2**32, len(sys.argv))
    sys.stdout.write(sys.stdin.readline())
    """,
    """
    with open('notes.txt', 'w') as file:
        file.write('one\\ntwo\\n')
    with open('notes.txt') as file:
        print(file.read().split())
    """,
    "print(open(0).read().strip()[::-1])\n",
    # Looking things up by name.
    """
    print(eval('1 + 2 * 3'), eval(input()))
    exec('y = 4')
    print(globals()['y'])
    """,
    # Threads and coroutines that wait for each other.
    """
    import threading
    out = []
    threads = [threading.Thread(target=out.append, args=[i]) for i in range(3)]
    for t in threads:
        t.start()
        t.join()
    print(out)
    """,
    "import asyncio\nprint(asyncio.run(asyncio.sleep(0, 'awake')))\n",
    # Half of the standard library.
    """
    import json, re, math, string
    print(json.dumps({'b': [1, None]}), re.sub('a+', 'x', 'caat'), math.pi)
    print(string.ascii_lowercase[:3])
    """,
    """
    from collections import Counter, defaultdict, namedtuple
    from itertools import groupby, product
    from functools import lru_cache, reduce
    P = namedtuple('P', 'x y')


    @lru_cache(maxsize=None)
    def f(n):
        return n if n < 2 else f(n - 1) + f(n - 2)


    print(Counter('abca').most_common(1), P(1, 2)._replace(x=3), f(30), f.cache_info().hits)
    """,
    """
    from fractions import Fraction
    from decimal import Decimal, getcontext
    import statistics, heapq, bisect, copy
    getcontext().prec = 5
    print(Fraction(1, 3) + 1, Decimal(1) / 3, statistics.mean([1, 2]), copy.deepcopy([[1]]))
    """,
]

SOUND = [dedent(text).lstrip("\n") for text in _SOUND]
"""Sound programs; ``INPUT`` is the standard input of all of them."""

INPUT = "7\n"
