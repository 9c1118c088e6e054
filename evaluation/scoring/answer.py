"""The command `eqforge answer`: local models answer VLUE's questions, statements and images."""

import fcntl
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import tyro

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.pictures import MAX_PIXELS
from eqforge.core.shell import Command
from eqforge.core.visible import counted
from eqforge.models.pretrained import Precision, Weights
from eqforge.schemas.records.lettered import without_thoughts
from eqforge.schemas.records.questions import VLUE, Question

if TYPE_CHECKING:
    from eqforge.models.answerers import Answerer, BlipGrounder, Box
    from eqforge.schemas.dataset.reader import Dataset
    from eqforge.schemas.dataset.shelf import Shelf

ROWS_AT_ONCE = 100
_OWN_TEXT = {"nlvr2": "statement", "vqa": "question", "captioning": "image_id"}
"""What a model with a head for the task reads; of captions it reads no text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerSettings:
    """Solve a VLUE task with a local model: VQA, NLVR2, captioning or grounding."""

    dataset: tyro.conf.Positional[str]
    """Folder or URL of a dataset that `eqforge build vlue` built with --images."""

    task: Literal["vqa", "nlvr2", "captioning", "grounding"]
    """VLUE task to solve."""

    model: str
    """Folder of a saved Transformers model, or ID@COMMIT from the Hugging Face Hub. ViLT supports
    VQA and NLVR2. LXMERT supports VQA. BLIP supports VQA, captioning and grounding. A chat model
    supports every task."""

    output: Path
    """JSON Lines file to write, for use with `eqforge metrics`. Run the same command again to
    resume an interrupted run."""

    answer_list: Path | None = None
    """File of the VQA answers that ViLT, LXMERT or BLIP can choose from. The file is a JSON array,
    a JSON object whose keys are answers, or a text file with one answer per line. The papers use
    3,129 answers. If a model's config contains no answers, as with the published LXMERT checkpoint,
    list all answers in the model's order."""

    features: Path | None = None
    """TSV file of region features, in the format that `eqforge score` reads. LXMERT reads the
    features instead of images. The keys in the file are the dataset's image ids."""

    regions: Path | None = None
    """JSON file with the boxes that BLIP can choose from in the grounding task. The file has the
    form {IMAGE: [[x, y, width, height], ...]}, like ALBEF's dets.json."""

    precision: Precision = "float32"
    """Data type of the model weights."""

    device: str = "cpu"
    """PyTorch device, such as cuda:0."""

    max_pixels: int = MAX_PIXELS
    """Maximum number of pixels per image. Larger images are skipped."""


def answer_dataset(settings: AnswerSettings) -> str:
    """Write an answer for each row of a task; return a summary."""
    from eqforge.core.console import Ticker
    from eqforge.core.identity import fingerprint, versions_of
    from eqforge.evaluation.scoring.run import device_name
    from eqforge.models.answerers import BlipGrounder, load_answerer
    from eqforge.models.pretrained import exact_convolutions, torch_threads
    from eqforge.schemas.dataset.reader import open_dataset
    from eqforge.schemas.dataset.shelf import make_shelf
    from eqforge.sources.vlue import read_answer_list, read_regions

    if settings.output.exists():
        raise InputError(f"{settings.output} already exists; choose another --output")
    if settings.answer_list is not None and settings.task != "vqa":
        raise InputError(f"--answer-list applies only to --task vqa, not {settings.task}")
    dataset = open_dataset(settings.dataset)
    questions = questions_of(dataset, settings.task)
    shelf = make_shelf(dataset)
    answers = read_answer_list(settings.answer_list) if settings.answer_list else ()
    weights = Weights.of(settings.model, settings.precision, settings.device)
    model, is_chat = load_answerer(weights, settings.task, answers, settings.features)
    regions = None if settings.regions is None else read_regions(settings.regions)
    if isinstance(model, BlipGrounder) != (regions is not None):
        raise InputError(
            "--regions applies only to BLIP models for grounding; omit it"
            if regions is not None
            else f"{settings.model} cannot propose boxes; pass candidate boxes with --regions"
        )
    versions = versions_of("eqforge", "torch", "transformers", "tokenizers", "pillow", "numpy")
    limits = [device_name(settings.device), settings.max_pixels, settings.task]
    run = fingerprint([dataset.sha256, limits, repr(model.identity), answers, regions, versions])
    part = settings.output.with_name(f"{settings.output.name}.part")
    part.parent.mkdir(parents=True, exist_ok=True)
    failures: Counter[str] = Counter()
    with part.open("a", encoding="utf-8") as stream, torch_threads(1), exact_convolutions():
        done = _begin(stream, part, run)
        left = [one for one in questions if one[0]["sample_id"] not in done]
        ticker = Ticker(len(questions), "answers", before=len(done))
        for place, (key, answer, why) in enumerate(
            _answers(left, shelf, model, is_chat, regions or {}, settings), start=len(done) + 1
        ):
            if why:
                failures[why] += 1
            else:
                line = {"sample_id": key, **answer}
                print(json.dumps(line, ensure_ascii=False), file=stream, flush=True)
            ticker.show(place)
        ticker.close()
        lines = _answer_lines(part)
        if without := dataset.manifest.num_rows(settings.task) - len(questions):
            failures["no image"] = without
        reasons = ", ".join(
            f"{counted(n, 'questions')} left out ({why})" for why, n in sorted(failures.items())
        )
        if not lines:
            raise InputError(f"{settings.dataset}: no question could be answered: {reasons}")
        storage.write_bytes(str(settings.output), "".join(f"{x}\n" for x in sorted(lines)).encode())
        part.unlink()
    advice = f"; {reasons}; pass --allow-missing to eqforge metrics" if reasons else ""
    return f"{settings.output}: {counted(len(lines), 'answers')}{advice}"


