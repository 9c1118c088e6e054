"""Judges captions with image-text models: each must match its own image, and not the other.

Scoring and deciding are two steps, as with every filter. Each image is decoded and encoded alone,
and the scores of a pair, or of an image's captions, are one batch. So scores depend neither on
other pairs nor on the worker or the order of the work, and an unusable image does not affect
others.

Source: SIMAT, section 3.2: P(image, own caption) > 0.9 and P(image, other caption) < 0.1, by OSCAR.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import numpy as np

from eqforge.core.errors import InputError
from eqforge.core.files import pictures
from eqforge.core.identity import TraceOf, versions_of
from eqforge.core.visible import nearest
from eqforge.models.scorer import Identity
from eqforge.schemas.records.scores import Rejection, Score, value_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from eqforge.models.spec import ScorerSpec
    from eqforge.transforms.oracle.scores import CellScorer


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class OracleSettings:
    """Image-text models that check whether captions match images, and limits on their scores."""

    oracle: Annotated[str | None, TraceOf(judges_of)] = None
    """Image-text model that checks the pairs, such as clip:MODEL or siglip:MODEL. You can also pass
    blip-itm:MODEL, oscar:CHECKPOINT,features=FILE.tsv, or matrix:FILE,rows=FILE,columns=FILE. MODEL
    is the folder of a saved Transformers model, or ID@COMMIT from the Hugging Face Hub. To require
    that two models agree, join them with +. Add options after commas, as in
    clip:FOLDER,device=cuda:0,precision=bfloat16."""

    oracle_min: float | None = 0.9
    """Minimum probability that an image matches its own caption."""

    oracle_max: float | None = 0.1
    """Maximum probability that an image matches the other caption of its pair."""

    evaluated_families: tuple[str, ...] = ()
    """Model families that you will evaluate, such as clip. A warning is printed if the oracle
    belongs to one of these families."""

    def __post_init__(self) -> None:
        for name in ("oracle_min", "oracle_max"):
            limit = getattr(self, name)
            if limit is not None and not 0 <= limit <= 1:
                flag = name.replace("_", "-")
                raise InputError(f"--{flag} {limit}: expected a probability from 0 to 1")
        specs_of(self)


def specs_of(settings: OracleSettings) -> tuple[ScorerSpec, ...]:
    if settings.oracle is None:
        return ()
    from eqforge.models.spec import parse_specs

    return parse_specs(settings.oracle)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Oracle:
    """The judging models and their limits; sent to workers, which load the models."""

    settings: OracleSettings = dataclasses.field(default_factory=OracleSettings)
    judges: tuple[Identity, ...] = ()

    @property
    def uses_gpu(self) -> bool:
        return any(spec.device != "cpu" for spec in specs_of(self.settings))

    def basis(self) -> list[object]:
        """Return everything the scores depend on besides images, captions and limits."""
        from eqforge.transforms.oracle.scores import VERSION

        judges = [dataclasses.asdict(judge) for judge in self.judges]
        packages = ("torch", "transformers", "tokenizers", "pillow")
        return [VERSION, pictures.VERSION, judges, versions_of(*packages)]

    def scorer(self, pixels: Callable[[str], NDArray[np.uint8]]) -> CellScorer:
        from eqforge.transforms.oracle.scores import CellScorer

        return CellScorer(specs_of(self.settings), self.judges, pixels)


def prepare_oracle(settings: OracleSettings) -> Oracle:
    judges = () if settings.oracle is None else judges_of(settings.oracle)
    return Oracle(settings=settings, judges=judges)


def judges_of(text: str) -> tuple[Identity, ...]:
    from eqforge.models.spec import parse_specs

    return tuple(map(_identify, parse_specs(text)))


@functools.cache
def _identify(spec: ScorerSpec) -> Identity:
    from eqforge.models.spec import identify, load_scorer

    return identify(spec, load_scorer)


def score_pair(
    oracle: Oracle, images: Mapping[str, NDArray[np.uint8]], captions: tuple[str, str]
) -> tuple[Score, ...]:
    """Score both images of a pair with both captions, by every model.

    Returns:
      Four scores per model, P(match) to 6 decimals: `oracle_1_c0_i1` is of the first model, the
      first caption and the second image. Empty without models.
    """
    first, second = images
    return oracle.scorer(images.__getitem__).score_pair((first, second), captions)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    """Which cells of a record must match, which must not, and the reason for rejecting it."""

    own: tuple[str, ...]
    others: tuple[str, ...]
    reason: str


_PAIR = _Rule(own=("c0_i0", "c1_i1"), others=("c1_i0", "c0_i1"), reason="crossed_caption_match")
_QUERY = _Rule(own=("source",), others=("target",), reason="target_caption_match")


def refuse_pair(scores: Sequence[Score], settings: OracleSettings) -> Rejection | None:
    """Reject a pair whose own captions match too little or whose crossed captions too well.

    If only one of two models rejects the pair, the reason is that they disagree.
    """
    return _refuse(scores, settings, _PAIR)


def refuse_query(scores: Sequence[Score], settings: OracleSettings) -> Rejection | None:
    """Reject a query whose image matches its own caption too little or the target's too well.

    Two models must agree, as in refuse_pair.
    """
    return _refuse(scores, settings, _QUERY)


def _refuse(scores: Sequence[Score], settings: OracleSettings, rule: _Rule) -> Rejection | None:
    numbers = range(1, len(specs_of(settings)) + 1)
    verdicts = [_verdict(f"oracle_{number}", scores, settings, rule) for number in numbers]
    against = [verdict for verdict in verdicts if verdict is not None]
    if not against or len(against) == len(verdicts):
        return against[0] if against else None
    detail = f"{against[0].detail}: {against[0].reason}"
    return dataclasses.replace(against[0], reason="oracle_disagreement", detail=detail)


def _verdict(
    judge: str, scores: Sequence[Score], settings: OracleSettings, rule: _Rule
) -> Rejection | None:
    own = {f"{judge}_{cell}": _value(scores, f"{judge}_{cell}") for cell in rule.own}
    others = {f"{judge}_{cell}": _value(scores, f"{judge}_{cell}") for cell in rule.others}
    least, most = min(own, key=own.__getitem__), max(others, key=others.__getitem__)
    low, high = settings.oracle_min, settings.oracle_max
    if low is not None and not own[least] > low:
        reason = "own_caption_mismatch"
        return Rejection(reason=reason, value=own[least], threshold=low, detail=least)
    if high is not None and not others[most] < high:
        return Rejection(reason=rule.reason, value=others[most], threshold=high, detail=most)
    return None


def margin_of(scores: Sequence[Score]) -> float | None:
    """Return how much every oracle prefers the own captions of two images to the crossed ones.

    Returns:
      The lowest P(match) of an image and its own caption, minus the highest of an image and the
      other caption, in [-1, 1]; None without oracles.
    """
    found = {
        score.name: score.value
        for score in scores
        if score.name.startswith("oracle_") and score.value is not None
    }
    own = [value for name, value in found.items() if name.endswith(_PAIR.own)]
    others = [value for name, value in found.items() if name.endswith(_PAIR.others)]
    return round(min(own) - max(others), 6) if own and others else None


def _value(scores: Sequence[Score], name: str) -> float:
    value = value_of(scores, name)
    assert value is not None
    return value


def oracle_warnings(oracle: Oracle) -> Iterator[str]:
    """Yield a warning for every judge of a family that will be evaluated on the dataset.

    Such a judge keeps what its family gets right, so the family's scores come out too high.
    Families that may be misspelt also get a warning.
    """
    from eqforge.models.spec import FAMILIES

    for family in oracle.settings.evaluated_families:
        known = {*FAMILIES, *(judge.family.casefold() for judge in oracle.judges)}
        if family.casefold() not in known and (hint := nearest(family, known)):
            yield f"--evaluated-families {family}: no known model belongs to this family{hint}"
    evaluated = {family.casefold() for family in oracle.settings.evaluated_families}
    for judge in oracle.judges:
        if judge.family.casefold() in evaluated:
            yield (
                f"the oracle {judge.name} belongs to the family {judge.family!r}, which is "
                "evaluated on this dataset; the scores of this family will be too high"
            )
