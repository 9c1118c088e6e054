"""Agreement of reviewers with each other and with themselves, and decisions from their votes.

Source: Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability".
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from eqforge.evaluation.review.forms import FORMS, Level, Vote
from eqforge.evaluation.review.protocols import Form
from eqforge.evaluation.review.settings import Rule
from eqforge.evaluation.review.units import Claim, claim_key
from eqforge.evaluation.review.votes import first_votes
from eqforge.evaluation.statistics.bootstrap import percentile_interval, resample_means
from eqforge.evaluation.statistics.shares import NO_INTERVAL, Interval, exact_interval
from eqforge.schemas.records.judgements import VERDICTS, Decision, Tally, Verdict

First = Mapping[str, Mapping[str, Vote]]
Counts = NDArray[np.int64]
RESAMPLES: Final = 1_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Reviewer:
    """A reviewer's answers, with 95% intervals (NaN if undefined).

    Attributes:
      answers: number of times each answer was given, excluding repeats.
      others: how often other reviewers' votes on the same items match this reviewer's votes.
      alpha: Krippendorff's alpha (nominal for decisions, ordinal for ranks), or None if the votes
        are texts or boxes, or are all equal.
      repeats: number of items answered twice.
      same: number of items answered the same way both times. `same_interval` is exact
        (Clopper-Pearson).
    """

    name: str
    tasks: int
    answered: int
    answers: dict[str, int]
    others: float | None
    others_interval: Interval
    alpha: float | None
    alpha_interval: Interval
    repeats: int
    same: int
    same_interval: Interval
    minutes: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Agreement:
    """How well the reviewers agree.

    Attributes:
      alpha: Krippendorff's alpha (nominal for decisions, ordinal for ranks), or None if the votes
        are texts or boxes, or are all equal.
      interval: 95% interval for alpha from resampled items, or NaN if undefined.
      items: number of items with votes.
      several: number of items with at least two votes.
      unanimous: number of items with at least two votes and no disagreement.
    """

    alpha: float | None
    interval: Interval
    items: int
    several: int
    unanimous: int


def agreement(votes: First, form: Form = "decide", seed: int = 0) -> Agreement:
    counts = counts_of(votes, form)
    value, interval = _alpha(counts, np.arange(len(counts)), FORMS[form].level, seed)
    contents = [
        {vote.content for vote in answered}
        for each in votes.values()
        if len(answered := _given(each)) > 1
    ]
    return Agreement(
        alpha=value,
        interval=interval,
        items=len(votes),
        several=len(contents),
        unanimous=sum(len(each) == 1 for each in contents),
    )


def _given(item_votes: Mapping[str, Vote]) -> list[Vote]:
    return [vote for vote in item_votes.values() if vote.answer != "skipped"]


def reviewers_of(
    votes: Mapping[str, Sequence[Vote]],
    tasks: Mapping[str, int],
    form: Form = "decide",
    seed: int = 0,
) -> tuple[Reviewer, ...]:
    first = first_votes(votes) if FORMS[form].is_compared else {}
    found = []
    for name, reviewer_votes in votes.items():
        own_votes = {vote.id: vote for vote in reviewer_votes if not vote.is_repeat}
        answers = Counter(vote.answer for vote in own_votes.values())
        again = [vote for vote in reviewer_votes if vote.is_repeat and vote.id in own_votes]
        same = sum(vote.content == own_votes[vote.id].content for vote in again)
        # The others' votes are not compared with each other: their carelessness does not count.
        pairs = [
            (item, mine, vote)
            for item, mine in own_votes.items()
            for reviewer, vote in first.get(item, {}).items()
            if reviewer != name
        ]
        of_items: dict[str, list[bool]] = {}
        for item, mine, vote in pairs:
            if "skipped" not in (vote.answer, mine.answer):
                of_items.setdefault(item, []).append(vote.content == mine.content)
        agreement_share, interval = _clustered(of_items.values(), seed)
        both = {str(n): {"": mine, "other": vote} for n, (_, mine, vote) in enumerate(pairs)}
        _, items = np.unique([item for item, _, _ in pairs], return_inverse=True)
        alpha, alpha_interval = _alpha(counts_of(both, form), items, FORMS[form].level, seed)
        share = exact_interval(same / len(again), len(again)) if again else NO_INTERVAL
        found.append(
            Reviewer(
                name=name,
                tasks=tasks[name],
                answered=len(reviewer_votes),
                answers={each: answers[each] for each in FORMS[form].answers},
                others=agreement_share,
                others_interval=interval,
                alpha=alpha,
                alpha_interval=alpha_interval,
                repeats=len(again),
                same=same,
                same_interval=share,
                minutes=sum(vote.seconds for vote in reviewer_votes) / 60,
            )
        )
    return tuple(found)


def _clustered(of_items: Iterable[Sequence[bool]], seed: int) -> tuple[float | None, Interval]:
    known = [*of_items]
    if not known:
        return None, NO_INTERVAL
    items = np.repeat(np.arange(len(known)), [len(each) for each in known])
    found = resample_means(np.concatenate(known), items, seed=seed)
    return float(found.values[0]), found.share_interval()


@dataclass(frozen=True, slots=True)
class ClaimsAgreed:
    """How often reviewers agree with the rows' labels, by kind of text, ignoring unsure answers."""

    kind: str
    claimed: str
    answers: int
    unsure: int
    share: float | None
    interval: Interval


