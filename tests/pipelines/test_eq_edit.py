"""Eq-Edit end to end: photographs made here, edited by tiny models with random weights."""

import io
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from skimage import data

from eqforge.commands import verify
from eqforge.core.errors import InputError
from eqforge.core.identity import sha256_hex
from eqforge.pipelines import eq_edit
from eqforge.pipelines.base.command import plan_command
from tests.builds import (
    books,
    dataset_bytes,
    finished_work,
    ids,
    reasons,
    rewrite,
    rows,
)
from tests.chat_server import ChatServer
from tests.optional import optional

optional("torch")
optional("diffusers")

TINY = ["--model", "tiny", "--steps", "2", "--cpu-threads", "1"]
OPEN = [
    *("--max-changed-outside", "None", "--min-changed-area", "None"),
    *("--max-changed-area", "None", "--min-background-ssim", "None"),
]
INPAINT = [*TINY, "--editor", "inpaint", *OPEN]
INSTRUCT = [*TINY, "--editor", "instruct-pix2pix", *OPEN]

Line = dict[str, Any]
LINES: list[Line] = [
    {"image": "a/turned.jpg", "caption": "A brown cat lies on a bed.", "id": "turned"},
    {"image": "a/turned.jpg", "caption": "A cat with green eyes.", "id": "eyes"},
    {"image": "plain.png", "caption": "A cup of coffee on a wooden table.", "id": "plain"},
    {"image": "grey.png", "caption": "Three coins on a table.", "id": "grey"},
    {
        **{"image": "small.png", "caption": "一只狗在海滩上", "hard_negative": "一只猫在海滩上"},
        **{"id": "given", "kind": "animal", "instruction": "turn the dog into a cat"},
    },
    {"image": "plain.png", "caption": "一杯咖啡", "id": "chinese"},
    {"image": "broken.jpg", "caption": "A red car.", "id": "broken"},
    {"image": "nowhere.jpg", "caption": "A red car.", "id": "nowhere"},
    {"image": "plain.png", "caption": "This is it.", "id": "no negative"},
    {"image": "grey.png", "caption": "A coin.", "hard_negative": "a coin", "id": "same"},
]
KEPT = ["eyes", "given", "grey", "plain", "turned"]


def save(folder: Path, name: str, pixels: np.ndarray, **options: Any) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)


