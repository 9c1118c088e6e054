"""A server that has imported eqforge once, and forks a process for each command it is sent.

A new process imports Beam, NLTK and torch for ten seconds. The forked one runs the same program,
with the arguments, folder, environment and open streams of its caller, so that pipes work.
"""

import atexit
import gc
import json
import os
import socket
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from eqforge.core.sandbox.die_with_parent import start_program

PROGRAM = Path(sys.executable).with_name("eqforge")
BUILDING = (
    "eqforge.models.spec",
    "eqforge.pipelines.base.runner",
    "eqforge.schemas.dataset.documents",
    "eqforge.transforms.dataset.steps",
    "eqforge.transforms.engines.run",
    "eqforge.transforms.video.frames.extract",
    "eqforge.transforms.video.steps",
    "apache_beam.runners.portability.fn_api_runner",
    "cv2",
    "fsspec",
    "huggingface_hub.repocard_data",
    "imagehash",
    "PIL.JpegImagePlugin",
    "PIL.PngImagePlugin",
    "pyarrow.dataset",
    "rapidfuzz.fuzz",
    "scipy.fftpack",
    "skimage.exposure",
    "skimage.metrics._structural_similarity",
    "typeguard",
)
"""What a build imports when it needs it, which takes 2 s."""
_TEXTS_AND_MODELS = ("nltk", "torch", "transformers", "diffusers")
CLIENT = f"""#!{sys.executable} -IS
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect(os.path.join(os.path.dirname(__file__), "socket"))
request = dict(argv=sys.argv, folder=os.getcwd(), environment=dict(os.environ))
socket.send_fds(server, [b"0"], [0, 1, 2])
server.sendall(json.dumps(request).encode())
server.shutdown(socket.SHUT_WR)
sys.exit(int(server.makefile().read() or 1))
"""


@contextmanager
def warm_programs(folder: Path) -> Iterator[Path]:
    """Start a server; put its programs into a folder: `eqforge`, and `run` for Python code."""
    for name in ("eqforge", "run"):
        (folder / name).write_text(CLIENT)
        (folder / name).chmod(0o755)
    command = [sys.executable, "-m", "tests.warm", str(folder / "socket")]
    with start_program(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline(), "it listens"
        try:
            yield folder
        finally:
            server.terminate()


def _serve(path: str) -> None:
    for name in (*BUILDING, *_TEXTS_AND_MODELS):
        if find_spec(name.partition(".")[0]) is not None:
            import_module(name)
    assert threading.active_count() == 1, "a fork would lack the other threads"
    gc.freeze()  # so that a child copies no memory to look for what is free
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("listening", flush=True)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                break
            connection.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
    _, streams, _, _ = socket.recv_fds(connection, 1, 3)
    request = json.loads(connection.makefile().read())
    child = os.fork()
    if child != 0:
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(str(ended if ended >= 0 else 128 - ended).encode())
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    status: Any = 0
    try:
        _run(request["argv"])
    except SystemExit as left:
        status = left.code
    except BaseException:
        traceback.print_exc()
        status = 1
    if isinstance(status, str):
        print(status, file=sys.stderr)
        status = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(status or 0)  # without freeing the modules of the server, one by one


def _run(argv: list[str]) -> None:
    """Run a program as the main module of this process."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    if Path(argv[0]).name == "eqforge":
        sys.argv = [str(PROGRAM), *argv[1:]]
        sys.path[0] = str(PROGRAM.parent)
        main.__file__ = str(PROGRAM)
        code = compile(PROGRAM.read_bytes(), PROGRAM, "exec")
    else:
        sys.argv = ["-c"]
        sys.path[0] = ""
        code = compile(argv[1], "<string>", "exec")
    exec(code, vars(main))


if __name__ == "__main__":
    _serve(sys.argv[1])
