"""Scores by an oracle the pairs of a clip that nothing else speaks against."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from eqforge.core.files.pictures import read_pixels
from eqforge.schemas.records.books import Reject
from eqforge.schemas.records.clips import PairCandidate
from eqforge.schemas.records.frames import StoredFrame
from eqforge.schemas.records.scores import Rejection
from eqforge.transforms.dataset.ledger import Ledger
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.filters.pairs import PAIRS_STAGE
from eqforge.transforms.oracle.judges import Oracle
from eqforge.transforms.oracle.scores import Answer, Question, ask
from eqforge.transforms.video.clip_work import ClipWork, MeasuredPair
from eqforge.transforms.video.pair import refuse_measured
from eqforge.transforms.video.rules import PairFilters

PAIRS_WRITTEN_DOWN = 16
"""Pairs whose scores are stored together: at most this many are scored again after a crash."""


def score_matches(
    work: ClipWork, media: MediaStore, filters: PairFilters, ledger: Ledger
) -> ClipWork:
    """Returns a clip whose pairs carry the oracle's scores, where an oracle is asked for.

    Pairs that would be refused anyway are not scored: this is the most expensive step. A pair on
    which the oracle fails is a reject, and does not affect other pairs.
    """
    if not filters.oracle.judges:
        return work
    judged = [pair for pair in work.pairs if refuse_measured(pair, filters) is None]
    answers = dict(_ask_all(work, judged, media, filters.oracle, ledger))
    scored: list[MeasuredPair] = []
    rejects: list[Reject] = []
    for pair in work.pairs:
        answer = answers.get(pair.candidate.sample_id, ())
        if isinstance(answer, Rejection):
            rejects.append(work.reject(pair.candidate.sample_id, PAIRS_STAGE, answer))
        else:
            scored.append(replace(pair, scores=(*pair.scores, *answer)))
    return replace(work, pairs=tuple(scored)).with_rejects(rejects)


def _ask_all(
    work: ClipWork,
    pairs: list[MeasuredPair],
    media: MediaStore,
    oracle: Oracle,
    ledger: Ledger,
) -> Iterator[tuple[str, Answer]]:
    """Yields what the oracle says of each pair, by its sample's id."""
    from more_itertools import chunked

    stored = {frame.stored.frame_id: frame.stored for frame in work.frames}
    suffixes = {frame.image_id: frame.suffix for frame in stored.values()}
    scorer = oracle.scorer(lambda image_id: read_pixels(media.get(image_id, suffixes[image_id])))
    for some in chunked([pair.candidate for pair in pairs], PAIRS_WRITTEN_DOWN):
        answers = ask([_question(candidate, stored) for candidate in some], scorer, ledger)
        yield from zip((candidate.sample_id for candidate in some), answers, strict=True)


def _question(candidate: PairCandidate, stored: Mapping[str, StoredFrame]) -> Question:
    return Question(
        images=(stored[candidate.frame_0_id].image_id, stored[candidate.frame_1_id].image_id),
        captions=(candidate.caption_0, candidate.caption_1),
    )
