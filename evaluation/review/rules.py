"""What follows from the votes on an item."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from eqforge.evaluation.review.agreement import Reviewer
from eqforge.evaluation.review.votes import Vote
from eqforge.schemas.records.reviews import Decision, Tally, Verdict

Rule = Literal["majority", "unanimous", "weighted"]
RULES: Final[dict[Rule, str]] = {
    "majority": "what more votes say, keep or drop; as many of each, or none, are unsure",
    "unanimous": "what all votes say; anything else is unsure",
    "weighted": "as majority, each vote by how often its reviewer answered the repeats alike",
}
"""Each rule in words."""


def decide(
    votes: Mapping[str, Mapping[str, Vote]],
    rule: Rule,
    reviewers: Sequence[Reviewer],
    asked: int = 0,
) -> list[Decision]:
    """Returns a decision on each item.

    Args:
      votes: first votes by item and reviewer.
      rule: see RULES.
      reviewers: who voted; their repeats are the weights.
      asked: how many were asked about each item; 0 where nobody says.
    """
    weights = {each.name: weight_of(each) for each in reviewers}
    return [_decision(item, own, rule, weights, asked) for item, own in votes.items()]


def weight_of(reviewer: Reviewer) -> float:
    """Returns the share of repeats that a reviewer answers alike, in (0, 1), by Laplace's rule.

    Without repeats it is one half.
    """
    return (reviewer.same + 1) / (reviewer.repeats + 2)


def _decision(
    item: str, votes: Mapping[str, Vote], rule: Rule, weights: Mapping[str, float], asked: int
) -> Decision:
    verdict = _verdict(votes, rule, weights)
    reasons = Counter(vote.reason for vote in votes.values() if vote.answer == "drop")
    named = sorted((-count, reason) for reason, count in reasons.items() if reason)
    reason = named[0][1] if verdict == "drop" and named else ""
    who = f"{rule} of {len(votes)}"
    answers = Counter[str](vote.answer for vote in votes.values())
    tally = Tally(**answers)
    return Decision(id=item, decision=verdict, reason=reason, who=who, votes=tally, asked=asked)


def _verdict(votes: Mapping[str, Vote], rule: Rule, weights: Mapping[str, float]) -> Verdict:
    answers = {name: vote.verdict for name, vote in sorted(votes.items())}
    if rule == "unanimous":
        found = set(answers.values())
        return found.pop() if len(found) == 1 else "unsure"
    weighed = {"keep": 0.0, "drop": 0.0}
    for reviewer, answer in answers.items():
        if answer in weighed:
            weighed[answer] += weights[reviewer] if rule == "weighted" else 1.0
    if weighed["keep"] == weighed["drop"]:
        return "unsure"
    return "keep" if weighed["keep"] > weighed["drop"] else "drop"
