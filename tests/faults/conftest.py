"""The dataset that the runs of these tests have to end with."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builds import dataset_bytes
from tests.faults import runs


@dataclass(frozen=True, kw_only=True)
class Whole:
    """A dataset made without a fault.

    Attributes:
      inputs: what it was made from.
      output: its folder.
      files: the bytes of its files, by name.
      names: the names that files got on the way, in order.
    """

    inputs: runs.Inputs
    output: Path
    files: dict[str, bytes]
    names: list[str]


@pytest.fixture(scope="package", autouse=True)
def server() -> None:
    """The server that the runs of these tests are forked from."""
    runs.start_server()


@pytest.fixture(scope="package")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Three videos, nine pairs, a file each."""
    folder = tmp_path_factory.mktemp("whole")
    inputs, output = runs.make_inputs(folder, videos=3), folder / "out"
    note = runs.Note(folder / "names", output)
    status, said = runs.build_with(runs.Fault(at="", happen=note, nth=None), inputs, output)
    assert status == 0, said
    names = note.log.read_text().splitlines()
    return Whole(inputs=inputs, output=output, files=dataset_bytes(output), names=names)
