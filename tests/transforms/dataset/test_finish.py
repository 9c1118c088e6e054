import json
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing import test_pipeline

from eqforge.core.errors import BuildError
from eqforge.core.files import storage
from eqforge.core.identity import bucket
from eqforge.schemas.dataset.manifest import Manifest, load_manifest
from eqforge.schemas.records.stages import Reject
from eqforge.schemas.tables.pairs import PAIRS_TABLE, PairSample
from eqforge.transforms.dataset.finish import DatasetTarget, finish_dataset
from eqforge.transforms.dataset.replace import is_complete
from eqforge.transforms.dataset.steps import WriteTables
from eqforge.transforms.dataset.tables import rejects_table, table_of
from eqforge.transforms.dataset.write import write_runs
from eqforge.transforms.filters.pairs import PAIRS_STAGE
from eqforge.transforms.video.clip_work import FRAMES_STAGE
from tests.builds import books, ids, one_run, write_shard
from tests.samples import SAMPLE

HEADER = Manifest(
    dataset="d", mode="paper", config={}, inputs=[], versions={"eqforge": "1"}, stages={}, tables={}
)


def target(folder: Path, samples: int = 1, max_error_rate: float = 0.0) -> DatasetTarget:
    return DatasetTarget(
        output=str(folder),
        header=HEADER,
        stages=(FRAMES_STAGE, PAIRS_STAGE),
        tables=(table_of(PAIRS_TABLE, samples), rejects_table(1)),
        max_error_rate=max_error_rate,
    )


@pytest.mark.parametrize("store", ["disk", "memory"])
def test_a_finished_dataset_stays_until_another_takes_its_place(tmp_path: Path, store: str) -> None:
    """In a store that renames nothing too; and an engine may repeat the last step."""
    output = str(tmp_path / "out") if store == "disk" else f"memory://{uuid.uuid4().hex}"
    old = replace(target(tmp_path), output=output)
    new = replace(old, header=replace(HEADER, config={"x": 1}), replaces=True)

    def write(found: DatasetTarget, samples: int) -> Callable[[], Manifest]:
        records = [replace(SAMPLE, sample_id=f"d/v/{number}") for number in range(samples)]
        shards = [
            write_runs(table, 0, one_run(table.key, rows), found.output, found.place)
            for table, rows in zip(found.tables, (records, []), strict=True)
        ]
        entered = {"frames": (0, 0), "pairs": (samples, samples)}
        return lambda: load_manifest(finish_dataset(found, shards, entered).rpartition("/")[0])

    first = write(old, 1)()
    finish = write(new, 2)
    assert load_manifest(output) == first

    for _ in range(2):
        assert finish().num_rows("samples") == 2
        assert is_complete(load_manifest(output), output)
        assert storage.list_names(output) == [
            "README.md",
            "SHA256SUMS",
            "_work",
            "croissant.json",
            "data",
            "dataset.json",
        ]


def reject(name: str, reason: str = "face_found", stage: str = "frames") -> Reject:
    return Reject(candidate_id=name, stage=stage, reason=reason)


def finish(
    folder: Path,
    entered: dict[str, tuple[int, int]],
    rejects: list[Reject],
    samples: int = 1,
    max_error_rate: float = 0.0,
) -> Manifest:
    """Writes shards of some rows, then the manifest with the given books."""
    found = target(folder, max_error_rate=max_error_rate)
    records = [replace(SAMPLE, sample_id=f"d/v/{number}") for number in range(samples)]
    rows: tuple[list[Any], ...] = (records, rejects)
    shards = [
        write_shard(table, 0, of_table, found.output)
        for table, of_table in zip(found.tables, rows, strict=True)
    ]
    finish_dataset(found, shards, entered)
    return load_manifest(found.output)


