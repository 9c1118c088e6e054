"""Where Beam's servers listen: on Unix sockets of this user, on the loopback, or not at all.

Beam 2.77 opens the ports for its workers on all interfaces, without authentication, and runs the
code that it is sent. It has no option for the address, so its servers in this process are given one
here. This relies on two of Beam's internal names, `grpc` in three of its modules and
`GrpcWorkerHandler.port_from_worker`; tests inspect the sockets of whole runs. An engine that opens
ports in a program of its own is rejected, unless the user says that other hosts are kept out.
"""

import contextlib
import itertools
import os
import re
import tempfile
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
)
from apache_beam.portability import common_urns

from eqforge.core.errors import InputError
from eqforge.transforms.engines.placement import PlacementOptions, plain_name
from eqforge.transforms.engines.run_folder import private_folder

LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = "[::]"
_EXTERNAL = ("EXTERNAL", common_urns.environments.EXTERNAL.urn)
# A socket's path, including the folder and file names added, has at most 108 bytes on Linux and 104
# elsewhere; gRPC parses it as a URI, in which `%`, `?`, `#` and `,` are special.
_FIT_PARENT = re.compile(r"[\w ./+=@~-]{1,72}", re.ASCII)

Bind = Callable[[Callable[[str], int], str], int | str]


def reach_this_machine_directly() -> None:
    """Keep requests to this machine from going through a proxy.

    gRPC and urllib send even requests for the loopback to the proxy named in `http_proxy`.
    """
    everybody = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    own = os.environ.get("no_grpc_proxy")  # noqa: SIM112 - the name that gRPC reads
    given = {"no_proxy": everybody, "no_grpc_proxy": own or everybody}
    for name, hosts in given.items():
        if hosts != "*":
            missing = [host for host in LOOPBACK if host not in hosts.split(",")]
            os.environ[name] = ",".join(filter(None, [hosts, *missing]))


def kept_to_this_machine(options: PipelineOptions) -> contextlib.AbstractContextManager[None]:
    """Keep ports that Beam opens in this process out of other hosts' reach, for the block."""
    if _is_allowed(options):
        return contextlib.nullcontext()
    return at_files() if _kind(options) == "fnapi" else at_loopback()


def check_ports(options: PipelineOptions) -> None:
    """Check that no engine opens a port that other hosts reach, unless the user allows it."""
    found = None if _is_allowed(options) else _open(options)
    if found is not None:
        raise InputError(
            f"{found}, so that whoever reaches this machine could run commands as you during the "
            "build; where a firewall or a network namespace keeps others out, add "
            "--allow_open_ports"
        )


def _is_allowed(options: PipelineOptions) -> bool:
    return bool(options.view_as(PlacementOptions).allow_open_ports)


def _kind(options: PipelineOptions) -> str:
    return plain_name(options.view_as(StandardOptions).runner or "")


def _open(options: PipelineOptions) -> str | None:
    """Return what may listen to other hosts; None if nothing here does."""
    kind, portable = _kind(options), options.view_as(PortableOptions)
    if portable.job_endpoint == "embed":
        return _open_to_workers(portable)
    flink = options.view_as(FlinkRunnerOptions)
    is_submitted = kind == "flink" and flink.flink_submit_uber_jar
    if kind in ("fnapi", "dataflow") or portable.job_endpoint or is_submitted:
        return None  # nothing, or a server that is not ours to start
    return f"--runner {options.view_as(StandardOptions).runner}: listens at all addresses"


def _open_to_workers(portable: PortableOptions) -> str | None:
    """Return what must listen to workers on other hosts, which cannot reach the loopback."""
    config = portable.environment_config or ""
    host = urllib.parse.urlsplit(config if "://" in config else f"//{config}").hostname
    if portable.environment_type not in _EXTERNAL or host in LOOPBACK:
        return None
    return f"--environment_config {config}: workers elsewhere need ports open at all addresses"


@contextlib.contextmanager
def at_files() -> Iterator[None]:
    """Make the block's servers for local workers listen on sockets only this user can open."""
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
    """Make the block's servers listen on the loopback where Beam would use all interfaces."""

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
    """Return the address at which a worker finds a server, from the result of its `bind`."""
    return port if isinstance(port, str) else f"localhost:{port}"


@contextlib.contextmanager
def _bound(bind: Bind) -> Iterator[None]:
    handlers, *others = _modules()
    with contextlib.ExitStack() as held:
        for module in (handlers, *others):
            held.enter_context(replaced(module, "grpc", _Grpc(vars(module)["grpc"], bind)))
        held.enter_context(replaced(handlers.GrpcWorkerHandler, "port_from_worker", _address))
        yield


def _modules() -> tuple[ModuleType, ...]:
    """Import Beam's modules that open ports, those for its own workers first."""
    from apache_beam.runners.portability import abstract_job_service
    from apache_beam.runners.portability.fn_api_runner import worker_handlers
    from apache_beam.runners.worker import worker_pool_main

    return worker_handlers, worker_pool_main, abstract_job_service


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    """Give an attribute of a library another value during the block."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)
