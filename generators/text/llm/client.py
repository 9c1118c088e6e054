"""Open a client of an OpenAI-compatible server with limits on bytes and seconds per answer.

Kept separate so that `openai` is imported only to query a server.
"""

import functools
import re
import ssl
import urllib.request
from typing import Final
from urllib.parse import urlsplit

import anyio
import httpx2
import openai

CONNECT_S: Final = 20.0
MAX_BYTES: Final = 8 << 20
_SENT: Final = frozenset(
    ("accept", "authorization", "content-length", "content-type", "host", "user-agent")
)
"""Headers to send; openai adds others that describe this machine and its accounts."""
_LEAST_KEY: Final = 8
"""Minimum length of a key; a shorter one may be a part of any text."""


def open_client(base: str, key: str, at_once: int, timeout_s: float) -> openai.AsyncOpenAI:
    """Open a client that sends a key to one server and follows no redirect.

    Args:
      base: the server's address up to `/v1`.
      key: empty for none; the variables that openai reads are ignored.
      timeout_s: limit for each try, to the last byte of its answer.
    """
    limits = httpx2.Limits(max_connections=at_once, max_keepalive_connections=at_once)
    parts, proxy = urlsplit(base), None
    if not urllib.request.proxy_bypass(parts.hostname or ""):
        proxy = urllib.request.getproxies().get(parts.scheme)
    inner = httpx2.AsyncHTTPTransport(verify=_tls(), limits=limits, proxy=proxy)
    transport = _Bounded(inner, timeout_s, with_key=bool(key))
    return openai.AsyncOpenAI(
        base_url=base,
        api_key=key or "none",
        timeout=httpx2.Timeout(timeout_s, connect=CONNECT_S),
        http_client=httpx2.AsyncClient(transport=transport, follow_redirects=False),
    )


class _Bounded(httpx2.AsyncBaseTransport):
    """Reads whole answers of at most MAX_BYTES within a time.

    A longer answer counts as status 413: another try would be as long.
    """

    def __init__(
        self, inner: httpx2.AsyncBaseTransport, timeout_s: float, *, with_key: bool
    ) -> None:
        self._inner, self._timeout_s = inner, timeout_s
        self._sent = _SENT if with_key else _SENT - {"authorization"}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        for name in {*request.headers} - self._sent:
            del request.headers[name]
        request.headers["accept-encoding"] = "identity"  # a packed answer has no bound
        try:
            with anyio.fail_after(self._timeout_s):
                response = await self._inner.handle_async_request(request)
                try:
                    return await _read(response)
                finally:
                    await response.aclose()
        except TimeoutError as error:
            raise httpx2.ReadTimeout(f"no answer in {self._timeout_s:g} s") from error

    async def aclose(self) -> None:
        await self._inner.aclose()


async def _read(response: httpx2.Response) -> httpx2.Response:
    if response.headers.get("content-encoding", "identity") != "identity":
        return httpx2.Response(413, text="the answer is compressed")
    data = bytearray()
    async for part in response.aiter_raw():
        data += part
        if len(data) > MAX_BYTES:
            return httpx2.Response(413, text=f"the answer has more than {MAX_BYTES:,} bytes")
    return httpx2.Response(response.status_code, headers=response.headers, content=bytes(data))


@functools.cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def without_key(text: str, key: str, name: str) -> str:
    r"""Replace a key by its name in a server's text, including JSON-escaped forms.

    `/` may appear as `\/`, and every character as `\u002f`, escaped again for JSON inside JSON.
    """
    if len(key) < _LEAST_KEY:
        return text
    forms = (rf"(?:\\*{re.escape(each)}|\\+u(?i:{ord(each):04x}))" for each in key)
    return re.sub("".join(forms), f"[{name}]", text)
