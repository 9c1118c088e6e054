import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from eqforge.core.identity import sha256_hex
from eqforge.core.ledger import Ledger
from eqforge.schemas.records.frames import Clip
from eqforge.schemas.records.scores import value_of
from eqforge.schemas.records.stages import Tally
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.filters import minimality
from eqforge.transforms.filters.cuts import CutSettings
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.filters.minimality_score import MinimalitySettings
from eqforge.transforms.video.clip_work import ClipWork, Source, images_of, samples_of
from eqforge.transforms.video.pair import drop_pairs, measure_pairs
from eqforge.transforms.video.rules import FramePairFilters
from tests.samples import all_pairs, kept_frame

NO_CUTS = CutSettings()
KEEP_ALL = FramePairFilters(
    cuts=NO_CUTS, gates=GateSettings(), distinct_captions=False, max_pairs_per_video=None
)
CAPTIONS = ("a red cup", "a blue cup", "A red cup!", "two cups", "a red cup")


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> MediaStore:
    return MediaStore(str(tmp_path_factory.mktemp("media")))


def picture(number: int) -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (24, 32, 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def clip_of(media: MediaStore, pictures: dict[int, int]) -> ClipWork:
    """A clip of all pairs of five frames; `pictures` says which are kept and what they show."""
    return ClipWork(
        clip=Clip(
            clip_id="v",
            video="v",
            split="train",
            licence="CC0-1.0",
            pairs=all_pairs("d/v", CAPTIONS),
        ),
        source=Source(path="v.mp4", sha256="0" * 64),
        encoding='{"image_format": "png"}',
        frames=tuple(
            kept_frame(media, f"d/v/{frame}", picture(shows), (32, 24), frame)
            for frame, shows in pictures.items()
        ),
    )


def make(
    work: ClipWork, media: MediaStore, folder: Path, filters: FramePairFilters = KEEP_ALL
) -> ClipWork:
    ledger = Ledger(root=str(folder), step="measure", basis=filters.basis())
    return drop_pairs(measure_pairs(work, media, filters, ledger), filters)


def reasons(work: ClipWork) -> dict[str, str]:
    return {reject.candidate_id.rpartition("/")[2]: reject.reason for reject in work.rejects}


def test_pairs_without_both_frames_or_with_one_picture_are_refused(
    media: MediaStore, tmp_path: Path
) -> None:
    """Frame 4 is missing; 0 and 3 show the same."""
    work = make(clip_of(media, {0: 7, 1: 8, 2: 9, 3: 7}), media, tmp_path)

    assert reasons(work) == {"0-3": "same_image"} | {f"{i}-4": "frame_rejected" for i in range(4)}
    assert [pair.candidate.sample_id for pair in work.pairs] == [
        "d/v/0-1", "d/v/0-2", "d/v/1-2", "d/v/1-3", "d/v/2-3",
    ]  # fmt: skip
    assert work.tallies == (Tally(stage="pairs", candidates=10, kept=5),)


def test_equal_captions_are_refused_where_they_have_to_differ(
    media: MediaStore, tmp_path: Path
) -> None:
    distinct = replace(KEEP_ALL, distinct_captions=True)
    work = make(clip_of(media, {n: n for n in range(5)}), media, tmp_path, distinct)

    assert reasons(work) == dict.fromkeys(["0-2", "0-4", "2-4"], "equal_captions")


def test_a_limit_keeps_the_same_pairs_whatever_their_order(
    media: MediaStore, tmp_path: Path
) -> None:
    work = clip_of(media, {n: n for n in range(5)})
    limited = replace(KEEP_ALL, max_pairs_per_video=4)

    found = make(work, media, tmp_path, limited)
    turned = replace(work, clip=replace(work.clip, pairs=work.clip.pairs[::-1]))

    names = sorted(
        (pair.sample_id for pair in work.clip.pairs), key=lambda name: sha256_hex(name.encode())
    )
    for outcome in (found, make(turned, media, tmp_path, limited)):
        kept_names = {pair.candidate.sample_id for pair in outcome.pairs}
        assert kept_names == set(names[:4])
        assert set(reasons(outcome).values()) == {"over_pair_limit"}


def test_the_best_pairs_of_a_video_pass_all_limits_whatever_their_order(
    media: MediaStore, tmp_path: Path
) -> None:
    work = clip_of(media, {n: n for n in range(5)})
    every = make(work, media, tmp_path, replace(KEEP_ALL, registers=True))
    ranked = sorted(
        (-(value_of(pair.scores, "minimality") or 0.0), pair.candidate.sample_id)
        for pair in every.pairs
    )
    best = replace(
        KEEP_ALL,
        registers=True,
        gates=GateSettings(max_changed_area=0.0),
        minimal=MinimalitySettings(min_minimality=1.0, keep_best=3),
    )
    turned = replace(work, clip=replace(work.clip, pairs=work.clip.pairs[::-1]))
    for outcome in (make(work, media, tmp_path, best), make(turned, media, tmp_path, best)):
        kept = {pair.candidate.sample_id for pair in outcome.pairs}
        assert kept == {name for _, name in ranked[:3]}
        assert set(reasons(outcome).values()) <= {"change_too_large", "not_minimal"}
        assert len(reasons(outcome)) == len(ranked) - 3


def test_a_measure_that_fails_refuses_its_pair_alone_and_is_tried_again(
    media: MediaStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = clip_of(media, {n: n for n in range(3)})
    original, calls = minimality.measure_pair, []

    def fail_once(*views: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise FloatingPointError("no measure")
        return original(*views)

    monkeypatch.setattr(minimality, "measure_pair", fail_once)

    found = make(work, media, tmp_path)
    errors = {name: why for name, why in reasons(found).items() if why.startswith("error:")}
    assert errors == {"0-2": "error:FloatingPointError"}
    assert len(make(work, media, tmp_path).pairs) == 3
    assert len(calls) == 6
    assert len(make(work, media, tmp_path).pairs) == 3
    assert len(calls) == 6  # now all are known


def test_each_picture_is_read_once_however_many_pairs_it_is_in(
    media: MediaStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, original = [], MediaStore.get

    def get(self: MediaStore, image_id: str, suffix: str) -> bytes:
        read.append(image_id)
        return original(self, image_id, suffix)

    clip = clip_of(media, {n: n for n in range(5)})
    monkeypatch.setattr(MediaStore, "get", get)
    make(clip, media, tmp_path)

    assert len(read) == len(set(read)) == 5


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
@given(
    pictures=st.dictionaries(st.integers(0, 4), st.integers(0, 3), max_size=5),
    distinct=st.booleans(),
    limit=st.none() | st.integers(0, 11),
    max_ssim=st.none() | st.floats(-1, 1),
)
def test_the_books_balance_whatever_is_refused(
    media: MediaStore,
    tmp_path: Path,
    pictures: dict[int, int],
    distinct: bool,
    limit: int | None,
    max_ssim: float | None,
) -> None:
    filters = replace(
        KEEP_ALL,
        gates=GateSettings(max_ssim=max_ssim),
        distinct_captions=distinct,
        max_pairs_per_video=limit,
    )
    work = make(clip_of(media, pictures), media, tmp_path, filters)

    (tally,) = work.tallies
    names = [pair.candidate.sample_id for pair in work.pairs]
    names += [reject.candidate_id for reject in work.rejects]
    assert sorted(names) == sorted(pair.sample_id for pair in work.clip.pairs)
    assert (tally.candidates, tally.kept) == (10, len(work.pairs))
    samples = list(samples_of(work, "d"))
    assert len(samples) == tally.kept
    used = {name for sample in samples for name in (sample.image_0_id, sample.image_1_id)}
    assert {image.image_id for image in images_of(work)} == used


def test_a_sample_says_where_each_of_its_images_comes_from(
    media: MediaStore, tmp_path: Path
) -> None:
    sample = next(samples_of(make(clip_of(media, {0: 1, 1: 2}), media, tmp_path), "data"))

    assert (sample.sample_id, sample.dataset, sample.source_id) == ("d/v/0-1", "data", "v")
    assert sample.annotation == '{"i": "0", "j": "1"}'
    assert sample.origin_1.frame_id == "d/v/1"
    assert sample.origin_1.requested_timestamp_s == 1.5
    assert sample.origin_1.licence == "CC0-1.0"
    assert sample.origin_1.parameters == '{"image_format": "png"}'
    (first,), (second,) = sample.edited_spans_0, sample.edited_spans_1
    assert CAPTIONS[0][first.start : first.end] == "red"
    assert CAPTIONS[1][second.start : second.end] == "blue"
