"""`eqforge verify` finds nonsense in rows whose every digest and fingerprint was repaired."""

import contextlib
import copy
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eqforge.cli import main
from eqforge.commands.checks import CHECKS
from eqforge.commands.verify import verify_dataset
from eqforge.schemas.dataset.reader import open_dataset
from eqforge.schemas.tables.columns import with_metadata
from eqforge.schemas.tables.datasets import table_type
from eqforge.schemas.tables.description import TableType
from eqforge.transforms.dataset.write import fingerprint_records
from tests.builds import rows as rows_of
from tests.made_datasets import describe

OLD = Path(__file__).parents[1] / "old" / "0.1.0"
NAN, INF = math.nan, math.inf
Rows = list[dict[str, Any]]
Value = Callable[[Rows], Any]
Copies = Callable[[str], Path]


def same(column: str) -> Value:
    """The first row's value of another column."""
    return lambda rows: rows[0][column]


def last(column: str) -> Value:
    return lambda rows: rows[-1][column]


def turned(column: str) -> Value:
    return lambda rows: not rows[0][column]


def negative(column: str) -> Value:
    return lambda rows: -rows[0][column]


NONSENSE: list[tuple[str, str, str, Any]] = [
    # dataset, table, path of a column, its value in the first row
    ("eq-video", "samples", "ssim", 99.0),
    ("eq-video", "samples", "ssim", NAN),
    ("eq-video", "samples", "ssim", 0.123),
    ("eq-video", "samples", "changed_area_fraction", NAN),
    ("eq-video", "samples", "changed_area_fraction", 0.01),
    ("eq-video", "samples", "background_ssim", -7.0),
    ("eq-video", "samples", "luminance_shift", negative("luminance_shift")),
    ("eq-video", "samples", "luminance_shift", INF),
    ("eq-video", "samples", "phash_distance", 3),
    ("eq-video", "samples", "word_edit_distance", -5),
    ("eq-video", "samples", "word_edit_distance", 1),
    ("eq-video", "samples", "edited_spans_0", same("edited_spans_1")),
    ("eq-video", "samples", "edited_spans_0", []),
    ("eq-video", "samples", "edited_spans_1.0.end", 9999),
    ("eq-video", "samples", "edited_spans_1.0.start", -1),
    ("eq-video", "samples", "image_0_id", same("image_1_id")),
    ("eq-video", "samples", "captions_0", []),
    ("eq-video", "samples", "annotation", "{"),
    ("eq-video", "samples", "dataset", "eq-gebc"),
    ("eq-video", "samples", "origin_0.source_sha256", "0" * 64),
    ("eq-video", "samples", "origin_0.timestamp_s", NAN),
    ("eq-video", "samples", "origin_0.time_base", "seconds"),
    ("eq-video", "samples", "origin_0.frame_index", -1),
    ("eq-video", "samples", "origin_0.rotation_deg", 45),
    ("eq-video", "samples", "scores.0.value", NAN),
    ("eq-video", "samples", "scores.0.settings", "none"),
    ("eq-video", "samples", "scores.0.scorer", ""),
    ("eq-video", "images", "phash", "0" * 48),
    ("eq-video", "images", "phash", "x"),
    ("eq-video", "images", "width_px", 0),
    ("eq-video", "images", "num_bytes", 1),
    ("eq-video", "images", "image_id", "0" * 64),
    ("eq-video", "images", "image.path", "../../etc/passwd"),
    ("eq-video", "images", "scores.0.value", -INF),
    ("eq-video", "rejects", "value", NAN),
    ("eq-video", "rejects", "source_sha256", "none"),
    ("eq-kubric", "samples", "objects_0.0.visible_fraction", 7.0),
    ("eq-kubric", "samples", "objects_0.0.visible_px", -1),
    ("eq-kubric", "samples", "objects_0.0.depth_m", NAN),
    ("eq-kubric", "samples", "generation.seed", -1),
    ("eq-kubric", "samples", "generation.parameters", "?"),
    ("eq-kubric", "samples", "spec_0", "[1, 2"),
    ("eq-edit", "samples", "source_sha256", "0" * 64),
    ("eq-edit", "samples", "mask_1_id", None),
    ("eq-edit", "samples", "ssim", 0.5),
    ("eq-edit", "masks", "num_bytes", -3),
    ("retrieval-perturbations", "captions", "words", 0),
    ("retrieval-perturbations", "captions", "characters", 0),
    ("retrieval-perturbations", "captions", "nouns", 99),
    ("retrieval-perturbations", "captions", "noun_depth", -1.0),
    ("retrieval-perturbations", "captions", "concept_diversity", INF),
    ("retrieval-perturbations", "captions", "caption", "something else"),
    ("retrieval-perturbations", "samples", "applied", turned("applied")),
    ("retrieval-perturbations", "samples", "words_changed", turned("words_changed")),
    ("retrieval-perturbations", "samples", "perturbation", "other"),
    ("retrieval-perturbations", "samples", "version", -1),
    ("retrieval-perturbations", "samples", "mode", "strict"),
    ("retrieval-perturbations", "samples", "spans", [{"start": 1, "end": 0}]),
    ("retrieval-perturbations", "samples", "caption_id", "c99"),
    ("hard-positives", "samples", "caption_spans", [{"start": 0, "end": 0}]),
    ("hard-positives", "samples", "foil_spans", [{"start": 0, "end": 10**9}]),
    ("hard-positives", "samples", "hard_positive_spans", same("hard_negative_spans")),
    ("hard-positives", "samples", "box", {"x0": 9, "y0": 9, "x1": 1, "y1": 1}),
    ("hard-positives", "samples", "source_sha256", "x"),
    ("hard-positives", "samples", "hard_positive", last("hard_positive")),
    ("training-captions", "samples", "role", "teacher"),
    ("training-captions", "samples", "caption_id", "c99"),
    ("vlue", "retrieval", "words", 0),
    ("vlue", "retrieval", "number", -1),
    ("vlue", "retrieval", "image_id", None),
    ("vlue", "grounding", "box.height", NAN),
    ("vlue", "grounding", "width_px", -5),
    ("vlue", "samples", "image_id", None),
    ("simat", "samples", "weight", 99.0),
    ("simat", "samples", "frequency", 0),
    ("simat", "samples", "frequency", 5),
    ("simat", "samples", "part", "verb"),
    ("simat", "samples", "target_word", "flying"),
    ("simat", "samples", "image_id", None),
    ("simat", "samples", "split", "train"),
    ("simat", "gallery", "box", {"x0": 50, "y0": 0, "x1": 10, "y1": 90}),
    ("simat", "gallery", "source_sha256", "0" * 64),
    ("simat", "captions", "caption_id", "a/b/c"),
    ("simat", "captions", "regions", -1),
    ("simat", "captions", "origin", "dream"),
]


