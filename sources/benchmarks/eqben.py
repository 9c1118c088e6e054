"""EqBen's annotation files: one for each subset, or one for all subsets.

    Kubric, Stable Diffusion, all   [pair, ...]
    YouCook2, GEBC                  {video: [pair, ...]}
    Action Genome                   {video: {object: [pair, ...]}}

A pair is {"image0", "caption0", "image1", "caption1"}. Images are named by their path below the
image tree, whose first folder is the subset. A caption of Action Genome is a list, of which the
authors' code takes the first. Frames of YouCook2 are arrays (`.npy`) in the order blue, green, red.

Pairs have no ids, and scores follow their order, so `annotation` holds each pair's position in its
subset. In the file for all subsets, as eqforge writes it, `nested_under` has the keys of the
original file, and `source_id` the cluster if neither the keys nor the image's folder show it.

Source: github.com/Wangt-CN/EqBen, `src/eqben/eqben_utils.py`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final

from eqforge.core.files.checked import Node
from eqforge.schemas.tables.benchmarks import EQBEN
from eqforge.sources.benchmarks.form import ORDER, BenchmarkItem, Entry, Form, kept, record_id, rest

CAPTIONS: Final = ("caption0", "caption1")
FIELDS: Final = frozenset(("image0", "image1", *CAPTIONS))
SINGLE: Final = ("*_random.json",)
"""Files of single images and captions, in the order of the server."""
NESTED: Final = "nested_under"
SOURCE: Final = "source_id"


def entries(root: Entry) -> Iterator[Entry]:
    """Yield the pairs of a file at any depth; the key is the video's."""
    yield from _below(root, ())


def _below(entry: Entry, keys: tuple[str, ...]) -> Iterator[Entry]:
    node = entry.node
    if isinstance(node.value, list):
        for element in node.elements():
            yield replace(entry, node=element, key="/".join(keys) or None)
    elif len(keys) < 2 and all(isinstance(v, dict | list) for v in node.mapping().values()):
        for key, member in node.items():
            yield from _below(replace(entry, node=member), (*keys, key))
    else:
        yield replace(entry, key="/".join(keys) or None)


def joined(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Yield each pair with its position in its subset; restore the keys of a combined file."""
    places: Counter[str] = Counter()
    for entry in entries:
        kind = next(iter(_folders(entry.node["image0"].text())), "")  # the subset
        nested = entry.node.get(NESTED)
        if entry.key is None and nested is not None and isinstance(nested.value, str):
            value = {name: part for name, part in entry.node.mapping().items() if name != NESTED}
            node = replace(entry.node, value=value)
            entry = replace(entry, node=node, key=nested.text() or None)
        yield replace(entry, number=places[kind])
        places[kind] += 1


def read(entry: Entry) -> Iterator[BenchmarkItem]:
    node = entry.node
    images = tuple(node[name].text() for name in ("image0", "image1"))
    folders = _folders(images[0])
    is_told = isinstance(node.mapping().get(SOURCE, 0), str | None)
    extras = {ORDER: entry.number} | ({} if entry.key is None else {NESTED: entry.key})
    source = _source(entry.key, folders)
    if is_told:
        found = node.get(SOURCE)
        source = None if found is None else found.text()
    lists = [name for name in CAPTIONS if isinstance(node[name].value, list)]
    yield BenchmarkItem(
        item_id=record_id(entry, images[0], None),
        kind=next(iter(folders), ""),
        source_id=source,
        images=images,
        texts=tuple(_caption(node[name]) for name in CAPTIONS),
        annotation=rest(node, *FIELDS.difference(lists), *([SOURCE] if is_told else []), **extras),
    )


def _folders(image: str) -> tuple[str, ...]:
    return PurePosixPath(image).parts[:-1]


def _source(key: str | None, folders: tuple[str, ...]) -> str | None:
    if key is not None:
        return key.split("/")[0]
    return "/".join(folders) if len(folders) > 1 else None


def _caption(node: Node) -> str:
    if isinstance(node.value, list):
        return next((each.text() for each in node.elements()), None) or node.fail("a caption")
    return node.text()


def write(row: dict[str, Any]) -> dict[str, Any]:
    extras = kept(row) if row["dataset"] == EQBEN else {}
    record = {"image0": row["image_0"], "caption0": _captions(row, extras, 0)}
    record |= {"image1": row["image_1"], "caption1": _captions(row, extras, 1)}
    nested = extras.get(NESTED)
    key = nested if isinstance(nested, str) else None
    source = _source(key, _folders(row["image_0"]))
    if row.get(SOURCE, source) != source:
        record[SOURCE] = row[SOURCE]
    return kept(row) | record


def _captions(row: dict[str, Any], extras: dict[str, Any], number: int) -> Any:
    caption, found = row[f"caption_{number}"], extras.get(CAPTIONS[number])
    return [caption, *found[1:]] if isinstance(found, list) else caption


EQBEN_FORM: Final = Form(
    fields=FIELDS, read=read, entries=entries, joined=joined, ignored=SINGLE, is_one_file=True
)
