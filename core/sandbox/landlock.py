"""Landlock: restrict this process's access to files, TCP and other processes for good.

Linux 5.13 introduced it, and reports the version it supports. Open files stay open. `seccomp`
denies what Landlock does not cover.

Source: the kernel's Documentation/userspace-api/landlock.rst and include/uapi/linux/landlock.h.
"""

import ctypes
import errno
import os
import stat
import struct
import sys
from collections.abc import Iterable
from typing import Final

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # on every architecture
_ASK_VERSION, _PATH_BENEATH = 1, 1
_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHARACTER_DEVICE, _MAKE_BLOCK_DEVICE = 1 << 6, 1 << 11
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_KNOWN_FROM: Final = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEVICE}
_ALL_OF_1 = (1 << 13) - 1
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_READ = _READ_FILE | _READ_DIR
# A process that can create a device, as root can, has access to its disk.
_NOWHERE = _EXECUTE | _MAKE_CHARACTER_DEVICE | _MAKE_BLOCK_DEVICE
_TCP, _ABSTRACT_SOCKETS_AND_SIGNALS = 0b11, 0b11


def version() -> int:
    try:
        return _call(_CREATE_RULESET, None, 0, _ASK_VERSION)
    except OSError:
        return 0


def restrict(read: Iterable[str], write: Iterable[str], *, network: bool) -> None:
    """Restrict this thread, and threads it starts, to reading and writing below these paths.

    Nothing can be executed. Missing paths are ignored. `network` keeps TCP.

    Raises:
      OSError: the kernel has no Landlock, or denies it.
    """
    known = version()
    files = _ALL_OF_1
    for since, right in _KNOWN_FROM.items():
        files |= right if known >= since else 0
    attributes = struct.pack(
        "=QQQ",
        files,
        _TCP if known >= 4 and not network else 0,
        _ABSTRACT_SOCKETS_AND_SIGNALS if known >= 6 else 0,
    )
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    ruleset = _call(_CREATE_RULESET, attributes, size, 0)
    try:
        for path in read:
            _allow(ruleset, path, files & _READ)
        for path in write:
            _allow(ruleset, path, files & ~_NOWHERE)
        no_new_privileges()
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def no_new_privileges() -> None:
    """Keep programs that this process executes from gaining privileges, as sudo would."""
    if _libc().prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "the system rejects no_new_privs")


def _allow(ruleset: int, path: str, rights: int) -> None:
    if sys.platform != "linux":
        return
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(opened).st_mode):
            rights &= _OF_FILES
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, opened), 0)
    finally:
        os.close(opened)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: int | bytes | None) -> int:
    if sys.platform != "linux":
        raise OSError(errno.ENOSYS, "Landlock exists only on Linux")
    words = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    result: int = _libc().syscall(ctypes.c_long(number), *words)
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
