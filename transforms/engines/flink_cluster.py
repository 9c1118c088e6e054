"""Queries to a running Flink cluster, through its REST API."""

import contextlib
import http.client
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eqforge.core.errors import InputError

TIMEOUT_S = 20
# Errors of a query if nothing answers, or something other than Flink.
NO_ANSWER = (OSError, http.client.HTTPException, ValueError, KeyError, TypeError)
MAX_ANSWER_BYTES = 16 << 20
_ADDRESS = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})")
_ENDED = ("FINISHED", "CANCELED", "FAILED")


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """The capacity of a cluster.

    Attributes:
      version: Flink's version, such as 1.19.3.
      task_managers: number of TaskManagers, at least 1.
      slots: number of tasks that they run at once, in total.
    """

    version: str
    task_managers: int
    slots: int


def is_address(master: object) -> bool:
    """Tells whether a value is a host and a port, and nothing else."""
    return isinstance(master, str) and _ADDRESS.fullmatch(master) is not None


def address_of(master: str) -> str:
    """Returns the host and port of a cluster.

    Args:
      master: as in `--flink_master`: a host and port, or a URL with nothing else.

    Raises:
      InputError: it is anything else.
    """
    found = re.sub("^https?://", "", master).removesuffix("/")
    if not is_address(found):
        raise InputError(f"--flink_master {master}: expected a host and a port, such as HOST:8081")
    return found


def is_embedded(master: str) -> bool:
    """Tells whether `--flink_master` asks for a cluster inside the job server."""
    return master.strip() in ("[local]", "[auto]")


def overview(master: str) -> Overview:
    """Returns the capacity of a cluster.

    Args:
      master: as in `--flink_master`: a host and port, or a URL.

    Raises:
      InputError: no cluster answers there, or it has no TaskManager.
    """
    address_of(master)
    try:
        found = _ask(master, "overview")
        known = Overview(
            version=found["flink-version"],
            task_managers=found["taskmanagers"],
            slots=found["slots-total"],
        )
    except NO_ANSWER as error:
        raise InputError(
            f"--flink_master {master}: no Flink cluster answers there ({error}); "
            "`deploy/flink/cluster up` starts one"
        ) from error
    if not known.slots:
        raise InputError(f"--flink_master {master}: the cluster has no TaskManager")
    return known


def cancel_jobs(master: str, name: str, timeout_s: float = 60.0) -> int:
    """Cancels the unfinished jobs of a name, and waits until they have ended.

    Returns:
      The number of jobs cancelled.

    Raises:
      TimeoutError: a job did not end in time.
      NO_ANSWER: the cluster does not answer.
    """
    jobs = list(_unended(master, name))
    for job in jobs:
        with contextlib.suppress(urllib.error.HTTPError):  # it has ended in the meantime
            _ask(master, f"jobs/{urllib.parse.quote(job, safe='')}?mode=cancel", method="PATCH")
    deadline = time.monotonic() + timeout_s
    while any(_unended(master, name)):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{master}: the job {name} does not end")
        time.sleep(0.2)
    return len(jobs)


def _unended(master: str, name: str) -> Iterator[str]:
    for job in _ask(master, "jobs/overview")["jobs"]:
        if job["name"] == name and job["state"] not in _ENDED:
            yield job["jid"]


def _ask(master: str, what: str, method: str = "GET") -> Any:
    root = master if "://" in master else f"http://{master}"
    request = urllib.request.Request(f"{root.rstrip('/')}/v1/{what}", method=method)
    with _opener().open(request, timeout=TIMEOUT_S) as answer:
        return json.loads(_read(answer) or "{}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirects."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _opener() -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(_NoRedirect)


def _read(answer: http.client.HTTPResponse) -> bytes:
    """Reads a response of limited length."""
    content, deadline = b"", time.monotonic() + TIMEOUT_S
    while piece := answer.read1(1 << 16):
        content += piece
        if len(content) > MAX_ANSWER_BYTES or time.monotonic() > deadline:
            raise TimeoutError("its answer has no end")
    return content
