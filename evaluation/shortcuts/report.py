"""The audits of captions and of questions as text and as JSON."""

import dataclasses
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from eqforge.core import visible
from eqforge.core.files.checked import shown
from eqforge.evaluation.shortcuts.answerers import PRIOR
from eqforge.evaluation.shortcuts.audit import CHANCE, Audit, ProbeResult
from eqforge.evaluation.shortcuts.blind import BlindAudit, BlindResult
from eqforge.evaluation.shortcuts.judges import CONTRASTS
from eqforge.evaluation.shortcuts.probes import Clue

_SEEN = {
    "length": "sees how many characters and words a caption has",
    "rarity": "sees how rare a caption's words are",
    "position": "sees which words a caption begins and ends with, and which are in each third",
    "words": "sees the words of a caption and pairs of neighbours",
    "letters": "sees runs of two to four letters",
    "likelihood": "knows which three words follow one another in true captions, and no false one",
    "transformer": "reads the words of a caption in their order, each beside all others",
    "language_model_total": "a language model's probability of the whole caption",
    "language_model_per_token": "the same for each token, so that length does not count",
}
"""What each probe judges by."""

_SEEN_OF_QUESTIONS = {
    PRIOR: "gives the answer that is right most often in other groups",
    "length": "sees how many characters and words a question has, or each of its options",
    "rarity": "sees how rare their words are",
    "position": "sees which words they begin and end with, and which are in each third",
    "words": "sees their words and pairs of neighbours",
    "letters": "sees runs of two to four letters",
    "language_model_total": "a language model's probability of the question and an answer",
    "language_model_per_token": "the same for each token, so that length does not count",
}
"""What each blind answerer goes by."""


def as_text(name: str, audit: Audit, parts: Mapping[str, Audit] = MappingProxyType({})) -> str:
    """Return the report of an audit, and of the parts that `--by` makes of it."""
    lines = [
        f"{name}: {audit.one_image:,} pairs of one image and two captions were audited.",
    ]
    if audit.two_by_two:
        lines.append(
            f"{audit.two_by_two:,} pairs of two images and two captions were not: there every "
            "caption is true once and false once, so that no text alone is right more than half "
            "the time."
        )
    if audit.left_out:
        lines.append(f"{audit.left_out:,} captions without a false one were left out.")
    lines += _contrasts(audit)
    for part, found in parts.items():
        lines += ["", f"{part}: {found.one_image:,} pairs", *_contrasts(found)]
    if audit.results:
        probes = {result.probe for result in audit.results}
        lines += ["", *(f"{name}: {text}" for name, text in _SEEN.items() if name in probes)]
        lines += audit.unasked
        lines += ["", *_method(audit)]
    return visible.in_lines(lines)


def _contrasts(audit: Audit) -> Iterator[str]:
    for contrast, (_, _, question) in CONTRASTS.items():
        if results := [result for result in audit.results if result.contrast == contrast]:
            found = results[0]
            yield from ("", f"{question} ({found.pairs:,} pairs of {found.images:,} images)")
            yield from (*map(_result, results), _best(results), *_clues(results))


def as_json(name: str, audit: Audit | BlindAudit, parts: Mapping[str, Audit] | None = None) -> str:
    def plain(audit: Audit | BlindAudit) -> dict[str, Any]:
        results = [
            {**dataclasses.asdict(result), "is_shortcut": result.is_shortcut}
            for result in audit.results
        ]
        return {**dataclasses.asdict(audit), "results": results}

    chance = {"chance": CHANCE} if isinstance(audit, Audit) else {}
    by = {"parts": {part: plain(found) for part, found in parts.items()}} if parts else {}
    return visible.json_text({"name": name, **chance, **plain(audit), **by})


def _result(result: ProbeResult | BlindResult) -> str:
    return (
        f"  {result.probe:<25} {result.accuracy:7.2%}  [{result.low:.2%}, {result.high:.2%}]"
        f"{'  shortcut' if result.is_shortcut else ''}"
    )


