"""Models of OpenAI-compatible servers, over real connections to a small server."""

import contextlib
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eqforge.core.errors import BuildError, InputError
from eqforge.core.ledger import Ledger
from eqforge.core.signals import heard
from eqforge.generators.text.llm import endpoint
from eqforge.generators.text.llm.endpoint import KEY, Endpoint, address_of, is_endpoint
from eqforge.generators.text.llm.model import Answer, Question, ask
from eqforge.generators.text.llm.writer import WriterSettings, open_model
from tests.cases import cases_of
from tests.chat_server import MODEL, ChatServer, Say

cases = cases_of(__file__)

SECRET = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, and no model of another test."""
    monkeypatch.delenv(KEY, raising=False)
    open_model.cache_clear()


def serving(say: Say, **settings: Any) -> contextlib.AbstractContextManager[ChatServer]:
    return ChatServer(say, **settings).running()


def opened(server: ChatServer, **settings: Any) -> Endpoint:
    found = open_model(WriterSettings(model=server.model, **settings))
    assert isinstance(found, Endpoint)
    return found


def check_model(settings: WriterSettings) -> None:
    model = open_model(settings)
    assert isinstance(model, Endpoint)
    model.check()


def questions(*prompts: str, seed: int | None = None) -> list[Question]:
    return [Question(prompt=prompt, seed=seed, max_new_tokens=30) for prompt in prompts]


def upper(prompt: str, body: dict[str, Any]) -> str:
    return prompt.upper()


def test_an_address_names_model_server_and_form() -> None:
    for url, base, chat in (
        ("http://localhost:8000/v1", "http://localhost:8000/v1", True),
        ("https://a.b/v1/", "https://a.b/v1", True),
        ("https://a.b/v1/chat/completions", "https://a.b/v1", True),
        ("https://a.b/v1/completions", "https://a.b/v1", False),
    ):
        found = address_of(f"org/model:7b@{url}")
        assert (found.name, found.base, found.chat) == ("org/model:7b", base, chat)
    for other in ("some/folder", "org/model", "gs://bucket/model", "C@D"):
        assert not is_endpoint(other)


@pytest.mark.parametrize(
    ("model", "message"), cases("an_address_that_cannot_be_used_is_one_message_without_secrets")
)
def test_an_address_that_cannot_be_used_is_one_message_without_secrets(
    model: str, message: str
) -> None:
    assert is_endpoint(model)
    with pytest.raises(InputError, match=message) as raised:
        open_model(WriterSettings(model=model))
    assert "secret" not in str(raised.value)


def test_answers_come_with_model_version_and_tokens() -> None:
    with serving(upper) as server:
        (answer,) = ask(opened(server), questions("a dog"))

    assert answer == Answer(text="A DOG", model=f"{MODEL}-0613@fp_1", tokens_in=2, tokens_out=7)
    (body,) = server.asked
    assert body == {
        "model": MODEL,
        "messages": [{"role": "user", "content": "a dog"}],
        "temperature": 0,
        "max_tokens": 30,
        "stream": False,
    }


def test_a_seed_draws_and_fits_into_the_servers_32_bits() -> None:
    with serving(upper) as server:
        ask(opened(server, temperature=0.7), questions("a dog", seed=2**62 + 5))

    (body,) = server.asked
    assert (body["temperature"], body["top_p"], body["seed"]) == (0.7, 0.95, 5)


def test_the_bare_prompt_is_sent_where_the_address_ends_in_completions() -> None:
    with serving(upper) as server:
        model = open_model(WriterSettings(model=f"{server.model}/completions"))
        (answer,) = ask(model, questions("a dog"))

    assert answer.text == "A DOG"
    assert server.paths == ["/v1/completions"]
    assert "messages" not in server.asked[0]


def test_equal_questions_are_asked_once_and_known_ones_never(tmp_path: Path) -> None:
    memory = Ledger(root=str(tmp_path), step="answers", basis=None)
    with serving(upper) as server:
        model = opened(server)
        first = ask(model, questions("a", "b", "a"), memory)
        again = ask(model, questions("b", "c", "a"), memory)

    assert [answer.text for answer in first] == ["A", "B", "A"]
    assert [answer.text for answer in again] == ["B", "C", "A"]
    assert sorted(server.prompts) == ["a", "b", "c"]


def test_what_decides_an_answer_is_part_of_what_it_is_kept_by(tmp_path: Path) -> None:
    memory = Ledger(root=str(tmp_path), step="answers", basis=None)
    with serving(upper) as server:
        for settings in ({}, {"temperature": 0.9}, {"top_p": 0.5}, {"batch_size": 2}):
            ask(opened(server, **settings), questions("a"), memory)
        ask(opened(server), questions("a", seed=1), memory)

    assert len(server.asked) == 4  # how many are asked at once decides nothing


def test_requests_are_under_way_together_and_answers_keep_their_order() -> None:
    gate = threading.Barrier(4, timeout=20)

    def together(prompt: str, body: dict[str, Any]) -> str:
        gate.wait()
        return prompt

    prompts = [f"prompt {n}" for n in range(8)]
    with serving(together) as server:
        answers = ask(opened(server, batch_size=4), questions(*prompts))

    assert [answer.text for answer in answers] == prompts
    assert server.at_once == 4


@pytest.mark.parametrize("fault", [404, 500])
def test_a_list_of_models_that_does_not_come_is_no_error(fault: int) -> None:
    """`transformers serve` answers 500 where there is no cache of the hub."""
    with serving(upper) as server:
        server.models, server.retry_after = (fault, {"error": "no list"}), "60"
        check_model(WriterSettings(model=server.model))

    assert len(server.headers) == 1


@pytest.mark.parametrize("fault", [408, 429, 503, 0])
def test_what_passes_is_tried_again(fault: int) -> None:
    with serving(upper) as server:
        server.faults = [fault] * 3
        (answer,) = ask(opened(server), questions("a dog"))

    assert answer.text == "A DOG"
    assert len(server.paths) == 4


def test_an_answer_that_takes_too_long_is_asked_for_again() -> None:
    calls: list[str] = []

    def slow_once(prompt: str, body: dict[str, Any]) -> str:
        calls.append(prompt)
        if len(calls) == 1:
            threading.Event().wait(4)
        return prompt

    with serving(slow_once) as server:
        (answer,) = ask(opened(server, timeout_s=2), questions("a dog"))

    assert (answer.text, len(calls)) == ("a dog", 2)


def test_a_server_that_stays_away_stops_the_run_and_what_came_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Ledger(root=str(tmp_path), step="answers", basis=None)
    with serving(upper) as server:
        model = opened(server, batch_size=1)
        ask(model, questions("a"), memory)
        monkeypatch.setattr(endpoint, "TRIES", 3)
        server.faults = [503] * 3
        with pytest.raises(BuildError, match="run the same command again to resume"):
            ask(model, questions("a", "b"), memory)
        assert ask(model, questions("a", "b"), memory)[1].text == "B"
    assert server.prompts == ["a", "b"]

    with pytest.raises(BuildError, match="does not answer"):
        ask(model, questions("c"))


def test_a_server_is_checked_before_any_work() -> None:
    with serving(upper) as server:
        check_model(WriterSettings(model=server.model))
        check_model(WriterSettings(model=f"/models/llama@{server.url}"))  # a folder is in no list
        with pytest.raises(InputError, match=f"does not have this model; it has {MODEL}"):
            check_model(WriterSettings(model=f"other@{server.url}"))
        assert not server.asked
    with pytest.raises(InputError, match="cannot be reached"):
        check_model(WriterSettings(model=server.model, timeout_s=1))


def test_the_key_is_sent_and_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Not even where the server repeats it."""
    memory = Ledger(root=str(tmp_path), step="answers", basis=None)
    with serving(lambda prompt, body: f"{prompt} {SECRET}", key=SECRET) as server:
        settings = WriterSettings(model=server.model)
        with pytest.raises(InputError, match=f"needs a key; set it in {KEY}"):
            check_model(settings)
        monkeypatch.setenv(KEY, f"{SECRET}-wrong")
        with pytest.raises(InputError, match="rejects the key") as raised:
            check_model(settings)
        with pytest.raises(InputError, match="rejects the key") as asked:
            ask(opened(server), questions("a"))
        monkeypatch.setenv(KEY, SECRET)
        check_model(settings)
        (answer,) = ask(opened(server), questions("a"), memory)
        said = (400, {"error": {"message": f"bad {SECRET}"}})
        server.say = lambda prompt, body: said
        (refused,) = ask(opened(server), questions("b"), memory)

    assert answer.text == f"a [{KEY}]"
    assert refused.refusal == f"bad [{KEY}]"
    kept = [path.read_text() for path in tmp_path.rglob("*.json")]
    everything = [str(raised.value), str(asked.value), repr(settings), repr(open_model(settings))]
    for text in (*kept, *everything, *capfd.readouterr()):
        assert SECRET not in text
    assert len(kept) == 2


