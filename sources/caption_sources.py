"""Reads captioned images: COCO, Karpathy's splits, Flickr30k, own captions, Hugging Face's folders.

`own` is a user's table, JSON array or JSON lines; own_captions.py has the fields:

    {"image": "holiday/001.jpg", "caption": "two dogs on a beach", "id": "001/0", "split": "test"}

`image` is a path below the images folder, or empty; `id` (default: the image, `#` and a digest of
image, caption and split) has to be unique; `split` is `all` by default.

`text-pairs` reads the true captions of VL-CheckList, ARO and the other files of text pairs; it has
to be named, since their suffixes are those of other formats.

`hugging-face` is a folder as hugging_face.py describes, with the fields of own captions as columns.
`image` may be a picture, whose path counts. The split is the folder's where the rows name none.

COCO and Karpathy files are held in memory as bytes and as the fields that are read, JSON arrays
whole; the other formats stream.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.source_file import open_text
from eqforge.core.files.typed_json import decode, read_bytes, read_lines
from eqforge.core.identity import Namer, short_digest
from eqforge.sources.caption_forms import Source, detect_source
from eqforge.sources.own_captions import (
    KNOWN,
    OwnCaption,
    read_own_file,
    read_own_folder,
)
from eqforge.sources.text_pairs import read_text_pairs

_COCO_SPLIT = re.compile(r"captions_(\w+?)(?:\.json)?$")
_TOKEN_LINE = re.compile(r"(?P<image>[^#\t]+)#(?P<number>\d+)\t(?P<caption>.*)")
# One line of the published results.csv has only one separator: "2199200615.jpg| 4   A dog runs".
_PIPE_LINE = re.compile(r"(?P<image>[^|]+)\|\s*(?P<number>\d+)\s*(?:\|\s*|\s+)(?P<caption>.*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionRecord:
    """One caption of one image.

    Attributes:
      caption_id: unique in the source, such as `coco/770337` or `flickr30k/100.jpg#0`.
      image: the image's file, relative to the images folder; empty if the source names none.
      caption: the caption exactly as the source has it.
      split: the source's split, `all` where it states none.
    """

    caption_id: str
    image: str
    caption: str
    split: str = "all"

    @property
    def text_id(self) -> str:
        """The id, under the name common to all kinds of texts."""
        return self.caption_id

    @property
    def texts(self) -> tuple[str, ...]:
        """The caption, under the name common to all kinds of texts."""
        return (self.caption,)

    @property
    def box(self) -> None:
        """None: the caption describes the whole image."""
        return None


def read_captions(path: str | Path, source: Source | None = None) -> Iterator[CaptionRecord]:
    """Yields the captions of a file in its order.

    Args:
      path: an annotation file, or a folder of Hugging Face's.
      source: its format; None detects it, see caption_forms.py.

    Raises:
      InputError: the file is not of that format, has no caption, or gives an id twice; the message
        names file, record and field.
    """
    readers: dict[Source, Callable[[Path], Iterator[CaptionRecord]]] = {
        "coco": _read_coco,
        "karpathy": _read_karpathy,
        "flickr30k-token": _read_flickr_token,
        "flickr30k-csv": _read_flickr_csv,
        "own": lambda file: _own(read_own_file(file)),
        "text-pairs": _read_pairs,
        "hugging-face": lambda folder: _own(read_own_folder(folder)),
    }
    name = detect_source(path) if source is None else source
    if name not in readers:
        raise InputError(f"unknown caption format {name!r}; known: {', '.join(get_args(Source))}")
    may_lack_images = name in ("own", "hugging-face")
    return _checked(Path(path).name, readers[name](Path(path)), may_lack_images)


def _read_pairs(path: Path) -> Iterator[CaptionRecord]:
    """Yields the true captions of VL-CheckList, ARO, SugarCrepe and the like."""
    for pair in read_text_pairs(path):
        yield CaptionRecord(caption_id=pair.pair_id, image=pair.image, caption=pair.positive)


def _checked(
    file: str, captions: Iterable[CaptionRecord], may_lack_images: bool
) -> Iterator[CaptionRecord]:
    seen: set[str] = set()
    for record in captions:
        if record.caption_id in seen:
            raise InputError(f"{file}: the caption id {shown(record.caption_id)} appears twice")
        if not record.image and not may_lack_images:
            raise InputError(f"{file}: {shown(record.caption_id)}: expected an image, found ''")
        seen.add(record.caption_id)
        yield record
    if not seen:
        raise InputError(f"{file}: holds no caption")


class _CocoImage(msgspec.Struct, frozen=True):
    id: int
    file_name: str


class _CocoAnnotation(msgspec.Struct, frozen=True):
    id: int
    image_id: int
    caption: str


class _CocoFile(msgspec.Struct, frozen=True):
    images: list[_CocoImage]
    annotations: list[_CocoAnnotation]


def _read_coco(path: Path) -> Iterator[CaptionRecord]:
    content = decode(read_bytes(path), _CocoFile, path.name)
    files = {image.id: image.file_name for image in content.images}
    split = _COCO_SPLIT.search(path.name)
    for position, annotation in enumerate(content.annotations):
        if annotation.image_id not in files:
            raise InputError(
                f"{path.name}: annotations[{position}].image_id: expected the id of an image of "
                f"the file, found {annotation.image_id}"
            )
        yield CaptionRecord(
            caption_id=f"coco/{annotation.id}",
            image=files[annotation.image_id],
            caption=annotation.caption,
            split="all" if split is None else split[1],
        )


class _KarpathySentence(msgspec.Struct, frozen=True):
    raw: str
    sentid: int


class _KarpathyImage(msgspec.Struct, frozen=True):
    filename: str
    split: str
    sentences: list[_KarpathySentence]
    filepath: str = ""


class _KarpathyFile(msgspec.Struct, frozen=True):
    images: list[_KarpathyImage]
    dataset: str = "karpathy"


def _read_karpathy(path: Path) -> Iterator[CaptionRecord]:
    content = decode(read_bytes(path), _KarpathyFile, path.name)
    for image in content.images:
        folder = f"{image.filepath}/" if image.filepath else ""
        for sentence in image.sentences:
            yield CaptionRecord(
                caption_id=f"{content.dataset}/{sentence.sentid}",
                image=folder + image.filename,
                caption=sentence.raw,
                split=image.split,
            )


def _read_flickr_token(path: Path) -> Iterator[CaptionRecord]:
    for number, line in _text_lines(path):
        yield _flickr_line(path.name, number, line, _TOKEN_LINE, "image#number<TAB>caption")


def _read_flickr_csv(path: Path) -> Iterator[CaptionRecord]:
    lines = _text_lines(path)
    _, header = next(lines, (0, ""))
    if header.replace(" ", "") == "image_name|comment_number|comment":
        for number, line in lines:
            yield _flickr_line(path.name, number, line, _PIPE_LINE, "image| number| caption")
    elif {"raw", "filename", "split"} <= set(header.split(",")):
        yield from _read_flickr_annotations(path)
    else:
        raise InputError(
            f"{path.name}: line 1: expected a header of Flickr30k's: `image_name| comment_number| "
            f"comment`, or one with raw, filename and split; found {header[:80]!r}; {KNOWN}"
        )


def _flickr_line(
    file: str, number: int, line: str, pattern: re.Pattern[str], expected: str
) -> CaptionRecord:
    found = pattern.fullmatch(line)
    if found is None:
        found_here = f"line {number}: expected `{expected}`, found {line[:80]!r}"
        raise InputError(f"{file}: {found_here}; {KNOWN}")
    return CaptionRecord(
        caption_id=f"flickr30k/{found['image']}#{found['number']}",
        image=found["image"],
        caption=found["caption"],
    )


def _read_flickr_annotations(path: Path) -> Iterator[CaptionRecord]:
    for row in _csv_rows(path):
        image, where = row["filename"] or "", f"row of {shown(row['filename'])}: raw"
        captions = decode((row["raw"] or "").encode(), list[str], path.name, where)
        for position, caption in enumerate(captions):
            yield CaptionRecord(
                caption_id=f"flickr30k/{image}#{position}",
                image=image,
                caption=caption,
                split=row["split"] or "all",
            )


def _csv_rows(path: Path) -> Iterator[dict[str, str | None]]:
    """Yields the rows of a CSV file by column; a short row has None in the last ones."""
    try:
        with open_text(path, encoding="utf-8-sig", newline="") as stream:
            rows = csv.DictReader(stream)
            if missing := {"raw", "filename", "split"} - set(rows.fieldnames or ()):
                raise InputError(f"{path.name}: line 1: the column {min(missing)} is missing")
            yield from rows
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path.name}: not readable as CSV in UTF-8: {error}") from error


def _own(captions: Iterable[OwnCaption]) -> Iterator[CaptionRecord]:
    name = Namer()
    for line in captions:
        digest = short_digest([line.image, line.caption, line.split])
        content = f"{line.image or 'caption'}#{digest}"
        yield CaptionRecord(
            caption_id=name(content) if line.id is None else line.id,
            image=line.image,
            caption=line.caption,
            split=line.split,
        )


def _text_lines(path: Path) -> Iterator[tuple[int, str]]:
    for number, data in read_lines(path):
        try:
            yield number, data.decode("utf-8-sig").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(f"{path.name}: line {number}: not UTF-8 text: {error}") from error
