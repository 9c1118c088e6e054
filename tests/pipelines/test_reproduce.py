"""Commands that a card and a report print, and exported recipes, reproduce every dataset."""

import html
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from tyro import MISSING

from eqforge import cli
from eqforge.core.errors import InputError
from eqforge.core.help import Help
from eqforge.core.identity import Trace, TraceOf, trace_of
from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import pipeline_of
from eqforge.pipelines.base.command import parse_line
from eqforge.pipelines.base.identity import settings_of_rows
from eqforge.pipelines.base.recipe import command_of
from eqforge.schemas.dataset.manifest import Manifest
from tests.builds import dataset_bytes
from tests.exported import run
from tests.small_builds import COMMANDS, pictures
from tests.statuses import status_of

main = status_of(cli.main)
OF_RECIPE = re.compile(r"[\d.]+|None|inpaint")
"""Values that a recipe sets; its user passes places and models."""
OPTIONS = ["--seed", "3", "--max-error-rate", "0.9", "--limit", "30"]
NEED_MODELS = {
    *("oracle", "perceptual", "max_perceptual", "plausibility", "max_implausibility", "segmenter"),
    *("offload", "verify", "entailed_min", "contradicted_min", "shown_min", "refuse_by"),
}


def given(words: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the options of a command with their values, in their order."""
    for option, value in pairwise(words):
        if option.startswith("--"):
            yield option, value


def completed(printed: list[str], original: list[str], output: Path) -> list[str]:
    """Return a printed command with the places that its user knows."""
    places = dict(given([*original, "--output", str(output)]))
    words = list(printed)
    for number, word in enumerate(printed):
        if word.startswith("path/to/"):
            words[number] = places[printed[number - 1]]
    return words


# One of each kind of pipeline; the options of eq-kubric have a test of their own below.
@pytest.mark.parametrize(
    "name", ["eq-video", "eq-ag", "eq-edit", "hard-positives", "vlue", "simat"]
)
def test_printed_commands_and_recipes_reproduce_the_bytes(
    name: str, demo_workspace: Workspace, tmp_path: Path
) -> None:
    original = ["build", *COMMANDS[name](demo_workspace, tmp_path), *OPTIONS]
    built, again, rebuilt = (tmp_path / each for each in ("built", "again", "rebuilt"))
    assert main([*original, "--output", str(built)]) == 0

    assert main(["report", str(built), "--output", str(tmp_path / "report")]) == 0
    card = (built / "README.md").read_text()
    (line,) = (line[2:] for line in card.splitlines() if line.startswith("$ eqforge"))
    assert line in html.unescape((tmp_path / "report" / "index.html").read_text())
    assert main(completed(shlex.split(line)[1:], original, again)) == 0
    assert dataset_bytes(again) == dataset_bytes(built)

    recipe = run(built, "recipe", tmp_path / "recipe")
    texts = {option: value for option, value in given(original) if not OF_RECIPE.fullmatch(value)}
    own = [word for pair in texts.items() for word in pair]
    assert main(["build", "--recipe", str(recipe), *own, "--output", str(rebuilt)]) == 0
    assert dataset_bytes(rebuilt) == dataset_bytes(built)


def values_of(kind: Any, usual: Any) -> Iterator[Any]:
    """Yield other values of a setting; a range may allow one of them only."""
    if kind is bool:
        yield not usual
    elif get_origin(kind) is Literal:
        yield from (value for value in get_args(kind) if value != usual)
    elif kind is int:
        yield from (value for value in (usual and usual + 1, 1, 2, 7, 64) if value)
    elif kind is float:
        yield from (value for value in (0.25, 0.5, 7.5, 1.25) if value != usual)
    elif kind is str:
        yield from ("12.5%", "red", "a-b.c")
    elif kind is Path:
        yield Path("mine.jsonl")
    elif get_origin(kind) is tuple:
        each, *more = (one for one in get_args(kind) if one is not Ellipsis)
        for value in values_of(each, None):
            yield (value, *(next(values_of(one, None)) for one in more))
    else:
        for each in get_args(kind):
            yield from [None] * (each is type(None) and usual is not None)
            yield from values_of(each, usual)


def changed(config: Any) -> Iterator[tuple[str, Any]]:
    """Yield settings in which one value is changed, by its name; None if no value is known."""
    hints = get_type_hints(type(config))
    extras = get_type_hints(type(config), include_extras=True)
    for field in fields(config):
        usual = getattr(config, field.name)
        if trace_of(extras[field.name]) is Trace.NONE or field.name == "mode":
            continue
        if is_dataclass(usual):
            for name, group in changed(usual):
                yield name, group and replace(config, **{field.name: group})
            continue
        is_model = isinstance(trace_of(extras[field.name]), TraceOf)
        found = None
        for value in () if is_model else values_of(hints[field.name], usual):
            try:
                found = replace(config, **{field.name: value})
                break
            except (InputError, ImportError):
                continue
        yield field.name, found


@pytest.mark.parametrize("name", ["eq-video", "eq-kubric", "training-captions"])
def test_the_command_has_every_option_that_was_given(name: str) -> None:
    pipeline = pipeline_of(name)
    unknown: set[str] = set()
    wrong: dict[str, list[str]] = {}
    usual = pipeline.usual("corrected", "out")
    hints = get_type_hints(pipeline.Config)
    required = [field.name for field in fields(usual) if getattr(usual, field.name) is MISSING]
    usual = replace(usual, **{each: next(values_of(hints[each], None)) for each in required})
    for setting, config in changed(usual):
        if config is None:
            unknown.add(setting)
            continue
        manifest = Manifest(
            dataset=name, mode="corrected", config=settings_of_rows(config),
            inputs=[], versions={}, stages={}, tables={}, max_error_rate=0.75,
        )  # fmt: skip
        words = shlex.split(command_of(manifest))
        line, _ = parse_line(pipeline, words[3:], Help(program="eqforge build"))
        assert line.settings.run.max_error_rate == 0.75
        if settings_of_rows(line.settings) != manifest.config:
            wrong[setting] = words
    assert wrong == {}
    assert unknown <= NEED_MODELS


def test_the_command_has_the_kinds_and_public_names_of_models() -> None:
    public = {"kind": "siglip", "model": "google/siglip", "revision": "0123456789" * 4}
    local = {"kind": "clip", "model": "mine", "revision": "sha256:12"}
    weigher = {"kind": "likelihood", "model": "gpt", "revision": "sha256:12"}
    settings = {"oracle": {"oracle": [local, public]}, "plausibility": {"plausibility": [weigher]}}
    manifest = Manifest(
        dataset="eq-sd", mode="corrected", config={"settings": settings},
        inputs=[], versions={}, stages={}, tables={},
    )  # fmt: skip
    words = dict(given(shlex.split(command_of(manifest))))
    commit = public["revision"]
    assert words["--oracle"] == f"clip:path/to/mine+siglip:google/siglip@{commit}"
    assert words["--plausibility"] == "path/to/gpt"


def test_commands_of_imports_and_of_a_combined_dataset_reproduce_the_bytes(tmp_path: Path) -> None:
    images, again = pictures(tmp_path), tmp_path / "again"
    places = {"path/to/images": images}
    for name in "ab":
        one, other = (f"{number}.jpg" for number in (0, 1))
        pair = {"id": name, "image_0": one, "image_1": other, "caption_0": "A dog.",
                "caption_1": "A cat."}  # fmt: skip
        table = tmp_path / f"{name}.jsonl"
        table.write_text(json.dumps(pair) + "\n")
        places[f"path/to/{table.name}"] = str(table)
        built = ["--images", images, "--output", str(tmp_path / name)]
        assert main(["import", "own-pairs", str(table), *built]) == 0
    named = [f"{name}={tmp_path / name}" for name in "ab"]
    assert main(["combine", *named, "--output", str(tmp_path / "both")]) == 0

    card = (tmp_path / "both" / "README.md").read_text()
    for line in (line[2:] for line in card.splitlines() if line.startswith("$ eqforge")):
        for place, path in (places | {"path/to": str(again)}).items():
            line = line.replace(place, path)
        assert main(shlex.split(line)[1:]) == 0
    assert dataset_bytes(again / "combined-pairs") == dataset_bytes(tmp_path / "both")
