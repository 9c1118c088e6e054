"""Reads results that name no record: BiVLC's, told by captions, and CLIP_benchmark's sums."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files.checked import shown
from eqforge.core.files.foreign_tables import csv_rows
from eqforge.core.files.typed_json import decode, read_bytes
from eqforge.evaluation.metrics.ties import Credits

BOTH: Final = ("text", "image")
SCORES: Final = (*BOTH, "group")
_PARTS: Final = {
    "text": ("text_score_i0", "text_score_i1"),
    "image": ("image_score_c0", "image_score_c1"),
    "group": ("text_score", "image_score"),
}
_FLAGS: Final = {"True": True, "False": False}

Captions = tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionedResults:
    """Results of pairs, by their captions.

    Attributes:
      right: for each pair whether its text, image and group score are won.
      kinds: for each its type and subtype, such as `add/obj`.
    """

    right: Mapping[Captions, tuple[bool, ...]]
    kinds: Mapping[Captions, str]


def read_bivlc(path: Path) -> CaptionedResults:
    """Reads a CSV of results that BiVLC's code writes, a row a pair.

    Its rows have no id. A pair is told by its caption and its negative caption.

    Raises:
      InputError: a column is missing, a score is neither True nor False or contradicts its parts,
        or two rows have the same captions.

    Source: github.com/IMirandaM/BiVLC, `results`.
    """
    right: dict[Captions, tuple[bool, ...]] = {}
    kinds: dict[Captions, str] = {}
    for line, row in enumerate(csv_rows(path), start=2):
        where = f"{path}: line {line}"
        wanted = ("caption", "negative_caption", "type", "subtype", "group_score")
        if missing := [n for n in (*wanted, *sum(_PARTS.values(), ())) if row.get(n) is None]:
            raise InputError(f"{where}: there is no {missing[0]}")
        key = (row["caption"], row["negative_caption"])
        if key in right:
            raise InputError(f"{where}: a second row of the caption {shown(key[0])}")
        right[key] = tuple(_won(row, name, where) for name in SCORES)
        kinds[key] = f"{row['type']}/{row['subtype']}"
    if not right:
        raise InputError(f"{path}: holds no rows")
    return CaptionedResults(right=right, kinds=kinds)


def _won(row: Mapping[str, str], name: str, where: str) -> bool:
    names = (f"{name}_score", *_PARTS[name])
    said = [_FLAGS.get(row[each]) for each in names]
    if None in said:
        wrong = names[said.index(None)]
        raise InputError(f"{where}: {wrong}: expected True or False, found {shown(row[wrong])}")
    if said[0] != (said[1] and said[2]):
        raise InputError(f"{where}: {names[0]} is {said[0]}, but {names[1]} and {names[2]} are not")
    return bool(said[0])


def credits_of(rows: list[tuple[bool, ...]]) -> dict[str, Credits]:
    """Returns the credits of each score [n]."""
    found = np.array(rows, dtype=np.float64).reshape(-1, len(SCORES))
    return dict(zip(SCORES, found.T, strict=True))


_SUMS: Final = {
    "pairs": {"text": "text_acc", "image": "image_acc", "group": "acc"},
    "foils": {"pairwise": "text_acc"},
    "rewordings": {"original": "text_acc"},
}


class _Sums(msgspec.Struct):
    task: str
    metrics: dict[str, float]


def read_clip_benchmark(path: Path, samples: int, kind: str) -> dict[str, float]:
    """Reads a result of CLIP_benchmark: shares of a dataset's samples, and nothing of each.

    Args:
      path: the JSON that it wrote.
      samples: how many samples the dataset has.
      kind: `pairs` of images; or `foils` or `rewordings`, of which the first caption is true.

    Returns:
      The value of each metric.

    Raises:
      InputError: the task is another one, or a value is no share of so many samples.
    """
    found = decode(read_bytes(path), _Sums, str(path))
    names = _SUMS[kind]
    if missing := [name for name in names.values() if name not in found.metrics]:
        raise InputError(
            f"{path}: is of the task {shown(found.task)} and has no {missing[0]}; expected a "
            "result of --task image_caption_selection"
        )
    for name in names.values():
        count = found.metrics[name] * samples
        # Means of 32-bit numbers.
        if not 0 <= count <= samples or abs(count - round(count)) > 1e-6 * samples + 1e-3:
            raise InputError(
                f"{path}: {name} is {found.metrics[name]:g}, which is no share of the {samples:,} "
                "samples of the dataset: is it of another, or of one split?"
            )
    return {metric: found.metrics[name] for metric, name in names.items()}