def claims_agreed(
    votes: First, claims: Mapping[str, Sequence[Claim]], seed: int = 0
) -> tuple[ClaimsAgreed, ...]:
    by_claim: dict[tuple[str, str], dict[str, list[str]]] = {}
    for item, item_votes in votes.items():
        for claim in claims.get(item, ()):
            for place, tone in enumerate(claim.tones):
                of_kind = by_claim.setdefault((tone, claim.kind), {}).setdefault(item, [])
                key = claim_key(claim, place)
                of_kind += [vote.texts[key] for vote in item_votes.values() if key in vote.texts]
    found = []
    for (claimed, kind), of_items in sorted(by_claim.items(), reverse=True):
        answers, unsure = sum(map(len, of_items.values())), 0
        right = []
        for item_answers in of_items.values():
            unsure += item_answers.count("unsure")
            right.append([answer == claimed for answer in item_answers if answer != "unsure"])
        share, interval = _clustered(filter(None, right), seed)
        found.append(ClaimsAgreed(kind, claimed, answers, unsure, share, interval))
    return tuple(found)


def decided(vote: Vote, claims: Sequence[Claim]) -> Vote:
    """Turn answers on texts into a decision: keep a row if all answers agree with it."""
    if not vote.is_given:
        return vote
    answers = [
        (tone, vote.texts[claim_key(claim, place)])
        for claim in claims
        for place, tone in enumerate(claim.tones)
    ]
    wrong = [tone for tone, answer in answers if answer not in (tone, "unsure")]
    if wrong:
        reason = f"a {wrong[0]} text is {'false' if wrong[0] == 'true' else 'true'}"
        return msgspec.structs.replace(vote, answer="drop", reason=reason)
    is_unsure = any(answer == "unsure" for _, answer in answers)
    return msgspec.structs.replace(vote, answer="unsure" if is_unsure else "keep")


def counts_of(votes: First, form: Form = "decide") -> Counts:
    """Count each value on each part of each item [items, parts, values], without skipped votes.

    An item to decide on has one part, whose values are VERDICTS. The parts of a ranked item are its
    captions or images; their values are the ranks, from 1.
    """
    values_of = FORMS[form].values
    parts = [[dict(values_of(vote)) for vote in _given(own)] for own in votes.values()]
    # Parts are counted within their item: each image has its own texts.
    places = [
        {name: place for place, name in enumerate(sorted({name for vote in own for name in vote}))}
        for own in parts
    ]
    most = max((value for own in parts for vote in own for value in vote.values()), default=0)
    values = len(VERDICTS) if form == "decide" else most
    counts = np.zeros((len(parts), max([1, *map(len, places)]), values), dtype=np.int64)
    for item, own in enumerate(parts):
        for vote in own:
            for name, value in vote.items():
                counts[item, places[item][name], value - 1] += 1
    return counts


