"""The command `eqforge classify`: zero-shot classification, as in hard positives' table 10."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tyro
from numpy.typing import NDArray

from eqforge.core.errors import InputError
from eqforge.core.files.typed_json import read_bytes, text_lines
from eqforge.core.shell import Command
from eqforge.evaluation.tables.command import write_tables
from eqforge.evaluation.tables.render import Report, Rules
from eqforge.evaluation.tables.report import Judged, make_report, model_names

if TYPE_CHECKING:
    from eqforge.models.scorer import DualEncoder

KS = (1, 5)
_CIFAR = {"batches.meta.txt": ("test_batch.bin", 1), "fine_label_names.txt": ("test.bin", 2)}
"""CIFAR-10 and CIFAR-100: the test images beside the file of names, and each image's labels, of
which the last counts."""
_SIDE_PX = 32

Image = Path | NDArray[np.uint8]
"""An image file, or decoded pixels [h, w, 3]."""

_CAPTIONS = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class ClassifySettings:
    """Classify images zero-shot, by their similarity to prompts such as "a photo of a dog"."""

    images: tyro.conf.Positional[Path]
    """Folder with one subfolder of images per class (ImageFolder), or with CIFAR's binary files."""

    model: str
    """Dual encoder in the form KIND:MODEL, such as clip:FOLDER or
    open-clip:ViT-B-32,weights=FILE."""

    names: Path | None = None
    """Text file of class names, with one FOLDER<TAB>NAME line per class (default: folder names)."""

    templates: tuple[str, ...] = ("a photo of a {}.",)
    """Prompts, with {} in place of the class name. As in CLIP, the vector of a class is the mean of
    its prompts' vectors."""

    output: Path | None = None
    """Folder for the tables, which are written as JSON, CSV, LaTeX and text files. `eqforge tables`
    reads this folder."""

    image_batch: int = 64
    """Number of images per batch. Smaller batches need less memory."""


def classes_of(folder: Path) -> Mapping[str, Sequence[Image]]:
    """Return the images of each class, by its name or its folder's, in order."""
    from eqforge.core.files.pictures import FILE_SUFFIXES

    if not folder.is_dir():
        raise InputError(f"{folder}: expected a folder with one subfolder of images per class")
    for names, (data, labels) in _CIFAR.items():
        if (folder / names).is_file():
            return _cifar(folder / names, folder / data, labels)
    found = {
        one.name: sorted(p for p in one.rglob("*") if p.suffix.lower() in FILE_SUFFIXES)
        for one in sorted(folder.iterdir())
        if one.is_dir() and not one.name.startswith(".")
    }
    if len(found) < 2:
        raise InputError(f"{folder}: expected subfolders for 2 or more classes, found {len(found)}")
    if empty := [name for name, files in found.items() if not files]:
        raise InputError(f"{folder / empty[0]} contains no images ({', '.join(FILE_SUFFIXES)})")
    return found


def _cifar(names: Path, data: Path, labels: int) -> dict[str, list[Image]]:
    """Read test images of CIFAR's binary version.

    Each record has its labels, one byte each, then 32 x 32 red, green and blue values.
    """
    classes = [line.strip() for _, line in text_lines(names)]
    values, size = np.frombuffer(read_bytes(data), np.uint8), labels + 3 * _SIDE_PX**2
    if not values.size or values.size % size:
        raise InputError(
            f"{data}: expected images of {size:,} bytes each, found {values.size:,} bytes in all"
        )
    records = values.reshape(-1, size)
    targets, pixels = (
        records[:, labels - 1],
        records[:, labels:].reshape(-1, 3, _SIDE_PX, _SIDE_PX),
    )
    if targets.max() >= len(classes):
        raise InputError(
            f"{data} uses class {targets.max()} (counted from 0), but {names} names only "
            f"{len(classes)} classes"
        )
    pixels = pixels.transpose(0, 2, 3, 1)
    return {name: [*pixels[targets == number]] for number, name in enumerate(classes)}


def names_of(classes: Sequence[str], path: Path | None) -> list[str]:
    if path is None:
        return [name.replace("_", " ") for name in classes]
    found = dict[str, str]()
    for number, line in text_lines(path):
        folder, separator, name = line.partition("\t")
        if not separator or not name.strip():
            raise InputError(
                f"{path}: line {number}: expected FOLDER<TAB>NAME, found {line[:80]!r}"
            )
        found[folder] = name.strip()
    if missing := [name for name in classes if name not in found]:
        raise InputError(f"{path} has no line for the folder {missing[0]!r}")
    return [found[name] for name in classes]


