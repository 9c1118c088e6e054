import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eqforge.evaluation.metrics.simat import intersection_over_union, sentence_deltas
from eqforge.evaluation.tables.command import main as command
from tests.evaluation.written import rows_by
from tests.made_datasets import vectors, write_dataset, write_scores
from tests.statuses import status_of

main = status_of(command)

TRIPLETS = list(itertools.product(["man", "dog"], ["on", "eating"], ["sofa", "grass", "apple"]))
PARTS = ("subject", "relation", "object")
REGIONS = 36


def _name(triplet: tuple[str, ...]) -> str:
    return "/".join(triplet)


class Made:
    """A gallery of 36 regions of 12 images, every exchange as a query, and random vectors."""

    def __init__(self, folder: Path) -> None:
        rng = np.random.default_rng(0)
        self.regions = [f"{number:02d}" for number in range(REGIONS)]
        self.triplet = [TRIPLETS[n % len(TRIPLETS)] for n in range(REGIONS)]
        self.source = [f"v{n % 12}" for n in range(REGIONS)]
        self.boxes = np.array([[0, 0, 100, 100 + 30 * (n // 12)] for n in range(REGIONS)])
        self.queries = list(self._queries())
        texts = [" ".join(t) for t in TRIPLETS]
        self.names = sorted({*texts, *itertools.chain(*TRIPLETS)})
        self.images = self._unit(rng.normal(size=(REGIONS, 5)))
        self.captions = dict(
            zip(self.names, self._unit(rng.normal(size=(len(self.names), 5))), strict=True)
        )
        self.matches = rng.random((REGIONS, len(TRIPLETS)))
        self.folder = self._write(folder)
        tables = {
            "image_vectors": vectors("image_id", [f"i{r}" for r in self.regions], self.images),
            "caption_vectors": vectors("caption", self.names, np.stack([*self.captions.values()])),
        }
        self.scores = write_scores(folder / "s", self.folder, "simat", tables)

    @staticmethod
    def _unit(found: np.ndarray) -> np.ndarray:
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)

    def _queries(self) -> Any:
        for region, triplet in enumerate(self.triplet):
            for target in TRIPLETS:
                changed = [p for p in range(3) if triplet[p] != target[p]]
                if len(changed) == 1:
                    yield region, changed[0], triplet, target, 1 / (1 + len(triplet[changed[0]]))

    def _write(self, folder: Path) -> Path:
        boxes = [dict(zip(("x0", "y0", "x1", "y1"), map(int, b), strict=True)) for b in self.boxes]
        gallery = [
            {
                "region_id": region,
                "source_id": source,
                "image_id": f"i{region}",
                "triplet_id": _name(triplet),
                "box": box,
            }
            for region, source, triplet, box in zip(
                self.regions, self.source, self.triplet, boxes, strict=True
            )
        ]
        captions = [
            {"caption_id": _name(t), "caption": " ".join(t), **dict(zip(PARTS, t, strict=True))}
            for t in TRIPLETS
        ]
        samples = [
            {
                "sample_id": f"simat/{region}/{PARTS[part]}/{target[part]}",
                "split": "dev" if region % 2 else "test",
                "region_id": self.regions[region],
                "source_id": self.source[region],
                "part": PARTS[part],
                "source_word": triplet[part],
                "target_word": target[part],
                "target_triplet_id": _name(target),
                "weight": weight,
            }
            for region, part, triplet, target, weight in self.queries
        ]
        tables = {"samples": samples[::-1], "gallery": gallery, "captions": captions}
        return write_dataset(folder / "d", "simat", tables)

    def score(
        self, split: str, move: Any, *, exclude_crops: bool, matches: np.ndarray
    ) -> list[float]:
        """The paper's sum, query by query, for n = 1 and 5."""
        total, won = 0.0, [0.0, 0.0]
        for region, part, triplet, target, weight in self.queries:
            if (split == "dev") != bool(region % 2):
                continue
            scores = self.images @ move(region, part, triplet, target)
            allowed = [
                other
                for other in range(REGIONS)
                if other != region and not (exclude_crops and self._same(region, other))
            ]
            order = sorted(allowed, key=lambda r: -scores[r])
            shows = matches[:, TRIPLETS.index(target)]
            total += weight
            for place, n in enumerate((1, 5)):
                won[place] += weight * any(shows[r] for r in order[:n])
        return [value / total for value in won]

    def moves_captions(self, split: str) -> list[float]:
        """The weighted share of queries whose moved caption is nearest the target caption."""
        total, won = 0.0, [0.0, 0.0]
        for region, part, triplet, target, weight in self.queries:
            if (split == "dev") != bool(region % 2):
                continue
            point = self.captions[" ".join(triplet)]
            point = point + self.captions[target[part]] - self.captions[triplet[part]]
            others = [t for t in TRIPLETS if t != triplet]
            order = sorted(others, key=lambda t: -float(self.captions[" ".join(t)] @ point))
            total += weight
            for place, n in enumerate((1, 5)):
                won[place] += weight * (target in order[:n])
        return [value / total for value in won]

    def _same(self, first: int, second: int) -> bool:
        heights = sorted([self.boxes[first][3], self.boxes[second][3]])
        return self.source[first] == self.source[second] and heights[0] / heights[1] > 0.5


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("simat"))


def _measured(
    made: Made, output: Path, *arguments: object
) -> dict[tuple[str, str], dict[str, str]]:
    command = [str(made.folder), str(made.scores), "--output", str(output), "--resamples", "20"]
    assert main([*command, *map(str, arguments)]) == 0
    return rows_by(output)


def _pair(rows: dict[tuple[str, str], dict[str, str]], subset: str) -> list[float]:
    return [float(rows[subset, f"n = {n}"]["value"]) for n in (1, 5)]


def test_every_method_is_the_papers_sum_over_queries(made: Made, tmp_path: Path) -> None:
    words, texts = made.captions, np.stack([made.captions[" ".join(t)] for t in TRIPLETS])
    annotated = np.array([[t == other for other in TRIPLETS] for t in made.triplet])

    def delta(part: int, triplet: Any, target: Any) -> np.ndarray:
        return words[target[part]] - words[triplet[part]]

    def average(part: int, triplet: Any, target: Any) -> np.ndarray:
        steps = []
        for first in TRIPLETS:
            second = (*first[:part], target[part], *first[part + 1 :])
            if first[part] == triplet[part] and second in TRIPLETS:
                steps.append(words[" ".join(second)] - words[" ".join(first)])
        return np.mean(steps, axis=0)

    methods = {
        "delta, lambda 1": lambda r, p, s, t: made.images[r] + delta(p, s, t),
        "delta, lambda 3": lambda r, p, s, t: made.images[r] + 3 * delta(p, s, t),
        "sentence average, lambda 1": lambda r, p, s, t: made.images[r] + average(p, s, t),
        "image to text to image": lambda r, p, s, t: (
            texts[(texts @ made.images[r]).argmax()] + delta(p, s, t)
        ),
        "text to image": lambda r, p, s, t: words[" ".join(t)],
        "bare delta": lambda r, p, s, t: delta(p, s, t),
    }
    for mode, exclude in (("corrected", True), ("paper", False)):
        rows = _measured(made, tmp_path / mode, "--mode", mode)
        for name, move in methods.items():
            for split in ("dev", "test"):
                expected = made.score(split, move, exclude_crops=exclude, matches=annotated)
                assert _pair(rows, f"{split}: {name}") == pytest.approx(expected), (mode, name)
        for split in ("dev", "test"):
            expected = made.moves_captions(split)
            assert _pair(rows, f"{split}: text delta, lambda 1") == pytest.approx(expected)


def test_an_oracles_matrix_says_what_succeeds(made: Made, tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", made.matches.astype(np.float32)[::-1])
    (tmp_path / "rows.txt").write_text("\n".join(made.regions[::-1]))
    (tmp_path / "columns.txt").write_text("\n".join(" ".join(t) for t in TRIPLETS))
    oracle = f"matrix:{tmp_path}/p.npy,rows={tmp_path}/rows.txt,columns={tmp_path}/columns.txt"
    rows = _measured(made, tmp_path / "o", "--oracle", oracle, "--lambdas", "2")

    def move(region: int, part: int, triplet: Any, target: Any) -> np.ndarray:
        return made.images[region] + 2 * (
            made.captions[target[part]] - made.captions[triplet[part]]
        )

    expected = made.score("dev", move, exclude_crops=True, matches=made.matches > 0.5)
    assert _pair(rows, "dev: delta, lambda 2") == pytest.approx(expected)
    chance = float(rows["dev: delta, lambda 2", "n = 1"]["chance"])
    assert chance == pytest.approx(0.5, abs=0.1)


def test_queries_of_one_word_may_be_drawn_as_one(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--cluster", "source_word", "--by", "part", "--lambdas", "1"]
    rows = _measured(made, tmp_path, *arguments)
    assert rows["object: text to image", "n = 1"]["clusters"] == "3"
    assert rows["subject: text to image", "n = 1"]["clusters"] == "2"
    assert main([str(made.folder), str(made.scores), "--cluster", "x"]) == 2
    assert "column x: expected one of" in capsys.readouterr().err


def test_an_oracle_without_a_score_that_is_asked_for_is_an_error(
    made: Made, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "p.npy", made.matches.astype(np.float32)[:-1])
    (tmp_path / "rows.txt").write_text("\n".join(made.regions[:-1]))
    (tmp_path / "columns.txt").write_text("\n".join(" ".join(t) for t in TRIPLETS))
    oracle = f"matrix:{tmp_path}/p.npy,rows={tmp_path}/rows.txt,columns={tmp_path}/columns.txt"
    assert main([str(made.folder), str(made.scores), "--oracle", oracle]) == 2
    assert "no score for the region '35'" in capsys.readouterr().err


def test_a_sentence_delta_needs_a_pair_of_sentences() -> None:
    triplets = [("a", "on", "x"), ("b", "on", "x"), ("a", "by", "y")]
    found = sentence_deltas(triplets, np.eye(3, dtype=np.float32), [(0, "a", "b"), (0, "a", "c")])
    assert list(found) == [(0, "a", "b")]
    assert list(found[0, "a", "b"]) == [-1, 1, 0]


def test_the_overlap_of_boxes_is_their_shared_part() -> None:
    boxes = np.array([[0, 0, 2, 2], [1, 1, 3, 3], [5, 5, 6, 6], [0, 0, 0, 0]])
    found = intersection_over_union(boxes[:, None], boxes[None])
    assert found[0, 1] == pytest.approx(1 / 7)
    assert (found[0, 0], found[0, 2], found[3, 3]) == (1, 0, 0)
