import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.core.errors import InputError
from eqforge.sources.labelled_captions import LabelledCaptions, read_labelled_captions
from eqforge.sources.text_pairs import read_text_pairs


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


SIMAT = {
    "triplets.csv": "region_id,subj,rel,obj\n7,cat,laying on,rug\n8,cat,laying on,bed\n",
    "captions.txt": "A cat laying on a rug.\nA cat laying on a bed.\n",
    "transfos_dev.csv": (
        "transfo_id,region_id,field,value,target,target_ids,norm2,is_test\n"
        "0,7,obj,rug,bed,1,1,False\n"
    ),
}


def _simat(folder: Path, **changed: str) -> Path:
    for name, text in (SIMAT | changed).items():
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("name", ["captions.txt", "triplets.csv"])
def test_simat_captions_are_named_by_their_triplets(tmp_path: Path, name: str) -> None:
    assert list(read_labelled_captions(_simat(tmp_path) / name)) == [
        LabelledCaptions(record_id=f"cat/laying on/{word}", image="", positive=caption)
        for word, caption in (("rug", "A cat laying on a rug."), ("bed", "A cat laying on a bed."))
    ]


def test_a_query_of_simat_has_the_captions_of_its_region_and_of_its_target(tmp_path: Path) -> None:
    assert list(read_labelled_captions(_simat(tmp_path) / "transfos_dev.csv")) == [
        LabelledCaptions(
            record_id="7/object/bed",
            image="7",
            positive="A cat laying on a rug.",
            negative="A cat laying on a bed.",
            is_made=False,
        )
    ]


@pytest.mark.parametrize(("old", "new"), [("0,7,obj", "0,9,obj"), ("rug,bed", "rug,sea")])
def test_a_query_of_simat_without_its_caption_is_one_error(
    tmp_path: Path, old: str, new: str
) -> None:
    text = SIMAT["transfos_dev.csv"].replace(old, new)
    folder = _simat(tmp_path, **{"transfos_dev.csv": text})
    with pytest.raises(InputError, match=r"is missing from triplets\.csv"):
        list(read_labelled_captions(folder / "transfos_dev.csv"))


def test_simat_files_need_those_beside_them(tmp_path: Path) -> None:
    (_simat(tmp_path) / "triplets.csv").unlink()
    with pytest.raises(InputError, match=r"triplets\.csv"):
        list(read_labelled_captions(tmp_path / "captions.txt"))


def test_real_simat_files_are_recognised(data_folder: Path) -> None:
    captions = list(read_labelled_captions(data_folder / "simat" / "captions.txt"))
    queries = list(read_labelled_captions(data_folder / "simat" / "transfos_dev.csv"))
    assert (len(captions), len(queries)) == (645, 8_933)
    assert len({query.record_id for query in queries}) == 8_933
    assert {query.negative for query in queries} <= {caption.positive for caption in captions}
