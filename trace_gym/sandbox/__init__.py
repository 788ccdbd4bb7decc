"""Running programs that nobody vouches for.

`run` runs one program in a sandbox of its own. A `Sandbox` keeps one warm worker a hash seed, and takes
milliseconds for a program. Both run it as `python FILE` would, under the running version of Python, and tell
how it ended: see `Limits` and `Result`.

What a program always gets
--------------------------

A fresh process of a bare interpreter: the standard library and no packages, an environment that holds
PYTHONHASHSEED alone, an empty working directory that is removed afterwards, its standard input, output and
error, and no other open file. Processor time, memory, the size of files, processes and open files are
limited, and the clock runs; it can raise none of these limits. No more of its output is read than allowed. It
has no privileges, even when the caller is root, and no way to gain any. It shares nothing with the programs
before and after it on the same worker: what it does to modules, files, signals or its directory ends with it.

What the level adds
-------------------

Which further protection there is depends on the machine. It is found out by trying, once in each process;
`Result.level` says what was in force, `require=` refuses to run with less, and nothing is taken back in
silence. From the strongest to the weakest:

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

"As root": where the caller is root. The program is then somebody else, to whom nothing on the machine
belongs, and can write only where everybody can.

1. Processes and threads together are at most `Limits.processes`, so one that forks without end soon fails to.
   Memory and processor time are limited for each of them.
2. Unless it kills the worker that would clear up after it, which at this level it can where it is not
   somebody else.
3. Other users' private files stay closed to it. But where the caller is root and the interpreter itself lies
   where only root can read, as below /root, it may read every file.

- "namespaces": user, mount, process, network, IPC and host name namespaces, and what "seccomp" has. A program
  sees a file system of its own: the standard library, the shared libraries that this needs, /dev/null,
  /dev/urandom and its directory. Needs a kernel, and a container, that allow user namespaces.
- "landlock": the kernel's Landlock (Linux 5.13 or newer), and what "seccomp" has.
- "seccomp": a filter of system calls (on x86-64, aarch64 and riscv64), and what "rlimits" has.
- "rlimits": limits.

Threads are at most `Limits.processes` as well. At level "landlock" as root, where the kernel does not count
them, memory alone limits them; at levels below "namespaces", if not as root, the kernel counts the caller's
other processes too, so that a few more or fewer may be had.

What no level promises
----------------------

A program knows the kernel's version, the time, and where the standard library lies. It may keep a processor
busy until its time is up, and attack the kernel through the system calls that are left to it. Its memory is
limited, but a machine that runs out of memory altogether chooses by itself whom it ends.

Where a program differs from `python FILE`
------------------------------------------

It cannot start processes: `os.fork`, `subprocess` and `multiprocessing` raise PermissionError. Nor can it
change a file's mode or times (`shutil.copy`, `os.utime`). Level "namespaces" has no /proc and no time zones.
Its text is read as UTF-8, whatever encoding it declares. Frames of the sandbox lie below its own: recursion
is too deep two calls earlier, and `traceback.print_stack` shows them.

Python 3.11 and Linux 5.3, or newer. On other systems `run` and `Sandbox` raise SandboxError.
"""

from .pool import Sandbox, run
from .probe import trouble
from .shapes import LEVELS, Job, Limits, Result

__all__ = ["LEVELS", "Job", "Limits", "Result", "Sandbox", "run", "trouble"]
