"""Makes a hard positive and a hard negative from free captions, by rules or a language model."""

import random
import threading
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from functools import lru_cache, partial

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.coordination.swap import Swap, SwapRefusal, swap_coordination
from eqforge.generators.text.edits import EditedText, apply_edits
from eqforge.generators.text.hard_negatives.make import known_words, make_hard_negative
from eqforge.generators.text.hard_negatives.records import (
    NEGATIVE_KINDS,
    HardNegative,
    NegativeKind,
)
from eqforge.generators.text.hard_positives.free import reword_caption
from eqforge.generators.text.hard_positives.reconcile import what_is_said
from eqforge.generators.text.lexicon import Lexicon
from eqforge.generators.text.llm.prompts import PROMPTS, PromptName
from eqforge.generators.text.llm.rewrite import (
    STEP_VERSION,
    Rewrite,
    RewriteRefusal,
    rewrite_captions,
)
from eqforge.generators.text.llm.validate import REWRITE_REFUSALS
from eqforge.generators.text.llm.writer import CaptionWriter, WriterSettings
from eqforge.generators.text.rewordings.rules import KINDS, find_rewordings
from eqforge.schemas.identity import derive_seed, picture_key
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.sources.caption_sources import CaptionRecord
from eqforge.transforms.dataset.books import guarded
from eqforge.transforms.dataset.ledger import Ledger
from eqforge.transforms.text.perturb import analyse_captions

VERSION = 3
GENERATOR = f"eqforge.caption_edits {VERSION}"
NO_REWORDING = "no_rewording"
NO_HARD_NEGATIVE = "no_hard_negative"
TRUE_OF_IMAGE = "true_of_image"
EDIT_REASONS = {
    NO_REWORDING: "No rule rewords the caption so that it says the same without doubt.",
    NO_HARD_NEGATIVE: "No kind of hard negative fits the caption.",
    **REWRITE_REFUSALS,
}
"""Why a caption is not edited."""

_WRITER_LOCK = threading.Lock()


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionEdit:
    """An edited caption.

    Attributes:
      kind: how it was edited, such as `swap/noun_phrase`, `replace/color` or `replace_object`.
      edited: the caption after the edit, with the spans of the edit before and after.
      original, replacement: the words exchanged by a lexicon; None otherwise.
      generator: name and version of what made the edit; a model's with its revision and seed.
    """

    kind: str
    edited: EditedText
    original: str | None = None
    replacement: str | None = None
    generator: str = GENERATOR


@dataclass(frozen=True, kw_only=True, slots=True)
class EditRules:
    """How captions are edited.

    Attributes:
      seed: of the run.
      lexicon: the user's words and replacements of hard positives, beside the rules; None for none.
      kinds: hard negatives that are tried; which one is drawn for a caption is up to its seed.
      spacy_model: a spaCy pipeline for the tags; None uses the lexicon tagger.
      writer: the language model that writes the hard positives; None uses rules.
      retries: how often an answer that is not taken is asked for again.
      ledger: where the model's answers are kept, so that no run asks twice.
    """

    seed: int
    lexicon: Lexicon | None = None
    kinds: tuple[NegativeKind, ...] = NEGATIVE_KINDS
    spacy_model: str | None = None
    writer: WriterSettings | None = None
    retries: int = 3
    ledger: Ledger | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class EditedCaption:
    """A caption with its hard positive and hard negative, or why it has none.

    Attributes:
      record: the caption.
      positive, negative: the edits.
      of_positive: whether the negative is an edit of the hard positive, not of the caption.
      exchanged: whether the hard positive stands in the caption's place, and the caption in its.
    """

    record: CaptionRecord
    positive: CaptionEdit | Rejection
    negative: CaptionEdit | Rejection
    of_positive: bool = False
    exchanged: bool = False

    @property
    def base(self) -> str:
        """The text that the negative is an edit of."""
        if self.of_positive and isinstance(self.positive, CaptionEdit):
            return self.positive.edited.text
        return self.record.caption


@dataclass(frozen=True, kw_only=True, slots=True)
class RewordedCaption:
    """A caption and what its hard negative is made from.

    Attributes:
      record: the caption.
      analysis: of the caption.
      positive: its hard positive, or why it has none.
      known: words of the image's captions, which are never put in.
      true: what the image's captions and hard positives say.
    """

    record: CaptionRecord
    analysis: Analysis | Rejection
    positive: CaptionEdit | Rejection
    known: frozenset[str] | Rejection
    true: Set[str]


