# ruff: noqa: E501
"""Hostile errata, decisions, recipes, settings, protocols, votes, models, assets and web servers."""

import functools
import gzip
import hashlib
import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from eqforge import cli
from tests.attacks import attacks as of
from tests.attacks.imports import (
    CANARY,
    NAMES,
    Attack,
    flipped,
    odd_picture,
    odd_tar,
    odd_text,
    rows,
)

OLD = Path(__file__).parents[1] / "old" / "0.1.0"
PAIRS = OLD / "eq-youcook2"
ERRATA: list[dict[str, Any]] = [{"id": "r1", "action": "drop", "reason": "same", "who": "Ada"}, {"id": "r2", "action": "correct", "column": "caption_0", "text": "a red mug", "reason": "typo", "who": "Ada", "when": "2026-11-23"}, {"id": "r3", "action": "note", "reason": "x", "who": "B"}]  # fmt: skip
DECISIONS: list[dict[str, Any]] = [{"id": "r1", "decision": "drop", "reason": "no fit", "who": "2 of 3"}, {"id": "r2", "decision": "keep", "votes": {"keep": 2, "drop": 1, "unsure": 0}}]  # fmt: skip
TOMLS = {"plan": b'seed = 3\nsample = "50%"\nlimit = 5\n', "lint": b'examples = 2\nfail-on = "error"\n', "inspect": b'rows = 2\n'}  # fmt: skip
ABOUT = b'title = "Kitchens"\nversion = "1.0.0"\npublished = 2026-11-23\nlicence = "CC-BY-4.0"\nlanguages = ["en"]\nhomepage = "https://example.org/k"\nbiases = ["x"]\n[[authors]]\nname = "Ada"\nis_organisation = false\n'
PROTOCOL = b'name = "mine"\nquestion = "Do both fit?"\nguide = "Look."\nreasons = ["a", "b"]\nsource = "us"\nof = "pairs"\nneeds = "pairs"\n'


def _lines(values: list[Any]) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


def _odd_toml(data: bytes, rng: random.Random) -> bytes:
    keys = (b"output", b"source", b"images", b"config", b"overwrite", b"workers", b"seed", b"errata", b"model", b"'\\u0000'", b'"\\u001b[2J"', b"a.b.c", b"[[x]]\ny", b"__class__", b"name", b"guide", b"fields", b"form")  # fmt: skip
    values = (b'"/etc/passwd"', b"[" * 6_000, b"9" * 6_000, b"1979-05-27T07:32:00Z", b"inf", b"-nan", b"true", b"{a={b={}}}", b'"""' + b"x" * 900_000 + b'"""', b'"\\u001b[2J"', b"'\x1b[2J'", b"0x7fffffffffffffffff", b"[]", b"''", b"1e999", b'["a", 1, {}]')  # fmt: skip
    line = rng.choice(keys) + b" = " + rng.choice(values) + b"\n"
    return rng.choice((line + data, data + line, line, flipped(data, rng), odd_text(data, rng), b"a." * 4_000 + b"a = 1\n", data + data, b"\xff\xfe" + data.decode().encode("utf-16-le")))  # fmt: skip


def _judgements(bench: Any, rng: random.Random) -> Iterator[Attack]:
    place = bench.fresh()
    kind, good = rng.choice((("errata", ERRATA), ("decisions", DECISIONS)))
    path, table = place / f"{kind}.jsonl", place / "in.jsonl"
    table.write_bytes(_lines(rows(rng)))
    known = [{**each, "id": f"own-pairs/{each['id']}"} if rng.random() < 0.7 else each for each in good]  # fmt: skip
    path.write_bytes(odd_text(_lines(known), rng))
    if rng.random() < 0.1:
        path.unlink()
        path.symlink_to(rng.choice(("/dev/zero", "/etc/passwd", path.name, "/")))
    option = [f"--{kind}", str(path)]
    score = ["metrics", str(bench.base / "scores" / "vlue"), "--resamples", "20"]
    ways = [
        ["plan", "own-pairs", str(table), *option, "--output", str(place / "out")],
        ["plan", "own-pairs", str(table), *option, "--output", str(place / "out")],
        ["combine", str(PAIRS), str(OLD / "eq-gebc"), *option, "--output", str(place / "out")],
        ["import", "own-pairs", str(table), *option, "--output", str(place / "out")],
        [*score[:1], str(OLD / "vlue"), *score[1:], *option],
        ["review", "import", str(PAIRS), str(path), "--earlier", str(path), "--output", str(place / "o.jsonl")],
    ]  # fmt: skip
    words = rng.choices(ways, (4, 4, 2, 1, 3, 2))[0]
    yield f"{words[0]} --{kind}", words, place / "out", False


