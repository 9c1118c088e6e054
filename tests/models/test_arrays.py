"""A file announces more than it has; what it takes in memory is bounded all the same."""

import io
import os
import pickle
import resource
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

from eqforge.core.errors import InputError
from eqforge.core.files.foreign_tables import csv_rows
from eqforge.evaluation.tasks.eqben import read_vector
from eqforge.models.arrays import read_array
from tests.optional import optional

torch = optional("torch")


@pytest.mark.parametrize("as_zip", [True, False])
def test_one_number_that_stands_for_three_billion_takes_no_memory(
    tmp_path: Path, as_zip: bool
) -> None:
    path = tmp_path / "bomb.pt"
    bomb = torch.zeros(1).expand(3_000_000_000)
    torch.save(bomb, path, _use_new_zipfile_serialization=as_zip)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(InputError, match="declares 3,000,000,000 numbers, but has only 4 bytes"):
        read_array(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB


def test_a_compressed_tensor_is_not_unpacked(tmp_path: Path) -> None:
    stream = io.BytesIO()
    torch.save(torch.zeros(10**6), stream)
    path = tmp_path / "small.pt"
    with zipfile.ZipFile(stream) as archive, zipfile.ZipFile(path, "w") as packed:
        for name in archive.namelist():
            packed.writestr(name, archive.read(name), zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match="it is compressed"):
        read_array(path)


def test_what_is_no_tensor_of_numbers_is_refused(tmp_path: Path) -> None:
    for value, message in (
        (torch.zeros(3, device="meta"), "or has no numbers"),
        (torch.eye(3).to_sparse(), "sparse"),
        (torch.ones(3, dtype=torch.complex64), "expected real numbers, found complex64"),
        ([1.0], "it contains a list"),
    ):
        torch.save(value, tmp_path / "v.pt")
        with pytest.raises(InputError, match=message):
            read_array(tmp_path / "v.pt")


@pytest.mark.parametrize("as_zip", [True, False])
def test_tensors_are_read_as_they_are(tmp_path: Path, as_zip: bool) -> None:
    for value in (torch.arange(6).reshape(2, 3).t(), torch.nn.Parameter(torch.ones(2))):
        torch.save(value, tmp_path / "v.pt", _use_new_zipfile_serialization=as_zip)
        np.testing.assert_array_equal(read_array(tmp_path / "v.pt"), value.detach().numpy())
    torch.save(torch.ones(2).bfloat16(), tmp_path / "v.pt")
    assert read_array(tmp_path / "v.pt").dtype == np.float32


def test_a_pickle_that_is_none_of_torch_s_is_refused_without_a_warning(tmp_path: Path) -> None:
    (path := tmp_path / "v.pt").write_bytes(pickle.dumps(os.getcwd, 5))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError, match="read as a single tensor"):
            read_array(path)


@pytest.mark.parametrize("name", ["v.npy", "v.pt", "v.json", "v.csv"])
def test_pipes_and_devices_are_no_scores(tmp_path: Path, name: str) -> None:
    """The pipe was waited for without end, and the device filled the memory."""
    os.mkfifo(tmp_path / name)
    (tmp_path / "zero").mkdir()
    (tmp_path / "zero" / name).symlink_to("/dev/zero")

    for path in (tmp_path / name, tmp_path / "zero" / name):
        with pytest.raises(InputError, match="not a regular file"):
            read_vector(path)
    with pytest.raises(InputError, match="not a regular file"):
        next(csv_rows(tmp_path / name))
