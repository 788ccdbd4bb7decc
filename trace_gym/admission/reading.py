"""The reading of a program's text: names whose values follow from a machine, and that no world can change.

It reads names and not values, for honest programs: a name that is put together at run time goes unseen. Most
of what varies needs no reading, because runs in varied worlds show it (``trace_gym.admission.worlds``).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from types import MappingProxyType

MACHINE, PROCESS = "is the machine's own", "is the process's own"
RELEASE, MEMORY = "follows from the release of Python or of a library", "follows from the machine's memory"
TIME, NETWORK = "is a clock", "needs a network"

_NAMES = {
    PROCESS: """
        _thread concurrent.futures.ProcessPoolExecutor concurrent.futures.process ctypes faulthandler
        gc.get_count gc.get_objects gc.get_stats mmap multiprocessing os.abort os.fork os.forkpty os.kill
        os.popen os.system resource subprocess threading.get_ident threading.get_native_id tracemalloc
    """,
    MACHINE: """
        fcntl grp pwd select selectors site socket ssl sysconfig termios zoneinfo
        os.confstr os.getegid os.geteuid os.getgid os.getgroups os.getloadavg os.getlogin os.getuid
        os.path.getatime os.path.getctime os.path.getmtime os.statvfs os.sysconf shutil.disk_usage
        sys.flags sys.prefix sys.base_prefix uuid.getnode uuid.uuid1
    """,
    RELEASE: """
        _hashlib ast.unparse dis hashlib.algorithms_available marshal platform.python_branch
        platform.python_build platform.python_compiler platform.python_revision platform.python_version
        platform.python_version_tuple pyexpat sqlite3.sqlite_version sqlite3.sqlite_version_info
        sqlite3.version sys.api_version sys.hexversion sys.implementation sys.version sys.version_info
        unicodedata.unidata_version xml.parsers.expat.EXPAT_VERSION zlib.ZLIB_RUNTIME_VERSION
        zlib.ZLIB_VERSION
    """,
    MEMORY: "MemoryError",
    TIME: "cProfile os.times profile signal.alarm signal.setitimer time.clock_gettime time.clock_gettime_ns",
    NETWORK: """
        ftplib http.client http.server imaplib poplib smtplib socketserver urllib.request webbrowser xmlrpc
    """,
}
REFUSED = MappingProxyType({name: why for why, names in _NAMES.items() for name in names.split()})
"""Modules and names that a program may not name, and why."""

_MEMBERS = {
    MACHINE: """
        st_atime st_atime_ns st_ctime st_ctime_ns st_dev st_gid st_ino st_mtime st_mtime_ns st_uid
    """,
    RELEASE: "co_code co_consts co_lines co_lnotab co_stacksize",
}
MEMBERS = MappingProxyType({name: why for why, names in _MEMBERS.items() for name in names.split()})
"""Members of any object that a program may not name, and why."""


def refuse(tree: ast.Module) -> str:
    """Returns why a program's text is not allowed, with the line; "" if it is."""
    imported, stars = _imports(tree)
    compared = _parts_of_versions(tree)
    refusals: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in MEMBERS:
            refusals.append((node.lineno, f"the member {node.attr} {MEMBERS[node.attr]}"))
        for path in _paths(node, imported, stars):
            is_standard = path.partition(".")[0] in sys.stdlib_module_names
            if path in REFUSED and id(node) not in compared:
                refusals.append((getattr(node, "lineno", 1), f"{path} {REFUSED[path]}"))
            elif isinstance(node, (ast.Import, ast.ImportFrom)) and not is_standard:
                refusals.append((node.lineno, f"the module {path} is not in the standard library"))
    return "line {}: {}".format(*min(refusals)) if refusals else ""


def _imports(tree: ast.Module) -> tuple[dict[str, str], list[str]]:
    """Returns the dotted path of each name that an import binds, and the modules of each ``import *``."""
    imported: dict[str, str] = {}
    stars: list[str] = []
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=aliases):
                for alias in aliases:
                    first = alias.name.partition(".")[0]
                    imported[alias.asname or first] = alias.name if alias.asname else first
            case ast.ImportFrom(module=str(module), names=aliases, level=0):
                stars += [module for alias in aliases if alias.name == "*"]
                imported |= {alias.asname or alias.name: f"{module}.{alias.name}" for alias in aliases}
    return imported, stars


def _parts_of_versions(tree: ast.Module) -> set[int]:
    """Returns the nodes that are compared, or of which a part is taken: so a release may be looked at.

    ``info["python"]`` names the release by which a truth was made.
    """
    nodes: list[ast.expr] = []
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                nodes += [left, *others]
            case ast.Subscript(value=ast.expr() as value) | ast.Attribute(value=ast.expr() as value):
                nodes.append(value)
    return {
        id(node)
        for node in nodes
        if isinstance(node, (ast.Attribute, ast.Name)) and ast.unparse(node).endswith("version_info")
    }


def _paths(node: ast.AST, imported: dict[str, str], stars: list[str]) -> Iterator[str]:
    """Yields the dotted paths that a node may mean."""
    match node:
        case ast.Import(names=aliases):
            for alias in aliases:
                yield from _list_parents(alias.name)
        case ast.ImportFrom(module=str(module), names=aliases, level=0):
            yield from _list_parents(module)
            yield from (f"{module}.{alias.name}" for alias in aliases if alias.name != "version_info")
        case ast.Name(id=name):
            yield imported.get(name, name)
            yield from (f"{module}.{name}" for module in stars)
        case ast.Attribute(attr=attribute):
            names = [attribute]
            value = node.value
            while isinstance(value, ast.Attribute):
                names.append(value.attr)
                value = value.value
            if isinstance(value, ast.Name) and value.id in imported:
                yield ".".join([imported[value.id], *reversed(names)])


def _list_parents(module: str) -> Iterator[str]:
    names = module.split(".")
    yield from (".".join(names[: count + 1]) for count in range(len(names)))
