"""Zero-shot classification, against plain NumPy on the same model's vectors."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from eqforge.evaluation.scoring.classify import main as command
from eqforge.evaluation.scoring.classify import ranks
from eqforge.evaluation.tables.papers import main as tables_command
from eqforge.models.scorer import Picture, is_dual_encoder
from eqforge.models.spec import load_scorer, parse_specs
from tests.optional import optional
from tests.statuses import status_of
from tests.tiny_models import save_clip

optional("transformers")
optional("torch")

main, tables = status_of(command), status_of(tables_command)
NAMES = ("red_cup", "dog", "cat", "blue box", "two dogs", "a horse")
TEMPLATES = ("a photo of a {}.", "a drawing of the {}")


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng, folder = np.random.default_rng(2), tmp_path_factory.mktemp("images") / "ImageNet1k"
    for name in NAMES:
        (folder / name).mkdir(parents=True)
        for number in range(4):
            pixels = rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model") / "clip"
    save_clip(folder)
    return f"clip:{folder}"


def accuracies(model: str, images: Path) -> tuple[float, float]:
    """Top-1 and top-5 accuracy by sorting, one image and one prompt at a time."""
    scorer = load_scorer(parse_specs(model)[0])
    assert is_dual_encoder(scorer)
    classes = []
    for name in sorted(NAMES):
        prompts = [text.format(name.replace("_", " ")) for text in TEMPLATES]
        mean = np.mean([scorer.encode_captions([prompt])[0] for prompt in prompts], axis=0)
        classes.append(mean / np.sqrt((mean**2).sum()))
    hits = []
    for place, name in enumerate(sorted(NAMES)):
        for file in sorted((images / name).iterdir()):
            picture = Picture(key=file.name, pixels=np.asarray(Image.open(file)))
            (vector,) = scorer.encode_images([scorer.prepare(picture)])
            order = sorted(range(len(NAMES)), key=lambda one: -float(classes[one] @ vector))
            hits.append((order[0] == place, place in order[:5]))
    first, fifth = np.mean(hits, axis=0)
    return float(first), float(fifth)


def test_accuracy_is_that_of_the_most_similar_class(
    images: Path, model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--model", model, "--templates", *TEMPLATES, "--image-batch", "5"]
    assert main([str(images), *arguments, "--output", str(tmp_path / "out")]) == 0
    assert "ImageNet1k: zero-shot classification, 6 classes" in capsys.readouterr().out
    measures = json.loads((tmp_path / "out/metrics.json").read_text())["measures"]
    found = {one["metric"]: one for one in measures}
    first, fifth = accuracies(model, images)
    assert (found["Acc@1"]["value"], found["Acc@5"]["value"]) == pytest.approx((first, fifth))
    assert 0 < first < fifth < 1
    assert (found["Acc@1"]["chance"], found["Acc@5"]["chance"]) == pytest.approx((1 / 6, 5 / 6))
    assert all(one["low"] < one["value"] < one["high"] for one in found.values())

    label = ["--paper", "hard-positives", "--labels", "CLIP ViT-B/32"]
    assert tables([str(tmp_path / "out"), *label]) == 0
    line = next(x for x in capsys.readouterr().out.splitlines() if "(yours)" in x)
    assert line.split()[3:5] == [f"{100 * first:.2f}", f"{100 * fifth:.2f}"]


def test_names_stand_in_a_file(images: Path, model: str, tmp_path: Path) -> None:
    names = tmp_path / "names.tsv"
    names.write_text("".join(f"{name}\t{name.replace('_', ' ')}\n" for name in NAMES))
    found = []
    for number, more in enumerate(([], ["--names", str(names)])):
        output = tmp_path / str(number)
        assert main([str(images), "--model", model, *more, "--output", str(output)]) == 0
        found.append((output / "metrics.json").read_bytes())
    assert found[0] == found[1]


def test_vectors_that_overflow_are_an_error(
    images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import torch
    from transformers import CLIPModel

    save_clip(tmp_path)
    broken = CLIPModel.from_pretrained(tmp_path)
    with torch.no_grad():
        broken.visual_projection.weight.fill_(float("nan"))
    broken.save_pretrained(tmp_path)
    assert main([str(images), "--model", f"clip:{tmp_path}"]) == 2
    assert "0.png: the model's vector is not finite" in " ".join(capsys.readouterr().err.split())


def test_a_class_that_ties_with_the_true_one_stands_before_it() -> None:
    similarities = np.array([[0.5, 0.5, 0.1], [0.2, 0.9, 0.3]])
    assert ranks(similarities, np.array([0, 2])).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["I/dog"], "expected subfolders for 2 or more classes, found 0"),
        (["nowhere"], "nowhere: expected a folder with one subfolder of images per class"),
        (["E"], "E/b contains no images"),
        (["I", "--templates", "a dog"], "--templates 'a dog': expected {}"),
        (["I", "--templates"], "--templates: pass at least one prompt"),
        (["I", "--names", "D"], "two classes are named 'dog'"),
        (["I", "--image-batch", "0"], "--image-batch 0: expected at least 1"),
        (["I", "--names", "N"], "N has no line for the folder 'a horse'"),
        (["I", "--names", "W"], "W: line 1: expected FOLDER<TAB>NAME"),
        (["B"], "0.png cannot be decoded"),
    ],
)
def test_wrong_input_is_one_clear_error(
    images: Path,
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("I").symlink_to(images)
    for name in ("E/a", "E/b", "B/a", "B/b"):
        Path(name).mkdir(parents=True)
    (tmp_path / "E/a/0.png").write_bytes((images / "dog/0.png").read_bytes())
    for name in ("B/a/0.png", "B/b/0.png"):
        Path(name).write_bytes(b"no image")
    Path("N").write_text("dog\tdog\n")
    Path("W").write_text("dog\n")
    Path("D").write_text("".join(f"{name}\tdog\n" for name in NAMES))
    assert main([*arguments, "--model", model]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("names", "data", "coarse"),
    [("batches.meta.txt", "test_batch.bin", b""), ("fine_label_names.txt", "test.bin", b"\x07")],
)
def test_cifar_counts_as_folders_of_its_images_do(
    tmp_path: Path, model: str, names: str, data: str, coarse: bytes
) -> None:
    rng, cifar, folder = np.random.default_rng(5), tmp_path / "cifar", tmp_path / "folder"
    cifar.mkdir()
    (cifar / names).write_text("".join(f"{name}\n" for name in NAMES) + "\n")
    records = b""
    for number in rng.permutation(4 * len(NAMES)):
        name, pixels = NAMES[number % len(NAMES)], rng.integers(0, 256, (32, 32, 3), dtype=np.uint8)
        records += coarse + bytes([number % len(NAMES)]) + pixels.transpose(2, 0, 1).tobytes()
        (folder / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / name / f"{number}.png")
    (cifar / data).write_bytes(records)
    found = []
    for images in (folder, cifar):
        out = tmp_path / f"{images.name}-table"
        assert main([str(images), "--model", model, "--output", str(out)]) == 0
        found.append(json.loads((out / "metrics.json").read_text())["measures"])
    assert found[0] == found[1]


def test_a_cut_file_of_cifar_is_one_error(
    tmp_path: Path, model: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "batches.meta.txt").write_text("cat\ndog\n")
    (tmp_path / "test_batch.bin").write_bytes(bytes(3_000))
    assert main([str(tmp_path), "--model", model]) == 2
    assert (
        "expected images of 3,073 bytes each, found 3,000 bytes in all" in capsys.readouterr().err
    )
    (tmp_path / "test_batch.bin").write_bytes(bytes([2]) + bytes(3_072))
    assert main([str(tmp_path), "--model", model]) == 2
    assert "uses class 2 (counted from 0), but" in capsys.readouterr().err
