"""The command in a card makes the dataset of the card again."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eqforge.core.errors import InputError
from eqforge.core.help import Help
from eqforge.pipelines import pipeline_of
from eqforge.pipelines.base.command import parse_line
from eqforge.pipelines.base.identity import settings_of_rows
from eqforge.pipelines.base.recipe import command_of
from eqforge.schemas.dataset.manifest import Manifest, load_manifest
from eqforge.schemas.tables.datasets import DATASETS

OLD = sorted(
    path
    for path in (Path(__file__).parents[1] / "old").glob("*/*/dataset.json")
    if path.parent.name in DATASETS
)


def built_again(manifest: Manifest) -> dict[str, Any]:
    """The settings of the command, as a manifest has them."""
    pipeline = pipeline_of(manifest.dataset)
    words = shlex.split(command_of(manifest))
    assert words[:3] == ["eqforge", "build", manifest.dataset]
    line, beam = parse_line(pipeline, words[3:], Help(program="eqforge build"))
    assert not beam
    found: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode(settings_of_rows(line.settings))
    )
    return found


def known(there: dict[str, Any], here: dict[str, Any]) -> dict[str, Any]:
    """Settings without those that the other version does not have."""
    return {
        name: known(there[name], value) if isinstance(value, dict) else value
        for name, value in here.items()
        if name in there
    }


@pytest.mark.parametrize("path", OLD, ids=lambda path: f"{path.parent.name}")
def test_the_command_has_the_settings_of_the_manifest(path: Path) -> None:
    manifest = load_manifest(str(path.parent))
    if manifest.dataset == "eq-youcook2":  # its face detector was removed
        with pytest.raises(InputError, match=r"--face-policy: expected one of .*; found 'either'"):
            built_again(manifest)
        return
    built = built_again(manifest)
    assert known(manifest.config, built) == known(built, manifest.config)


def test_names_of_files_cannot_add_words_to_the_command(tmp_path: Path) -> None:
    manifest = load_manifest(str(next(p for p in OLD if p.parent.name == "eq-video").parent))
    config = manifest.config | {"captions": "a b; rm -rf $HOME\n--seed 3.jsonl"}
    manifest = replace(manifest, config=config)
    assert built_again(manifest)["captions"] == config["captions"]
    assert built_again(manifest)["run"]["seed"] == 0


@pytest.mark.parametrize(
    ("kind", "model", "revision", "shown"),
    [
        ("open-clip", "PE,weights=a b.pt", "sha256:1", "PE,weights=path/to/a b.pt"),
        ("open-clip", "ViT-mine", "sha256:1", "path/to/ViT-mine"),
        ("open-clip", "laion/ViT", 40 * "a", f"laion/ViT@{40 * 'a'}"),
        ("clip", "RN50", "sha256:1", "path/to/RN50"),
    ],
)
def test_the_command_names_the_weights_of_an_oracle(
    kind: str, model: str, revision: str, shown: str
) -> None:
    manifest = load_manifest(str(next(p for p in OLD if p.parent.name == "eq-video").parent))
    settings = manifest.config["settings"]
    identity = {"kind": kind, "model": model, "revision": revision, "precision": "bfloat16"}
    oracle = settings["oracle"] | {"oracle": [identity]}
    config = manifest.config | {"settings": settings | {"oracle": oracle}}
    words = shlex.split(command_of(replace(manifest, config=config)))
    assert words[words.index("--oracle") + 1] == f"{kind}:{shown},precision=bfloat16"
