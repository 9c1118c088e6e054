"""What is fuzzed of `eqforge metrics`: what evaluation harnesses and others' programs wrote."""

import functools
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from eqforge.evaluation.tables.logs import form_of_file
from eqforge.evaluation.tasks.harnesses import harness_report
from eqforge.schemas.dataset.reader import open_dataset
from tests.evaluation.harnesses import made
from tests.evaluation.harnesses.test_published import bivlc_row, own_lines, write_rows, write_sums
from tests.fuzz import mutate
from tests.fuzz.score_targets import KEYS, SETTINGS, Outcome, _file, _pairs, _reported

MISSING = replace(SETTINGS, allow_missing=True)


def _measured(name: str, data: bytes, folder: Path) -> Outcome:
    dataset = open_dataset(str(_pairs(folder)))
    path = _file(data, folder, name)
    if form_of_file(path) is None:
        return "rejects"
    return _reported(harness_report(dataset, [path], MISSING))


def _good(write: Callable[[Path, Path], object], name: str) -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(_pairs.__wrapped__(Path(folder)), path)
        return (path.read_bytes(),)


def _log(dataset: Path, path: Path) -> None:
    made.write_log(path, made.asked(dataset), made.says_a)


def _predictions(dataset: Path, path: Path) -> None:
    made.write_table(path, made.predictions(made.asked(dataset), made.right))


def _own_log(_: Path, path: Path) -> None:
    path.write_text("\n".join(own_lines({key: [1, 0] for key in KEYS})))


def _bivlc(_: Path, path: Path) -> None:
    captions = [(f"caption_0 {key}", f"caption_1 {key}") for key in KEYS]
    write_rows(path, [bivlc_row(*pair, True, True, False, True) for pair in captions])


def _sums(_: Path, path: Path) -> None:
    write_sums(path, image_acc=1.0, text_acc=0.0, acc=0.0)


_FORMS = {
    "lmms-eval": ("m.jsonl", _log, mutate.json_lines),
    "lmms-eval-own": ("own.jsonl", _own_log, mutate.json_lines),
    "vlmevalkit-json": ("p.json", _predictions, mutate.json_text),
    "vlmevalkit-tsv": ("p.tsv", _predictions, mutate.damage),
    "vlmevalkit-xlsx": ("p.xlsx", _predictions, mutate.zipped),
    "bivlc": ("b.csv", _bivlc, mutate.damage),
    "clip-benchmark": ("c.json", _sums, mutate.json_text),
}
HARNESS_TARGETS = {
    name: (functools.partial(_measured, file), functools.partial(_good, write, file), mutator)
    for name, (file, write, mutator) in _FORMS.items()
}
"""What takes a file, the good files, and how they are damaged, by name."""
