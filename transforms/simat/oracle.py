"""Lets an oracle judge a crop against the caption of its triplet and those of its queries."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from more_itertools import chunked
from numpy.typing import NDArray

from eqforge.models.scorer import Identity, Picture
from eqforge.schemas.records.scores import Rejection, Score, compact_json, value_of
from eqforge.transforms.dataset.ledger import Ledger
from eqforge.transforms.oracle.judges import Oracle, OracleSettings, specs_of
from eqforge.transforms.oracle.scores import VERSION, SharedScorer, one_thread, shared_scorer
from eqforge.transforms.video.clip_work import error_rejection

BATCH = 32
"""Captions scored together; of one crop always the same, however the work is dealt out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionScores:
    """P(match) of one caption by each judge, named `oracle_1`, `oracle_2`, or why there is none."""

    scores: tuple[Score, ...] = ()
    rejection: Rejection | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CropScores:
    """The scores of a crop's captions, in their order."""

    captions: tuple[CaptionScores, ...]


def score_captions(
    key: str,
    image_id: str | None,
    captions: Sequence[str],
    pixels: Callable[[], NDArray[np.uint8]],
    oracle: Oracle,
    ledger: Ledger,
) -> tuple[CaptionScores, ...]:
    """Returns P(match) of a crop and each caption, or what was found when it was asked before.

    Args:
      key: the region's id, by which published scores and features are looked up.
      image_id: of the crop.
      captions: the first one is that of the crop's own triplet.
      pixels: gives the decoded crop; called where a model reads pixels.
      oracle: the models that judge.
      ledger: remembers the answers that are no failures.
    """
    found = ledger.remember(
        [key, image_id, list(captions)],
        CropScores,
        lambda: CropScores(captions=_score(key, captions, pixels, oracle)),
        lambda scores: all(each.rejection is None for each in scores.captions),
    )
    return found.captions


def _score(
    key: str, captions: Sequence[str], pixels: Callable[[], NDArray[np.uint8]], oracle: Oracle
) -> tuple[CaptionScores, ...]:
    try:
        models = [shared_scorer(spec) for spec in specs_of(oracle.settings)]
        needed = any(model.scorer.reads_pixels for model in models)
        picture = Picture(key=key, pixels=pixels() if needed else None)
        encoded = [_encode(model, picture) for model in models]
    except Exception as error:
        return tuple(CaptionScores(rejection=_refusal(error)) for _ in captions)
    found: list[CaptionScores] = []
    for some in chunked(captions, BATCH):
        try:
            found += _match(models, encoded, some, oracle.judges)
        except Exception as error:
            _refusal(error)  # an error of the run is raised again
            found += [_match_one(models, encoded, caption, oracle.judges) for caption in some]
    return tuple(found)


def _encode(model: SharedScorer, picture: Picture) -> object:
    prepared = model.scorer.prepare(picture)
    with model.lock, one_thread():
        (encoded,) = model.scorer.encode_images([prepared])
    return encoded


def _match(
    models: Sequence[SharedScorer],
    encoded: Sequence[object],
    captions: Sequence[str],
    judges: Sequence[Identity],
) -> list[CaptionScores]:
    columns = []
    pairs = np.array([(0, number) for number in range(len(captions))])
    for number, (model, image, judge) in enumerate(zip(models, encoded, judges, strict=True), 1):
        with model.lock, one_thread():
            values = model.scorer.match([image], captions, pairs).probabilities
        for caption, value in zip(captions, values, strict=True):
            if not 0 <= value <= 1:
                raise ValueError(f"{judge.kind} gives P(match) = {value} of {caption!r}")
        columns.append([_named(f"oracle_{number}", float(value), judge) for value in values])
    return [CaptionScores(scores=scores) for scores in zip(*columns, strict=True)]


def _match_one(
    models: Sequence[SharedScorer],
    encoded: Sequence[object],
    caption: str,
    judges: Sequence[Identity],
) -> CaptionScores:
    try:
        return _match(models, encoded, [caption], judges)[0]
    except Exception as error:
        return CaptionScores(rejection=_refusal(error))


def _refusal(error: Exception) -> Rejection:
    """Returns why nothing was scored; a ValueError says that image or caption cannot be."""
    if isinstance(error, ValueError):
        return Rejection(reason="not_scored", detail=str(error)[:500])
    return error_rejection(error)


def _named(name: str, value: float, judge: Identity) -> Score:
    return Score(
        name=name,
        value=round(value, 6),
        scorer=judge.kind,
        version=judge.revision,
        settings=_settings(judge),
    )


@functools.cache
def _settings(judge: Identity) -> str:
    """Returns what a score depends on beside the kind and revision of its model."""
    settings = asdict(judge) | {"oracle": VERSION}
    return compact_json({k: v for k, v in settings.items() if k not in ("kind", "revision")})


def query_scores(own: CaptionScores, target: CaptionScores) -> tuple[Score, ...]:
    """Returns the scores of a query: `oracle_1_source` and `oracle_1_target` by each judge."""
    return tuple(
        replace(score, name=f"{score.name}_{what}")
        for scores in zip(own.scores, target.scores, strict=True)
        for what, score in zip(("source", "target"), scores, strict=True)
    )


def refuse_query(scores: Sequence[Score], settings: OracleSettings) -> Rejection | None:
    """Rejects a query whose crop matches its own caption too little or the target's too well.

    Source: SIMAT, section 3.2: P(I, t1) > 0.9 and P(I, t2) < 0.1.
    """
    judges = range(1, len(specs_of(settings)) + 1)
    verdicts = [_refuse(f"oracle_{number}", scores, settings) for number in judges]
    against = [verdict for verdict in verdicts if verdict is not None]
    if not against or len(against) == len(verdicts):
        return against[0] if against else None
    detail = f"{against[0].detail}: {against[0].reason}"
    return replace(against[0], reason="oracle_disagreement", detail=detail)


def _refuse(judge: str, scores: Sequence[Score], settings: OracleSettings) -> Rejection | None:
    own, target = (value_of(scores, f"{judge}_{what}") for what in ("source", "target"))
    assert own is not None
    assert target is not None
    low, high = settings.oracle_min, settings.oracle_max
    if low is not None and not own > low:
        return Rejection(
            reason="own_caption_mismatch", value=own, threshold=low, detail=f"{judge}_source"
        )
    if high is not None and not target < high:
        return Rejection(
            reason="target_caption_match", value=target, threshold=high, detail=f"{judge}_target"
        )
    return None
