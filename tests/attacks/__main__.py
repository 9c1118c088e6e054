# ruff: noqa: E501, RUF001
"""Attacks every command with hostile files; nothing of it comes from `tests.fuzz`.

    python -m tests.attacks all --inputs 6000 --base FOLDER

FOLDER is made where it is not there: the demo's inputs, and scores of older datasets by a tiny
model. Prints for each command how many inputs it got and what they came to, and each class of
findings with one input that gives it. What counts as a finding stands in `harness`.
"""

import argparse
import gzip
import itertools
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from eqforge import cli
from tests.attacks import attacks as of
from tests.attacks import imports, servers, settings
from tests.attacks.harness import Result, attempt

ROOT = Path(__file__).parents[2]
OLD = ROOT / "tests" / "old" / "0.1.0"
SCORED = ("eq-youcook2", "simat", "vlue")
Attack = tuple[str, list[str], Path | None, bool]
"""What it counts for, the command line, what is written, whether `sound` would be a lie."""


class Bench:
    """Where attacks are made.

    Attributes:
      base: good inputs.
      place: folder of the attack under way; nothing stays in it.
    """

    def __init__(self, base: Path, place: Path) -> None:
        self.base, self.place = base, place

    def fresh(self) -> Path:
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        return self.place

    def dataset(self, name: str) -> Path:
        return Path(shutil.copytree(OLD / name, self.fresh() / "d"))


def prepare(base: Path) -> None:
    from eqforge.generators.demo.workspace import make_workspace
    from tests.tiny_models import save_clip

    if (base / "scores").exists():
        return
    base.mkdir(parents=True, exist_ok=True)
    if not (base / "workspace").exists():
        make_workspace(base / "workspace")
        save_clip(base / "clip")
    for name in SCORED:
        words = ["score", str(OLD / name), "--model", f"clip:{base / 'clip'}", "--workers", "0"]
        assert cli.main([*words, "--output", str(base / "scores" / name)]) == 0


def _on_dataset(
    name: str, folder: Path, rng: random.Random, base: Path, place: Path | None = None
) -> Attack:
    """A command that reads a dataset."""
    data, place = str(folder), place or folder.parent
    out, answers = place / "out", place / "a.jsonl"
    answers.write_text(
        '{"sample_id": "x", "image_order": "01", "caption_order": "01", "answer": "1;2"}\n'
    )
    ids = place / "ids.txt"
    ids.write_text("1.jpg\n")
    sheet = ["--sheet", str(out / "s.png")]
    lines: list[tuple[str, list[str]]] = [
        ("verify", ["verify", data]),
        ("verify", ["verify", data]),
        ("inspect", ["inspect", data, *rng.choice(([], ["--full"]))]),
        ("inspect --sheet", ["inspect", data, *sheet]),
        ("lint", ["lint", data, *rng.choice(([], ["--json"]))]),
        ("audit", ["audit", data, "--resamples", "20", *rng.choice(([], ["--json"]))]),
        (
            "overlap",
            ["overlap", data, "--training-ids", str(ids), "--output", str(out / "o.parquet")],
        ),
        ("export", ["export", data, "--format", "vl-checklist", "--output", str(out)]),
        (
            "metrics",
            [
                "metrics",
                data,
                str(base / "scores" / name),
                "--resamples",
                "20",
                "--show",
                rng.choice(("text", "json", "csv", "latex")),
            ],
        ),
        (
            "plot",
            [
                "plot",
                rng.choice(("minimality", "equivariance")),
                data,
                str(base / "scores" / name),
                "--output",
                str(out / "p.svg"),
            ],
        ),
        (
            "converse",
            ["converse", data, "--answers", str(answers), "--allow-missing", "--resamples", "20"],
        ),
    ]
    if rng.random() < 0.06:
        lines = [("score", ["score", data, "--model", f"clip:{base / 'clip'}", "--workers", "0", "--output", str(out)]),
                 ("finetune", ["finetune", data, "--model", f"clip:{base / 'clip'}", "--steps", "1", "--batch-size", "2", "--output", str(out)])]  # fmt: skip
    out.mkdir(exist_ok=True)
    command, words = rng.choice(lines)
    if "simat" in data and "--resamples" in words and command == "metrics":
        words += ["--lambdas", "1"]
    return command, words, out if command in ("export", "plot") else None, False


