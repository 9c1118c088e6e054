"""Restricts Beam's servers to Unix sockets of this user or to the loopback.

Servers in this process get an address (`beam_patches.py`). An engine that opens ports in its own
program is rejected, unless the user confirms that other hosts are kept out.
"""

import contextlib
import os
import urllib.parse

from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
)
from apache_beam.portability import common_urns

from eqforge.core.errors import InputError
from eqforge.transforms.engines import beam_patches
from eqforge.transforms.engines.placement import PlacementOptions, plain_name

LOOPBACK = ("localhost", "127.0.0.1", "::1")
_EXTERNAL = ("EXTERNAL", common_urns.environments.EXTERNAL.urn)


def reach_this_machine_directly() -> None:
    """Keep requests to this machine from going through a proxy.

    gRPC and urllib send even loopback requests to the proxy named in `http_proxy`.
    """
    everybody = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    grpc_hosts = os.environ.get("no_grpc_proxy")  # noqa: SIM112 - the name that gRPC reads
    variables = {"no_proxy": everybody, "no_grpc_proxy": grpc_hosts or everybody}
    for name, hosts in variables.items():
        if hosts != "*":
            missing = [host for host in LOOPBACK if host not in hosts.split(",")]
            os.environ[name] = ",".join(filter(None, [hosts, *missing]))


def kept_to_this_machine(options: PipelineOptions) -> contextlib.AbstractContextManager[None]:
    """Keep ports that Beam opens in this process out of other hosts' reach, for the block."""
    if _is_allowed(options):
        return contextlib.nullcontext()
    return beam_patches.at_files() if _kind(options) == "fnapi" else beam_patches.at_loopback()


def check_ports(options: PipelineOptions) -> None:
    found = None if _is_allowed(options) else _open(options)
    if found is not None:
        raise InputError(
            f"{found}. Anyone who can reach this machine could run commands as you during the "
            "build. If a firewall or network namespace prevents this, pass --allow_open_ports."
        )


def _is_allowed(options: PipelineOptions) -> bool:
    return bool(options.view_as(PlacementOptions).allow_open_ports)


def _kind(options: PipelineOptions) -> str:
    return plain_name(options.view_as(StandardOptions).runner or "")


def _open(options: PipelineOptions) -> str | None:
    kind, portable = _kind(options), options.view_as(PortableOptions)
    if portable.job_endpoint == "embed":
        return _open_to_workers(portable)
    flink = options.view_as(FlinkRunnerOptions)
    is_submitted = kind == "flink" and flink.flink_submit_uber_jar
    if kind in ("fnapi", "dataflow") or portable.job_endpoint or is_submitted:
        return None  # nothing, or a server that is not ours to start
    return f"--runner {options.view_as(StandardOptions).runner} listens on all network addresses"


def _open_to_workers(portable: PortableOptions) -> str | None:
    config = portable.environment_config or ""
    host = urllib.parse.urlsplit(config if "://" in config else f"//{config}").hostname
    if portable.environment_type not in _EXTERNAL or host in LOOPBACK:
        return None
    return (
        f"--environment_config {config}: workers on other hosts need ports that are open to the "
        "network"
    )
