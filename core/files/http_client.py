"""How files behind https:// are asked for: with patience that ends, and with care for redirects."""

import functools
import ipaddress
from typing import Any

CONNECT_S = 20.0
READ_S = 60.0


@functools.cache
def http_options() -> dict[str, Any]:
    """Returns fsspec's options for https:// and http://; always the same object."""
    from fsspec.implementations.http import aiohttp  # which is what it opens URLs by

    trace = aiohttp.TraceConfig()
    trace.on_request_redirect.append(_check_redirect)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=READ_S)
    return {"client_kwargs": {"timeout": timeout, "trace_configs": [trace]}}


async def _check_redirect(_session: Any, _context: Any, asked: Any) -> None:
    """Refuses redirects out of https, and from elsewhere into this machine or its network.

    Files of one host often lie on another, so that other hosts are not refused.

    Raises:
      ValueError: the redirect is refused.
    """
    target = asked.url.join(type(asked.url)(asked.response.headers.get("Location", "")))
    if asked.url.scheme == "https" and target.scheme != "https":
        raise ValueError("the server leads from https:// to an address without encryption")
    if _is_inner(target.host) and not _is_inner(asked.url.host):
        raise ValueError("the server leads to an address of this machine or its network")


def _is_inner(host: str | None) -> bool:
    try:
        return not ipaddress.ip_address(host or "").is_global
    except ValueError:
        return host == "localhost"
