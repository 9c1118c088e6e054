"""Training examples: images with their captions, read from a dataset's tables.

Four kinds of datasets have them: pairs of images with a caption each; captions with a hard
positive and a hard negative; the same three texts in rows of their own (`training-captions`); and
plain captions (the table `captions` of `retrieval-perturbations`).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from eqforge.core.errors import InputError
from eqforge.schemas.dataset.reader import Dataset

PAIRS = ("sample_id", "split", "caption_0", "caption_1", "image_0_id", "image_1_id")
TRIPLES = ("sample_id", "split", "image_id", "caption", "hard_positive", "hard_negative")
TEXTS = ("caption_id", "split", "image_id", "role", "text")
CAPTIONS = ("caption_id", "split", "image_id", "caption")


@dataclass(frozen=True, kw_only=True, slots=True)
class Match:
    """An image with a true caption, and hard texts if there are any."""

    image_id: str
    caption: str
    hard_positive: str | None = None
    hard_negative: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """What enters a batch together: one match, or the two of a pair, which are close.

    Attributes:
      unit_id: id of the sample or caption it comes from; decides its place in the order.
      matches: one or two.
    """

    unit_id: str
    matches: tuple[Match, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Examples:
    """All units of a dataset, sorted by id.

    Attributes:
      units: all of one match, or all of two.
      left_out: number of records that gave no unit, by reason: `no_image`, `other_split`,
        `no_original`.
    """

    units: list[Unit]
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def matches_per_unit(self) -> int:
        """1, or 2 for a dataset of pairs."""
        return len(self.units[0].matches)

    def image_ids(self) -> list[str]:
        """Returns the distinct images, sorted."""
        return sorted({match.image_id for unit in self.units for match in unit.matches})

    def count_texts(self, name: str) -> int:
        """Returns how many matches have the text `name`, `hard_positive` or `hard_negative`."""
        matches = (match for unit in self.units for match in unit.matches)
        return sum(getattr(match, name) is not None for match in matches)


def read_examples(dataset: Dataset, split: str | None = None) -> Examples:
    """Reads the training examples of a dataset.

    Args:
      dataset: of one of the four kinds.
      split: the only split to keep; None keeps all.

    Raises:
      InputError: the dataset is of another kind, or has no example.
    """
    left_out: Counter[str] = Counter()
    units = sorted(_read(dataset, split, left_out), key=lambda unit: unit.unit_id)
    if not units:
        raise InputError(_nothing(dataset, split, left_out))
    return Examples(units=units, left_out=dict(sorted(left_out.items())))


def _read(dataset: Dataset, split: str | None, left_out: Counter[str]) -> Iterator[Unit]:
    columns = set(dataset.columns("samples"))
    if columns.issuperset(PAIRS):
        records = _pairs(dataset)
    elif columns.issuperset(TRIPLES):
        records = _triples(dataset)
    elif columns.issuperset(TEXTS):
        records = _texts(dataset, left_out)
    elif set(dataset.columns("captions")).issuperset(CAPTIONS):
        records = _captions(dataset)
    else:
        raise InputError(
            f"{dataset.folder}: {dataset.manifest.dataset} has nothing to train on; expected pairs "
            "of images, captions with hard texts, training-captions, or a table of captions"
        )
    for unit_split, unit_id, matches in records:
        if split is not None and unit_split != split:
            left_out["other_split"] += 1
        elif any(match.image_id is None for match in matches):
            left_out["no_image"] += 1
        else:
            yield Unit(unit_id=unit_id, matches=matches)


_Record = tuple[str, str, tuple[Match, ...]]


def _pairs(dataset: Dataset) -> Iterator[_Record]:
    for row in dataset.rows("samples", PAIRS):
        matches = tuple(
            Match(image_id=row[f"image_{side}_id"], caption=row[f"caption_{side}"])
            for side in (0, 1)
        )
        yield row["split"], row["sample_id"], matches


def _triples(dataset: Dataset) -> Iterator[_Record]:
    for row in dataset.rows("samples", TRIPLES):
        texts = {name: row[name] for name in ("caption", "hard_positive", "hard_negative")}
        yield row["split"], row["sample_id"], (Match(image_id=row["image_id"], **texts),)


def _captions(dataset: Dataset) -> Iterator[_Record]:
    for row in dataset.rows("captions", CAPTIONS):
        match = Match(image_id=row["image_id"], caption=row["caption"])
        yield row["split"], row["caption_id"], (match,)


def _texts(dataset: Dataset, left_out: Counter[str]) -> Iterator[_Record]:
    """Joins the texts of each caption, which may be in different files."""
    found: dict[str, dict[str, Any]] = {}
    for row in dataset.rows("samples", TEXTS):
        known = found.setdefault(row["caption_id"], {"split": row["split"]})
        known["image_id"], known[row["role"]] = row["image_id"], row["text"]
    for caption_id, known in found.items():
        if "original" not in known:
            left_out["no_original"] += 1
            continue
        match = Match(
            image_id=known["image_id"],
            caption=known["original"],
            hard_positive=known.get("hard_positive"),
            hard_negative=known.get("hard_negative"),
        )
        yield known["split"], caption_id, (match,)


def _nothing(dataset: Dataset, split: str | None, left_out: Counter[str]) -> str:
    if left_out["no_image"]:
        return (
            f"{dataset.folder}: none of its {left_out['no_image']} captions has an image in the "
            "dataset; build it with --images FOLDER"
        )
    wanted = "" if split is None else f" of split {split!r}"
    return f"{dataset.folder}: holds no sample{wanted} to train on"
