"""Pairs that are drawn from several seeds, end to end, by tiny models of random weights."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

from eqforge.commands import verify
from eqforge.pipelines import eq_edit, eq_sd
from tests.builds import books, dataset_bytes, finished_work, ids, reasons, rows
from tests.evaluation.conversations.made import save_llava
from tests.reports import chunks, write_report
from tests.tiny_models import save_clip

pytest.importorskip("torch")
pytest.importorskip("diffusers")

TINY = ["--model", "tiny", "--steps", "2", "--cpu-threads", "1"]
DRAW = ["--pairs", "6", *TINY, "--guidance-scale", "50"]
OPEN = ["--min-changed-area", "None", "--max-changed-area", "None", "--min-background-ssim", "None"]
EDIT = [*TINY, "--editor", "inpaint", "--max-changed-outside", "None", *OPEN]
LINES = [
    {"image": "coffee.png", "caption": "A cup of coffee on a wooden table.", "id": "coffee"},
    {"image": "cat.png", "caption": "A brown cat lies on a bed.", "id": "cat"},
    {"image": "cat.png", "caption": "This is it.", "id": "without"},
]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("models")
    clip, llava = save_clip(folder / "clip"), save_llava(folder / "llava")
    return ["--direction", f"clip:{clip}", "--vqascore", str(llava)]


def draw(output: Path, *arguments: str) -> Path:
    assert eq_sd.main([*DRAW, *arguments, "--output", str(output)]) == 0
    return output


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw(tmp_path_factory.mktemp("seeds") / "single", *OPEN)


@pytest.fixture(scope="module")
def several(models: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return draw(tmp_path_factory.mktemp("seeds") / "several", *OPEN, "--seeds", "3", *models)


def test_of_three_drawings_of_each_pair_one_is_kept(
    several: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert books(several) == {
        "drawings": (18, 18, 0),
        "images": (36, 36, 0),
        "pairs": (18, 18, 0),
        "seeds": (18, 6, 12),
    }
    assert reasons(several, "seeds") == {"not_best": 12}
    assert len(set(ids(several))) == 6
    of_pair = Counter(row["candidate_id"].rpartition("/")[0] for row in rows(several, "rejects"))
    assert of_pair == dict.fromkeys(ids(several), 2)
    assert verify.main([str(several)]) == 0, capsys.readouterr().out


def test_every_score_of_the_kept_one_is_stored_and_those_of_the_others_are_told(
    several: Path,
) -> None:
    ranks = {row["candidate_id"]: row for row in rows(several, "rejects")}
    for row in rows(several, "samples"):
        scores = {score["name"]: score["value"] for score in row["scores"]}
        assert {"direction", "vqa_c0_i0", "vqa_c1_i1", "mean_rank"} <= set(scores)
        others = [ranks[name] for name in ranks if name.startswith(f"{row['sample_id']}/")]
        for other in others:
            assert other["threshold"] == scores["mean_rank"] <= other["value"]
            told = json.loads(other["detail"])
            assert set(told) == {"direction", "vqa_margin", "background_ssim", "kept"}
            assert told["kept"].startswith(f"{row['sample_id']}/seed-")


def test_the_pictures_of_the_others_can_be_looked_at(several: Path, tmp_path: Path) -> None:
    written = write_report(several, tmp_path / "report")
    items = {item["id"]: item for item in chunks(written, "rejects", "items")}
    captions = {
        row["sample_id"]: [row["caption_0"], row["caption_1"]] for row in rows(several, "samples")
    }
    shown = set()
    for row in rows(several, "rejects"):
        panes = items[row["candidate_id"]]["panes"]
        said = ["".join("".join(part) for part in pane["texts"][0]["parts"]) for pane in panes]
        assert said == captions[row["candidate_id"].rpartition("/")[0]]
        shown.add(tuple(pane["file"] for pane in panes))
    assert len(shown) == 12


def test_one_seed_is_drawn_as_before_and_among_several_it_is_the_first(
    single: Path, several: Path, tmp_path: Path
) -> None:
    assert "seeds" not in books(single)
    assert "ranking" not in json.loads((single / "dataset.json").read_text())["config"]["settings"]
    own = {row["sample_id"]: row["generation"]["seed"] for row in rows(single, "samples")}
    drawn = {row["sample_id"]: row for row in rows(several, "samples")}
    kept_first = 0
    for name, seed in own.items():
        first = f"{name}/seed-0" not in {row["candidate_id"] for row in rows(several, "rejects")}
        assert (drawn[name]["generation"]["seed"] == seed) == first
        kept_first += first
    assert 0 < kept_first < len(own)
    assert set(finished_work(single, "draw")) < set(finished_work(several, "draw"))


def test_the_same_bytes_whatever_the_number_of_workers(
    several: Path, models: list[str], tmp_path: Path
) -> None:
    again = draw(tmp_path / "again", *OPEN, "--seeds", "3", *models, "--workers", "2")
    assert dataset_bytes(again) == dataset_bytes(several)


def test_one_pair_alone_is_the_same_as_among_the_others(
    several: Path, models: list[str], tmp_path: Path
) -> None:
    name = ids(several)[2]
    alone = draw(tmp_path / "alone", *OPEN, "--seeds", "3", *models, "--only", name)
    assert rows(alone, "samples") == [
        row for row in rows(several, "samples") if row["sample_id"] == name
    ]


def test_as_many_are_kept_as_were_asked_for_where_every_drawing_of_some_pairs_is_refused(
    tmp_path: Path,
) -> None:
    output = draw(tmp_path / "out", *OPEN, "--min-background-ssim", "0.965", "--seeds", "2")
    assert len(ids(output)) == 6
    found = books(output)
    pairs = found["drawings"][0] // 2
    assert pairs > 6
    assert found["seeds"][:2] == (found["pairs"][1], 6)
    assert any("differs least" in text for text in _warnings(output))


def test_models_alone_score_a_single_drawing_and_refuse_nothing(
    single: Path, models: list[str], tmp_path: Path
) -> None:
    scored = draw(tmp_path / "scored", *OPEN, *models)
    assert books(scored)["seeds"] == (6, 6, 0)
    for row, other in zip(rows(scored, "samples"), rows(single, "samples"), strict=True):
        more = [score["name"] for score in row.pop("scores")]
        before = [score["name"] for score in other.pop("scores")]
        vqa = [f"vqa_{cell}" for cell in ("c0_i0", "c1_i0", "c0_i1", "c1_i1")]
        assert more == [*before, "direction", *vqa]
        assert row == other


def _warnings(output: Path) -> list[str]:
    found: list[str] = json.loads((output / "dataset.json").read_text())["warnings"]
    return found


# --- edited photographs


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Two photographs with masks and captions, as options."""
    folder = tmp_path_factory.mktemp("photographs")
    for name in ("images", "masks"):
        (folder / name).mkdir()
    for name, pixels in (("coffee.png", data.coffee()), ("cat.png", data.chelsea())):
        Image.fromarray(pixels).resize((72, 48)).save(folder / "images" / name)
        mask = np.zeros((48, 72), np.uint8)
        mask[12:36, 18:54] = 255
        Image.fromarray(mask).save(folder / "masks" / name)
    captions = folder / "captions.jsonl"
    captions.write_text("".join(json.dumps(line) + "\n" for line in LINES))
    named = {name: str(folder / name) for name in ("images", "masks")}
    return ["--images", named["images"], "--masks", named["masks"], "--captions", str(captions)]


def edit(output: Path, *arguments: str) -> Path:
    assert eq_edit.main([*arguments, "--output", str(output)]) == 0
    return output


def test_the_best_of_three_edits_of_a_photograph_is_kept(
    photographs: list[str], models: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*photographs, *EDIT, "--seeds", "3", *models]
    found = edit(tmp_path / "one", *asked)
    assert books(found) == {
        "captions": (3, 3, 0),
        "negatives": (3, 2, 1),
        "edits": (6, 6, 0),
        "images": (12, 12, 0),
        "pairs": (6, 6, 0),
        "seeds": (6, 2, 4),
    }
    for row in rows(found, "rejects"):
        if row["reason"] == "not_best":
            assert set(json.loads(row["detail"])) == {
                *("direction", "vqa_margin", "changed_outside", "kept")
            }
    assert verify.main([str(found)]) == 0, capsys.readouterr().out
    again = edit(tmp_path / "again", *asked, "--workers", "2")
    assert dataset_bytes(again) == dataset_bytes(found)
