"""Ask a language model behind an OpenAI-compatible server: vLLM, llama.cpp, Ollama or hosted.

The key comes from the environment variable EQFORGE_MODEL_KEY and from no setting. If a server
repeats it, it is redacted before anything else reads the text.
"""

import base64
import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from eqforge.core.errors import BuildError, EqforgeError, InputError
from eqforge.core.identity import fingerprint
from eqforge.core.signals import held, released
from eqforge.core.urls import public
from eqforge.core.visible import shortened
from eqforge.generators.text.llm.model import Answer, Question

if TYPE_CHECKING:
    import openai
    from anyio.from_thread import BlockingPortal

ENDPOINT_VERSION: Final = 1
KEY: Final = "EQFORGE_MODEL_KEY"
TRIES = 18
"""Number of tries per question, over about two minutes: openai waits up to 8 s between tries unless
the server says how long."""
MAX_ANSWER_CHARS: Final = 20_000
_PASSING: Final = frozenset((408, 409, 429))
"""Temporary statuses, besides server errors from 500 on: openai tries again."""
_FILTERED: Final = frozenset(("content_filter", "content_policy_violation"))
_ADDRESS: Final = re.compile(r"(?:(?P<name>\S.*?)@)?(?P<url>https?://\S*)")
_SEEDS: Final = 2**31  # llama.cpp's seeds have 32 bits


@dataclass(frozen=True, kw_only=True, slots=True)
class Address:
    """A model of a server.

    Attributes:
      base: the server's address up to `/v1`.
      chat: whether to use its chat template; otherwise it continues the bare prompt.
    """

    name: str
    base: str
    chat: bool

    @property
    def url(self) -> str:
        return f"{self.base}/chat/completions" if self.chat else f"{self.base}/completions"


def is_endpoint(model: str) -> bool:
    return _ADDRESS.fullmatch(model) is not None


