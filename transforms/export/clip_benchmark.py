"""A folder of CLIP_benchmark: tar shards of an image with its true caption and the false one.

Its task `image_caption_selection` takes an image and any number of captions, the true one first.
Pairs of images it reads only as the hub's Winoground, by that name.

Source: CLIP_benchmark 1.6.2, `datasets/builder.py` (build_wds_dataset) and
`metrics/image_caption_selection.py`.
"""

import tarfile
from collections.abc import Iterator

from eqforge.core.files.checked import name_of
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.records.questions import FOILS, REWORDINGS, form_of
from eqforge.transforms.export import asked
from eqforge.transforms.export.target import Export, Part
from eqforge.transforms.export.web_dataset import member

_CAPTIONS = ("caption", "hard_negative")


def refusal(dataset: Dataset, table: str) -> str:
    """Returns why the rows of a table cannot be written so; empty where they can."""
    if reason := asked.refusal(dataset, table):
        return reason
    if form_of(set(dataset.columns(table)), dataset.folder) not in (FOILS, REWORDINGS):
        return "it reads one image with its captions, and of pairs the hub's Winoground alone"
    for row in dataset.rows(table, ["sample_id", *_CAPTIONS]):
        for name in _CAPTIONS:
            if len(row[name].splitlines()) != 1:
                return f"the {name} of {name_of(row['sample_id'])} is not one line"
    return ""


def write(export: Export) -> None:
    """Writes a folder for each split, with its shards and their number."""
    for split in export.splits:
        shards = 0
        for part in export.parts(split):
            shards += 1
            path = f"{split.name}/{part.number}.tar"
            if not export.has(path):
                with export.file(path, rows=part.rows) as stream:
                    for block in _blocks(part):
                        stream.write(block)
        export.put(f"{split.name}/nshards.txt", b"%d\n" % shards)
    export.put("dataset_type.txt", b"retrieval\n")


def _blocks(part: Part) -> Iterator[bytes]:
    size = 0
    for record in part.records():
        (picture,) = filter(None, record.pictures.values())
        captions = "\n".join(record.row[name] for name in _CAPTIONS) + "\n"
        for suffix, data in ((picture.suffix, picture.data), (".txt", captions.encode())):
            blocks = member(record.key + suffix, data)
            size += sum(map(len, blocks))
            yield from blocks
    yield bytes(2 * tarfile.BLOCKSIZE + -(size + 2 * tarfile.BLOCKSIZE) % tarfile.RECORDSIZE)