@functools.cache
def _good(base: Path) -> dict[str, bytes]:
    """Returns a recipe, and a file of votes as a page saves it."""
    from tests.evaluation.review.reviews import always, planned, saved

    shutil.rmtree(base / "good", ignore_errors=True)
    (base / "good").mkdir(parents=True)
    (base / "good" / "t.jsonl").write_bytes(_lines(rows(random.Random(1))))
    out, recipe = str(base / "good" / "d"), str(base / "good" / "r")
    assert cli.main(["import", "own-pairs", str(base / "good" / "t.jsonl"), "--output", out]) == 0
    assert cli.main(["export", out, "--format", "recipe", "--output", recipe]) == 0
    folder = planned(PAIRS, base / "good" / "plan", "eq-gebc-screening", "ada")
    votes = saved(folder, "ada", always({"answer": "keep"}))
    return {"recipe": (Path(recipe) / "recipe.json").read_bytes(), "votes": votes.read_bytes()}


def _recipes(bench: Any, rng: random.Random) -> Iterator[Attack]:
    good, place = _good(bench.base)["recipe"], bench.fresh()
    value = json.loads(good)
    if rng.random() < 0.5:
        config = value.get("config", value)
        name = rng.choice(sorted(config))
        config[name] = rng.choice(("/etc/passwd", "m@http://127.0.0.1:9/v1", "../" + CANARY, True, 1, None, ["a=b"], {"x": 1}))  # fmt: skip
        good = json.dumps(value).encode()
    data = odd_text(good, rng) if rng.random() < 0.7 else good
    path = Path(shutil.copytree(bench.base / "good" / "r", place / "in"))
    (path / "recipe.json").write_bytes(data)
    yield "import --recipe", ["import", "--recipe", str(path), str(bench.base / "good" / "t.jsonl"), "--output", str(place / "out")], None, False  # fmt: skip


def _configs(bench: Any, rng: random.Random) -> Iterator[Attack]:
    place = bench.fresh()
    table, config = place / "in.jsonl", place / "in.toml"
    table.write_bytes(_lines(rows(rng)))
    ways = (["plan", "own-pairs", str(table), "--output", str(place / "out")], ["verify", str(PAIRS)], ["lint", str(table)], ["inspect", str(PAIRS)])  # fmt: skip
    words = rng.choice(ways)
    config.write_bytes(_odd_toml(TOMLS.get(words[0], b"quiet = true\n"), rng))
    yield f"{words[0]} --config", [*words, "--config", str(config)], None, False
    config.write_bytes(_odd_toml(ABOUT, rng))
    about = ["card", str(PAIRS), "--about", str(config), "--output", str(place / "out")]
    yield "card --about", about, place / "out", False


def _protocols(bench: Any, rng: random.Random) -> Iterator[Attack]:
    place = bench.fresh()
    path = place / "in.toml"
    path.write_bytes(_odd_toml(PROTOCOL, rng))
    yield "review plan", ["review", "plan", str(PAIRS), "--protocol", str(path), "--reviewers", "ada", "--output", str(place / "out")], None, False  # fmt: skip


def _votes(bench: Any, rng: random.Random) -> Iterator[Attack]:
    good, place = _good(bench.base)["votes"], bench.fresh()
    value = json.loads(good)
    path, out = place / "in.json", place / "out"
    if rng.random() < 0.5:
        vote = rng.choice(value["votes"])
        vote[rng.choice(("task", "id", "answer", "seconds", "reason", "note", "ranks", "texts", "box", "order", "is_repeat"))] = rng.choice((*of.TEXTS[:9], 0, -1, 1e308, True, None, [], {}, [[1]], {"a": "b"}, [0, 0, 1e400, 0], 86_399.999))  # fmt: skip
        path.write_bytes(json.dumps(value).encode("utf-8", "surrogatepass"))
    else:
        path.write_bytes(odd_text(good, rng))
    more = [["--answers", str(place / "rows")], [], ["--rule", "weighted"]]
    yield "review import", ["review", "import", str(PAIRS), str(path), "--output", str(out), *rng.choice(more)], out, False  # fmt: skip


@functools.cache
def _scored(base: Path) -> None:
    """Loads what scoring needs, so that its time and memory count for no attack."""
    words = ["score", str(PAIRS), "--model", f"clip:{base / 'clip'}", "--workers", "0"]
    assert cli.main([*words, "--output", str(base / "good-scores")]) == 0


