"""Common file formats: WebDataset, ImageFolder, JSON lines, Karpathy's splits.

The tests read these files with `webdataset` and `datasets`. These packages do not write them,
because they neither promise the same bytes for the same rows nor resume after a stop.
"""

import io
import json
import re
import tarfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.tables.columns import IMAGE
from eqforge.transforms.dataset.sorted_runs import sort_records
from eqforge.transforms.export.card import DEFAULT, Files, write_card
from eqforge.transforms.export.formats import Writer
from eqforge.transforms.export.names import picture_references, renamed
from eqforge.transforms.export.rows import Split, merged
from eqforge.transforms.export.target import Export, ExportStream, Part

# Columns of image ids, and columns of captions that are true of them: the first that exists.
_TRUE: Final = (
    ("image_0_id", ("captions_0", "caption_0")),
    ("image_1_id", ("captions_1", "caption_1")),
    ("image_id", ("references", "captions", "caption", "text")),
    ("image_id", ("hard_positive",)),
)
_TOKEN: Final = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")


def _json(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode()


# --- WebDataset: each row has its images and a JSON file


def _write_web_dataset(export: Export) -> None:
    """Write `data/test-000000.tar` and so on, and a card by which `load_dataset` reads them."""
    export.leave_out_empty()
    names = renamed(export.schema.names, export.pictures.values())
    for part in export.all_parts():
        path = f"data/{part.split.name}-{part.number:06d}.tar"
        if not export.has(path):
            with export.file(path, rows=part.rows) as stream:
                write_tar(stream, _members(part, names))
    row = pa.struct([each.with_name(names.get(each.name, each.name)) for each in export.schema])
    pictures = [
        pa.field(f"{name}{suffix}", IMAGE)
        for name in export.pictures.values()
        for suffix in export.suffixes
    ]
    texts = [pa.field(name, pa.string()) for name in ("__key__", "__url__")]
    # `datasets` would guess the types from five rows alone.
    schema = pa.schema([*pictures, pa.field("json", row), *texts])
    files = [Files(split=each.name, path=f"data/{each.name}-*.tar") for each in export.splits]
    write_card(export, {DEFAULT: files}, schema)


def _members(part: Part, names: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    for record in part.records():
        for column, picture in record.pictures.items():
            if picture is not None:
                yield f"{record.key}.{column}{picture.suffix}", picture.data
        row = {names.get(name, name): value for name, value in record.row.items()}
        yield f"{record.key}.json", _json(row)


def write_tar(stream: ExportStream, members: Iterable[tuple[str, bytes]]) -> None:
    """Write a tar without times and owners, so that the same files give the same bytes."""
    with tarfile.open(fileobj=stream, mode="w|", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
            tar.getmembers().clear()  # of which it would hold one for each row


# --- ImageFolder: each split has a folder of images with its rows in `metadata.jsonl`


def _refuse_without_pictures(dataset: Dataset, table: str) -> str:
    if picture_references(dataset, table):
        return ""
    return (
        "expected rows with images; build or import the dataset with --images FOLDER, or choose "
        "--format jsonl"
    )


def _write_image_folder(export: Export) -> None:
    export.leave_out_empty()
    unsure = _unsure(export)
    names = renamed(export.schema.names, export.pictures.values())
    for split in export.splits:
        with export.file(f"data/{split.name}/metadata.jsonl", rows=split.rows) as stream:
            for record in export.records_of(split):
                row: dict[str, Any] = {}
                for column, picture in record.pictures.items():
                    key = "file_name" if column == "image" else f"{column}_file_name"
                    row[key] = picture and picture.image_id + picture.suffix
                    if picture is not None:
                        export.put(f"data/{split.name}/{row[key]}", picture.data)
                for name, value in record.row.items():
                    if name in unsure:
                        is_text = pa.types.is_string(export.schema.field(name).type)
                        value = value or "" if is_text else json.dumps(value, ensure_ascii=False)
                    row[names.get(name, name)] = value
                stream.write(_json(row) + b"\n")
    files = [Files(split=each.name, path=f"data/{each.name}/**") for each in export.splits]
    write_card(export, {DEFAULT: files})


def _unsure(export: Export) -> set[str]:
    """Return the columns to write as text, because `datasets` would guess their types.

    It guesses from the first rows of a split, and rejects a split whose guess differs: nested
    columns, and columns that have values in only some splits.
    """
    valued: list[set[str]] = []
    for split in export.splits:
        valued.append(set())
        for rows in merged(export.dataset, export.settings.table, export.keys, split):
            valued[-1] |= {n for n in rows.column_names if rows.column(n).null_count < len(rows)}
    nested: set[str] = {each.name for each in export.schema if pa.types.is_nested(each.type)}
    return nested | (set[str]().union(*valued) - set[str].intersection(*valued))


# --- JSON lines: one row per line, with image files on request


def _write_json_lines(export: Export) -> None:
    export.leave_out_empty()
    names = renamed(export.schema.names, export.pictures.values())
    for split in export.splits:
        path = f"{split.name}.jsonl"
        if export.has(path) and not export.settings.image_files:
            continue
        with export.file(path, rows=split.rows) as stream:
            for row, paths in _rows_and_paths(export, split):
                if export.settings.image_files:
                    row = {names.get(name, name): value for name, value in row.items()} | paths
                stream.write(_json(row) + b"\n")
    files = [Files(split=each.name, path=f"{each.name}.jsonl") for each in export.splits]
    if not export.settings.image_files:
        export.pictures = {}
        write_card(export, {DEFAULT: files}, export.schema)
        return
    fields = [each.with_name(names.get(each.name, each.name)) for each in export.schema]
    fields += [pa.field(name, pa.string()) for name in export.pictures.values()]
    write_card(export, {DEFAULT: files}, pa.schema(fields))


def _rows_and_paths(
    export: Export, split: Split
) -> Iterator[tuple[dict[str, Any], dict[str, str | None]]]:
    """Yield rows, and the paths of their images by column; write the images if requested."""
    if export.settings.image_files:
        for record in export.records_of(split):
            paths: dict[str, str | None] = dict.fromkeys(record.pictures)
            for name, picture in record.pictures.items():
                if picture is not None:
                    path = f"images/{picture.image_id[:2]}/{picture.image_id}{picture.suffix}"
                    export.put(path, picture.data)
                    paths[name] = path
            yield record.row, paths
        return
    for part in export.parts(split):
        for table in part.tables():
            yield from ((row, {}) for row in table.to_pylist())


# --- Karpathy's splits: one `dataset_NAME.json` of images with their captions
#
# An image in rows of several splits appears in each of them. Captions that are false of an image,
# such as hard negatives, are left out. Source: Karpathy and Fei-Fei 2015, dataset_coco.json.


@dataclass(frozen=True, kw_only=True, slots=True)
class _Captioned:
    split: str
    image: str
    caption: str


def _refuse_without_captions(dataset: Dataset, table: str) -> str:
    if _true_columns(dataset.columns(table)):
        return ""
    return "expected rows with images, and true captions in a column such as 'caption'"


def _true_columns(columns: Collection[str]) -> list[tuple[str, str]]:
    found = [
        (image, next((text for text in texts if text in columns), ""))
        for image, texts in _TRUE
        if image in columns
    ]
    return [(image, text) for image, text in found if text]


def _write_karpathy(export: Export) -> None:
    name = export.dataset.manifest.dataset
    with export.file(f"dataset_{name}.json") as stream:
        found = sort_records(
            _captions(export),
            _Captioned,
            lambda each: f"{each.split}\0{each.image}\0{each.caption}",
        )
        stream.write(b'{"images": [')
        sentid = 0
        for (split, image), captions in groupby(found, lambda each: (each.split, each.image)):
            texts = list(dict.fromkeys(each.caption for each in captions))
            entry = _entry(split, image, texts, stream.rows, sentid)
            sentid += len(texts)
            stream.write((b",\n" if stream.rows else b"\n") + json.dumps(entry).encode())
            stream.rows += 1
        stream.write(b"\n], " + f'"dataset": {json.dumps(name)}}}\n'.encode())


def _captions(export: Export) -> Iterator[_Captioned]:
    true = _true_columns(export.schema.names)
    written = {column: image for image, column in export.pictures.items()}
    for split in export.splits:
        for row, pictures in _rows_and_paths(export, split):
            if row.get("role") == "hard_negative":
                continue
            paths = {written[column]: path for column, path in pictures.items()}
            for image, text in true:
                path = paths.get(image) or row.get(image.removesuffix("_id")) or row.get(image)
                captions = [row[text]] if isinstance(row[text], str) else row[text]
                if path:
                    split_name = split.value or split.name
                    yield from (
                        _Captioned(split=split_name, image=path, caption=c) for c in captions
                    )


def _entry(
    split: str, image: str, texts: Sequence[str], number: int, sentid: int
) -> dict[str, Any]:
    folder, _, name = image.rpartition("/")
    return {
        "filepath": folder,
        "filename": name,
        "imgid": number,
        "split": split,
        "sentids": list(range(sentid, sentid + len(texts))),
        "sentences": [
            {"tokens": _TOKEN.findall(text.lower()), "raw": text, "imgid": number, "sentid": place}
            for place, text in enumerate(texts, sentid)
        ],
    }


WRITERS: Final = {
    "webdataset": Writer(_write_web_dataset),
    "imagefolder": Writer(_write_image_folder, _refuse_without_pictures),
    "jsonl": Writer(_write_json_lines),
    "karpathy": Writer(_write_karpathy, _refuse_without_captions),
}
