"""`eqforge-beam-boot`: start a Beam worker in this Python when a runner asks for a process.

Runners on other machines start workers by Beam's container contract: a program is called with the
addresses of the runner's services, fetches the job's files, and becomes the worker. Beam ships that
program in its container images. This one needs no container, because eqforge is installed. Use it
with --environment_type=PROCESS, or as the --container_executable of Beam's worker pool.

Source: Beam's container contract, and `boot.go` of its Python container for the variables.
"""

import argparse
import os
import platform
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec
from apache_beam.portability import common_urns
from apache_beam.portability.api import (
    beam_artifact_api_pb2,
    beam_artifact_api_pb2_grpc,
    beam_provision_api_pb2,
    beam_provision_api_pb2_grpc,
    beam_runner_api_pb2,
)
from apache_beam.runners.job.utils import struct_to_dict
from apache_beam.runners.worker.channel_factory import GRPCChannelFactory

from eqforge.transforms.engines.listening import reach_this_machine_directly

FOLDER, LOG, VERSIONS = "EQFORGE_FOLDER", "EQFORGE_WORKER_LOG", "EQFORGE_VERSIONS"
TIMEOUT_S, FILE_TIMEOUT_S = 120, 1800
# Files that a job stages to be installed, by Beam's names for them.
_TO_INSTALL = ("requirements.txt", "extra_packages.txt", ".tar.gz", ".tar", ".zip", ".whl")


def main(argv: Sequence[str] | None = None) -> None:
    """Become a Beam worker; never return.

    The driver sets environment variables: the base of relative paths (EQFORGE_FOLDER), the file for
    the worker's messages (EQFORGE_WORKER_LOG) and the driver's versions (EQFORGE_VERSIONS).
    """
    arguments = _parse(sys.argv[1:] if argv is None else argv)
    _send_output_to(os.environ.get(LOG))
    _enter(os.environ.get(FOLDER))
    reach_this_machine_directly()
    check_versions(msgspec.json.decode(os.environ.get(VERSIONS, "{}")))
    info = _provision(arguments.provision_endpoint, arguments.id)
    files = _fetch(info, arguments)
    os.execve(
        sys.executable,
        [sys.executable, "-m", "apache_beam.runners.worker.sdk_worker_main"],
        os.environ | worker_variables(info, arguments, files),
    )


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="eqforge-beam-boot", description=__doc__)
    parser.add_argument("--id", required=True, help="the worker's name")
    parser.add_argument("--provision_endpoint", required=True, help="address of the service")
    for name in ("control_endpoint", "logging_endpoint", "artifact_endpoint"):
        parser.add_argument(f"--{name}", help="address to use if the provision service gives none")
    found = parser.parse_known_args(argv)[0]
    found.id = found.id.strip("'")  # Prism 2.77 puts quotes around it
    return found


def _leave(message: str) -> None:
    sys.exit(f"eqforge-beam-boot on {socket.gethostname()}: {message}")


def _send_output_to(log: str | None) -> None:
    """Append the worker's output to a file, because a pipe that nobody reads would block it."""
    os.dup2(2, 1)
    if log is not None and Path(log).parent.is_dir():
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(file, 1)
        os.dup2(file, 2)
        os.close(file)


def _enter(folder: str | None) -> None:
    if folder is None:
        return
    try:
        os.chdir(folder)
    except OSError as error:
        _leave(
            f"this host cannot open the folder {folder}: {error.strerror}. Start the build in a "
            "folder that all hosts share, such as the output folder."
        )


def check_versions(expected: dict[str, str]) -> None:
    """Check that this host has the driver's versions; others could write other bytes.

    A package that is missing here is no error: a step that needs it reports it.
    """
    for package, wanted in sorted(expected.items()):
        try:
            found = platform.python_version() if package == "python" else version(package)
        except PackageNotFoundError:
            continue
        if found != wanted:
            _leave(
                f"{sys.prefix} has {package} {found}, but the build was started with {wanted}. "
                "Install the same versions on all hosts."
            )


def _provision(endpoint: str, worker: str) -> Any:
    with GRPCChannelFactory.insecure_channel(endpoint) as channel:
        service = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
        request = beam_provision_api_pb2.GetProvisionInfoRequest()
        metadata = [("worker_id", worker)]
        try:
            return service.GetProvisionInfo(request, metadata=metadata, timeout=TIMEOUT_S).info
        except Exception as error:
            why = error.details() if hasattr(error, "details") else error
            _leave(f"the runner's provision service at {endpoint} did not answer: {why}")


def _fetch(info: Any, arguments: argparse.Namespace) -> str | None:
    if not info.dependencies:
        return None
    folder = Path(tempfile.mkdtemp(prefix="eqforge-beam-"))
    _delete_at_the_end(folder)
    (folder / "staged").mkdir()
    endpoint = info.artifact_endpoint.url or arguments.artifact_endpoint
    with GRPCChannelFactory.insecure_channel(endpoint) as channel:
        service = beam_artifact_api_pb2_grpc.ArtifactRetrievalServiceStub(channel)
        try:
            _fetch_into(folder / "staged", service, info.dependencies, arguments.id)
        except Exception as error:
            why = (error.details() if hasattr(error, "details") else error) or "no reason given"
            _leave(
                f"could not fetch the job's files from {endpoint}: {why}. Several hosts need an "
                "--artifacts_dir that all of them share."
            )
    return str(folder)


def _fetch_into(folder: Path, service: Any, files: Any, worker: str) -> None:
    api, metadata = beam_artifact_api_pb2, [("worker_id", worker)]
    request = api.ResolveArtifactsRequest(artifacts=files)
    found = service.ResolveArtifacts(request, metadata=metadata, timeout=TIMEOUT_S)
    for artifact in found.replacements:
        name = staged_name(artifact)
        wanted = api.GetArtifactRequest(artifact=artifact)
        with open(folder / name, "wb") as file:
            for piece in service.GetArtifact(wanted, metadata=metadata, timeout=FILE_TIMEOUT_S):
                file.write(piece.data)


def _delete_at_the_end(folder: Path) -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)  # the worker inherits it, and closes it by ending
    script = ("sh", "-c", 'read -r _; rm -rf -- "$1"', "sh", str(folder))
    subprocess.Popen(script, stdin=reader, start_new_session=True)
    os.close(reader)


def staged_name(artifact: Any) -> str:
    if artifact.role_urn != common_urns.artifact_roles.STAGING_TO.urn:
        _leave(f"the job contains a file with an unknown role: {artifact.role_urn}")
    payload = beam_runner_api_pb2.ArtifactStagingToRolePayload.FromString(artifact.role_payload)
    name = os.path.basename(payload.staged_name)
    if name.endswith(_TO_INSTALL):
        _leave(f"the job needs the package {name}; install it on every host before the build")
    return name


def worker_variables(info: Any, arguments: argparse.Namespace, files: str | None) -> dict[str, str]:
    endpoints = {"control": arguments.control_endpoint, "logging": arguments.logging_endpoint}
    services = {
        "control": info.control_endpoint.url or endpoints["control"],
        "logging": info.logging_endpoint.url or endpoints["logging"],
        "status": info.status_endpoint.url,
    }
    variables = {
        "WORKER_ID": arguments.id,
        "PIPELINE_OPTIONS": msgspec.json.encode(struct_to_dict(info.pipeline_options)).decode(),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }
    for name, address in services.items():
        if address:
            variables[f"{name.upper()}_API_SERVICE_DESCRIPTOR"] = f'url: "{address}"'
    return variables | ({} if files is None else {"SEMI_PERSISTENT_DIRECTORY": files})


if __name__ == "__main__":
    main()