def tables(bench: Bench, rng: random.Random) -> Iterator[Attack]:
    """Odd Parquet in a dataset whose manifest knows of it."""
    name = rng.choice(sorted(p.name for p in OLD.iterdir()))
    folder = bench.dataset(name)
    path = rng.choice(sorted(folder.glob("data/*.parquet")))
    path.write_bytes(of.odd_parquet(path.read_bytes(), rng))
    of.describe(folder)
    for _ in range(3):
        yield _on_dataset(name, folder, rng, bench.base)


def manifests(bench: Bench, rng: random.Random) -> Iterator[Attack]:
    """Manifests that lie, or are odd JSON."""
    name = rng.choice(sorted(p.name for p in OLD.iterdir()))
    folder = bench.dataset(name)
    import os
    import socket

    os.mkfifo(folder / "data" / "fifo.parquet")
    (folder / "data" / "link.parquet").symlink_to("/etc/passwd")
    (folder / "data" / "dir.parquet").mkdir()
    with socket.socket(socket.AF_UNIX) as made:
        os.chdir(folder / "data")
        made.bind("sock.parquet")
        os.chdir("/")
    path = folder / "dataset.json"
    is_lie = False
    if rng.random() < 0.6:
        for odd in ("fifo", "link", "dir", "sock"):
            if rng.random() < 0.8:
                target = folder / "data" / f"{odd}.parquet"
                target.rmdir() if odd == "dir" else target.unlink()
        data, is_lie = of.lying(json.loads(path.read_text()), folder, rng)
        path.write_bytes(data)
    else:
        path.write_bytes(of.odd_json(path.read_bytes(), rng))
    if is_lie:
        yield "verify", ["verify", str(folder)], None, True
    for _ in range(2):
        yield _on_dataset(name, folder, rng, bench.base)


def scores(bench: Bench, rng: random.Random) -> Iterator[Attack]:
    """Folders of scores that lie, or hold odd Parquet."""
    name = rng.choice(SCORED)
    place = bench.fresh()
    folder = Path(shutil.copytree(bench.base / "scores" / name, place / "s"))
    manifest = folder / "scores.json"
    way = rng.randrange(3)
    if way == 0:
        path = rng.choice(sorted(folder.glob("data/*.parquet")))
        path.write_bytes(of.odd_parquet(path.read_bytes(), rng))
        of.describe(folder, "scores.json")
    elif way == 1:
        manifest.write_bytes(of.lying(json.loads(manifest.read_text()), folder, rng)[0])
    else:
        manifest.write_bytes(of.odd_json(manifest.read_bytes(), rng))
    data, out = str(OLD / name), place / "out"
    show = ["--show", rng.choice(("text", "json", "csv", "latex"))]
    if name == "simat":
        show += ["--lambdas", "1"]
    yield (
        "metrics",
        ["metrics", data, str(folder), "--resamples", "20", "--output", str(out), *show],
        out,
        False,
    )
    if name == "eq-youcook2":
        kind = rng.choice(("minimality", "equivariance"))
        yield "plot", ["plot", kind, data, str(folder), "--output", str(out / "p.svg")], out, False
    if rng.random() < 0.15:
        model = ["--model", f"clip:{bench.base / 'clip'}", "--workers", "0"]
        yield "score", ["score", data, *model, "--output", str(folder)], None, False


