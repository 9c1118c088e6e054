import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.pipelines.base.identity import check_output, claim_output
from eqforge.pipelines.base.pipeline import RunSettings
from eqforge.pipelines.base.runner import summary, warning_of
from eqforge.schemas.dataset.manifest import DataFile, InputFile, Manifest, StageCounts
from eqforge.schemas.records.stages import Stage

HEADER = Manifest(
    dataset="d", mode="paper", config={}, inputs=[], versions={}, stages={}, tables={}
)


@pytest.mark.parametrize("store", ["disk", "memory"])
def test_a_run_begins_by_deleting_what_a_killed_run_left_half_done(
    tmp_path: Path, store: str
) -> None:
    """The parts of sorted rows too: they may be what fills the disk."""
    output = str(tmp_path) if store == "disk" else f"memory://{uuid.uuid4().hex}"
    kept = ["_work/done/extract/1.json", "_work/media/ab/abcd.jpg", "data/samples.parquet"]
    for name in ("_work/parts/samples-0.jsonl", f".tmp-{1:032x}", *kept):
        storage.write_bytes(storage.join(output, name), b"x")

    claim_output(output, HEADER)

    assert storage.list_names(output) == ["_work", "data"]
    assert storage.list_names(storage.join(output, "_work")) == ["done", "identity.json", "media"]
    assert all(storage.exists(storage.join(output, name)) for name in kept)


def test_a_damaged_note_of_an_unfinished_build_is_one_clear_error(tmp_path: Path) -> None:
    """A disk may lose what it was told to keep."""
    claim_output(str(tmp_path), HEADER)
    (tmp_path / "_work" / "identity.json").write_bytes(b"")

    with pytest.raises(InputError, match=r"identity\.json is damaged; choose a different folder"):
        check_output(RunSettings(output=str(tmp_path)), HEADER)

    check_output(RunSettings(output=str(tmp_path), overwrite=True), HEADER)


def test_a_conflict_names_what_differs_and_both_values(tmp_path: Path) -> None:
    mine = [InputFile(name="a.jsonl", sha256="1" * 64)]
    there = replace(HEADER, config={"run": {"limit": None, "seed": 0}, "gone": 1}, inputs=mine)
    here = replace(
        HEADER,
        mode="corrected",
        config={"run": {"limit": 3, "seed": 0}, "max_side": "a b"},
        inputs=[InputFile(name="a.jsonl", sha256="2" * 64)],
    )
    claim_output(str(tmp_path), there)

    with pytest.raises(InputError) as refused:
        check_output(RunSettings(output=str(tmp_path)), here)

    assert (
        "made with different settings, inputs or versions: --mode was 'paper' and is now "
        "'corrected'; --limit was none and is now 3; --gone was 1 and is now unknown; "
        "--max-side was unknown and is now 'a b'; the content of a.jsonl has changed. "
        "Choose a different folder"
    ) in str(refused.value)


def test_the_command_that_is_hinted_at_can_be_pasted_into_a_shell() -> None:
    books = {"pairs": StageCounts(candidates=2, kept=1, rejected=1, reasons={"same_image": 1})}
    samples = [DataFile(path="data/a.parquet", rows=1, num_bytes=1, sha256="0" * 64)]
    *_, said = summary(replace(HEADER, stages=books, tables={"samples": samples}), "out; rm a", ())
    assert said.endswith("inspect it with: eqforge inspect 'out; rm a'")


def test_an_empty_dataset_names_its_most_frequent_reason_and_on_a_tie_the_last_stage() -> None:
    stages = [Stage(name, {"a": "A.", "b": "B."}) for name in ("frames", "pairs")]
    for last, said in (
        (2, "'frames' rejected 3 candidates for 'b'"),
        (3, "'pairs' rejected 3"),
    ):
        counts = {
            "frames": StageCounts(candidates=9, kept=5, rejected=4, reasons={"a": 1, "b": 3}),
            "pairs": StageCounts(candidates=last, kept=0, rejected=last, reasons={"a": last}),
        }
        assert said in warning_of(replace(HEADER, stages=counts), "out", stages, ())