def repair(folder: Path, table: str, rows: Rows) -> None:
    """Writes the rows of a table in one file, with the digests of a build that made them."""
    kind = table_type(open_dataset(str(folder)).manifest.dataset, table)
    assert kind is not None
    records = [_record(kind, row) for row in rows]
    fingerprint = fingerprint_records(kind.schema, records)
    schema = with_metadata(kind.schema, {"fingerprint": fingerprint})
    free = pa.schema([field.with_nullable(True) for field in schema], schema.metadata)
    written = pa.Table.from_pylist(rows, schema=free)
    with contextlib.suppress(ValueError):  # a null where none may be
        written = written.cast(schema)
    first, *others = sorted((folder / "data").glob(f"{table}-*"))
    pq.write_table(written, first)
    for path in others:
        path.unlink()
    describe(folder)


def _record(kind: TableType, row: dict[str, Any]) -> dict[str, Any]:
    if not kind.holds_pictures:
        return row
    suffix = row["image"]["path"].removeprefix(row[kind.key[0]])
    return {
        "suffix" if name == "image" else name: suffix if name == "image" else value
        for name, value in row.items()
    }


def edited(rows: Rows, path: str, value: Any) -> Rows:
    """Returns the rows with another value in the first; `scores.0.value` is a path."""
    found = copy.deepcopy(rows)
    at: Any = found[0]
    *places, name = path.split(".")
    for place in places:
        at = at[int(place)] if isinstance(at, list) else at[place]
    at[name] = value(rows) if callable(value) else value
    return found


