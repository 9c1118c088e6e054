"""Some inputs of each target in every run of the tests, and all that was a finding."""

import io
import os
import pickle
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.fuzz import mutate
from tests.fuzz.harness_targets import HARNESS_TARGETS
from tests.fuzz.limits import address_space
from tests.fuzz.score_targets import SCORE_TARGETS
from tests.fuzz.targets import TARGETS, Target, outcome_of

INPUTS = int(os.environ.get("EQFORGE_FUZZ_INPUTS", "25"))
"""Of each kind, the same ones each time; a higher number tries more."""
FEWER = dict.fromkeys(SCORE_TARGETS | HARNESS_TARGETS, 15) | {"images": 100}
FEWER |= {"dataset-manifests": 10, "dataset-tables": 15}
TENSORS = ("scores-pt", "vector-pt")


@pytest.fixture
def target(request: pytest.FixtureRequest) -> Target:
    if request.param in TENSORS:
        pytest.importorskip("torch")
    if request.param == "vlmevalkit-xlsx":
        pytest.importorskip("python_calamine")
    if request.param == "captions-reworded":
        request.getfixturevalue("wordnet")
    return TARGETS[request.param]()


@pytest.fixture(scope="session")
def wordnet() -> None:
    from eqforge.core.errors import InputError
    from eqforge.generators.text.wordnet import open_wordnet

    try:
        open_wordnet()
    except InputError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(("target", "name"), [(n, n) for n in TARGETS], indirect=["target"])
def test_hostile_inputs_give_records_rejects_or_one_clear_error(
    tmp_path: Path, target: Target, name: str
) -> None:
    for good in target.seeds:
        assert outcome_of(target, good, tmp_path) in ("records", "rejects")
    assert [*_inputs(target, name, 20)] == [*_inputs(target, name, 20)]
    with address_space():
        for data in _inputs(target, name, FEWER.get(name, INPUTS)):
            outcome_of(target, data, tmp_path)


def _inputs(target: Target, name: str, count: int) -> Iterator[bytes]:
    for number in range(count):
        rng = random.Random(f"{name} {number}")
        yield target.mutate(rng.choice(target.seeds), rng)


def _table(**columns: Any) -> bytes:
    """A Parquet file of these columns."""
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream)
    return stream.getvalue()


def _header(shape: tuple[int, ...], descr: str = "<f8") -> bytes:
    """An .npy file that announces more than it has."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode().ljust(117)
    return b"\x93NUMPY\x01\x00\x76\x00" + text + b"\n" + bytes(8)


def _without_schema() -> bytes:
    """An Arrow file that begins with its second message; it crashed the process."""
    (good,) = TARGETS["moments-arrow"]().seeds
    return good[8 + int.from_bytes(good[4:8], "little") :]


def _with_rows(number: int) -> bytes:
    """An Arrow file whose first batch says it has so many rows; fewer than 0 ended the process."""
    (good,) = TARGETS["captions-arrow"]().seeds
    start = 8 + int.from_bytes(good[4:8], "little") + 8
    message = pa.py_buffer(good)[start:]
    two = (2).to_bytes(8, "little")
    place = start + message.to_pybytes().index(two)
    return good[:place] + number.to_bytes(8, "little", signed=True) + good[place + 8 :]


FOUND = [
    ("moments-arrow", _without_schema()),
    ("captions-arrow", _with_rows(-3)),
    ("captioned-videos", b'{"video": "a.mp4", "timestamp_s": 1e308, "caption": "x"}'),
    ("captioned-videos", b'{"video": "a", "%s": 1, "caption": "x"}' % (b"0" * 3_000)),
    ("captions-flickr-csv", b'"x,raw,filename,split\n1\n'),
    ("captions-flickr-csv", b"raw\rx,filename,split\nnope,a,x\n"),
    ("captions-flickr-csv", b"raw,filename,split\nnope,a\x00\x1bb,x\n"),
    ("captions-lines", b'{"image": "a", "\\u001b[2J": 1}'),
    ("vl-checklist", b'[["a.jpg", {"POS": ["a"], "N\x7fG": ["b"]}]]'),
    ("text-pairs", b'[{"\\ud800": 1}]'),
    ("text-pair-lines", b'{"\\ud800": 1}'),
    ("youcook2", b'{"database": {"x": {"subset": "training", "duration": 1%s}}}' % (b"0" * 400)),
    ("youcook2", b'{"database": {"x": {"subset": %s1%s}}}' % (b"[" * 800, b"]" * 800)),
    ("gebplus", b'{"\\u001b[2J": 1}'),
    ("action-genome-persons", pickle.dumps(np.ones((2, 2)))),
    ("images", b"no picture at all"),
    ("scores-npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8',\x00"),
    ("scores-npy", b"\x93NUMPY\x01\x00\x08\x00{'descr'"),
    ("scores-parquet", b"PAR1" + b"\xff" * 40 + b"\x28\x00\x00\x00PAR1"),
    ("scores-parquet", _table(image=["a"], caption=[None], probability=[0.5])),
    ("scores-parquet", _table(image=[["a"]], caption=["b"], probability=[0.5])),
    ("scores-parquet", _table(image=["a"], caption=["b"], probability=["x"])),
    ("vector-npy", _header((10**13,))),
    ("vector-npy", _header((2**32, 2**32))),
    ("vector-npy", _header((10**13,), "|S0")),
    ("vector-npy", b"PK\x03\x04"),
    ("own-scores-csv", b"sample_id,value_0\n%s,1\n" % (b"a" * 200_000)),
    ("own-scores-lines", b'{"sample_id": "a", "values": [1e300, 0, 0, 1]}'),
    ("own-scores-parquet", _table(sample_id=[["a"]], values=[1])),
    ("scores-manifest", b'{"format": "eqforge scores", "tables": {}}'),
    ("scores-manifest", b'{"a": ' * 100_000),
    ("pareto-front", b"[" * 100_000),
    ("pareto-table", b"model,score,seconds\n%s,1,1\n" % (b"a" * 200_000)),
    ("lexicon", b"kind\t" + b"a" * 200_000),
    ("training-run", b"[" * 100_000),
]


@pytest.mark.parametrize(
    ("name", "data"), FOUND, ids=[f"{n}-{i}" for i, (n, _) in enumerate(FOUND)]
)
def test_what_was_found_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    """Each was an exception, or a message of many lines, when it was found."""
    expected = "rejects" if name == "images" else "refused"

    assert outcome_of(TARGETS[name](), data, tmp_path) == expected


def test_the_sums_of_a_png_are_made_right() -> None:
    (good,) = (seed for seed in TARGETS["images"]().seeds[:1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert mutate.with_sums(good[:29] + bytes(4) + good[33:]) == good
