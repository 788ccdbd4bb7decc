"""The names whose values follow from a program and its input, and what others depend on.

A program may use only modules and names of these tables. Leaving a name out costs a program that might be
sound; letting one in that is a clock costs a question without an answer. So a name that is not known is out.
"""

from __future__ import annotations

import importlib
import sys
from functools import lru_cache
from types import MappingProxyType, ModuleType


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WHOLE = _words("""
    abc argparse array ast atexit base64 binascii bisect bz2 calendar cmath codecs collections
    collections.abc colorsys contextlib contextvars copy csv dataclasses decimal difflib enum fnmatch
    fractions functools getopt graphlib hashlib heapq hmac html html.entities html.parser io ipaddress
    itertools json keyword lzma math numbers operator pickle pprint queue random re reprlib shlex statistics
    string struct textwrap types typing unicodedata urllib.parse warnings weakref xml.etree.ElementTree zlib
""")
"""Modules of which all public names are allowed, but for those in ``_LEFT_OUT``."""

_LEFT_OUT: dict[str, str] = {
    "ast": "unparse",  # its text differs between releases of Python
    "hashlib": "algorithms_available",
    "io": "open_code",
    "random": "SystemRandom",
    "types": "CodeType FrameType",
}

_PART: dict[str, str] = {
    "asyncio": """
        AbstractEventLoop Barrier BoundedSemaphore CancelledError Condition Event FIRST_COMPLETED
        FIRST_EXCEPTION ALL_COMPLETED Future InvalidStateError LifoQueue Lock PriorityQueue Queue QueueEmpty
        QueueFull Runner Semaphore Task TaskGroup TimeoutError create_task ensure_future gather
        get_event_loop get_running_loop iscoroutine iscoroutinefunction isfuture new_event_loop run
        set_event_loop shield sleep timeout wait wait_for
    """,
    "builtins": "",  # see ``names_of``
    "concurrent": "",
    "concurrent.futures": "CancelledError Executor Future ThreadPoolExecutor TimeoutError",
    "datetime": "MAXYEAR MINYEAR UTC date datetime time timedelta timezone tzinfo",
    "doctest": "ELLIPSIS IGNORE_EXCEPTION_DETAIL NORMALIZE_WHITESPACE testmod",
    "gc": "enable disable isenabled",
    "inspect": """
        Parameter Signature cleandoc getdoc getfullargspec isabstract isawaitable isbuiltin isclass
        iscoroutine iscoroutinefunction isfunction isgenerator isgeneratorfunction ismethod ismodule
        signature
    """,
    "os": """
        PathLike SEEK_CUR SEEK_END SEEK_SET _exit extsep fspath linesep makedirs mkdir path read remove
        rename replace rmdir sep unlink write
    """,
    "os.path": """
        basename commonpath commonprefix dirname exists extsep getsize isabs isdir isfile join lexists
        normpath sep split splitext
    """,
    "pathlib": "Path PosixPath PurePath PurePosixPath PureWindowsPath",
    "sys": """
        __stderr__ __stdin__ __stdout__ argv exc_info exception exit float_info get_int_max_str_digits
        getrecursionlimit intern maxsize maxunicode set_int_max_str_digits setrecursionlimit stderr stdin
        stdout
    """,
    "threading": """
        Barrier BoundedSemaphore BrokenBarrierError Condition Event Lock RLock Semaphore Thread ThreadError
        current_thread local main_thread
    """,
    "time": "sleep strptime struct_time",
    "traceback": """
        TracebackException format_exc format_exception format_exception_only print_exc print_exception
    """,
    "urllib": "",
    "uuid": "NAMESPACE_DNS NAMESPACE_OID NAMESPACE_URL NAMESPACE_X500 SafeUUID UUID uuid3 uuid5",
    "xml": "",
    "xml.etree": "",
}
"""Modules of which only these names are allowed."""

PASSED_ON = _words("cmath itertools math operator string")
"""Modules that a program may hand on as a value: they lead to no other module."""

CLOCK, PROCESS, MACHINE = "is a clock", "is the process's own", "is the machine's own"
ADDRESS, RANDOM = "follows from an address in memory", "is random without a seed"
ORDER = "has no order of its own; allowed: sorted(...)"
UNKNOWN = "is not on the list of names whose values follow from program and input"

