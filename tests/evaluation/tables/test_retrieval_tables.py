import csv
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from eqforge.evaluation.tables.command import main as command
from eqforge.evaluation.tables.render import Measure
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.evaluation.tasks.retrieval import derived, retrieval_report
from eqforge.schemas.dataset.reader import open_dataset
from tests.builds import patch_manifest
from tests.evaluation.written import rows_by
from tests.made_datasets import vectors, write_dataset, write_scores
from tests.statuses import status_of

main = status_of(command)

IMAGES = 30
TASK = "retrieval-perturbations"


class Made:
    """A gallery with four to eight captions an image, two perturbations, vectors of two models.

    A perturbation that changes no word puts a space into the caption.
    """

    def __init__(self, folder: Path, *, is_old: bool = False) -> None:
        rng = np.random.default_rng(0)
        self.images = [f"{number:02d}.jpg" for number in range(IMAGES)]
        self.counts = rng.integers(4, 9, IMAGES)
        self.owner = np.repeat(np.arange(IMAGES), self.counts)
        self.texts = [f"caption {number}" for number in range(len(self.owner))]
        self.texts[7] = self.texts[20] = "two images have this caption"
        self.texts[40] = "p of 50"  # what a perturbation makes of another image's caption
        self.describes = np.arange(IMAGES)[:, None] == self.owner
        self.describes[self.owner[[7, 20]], [[20], [7]]] = True
        self.changed = {
            name: rng.random(len(self.owner)) < share for name, share in (("p", 0.9), ("q", 0.5))
        }
        self.matches = {name: self.describes.copy() for name in self.changed}
        self.matches["p"][self.owner[40], 50] = self.changed["p"][50]
        self.perturbed = {
            name: [f"{name} of {n}" if done[n] else f" {text}" for n, text in enumerate(self.texts)]
            for name, done in self.changed.items()
        }
        self.names = sorted({*self.texts, *self.perturbed["p"], *self.perturbed["q"]})
        self.vectors = {
            model: (rng.normal(size=(IMAGES, 6)), rng.normal(size=(len(self.names), 6)))
            for model in ("m", "judge")
        }
        self.folder = self._write(folder)
        if is_old:
            self._leave_out_what_older_versions_lack()
        self.scores = {model: self._score(folder / model, model) for model in self.vectors}

    def _write(self, folder: Path) -> Path:
        captions, samples = [], []
        for number, (owner, text) in enumerate(zip(self.owner, self.texts, strict=True)):
            image = {"image": self.images[owner], "image_id": f"id-{owner:02d}"}
            captions.append({"caption_id": f"c{number:03d}", "caption": text, **image})
            samples += [
                {
                    "sample_id": f"c{number:03d}/{name}",
                    "caption_id": f"c{number:03d}",
                    "perturbation": name,
                    "perturbed_caption": found[number],
                    "applied": True,
                    "words_changed": bool(self.changed[name][number]),
                }
                for name, found in self.perturbed.items()
            ]
        order = np.random.default_rng(1).permutation(len(captions))
        tables = {"captions": [captions[i] for i in order], "samples": samples[::-1]}
        return write_dataset(folder / "d", TASK, tables)

    def _leave_out_what_older_versions_lack(self) -> None:
        paths = sorted((self.folder / "data").glob("samples-*.parquet"))
        for path in paths:
            table = pq.read_table(path).drop(["applied"])
            pq.write_table(table.rename_columns({"words_changed": "applied"}), path)
        sizes = {f"data/{path.name}": path.stat().st_size for path in paths}
        patch_manifest(
            self.folder,
            lambda manifest: [
                file.update(num_bytes=sizes[file["path"]]) for file in manifest["tables"]["samples"]
            ],
        )

    def _score(self, folder: Path, model: str) -> Path:
        images, captions = self.vectors[model]
        tables = {
            "image_vectors": vectors("image_id", [f"id-{n:02d}" for n in range(IMAGES)], images),
            "caption_vectors": vectors("caption", self.names, captions),
        }
        return write_scores(folder, self.folder, TASK, tables, model=model)

    def similar(self, model: str, texts: list[str]) -> np.ndarray:
        images, captions = (
            (v / np.linalg.norm(v, axis=1, keepdims=True)).astype(np.float32)
            for v in self.vectors[model]
        )
        return images @ captions[[self.names.index(text) for text in texts]].T


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("retrieval"))


