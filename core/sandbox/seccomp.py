"""seccomp: deny this process some system calls for good.

It denies what `landlock` does not cover: sockets of every family, new processes, and access to
other processes or the kernel. Denied calls fail with EPERM.

Source: the kernel's Documentation/userspace-api/seccomp_filter.rst.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterator
from typing import Final

from eqforge.core.sandbox.landlock import no_new_privileges

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_PROGRAMS: Final = {"execve": (59, 221), "execveat": (322, 281), "fork": (57,), "vfork": (58,)}
# One of a pair of datagram sockets can be reconnected to another process's.
_NETWORK: Final = {"socket": (41, 198), "socketpair": (53, 199)}
_PROCESSES: Final = {
    "tkill": (200, 130),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
}
_KERNEL: Final = {
    "io_uring_setup": (425, 425),  # no filter sees its operations
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "fanotify_init": (300, 262),
    "syslog": (103, 116),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "vhangup": (153, 58),
    "iopl": (172,),
    "ioperm": (173,),
}
_OWNERS_AND_MODES: Final = {  # which Landlock does not restrict
    "chmod": (90,),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92,),
    "fchown": (93, 55),
    "lchown": (94,),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "utime": (132,),
    "utimes": (235,),
    "futimesat": (261,),
    "utimensat": (280, 88),
    "file_setattr": (469, 469),
}
_CLONE: Final = (56, 220)
_CLONE3: Final = (435, 435)
_ON_OWN_PROCESS: Final = {"kill": (62, 129), "tgkill": (234, 131)}
_LIMITS: Final = (302, 261)  # prlimit64, for which 0 is this process
_UNIX: Final = 1  # the family of the sockets that control this host's workers
_ON_OPEN_FILE: Final = (72, 25)  # fcntl
_OWNER_AND_SIGNAL: Final = (8, 10, 15)  # F_SETOWN, F_SETSIG, F_SETOWN_EX: who is sent which signal

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # classic BPF
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24  # in struct seccomp_data
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_X32 = 0x40000000  # the calls of x86-64's x32 ABI begin here
_CLONE_THREAD = 0x00010000
_SET_MODE_FILTER, _ALL_THREADS = 1, 1
_SECCOMP: Final = (317, 277)

_Step = tuple[int, int, int, int]


def restrict(*, network: bool, modes: bool) -> None:
    """Deny the calls to every thread of this process.

    It may still start threads and send itself signals.

    Args:
      network: whether sockets stay allowed, except Unix sockets.
      modes: whether owners, modes, times and attributes of files may be changed.

    Raises:
      OSError: the system has no seccomp, denies it, or has an unknown machine type.
    """
    machine = platform.machine()
    if sys.platform != "linux" or machine not in _ARCHITECTURES:
        raise OSError(
            errno.ENOSYS, f"eqforge has no list of system calls for {sys.platform} on {machine}"
        )
    steps = list(_program(machine, network=network, modes=modes))
    code = b"".join(struct.pack("=HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("@HP", len(steps), ctypes.addressof(buffer))
    no_new_privileges()
    libc = ctypes.CDLL(None, use_errno=True)
    number = ctypes.c_long(_SECCOMP[_column(machine)])
    if libc.syscall(number, ctypes.c_long(_SET_MODE_FILTER), ctypes.c_long(_ALL_THREADS), header):
        denied = ctypes.get_errno()
        raise OSError(denied, os.strerror(denied))


def _column(machine: str) -> int:
    return list(_ARCHITECTURES).index(machine)


def _program(machine: str, *, network: bool, modes: bool) -> Iterator[_Step]:
    column = _column(machine)
    yield _LOAD, 0, 0, _ARCHITECTURE
    yield _EQUAL, 1, 0, _ARCHITECTURES[machine]
    yield _RETURN, 0, 0, _KILL
    yield _LOAD, 0, 0, _NUMBER
    yield _AT_LEAST, 0, 1, _X32
    yield _denial(errno.EPERM)
    denied = _PROGRAMS | _PROCESSES | _KERNEL
    denied |= {} if network else _NETWORK
    denied |= {} if modes else _OWNERS_AND_MODES
    for numbers in denied.values():
        if column < len(numbers):
            yield _EQUAL, 0, 1, numbers[column]
            yield _denial(errno.EPERM)
    yield _EQUAL, 0, 1, _CLONE3[column]
    yield _denial(errno.ENOSYS)  # a filter cannot see its flags; the C library falls back to clone
    yield _EQUAL, 0, 4, _CLONE[column]
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    yield _ANY_BIT, 0, 1, _CLONE_THREAD
    yield _RETURN, 0, 0, _ALLOW
    yield _denial(errno.EPERM)
    for numbers in _ON_OWN_PROCESS.values():
        yield from _only_on(os.getpid(), numbers[column])
    yield from _only_on(0, _LIMITS[column])
    yield _EQUAL, 0, 4, _NETWORK["socket"][column]  # reached only with `network`
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    yield _EQUAL, 0, 1, _UNIX
    yield _denial(errno.EPERM)
    yield _RETURN, 0, 0, _ALLOW
    yield _EQUAL, 0, 2 + 2 * len(_OWNER_AND_SIGNAL), _ON_OPEN_FILE[column]
    yield _LOAD, 0, 0, _SECOND_ARGUMENT
    for command in _OWNER_AND_SIGNAL:
        yield _EQUAL, 0, 1, command
        yield _denial(errno.EPERM)
    yield _RETURN, 0, 0, _ALLOW
    yield _RETURN, 0, 0, _ALLOW


def _only_on(process: int, number: int) -> Iterator[_Step]:
    yield _EQUAL, 0, 4, number
    yield _LOAD, 0, 0, _FIRST_ARGUMENT
    yield _EQUAL, 0, 1, process
    yield _RETURN, 0, 0, _ALLOW
    yield _denial(errno.EPERM)


def _denial(code: int) -> _Step:
    return _RETURN, 0, 0, _ERRNO | code