_MODULE_REASONS: dict[str, str] = {
    CLOCK: "cProfile logging profile sched timeit zoneinfo",
    PROCESS: "_thread ctypes faulthandler mmap multiprocessing resource signal subprocess tracemalloc",
    MACHINE: "fcntl getpass grp locale platform pwd select shutil site socket ssl sysconfig tempfile",
    RANDOM: "secrets",
}

_NAME_REASONS: dict[str, str] = {
    CLOCK: """
        time.asctime time.ctime time.gmtime time.monotonic time.monotonic_ns time.perf_counter
        time.perf_counter_ns time.process_time time.process_time_ns time.strftime time.thread_time
        time.thread_time_ns time.time time.time_ns time.clock_gettime time.clock_gettime_ns os.times
        threading.Timer
    """,
    "follows from clock and time zone": "time.localtime time.mktime time.tzname time.timezone time.altzone",
    PROCESS: """
        os.getpid os.getppid os.getpgid os.getuid os.getgid os.geteuid os.getegid os.getlogin os.fork
        os.system os.popen os.kill sys.getrefcount sys.getallocatedblocks sys._getframe sys.modules
        sys.settrace sys.setprofile threading.active_count threading.enumerate threading.get_ident
        threading.get_native_id gc.collect gc.get_count gc.get_objects gc.get_referrers gc.get_stats
        inspect.stack inspect.currentframe
    """,
    MACHINE: """
        os.cpu_count os.environ os.environb os.fstat os.getcwd os.getcwdb os.getenv os.getloadavg os.lstat
        os.name os.stat os.statvfs os.uname os.path.abspath os.path.expanduser os.path.getatime
        os.path.getctime os.path.getmtime os.path.realpath sys.byteorder sys.executable sys.flags
        sys.getsizeof sys.hexversion sys.implementation sys.path sys.platform sys.prefix sys.version
        sys.version_info uuid.getnode
    """,
    RANDOM: "os.urandom os.getrandom random.SystemRandom uuid.uuid1 uuid.uuid4",
    ORDER: "os.listdir os.scandir os.walk asyncio.as_completed concurrent.futures.as_completed",
}

REASONS = MappingProxyType(
    {name: why for why, names in (*_MODULE_REASONS.items(), *_NAME_REASONS.items()) for name in names.split()}
)
"""Why a module or a name is not allowed, if there is a better reason than ``UNKNOWN``."""

WITH_ARGUMENTS = MappingProxyType({"time.gmtime": 1, "time.asctime": 1, "time.strftime": 2})
"""Clocks that only convert a time if they are given one: the number of arguments that they need."""

IN_PLACES = frozenset(
    [*WITH_ARGUMENTS, *["os.fstat", "os.stat", "os.listdir", "os.scandir", "sys.version_info", "gc.collect"]]
)
"""Names that ``trace_gym.admission.reading`` allows in some places. An import of them is none of these."""

BUILTINS: MappingProxyType[str, str] = MappingProxyType(
    {
        "id": ADDRESS,
        "breakpoint": UNKNOWN,
        "compile": "makes code that cannot be read beforehand",
        "copyright": UNKNOWN,
        "credits": UNKNOWN,
        "help": UNKNOWN,
        "license": UNKNOWN,
    }
)
"""Builtin names that are not allowed. What ``trace_gym.admission.guards`` guards is allowed here."""

MODULE_NAMES = _words("__build_class__ __builtins__ __cached__ __file__ __import__ __loader__ __spec__")
"""Names of every module, and two builtins, that are not allowed even if the program binds them."""

