import hashlib
import json
import re
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.sources.caption_sources import CaptionRecord, detect_source, read_captions

COCO = {
    "info": {"year": 2017},
    "images": [{"id": 7, "file_name": "000007.jpg", "width": 640}],
    "annotations": [
        {"id": 71, "image_id": 7, "caption": "A dog runs. "},
        {"id": 70, "image_id": 7, "caption": "a brown dog"},
    ],
}
KARPATHY = {
    "dataset": "coco",
    "images": [
        {
            "filepath": "val2014",
            "filename": "COCO_val2014_000000391895.jpg",
            "split": "test",
            "imgid": 0,
            "sentences": [{"raw": "A man.", "sentid": 770337, "tokens": ["a", "man"], "imgid": 0}],
        }
    ],
}


def _write(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return path


def test_coco_captions_keep_text_order_and_split(tmp_path: Path) -> None:
    path = _write(tmp_path, "captions_val2017.json", json.dumps(COCO))
    assert detect_source(path) == "coco"
    assert list(read_captions(path)) == [
        CaptionRecord(
            caption_id="coco/71", image="000007.jpg", caption="A dog runs. ", split="val2017"
        ),
        CaptionRecord(
            caption_id="coco/70", image="000007.jpg", caption="a brown dog", split="val2017"
        ),
    ]


def test_karpathy_files_are_told_from_coco_and_keep_folder_and_split(tmp_path: Path) -> None:
    path = _write(tmp_path, "dataset_coco.json", json.dumps(KARPATHY))
    assert detect_source(path) == "karpathy"
    assert list(read_captions(path)) == [
        CaptionRecord(
            caption_id="coco/770337",
            image="val2014/COCO_val2014_000000391895.jpg",
            caption="A man.",
            split="test",
        )
    ]


def test_flickr30k_token_file(tmp_path: Path) -> None:
    path = _write(tmp_path, "results.token", "100.jpg#0\tTwo men .\r\n100.jpg#1\tA # sign .\n")
    assert [(r.caption_id, r.image, r.caption) for r in read_captions(path)] == [
        ("flickr30k/100.jpg#0", "100.jpg", "Two men ."),
        ("flickr30k/100.jpg#1", "100.jpg", "A # sign ."),
    ]


def test_flickr30k_pipe_csv_with_its_known_broken_line(tmp_path: Path) -> None:
    text = (
        "image_name| comment_number| comment\n"
        "219.jpg| 3| A dog | a cat .\n"
        "219.jpg| 4   A dog runs across the grass .\n"
    )
    path = _write(tmp_path, "results.csv", text)
    assert [(r.caption_id, r.caption) for r in read_captions(path)] == [
        ("flickr30k/219.jpg#3", "A dog | a cat ."),
        ("flickr30k/219.jpg#4", "A dog runs across the grass ."),
    ]


def test_flickr30k_annotation_csv(tmp_path: Path) -> None:
    text = (
        'raw,sentids,split,filename,img_id\n"[""Two, men"", ""They sit""]","[0, 1]",val,1.jpg,0\n'
    )
    path = _write(tmp_path, "flickr_annotations_30k.csv", text)
    assert [(r.caption_id, r.caption, r.split) for r in read_captions(path)] == [
        ("flickr30k/1.jpg#0", "Two, men", "val"),
        ("flickr30k/1.jpg#1", "They sit", "val"),
    ]


def test_fine_grained_captions_name_the_jpeg_of_their_image(tmp_path: Path) -> None:
    text = (
        '{"COCO_val2014_000000452113": ["a group of people", "a counter"],'
        ' "101": ["a dog"], "b.PNG": ["a cat"]}'
    )
    path = _write(tmp_path, "MSCOCO_FG_ann.json", text)
    assert [(r.caption_id, r.image, r.caption) for r in read_captions(path)] == [
        (
            "fine-grained/COCO_val2014_000000452113#0",
            "COCO_val2014_000000452113.jpg",
            "a group of people",
        ),
        ("fine-grained/COCO_val2014_000000452113#1", "COCO_val2014_000000452113.jpg", "a counter"),
        ("fine-grained/101#0", "101.jpg", "a dog"),
        ("fine-grained/b.PNG#0", "b.PNG", "a cat"),
    ]


def test_released_flickr30k_fg_has_five_captions_of_each_image(data_folder: Path) -> None:
    path = data_folder / "published/fine_grained/Flickr30K_FG_ann_first200.json"
    records = list(read_captions(path))
    assert Counter(Counter(r.image for r in records).values()) == {5: 200}
    assert records[0].image == "1007129816.jpg"


def test_own_json_lines_default_id_and_split(tmp_path: Path) -> None:
    lines = '{"image": "a.jpg", "caption": "x"}\n\n{"image": "a.jpg", "caption": "y", "id": "k"}\n'
    path = _write(tmp_path, "mine.jsonl", lines)
    digest = hashlib.sha256(b'["a.jpg", "x", "all"]').hexdigest()
    assert list(read_captions(path)) == [
        CaptionRecord(caption_id=f"a.jpg#{digest[:12]}", image="a.jpg", caption="x"),
        CaptionRecord(caption_id="k", image="a.jpg", caption="y"),
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.json", '{"images": [], "annotations": [{"id": 1}]}', "c.json: annotations[0]"),
        (
            "c.json",
            '{"images": [], "annotations": [{"id": 1, "image_id": 2, "caption": "x"}]}',
            "c.json: annotations[0].image_id: expected the id of an image",
        ),
        ("c.json", '{"annotations": []}', "the field 'images' is missing"),
        ("c.json", '{"101": ["a dog", 3]}', "c.json: 101[1]: expected a string"),
        ("d.json", '{"images": [{"filename": "a", "split": "x", "sentences": 3}]}', "sentences"),
        ("a.token", "100.jpg Two men\n", "a.token: line 1: expected `image#number<TAB>caption`"),
        (
            "a.csv",
            "image,titel\na,x\n",
            "the column 'caption'; found only 'image' and 'titel'. Put your own captions",
        ),
        ("a.csv", "id,caption\n1,x, y\n", "a.csv: line 2: expected 2 cells, as in the header"),
        (
            "a.json",
            '[{"caption": "x"}, 3]',
            "a.json: entry 2: expected an object, found 3",
        ),
        (
            "a.json",
            '{"videos": []}',
            "found only 'videos'. Put your own captions in a column or key named caption",
        ),
        (
            "a.jsonl",
            '{"caption": "x", "id": 1.5}',
            "line 1: id: expected a whole number or a string",
        ),
        (
            "a.csv",
            "raw,sentids,split,filename\nnope,1,x,9.jpg\n",
            "a.csv: row for '9.jpg': raw: not valid JSON",
        ),
        (
            "c.json",
            '{"images": [{"id": 1, "file_name": ""}], "annotations": '
            '[{"id": 1, "image_id": 1, "caption": "x"}]}',
            "c.json: 'coco/1': expected an image name, found ''",
        ),
        (
            "a.jsonl",
            '{"image": "a", "caption": "x", "id": "1"}\n{"image": "b", "caption": "x", "id": "1"}',
            "the caption id '1' appears twice",
        ),
        ("a.jsonl", "\n", "a.jsonl contains no captions"),
        ("a.jsonl", '{"caption": "a \\ud800 cat"}', "line 1: not valid JSON"),
        (
            "a.parquet",
            "",
            "the file name matches no caption format. Rename the file, or pass --source",
        ),
    ],
)
def test_bad_files_are_one_error_that_names_file_record_and_field(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    path = _write(tmp_path, name, content)
    with pytest.raises(InputError, match=re.escape(message)):
        list(read_captions(path))


def test_coco_val2017_has_its_25014_captions_of_5000_images(data_folder: Path) -> None:
    tracemalloc.start()
    records = list(read_captions(data_folder / "coco" / "captions_val2017.json"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(records) == 25014
    assert len({record.image for record in records}) == 5000
    # At this rate the 591,753 captions of the training set stay below 1 GB.
    assert peak * 591_753 / 25_014 < 1e9


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b'"[""a dog""]",a.jpg,\xff', "not UTF-8 text: line 2: invalid byte 0xff"),
        (b'"' + b"x" * 200_000 + b'",a.jpg,test', "line 2: not valid CSV: field larger"),
    ],
)
def test_a_csv_file_that_cannot_be_read_is_one_error(
    tmp_path: Path, raw: bytes, message: str
) -> None:
    path = tmp_path / "annotations.csv"
    path.write_bytes(b"raw,filename,split\n" + raw + b"\n")

    with pytest.raises(InputError, match=re.escape(message)):
        list(read_captions(path))


def test_the_true_captions_of_text_pairs_are_captions(tmp_path: Path) -> None:
    path = tmp_path / "color.json"
    path.write_text(json.dumps([["VG/1.jpg", {"POS": ["a red car"], "NEG": ["a blue car"]}]]))

    (record,) = read_captions(path, "text-pairs")

    assert (record.image, record.caption) == ("VG/1.jpg", "a red car")
