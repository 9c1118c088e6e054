"""Pairs of real photographs judged by a random model: what is scored, remembered and refused."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from skimage import data as photographs

from eqforge.core.ledger import Ledger
from eqforge.schemas.records.frames import Clip
from eqforge.schemas.records.stages import Tally
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.filters.cuts import CutSettings
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.oracle import scores as oracle_scores
from eqforge.transforms.oracle.judges import OracleSettings, prepare_oracle
from eqforge.transforms.video.clip_work import ClipWork, Source
from eqforge.transforms.video.pair import drop_pairs, measure_pairs, score_matches
from eqforge.transforms.video.rules import FramePairFilters
from tests.optional import optional
from tests.samples import all_pairs, kept_frame
from tests.tiny_models import save_blip

optional("transformers")

NAMES = ("astronaut", "coffee", "rocket", "cat")
CAPTIONS = ("a red cup", "two cups on a box", "a blue ball", "the cat and the dog")


@pytest.fixture(scope="module")
def blip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_blip(tmp_path_factory.mktemp("models") / "blip", spread=0.3)


@pytest.fixture
def media(tmp_path: Path) -> MediaStore:
    return MediaStore(str(tmp_path / "media"))


def filters_of(blip: Path, **settings: Any) -> FramePairFilters:
    return FramePairFilters(
        cuts=CutSettings(),
        gates=GateSettings(),
        distinct_captions=False,
        max_pairs_per_video=None,
        oracle=prepare_oracle(OracleSettings(oracle=f"blip-itm:{blip}", **settings)),
    )


def jpeg(name: str) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(getattr(photographs, name)()).resize((96, 64)).save(stream, "JPEG")
    return stream.getvalue()


def clip_of(media: MediaStore, name: str = "v") -> ClipWork:
    """A clip of all six pairs of four photographs."""
    return ClipWork(
        clip=Clip(clip_id=name, video=name, split="train", pairs=all_pairs(f"d/{name}", CAPTIONS)),
        source=Source(path=f"{name}.mp4", sha256="0" * 64),
        encoding="{}",
        frames=tuple(
            kept_frame(media, f"d/{name}/{number}", jpeg(photograph), (96, 64))
            for number, photograph in enumerate(NAMES)
        ),
    )


def ledger(media: MediaStore, step: str, filters: FramePairFilters) -> Ledger:
    basis = filters.basis() if step == "measure" else filters.oracle.basis()
    return Ledger(root=f"{media.root}/done", step=step, basis=basis)


def measured(media: MediaStore, filters: FramePairFilters, name: str = "v") -> ClipWork:
    return measure_pairs(clip_of(media, name), media, filters, ledger(media, "measure", filters))


def judged(work: ClipWork, media: MediaStore, filters: FramePairFilters) -> ClipWork:
    return drop_pairs(score_matches(work, media, filters, ledger(media, "match", filters)), filters)


def damage(media: MediaStore, work: ClipWork, number: int) -> None:
    """Cuts off a stored picture behind its first half."""
    stored = work.frames[number].stored
    path = Path(media.path(stored.image_id, stored.suffix))
    path.write_bytes(path.read_bytes()[: stored.num_bytes // 2])


def scores(work: ClipWork) -> dict[str, tuple[float | None, ...]]:
    return {
        pair.candidate.sample_id: tuple(
            score.value for score in pair.scores if score.name.startswith("oracle")
        )
        for pair in work.pairs
    }


def test_a_poisoned_picture_takes_only_its_own_pairs_along(blip: Path, media: MediaStore) -> None:
    filters = filters_of(blip, oracle_min=None, oracle_max=None)
    work = measured(media, filters)
    whole = scores(score_matches(work, media, filters, ledger(media, "first", filters)))
    damage(media, work, 2)

    found = judged(work, media, filters)

    bad = {"d/v/0-2", "d/v/1-2", "d/v/2-3"}
    assert {reject.candidate_id: reject.reason for reject in found.rejects} == dict.fromkeys(
        bad, "error:BadImage"
    )
    assert scores(found) == {name: values for name, values in whole.items() if name not in bad}
    assert found.tallies == (Tally(stage="pairs", candidates=6, kept=3),)


def test_what_was_scored_is_remembered_and_what_failed_is_tried_again(
    blip: Path, media: MediaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters = filters_of(blip, oracle_min=None, oracle_max=None)
    work = measured(media, filters)
    stored = work.frames[2].stored
    whole = media.get(stored.image_id, stored.suffix)
    damage(media, work, 2)
    assert len(judged(work, media, filters).rejects) == 3
    Path(media.path(stored.image_id, stored.suffix)).write_bytes(whole)
    first = judged(work, media, filters)
    assert first.rejects == ()

    monkeypatch.setattr(oracle_scores.CellScorer, "score_pair", fail)
    assert judged(work, media, filters) == first
    # A limit that is moved needs no new scores.
    strict = filters_of(blip, oracle_min=1.0)
    assert {r.reason for r in judged(work, media, strict).rejects} == {"own_caption_mismatch"}


def fail(*_: Any) -> Any:
    raise ZeroDivisionError


def test_pairs_that_are_refused_anyway_are_not_scored(
    blip: Path, media: MediaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    filters = replace(filters_of(blip), gates=GateSettings(max_ssim=-1.0))
    monkeypatch.setattr(oracle_scores.CellScorer, "score_pair", fail)
    work = judged(measured(media, filters), media, filters)
    assert {reject.reason for reject in work.rejects} == {"change_too_small"}


def test_an_accelerator_out_of_memory_ends_the_run_instead_of_refusing_pairs(
    blip: Path, media: MediaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    def exhaust(*_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    filters = filters_of(blip)
    work = measured(media, filters)
    monkeypatch.setattr(oracle_scores.CellScorer, "score_pair", exhaust)
    with pytest.raises(torch.OutOfMemoryError):
        judged(work, media, filters)
