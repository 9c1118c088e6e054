import json
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from eqforge.core.errors import InputError
from eqforge.schemas.tables.vlue import Task
from eqforge.sources.vlue import question_pairs, read_answer_list, read_vlue

ROWS: dict[Task, list[dict[str, Any]]] = {
    "retrieval": [{"image": "a/1.jpg", "caption": ["one two", "three"]}],
    "nlvr2": [{"sentence": "so", "images": ["a.jpg", "b.jpg"], "label": "True"}],
    "vqa": [{"question_id": 7, "question": "what?", "image": "a.jpg", "answer": "yes"}],
    "captioning": [{"image_id": 16, "image": "a.jpg", "caption": ["one", "two"]}],
    "grounding": [{"ref_id": 3, "image": "a.jpg", "text": "left dog", "bbox": [1, 2, 3.5, 4]}],
}


def write(folder: Path, rows: object, name: str = "rows.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(rows))
    return path


def test_published_ids_are_kept_and_others_are_made_of_the_content(tmp_path: Path) -> None:
    ids = {
        task: [item.item_id for item in read_vlue(task, write(tmp_path, rows))]
        for task, rows in ROWS.items()
    }

    assert (ids["vqa"], ids["captioning"]) == (["vqa/7"], ["captioning/16"])
    (entry, first), (_, second) = [name.rsplit("/", 1) for name in ids["retrieval"]]
    assert (first, second) == ("0", "1")
    assert entry.startswith("retrieval/a/1.jpg/")
    assert ids["grounding"][0].startswith("grounding/3/")


def test_equal_rows_get_ids_of_their_own(tmp_path: Path) -> None:
    items = list(read_vlue("nlvr2", write(tmp_path, ROWS["nlvr2"] * 3)))

    first = items[0].item_id
    assert [item.item_id for item in items] == [first, f"{first}-2", f"{first}-3"]


def test_an_image_has_one_name_and_one_id_in_every_form_of_unicode(tmp_path: Path) -> None:
    names = [unicodedata.normalize(form, "tr/Döner/1.jpg") for form in ("NFC", "NFD")]
    rows = [{"image": name, "caption": ["text"], "image_id": n} for n, name in enumerate(names)]

    composed, decomposed = read_vlue("captioning", write(tmp_path, rows))

    assert composed.image == decomposed.image == names[0]
    assert (composed.images, decomposed.images) == ((names[0],), (names[1],))


def test_json_lines_and_single_texts_are_read_as_well(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(
        '{"image": "a.jpg", "caption": "one"}\n\n{"image": "b.jpg", "caption": "two"}\n'
    )

    assert [item.texts for item in read_vlue("retrieval", path)] == [("one",), ("two",)]
    (question,) = read_vlue("vqa", write(tmp_path, ROWS["vqa"]))
    assert question.answers == ("yes",)


@pytest.mark.parametrize(
    ("task", "rows", "message"),
    [
        ("retrieval", [], "contains no rows for the task retrieval"),
        (
            "retrieval",
            [{"image": "a.jpg", "caption": []}],
            r"\[0\]\.caption: expected a non-empty string",
        ),
        ("retrieval", [{"image": "", "caption": ["x"]}], "expected an image name, found ''"),
        ("vqa", ROWS["vqa"] * 2, "two items have the id 'vqa/7'"),
        ("nlvr2", [ROWS["nlvr2"][0] | {"label": "maybe"}], r"\[0\]\.label"),
        ("grounding", [ROWS["grounding"][0] | {"bbox": [1, 2, 3]}], r"\[0\]\.bbox"),
    ],
)
def test_a_wrong_file_is_one_error_that_names_the_place(
    tmp_path: Path, task: Task, rows: object, message: str
) -> None:
    with pytest.raises(InputError, match=f"rows.json.*{message}"):
        list(read_vlue(task, write(tmp_path, rows)))


def test_pairs_are_two_images_of_a_folder_with_one_question(tmp_path: Path) -> None:
    def row(name: str, image: str, question: str, answer: str) -> dict[str, Any]:
        return {"question_id": name, "question": question, "image": image, "answer": answer}

    rows = [
        row("a", "sw/1-x/1.jpg", "what?", "yes"),
        row("b", "sw/1-x/2.jpg", "what?", "yes"),
        row("c", "ta/1-x/1.jpg", "what?", "yes"),  # another folder
        row("d", "sw/1-x/1.jpg", "who?", "man"),
        row("e", "sw/1-x/2.jpg", "who?", "boy"),
        *(row(f"f{n}", f"sw/1-x/{n}.jpg", "where?", "here") for n in range(3)),
        *(row(f"g{n}", "sw/1-x/1.jpg", "when?", "now") for n in range(2)),  # one image
        *(row(f"h{n}", f"{n}.jpg", "why?", "so") for n in range(2)),  # no folder
    ]
    items = list(read_vlue("vqa", write(tmp_path, rows)))
    assert [item.source_id for item in items if item.same_answer] == ["a", "b"]
    images, questions = ([one[name] for one in rows] for name in ("image", "question"))
    assert question_pairs(images, questions) == [(0, 1), (3, 4)]


def test_the_listed_grounding_files_have_the_fields_of_x_vlm(tmp_path: Path) -> None:
    """All fields of the refcoco+ files, also the ones that the code of X-VLM ignores."""
    row = {"image": "a.jpg", "text": "left dog", "ref_id": 3, "bbox": [12, 40, 80, 65]}
    rows = [row | {"width": 640, "height": 480, "sent_id": 9}, row | {"text": "the dog"}]
    first, second = read_vlue("grounding", write(tmp_path, rows, "refcoco+_vlue_test.json"))
    assert (first.source_id, first.box, first.width_px) == ("3", (12, 40, 80, 65), 640)
    assert first.item_id != second.item_id


def test_answers_are_read_in_order_from_arrays_keys_and_lines(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("yes\nno\n")
    files = [
        write(tmp_path, ["yes", "no"], "array.json"),
        write(tmp_path, {"no": 1, "yes": 0}, "object.json"),
        tmp_path / "lines.txt",
    ]

    assert [read_answer_list(path) for path in files] == [("yes", "no")] * 3
    with pytest.raises(InputError, match="contains no answers"):
        read_answer_list(write(tmp_path, [], "none.json"))
    with pytest.raises(InputError, match="contains 'yes' twice"):
        read_answer_list(write(tmp_path, ["yes", "no", "yes"], "twice.json"))
    with pytest.raises(InputError, match="expected a whole number"):
        read_answer_list(write(tmp_path, {"0": "yes", "1": "no"}, "swapped.json"))


def test_the_released_retrieval_file_has_its_published_counts(data_folder: Path) -> None:
    items = list(read_vlue("retrieval", data_folder / "vlue" / "itr_vlue_test.json"))

    entries = Counter(item.entry_id for item in items)
    assert (len(entries), len(items)) == (5_450, 27_796)
    assert Counter(entries.values()) == {4: 5, 5: 5_249, 6: 15, 7: 7, 8: 174}
    named = {
        item.entry_id for item in items if not unicodedata.is_normalized("NFC", item.images[0])
    }
    assert len(named) == 503
    assert len({item.image for item in items}) == 5_413
    languages = Counter(item.image[:2] for item in items if item.number == 0)
    assert languages == {"zh": 1_272, "id": 1_151, "sw": 1_110, "tr": 971, "ta": 946}


def test_the_released_statements_have_their_published_counts(data_folder: Path) -> None:
    path = data_folder / "vlue" / "nlvr2_vlue_test.json"
    items = list(read_vlue("nlvr2", path))

    assert len(items) == 5_662
    raw = Counter(row["label"] for row in json.loads(path.read_bytes()))
    assert Counter(str(item.label) for item in items) == raw


@pytest.mark.parametrize(
    ("task", "file", "number"),
    [("vqa", "vqa_vlue_test.json", 11_942), ("captioning", "caption_vlue_test.json", 5_450)],
)
def test_the_other_released_files_are_read_where_they_are(
    data_folder: Path, task: Task, file: str, number: int
) -> None:
    path = data_folder / "vlue" / file
    if not path.is_file():
        pytest.skip(f"{file} is not in the folder of real data")
    assert len(list(read_vlue(task, path))) == number
