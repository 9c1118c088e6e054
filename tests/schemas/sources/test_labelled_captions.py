import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.schemas.sources.labelled_captions import LabelledCaptions, read_labelled_captions
from eqforge.schemas.sources.text_pairs import read_text_pairs


def _dataset(folder: Path, *parts: list[dict[str, Any]]) -> Path:
    (folder / "data").mkdir()
    for number, rows in enumerate(parts):
        name = f"samples-{number:05}-of-{len(parts):05}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), folder / "data" / name)
    return folder


def test_training_captions_are_joined_across_files(tmp_path: Path) -> None:
    def row(caption_id: str, role: str, text: str) -> dict[str, str]:
        return {"caption_id": caption_id, "image": "1.jpg", "role": role, "text": text}

    folder = _dataset(
        tmp_path,
        [row("a", "hard_negative", "a cat"), row("b", "original", "two dogs")],
        [row("a", "hard_positive", "one dog"), row("a", "original", "a dog")],
    )
    assert list(read_labelled_captions(folder)) == [
        LabelledCaptions(
            record_id="a",
            image="1.jpg",
            positive="a dog",
            negative="a cat",
            hard_positive="one dog",
        ),
        LabelledCaptions(record_id="b", image="1.jpg", positive="two dogs"),
    ]


def test_perturbed_captions_that_were_not_changed_are_left_out(tmp_path: Path) -> None:
    def row(sample_id: str, perturbed: str, *, applied: bool) -> dict[str, Any]:
        return {
            "sample_id": sample_id,
            "image": "1.jpg",
            "caption": "a dog",
            "perturbed_caption": perturbed,
            "applied": applied,
        }

    folder = _dataset(
        tmp_path, [row("a/typo", "a dgo", applied=True), row("a/noun", "a dog", applied=False)]
    )
    assert list(read_labelled_captions(folder)) == [
        LabelledCaptions(record_id="a/typo", image="1.jpg", positive="a dog", perturbed="a dgo")
    ]


def test_files_of_text_pairs_are_read_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text(json.dumps([["1.jpg", {"POS": ["a dog"], "NEG": ["a cat"]}]]))
    (pair,) = read_text_pairs(path)
    assert list(read_labelled_captions(path)) == [
        LabelledCaptions(record_id=pair.pair_id, image="1.jpg", positive="a dog", negative="a cat")
    ]
