"""Perturbs a caption: one perturbation by name, or all 13 with a seed each."""

import random
from collections.abc import Callable

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import Edit, apply_edits
from eqforge.generators.text.perturbations import shuffles, typos
from eqforge.generators.text.perturbations.distractions import add_statement
from eqforge.generators.text.perturbations.published import perturb_as_published
from eqforge.generators.text.perturbations.record import (
    PERTURBATIONS,
    VERSIONS,
    Perturbation,
    PerturbationSettings,
    Reason,
)
from eqforge.generators.text.perturbations.synonyms import PartOfSpeech, replace_by_synonyms
from eqforge.schemas.identity import derive_seed

_DEFAULTS = PerturbationSettings()


def perturb(
    name: str,
    analysis: Analysis,
    seed: int,
    settings: PerturbationSettings = _DEFAULTS,
) -> Perturbation:
    """Applies one perturbation to a caption; the same arguments always give the same result.

    Args:
      name: one of `PERTURBATIONS`.
      analysis: the caption's.
      seed: of this caption and perturbation; `perturb_all` derives it.
      settings: mode and strength.

    Raises:
      KeyError: the name is unknown.
      InputError: synonyms are asked for and WordNet is not on this machine.
    """
    if settings.mode == "paper":
        return perturb_as_published(name, analysis, random.Random(seed))
    outcome = _find_edits(name, analysis, seed, settings)
    reason = outcome if isinstance(outcome, Reason) else None
    edited = apply_edits(analysis.text, [] if isinstance(outcome, Reason) else outcome)
    return Perturbation(
        name=name,
        mode="corrected",
        version=VERSIONS["corrected"],
        text=edited.text,
        applied=reason is None,
        reason=reason,
        spans_before=edited.spans_before,
        spans_after=edited.spans_after,
    )


def perturb_all(
    analysis: Analysis,
    record_id: str,
    run_seed: int,
    settings: PerturbationSettings = _DEFAULTS,
) -> list[Perturbation]:
    """Returns the 13 perturbations of a caption, in the order of `PERTURBATIONS`.

    Args:
      analysis: the caption's.
      record_id: the caption's id; each of its perturbations has a stream of random numbers of its
        own, made from run seed, id, name and version.
      run_seed: of the run.
      settings: mode and strength.

    Raises:
      InputError: WordNet is not on this machine.
    """
    version = VERSIONS[settings.mode]
    seeds = (derive_seed(run_seed, record_id, f"perturb/{name}", version) for name in PERTURBATIONS)
    return [
        perturb(name, analysis, seed, settings)
        for name, seed in zip(PERTURBATIONS, seeds, strict=True)
    ]


def _find_edits(
    name: str, analysis: Analysis, seed: int, settings: PerturbationSettings
) -> list[Edit] | Reason:
    if name in _STATEMENTS:
        return add_statement(analysis, _STATEMENTS[name])
    rng = random.Random(seed)
    if name in _PARTS_OF_SPEECH:
        return replace_by_synonyms(analysis, rng, _PARTS_OF_SPEECH[name], settings.max_synonyms)
    return _RANDOM_EDITS[name](analysis, rng)


_STATEMENTS = {"distraction_true": "true is true", "distraction_false": "false is false"}
_PARTS_OF_SPEECH: dict[str, PartOfSpeech] = {"synonym_noun": "n", "synonym_adj": "a"}
_RANDOM_EDITS: dict[str, Callable[[Analysis, random.Random], list[Edit] | Reason]] = {
    "char_swap": typos.swap_characters,
    "missing_char": typos.drop_character,
    "extra_char": typos.add_character,
    "nearby_char": typos.hit_nearby_key,
    "shuffle_nouns_and_adj": shuffles.shuffle_nouns_and_adjectives,
    "shuffle_all_words": shuffles.shuffle_all_words,
    "shuffle_allbut_nouns_and_adj": shuffles.shuffle_other_words,
    "shuffle_within_trigrams": shuffles.shuffle_within_trigrams,
    "shuffle_trigrams": shuffles.shuffle_trigrams,
}