def _one(row: np.ndarray, true: np.ndarray, gains: np.ndarray) -> list[float]:
    """R@1, R@5, R@10, their sum and DCG_CM of one query, by sorting."""
    order = sorted(range(len(row)), key=lambda c: (-row[c], bool(true[c]), c))[:10]
    recalls = [float(any(true[c] for c in order[:k])) for k in (1, 5, 10)]
    gained = [1.0 if true[c] else float(gains[c]) for c in order]
    return [*recalls, sum(recalls), sum(g / math.log2(r + 2) for r, g in enumerate(gained))]


def _reference(made: Made, texts: list[str], true: np.ndarray, direction: str) -> np.ndarray:
    scores, gains = made.similar("m", texts), made.similar("judge", texts)
    if direction == "t2i":
        scores, gains, true = scores.T, gains.T, true.T
    return np.array([_one(*query) for query in zip(scores, true, gains, strict=True)])


def _measured(
    made: Made, output: Path, *arguments: object
) -> dict[tuple[str, str], dict[str, Any]]:
    command = [str(made.folder), str(made.scores["m"]), "--output", str(output)]
    assert main([*command, *map(str, arguments), "--resamples", "100"]) == 0
    return rows_by(output)


NAMES = ("R@1", "R@5", "R@10", "rsum", "DCG_CM")


def test_both_directions_are_those_of_sorting_every_query(made: Made, tmp_path: Path) -> None:
    rows = _measured(made, tmp_path, "--relevance", made.scores["judge"])
    total = 0.0
    for direction, queries in (("i2t", "all images"), ("t2i", "all captions")):
        expected = _reference(made, made.texts, made.describes, direction).mean(axis=0)
        found = [float(rows[queries, f"{direction} {name}"]["value"]) for name in NAMES]
        assert found == pytest.approx(list(expected), abs=1e-5)
        total += expected[3]
    assert float(rows["all", "rsum"]["value"]) == pytest.approx(total)
    assert float(rows["all", "rsum"]["low"]) < total < float(rows["all", "rsum"]["high"])
    assert rows["all captions", "t2i R@5"]["clusters"] == str(IMAGES)
    for query, sums, total in (
        ("all captions", made.describes.sum(axis=0), IMAGES),
        ("all images", made.describes.sum(axis=1), len(made.texts)),
    ):
        chance = [1 - math.comb(total - n, 5) / math.comb(total, 5) for n in sums.tolist()]
        metric = "t2i R@5" if query == "all captions" else "i2t R@5"
        assert float(rows[query, metric]["chance"]) == pytest.approx(np.mean(chance))


def test_a_drop_compares_the_perturbed_captions_with_themselves_unperturbed(
    made: Made, tmp_path: Path
) -> None:
    rows = _measured(made, tmp_path, "--relevance", made.scores["judge"])
    before = _reference(made, made.texts, made.describes, "t2i")
    for name, done in made.changed.items():
        texts = [made.perturbed[name][n] for n in np.flatnonzero(done)]
        after = _reference(made, texts, made.matches[name][:, done], "t2i")
        for column, metric in enumerate(NAMES):
            was, now = before[done, column].mean(), after[:, column].mean()
            assert float(rows[name, f"t2i {metric}"]["value"]) == pytest.approx(now, abs=1e-5)
            drop = float(rows[name, f"drop t2i {metric}"]["value"])
            assert drop == pytest.approx((was - now) / was, abs=1e-4)
        assert rows[name, "t2i R@1"]["expected"] == str(done.sum())
    both = made.changed["p"] & made.changed["q"]
    signs = {}
    for name, done in made.changed.items():
        after = _reference(made, made.perturbed[name], made.matches[name], "t2i")[:, 3]
        signs[name] = np.where(done, np.sign(after - before[:, 3]), 9)
    for group, sign in (("decreased", -1), ("increased", 1), ("unchanged", 0)):
        p, q = (both & (signs[name] == sign) for name in ("p", "q"))
        expected = (p & q).sum() / (p | q).sum()
        assert float(rows["Jaccard", group]["value"]) == pytest.approx(expected)
    assert both.any()