def address_of(model: str) -> Address:
    """Parse `NAME@URL`."""
    found = _ADDRESS.fullmatch(model)
    assert found is not None  # is_endpoint
    url = found["url"].rstrip("/")
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise InputError(
            f"{public(url)}: the address of a language model must not contain a password or a "
            f"query. Set the key in the environment variable {KEY}."
        )
    if found["name"] is None or not parts.hostname:
        raise InputError(
            f"the language model {url}: expected NAME@URL, where NAME is the model's name on the "
            "server, such as llama-2-70b-chat@http://localhost:8000/v1"
        )
    base = url.removesuffix("/completions").removesuffix("/chat")
    return Address(name=found["name"], base=base, chat=url in (base, f"{base}/chat/completions"))


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Asks a model of a server.

    Attributes:
      at_once: maximum number of concurrent requests.
      timeout_s: limit per request.
      temperature, top_p: sampling of answers with a seed.
    """

    address: Address
    at_once: int
    timeout_s: float
    temperature: float
    top_p: float

    @property
    def fingerprint(self) -> str:
        """Digest of our settings that determine an answer, except the question."""
        return fingerprint(
            {
                "version": ENDPOINT_VERSION,
                "model": self.address.name,
                "url": self.address.url,
                "temperature": self.temperature,
                "top_p": self.top_p,
            }
        )

    def check(self) -> None:
        """Ask the server for its models, which costs nothing."""
        with self._client() as (portal, client):
            status, found = portal.call(self._request, client, "/models", None)
        if status in (401, 403):
            raise InputError(self._denied(status))
        models = found.get("data") if isinstance(found, dict) else None
        names = [str(each.get("id")) for each in models or () if isinstance(each, dict)]
        # `transformers serve` lists the models of the hub, but not the folder that it serves.
        is_folder = self.address.name.startswith("/")
        if names and self.address.name not in names and not is_folder:
            shown = shortened(", ".join(names), 500)
            raise InputError(f"{self.title}: the server does not have this model; it has {shown}")

    def answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        """Yield the index of each question and its answer, in order of arrival."""
        # The next question is sent when an answer has been taken, so that few are lost. After an
        # error or a signal, no more are sent; it is raised after the pending ones arrive. While
        # an answer is taken, a signal waits: it would end the loop and lose the pending answers.
        waiting, under_way = iter(enumerate(questions)), dict[Future[Answer], int]()
        failure: BaseException | None = None
        with held(), self._client() as (portal, client):
            while True:
                room = 0 if failure else self.at_once - len(under_way)
                for position, question in islice(waiting, room):
                    sent = portal.start_task_soon(self._answer, client, question)
                    under_way[sent] = position
                if not under_way:
                    break
                try:
                    with released():
                        finished = wait(under_way, return_when=FIRST_COMPLETED).done
                except KeyboardInterrupt as signal:
                    failure = failure or signal
                    continue
                for done in finished:
                    position = under_way.pop(done)
                    try:
                        answer = done.result()
                    except EqforgeError as error:
                        failure = failure or error
                        continue
                    yield position, answer
        if failure is not None:
            raise failure

    @contextlib.contextmanager
    def _client(self) -> "Iterator[tuple[BlockingPortal, openai.AsyncOpenAI]]":
        from anyio.from_thread import start_blocking_portal

        from eqforge.generators.text.llm.client import open_client

        client = open_client(self.address.base, _key(), self.at_once, self.timeout_s)
        with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
            yield portal, client

    async def _answer(self, client: "openai.AsyncOpenAI", question: Question) -> Answer:
        path = self.address.url.removeprefix(self.address.base)
        status, found = await self._request(client, path, self._body(question))
        error = found.get("error") if isinstance(found, dict) else None
        if status == 200 and not error:
            return self._read(found)
        details = error if isinstance(error, dict) else {"message": error or found}
        words = shortened(str(details.get("message") or details), 500)
        if status in (401, 403):
            raise InputError(self._denied(status))
        if status in _PASSING or status >= 500:
            raise BuildError(
                f"{self._said}: the server keeps answering with status {status} ({words}); run the "
                "same command again to resume"
            )
        if details.get("code") in _FILTERED or status in (400, 413, 422):
            return Answer(text="", model=self.address.name, refusal=words)
        hint = "; check that the address ends in /v1" if status == 404 else ""
        raise InputError(f"{self.title}: the server answered with status {status}: {words}{hint}")

    def _body(self, question: Question) -> dict[str, Any]:
        sampling: dict[str, float] = {"temperature": 0}
        if question.seed is not None:
            sampling = {
                "temperature": self.temperature,
                "top_p": self.top_p,
                "seed": question.seed % _SEEDS,
            }
        prompt: dict[str, Any] = {"prompt": question.prompt}
        if self.address.chat:
            content: Any = question.prompt
            if question.image:
                url = f"data:image/png;base64,{base64.b64encode(question.image).decode()}"
                content = [
                    {"type": "image_url", "image_url": {"url": url}},
                    {"type": "text", "text": question.prompt},
                ]
            prompt = {"messages": [{"role": "user", "content": content}]}
        return {
            "model": self.address.name,
            **prompt,
            **sampling,
            "max_tokens": question.max_new_tokens,
            "stream": False,
        }

    def _read(self, found: Any) -> Answer:
        """Read the answer of a response, whose fields may be missing or of any type."""
        try:
            choice = found["choices"][0]
            text = choice["message"]["content"] if self.address.chat else choice["text"]
        except (KeyError, IndexError, TypeError) as error:
            raise InputError(
                f"{self.title}: the response is not from an OpenAI-compatible server: "
                f"{shortened(str(found), 300)}"
            ) from error
        text = text if isinstance(text, str) else ""
        used = found.get("usage")
        used = used if isinstance(used, dict) else {}
        version = found.get("system_fingerprint") or "unversioned"
        end = str(choice.get("finish_reason"))
        return Answer(
            # JSON may hold a lone surrogate, which no file can.
            text=text[:MAX_ANSWER_CHARS].encode(errors="replace").decode(),
            model=f"{_plain(found.get('model') or self.address.name)}@{_plain(version)}",
            refusal="the server's content filter removed the answer" if end in _FILTERED else "",
            is_cut=end == "length",
            tokens_in=_count(used.get("prompt_tokens")),
            tokens_out=_count(used.get("completion_tokens")),
        )

    async def _request(
        self, client: "openai.AsyncOpenAI", path: str, body: dict[str, Any] | None
    ) -> tuple[int, Any]:
        import httpx2
        import openai

        from eqforge.generators.text.llm.client import without_key

        try:
            if body is None:
                response = await client.get(
                    path, cast_to=httpx2.Response, options={"max_retries": 0}
                )
            else:
                response = await client.post(
                    path, cast_to=httpx2.Response, body=body, options={"max_retries": TRIES - 1}
                )
        except openai.APIStatusError as error:
            response = error.response
        except openai.APIConnectionError as error:
            reason = shortened(" ".join(str(error.__cause__ or error).split()), 300)
            if body is None:
                raise InputError(f"{self.title} cannot be reached: {reason}") from None
            raise BuildError(
                f"{self._said}: the server does not answer ({reason}); run the same command again "
                "to resume"
            ) from None
        text = without_key(response.content.decode("utf-8", "replace"), _key(), KEY)
        try:
            return response.status_code, json.loads(text)
        except (ValueError, RecursionError):
            return response.status_code, text

    @property
    def _said(self) -> str:
        return f"{self.address.name}@{self.address.base}"

    @property
    def title(self) -> str:
        return f"the language model {self._said}"

    def _denied(self, status: int) -> str:
        known = "rejects the key in" if os.environ.get(KEY) else "needs a key; set it in"
        return f"{self.title}: the server {known} {KEY} ({status})"


def _key() -> str:
    found = os.environ.get(KEY, "").strip()
    if not found.isascii() or not found.isprintable():
        raise InputError(f"{KEY} contains characters other than printable ASCII")
    return found


def _plain(server_name: Any) -> str:
    """Shorten a server's name for itself, so that rows hold no path of its disk."""
    name = str(server_name)
    name = name.rstrip("/").rpartition("/")[2] if name.startswith("/") else name
    return "".join(letter for letter in name if letter.isprintable())[:100]


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