def test_the_manifest_holds_the_books_and_is_written_last(tmp_path: Path) -> None:
    rejects = [reject("a"), reject("b", "black_image"), reject("p", "same_image", "pairs")]

    manifest = finish(tmp_path, {"frames": (4, 2), "pairs": (2, 1)}, rejects)

    assert books(tmp_path) == {"frames": (4, 2, 2), "pairs": (2, 1, 1)}
    assert manifest.stages["frames"].reasons == {"black_image": 1, "face_found": 1}
    assert manifest.num_rows("samples") == 1
    card = (tmp_path / "README.md").read_text()
    assert "| frames | 4 | 2 | 2 |" in card
    assert (tmp_path / "dataset.json").stat().st_mtime_ns >= max(
        file.stat().st_mtime_ns for file in (tmp_path / "data").iterdir()
    )


@pytest.mark.parametrize(
    ("entered", "rejects", "samples", "message"),
    [
        ({"frames": (3, 1), "pairs": (1, 1)}, ["a"], 1, "'frames' do not add up: 3 candidates"),
        ({"frames": (1, 1), "pairs": (1, 1)}, ["a"], 1, "'frames' do not add up: 1 candidates"),
        ({"frames": (1, 0), "pairs": (2, 2)}, ["a"], 1, "2 candidates were kept, but 1 samples"),
        (
            {"frames": (1, 0), "pairs": (1, 1), "odd": (1, 1)},
            ["a"],
            1,
            "contain unknown stages: odd",
        ),
    ],
)
def test_books_that_are_wrong_end_the_run_without_a_manifest(
    tmp_path: Path,
    entered: dict[str, tuple[int, int]],
    rejects: list[str],
    samples: int,
    message: str,
) -> None:
    with pytest.raises(BuildError, match=message):
        finish(tmp_path, entered, [reject(name) for name in rejects], samples)

    assert not (tmp_path / "dataset.json").exists()


def test_an_undocumented_reason_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="'frames' used the undocumented reason 'ugly'"):
        finish(tmp_path, {"frames": (1, 0), "pairs": (1, 1)}, [reject("a", "ugly")])


@pytest.mark.parametrize(("failed", "rate"), [(1, 0.0), (3, 0.1)])
def test_more_failures_than_allowed_end_the_run(tmp_path: Path, failed: int, rate: float) -> None:
    rejects = [reject(str(number), "error:ValueError") for number in range(failed)]

    with pytest.raises(BuildError, match=f"{failed} of 20 .*--max-error-rate {rate}"):
        finish(tmp_path, {"frames": (20, 20 - failed), "pairs": (1, 1)}, rejects, 1, rate)


@pytest.mark.parametrize(("failed", "rate"), [(0, 0.0), (2, 0.1)])
def test_as_many_failures_as_allowed_do_not(tmp_path: Path, failed: int, rate: float) -> None:
    rejects = [reject(str(number), "error:ValueError") for number in range(failed)]

    manifest = finish(tmp_path, {"frames": (20, 20 - failed), "pairs": (1, 1)}, rejects, 1, rate)

    assert manifest.stages["frames"].rejected == failed


