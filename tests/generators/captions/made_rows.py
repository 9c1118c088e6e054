"""The rows of images of which some are labelled, as corrected mode makes them."""

import hashlib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from eqforge.pipelines.base.pipeline import RunSettings
from eqforge.pipelines.hard_positives import Config, HardPositives
from eqforge.schemas.tables.texts import HardPositiveSample
from eqforge.transforms.text.hard_positives import make_hard_positives
from eqforge.transforms.text.image_texts import TextsBatch


def configs(data: Path) -> Mapping[str, Config]:
    """Returns how each set is built, from the folder of real data."""
    run = RunSettings(output="out")
    return {
        "coco": Config(run=run, captions=data / "coco" / "captions_val2017.json"),
        "replace": Config(run=run, vl_checklist=data / "vl_checklist" / "data"),
    }


def made_rows(config: Config, ids: Collection[str]) -> Iterator[HardPositiveSample]:
    """Yields the samples of some ids; the other texts of their images are looked at as well."""
    wanted, pipeline = frozenset(ids), HardPositives(config)
    images = tuple(
        texts
        for batch in pipeline.plan()
        for texts in batch.images
        if not wanted.isdisjoint(record.text_id for record in texts.records)
    )
    made = make_hard_positives(TextsBatch(images=images), pipeline.rules())
    yield from (row for row in made.samples if row.sample_id in wanted)


def digest_of(row: HardPositiveSample) -> str:
    """Returns what stands for the three texts of a row in the labels."""
    texts = "\n".join((row.caption, row.hard_positive, row.hard_negative))
    return hashlib.sha256(texts.encode()).hexdigest()[:16]
