"""`eqforge export`: writes a finished dataset in the form of a published one."""

import contextlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
import tyro

from eqforge.schemas.errors import InputError
from eqforge.schemas.io import storage
from eqforge.schemas.records.boxes import CornerBox
from eqforge.schemas.shell import shell

if TYPE_CHECKING:
    from eqforge.schemas.dataset.reader import Dataset

Format = Literal["vl-checklist"]

# File names, without suffix, by how the negative was made; VL-CheckList's as published.
PUBLISHED_NAMES: Final = {
    "vl-checklist/attribute": "vl_checklist_attributes",
    "vl-checklist/relation": "vl_checklist_relations",
}
NAMES: Final = (*PUBLISHED_NAMES.values(), "text_pairs", "captions")
FOLDERS: Final = ("data", "swapped_data")


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Write a finished dataset in the form of a published one, for programs that read that."""

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset."""

    format: Format
    """vl-checklist: the JSON of the published hard positives (Kamath et al.), of a hard-positives
    dataset. data/ has captions and negatives, swapped_data/ hard positives and the same negatives,
    both in the source's order: vl_checklist_attributes.json and vl_checklist_relations.json of
    VL-CheckList, text_pairs.json of --pairs (with boxes, where it has them), captions.json of
    --captions. A dataset of VL-CheckList built with --mode paper gives the four published files
    byte by byte."""

    output: str
    """Folder or URL to write the files into."""

    overwrite: bool = False
    """Replace files of an earlier export; without it they are an error, and nothing is written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HardPositiveRow:
    """The columns of a hard-positives dataset that are exported.

    Attributes:
      sample_id, image, caption, hard_positive, hard_negative, hard_negative_kind, source_order,
        box: as in `HardPositiveSample`.
    """

    sample_id: str
    image: str
    caption: str
    hard_positive: str
    hard_negative: str
    hard_negative_kind: str
    source_order: tuple[int, ...]
    box: CornerBox | None

    @property
    def name(self) -> str:
        """The name, without suffix, of the row's two files."""
        if self.hard_negative_kind.split("/")[0] == "source":
            return "text_pairs"
        return PUBLISHED_NAMES.get(self.hard_negative_kind, "captions")

    @property
    def sort_key(self) -> str:
        """Its place in the source, then its id; sorts as text."""
        return "/".join([*(f"{number:012d}" for number in self.source_order), self.sample_id])

    def entry(self, true_caption: str) -> dict[str, Any]:
        """Returns the row's record in a file, with one of the two true captions."""
        is_published = self.hard_negative_kind in PUBLISHED_NAMES
        entry: dict[str, Any] = {
            "image_id": PurePosixPath(self.image).stem,
            "true_caption": true_caption,
            "false_caption": self.hard_negative,
            "image_path": f"data/{self.image}" if is_published else self.image,
        }
        if (box := self.box) is not None:
            corner = {"bbox_x": box.x0, "bbox_y": box.y0}
            entry |= {**corner, "bbox_w": box.width, "bbox_h": box.height}
        return entry


def export_vl_checklist(dataset: "Dataset", output: str, overwrite: bool) -> dict[str, int]:
    """Writes a hard-positives dataset as the authors of the published sets wrote theirs.

    Args:
      dataset: a hard-positives dataset, of any source and mode.
      output: folder or URL.
      overwrite: whether files of an earlier export are replaced; those that this one has no rows
        for are deleted.

    Returns:
      The URLs of the files and how many records each has.

    Raises:
      InputError: the dataset is of another kind or has no samples, or files exist and may not be
        replaced.

    Source: github.com/amitakamath/hard_positives, data/ and swapped_data/.
    """
    if dataset.manifest.dataset != "hard-positives":
        raise InputError(
            f"{dataset.folder}: expected a hard-positives dataset for --format vl-checklist, found "
            f"{dataset.manifest.dataset}"
        )
    possible = {name: [storage.join(output, f, f"{name}.json") for f in FOLDERS] for name in NAMES}
    there = [url for urls in possible.values() for url in urls if storage.exists(url)]
    if there and not overwrite:
        raise InputError(f"{there[0]}: is there already; --overwrite replaces it")
    written: Counter[str] = Counter()
    with contextlib.ExitStack() as files:
        writers: dict[str, list[Callable[[Any], None]]] = {}
        for row in in_source_order(dataset):
            urls = possible[row.name]
            if row.name not in writers:
                writers[row.name] = [files.enter_context(_json_array(url)) for url in urls]
            for write, caption in zip(
                writers[row.name], (row.caption, row.hard_positive), strict=True
            ):
                write(row.entry(caption))
            written.update(urls)
        if not written:
            raise InputError(f"{dataset.folder}: has no samples to export")
    for url in there:
        if url not in written:
            storage.delete(url)
    return dict(written)


def in_source_order(dataset: "Dataset") -> Iterator[HardPositiveRow]:
    """Yields the rows of a hard-positives dataset in its source's order, in bounded memory.

    Raises:
      InputError: a file is missing or damaged, or was built before rows had `source_order`.
    """
    from eqforge.transforms.dataset.sorted_runs import Run, RunSorter, merge_runs

    columns = HardPositiveRow.__dataclass_fields__
    with tempfile.TemporaryDirectory(prefix="eqforge-") as folder:
        sorter = RunSorter(lambda row: row.sort_key, 1, f"{folder}/")
        runs: list[tuple[int, Run]] = []
        for row in dataset.rows("samples", list(columns)):
            if missing := sorted(columns.keys() - row.keys()):
                raise InputError(
                    f"{dataset.folder}: its samples have no column {missing[0]!r}: it was built by "
                    "an earlier version; build it again"
                )
            runs += sorter.add(msgspec.convert(row, HardPositiveRow))
        runs += sorter.flush()
        for _, data in merge_runs([run for _, run in runs]):
            yield msgspec.json.decode(data, type=HardPositiveRow)


@contextlib.contextmanager
def _json_array(url: str) -> Iterator[Callable[[Any], None]]:
    """Opens a file for a JSON array of at least one record, in the layout of Python's json.dump."""
    with storage.open_atomic(url) as stream:
        separator = b"["

        def write(record: Any) -> None:
            nonlocal separator
            stream.write(separator + json.dumps(record).encode())
            separator = b", "

        yield write
        stream.write(b"]")


EXPORTERS: Final[dict[Format, Callable[["Dataset", str, bool], dict[str, int]]]] = {
    "vl-checklist": export_vl_checklist,
}


def export_command(arguments: Arguments) -> int:
    """Writes a dataset in another form, and says which files it wrote; returns the exit status."""
    from eqforge.schemas.dataset.reader import open_dataset

    dataset = open_dataset(arguments.dataset)
    export = EXPORTERS[arguments.format]
    for url, records in export(dataset, arguments.output, arguments.overwrite).items():
        print(f"{url}: {records:,} records")
    return 0


main = shell("eqforge export", Arguments, export_command)
"""Exports the dataset that a command line names."""
