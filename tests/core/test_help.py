"""What `--help`, `--help GROUP` and `--help-all` print."""

import shlex
from collections.abc import Callable

import pytest

from eqforge import cli
from eqforge.cli import main
from eqforge.core import shell
from eqforge.core.console import ConsoleOptions, DocumentOptions
from eqforge.core.options import options_of
from eqforge.pipelines import pipeline_of
from eqforge.schemas.tables.datasets import MADE_BY


class Stopped(BaseException):
    """A command line was parsed."""


def stop(options: ConsoleOptions) -> None:
    raise Stopped


COMMANDS = ("metrics", "finetune", "export", "score", "converse", "verify", "inspect", "card")
Help = Callable[[str], str]


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Help:
    monkeypatch.setenv("COLUMNS", "80")

    def show(line: str) -> str:
        with pytest.raises(SystemExit) as left:
            main(line.split())
        assert left.value.code == 0
        return capsys.readouterr().out

    return show


@pytest.mark.parametrize(
    "command",
    [
        *(f"{made} {name}" for made in ("build", "plan") for name in MADE_BY[made]),
        "import own-pairs",
        "combine",
        *COMMANDS,
    ],
)
def test_the_first_page_fits_on_a_screen_and_has_an_example(command: str, shown: Help) -> None:
    page = shown(f"{command} --help")

    assert len(page.splitlines()) <= 40
    assert f"\n  eqforge {command}" in page
    assert all(len(line) <= 80 for line in page.splitlines() if not line.startswith("  "))


@pytest.mark.parametrize(
    "command",
    [*(f"build {name}" for name in MADE_BY["build"]), *(cli.COMMANDS.keys() - MADE_BY.keys())],
)
def test_an_example_is_a_command_line_that_parses(
    command: str, shown: Help, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = shown(f"{command} --help").replace("\\\n", " ")
    found = [line for line in page.splitlines() if line.startswith(f"  eqforge {command} ")]
    monkeypatch.setattr(shell, "apply_console_options", stop)
    for example in found:
        with pytest.raises(Stopped):
            main(shlex.split(example)[1:])


def test_every_first_sentence_fits_on_the_first_page(shown: Help) -> None:
    lines = [f"{made} {name}" for made in MADE_BY for name in MADE_BY[made]]
    lines += [*cli.COMMANDS.keys() - MADE_BY.keys(), "review plan", "review import"]

    assert [line for line in lines if " …" in shown(f"{line} --help")] == []


def test_all_options_of_every_dataset_have_a_text_on_one_page(shown: Help) -> None:
    for name in MADE_BY["build"]:
        page = shown(f"build {name} --help-all")
        options = [*options_of(pipeline_of(name).Config), *options_of(DocumentOptions)]
        assert [each.name for each in options if each.name not in page] == []
        assert [each.name for each in options if not each.text] == []


def test_a_group_is_shown_by_its_name(shown: Help, capsys: pytest.CaptureFixture[str]) -> None:
    page = shown("build eq-video --help faces")
    assert "--face-policy" in page
    assert "--min-ssim" not in page
    assert "--face-policy" not in shown("build eq-video --help main")

    with pytest.raises(SystemExit) as left:
        main(["build", "eq-video", "--help", "face"])
    assert left.value.code == 2
    assert "unknown group; did you mean 'faces'?" in capsys.readouterr().err


def test_an_option_behind_help_names_no_group(shown: Help) -> None:
    for command in ("audit", "build eq-video"):
        assert shown(f"{command} --help --quiet") == shown(f"{command} --help")


def test_a_command_of_commands_lists_them(shown: Help) -> None:
    assert "  plan  " in shown("review --help")
    assert "--protocol" in shown("review plan --help")
