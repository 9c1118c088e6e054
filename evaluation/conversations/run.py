"""Ask a model about the pairs of a dataset, shard by shard; a killed run resumes at its shard."""

from __future__ import annotations

import dataclasses
import platform
import shutil
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from more_itertools import batched
from numpy.typing import NDArray
from PIL import Image

from eqforge.core.console import Ticker
from eqforge.core.errors import InputError
from eqforge.core.files import pictures, storage
from eqforge.core.files.pictures import BadImage, TooManyPixels, read_pixels
from eqforge.core.identity import derive_seed, fingerprint, versions_of
from eqforge.evaluation.conversations.answers import (
    ANSWERS,
    FAILURES,
    FILE_NAME,
    AnswersManifest,
    describe,
    open_answers,
    path_of,
    rows_of,
    write_rows,
)
from eqforge.evaluation.conversations.questions import ARRANGEMENTS, ask, read_answer
from eqforge.evaluation.conversations.respondents import Refused, Respondent, open_respondent
from eqforge.evaluation.scoring.run import device_name
from eqforge.evaluation.tables.samples import check_label_column
from eqforge.models.chat import QuestionTooLong
from eqforge.models.pretrained import exact_convolutions, torch_threads
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.dataset.reader import Dataset
from eqforge.schemas.dataset.score_tables import Counts
from eqforge.schemas.dataset.shelf import Shelf, make_shelf

if TYPE_CHECKING:
    from eqforge.evaluation.conversations.command import ConverseSettings

Pixels = NDArray[np.uint8]

_LIBRARIES = ("torch", "transformers", "tokenizers", "pillow", "numpy")
PAIRS_AT_ONCE = 8
"""Pairs whose pictures are in memory together."""
_COLUMNS = ("sample_id", "image_0_id", "image_1_id", "caption_0", "caption_1")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pair:
    """Two images and two captions; caption i describes image i."""

    sample_id: str
    images: tuple[str | None, str | None]
    captions: tuple[str, str]


def choose_pairs(dataset: Dataset, per_subset: int | None, by: str | None, seed: int) -> list[Pair]:
    """Draw pairs of each subset, or take all; a larger draw contains every smaller one."""
    wanted = [*_COLUMNS, *([] if by is None or by in _COLUMNS else [by])]
    subsets: dict[str | None, list[Pair]] = defaultdict(list)
    schema = dataset.schema("samples")
    missing = [name for name in wanted if name not in schema.names]
    if schema.names and missing:
        raise InputError(
            f"{dataset.folder}: its samples have no column {missing[0]!r}; pass a dataset of pairs "
            f"with the columns {', '.join(wanted)}"
        )
    if schema.names and by is not None:
        check_label_column(schema, by, dataset.folder)
    for batch in dataset.batches("samples", wanted, 20_000) if schema.names else ():
        for row in batch.to_pylist():
            pair = Pair(
                sample_id=row["sample_id"],
                images=(row["image_0_id"], row["image_1_id"]),
                captions=(row["caption_0"], row["caption_1"]),
            )
            subsets[None if by is None else row[by]].append(pair)
    if per_subset is not None:
        for pairs in subsets.values():
            pairs.sort(key=lambda pair: derive_seed(seed, pair.sample_id, "converse", 1))
    chosen = [pair for pairs in subsets.values() for pair in pairs[:per_subset]]
    if not chosen:
        raise InputError(f"{dataset.folder} has no pairs to ask about")
    return sorted(chosen, key=lambda pair: pair.sample_id)


class NotAsked(Exception):
    """A pair cannot be asked about: a key of answers.REASONS, and the detail."""


