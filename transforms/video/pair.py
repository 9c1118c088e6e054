"""Measures the frames and pairs of a clip, and drops those with a score beyond a limit."""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from more_itertools import chunked

from eqforge.core.files.pictures import read_pixels
from eqforge.core.identity import sha256_hex
from eqforge.core.ledger import Ledger
from eqforge.generators.text import words
from eqforge.schemas.records.frames import PairCandidate
from eqforge.schemas.records.scores import Rejection, Score, value_of
from eqforge.schemas.records.stages import Reject
from eqforge.transforms.dataset.failures import error_rejection
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.filters import cuts, minimality, minimality_score, registration
from eqforge.transforms.filters.images import ImageFilters, ScoredImage, image_row
from eqforge.transforms.filters.pairs import PAIRS_STAGE, refuse_unmeasured
from eqforge.transforms.oracle.judges import Oracle, refuse_pair
from eqforge.transforms.oracle.scores import Answer, Question, ask
from eqforge.transforms.video.clip_work import FRAMES_STAGE, ClipWork, KeptFrame, MeasuredPair
from eqforge.transforms.video.rules import FramePairFilters


def score_images(
    work: ClipWork, media: MediaStore, filters: ImageFilters, ledger: Ledger
) -> ClipWork:
    """Score the stored images of a clip's frames, so that anyone with the dataset can reproduce it.

    An image on which a scorer fails is rejected, and does not affect other images.
    """
    stored = {frame.stored.image_id: frame.stored for frame in work.frames}
    scored = ledger.remember(
        sorted(stored),
        dict[str, ScoredImage],
        lambda: {
            image_id: _score_stored(media.get(image_id, stored[image_id].suffix), filters)
            for image_id in sorted(stored)
        },
        lambda images: all(image.rejection is None for image in images.values()),
    )
    rejections = {image_id: image.rejection for image_id, image in scored.items()}
    rejects = [
        work.reject(frame.stored.frame_id, FRAMES_STAGE, rejection)
        for frame in work.frames
        if (rejection := rejections[frame.stored.image_id]) is not None
    ]
    frames = tuple(
        replace(frame, image=image_row(frame.stored, scored[frame.stored.image_id]))
        for frame in work.frames
        if rejections[frame.stored.image_id] is None
    )
    return replace(work, frames=frames).with_rejects(rejects)


def _score_stored(data: bytes, filters: ImageFilters) -> ScoredImage:
    try:
        return filters.score(read_pixels(data))
    except Exception as error:
        return ScoredImage(rejection=error_rejection(error))


def drop_frames(work: ClipWork, filters: ImageFilters) -> ClipWork:
    kept: list[KeptFrame] = []
    rejects: list[Reject] = []
    for frame in work.frames:
        assert frame.image is not None
        rejection = filters.refuse(frame.image.scores)
        if rejection is None:
            kept.append(frame)
        else:
            rejects.append(work.reject(frame.stored.frame_id, FRAMES_STAGE, rejection))
    if work.source is None:
        return work
    judged = replace(work, frames=tuple(kept)).with_rejects(rejects)
    return judged.with_tally(FRAMES_STAGE.tally(len(work.clip.frames), len(kept)))


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredPairs:
    """The measured pairs of one clip, and the rejects among them."""

    pairs: tuple[MeasuredPair, ...]
    rejects: tuple[Reject, ...]


def measure_pairs(
    work: ClipWork, media: MediaStore, filters: FramePairFilters, ledger: Ledger
) -> ClipWork:
    """Measure every pair of a clip whose two frames exist.

    Every image is decoded once, however many pairs it is in. A pair is rejected if a measure fails,
    a frame is missing or both images are equal.
    """
    frames = {frame.stored.frame_id: frame for frame in work.frames}
    rejects: list[Reject] = []
    candidates: list[PairCandidate] = []
    for candidate in work.clip.pairs:
        rejection = _without_measuring(candidate, frames, filters)
        if rejection is None:
            candidates.append(candidate)
        else:
            rejects.append(work.reject(candidate.sample_id, PAIRS_STAGE, rejection))
    images = {frame_id: frame.stored.image_id for frame_id, frame in frames.items()}
    inputs = [[asdict(c), images[c.frame_0_id], images[c.frame_1_id]] for c in candidates]
    measured = ledger.remember(
        inputs,
        MeasuredPairs,
        lambda: _measure_all(work, candidates, frames, media, filters.registers),
        lambda found: not found.rejects,
    )
    return replace(work, pairs=measured.pairs).with_rejects([*rejects, *measured.rejects])