SPECIAL_MEMBERS = _words("""
    __abs__ __abstractmethods__ __add__ __aenter__ __aexit__ __aiter__ __and__ __anext__ __annotations__
    __args__ __await__ __bases__ __bool__ __bytes__ __call__ __cause__ __ceil__ __class__ __class_getitem__
    __complex__ __contains__ __context__ __copy__ __dataclass_fields__ __deepcopy__ __defaults__ __del__
    __delattr__ __delete__ __delitem__ __dict__ __dir__ __divmod__ __doc__ __enter__ __eq__ __exit__
    __float__ __floor__ __floordiv__ __format__ __ge__ __get__ __getattr__ __getattribute__ __getitem__
    __gt__ __iadd__ __iand__ __ifloordiv__ __ilshift__ __imatmul__ __imod__ __imul__ __index__ __init__
    __init_subclass__ __instancecheck__ __int__ __invert__ __ior__ __ipow__ __irshift__ __isub__ __iter__
    __itruediv__ __ixor__ __kwdefaults__ __le__ __len__ __length_hint__ __lshift__ __lt__ __match_args__
    __matmul__ __members__ __missing__ __mod__ __module__ __mro__ __mul__ __name__ __ne__ __neg__ __new__
    __next__ __notes__ __or__ __orig_bases__ __origin__ __parameters__ __pos__ __post_init__ __pow__
    __prepare__ __qualname__ __radd__ __rand__ __rdivmod__ __repr__ __reversed__ __rfloordiv__ __rlshift__
    __rmatmul__ __rmod__ __rmul__ __ror__ __round__ __rpow__ __rrshift__ __rshift__ __rsub__ __rtruediv__
    __rxor__ __set__ __set_name__ __setattr__ __setitem__ __slots__ __str__ __sub__ __subclasscheck__
    __subclasshook__ __suppress_context__ __truediv__ __trunc__ __wrapped__ __xor__
""")
"""Members with two underscores on both sides that any object may be asked for."""

FRAME_MEMBERS = _words("""
    ag_code ag_frame co_code co_filename cr_code cr_frame f_back f_builtins f_code f_globals f_lasti
    f_locals f_trace gi_code gi_frame tb_frame tb_lasti
""")
"""Members that lead to frames and code, and from there to everything."""

MEMBERS_BY_MODULE: MappingProxyType[str, dict[str, str]] = MappingProxyType(
    {
        "asyncio": {"time": CLOCK, "as_completed": ORDER},
        "concurrent.futures": {"as_completed": ORDER},
        "datetime": dict.fromkeys(("now", "today", "utcnow"), CLOCK)
        | dict.fromkeys(("astimezone", "fromtimestamp"), "follows from the time zone"),
        "pathlib": dict.fromkeys(
            ("absolute", "cwd", "expanduser", "group", "home", "lstat", "owner", "resolve", "stat"), MACHINE
        )
        | dict.fromkeys(("glob", "iterdir", "rglob", "walk"), ORDER),
        "statistics": {"samples": RANDOM},
        "threading": dict.fromkeys(("ident", "native_id"), PROCESS),
        "weakref": {"getweakrefs": ORDER},
    }
)
"""Members of any object that are not allowed in a program that imports a module."""

MEMBERS_WITH_ARGUMENTS = MappingProxyType({"astimezone": 1, "fromtimestamp": 2, "samples": 2})
"""Such members that are allowed with this many arguments: the last one is a time zone, or a seed."""


MODULES = (*sorted(_WHOLE), *sorted(_PART))
"""All modules on the list."""


def is_module(path: str) -> bool:
    """Returns whether a module is on the list."""
    return path in _WHOLE or path in _PART


def is_standard(path: str) -> bool:
    """Returns whether a module is in the standard library."""
    return path.partition(".")[0] in sys.stdlib_module_names


@lru_cache(maxsize=256)
def names_of(path: str) -> frozenset[str]:
    """Returns the allowed names of a module on the list, without the modules below it."""
    if path == "builtins":
        module = importlib.import_module("builtins")
        return frozenset(name for name in dir(module) if name[0] != "_") - BUILTINS.keys()
    if path in _PART:
        return _words(_PART[path])
    module = importlib.import_module(path)
    public = getattr(module, "__all__", None) or [name for name in dir(module) if name[0] != "_"]
    return frozenset(
        name for name in public if not isinstance(getattr(module, name, None), ModuleType)
    ) - _words(_LEFT_OUT.get(path, ""))


def why_not(path: str) -> str:
    """Returns why a module or name that is not allowed is not, as the end of a sentence."""
    if path in REASONS:
        return REASONS[path]
    module = path.partition(".")[0]
    return _MODULE_OF.get(module, UNKNOWN)


_MODULE_OF = {name: why for why, names in _MODULE_REASONS.items() for name in names.split()}