def small(pixels: np.ndarray, width: int, height: int) -> np.ndarray:
    return np.asarray(Image.fromarray(pixels).resize((width, height)))


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A photograph that lies on its side, a PNG, a grey one, a tiny one, and a broken file."""
    folder = tmp_path_factory.mktemp("photographs")
    exif = Image.Exif()
    exif[274] = 6  # to be turned to the right by 90 degrees
    save(folder, "a/turned.jpg", small(data.chelsea(), 80, 56), exif=exif)
    save(folder, "plain.png", small(data.coffee(), 72, 48))
    save(folder, "grey.png", small(data.coins(), 64, 64))
    save(folder, "small.png", small(data.astronaut(), 9, 7))
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 no picture")
    return folder


@pytest.fixture(scope="module")
def masks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Masks of several modes; that of a/turned.jpg has the shape of the upright photograph."""
    folder = tmp_path_factory.mktemp("masks")
    for name, size, value in (
        ("a/turned.png", (80, 56), 255),
        ("plain.png", (48, 72), 1),
        ("grey.png", (64, 64), 7),
        ("small.png", (7, 9), 255),
    ):
        mask = np.zeros(size, dtype=np.uint8)
        mask[size[0] // 4 : -size[0] // 4, size[1] // 4 : -size[1] // 4] = value
        save(folder, name, np.stack([mask] * 3, axis=2) if name == "plain.png" else mask)
    return folder


def write(folder: Path, lines: list[Line]) -> Path:
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture(scope="module")
def inputs(photographs: Path, masks: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    captions = write(tmp_path_factory.mktemp("captions"), LINES)
    return [*("--images", str(photographs), "--masks", str(masks)), *("--captions", str(captions))]


def build(output: Path, *arguments: object) -> Path:
    assert eq_edit.main([*map(str, arguments), "--output", str(output)]) == 0
    return output


def refusal(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    with pytest.raises(SystemExit) as left:
        eq_edit.main([*map(str, arguments)])
    assert left.value.code == 2
    return capsys.readouterr().err


@pytest.fixture(scope="module")
def whole(inputs: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("eq-edit") / "whole", *inputs, *INPAINT)


def by_caption(output: Path) -> dict[str, dict[str, Any]]:
    return {row["caption_id"]: row for row in rows(output, "samples")}


def pictures(output: Path) -> dict[str, np.ndarray]:
    """The pixels of all images and masks of a dataset, by id, from its Parquet files alone."""
    return {
        row[key]: np.asarray(Image.open(io.BytesIO(row["image"]["bytes"])))
        for table, key in (("images", "image_id"), ("masks", "mask_id"))
        for row in rows(output, table)
    }


# --- what a dataset holds


def test_pairs_end_to_end(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sorted(by_caption(whole)) == KEPT
    assert books(whole) == {
        "captions": (10, 7, 3),
        "negatives": (7, 5, 2),
        "edits": (5, 5, 0),
        "images": (10, 10, 0),
        "pairs": (5, 5, 0),
    }
    assert verify.main([str(whole)]) == 0, capsys.readouterr().out


def test_outside_the_mask_every_pixel_is_the_photographs(whole: Path, photographs: Path) -> None:
    found = pictures(whole)
    for row in rows(whole, "samples"):
        first, second = found[row["image_0_id"]], found[row["image_1_id"]]
        mask = found[row["mask_0_id"]] != 0
        assert row["mask_0_id"] == row["mask_1_id"]
        assert first.shape == second.shape == (*mask.shape, 3)
        assert 0.1 < mask.mean() < 0.4
        assert (first[~mask] == second[~mask]).all()
        assert (first[mask] != second[mask]).any()
        scores = {score["name"]: score["value"] for score in row["scores"]}
        assert scores["difference_outside"] == 0
        assert scores["mask_area"] == pytest.approx(mask.mean(), abs=1e-6)
        assert scores["changed_outside"] > 0.5  # before it was locked


def test_verify_finds_an_edit_that_is_not_locked(
    whole: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One pixel outside the mask is changed by one level, and all digests follow."""
    copy = Path(shutil.copytree(whole, tmp_path / "out"))
    sample = min(rows(copy, "samples"), key=lambda row: row["sample_id"])
    found = pictures(copy)
    y, x = np.argwhere(found[sample["mask_0_id"]] == 0)[0]
    pixels = found[sample["image_1_id"]].copy()
    pixels[y, x, 1] ^= 1
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "png")
    encoded = stream.getvalue()
    old, new = sample["image_1_id"], sha256_hex(encoded)

    def tampered(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for row in found:
            if row.get("image_1_id") == old:
                row["image_1_id"] = new
            if row.get("image_id") == old:
                image = {"bytes": encoded, "path": f"{new}.png"}
                row |= {"image_id": new, "image": image, "num_bytes": len(encoded)}
        return found

    for file in sorted((copy / "data").glob("*.parquet")):
        if file.name.startswith(("samples", "images")):
            rewrite(copy, f"data/{file.name}", tampered)
    assert verify.main([str(copy)]) == 1
    said = capsys.readouterr().out
    assert f"sample {sample['sample_id']}: its images differ outside the mask" in said
    assert "FAILED      locked areas" in said


def test_the_first_image_has_the_upright_pixels_of_the_file(whole: Path, photographs: Path) -> None:
    found, samples = pictures(whole), by_caption(whole)
    with Image.open(photographs / "a/turned.jpg") as image:
        upright = np.rot90(np.asarray(image), k=-1)
    assert (found[samples["turned"]["image_0_id"]] == upright).all()
    with Image.open(photographs / "grey.png") as image:
        grey = np.asarray(image)
    assert (found[samples["grey"]["image_0_id"]] == grey[..., None]).all()
    assert all(row["image"]["path"].endswith(".png") for row in rows(whole, "images"))
    # Two pairs share the photograph, which is stored once.
    assert samples["turned"]["image_0_id"] == samples["eyes"]["image_0_id"]
    assert len(rows(whole, "images")) == 4 + 5


def test_ones_own_negative_kind_and_instruction_are_taken_in_any_script(whole: Path) -> None:
    row = by_caption(whole)["given"]
    assert (row["caption_0"], row["caption_1"]) == ("一只狗在海滩上", "一只猫在海滩上")
    assert (row["kind"], row["change"], row["negative_generator"]) == ("animal", "animal", "given")
    assert json.loads(row["spec_1"])["instruction"] == "turn the dog into a cat"


def test_what_cannot_be_edited_is_a_reject_with_its_reason(whole: Path) -> None:
    found = {row["candidate_id"]: row["reason"] for row in rows(whole, "rejects")}
    assert found == {
        "broken": "undecodable_image",
        "nowhere": "image_missing",
        "chinese": "not_english",
        "no negative": "no_hard_negative",
        "same": "equal_captions",
    }


def test_the_manifest_warns_and_names_no_folder(whole: Path, photographs: Path) -> None:
    manifest = json.loads((whole / "dataset.json").read_text())
    assert any("random weights" in text for text in manifest["warnings"])
    assert any("Only an oracle or a review" in text for text in manifest["warnings"])
    assert not any("because no mask limits it" in text for text in manifest["warnings"])
    assert str(photographs) not in json.dumps(manifest)
    assert manifest["config"]["images"] is manifest["config"]["masks"] is True
    assert "allowed to change" in (whole / "README.md").read_text()


# --- the same bytes, and nothing lost


def test_another_order_of_lines_gives_the_same_rows(
    whole: Path, photographs: Path, masks: Path, tmp_path: Path
) -> None:
    lines = random.Random(3).sample(LINES, len(LINES))
    captions = write(tmp_path, lines)
    folders = ["--images", photographs, "--masks", masks, "--captions", captions]
    found = dataset_bytes(build(tmp_path / "out", *folders, *INPAINT))
    expected = dataset_bytes(whole)
    assert {n: b for n, b in found.items() if n.startswith("data/")} == {
        n: b for n, b in expected.items() if n.startswith("data/")
    }


def test_one_sample_alone_is_the_same_as_in_the_whole(
    whole: Path, inputs: list[str], tmp_path: Path
) -> None:
    row = by_caption(whole)["eyes"]
    output = build(tmp_path, *inputs, *INPAINT, "--only", row["sample_id"])
    assert rows(output, "samples") == [row]
    assert books(output)["captions"] == (1, 1, 0)


def test_another_limit_takes_the_edits_that_are_there(
    photographs: Path, masks: Path, tmp_path: Path
) -> None:
    captions, output = write(tmp_path, [LINES[2]]), tmp_path / "out"
    one = ["--images", photographs, "--masks", masks, "--captions", captions, *INPAINT]
    made = finished_work(build(output, *one), "edit")
    build(output, *one, "--max-changed-outside", "0.5", "--overwrite")
    assert finished_work(output, "edit") == made
    assert reasons(output, "edits") == {"changed_outside": 1}
    assert ids(output) == []


# --- editors that follow instructions, and masks


def test_an_instruction_needs_no_mask_and_then_nothing_is_locked(
    photographs: Path, tmp_path: Path
) -> None:
    more = [
        {
            **{"image": "plain.png", "caption": f"{start} {noun}", "id": name},
            "hard_negative": f"{start} {other}",
        }
        for name, start, noun, other in (
            ("accent", "In an old café stands", "a red table", "a blue table"),
            ("french", "une tasse sur", "la table", "la chaise"),
        )
    ]
    captions = write(tmp_path, [*LINES[:5], *more])
    folders = ["--images", photographs, "--captions", captions]
    output = build(tmp_path / "out", *folders, *INSTRUCT)
    samples = by_caption(output)
    assert sorted(samples) == sorted([*KEPT, "accent", "french"])
    told = {name: json.loads(row["spec_1"])["instruction"] for name, row in samples.items()}
    assert told["accent"].startswith("replace ")
    assert told["french"] == "change the picture so that it shows: une tasse sur la chaise"
    found = pictures(output)
    for row in rows(output, "samples"):
        assert row["mask_0_id"] is None
        assert found[row["image_0_id"]].shape == found[row["image_1_id"]].shape
        assert json.loads(row["generation"]["parameters"])["mask"] is None
    assert any("because no mask limits it" in text for text in _warnings(output))


def _warnings(output: Path) -> list[str]:
    found: list[str] = json.loads((output / "dataset.json").read_text())["warnings"]
    return found


def test_masks_that_are_of_no_use_are_rejects(photographs: Path, tmp_path: Path) -> None:
    masks = tmp_path / "masks"
    save(masks, "plain.png", np.zeros((48, 72), dtype=np.uint8))
    save(masks, "grey.png", np.ones((30, 64), dtype=np.uint8))
    save(masks, "own/one.png", np.ones((9, 9), dtype=np.uint8))
    (masks / "own/text.png").write_text("no mask")
    lines = [
        {**LINES[2], "id": "empty"},
        {**LINES[3], "id": "shape"},
        {**LINES[0], "id": "none"},
        {**LINES[4], "id": "missing", "mask": "own/nowhere.png"},
        {**LINES[4], "id": "damaged", "mask": "own/text.png", "instruction": "another"},
    ]
    folders = ["--images", photographs, "--masks", masks, "--captions", write(tmp_path, lines)]
    output = build(tmp_path / "out", *folders, *INSTRUCT)
    found = {row["candidate_id"].split("/")[0]: row["reason"] for row in rows(output, "rejects")}
    assert found == {
        "empty": "empty_mask",
        "shape": "mask_size",
        "none": "no_mask",
        "missing": "mask_missing",
        "damaged": "undecodable_mask",
    }


def test_scaled_photographs_take_the_masks_of_the_whole_ones(
    inputs: list[str], tmp_path: Path
) -> None:
    output = build(tmp_path, *inputs, *INPAINT, "--max-side", "40", "--only", "plain", "turned")
    found = pictures(output)
    sizes = {name: found[row["mask_0_id"]].shape for name, row in by_caption(output).items()}
    assert sizes == {"plain": (27, 40), "turned": (40, 28)}
    for row in rows(output, "samples"):
        mask = found[row["mask_0_id"]] != 0
        assert (found[row["image_0_id"]][~mask] == found[row["image_1_id"]][~mask]).all()


def test_an_edit_that_changes_nothing_is_a_reject(inputs: list[str], tmp_path: Path) -> None:
    faded = ["--feather-px", "100000"]  # so slowly that nothing of the edit is seen
    output = build(tmp_path, *inputs, *INPAINT, *faded, "--only", "plain")
    assert reasons(output, "edits") == {"unchanged": 1}


# --- grounding


def test_a_grounder_says_where_a_photograph_may_change(
    photographs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.tiny_grounding import save_owlv2, save_sam

    detector, segmenter = save_owlv2(tmp_path / "owl"), save_sam(tmp_path / "sam")
    captions = write(tmp_path, [LINES[0], LINES[2]])
    folders = ["--images", photographs, "--captions", captions, *INPAINT]
    ground = ["--grounder", detector, "--segmenter", segmenter, "--grounding-score", "0.001"]
    output = build(tmp_path / "out", *folders, *ground)
    found = pictures(output)
    assert sorted(by_caption(output)) == ["plain", "turned"]
    for row in rows(output, "samples"):
        mask = found[row["mask_0_id"]] != 0
        assert mask.any()
        assert (found[row["image_0_id"]][~mask] == found[row["image_1_id"]][~mask]).all()
        used = json.loads(row["generation"]["parameters"])["mask"]
        assert used["from"] == "grounder"
        assert {box[0] for box in used["boxes"]} == set(json.loads(row["spec_1"])["things"])
    changed = segmenter / "config.json"
    changed.write_bytes(changed.read_bytes() + b"\n")
    with pytest.raises(SystemExit):
        build(output, *folders, *ground)
    assert "has changed or may have changed: 'segmenter/config.json'." in capsys.readouterr().err
    sure = build(tmp_path / "sure", *folders, "--grounder", detector, "--grounding-score", "1")
    assert reasons(sure, "edits") == {"no_mask": 2}


# --- one error before any work


def test_an_editor_that_needs_masks_says_so_before_any_work(
    photographs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captions = write(tmp_path, LINES)
    folders = ["--images", photographs, "--captions", captions, "--output", tmp_path / "out"]
    assert "--masks" in refusal(capsys, *folders, *INPAINT)
    named = write(tmp_path, [{**LINES[0], "mask": "m.png"}])
    assert "needs the mask 'm.png'. Pass the folder of masks with --masks" in refusal(
        capsys, "--images", photographs, "--captions", named, *INPAINT, "--output", tmp_path / "out"
    )
    assert "--segmenter" in refusal(capsys, *folders, *INPAINT, "--segmenter", "sam")
    assert "no such folder" in refusal(capsys, *folders, *INPAINT, "--masks", tmp_path / "no")
    assert "need a language model; pass --writer" in refusal(
        capsys, *folders, *INPAINT, "--writer-chat"
    )
    assert not (tmp_path / "out" / "data").exists()


def test_wordnet_is_asked_for_only_where_a_caption_lacks_its_negative(
    inputs: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def missing() -> None:
        raise InputError("WordNet is not on this machine")

    monkeypatch.setattr(eq_edit, "check_wordnet", missing)
    given = write(tmp_path, [line for line in LINES if "hard_negative" in line])
    arguments = [*inputs, *INPAINT, "--output", str(tmp_path / "out")]

    assert "WordNet" in refusal(capsys, *arguments)
    assert plan_command(eq_edit.EqEdit, [*arguments, "--captions", str(given)]) == 0


# --- negatives by a language model


def test_a_language_model_writes_the_negatives_that_are_checked(
    photographs: Path, masks: Path, tmp_path: Path
) -> None:
    answers = {
        "A brown cat lies on a bed.": "A brown dog lies on a bed.",
        "A cup on a sofa.": "A cup on a couch.",  # still true
        "Three coins on a table.": "Two coins on a chair.",  # in two places
    }
    sofa = {**LINES[2], "caption": "A cup on a sofa."}
    lines = [LINES[0], sofa, LINES[3], LINES[4]]
    folders = ["--images", photographs, "--masks", masks, "--captions", write(tmp_path, lines)]

    def say(prompt: str, _: dict[str, Any]) -> str:
        return answers[prompt.rpartition("Input: ")[2].partition("\n")[0]]

    with ChatServer(say).running() as server:
        writer = ["--writer", server.model, "--writer-retries", "1"]
        output = build(tmp_path / "out", *folders, *INPAINT, *writer)
    samples = by_caption(output)
    assert sorted(samples) == ["given", "turned"]
    assert samples["turned"]["caption_1"] == "A brown dog lies on a bed."
    assert samples["turned"]["kind"] == "written"
    assert samples["turned"]["negative_generator"].startswith("tiny-chat")
    assert reasons(output, "negatives") == {"stays_true": 1, "several_edits": 1}