def _inputs(base: Path) -> list[tuple[str, list[str], Path]]:
    """(label, command line with {} for the file, a good file)."""
    ws = base / "workspace"
    videos = ["--videos", str(ws / "videos")]
    plan = ["plan"]
    genome, vlue = ws / "action_genome", ws / "vlue"
    found = [
        ("plan", [*plan, "eq-youcook2", "--annotations", "{}", *videos], ws / "youcook2.json"),
        ("plan", [*plan, "eq-gebc", "--annotations", "{}", *videos], ws / "gebplus.json"),
        ("plan", [*plan, "eq-video", "--captions", "{}", *videos], ws / "captions.jsonl"),
        ("plan", [*plan, "eq-ag", "--objects", "{}", *videos], genome / "object_bbox_and_relationship.pkl"),
        ("plan", [*plan, "eq-ag", "--objects", str(genome / "object_bbox_and_relationship.pkl"), "--frame-list", "{}", *videos], genome / "frame_list.txt"),
        ("plan", [*plan, "hard-positives", "--captions", "{}"], ws / "captions_val2017.json"),
        ("plan", [*plan, "hard-positives", "--pairs", "{}"], base / "files" / "pairs.json"),
        ("plan", [*plan, "training-captions", "--captions", "{}"], base / "files" / "own.jsonl"),
        ("plan", [*plan, "training-captions", "--captions", "{}"], ws / "captions_val2017.json"),
        ("plan", [*plan, "retrieval-perturbations", "--captions", "{}"], ws / "captions_val2017.json"),
        ("plan", [*plan, "simat", "--relationships", "{}", "--images", str(ws / "images")], ws / "relationships.json"),
        ("plan", [*plan, "eq-sd", "--pairs", "2", "--vocabulary", "{}"], Path(ROOT, "generators/diffusion/data/vocabulary.json")),
        ("plan", [*plan, "hard-positives", "--captions", str(ws / "captions_val2017.json"), "--lexicon", "{}"], base / "files" / "lexicon.tsv"),
        *(("plan", [*plan, "vlue", f"--{task}", "{}"], vlue / f"{task}.json") for task in ("retrieval", "nlvr2", "vqa", "captioning", "grounding")),
        ("lint", ["lint", "{}"], base / "files" / "pairs.json"),
        ("lint", ["lint", "--json", "{}"], base / "files" / "pairs.json"),
        ("audit", ["audit", "{}", "--resamples", "20", "--folds", "2"], base / "files" / "pairs.json"),
        ("overlap", ["overlap", str(OLD / "vlue"), "--training-ids", "vg={}", "--output", "{out}/o.parquet"], ws / "image_data.json"),
        ("overlap", ["overlap", str(OLD / "vlue"), "--training-ids", "coco={}", "--output", "{out}/o.parquet"], ws / "captions_val2017.json"),
        ("metrics", ["metrics", "--format", "pairs", "{}", "--resamples", "20", "--output", "{out}"], base / "files" / "own_scores.jsonl"),
        ("metrics", ["metrics", "--format", "pairs", "{}", "--resamples", "20", "--show", "latex"], base / "files" / "own_scores.csv"),
        ("metrics", ["metrics", "--format", "foils", "{}", "--resamples", "20", "--show", "csv"], base / "files" / "foils.csv"),
        ("metrics", ["metrics", "--format", "hard-positives", "{}", "--quantity", "logit", "--resamples", "20"], base / "files" / "hp.csv"),
        ("metrics", ["metrics", "--format", "boundaries", "{}", "--resamples", "20"], base / "files" / "boundaries.jsonl"),
        ("metrics", ["metrics", "--format", "gap", "{}", "{}", "--show", "latex"], base / "files" / "metrics.json"),
        ("metrics", ["metrics", str(OLD / "vlue"), "{}", "--allow-missing", "--resamples", "20"], base / "files" / "vlue.jsonl"),
        ("plot", ["plot", "drops", "{}", "--metric", "n = 1", "--output", "{out}/p.svg"], base / "files" / "metrics.json"),
        ("plot", ["plot", "lambdas", "{}", "--output", "{out}/p.svg"], base / "files" / "metrics.json"),
        ("plot", ["plot", "pareto", "{}", "--output", "{out}/p.svg"], base / "files" / "front.json"),
        ("pareto", ["pareto", "{}"], base / "files" / "paper.csv"),
        ("pareto", ["pareto", "{}", "--dataset", str(OLD / "eq-youcook2"), "--scores", str(base / "scores" / "eq-youcook2")], base / "files" / "speed.json"),
        ("converse", ["converse", str(OLD / "eq-video"), "--answers", "{}", "--allow-missing", "--resamples", "20", "--show", "latex"], base / "files" / "answers.jsonl"),
        ("assets", ["assets", "list", "--manifest", "{}"], Path(ROOT, "generators/scenes/data/assets.json")),
        ("assets", ["assets", "check", "--manifest", "{}"], Path(ROOT, "generators/scenes/data/assets.json")),
    ]  # fmt: skip
    return found


