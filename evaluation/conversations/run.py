"""Asks a model about the pairs of a dataset, shard by shard; a killed run resumes at its shard."""

import contextlib
import dataclasses
import platform
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.pictures import BadImage, TooManyPixels, read_pixels
from eqforge.core.identity import fingerprint
from eqforge.core.ticker import Ticker
from eqforge.core.versions import versions_of
from eqforge.evaluation.conversations.folder import (
    ANSWERS,
    FAILURES,
    FILE_NAME,
    AnswersManifest,
    describe,
    open_answers,
    path_of,
    rows_of,
    to_json,
    write_rows,
)
from eqforge.evaluation.conversations.pairs import Pair, choose_pairs
from eqforge.evaluation.conversations.parsing import read_answer
from eqforge.evaluation.conversations.questions import ARRANGEMENTS, Arrangement, ask
from eqforge.evaluation.conversations.settings import ConverseSettings
from eqforge.evaluation.conversations.side_by_side import Pixels, side_by_side
from eqforge.evaluation.scoring.run import device_name
from eqforge.models.chat_model import ChatModel, QuestionTooLong, load_chat_model
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.dataset.reader import Dataset, open_dataset
from eqforge.schemas.dataset.score_tables import Counts
from eqforge.schemas.dataset.shelf import Shelf, make_shelf

_LIBRARIES = ("torch", "transformers", "tokenizers", "pillow", "numpy")


class NotAsked(Exception):
    """A pair cannot be asked about.

    Args:
      reason: a key of folder.REASONS.
      detail: what was found.
    """

    def __init__(self, reason: str, detail: str) -> None:
        """Stores reason and detail."""
        super().__init__(f"{reason}: {detail}")
        self.reason, self.detail = reason, detail


def converse(settings: ConverseSettings) -> AnswersManifest:
    """Asks about every chosen pair in all four orders and returns the manifest of the answers.

    Raises:
      InputError: dataset, model or settings cannot be used, or the folder is not of this run.
      MissingExtra: a package is not installed.
    """
    dataset = open_dataset(settings.dataset)
    pairs = choose_pairs(dataset, settings.samples, settings.by, settings.seed)
    shelf = make_shelf(dataset)
    model = load_chat_model(settings.weights(), settings.chat_template)
    header = _header(dataset, pairs, model, settings)
    folder = str(settings.folder())
    finished = open_answers(folder)
    if finished is not None:
        if dataclasses.replace(finished, counts={}, forms={}, tables={}) != header:
            raise _other(folder, "the answers")
        print(f"{folder}: already answered", file=sys.stderr)
        return finished
    _begin(Path(folder), header)
    shards = [
        pairs[start : start + settings.shard_samples]
        for start in range(0, len(pairs), settings.shard_samples)
    ]
    with _threads(settings.threads):
        _ask_all(folder, shards, shelf, model, settings)
    tables = {name: describe(folder, name, len(shards)) for name in ("answers", "failures")}
    failed = sum(file.rows for file in tables["failures"])
    counts = Counts(expected=len(pairs), scored=len(pairs) - failed, failed=failed)
    forms: Counter[str] = Counter()
    for file in tables["answers"]:
        for batch in rows_of(folder, file.path, ["form"]):
            forms.update(batch.column(0).to_pylist())
    manifest = dataclasses.replace(
        header, counts={"samples": counts}, forms=dict(sorted(forms.items())), tables=tables
    )
    storage.write_bytes(storage.join(folder, FILE_NAME), to_json(manifest))
    shutil.rmtree(Path(folder) / WORK)
    return manifest


def ask_pair(
    pair: Pair, images: dict[str, bytes], model: ChatModel, settings: ConverseSettings
) -> list[dict[str, Any]]:
    """Asks the four questions about a pair and returns their rows.

    Raises:
      NotAsked: an image cannot be used, or the question is too long for the model.
    """
    pixels = tuple(_decoded(image, images, settings.max_pixels) for image in pair.images)
    rows = []
    for arrangement in ARRANGEMENTS:
        left, right = (pixels[number] for number in arrangement.images)
        picture = side_by_side(left, right, settings.gap_px)
        prompt = model.prompt(ask(settings.question, pair.captions, arrangement))
        try:
            answer = model.answer(picture, prompt, settings.max_tokens)
        except QuestionTooLong as error:
            raise NotAsked(reason="question_too_long", detail=str(error)) from error
        except ValueError as error:
            raise NotAsked(reason="unusable_image", detail=str(error)[:200]) from error
        rows.append(_row(pair, arrangement, prompt, answer))
    return rows


