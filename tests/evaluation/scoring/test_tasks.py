"""Every task of `eqforge score`, what cannot be scored, and what is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.cli import main as command
from eqforge.core.errors import InputError
from eqforge.evaluation.scoring.batches import Batch, Piece
from eqforge.evaluation.scoring.command import ScoreSettings
from eqforge.evaluation.scoring.pictures import Preparation, prepared_batches
from eqforge.evaluation.scoring.run import score_dataset
from eqforge.models.spec import load_model
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.dataset.score_tables import ScoresManifest, open_scores
from tests.builds import patch_manifest
from tests.evaluation.scoring.counting import CountingFusion
from tests.made_datasets import built, image_rows, pair_tables, picture, write_dataset, write_pairs
from tests.optional import optional
from tests.statuses import status_of
from tests.tiny_families import save_vilt

optional("transformers")

main = status_of(command)

OWN = "python:tests.evaluation.scoring.own_models:make"
ROOT = Path(__file__).parents[3]
ONE = np.zeros(1, np.int64)
Tables = dict[str, list[dict[str, Any]]]


def score(
    dataset: Path, model: str, output: Path, scorer: Any = None, **changes: Any
) -> ScoresManifest:
    given: dict[str, Any] = dict(workers=0, image_batch=4, caption_batch=4, pair_batch=4)
    named = ScoreSettings(dataset=str(dataset), model=model, output=output, **(given | changes))
    return score_dataset(named, scorer)


def rows_of(output: Path, table: str) -> list[dict[str, Any]]:
    return [row for batch in open_scores(str(output)).batches(table) for row in batch.to_pylist()]


def retrieval_tables() -> Tables:
    pictures = {f"i{n}": picture(n) for n in range(5)}
    captions = [
        {"caption_id": f"c{n}", "image_id": f"i{n % 5}", "caption": f"a red cup {'on ' * n}box"}
        for n in range(7)
    ]
    samples = [
        {
            "sample_id": f"{row['caption_id']}/typo",
            "caption_id": row["caption_id"],
            "image_id": row["image_id"],
            "caption": row["caption"],
            "perturbed_caption": row["caption"].replace("red", "rde"),
        }
        for row in captions
    ]
    return {"captions": captions, "samples": samples, "images": image_rows(pictures)}


def test_hard_positives_have_three_scores(clip_folder: Path, tmp_path: Path) -> None:
    """A sample whose image is not known is a failure with a reason, and the books add up."""
    samples = [
        {
            "sample_id": f"s{n}",
            "image_id": f"i{n}" if n < 3 else None,
            "caption": "a red cup",
            "hard_positive": "a cup red",
            "hard_negative": f"a blue cup {n}",
        }
        for n in range(5)
    ]
    tables = {"samples": samples, "images": image_rows({f"i{n}": picture(n) for n in range(3)})}
    dataset = write_dataset(tmp_path / "d", "hard-positives", tables)
    manifest = score(dataset, f"clip:{clip_folder}", tmp_path / "s")
    rows = rows_of(tmp_path / "s", "scores")
    assert manifest.task == "hard-positives"
    assert sorted(row["sample_id"] for row in rows) == ["s0", "s1", "s2"]
    assert rows[0]["captions"] == ["caption", "hard_positive", "hard_negative"]
    assert rows[0]["images"] == ["image_id"]
    assert all(len(row["values"]) == 3 for row in rows)
    counts = manifest.counts["samples"]
    assert (counts.expected, counts.scored, counts.failed) == (5, 3, 2)
    failures = rows_of(tmp_path / "s", "failures")
    assert [(row["table"], row["key"], row["reason"]) for row in failures] == [
        ("samples", "s4", "missing_image"),
        ("samples", "s3", "missing_image"),
    ]


@pytest.mark.parametrize(
    ("kind", "quantity"), [("vilt", "score"), ("own", "score"), ("sure", "logit")]
)
def test_only_log_odds_are_held_against_a_threshold(
    kind: str, quantity: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A ranking head and a model that says nothing of its numbers have no VALSE accuracy."""
    texts = {"caption": "a red cup", "hard_positive": "a cup red", "hard_negative": "a blue cup"}
    samples = [
        {"sample_id": f"s{n}", "image_id": f"i{n}", "image": str(n), **texts} for n in range(4)
    ]
    pictures = image_rows({f"i{n}": picture(n) for n in range(4)})
    tables = {"samples": samples, "images": pictures}
    dataset = write_dataset(tmp_path / "d", "hard-positives", tables)
    models = {"own": OWN, "sure": f"{OWN}_sure"}
    model = models.get(kind) or f"vilt:{save_vilt(tmp_path / 'vilt')}"
    assert score(dataset, model, tmp_path / "s").quantity == quantity
    assert {row["quantity"] for row in rows_of(tmp_path / "s", "scores")} == {quantity}
    assert main(["metrics", str(dataset), str(tmp_path / "s"), "--show", "json"]) == 0
    found = {measure["metric"] for measure in json.loads(capsys.readouterr().out)["measures"]}
    assert found >= {"original", "augmented", "brittleness"}
    assert {"acc", "p_c", "p_f"} & found == (
        {"acc", "p_c", "p_f"} if quantity == "logit" else set()
    )


