import uuid
from pathlib import Path

import pytest

from eqforge.pipelines.header import check_output, claim_output
from eqforge.pipelines.settings import RunSettings
from eqforge.schemas import storage
from eqforge.schemas.errors import InputError
from eqforge.schemas.manifest import Manifest

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
    for name in ("_work/parts/samples-0.jsonl", ".tmp-1", *kept):
        storage.write_bytes(storage.join(output, name), b"x")

    claim_output(output, HEADER)

    assert storage.list_names(output) == ["_work", "data"]
    assert storage.list_names(storage.join(output, "_work")) == ["done", "identity.json", "media"]
    assert all(storage.exists(storage.join(output, name)) for name in kept)


def test_a_damaged_note_of_an_unfinished_build_is_one_clear_error(tmp_path: Path) -> None:
    """A disk may lose what it was told to keep."""
    claim_output(str(tmp_path), HEADER)
    (tmp_path / "_work" / "identity.json").write_bytes(b"")

    with pytest.raises(InputError, match=r"identity\.json is damaged; name another folder"):
        check_output(RunSettings(output=str(tmp_path)), HEADER)

    check_output(RunSettings(output=str(tmp_path), overwrite=True), HEADER)