def _row(pair: Pair, arrangement: Arrangement, prompt: str, answer: str) -> dict[str, Any]:
    first, second = (pair.captions[number] for number in arrangement.captions)
    reading = read_answer(answer, (first, second))
    images, captions = arrangement.names
    return {
        "sample_id": pair.sample_id,
        "image_order": images,
        "caption_order": captions,
        "prompt": prompt,
        "answer": answer,
        "left": reading.left,
        "right": reading.right,
        "form": reading.form,
        "true_left": arrangement.truth[0],
    }


def _decoded(image: str | None, images: dict[str, bytes], max_pixels: int) -> Pixels:
    if image is None or image not in images:
        raise NotAsked(reason="missing_image", detail=f"{image}: not in the table of images")
    try:
        return read_pixels(images[image], max_pixels)
    except TooManyPixels as error:
        raise NotAsked(reason="too_many_pixels", detail=f"{image}: {error}") from error
    except BadImage as error:
        detail = f"{image}: {error}"[:200]
        raise NotAsked(reason="undecodable_image", detail=detail) from error


def _ask_all(
    folder: str,
    shards: Sequence[Sequence[Pair]],
    shelf: Shelf,
    model: ChatModel,
    settings: ConverseSettings,
) -> None:
    of = len(shards)
    # A shard's failures are written first, so if its answers exist, both do.
    places = [storage.join(folder, path_of("answers", number, of)) for number in range(of)]
    left = [number for number in range(of) if not storage.exists(places[number])]
    before = sum(len(shard) for shard in shards) - sum(len(shards[number]) for number in left)
    ticker, done = Ticker(sum(map(len, shards)), "pairs", before=before), before
    for number in left:
        images = shelf.read({image for pair in shards[number] for image in pair.images})
        rows: list[dict[str, Any]] = []
        failures: list[dict[str, Any]] = []
        for pair in shards[number]:
            try:
                rows += ask_pair(pair, images, model, settings)
            except NotAsked as error:
                why = {"reason": error.reason, "detail": error.detail}
                failures.append({"sample_id": pair.sample_id} | why)
            done += 1
            ticker.show(done)
        write_rows(storage.join(folder, path_of("failures", number, of)), FAILURES, failures)
        write_rows(places[number], ANSWERS, rows)
    ticker.close()


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    # The number of CPU threads changes the last bits of a sum.
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _header(
    dataset: Dataset, pairs: Sequence[Pair], model: ChatModel, settings: ConverseSettings
) -> AnswersManifest:
    return AnswersManifest(
        dataset=dataset.manifest.dataset,
        dataset_sha256=dataset.sha256,
        model=model.identity,
        settings=settings.described()
        | {
            "device": _device(settings),
            "orders": [list(arrangement.names) for arrangement in ARRANGEMENTS],
        },
        chosen=fingerprint([pair.sample_id for pair in pairs]),
        counts={},
        forms={},
        versions=versions_of("eqforge")
        | {"python": platform.python_version()}
        | versions_of(*_LIBRARIES),
        tables={},
    )


def _device(settings: ConverseSettings) -> str:
    if settings.device == "cpu":
        return f"cpu, threads: {settings.threads}"
    return device_name(settings.device)


def _begin(folder: Path, header: AnswersManifest) -> None:
    plan = folder / WORK / "plan.json"
    wanted = msgspec.json.encode(fingerprint(msgspec.to_builtins(header)))
    if plan.exists():
        if plan.read_bytes() != wanted:
            raise _other(str(folder), "the unfinished answers")
        return
    # A full disk may have left the work folder empty.
    if folder.exists() and any(path.name != plan.parent.name for path in folder.iterdir()):
        raise InputError(f"{folder}: holds other files; name an empty folder")
    storage.write_bytes(str(plan), wanted)


def _other(folder: str, what: str) -> InputError:
    return InputError(
        f"{folder}: holds {what} of another dataset, model, setting or version; name another "
        "--output, or delete the folder"
    )
