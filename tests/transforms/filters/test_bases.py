"""Finished work is done again where what it was measured by has another version."""

import sys
from collections.abc import Callable
from dataclasses import fields
from types import ModuleType

import pytest

from eqforge.core.files import pictures
from eqforge.generators.text import words
from eqforge.schemas.records.frames import FrameSettings
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.filters import cuts, minimality
from eqforge.transforms.filters.images import ImageFilters
from eqforge.transforms.oracle.judges import Oracle
from eqforge.transforms.simat.crops import CropSettings, Cutter
from eqforge.transforms.video.rules import FramePairFilters

IMAGES = ImageFilters()
FILTERS = [sys.modules[type(getattr(IMAGES, each.name)).__module__] for each in fields(IMAGES)]
PAIRS = FramePairFilters(
    cuts=cuts.CutSettings(),
    gates=minimality.GateSettings(),
    distinct_captions=True,
    max_pairs_per_video=None,
)
CUTTER = Cutter(
    root=None,
    store=MediaStore(""),
    settings=CropSettings(),
    encoding=FrameSettings(),
    ledger_root="",
)


@pytest.mark.parametrize(
    ("basis", "parts"),
    [
        (IMAGES.basis, (pictures, *FILTERS, minimality)),
        (PAIRS.basis, (pictures, cuts, minimality, words)),
        (Oracle().basis, (pictures,)),
        (lambda: CUTTER.ledger().basis, (pictures, minimality)),
    ],
    ids=["images", "pairs", "oracle", "crops"],
)
def test_each_version_is_part_of_what_finished_work_depends_on(
    basis: Callable[[], object], parts: tuple[ModuleType, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = basis()
    for part in parts:
        with monkeypatch.context() as patched:
            patched.setattr(part, "VERSION", "another")
            assert basis() != before, part.__name__
    assert basis() == before
