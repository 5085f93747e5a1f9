"""What the Linux kernel offers an unprivileged process to fence itself in, through ctypes.

Each function either does what its name says or raises OSError; which of them worked is the caller's to record.
Namespaces take away the network, other processes and shared memory; Landlock (or read-only mounts) takes away the file
system; seccomp takes away sockets. All of it also holds for programs that the code starts, and none of it needs root.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 22, 36, 38
CLONE_NEWNS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = (
    0x20000,
    0x8000000,
    0x10000000,
    0x20000000,
    0x40000000,
)
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 0x1, 0x20, 0x1000, 0x4000, 0x40000
INNER_ID = 1000  # not 0: an ordinary id has no capabilities inside its namespace after the fork that runs the code
# Landlock (kernel 5.13): the same system call numbers on every architecture.
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1, 2, 4, 8
FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | 1 << 14  # those that a rule about a single file may name
RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
# seccomp: per machine the audit architecture and the numbers of socket and io_uring_setup.
SECCOMP_MACHINES = {"x86_64": (0xC000003E, 41, 425), "aarch64": (0xC00000B7, 198, 425)}


def _libc() -> ctypes.CDLL:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, f"not offered by {sys.platform}")
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> int:
    """Call a libc function; raises OSError when it returns -1."""
    result = int(getattr(_libc(), name)(*arguments))
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def _prctl(option: int, value: int) -> None:
    _call("prctl", option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0))


def adopt_orphans() -> None:
    """Make this process the parent of every descendant whose own parent ends."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send a signal to this process when its parent ends."""
    _prctl(PR_SET_PDEATHSIG, signal_number)


def enter_namespaces() -> tuple[int, int]:
    """New user, process, network and IPC namespaces; the next child is the first process of its process namespace.

    Returns the user and group id outside, for `map_ids`.
    """
    outside = os.geteuid(), os.getegid()
    _call("unshare", CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC)
    return outside


def map_ids(uid: int, gid: int) -> None:
    """Give the ids of outside a name inside, so that files stay ours."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{INNER_ID} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{INNER_ID} {gid} 1")


def mount_read_only(except_folder: str) -> None:
    """See every mount read-only from here on, but for one folder, which becomes the working folder.

    Needs the capabilities that `enter_namespaces` gives.
    """

    def mount(source: bytes | None, target: bytes, flags: int) -> None:
        _call("mount", source, target, None, ctypes.c_ulong(flags), None)

    _call("unshare", CLONE_NEWNS)
    kept = os.fsencode(os.path.realpath(except_folder))
    mount(None, b"/", MS_REC | MS_PRIVATE)
    mount(kept, kept, MS_BIND)
    names = {b"nosuid": 2, b"nodev": 4, b"noexec": 8, b"noatime": 1024, b"nodiratime": 2048, b"relatime": 1 << 21}
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        fields = line.split(b" ")
        target = fields[4].decode("unicode_escape").encode("latin-1")
        if target == kept:
            continue
        locked = sum(names.get(name, 0) for name in fields[5].split(b","))  # flags that may not be dropped
        try:
            mount(None, target, MS_REMOUNT | MS_BIND | MS_RDONLY | locked)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EACCES, errno.EINVAL):  # hidden under a later mount
                raise
    os.chdir(kept)


def drop_capabilities() -> None:
    """Give up every capability, for ever and also for programs started later."""
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _call("capset", struct.pack("=Ii", 0x20080522, 0), bytes(24))


def landlock_abi() -> int:
    """The kernel's version of Landlock. Raises OSError where there is none."""
    return _call("syscall", CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(1))


def landlock(folder: str, readable: tuple[str, ...], devices: tuple[str, ...]) -> None:
    """Allow this process and its descendants to write in `folder` only and to read there and in `readable` only.

    From version 6 of Landlock they cannot signal processes outside either.
    """
    abi = landlock_abi()
    everything = RIGHTS_BY_ABI.get(abi, RIGHTS_BY_ABI[3])
    scoped = 3 if abi >= 6 else 0  # abstract sockets and signals
    attributes = struct.pack("=QQQ", everything, 0, scoped)[: 24 if abi >= 6 else 8]
    ruleset = _call("syscall", CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    read = EXECUTE | READ_FILE | READ_DIR
    grants = [(folder, everything), *((p, read) for p in readable), *((p, READ_FILE | WRITE_FILE) for p in devices)]
    for path, rights in grants:
        if not os.path.exists(path):
            continue
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
        allowed = rights & everything if os.path.isdir(path) else rights & everything & FILE_RIGHTS
        rule = struct.pack("=Qi", allowed, opened)
        _call("syscall", ADD_RULE, ruleset, ctypes.c_int(1), rule, ctypes.c_uint32(0))
        os.close(opened)
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _call("syscall", RESTRICT_SELF, ruleset, ctypes.c_uint32(0))
    os.close(ruleset)


def forbid_sockets() -> None:
    """Refuse sockets of every family but AF_UNIX, and io_uring, to this process and its descendants (EACCES)."""
    if platform.machine() not in SECCOMP_MACHINES:
        raise OSError(errno.ENOSYS, f"no filter for {platform.machine()}")
    arch, socket_number, io_uring_number = SECCOMP_MACHINES[platform.machine()]
    load, equal, at_least, answer = 0x20, 0x15, 0x35, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000 | errno.EACCES
    program = (
        (load, 0, 0, 4),  # the architecture of the call: another one (32 bit) is refused
        (equal, 0, 6, arch),
        (load, 0, 0, 0),  # its number
        (at_least, 4, 0, 0x40000000),  # the x32 numbering of x86_64
        (equal, 3, 0, io_uring_number),
        (equal, 0, 3, socket_number),
        (load, 0, 0, 16),  # first argument: the address family
        (equal, 1, 0, 1),  # AF_UNIX
        (answer, 0, 0, refuse),
        (answer, 0, 0, allow),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in program))
    header = struct.pack("@HP", len(program), ctypes.addressof(code))
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    _call("prctl", PR_SET_SECCOMP, ctypes.c_ulong(2), header, ctypes.c_ulong(0), ctypes.c_ulong(0))
