"""Read the annotation files of VL-CheckList.

A file is a JSON array of `[image, {"POS": [captions], "NEG": [captions]}]`. In the Visual Genome
part each record has one caption of each; in the SWiG part the i-th negative was made from the i-th
positive.

Source: Zhao et al. 2022, "VL-CheckList"; github.com/om-ai-lab/VL-CheckList, folder data/.
"""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.core.identity import short_digest


@dataclass(frozen=True, kw_only=True, slots=True)
class VlChecklistRecord:
    """An image with true captions and as many false ones.

    Attributes:
      index: position in the file, from 0; never part of an id.
      image: path as in the file, such as `VG_100K/2361911.jpg`.
      negatives: false captions; the i-th differs from positives[i] in one foiled span.
      repeat: its number among records of equal content, from 1.
    """

    index: int
    image: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]
    repeat: int = 1

    @property
    def name(self) -> str:
        """A digest of the record's content: unique in its file, whatever its position."""
        digest = short_digest([self.image, self.positives, self.negatives])
        return digest if self.repeat == 1 else f"{digest}-{self.repeat}"


class _Captions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    positives: tuple[str, ...] = msgspec.field(name="POS")
    negatives: tuple[str, ...] = msgspec.field(name="NEG")


def read_vl_checklist(path: str | Path) -> list[VlChecklistRecord]:
    file = Path(path).name
    records = decode(read_bytes(path), list[tuple[str, _Captions]], file)
    found, seen = [], Counter[str]()
    for index, (image, captions) in enumerate(records):
        record = _record(file, index, image, captions)
        seen[record.name] += 1
        found.append(replace(record, repeat=seen[record.name]))
    return found


def _record(file: str, index: int, image: str, captions: _Captions) -> VlChecklistRecord:
    if not image:
        raise InputError(f"{file}: [{index}][0]: expected an image path, found ''")
    if not captions.positives or len(captions.positives) != len(captions.negatives):
        raise InputError(
            f"{file}: [{index}][1]: expected equal numbers of POS and NEG captions, at least one "
            f"each; found {len(captions.positives)} POS and {len(captions.negatives)} NEG"
        )
    return VlChecklistRecord(
        index=index, image=image, positives=captions.positives, negatives=captions.negatives
    )
