"""Where Beam's servers in this process listen: on Unix sockets of this user, or on the loopback.

Beam 2.77 opens the ports for its workers on all interfaces, without authentication, and runs the
code that it is sent. It has no option for the address, so its servers are given one here. This
relies on two of Beam's internal names, `grpc` in three of its modules and
`GrpcWorkerHandler.port_from_worker`; tests inspect the sockets of whole runs.
"""

import contextlib
import itertools
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from eqforge.transforms.engines.run_folder import private_folder

EVERYWHERE = "[::]"
# A socket's path, including the folder and file names added, has at most 108 bytes on Linux and 104
# elsewhere; gRPC parses it as a URI, in which `%`, `?`, `#` and `,` are special.
_FIT_PARENT = re.compile(r"[\w ./+=@~-]{1,72}", re.ASCII)

Bind = Callable[[Callable[[str], int], str], int | str]


@contextlib.contextmanager
def at_files() -> Iterator[None]:
    """Makes the block's servers for local workers listen on sockets only this user can open."""
    parent = tempfile.gettempdir()
    with private_folder(parent if _FIT_PARENT.fullmatch(parent) else "/tmp") as folder:
        names = (Path(folder) / str(number) for number in itertools.count())

        def bind(listen: Callable[[str], int], _address: str) -> str:
            name = f"unix:{next(names)}"
            listen(name)
            return name

        with _bound(bind):
            yield


@contextlib.contextmanager
def at_loopback() -> Iterator[None]:
    """Makes the block's servers listen on the loopback where Beam would use all interfaces."""

    def bind(listen: Callable[[str], int], address: str) -> int:
        return listen(address.replace(EVERYWHERE, "localhost"))

    with _bound(bind):
        yield


class _Grpc:
    """A stand-in for `grpc` in Beam's modules, whose servers listen where `bind` says."""

    def __init__(self, grpc: Any, bind: Bind) -> None:
        self._grpc, self._bind = grpc, bind

    def __getattr__(self, name: str) -> Any:
        return getattr(self._grpc, name)

    def server(self, *arguments: Any, **options: Any) -> Any:
        server = self._grpc.server(*arguments, **options)
        listen = server.add_insecure_port
        server.add_insecure_port = lambda address: self._bind(listen, address)
        return server


def _address(_handler: object, port: int | str) -> str:
    """Returns the address at which a worker finds a server, from the result of its `bind`."""
    return port if isinstance(port, str) else f"localhost:{port}"


@contextlib.contextmanager
def _bound(bind: Bind) -> Iterator[None]:
    handlers, *others = _modules()
    with contextlib.ExitStack() as held:
        for module in (handlers, *others):
            held.enter_context(_replaced(module, "grpc", _Grpc(vars(module)["grpc"], bind)))
        held.enter_context(_replaced(handlers.GrpcWorkerHandler, "port_from_worker", _address))
        yield


def _modules() -> tuple[ModuleType, ...]:
    """Returns Beam's modules that open ports: those for its own workers first."""
    from apache_beam.runners.portability import abstract_job_service
    from apache_beam.runners.portability.fn_api_runner import worker_handlers
    from apache_beam.runners.worker import worker_pool_main

    return worker_handlers, worker_pool_main, abstract_job_service


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
