"""What runs on the other side: the worker process, and the locks that it puts on each program.

A worker is a bare interpreter (`-S -s -P -X utf8`) that imports this package as `jail`, so nothing here
imports the rest of the project. Whatever a worker has imported is copied and cleared away with every program:
hence `_socket` instead of `socket`, and imports for type checkers alone.

Bottom to top: `kernel` (system calls) → `filter` (seccomp), `landlock`, `mounts` (namespaces) → `locks` (a
program's process ties its own hands) → `keeper` (waits for it, and leaves nothing of it behind) → `worker`
(takes orders); beside them `wire` (what it is told), `program` (runs the text), `ending`, `sweep_files`,
`sweep_processes` and `survey`.
"""
