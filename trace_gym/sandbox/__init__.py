"""A sandbox for untrusted programs.

``run`` runs one program in its own sandbox. A ``Sandbox`` keeps one warm worker per hash seed, and takes
milliseconds per program. Both run the program as ``python FILE`` does, under the running version of Python,
and return how it ended: see ``Limits`` and ``Result``.

Protection at every level
-------------------------

A program gets a fresh process of a bare interpreter:

- It has the standard library and no packages. Its environment contains only PYTHONHASHSEED.
- It has an empty working directory, which is removed afterwards, and standard input, output and error. It has
  no other open file.
- Processor time, wall time, memory, sizes of files, processes and open files are limited. The program cannot
  raise these limits. The sandbox reads no more output than allowed.
- It has no privileges, even if the caller is root, and cannot gain any.
- It shares nothing with other programs on the same worker. Its changes to modules, files, signals or its
  directory end with it.

Protection by level
-------------------

Further protection depends on the machine. A trial in each process finds the level. ``Result.level`` is the
level in force, and ``require=`` refuses to run at a weaker one. From the strongest to the weakest:

==========================================  ==========  ========  =======  =======
A program cannot                            namespaces  landlock  seccomp  rlimits
==========================================  ==========  ========  =======  =======
start a process                             yes         yes       yes      no (1)
leave a process behind                      yes         yes       yes      yes (2)
signal or slow down other processes         yes         yes       yes      as root
look into other processes                   yes         yes       as root  as root
open a socket, on the loopback too          yes         yes       yes      no
share memory, queues or keys with others    yes         yes       yes      no
change a file's mode, owner or times        yes         yes       yes      as root
write outside its directory                 yes         yes       as root  as root
read outside, but the standard library      yes         yes       no (3)   no (3)
fill the disk with many files               yes         no        no       no
find out that a file or process exists      yes         no        no       no
==========================================  ==========  ========  =======  =======

"As root" means: if the caller is root. The program then has a user id that no other process has and that owns
no file. It can write only where everybody can.

1. Processes and threads together are at most ``Limits.processes``, so a program that forks without end soon
   fails. Memory and processor time are limited per process.
2. The exception is a program that kills its worker, which would end the processes. At this level a program
   can kill it if the program has the worker's user id.
3. Other users' private files stay closed to the program. But if the caller is root and only root can read the
   interpreter, as below /root, the program may read every file.

- "namespaces": user, mount, process, network, IPC and host name namespaces, and the protection of "seccomp".
  A program sees its own file system: the standard library, the shared libraries that it needs, /dev/null,
  /dev/urandom and its directory. The kernel and the container must allow user namespaces.
- "landlock": the kernel's Landlock (Linux 5.13 or newer), and the protection of "seccomp".
- "seccomp": a filter of system calls (on x86-64, aarch64 and riscv64), and the protection of "rlimits".
- "rlimits": limits.

Threads are at most ``Limits.processes`` as well, with two exceptions. At level "landlock" as root the kernel
does not count threads, so only memory limits them. At levels below "namespaces", if the caller is not root,
the kernel counts the caller's other processes too, so the limit may be off by a few.

Risks at every level
--------------------

A program can read the kernel's version, the time, and the standard library's path. It can keep a processor
busy until its time is up, and attack the kernel through the system calls that are left. Its memory is
limited, but a machine that runs out of memory chooses itself which process to end.

Differences from ``python FILE``
--------------------------------

- A program cannot start processes: ``os.fork``, ``subprocess`` and ``multiprocessing`` raise PermissionError.
- It cannot change a file's mode or times (``shutil.copy``, ``os.utime``).
- Level "namespaces" has no /proc and no time zones.
- The text is read as UTF-8, whatever encoding it declares.
- The sandbox's frames are below the program's: recursion is too deep two calls earlier, and
  ``traceback.print_stack`` shows these frames.

The sandbox needs Python 3.11 and Linux 5.3, or newer. Elsewhere ``run`` and ``Sandbox`` raise SandboxError.
"""

from .pool import Sandbox, run
from .probe import trouble
from .shapes import LEVELS, Job, Limits, Result

__all__ = ["LEVELS", "Job", "Limits", "Result", "Sandbox", "run", "trouble"]