def test_of_an_older_dataset_what_was_not_applied_is_left_out(made: Made, tmp_path: Path) -> None:
    older = Made(tmp_path / "older", is_old=True)
    assert _measured(older, tmp_path / "a") == _measured(made, tmp_path / "b")


def test_paper_mode_divides_by_five_and_keeps_unchanged_captions(
    made: Made, tmp_path: Path
) -> None:
    rows = _measured(made, tmp_path, "--mode", "paper")
    scores = made.similar("m", made.texts)
    for k in (1, 5, 10):
        found = []
        for image, row in enumerate(scores):
            first = np.argsort(-row, kind="stable")[:k]
            found.append((made.owner[first] == image).sum() / min(5, k))
        assert float(rows["all images", f"i2t R@{k}"]["value"]) == pytest.approx(np.mean(found))
    assert rows["q", "t2i R@1"]["expected"] == str(len(made.texts))


def test_two_models_are_compared_query_by_query(made: Made, tmp_path: Path) -> None:
    both = [str(made.folder), str(made.scores["m"]), str(made.scores["judge"])]
    assert main([*both, "--output", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "metrics.json").read_text())["comparisons"]
    compared = {(one["subset"], one["metric"]): one["found"] for one in found}
    true = made.describes
    ranks = []
    for model in ("m", "judge"):
        scores = made.similar(model, made.texts).T
        order = [_one(row, t, row) for row, t in zip(scores, true.T, strict=True)]
        ranks.append(np.array(order)[:, 1])
    gains = ranks[1] - ranks[0]
    one = compared["all captions", "t2i R@5"]
    assert one["difference"] == pytest.approx(gains.mean())
    assert (one["better"], one["worse"]) == ((gains > 0).sum(), (gains < 0).sum())
    assert one["clusters"] == IMAGES
    assert ("all images", "i2t R@1") in compared


def test_a_grid_of_scores_gives_the_same_table_as_vectors(made: Made, tmp_path: Path) -> None:
    scores = made.similar("m", made.names)
    grid = [
        {"image_id": f"id-{n:02d}", "captions": made.names, "values": row}
        for n, row in enumerate(scores.tolist())
    ]
    folder = write_scores(tmp_path / "grid", made.folder, TASK, {"grid": grid})
    by_vectors = _measured(made, tmp_path / "a")
    assert main([str(made.folder), str(folder), "--output", str(tmp_path / "b")]) == 0
    with (tmp_path / "b" / "metrics.csv").open() as stream:
        for row in csv.DictReader(stream):
            other = by_vectors[row["subset"], row["metric"]]
            assert float(row["value"] or "nan") == pytest.approx(
                float(other["value"] or "nan"), nan_ok=True
            )


