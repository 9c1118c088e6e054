"""Makes a hard positive and a hard negative from free captions, by rules or a language model."""

import random
import threading
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import partial
from typing import Final

from eqforge.core.identity import derive_seed
from eqforge.core.ledger import Ledger
from eqforge.core.visible import shortened
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.swap import Swap, swap_coordination
from eqforge.generators.text.edits import EditedText, apply_edits
from eqforge.generators.text.hard_negatives.lexicon import NEGATIVE_KINDS, NegativeKind
from eqforge.generators.text.hard_negatives.make import known_words, make_hard_negative
from eqforge.generators.text.hard_positives.reconcile import text_key
from eqforge.generators.text.lexicon import Lexicon, reword_caption
from eqforge.generators.text.llm.model import LanguageModel
from eqforge.generators.text.llm.rewrite import Asking, Rewrite, RewriteRefusal, rewrite_captions
from eqforge.generators.text.llm.validate import REWRITE_REFUSALS
from eqforge.generators.text.llm.writer import WriterSettings, open_model
from eqforge.generators.text.rewordings.rules import KINDS, find_rewordings
from eqforge.schemas.records.scores import Rejection
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.dataset.failures import guarded
from eqforge.transforms.text.perturb import analyse_captions

VERSION = 8
GENERATOR = f"eqforge.caption_edits {VERSION}"
_DRAWS: Final = 3
"""Seeds the draws. Version 4 removed four families of rewordings but kept this value, so that other
captions keep their texts.
"""
WRITTEN = "llm/"
"""Prefix of a language model's kinds, followed by its prompt."""
NO_REWORDING = "no_rewording"
NO_HARD_NEGATIVE = "no_hard_negative"
TRUE_OF_IMAGE = "true_of_image"
EDIT_REASONS = {
    NO_REWORDING: "No rule can reword the caption and reliably keep its meaning.",
    NO_HARD_NEGATIVE: "No rule can generate a hard negative for the caption.",
    **REWRITE_REFUSALS,
}

