"""Heads on stored vectors: averaged word vectors of a .vec file, and colours of image tiles."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from eqforge.cli import main as eqforge
from eqforge.core.identity import derive_seed
from eqforge.evaluation.tables.crossed import read_crossed
from eqforge.schemas.dataset.reader import open_dataset
from tests.made_datasets import built, write_captions
from tests.optional import optional
from tests.statuses import status_of

optional("transformers")
torch = optional("torch")

main = status_of(eqforge)

LARGE = ["--device", "cpu", "--workers", "0", "--preset", "simat-paper", "--batch-size", "7"]
TEXT = "a on the box red blue green grey left right man dog is touching biting ball"
WORDS = sorted(TEXT.split())


def read_words(path: Path) -> dict[str, np.ndarray]:
    head, *lines = path.read_text().splitlines()
    words = {word: np.array(rest, np.float64) for word, *rest in map(str.split, lines)}
    assert head == f"{len(words)} {len(words['a'])}"
    return words


def store(path: Path, dataset: Path, columns: str, words: dict[str, np.ndarray]) -> None:
    """Runs the guide's script on the mean of words, and on the colours of 3 x 3 tiles of images."""
    page = (Path(__file__).parents[3] / "docs/guides/training.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n([^`]*np\.savez[^`]*)```", page)
    script = script.replace("out/simat", str(dataset)).replace("simat.npz", str(path))
    if columns:
        script = re.sub(r"columns = .*", columns, script)

    def encode_text(text: str) -> np.ndarray:
        return np.mean([words[word] for word in text.lower().strip(".").split()], axis=0)

    def encode_image(image: Image.Image) -> np.ndarray:
        return np.asarray(image.resize((3, 3))).ravel() / 255

    exec(script, {"encode_text": encode_text, "encode_image": encode_image})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("stored")
    rng = np.random.default_rng(0)
    lines = [" ".join([word, *map(str, rng.normal(size=6).round(4))]) for word in WORDS]
    (root / "words.vec").write_text("\n".join([f"{len(WORDS)} 6", *lines]) + "\n")
    words = read_words(root / "words.vec")
    write_captions(root / "captions")
    store(root / "captions.npz", root / "captions", 'columns = [data.table()["text"]]', words)
    store(root / "simat.npz", built("simat"), "", words)
    return root


def train(folder: Path, output: Path, *more: str, vectors: str = "captions.npz") -> list[str]:
    model = f"vectors:{folder / vectors}"
    line = ["finetune", str(folder / "captions"), "--model", model, "--output", str(output)]
    return [*line, *LARGE, *more]


def score(vectors: Path, output: Path, heads: Path | None = None) -> list[str]:
    model = f"vectors:{vectors}" + ("" if heads is None else f",heads={heads}")
    return ["score", str(built("simat")), "--model", model, "--output", str(output)]


@pytest.fixture(scope="module")
def heads(folder: Path) -> Path:
    assert main(train(folder, folder / "heads", "--steps", "1")) == 0
    return folder / "heads"


def read_matches(folder: Path) -> tuple[Any, Any]:
    """The vectors of each caption with an image, in any order."""
    arrays = np.load(folder / "captions.npz")
    images = dict(zip(arrays["image_ids"].tolist(), arrays["image_vectors"], strict=True))
    captions = dict(zip(arrays["captions"].tolist(), arrays["caption_vectors"], strict=True))
    rows = open_dataset(str(folder / "captions")).rows("samples", ("image_id", "role", "text"))
    pairs = [
        (images[row["image_id"]], captions[row["text"]])
        for row in rows
        if row["role"] == "original" and row["image_id"] is not None
    ]
    sides = zip(*pairs, strict=True)
    return tuple(torch.tensor(np.stack(side), dtype=torch.float32) for side in sides)


def new_heads(mlp: bool) -> Any:
    """The start of training, from the seed of the command."""
    from torch import nn

    torch.manual_seed(derive_seed(0, "heads", "start", 1))
    image, text = nn.Linear(27, 512), nn.Linear(6, 512)
    more = [part for _ in range(3) for part in (nn.ReLU(), nn.Linear(512, 512))]
    with torch.no_grad():
        for head in (text,) if mlp else (image, text):
            head.weight.copy_(torch.eye(*head.weight.shape) + 0.01 * head.weight)
            head.bias.copy_(0.01 * head.bias)
    return nn.ModuleDict({"image": nn.Sequential(image, *more) if mlp else image, "text": text})