def edit_captions(captions: Iterable[CaptionRecord], rules: EditRules) -> list[EditedCaption]:
    """Edits captions; each is analysed once.

    A hard negative never introduces something that another caption of the image names, nor equals a
    caption or hard positive of the image, so all captions of an image have to come together.
    """
    return [
        EditedCaption(
            record=each.record, positive=each.positive, negative=_guarded_negative(each, rules)
        )
        for each in reword_captions(captions, rules)
    ]


def reword_captions(captions: Iterable[CaptionRecord], rules: EditRules) -> list[RewordedCaption]:
    """Makes the hard positives of captions; all captions of an image have to come together."""
    records = list(captions)
    analyses = analyse_captions([record.caption for record in records], rules.spacy_model)
    by_image: dict[str, list[str]] = {}
    for record in records:
        by_image.setdefault(_picture(record), []).append(record.caption)
    known = {image: guarded(partial(known_words, texts)) for image, texts in by_image.items()}
    positives = _positives(records, analyses, rules)
    true: dict[str, set[str]] = {}
    for record, positive in zip(records, positives, strict=True):
        made = [positive.edited.text] if isinstance(positive, CaptionEdit) else []
        true.setdefault(_picture(record), set()).update(map(what_is_said, [record.caption, *made]))
    return [
        RewordedCaption(
            record=record,
            analysis=analysis,
            positive=positive,
            known=known[_picture(record)],
            true=true[_picture(record)],
        )
        for record, analysis, positive in zip(records, analyses, positives, strict=True)
    ]


def _picture(record: CaptionRecord) -> str:
    return picture_key(record.image, record.caption_id)


