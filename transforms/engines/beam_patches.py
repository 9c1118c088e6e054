"""All patches to the internals of Beam 2.77, with the reason and Beam's issue.

They rely on private names, so Beam's minor version is pinned. tests/test_private_doors.py checks
that the names exist.
"""

import contextlib
import itertools
import json
import os
import re
import shlex
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import python_urns
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.job.utils import struct_to_dict
from apache_beam.runners.portability import abstract_job_service
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.runners.worker import sdk_worker, worker_pool_main
from apache_beam.transforms import userstate
from apache_beam.utils import interactive_utils

from eqforge.core.sandbox.die_with_parent import start_program
from eqforge.core.signals import blocked
from eqforge.transforms.engines.run_folder import private_folder

EVERYWHERE = "[::]"
# A socket's path, including the folder and file names added, has at most 108 bytes on Linux and 104
# elsewhere; gRPC parses it as a URI, in which `%`, `?`, `#` and `,` are special.
_FIT_PARENT = re.compile(r"[\w ./+=@~-]{1,72}", re.ASCII)
_deaths: list[str] = []

Bind = Callable[[Callable[[str], int], str], int | str]


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: object) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def outside_notebooks() -> contextlib.AbstractContextManager[None]:
    """Hide IPython from Beam during the block.

    In a notebook, Beam imports its interactive part, which needs a pandas older than 2.3
    (apache/beam#34979, open).
    """
    return replaced(interactive_utils, "is_in_ipython", lambda: False)


@contextlib.contextmanager
def without_printed_traces() -> Iterator[None]:
    """Keep workers in this process, such as Prism's, from printing a trace that they also log.

    Beam does both (apache/beam#5020, closed as wontfix).
    """
    vars(sdk_worker)["print"] = lambda *_values, **_options: None
    try:
        yield
    finally:
        del vars(sdk_worker)["print"]


@contextlib.contextmanager
def remembered() -> Iterator[None]:
    """Let Beam parse its options and inspect each class of DoFns once in the block.

    Otherwise it does so for every transform, which takes half of the time of a small build. All
    DoFns of a class have the same state and timers, as eqforge uses neither.
    """
    views: dict[tuple[int, type], PipelineOptions] = {}
    specs: dict[type, tuple[set, set]] = {}
    view_as, dofn_specs = PipelineOptions.view_as, userstate.get_dofn_specs

    def known_view(options: PipelineOptions, kind: type[PipelineOptions]) -> PipelineOptions:
        key = id(options._all_options), kind  # all views of some options share this dictionary
        if key not in views:
            views[key] = view_as(options, kind)
        return views[key]

    def known_specs(dofn: beam.DoFn) -> tuple[set, set]:
        kind = type(dofn)
        if kind not in specs:
            specs[kind] = dofn_specs(dofn)
        return specs[kind]

    with (
        replaced(PipelineOptions, "view_as", known_view),
        replaced(userstate, "get_dofn_specs", known_specs),
    ):
        yield


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
    """Make the block's servers listen on the loopback instead of all interfaces."""

    def bind(listen: Callable[[str], int], address: str) -> int:
        return listen(address.replace(EVERYWHERE, "localhost"))

    with _bound(bind):
        yield


class _Grpc:
    """A stand-in for `grpc` in Beam's modules; `bind` chooses where servers listen."""

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
    """Return a server's address for workers, from the result of its `bind`."""
    return port if isinstance(port, str) else f"localhost:{port}"


@contextlib.contextmanager
def _bound(bind: Bind) -> Iterator[None]:
    """Choose where Beam's servers of this process listen, for the block.

    Beam opens the ports for its workers on all interfaces, without authentication, and runs any
    code it receives. It has no option for the address (apache/beam#21087, open), and its job
    service listens everywhere on purpose (apache/beam#10161). Tests inspect the sockets of runs.
    """
    handler = worker_handlers.GrpcWorkerHandler
    with contextlib.ExitStack() as stack:
        for module in (worker_handlers, worker_pool_main, abstract_job_service):
            stack.enter_context(replaced(module, "grpc", _Grpc(vars(module)["grpc"], bind)))
        stack.enter_context(replaced(handler, "port_from_worker", _address))
        yield


def watch_workers(log: str) -> None:
    """Make a local run with several processes fail, not hang, when one of its workers dies.

    Beam's multi_processing mode does not notice a killed or crashed worker, and waits forever. We
    know of no Beam issue. The worker registered here logs to a file and answers a dead worker's
    open requests with an error. A test kills a worker and checks that the run ends.
    """
    _deaths.clear()
    base = worker_handlers.SubprocessSdkWorkerHandler

    class WatchedWorker(base):  # type: ignore[misc, valid-type]
        _closing = False

        def start_worker(self) -> None:
            with open(log, "ab") as messages, blocked():
                command = shlex.split(self._worker_command_line.decode())
                self.worker = start_program(command, stderr=messages, env=self._variables())
            self.worker_thread = threading.Thread(name="run_worker", target=self._run, daemon=True)
            self.worker_thread.start()

        def _variables(self) -> dict[str, str]:
            options = self.provision_info.provision_info.pipeline_options
            return os.environ | {
                "WORKER_ID": self.worker_id,
                "PIPELINE_OPTIONS": json.dumps(struct_to_dict(options)),
                "CONTROL_API_SERVICE_DESCRIPTOR": str(self.control_api_service_descriptor()),
                "LOGGING_API_SERVICE_DESCRIPTOR": str(self.logging_api_service_descriptor()),
            }

        def _run(self) -> None:
            status = self.worker.wait()
            why = f"exit status {status}" if status >= 0 else signal.Signals(-status).name
            message = f"a worker process died ({why}); its last messages are in {log}"
            if not self._closing:
                _deaths.append(message)
            # A worker that died idle may still get requests, which nothing else would answer.
            while not self._closing:
                self._fail_open_requests(message)
                time.sleep(0.2)

        def _fail_open_requests(self, message: str) -> None:
            open_requests: list[tuple[str, Any]] = list(self.control_conn._futures_by_id.items())
            for instruction_id, future in open_requests:
                future.set(
                    beam_fn_api_pb2.InstructionResponse(
                        instruction_id=instruction_id, error=message
                    )
                )

        def close(self) -> None:
            self._closing = True
            # A client that has not connected yet would miss the end.
            if self.control_conn._state == worker_handlers.BeamFnControlServicer.UNSTARTED_STATE:
                self.worker.kill()
            super().close()

        def stop_worker(self) -> None:
            self.worker_thread.join(10)

    worker_handlers.WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)(
        WatchedWorker
    )


def death(wait_s: float = 2.0) -> str | None:
    """Return how a worker died since `watch_workers`; wait, as Beam may notice before us."""
    deadline = time.monotonic() + wait_s
    while not _deaths and time.monotonic() < deadline:
        time.sleep(0.02)
    return _deaths[0] if _deaths else None
