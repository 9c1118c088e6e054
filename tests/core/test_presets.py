"""Options from a file and from variables, and where each was given."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from tyro.conf import OmitArgPrefixes, Positional, UseAppendAction

from eqforge.core.console import DocumentOptions
from eqforge.core.errors import TRACEBACK, InputError
from eqforge.core.help import Help
from eqforge.core.options import options_of, read_presets
from eqforge.core.shell import parse_line
from eqforge.pipelines import pipeline_of
from eqforge.schemas.tables.datasets import DATASETS


@dataclass(frozen=True, kw_only=True, slots=True)
class Inner:
    """A group."""

    max_side: int | None = None
    """In pixels."""
    share: float | None = None
    """From 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """Settings of a command."""

    path: Positional[str]
    """What stands on its own."""
    names: tuple[str, ...] = ()
    """A list."""
    strict: bool = True
    """A switch."""
    mode: Literal["a", "b"] = "a"
    """A choice."""
    inner: OmitArgPrefixes[Inner] = field(default_factory=Inner)


OPTIONS = list(options_of(Settings))


def parsed(*argv: str) -> tuple[Any, dict[str, str]]:
    line = parse_line(Settings, argv, Help(program="eqforge try"))
    return line.settings, line.sources


def test_the_command_line_beats_the_file_which_beats_variables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "eqforge.toml"
    file.write_text('max_side = 256\nstrict = false\nnames = ["x y", "z"]\n')
    monkeypatch.setenv("EQFORGE_MAX_SIDE", "128")
    monkeypatch.setenv("EQFORGE_MODE", "b")
    monkeypatch.setenv("EQFORGE_PATH", "not an option")

    settings, sources = parsed("here", "--config", str(file), "--strict")

    inner = Inner(max_side=256)
    assert settings == Settings(path="here", names=("x y", "z"), mode="b", inner=inner)
    assert sources == {
        "strict": "command line",
        "max-side": str(file),
        "names": str(file),
        "mode": "EQFORGE_MODE",
    }


def test_variables_hold_lists_and_switches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EQFORGE_NAMES", "a 'b c'")
    monkeypatch.setenv("EQFORGE_STRICT", "no")
    settings, _ = parsed("here")
    assert settings == Settings(path="here", names=("a", "b c"), strict=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("max-sid = 3", "unknown option 'max-sid'; did you mean 'max-side'?"),
        ("strict = 3", "strict is 3; expected true or false"),
        ("max-side = [3]", "expected a string or a number"),
        ("max-side = ", "cannot be read as TOML"),
        (f"path = {'[' * 5_000}{']' * 5_000}", "cannot be read as TOML: its values are nested"),
        (f"max-side = {'9' * 5_000}", "cannot be read as TOML: Exceeds the limit"),
        ("path = 'x'", "unknown option 'path'"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "eqforge.toml"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        read_presets(OPTIONS, ["--config", str(file)])
    assert said in str(refused.value)


def test_a_file_that_cannot_be_had_is_not_said_to_be_wrong_toml(tmp_path: Path) -> None:
    for path, said in (
        (tmp_path / "no.toml", "cannot be read: No such file"),
        (Path("/dev/zero"), "cannot be read: it is not a regular file"),
        (tmp_path, "cannot be read: "),
    ):
        with pytest.raises(InputError, match=f"^--config {path}: {said}") as refused:
            read_presets(OPTIONS, ["--config", str(path)])
        assert "TOML" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('max-side = "big"', "max-side: expected a whole number or None, found 'big'"),
        ("max-side = 2.5", "max-side: expected a whole number or None, found '2.5'"),
        ('share = "30%"', "share: expected a number or None, found '30%'; write 0.3 for 30%"),
        ('mode = "c"', "mode: expected one of a, b; found 'c'"),
    ],
)
def test_a_wrong_value_is_told_in_words_with_its_file_or_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    file = tmp_path / "eqforge.toml"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        parsed("here", "--config", str(file))
    assert str(refused.value) == f"{file}: {said}"

    name, _, value = text.partition(" = ")
    variable = f"EQFORGE_{name.replace('-', '_').upper()}"
    monkeypatch.setenv(variable, value.strip('"'))
    with pytest.raises(InputError) as refused:
        parsed("here")
    assert str(refused.value) == f"{variable}: {said}"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("here --share 30%", "--share: expected a number or None, found '30%'; write 0.3 for 30%"),
        ("here --mode c", "--mode: expected one of a, b; found 'c'"),
        ("here --max-side", "--max-side: expected NUMBER or None after this option"),
        ("here --max-sid 3", "unknown option --max-sid; did you mean '--max-side'?"),
        ("here --max_sid=3", "unknown option --max-sid; did you mean '--max-side'?"),
        ("here --name a", "unknown option --name; did you mean '--names'?"),
        ("here --xyzzy 1", "unknown option --xyzzy. For the options, run eqforge try --help-all"),
        (
            "here --dry-run",
            "unknown option --dry-run; run `eqforge plan` to preview a build",
        ),
        ("--mode a", "eqforge try needs PATH. For an example, run eqforge try --help"),
    ],
)
def test_a_wrong_command_line_is_told_in_one_sentence(line: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        parsed(*line.split())
    assert str(refused.value).startswith(said)


def test_no_option_has_the_name_of_another_variable() -> None:
    own = {"CACHE", "FOLDER", "VERSIONS", "WORKER_LOG", "CAGE", TRACEBACK.removeprefix("EQFORGE_")}
    for name in DATASETS:
        options = [*options_of(pipeline_of(name).Config), *options_of(DocumentOptions)]
        assert own.isdisjoint(option.name.replace("-", "_").upper() for option in options)


def test_an_option_that_is_given_once_for_each_takes_a_list(tmp_path: Path) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Named:
        verify: UseAppendAction[tuple[str, ...]] = ()

    file = tmp_path / "settings.toml"
    file.write_text('verify = ["nli:a", "llm:b,device=cpu"]')
    expected = ("--verify=nli:a", "--verify=llm:b,device=cpu")
    assert read_presets(list(options_of(Named)), ["--config", str(file)], {}).arguments == expected
    variables = {"EQFORGE_VERIFY": "nli:a llm:b,device=cpu"}
    assert read_presets(list(options_of(Named)), [], variables).arguments == expected