def test_retrieval_by_a_dual_encoder_is_vectors(clip_folder: Path, tmp_path: Path) -> None:
    """Of every image, every caption and every perturbed caption, and captions of one's own."""
    dataset = write_dataset(tmp_path / "d", "retrieval-perturbations", retrieval_tables())
    (tmp_path / "more.txt").write_text("a photo of a dog\n\na photo of a dog\n")
    manifest = score(dataset, f"clip:{clip_folder}", tmp_path / "s", captions=tmp_path / "more.txt")
    images = {row["image_id"]: row["vector"] for row in rows_of(tmp_path / "s", "image_vectors")}
    captions = {row["caption"]: row["vector"] for row in rows_of(tmp_path / "s", "caption_vectors")}
    tables = retrieval_tables()
    texts = {row["caption"] for row in tables["captions"]}
    perturbed = {row["perturbed_caption"] for row in tables["samples"]}
    assert manifest.task == "retrieval-perturbations"
    assert images.keys() == {f"i{n}" for n in range(5)}
    assert captions.keys() == texts | perturbed | {"a photo of a dog"}
    assert np.linalg.norm(list(captions.values()), axis=1) == pytest.approx(1)
    scorer: Any = load_model(f"clip:{clip_folder}", "cpu")
    (expected,) = scorer.encode_captions(["a photo of a dog"])
    assert captions["a photo of a dog"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("mode", ["paper", "corrected"])
def test_long_captions_are_cut_as_published_when_they_are_encoded(
    mode: str, blip_folder: Path, tmp_path: Path
) -> None:
    """The published code cuts captions to 300 characters when it encodes them."""
    tables = retrieval_tables()
    for row in (*tables["captions"], *tables["samples"]):
        row["caption"] += " beside a cup" * 25
    dataset = write_dataset(tmp_path / "d", "retrieval-perturbations", tables)
    patch_manifest(dataset, lambda manifest: manifest.update(mode=mode))
    scorer = CountingFusion(load_model(f"blip-itm:{blip_folder}", "cpu"))
    score(dataset, f"blip-itm:{blip_folder}", tmp_path / "s", scorer)
    whole = {row["caption"] for row in tables["captions"]}
    whole |= {row["perturbed_caption"] for row in tables["samples"]}
    expected = {text[:300] for text in whole} if mode == "paper" else whole
    assert set(scorer.captions) == expected
    assert set(rows_of(tmp_path / "s", "grid")[0]["captions"]) == whole


def test_retrieval_by_a_fusion_encoder_is_a_grid(blip_folder: Path, tmp_path: Path) -> None:
    dataset = write_dataset(tmp_path / "d", "retrieval-perturbations", retrieval_tables())
    scorer = CountingFusion(load_model(f"blip-itm:{blip_folder}", "cpu"))
    score(dataset, f"blip-itm:{blip_folder}", tmp_path / "s", scorer)
    rows = rows_of(tmp_path / "s", "grid")
    assert [row["image_id"] for row in rows] == [f"i{n}" for n in range(5)]
    assert all(len(set(row["captions"])) == len(row["values"]) == 14 for row in rows)
    assert scorer.captions.total() == 5 * 14
    assert len({value for row in rows for value in row["values"]}) > 60


def test_a_fusion_encoder_reads_what_a_dual_encoder_puts_first(
    clip_folder: Path, blip_folder: Path, tmp_path: Path
) -> None:
    """Two captions of each image and two images of each caption, with the scores of the whole."""
    dataset = write_dataset(tmp_path / "d", "retrieval-perturbations", retrieval_tables())
    score(dataset, f"clip:{clip_folder}", tmp_path / "first")
    score(dataset, f"blip-itm:{blip_folder}", tmp_path / "all")
    first = {"candidates": tmp_path / "first", "top": 2}
    score(dataset, f"blip-itm:{blip_folder}", tmp_path / "some", **first)

    images = {
        row["image_id"]: row["vector"] for row in rows_of(tmp_path / "first", "image_vectors")
    }
    captions = {
        row["caption"]: row["vector"] for row in rows_of(tmp_path / "first", "caption_vectors")
    }
    cosines = np.array(list(images.values())) @ np.array(list(captions.values())).T
    of_images = np.sort(cosines, axis=1)[:, -2:][:, :1] <= cosines
    of_captions = np.sort(cosines, axis=0)[-2:][:1] <= cosines
    places = zip(*np.nonzero(of_images | of_captions), strict=True)
    names, texts = list(images), list(captions)
    expected = {(names[image], texts[caption]) for image, caption in places}

    def cells(folder: str) -> dict[tuple[str, str], float]:
        return {
            (row["image_id"], caption): value
            for row in rows_of(tmp_path / folder, "grid")
            for caption, value in zip(row["captions"], row["values"], strict=True)
        }

    some, whole = cells("some"), cells("all")
    assert some.keys() == expected
    assert len(some) < len(whole) == 70
    assert all(whole[cell] == value for cell, value in some.items())

    wrong = {"candidates": tmp_path / "all"}
    with pytest.raises(InputError, match="contains no vectors"):
        score(dataset, f"blip-itm:{blip_folder}", tmp_path / "x", **wrong)
    assert not (tmp_path / "x").exists()
    with pytest.raises(InputError, match="retrieval with fusion encoders"):
        score(dataset, f"clip:{clip_folder}", tmp_path / "x", **first)
    tables = retrieval_tables()
    tables["captions"][0]["split"] = "other"
    other = write_dataset(tmp_path / "o", "retrieval-perturbations", tables)
    with pytest.raises(InputError, match="are from a different dataset"):
        score(other, f"blip-itm:{blip_folder}", tmp_path / "y", **first)


def test_a_matrix_leaves_out_the_pairs_it_has_no_number_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """SIMAT's words are no columns of a matrix of its captions; 0 and 1 stand in it."""
    words = [("man", "riding", noun) for noun in ("horse", "wave", "bike")]
    captions = [f"A {s} {r} a {o}" for s, r, o in words]
    tables = {
        "gallery": [{"image_id": f"i{n}"} for n in range(4)],
        "captions": [
            {"caption": caption, "subject": s, "relation": r, "object": o}
            for caption, (s, r, o) in zip(captions, words, strict=True)
        ],
        "samples": [{"sample_id": "q", "source_word": "horse", "target_word": "wave"}],
        "images": image_rows({f"i{n}": picture(n) for n in range(4)}),
    }
    known = {("i0", 0): 0.0, ("i0", 1): 1.0, ("i1", 0): 0.25, ("i2", 1): 0.5, ("i9", 2): 0.5}
    rows = [
        {"image": image, "caption": captions[caption], "probability": value}
        for (image, caption), value in known.items()
    ] + [{"image": "i3", "caption": "another", "probability": 0.5}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "p.parquet")
    dataset = write_dataset(tmp_path / "d", "simat", tables)
    command = ["score", str(dataset), "--model", f"matrix:{tmp_path / 'p.parquet'}"]
    assert main([*command, "--output", str(tmp_path / "s"), "--workers", "0"]) == 0
    assert "pairs: 32 expected = 4 scored + 28 failed" in capsys.readouterr().out
    grid = {
        (row["image_id"], caption): value
        for row in rows_of(tmp_path / "s", "grid")
        for caption, value in zip(row["captions"], row["values"], strict=True)
    }
    assert grid.keys() == {(image, captions[n]) for image, n in known if image != "i9"}
    assert np.isfinite(list(grid.values())).all()
    assert grid["i0", captions[0]] < grid["i1", captions[0]] < 0 < grid["i0", captions[1]]
    failures = {(row["table"], row["key"]) for row in rows_of(tmp_path / "s", "failures")}
    silent = {captions[2], "man", "riding", "horse", "wave", "bike"}
    assert failures == {
        ("images", "i3"),
        *(("captions", text) for text in silent),
        *(("pairs", f"i{n}") for n in range(3)),
    }
    counts = open_scores(str(tmp_path / "s")).manifest.counts
    assert (counts["images"].failed, counts["captions"].failed) == (1, len(silent))
    assert counts["captions"].expected == 8


def test_an_image_that_cannot_be_used_takes_no_other_along(
    clip_folder: Path, tmp_path: Path
) -> None:
    tables = pair_tables(3)
    images = tables["images"]
    images[1]["image"]["bytes"] = images[1]["image"]["bytes"][:40]
    images[2]["image"]["bytes"] = picture(9, width=90, height=90)
    gone = images.pop(3)["image_id"]
    dataset = write_pairs(tmp_path / "d", tables)
    manifest = score(dataset, f"clip:{clip_folder}", tmp_path / "s", max_pixels=8_000)
    failures = rows_of(tmp_path / "s", "failures")
    reasons = {row["key"]: row["reason"] for row in failures if row["table"] == "images"}
    assert reasons == {
        images[1]["image_id"]: "undecodable_image",
        images[2]["image_id"]: "too_many_pixels",
        gone: "missing_image",
    }
    # Of the first video's four images one is left, and no pair.
    assert manifest.counts["samples"].failed == 6
    assert {row["sample_id"] for row in rows_of(tmp_path / "s", "scores")} == {
        row["sample_id"] for row in tables["samples"][6:]
    }
    exact = score(
        write_pairs(tmp_path / "w", pair_tables(3)), f"clip:{clip_folder}", tmp_path / "t"
    )
    assert exact.counts["samples"].failed == 0
    whole = {row["sample_id"]: row["values"] for row in rows_of(tmp_path / "t", "scores")}
    assert all(
        whole[row["sample_id"]] == row["values"] for row in rows_of(tmp_path / "s", "scores")
    )


def test_a_model_of_the_oracles_family_is_warned_of(
    clip_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {
        "settings": {"oracle": {"oracle": [{"kind": "clip", "model": "m", "family": "CLIP"}]}}
    }
    dataset = write_pairs(tmp_path / "d", pair_tables(1), config=config)
    command = ["score", str(dataset), "--model", f"clip:{clip_folder}", "--workers", "0"]
    assert main([*command, "--output", str(tmp_path / "s")]) == 0
    warning, *_ = open_scores(str(tmp_path / "s")).manifest.warnings
    assert "the dataset's oracle clip:m belongs to the same family as this model" in warning
    printed = capsys.readouterr().out
    assert f"warning: {warning}" in printed
    assert "samples: 6 expected = 6 scored + 0 failed" in printed


def test_captions_longer_than_the_model_reads_are_counted(
    clip_folder: Path, tmp_path: Path
) -> None:
    tables = pair_tables(2)
    for row in tables["samples"]:
        row |= {"caption_0": "red", "caption_1": "blue"}
    long = "red " * 100
    tables["samples"][0] |= {"caption_0": long + "square", "caption_1": long + "circle"}
    dataset = write_pairs(tmp_path / "d", tables)
    manifest = score(dataset, f"clip:{clip_folder}", tmp_path / "s")
    (warning,) = manifest.warnings
    assert "the end of 2 of 4 captions. Captions that differ" in warning
    key = tables["samples"][0]["sample_id"]
    (row,) = [row for row in rows_of(tmp_path / "s", "scores") if row["sample_id"] == key]
    assert len(set(row["values"])) == 2, "one for each image"


def test_a_model_of_ones_own_is_named_on_the_command_line(tmp_path: Path) -> None:
    dataset = write_pairs(tmp_path / "d", pair_tables(2))
    manifest = score(dataset, f"{OWN},factor=0.5", tmp_path / "s")
    red = {row["sample_id"]: "red" in row["caption_0"] for row in pair_tables(2)["samples"]}
    assert manifest.model.name == "own:redness@1"
    for row in rows_of(tmp_path / "s", "scores"):
        assert (row["values"][0] > 0) == red[row["sample_id"]]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("python:tests.evaluation.scoring.own_models", "expected python:MODULE:FACTORY"),
        ("python:no_such_module:make", "Install the module, or put its folder on"),
        (f"{OWN}_nothing", "returned a object without identity, reads_pixels, prepare"),
        (f"{OWN}_unmatched", "returned a Unmatched without match; "),
        (f"{OWN},colour=red", "unexpected keyword argument 'colour'"),
        ("clip:a+clip:b", "expected one model"),
        ("clip:nowhere", "no such folder"),
        ("clp:nowhere", r"'clip'\? For your own model, write python:MODULE:FACTORY"),
    ],
)
def test_a_model_that_is_none_is_refused(model: str, message: str, tmp_path: Path) -> None:
    dataset = write_pairs(tmp_path / "d", pair_tables(1))
    with pytest.raises(InputError, match=message):
        score(dataset, model, tmp_path / "s")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("unshaped", r"redness: expected 4 logits for 4 pairs, found an array of shape \(3,\)"),
        ("single", "redness: expected 4 encoded images for 4 images, found 1"),
        ("flat", r"expected vectors of equal length for all images, found arrays of shape \(\)"),
        ("fewer", r"expected 4 vectors for 4 captions, found an array of shape \(1, 2\)"),
    ],
)
def test_what_a_model_of_ones_own_makes_has_the_right_shape(
    model: str, message: str, tmp_path: Path
) -> None:
    dataset = write_pairs(tmp_path / "d", pair_tables(2))
    with pytest.raises(InputError, match=message):
        score(dataset, f"{OWN}_{model}", tmp_path / "s")


