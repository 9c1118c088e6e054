"""Small files in the form of each published benchmark, made up here, with what is read of them."""

import csv
import io
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

BOX = {"bbox_x": 1, "bbox_y": 2, "bbox_w": 30, "bbox_h": 4}
CAPTION, FOIL = "Ein Hund beißt einen Mann 🐕", "Ein Mann beißt einen Hund 🐕"
REWORDED = "Ein Mann wird von einem Hund gebissen 🐕"


def picture(number: int, size: tuple[int, int] = (24, 16)) -> bytes:
    """A PNG of noise, other for each number."""
    pixels = np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    encoded = io.BytesIO()
    Image.fromarray(pixels).save(encoded, format="PNG")
    return encoded.getvalue()


def _json(name: str, value: Any) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
        return folder

    return write


def _lines(name: str, rows: list[dict[str, Any]]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / name).write_text(text, encoding="utf-8")
        return folder

    return write


def _table(name: str, rows: list[dict[str, Any]], mark: str = ",") -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        with (folder / name).open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(rows[0]), delimiter=mark)
            writer.writeheader()
            writer.writerows(rows)
        return folder

    return write


def hub(rows: list[dict[str, Any]], pictures: tuple[str, ...]) -> Callable[[Path], Path]:
    """A snapshot of the hub: Parquet with pictures in its rows, numbered."""

    def write(folder: Path) -> Path:
        import pytest

        datasets = pytest.importorskip("datasets")
        kinds = {
            name: datasets.Image() if name in pictures else datasets.Value("string")
            for name in rows[0]
        }
        held = [
            {
                name: {"bytes": picture(value), "path": f"{value}.png"}
                if name in pictures
                else value
                for name, value in row.items()
            }
            for row in rows
        ]
        (folder / "data").mkdir(parents=True, exist_ok=True)
        table = datasets.Dataset.from_list(held, datasets.Features(kinds))
        table.to_parquet(folder / "data" / "test-00000-of-00001.parquet", batch_size=2)
        return folder

    return write


def _both(*writers: Callable[[Path], Path]) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        for one in writers:
            one(folder)
        return folder

    return write


def _pair(number: int, names: tuple[str, str] = ("image_", "caption_")) -> dict[str, Any]:
    image, caption = names
    return {
        f"{image}0": f"a{number}",
        f"{image}1": f"b{number}",
        f"{caption}0": f"{CAPTION} {number}",
        f"{caption}1": f"{FOIL} {number}",
    }


def _eqben(subset: str, number: int, suffix: str = ".png") -> dict[str, Any]:
    row = _pair(number, ("image", "caption"))
    names = {f"image{side}": f"{subset}/v{number}/{side}{suffix}" for side in (0, 1)}
    return row | names


def _valse(votes: int, number: int) -> dict[str, Any]:
    return {
        "dataset": "SWiG",
        "split": "train",
        "original_split": "train",
        "linguistic_phenomena": "actions",
        "image_file": f"{number}.jpg",
        "caption": CAPTION,
        "foil": FOIL,
        "mturk": {"foil": 3 - votes, "caption": votes, "other": 0},
    }


def _sugar(number: int) -> dict[str, Any]:
    return {"filename": f"{number}.jpg", "caption": CAPTION, "negative_caption": FOIL}


def _aro(number: int) -> dict[str, Any]:
    return {
        "image_id": number,
        "image_path": f"{number}.jpg",
        "true_caption": CAPTION,
        "false_caption": FOIL,
        **BOX,
    }


def _natural(number: int) -> list[list[str]]:
    images = [f"{number}-0.jpg", f"{number}-1.jpg"]
    answers = [["Yes", "No"], ["No", "Yes"]]
    return [
        [f"Is it {question}?", images[image], answers[question][image], "yes_no"]
        for question in (0, 1)
        for image in (0, 1)
    ]


def _own_columns(folder: Path) -> Path:
    rows = [{"left": "a.png", "right": "b.png", "says": CAPTION, "caption_1": FOIL}]
    return _table("mine.csv", rows)(folder) / "mine.csv"


