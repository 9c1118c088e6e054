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
from tests.builds import books, finished_work, ids, reasons, rows
from tests.optional import optional
from tests.reports import chunks, write_report
from tests.tiny_models import save_clip

optional("torch")
optional("diffusers")

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
    clip = save_clip(tmp_path_factory.mktemp("models") / "clip")
    oracle = ["--oracle", f"clip:{clip}", "--oracle-min", "None", "--oracle-max", "None"]
    return [*oracle, "--best-by", "oracle_margin"]


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


def test_the_score_of_each_drawing_is_stored_and_the_greatest_is_kept(several: Path) -> None:
    others = rows(several, "rejects")
    for row in rows(several, "samples"):
        scores = {score["name"]: score["value"] for score in row["scores"]}
        own = min(scores["oracle_1_c0_i0"], scores["oracle_1_c1_i1"])
        crossed = max(scores["oracle_1_c1_i0"], scores["oracle_1_c0_i1"])
        of_pair = [one for one in others if one["candidate_id"].startswith(row["sample_id"] + "/")]
        for other in of_pair:
            assert other["value"] <= other["threshold"] == pytest.approx(own - crossed, abs=2e-6)
            assert other["detail"].startswith(f"kept {row['sample_id']}/seed-")


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
    assert any("changes least" in text for text in _warnings(output))


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
    assert verify.main([str(found)]) == 0, capsys.readouterr().out


def test_the_oracles_margin_needs_an_oracle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*DRAW, "--seeds", "2", "--best-by", "oracle_margin", "--output", str(tmp_path / "out")]
    with pytest.raises(SystemExit):
        eq_sd.main(asked)
    assert "--best-by oracle_margin needs an oracle" in capsys.readouterr().err
