import re
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.sources.vl_checklist import VlChecklistRecord, read_vl_checklist


def test_records_keep_order_and_captions(tmp_path: Path) -> None:
    path = tmp_path / "size.json"
    path.write_text('[["VG_100K/1.jpg", {"POS": ["big dog"], "NEG": ["small dog"]}]]')
    assert read_vl_checklist(path) == [
        VlChecklistRecord(
            index=0, image="VG_100K/1.jpg", positives=("big dog",), negatives=("small dog",)
        )
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "size.json: expected a list, found an object"),
        (
            '[["a.jpg", {"POS": ["x"]}]]',
            "size.json: [0][1]: the field 'NEG' is missing; found only 'POS'",
        ),
        ('[["a.jpg", {"POS": ["x", "z"], "NEG": ["y"]}]]', "found 2 POS and 1 NEG"),
        ('[["", {"POS": ["x"], "NEG": ["y"]}]]', "[0][0]: expected an image path"),
    ],
)
def test_bad_files_are_one_error_that_names_record_and_field(
    tmp_path: Path, content: str, message: str
) -> None:
    path = tmp_path / "size.json"
    path.write_text(content)
    with pytest.raises(InputError, match=re.escape(message)):
        read_vl_checklist(path)


@pytest.mark.parametrize(
    ("file", "records"),
    [
        ("Attribute/vg/color.json", 11569),
        ("Relation/vg/spatial.json", 30650),
        ("Object/Size/swig_size/swig_destination/swig_destination_small.json", 9),
    ],
)
def test_published_files_have_their_counts(data_folder: Path, file: str, records: int) -> None:
    found = read_vl_checklist(data_folder / "vl_checklist" / "data" / file)
    assert len(found) == records
    assert [record.index for record in found] == list(range(records))
