"""The in-domain sets in small files of their published forms, and COCO's real captions."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.pipelines.vlue import main as command
from eqforge.schemas.tables.vlue import Task
from eqforge.sources.vlue import read_vlue
from tests.builds import rows
from tests.statuses import status_of

main = status_of(command)


def _json(folder: Path, name: str, content: Any) -> Path:
    (folder / name).write_text(json.dumps(content))
    return folder / name


def _vqa(folder: Path) -> Path:
    asked = [{"question_id": 42000, "image_id": 42, "question": "What is it?"}]
    given = [{"answer": "dog", "answer_id": n, "answer_confidence": "yes"} for n in range(10)]
    annotation = {"question_id": 42000, "image_id": 42, "multiple_choice_answer": "dog"}
    _json(
        folder,
        "v2_mscoco_val2014_annotations.json",
        {"annotations": [annotation | {"answers": given}], "data_subtype": "val2014"},
    )
    content = {"info": {}, "data_subtype": "val2014", "questions": asked}
    return _json(folder, "v2_OpenEnded_mscoco_val2014_questions.json", content)


def _grounding(folder: Path) -> Path:
    image = {"id": 7, "file_name": "COCO_train2014_000000000007.jpg", "width": 64, "height": 48}
    boxes = [{"id": 70, "image_id": 7, "bbox": [1.5, 2, 30, 20], "category_id": 1}]
    _json(folder, "instances.json", {"images": [image], "annotations": boxes, "categories": []})
    said = [{"sent": "left dog", "sent_id": 1, "tokens": []}, {"sent": "dog", "sent_id": 2}]
    ref = {"ref_id": 3, "ann_id": 70, "image_id": 7, "split": "testA", "sentences": said}
    refs = [ref, ref | {"ref_id": 4, "split": "train"}]
    (folder / "refs(unc).p").write_bytes(pickle.dumps(refs, protocol=2))
    return folder / "refs(unc).p"


def test_vqa_2_has_ten_answers_from_the_file_beside_it(tmp_path: Path) -> None:
    (item,) = read_vlue("vqa", _vqa(tmp_path))
    assert (item.item_id, item.images) == ("vqa/42000", ("COCO_val2014_000000000042.jpg",))
    assert (item.answers, item.split) == (("dog",) * 10, "val2014")


def test_refcoco_plus_has_a_phrase_for_each_sentence_of_its_test_splits(tmp_path: Path) -> None:
    items = list(read_vlue("grounding", _grounding(tmp_path)))
    assert [(item.texts, item.split, item.source_id) for item in items] == [
        (("left dog",), "testA", "3"),
        (("dog",), "testA", "3"),
    ]
    assert items[0].box == (1.5, 2, 30, 20)
    assert (items[0].width_px, items[0].height_px) == (64, 48)


def test_nlvr2_names_its_images_by_the_identifier(tmp_path: Path) -> None:
    lines = [
        {"identifier": "test1-0-1-0", "sentence": "So.", "label": "True", "left_url": "http://x"},
        {"identifier": "train-5-2-1", "sentence": "No.", "label": "False", "directory": 37},
    ]
    path = tmp_path / "test1.json"
    path.write_text("\n".join(map(json.dumps, lines)))
    first, second = read_vlue("nlvr2", path)
    assert first.images == ("test1-0-1-img0.png", "test1-0-1-img1.png")
    assert (first.item_id, first.label, first.split) == ("nlvr2/test1-0-1-0", True, "test1")
    assert second.images == ("37/train-5-2-img0.png", "37/train-5-2-img1.png")


@pytest.mark.parametrize("task", ["retrieval", "captioning"])
def test_of_karpathys_splits_only_test_is_read(tmp_path: Path, task: Task) -> None:
    images = [
        {
            "filename": f"{split}.jpg",
            "filepath": "val2014",
            "split": split,
            "sentences": [{"raw": f"{split} {n}", "sentid": 10 * place + n} for n in range(5)],
        }
        for place, split in enumerate(("train", "restval", "val", "test"))
    ]
    items = list(read_vlue(task, _json(tmp_path, "dataset_coco.json", {"images": images})))
    assert {item.image for item in items} == {"val2014/test.jpg"}
    assert [text for item in items for text in item.texts] == [f"test {n}" for n in range(5)]


def test_flickr30ks_lines_become_images_with_five_captions(tmp_path: Path) -> None:
    path = tmp_path / "results_20130124.token"
    path.write_text("".join(f"1.jpg#{n}\tA dog {n} .\n" for n in range(5)))
    items = list(read_vlue("retrieval", path))
    assert [item.number for item in items] == [0, 1, 2, 3, 4]
    assert len({item.entry_id for item in items}) == 1


def test_cocos_captions_are_read_whole(data_folder: Path) -> None:
    items = list(read_vlue("captioning", data_folder / "coco" / "captions_val2017.json"))
    assert (len(items), sum(len(item.texts) for item in items)) == (5_000, 25_014)


def test_a_missing_companion_is_one_clear_error(tmp_path: Path) -> None:
    path = _vqa(tmp_path)
    (tmp_path / "v2_mscoco_val2014_annotations.json").unlink()
    with pytest.raises(InputError, match=r"Put v2_mscoco_val2014_annotations\.json into the"):
        list(read_vlue("vqa", path))
    with pytest.raises(InputError, match=r"Rename the file to v2_OpenEnded_SPLIT_questions\.json"):
        list(read_vlue("vqa", path.rename(tmp_path / "vqa.json")))


def test_a_dataset_lists_the_companions_among_its_inputs(tmp_path: Path) -> None:
    files = ["--vqa", str(_vqa(tmp_path)), "--grounding", str(_grounding(tmp_path))]
    output = tmp_path / "out"
    assert main([*files, "--output", str(output)]) == 0
    manifest = json.loads((output / "dataset.json").read_text())
    assert {one["name"] for one in manifest["inputs"]} == {
        "v2_OpenEnded_mscoco_val2014_questions.json",
        "v2_mscoco_val2014_annotations.json",
        "refs(unc).p",
        "instances.json",
    }
    (question,) = rows(output, "vqa")
    assert question["answers"] == ["dog"] * 10
    assert {row["phrase"] for row in rows(output, "grounding")} == {"dog", "left dog"}
