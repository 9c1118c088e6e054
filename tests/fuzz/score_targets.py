"""What is fuzzed of `eqforge metrics` and its like: every file of scores, answers and words.

A target takes the bytes of one file, and the rest of what its command reads is good. Reports are
set in all forms; what a terminal would obey in one of them is a finding too.
"""

import functools
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eqforge.core.visible import visible
from eqforge.evaluation.conversations.answers import read_foreign_answers
from eqforge.evaluation.efficiency.contest import from_table
from eqforge.evaluation.efficiency.pareto_command import as_text, read_front
from eqforge.evaluation.efficiency.result import read_efficiency
from eqforge.evaluation.plots.tables import read_numbers, strengths
from eqforge.evaluation.tables.render import FORMATS, Report, Rules, as_comparisons
from eqforge.evaluation.tables.score_files import read_labels
from eqforge.evaluation.tables.settings import MetricsSettings
from eqforge.evaluation.tasks.answers import answers_report
from eqforge.evaluation.tasks.boundaries import boundary_report
from eqforge.evaluation.tasks.eqben import read_vector
from eqforge.evaluation.tasks.gap import gap_report
from eqforge.evaluation.tasks.retrieval import retrieval_report
from eqforge.evaluation.tasks.samples import TASKS, files_report, samples_report
from eqforge.evaluation.training.folder import RunFolder
from eqforge.generators.diffusion.vocabulary import load_vocabulary as load_phrases
from eqforge.generators.simat.triplets import load_vocabulary
from eqforge.generators.text.lexicon import load_lexicon
from eqforge.models.regions import RegionFiles
from eqforge.schemas.dataset.reader import open_dataset
from tests.fuzz import mutate
from tests.made_datasets import score_rows, vectors, write_dataset, write_scores

Outcome = str
RULES = Rules(resamples=20)
SETTINGS = MetricsSettings(paths=(), resamples=RULES.resamples)
KEYS = ["d/a/0", "d/a/1", "d/b/0"]
IMAGES, CAPTIONS = ["image_0_id", "image_1_id"], ["caption_0", "caption_1"]
VALUES = np.arange(12, dtype=np.float32).reshape(3, 4) / 16