def class_vectors(
    scorer: "DualEncoder", names: Sequence[str], templates: Sequence[str]
) -> NDArray[np.float32]:
    """Return the unit vector of each class [classes, d]: the mean of its prompts, normalised.

    Source: Radford et al. 2021 (CLIP), section 3.1.4.
    """
    from eqforge.evaluation.scoring.batches import encode_captions

    prompts = [template.replace("{}", name) for name in names for template in templates]
    vectors = encode_captions(scorer, prompts, _CAPTIONS)
    means = vectors.reshape(len(names), len(templates), -1).mean(axis=1)
    unit: NDArray[np.float32] = means / np.linalg.norm(means, axis=1, keepdims=True)
    return unit


def ranks(similarities: NDArray[np.floating], true_classes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many other classes are as similar as the true one [images]; a tie loses."""
    true = np.take_along_axis(similarities, true_classes[:, None], axis=1)
    return (similarities >= true).sum(axis=1) - 1


def _finite(vectors: NDArray[np.float32], names: Sequence[object]) -> NDArray[np.float32]:
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        raise InputError(
            f"{names[int(bad.argmax())]}: the model's vector is not finite. Low precision can "
            "cause this; pass precision=float32 with --model"
        )
    return vectors


def classify(settings: ClassifySettings) -> Report:
    from more_itertools import batched

    from eqforge.evaluation.scoring.batches import encode_images
    from eqforge.models.pretrained import exact_convolutions
    from eqforge.models.scorer import is_dual_encoder
    from eqforge.models.spec import device_of, load_model

    if settings.image_batch < 1:
        raise InputError(f"--image-batch {settings.image_batch}: expected at least 1")
    if not settings.templates:
        raise InputError("--templates: pass at least one prompt")
    if wrong := [text for text in settings.templates if "{}" not in text]:
        raise InputError(
            f"--templates {wrong[0]!r}: expected {{}} as the placeholder for the class"
        )
    classes = classes_of(settings.images)
    names = names_of(list(classes), settings.names)
    if len({*names}) < len(names):
        name = max(names, key=names.count)
        raise InputError(f"two classes are named {name!r}; give them different names with --names")
    scorer = load_model(settings.model, device_of(settings.model) or "cpu")
    if not is_dual_encoder(scorer):
        raise InputError(f"--model {settings.model}: expected a dual encoder, such as clip:FOLDER")
    vectors = _finite(class_vectors(scorer, names, settings.templates), names)
    files = [(place, each) for place, one in enumerate(classes.values()) for each in one]
    found = []
    with exact_convolutions():
        for batch in batched(files, settings.image_batch):
            states = list(encode_images(scorer, list(_inputs(scorer, batch)), settings.image_batch))
            images = _finite(np.stack(states), [_name(*each) for each in batch])
            true_classes = np.array([place for place, _ in batch])
            found.append(ranks(images @ vectors.T, true_classes))
    rank = np.concatenate(found)
    kept = [k for k in KS if k < len(classes)]
    judged = Judged(
        credits={f"Acc@{k}": (rank < k).astype(np.float64) for k in kept},
        chance={f"Acc@{k}": k / len(classes) for k in kept},
        clusters=None,
        expected=len(files),
    )
    title = f"{settings.images.resolve().name}: zero-shot classification, {len(classes):,} classes"
    (model,) = model_names([scorer.identity.name], [settings.images])
    return make_report(title, Rules(), {model: {"all": judged}})


def _name(place: int, image: Image) -> str:
    return str(image) if isinstance(image, Path) else f"an image of class {place}"


def _inputs(scorer: "DualEncoder", files: Sequence[tuple[int, Image]]) -> Iterator[object]:
    from eqforge.core.files.pictures import MAX_PIXELS, BadImage, TooManyPixels, read_pixels
    from eqforge.models.scorer import Picture

    for place, image in files:
        try:
            read = read_pixels(read_bytes(image), MAX_PIXELS) if isinstance(image, Path) else image
        except (BadImage, TooManyPixels) as error:
            raise InputError(f"{image} cannot be decoded: {error}; remove the file") from error
        yield scorer.prepare(Picture(key=_name(place, image), pixels=read))


def classify_command(settings: ClassifySettings) -> None:
    report = classify(settings)
    if settings.output is not None:
        write_tables(report, settings.output)
    print(report)


main = Command(
    "eqforge classify",
    ClassifySettings,
    classify_command,
    example="eqforge classify imagenet/val --model clip:FOLDER --output out/imagenet",
    basics=("names", "templates", "output"),
    keeps_output=True,
)
