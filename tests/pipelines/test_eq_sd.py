"""Eq-SD end to end, drawn by a tiny Stable Diffusion with random weights: everything but beauty."""

import io
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from eqforge.commands import verify
from eqforge.core.identity import sha256_hex
from eqforge.generators.diffusion.generate import PairGenerator
from eqforge.generators.diffusion.prompts import draw_counts, prompt_pair
from eqforge.generators.diffusion.tiny import make_tiny_pipeline
from eqforge.generators.diffusion.vocabulary import BUILT_IN, load_vocabulary
from eqforge.pipelines import eq_sd
from tests.builds import (
    books,
    ids,
    reasons,
    rows,
)
from tests.optional import optional

optional("torch")
optional("diffusers")

PAIRS = 20
# So strongly guided, the tiny model hears its prompts after two steps.
QUICK = ["--model", "tiny", "--steps", "2", "--guidance-scale", "50", "--cpu-threads", "1"]
ONCE = ["--max-draws-per-pair", "1"]
OPEN = ["--min-changed-area", "None", "--max-changed-area", "None", "--min-background-ssim", "None"]
WHOLE = ["--pairs", str(PAIRS), *QUICK, "--samples-per-file", "10", "--images-per-file", "20"]
FEW = [*("--object-pairs", "2", "--scene-pairs", "2", "--attribute-pairs", "2"), *(*ONCE, *QUICK)]


def build(output: Path, *arguments: str) -> Path:
    assert eq_sd.main([*arguments, "--output", str(output)]) == 0
    return output


def refuse(output: Path, *arguments: str) -> int:
    with pytest.raises(SystemExit) as left:
        build(output, *arguments)
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty pairs, made in one go in this process."""
    return build(tmp_path_factory.mktemp("eq-sd") / "whole", *WHOLE)


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pairs of each kind without any filter."""
    return build(tmp_path_factory.mktemp("eq-sd") / "few", *FEW, *OPEN)


def manifest(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "dataset.json").read_text())
    return found


# --- what a dataset holds


