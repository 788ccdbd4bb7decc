"""Run by itself: which files does this interpreter need? Prints them as a Python literal.

Loads every extension module of the standard library, without importing it, and asks the dynamic linker what
came along.
"""

from __future__ import annotations

import ctypes
import glob
import os
import sys


class _Loaded(ctypes.Structure):
    """The head of the C library's `dl_phdr_info`."""

    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


def _libraries() -> list[str]:
    """The paths under which the dynamic linker found each shared object in this process."""
    names: list[str] = []

    def visit(loaded: ctypes._Pointer[_Loaded], size: int, data: int | None) -> int:
        names.append(os.fsdecode(loaded.contents.name or b""))
        return 0

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Loaded), ctypes.c_size_t, ctypes.c_void_p)
    ctypes.CDLL(None).dl_iterate_phdr(kind(visit), None)
    return [name for name in names if name.startswith("/")]


def survey() -> dict[str, dict[str, str]]:
    """Where things are looked for, and where they really are.

    `roots`: the directories of the standard library. `files`: shared libraries, and the index of those.
    """
    roots: dict[str, str] = {}
    for path in sys.path:
        if os.path.exists(path) and not any(f"{path}/".startswith(f"{root}/") for root in roots):
            roots[path] = os.path.realpath(path)
    for path in sys.path:
        for module in glob.glob(os.path.join(glob.escape(path), "*.so")):
            if "_tkinter" in module:
                continue  # there are no windows inside, and it takes a dozen libraries
            try:
                ctypes.CDLL(module, mode=os.RTLD_LAZY)
            except OSError:
                continue  # lacks a library that this machine does not have, inside or outside
    below = tuple(f"{root}/" for root in roots)
    wanted = [*_libraries(), "/etc/ld.so.cache"]
    files = {
        path: os.path.realpath(path) for path in wanted if os.path.exists(path) and not path.startswith(below)
    }
    return {"roots": roots, "files": files}


if __name__ == "__main__":
    print(ascii(survey()))
