"""Small datasets of pairs, written without a pipeline, and their exports."""

import hashlib
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge.commands import export
from eqforge.core.identity import bucket
from eqforge.schemas.dataset.manifest import Manifest, to_json
from eqforge.schemas.records.values import Span
from eqforge.schemas.tables.pairs import IMAGES_TABLE, PAIRS_TABLE, PairSample
from eqforge.transforms.dataset.tables import Table
from tests.builds import write_shard
from tests.samples import IMAGE, ORIGIN, SAMPLE

SIZE = (24, 16)
TEXTS = (
    "a red cup",
    "кошка на столе",
    "कप मेज पर",
    "杯子在桌上",
    "كوب على طاولة",
    'a "cup"\n\t\\, <b>',
)
IDS = ("a/b.mp4/001-002", "../../etc/passwd", "кошка", "A/B.MP4/001-002", "a b\\c:d", "杯" * 90)


def picture(number: int, form: str = "PNG", size: tuple[int, int] = SIZE) -> bytes:
    """A picture that no other number has."""
    pixels = np.random.default_rng(number).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, form)
    return stream.getvalue()


def sample(name: str, number: int, images: tuple[bytes, bytes], split: str) -> PairSample:
    """A pair that shows two pictures."""
    ids = [hashlib.sha256(data).hexdigest() for data in images]
    captions = TEXTS[number % len(TEXTS)], f"no {TEXTS[(number + 1) % len(TEXTS)]}"
    return replace(
        SAMPLE,
        sample_id=name,
        dataset="eq-video",
        split=split,
        source_id=f"v{number}",
        caption_0=captions[0],
        caption_1=captions[1],
        captions_0=captions[:1],
        captions_1=captions[1:],
        image_0_id=ids[0],
        image_1_id=ids[1],
        origin_1=replace(ORIGIN, licence="CC BY 4.0") if number % 2 else ORIGIN,
        background_ssim=0.25 if split == "val" else None,
        edited_spans_0=(Span(start=0, end=1),) if number % 3 else (),
        edited_spans_1=(),
        scores=(),
    )


def pairs(count: int, splits: tuple[str, ...] = ("test",)) -> dict[str, tuple[PairSample, ...]]:
    """Pairs of which neighbours share a picture, by split, with hostile ids among them."""
    names = [*IDS, *(f"eq-video/{n:03d}" for n in range(count))][:count]
    shown = [picture(n) for n in range(count + 1)]
    found: dict[str, list[PairSample]] = {split: [] for split in splits}
    for n, name in enumerate(names):
        split = splits[n % len(splits)]
        found[split].append(sample(name, n, (shown[n], shown[n + 1]), split))
    return {split: tuple(some) for split, some in found.items()}


def write_pairs(
    folder: Path, samples: list[PairSample], pictures: list[bytes], shards: int = 2
) -> Path:
    named = {hashlib.sha256(data).hexdigest(): data for data in pictures}
    images = [
        replace(
            IMAGE,
            image_id=name,
            suffix=".png" if data.startswith(b"\x89PNG") else ".jpg",
            width_px=SIZE[0],
            height_px=SIZE[1],
            num_bytes=len(data),
            scores=(),
        )
        for name, data in named.items()
    ]
    tables: dict[str, list[Any]] = {}
    records: list[Any]
    for kind, records in ((PAIRS_TABLE, samples), (IMAGES_TABLE, images)):

        def row(record: Any, kind: Any = kind) -> dict[str, Any]:
            return kind.row(record, named[record.image_id] if kind.holds_pictures else None)

        table = Table(name=kind.name, shards=shards, schema=kind.schema, key=kind.key_of, row=row)
        dealt: list[list[Any]] = [[] for _ in range(shards)]
        for record in records:
            dealt[bucket(kind.key_of(record), shards)].append(record)
        tables[kind.name] = [
            write_shard(table, number, some, str(folder)).file for number, some in enumerate(dealt)
        ]
    about: dict[str, Any] = {"config": {}, "inputs": [], "versions": {}, "stages": {}}
    manifest = Manifest(dataset="eq-video", mode="corrected", tables=tables, **about)
    (folder / "dataset.json").write_bytes(to_json(manifest))
    return folder


def small(
    folder: Path, count: int = 9, splits: tuple[str, ...] = ("test",), shards: int = 2
) -> Path:
    samples = [each for some in pairs(count, splits).values() for each in some]
    return write_pairs(folder, samples, [picture(n) for n in range(count + 1)], shards)


def run(dataset: Path, form: str, output: Path, *options: object) -> Path:
    command = [str(dataset), "--format", form, "--output", str(output), *map(str, options)]
    assert export.main(command) == 0
    return output


def refused(
    capsys: pytest.CaptureFixture[str], dataset: Path, form: str, output: Path, *options: object
) -> str:
    with pytest.raises(SystemExit) as left:
        run(dataset, form, output, *options)
    assert left.value.code == 2
    return capsys.readouterr().err


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def check_note(folder: Path) -> dict[str, Any]:
    """Checks that the note lists every file of an export as it is; returns it."""
    note: dict[str, Any] = json.loads((folder / "eqforge-export.json").read_text())
    there = files(folder)
    del there["eqforge-export.json"]
    listed = {each["path"]: (each["num_bytes"], each["sha256"]) for each in note["files"]}
    assert listed == {
        path: (len(data), hashlib.sha256(data).hexdigest()) for path, data in there.items()
    }
    return note