SOURCES: Mapping[str, Callable[[Path], Path]] = {
    "winoground": _lines(
        "examples.jsonl", [{"id": n, **_pair(n), "tag": "Object"} for n in (0, 7)]
    ),
    "eqben": _both(
        _json("ag.json", {"v1": {"chair": [_eqben("eqbenag", 1) | {"caption0": [CAPTION, ""]}]}}),
        _json("youcook2.json", {"v2": [_eqben("eqbenyoucook2", 2, ".npy")]}),
        _json("kubric.json", [_eqben("eqbenkubric_cnt", 3)]),
    ),
    "valse": _both(
        _json("existence.json", {"x_1": _valse(2, 1), "x_2": _valse(1, 2)}),
        _json("foil-it.json", {"1": _valse(3, 3)}),
    ),
    "sugar-crepe": _both(
        _json("swap_obj.json", {"0": _sugar(0), "1": _sugar(1)}),
        _json("add_att.json", {"0": _sugar(2)}),
    ),
    "sugar-crepe-plus": _json("swap_obj.json", [{"id": 4, **_sugar(0), "caption2": REWORDED}]),
    "aro-relation": _json(
        "visual_genome_relation.json", [_aro(n) | {"relation_name": "on"} for n in (1, 2)]
    ),
    "aro-attribution": _json(
        "visual_genome_attribution.json", [_aro(1) | {"attributes": ["red", "wet"]}]
    ),
    "aro-order": _json(
        "coco_order.json", [{"image_path": "1.jpg", "caption_options": [CAPTION, FOIL, REWORDED]}]
    ),
    "vl-checklist": _both(
        _json("Attribute/vg/color.json", [["VG_100K/1.jpg", {"POS": [CAPTION], "NEG": [FOIL]}]]),
        _json("Relation/swig_action.json", [["s.jpg", {"POS": ["a", "b"], "NEG": ["c", "d"]}]]),
        _json("corpus.json", {"not": "a record"}),
    ),
    "bivlc": hub(
        [
            {"image": n, "caption": CAPTION, "negative_caption": f"{FOIL} {n}"}
            | {"negative_image": n + 50, "type": "swap", "subtype": "obj"}
            for n in range(5)
        ],
        ("image", "negative_image"),
    ),
    "natural-bench": _json("test_set.json", [*_natural(1), *_natural(2)]),
    "vismin": hub(
        [
            {"id": f"v{n}", "image_0": n, "text_0": CAPTION, "image_1": n + 9, "text_1": FOIL}
            | {"category": "object"}
            for n in range(3)
        ],
        ("image_0", "image_1"),
    ),
    "conme": _table(
        "replace_obj_combined.csv",
        [
            {"": n, "orig_ind": n, "image": f"/of/authors/{n}.jpg", "orig_pos": CAPTION}
            | {"orig_neg": "x", "new_neg": FOIL, "contradiction_check": "yes"}
            for n in (3, 4)
        ],
    ),
    "mmvp": _table(
        "Questions.csv",
        [
            {"Index": n, "Question": "Open or not?", "Options": "(a) Open (b) Not (yet) open"}
            | {"Correct Answer": answer}
            for n, answer in ((1, "(a)"), (2, "(b)"))
        ],
    ),
    "mmvp-vlm": _table(
        "Questions.csv",
        [
            {"Question ID": n, "Type": "State and Condition", "Statement": text}
            for n, text in ((1, CAPTION), (2, FOIL))
        ],
    ),
    "coco-counterfactuals": _lines("examples.jsonl", [{"id": "1_2", **_pair(1)}]),
    "negclip": _table(
        "train_neg_clip.tsv",
        [
            {"": 0, "title": CAPTION, "filepath": "val2014/1.jpg"}
            | {"neg_caption": repr([FOIL, 'it "is"']), "neg_image": "[3, 4]"}
        ],
        "\t",
    ),
    "replace-swap": _both(
        _json("data/visual_genome.json", [_aro(1)]),
        _json("swapped_data/visual_genome.json", [_aro(1) | {"true_caption": REWORDED}]),
    ),
    "own-pairs": _own_columns,
    "own-foils": _lines("f.jsonl", [{"caption": CAPTION, "hard_negative": FOIL, "image": "a.png"}]),
    "own-rewordings": _lines(
        "r.jsonl", [{"caption": CAPTION, "hard_positive": REWORDED, "hard_negative": FOIL}]
    ),
    "own-questions": _lines(
        "q.jsonl",
        [
            {
                "question": "Wer?",
                "answer": "er",
                "options": ["er", "sie"],
                "group_id": 1,
                "image": "a",
            }
        ],
    ),
}
"""By benchmark what writes its files into a folder, and returns what `eqforge import` is given."""

COLUMNS = {"own-pairs": ("caption_0=says", "image_0=left", "image_1=right")}
"""The columns that have to be named."""

ITEMS = {
    "winoground": 2, "eqben": 3, "valse": 3, "sugar-crepe": 3, "sugar-crepe-plus": 1,
    "aro-relation": 2, "aro-attribution": 1, "aro-order": 2, "vl-checklist": 3, "bivlc": 5,
    "natural-bench": 8, "vismin": 3, "conme": 2, "mmvp": 2, "mmvp-vlm": 1,
    "coco-counterfactuals": 1, "negclip": 2, "replace-swap": 1, "own-pairs": 1, "own-foils": 1,
    "own-rewordings": 1, "own-questions": 1,
}  # fmt: skip
"""How many rows each has."""