def questions_of(dataset: "Dataset", task: str) -> list[tuple[dict[str, Any], Question]]:
    """Return the rows of a task that have images, each with its first question."""
    known = [name for name in VLUE if name in dataset.manifest.tables]
    if task not in known:
        raise InputError(
            f"--task {task}: the tasks of {dataset.folder} are {', '.join(known) or 'none'}"
        )
    form = VLUE[task]
    more = ("image", "width_px", "height_px") if task == "grounding" else ()
    rows = dataset.rows(task, ["sample_id", *form.columns, *more])
    questions = [(row, each[0]) for row in rows if (each := form.questions(row))]
    if not questions:
        raise InputError(
            f"{dataset.folder}: {task} has no rows with images; build the dataset with --images "
            "FOLDER"
        )
    return questions


def inputs_of(
    task: str, row: Mapping[str, Any], question: Question, images: list[Any], *, is_chat: bool
) -> tuple[list[Any], str]:
    """Return the pixels or keys of images, and the text of a question, as a model reads them."""
    from eqforge.evaluation.conversations.run import side_by_side

    if is_chat and len(images) > 1:
        images = [side_by_side(images[0], images[1])]
    return images, question.question if is_chat else str(row[_OWN_TEXT[task]])


def _begin(stream: IO[str], part: Path, run: str) -> set[str]:
    """Lock a file of unfinished answers for this run; return the ids that it has."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise InputError(
            f"--output {str(part).removesuffix('.part')}: another run is writing this file; wait "
            "for that run to end, or choose a different file"
        ) from error
    header = json.dumps({"run": run})
    if b"\n" not in part.read_bytes():  # new, or killed before its first line
        stream.truncate(0)
        print(header, file=stream, flush=True)
    elif _whole_lines(part)[0] != header:
        raise InputError(
            f"{part} contains unfinished answers from a run with a different dataset, model or "
            "version; delete the file, or choose another --output"
        )
    elif not part.read_bytes().endswith(b"\n"):  # ends a torn line, which is asked again
        print(file=stream, flush=True)
    return {json.loads(line)["sample_id"] for line in _answer_lines(part)}


def _answer_lines(part: Path) -> list[str]:
    """Return the answers in a file of unfinished ones, without damaged lines."""
    return [line for line in _whole_lines(part)[1:] if _is_json(line)]


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def _whole_lines(part: Path) -> list[str]:
    # A text may contain other line ends, such as U+2028.
    return part.read_bytes().decode(errors="replace").split("\n")[:-1]


def _answers(
    questions: Sequence[tuple[Mapping[str, Any], Question]],
    shelf: "Shelf",
    model: "Answerer | BlipGrounder",
    is_chat: bool,
    regions: Mapping[str, Sequence["Box"]],
    settings: AnswerSettings,
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield each row's id, its answer with a chat model's own text, and why it has none."""
    from more_itertools import batched

    from eqforge.evaluation.tasks.answers import TASKS

    for batch in batched(questions, ROWS_AT_ONCE):
        images = shelf.read({image for _, question in batch for image in question.images})
        for row, question in batch:
            answer, why = _ask(model, is_chat, row, question, images, regions, settings)
            record = {"answer": answer}
            if is_chat and not why:
                read = TASKS[settings.task].from_text(without_thoughts(answer), row)
                record = {"answer": "" if read is None else read, "text": answer}
            yield row["sample_id"], record, why


def _ask(
    model: "Answerer | BlipGrounder",
    is_chat: bool,
    row: Mapping[str, Any],
    question: Question,
    images: Mapping[str, bytes],
    regions: Mapping[str, Sequence["Box"]],
    settings: AnswerSettings,
) -> tuple[Any, str]:
    from eqforge.core.files.pictures import BadImage, TooManyPixels, read_pixels
    from eqforge.models.answerers import BlipGrounder
    from eqforge.sources.vlue import regions_of

    if not images.keys() >= {*question.images}:
        return None, "image not in the dataset"
    try:
        pixels: list[Any] = [
            read_pixels(images[key], settings.max_pixels) if model.reads_pixels else key
            for key in question.images
        ]
    except TooManyPixels:
        return None, "too many pixels"
    except BadImage:
        return None, "undecodable image"
    try:
        if isinstance(model, BlipGrounder):
            return model.locate(pixels[0], row["phrase"], regions_of(regions, row["image"])), ""
        read = inputs_of(settings.task, row, question, pixels, is_chat=is_chat)
        return model.answer(*read), ""
    except ValueError as error:  # the model cannot read the text or an image
        return None, str(error).removeprefix(f"{question.images[0]}: ")[:80]


def answer_command(settings: AnswerSettings) -> None:
    print(answer_dataset(settings))


main = Command(
    "eqforge answer",
    AnswerSettings,
    answer_command,
    example="eqforge answer out/vlue --task vqa --model FOLDER --output answers.jsonl",
    basics=("answer-list", "features", "regions", "device", "precision"),
)