def test_twenty_pairs_end_to_end(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = books(whole)
    candidates, kept, refused = found["pairs"]
    assert found["drawings"] == (candidates, candidates, 0)
    assert found["images"] == (2 * candidates, 2 * candidates, 0)
    assert kept == len(ids(whole)) == PAIRS < candidates
    assert set(ids(whole)).isdisjoint(row["candidate_id"] for row in rows(whole, "rejects"))
    assert refused == len(rows(whole, "rejects"))
    counts = draw_counts(PAIRS, 0)
    assert Counter(name.split("/")[1] for name in ids(whole)) == counts
    assert verify.main([str(whole)]) == 0, capsys.readouterr().out


def test_a_row_is_the_pair_of_prompts_that_its_id_names(whole: Path) -> None:
    images = {row["image_id"]: row for row in rows(whole, "images")}
    for row in rows(whole, "samples"):
        _, kind, number = row["sample_id"].split("/")
        pair = prompt_pair(load_vocabulary(), kind, int(number), 0, "english")
        assert (row["caption_0"], row["caption_1"]) == pair.captions
        assert (row["kind"], row["change"]) == (pair.kind, pair.change)
        assert row["source_id"] == f"{pair.group}/{pair.thing}"
        assert json.loads(row["spec_1"])["prompt"] == pair.prompts[1]
        generation = row["generation"]
        assert (generation["model"], generation["seed"]) == ("tiny", pair.seed)
        assert (generation["device"], generation["generator"]) == ("cpu", "diffusers")
        assert row["mask_0_id"] is None
        for side in "01":
            image = images[row[f"image_{side}_id"]]
            assert sha256_hex(image["image"]["bytes"]) == image["image_id"]
            with Image.open(io.BytesIO(image["image"]["bytes"])) as picture:
                assert (picture.format, picture.size) == ("PNG", (64, 64))


def test_the_manifest_says_what_the_pictures_depend_on_and_no_folder(
    whole: Path, tmp_path: Path
) -> None:
    found = manifest(whole)
    assert found["inputs"] == [
        {"name": "vocabulary.json", "sha256": sha256_hex(BUILT_IN.read_bytes())}
    ]
    assert {"torch", "diffusers", "transformers"} <= set(found["versions"])
    assert found["config"]["diffusion"]["model"] == "tiny"
    assert "local_files_only" not in found["config"]["diffusion"]
    assert any("random weights" in text for text in found["warnings"])
    assert any("same kind of device" in text for text in found["warnings"])
    assert str(whole.parent) not in json.dumps(found)
    assert "random weights" in (whole / "README.md").read_text()


def test_a_model_in_a_folder_is_named_by_its_last_part(tmp_path: Path) -> None:
    folder = make_tiny_pipeline(tmp_path / "models" / "mine")
    output = build(tmp_path / "out", "--pairs", "1", *QUICK, *OPEN, "--model", str(folder))
    found = manifest(output)
    assert found["config"]["diffusion"]["model"] == "mine"
    assert str(tmp_path) not in json.dumps(found)
    assert not any("random weights" in text for text in found["warnings"])
    (row,) = rows(output, "samples")
    assert row["generation"]["model"] == "mine"
    assert row["generation"]["revision"].startswith("sha256:")


def test_paper_mode_writes_published_captions_and_filters_nothing(tmp_path: Path) -> None:
    output = build(tmp_path, "--mode", "paper", "--pairs", "2", *QUICK)
    assert books(output)["pairs"] == (2, 2, 0)
    for row in rows(output, "samples"):
        _, kind, number = row["sample_id"].split("/")
        pair = prompt_pair(load_vocabulary(), kind, int(number), 0, "published", additions=True)
        assert (row["caption_0"], row["caption_1"]) == pair.captions
        parameters = json.loads(row["generation"]["parameters"])
        assert parameters["scheduler"] == "PNDMScheduler"
        assert parameters["control"]["alignment"] == "published"
        assert parameters["control"]["blend"] is None


def test_ones_own_vocabulary_is_used_and_named(tmp_path: Path) -> None:
    words = {
        "styles": ["a drawing"],
        "published": {},
        "families": {"hats": {"position": "after", "values": ["in a hat", "in a hood"]}},
        "groups": [
            {
                "name": "children",
                "objects": ["a girl", "a boy"],
                "places": [],
                "conditions": [],
                "attributes": ["hats"],
            }
        ],
    }
    file = tmp_path / "words.json"
    file.write_text(json.dumps(words))
    asked = ["--vocabulary", str(file), "--object-pairs", "1", *QUICK, *OPEN]
    output = build(tmp_path / "out", *asked)
    (row,) = rows(output, "samples")
    assert {row["caption_0"], row["caption_1"]} == {"A drawing of a girl.", "A drawing of a boy."}
    assert manifest(output)["inputs"][0]["name"] == "words.json"

    assert refuse(tmp_path / "other", *asked[:2], "--object-pairs", "2", *QUICK) == 2


# --- the same bytes, and nothing lost


# --- every gate fires where it should


@pytest.fixture(scope="module")
def judged(few: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the few pairs, to be judged again and again."""
    return Path(shutil.copytree(few, tmp_path_factory.mktemp("eq-sd") / "judged"))


def judge(output: Path, *arguments: str) -> Path:
    """The same drawings with other filters; nothing is drawn again."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(PairGenerator, "generate", None)
        return build(output, *FEW, *OPEN, "--overwrite", *arguments)


@pytest.mark.parametrize(
    ("settings", "stage", "expected"),
    [
        (["--min-changed-area", "0.9"], "pairs", {"change_too_small": 6}),
        (["--max-changed-area", "0.0001"], "pairs", {"change_too_large": 4}),
        (["--min-background-ssim", "0.999"], "pairs", {"background_changed": 4}),
        (
            ["--min-background-ssim", "0.999", "--scenes-keep-background"],
            "pairs",
            {"background_changed": 6},
        ),
        (["--min-luminance", "200"], "images", {"black_image": 12}),
        (["--min-contrast", "100"], "images", {"constant_image": 12}),
    ],
)
def test_a_limit_that_no_pair_keeps_refuses_the_kinds_it_is_for(
    judged: Path, settings: list[str], stage: str, expected: dict[str, int]
) -> None:
    """Scenes are held to the limits on how much may change only where that is asked for."""
    output = judge(judged, *settings)
    assert reasons(output, stage) == expected
    left = books(output)["pairs"][1]
    assert left == (0 if stage == "images" else 6 - sum(expected.values()))
    if left > 0:
        assert {row["kind"] for row in rows(output, "samples")} == {"scene"}


# --- what is said before any work


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--device", "cuda:0", "--workers", "2"],
            "cuda:0 is no faster with several workers",
        ),
        (["--pairs", "2", "--scene-pairs", "1"], "pass either --pairs or numbers of pairs"),
        (["--pairs", "-1"], "number of pairs: expected 0 or more, found -1"),
        (["--object-pairs", "99999"], "pairs that change the object, but the build needs 99,999"),
        (
            ["--pairs", "2", "--only", "eq-sd/object/999999"],
            "--only eq-sd/object/999999: after --limit and --sample, the plan contains no",
        ),
        (["--pairs", "0"], "there is nothing to build"),
        (
            ["--revision", "0" * 40],
            "the model `tiny` has no revision",
        ),
        (["--precision", "fp16"], "--precision fp16 needs a GPU"),
        (["--model", "no/model"], "'no/model' is not a folder"),
        (["--device", "meta"], "the model 'tiny' cannot be loaded on 'meta'"),
        (["--cross-replace", "2"], "--cross-replace 2.0: expected 0 to 1"),
        (["--vocabulary", "none.json"], "none.json"),
    ],
)
def test_a_wrong_setting_is_one_message_and_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert refuse(tmp_path / "out", *QUICK, *arguments) == 2
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err
    assert not (tmp_path / "out").exists()