def test_captions_without_vectors_are_an_error_unless_allowed(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images, captions = made.vectors["m"]
    tables = {
        "image_vectors": vectors("image_id", [f"id-{n:02d}" for n in range(1, IMAGES)], images[1:]),
        "caption_vectors": vectors("caption", made.names, captions),
        "failures": [
            {"table": "images", "key": "id-00", "reason": "undecodable_image", "detail": ""}
        ],
    }
    folder = write_scores(tmp_path / "s", made.folder, TASK, tables)
    assert main([str(made.folder), str(folder)]) == 2
    error = capsys.readouterr().err
    lost = int(made.counts[0])
    assert f"{lost} of {len(made.texts)} captions have no score for their image" in error
    assert "1 images: undecodable_image" in error
    arguments = [str(made.folder), str(folder), "--allow-missing", "--output", str(tmp_path / "o")]
    assert main(arguments) == 0
    missing = {key: row["missing"] for key, row in rows_by(tmp_path / "o").items()}
    assert missing["all images", "i2t R@1"] == "1"
    assert missing["all captions", "t2i R@1"] == str(lost)
    assert missing["all", "rsum"] == str(lost + 1)


def test_vlues_captions_are_read_by_gallery(tmp_path: Path) -> None:
    """Two rows of one image are two entries, and share its vector; both are true if corrected."""
    rows = [
        {
            "sample_id": f"s{n}",
            "gallery_id": f"g{n // 4}",
            "image_id": f"i{n // 8}",
            "caption": f"{n}",
        }
        for n in range(16)
    ]
    dataset = write_dataset(tmp_path / "d", "vlue", {"retrieval": rows})
    images, captions = np.eye(2, 3), np.repeat(np.eye(2, 3), 8, axis=0)
    tables = {
        "image_vectors": vectors("image_id", ["i0", "i1"], images),
        "caption_vectors": vectors("caption", [str(n) for n in range(16)], captions),
    }
    folder = write_scores(tmp_path / "s", dataset, "retrieval", tables)
    for mode, share in (("corrected", 1.0), ("paper", 0.0)):  # as published, the two entries tie
        output = tmp_path / mode
        assert main([str(dataset), str(folder), "--mode", mode, "--output", str(output)]) == 0
        found = {metric: float(row["value"]) for (_, metric), row in rows_by(output).items()}
        assert (found["t2i R@1"], found["i2t R@1"]) == (share, share)


def _candidates(made: Made, folder: Path, kept: np.ndarray) -> Path:
    """Scores of chosen pairs alone; the captions of each image in an order of its own."""
    scores, rng = made.similar("m", made.names), np.random.default_rng(7)
    rows = []
    for image in range(IMAGES):
        chosen = rng.permutation(np.flatnonzero(kept[image]))
        names = [made.names[number] for number in chosen]
        values = [float(scores[image, number]) for number in chosen]
        rows.append({"image_id": f"id-{image:02d}", "captions": names, "values": values})
    return write_scores(folder, made.folder, TASK, {"grid": rows})


def test_a_grid_of_candidates_counts_queries_whose_true_ones_it_lacks(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = np.random.default_rng(6).random((IMAGES, len(made.names))) < 0.4
    folder = _candidates(made, tmp_path / "grid", kept)
    arguments = [str(made.folder), str(folder), "--ties", "expectation"]
    assert main([*arguments, "--output", str(tmp_path / "o")]) == 0
    rows = rows_by(tmp_path / "o")
    columns = [made.names.index(text) for text in made.texts]
    scores = np.where(kept[:, columns], made.similar("m", made.texts), -np.inf)
    true = made.describes
    found = []
    for row, own in zip(scores.T, true.T, strict=True):
        best = row[own].max()
        found.append(best > -np.inf and (row > best).sum() < 5)
    assert float(rows["all captions", "t2i R@5"]["value"]) == pytest.approx(np.mean(found))
    assert float(rows["all captions", "t2i R@5"]["ties"]) == 0
    lost = int((~(kept[:, columns] & true).any(axis=0)).sum())
    note = f"all captions: {lost} of {len(columns)} queries count as 0, because none of"
    assert note in capsys.readouterr().out


def test_each_direction_counts_its_own_queries_and_ties(made: Made, tmp_path: Path) -> None:
    rows = _measured(made, tmp_path)
    sizes = {"all images": IMAGES, "all captions": len(made.texts)}
    for subset, metric in (("all images", "i2t R@1"), ("all captions", "t2i rsum")):
        assert rows[subset, metric]["expected"] == str(sizes[subset])
        assert rows[subset, metric]["scored"] == str(sizes[subset])
    assert rows["all", "rsum"]["expected"] == str(sum(sizes.values()))
    scores = made.similar("m", made.texts)
    own = made.describes
    best = np.where(own, scores, -np.inf).max(axis=1)
    tied = ((scores == best[:, None]) & ~own).any(axis=1)
    assert float(rows["all images", "i2t R@1"]["ties"]) == pytest.approx(tied.mean())
    assert float(rows["all captions", "t2i R@1"]["ties"]) == 0


def test_in_paper_mode_ties_lose_and_the_table_says_so(made: Made) -> None:
    dataset = open_dataset(str(made.folder))
    settings = MetricsSettings(paths=(), resamples=10, mode="paper")
    report = retrieval_report(dataset, [made.scores["m"]], settings)
    assert report.rules is not None
    assert report.rules.ties == "strict"


def test_a_row_of_a_grid_has_a_score_for_each_caption(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {"image_id": "id-00", "captions": made.names, "values": [0.5]}
    folder = write_scores(tmp_path / "g", made.folder, TASK, {"grid": [row, row]})
    assert main([str(made.folder), str(folder)]) == 2
    assert "a row of the table `grid` has fewer scores than captions" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "draws", "clusters", "interval"),
    [
        (0.5, [0.4, 0.5, 0.6, np.nan], 9, True),
        (0.5, [0.4, np.inf, np.nan, -np.inf], 9, False),
        (np.nan, [0.4, 0.5, 0.6, 0.7], 9, False),
        (0.5, [0.5, 0.5, 0.5, 0.5], 1, False),
    ],
)
def test_a_derived_number_has_an_interval_where_most_draws_have_a_value(
    value: float, draws: list[float], clusters: int, interval: bool
) -> None:
    like = Measure(
        model="m",
        subset="all",
        metric="R@1",
        value=0.5,
        low=0.4,
        high=0.6,
        chance=0.1,
        expected=9,
        scored=9,
        missing=0,
        clusters=clusters,
        ties=0.0,
    )
    found = derived(like, "drop", value, np.array(draws))
    assert np.isfinite([found.low, found.high]).all() == interval
    assert found.chance is None


def _vlue(folder: Path) -> tuple[Path, Path, np.ndarray, np.ndarray]:
    """VLUE's form: 40 images of four to eight captions, and vectors that find some of them.

    Returns:
      The dataset, scores of it, the score of each image with each caption, and whose each caption
      is.
    """
    rng = np.random.default_rng(3)
    owner = np.repeat(np.arange(40), rng.integers(4, 9, 40))
    texts = [f"caption {n:03d}" for n in range(len(owner))]
    images = rng.normal(size=(40, 16))
    captions = rng.normal(size=(len(owner), 16)) + 0.3 * images[owner]
    rows = [
        {"sample_id": f"s{n:03d}", "gallery_id": f"g{o:02d}", "image_id": f"i{o:02d}", "caption": t}
        for n, (o, t) in enumerate(zip(owner, texts, strict=True))
    ]
    dataset = write_dataset(folder / "d", "vlue", {"retrieval": rows})
    made = {
        "image_vectors": vectors("image_id", [f"i{n:02d}" for n in range(40)], images),
        "caption_vectors": vectors("caption", texts, captions),
    }
    unit = [v / np.linalg.norm(v, axis=1, keepdims=True) for v in (images, captions)]
    scores = write_scores(folder / "s", dataset, "retrieval", made)
    return dataset, scores, unit[0] @ unit[1].T, owner


def test_in_paper_mode_vlues_recall_is_vlues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Any true one among the first k of argsort, reversed, as its code has it, both ways."""
    dataset, scores, similar, owner = _vlue(tmp_path)
    command = [str(dataset), str(scores), "--mode", "paper", "--resamples", "50"]
    assert main([*command, "--output", str(tmp_path / "o")]) == 0
    found = {metric: float(row["value"]) for (_, metric), row in rows_by(tmp_path / "o").items()}
    true = np.arange(40)[:, None] == owner
    total = 0.0
    for direction, rows, own in (("i2t", similar, true), ("t2i", similar.T, true.T)):
        order = np.argsort(rows, axis=1)[:, ::-1]
        ranks = np.take_along_axis(own, order, axis=1).argmax(axis=1)
        for k in (1, 5, 10):
            total += (ranks < k).mean()
            assert found[f"{direction} R@{k}"] == pytest.approx((ranks < k).mean())
    assert found["rsum"] == pytest.approx(total)
    assert found["i2t R@1"] < found["i2t R@5"] < found["i2t R@10"]
    assert "any true candidate is among the first k" in capsys.readouterr().out
    assert main([*command, "--relevance", str(scores)]) == 2
    assert "--relevance cannot be used with this table (VLUE's" in capsys.readouterr().err
