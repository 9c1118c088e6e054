"""Groups a source's texts by image: foiled records, text pairs and free captions."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from eqforge.core.errors import InputError
from eqforge.generators.text.hard_positives.published import PUBLISHED_GROUPS, record_id
from eqforge.generators.text.lexicon import Kind
from eqforge.sources.caption_sources import CaptionRecord, read_captions
from eqforge.sources.own_captions import caption_files
from eqforge.sources.text_pairs import TextPair, pair_files, read_text_pairs
from eqforge.sources.vl_checklist import VlChecklistRecord, read_vl_checklist

FOLDERS: Final[Mapping[str, str]] = {"attribute": "Attribute/vg", "relation": "Relation/vg"}


@dataclass(frozen=True, kw_only=True, slots=True)
class FoilRecord:
    """A record of VL-CheckList and its file; the whole image is shown, as by REPLACE's authors."""

    kind: Kind
    group: str
    record: VlChecklistRecord
    box: None = None

    @property
    def image(self) -> str:
        return self.record.image

    @property
    def text_id(self) -> str:
        return record_id(self.record, self.kind, self.group)

    @property
    def texts(self) -> tuple[str, ...]:
        return (*self.record.positives, *self.record.negatives)


Text = FoilRecord | TextPair | CaptionRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageTexts:
    """A source's texts about one image."""

    image: str
    foils: tuple[FoilRecord, ...] = ()
    pairs: tuple[TextPair, ...] = ()
    captions: tuple[CaptionRecord, ...] = ()

    @property
    def records(self) -> tuple[Text, ...]:
        return (*self.foils, *self.pairs, *self.captions)


@dataclass(frozen=True, kw_only=True, slots=True)
class TextsBatch:
    """Images that are processed together; `drawn` holds the negatives of `balanced_edits`."""

    images: tuple[ImageTexts, ...]
    drawn: Mapping[str, int] | None = None

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True, kw_only=True)
class TextSources:
    """Source files of the texts. Pass --vl-checklist, --pairs or --captions."""

    vl_checklist: Path | None = None
    """VL-CheckList's `data` folder. The REPLACE set is built from the Visual Genome files in this
    folder."""

    kinds: tuple[str, ...] = ("attribute", "relation")
    """Kinds of VL-CheckList files to read."""

    pairs: Path | None = None
    """File of text pairs (ARO, SugarCrepe, JSON Lines) from which to build the SWAP set."""

    captions: Path | None = None
    """Caption file in COCO, Karpathy or Flickr30k (token or CSV) format, or your own file. Your own
    file can be a table, a JSON file or a Hugging Face folder. It needs a `caption` column. The
    columns `image`, `id` and `split` are optional."""

    def check_sources(self) -> None:
        sources = (self.vl_checklist, self.pairs, self.captions)
        if sum(each is not None for each in sources) != 1:
            raise InputError(
                "pass one source: --vl-checklist FOLDER, --pairs FILE or --captions FILE"
            )
        if not self.kinds:
            raise InputError("--kinds: name at least one kind")
        if unknown := sorted(set(self.kinds) - set(FOLDERS)):
            raise InputError(f"--kinds {unknown[0]}: expected {' or '.join(FOLDERS)}")

    def vl_checklist_files(self) -> Iterator[tuple[Kind, str, Path]]:
        for kind, groups in PUBLISHED_GROUPS.items():
            if self.vl_checklist is not None and kind in self.kinds:
                folder = self.vl_checklist / FOLDERS[kind]
                yield from ((kind, name, folder / f"{name}.json") for name in groups)

    def folders(self) -> Iterator[tuple[Path, Iterable[Path]]]:
        if self.pairs is not None:
            yield self.pairs, pair_files(self.pairs)
        if self.captions is not None:
            yield self.captions, caption_files(self.captions)

    def texts(self) -> Iterator[Text]:
        for kind, group, path in self.vl_checklist_files():
            for record in read_vl_checklist(path):
                yield FoilRecord(kind=kind, group=group, record=record)
        if self.pairs is not None:
            yield from read_text_pairs(self.pairs)
        if self.captions is not None:
            yield from read_captions(self.captions)


def texts_of(found: tuple[Text, ...]) -> ImageTexts:
    return ImageTexts(
        image=found[0].image,
        foils=tuple(text for text in found if isinstance(text, FoilRecord)),
        pairs=tuple(text for text in found if isinstance(text, TextPair)),
        captions=tuple(text for text in found if isinstance(text, CaptionRecord)),
    )
