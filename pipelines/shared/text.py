"""Shared by the pipelines over captions."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.find_file import MissingFile
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.identity import is_sampled, picture_key
from eqforge.core.shell import MediaRoot
from eqforge.generators.text.language import Language, refuse_language
from eqforge.pipelines.shared.media import media_folder, shared_folder
from eqforge.pipelines.shared.settings import (
    DatasetConfig,
    Mode,
    RunSettings,
    selection_of,
)
from eqforge.schemas.dataset.manifest import WORK
from eqforge.schemas.tables.texts import JUDGEMENTS_TABLE
from eqforge.sources.caption_forms import Source
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.dataset.census import IMAGES, Medium, media_in
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import PlanFiles, no_sample, read_plan
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.dataset.tables import table_of
from eqforge.transforms.judges.settings import JudgeSettings, Judging, prepare_judges
from eqforge.transforms.text.work import CaptionBatch, Text

BATCH = 256


class _HasId(Protocol):
    @property
    def text_id(self) -> str: ...


Named = TypeVar("Named", bound=_HasId)


def language_of_mode(mode: Mode) -> dict[str, Language]:
    """Returns a mode's language setting: the published rules edit captions in any language."""
    return {"language": "any" if mode == "paper" else "en"}


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionDataset(DatasetConfig):
    """What every dataset made of captions is configured with."""

    captions: Path
    """COCO captions, a Karpathy-split JSON, Flickr30k's token or CSV file, or your own: a table
    (.csv, .tsv), a JSON array or JSON lines with a column caption and, if you like, image, id and
    split. Or a folder of Hugging Face's with such columns: of Dataset.save_to_disk, a snapshot of
    the hub, or with a metadata file."""

    source: Source | None = None
    """The format of the captions; told by the file where it is not given. `text-pairs` takes the
    true captions of VL-CheckList, ARO and other files of text pairs."""

    images: MediaRoot | None = None
    """Folder of the images, here or in a store, or tar shards: they are embedded, and a caption
    whose image is missing is a reject. Without it the rows name the images alone."""

    spacy_model: str | None = None
    """A spaCy pipeline for tokens, tags and noun phrases, such as en_core_web_sm; without it a
    tagger that needs no data."""

    language: Language = "en"
    """The rules that edit captions are for English: en refuses captions in another language, any
    takes them as they come."""


def check_language(language: Language) -> None:
    """Loads the language detector, before any work that needs it.

    Raises:
      MissingExtra: a package of the extra "text" is not installed.
    """
    if language == "en":
        refuse_language("qwrtp")  # in no dictionary, so that the model is loaded


def images_folder(images: str | None, run: RunSettings) -> SourceFolder | None:
    """Returns the folder of images, for the process that starts a run; None if none is given."""
    return None if images is None else media_folder(images, run)


def check_images(images: str | None, run: RunSettings) -> None:
    """Checks the folder of images, if one is given.

    Raises:
      InputError: it is not a folder, or cannot be reached.
    """
    if (folder := images_folder(images, run)) is not None:
        folder.check("images")


def confirm_images(folder: SourceFolder | None, names: Iterable[str]) -> None:
    """Checks that the folder of images is the right one, if one is given.

    Args:
      folder: the folder.
      names: the images wanted; read until one of them is found.

    Raises:
      InputError: the folder holds none of them, as when it is not mounted.
    """
    if folder is None:
        return
    example = None
    for name, found in folder.find_all(names, str):
        if not isinstance(found, MissingFile) or found.reason != "file_missing":
            return
        example = example or name
    if example == "":
        raise InputError(f"--images {folder.root}: none of the captions names its image")
    if example is not None:
        raise InputError(
            f"--images {folder.root}: none of the plan's images is there; expected files such as "
            f"{example}"
        )


def confirm_captions(config: CaptionDataset, plan: PlanFiles) -> None:
    """Checks that the images of a plan's captions can be found; see `confirm_images`."""
    batches = read_plan(CaptionBatch, plan.files)
    names = (text.image for batch in batches for text in batch.captions)
    confirm_images(images_folder(config.images, config.run), names)


def images_of(images: str | None, run: RunSettings, names: Iterable[str]) -> Iterator[Medium]:
    """Yields the images that a plan names, each once; none without a folder of images."""
    if (folder := images_folder(images, run)) is not None:
        yield from media_in(IMAGES, folder, dict.fromkeys(names))


def caption_media(config: CaptionDataset, plan: PlanFiles) -> Iterator[Medium]:
    """Yields the images of a plan's captions."""
    batches = read_plan(CaptionBatch, plan.files)
    names = (text.image for batch in batches for text in batch.captions)
    yield from images_of(config.images, config.run, names)


def image_folder(images: str | None, run: RunSettings) -> ImageFolder | None:
    """Returns the folder of images with its media store; None if none is given."""
    if images is None:
        return None
    return ImageFolder(shared_folder("images", images, run), media_root(run))


def media_root(run: RunSettings) -> str:
    """Returns the folder of the media store."""
    return storage.join(run.output, WORK, "media")


