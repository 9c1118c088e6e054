"""Read lists of the images that a model was trained on: COCO, Visual Genome, Flickr, or names.

An image is known by keys: `coco:391895`, `vg:2361911`, `flickr:2496483816`, or its file as
`name:holiday/001.jpg` if the name is none of those. Formats, detected from suffix and content:

    COCO JSON           the file names of `images`, and the photo ids in their `flickr_url`
    Karpathy JSON       `cocoid`, or the file names for Flickr30k; with the image's `split`
    VG image_data.json  `image_id`, with the `coco_id` and `flickr_id` of the same photograph
    JSON array          numbers or file names; a JSON object of such arrays has them by split
    any other file      a number or file name per line; a number after the name is skipped

A bare number does not name its collection, so pass the file as `coco=FILE`, `vg=FILE` or
`flickr=FILE`.

Source: the released annotation files of Visual Genome 1.2 (`image_data.json`), COCO 2014 and 2017,
  and Karpathy and Fei-Fei's splits.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_bytes, text_lines
from eqforge.core.visible import series
from eqforge.schemas.tables.description import Collection
from eqforge.sources.vlue import canonical_name

ALL_SPLITS: Final = "all"
_COCO = re.compile(r"(?:.*/)?(?:COCO_\w+?_)?(\d{12})(?:\.\w+)?")
_VG = re.compile(r"(?:.*/)?VG_100K(?:_2)?/(\d+)(?:\.\w+)?")
_NUMBER = re.compile(r"(?:.*/)?(\d+)(?:\.[A-Za-z]+)?")
_FLICKR_URL = re.compile(r"flickr\.com/(?:\d+/)?(\d+)_")


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingList:
    """A file of training images, as given on the command line: `FILE` or `vg=FILE`."""

    path: Path
    collection: Collection | None = None


def training_list(text: str) -> TrainingList:
    prefix, found, rest = text.partition("=")
    for collection in get_args(Collection):
        if found and prefix == collection:
            return TrainingList(path=Path(rest), collection=collection)
    return TrainingList(path=Path(text))


def keys_of_name(name: str, collection: Collection | None = None) -> tuple[str, ...]:
    """Return the keys of an image by its file name.

    Args:
        collection: the collection for names that are only numbers, such as `1000092795.jpg`.
    """
    for known, pattern in (("coco", _COCO), ("vg", _VG), (collection, _NUMBER)):
        found = pattern.fullmatch(name)
        if known is not None and found is not None:
            return (f"{known}:{int(found[1])}",)
    return (f"name:{canonical_name(name)}",)


def read_training_ids(listed: TrainingList, splits: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the keys of each image of a list; an image may have several ids.

    Args:
        splits: splits that count as training; `all` for every split.
    """
    is_json, is_empty = listed.path.suffix == ".json", True
    for keys in _read_json(listed, splits) if is_json else _read_text(listed):
        is_empty = False
        yield keys
    if is_empty:
        raise InputError(f"{listed.path} contains no training images (splits: {', '.join(splits)})")


class _Image(msgspec.Struct, frozen=True):
    file_name: str | None = None
    flickr_url: str | None = None
    filename: str | None = None
    filepath: str = ""
    cocoid: int | None = None
    split: str | None = None
    image_id: int | None = None
    coco_id: int | msgspec.UnsetType | None = msgspec.UNSET
    flickr_id: int | msgspec.UnsetType | None = msgspec.UNSET


class _File(msgspec.Struct, frozen=True):
    images: list[_Image] | msgspec.UnsetType = msgspec.UNSET
    dataset: str = ""


_Entry = _Image | int | str


def _read_json(listed: TrainingList, splits: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    data, file = read_bytes(listed.path), listed.path.name
    if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[":
        for place, entry in enumerate(decode(data, list[_Entry], file)):
            yield from _in_splits(entry, listed, splits, f"[{place}]")
        return
    content = decode(data, _File, file)
    if isinstance(content.images, list):
        is_flickr = content.dataset.startswith("flickr")
        known = TrainingList(path=listed.path, collection="flickr") if is_flickr else listed
        for place, image in enumerate(content.images):
            yield from _in_splits(image, known, splits, f"images[{place}]")
        return
    by_split: Any = decode(data, dict[str, list[int | str]], file)
    for split, entries in by_split.items():
        if split in splits or ALL_SPLITS in splits:
            for place, entry in enumerate(entries):
                yield _keys(entry, listed, f"{split}[{place}]")


def _in_splits(
    entry: _Entry, listed: TrainingList, splits: tuple[str, ...], place: str
) -> Iterator[tuple[str, ...]]:
    split = entry.split if isinstance(entry, _Image) else None
    if split is None or split in splits or ALL_SPLITS in splits:
        yield _keys(entry, listed, place)


def _keys(entry: _Entry, listed: TrainingList, place: str) -> tuple[str, ...]:
    if isinstance(entry, str) and not entry.isdecimal():
        return keys_of_name(entry, listed.collection)
    if not isinstance(entry, _Image):
        return (f"{_collection(listed, place)}:{int(entry)}",)
    if entry.image_id is not None:
        linked = {"coco": entry.coco_id, "flickr": entry.flickr_id}
        is_vg = any(value is not msgspec.UNSET for value in linked.values())
        collection = "vg" if is_vg else _collection(listed, place)
        linked_keys = (
            f"{name}:{value}" for name, value in linked.items() if isinstance(value, int)
        )
        return (f"{collection}:{entry.image_id}", *linked_keys)
    if entry.cocoid is not None:
        return (f"coco:{entry.cocoid}",)
    name = entry.file_name or entry.filename
    if not name:
        raise InputError(
            f"{listed.path.name}: {place}: expected a field 'file_name', 'filename', 'cocoid' or "
            "'image_id'"
        )
    folder = f"{entry.filepath}/" if entry.filepath else ""
    photo = _FLICKR_URL.search(entry.flickr_url or "")
    keys = keys_of_name(folder + name, listed.collection)
    return keys if photo is None else (*keys, f"flickr:{photo[1]}")


def _collection(listed: TrainingList, place: str) -> str:
    if listed.collection is None:
        raise InputError(
            f"{listed.path.name}: {place}: a number alone does not identify a photograph; name "
            "its collection, as in "
            f"{series((f'{name}={listed.path}' for name in get_args(Collection)), 'or')}"
        )
    return listed.collection


def _read_text(listed: TrainingList) -> Iterator[tuple[str, ...]]:
    for number, line in text_lines(listed.path):
        text = line.strip()
        if text.startswith(("{", "[")):
            raise InputError(
                f"{listed.path.name}: line {number}: expected an id or a file name; found "
                f"{text[:40]!r}; if the file is JSON, rename it to end in .json"
            )
        name, _, behind = text.rpartition(" ")
        yield _keys(name if name and behind.isdecimal() else text, listed, f"line {number}")
