"""Scores of pairs: the right ones, each image and caption once, the same bytes on every way."""

import io
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.evaluation.scoring import work
from eqforge.evaluation.scoring.command import ScoreSettings
from eqforge.evaluation.scoring.run import score_dataset
from eqforge.models.scorer import Picture
from eqforge.models.spec import load_model
from eqforge.schemas.dataset.score_tables import ScoresManifest, open_scores
from tests.evaluation.scoring.counting import Counting, CountingDual, CountingFusion
from tests.made_datasets import pair_tables, picture, write_pairs
from tests.optional import optional

optional("transformers")


def settings(dataset: Path, model: str, output: Path, **changes: Any) -> ScoreSettings:
    given: dict[str, Any] = dict(workers=0, image_batch=8, caption_batch=8, pair_batch=8)
    return ScoreSettings(dataset=str(dataset), model=model, output=output, **(given | changes))


def score(
    dataset: Path, model: str, output: Path, scorer: Any = None, **changes: Any
) -> ScoresManifest:
    return score_dataset(settings(dataset, model, output, **changes), scorer)


def values_of(output: Path) -> dict[str, np.ndarray]:
    rows = (
        row for batch in open_scores(str(output)).batches("scores") for row in batch.to_pylist()
    )
    return {row["sample_id"]: np.array(row["values"], np.float32) for row in rows}


def files_of(output: Path) -> dict[str, bytes]:
    return {
        path.relative_to(output).as_posix(): path.read_bytes()
        for path in sorted(output.rglob("*"))
        if path.is_file()
    }