def judging(
    settings: JudgeSettings, images: str | None, run: RunSettings, *, by_rules: bool
) -> Judging | None:
    """Returns the judges of a configuration; see prepare_judges.

    Raises:
      InputError, MissingExtra: see prepare_judges.
    """
    done = storage.join(run.output, WORK, "done")
    media = None if images is None else media_root(run)
    return prepare_judges(settings, done, media, by_rules=by_rules)


def confirm_judges(settings: JudgeSettings, rows: int) -> None:
    """Says how many questions servers may be asked about a plan, and checks that it is allowed.

    Raises:
      InputError: it is not.
    """
    if most := settings.check_requests(rows):
        print(f"judges: at most {most:,} questions to servers", file=sys.stderr)


def judgements_table(settings: JudgeSettings, shards: int, *, by_rules: bool) -> tuple[Table, ...]:
    """Returns the table of judgements, where samples are judged or made by rules."""
    return (table_of(JUDGEMENTS_TABLE, shards),) if settings.verify or by_rules else ()


def select_captions(files: Iterable[Iterable[Text]], run: RunSettings) -> Iterator[Text]:
    """Yields the captions, or other texts, that the run settings select; the limit counts them.

    A limit takes file after file, and from each the first texts by image and id, not by line; a
    file is held in memory only if there is a limit.

    Raises:
      InputError: a selection is wrong, or a sample named in `only` belongs to no caption.
    """
    captions = (caption for file in files for caption in _in_order(file, run))
    single = ((picture_key(each.image, each.text_id), (each,)) for each in captions)
    return (caption for group in _select(single, run) for caption in group)


def _in_order(captions: Iterable[Text], run: RunSettings) -> Iterable[Text]:
    if run.limit is None:
        return captions
    return sorted(captions, key=lambda caption: (caption.image, caption.text_id))


def select_images(texts: Iterable[Text], run: RunSettings) -> Iterator[tuple[Text, ...]]:
    """Yields all texts of each image that has a selected text, ordered by id.

    A sample can depend on the image's other texts, so no image is split: the limit counts texts,
    and the last image is taken whole. All texts are held in memory, about 0.4 kB each, to group
    them by image, and sorted by image and id: neither which texts a limit takes, nor which texts
    share a batch for a language model, depends on the order of the source.

    Raises:
      InputError: a selection is wrong, or a sample named in `only` belongs to no text.
    """
    return select_groups(texts, run, lambda text: picture_key(text.image, text.text_id))


def select_groups(
    texts: Iterable[Named], run: RunSettings, key: Callable[[Named], str]
) -> Iterator[tuple[Named, ...]]:
    """Yields the texts that the run settings select, in groups that are not split.

    Args:
      texts: of any kind, held in memory.
      run: the settings.
      key: what the texts of a group share.

    Raises:
      InputError: a selection is wrong, or a sample named in `only` belongs to no text.
    """
    groups: dict[str, list[Named]] = {}
    for text in texts:
        groups.setdefault(key(text), []).append(text)
    return _select(((name, _by_id(found)) for name, found in sorted(groups.items())), run)


def _by_id(texts: list[Named]) -> tuple[Named, ...]:
    return tuple(sorted(texts, key=lambda text: text.text_id))


def _select(
    groups: Iterable[tuple[str, tuple[Named, ...]]], run: RunSettings
) -> Iterator[tuple[Named, ...]]:
    selection, missing, number = selection_of(run), set(run.only), 0
    seen: list[str] = []
    for image, group in groups:
        seen += (text.text_id for text in group) if run.only else ()
        named = {name for name in run.only for text in group if _is_of(name, text.text_id)}
        if run.only and not named:
            continue
        if not is_sampled(image, selection.sample):
            continue
        if selection.limit is not None and number >= selection.limit:
            continue
        number += len(group)
        missing -= named
        yield group
    if missing:
        raise InputError(no_sample(min(missing), seen))


def _is_of(name: str, text_id: str) -> bool:
    """Tells whether a name is that of a text or of a sample made from it."""
    return name == text_id or name.startswith(f"{text_id}/")


def batch_captions(captions: Iterable[CaptionRecord]) -> Iterator[CaptionBatch]:
    """Yields batches of captions in the order of the source."""
    from more_itertools import batched

    return (CaptionBatch(captions=tuple(chunk)) for chunk in batched(captions, BATCH))


def batch_images(
    images: Iterable[tuple[CaptionRecord, ...]], size: int = BATCH
) -> Iterator[CaptionBatch]:
    """Yields batches of about `size` captions; all captions of an image are in one batch."""
    batch: list[CaptionRecord] = []
    for captions in images:
        batch += captions
        if len(batch) >= size:
            yield CaptionBatch(captions=tuple(batch))
            batch = []
    if batch:
        yield CaptionBatch(captions=tuple(batch))


def check_at_least(flag: str, value: int, least: int) -> None:
    """Checks a number of the command line.

    Raises:
      InputError: it is less than `least`.
    """
    if value < least:
        raise InputError(f"{flag} {value}: expected {least} or more")