@pytest.mark.parametrize("mlp", [False, True])
def test_heads_of_stored_vectors_are_trained_and_score_simat(
    folder: Path, tmp_path: Path, mlp: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Compare loss, weights and vectors with an independent training loop."""
    more = ["--epochs", "3", *(["--train", "mlp-heads"] if mlp else [])]
    assert main(train(folder, tmp_path / "heads", *more)) == 0
    images, captions = read_matches(folder)
    assert (images.shape, captions.shape) == ((7, 27), (7, 6))
    heads = new_heads(mlp)
    optimizer = torch.optim.AdamW(heads.parameters(), 1e-3, (0.9, 0.98), 1e-6, weight_decay=0)
    losses = []
    for _ in range(3):
        left, right = heads["image"](images), heads["text"](captions)
        cosines = torch.nn.functional.cosine_similarity(left[:, None], right[None], dim=-1)
        each = [-torch.log_softmax(10 * s, dim=1).diagonal().mean() for s in (cosines, cosines.T)]
        loss = sum(each) / 2
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(heads.parameters(), 1.0)
        optimizer.step()
    log = [json.loads(line) for line in (tmp_path / "heads/log.jsonl").read_text().splitlines()]
    assert [entry["infonce"] for entry in log] == pytest.approx(losses, abs=1e-5)
    assert log[-1]["loss"] < log[0]["loss"]

    assert main(score(folder / "simat.npz", tmp_path / "scores", tmp_path / "heads")) == 0
    found = read_crossed(str(tmp_path / "scores"), open_dataset(str(built("simat"))))
    stored = np.load(folder / "simat.npz")
    for side, keys, values in (
        ("image", "image_ids", "image_vectors"),
        ("text", "captions", "caption_vectors"),
    ):
        with torch.no_grad():
            projected = heads[side](torch.tensor(stored[values], dtype=torch.float32))
        unit = torch.nn.functional.normalize(projected, dim=1).numpy()
        expected = dict(zip(stored[keys].tolist(), unit, strict=True))
        kind: Any = "images" if side == "image" else "captions"
        names = found.images if side == "image" else found.captions
        assert set(names) == set(expected)
        np.testing.assert_allclose(
            found.vectors[kind], np.stack([expected[name] for name in names]), atol=1e-5
        )
    capsys.readouterr()
    metrics = ["metrics", str(built("simat")), str(tmp_path / "scores"), "--resamples", "20"]
    assert main([*metrics, "--output", str(tmp_path / "m")]) == 0
    table = ["tables", str(tmp_path / "m"), "--paper", "simat", "--labels", "FastText"]
    assert main(table) == 0
    assert "(yours)" in capsys.readouterr().out


def test_the_heads_of_a_killed_training_are_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    assert main(train(folder, tmp_path / "straight", "--steps", "60")) == 0
    line = train(folder, tmp_path / "killed", "--steps", "60", "--checkpoint-every", "4")
    command = [sys.executable, "-m", "eqforge", *line]
    with subprocess.Popen(
        command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL
    ) as process:
        log = tmp_path / "killed/log.jsonl"
        while not log.exists() or log.read_bytes().count(b"\n") < 10:
            assert process.poll() is None, "it has to be killed before it ends"
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
    assert not (tmp_path / "killed/training.json").exists()
    assert main(line) == 0
    for name in ("model.safetensors", "log.jsonl"):
        read = [(tmp_path / run / name).read_bytes() for run in ("straight", "killed")]
        assert read[0] == read[1], name


def change(name: str, value: Any) -> Any:
    return lambda arrays: arrays | {name: value(arrays[name])}


def not_finite(vectors: np.ndarray) -> np.ndarray:
    return np.where(np.arange(len(vectors))[:, None] == 1, np.nan, vectors)


WRONG = [
    (
        change("image_ids", lambda ids: [*ids[1:], "x"]),
        "has no vectors for 1 image of the dataset",
    ),
    (change("captions", lambda texts: [*texts[1:], "x"]), "has no vectors for 1 caption of"),
    (change("captions", lambda texts: texts[1:]), "'captions', but "),
    (change("captions", lambda texts: [texts[1], *texts[1:]]), " twice"),
    (change("image_vectors", not_finite), "has a non-finite value"),
    (change("image_vectors", lambda vectors: vectors[0]), "and 'image_vectors' N x D floats"),
    (change("image_ids", lambda ids: np.arange(len(ids))), "'image_ids' must contain N strings"),
    (lambda arrays: {"captions": arrays["captions"]}, "contains no array 'image_ids'"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_wrong_vectors_are_one_clear_error_before_any_work(
    folder: Path,
    heads: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    wrong: Any,
    message: str,
) -> None:
    path = tmp_path / "wrong.npz"
    line = train(tmp_path, tmp_path / "out", vectors="wrong.npz")
    line[1] = str(folder / "captions")
    for data, command in (
        ("captions.npz", [*line, "--loss", "infonce", "--loss", "hard-negative"]),
        ("simat.npz", score(path, tmp_path / "out", heads)),
    ):
        with np.load(folder / data) as arrays:
            np.savez(path, **wrong(dict(arrays)))
        assert main(command) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"eqforge: {path}")
        assert message in error
        assert error.count("\n") == 1
        assert not (tmp_path / "out").exists()


def test_vectors_of_two_lengths_need_their_heads(
    folder: Path, heads: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    simat = folder / "simat.npz"
    with np.load(simat) as found:
        arrays = dict(found)
    zero = {name: np.zeros_like(arrays[name]) for name in ("image_vectors", "caption_vectors")}
    np.savez(tmp_path / "zero.npz", **arrays | zero)
    np.savez(tmp_path / "short.npz", **arrays | {"image_vectors": arrays["image_vectors"][:, :5]})
    (tmp_path / "empty").mkdir()
    for command, message in (
        (score(simat, tmp_path / "s"), "image vectors have 27 dimensions, but caption vectors"),
        (score(tmp_path / "zero.npz", tmp_path / "s"), "is zero"),
        (
            score(tmp_path / "short.npz", tmp_path / "s", heads),
            "image vectors have 5 dimensions, but their",
        ),
        (score(simat, tmp_path / "s", tmp_path / "empty"), "No such file or directory"),
        (train(folder, tmp_path / "o", "--train", "all"), "stored vectors have no encoder"),
        (train(folder, tmp_path / "o", vectors="none.npz"), "none.npz: no such file"),
        (
            [*train(folder, tmp_path / "o", "--train", "mlp-heads"), "--model", "clip:x"],
            "--train mlp-heads works only with models of kind vectors",
        ),
    ):
        assert main(command) == 2, message
        assert message in capsys.readouterr().err
    assert not (tmp_path / "s").exists()
    assert not (tmp_path / "o").exists()
