"""What judges and people say of rows: answers, probabilities, errata and decisions."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from eqforge.schemas.records.values import Share, Text

Part = Literal["original", "hard_positive", "hard_negative"]

HALF: Final = 0.5
"""A judge says yes where it gives more than this probability."""

OF_RULES: Final = "rules"
OF_SOURCE: Final = "source"
"""What a probability, or that there is none, comes from: the precision of rules; a caption of the
source, which is taken to be true."""

_CLIP: Final = 0.001
"""Probabilities nearer to 0 or 1 than this count as this far away: no judge is that sure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeAnswer:
    """What one judge says to one question about a row.

    Attributes:
      judge: `nli`, `llm` or `vqa`.
      model: Hugging Face id, folder, or the model's name on a server.
      revision: commit on the Hugging Face Hub, `sha256:` with a digest of the files, or the
        revision that a server reports.
      question: name of a question in `eqforge.schemas.records.judgements.QUESTIONS`.
      probability: probability of the answer "yes", in [0, 1], or None if the judge could not read
        the texts or the image.
    """

    judge: Text
    model: Text
    revision: str
    question: str
    probability: Share | None

    @property
    def by(self) -> str:
        return f"{self.judge}:{self.model}@{self.revision}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A question to judges.

    Attributes:
      part: the text that the answer speaks for or against.
      reason: of a row that is rejected for the answer.
      text: the question in words.
    """

    part: Part
    reason: str
    text: str


QUESTIONS: Final[Mapping[str, Asked]] = {
    "caption_entails_positive": Asked(
        part="hard_positive",
        reason="not_entailed",
        text="If the caption is true, the hard positive is true.",
    ),
    "positive_entails_caption": Asked(
        part="hard_positive",
        reason="not_entailed",
        text="If the hard positive is true, the caption is true.",
    ),
    "negative_contradicts_caption": Asked(
        part="hard_negative",
        reason="not_contradicted",
        text="If the caption is true, the hard negative is false.",
    ),
    "negative_contradicts_positive": Asked(
        part="hard_negative",
        reason="not_contradicted",
        text="If the hard positive is true, the hard negative is false.",
    ),
    "caption_shown": Asked(
        part="original", reason="not_shown", text="The image shows what the caption says."
    ),
    "positive_shown": Asked(
        part="hard_positive",
        reason="not_shown",
        text="The image shows what the hard positive says.",
    ),
    "negative_not_shown": Asked(
        part="hard_negative",
        reason="shown",
        text="The image does not show what the hard negative says.",
    ),
}
"""What judges are asked of a row, by name."""


def verdicts(answers: Iterable[JudgeAnswer]) -> dict[Part, dict[str, bool]]:
    """Return each judge's verdict on each text: yes if all its answers are yes.

    A judge that could not answer has none.
    """
    found: dict[Part, dict[str, bool]] = {}
    for answer in answers:
        if answer.probability is not None:
            of_part = found.setdefault(QUESTIONS[answer.question].part, {})
            says_yes = answer.probability > HALF
            of_part[answer.by] = of_part.get(answer.by, True) and says_yes
    return found


def disputed_by_rules(answers: Iterable[JudgeAnswer]) -> bool:
    """Return True if a judge denies what the rules that made a row claim."""
    return not all(all(by_judge.values()) for by_judge in verdicts(answers).values())


def disputed_by_judges(answers: Iterable[JudgeAnswer]) -> bool:
    """Return True if two judges disagree about a text."""
    return any(len(set(by_judge.values())) > 1 for by_judge in verdicts(answers).values())


def log_odds(probability: float) -> float:
    """Return the log-odds of a probability, of at most 0.999 and at least 0.001."""
    clipped = min(max(probability, _CLIP), 1 - _CLIP)
    return math.log(clipped / (1 - clipped))


def features_of(
    answers: Iterable[JudgeAnswer], wanted: Sequence[tuple[str, str]]
) -> list[float] | None:
    """Return the log-odds of answers; None if one is missing or was not given.

    Args:
      wanted: judge and question of each.
    """
    probabilities = {(answer.by, answer.question): answer.probability for answer in answers}
    found = [probabilities.get(key) for key in wanted]
    known = [log_odds(value) for value in found if value is not None]
    return known if len(known) == len(found) else None


Action = Literal["drop", "correct", "note"]
By = Literal["errata", "review"]


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Erratum:
    """A problem with a sample, and the correction.

    Attributes:
      id: id of the sample.
      action: `drop` rejects the sample, `correct` replaces a text, and `note` adds a comment.
      reason: explanation of the problem.
      who: person who found the problem, or program and version.
      when: date when the problem was found, such as 2026-11-23, or empty if unknown.
      column: column to correct, or empty for other actions.
      text: corrected text, or empty.
      stage: origin of the erratum: an errata file or a review.
    """

    id: str
    action: Action
    reason: str
    who: str
    when: str = ""
    column: str = ""
    text: str = ""
    stage: By = "errata"


Verdict = Literal["keep", "drop", "unsure"]
VERDICTS: Final[tuple[Verdict, ...]] = get_args(Verdict)


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Tally:
    """How many people gave each answer on a sample; all 0 where nobody says."""

    keep: int = 0
    drop: int = 0
    unsure: int = 0

    @property
    def total(self) -> int:
        """How many people answered."""
        return self.keep + self.drop + self.unsure

    @property
    def is_split(self) -> bool:
        """Whether not all answered alike."""
        return sum(count > 0 for count in (self.keep, self.drop, self.unsure)) > 1


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Decision:
    """What people decided on a sample.

    Attributes:
      id: of the sample.
      decision: `drop` makes it a reject; `keep` and `unsure` leave it.
      reason: why it is dropped; empty where nobody says.
      who: who decided, and by which rule, such as `majority of 3`.
      votes: how many voted how.
      asked: how many were asked; 0 where nobody says.
    """

    id: str
    decision: Verdict
    reason: str = ""
    who: str = ""
    votes: Tally = Tally()
    asked: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it needs another look: people are unsure, do not agree, or did not all vote."""
        return self.decision == "unsure" or self.votes.is_split or self.votes.total < self.asked
