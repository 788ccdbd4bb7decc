"""A sandbox for untrusted programs.

``run`` runs one program in its own sandbox. A ``Sandbox`` keeps one warm worker per hash seed, and takes
milliseconds per program. Both run the program as ``python FILE`` does, under the running version of Python,
and return how it ended: see ``Limits`` and ``Result``.

The two levels
--------------

- "namespaces" is a promise. Untrusted programs need it, and ``run`` and ``Sandbox`` require it by default.
  If the machine does not have it, SandboxError says why and how to get it.
- "limits" is no protection. A program runs as an ordinary process with limits of time, memory and output:
  it can read, write, connect and leave behind whatever its user can. ``require="limits"`` accepts this
  risk. It is meant for programs that are known to be harmless, and for machines with nothing to lose.

``Result.level`` is the level in force. Nothing is downgraded silently, not even on a busy machine: a trial
that does not come to an end is an error. ``python -m trace_gym.sandbox`` prints what a machine offers, and
why not more.

What "namespaces" promises
--------------------------

A program gets a fresh process of a bare interpreter, alone in its namespaces. It cannot

- read or find any file but the standard library and the shared libraries that it needs, read-only,
  /dev/null, /dev/urandom and its own directory, which is empty at first and removed afterwards,
- write, make or leave anything outside of that directory, lock a file, or change a file's mode, owner or
  times,
- see the environment of its caller, an open file of it, its name, its users or its processes,
- start a process, execute another program, signal or trace a process, or outlive its own end,
- open a socket, on the loopback too, share memory or queues with anybody, or use the keys of the caller,
- gain a privilege, even if the caller is root, or make a system call that is not on a list of those that
  programs need (``jail/filter.py``),
- take more than its ``Limits``: processor time, wall time, memory, output, sizes and number of files
  (1,024), processes and threads together, open files, and 16 queued signals. Memory in pipes, in sockets
  and in the kernel is small, because the filter refuses what would enlarge it,
- change anything for the next program on the same worker: modules, files, signals, limits.

How the level is made: user, mount, process, network, IPC, host name and cgroup namespaces; no capabilities,
and no new ones; a filter that lists the allowed system calls; limits of the kernel. Two more walls stand
behind these where the machine has them: Landlock, and a control group for all memory and processes of a
worker (of version 2, or 1; root has them, and users to whom they are delegated). A program behaves in the
same way with and without them.

What is not promised
--------------------

- A program can read the time of day, the kernel's version, the number of processors, the path of the standard
  library, and its files' numbers of inodes and devices.
- A machine's uptime is hidden where the kernel has time namespaces, but for the processor's own counter.
- It can keep a processor busy until its time is up.
- It can attack the kernel through the system calls that are left, and processors by their side channels.
- A machine that runs out of memory chooses which process to end. The sandbox marks programs to go first.
- A caller that is killed (SIGKILL) while it has control groups leaves empty ones, which the next sandbox
  removes.
- At level "limits": everything that is not a limit. Processes of a program are ended after it, as far as
  they are found, and its directory is removed.

Differences from ``python FILE``
--------------------------------

- At level "namespaces" a program cannot start processes: ``os.fork``, ``subprocess`` and
  ``multiprocessing`` raise PermissionError, as sockets, locks on files (``fcntl.flock``, and so SQLite's
  files on disk), ``os.statvfs`` and changes of a file's mode or times do (``shutil.copy``, ``os.utime``).
  Rarer calls fail with ENOSYS, and ``os.fsync`` does nothing. There is no /proc and no time zone.
- The text is read as UTF-8, whatever encoding it declares.
- The sandbox's frames are below the program's: recursion is too deep two calls earlier, and
  ``traceback.print_stack`` shows these frames.

The sandbox needs Python 3.11 and Linux 5.3, or newer. Elsewhere ``run`` and ``Sandbox`` raise SandboxError.
"""

from .pool import Sandbox, run
from .probe import trouble
from .shapes import LEVELS, Job, Limits, Result

__all__ = ["LEVELS", "Job", "Limits", "Result", "Sandbox", "run", "trouble"]
