"""Makes a hard positive and a hard negative of free captions, by rules."""

import random
from collections.abc import Iterable
from dataclasses import dataclass

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.swap import Swap, swap_coordination
from eqforge.generators.text.edits import EditedText
from eqforge.generators.text.hard_negatives.make import known_words, make_hard_negative
from eqforge.generators.text.hard_negatives.records import (
    NEGATIVE_KINDS,
    HardNegative,
    NegativeKind,
)
from eqforge.generators.text.hard_positives.free import NO_SYNONYM, Rewording, reword_caption
from eqforge.generators.text.lexicon import Lexicon
from eqforge.schemas.caption_sources import CaptionRecord
from eqforge.schemas.identity import derive_seed
from eqforge.schemas.scores import Rejection
from eqforge.transforms.perturb import tagger_of

VERSION = 1
NO_NEGATIVE = "no_hard_negative"


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionEdit:
    """An edited caption.

    Attributes:
      kind: how it was edited, such as `swap/noun_phrase`, `replace/color` or `replace_object`.
      edited: the caption after the edit, with the spans of the edit before and after.
      original, replacement: the words exchanged by a lexicon; None otherwise.
    """

    kind: str
    edited: EditedText
    original: str | None = None
    replacement: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EditRules:
    """How captions are edited.

    Attributes:
      seed: of the run.
      lexicon: words and replacements of hard positives.
      kinds: hard negatives that are tried; which one is drawn for a caption is up to its seed.
      spacy_model: a spaCy pipeline for the tags; None uses the lexicon tagger.
    """

    seed: int
    lexicon: Lexicon
    kinds: tuple[NegativeKind, ...] = NEGATIVE_KINDS
    spacy_model: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EditedCaption:
    """A caption with its hard positive and hard negative, or why it has none."""

    record: CaptionRecord
    positive: CaptionEdit | Rejection
    negative: CaptionEdit | Rejection


def edit_captions(captions: Iterable[CaptionRecord], rules: EditRules) -> list[EditedCaption]:
    """Edits captions; each is analysed once.

    What another caption of the same image names is never put into a hard negative, so all captions
    of an image have to come together.
    """
    records = list(captions)
    analyses = tagger_of(rules.spacy_model).analyse([record.caption for record in records])
    by_image: dict[str, list[str]] = {}
    for record in records:
        by_image.setdefault(record.image, []).append(record.caption)
    known = {image: known_words(texts) for image, texts in by_image.items()}
    return [
        EditedCaption(
            record=record,
            positive=_positive(analysis, record.caption_id, rules),
            negative=_negative(analysis, record.caption_id, known[record.image], rules),
        )
        for record, analysis in zip(records, analyses, strict=True)
    ]


def _positive(analysis: Analysis, caption_id: str, rules: EditRules) -> CaptionEdit | Rejection:
    """Swaps around "and" where that keeps the meaning, else exchanges a word for its synonym."""
    swap = swap_coordination(analysis)
    if isinstance(swap, Swap):
        return CaptionEdit(kind=f"swap/{swap.level}", edited=swap.edited)
    rng = random.Random(derive_seed(rules.seed, caption_id, "hard_positive", VERSION))
    found: Rewording | None = reword_caption(analysis, rules.lexicon, rng)
    if found is None:
        reason = NO_SYNONYM if swap.reason == "no_and" else swap.reason
        return Rejection(reason=reason, detail=swap.detail[:200])
    return CaptionEdit(
        kind=f"replace/{found.entry.group}",
        edited=found.edited,
        original=found.entry.word,
        replacement=found.entry.replacement,
    )


def _negative(
    analysis: Analysis, caption_id: str, known: frozenset[str], rules: EditRules
) -> CaptionEdit | Rejection:
    """Returns a hard negative of the first kind that has one, in an order drawn by the seed."""
    rng = random.Random(derive_seed(rules.seed, caption_id, "hard_negative", VERSION))
    reasons: list[str] = []
    for kind in rng.sample(rules.kinds, len(rules.kinds)):
        made = make_hard_negative(analysis, kind, rng, known)
        if isinstance(made, HardNegative):
            return CaptionEdit(kind=made.kind, edited=made.edited)
        reasons.append(f"{kind}: {made.reason}")
    return Rejection(reason=NO_NEGATIVE, detail=", ".join(sorted(reasons)))
