"""The state of one generated pair in the pipeline, and the rows it becomes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Self

from eqforge.generators.text.words import WordEdit
from eqforge.schemas.records.frames import StoredImage
from eqforge.schemas.records.scenes import RenderedObject
from eqforge.schemas.records.scores import Rejection, Score
from eqforge.schemas.records.stages import Reject, Stage, Tally
from eqforge.schemas.records.values import spans_of
from eqforge.schemas.tables.generated import Generation, MaskRow, RenderedSample
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.filters.minimality import PairMeasures


@dataclass(frozen=True, kw_only=True, slots=True)
class PairProposal:
    """A request to a generator: two JSON specs that differ in one thing, and their captions."""

    sample_id: str
    source_id: str
    kind: str
    change: str
    captions: tuple[str, str]
    specs: tuple[str, str]
    split: str = "test"


@dataclass(frozen=True, kw_only=True, slots=True)
class MadePair:
    """A generator's result for a proposal, with its pixels in the media store.

    `masks` are instance masks; `objects` describes each image's objects, if known.
    """

    images: tuple[StoredImage, StoredImage]
    generation: Generation
    masks: tuple[MaskRow, MaskRow] | None = None
    objects: tuple[tuple[RenderedObject, ...], tuple[RenderedObject, ...]] = ((), ())
    scores: tuple[Score, ...] = ()

    @property
    def num_bytes(self) -> int:
        return sum(each.num_bytes for each in (*self.images, *(self.masks or ())))

    @property
    def files(self) -> list[tuple[str, str]]:
        images = [(image.image_id, image.suffix) for image in self.images]
        return images + [(mask.mask_id, mask.suffix) for mask in self.masks or ()]

    def is_stored(self, media: MediaStore) -> bool:
        """Return True if the store has every image and mask in full length."""
        sizes = [each.num_bytes for each in (*self.images, *(self.masks or ()))]
        return all(
            media.exists(name, suffix, num_bytes)
            for (name, suffix), num_bytes in zip(self.files, sizes, strict=True)
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class MeasuredMade:
    """Measures of the two stored images, and the edit between their captions."""

    images: tuple[ImageRow, ImageRow]
    measures: PairMeasures
    edit: WordEdit


@dataclass(frozen=True, kw_only=True, slots=True)
class PairWork:
    """A proposal and its results so far; every step returns a new one.

    Attributes:
      proposal: None if the plan rejected it.
      made: None before the pair is made, and after it is rejected.
      scores: the pair's scores that are in no other field.
      rejects: of the pair and of its images.
    """

    proposal: PairProposal | None
    made: MadePair | None = None
    measured: MeasuredMade | None = None
    scores: tuple[Score, ...] = ()
    rejects: tuple[Reject, ...] = ()
    tallies: tuple[Tally, ...] = ()

    def rows(self, table: str, dataset: str) -> Iterable[Any]:
        if table == "rejects":
            return self.rejects
        if table == "samples":
            return samples_of(self, dataset)
        if self.made is None or self.measured is None:
            return ()
        return self.measured.images if table == "images" else self.made.masks or ()

    def passed(self, stage: Stage) -> Self:
        return self._with_tally(stage.tally(1, 1))

    def refused(self, stage: Stage, rejection: Rejection) -> Self:
        """Reject the pair at a stage; later steps return it unchanged."""
        reject = self._reject("", stage, rejection)
        entered = self._with_tally(stage.tally(1, 0))
        return replace(entered, made=None, rejects=(*self.rejects, reject))

    def decided(self, stage: Stage, rejection: Rejection | None) -> Self:
        return self.passed(stage) if rejection is None else self.refused(stage, rejection)

    def with_images_decided(
        self, stage: Stage, rejections: tuple[Rejection | None, Rejection | None]
    ) -> Self:
        """Add the counts of the two images, `<sample_id>/0` and `/1`."""
        rejects = tuple(
            self._reject(f"/{number}", stage, rejection)
            for number, rejection in enumerate(rejections)
            if rejection is not None
        )
        entered = self._with_tally(stage.tally(2, 2 - len(rejects)))
        return replace(entered, rejects=(*self.rejects, *rejects))

    def _with_tally(self, tally: Tally) -> Self:
        return replace(self, tallies=(*self.tallies, tally))

    def _reject(self, part: str, stage: Stage, rejection: Rejection) -> Reject:
        assert self.proposal is not None
        name, source_id = self.proposal.sample_id + part, self.proposal.source_id
        return stage.reject(name, rejection, source_id=source_id)


def samples_of(work: PairWork, dataset: str) -> Iterator[RenderedSample]:
    proposal, pair, measured = work.proposal, work.made, work.measured
    if proposal is None or pair is None or measured is None:
        return
    mask_0, mask_1 = pair.masks or (None, None)
    yield RenderedSample(
        sample_id=proposal.sample_id,
        dataset=dataset,
        split=proposal.split,
        source_id=proposal.source_id,
        kind=proposal.kind,
        change=proposal.change,
        caption_0=proposal.captions[0],
        caption_1=proposal.captions[1],
        captions_0=proposal.captions[:1],
        captions_1=proposal.captions[1:],
        image_0_id=pair.images[0].image_id,
        image_1_id=pair.images[1].image_id,
        mask_0_id=None if mask_0 is None else mask_0.mask_id,
        mask_1_id=None if mask_1 is None else mask_1.mask_id,
        generation=pair.generation,
        spec_0=proposal.specs[0],
        spec_1=proposal.specs[1],
        objects_0=pair.objects[0],
        objects_1=pair.objects[1],
        changed_area_fraction=measured.measures.changed_area_fraction,
        ssim=measured.measures.ssim,
        background_ssim=measured.measures.background_ssim,
        luminance_shift=measured.measures.luminance_shift,
        phash_distance=measured.measures.phash_distance,
        word_edit_distance=measured.edit.distance,
        edited_spans_0=spans_of(measured.edit.spans_0),
        edited_spans_1=spans_of(measured.edit.spans_1),
        scores=(*pair.scores, *work.scores),
    )