def _warm_up(base: Path) -> None:
    """Runs the commands on good files: what is imported once is nothing that an input takes."""
    from tests.attacks import harness

    limits = harness.MOST_S, harness.WAITING_S, harness.FREE_BYTES
    harness.MOST_S, harness.WAITING_S, harness.FREE_BYTES = 1_000, 3_000, 1 << 40
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "d").mkdir()
        lines = [
            (label, _aimed(words, str(good), Path(name))) for label, words, good in _inputs(base)
        ]
        for dataset in ("eq-youcook2", "hard-positives"):
            made = (_on_dataset(dataset, OLD / dataset, rng, base, Path(name)) for _ in range(40))
            lines += list({label: (label, words) for label, words, *_ in made}.values())
        for label, words in lines:
            result = attempt(words, children=True)
            if result.status not in (0, 1, 3):
                print(
                    f"good input, {label}: {result.status} {result.said[-300:]!a}", file=sys.stderr
                )
    harness.MOST_S, harness.WAITING_S, harness.FREE_BYTES = limits


def _files(base: Path) -> None:
    from tests.fuzz import score_targets as good

    place = base / "files"
    place.mkdir(exist_ok=True)
    sample = json.loads("{}")
    sample |= {
        "id": 1,
        "image_path": "1.jpg",
        "true_caption": "a red car on a road",
        "false_caption": "a blue car on a road",
    }
    for name, data in {
        "pairs.json": json.dumps(
            [
                sample,
                sample
                | {"id": 2, "true_caption": "two dogs run", "false_caption": "three dogs run"},
            ]
        ).encode(),
        "own.jsonl": b'{"image": "1.jpg", "caption": "two dogs run", "id": "1", "split": "test"}\n',
        "lexicon.tsv": good._LEXICON,
        "own_scores.jsonl": good._OWN_LINES,
        "own_scores.csv": good._OWN_CSV,
        "foils.csv": b"sample_id,value_0,value_1,cluster,subset\na,1,0,v,s\nb,0,1,v,s\n",
        "hp.csv": b"sample_id,value_0,value_1,value_2,cluster,subset\na,1,0,1,v,s\nb,0,1,0,v,s\n",
        "boundaries.jsonl": good._lines(good._BOUNDARY),
        "metrics.json": good.METRICS,
        "vlue.jsonl": good._VLUE.replace(b'"n"', b'"nlvr2/a40ca42da617"')
        .replace(b'"v"', b'"vqa/4"')
        .replace(b'"g"', b'"grounding/9/c5d0304020a4"'),
        "front.json": good._json(
            good._FRONT | {"models": [good._CONTESTANT | {"model": "a", "score": 0.5}]}
        ),
        "paper.csv": b"model,score,seconds,score_low,score_high\na,1,2,0.5,1.5\nb,2,3,2,2\n",
        "speed.json": good._json(good._SPEED),
        "answers.jsonl": good._lines(
            good._ANSWER | {"sample_id": "eq-video/demoCoffee1.mp4/own-006-own-007"}
        ),
    }.items():
        (place / name).write_bytes(data)


def _aimed(words: list[str], path: str, out: Path) -> list[str]:
    return [word.replace("{out}", str(out)).replace("{}", path) for word in words]


def files(bench: Bench, rng: random.Random) -> Iterator[Attack]:
    """Odd content, or an odd name, of a file that a command reads."""
    label, words, good = rng.choice(_inputs(bench.base))
    place = bench.fresh()
    out = place / "out"
    out.mkdir()
    data = good.read_bytes()
    suffix = "".join(good.suffixes)
    if suffix == ".pkl":
        odd = rng.choice(
            (
                of.bombs(rng)[".pt"],
                of.odd_json(b"[1]", rng),
                data[: rng.randrange(len(data))],
                data.replace(
                    b"holding", rng.choice(of.TEXTS)[:7].encode("utf-8", "replace").ljust(7)[:7]
                ),
            )
        )
    elif suffix in (".csv", ".tsv", ".txt"):
        text, cell = data.decode(), rng.choice(of.TEXTS).encode("utf-8", "replace").decode()
        cells = text.replace("\n", "\t").replace(",", "\t").split("\t")
        odd = rng.choice((
            text.replace(rng.choice([c for c in cells if c]), cell, 1).encode(), text.replace(rng.choice([c for c in cells if c]), '"' + cell.replace('"', '""') + '"', 1).encode(),
            data.replace(b"\n", b"\r"), data.decode().encode("utf-16"), b"\xef\xbb\xbf" + data, data + b"\xff\n", data.replace(b",", b";"), data + data, b'"' + data, data.replace(b"\n", b"\n\n\x00"), data * 2_000,
            data.replace(b"1", b"1" * 5_000), data.replace(b"1", "١".encode()), data.replace(b"1", b"nan"), data.replace(b"1", b"1e400"), data.replace(b"1", b"1_0"),
        ))  # fmt: skip
    else:
        odd = of.odd_json(data, rng)
    name = rng.choice(list(of.odd_names())) if rng.random() < 0.25 else "f"
    path = place / (name + suffix)
    try:
        path.write_bytes(data if name != "f" and rng.random() < 0.5 else odd)
    except (OSError, ValueError):
        return
    if str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace") != str(path):
        return
    yield label, _aimed(words, str(path), out), out, False


