"""`eqforge doctor` says what is there and what is missing, and its status."""

import json
from importlib.metadata import PackageNotFoundError

import pytest

from eqforge.commands import doctor
from eqforge.core.sandbox import probe
from eqforge.core.sandbox.sandbox import VARIABLE


def asked(capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, str]]:
    assert doctor.main(["--json"]) == 0
    return {fact["name"]: fact for fact in json.loads(capsys.readouterr().out)}


def test_it_tells_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    facts = asked(capsys)

    assert {
        "python",
        "eqforge",
        "eqforge[video]",
        "eqforge[plots]",
        "WordNet",
        "Java",
        "memory",
    } <= facts.keys()
    assert "av 18" in facts["eqforge[video]"]["found"]
    assert all(fact["found"].isprintable() for fact in facts.values())
    for fact in facts.values():
        assert (fact["state"] == "ok") == (fact["remedy"] == ""), fact


def test_what_is_missing_has_its_cost_and_remedy(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(probe, "outcomes", lambda _: dict.fromkeys(probe.TRIES, ""))
    facts = asked(capsys)

    assert facts["Java"]["state"] == "missing"
    assert facts["sandbox: network"]["found"] == "not blocked: tcp, udp, ipv6, unix, pair"
    assert "Landlock".lower() in facts["sandbox: files"]["remedy"]


def test_without_a_necessary_package_the_status_is_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def version(name: str) -> str:
        if name == "ftfy":
            raise PackageNotFoundError(name)
        return "1"

    monkeypatch.setenv(VARIABLE, "off")
    monkeypatch.setattr("importlib.metadata.version", version)

    assert doctor.main([]) == 1
    said = capsys.readouterr().out
    assert "NECESSARY" in said
    assert "not installed: ftfy" in said
    assert f"{VARIABLE}=off" in said