_RARELY_DRAWN = frozenset(("existential",))
_TIERS: tuple[tuple[NegativeKind, ...], ...] = (
    ("swap_object", "swap_attribute", "replace_object", "replace_attribute", "replace_relation"),
    ("negation",),
)
"""Kinds of hard negatives: negation comes last, since nearly all captions can be negated."""
_LOCK = threading.Lock()
"""Only one thread may ask a language model at a time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionEdit:
    """An edited caption.

    Attributes:
      kind: how it was edited, such as `swap/noun_phrase`, `replace/color` or `replace_object`.
      original, replacement: the words exchanged by a lexicon.
      generator: name and version of the editor; a model's with its revision and seed.
    """

    kind: str
    edited: EditedText
    original: str | None = None
    replacement: str | None = None
    generator: str = GENERATOR


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """How a language model writes hard positives: all, or those for which no rule applies."""

    model: WriterSettings
    asking: Asking
    rest: bool = False
    ledger: Ledger | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EditRules:
    """How captions are edited.

    Attributes:
      lexicon: the user's words and replacements for hard positives, in addition to the rules.
      kinds: hard negatives to try; the seed draws one, negation last.
      written: how a language model writes hard positives; None uses rules.
    """

    seed: int
    lexicon: Lexicon | None = None
    kinds: tuple[NegativeKind, ...] = NEGATIVE_KINDS
    spacy_model: str | None = None
    written: Written | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EditedCaption:
    """A caption with its hard positive and hard negative, or why it has none.

    Attributes:
      of_positive: whether the negative is an edit of the hard positive, not of the caption.
      exchanged: whether caption and hard positive swap places.
    """

    record: CaptionRecord
    positive: CaptionEdit | Rejection
    negative: CaptionEdit | Rejection
    of_positive: bool = False
    exchanged: bool = False

    @property
    def true(self) -> tuple[str, ...]:
        if isinstance(self.positive, CaptionEdit):
            return self.record.caption, self.positive.edited.text
        return (self.record.caption,)

    @property
    def base(self) -> str:
        if self.of_positive and isinstance(self.positive, CaptionEdit):
            return self.positive.edited.text
        return self.record.caption


@dataclass(frozen=True, kw_only=True, slots=True)
class RewordedCaption:
    """A caption with its hard positive, and the input of its hard negative.

    Attributes:
      known: words of the image's captions, which are never inserted.
      true: texts of the image's captions and hard positives.
    """

    record: CaptionRecord
    analysis: Analysis | Rejection
    positive: CaptionEdit | Rejection
    known: frozenset[str] | Rejection
    true: Set[str]


def edit_captions(captions: Iterable[CaptionRecord], rules: EditRules) -> list[EditedCaption]:
    """Edit captions; each is analysed once.

    A hard negative never introduces something that another caption of the image names, nor equals a
    caption or hard positive of the image, so all captions of an image must come together.
    """
    return [
        EditedCaption(
            record=each.record,
            positive=each.positive,
            negative=guarded(partial(_negative, each, rules)),
        )
        for each in reword_captions(captions, rules)
    ]


def reword_captions(captions: Iterable[CaptionRecord], rules: EditRules) -> list[RewordedCaption]:
    """Make the hard positives of captions; all captions of an image must come together."""
    records = list(captions)
    analyses = _analyses(records, rules)
    by_image: dict[str, list[str]] = {}
    for record in records:
        by_image.setdefault(record.picture, []).append(record.caption)
    known = {image: guarded(partial(known_words, texts)) for image, texts in by_image.items()}
    positives = _positives(records, analyses, rules)
    true: dict[str, set[str]] = {}
    for record, positive in zip(records, positives, strict=True):
        positive_texts = [positive.edited.text] if isinstance(positive, CaptionEdit) else []
        true.setdefault(record.picture, set()).update(
            map(text_key, [record.caption, *positive_texts])
        )
    return [
        RewordedCaption(
            record=record,
            analysis=analysis,
            positive=positive,
            known=known[record.picture],
            true=true[record.picture],
        )
        for record, analysis, positive in zip(records, analyses, positives, strict=True)
    ]


def positives_of(
    captions: Iterable[CaptionRecord], rules: EditRules, model: LanguageModel | None = None
) -> list[CaptionEdit | Rejection]:
    records = list(captions)
    return _positives(records, _analyses(records, rules), rules, model)


def captions_left(captions: Iterable[CaptionRecord], rules: EditRules) -> list[CaptionRecord]:
    records = list(captions)
    results = map(partial(_by_rules, rules), records, _analyses(records, rules))
    return [
        each for each, found in zip(records, results, strict=True) if isinstance(found, Analysis)
    ]


def _analyses(records: list[CaptionRecord], rules: EditRules) -> list[Analysis | Rejection]:
    return analyse_captions([record.caption for record in records], rules.spacy_model)


def _positives(
    records: list[CaptionRecord],
    analyses: list[Analysis | Rejection],
    rules: EditRules,
    model: LanguageModel | None = None,
) -> list[CaptionEdit | Rejection]:
    results = list(map(partial(_by_rules, rules), records, analyses))
    left = [
        (record.caption_id, found)
        for record, found in zip(records, results, strict=True)
        if isinstance(found, Analysis)
    ]
    if rules.written is None or not left:
        return [found for found in results if not isinstance(found, Analysis)]
    with _LOCK:
        found = model or open_model(rules.written.model)
        written = iter(rewrite_captions(left, found, rules.written.asking, rules.written.ledger))
    return [_taken(next(written)) if isinstance(found, Analysis) else found for found in results]


def _by_rules(
    rules: EditRules, record: CaptionRecord, analysis: Analysis | Rejection
) -> CaptionEdit | Rejection | Analysis:
    """Edit a caption by rules; return its analysis if a language model must write it."""
    written = rules.written
    if isinstance(analysis, Rejection) or (written is not None and not written.rest):
        return analysis
    result = guarded(partial(_positive, analysis, record.caption_id, rules))
    is_left = isinstance(result, Rejection) and result.reason == NO_REWORDING
    return analysis if written is not None and is_left else result


def _taken(written: Rewrite | RewriteRefusal) -> CaptionEdit | Rejection:
    if isinstance(written, RewriteRefusal):
        last = shortened(" ".join(written.answer.split()), 150)
        detail = f"{written.prompt}, {written.attempts} answers, the last: {last}"
        return Rejection(reason=written.reason, detail=detail)
    seed = "greedy" if written.seed is None else f"seed {written.seed}"
    return CaptionEdit(
        kind=f"{WRITTEN}{written.prompt}",
        edited=written.edited,
        generator=f"{written.model} {seed}",
    )


def _positive(analysis: Analysis, caption_id: str, rules: EditRules) -> CaptionEdit | Rejection:
    """Draw a rewording by the seed: first the family of its kind, then the kind.

    Families of many rules are as likely as others. A family of `_RARELY_DRAWN` is drawn only if a
    caption has no other: most captions could begin with "there is".
    """
    swap = swap_coordination(analysis)
    families: dict[str, dict[str, list[CaptionEdit]]] = {}
    for edit in _rewordings(analysis, swap, rules.lexicon):
        family = families.setdefault(edit.kind.partition("/")[0], {})
        family.setdefault(edit.kind, []).append(edit)
    if not families:
        detail = swap.detail[:200] if isinstance(swap, Rejection) else ""
        return Rejection(reason=NO_REWORDING, detail=detail)
    rng = random.Random(derive_seed(rules.seed, caption_id, "hard_positive", _DRAWS))
    by_kind = families[rng.choice(sorted(families.keys() - _RARELY_DRAWN) or sorted(families))]
    return rng.choice(by_kind[rng.choice(sorted(by_kind))])


def _rewordings(
    analysis: Analysis, swap: Swap | Rejection, lexicon: Lexicon | None
) -> Iterator[CaptionEdit]:
    if isinstance(swap, Swap):
        yield CaptionEdit(kind=f"swap/{swap.level}", edited=swap.edited)
    for found in find_rewordings(analysis):
        edited = apply_edits(analysis.text, found.edits)
        yield CaptionEdit(kind=KINDS[found.rule], edited=edited)
    for edited, entry in () if lexicon is None else reword_caption(analysis, lexicon):
        yield CaptionEdit(
            kind=f"replace/{entry.group}",
            edited=edited,
            original=entry.word,
            replacement=entry.replacement,
        )


def _negative(caption: RewordedCaption, rules: EditRules) -> CaptionEdit | Rejection:
    """Return a hard negative by tiers; the seed orders the kinds within a tier."""
    analysis, known, true = caption.analysis, caption.known, caption.true
    if isinstance(analysis, Rejection):
        return analysis
    if isinstance(known, Rejection):
        return known
    name = caption.record.caption_id
    rng = random.Random(derive_seed(rules.seed, name, "hard_negative", _DRAWS))
    tiers = ([kind for kind in rules.kinds if kind in tier] for tier in _TIERS)
    reasons: list[str] = []
    for kind in (kind for tier in tiers for kind in rng.sample(tier, len(tier))):
        result = make_hard_negative(analysis, kind, rng, known)
        if isinstance(result, EditedText) and text_key(result.text) not in true:
            return CaptionEdit(kind=kind, edited=result)
        reason = TRUE_OF_IMAGE if isinstance(result, EditedText) else result.reason
        reasons.append(f"{kind}: {reason}")
    return Rejection(reason=NO_HARD_NEGATIVE, detail=", ".join(sorted(reasons)))