def alpha_of(counts: Counts, level: Level = "nominal") -> float | None:
    """Return alpha of counts [..., values]; None if it is undefined.

    Source: Krippendorff, Computing Krippendorff's Alpha-Reliability (2011), sections C and D.
    """
    counts = counts.reshape(-1, max(1, counts.shape[-1]))
    counts = counts[counts.sum(axis=1) > 1]
    if not counts.size or (counts.sum(axis=0) > 0).sum() < 2:
        return None
    weighted = (counts / (counts.sum(axis=1, keepdims=True) - 1)).T
    coincidences = weighted @ counts - np.diag(weighted.sum(axis=1))
    totals = coincidences.sum(axis=0)
    ranks = np.cumsum(totals) - totals / 2
    apart = np.subtract.outer(ranks, ranks) ** 2 if level == "ordinal" else 1 - np.eye(len(totals))
    expected = (np.outer(totals, totals) * apart).sum() / (totals.sum() - 1)
    return float(1 - (coincidences * apart).sum() / expected)


def _alpha(
    counts: Counts, items: NDArray[np.int64], level: Level, seed: int
) -> tuple[float | None, Interval]:
    """Return alpha of counts [units, parts, values], and its interval by resampling `items`."""
    several = (counts.sum(axis=2) > 1).any(axis=1)
    counts, items = counts[several], np.unique(items[several], return_inverse=True)[1]
    value, number = alpha_of(counts, level), int(items.max(initial=-1)) + 1
    if value is None or number < 2:
        return value, NO_INTERVAL
    times = (np.bincount(draw, minlength=number) for draw in _resampled(number, seed))
    found = [alpha_of(np.repeat(counts, each[items], axis=0), level) for each in times]
    # If all votes of a draw are equal, nobody disagrees.
    known = [1.0 if each is None else each for each in found]
    return value, percentile_interval(np.array(known))


def _resampled(items: int, seed: int) -> Iterator[NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    for _ in range(RESAMPLES):
        yield rng.integers(0, items, items)


def decide(
    votes: First, rule: Rule, reviewers: Sequence[Reviewer], asked: int = 0
) -> list[Decision]:
    """Return a decision on each item; `asked` is the number of reviewers per item, 0 if unknown."""
    # How often a reviewer gives a repeat the same answer (Laplace's rule; 1/2 without repeats).
    weights = {each.name: (each.same + 1) / (each.repeats + 2) for each in reviewers}
    found = []
    for item, item_votes in votes.items():
        verdict = _verdict(item_votes, rule, weights)
        reasons = Counter(vote.reason for vote in item_votes.values() if vote.answer == "drop")
        named = sorted((-count, reason) for reason, count in reasons.items() if reason)
        found.append(
            Decision(
                id=item,
                decision=verdict,
                reason=named[0][1] if verdict == "drop" and named else "",
                who=f"{rule} of {len(item_votes)}",
                votes=Tally(**Counter[str](vote.answer for vote in item_votes.values())),
                asked=asked,
            )
        )
    return found


def _verdict(votes: Mapping[str, Vote], rule: Rule, weights: Mapping[str, float]) -> Verdict:
    if rule == "unanimous":
        found = {vote.verdict for vote in votes.values()}
        return found.pop() if len(found) == 1 else "unsure"
    weighed = {"keep": 0.0, "drop": 0.0}
    for reviewer, vote in sorted(votes.items()):
        if vote.verdict in weighed:
            weighed[vote.verdict] += weights[reviewer] if rule == "weighted" else 1.0
    if weighed["keep"] == weighed["drop"]:
        return "unsure"
    return "keep" if weighed["keep"] > weighed["drop"] else "drop"
