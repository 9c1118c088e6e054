"""The published hard positives: REPLACE (VL-CheckList) and SWAP (ARO).

The folder `data` has captions and their negatives, `swapped_data` the hard positives with the same
negatives, in files of the same names and in the same order, without ids. Every image and negative
is compared, and `annotation` holds each record's position in its file.

Source: Kamath et al. 2024, "The Hard Positive Truth about Vision-Language Compositionality";
  github.com/amitakamath/hard_positives.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from eqforge.core.errors import InputError
from eqforge.core.visible import counted
from eqforge.sources.benchmarks.form import (
    ORDER,
    BenchmarkItem,
    Entry,
    Form,
    box_fields,
    kept,
    picture,
    record_id,
    rest,
)
from eqforge.sources.text_pairs import BOX, box_of

FIELDS: Final = frozenset(("image_path", "true_caption", "false_caption"))
FOLDERS: Final = ("data", "swapped_data")


def joined(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield each record of `data` with the hard positive of its counterpart."""
    found: dict[str, dict[str, list[Entry]]] = {name: {} for name in FOLDERS}
    for entry in entries:
        folder = entry.place.split("/")[-2]
        found[folder].setdefault(entry.part, []).append(entry)
    data, swapped = (found[name] for name in FOLDERS)
    for part in sorted(data.keys() | swapped.keys()):
        ours, others = data.get(part, []), swapped.get(part, [])
        if len(ours) != len(others):
            raise InputError(
                f"{part}.json has {counted(len(ours), 'records')} in the folder {FOLDERS[0]!r}, "
                f"but {len(others):,} in {FOLDERS[1]!r}. Both files must have the same records."
            )
        for number, (one, other) in enumerate(zip(ours, others, strict=True)):
            for name in ("image_path", "false_caption"):
                if one.node[name].text() != other.node[name].text():
                    other.node[name].fail(f"{one.node[name].value!r}, as in {FOLDERS[0]}")
            value = one.node.value | {"hard_positive": other.node["true_caption"].text()}
            yield replace(one, node=replace(one.node, value=value), number=number)


def read(entry: Entry) -> Iterator[BenchmarkItem]:
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
        annotation=rest(node, *FIELDS, "hard_positive", *BOX, **{ORDER: entry.number}),
    )


def write(row: dict[str, Any], true_caption: str) -> dict[str, Any]:
    """Return the record of a row; `true_caption` is the caption or its hard positive."""
    record = {
        "true_caption": true_caption,
        "false_caption": row["hard_negative"],
        "image_path": row["image"],
    }
    return kept(row) | record | box_fields(row)


FORM: Final = Form(
    fields=FIELDS,
    read=read,
    joined=joined,
    folders=FOLDERS,
    patterns=tuple(f"{folder}/*.json" for folder in FOLDERS),
)