def test_files_of_older_runs_go_and_a_user_s_own_stay(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    left = ["samples-00003-of-00007.parquet", "images-00000-of-00001.parquet", f".tmp-{1:032x}"]
    own = ["notes.txt", "mine.parquet", "train-00000-of-00001.parquet"]
    for name in (*left, *own):
        (tmp_path / "data" / name).write_text("x")

    finish(tmp_path, {"frames": (0, 0), "pairs": (1, 1)}, [])

    there = {file.name for file in (tmp_path / "data").iterdir()}
    written = {"samples-00000-of-00001.parquet", "rejects-00000-of-00001.parquet"}
    assert there == written | set(own)


def test_a_pipeline_writes_every_shard_even_the_empty_ones(tmp_path: Path) -> None:
    samples = [replace(SAMPLE, sample_id=f"d/v/{number}") for number in range(5)]
    with test_pipeline.TestPipeline(runner="FnApiRunner") as root:
        inputs = (
            root | "Samples" >> beam.Create([*samples, samples[0]]),
            root | "Rejects" >> beam.Create([reject("a")]),
            root | "Tallies" >> beam.Create([("frames", (3, 2)), ("pairs", (4, 4)),
                                             ("frames", (1, 1)), ("pairs", (1, 1))]),
        )  # fmt: skip
        _ = inputs | WriteTables(target(tmp_path, samples=50))

    assert len(list((tmp_path / "data").glob("samples-*-of-00050.parquet"))) == 50
    assert sorted(ids(tmp_path)) == [f"d/v/{number}" for number in range(5)]
    assert books(tmp_path) == {"frames": (4, 3, 1), "pairs": (5, 5, 0)}
    listed = json.loads((tmp_path / "dataset.json").read_text())["tables"]["samples"]
    assert [file["path"] for file in listed] == sorted(file["path"] for file in listed)
    assert sum(file["rows"] for file in listed) == 5


def write(folder: str, samples: list[PairSample], shards: int = 3, *beam_args: str) -> None:
    number = len({sample.sample_id for sample in samples})
    with (
        patch("eqforge.transforms.dataset.sorted_runs.PART_BYTES", 5_000),
        test_pipeline.TestPipeline(
            runner="FnApiRunner", options=PipelineOptions([*beam_args])
        ) as root,
    ):
        inputs = (
            root | "Samples" >> beam.Create(samples),
            root | "Rejects" >> beam.Create([], reshuffle=False),
            root | "Tallies" >> beam.Create([("frames", (0, 0)), ("pairs", (number, number))]),
        )
        found = replace(target(Path(), shards), output=folder)
        _ = inputs | WriteTables(found)


def files_of(folder: str) -> dict[str, bytes]:
    """The files of a dataset, on a disk or in a store."""
    data = [f"data/{name}" for name in storage.list_files(storage.join(folder, "data"))]
    names = [*data, "dataset.json", "README.md", "croissant.json", "SHA256SUMS"]
    return {name: storage.read_bytes(storage.join(folder, name)) for name in names}


@pytest.mark.parametrize(
    "beam_args",
    [
        (),
        # Every bundle is done twice, as an engine does where it tries again.
        ("--direct_runner_bundle_repeat=1",),
        ("--direct_running_mode=multi_threading", "--direct_num_workers=3"),
    ],
)
@pytest.mark.parametrize("store", ["disk", "memory"])
def test_records_that_went_through_part_files_make_the_same_bytes_and_leave_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beam_args: tuple[str, ...], store: str
) -> None:
    samples = [replace(SAMPLE, sample_id=f"d/v/{number:03d}") for number in range(150)]
    output = str(tmp_path / "parts") if store == "disk" else f"memory://{uuid.uuid4().hex}"
    parts: list[str] = []
    deleted = storage.delete_folder

    def note(url: str) -> None:
        parts.extend(storage.list_files(url))
        deleted(url)

    with monkeypatch.context() as noting:
        noting.setattr(storage, "delete_folder", note)
        write(output, [*samples, *samples[::3]], 3, *beam_args)
    for shard, table in enumerate([table_of(PAIRS_TABLE, 3)] * 3):
        mine = [sample for sample in samples if bucket(sample.sample_id, 3) == shard]
        write_shard(table, shard, mine, str(tmp_path / "plain"))

    assert len(parts) > 20
    assert "parts" not in storage.list_names(storage.join(output, "_work"))
    written = files_of(output)
    for shard in range(3):
        name = table_of(PAIRS_TABLE, 3).file_name(shard)
        assert written[name] == (tmp_path / "plain" / name).read_bytes()


def test_parts_that_a_killed_run_left_are_removed_by_the_next(tmp_path: Path) -> None:
    left = tmp_path / "_work" / "parts" / "samples-0.jsonl"
    left.parent.mkdir(parents=True)
    left.write_text("half of a part")

    write(str(tmp_path), [SAMPLE])

    assert not left.parent.exists()


def test_two_different_records_of_one_id_in_two_parts_end_the_run(tmp_path: Path) -> None:
    samples = [replace(SAMPLE, sample_id=f"d/v/{number}") for number in range(50)]

    with pytest.raises(BuildError, match="two different samples have the id 'd/v/7'"):
        write(str(tmp_path), [*samples, replace(samples[7], caption_0="other")])

    assert not (tmp_path / "dataset.json").exists()
