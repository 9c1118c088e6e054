"""Applies to a caption one perturbation by name, or all of them, each with its own seed."""

import random

from eqforge.core.identity import derive_seed
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import apply_edits
from eqforge.generators.text.perturbations.catalogue import PERTURBATIONS, names_of
from eqforge.generators.text.perturbations.published import perturb_as_published
from eqforge.generators.text.perturbations.record import (
    VERSIONS,
    Perturbation,
    PerturbationSettings,
    Reason,
)
from eqforge.generators.text.words import has_same_words

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
      analysis: the caption's analysis.
      seed: for this caption and perturbation; `perturb_all` derives it.
      settings: mode and strength.

    Raises:
      KeyError: the mode has no perturbation of that name.
      InputError: paper mode needs WordNet, which is not on this machine.
    """
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
    analysis: Analysis,
    record_id: str,
    run_seed: int,
    settings: PerturbationSettings = _DEFAULTS,
) -> list[Perturbation]:
    """Returns all perturbations of a caption, in the order of `PERTURBATIONS`.

    Args:
      analysis: the caption's analysis.
      record_id: the caption's id; each of its perturbations has its own random numbers, seeded from
        run seed, id, name and version.
      run_seed: of the run.
      settings: mode and strength.

    Raises:
      InputError: paper mode needs WordNet, which is not on this machine.
    """
    version = VERSIONS[settings.mode]
    names = names_of(settings.mode)
    seeds = (derive_seed(run_seed, record_id, f"perturb/{name}", version) for name in names)
    return [
        perturb(name, analysis, seed, settings) for name, seed in zip(names, seeds, strict=True)
    ]