def test_a_model_that_gives_no_number_fails_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = write_pairs(tmp_path / "d", pair_tables(2))
    for _ in range(2):  # the second time everything is there already
        arguments = [str(dataset), "--model", f"{OWN}_lost", "--output", str(tmp_path / "s")]
        assert main(["score", *arguments]) == 1
        printed = capsys.readouterr().out
        assert "most common reason: not_finite, for 12 samples" in printed
        assert "nothing could be scored" in printed


def test_a_folder_of_other_scores_is_left_alone(tmp_path: Path, capsys: Any) -> None:
    dataset = write_pairs(tmp_path / "d", pair_tables(1))
    first = score(dataset, OWN, tmp_path / "s")
    assert score(dataset, OWN, tmp_path / "s") == first
    assert "already contains the scores" in capsys.readouterr().err
    (tmp_path / "more.txt").write_text("a photo of a dog\n")
    with pytest.raises(
        InputError,
        match="the task pairs cannot score extra captions; omit --captions",
    ):
        score(dataset, OWN, tmp_path / "t", captions=tmp_path / "more.txt")
    with pytest.raises(InputError, match="contains scores for 'eq-video' by own:redness@1"):
        score(dataset, f"{OWN},factor=2", tmp_path / "s")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("")
    with pytest.raises(InputError, match="contains other files"):
        score(dataset, OWN, tmp_path / "other")