def kinds(bench: Bench, rng: random.Random) -> Iterator[Attack]:
    """Folders, pipes, sockets, devices and links in the place of a file that a command reads."""
    label, words, good = rng.choice(_inputs(bench.base))
    place = bench.fresh()
    out = place / "out"
    out.mkdir()
    for _, path in of.no_files(place / "k", good):
        yield label, _aimed(words, str(path), out), None, False
    for _, path in of.no_files(place / "k", OLD):
        command = rng.choice(("verify", "inspect", "lint", "audit", "metrics", "score"))
        more = (
            [str(bench.base / "scores" / "simat")]
            if command == "metrics"
            else ["--model", "clip:/nowhere", "--output", str(out)]
            if command == "score"
            else []
        )
        yield command, [command, str(path), *more], None, False


def vectors(bench: Bench, rng: random.Random) -> Iterator[Attack]:
    """Arrays and tensors that lie, as scores and as matrix oracles."""
    place = bench.fresh()
    made = of.bombs(rng)
    suffix = rng.choice(list(made))
    path = place / f"v{suffix}"
    path.write_bytes(made[suffix])
    yield "metrics", ["metrics", "--format", "eqben", str(path), "--resamples", "20"], None, False
    (place / "rows.txt").write_text("\n".join(f"k{n}" for n in range(8)))
    (place / "columns.txt").write_bytes(
        rng.choice((b"a\nb\n", b"a\na\n", b"\xff", b"", b"\x1b[2J\n", b"a" * 10**6))
    )
    oracle = f"matrix:{path},rows={place / 'rows.txt'},columns={place / 'columns.txt'}"
    yield (
        "score (matrix)",
        [
            "score",
            str(OLD / "eq-video"),
            "--model",
            oracle,
            "--workers",
            "0",
            "--output",
            str(place / "out"),
        ],
        None,
        False,
    )
    if rng.random() < 0.5:
        yield (
            "metrics",
            [
                "metrics",
                str(OLD / "simat"),
                str(bench.base / "scores" / "simat"),
                "--lambdas",
                "1",
                "--resamples",
                "20",
                "--oracle",
                oracle,
            ],
            None,
            False,
        )
    if rng.random() < 0.3:
        work = place / "run" / "_work"
        saved = work / "checkpoint-1"
        saved.mkdir(parents=True)
        (work / "run.json").write_bytes(of.odd_json(b'{"model": "m", "steps": 3}', rng))
        (saved / "optimizer.bin").write_bytes(made[".pt"])
        (place / "run" / rng.choice(("log.jsonl", "training.json"))).write_bytes(
            of.odd_json(b'{"step": 1}', rng)
        )
        yield (
            "finetune",
            [
                "finetune",
                str(OLD / "eq-video"),
                "--model",
                f"clip:{bench.base / 'clip'}",
                "--steps",
                "1",
                "--batch-size",
                "2",
                "--output",
                str(place / "run"),
            ],
            None,
            False,
        )


