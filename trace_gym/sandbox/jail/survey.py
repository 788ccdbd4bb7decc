"""A script that prints the files that this interpreter needs, as a Python literal.

It loads every extension module of the standard library without importing it, and asks the dynamic linker for
the loaded libraries.
"""

from __future__ import annotations

import ctypes
import glob
import os
import sys


class _Loaded(ctypes.Structure):
    """The first fields of the C library's ``dl_phdr_info``."""

    _fields_ = (("address", ctypes.c_void_p), ("name", ctypes.c_char_p))


def _libraries() -> list[str]:
    """Returns the path at which the dynamic linker found each shared object of this process."""
    names: list[str] = []

    def visit(loaded: ctypes._Pointer[_Loaded], size: int, data: int | None) -> int:
        names.append(os.fsdecode(loaded.contents.name or b""))
        return 0

    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Loaded), ctypes.c_size_t, ctypes.c_void_p)
    ctypes.CDLL(None).dl_iterate_phdr(kind(visit), None)
    return [name for name in names if name.startswith("/")]


def survey() -> dict[str, dict[str, str]]:
    """Returns a map from the path used to the real path, for ``roots`` and for ``files``.

    ``roots`` are the directories of the standard library; ``files`` are shared libraries and their index.
    """
    roots: dict[str, str] = {}
    for path in sys.path:
        if os.path.exists(path) and not any(f"{path}/".startswith(f"{root}/") for root in roots):
            roots[path] = os.path.realpath(path)
    for path in sys.path:
        for module in glob.glob(os.path.join(glob.escape(path), "*.so")):
            if "_tkinter" in module:
                continue  # there are no windows inside, and tkinter needs a dozen libraries
            try:
                ctypes.CDLL(module, mode=os.RTLD_LAZY)
            except OSError:
                continue  # this machine lacks one of the module's libraries
    below = tuple(f"{root}/" for root in roots)
    wanted = [*_libraries(), "/etc/ld.so.cache"]
    files = {
        path: os.path.realpath(path) for path in wanted if os.path.exists(path) and not path.startswith(below)
    }
    return {"roots": roots, "files": files}


if __name__ == "__main__":
    print(ascii(survey()))
