"""Running programs that nobody vouches for.

`run` runs one program in a sandbox of its own; a `Sandbox` keeps one warm worker a hash seed and runs a program in
milliseconds. Both run it as `python FILE` would, under the running version of Python, and tell how it ended: see
`Result` and `Limits`.

What a program always gets
--------------------------

A fresh process of a bare interpreter: the standard library and no packages, an environment that holds
PYTHONHASHSEED alone, an empty working directory that is removed afterwards, standard input, output and error, and
no other open file. It runs under limits on processor time, memory, the size of files, processes and open files,
none of which it can raise, and under a clock that it cannot see. Its output is read only up to the limit. It has
no privileges, even when the caller is root, and no way to gain any. It shares nothing with the programs before
and after it on the same worker: what it does to modules, files, signals or its directory ends with it.

What the level adds
-------------------

Which further protection there is depends on the machine. It is found out by trying, once in each process, and
`Result.level` says which was in force; `require=` refuses to run with less, and nothing falls back in silence.
From the strongest:

==========================================  ==========  ========  =======  =======
A program cannot                            namespaces  landlock  seccomp  rlimits
==========================================  ==========  ========  =======  =======
start a process                             yes         yes       yes      no (1)
leave a process behind                      yes         yes       yes      yes (2)
signal, trace or slow down other processes  yes         yes       yes      as root
open a socket, on the loopback too          yes         yes       yes      no
share memory, queues or keys with others    yes         yes       yes      no
change a file's mode, owner or times        yes         yes       yes      as root
write outside its directory                 yes         yes       as root  as root
read outside, but for the standard library  yes         yes       no (3)   no (3)
fill the disk with many small files         yes         no        no       no
see which files and processes there are     yes         no (4)    no       no
==========================================  ==========  ========  =======  =======

"As root": only where the caller is root; the program is then somebody else, whom nothing on the machine belongs
to, and can write only where everybody can.

1. Processes and threads together are limited to `Limits.processes`, so a program that forks without end soon
   fails to. Memory is limited for each of them.
2. As root, or as long as it does not kill its worker, which at this level it can.
3. Other users' private files stay closed to it, unless the caller is root and the interpreter itself lies where
   only root can read (as below /root); then it may read all files, and write none of them.
4. It can find out that a file exists, how large it is and to whom it belongs; processes, it cannot see.

- "namespaces": user, mount, process, network, IPC and host name namespaces, and what "seccomp" has. The program
  sees a file system of the standard library, the shared libraries that this needs, /dev/null, /dev/urandom and
  its own directory. Needs a kernel and a container that allow user namespaces.
- "landlock": the kernel's Landlock (Linux 5.13 on), and what "seccomp" has.
- "seccomp": a filter on system calls (x86-64, aarch64, riscv64) and limits.
- "rlimits": limits alone.

What no level keeps
-------------------

A program knows the kernel's version and the time, can use a processor until its time is up, and can attack the
kernel itself through the system calls that are left. It knows the path of the standard library. There is no
/proc and no time zone data at level "namespaces". One that leaves its limits of memory alone can still be ended by a
machine that runs out of memory.

A program may start threads, but no process (`os.fork`, `subprocess`, `multiprocessing` raise PermissionError). A
recursion error comes two frames earlier than under `python FILE`.

Python 3.11 and Linux 5.3 or newer. Elsewhere: SandboxError.
"""

from .pool import Sandbox, run
from .probe import trouble
from .shapes import LEVELS, Job, Limits, Result

__all__ = ["LEVELS", "Job", "Limits", "Result", "Sandbox", "run", "trouble"]
