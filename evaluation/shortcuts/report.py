"""The audit as text and as JSON."""

import dataclasses
from collections.abc import Iterator, Sequence

from eqforge.evaluation.shortcuts.audit import CHANCE, CONTRASTS, Audit, ProbeResult
from eqforge.schemas import visible
from eqforge.schemas.io.checked import shown

_SEEN = {
    "length": "sees how many characters and words a caption has",
    "rarity": "sees how rare a caption's words are",
    "position": "sees which words a caption begins and ends with, and which are in each third",
    "words": "sees the words of a caption and pairs of neighbours",
    "letters": "sees runs of two to four letters",
    "language_model_total": "a language model's probability of the whole caption",
    "language_model_per_token": "the same for each token, so that length does not count",
}
"""What each probe judges by."""


def as_text(name: str, audit: Audit) -> str:
    """Returns a readable report.

    Args:
      name: of the file or dataset.
      audit: what was found.
    """
    lines = [
        f"{name}: {audit.one_image:,} pairs of one image and two captions were audited.",
        *_not_applicable(audit),
    ]
    if audit.left_out:
        lines.append(f"{audit.left_out:,} captions without a false one were left out.")
    for contrast, (_, _, question) in CONTRASTS.items():
        results = [result for result in audit.results if result.contrast == contrast]
        if not results:
            continue
        found = results[0]
        lines += ["", f"{question} ({found.pairs:,} pairs of {found.images:,} images)"]
        lines += [
            f"  {result.probe:<25} {result.accuracy:7.2%}  [{result.low:.2%}, {result.high:.2%}]"
            f"{'  shortcut' if result.is_shortcut else ''}"
            for result in results
        ]
        lines += _clues(results)
    if audit.results:
        probes = {result.probe for result in audit.results}
        lines += ["", *(f"{name}: {text}" for name, text in _SEEN.items() if name in probes)]
        lines += ["", *_method(audit)]
    return visible.in_lines(lines)


def as_json(name: str, audit: Audit) -> str:
    """Returns the report as one JSON object.

    Args:
      name: of the file or dataset.
      audit: what was found.
    """
    results = [
        {**dataclasses.asdict(result), "is_shortcut": result.is_shortcut}
        for result in audit.results
    ]
    return visible.json_text(
        {"name": name, "chance": CHANCE, **dataclasses.asdict(audit), "results": results}
    )


def _clues(results: Sequence[ProbeResult]) -> Iterator[str]:
    """Yields what each shortcut goes by, with the numbers of right and wrong captions that have it.

    Where the interval reaches chance, the largest weights are those of chance too.
    """
    for result in results:
        if result.is_shortcut and result.clues:
            yield f"  {result.probe} that give most away (right and wrong captions with them):"
            for clue in result.clues:
                side = "right" if clue.weight > 0 else "wrong"
                yield (
                    f"    {side}  {clue.weight:+8.4f}  {shown(clue.text)} "
                    f"({clue.right:,} and {clue.wrong:,})"
                )


def _not_applicable(audit: Audit) -> list[str]:
    if not audit.two_by_two:
        return []
    return [
        f"{audit.two_by_two:,} pairs of two images and two captions were not: there every caption "
        "is true once and false once, so that no text alone is right more than half the time."
    ]


def _method(audit: Audit) -> list[str]:
    return [
        f"Chance is {CHANCE:.0%}. Intervals hold 95 % and are exact (Clopper and Pearson's), for",
        f"as many trials as have the variance of a bootstrap over images (seed {audit.seed}; Korn",
        "and Graubard 1998), widened for probes after Nadeau and Bengio (2003). A probe judges an",
        f"image by what it learnt from others, in {audit.folds} folds; a language model learns",
        "nothing here. 'shortcut': the interval lies above chance, and so much of a model's score",
        "can come from the text alone.",
    ]