def faults(folder: Path) -> list[str]:
    """What the checks of rows and pictures find; an exception counts, as for `verify`."""
    dataset, found = open_dataset(str(folder)), list[str]()
    for name in ("rows", "ids", "images", "locked areas", "stored scores"):
        try:
            found += CHECKS[name](dataset)
        except Exception as error:
            found.append(f"{name}: {error}")
    return found


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> Copies:
    """One copy of each dataset; every test leaves it as it was."""
    folder = tmp_path_factory.mktemp("nonsense")

    def copied(kind: str) -> Path:
        if not (folder / kind).exists():
            shutil.copytree(OLD / kind, folder / kind)
        return folder / kind

    return copied


@pytest.mark.parametrize(
    ("kind", "table", "path", "value"),
    NONSENSE,
    ids=[f"{kind}-{table}-{path}" for kind, table, path, _ in NONSENSE],
)
def test_nonsense_is_found(copies: Copies, kind: str, table: str, path: str, value: Any) -> None:
    folder, rows = copies(kind), rows_of(OLD / kind, table)
    repair(folder, table, edited(rows, path, value))
    assert faults(folder)
    repair(folder, table, rows)


@pytest.mark.parametrize("kind", sorted({kind for kind, *_ in NONSENSE}))
def test_repaired_rows_without_nonsense_are_sound(copies: Copies, kind: str) -> None:
    for table in sorted({table for name, table, *_ in NONSENSE if name == kind}):
        repair(copies(kind), table, rows_of(OLD / kind, table))
    assert faults(copies(kind)) == []


def test_a_long_table_is_measured_in_part(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eqforge.commands.row_checks.MAX_MEASURED", 3)
    monkeypatch.setattr("eqforge.commands.checks.MAX_MEASURED", 3)
    found = verify_dataset(str(copies("vlue")))
    assert any("rows, chosen by hash" in line for line in found.checks["rows"].lines)


@pytest.fixture
def carded(tmp_path: Path) -> Path:
    """A dataset with documents of this version."""
    shutil.copytree(OLD / "hard-positives", tmp_path / "d")
    (note,) = verify_dataset(str(tmp_path / "d")).checks["description"].lines
    assert note.startswith("SHA256SUMS is missing")
    assert main(["--quiet", "card", str(tmp_path / "d")]) == 0
    return tmp_path / "d"


@pytest.mark.parametrize("name", ["README.md", "croissant.json", "SHA256SUMS"])
def test_flipped_bytes_of_documents_are_found(carded: Path, name: str) -> None:
    assert verify_dataset(str(carded)).checks["description"].lines == []
    data = (carded / name).read_bytes()
    for place in range(0, len(data), max(1, len(data) // 30)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        (carded / name).write_bytes(flipped)
        assert list(CHECKS["description"](open_dataset(str(carded)))), place
    (carded / name).unlink()
    assert bool(list(CHECKS["description"](open_dataset(str(carded))))) == (name != "SHA256SUMS")


def test_another_card_leaves_the_manifest_as_it_is(carded: Path) -> None:
    before = (carded / "dataset.json").read_bytes()
    (carded / "README.md").write_text("mine")
    assert main(["--quiet", "card", str(carded)]) == 0
    assert verify_dataset(str(carded)).checks["description"].state == "ok"
    assert (carded / "dataset.json").read_bytes() == before
