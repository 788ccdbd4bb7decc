"""Hazards: programs, and scopes of a program, that a debug print could disturb, read from the text.

A debug print is harmless if it is a line of its own in the output, and nothing looks at the program's text,
frames or output. The rules are coarse on purpose: one word is enough. They do not see everything. For
example, an int of more than 4300 digits has no ``repr``, a recursion may be one call short of its limit, and
a library may print half a line. So admission also compares outputs, with ``trace_gym.inject.strip_debug``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from trace_gym.inject.flow import captures, parameters
from trace_gym.inject.prints import PREFIX, USED
from trace_gym.syntax import ParsedProgram


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STARS = _words("""
    bisect cmath collections copy datetime decimal fractions functools heapq itertools math operator queue
    random re statistics string time typing
""")
"""Modules whose ``import *`` binds no name that a debug print uses."""

# Modules that run, read or watch programs, run threads or processes, share the output, or see objects die.
_MODULES = _words("""
    __main__ _thread bdb builtins cProfile cmd code codeop concurrent ctypes curses dis doctest faulthandler
    gc importlib inspect linecache multiprocessing pdb pkgutil profile pty py_compile resource runpy signal
    subprocess symtable test threading tokenize trace traceback tracemalloc unittest weakref
""")

# Names through which a program reaches its own text, its limits, or names that its text does not show.
_NAMES = _words("""
    __builtins__ __cached__ __file__ __import__ __loader__ __spec__ breakpoint compile eval exec globals
    locals vars MemoryError RecursionError
""")

# Members of any object that reach the output, processes and threads (which share or drop unwritten output),
# frames and code, memory, or the death of objects.
_MEMBERS = _words("""
    stdout __stdout__ redirect_stdout displayhook __displayhook__ fdopen dup dup2 closerange prweek
    fork forkpty posix_spawn posix_spawnp system popen _exit abort kill killpg to_thread run_in_executor
    _getframe _current_frames settrace setprofile monitoring modules argv orig_argv lineno co_code
    f_back f_builtins f_code f_globals f_lasti f_lineno f_locals f_trace gi_frame cr_frame ag_frame
    tb_frame tb_lasti tb_lineno tb_next __traceback__ __code__ __globals__ __builtins__
    getrefcount getallocatedblocks set_int_max_str_digits __del__