def converse(
    dataset: Dataset, pairs: Sequence[Pair], settings: ConverseSettings
) -> AnswersManifest:
    """Ask about pairs in all four orders and return the manifest of the answers."""
    shelf = make_shelf(dataset)
    model = open_respondent(pairs, settings)
    header = _header(dataset, pairs, model, settings)
    folder = str(settings.folder())
    finished = open_answers(folder)
    if finished is not None:
        if dataclasses.replace(finished, counts={}, forms={}, tables={}) != header:
            raise _other(folder, "the answers")
        print(f"{folder} already contains the answers", file=sys.stderr)
        return finished
    _begin(Path(folder), header)
    shards = list(batched(pairs, settings.shard_samples))
    with torch_threads(settings.threads), exact_convolutions():
        _ask_all(folder, shards, shelf, model, settings)
    tables = {name: describe(folder, name, len(shards)) for name in ("answers", "failures")}
    failed = sum(file.rows for file in tables["failures"])
    counts = Counts(expected=len(pairs), scored=len(pairs) - failed, failed=failed)
    forms: Counter[str] = Counter()
    for file in tables["answers"]:
        forms.update(row["form"] for row in rows_of(folder, file.path, ["form"]))
    manifest = dataclasses.replace(
        header, counts={"samples": counts}, forms=dict(sorted(forms.items())), tables=tables
    )
    text = msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"
    storage.write_bytes(storage.join(folder, FILE_NAME), text)
    shutil.rmtree(Path(folder) / WORK)
    return manifest


def ask_pairs(
    pairs: Sequence[Pair], images: dict[str, bytes], model: Respondent, settings: ConverseSettings
) -> Iterator[list[dict[str, Any]] | NotAsked]:
    """Ask the questions about some pairs; yield each pair's rows, or why it was not asked.

    An image cannot be used, the question is too long for the model, or a server refuses it.
    """
    arrangements = ARRANGEMENTS[: settings.orders]
    unasked: dict[str, NotAsked] = {}
    questions: list[tuple[Pixels, str]] = []
    for pair in pairs:
        try:
            pixels = [_decoded(image, images, settings.max_pixels) for image in pair.images]
        except NotAsked as error:
            unasked[pair.sample_id] = error
            continue
        for arrangement in arrangements:
            left, right = (pixels[number] for number in arrangement.images)
            prompt = model.prompt(ask(settings.question, pair.captions, arrangement))
            questions.append((side_by_side(left, right, settings.gap_px), prompt))
    answers = zip(questions, model.respond(questions, settings.max_tokens), strict=True)
    for pair in pairs:
        if pair.sample_id in unasked:
            yield unasked[pair.sample_id]
            continue
        rows = []
        failure: ValueError | None = None
        for arrangement, ((_, prompt), answer) in zip(
            arrangements, islice(answers, len(arrangements)), strict=True
        ):
            if isinstance(answer, ValueError):
                failure = failure or answer
                continue
            first, second = (pair.captions[number] for number in arrangement.captions)
            image_order, caption_order = arrangement.names
            rows.append(
                {
                    "sample_id": pair.sample_id,
                    "image_order": image_order,
                    "caption_order": caption_order,
                    "prompt": prompt,
                    "answer": answer,
                    **dataclasses.asdict(read_answer(answer, (first, second))),
                    "true_left": arrangement.truth[0],
                }
            )
        if failure is None:
            yield rows
        else:
            reason = FAILED.get(type(failure), "unusable_image")
            yield NotAsked(reason, str(failure)[:200])


FAILED: dict[type, str] = {QuestionTooLong: "question_too_long", Refused: "refused"}


def _decoded(image: str | None, images: dict[str, bytes], max_pixels: int) -> Pixels:
    if image is None or image not in images:
        raise NotAsked("missing_image", f"{image}: not in the table of images")
    try:
        return read_pixels(images[image], max_pixels)
    except TooManyPixels as error:
        raise NotAsked("too_many_pixels", f"{image}: {error}") from error
    except BadImage as error:
        raise NotAsked("undecodable_image", f"{image}: {error}"[:200]) from error