def _file(data: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _reported(report: Report) -> Outcome:
    for write in (*FORMATS.values(), as_comparisons):
        for line in write(report).split("\n"):
            assert visible(line) == line, f"not visible: {line[:200]!r}"
    return "records"


# Scores of samples.


def _own(name: str, data: bytes, folder: Path) -> Outcome:
    path = _file(data, folder, name)
    for label in ("cluster", "subset"):
        read_labels(path, label)
    return _reported(files_report(TASKS["pairs"], [path], SETTINGS))


@functools.cache
def _pairs(folder: Path) -> Path:
    rows = [
        {
            "sample_id": key,
            "source_id": key[:3],
            **{name: f"{name} {key}" for name in (*IMAGES, *CAPTIONS)},
        }
        for key in KEYS
    ]
    dataset = write_dataset(folder / "pairs", "eq-video", {"samples": rows})
    write_scores(folder / "scored", dataset, "pairs", {"scores": score_rows(KEYS, VALUES)})
    return dataset


def _measured(path: str, data: bytes, folder: Path) -> Outcome:
    dataset = open_dataset(str(_pairs(folder)))
    return _with(folder / "scored" / path, data, lambda: samples_report(
        dataset, TASKS["pairs"], [folder / "scored"], SETTINGS
    ))  # fmt: skip


def _with(place: Path, data: bytes, report: Callable[[], Report]) -> Outcome:
    """Reports with the bytes of one file replaced."""
    good = place.read_bytes()
    place.write_bytes(data)
    try:
        return _reported(report())
    finally:
        place.write_bytes(good)


# Scores of everything with everything.


@functools.cache
def _gallery(folder: Path) -> Path:
    texts = ["a dog", "a cat", "a man"]
    captions = [
        {"caption_id": f"c{n}", "caption": text, "image": f"{n}.jpg", "image_id": f"i{n}"}
        for n, text in enumerate(texts)
    ]
    samples = [
        {
            "sample_id": f"c{n}/p",
            "caption_id": f"c{n}",
            "perturbation": "p",
            "perturbed_caption": f"{text}!",
            "applied": True,
        }
        for n, text in enumerate(texts)
    ]
    tables: dict[str, Any] = {"captions": captions, "samples": samples}
    dataset = write_dataset(folder / "gallery", "retrieval-perturbations", tables)
    names = sorted({*texts, *(f"{text}!" for text in texts)})
    rng = np.random.default_rng(0)
    found = {
        "image_vectors": vectors("image_id", ["i0", "i1", "i2"], rng.normal(size=(3, 4))),
        "caption_vectors": vectors("caption", names, rng.normal(size=(len(names), 4))),
    }
    write_scores(folder / "crossed", dataset, "retrieval-perturbations", found)
    rows = [
        {"image_id": f"i{n}", "captions": names, "values": rng.normal(size=len(names)).tolist()}
        for n in range(3)
    ]
    write_scores(folder / "grid", dataset, "retrieval-perturbations", {"grid": rows})
    return dataset


def _retrieved(scores: str, path: str, data: bytes, folder: Path) -> Outcome:
    dataset = open_dataset(str(_gallery(folder)))
    return _with(folder / scores / path, data, lambda: retrieval_report(
        dataset, [folder / scores], SETTINGS
    ))  # fmt: skip


# Vectors, tables and answers.


def _vector(name: str, data: bytes, folder: Path) -> Outcome:
    assert np.isfinite(read_vector(_file(data, folder, name))).all()
    return "records"


def _boundaries(data: bytes, folder: Path) -> Outcome:
    return _reported(boundary_report([_file(data, folder, "b.jsonl")], SETTINGS))


def _gap(data: bytes, folder: Path) -> Outcome:
    good = _file(METRICS, folder, "inside.json")
    return _reported(gap_report([good, _file(data, folder, "outside.json")], SETTINGS))


def _numbers(data: bytes, folder: Path) -> Outcome:
    strengths(read_numbers([_file(data, folder, "metrics.json")]))
    return "records"


def _published(data: bytes, folder: Path) -> Outcome:
    from_table(_file(data, folder, "paper.csv"), RULES)
    return "records"


def _front(data: bytes, folder: Path) -> Outcome:
    text = as_text(read_front(_file(data, folder, "front.json")))
    assert all(visible(line) == line for line in text.split("\n"))
    return "records"


def _speed(data: bytes, folder: Path) -> Outcome:
    read_efficiency(_file(data, folder, "speed.json"))
    return "records"


def _answers(data: bytes, folder: Path) -> Outcome:
    captions = {"a": ("a red car", "a blue car")}
    found = read_foreign_answers(_file(data, folder, "answers.jsonl"), captions)
    return "records" if found else "rejects"


@functools.cache
def _questions(folder: Path) -> Path:
    box = {"x": 0.0, "y": 0.0, "width": 10.0, "height": 10.0}
    tables: dict[str, list[dict[str, Any]]] = {
        "nlvr2": [{"sample_id": "n", "image_0": "0", "label": True}],
        "vqa": [{"sample_id": "v", "image": "1", "answers": ["two"]}],
        "grounding": [{"sample_id": "g", "image": "1", "box": box}],
    }
    tables = {"samples": [{"sample_id": key} for key in "nvg"], **tables}
    return write_dataset(folder / "vlue", "vlue", tables)


def _answered(data: bytes, folder: Path) -> Outcome:
    dataset = open_dataset(str(_questions(folder)))
    path = _file(data, folder, "vlue.jsonl")
    return _reported(answers_report(dataset, [path], SETTINGS))


# Words, and what models and trainings read.


def _words(name: str, read: Callable[[Path], Any], data: bytes, folder: Path) -> Outcome:
    read(_file(data, folder, name))
    return "records"


def _regions(data: bytes, folder: Path) -> Outcome:
    try:
        RegionFiles(_file(data, folder, "features.tsv"), None)["a"]
    except ValueError:
        return "rejects"
    return "records"


def _training(name: str, data: bytes, folder: Path) -> Outcome:
    place = folder / f"training-{Path(name).stem}"
    _file(data, place, name)
    RunFolder(place, {"model": "m", "steps": 3})
    return "records"


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _lines(*values: Any) -> bytes:
    return b"\n".join(map(_json, values))


def _parquet(content: pa.Table) -> bytes:
    stream = io.BytesIO()
    pq.write_table(content, stream)
    return stream.getvalue()


def _good(make: Callable[[Path], Path], scores: str, path: str) -> tuple[bytes, ...]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        make.__wrapped__(Path(folder))  # type: ignore[attr-defined]
        return ((Path(folder) / scores / path).read_bytes(),)


def columns(data: bytes, rng: random.Random) -> bytes:
    """Changes the columns of a Parquet file: their values, types or names, or its bytes."""
    if rng.random() < 0.3:
        return mutate.damage(data, rng)
    try:
        content = pq.read_table(io.BytesIO(data))
        rows = content.to_pylist()
    except Exception:
        return mutate.damage(data, rng)
    way = rng.randrange(5)
    name = rng.choice(content.schema.names)
    place = content.schema.names.index(name)
    try:
        if way == 0:
            return _parquet(content.drop_columns([name]))
        if way == 1:
            return _parquet(content.append_column(name, content[name]))
        if way == 2:
            kinds = (pa.string(), pa.binary(), pa.int64(), pa.float64(), pa.null(), pa.bool_())
            kind = rng.choice((*kinds, pa.list_(pa.string()), pa.list_(pa.float64(), 4)))
            values = pa.nulls(len(rows), kind) if rng.random() < 0.5 else None
            changed = content[name].cast(kind) if values is None else values
            return _parquet(content.set_column(place, name, changed))
        if way == 3:
            return _parquet(content.take([rng.randrange(len(rows)) for _ in range(5)]))
        for _ in range(rng.choice((1, 2))):
            rows = mutate.change(rows, rng)
        return _parquet(pa.Table.from_pylist(rows))
    except Exception:
        return mutate.damage(data, rng)


_METRIC = {"model": "m", "subset": "all", "metric": "n = 1", "unit": "share", "expected": 9}
_METRIC |= {"value": 0.5, "low": 0.4, "high": 0.6, "scored": 9, "missing": 0}
METRICS = _json({"measures": [_METRIC, _METRIC | {"subset": "test: sum, lambda 0.5"}]})
_CONTESTANT = {"score_low": 0.1, "score_high": 0.9, "seconds": 0.1, "seconds_low": 0.1}
_CONTESTANT |= {"seconds_high": 0.2, "on_front": True, "probability": 0.5}
_FRONT = {"format": "eqforge pareto", "what": "group", "strict": False, "seed": 0, "resamples": 9}
_BOUNDARY = {"boundary_id": "b", "video": "v", "timestamp_s": 0.2, "before": [1, 2, 3]}
_BOUNDARY |= {"after": [3, 2, 1]}
_SPREAD = {"median": 0.1, "low": 0.1, "high": 0.1, "mean": 0.1, "runs": 9}
_SPEED = {
    "format": "eqforge efficiency",
    "model": dict.fromkeys(
        ("kind", "family", "model", "revision", "precision", "preprocessing", "calibration"), "x"
    ),
    **{"dataset": "d", "dataset_sha256": "0", "machine": {}, "clocks": {}, "settings": {}},
    **{"detector_s": None, "stages": {"total": _SPREAD}, "seconds": [0.1], "best_batch": 1},
    "sweep": [{"batch": 1, "seconds": _SPREAD, "per_second": 10.0, "peak_memory_mib": None}],
}
_OWN_CSV = (
    b"sample_id,value_0,value_1,value_2,value_3,cluster,subset\na,1,0,0,1,v,s\nb,0,1,1,0,v,s\n"
)
_OWN_LINES = _lines(
    {"sample_id": "a", "values": [1, 0, 0, 1], "cluster": "v", "subset": "s"},
    {"sample_id": "b", "values": [1, 2, 3, 4], "cluster": "w", "subset": "=1+1"},
)
_OWN_PARQUET = _parquet(
    pa.table({"sample_id": ["a", "b"], "values": [[1.0, 0, 0, 1], [0, 1, 1, 0]]})
)
_ANSWER = {"sample_id": "a", "image_order": "01", "caption_order": "10", "answer": "1;2"}
_VLUE = _lines(
    {"sample_id": "n", "answer": "yes"},
    {"sample_id": "v", "answer": "2"},
    {"sample_id": "g", "answer": [0, 0, 10, 10]},
)
_LEXICON = (
    b"kind\tgroup\tword\treplacement\tsynonymy\tsource\nattribute\tcolor\tred\tscarlet\tfull\tx\n"
)
_NAMES = _json({"subjects": {"man": ["man"]}, "relations": {"sitting on a": ["sits on"]}})
_REGION = b"a\t1\tAACAPwAAgD8=\n"


def _arrays() -> tuple[bytes, ...]:
    made = []
    for value in (np.ones(4), np.ones((2, 2), np.float32), np.arange(3)):
        stream = io.BytesIO()
        np.save(stream, value)
        made.append(stream.getvalue())
    return tuple(made)


def _tensors() -> tuple[bytes, ...]:
    import torch

    made = []
    for value in (torch.ones(4), torch.ones(4).bfloat16(), torch.arange(6).reshape(2, 3).t()):
        for as_zip in (True, False):
            stream = io.BytesIO()
            torch.save(value, stream, _use_new_zipfile_serialization=as_zip)
            made.append(stream.getvalue())
    return tuple(made)


_part = functools.partial
_Seeds = Callable[[], tuple[bytes, ...]]
SCORE_TARGETS: dict[str, tuple[Callable[[bytes, Path], Outcome], _Seeds, mutate.Mutator]] = {
    "own-scores-csv": (_part(_own, "m.csv"), lambda: (_OWN_CSV,), mutate.damage),
    "own-scores-lines": (_part(_own, "m.jsonl"), lambda: (_OWN_LINES,), mutate.json_lines),
    "own-scores-parquet": (_part(_own, "m.parquet"), lambda: (_OWN_PARQUET,), columns),
    "scores-manifest": (
        _part(_measured, "scores.json"),
        _part(_good, _pairs, "scored", "scores.json"),
        mutate.json_text,
    ),
    "scores-table": (
        _part(_measured, "data/scores-00001-of-00002.parquet"),
        _part(_good, _pairs, "scored", "data/scores-00001-of-00002.parquet"),
        columns,
    ),
    **{
        f"crossed-{name}": (
            _part(_retrieved, folder, path),
            _part(_good, _gallery, folder, path),
            columns,
        )
        for name, folder, path in (
            ("images", "crossed", "data/vectors-images-00001-of-00002.parquet"),
            ("captions", "crossed", "data/vectors-captions-00001-of-00002.parquet"),
            ("grid", "grid", "data/grid-00001-of-00002.parquet"),
        )
    },
    "vector-npy": (_part(_vector, "v.npy"), _arrays, mutate.damage),
    "vector-pt": (_part(_vector, "v.pt"), _tensors, mutate.zipped),
    "vector-json": (_part(_vector, "v.json"), lambda: (b"[1, 2.5, -3e4]",), mutate.json_text),
    "vector-text": (_part(_vector, "v.txt"), lambda: (b"1, 2.5\n-3e4",), mutate.damage),
    "boundaries": (
        _boundaries,
        lambda: (
            _lines(
                _BOUNDARY | {"after": [3, 2, 1]},
                _BOUNDARY | {"boundary_id": "c", "after": [1, 1, 1], "fps": 2},
            ),
        ),
        mutate.json_lines,
    ),
    "gap": (_gap, lambda: (METRICS,), mutate.json_text),
    "plot-numbers": (_numbers, lambda: (METRICS,), mutate.json_text),
    "pareto-table": (
        _published,
        lambda: (b"model,score,seconds,score_low,score_high\na,1,2,0.5,1.5\nb,2,3,2,2\n",),
        mutate.damage,
    ),
    "pareto-front": (
        _front,
        lambda: (_json(_FRONT | {"models": [_CONTESTANT | {"model": "a", "score": 0.5}]}),),
        mutate.json_text,
    ),
    "efficiency": (_speed, lambda: (_json(_SPEED),), mutate.json_text),
    "answers-pairs": (
        _answers,
        lambda: (_lines(_ANSWER, _ANSWER | {"answer": "no"}),),
        mutate.json_lines,
    ),
    "answers-vlue": (_answered, lambda: (_VLUE,), mutate.json_lines),
    "lexicon": (_part(_words, "l.tsv", load_lexicon), lambda: (_LEXICON,), mutate.damage),
    "simat-words": (_part(_words, "v.json", load_vocabulary), lambda: (_NAMES,), mutate.json_text),
    "eq-sd-words": (
        _part(_words, "p.json", load_phrases.__wrapped__),
        lambda: (Path("generators/diffusion/data/vocabulary.json").read_bytes(),),
        mutate.json_text,
    ),
    "oscar-regions": (_regions, lambda: (_REGION,), mutate.damage),
    "training-run": (
        _part(_training, "_work/run.json"),
        lambda: (_json({"model": "m", "steps": 3}),),
        mutate.json_text,
    ),
}
"""What takes a file, the good files, and how they are damaged, by name."""
