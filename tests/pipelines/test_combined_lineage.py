"""What a combined dataset knows of its parts: the commands that make all again, and its errata."""

import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from eqforge import cli
from eqforge.commands import verify
from eqforge.pipelines.base.recipe import command_of, commands_of
from eqforge.schemas.dataset.manifest import PartManifest, load_manifest, read_manifest
from eqforge.schemas.dataset.profile import read_facts
from eqforge.schemas.dataset.reader import open_dataset
from tests.builds import books, dataset_bytes, rows
from tests.pipelines.test_combined import EQBEN, OLD, combine, imported, refused
from tests.statuses import status_of

main = status_of(cli.main)
KUBRIC, SD = OLD / "eq-kubric", OLD / "eq-sd"


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset that was combined of a combined one, and of one whose sources state licences."""
    folder = tmp_path_factory.mktemp("nested")
    inner = combine(folder / "inner", KUBRIC, OLD / "eq-youcook2")
    return combine(folder / "outer", inner, OLD / "eq-video")


def test_parts_are_recorded_behind_what_they_are_made_of(nested: Path) -> None:
    found = {part.name: part for part in load_manifest(str(nested)).parts}
    sources = {
        "combined-pairs: eq-kubric": KUBRIC,
        "combined-pairs: eq-youcook2": OLD / "eq-youcook2",
        "combined-pairs": nested.parent / "inner",
        "eq-video": OLD / "eq-video",
    }
    assert list(found) == list(sources)
    for name, folder in sources.items():
        manifest, sha256 = read_manifest(str(folder))
        assert found[name] == PartManifest(
            name=name,
            sha256=sha256,
            dataset=manifest.dataset,
            mode=manifest.mode,
            config=manifest.config,
            inputs=manifest.inputs,
            versions=manifest.versions,
        )


def test_the_card_has_the_commands_of_all_parts_in_their_order(nested: Path) -> None:
    card = (nested / "README.md").read_text()
    inner, sha256 = read_manifest(str(nested.parent / "inner"))
    place = f"combined-pairs@{sha256[:12]}"
    builds = [command_of(load_manifest(str(OLD / n))) for n in ("eq-kubric", "eq-youcook2")]
    (version,) = {part.versions["eqforge"] for part in load_manifest(str(nested)).parts}
    lines = [
        f"# with eqforge {version}",
        *builds,
        command_of(inner, place),
        command_of(load_manifest(str(OLD / "eq-video"))),
    ]
    commands = list(commands_of(load_manifest(str(nested))))
    assert commands[:-1] == lines
    assert shlex.split(commands[-1])[:4] == [
        *("eqforge", "combine", f"path/to/{place}", "path/to/eq-video")
    ]
    assert "\n".join([commands[0], *(f"$ {line}" for line in commands[1:])]) in card


def test_the_card_says_of_each_part_what_is_known_of_it(nested: Path) -> None:
    card = (nested / "README.md").read_text()
    assert "Combined from eq-kubric, eq-youcook2, eq-video by eqforge" in card
    assert "no person has checked them" in card
    assert "eqforge does not know who" not in card
    assert card.count("@inproceedings{wang2023equivariant,") == 1
    assert "- eq-kubric: The images are rendered scenes" in card
    assert "- eq-youcook2: Images in which" in card
    for name in ("captions.jsonl", "youcook2.json", "assets.json"):
        assert re.search(rf"- `{name}`, SHA-256 `[0-9a-f]{{64}}`", card)
    assert "| eq-video | CC0-1.0 | 2 |\n| eq-youcook2 | none | 5 |" in card

    whole = read_facts(open_dataset(str(nested)))
    parts = whole.parts
    for name in ("eq-video", "eq-youcook2"):
        own = read_facts(open_dataset(str(OLD / name)))
        assert (parts[name].licences, parts[name].sources) == (own.licences, own.sources)
    assert whole.sources == sum(part.sources for part in parts.values())
    assert whole.licences == {"": 5, "CC0-1.0": 2}


def test_benchmarks_among_the_parts_are_told_from_what_was_built(tmp_path: Path) -> None:
    parts = [imported(name, tmp_path) for name in ("valse", "own-foils")]
    card = (combine(tmp_path / "out", *parts) / "README.md").read_text()
    assert "The rows were imported; eqforge does not know who wrote or checked them." in card
    assert "The source states the licence of the texts of valse: MIT." in card
    for part in parts:
        assert f"$ {command_of(load_manifest(str(part)))}\n" in card


def errata_file(folder: Path, errata: list[dict[str, Any]]) -> Path:
    random.Random(1).shuffle(errata)
    lines = [json.dumps({"reason": "錯誤", "who": "Ada", **each}) for each in errata]
    path = folder / "errata.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_errata_are_applied_to_a_combined_dataset(tmp_path: Path) -> None:
    whole = combine(tmp_path / "whole", KUBRIC, SD)
    dropped, corrected, noted, *_ = (row["sample_id"] for row in rows(whole, "samples"))
    text = "The violet car is behind the white vase."
    errata = errata_file(
        tmp_path,
        [
            {"id": dropped, "action": "drop"},
            {"id": corrected, "action": "correct", "column": "caption_0", "text": text},
            {"id": noted, "action": "note"},
        ],
    )
    out = combine(tmp_path / "out", SD, KUBRIC, "--errata", errata)

    before = {row["sample_id"]: row for row in rows(whole, "samples")}
    after = {row["sample_id"]: row for row in rows(out, "samples")}
    gone = before.pop(dropped)
    changed = before[corrected]
    old = json.loads(changed["annotation"])
    new = json.loads(after[corrected]["annotation"])
    assert new["captions_0"] == [text, *old["captions_0"][1:]]
    spans = new["edited_spans_0"]
    assert [text[span["start"] : span["end"]] for span in spans] != []
    assert new["word_edit_distance"] != old["word_edit_distance"]
    measured = ("captions_0", "edited_spans_0", "edited_spans_1", "word_edit_distance")
    rest = [{k: v for k, v in each.items() if k not in measured} for each in (old, new)]
    assert rest[0] == rest[1]
    before[corrected] = changed | {"caption_0": text, "annotation": after[corrected]["annotation"]}
    assert after == before
    pictures = {row["image_id"] for row in rows(whole, "images")}
    assert {row["image_id"] for row in rows(out, "images")} == pictures - {
        gone["image_0_id"],
        gone["image_1_id"],
    }
    assert books(out)["errata"] == (len(before) + 1, len(before), 1)
    assert verify.main([str(out)]) == 0

    outer = combine(tmp_path / "outer", out, OLD / "eq-gebc")
    card = (outer / "README.md").read_text()
    assert "| drop | 錯誤 | Ada | 1 |" in card
    assert f"| {noted} | note |" in card
    assert "--errata path/to/errata.jsonl" in card


def test_errata_of_no_sample_end_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    errata = errata_file(tmp_path, [{"id": "zebra", "action": "drop"}])
    said = refused(capsys, KUBRIC, SD, "--errata", errata, "--output", tmp_path / "out", status=1)
    assert "1 id matches no sample: 'zebra'" in said
    errata = errata_file(
        tmp_path, [{"id": "x", "action": "correct", "column": "image_0", "text": "y"}]
    )
    said = refused(capsys, KUBRIC, SD, "--errata", errata, "--output", tmp_path / "other")
    assert "the column 'image_0' cannot be corrected" in said


def test_a_sample_of_each_subset_depends_on_the_ids_alone(tmp_path: Path) -> None:
    """Of one subset the same samples are drawn, whatever is combined with it, in any order."""
    alone = combine(tmp_path / "alone", *EQBEN[:2], "--sample", "60%", "--seed", 5)
    among = combine(tmp_path / "among", *reversed(EQBEN), "--sample", "60%", "--seed", 7)
    of_both = [
        {row["sample_id"] for row in rows(out, "samples") if row["dataset"] in names}
        for out in (alone, among)
        for names in [{part.name for part in EQBEN[:2]}]
    ]
    assert of_both[0] == of_both[1] != set()
    again = combine(tmp_path / "again", *EQBEN, "--sample", "60%", "--seed", 7)
    assert dataset_bytes(again) == dataset_bytes(among)
