"""Base of datasets made of captions: settings and pipeline."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from eqforge.core.errors import InputError
from eqforge.core.files.find_file import MissingFile
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.identity import picture_key
from eqforge.core.shell import MediaRoot
from eqforge.generators.text.language import Language, reject_language
from eqforge.pipelines.base.pipeline import (
    Configured,
    DatasetConfig,
    Input,
    Mode,
    Pipeline,
    Record,
    RunSettings,
    Target,
    files_of,
)
from eqforge.sources.caption_sources import Source, detect_source
from eqforge.sources.own_captions import caption_files
from eqforge.transforms.dataset.census import IMAGES, Medium, media_in
from eqforge.transforms.dataset.image_folder import ImageFolder
from eqforge.transforms.dataset.plan import PlanFiles, read_plan, select_whole
from eqforge.transforms.dataset.tables import Table, media_tables
from eqforge.transforms.text.perturb import tagger_of
from eqforge.transforms.text.work import Text

if TYPE_CHECKING:
    import apache_beam as beam

BATCH = 256


Grouped = TypeVar("Grouped")


@dataclass(frozen=True, kw_only=True, slots=True)
class CaptionDataset(DatasetConfig):
    """Settings shared by all datasets built from captions."""

    captions: Path
    """Caption file in COCO, Karpathy or Flickr30k (token or CSV) format, or your own captions. Pass
    your own captions as a table, a JSON file or a Hugging Face folder, with a `caption` column. The
    columns `image`, `id` and `split` are optional."""

    source: Source | None = None
    """Format of the caption file (default: detected from its content)."""

    images: MediaRoot | None = None
    """Folder, URL or tar shards of the images to store in the dataset. Captions without an image
    file are rejected. Without this option, rows contain only the image names."""

    spacy_model: str | None = None
    """spaCy pipeline, such as en_core_web_sm, that tags the words of captions. The built-in default
    tagger needs no download."""

    language: Language = "en"
    """Accept only English captions (`en`) or captions in any language (`any`)."""


class TextPipeline(Pipeline[Configured, Record]):
    """A dataset whose records name images that a folder may hold, as captions do.

    Attributes:
      make: returns the rows of a record, given the rules.
    """

    config: Any
    record: type[Record]
    make: Callable[..., Any]
    rules: Callable[..., Any]

    def inputs(self) -> Iterator[Input]:
        captions = self.config.captions if isinstance(self.config, CaptionDataset) else None
        for path in super().inputs():
            if captions is not None and path == captions:
                yield from files_of(captions, caption_files(captions))
            else:
                yield path

    def images_of(self, record: Any) -> Iterable[str]:
        return (text.image for text in record.captions)

    def confirm(self, plan: PlanFiles) -> None:
        """Check that the folder holds one of the plan's images; it may not be mounted."""
        if (folder := self.images()) is None:
            return
        example = None
        for name, found in folder.find_all(self._named(plan), str):
            if not isinstance(found, MissingFile) or found.reason != "file_missing":
                return
            example = example or name
        if example == "":
            raise InputError(
                f"--images {folder.root}: the captions do not name their images; omit --images"
            )
        if example is not None:
            raise InputError(
                f"--images {folder.root}: the folder contains none of the planned images; "
                f"expected files such as {example}"
            )

    def media(self, plan: PlanFiles) -> Iterator[Medium]:
        if (folder := self.images()) is not None:
            yield from media_in(IMAGES, folder, dict.fromkeys(self._named(plan)))

    def _named(self, plan: PlanFiles) -> Iterator[str]:
        for record in read_plan(self.record, plan.files):
            yield from self.images_of(record)

    def images(self) -> SourceFolder | None:
        return None if self.place("images") is None else self.folder("images")

    def check_images(self) -> None:
        if (folder := self.images()) is not None:
            folder.check("images")

    def check_format(self) -> None:
        """Reject captions of an unknown format, before slow tools are loaded."""
        config = self.config
        if config.captions is not None and getattr(config, "source", None) is None:
            detect_source(config.captions)

    def check_captions(self) -> None:
        """Check the images folder, and load caption readers before any work."""
        self.check_format()
        self.check_images()
        check_language(self.config.language)
        tagger_of(self.config.spacy_model)

    def build(self, root: "beam.Pipeline", target: Target) -> None:
        from eqforge.transforms.dataset.steps import MakeRows, ReadPlan, WriteDataset

        ((counted, _),) = self.steps
        _ = (
            root
            | ReadPlan(target.plan_files, self.record)
            | MakeRows(self.make, self.rules(), counted, target.notes)
            | WriteDataset(target.dataset)
        )

    def image_folder(self) -> ImageFolder | None:
        if self.place("images") is None:
            return None
        return ImageFolder(self.shared_folder("images"), self.media_root)

    def media_tables(self, records: int) -> tuple[Table, ...]:
        return media_tables(records, None if self.place("images") is None else self.media_root)


def language_of_mode(mode: Mode) -> dict[str, Any]:
    """Return a mode's language setting: the published rules edit captions in any language."""
    return {"language": "any" if mode == "paper" else "en"}


def check_language(language: Language) -> None:
    if language == "en":
        reject_language("qwrtp")  # in no dictionary, so that the model is loaded


def select_captions(files: Iterable[Iterable[Text]], run: RunSettings) -> Iterator[Text]:
    """Yield the captions, or other texts, that the run settings select; the limit counts them.

    A limit takes file after file, and from each the first texts by image and id, not by line. A
    file is held in memory only if there is a limit.
    """
    for_limit = partial(sorted, key=lambda text: (text.image, text.text_id))
    texts = (text for file in files for text in (file if run.limit is None else for_limit(file)))
    single = ((picture_key(text.image, text.text_id), (text,)) for text in texts)
    return (text for (text,) in select_whole(single, run.selection, attrgetter("text_id")))


def select_images(texts: Iterable[Text], run: RunSettings) -> Iterator[tuple[Text, ...]]:
    """Yield all texts of each image that has a selected text, ordered by id.

    A sample can depend on the image's other texts, so no image is split. All texts are held in
    memory, about 0.4 kB each, and sorted by image and id: neither which texts a limit takes, nor
    which texts share a batch for a language model, depends on the order of the source.
    """
    return select_groups(texts, run, lambda text: picture_key(text.image, text.text_id))


def select_groups(
    texts: Iterable[Grouped], run: RunSettings, key: Callable[[Grouped], str]
) -> Iterator[tuple[Grouped, ...]]:
    """Yield the texts that the run settings select, in whole groups of one key, held in memory."""
    groups: dict[str, list[Grouped]] = {}
    for text in texts:
        groups.setdefault(key(text), []).append(text)
    whole = (
        (name, tuple(sorted(found, key=attrgetter("text_id"))))
        for name, found in sorted(groups.items())
    )
    return select_whole(whole, run.selection, attrgetter("text_id"))


def whole_groups(groups: Iterable[tuple[Grouped, ...]], size: int) -> Iterator[tuple[Grouped, ...]]:
    """Yield batches of about `size` texts; a group, such as an image, is never split."""
    batch: tuple[Grouped, ...] = ()
    for group in groups:
        batch += group
        if len(batch) >= size:
            yield batch
            batch = ()
    if batch:
        yield batch