def _without_measuring(
    candidate: PairCandidate, frames: dict[str, KeptFrame], filters: FramePairFilters
) -> Rejection | None:
    for frame_id in (candidate.frame_0_id, candidate.frame_1_id):
        if frame_id not in frames:
            return Rejection(reason="frame_rejected", detail=frame_id)
    first, second = frames[candidate.frame_0_id], frames[candidate.frame_1_id]
    return refuse_unmeasured(
        (first.stored.image_id, second.stored.image_id),
        (candidate.caption_0, candidate.caption_1),
        filters.distinct_captions,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Views:
    pair: minimality.PairView
    cut: cuts.CutView
    registered: "registration.Pixels | None"


def _measure_all(
    work: ClipWork,
    candidates: list[PairCandidate],
    frames: dict[str, KeptFrame],
    media: MediaStore,
    registers: bool,
) -> MeasuredPairs:
    @functools.cache
    def views(image_id: str, suffix: str) -> _Views:
        pixels = read_pixels(media.get(image_id, suffix))
        registered = registration.view(pixels) if registers else None
        return _Views(minimality.view(pixels), cuts.cut_view(pixels), registered)

    @functools.cache
    def measured(*frame_ids: str) -> tuple[minimality.PairMeasures, tuple[Score, ...]]:
        stored = (frames[name].stored for name in frame_ids)
        view_0, view_1 = (views(each.image_id, each.suffix) for each in stored)
        measures = minimality.measure_pair(view_0.pair, view_1.pair)
        return measures, tuple(_scores(view_0, view_1, measures))

    pairs: list[MeasuredPair] = []
    rejects: list[Reject] = []
    for candidate in candidates:
        try:
            measures, scores = measured(candidate.frame_0_id, candidate.frame_1_id)
            pairs.append(
                MeasuredPair(
                    candidate=candidate,
                    measures=measures,
                    edit=words.word_edit(candidate.caption_0, candidate.caption_1),
                    scores=scores,
                )
            )
        except Exception as error:
            rejects.append(work.reject(candidate.sample_id, PAIRS_STAGE, error_rejection(error)))
    return MeasuredPairs(pairs=tuple(pairs), rejects=tuple(rejects))


def _scores(view_0: _Views, view_1: _Views, measures: minimality.PairMeasures) -> Iterator[Score]:
    scores = cuts.score_cut(view_0.cut, view_1.cut)
    yield from scores
    if view_0.registered is not None and view_1.registered is not None:
        registered = registration.score_registered(
            view_0.registered, view_1.registered, view_0.cut, view_1.cut
        )
        yield from registered
        yield minimality_score.score_minimality(measures, [*scores, *registered])


def drop_pairs(work: ClipWork, filters: FramePairFilters) -> ClipWork:
    measured = refuse_measured(work.pairs, filters)
    rejections = {
        pair.candidate.sample_id: measured[pair.candidate.sample_id]
        or refuse_pair(pair.scores, filters.oracle.settings)
        for pair in work.pairs
    }
    passed = [pair for pair in work.pairs if rejections[pair.candidate.sample_id] is None]
    for pair in over_limit(passed, filters.max_pairs_per_video):
        rejections[pair.candidate.sample_id] = Rejection(
            reason="over_pair_limit", threshold=filters.max_pairs_per_video
        )
    rejects = [
        work.reject(sample_id, PAIRS_STAGE, rejection)
        for sample_id, rejection in rejections.items()
        if rejection is not None
    ]
    kept = tuple(pair for pair in passed if rejections[pair.candidate.sample_id] is None)
    decided = replace(work, pairs=kept).with_rejects(rejects)
    return decided.with_tally(PAIRS_STAGE.tally(len(work.clip.pairs), len(kept)))


def refuse_measured(
    pairs: Sequence[MeasuredPair], filters: FramePairFilters
) -> dict[str, Rejection | None]:
    """Return the rejection of each pair of a clip by its measures, by id; the best are kept."""
    rejections = {
        pair.candidate.sample_id: cuts.decide_cut(list(pair.scores), filters.cuts)
        or minimality.gate_pair(pair.measures, filters.gates)
        or minimality_score.decide_minimality(pair.scores, filters.minimal)
        for pair in pairs
    }
    if filters.minimal.keep_best is not None:
        ranked = sorted(pairs, key=_least_minimal_last)
        best = ranked[: filters.minimal.keep_best]
        rejections |= dict.fromkeys(pair.candidate.sample_id for pair in best)
    return rejections


def _least_minimal_last(pair: MeasuredPair) -> tuple[float, str]:
    value = value_of(pair.scores, minimality_score.MINIMALITY)
    return -(value or 0.0), pair.candidate.sample_id


def over_limit(pairs: list[MeasuredPair], limit: int | None) -> Iterator[MeasuredPair]:
    """Yield the pairs beyond a limit; a hash of the id decides which pairs stay."""
    if limit is not None:
        ranked = sorted(pairs, key=lambda pair: sha256_hex(pair.candidate.sample_id.encode()))
        yield from ranked[limit:]


PAIRS_WRITTEN_DOWN = 16
"""Pairs whose scores are stored together: at most this many are scored again after a crash."""


def score_matches(
    work: ClipWork, media: MediaStore, filters: FramePairFilters, ledger: Ledger
) -> ClipWork:
    """Score the pairs of a clip by the oracle, if requested.

    Pairs that would be rejected anyway are not scored: this is the most expensive step. A pair on
    which the oracle fails is rejected, and does not affect other pairs.
    """
    if not filters.oracle.judges:
        return work
    rejections = refuse_measured(work.pairs, filters)
    judged = [pair for pair in work.pairs if rejections[pair.candidate.sample_id] is None]
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
    work: ClipWork, pairs: list[MeasuredPair], media: MediaStore, oracle: Oracle, ledger: Ledger
) -> Iterator[tuple[str, Answer]]:
    stored = {frame.stored.frame_id: frame.stored for frame in work.frames}
    suffixes = {frame.image_id: frame.suffix for frame in stored.values()}
    scorer = oracle.scorer(lambda image_id: read_pixels(media.get(image_id, suffixes[image_id])))
    for batch in chunked([pair.candidate for pair in pairs], PAIRS_WRITTEN_DOWN):
        questions = [
            Question(
                images=(stored[pair.frame_0_id].image_id, stored[pair.frame_1_id].image_id),
                captions=(pair.caption_0, pair.caption_1),
            )
            for pair in batch
        ]
        answers = ask(questions, scorer, ledger)
        yield from zip((pair.sample_id for pair in batch), answers, strict=True)
