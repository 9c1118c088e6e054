import csv
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.schemas.records.values import CornerBox
from eqforge.sources.simat import (
    PublishedQuery,
    Region,
    Triplet,
    read_retrieval_db,
    read_simat_captions,
    read_transfos,
    read_triplets,
)

HEADER = "region_id\timage_id\tsubj\trel\tobj\tsubj_bbox\tobj_bbox\tbbox"
ROW = "4\t2378586\tgiraffe\tlicking\tleaf\t6,28,243,176\t246,180,283,205\t6,28,283,205"
LEAF = Triplet(subject="giraffe", relation="licking", object="leaf")


def test_a_region_is_read_with_its_boxes(tmp_path: Path) -> None:
    path = tmp_path / "db.tsv"
    path.write_text(f"{HEADER}\n{ROW}\n")
    assert read_retrieval_db(path) == (
        Region(
            region_id="4",
            image_id="2378586",
            triplet=LEAF,
            subject_box=CornerBox(x0=6, y0=28, x1=243, y1=176),
            object_box=CornerBox(x0=246, y0=180, x1=283, y1=205),
            box=CornerBox(x0=6, y0=28, x1=283, y1=205),
        ),
    )
    assert LEAF.triplet_id == "giraffe/licking/leaf"
    assert LEAF.changed("object", "tree") == Triplet(
        subject="giraffe", relation="licking", object="tree"
    )


def test_a_query_is_read_without_its_stale_dataset_id(tmp_path: Path) -> None:
    path = tmp_path / "transfos.csv"
    path.write_text(
        ",transfo_id,region_id,field,value,target,dataset_id,norm2,is_test\n"
        "26,26,156,subj,man,woman,4225,706,False\n"
    )
    assert list(read_transfos(path)) == [
        PublishedQuery(
            region_id="156", part="subject", source="man", target="woman", norm2=706, split="dev"
        )
    ]


TRANSFOS = "region_id,field,value,target,norm2,is_test"


@pytest.mark.parametrize(
    ("reader", "content", "message"),
    [
        (read_retrieval_db, "", "expected a header with the column 'subj_bbox'; found no column"),
        (
            read_retrieval_db,
            "region_id\timage_id\n",
            "expected a header with the column 'subj_bbox'; found only 'region_id' and 'image_id'",
        ),
        (
            read_retrieval_db,
            f"{HEADER}\n{ROW}\n{ROW}\n",
            "line 3: region_id: expected each region once, found '4' twice",
        ),
        (read_retrieval_db, f"{HEADER}\n{ROW},9\n", "expected x0,y0,x1,y1 in pixels"),
        (read_retrieval_db, f"{HEADER}\n4\t2\n", "line 2: expected 8 cells"),
        (read_retrieval_db, f"{HEADER}\n{ROW.replace('leaf', 'a/b')}", "expected a word without /"),
        (read_transfos, f"{TRANSFOS}\n1,who,a,b,2,True", "expected subj, rel or obj"),
        (read_transfos, f"{TRANSFOS}\n1,obj,a,b,0,True", "expected a whole number of 1 or more"),
    ],
)
def test_other_files_are_one_error_that_says_where(
    tmp_path: Path, reader: Callable[[Path], Any], content: str, message: str
) -> None:
    path = tmp_path / ("file.tsv" if reader is read_retrieval_db else "file.csv")
    path.write_text(content)
    with pytest.raises(InputError, match=re.escape(message)):
        list(reader(path))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("A dog.\nA cat.\n", "but the --triplets file has 1 distinct triplet"),
        ("\n\nA zebra licking a leaf.\n", "line 3: expected a caption for 'giraffe/licking/leaf'"),
        ('\n{"subject": "a"}', "line 2: the field 'relation' is missing"),
        ('{"subject": "a", "relation": "b", "object": "c", "caption": " "}', "a caption"),
        (
            '{"subject": "a", "relation": "b", "object": "c", "caption": "d"}\n' * 2,
            "expected each triplet once, found 'a/b/c' twice",
        ),
    ],
)
def test_captions_that_do_not_fit_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "captions.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=re.escape(message)):
        read_simat_captions(path, [LEAF])


def test_plain_captions_need_the_triplets_they_are_of(tmp_path: Path) -> None:
    path = tmp_path / "captions.txt"
    path.write_text("A giraffe licking a leaf.\n")
    with pytest.raises(InputError, match="captions without triplets"):
        read_simat_captions(path, ())


def test_captions_are_read_by_name_and_by_the_order_of_the_triplets(tmp_path: Path) -> None:
    path = tmp_path / "captions.txt"
    path.write_bytes("A giraffe\u2028licking a leaf.\r\n".encode())
    assert read_simat_captions(path, [LEAF]) == {LEAF: "A giraffe\u2028licking a leaf."}
    path.write_text(
        '{"subject": "giraffe", "relation": "licking", "object": "leaf", "caption": "It licks."}'
    )
    assert read_simat_captions(path, []) == {LEAF: "It licks."}


def test_the_published_files_have_the_published_numbers(data_folder: Path) -> None:
    """11,160 regions of 8,770 images; 5,859 in 645 triplets; 8,933 dev queries; 645 captions."""
    folder = data_folder / "simat"
    regions = read_retrieval_db(folder / "retrieval_db.tsv")
    triplets = read_triplets(folder / "triplets.csv")
    queries = list(read_transfos(folder / "transfos_dev.csv"))
    captions = read_simat_captions(folder / "captions.txt", list(dict.fromkeys(triplets.values())))

    assert (len(regions), len({region.image_id for region in regions})) == (11_160, 8_770)
    assert (len(triplets), len(set(triplets.values()))) == (5_859, 645)
    assert Counter(query.part for query in queries) == {
        "object": 6_820,
        "subject": 1_871,
        "relation": 242,
    }
    assert {query.split for query in queries} == {"dev"}
    assert len(captions) == 645
    assert captions[Triplet(subject="bear", relation="licking", object="bear")] == (
        "A bear licking another bear."
    )
    by_region = {region.region_id: region.triplet for region in regions}
    assert all(by_region[region_id] == triplet for region_id, triplet in triplets.items())
    # The published indices of captions are positions in that order.
    names = list(captions)
    with open(folder / "transfos_dev.csv", newline="") as stream:
        for row, query in zip(csv.DictReader(stream), queries, strict=True):
            source = triplets[query.region_id]
            assert names[int(row["query_ids"])] == source
            assert names[int(row["target_ids"])] == source.changed(query.part, query.target)
