"""Quiet and verbose sessions, and documents in place of words."""

import json
import logging
import sys
from dataclasses import dataclass

import pytest

from eqforge.core.console import DocumentOptions, apply_console_options, print_document, session
from eqforge.core.errors import InputError
from eqforge.core.shell import Command


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Settings."""

    fails: bool = False
    """Fail."""


def run(arguments: Arguments) -> int:
    print("first\nsecond")
    print("progress", file=sys.stderr)
    logging.getLogger("library").info("logged")
    print_document({"text": "a\u202eb"})
    if arguments.fails:
        raise InputError("wrong")
    print("last")
    return 0


main = Command("program", Arguments, run, console=DocumentOptions)
whole = Command("program", Arguments, run, console=DocumentOptions, keeps_output=True)


def test_a_quiet_command_prints_its_last_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--quiet"]) == 0
    assert tuple(capsys.readouterr()) == ("last\n", "")
    assert whole(["--quiet"]) == 0
    assert tuple(capsys.readouterr()) == ("first\nsecond\nlast\n", "")


def test_a_quiet_command_prints_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--quiet", "--fails"])
    assert tuple(capsys.readouterr()) == ("", "eqforge: wrong\n")


def test_a_document_stands_alone_on_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"text": "a\u202eb"}
    assert printed.out.isascii()
    assert printed.err == "first\nsecond\nprogress\nlast\n"
    assert main(["--json", "--quiet"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"text": "a\u202eb"}
    assert printed.err == ""


def test_a_verbose_command_shows_logs_and_tracebacks(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SystemExit):
        main(["--verbose", "--fails"])
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("eqforge: wrong\n")
    assert "logged" in caplog.text
    assert main([]) == 0
    assert caplog.text.count("logged") == 1


def test_sessions_nest() -> None:
    before = sys.stdout
    with session():
        apply_console_options(DocumentOptions(quiet=True))
        inner = sys.stdout
        with session():
            apply_console_options(DocumentOptions(json=True))
            assert sys.stdout is not inner
        assert sys.stdout is inner
    assert sys.stdout is before