def test_unfinished_scores_of_something_else_are_left_alone(tmp_path: Path) -> None:
    dataset = write_pairs(tmp_path / "d", pair_tables(2))
    stopped = CountingFusion(load_model(OWN, "cpu"), stop_after=1)
    with pytest.raises(KeyboardInterrupt):
        score(dataset, OWN, tmp_path / "s", stopped)
    with pytest.raises(
        InputError, match="scores from a run with a different dataset, model or setting"
    ):
        score(dataset, f"{OWN},factor=2", tmp_path / "s")


def test_a_dataset_without_pictures_is_refused(tmp_path: Path) -> None:
    dataset = shutil.copytree(built("hard-positives"), tmp_path / "d")
    patch_manifest(dataset, lambda manifest: manifest["tables"].pop("images"))
    with pytest.raises(InputError, match="build it with --images FOLDER"):
        score(dataset, OWN, tmp_path / "s")
    other = built("training-captions")
    with pytest.raises(InputError, match="no pairs of images and captions to score"):
        score(other, OWN, tmp_path / "s")
    with pytest.raises(InputError, match="expected one of pairs, hard-positives"):
        score(other, OWN, tmp_path / "s", task="pears")


def test_a_dataset_of_which_nothing_can_be_scored_is_an_error(tmp_path: Path) -> None:
    tables = pair_tables(1)
    for row in tables["images"]:
        row["image"]["bytes"] = b"no picture"
    with pytest.raises(
        InputError, match=r"none of the 4 images could be scored, for example v000-f0 \(undecod"
    ):
        score(write_pairs(tmp_path / "d", tables), OWN, tmp_path / "s")


