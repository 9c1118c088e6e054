from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.core.errors import InputError
from eqforge.models.scorer import Picture, Scorer
from eqforge.models.spec import load_scorer, parse_specs
from tests.scored import score_pictures

IMAGES = ["19583", "119071", "7"]
CAPTIONS = ["A bear\u2028laying against a wall.", "A bear laying in a bed."]
SCORES = np.array([[0.9, 0.0], [0.25, 1.0], [0.5, 0.125]], np.float32)
PAIRS = np.array([(image, caption) for image in range(3) for caption in range(2)])


def write_keys(folder: Path) -> str:
    (folder / "rows.txt").write_text("\n".join(IMAGES) + "\n")
    (folder / "columns.txt").write_text("\n".join(CAPTIONS) + "\n")
    return f",rows={folder / 'rows.txt'},columns={folder / 'columns.txt'}"


def write_npy(folder: Path, scores: Any = SCORES) -> str:
    np.save(folder / "scores.npy", scores)
    return f"matrix:{folder / 'scores.npy'}{write_keys(folder)}"


def write_pt(folder: Path) -> str:
    torch = pytest.importorskip("torch")
    torch.save(torch.from_numpy(SCORES), folder / "oscar_similarity_matrix.pt")
    return f"matrix:{folder / 'oscar_similarity_matrix.pt'}{write_keys(folder)},family=oscar"


def write_parquet(folder: Path) -> str:
    """One row a score, in an order of its own."""
    rows = [
        {"image": IMAGES[i], "caption": CAPTIONS[c], "probability": float(SCORES[i, c])}
        for i, c in PAIRS[::-1]
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "scores.parquet")
    return f"matrix:{folder / 'scores.parquet'}"


def load(text: str) -> Scorer:
    return load_scorer(*parse_specs(text))


@pytest.mark.parametrize("write", [write_npy, write_pt, write_parquet])
def test_published_scores_are_found_by_key(tmp_path: Path, write: Any) -> None:
    scorer = load(write(tmp_path))
    turned = [IMAGES[2], IMAGES[0], IMAGES[1]]
    captions = CAPTIONS[::-1]
    found = score_pictures(scorer, [Picture(key=key) for key in turned], captions, PAIRS)

    expected = SCORES[[2, 0, 1]][:, ::-1].ravel().astype(np.float64)
    assert (found.probabilities == expected).all()
    within = (expected > 0) & (expected < 1)
    odds = expected[within] / (1 - expected[within])
    assert found.logits[within] == pytest.approx(np.log(odds), rel=1e-6)
    assert not scorer.reads_pixels


def test_a_threshold_is_compared_with_the_published_number_itself(tmp_path: Path) -> None:
    scorer = load(write_npy(tmp_path, SCORES.astype(np.float64)))
    found = score_pictures(scorer, [Picture(key="19583")], CAPTIONS, np.array([[0, 0]]))
    assert found.probabilities[0] == float(np.float32(0.9))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_log_odds_of_certainty_are_finite_and_in_order(tmp_path: Path, kind: Any) -> None:
    """No published number changes its rank."""
    near_0, near_1 = np.nextafter(kind(0), kind(1)), np.nextafter(kind(1), kind(0))
    scores = np.array([[0, near_0], [0.5, 0.75], [near_1, 1]], kind)
    scorer = load(write_npy(tmp_path, scores))
    found = score_pictures(scorer, [Picture(key=key) for key in IMAGES], CAPTIONS, PAIRS)
    assert np.isfinite(found.logits).all()
    assert (np.diff(found.logits) >= 0).all()
    assert (np.diff(found.logits)[1:-1] > 0).all()
    assert (found.probabilities == scores.ravel()).all()


def test_an_image_that_is_not_there_is_named_and_a_pair_has_no_number(tmp_path: Path) -> None:
    scorer = load(write_npy(tmp_path))
    with pytest.raises(ValueError, match=r"scores\.npy: no scores for the image '8'"):
        scorer.prepare(Picture(key="8"))
    unknown = ["A zebra", CAPTIONS[0]]
    found = score_pictures(scorer, [Picture(key="7")], unknown, np.array([[0, 0], [0, 1]]))
    assert np.isnan(found.probabilities).tolist() == [True, False]
    assert np.isnan(found.logits).tolist() == [True, False]

    partial = [{"image": "7", "caption": CAPTIONS[0], "probability": 0.5}]
    partial += [{"image": "8", "caption": CAPTIONS[1], "probability": 0.25}]
    pq.write_table(pa.Table.from_pylist(partial), tmp_path / "partial.parquet")
    scorer = load(f"matrix:{tmp_path / 'partial.parquet'}")
    pictures = [Picture(key="7"), Picture(key="8")]
    assert score_pictures(scorer, pictures, CAPTIONS, np.array([[1, 1]])).probabilities == [0.25]
    assert np.isnan(score_pictures(scorer, pictures, CAPTIONS, np.array([[0, 1]])).logits).all()


def test_keys_are_asked_for(tmp_path: Path) -> None:
    text = write_npy(tmp_path)
    with pytest.raises(InputError, match="does not name its images and captions"):
        load(text.partition(",")[0])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["1", "2"], r"expected 2 x 2 scores, .* of rows\.txt and c.*, found 3 x 2"),
        (["1", "2", "1"], "the key '1' appears twice"),
    ],
)
def test_keys_that_do_not_fit_are_an_error(tmp_path: Path, rows: list[str], message: str) -> None:
    text = write_npy(tmp_path)
    (tmp_path / "rows.txt").write_text("\n".join(rows))
    with pytest.raises(InputError, match=message):
        load(text)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (SCORES * 2, "expected probabilities from 0 to 1, found"),
        (SCORES * np.nan, "from 0 to 1, found nan"),
        (SCORES[0], "array of floats, found 1 dimension of float32"),
        ((SCORES * 9).astype(int), "array of floats, found 2 dimensions of int64"),
    ],
)
def test_what_is_no_matrix_of_probabilities_is_refused(
    tmp_path: Path, scores: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        load(write_npy(tmp_path, scores))


def test_no_code_in_a_file_is_run(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    keys = write_keys(tmp_path)
    harm = tmp_path / "harm"
    torch.save(Harmful(harm), tmp_path / "scores.pt")
    np.save(tmp_path / "scores.npy", np.array([Harmful(harm)], dtype=object))
    for name in ("scores.pt", "scores.npy"):
        with pytest.raises(
            InputError, match=r"read as a single tensor or array|found Python objects"
        ):
            load(f"matrix:{tmp_path / name}{keys}")
    assert not harm.exists()


class Harmful:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"image": "7", "caption": "a"}], "the columns image, caption, probability"),
        (
            [{"image": "7", "caption": "a", "probability": 0.5}] * 2,
            "an image-caption pair appears twice",
        ),
        ([{"image": "7", "caption": "a", "probability": None}], "from 0 to 1, found nan"),
    ],
)
def test_a_list_of_scores_has_each_once(
    tmp_path: Path, rows: list[dict[str, Any]], message: str
) -> None:
    schema = pa.schema(
        [(name, pa.float64() if name == "probability" else pa.string()) for name in rows[0]]
    )
    pq.write_table(pa.Table.from_pylist(rows, schema), tmp_path / "scores.parquet")
    with pytest.raises(InputError, match=message):
        load(f"matrix:{tmp_path / 'scores.parquet'}")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.npy: no such file"):
        load(f"matrix:{tmp_path / 'nothing.npy'}")