def _best(results: Sequence[ProbeResult]) -> str:
    best = max(results, key=lambda result: result.told)
    low, high = best.told_between
    by = f"{best.probe}, turned round" if best.accuracy < CHANCE else best.probe
    return f"  best of {len(results)}: {best.told:.2%} [{low:.2%}, {high:.2%}] by {by}"


def _clues(results: Sequence[ProbeResult]) -> Iterator[str]:
    """Yield what each shortcut goes by, with the numbers of right and wrong captions that have it.

    Where the interval reaches chance, the largest weights are due to chance too.
    """
    for result in results:
        if result.is_shortcut and result.clues:
            yield f"  {result.probe} that give most away (right and wrong captions with them):"
            yield from _lines_of(result.clues, ("right", "wrong"))


def _lines_of(found: Sequence[Clue], sides: tuple[str, str]) -> Iterator[str]:
    for clue in found:
        side = sides[clue.weight <= 0]
        yield (
            f"    {side}  {clue.weight:+8.4f}  {shown(clue.text)} "
            f"({clue.right:,} and {clue.wrong:,})"
        )


def _method(audit: Audit | BlindAudit) -> list[str]:
    what = "group" if isinstance(audit, BlindAudit) else "image"
    chance = f"Chance is {CHANCE:.0%}. " if what == "image" else ""
    best = (
        " The interval of a best holds 95 % for all questions and probes together (Bonferroni's)."
        if what == "image"
        else ""
    )
    return textwrap.wrap(
        f"{chance}Intervals hold 95 % and are exact (Clopper and Pearson's), for as many trials as "
        f"have the variance of a bootstrap over {what}s (seed {audit.seed}; Korn and Graubard "
        "1998), widened for probes after Nadeau and Bengio (2003). A probe judges "
        f"{'an' if what == 'image' else 'a'} {what} by what it learnt from others, in "
        f"{audit.folds} folds; a language model learns nothing here. 'shortcut': the interval lies "
        f"above chance, and so much of a model's score can come from the text alone.{best}",
        width=92,
    )


_UNITS = {
    "accuracy": "Is a question answered right?",
    "question": "Is a question answered right on all its images?",
    "image": "Are all questions on an image answered right?",
    "group": "Are all questions of a group answered right?",
}
"""What is asked of a blind answerer, by metric."""


def questions_as_text(name: str, audit: BlindAudit) -> str:
    lines = [
        f"{name}: {audit.questions:,} questions with {audit.texts:,} texts in {audit.groups:,} "
        "groups were answered without their images."
    ]
    if audit.left_out:
        lines.append(
            f"{audit.left_out:,} questions of groups in which an answer is free text were left out."
        )
    lines += ["", "Right answers, by how a question is answered:"]
    for form, counts in audit.answers.items():
        shares = ", ".join(f"{answer} {count:,}" for answer, count in counts.items())
        lines.append(f"  {form:<12} {shares}")
    for metric, question in _UNITS.items():
        results = [result for result in audit.results if result.metric == metric]
        found = results[0]
        lines += [
            "",
            f"{question} ({found.units:,} in {found.groups:,} groups)",
            f"  {'chance':<25} {found.chance:7.2%}",
            f"  {'at most, without images':<25} {found.at_most:7.2%}",
            *(_result(result) for result in results if result.at_most),
        ]
    for given in audit.given_away:
        sides = f"{given.sides[0]} and {given.sides[1]} with them"
        lines += ["", f"{given.probe} that give most away, {given.form} ({sides}):"]
        lines += _lines_of(given.clues, given.sides)
    probes = {result.probe for result in audit.results}
    lines += [
        "",
        *(f"{name}: {text}" for name, text in _SEEN_OF_QUESTIONS.items() if name in probes),
    ]
    return visible.in_lines([*lines, "", *_method(audit)])
