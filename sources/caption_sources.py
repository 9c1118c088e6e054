"""Read captioned images: COCO, Karpathy, Flickr30k, their FG versions, own, Hugging Face's.

`own` is a user's table, JSON array or JSON lines; own_captions.py has the fields:

    {"image": "holiday/001.jpg", "caption": "two dogs on a beach", "id": "001/0", "split": "test"}

`image` is a path below the images folder, or empty; `id` (default: the image, `#` and a digest of
image, caption and split) has to be unique; `split` is `all` by default.

`text-pairs` reads the true captions of VL-CheckList, ARO and other files of text pairs. It must be
named, since other formats share their suffixes.

`fine-grained` is MS-COCO-FG or Flickr30k-FG (Chen et al. 2023): captions by image, whose names have
no ending. The images are COCO's and Flickr30k's, which are JPEG files:

    {"COCO_val2014_000000452113": ["a group of people posing with half a dozen large cupcakes"]}

`hugging-face` is a folder as in hugging_face.py, with the fields of own captions as columns. For an
embedded image, its path counts. Rows without a split get the folder's.

COCO and Karpathy files are held in memory, as bytes and as the required fields, and so are JSON
arrays; the other formats stream.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar, get_args

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.checked import names_of, shown
from eqforge.core.files.typed_json import decode, read_bytes, text_lines
from eqforge.core.identity import Namer, picture_key, short_digest
from eqforge.schemas.records.values import CornerBox
from eqforge.sources.hugging_face import row_folder
from eqforge.sources.own_captions import (
    CAPTIONS,
    KNOWN,
    LINES,
    TABLES,
    OwnCaption,
    header_of,
    read_own,
)
from eqforge.sources.record_files import read_table
from eqforge.sources.text_pairs import read_text_pairs

Source = Literal[
    "coco",
    "karpathy",
    "flickr30k-token",
    "flickr30k-csv",
    "fine-grained",
    "own",
    "text-pairs",
    "hugging-face",
]


class _Shape(msgspec.Struct):
    images: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    annotations: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def detect_source(path: str | Path) -> Source:
    """Detect the format of a caption file by its suffix, and of JSON and CSV by their fields."""
    path = Path(path)
    if path.is_dir() or row_folder(path) is not None:
        return "hugging-face"
    match path.suffix.lower():
        case ".json":
            return _detect_json(path)
        case ".csv":
            columns = header_of(path)
            if columns >= _ANNOTATIONS:
                return "own" if "caption" in columns else "flickr30k-csv"
            plain = {name.replace(" ", "") for name in columns}
            return "flickr30k-csv" if plain == {_RESULTS} else "own"
        case ".token" | ".txt":
            return "flickr30k-token"
        case ending if ending in (*TABLES, *LINES):
            return "own"
    raise InputError(
        f"{path}: the file name matches no caption format. Rename the file, or pass --source. "
        f"{KNOWN}"
    )


def _detect_json(path: Path) -> Source:
    """Distinguish COCO and Karpathy from an array, or lines, of own captions."""
    data = read_bytes(path)
    first = data.removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")[0].rstrip()
    if not first.startswith(b"{"):
        return "own"
    try:
        shape = decode(data, _Shape, path.name)
    except InputError:
        if first.endswith(b"}"):  # JSON lines are given this ending, too
            return "own"
        raise
    if shape.images is msgspec.UNSET:
        fields = decode(data, dict[str, msgspec.Raw], path.name)
        if not fields.keys().isdisjoint(CAPTIONS):  # a single line
            return "own"
        if fields and all(_TEXTS.match(bytes(value)) for value in fields.values()):
            return "fine-grained"
        found = f"only {names_of(fields)}" if fields else "no fields"
        raise InputError(f"{path.name}: the field 'images' is missing; found {found}. {KNOWN}")
    return "karpathy" if shape.annotations is msgspec.UNSET else "coco"


_TEXTS = re.compile(rb'\[\s*"')
_COCO_SPLIT = re.compile(r"captions_(\w+?)(?:\.json)?$")
# The headers of the two published tables of Flickr30k.
_ANNOTATIONS = frozenset(("raw", "filename", "split"))
_RESULTS = "image_name|comment_number|comment"
_TOKEN_LINE = re.compile(r"(?P<image>[^#\t]+)#(?P<number>\d+)\t(?P<caption>.*)")
# One line of the published results.csv has only one separator: "2199200615.jpg| 4   A dog runs".
_PIPE_LINE = re.compile(r"(?P<image>[^|]+)\|\s*(?P<number>\d+)\s*(?:\|\s*|\s+)(?P<caption>.*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionRecord:
    """One caption of one image.

    Attributes:
      caption_id: unique in the source, such as `coco/770337` or `flickr30k/100.jpg#0`.
      image: the file, relative to the images folder; empty if the source names none.
      split: `all` if the source states none.
    """

    caption_id: str
    image: str
    caption: str
    split: str = "all"

    @property
    def text_id(self) -> str:
        return self.caption_id

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.caption,)

    @property
    def box(self) -> CornerBox | None:
        return None

    @property
    def picture(self) -> str:
        return picture_key(self.image, self.caption_id)


C = TypeVar("C", bound=CaptionRecord)


def read_captions(path: str | Path, source: Source | None = None) -> Iterator[CaptionRecord]:
    """Yield the captions of a file or folder in order; None detects the format of its source."""
    readers: dict[Source, Callable[[Path], Iterator[CaptionRecord]]] = {
        "coco": _read_coco,
        "karpathy": _read_karpathy,
        "flickr30k-token": lambda path: (
            _flickr_line(path.name, number, line, _TOKEN_LINE, "image#number<TAB>caption")
            for number, line in text_lines(path)
        ),
        "flickr30k-csv": _read_flickr_csv,
        "fine-grained": _read_fine_grained,
        "own": lambda path: _own(read_own(path)),
        "text-pairs": lambda path: (
            CaptionRecord(caption_id=pair.pair_id, image=pair.image, caption=pair.positive)
            for pair in read_text_pairs(path)
        ),
        "hugging-face": lambda path: _own(read_own(path)),
    }
    name = detect_source(path) if source is None else source
    if name not in readers:
        raise InputError(
            f"unknown caption format {name!r}; the formats are {', '.join(get_args(Source))}"
        )
    may_lack_images = name in ("own", "hugging-face")
    return checked(Path(path).name, readers[name](Path(path)), may_lack_images)


def checked(file: str, captions: Iterable[C], may_lack_images: bool) -> Iterator[C]:
    seen: set[str] = set()
    for record in captions:
        if record.caption_id in seen:
            raise InputError(f"{file}: the caption id {shown(record.caption_id)} appears twice")
        if not record.image and not may_lack_images:
            raise InputError(
                f"{file}: {shown(record.caption_id)}: expected an image name, found ''"
            )
        seen.add(record.caption_id)
        yield record
    if not seen:
        raise InputError(f"{file} contains no captions")


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
                f"{path.name}: annotations[{position}].image_id: expected the id of an image in "
                f"this file, found {annotation.image_id}"
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


def _read_flickr_csv(path: Path) -> Iterator[CaptionRecord]:
    lines = text_lines(path)
    _, header = next(lines, (0, ""))
    if header.replace(" ", "") == _RESULTS:
        for number, line in lines:
            yield _flickr_line(path.name, number, line, _PIPE_LINE, "image| number| caption")
    elif set(header.split(",")) >= _ANNOTATIONS:
        yield from _read_flickr_annotations(path)
    else:
        raise InputError(
            f"{path.name}: line 1: not the header of a Flickr30k file: {header[:80]!r}. {KNOWN}"
        )


def _flickr_line(
    file: str, number: int, line: str, pattern: re.Pattern[str], expected: str
) -> CaptionRecord:
    found = pattern.fullmatch(line)
    if found is None:
        found_here = f"line {number}: expected `{expected}`, found {line[:80]!r}"
        raise InputError(f"{file}: {found_here}. {KNOWN}")
    return CaptionRecord(
        caption_id=f"flickr30k/{found['image']}#{found['number']}",
        image=found["image"],
        caption=found["caption"],
    )


def _read_flickr_annotations(path: Path) -> Iterator[CaptionRecord]:
    for record in read_table(path, _ANNOTATIONS, ()):
        row = record.node(path.name)
        image, split = (text.value if (text := row.get(n)) else "" for n in ("filename", "split"))
        where = f"row for {shown(image)}: raw"
        captions = decode(row["raw"].text().encode(), list[str], path.name, where)
        for position, caption in enumerate(captions):
            yield CaptionRecord(
                caption_id=f"flickr30k/{image}#{position}",
                image=image,
                caption=caption,
                split=split or "all",
            )


def _read_fine_grained(path: Path) -> Iterator[CaptionRecord]:
    for image, captions in decode(read_bytes(path), dict[str, list[str]], path.name).items():
        file = image if Path(image).suffix else f"{image}.jpg"
        for position, caption in enumerate(captions):
            yield CaptionRecord(
                caption_id=f"fine-grained/{image}#{position}", image=file, caption=caption
            )


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
