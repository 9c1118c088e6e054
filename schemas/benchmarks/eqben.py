"""EqBen's annotation files: one for each subset, or one of all.

    Kubric, Stable Diffusion, all   [pair, ...]
    YouCook2, GEBC                  {video: [pair, ...]}
    Action Genome                   {video: {object: [pair, ...]}}

A pair is {"image0", "caption0", "image1", "caption1"}. Images are named by their path below the
image tree, whose first folder is the subset. A caption of Action Genome is a list, of which the
authors' code takes the first. Frames of YouCook2 are arrays (`.npy`) in the order blue, green, red.

Source: github.com/Wangt-CN/EqBen, `src/eqben/eqben_utils.py`.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any, Final

from eqforge.schemas.benchmarks.form import BenchmarkItem, Entry, Form, record_id, rest, with_rest
from eqforge.schemas.io.checked import Node

FIELDS: Final = frozenset(("image0", "image1", "caption0", "caption1"))
SINGLE: Final = ("*_random.json",)
"""Files of single images and captions, in the order of the server."""


def entries(root: Entry) -> Iterator[Entry]:
    """Yields the pairs of a file, however they are nested; the key is that of the video."""
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


def read(entry: Entry) -> Iterator[BenchmarkItem]:
    """Yields a pair."""
    node = entry.node
    images = tuple(node[name].text() for name in ("image0", "image1"))
    folders = PurePosixPath(images[0]).parts
    yield BenchmarkItem(
        item_id=record_id(entry, images[0], None),
        kind=folders[0] if len(folders) > 1 else "",
        source_id=_source(entry, folders),
        images=images,
        texts=tuple(_caption(node[name]) for name in ("caption0", "caption1")),
        annotation=rest(node, *FIELDS),
    )


def _source(entry: Entry, folders: tuple[str, ...]) -> str | None:
    """Returns the video of a pair: its key, or else the folder of its frames."""
    if entry.key is not None:
        return entry.key.split("/")[0]
    return "/".join(folders[:-1]) if len(folders) > 2 else None


def _caption(node: Node) -> str:
    """Returns a caption, or the first of a list."""
    if isinstance(node.value, list):
        return next((each.text() for each in node.elements()), None) or node.fail("a caption")
    return node.text()


def write(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the record of a pair, in the form of the file of all subsets.

    Args:
      row: a row of pairs, with the names of its files in `image_0` and `image_1`.
    """
    return with_rest(
        row,
        {
            "image0": row["image_0"],
            "caption0": row["caption_0"],
            "image1": row["image_1"],
            "caption1": row["caption_1"],
        },
    )


FORMS: Final = {
    "eqben": (
        Form(
            fields=FIELDS,
            read=read,
            entries=entries,
            ignored=SINGLE,
            is_one_file=True,
        ),
    )
}
