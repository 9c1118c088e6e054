"""Makes a local run with several processes fail, not hang, when one of them dies.

Beam 2.77's multi_processing mode does not notice that a worker was killed (by the system when
memory runs out, or by a crash in native code) and waits forever. The subclass here answers the
dead worker's open requests with an error. It relies on private names of Beam, which is why Beam's
minor version is pinned; a test kills a worker and checks that the run ends.
"""

import json
import os
import shlex
import signal
import threading
import time
from typing import Any

from eqforge.core.sandbox.die_with_parent import start_program
from eqforge.core.signals import blocked

_deaths: list[str] = []


def install(log: str) -> None:
    """Register the watched worker in Beam, which logs to a file, and forget earlier deaths."""
    _deaths.clear()
    from apache_beam.portability import python_urns
    from apache_beam.portability.api import beam_fn_api_pb2
    from apache_beam.runners.job.utils import struct_to_dict
    from apache_beam.runners.portability.fn_api_runner import worker_handlers

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
            message = f"a worker process died ({why}); its last words are in {log}"
            if not self._closing:
                _deaths.append(message)
            # A worker that died idle may still get requests, which nobody else would answer.
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
            # One that has not connected yet would not hear that it is over.
            if self.control_conn._state == worker_handlers.BeamFnControlServicer.UNSTARTED_STATE:
                self.worker.kill()
            super().close()

        def stop_worker(self) -> None:
            self.worker_thread.join(10)

    worker_handlers.WorkerHandler.register_environment(python_urns.SUBPROCESS_SDK, bytes)(
        WatchedWorker
    )


def death(wait_s: float = 2.0) -> str | None:
    """Return how a worker died since `install`; waits, as Beam may notice before us."""
    deadline = time.monotonic() + wait_s
    while not _deaths and time.monotonic() < deadline:
        time.sleep(0.02)
    return _deaths[0] if _deaths else None