def test_a_key_that_no_header_can_hold_is_refused_without_showing_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(KEY, "sk-\nHost: other")
    with (
        serving(upper) as server,
        pytest.raises(InputError, match="other than printable ASCII") as raised,
    ):
        check_model(WriterSettings(model=server.model))
    assert "sk-" not in str(raised.value)


def test_a_redirect_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The key is for one server."""
    monkeypatch.setenv(KEY, SECRET)
    with serving(upper) as other:
        moved = (307, {"error": "moved", "to": f"{other.url}/chat/completions"})
        with (
            serving(lambda prompt, body: moved) as server,
            pytest.raises(InputError, match="answered with status 307: moved"),
        ):
            ask(opened(server), questions("a"))
    assert not other.headers


def test_words_of_a_refusal_in_another_form_are_told() -> None:
    said = (422, {"detail": [{"loc": ["body", "seed"], "msg": "unexpected"}]})
    with serving(lambda prompt, body: said) as server:
        (answer,) = ask(opened(server), questions("a"))
    assert "unexpected" in answer.refusal


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_refusal_is_of_one_question(status: int) -> None:
    def refuse(prompt: str, body: dict[str, Any]) -> Any:
        error = {"error": {"message": "the prompt is too long", "code": 400}}
        return (status, error) if "long" in prompt else prompt

    with serving(refuse) as server:
        answers = ask(opened(server), questions("long", "a", "b", "long too", "too long"))

    refused = "the prompt is too long"
    assert [answer.refusal for answer in answers] == [refused, "", "", refused, refused]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ((404, {"error": {"message": "no such model"}}), "answered with status 404: no such model"),
        (
            (404, b"<html>Not Found</html>"),
            "answered with status 404: <html>Not Found</html>; check that the address",
        ),
        ((200, b"<html>hello</html>"), "OpenAI-compatible server: <html>hello</html>"),
        ((200, {"choices": []}), "not from an OpenAI-compatible server"),
        ((200, [1, 2]), r"OpenAI-compatible server: \[1, 2\]"),
        ((200, {"error": {"message": "upstream", "code": 500}}), "status 200: upstream"),
    ],
)
def test_a_server_of_another_kind_is_told(said: Any, message: str) -> None:
    with serving(lambda prompt, body: said) as server, pytest.raises(InputError, match=message):
        ask(opened(server), questions("a"))


@pytest.mark.parametrize("content", [None, 7, ["a"], {"a": 1}, ""])
def test_an_answer_without_text_is_empty(content: Any) -> None:
    with serving(lambda prompt, body: content) as server:
        (answer,) = ask(opened(server), questions("a"))
    assert answer.text == ""


@pytest.mark.parametrize(("end", "is_cut"), [("length", True), ("stop", False), (None, False)])
def test_a_server_says_whether_an_answer_is_cut_off(end: str | None, is_cut: bool) -> None:
    choice = {"message": {"content": "x"}, "finish_reason": end}
    with serving(lambda prompt, body: (200, {"choices": [choice]})) as server:
        (answer,) = ask(opened(server), questions("a"))
    assert answer.is_cut == is_cut


def test_a_huge_answer_is_cut() -> None:
    with serving(lambda prompt, body: "word " * 1_000_000) as server:
        (answer,) = ask(opened(server), questions("a"))
    assert len(answer.text) == endpoint.MAX_ANSWER_CHARS


def test_an_answer_of_too_many_bytes_is_a_refusal_of_its_question() -> None:
    with serving(lambda prompt, body: prompt * (9 << 20 if prompt == "a" else 1)) as server:
        first, second = ask(opened(server, batch_size=1), questions("a", "b"))
    assert first.refusal == "the answer has more than 8,388,608 bytes"
    assert second.text == "b"
    assert server.prompts == ["a", "b"]  # not tried again


@contextlib.contextmanager
def dripping(start: bytes) -> Iterator[str]:
    """A server that sends a letter of its answer every 50 ms, and never ends."""
    with socket.create_server(("localhost", 0)) as listening:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    threading.Thread(target=drip, args=listening.accept()[:1], daemon=True).start()

        def drip(connection: socket.socket) -> None:
            with connection, contextlib.suppress(OSError):
                connection.sendall(start)
                while True:
                    connection.sendall(b" ")
                    time.sleep(0.05)

        threading.Thread(target=serve, daemon=True).start()
        yield f"m@http://localhost:{listening.getsockname()[1]}/v1"


@pytest.mark.parametrize(
    "start", [b"HTTP/1.1 200 OK\r\nA: ", b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{"]
)
def test_an_answer_that_drips_ends_in_time(start: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "TRIES", 1)
    began = time.monotonic()
    with dripping(start) as model, pytest.raises(BuildError, match="no answer in 1 s"):
        ask(open_model(WriterSettings(model=model, timeout_s=1)), questions("a"))
    assert time.monotonic() - began < 10


def test_accounts_of_other_services_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY"):
        monkeypatch.setenv(name, SECRET)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1")
    with serving(upper) as server:
        check_model(WriterSettings(model=server.model))
        ask(opened(server), questions("a"))
    for headers in server.headers:
        assert SECRET not in str(headers)
        assert not any(name.lower().startswith(("x-", "openai")) for name in headers)
        assert "Authorization" not in headers


@pytest.mark.parametrize(
    "form",
    [
        "sk-a/b+c=d",
        r"sk-a\/b+c=d",
        r"sk-a\u002fb\u002Bc=d",
        r"sk-a\\u002fb+c=d",
        "".join(rf"\u{ord(each):04x}" for each in "sk-a/b+c=d"),
    ],
)
def test_a_key_is_blotted_out_however_json_writes_it(
    form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY, "sk-a/b+c=d")
    said = (200, f'{{"choices": [{{"message": {{"content": "it is {form}"}}}}]}}'.encode())
    with serving(lambda prompt, body: said) as server:
        (answer,) = ask(opened(server), questions("a"))
    assert answer.text == f"it is [{KEY}]"


def test_half_a_character_of_an_answer_can_be_written() -> None:
    said = (200, rb'{"choices": [{"message": {"content": "A dog \ud83d\ude00 \ud83d"}}]}')
    with serving(lambda prompt, body: said) as server:
        (answer,) = ask(opened(server), questions("a"))
    assert answer.text == "A dog \N{GRINNING FACE} ?"


def test_what_the_filter_takes_is_a_refusal() -> None:
    code = (400, {"error": {"message": "filtered", "code": "content_filter"}})
    choice = {"message": {"content": "x"}, "finish_reason": "content_filter"}
    with serving(lambda p, b: code if p == "a" else (200, {"choices": [choice]})) as server:
        first, second = ask(opened(server), questions("a", "b"))
    assert first.refusal == "filtered"
    assert "filter" in second.refusal
    assert second.model == f"{MODEL}@unversioned"


def test_a_signal_while_an_answer_is_kept_loses_none_that_is_under_way(tmp_path: Path) -> None:
    class Interrupted(Ledger):
        def write(self, inputs: Any, result: Any) -> None:
            if not self.exists():
                os.kill(os.getpid(), signal.SIGINT)
            super().write(inputs, result)

    def slow(prompt: str, body: dict[str, Any]) -> str:
        time.sleep(0 if prompt == "0" else 0.5)
        return prompt

    memory = Interrupted(root=str(tmp_path), step="answers", basis=None)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with serving(slow) as server, heard() as listener:
            with pytest.raises(KeyboardInterrupt):
                ask(opened(server, batch_size=3), questions(*map(str, range(9))), memory)
            listener.forget()
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(memory.names()) == len(server.asked) < 9


def test_answers_are_kept_as_they_come(tmp_path: Path) -> None:
    """A run that dies has kept what it was given before the last answer of a batch came."""
    memory = Ledger(root=str(tmp_path), step="answers", basis=None)

    def die(prompt: str, body: dict[str, Any]) -> Any:
        return (404, {"error": "gone"}) if prompt == "c" else prompt

    with serving(die) as server:
        model = opened(server, batch_size=1)
        with pytest.raises(InputError, match="404"):
            ask(model, questions("a", "b", "c", "d"), memory)
        kept = [json.loads(path.read_text())["text"] for path in tmp_path.rglob("*.json")]
        assert sorted(kept) == ["a", "b"]