def _ask_all(
    folder: str,
    shards: Sequence[Sequence[Pair]],
    shelf: Shelf,
    model: Respondent,
    settings: ConverseSettings,
) -> None:
    of = len(shards)
    # A shard's failures are written first, so if its answers exist, both do.
    places = [storage.join(folder, path_of("answers", number, of)) for number in range(of)]
    left = [number for number in range(of) if not storage.exists(places[number])]
    total = sum(map(len, shards))
    done = total - sum(len(shards[number]) for number in left)
    ticker = Ticker(total, "pairs", before=done)
    for number in left:
        images = shelf.read({image for pair in shards[number] for image in pair.images})
        rows: list[dict[str, Any]] = []
        failures: list[dict[str, Any]] = []
        for batch in batched(shards[number], PAIRS_AT_ONCE):
            for pair, found in zip(batch, ask_pairs(batch, images, model, settings), strict=True):
                if isinstance(found, NotAsked):
                    failure = dict(zip(("reason", "detail"), found.args, strict=True))
                    failures.append({"sample_id": pair.sample_id, **failure})
                else:
                    rows += found
                done += 1
                ticker.show(done)
        write_rows(storage.join(folder, path_of("failures", number, of)), FAILURES, failures)
        write_rows(places[number], ANSWERS, rows)
    ticker.close()


def _header(
    dataset: Dataset, pairs: Sequence[Pair], model: Respondent, settings: ConverseSettings
) -> AnswersManifest:
    deciding = ("question", "gap_px", "max_tokens", "max_pixels", "shard_samples")
    device = f"cpu, threads: {settings.threads}"
    if settings.endpoint is not None:
        device = "server"
    elif settings.device != "cpu":
        device = device_name(settings.device)
    return AnswersManifest(
        dataset=dataset.manifest.dataset,
        dataset_sha256=dataset.sha256,
        model=model.identity,
        settings={
            **{name: getattr(settings, name) for name in deciding},
            "decoder": pictures.VERSION,
            "device": device,
            "orders": [list(one.names) for one in ARRANGEMENTS[: settings.orders]],
        },
        chosen=fingerprint([pair.sample_id for pair in pairs]),
        counts={},
        forms={},
        versions=versions_of("eqforge")
        | {"python": platform.python_version()}
        | versions_of(*_LIBRARIES),
        tables={},
    )


def _begin(folder: Path, header: AnswersManifest) -> None:
    plan = folder / WORK / "plan.json"
    wanted = msgspec.json.encode(fingerprint(msgspec.to_builtins(header)))
    if plan.exists():
        if plan.read_bytes() != wanted:
            raise _other(str(folder), "the unfinished answers")
        return
    # A full disk may have left the work folder empty.
    if folder.exists() and any(path.name != plan.parent.name for path in folder.iterdir()):
        raise InputError(f"{folder} contains other files; choose an empty folder")
    storage.write_bytes(str(plan), wanted)


def _other(folder: str, content: str) -> InputError:
    return InputError(
        f"the folder {folder} contains {content} from a run with a different dataset, model, "
        "setting or version; choose another --output, or delete the folder"
    )


def side_by_side(left: Pixels, right: Pixels, gap_px: int = 0) -> Pixels:
    """Return two images side by side at the same height.

    The taller one is scaled down to the height of the other by Pillow's bicubic filter, keeping its
    aspect ratio; nothing is cropped. Images of equal height are not resampled. The paper has no
    gap.

    Source: EqBen, section 5.5, which concatenates the images of a pair horizontally.
    """
    height = min(len(left), len(right))
    bar = np.full((height, gap_px, 3), 255, dtype=np.uint8)
    return np.concatenate([_of_height(left, height), bar, _of_height(right, height)], axis=1)


def _of_height(pixels: Pixels, height: int) -> Pixels:
    if len(pixels) == height:
        return pixels
    width = max(1, round(pixels.shape[1] * height / len(pixels)))
    image = Image.fromarray(pixels, "RGB")
    return np.asarray(image.resize((width, height), Image.Resampling.BICUBIC))
