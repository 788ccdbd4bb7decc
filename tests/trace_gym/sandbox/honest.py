"""Honest programs, which do in the sandbox what they do in the interpreter, and the input of each."""

HONEST = {
    "arguments": "import sys\nprint(__name__, __file__, sys.argv, __doc__, __package__, __spec__)",
    "globals": "print(sorted(globals()))",
    "input": "n = int(input('how many? '))\nprint(sum(int(input()) for _ in range(n)))",
    "input lines": "import sys\nfor line in sys.stdin: print(repr(line))",
    "input bytes": "import sys\nprint(sys.stdin.buffer.read())",
    "input by number": "print(len(open(0).read()))",
    "input too far": "while True: print(input())",
    "no end of line": "import sys; sys.stdout.write('no end of line')",
    "text": "print('naïve – ♠ – 日本')",
    "lone surrogate": "print(chr(0xd800))",
    "bytes that are no text": "import sys; sys.stdout.buffer.write(b'\\xff\\xfe ok')",
    "half a letter": "import os; os.write(1, b'a\\xffb\\xe2\\x99')",
    "carriage return": "print('a\\r\\nb\\rc')",
    "exception": "def f(): return 1 / 0\nprint('before')\nf()",
    "recursion limit": "import sys; print(sys.getrecursionlimit())",
    "syntax": "def f(:\n    pass",
    "future": "from __future__ import annotations\ndef f(x: nothing): pass\nprint(f.__annotations__)",
    "exit": "import sys; print(1); sys.exit()",
    "exit 3": "import sys; print(1); sys.exit(3)",
    "exit words": "import sys; sys.exit('words')",
    "exit 256": "raise SystemExit(256)",
    "exit far": "raise SystemExit(10**30)",
    "exit at once": "import os; print('lost'); os._exit(5)",
    "at exit": "import atexit\nfor word in ('first', 'last'): atexit.register(print, word)\nprint('end')",
    "at exit, exception": "import atexit\natexit.register(lambda: 1 / 0)\nprint('end')",
    "closing": "import sys; print(1); sys.stdout.close()",
    "no output any more": "import sys; print(1); sys.stdout = None; print(2)",
    "byte order mark": "\ufeffprint(1)",
    "closing the file": "import os; print(1, flush=True); os.close(1); print(2)",
    "destructor": "class A:\n    def __del__(self): print('gone')\na = A()\nprint('end')",
    "destructors in order": """
class A:
    def __init__(self, name): self.name = name
    def __del__(self): print('gone', self.name)
_private, public, other = A('private'), A('public'), A('other')
def keeps(): return public
print('end')
""",
    "destructor of a cycle": """
class A:
    def __del__(self): print('gone', self.name)
a, b = A(), A()
a.other, b.other, a.name, b.name = b, a, 'a', 'b'
print('end')
""",
    "destructor that imports": """
class A:
    def __del__(self):
        try:
            import json
            print('imported')
        except ImportError as error: print('no imports any more')
a = A()
""",
    "destructor after an exception": "class A:\n    def __del__(self): print('gone')\na = A()\n1 / 0",
    "generator left open": "def g():\n    try: yield 1\n    finally: print('shut')\nx = g()\nprint(next(x))",
    "weak reference": "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, print, 'gone')\nprint(1)",
    "threads": """
import threading, time
def late():
    time.sleep(0.05)
    print('late')
threading.Thread(target=late).start()
print('end')
""",
    "daemon thread": """
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print('end')
""",
    "excepthook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0",
    "tracing": """
import sys
sys.settrace(lambda frame, event, value: print(event, frame.f_code.co_name))
def f(): return 1
f()
""",
    "tracing that fails": "import sys\nsys.settrace(lambda *a: 1 / 0)\nprint(1)",
    "unraisable": "class A:\n    def __del__(self): 1 / 0\nA()\nprint('end')",
    "pickled class": "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)",
    "own source": "import inspect\ndef f():\n    return 'source'\nprint(inspect.getsource(f))",
    "traceback": "import sys, traceback\ntry:\n    1 / 0\nexcept: traceback.print_exc(file=sys.stdout)",
    "replaced output": """
import contextlib, io, sys
with contextlib.redirect_stdout(io.StringIO()) as held: print('held')
print(repr(held.getvalue()))
""",
    "streams": "import sys\nfor s in (sys.stdin, sys.stdout, sys.stderr): print(s, s.mode, s.errors)",
    "not a terminal": "import sys; print(sys.stdin.isatty(), sys.stdout.isatty(), sys.stdout.line_buffering)",
    "builtins": """
import builtins
print(sorted(set(dir(builtins)) - {'exit', 'quit', 'copyright', 'credits', 'license', 'help'}))
""",
    "own module": "open('mine.py', 'w').write('x = 3')\nimport mine\nprint(mine.x, mine.__name__)",
    "modules": "import decimal, fractions, heapq, json, re, sqlite3, zlib\nprint(decimal.Decimal(1) / 7)",
    "output gone": "import sys\nprint(1)\ndel sys.stdout, sys.__stdout__",
    "no output to flush": "import sys\nprint(1)\nsys.stdout = object()",
    "exit that says ok": "import os\nreal = os._exit\nos._exit = lambda code: real(0)\nraise ValueError",
    "exits replaced": "import os, sys\nos._exit = sys.exit = print\nraise ValueError",
    "builtins replaced": "import builtins\nprint(1)\nvars(builtins).clear()",
    "modules replaced": "import gc, sys, weakref\ngc.collect = weakref.ref = sys.modules = None\nprint(1)",
}  # fmt: skip
INPUT = "3\r\n10\n20\n30 \n"