def _models(bench: Any, rng: random.Random) -> Iterator[Attack]:
    """A folder of a model with code, pickles, odd settings or odd tensors; nothing of it may run."""
    _scored(bench.base)
    place = bench.fresh()
    folder = Path(shutil.copytree(bench.base / "clip", place / "in"))
    code = f"open({str(of.MARK)!r}, 'w')\nclass A:\n    pass\n"
    for name in ("modeling_x.py", "__init__.py", "tokenization_x.py", "image_processing_x.py"):
        (folder / name).write_text(code)
    path = rng.choice(sorted(folder.glob("*.json")))
    value = json.loads(path.read_text())
    if isinstance(value, dict) and rng.random() < 0.5:
        refer = rng.choice(("modeling_x.A", "x/y--modeling_x.A", ["tokenization_x.A", None], "image_processing_x.A"))  # fmt: skip
        value |= {"auto_map": {n: refer for n in ("AutoConfig", "AutoModel", "AutoTokenizer", "AutoImageProcessor", "AutoProcessor")}, "trust_remote_code": True, "model_type": rng.choice((value.get("model_type", "clip"), "x")), "_name_or_path": "http://127.0.0.1:9/x"}  # fmt: skip
        path.write_text(json.dumps(value))
    else:
        path.write_bytes(odd_text(path.read_bytes(), rng))
    weights = folder / "model.safetensors"
    way = rng.randrange(5)
    if way == 0:
        weights.unlink()
        (folder / "pytorch_model.bin").write_bytes(of.bombs(rng)[".pt"])
    elif way == 1:
        weights.write_bytes(flipped(weights.read_bytes()[:4_000], rng) + weights.read_bytes()[4_000:])  # fmt: skip
    elif way == 2:
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": {"a": rng.choice(("../x.safetensors", "/etc/passwd", "http://127.0.0.1:9/a"))}}))  # fmt: skip
        weights.unlink()
    words = ["score", str(PAIRS), "--model", f"clip:{folder}", "--workers", "0", "--output", str(place / "out")]  # fmt: skip
    yield "score", words, None, False


def _assets(bench: Any, rng: random.Random) -> Iterator[Attack]:
    place = bench.fresh()
    (place / "in").mkdir()
    data = odd_tar([("a/visual_geometry.obj", b"v 0 0 0\n"), ("a/collision_geometry.obj", b"v 0 0 0\n"), ("a/object.urdf", b"<robot/>"), ("a/texture.png", odd_picture(rng))], rng)  # fmt: skip
    data = gzip.compress(data) if rng.random() < 0.9 else data
    (place / "in" / "a.tar.gz").write_bytes(data)
    uri = rng.choice(("a.tar.gz", "a.tar.gz", f"../{CANARY}.png", "/etc/passwd", "file:///etc/passwd", "memory://a", *NAMES[:4]))  # fmt: skip
    entry = {"asset_type": "FileBasedObject", "id": "a", "kwargs": {"bounds": [[-1, -1, 0], [1, 1, 1]], "mass": 1.0, "render_filename": "{asset_dir}/visual_geometry.obj", "simulation_filename": "{asset_dir}/object.urdf"}, "license": "x", "metadata": {"category": "toys"}, "num_bytes": rng.choice((len(data), len(data), 2**62, -1)), "path": uri, "sha256": hashlib.sha256(data).hexdigest()}  # fmt: skip
    manifest = {"name": "x", "data_dir": rng.choice((".", ".", "/", "..", "file:///etc")), "version": "1", "assets": {"a": entry}}  # fmt: skip
    text = json.dumps(manifest).encode()
    (place / "in" / "m.json").write_bytes(odd_text(text, rng) if rng.random() < 0.5 else text)
    more = rng.choice((["check"], ["list"], ["fetch", "--output", str(place / "out")]))
    yield f"assets {more[0]}", ["assets", more[0], "--manifest", str(place / "in" / "m.json"), *more[1:]], None, False  # fmt: skip


CLASSES: dict[str, Callable[[Any, random.Random], Iterator[Attack]]] = {
    "judgements": _judgements, "recipes": _recipes, "configs": _configs, "protocols": _protocols,
    "votes": _votes, "models": _models, "assets": _assets,
}  # fmt: skip


def settings(bench: Any, rng: random.Random) -> Iterator[Attack]:
    """An attack of any class, or of the one that EQFORGE_ATTACK names."""
    name = os.environ.get("EQFORGE_ATTACK") or rng.choice(sorted(CLASSES))
    yield from CLASSES[name](bench, rng)
