"""The published hard positives: REPLACE (VL-CheckList) and SWAP (ARO).

The folder `data` has captions and their negatives, `swapped_data` the hard positives with the same
negatives, in files of the same names and in the same order: they have no ids. Every image and every
negative is compared.

Source: Kamath et al. 2024, "The Hard Positive Truth about Vision-Language Compositionality";
  github.com/amitakamath/hard_positives.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from eqforge.schemas.benchmarks.form import BenchmarkItem, Entry, Form, picture, record_id, rest
from eqforge.schemas.benchmarks.recognise import found_in
from eqforge.schemas.errors import InputError
from eqforge.schemas.io.checked import Node
from eqforge.schemas.sources.text_pairs import box_of

FIELDS: Final = frozenset(("image_path", "true_caption", "false_caption"))
FOLDERS: Final = ("data", "swapped_data")
_JOINED: Final = ("image_path", "false_caption")
_BOX: Final = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")


def joined(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yields each record of `data` with the hard positive of its counterpart.

    Raises:
      InputError: the two folders do not have the same files, or those not the same records.
    """
    found: dict[str, dict[str, list[Entry]]] = {name: {} for name in FOLDERS}
    for entry in entries:
        folder = entry.place.split("/")[-2] if "/" in entry.place else ""
        if folder not in found:
            raise InputError(
                f"{entry.place}: expected the folder that holds {' and '.join(FOLDERS)}, with "
                f"files of the same names; the file has {found_in(entry.node.value)}"
            )
        found[folder].setdefault(entry.part, []).append(entry)
    data, swapped = (found[name] for name in FOLDERS)
    for part in sorted(data.keys() | swapped.keys()):
        ours, others = data.get(part, []), swapped.get(part, [])
        if len(ours) != len(others):
            raise InputError(
                f"{part}.json: {len(ours):,} records in {FOLDERS[0]}, {len(others):,} in "
                f"{FOLDERS[1]}; they are joined one by one"
            )
        for one, other in zip(ours, others, strict=True):
            yield _join(one, other)


def _join(one: Entry, other: Entry) -> Entry:
    for name in _JOINED:
        if one.node[name].text() != other.node[name].text():
            other.node[name].fail(f"{one.node[name].value!r}, as in {FOLDERS[0]}")
    value = one.node.value | {"hard_positive": other.node["true_caption"].text()}
    return replace(one, node=Node(one.node.file, one.node.where, value))


def read(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields the item of a record and its counterpart."""
    node = entry.node
    image, cells = picture(entry, "image_path")
    yield BenchmarkItem(
        item_id=record_id(entry, image, None),
        kind=entry.part,
        images=(image,),
        cells=cells,
        texts=(node["true_caption"].text(), node["hard_positive"].text()),
        negatives=(node["false_caption"].text(),),
        box=box_of(node),
        annotation=rest(node, *FIELDS, "hard_positive", *_BOX),
    )


PATTERNS: Final = tuple(f"{folder}/*.json" for folder in FOLDERS)
FORMS: Final = {"replace-swap": (Form(fields=FIELDS, read=read, joined=joined, patterns=PATTERNS),)}
