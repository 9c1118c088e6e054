"""Drops hard positives that another caption of the same image repeats or contradicts."""

from collections.abc import Iterable, Iterator

from eqforge.generators.text.caption_lint import normalize_caption
from eqforge.generators.text.hard_positives.records import HardPositive, Refusal


def reconcile_image(
    candidates: Iterable[HardPositive],
    true_captions: Iterable[str] = (),
    false_captions: Iterable[str] = (),
) -> Iterator[HardPositive | Refusal]:
    """Yields the hard positives of one image, or why they go, in the order of their ids.

    A candidate goes where an earlier one has the same caption and negative, where its negative is a
    true caption of the image (of a candidate, or of `true_captions`), and where its hard positive
    is a negative of the image (of a candidate, or of `false_captions`). Captions are compared after
    `normalize_caption`. The result does not depend on the order of the arguments.

    Args:
      candidates: all hard positives of one image.
      true_captions: what else is known to be true of the image.
      false_captions: what else is known to be false of it.
    """
    ordered = sorted(candidates, key=lambda candidate: candidate.record_id)
    true = {normalize_caption(caption) for caption in true_captions}
    false = {normalize_caption(caption) for caption in false_captions}
    for candidate in ordered:
        true.add(normalize_caption(candidate.caption))
        false.add(normalize_caption(candidate.hard_negative))
    seen: set[tuple[str, str]] = set()
    for candidate in ordered:
        negative = normalize_caption(candidate.hard_negative)
        key = (normalize_caption(candidate.caption), negative)
        if key in seen:
            yield _refusal(candidate, "duplicate", " | ".join(key))
        elif negative in true:
            yield _refusal(candidate, "negative_true_elsewhere", candidate.hard_negative)
        elif normalize_caption(candidate.hard_positive) in false:
            yield _refusal(candidate, "hard_positive_false_elsewhere", candidate.hard_positive)
        else:
            yield candidate
        seen.add(key)


def _refusal(candidate: HardPositive, reason: str, detail: str) -> Refusal:
    return Refusal(record_id=candidate.record_id, reason=reason, detail=detail)
