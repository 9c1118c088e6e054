"""Read captions of photographs to edit, with the content of the edited ones.

Own captions may have these fields in addition to own_captions.py's; empty fields are ignored:

    {"image": "holiday/001.jpg", "caption": "a dog on a beach", "hard_negative": "a cat on a beach",
     "kind": "object", "instruction": "turn the dog into a cat", "mask": "holiday/001-dog.png"}

`hard_negative` is the caption of the edited image, `kind` names the difference, `instruction` is
for editors that follow one, and `mask` names the mask's file below the folder of masks. Text pairs
(`text-pairs`) always have a hard negative, and some have a box. Other sources have neither.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode
from eqforge.core.identity import Namer, short_digest
from eqforge.schemas.records.scores import compact_json
from eqforge.schemas.records.values import CornerBox
from eqforge.sources.caption_sources import (
    CaptionRecord,
    Source,
    checked,
    detect_source,
    read_captions,
)
from eqforge.sources.own_captions import captions_of, own_records
from eqforge.sources.record_files import Record
from eqforge.sources.text_pairs import read_text_pairs


@dataclass(frozen=True, kw_only=True, slots=True)
class EditCaption(CaptionRecord):
    """A caption of a photograph, and its edit; fields that the source lacks are None.

    Attributes:
      hard_negative: what the edited photograph should show.
      kind: the source's word for the difference.
      mask: its file, relative to the masks folder.
      box: the described part of the photograph; None for the whole.
    """

    hard_negative: str | None = None
    kind: str | None = None
    instruction: str | None = None
    mask: str | None = None
    box: CornerBox | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.caption,) if self.hard_negative is None else (self.caption, self.hard_negative)


class _Fields(msgspec.Struct, frozen=True):
    hard_negative: str | None = None
    kind: str | None = None
    instruction: str | None = None
    mask: str | None = None


def read_edit_captions(
    path: str | Path, source: Source | None = None, has_masks: bool = True
) -> Iterator[EditCaption]:
    """Yield the captions of a file in order; without `has_masks` they must not name masks."""
    path, name = Path(path), source or detect_source(path)
    if name in ("own", "hugging-face", "text-pairs"):
        is_pairs = name == "text-pairs"
        captions = _pairs(path) if is_pairs else _own(path.name, own_records(path), has_masks)
        return checked(path.name, captions, True)
    return (
        EditCaption(
            caption_id=each.caption_id, image=each.image, caption=each.caption, split=each.split
        )
        for each in read_captions(path, name)
    )


def _pairs(path: Path) -> Iterator[EditCaption]:
    for pair in read_text_pairs(path):
        yield EditCaption(
            caption_id=pair.pair_id,
            image=pair.image,
            caption=pair.positive,
            hard_negative=pair.negative,
            kind=pair.kind,
            box=pair.box,
        )


def _own(file: str, records: Iterable[Record], has_masks: bool) -> Iterator[EditCaption]:
    namer = Namer()
    for record in records:
        captions = list(captions_of(file, record))
        where = record.where
        known = {name: record.value.get(name) for name in _Fields.__struct_fields__}
        found = decode(compact_json(known).encode(), _Fields, file, where)
        values = {name: getattr(found, name) or None for name in known}
        if len(captions) != 1 and any(values.values()):
            named = next(name for name, value in values.items() if value)
            raise InputError(
                f"{file}: {where}: an image with several captions cannot have the field {named}"
            )
        for caption in captions:
            # In any order of the records, the same ones have the same id.
            more = [{name: value for name, value in values.items() if value}]
            content = [caption.image, caption.caption, caption.split, *filter(None, more)]
            name = f"{caption.image or 'caption'}#{short_digest(content)}"
            caption_id = namer(name) if caption.id is None else caption.id
            if values["mask"] is not None and not has_masks:
                raise InputError(
                    f"{file}: {caption_id} needs the mask {values['mask']!r}. Pass the folder of "
                    "masks with --masks."
                )
            yield EditCaption(
                caption_id=caption_id,
                image=caption.image,
                caption=caption.caption,
                split=caption.split,
                **values,
            )