def _positives(
    records: list[CaptionRecord], analyses: list[Analysis | Rejection], rules: EditRules
) -> list[CaptionEdit | Rejection]:
    named = [(record.caption_id, a) for record, a in zip(records, analyses, strict=True)]
    if rules.writer is None:
        return [
            analysis
            if isinstance(analysis, Rejection)
            else guarded(partial(_positive, analysis, caption_id, rules))
            for caption_id, analysis in named
        ]
    asked = [(name, analysis) for name, analysis in named if not isinstance(analysis, Rejection)]
    results = iter(_written(asked, rules, rules.writer).results if asked else ())
    return [
        analysis if isinstance(analysis, Rejection) else _taken(next(results))
        for _, analysis in named
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenCaption:
    """What a language model made of one caption: a rewrite, or why there is none."""

    name: str
    rewrite: Rewrite | None = None
    refusal: RewriteRefusal | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenCaptions:
    """What a language model made of a batch, in its order."""

    results: tuple[WrittenCaption, ...]


def _written(
    captions: list[tuple[str, Analysis]], rules: EditRules, settings: WriterSettings
) -> WrittenCaptions:
    """Returns the results for a batch; the model is asked once, however often a build starts."""
    with _WRITER_LOCK:
        writer = writer_of(settings)
        inputs = [
            *(writer.fingerprint, rules.seed, rules.retries, STEP_VERSION),
            [[caption_id, analysis.text] for caption_id, analysis in captions],
        ]
        if rules.ledger is None:
            return _ask(captions, rules, writer)
        return rules.ledger.remember(inputs, WrittenCaptions, lambda: _ask(captions, rules, writer))


@lru_cache(maxsize=1)
def writer_of(settings: WriterSettings) -> CaptionWriter:
    """Returns a language model, loaded once in every process."""
    return CaptionWriter(settings)


def _ask(
    captions: list[tuple[str, Analysis]], rules: EditRules, writer: CaptionWriter
) -> WrittenCaptions:
    """Asks for each caption by the prompt that its seed draws among those that apply."""
    by_prompt: dict[PromptName, list[int]] = {}
    for place, (caption_id, analysis) in enumerate(captions):
        by_prompt.setdefault(_prompt_of(caption_id, analysis, rules.seed), []).append(place)
    results: list[WrittenCaption] = [WrittenCaption(name=writer.name)] * len(captions)
    for prompt, places in sorted(by_prompt.items()):
        answers = rewrite_captions(
            [captions[place] for place in places],
            writer,
            prompt,
            run_seed=rules.seed,
            sample=writer.settings.sample,
            retries=rules.retries,
        )
        for place, answer in zip(places, answers, strict=True):
            results[place] = (
                WrittenCaption(name=writer.name, rewrite=answer)
                if isinstance(answer, Rewrite)
                else WrittenCaption(name=writer.name, refusal=answer)
            )
    return WrittenCaptions(results=tuple(results))


def _prompt_of(caption_id: str, analysis: Analysis, seed: int) -> PromptName:
    """SWAP where it applies, as in the paper; else one of the REPLACE prompts."""
    if PROMPTS["swap"].applies_to(analysis.text):
        return "swap"
    others = sorted(name for name in PROMPTS if name != "swap")
    return random.Random(derive_seed(seed, caption_id, "prompt", VERSION)).choice(others)


def _taken(written: WrittenCaption) -> CaptionEdit | Rejection:
    if written.rewrite is None:
        assert written.refusal is not None
        refusal = written.refusal
        detail = f"{refusal.prompt}, {refusal.attempts} answers, the last: {refusal.answer[:150]}"
        return Rejection(reason=refusal.reason, detail=detail)
    rewrite = written.rewrite
    seed = "greedy" if rewrite.seed is None else f"seed {rewrite.seed}"
    return CaptionEdit(
        kind=f"llm/{rewrite.prompt}",
        edited=rewrite.edited,
        generator=f"{written.name} {seed}",
    )


def _positive(analysis: Analysis, caption_id: str, rules: EditRules) -> CaptionEdit | Rejection:
    """Returns a rewording of a kind that the seed draws among those that the caption has."""
    swap = swap_coordination(analysis)
    by_kind: dict[str, list[CaptionEdit]] = {}
    for edit in _rewordings(analysis, swap, rules.lexicon):
        by_kind.setdefault(edit.kind, []).append(edit)
    if not by_kind:
        detail = swap.detail[:200] if isinstance(swap, SwapRefusal) else ""
        return Rejection(reason=NO_REWORDING, detail=detail)
    rng = random.Random(derive_seed(rules.seed, caption_id, "hard_positive", VERSION))
    return rng.choice(by_kind[rng.choice(sorted(by_kind))])


def _rewordings(
    analysis: Analysis, swap: Swap | SwapRefusal, lexicon: Lexicon | None
) -> Iterator[CaptionEdit]:
    """Yields every rewording of a caption, by rules and by the user's lexicon."""
    if isinstance(swap, Swap):
        yield CaptionEdit(kind=f"swap/{swap.level}", edited=swap.edited)
    for found in find_rewordings(analysis):
        edited = apply_edits(analysis.text, found.edits)
        yield CaptionEdit(kind=KINDS[found.rule], edited=edited)
    for word in () if lexicon is None else reword_caption(analysis, lexicon):
        yield CaptionEdit(
            kind=f"replace/{word.entry.group}",
            edited=word.edited,
            original=word.entry.word,
            replacement=word.entry.replacement,
        )


def _guarded_negative(caption: RewordedCaption, rules: EditRules) -> CaptionEdit | Rejection:
    analysis, known = caption.analysis, caption.known
    if isinstance(analysis, Rejection):
        return analysis
    if isinstance(known, Rejection):
        return known
    name, true = caption.record.caption_id, caption.true
    return guarded(partial(_negative, analysis, name, known, true, rules))


def _negative(
    analysis: Analysis,
    caption_id: str,
    known: frozenset[str],
    true: Set[str],
    rules: EditRules,
) -> CaptionEdit | Rejection:
    """Returns a hard negative of the first kind that has one, in an order drawn by the seed."""
    rng = random.Random(derive_seed(rules.seed, caption_id, "hard_negative", VERSION))
    reasons: list[str] = []
    for kind in rng.sample(rules.kinds, len(rules.kinds)):
        made = make_hard_negative(analysis, kind, rng, known)
        if isinstance(made, HardNegative) and what_is_said(made.edited.text) not in true:
            return CaptionEdit(kind=made.kind, edited=made.edited)
        reason = TRUE_OF_IMAGE if isinstance(made, HardNegative) else made.reason
        reasons.append(f"{kind}: {reason}")
    return Rejection(reason=NO_HARD_NEGATIVE, detail=", ".join(sorted(reasons)))
