"""Checks for engines that open ports to other hosts.

Whoever reaches one of Beam's ports can run commands, as none has authentication. What eqforge
starts listens on Unix sockets of this user or on the loopback; what it cannot vouch for is refused,
unless the user says that others are kept out by other means.
"""

import contextlib
import os
import urllib.parse

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
    PrismRunnerOptions,
    StandardOptions,
)
from apache_beam.portability import common_urns

from eqforge.core.errors import InputError
from eqforge.transforms.engines import listening
from eqforge.transforms.engines.flink_parts import is_our_job_server
from eqforge.transforms.engines.placement import PlacementOptions, plain_name
from eqforge.transforms.engines.prism_parts import is_our_prism

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_EXTERNAL = ("EXTERNAL", common_urns.environments.EXTERNAL.urn)


def reach_this_machine_directly() -> None:
    """Keeps requests to this machine from going through a proxy.

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
    """Keeps ports that Beam opens in this process out of other hosts' reach, for the block."""
    if _is_allowed(options):
        return contextlib.nullcontext()
    return listening.at_files() if _kind(options) == "fnapi" else listening.at_loopback()


def check_ports(options: PipelineOptions) -> None:
    """Checks that no engine opens a port that other hosts reach, unless the user allows it.

    Raises:
      InputError: it does, or may.
    """
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
    """Returns what may listen to other hosts; None if nothing does."""
    kind, portable = _kind(options), options.view_as(PortableOptions)
    if kind in ("fnapi", "dataflow"):
        return None
    if portable.job_endpoint == "embed":
        return _open_to_workers(portable)
    if portable.job_endpoint:
        return None  # the server is not ours to start
    if kind == "prism":
        program = options.view_as(PrismRunnerOptions).prism_location
        if is_our_prism(program):
            return None
        return f"--prism_location {program}: Prism listens at all addresses, but for that of setup"
    if kind == "flink":
        jar = options.view_as(FlinkRunnerOptions).flink_job_server_jar
        if is_our_job_server(jar):
            return None
        return f"--flink_job_server_jar {jar}: Beam's ports in Java are open at all addresses"
    return f"--runner {options.view_as(StandardOptions).runner}: may listen at all addresses"


def _open_to_workers(portable: PortableOptions) -> str | None:
    """Returns what must listen to workers on other hosts, which cannot reach the loopback."""
    config = portable.environment_config or ""
    host = urllib.parse.urlsplit(config if "://" in config else f"//{config}").hostname
    if portable.environment_type not in _EXTERNAL or host in LOOPBACK:
        return None
    return f"--environment_config {config}: workers elsewhere need ports open at all addresses"