@pytest.mark.parametrize("processes", [1, 2])
def test_too_little_memory_is_one_clear_error(
    processes: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))  # where other processes find the model
    dataset = write_pairs(tmp_path / "d", pair_tables(8))
    command = ["score", str(dataset), "--model", f"{OWN}_short", "--output", str(tmp_path / "s")]
    flags = ["--processes", str(processes), "--image-batch", "2"]
    assert main([*command, *flags]) == 1
    assert "cpu ran out of memory. Lower --image-batch" in capsys.readouterr().err


def test_a_worker_that_is_killed_is_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    dataset = write_pairs(tmp_path / "d", pair_tables(2))
    command = ["score", str(dataset), "--model", f"{OWN}_deadly", "--output", str(tmp_path / "s")]
    assert main([*command, "--workers", "1", "--image-batch", "1"]) == 1
    assert "an image-loading process was killed" in capsys.readouterr().err


def test_damage_that_a_worker_finds_is_one_clear_error(tmp_path: Path) -> None:
    """Without the worker's traceback."""
    folder = write_pairs(tmp_path / "d", pair_tables(1))
    dataset = open_dataset(str(folder))
    path = dataset.files("images")[0].path
    (folder / path).unlink()
    batch = Batch(unit=0, pieces=(Piece(path=path, group=0, rows=np.arange(1), images=ONE),))
    preparation = Preparation(
        dataset=dataset, batches=[batch], prepare=str, reads_pixels=True, max_pixels=9
    )
    with pytest.raises(InputError, match=r"images-00000.*: cannot be read") as raised:
        next(prepared_batches(preparation, workers=1, prefetch=1, device="cpu"))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("flag", ["--image-batch", "--processes", "--max-pixels"])
def test_settings_are_checked_before_any_work(
    flag: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["score", "nowhere", "--model", OWN, "--output", str(tmp_path / "s"), flag, "0"]
    assert main(command) == 2
    assert f"{flag} 0: expected at least 1" in capsys.readouterr().err
