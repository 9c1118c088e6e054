"""List all perturbations by name, each corrected and as in the published code."""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from eqforge.core.identity import derive_seed
from eqforge.generators.text.analysis import Analysis, is_word
from eqforge.generators.text.edits import Edit, apply_edits
from eqforge.generators.text.perturbations import corrected, published
from eqforge.generators.text.perturbations.published import perturb_as_published
from eqforge.generators.text.perturbations.record import (
    VERSIONS,
    Mode,
    Perturbation,
    PerturbationSettings,
    Reason,
)
from eqforge.generators.text.perturbations.synonyms import replace_by_synonyms
from eqforge.generators.text.words import has_same_words

_ENDS_SENTENCE = re.compile(r"[.!?\u2026][^\w\s]*\s*\Z")


def add_statement(analysis: Analysis, statement: str) -> list[Edit] | Reason:
    """Insert ", and STATEMENT" before a full stop; after other end marks, add a sentence."""
    if not any(is_word(token) for token in analysis.tokens):
        return Reason.NO_WORDS
    last = analysis.tokens[-1]
    if last.text == ".":
        return [Edit(start=last.start, end=last.start, replacement=f", and {statement}")]
    if _ENDS_SENTENCE.search(analysis.text):
        sentence = f" {statement[0].upper()}{statement[1:]}."
        return [Edit(start=last.end, end=last.end, replacement=sentence)]
    comma = "" if last.text == "," else ","
    return [Edit(start=last.end, end=last.end, replacement=f"{comma} and {statement}")]


@dataclass(frozen=True, slots=True)
class Rules:
    """Edits of a caption, or a reason for none; and the published text, for paper mode."""

    edit: Callable[[Analysis, random.Random, PerturbationSettings], list[Edit] | Reason]
    published: Callable[[Analysis, random.Random], str] | None = None


def _simple(
    edit: Callable[[Analysis, random.Random], list[Edit] | Reason],
    published: Callable[[Analysis, random.Random], str],
) -> Rules:
    return Rules(lambda a, rng, _: edit(a, rng), published)


PERTURBATIONS: Final[Mapping[str, Rules]] = {
    "char_swap": _simple(corrected.swap_characters, lambda a, _: published.swap_characters(a.text)),
    "missing_char": _simple(
        corrected.drop_character, lambda a, _: published.drop_character(a.text)
    ),
    "extra_char": _simple(corrected.add_character, lambda a, _: published.add_character(a.text)),
    "nearby_char": _simple(corrected.hit_nearby_key, lambda a, _: published.hit_nearby_key(a.text)),
    "synonym_noun": Rules(
        lambda a, rng, settings: replace_by_synonyms(a, rng, "n", settings.max_synonyms),
        lambda a, _: published.replace_first_by_synonym(a, published.NOUNS),
    ),
    "synonym_adj": Rules(
        lambda a, rng, settings: replace_by_synonyms(a, rng, "a", settings.max_synonyms),
        lambda a, _: published.replace_first_by_synonym(a, published.ADJECTIVES),
    ),
    "distraction_true": _simple(
        lambda a, _: add_statement(a, "true is true"),
        lambda a, _: a.text.strip(".") + " and true it true.",
    ),
    "distraction_false": _simple(
        lambda a, _: add_statement(a, "false is false"),
        lambda a, _: a.text.strip(".") + " and false is false.",
    ),
    "shuffle_nouns_and_adj": _simple(
        corrected.shuffle_nouns_and_adjectives, published.shuffle_nouns_and_adjectives
    ),
    "shuffle_all_words": _simple(corrected.shuffle_all_words, published.shuffle_all_words),
    "shuffle_allbut_nouns_and_adj": _simple(
        corrected.shuffle_other_words, published.shuffle_other_words
    ),
    "shuffle_within_trigrams": _simple(
        corrected.shuffle_within_trigrams,
        lambda a, rng: published.shuffle_trigrams(a, rng, within=True),
    ),
    "shuffle_trigrams": _simple(
        corrected.shuffle_trigrams, lambda a, rng: published.shuffle_trigrams(a, rng, within=False)
    ),
}
"""By name; the 13 of the published code keep its names and order."""


def names_of(mode: Mode) -> tuple[str, ...]:
    every = mode == "corrected"
    return tuple(n for n, rules in PERTURBATIONS.items() if every or rules.published is not None)


_DEFAULTS = PerturbationSettings()


def perturb(
    name: str, analysis: Analysis, seed: int, settings: PerturbationSettings = _DEFAULTS
) -> Perturbation:
    rules, rng = PERTURBATIONS[name], random.Random(seed)
    if settings.mode == "paper":
        if rules.published is None:
            raise KeyError(name)
        return perturb_as_published(name, rules.published, analysis, rng)
    outcome = rules.edit(analysis, rng, settings)
    reason = outcome if isinstance(outcome, Reason) else None
    edited = apply_edits(analysis.text, [] if isinstance(outcome, Reason) else outcome)
    return Perturbation(
        name=name,
        mode="corrected",
        version=VERSIONS["corrected"],
        text=edited.text,
        applied=reason is None,
        words_changed=not has_same_words(analysis.text, edited.text),
        reason=reason,
        spans_before=edited.spans_before,
        spans_after=edited.spans_after,
    )


def perturb_all(
    analysis: Analysis, record_id: str, run_seed: int, settings: PerturbationSettings = _DEFAULTS
) -> list[Perturbation]:
    version = VERSIONS[settings.mode]
    names = names_of(settings.mode)
    seeds = (derive_seed(run_seed, record_id, f"perturb/{name}", version) for name in names)
    return [
        perturb(name, analysis, seed, settings) for name, seed in zip(names, seeds, strict=True)
    ]
