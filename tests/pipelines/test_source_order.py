"""The order of a source's records decides on nothing in a dataset of texts."""

import csv
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from eqforge.pipelines import (
    hard_positives,
    retrieval_perturbations,
    simat,
    training_captions,
    vlue,
)
from eqforge.pipelines.base.pipeline import RunSettings
from eqforge.pipelines.base.text import select_captions, select_images
from eqforge.sources.caption_sources import read_captions
from tests.builds import rows

CAPTIONS = [
    ("b.jpg", "A man holds a red umbrella.", "all"),
    ("a.jpg", "A dog and a cat on a sofa.", "all"),
    ("b.jpg", "Two women ride brown horses near a lake.", "val"),
    ("b.jpg", "A man holds a red umbrella.", "all"),
    ("c.jpg", "A small child eats a slice of pizza on a white plate.", "all"),
    ("b.jpg", "A man holds a red umbrella.", "test"),
    ("c.jpg", "Zzz", "all"),
]
Write = Callable[[Path, list[Any]], Path]


def json_lines(path: Path, records: Iterable[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def json_array(path: Path, records: Iterable[Any]) -> Path:
    path.write_text(json.dumps(list(records)))
    return path


def own(folder: Path, captions: list[Any]) -> Path:
    fields = ("image", "caption", "split")
    return json_lines(
        folder / "own.jsonl", (dict(zip(fields, each, strict=True)) for each in captions)
    )


def table(folder: Path, captions: list[Any]) -> Path:
    """A table in which most captions name no image, and some are the same."""
    path = folder / "own.csv"
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(("annotator", "image", "caption", "split"))
        for image, text, split in captions:
            writer.writerow(("Ann", "" if image == "b.jpg" else image, text, split))
    return path


def pairs(folder: Path, captions: list[Any]) -> Path:
    return json_array(
        folder / "pairs.json",
        (
            {"image_path": image, "true_caption": text, "false_caption": "A green car."}
            for image, text, _ in captions
        ),
    )


def checklist(folder: Path, captions: list[Any]) -> Path:
    """VL-CheckList with near duplicates, of which one stays."""
    for kind, names in (
        ("Attribute/vg", ("action", "color", "size", "state")),
        ("Relation/vg", ("spatial", "action")),
    ):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        for name in names:
            json_array(folder / kind / f"{name}.json", [])
    texts = ("a red car", "A  red car", "a red bus", "a red car")
    records = [
        [image, {"POS": [texts[CAPTIONS.index(each) % 4]], "NEG": ["a blue car"]}]
        for each in captions
        for image in [each[0]]
    ]
    json_array(folder / "Attribute/vg/color.json", records)
    return folder


def retrieval(folder: Path, captions: list[Any]) -> Path:
    return json_array(
        folder / "retrieval.json",
        ({"image": image, "caption": text, "split": split} for image, text, split in captions),
    )


def statements(folder: Path, captions: list[Any]) -> Path:
    """Statements that appear twice, once as true and once as false."""
    return json_array(
        folder / "nlvr2.json",
        (
            {"sentence": text, "images": [image, "z.jpg"], "label": split == "all"}
            for image, text, split in captions
        ),
    )


def phrases(folder: Path, captions: list[Any]) -> Path:
    return json_array(
        folder / "grounding.json",
        (
            {"ref_id": 1, "image": image, "text": text, "bbox": [0, 0, len(split), 5]}
            for image, text, split in captions
        ),
    )


def relations(folder: Path, captions: list[Any]) -> Path:
    """SIMAT's source in which a relation's id stands several times, for different things."""
    words = [
        (s, r, o)
        for s in ("man", "dog")
        for r in ("sitting on", "laying on")
        for o in ("sofa", "bed")
    ]
    all_of_them = [(n % 14, n // 2, words[n % 8]) for n in range(16)]
    shift = CAPTIONS.index(captions[0])
    return json_array(
        folder / "relationships.json",
        (
            {
                "image_id": image,
                "relationships": [
                    {
                        "relationship_id": name,
                        "predicate": triplet[1],
                        "subject": {"name": triplet[0], "x": 0, "y": 0, "w": 90, "h": 90},
                        "object": {"name": triplet[2], "x": 0, "y": 0, "w": 90, "h": 90},
                    }
                ],
            }
            for name, image, triplet in all_of_them[shift:] + all_of_them[:shift]
        ),
    )


def without_place(row: dict[str, Any]) -> dict[str, Any]:
    """A row but for the one column that says where in its source a record stood."""
    return {name: value for name, value in row.items() if name != "source_order"}


def test_a_limit_takes_the_same_texts_in_any_order(tmp_path: Path) -> None:
    run, images, captions = RunSettings(output="out", limit=2), set(), set()
    for order in (CAPTIONS, CAPTIONS[::-1]):
        path = own(tmp_path, order)
        images.add(tuple(select_images(read_captions(path), run)))
        captions.add(tuple(select_captions([read_captions(path)], run)))
    assert len(images) == len(captions) == 1


@pytest.mark.parametrize(
    ("main", "write", "arguments"),
    [
        (training_captions.main, own, ["--captions"]),
        (training_captions.main, table, ["--captions"]),
        (retrieval_perturbations.main, own, ["--captions"]),
        (hard_positives.main, own, ["--captions"]),
        (hard_positives.main, pairs, ["--pairs"]),
        (hard_positives.main, checklist, ["--vl-checklist"]),
        (hard_positives.main, checklist, ["--mode", "paper", "--vl-checklist"]),
        (vlue.main, retrieval, ["--retrieval"]),
        (vlue.main, statements, ["--nlvr2"]),
        (vlue.main, phrases, ["--grounding"]),
        (simat.main, relations, ["--min-regions", "1", "--relationships"]),
    ],
    ids=lambda value: getattr(value, "__name__", "") if callable(value) else value[0],
)
def test_the_tables_are_the_same_in_any_order(
    main: Callable[[list[str]], int], write: Write, arguments: list[str], tmp_path: Path
) -> None:
    """Whatever has no id of its own, what stands several times, and near duplicates."""
    made = []
    for name, order in (("one", CAPTIONS), ("two", CAPTIONS[::-1])):
        (tmp_path / name).mkdir()
        source = write(tmp_path / name, order)
        output = tmp_path / name / "out"
        assert main([*arguments, str(source), "--output", str(output)]) == 0
        names = sorted({file.name.partition("-")[0] for file in output.glob("data/*")})
        made.append({table: [without_place(row) for row in rows(output, table)] for table in names})
        assert made[-1]["samples"]
    assert made[0] == made[1]