def one_by_one(model: str, samples: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    """Scores every image with every caption of a sample, one image and one caption at a time."""
    from PIL import Image

    scorer: Any = load_model(model, "cpu")

    def answer(image: str, caption: str) -> float:
        video, frame = image[1:].split("-f")
        with Image.open(io.BytesIO(picture(100 * int(video) + int(frame)))) as opened:
            pixels = np.asarray(opened.convert("RGB"))
        encoded = scorer.encode_images([scorer.prepare(Picture(key=image, pixels=pixels))])
        found = scorer.match(encoded, [caption], np.array([[0, 0]]))
        return float((found.logits if found.cosines is None else found.cosines)[0])

    return {
        row["sample_id"]: np.array(
            [
                answer(row[image], row[caption])
                for image in ("image_0_id", "image_1_id")
                for caption in ("caption_0", "caption_1")
            ]
        )
        for row in samples
    }


@pytest.mark.parametrize("kind", ["clip", "blip-itm"])
def test_four_scores_a_sample_image_by_image(
    kind: str, clip_folder: Path, blip_folder: Path, pairs_dataset: Path, tmp_path: Path
) -> None:
    model = f"{kind}:{clip_folder if kind == 'clip' else blip_folder}"
    manifest = score(pairs_dataset, model, tmp_path / "scores")
    some = pair_tables(9)["samples"][::9]
    found = values_of(tmp_path / "scores")
    for sample, expected in one_by_one(model, some).items():
        assert found[sample] == pytest.approx(expected, abs=2e-5)
    assert len(found) == 54
    assert manifest.counts["samples"].scored == 54
    assert manifest.counts["images"].expected == 36
    assert manifest.quantity == ("cosine" if kind == "clip" else "logit")
    assert manifest.images == ["image_0_id", "image_1_id"]
    (row,) = next(open_scores(str(tmp_path / "scores")).batches("scores", rows=1)).to_pylist()
    assert row["captions"] == ["caption_0", "caption_1"]
    assert (row["model"], row["revision"]) == (manifest.model.name, manifest.model.revision)
    assert not (tmp_path / "scores" / "_work").exists()


def test_a_dual_encoder_encodes_each_image_and_caption_once(
    clip_folder: Path, pairs_dataset: Path, tmp_path: Path
) -> None:
    """In batches of one size, the last filled up."""
    scorer = CountingDual(load_model(f"clip:{clip_folder}", "cpu"))
    manifest = score(pairs_dataset, f"clip:{clip_folder}", tmp_path / "scores", scorer)
    texts = {row[f"caption_{n}"] for row in pair_tables(9)["samples"] for n in (0, 1)}
    assert scorer.images == manifest.counts["images"].expected == 36
    assert scorer.captions == dict.fromkeys(texts, 1)
    assert manifest.counts["captions"].expected == len(texts) < 36
    assert scorer.sizes == {("images", 8), ("captions", 8)}


def test_a_fusion_encoder_reads_each_image_with_each_of_its_captions_once(
    blip_folder: Path, pairs_dataset: Path, tmp_path: Path
) -> None:
    scorer = CountingFusion(load_model(f"blip-itm:{blip_folder}", "cpu"))
    score(pairs_dataset, f"blip-itm:{blip_folder}", tmp_path / "scores", scorer)
    distinct = {
        (row[f"image_{i}_id"], row[f"caption_{c}"])
        for row in pair_tables(9)["samples"]
        for i in (0, 1)
        for c in (0, 1)
    }
    assert scorer.images == 36
    assert scorer.captions.total() == len(distinct)
    assert scorer.sizes == {("images", 8), ("pairs", 8)}


@pytest.mark.parametrize("changes", [{"processes": 2}, {"workers": 2}])
def test_the_same_bytes_with_processes_and_with_workers(
    changes: dict[str, int],
    clip_folder: Path,
    pairs_dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = f"clip:{clip_folder}"
    score(pairs_dataset, model, tmp_path / "one")
    monkeypatch.setattr(work, "BATCHES_OF_A_WORKER", 1)
    score(pairs_dataset, model, tmp_path / "two", **changes)
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


@pytest.mark.parametrize("kind", ["clip", "blip-itm"])
def test_a_run_that_is_stopped_goes_on_and_ends_with_the_same_bytes(
    kind: str, clip_folder: Path, blip_folder: Path, pairs_dataset: Path, tmp_path: Path
) -> None:
    model = f"{kind}:{clip_folder if kind == 'clip' else blip_folder}"
    make: Any = CountingDual if kind == "clip" else CountingFusion
    score(pairs_dataset, model, tmp_path / "whole", image_batch=4)

    stopped = make(load_model(model, "cpu"), stop_after=6)
    with pytest.raises(KeyboardInterrupt):
        score(pairs_dataset, model, tmp_path / "parts", stopped, image_batch=4)
    assert not (tmp_path / "parts" / "scores.json").exists()
    rest: Counting = make(load_model(model, "cpu"))
    score(pairs_dataset, model, tmp_path / "parts", rest, image_batch=4)

    assert files_of(tmp_path / "whole") == files_of(tmp_path / "parts")
    assert rest.images == 36 - 16  # a unit of four batches was done


def test_a_run_that_is_killed_goes_on_behind_what_it_noted(
    pairs_dataset: Path, tmp_path: Path
) -> None:
    model = "python:tests.evaluation.scoring.own_models:make_slow"
    flags = ["--workers", "0", "--image-batch", "1", "--pair-batch", "8"]
    command = [sys.executable, "-m", "eqforge.cli", "score", str(pairs_dataset), "--model", model]
    killed = subprocess.Popen(
        [*command, *flags, "--output", str(tmp_path / "killed")], cwd=Path(__file__).parents[3]
    )
    notes = tmp_path / "killed" / "_work" / "done"
    while killed.poll() is None and not list(notes.glob("*.json")):
        time.sleep(0.02)
    killed.kill()
    assert killed.wait() == -signal.SIGKILL
    done = len(list(notes.glob("*.json")))
    assert 1 <= done < 9
    assert not (tmp_path / "killed" / "scores.json").exists()

    rest = CountingFusion(load_model(model, "cpu"))
    sizes = {"image_batch": 1, "caption_batch": 128}
    score(pairs_dataset, model, tmp_path / "killed", rest, **sizes)
    score(pairs_dataset, model, tmp_path / "whole", **sizes)
    assert files_of(tmp_path / "killed") == files_of(tmp_path / "whole")
    assert rest.images == 36 - 4 * done


@pytest.mark.parametrize("kind", ["clip", "blip-itm"])
def test_a_score_does_not_depend_on_the_other_samples(
    kind: str, clip_folder: Path, blip_folder: Path, pairs_dataset: Path, tmp_path: Path
) -> None:
    """To the last bit: batches have one size, and captions are padded to steps of 16 tokens."""
    model = f"{kind}:{clip_folder if kind == 'clip' else blip_folder}"
    some = write_pairs(tmp_path / "some", pair_tables(3, first=4), files=1, group_rows=7)
    score(pairs_dataset, model, tmp_path / "all")
    score(some, model, tmp_path / "few")
    everything, few = values_of(tmp_path / "all"), values_of(tmp_path / "few")
    assert len(few) == 18
    assert all((everything[sample] == values).all() for sample, values in few.items())


def test_bfloat16_is_near_and_kept_in_float32(
    clip_folder: Path, pairs_dataset: Path, tmp_path: Path
) -> None:
    model = f"clip:{clip_folder}"
    score(pairs_dataset, model, tmp_path / "exact")
    manifest = score(pairs_dataset, model, tmp_path / "bf16", autocast="bf16")
    exact, near = values_of(tmp_path / "exact"), values_of(tmp_path / "bf16")
    assert manifest.settings["autocast"] == "bf16"
    assert any((exact[sample] != near[sample]).any() for sample in exact)
    assert all(near[sample] == pytest.approx(exact[sample], abs=0.03) for sample in exact)
