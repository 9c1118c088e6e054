"""The demo's still images: photographs and their mirror images, with annotations.

Each photograph is there twice, since a gallery needs a second image that matches.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from PIL import Image, ImageOps

from eqforge.generators.demo.photographs import load_photograph


@dataclass(frozen=True, kw_only=True, slots=True)
class Still:
    """A photograph of the demo, and its mirror image.

    Attributes:
      photograph: a key of PHOTOGRAPHS.
      captions: what it shows, true of the mirror image too.
    """

    photograph: str
    captions: tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Holding:
    """Who does what to what in a photograph; boxes in pixels of scikit-image's file.

    Attributes:
      photograph: a key of PHOTOGRAPHS.
      subject, relations, object: the words; each of the relations holds.
      subject_box, object_box: x, y, width and height.
    """

    photograph: str
    subject: str
    relations: tuple[str, ...]
    object: str
    subject_box: tuple[int, int, int, int]
    object_box: tuple[int, int, int, int]


STILLS = (
    Still(
        photograph="coffee",
        captions=(
            "A red cup of coffee and a silver spoon on a red saucer.",
            "A small cup of espresso stands on a wooden table.",
        ),
    ),
    Still(
        photograph="chelsea",
        captions=(
            "A brown cat with green eyes looks to the side.",
            "The face of a young cat on a white blanket.",
        ),
    ),
    Still(
        photograph="astronaut",
        captions=(
            "A smiling woman in an orange suit holds a white helmet.",
            "A woman stands in front of a flag and a model of a rocket.",
        ),
    ),
    Still(
        photograph="camera",
        captions=(
            "A man in a black coat looks through a camera on a tripod.",
            "A tall man films a building behind a large lawn.",
        ),
    ),
    Still(
        photograph="rocket",
        captions=(
            "A white rocket stands between tall towers in the evening.",
            "Bright lights shine under a rocket and a dark blue sky.",
        ),
    ),
    Still(
        photograph="coins",
        captions=(
            "Four rows of old silver coins on a dark table.",
            "Small coins and large coins lie on a black cloth.",
        ),
    ),
)

HOLDINGS = (
    Holding(
        photograph="camera",
        subject="man",
        relations=("touching", "grabbing"),
        object="camera",
        subject_box=(0, 60, 335, 450),
        object_box=(255, 135, 80, 55),
    ),
    Holding(
        photograph="camera",
        subject="man",
        relations=("touching", "grabbing"),
        object="tripod",
        subject_box=(0, 60, 335, 450),
        object_box=(230, 190, 175, 320),
    ),
    Holding(
        photograph="astronaut",
        subject="woman",
        relations=("touching", "grabbing"),
        object="helmet",
        subject_box=(20, 15, 400, 495),
        object_box=(280, 345, 230, 165),
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Picture:
    """An image of the demo: a photograph, or its mirror image.

    Attributes:
      number: from 1; its file is `<number>.jpg`.
      still: what it shows.
      is_mirrored: whether left and right are exchanged.
    """

    number: int
    still: Still
    is_mirrored: bool

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.number}.jpg"

    def draw(self) -> Image.Image:
        """Returns its RGB pixels."""
        picture = load_photograph(self.still.photograph)
        return ImageOps.mirror(picture) if self.is_mirrored else picture


PICTURES = tuple(
    Picture(number=2 * place + turn + 1, still=still, is_mirrored=bool(turn))
    for place, still in enumerate(STILLS)
    for turn in (0, 1)
)


def coco_captions() -> dict[str, list[dict[str, Any]]]:
    """Returns the captions in the form of COCO's captions_*.json."""
    rows = [(picture, text) for picture in PICTURES for text in picture.still.captions]
    return {
        "images": [{"id": picture.number, "file_name": picture.file} for picture in PICTURES],
        "annotations": [
            {"id": number, "image_id": picture.number, "caption": text}
            for number, (picture, text) in enumerate(rows, start=1)
        ],
    }


def relationships() -> list[dict[str, Any]]:
    """Returns who does what to what in the form of Visual Genome's relationships.json."""
    return [
        {"image_id": picture.number, "relationships": list(_relations(picture))}
        for picture in PICTURES
    ]


def image_data() -> list[dict[str, Any]]:
    """Returns the images' sizes in the form of Visual Genome's image_data.json."""
    sizes = ((picture, load_photograph(picture.still.photograph).size) for picture in PICTURES)
    return [
        {"image_id": picture.number, "width": width, "height": height, "url": picture.file}
        for picture, (width, height) in sizes
    ]


def _relations(picture: Picture) -> Iterator[dict[str, Any]]:
    numbers = count(100 * picture.number)
    for holding in HOLDINGS:
        if holding.photograph == picture.still.photograph:
            for relation in holding.relations:
                yield {
                    "relationship_id": next(numbers),
                    "predicate": relation,
                    "subject": _thing(picture, holding.subject, holding.subject_box),
                    "object": _thing(picture, holding.object, holding.object_box),
                }


def _thing(picture: Picture, name: str, box: tuple[int, int, int, int]) -> dict[str, Any]:
    x, y, width, height = box
    if picture.is_mirrored:
        x = load_photograph(picture.still.photograph).width - x - width
    return {"name": name, "x": x, "y": y, "w": width, "h": height}


def vlue_tasks() -> dict[str, list[dict[str, Any]]]:
    """Returns test items in the form of VLUE's files, by task."""
    plain = [picture for picture in PICTURES if not picture.is_mirrored]
    coffee, cat = plain[0], plain[1]
    return {
        "retrieval": [
            {"image": picture.file, "caption": list(picture.still.captions)} for picture in plain
        ],
        "nlvr2": [
            {
                "sentence": "One of the pictures shows a cat and the other one shows a cup.",
                "images": [cat.file, coffee.file],
                "label": "True",
                "identifier": "demo-0",
            },
            {
                "sentence": "Both of the pictures show a cat that looks to the side.",
                "images": [cat.file, coffee.file],
                "label": "False",
                "identifier": "demo-1",
            },
        ],
        "vqa": [
            {
                "question_id": 1,
                "question": "What colour is the saucer?",
                "image": coffee.file,
                "answer": "red",
            },
            {
                "question_id": 2,
                "question": "Which animal is this?",
                "image": cat.file,
                "answer": "cat",
            },
        ],
        "captioning": [
            {
                "image_id": picture.number,
                "image": picture.file,
                "caption": list(picture.still.captions),
            }
            for picture in plain
        ],
        "grounding": [
            {
                "ref_id": place,
                "image": picture.file,
                "text": holding.object,
                "bbox": list(holding.object_box),
            }
            for place, holding in enumerate(HOLDINGS)
            for picture in plain
            if picture.still.photograph == holding.photograph
        ],
    }
