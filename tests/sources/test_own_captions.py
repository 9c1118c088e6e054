"""Own captions say the same in every form, in any order, with columns of their own beside."""

import csv
import hashlib
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eqforge.sources.caption_sources import CaptionRecord, detect_source, read_captions

Rows = list[dict[str, Any]]
ROWS: Rows = [
    {"cap_id": "c1", "image": "a.jpg", "caption": 'a "red", car', "source": "Ann", "id": 391895},
    {"cap_id": "c2", "image": "a.jpg", "caption": "ein Mädchen läuft", "source": "B", "id": "007"},
    {"cap_id": "c3", "image": "", "caption": "一只猫", "source": "", "id": "", "split": "val"},
    {"cap_id": "c4", "image": "b.jpg", "caption": "قطة على كرسي", "source": "Ann", "id": ""},
]


def digest(*content: str) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]


CAT, CHAIR = digest("", "一只猫", "val"), digest("b.jpg", "قطة على كرسي", "all")
EXPECTED = {
    CaptionRecord(caption_id="391895", image="a.jpg", caption='a "red", car'),
    CaptionRecord(caption_id="007", image="a.jpg", caption="ein Mädchen läuft"),
    CaptionRecord(caption_id=f"caption#{CAT}", image="", caption="一只猫", split="val"),
    CaptionRecord(caption_id=f"b.jpg#{CHAIR}", image="b.jpg", caption="قطة على كرسي"),
}


def table(rows: Rows, delimiter: str = ",") -> str:
    stream = io.StringIO()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    writer = csv.DictWriter(stream, columns, delimiter=delimiter)  # its lines end in CRLF
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def lines(rows: Rows) -> str:
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


FORMS: dict[str, Callable[[Rows], bytes]] = {
    "c.csv": lambda rows: table(rows).encode(),
    "C.CSV": lambda rows: table(rows).encode("utf-8-sig"),
    "utf16.csv": lambda rows: table(rows).encode("utf-16"),
    "c.tsv": lambda rows: table(rows, "\t").replace("\r\n", "\n").encode(),
    "c.json": lambda rows: json.dumps(rows, indent=1).encode(),
    "bom.json": lambda rows: json.dumps(rows).encode("utf-8-sig"),
    "lines.json": lambda rows: lines(rows).encode(),
    "c.jsonl": lambda rows: lines(rows).replace("\n", "\r\n").encode("utf-8-sig"),
    "c.ndjson": lambda rows: lines(rows).encode(),
}


@pytest.mark.parametrize("name", FORMS)
def test_own_captions_say_the_same_in_every_form_and_order(tmp_path: Path, name: str) -> None:
    for seed in range(3):
        random.Random(seed).shuffle(rows := list(ROWS))
        (tmp_path / name).write_bytes(FORMS[name](rows))
        assert detect_source(tmp_path / name) == "own"
        assert set(read_captions(tmp_path / name)) == EXPECTED


def test_equal_captions_without_image_are_told_apart_by_id_or_number(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("id,caption\n1,a dog\n2,a dog\n,a dog\n,a dog\n")
    first, second, third, fourth = (record.caption_id for record in read_captions(path))
    assert (first, second, fourth) == ("1", "2", f"{third}-2")


def test_an_empty_cell_of_captions_is_left_to_the_stage_that_refuses_it(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("id,caption\n1,\n2,a dog\n")
    assert [record.caption for record in read_captions(path)] == ["", "a dog"]


def test_a_list_of_captions_of_one_image_is_several(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps([{"image": "a.jpg", "caption": ["a dog", "a pet"], "id": 3}]))
    found = [(record.caption_id, record.caption) for record in read_captions(path)]
    assert found == [("3/0", "a dog"), ("3/1", "a pet")]
