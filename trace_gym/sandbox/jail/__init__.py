"""The worker process, and the locks that it puts on each program.

A worker is a bare interpreter (``-S -s -P -X utf8``) that imports this package as ``jail``, so nothing here
imports the rest of the project. Each program copies and clears away the modules that its worker imported. So
the package imports ``_socket`` instead of ``socket``, and some modules only for type checkers.

Bottom to top: ``kernel`` (system calls) → ``filter`` (seccomp), ``mounts`` and ``clocks`` (namespaces) →
``locks`` (a program's process locks itself in) → ``keeper`` (waits for the program and cleans up) →
``worker`` (takes programs). Beside them: ``wire`` (messages), ``program`` (runs the text), ``sweep``
and ``survey``.
"""
