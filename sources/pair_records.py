"""Reads the records of text pairs from files, eqforge's datasets and Hugging Face's folders.

EqBen's annotations are an array of records (Kubric, SD), an object with an array for each video
(YouCook2, GEBC), or one with an array for each subject of each video (AG, whose captions are arrays
themselves).

Source: the dataset classes in github.com/Wangt-CN/EqBen, src/eqben/eqben_utils.py.
"""

from collections.abc import Iterator
from pathlib import Path

from eqforge.core.errors import InputError
from eqforge.core.files.checked import Node, load_json, parse_json
from eqforge.core.files.typed_json import read_lines
from eqforge.sources.hugging_face import RowFolder, row_folder
from eqforge.sources.record_files import read_table

_DATASET_COLUMNS = {
    *("sample_id", "id", "kind", "image", "image_id", "image_0_id", "image_1_id"),
    *("caption", "hard_positive", "hard_negative", "caption_0", "caption_1", "box"),
}
EQBEN = frozenset({"image0", "image1", "caption0", "caption1"})
"""The fields of EqBen's records."""
BOX = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")


def pair_files(path: Path) -> list[Path]:
    """Returns the files of text pairs that a path names: itself, or those of Hugging Face's folder.

    Raises:
      InputError: the folder has several splits, or a file is missing.
    """
    rows = row_folder(path)
    return [path] if rows is None else rows.one_split().files


def pair_records(path: Path) -> Iterator[tuple[str | None, Node]]:
    """Yields the records, each with its key if the file is a JSON object.

    Raises:
      InputError: the file or folder cannot be read.
    """
    if (rows := row_folder(path)) is not None:
        return _row_records(rows.one_split())
    if path.is_dir():
        return _dataset_records(path)
    if path.suffix in (".jsonl", ".ndjson"):
        return _json_line_records(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        return _table_records(path)
    return _json_records(load_json(path))


def _row_records(folder: RowFolder) -> Iterator[tuple[None, Node]]:
    for record in folder.rows("image"):
        if record.problem:
            raise InputError(f"{folder.root}: {record.unit} {record.number}: {record.problem}")
        yield None, Node(folder.root.name, f"{record.unit} {record.number}", record.value)


def _table_records(path: Path) -> Iterator[tuple[None, Node]]:
    for record in read_table(path, set(), BOX, has_index=True):
        where = f"{record.unit} {record.number}"
        if record.problem:
            raise InputError(f"{path.name}: {where}: {record.problem}")
        yield None, Node(path.name, where, record.value)


def _json_records(root: Node) -> Iterator[tuple[str | None, Node]]:
    if not isinstance(root.value, dict):
        yield from ((None, record) for record in root.elements())
        return
    for key, record in root.items():
        arrays = _eqben_arrays(record)
        yield from ((None, each) for array in arrays for each in array.elements())
        if not arrays:
            yield key, record


def _eqben_arrays(record: Node) -> list[Node]:
    """Returns the arrays of EqBen's records in a member of the file; none for other formats."""
    members = record.mapping().items() if isinstance(record.value, dict) else ()
    arrays = [record.value] if isinstance(record.value, list) else [value for _, value in members]
    if not all(isinstance(array, list) and all(map(_is_eqben, array[:1])) for array in arrays):
        return []
    return [node for _, node in record.items()] if members else [record] if arrays else []


def _is_eqben(value: object) -> bool:
    return isinstance(value, dict) and value.keys() >= EQBEN


def _json_line_records(path: Path) -> Iterator[tuple[None, Node]]:
    for number, data in read_lines(path):
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{path.name}: line {number}: not UTF-8 text: {error}") from error
        yield None, parse_json(text, path.name, f"line {number}")


def _dataset_records(folder: Path) -> Iterator[tuple[None, Node]]:
    from eqforge.schemas.dataset.reader import open_samples

    dataset = open_samples(str(folder))
    columns = [name for name in dataset.columns("samples") if name in _DATASET_COLUMNS]
    for file in dataset.files("samples") if columns else ():
        batches = dataset.file_batches(file.path, columns)
        rows = (row for batch in batches for row in batch.to_pylist())
        for number, row in enumerate(rows, start=1):
            yield None, Node(file.path.removeprefix("data/"), f"row {number}", row)
