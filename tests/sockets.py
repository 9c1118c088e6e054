"""What listens where while a command runs, and who can reach it."""

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Iterable, Iterator

import psutil

Address = tuple[str, int]


def listening(process: int) -> Iterator[Address]:
    """The addresses and ports at which a process takes connections."""
    with contextlib.suppress(psutil.Error):
        for connection in psutil.Process(process).net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN:
                yield connection.laddr.ip.removeprefix("::ffff:"), connection.laddr.port


def is_loopback(address: Address) -> bool:
    return address[0] == "::1" or address[0].startswith("127.")


def outer_addresses() -> list[str]:
    """The addresses of this machine at which others find it."""
    found = [entry for entries in psutil.net_if_addrs().values() for entry in entries]
    return [
        entry.address
        for entry in found
        if entry.family == socket.AF_INET and not entry.address.startswith("127.")
    ]


def refuses_strangers(port: int) -> bool:
    """Tells whether nobody gets through to a port by an address that others know."""
    for address in outer_addresses():
        with contextlib.suppress(OSError), socket.create_connection((address, port), 2):
            return False
    return True


class Watch(threading.Thread):
    """Notes what listens in the processes that a command starts, and in others, until it ends."""

    def __init__(self, run: "subprocess.Popen[str]", others: Iterable[int] = ()) -> None:
        """Names the command, and other processes that work for it."""
        super().__init__(daemon=True)
        self.roots, self.over = (run.pid, *others), threading.Event()
        self.found: set[Address] = set()
        self.reached: set[Address] = set()
        self.files: dict[str, int] = {}

    def run(self) -> None:
        while not self.over.wait(0.2):
            for process in self.tree():
                for address in set(listening(process)) - self.found:
                    self.found.add(address)
                    if not refuses_strangers(address[1]):
                        self.reached.add(address)
                self.look_at_files(process)

    def tree(self) -> Iterator[int]:
        for root in self.roots:
            with contextlib.suppress(psutil.Error):
                yield root
                yield from (child.pid for child in psutil.Process(root).children(recursive=True))

    def look_at_files(self, process: int) -> None:
        """Notes the sockets that are files, with the rights of their folders."""
        with contextlib.suppress(psutil.Error, OSError):
            for connection in psutil.Process(process).net_connections("unix"):
                if connection.laddr and not connection.laddr.startswith(("\0", "@")):
                    folder = os.path.dirname(connection.laddr)
                    self.files[connection.laddr] = os.stat(folder).st_mode & 0o777

    def end(self) -> set[Address]:
        """Returns what listened where other hosts reach it."""
        self.over.set()
        self.join()
        return self.reached | {address for address in self.found if not is_loopback(address)}
