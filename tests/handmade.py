"""Pairs made by hand, a square on noise, and a dataset of them."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
from PIL import Image

from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.records.scenes import RenderedObject
from eqforge.schemas.records.scores import Rejection, Score
from eqforge.schemas.records.values import PixelBox
from eqforge.schemas.tables.generated import Generation
from eqforge.transforms.dataset.finish import DatasetTarget
from eqforge.transforms.dataset.steps import WriteDataset
from eqforge.transforms.dataset.tables import generated_tables
from eqforge.transforms.filters.faces import FaceSettings
from eqforge.transforms.filters.images import ImageFilters
from eqforge.transforms.filters.minimality import GateSettings
from eqforge.transforms.filters.pairs import PAIRS_STAGE
from eqforge.transforms.filters.quality import QualitySettings
from eqforge.transforms.generated.diffuse import DRAWINGS_STAGE
from eqforge.transforms.generated.pairs import (
    IMAGES_STAGE,
    GeneratedRules,
    drop_generated,
    store_image,
    store_mask,
)
from eqforge.transforms.generated.steps import MeasureGenerated
from eqforge.transforms.generated.work import MadePair, PairProposal, PairWork

SIDE = 64
GENERATION = Generation(
    generator="by hand",
    version="1",
    model=None,
    revision=None,
    device="cpu",
    seed=3,
    parameters="{}",
)
SQUARE = RenderedObject(
    name="square",
    asset="square",
    box=PixelBox(x=10, y=10, width=20, height=20),
    visible_px=400,
    full_px=400,
    visible_fraction=1.0,
    depth_m=1.0,
)
SCORE = Score(name="overlap", value=0.0, scorer="s", version="1", settings="{}")


def rules(folder: Path, **changes: Any) -> GeneratedRules:
    filters = ImageFilters(faces=FaceSettings(face_policy="off"), quality=QualitySettings())
    usual = GeneratedRules(
        work=str(folder / "_work"), images=filters, gates=GateSettings(), distinct_captions=True
    )
    return replace(usual, **changes)


def png(pixels: np.ndarray) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


def picture(red: int) -> bytes:
    """A square, as red as asked, on noise."""
    pixels = np.random.default_rng(5).integers(0, 256, (SIDE, SIDE, 3), dtype=np.uint8)
    pixels[10:30, 10:30] = (red, 0, 0)
    return png(pixels)


def mask(number: int) -> bytes:
    pixels = np.zeros((SIDE, SIDE), np.uint8)
    pixels[10:30, 10:30] = number
    return png(pixels)


def proposal(name: str, captions: tuple[str, str] = ("a red square", "a dark square")) -> Any:
    return PairProposal(
        sample_id=f"eq-sd/{name}",
        source_id=name,
        kind="attribute",
        change="colour",
        captions=captions,
        specs=('{"red":255}', '{"red":20}'),
    )


def made(some: GeneratedRules, first: bytes, second: bytes) -> MadePair:
    images = [store_image(some.media, data, SIDE, SIDE) for data in (first, second)]
    one = store_mask(some.media, mask(1), SIDE, SIDE)
    return MadePair(
        images=(images[0], images[1]),
        generation=GENERATION,
        masks=(one, one),
        objects=((SQUARE,), (SQUARE,)),
        scores=(SCORE,),
    )


def work(some: GeneratedRules, name: str, first: bytes, second: bytes) -> PairWork:
    begun = PairWork(proposal=proposal(name), made=made(some, first, second))
    return begun.passed(DRAWINGS_STAGE)


HEADER = Manifest(
    dataset="eq-sd",
    mode="corrected",
    config={"settings": {"distinct_captions": True}},
    inputs=[],
    versions={},
    stages={},
    tables={},
)


def write(folder: Path) -> None:
    some = rules(folder)
    black = png(np.zeros((SIDE, SIDE, 3), np.uint8))
    failed = Rejection(reason="error:ValueError")
    works = [
        work(some, "a", picture(255), picture(20)),
        work(some, "b", picture(255), picture(60)),
        work(some, "c", picture(255), black),
        PairWork(proposal=proposal("d")).refused(DRAWINGS_STAGE, failed),
    ]
    target = DatasetTarget(
        output=str(folder),
        header=HEADER,
        stages=(DRAWINGS_STAGE, IMAGES_STAGE, PAIRS_STAGE),
        tables=generated_tables(4, 2, 1, some.media),
        max_error_rate=1.0,
    )
    with beam.Pipeline(runner="FnApiRunner") as root:
        _ = (
            root
            | beam.Create(works)
            | MeasureGenerated(some)
            | beam.Map(drop_generated, some)
            | WriteDataset(target)
        )
