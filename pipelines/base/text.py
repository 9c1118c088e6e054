"""Datasets made of captions: their settings, and the pipeline that each of them completes."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.find_file import MissingFile
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.identity import is_sampled, picture_key
from eqforge.core.shell import MediaRoot
from eqforge.generators.text.language import Language, refuse_language
from eqforge.generators.text.wordnet import open_wordnet
from eqforge.pipelines.base.pipeline import Configured, Input, Pipeline, files_of
from eqforge.pipelines.base.settings import DatasetConfig, Mode, RunSettings, selection_of
from eqforge.schemas.tables.texts import JUDGEMENTS_TABLE
from eqforge.sources.caption_sources import CaptionRecord, Source
from eqforge.sources.own_captions import caption_files
from eqforge.transforms.dataset.census import IMAGES, Medium, media_in
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import PlanFiles, no_sample, read_plan
from eqforge.transforms.dataset.table import Table
from eqforge.transforms.dataset.tables import media_tables, table_of
from eqforge.transforms.judges.settings import Judging, prepare_judges
from eqforge.transforms.text.perturb import tagger_of
from eqforge.transforms.text.work import CaptionBatch, Text

BATCH = 256


class _HasId(Protocol):
    @property
    def text_id(self) -> str: ...


Named = TypeVar("Named", bound=_HasId)
Grouped = TypeVar("Grouped")


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


class TextPipeline(Pipeline[Configured]):
    """A dataset whose records name images that a folder may hold, as captions do.

    Attributes:
      record: the type of the plan's records, by default batches of captions.
    """

    config: Any
    record: type[Any] = CaptionBatch

    def inputs(self) -> Iterator[Input]:
        """Yields the files that settings name; captions may be a folder of files."""
        captions = self.config.captions if isinstance(self.config, CaptionDataset) else None
        for path in super().inputs():
            if captions is not None and path == captions:
                yield from files_of(captions, caption_files(captions))
            else:
                yield path

    def images_of(self, record: Any) -> Iterable[str]:
        """Yields the images that a record of the plan names, as the folder has them."""
        return (text.image for text in record.captions)

    def confirm(self, plan: PlanFiles) -> None:
        """Checks that the folder of images is the right one, if one is named."""
        confirm_images(self.images(), self._named(plan))

    def media(self, plan: PlanFiles) -> Iterator[Medium]:
        """Yields the images that a plan names, each once."""
        if (folder := self.images()) is not None:
            yield from media_in(IMAGES, folder, dict.fromkeys(self._named(plan)))

    def _named(self, plan: PlanFiles) -> Iterator[str]:
        for record in read_plan(self.record, plan.files):
            yield from self.images_of(record)

    def images(self) -> SourceFolder | None:
        """Returns the folder of images, for the process that starts a run; None without one."""
        return None if self.place("images") is None else self.folder("images")

    def check_images(self) -> None:
        """Raises InputError if the folder of images is no folder, or cannot be reached."""
        if (folder := self.images()) is not None:
            folder.check("images")

    def check_captions(self) -> None:
        """Check the folder of images, and load what reads captions, before any work."""
        self.check_images()
        check_language(self.config.language)
        tagger_of(self.config.spacy_model)
        open_wordnet()

    def image_folder(self) -> ImageFolder | None:
        """Returns the folder of images with its media store; None if none is named."""
        if self.place("images") is None:
            return None
        return ImageFolder(self.shared_folder("images"), self.media_root)

    def media_tables(self, records: int) -> tuple[Table, ...]:
        """Returns the tables of images, if there are some, and of rejects."""
        return media_tables(records, None if self.place("images") is None else self.media_root)


class JudgedPipeline(TextPipeline[Configured]):
    """A dataset of texts that models judge, and rules make with a precision that was measured."""

    config: Any

    @property
    def is_by_rules(self) -> bool:
        """Whether rules make texts in the mode and language that their precision is of."""
        return self.config.mode != "paper" and self.config.language == "en"

    def judges(self) -> Judging | None:
        """Returns the judges of the configuration; see prepare_judges."""
        media = None if self.config.images is None else self.media_root
        done = storage.join(self.work, "done")
        return prepare_judges(self.config.judging, done, media, by_rules=self.is_by_rules)

    def confirm_judges(self, rows: int) -> None:
        """Says how many questions servers may be asked about a plan, and checks it is allowed."""
        if most := self.config.judging.check_requests(rows):
            print(f"judges: at most {most:,} questions to servers", file=sys.stderr)

    def judgements_table(self, shards: int) -> tuple[Table, ...]:
        """Returns the table of judgements, where samples are judged or made by rules."""
        is_judged = self.config.judging.verify or self.is_by_rules
        return (table_of(JUDGEMENTS_TABLE, shards),) if is_judged else ()


def language_of_mode(mode: Mode) -> dict[str, Any]:
    """Returns a mode's language setting: the published rules edit captions in any language."""
    return {"language": "any" if mode == "paper" else "en"}


def check_language(language: Language) -> None:
    """Loads the language detector, before any work that needs it.

    Raises:
      MissingExtra: a package of the extra "text" is not installed.
    """
    if language == "en":
        refuse_language("qwrtp")  # in no dictionary, so that the model is loaded


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


def whole_groups(groups: Iterable[tuple[Grouped, ...]], size: int) -> Iterator[tuple[Grouped, ...]]:
    """Yields batches of about `size` texts; all of a group, such as an image, are in one."""
    batch: tuple[Grouped, ...] = ()
    for group in groups:
        batch += group
        if len(batch) >= size:
            yield batch
            batch = ()
    if batch:
        yield batch


def check_at_least(flag: str, value: int, least: int) -> None:
    """Checks a number of the command line.

    Raises:
      InputError: it is less than `least`.
    """
    if value < least:
        raise InputError(f"{flag} {value}: expected {least} or more")
