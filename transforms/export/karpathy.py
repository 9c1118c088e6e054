"""Captions of images in the form of Karpathy's splits: one `dataset_NAME.json`.

An image that rows of several splits show stands in each of them. What is false of an image, such as
a hard negative, is left out.

Source: Karpathy and Fei-Fei 2015, dataset_coco.json.
"""

import json
import re
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import msgspec

from eqforge.schemas.dataset.reader import Dataset
from eqforge.transforms.dataset.sorted_runs import Run, RunSorter, merge_runs
from eqforge.transforms.export.json_lines import put_picture
from eqforge.transforms.export.rows import Split
from eqforge.transforms.export.target import Export

# Columns of ids of images, and columns of captions that are true of them: the first that is there.
_TRUE: Final = (
    ("image_0_id", ("captions_0", "caption_0")),
    ("image_1_id", ("captions_1", "caption_1")),
    ("image_id", ("references", "captions", "caption", "text")),
    ("image_id", ("hard_positive",)),
)
_FALSE_ROLES: Final = ("hard_negative",)
_TOKEN: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Captioned:
    """A caption of an image.

    Attributes:
      split: of its row.
      image: its file's path, as the source names it or as it is written.
      caption: the text.
    """

    split: str
    image: str
    caption: str

    @property
    def sort_key(self) -> str:
        """Its place in the file; sorts as text."""
        return f"{self.split}\0{self.image}\0{self.caption}"


def refusal(dataset: Dataset, table: str) -> str:
    """Returns why a table cannot be written so; empty where it can."""
    columns = set(dataset.columns(table))
    if any(_of(columns, each) and each[0] in columns for each in _TRUE):
        return ""
    return "expected rows with images and captions that are true of them, such as caption"


def write(export: Export) -> None:
    """Writes `dataset_NAME.json`, and the pictures where that is asked for."""
    name = export.dataset.manifest.dataset
    with (
        tempfile.TemporaryDirectory(prefix="eqforge-") as folder,
        export.file(f"dataset_{name}.json") as stream,
    ):
        sorter = RunSorter(lambda each: each.sort_key, 1, f"{folder}/")
        runs: list[tuple[int, Run]] = []
        for each in _captions(export):
            runs += sorter.add(each)
        runs += sorter.flush()
        merged = merge_runs([run for _, run in runs])
        found = (msgspec.json.decode(data, type=_Captioned) for _, data in merged)
        stream.write(b'{"images": [')
        sentid = 0
        for (split, image), captions in groupby(found, lambda each: (each.split, each.image)):
            entry = _image(split, image, [each.caption for each in captions], stream.rows, sentid)
            sentid += len(entry["sentids"])
            stream.write((b",\n" if stream.rows else b"\n") + json.dumps(entry).encode())
            stream.rows += 1
        stream.write(b"\n], " + f'"dataset": {json.dumps(name)}}}\n'.encode())


def _captions(export: Export) -> Iterator[_Captioned]:
    """Yields what is true of each image, in the order of the rows."""
    columns = set(export.schema.names)
    true = [(image, text) for image, texts in _TRUE if (text := _of(columns, (image, texts)))]
    for split in export.splits:
        called = split.value if split.value else split.name
        for row, pictures in _rows(export, split):
            if row.get("role") in _FALSE_ROLES:
                continue
            for image, text in true:
                place = pictures.get(image) or row.get(image.removesuffix("_id")) or row.get(image)
                value = row[text]
                for caption in [value] if isinstance(value, str) else value:
                    if place:
                        yield _Captioned(split=called, image=place, caption=caption)


def _of(columns: Collection[str], known: tuple[str, Sequence[str]]) -> str:
    """Returns the column of captions that a table has for a column of ids; empty if none."""
    image, texts = known
    return next((text for text in texts if image in columns and text in columns), "")


def _rows(export: Export, split: Split) -> Iterator[tuple[dict[str, Any], dict[str, str | None]]]:
    """Yields rows, and the paths of those of their pictures that were written."""
    if export.settings.image_files:
        for record in export.records_of(split):
            columns = zip(export.pictures, record.pictures.values(), strict=True)
            yield record.row, {name: put_picture(export, each) for name, each in columns}
        return
    for part in export.parts(split):
        for table in part.tables():
            yield from ((row, {}) for row in table.to_pylist())


def _image(
    split: str, image: str, captions: Iterable[str], number: int, sentid: int
) -> dict[str, Any]:
    """Returns the record of an image; captions that are equal stand in it once."""
    texts = list(dict.fromkeys(captions))
    folder, _, name = image.rpartition("/")
    return {
        "filepath": folder,
        "filename": name,
        "imgid": number,
        "split": split,
        "sentids": list(range(sentid, sentid + len(texts))),
        "sentences": [
            {
                "tokens": _TOKEN.findall(text.lower()),
                "raw": text,
                "imgid": number,
                "sentid": place,
            }
            for place, text in enumerate(texts, sentid)
        ],
    }