""")

# Members of ``os`` whose names are too common to be ruled out elsewhere.
_OS_MEMBERS = _words("close write writev")

# Functions that open a file descriptor.
_OPENERS = _words("open FileIO")

# If a program has one of these, a string may name a member.
_BY_NAME = _words("getattr setattr delattr attrgetter methodcaller __dict__ __getattribute__")

_METACLASSES = _words("type ABCMeta EnumMeta EnumType")

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def hazard(program: ParsedProgram) -> str | None:
    """Returns why a program may have no debug print, in words; None if no rule objects."""
    if PREFIX in program.code:
        return f"it holds {PREFIX}"
    tree = program.tree
    handed = list_handed_on(tree)
    if "input" in handed:
        return "it hands on input, which may be given a prompt"
    mentions = members(tree) & _MEMBERS
    if mentions:
        return f"it mentions {min(mentions)}"
    return next((why for node in ast.walk(tree) for why in _hazards(node, "print" in handed)), None)


def members(tree: ast.Module) -> frozenset[str]:
    """Returns every name by which a program reads, imports or defines a member of something."""
    names: set[str] = set()
    strings: set[str] = set()
    by_name = False
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                names.add(name)
            case ast.alias(name=name):
                names.update(name.split("."))
            case ast.Name(id=name):
                by_name = by_name or name in _BY_NAME
                if name.startswith("__"):  # __str__ = ... in a class body
                    names.add(name)
            case ast.Constant(value=str(text)):
                strings.add(text)
    return frozenset(names | strings if by_name or names & _BY_NAME else names)


def list_handed_on(tree: ast.Module) -> frozenset[str]:
    """Returns the names that are read but not called at once; ``iter(f, end)`` calls f as ``f()``."""
    called: set[ast.AST] = set()
    read: list[ast.Name] = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="iter") as callee, args=[first, _]):
                called |= {callee, first}
            case ast.Call(func=callee):
                called.add(callee)
            case ast.Name(ctx=ast.Load()):
                read.append(node)
    return frozenset(name.id for name in read if name not in called)


def _hazards(node: ast.AST, print_handed_on: bool) -> Iterator[str]:
    """Yields the reasons against debug prints in a program that has this node."""
    match node:
        case ast.Name(id=name) if name in _NAMES:
            yield f"it mentions {name}"
        case ast.Call(func=ast.Name(id="input"), args=args, keywords=keywords) if args or keywords:
            yield "it gives input() a prompt, which does not end its line"
        case ast.Call(func=callee, args=[ast.Constant(value=1), *_]) if _last_name(callee) in _OPENERS:
            yield "it opens its output as a file"
        case ast.Call(func=callee, keywords=keywords) if print_handed_on or _last_name(callee) == "print":
            if not all(map(_ends_line, keywords)):
                yield "it may call print with an end that does not end the line"
        case ast.Constant(value=str(text)) if text.startswith(("/dev/", "/proc/")):
            yield f"it mentions {text}"
        case ast.Attribute(value=ast.Name(id="os"), attr=member) if member in _OS_MEMBERS:
            yield f"it mentions os.{member}"
        case ast.ClassDef(name=name, bases=bases, keywords=keywords) if _is_meta(bases, keywords):
            yield f"class {name} is a metaclass or has one"
        case ast.Import(names=aliases):
            yield from (f"it imports {alias.name}" for alias in aliases if _is_hazardous(alias.name))
            if any(alias.name == "os" and alias.asname not in (None, "os") for alias in aliases):
                yield "it imports os under another name"
        case ast.ImportFrom(module=module, names=aliases):
            names = {alias.name for alias in aliases}
            if _is_hazardous(module or "") or (module == "os" and names & _OS_MEMBERS):
                yield f"it imports from {module}"
            if "*" in names and module not in STARS:
                yield f"it imports * from {module or 'a package'}"


def _ends_line(keyword: ast.keyword) -> bool:
    """Returns whether a ``print`` call with this keyword still ends its line; with ``**`` it may not."""
    match keyword:
        case ast.keyword(arg="end", value=ast.Constant(value=end)):
            return end is None or (isinstance(end, str) and end.endswith("\n"))
        case _:
            return keyword.arg not in ("end", None)


def _is_hazardous(module: str) -> bool:
    return module.partition(".")[0] in _MODULES


def _is_meta(bases: list[ast.expr], keywords: list[ast.keyword]) -> bool:
    """Returns whether a class is or has a metaclass, which may redefine ``==`` or ``__name__``."""
    chosen = [key.value for key in keywords if key.arg in ("metaclass", None)]
    return any(_last_name(value) != "ABCMeta" for value in chosen) or any(
        _last_name(base) in _METACLASSES for base in bases
    )


def _last_name(node: ast.expr) -> str | None:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return None


def find_closed_scopes(tree: ast.Module) -> frozenset[ast.AST]:
    """Returns scopes where a name that prints use may be rebound, and functions that may run in mid-line.

    If a ``print`` may convert an object of one of the program's classes after it has begun its line, these
    are all functions: ``__str__`` may call any of them.
    """
    closed = set(_rebound(tree))
    if _converts_in_mid_line(tree):
        closed.update(node for node in ast.walk(tree) if isinstance(node, _SCOPES))
    return frozenset(closed)


def _converts_in_mid_line(tree: ast.Module) -> bool:
    """Returns whether a ``print`` may run the program's ``__str__`` or ``__repr__`` in the middle of a line.

    ``print(x)`` converts x before it writes; ``print(x, y)`` writes x before it converts y. An f-string is
    converted before ``print`` is called.
    """
    used = members(tree)
    if not used & {"__str__", "__repr__"}:
        return False
    if "print" in list_handed_on(tree) or used & {"pprint", "pp", "logging"}:
        return True
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="print"), args=[first, *rest]):
                if isinstance(first, ast.Starred) or not all(map(_is_plain, rest)):
                    return True
    return False


def _is_plain(argument: ast.expr) -> bool:
    """Returns whether an argument of ``print`` is a builtin constant, text or number at the call."""
    match argument:
        case ast.Constant() | ast.JoinedStr() | ast.Call(func=ast.Name(id="len" | "repr" | "str")):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="join" | "format")):
            return True
        case _:
            return False


def _rebound(tree: ast.Module) -> Iterator[ast.AST]:
    """Yields the module and the functions in which a name that prints use may not be the builtin."""
    everywhere: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            everywhere.update(node.names)
        # A class's methods see its type parameters. Python has these from 3.12 on.
        everywhere.update(parameter.name for parameter in getattr(node, "type_params", ()))
    yield from _rebound_in(tree, bool(everywhere & USED))


def _rebound_in(scope: _Scope, around: bool) -> Iterator[ast.AST]:
    """Yields such scopes among a scope and those in it. ``around``: whether the scope around it is one."""
    nodes = list(_own_nodes(scope))
    # Methods do not see names that the class body binds.
    rebound = around
    if not isinstance(scope, ast.ClassDef):
        names = {name for node in nodes for name in _list_bound(node)}
        names.update(() if isinstance(scope, ast.Module) else parameters(scope.args))
        rebound = around or bool(names & USED)
        if rebound:
            yield scope
    for node in nodes:
        if isinstance(node, _SCOPES):
            yield from _rebound_in(node, rebound)


def _own_nodes(scope: _Scope) -> Iterator[ast.AST]:
    """Yields the nodes of a scope, without the bodies of the functions and classes in it."""
    stack: list[ast.AST] = list(scope.body)
    while stack:
        node = stack.pop()
        yield node
        inner = isinstance(node, _SCOPES)
        stack.extend(
            child for child in ast.iter_child_nodes(node) if not (inner and isinstance(child, ast.stmt))
        )


def _list_bound(node: ast.AST) -> Iterator[str]:
    """Yields the names that a node binds in its scope, or declares, including those of comprehensions."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=asname):
            yield asname or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case ast.pattern():
            yield from captures(node)