def archives(bench: Bench, rng: random.Random) -> Iterator[Attack]:
    """Archives of assets with odd members, in a manifest that pins them."""
    import hashlib
    import tarfile

    place = bench.fresh()
    names = (
        "a/visual_geometry.obj",
        "../../x",
        "/etc/x",
        "a/../../x",
        "visual_geometry.obj",
        "a/" + "b/" * 300 + "c",
        "a/x" * 90,
        ".",
        "",
        "a",
        "a/visual_geometry.obj/x",
        "a/\x1b[2J.obj",
        "a/\u202e.obj",
        "a/con\n.obj",
        "A/Visual_Geometry.OBJ",
    )
    members = (
        tarfile.REGTYPE,
        tarfile.SYMTYPE,
        tarfile.LNKTYPE,
        tarfile.CHRTYPE,
        tarfile.FIFOTYPE,
        tarfile.DIRTYPE,
        b"9",
        tarfile.CONTTYPE,
        tarfile.GNUTYPE_SPARSE,
        b"\x00",
        b"x",
        b"g",
        b"L",
        b"K",
    )
    body = rng.choice(
        (
            b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n",
            b"mtllib /etc/passwd\nf 1 2 99999999999\n",
            b"",
            b"\xff" * 900,
            b"v nan inf 1e999\n" * 50,
            b"call /etc/passwd\ncsh id\n",
        )
    )
    data = of.tarred(
        rng.choice(names),
        body,
        rng.choice(members),
        rng.choice(("/etc/passwd", "../../../etc", "a", "")),
    )
    data = rng.choice(
        (
            data,
            data,
            data,
            data[: len(data) // 2],
            data + data,
            b"PK\x03\x04",
            b"",
            b"\x1f\x8b\x08\x00" + bytes(40),
            gzip.compress(gzip.compress(data)),
        )
    )
    (place / "a.tar.gz").write_bytes(data)
    entry = {
        "asset_type": "FileBasedObject",
        "id": "a",
        "kwargs": {
            "bounds": [[-1, -1, 0], [1, 1, 1]],
            "mass": 1.0,
            "render_filename": "{asset_dir}/visual_geometry.obj",
            "simulation_filename": "{asset_dir}/object.urdf",
        },
        "license": "x",
        "metadata": {"category": "toys"},
        "num_bytes": len(data),
        "path": "a.tar.gz",
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    if rng.random() < 0.4:
        entry = of._texted(entry, rng)
    manifest = place / "m.json"
    manifest.write_text(
        json.dumps(
            {
                "name": "x",
                "data_dir": ".",
                "version": "1",
                "assets": {rng.choice(("a", "a", *of.TEXTS)): entry},
            }
        )
    )
    for words in (["check"], ["fetch", "--output", str(place / "out")]):
        yield "assets", ["assets", words[0], "--manifest", str(manifest), *words[1:]], None, False


def builds(bench: Bench, rng: random.Random) -> Iterator[Attack]:
    """Builds of captions, own videos and user's pictures with odd contents; the card is looked at."""
    place = bench.fresh()
    out, images = place / "out", place / "images"
    images.mkdir()
    names = ["1.jpg", "2.jpg", "3.png"]
    for name in names:
        (images / name).write_bytes(rng.choice(of.odd_pictures()))
    text = rng.choice(of.TEXTS)
    way = rng.randrange(4)
    if way == 3:
        videos = place / "v"
        videos.mkdir()
        body = rng.choice(
            (
                b"#EXTM3U\n#EXTINF:1,\n/etc/passwd\n",
                b"ffconcat version 1.0\nfile /etc/passwd\n",
                b"v=0\no=- 0 0 IN IP4 127.0.0.1\nm=video 1 RTP/AVP 96\n",
                b"<MPD><Period/></MPD>",
                b"[Reference]\nRef1=http://127.0.0.1/\n",
                b"",
                b"\x1aE\xdf\xa3" + b"\xff" * 99,
                b"\x00\x00\x00\x18ftypmp42" + b"\xff" * 99,
                of.POSTSCRIPT,
                *of.odd_pictures()[:5],
            )
        )
        (videos / "a.mp4").write_bytes(body)
        lines = [
            {
                "video": "a.mp4",
                "timestamp_s": n,
                "caption": rng.choice((f"a cat {n}", text)),
                "licence": text,
                "split": rng.choice(("val", text)),
                rng.choice(("extra", text)): text,
            }
            for n in (0, 1)
        ]
        (place / "c.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        words = [
            "build",
            "eq-video",
            "--captions",
            str(place / "c.jsonl"),
            "--videos",
            str(videos),
            "--max-error-rate",
            "1",
        ]
    else:
        lines = [
            {
                "image": rng.choice((name, text)),
                "caption": rng.choice(("a red dog sits on a table", text)),
                "id": rng.choice((str(n), text)),
                "split": rng.choice(("test", text)),
            }
            for n, name in enumerate(names)
        ]
        try:
            path = place / (rng.choice(("own", *of.odd_names())) + ".jsonl")
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        except (OSError, ValueError):
            return
        name = ("training-captions", "retrieval-perturbations", "hard-positives")[way]
        words = ["build", name, "--captions", str(path), "--max-error-rate", "1"]
        if rng.random() < 0.6:
            words += ["--images", str(images)]
    try:
        yield "build", [*words, "--output", str(out)], out, False
    except UnicodeEncodeError:
        return


FAMILIES: dict[str, tuple[Callable[[Bench, random.Random], Iterator[Attack]], float]] = {
    "tables": (tables, 0.2),
    "manifests": (manifests, 0.2),
    "scores": (scores, 0.15),
    "files": (files, 0.4),
    "kinds": (kinds, 0.03),
    "vectors": (vectors, 0.2),
    "archives": (archives, 0.1),
    "builds": (builds, 0.02),
    "imports": (imports.imports, 0.4),
    "settings": (settings.settings, 0.4),
    "servers": (servers.servers, 0.1),
}


def attack(
    families: list[str], inputs: int, base: Path, seed: int, keep: Path
) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """Makes attacks of the families in turn; returns counts of (command, outcome) and findings."""
    outcomes: Counter[tuple[str, str]] = Counter()
    findings: Counter[str] = Counter()
    rounds = random.Random(seed)
    weights = [FAMILIES[name][1] for name in families]
    with tempfile.TemporaryDirectory() as scratch:
        of.install_ghostscript(Path(scratch, "bin"))
        bench = Bench(base, Path(scratch, "x"))
        for number in itertools.count():
            if outcomes.total() >= inputs:
                break
            if number % 20 == 0:
                _tell(outcomes, findings, keep / "counts.txt")
            family = rounds.choices(families, weights)[0]
            for each in FAMILIES[family][0](bench, random.Random(f"{family} {seed} {number}")):
                _make(each, family, f"{family}-{seed}-{number}", bench, outcomes, findings, keep)
    return outcomes, findings


def _make(
    each: Attack,
    family: str,
    place: str,
    bench: Bench,
    outcomes: Counter[tuple[str, str]],
    findings: Counter[str],
    keep: Path,
) -> None:
    """Makes one attack, and counts and keeps what came of it."""
    label, words, written, is_lie = each
    result = attempt(words, written, children=family in ("builds", "servers"))
    found = list(result.findings)
    if family in ("imports", "settings", "servers"):
        found += imports.after(bench.place, label, result.status)
    if is_lie and result.status == 0:
        found.append(("a lie is sound", result.printed[-300:]))
    if of.MARK.exists():
        found.append(("executed", ""))
        of.MARK.unlink()
    outcomes[label, _named(result)] += 1
    for name, detail in found:
        key = f"{label}: {name}"
        findings[key] += 1
        if findings[key] <= 3:
            print(f"{place}: {key!a}", file=sys.stderr, flush=True)
            _keep(keep / place, words, name, detail, bench.place)


def _tell(outcomes: Counter[tuple[str, str]], findings: Counter[str], file: Path) -> None:
    lines = [f"{count:6,} {label}: {what}" for (label, what), count in sorted(outcomes.items())]
    lines += [f"{outcomes.total():6,} inputs"]
    lines += [f"FOUND {count:6,} {name!a}" for name, count in sorted(findings.items())]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")


def _named(result: Result) -> str:
    return {0: "read", 1: "faults", 2: "refused", 3: "read"}.get(result.status or 0, "other")


def _keep(place: Path, words: list[str], name: str, detail: str, made: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    with (place / "finding.txt").open("a") as stream:
        stream.write(ascii(f"{name}\n{words}\n{detail}").replace("\\n", "\n") + "\n\n")
    if made.exists() and not (place / "made").exists():
        import subprocess

        subprocess.run(["cp", "-a", str(made), str(place / "made")], check=False)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("family", choices=("all", *FAMILIES))
    parser.add_argument("--inputs", type=int, default=6_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir(), "eqforge-attacks"))
    options = parser.parse_args()
    if options.family != "imports":
        prepare(options.base)
        _files(options.base)
    if options.family in ("imports", "settings", "servers"):
        imports.warm_up()
    else:
        _warm_up(options.base)
    families = list(FAMILIES) if options.family == "all" else [options.family]
    outcomes, findings = attack(families, options.inputs, options.base, options.seed, options.keep)
    _tell(outcomes, findings, options.keep / "counts.txt")
    print((options.keep / "counts.txt").read_text(), end="")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
