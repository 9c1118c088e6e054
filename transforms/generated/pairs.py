"""Measures, judges and writes made pairs, for all datasets of generated pairs.

A dataset's own step turns its specs into `PairWork` with the pair made, its first measures and its
rejections. `MeasureGenerated` and `DropGenerated` do the rest.
"""

import colorsys
import functools
import io
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from PIL import Image

from eqforge.core.files import storage
from eqforge.core.files.pictures import opened, read_pixels
from eqforge.core.identity import versions_of
from eqforge.core.ledger import Ledger
from eqforge.core.ranges import check_range
from eqforge.generators.text import words
from eqforge.schemas.records.frames import StoredImage
from eqforge.schemas.records.scores import Rejection, Score
from eqforge.schemas.records.stages import Stage
from eqforge.schemas.tables.generated import MaskRow
from eqforge.schemas.tables.pairs import ImageRow
from eqforge.transforms.dataset.failures import error_rejection
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.filters import minimality
from eqforge.transforms.filters.images import IMAGE_FILTER_REASONS, ImageFilters, image_row
from eqforge.transforms.filters.pairs import PAIRS_STAGE, refuse_unmeasured
from eqforge.transforms.filters.perceptual import Perceptual, refuse_perceptual
from eqforge.transforms.filters.plausibility import Plausibility
from eqforge.transforms.generated.work import MadePair, MeasuredMade, PairProposal, PairWork
from eqforge.transforms.oracle.judges import Oracle, refuse_pair
from eqforge.transforms.oracle.scores import Question, ask

if TYPE_CHECKING:
    from numpy.typing import NDArray

IMAGES_STAGE = Stage(
    "images",
    IMAGE_FILTER_REASONS,
    note="This stage checks only generated images.",
)

MOST_SEEDS = 64

MEASURED = "measured"


@dataclass(frozen=True, kw_only=True, slots=True)
class RankSettings:
    """Number of seeds per pair, and the score that selects the best seed."""

    seeds: int = 1
    """Number of seeds to try per pair, 1 to 64. Only the best result is kept."""

    best_by: Literal["background_ssim", "oracle_margin"] = "background_ssim"
    """Score that selects the best seed. `background_ssim` is the similarity of the unchanged area.
    `oracle_margin` is the oracle's preference for the right captions."""

    def __post_init__(self) -> None:
        check_range("seeds", self.seeds, 1, MOST_SEEDS)


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneratedRules:
    """How made pairs become samples, whatever made them.

    Attributes:
      work: the folder or URL of the media store and of finished work.
      kind_gates: kinds of pairs, each with limits that replace `gates`.
      distinct_captions: whether equivalent captions are rejected.
    """

    work: str
    images: ImageFilters
    gates: minimality.GateSettings
    kind_gates: tuple[tuple[str, minimality.GateSettings], ...] = ()
    distinct_captions: bool
    perceptual: Perceptual = field(default_factory=Perceptual)
    oracle: Oracle = field(default_factory=Oracle)
    ranking: RankSettings = field(default_factory=RankSettings)
    plausibility: Plausibility = field(default_factory=Plausibility)

    @property
    def media(self) -> MediaStore:
        return MediaStore(storage.join(self.work, "media"))

    def ledger(self, step: str, basis: Any) -> Ledger:
        return Ledger(root=storage.join(self.work, "done"), step=step, basis=basis)

    def measuring(self) -> Ledger:
        packages = ("numpy", "scipy", "pillow", "scikit-image", "imagehash", "rapidfuzz")
        versions = [self.images.basis(), minimality.VERSION, words.VERSION]
        return self.ledger("measure", [*versions, versions_of(*packages)])


def make_once(
    inputs: Any, ledger: Ledger, media: MediaStore, make: Callable[[], MadePair | Rejection]
) -> MadePair | Rejection:
    """Return the pair made earlier from these inputs, if the store still has it; else make it.

    A rejection is also remembered, except an `error:`, which may be the machine's fault. The inputs
    are JSON-like values; the basis of the ledger has all settings and versions that matter.
    """
    known = ledger.recall(inputs, MadePair)
    if known is not None and known.is_stored(media):
        return known
    refused = ledger.recall(inputs, Rejection) if known is None else None
    if refused is not None:
        return refused
    result = make()
    if isinstance(result, MadePair):
        media.sync(result.files)
    if isinstance(result, MadePair) or not result.reason.startswith("error:"):
        ledger.write(inputs, result)
    return result


def store_image(media: MediaStore, data: bytes, width_px: int, height_px: int) -> StoredImage:
    return StoredImage(
        image_id=media.put(data, ".png"),
        suffix=".png",
        width_px=width_px,
        height_px=height_px,
        num_bytes=len(data),
    )


def store_mask(media: MediaStore, data: bytes, width_px: int, height_px: int) -> MaskRow:
    stored = asdict(store_image(media, data, width_px, height_px))
    return MaskRow(mask_id=stored.pop("image_id"), **stored)


def measure_generated(work: PairWork, rules: GeneratedRules) -> PairWork:
    """Score the images of a made pair, measure its minimality and query the models.

    All measures use the stored images, so anyone with the dataset can reproduce them. A pair is
    rejected if a measure fails on it; earlier rejected pairs are returned unchanged.
    """
    pair, proposal = work.made, work.proposal
    if pair is None or proposal is None:
        return work
    inputs = [[image.image_id for image in pair.images], proposal.captions]
    try:
        measured = rules.measuring().remember(
            inputs, MeasuredMade, lambda: _measure(pair, proposal.captions, rules)
        )
        work = replace(work, measured=measured)
        # Models are the most expensive measures, so query none about a pair to be rejected.
        if any(rules.images.refuse(image.scores) is not None for image in measured.images):
            return work
        if _refuse_measured(proposal, measured, rules) is not None:
            return work
        work = _with_distance(work, measured, rules)
    except Exception as error:
        return work.refused(PAIRS_STAGE, error_rejection(error))
    if refuse_perceptual(work.scores, rules.perceptual.settings) is not None:
        return work
    return _with_matches(work, proposal, measured, rules)


def _measure(pair: MadePair, captions: tuple[str, str], rules: GeneratedRules) -> MeasuredMade:
    pixels_0, pixels_1 = (pixels_of(image, rules) for image in pair.images)
    return MeasuredMade(
        images=(
            image_row(pair.images[0], rules.images.score(pixels_0)),
            image_row(pair.images[1], rules.images.score(pixels_1)),
        ),
        measures=minimality.measure_pair(minimality.view(pixels_0), minimality.view(pixels_1)),
        edit=words.word_edit(*captions),
    )


def _with_distance(work: PairWork, measured: MeasuredMade, rules: GeneratedRules) -> PairWork:
    if rules.perceptual.encoder is None:
        return work
    first, second = (image.image_id for image in measured.images)
    score = rules.ledger("perceive", rules.perceptual.basis()).remember(
        [first, second],
        Score,
        lambda: rules.perceptual.score([pixels_of(image, rules) for image in measured.images]),
    )
    return replace(work, scores=(*work.scores, score))


def _with_matches(
    work: PairWork, proposal: PairProposal, measured: MeasuredMade, rules: GeneratedRules
) -> PairWork:
    if not rules.oracle.judges:
        return work
    images = {image.image_id: image for image in measured.images}
    first, second = images
    scorer = rules.oracle.scorer(lambda image_id: pixels_of(images[image_id], rules))
    question = Question(images=(first, second), captions=proposal.captions)
    (answer,) = ask([question], scorer, rules.ledger("match", rules.oracle.basis()))
    if isinstance(answer, Rejection):
        return work.refused(PAIRS_STAGE, answer)
    return replace(work, scores=(*work.scores, *answer))


def pixels_of(image: StoredImage | ImageRow, rules: GeneratedRules) -> "NDArray[np.uint8]":
    """Read a stored image as RGB, uint8 [height, width, 3]."""
    return read_pixels(rules.media.get(image.image_id, image.suffix))


def drop_generated(work: PairWork, rules: GeneratedRules) -> PairWork:
    if work.proposal is None or work.made is None or work.measured is None:
        return work
    first, second = (rules.images.refuse(image.scores) for image in work.measured.images)
    decided = work.with_images_decided(IMAGES_STAGE, (first, second))
    if first is not None or second is not None:
        return decided.refused(PAIRS_STAGE, Rejection(reason="image_rejected"))
    rejection = _refuse_measured(work.proposal, work.measured, rules)
    if rejection is None:
        rejection = refuse_perceptual(work.scores, rules.perceptual.settings)
    if rejection is None:
        rejection = refuse_pair(work.scores, rules.oracle.settings)
    return decided.decided(PAIRS_STAGE, rejection)


def _refuse_measured(
    proposal: PairProposal, measured: MeasuredMade, rules: GeneratedRules
) -> Rejection | None:
    image_0, image_1 = measured.images
    refused = refuse_unmeasured(
        (image_0.image_id, image_1.image_id), proposal.captions, rules.distinct_captions
    )
    if refused is not None:
        return refused
    gates = dict(rules.kind_gates).get(proposal.kind, rules.gates)
    return minimality.gate_pair(measured.measures, gates)


GOLDEN = (5**0.5 - 1) / 2
"""Hue step, as a share of the colour circle, that keeps consecutive numbers distinct."""


def coloured(mask_png: bytes) -> bytes:
    """Add a palette to a mask, so that viewers show colours; the numbers are unchanged.

    A 16-bit mask, of 256 objects or more, cannot have a palette and is returned unchanged.
    """
    numbers = read_numbers(mask_png)
    if numbers.dtype != np.uint8:
        return mask_png
    image = Image.fromarray(numbers)
    image.putpalette(_palette())
    stream = io.BytesIO()
    image.save(stream, "png")
    return stream.getvalue()


@functools.cache
def _palette() -> bytes:
    colours = (colorsys.hsv_to_rgb(number * GOLDEN % 1, 0.75, 1.0) for number in range(1, 256))
    return bytes([0, 0, 0, *(round(255 * part) for colour in colours for part in colour)])


def read_numbers(mask_png: bytes) -> "NDArray[np.integer[Any]]":
    """Return the object number of each pixel, 0 for none: integers [height, width]."""
    with opened(mask_png, formats=("PNG",)) as mask:
        return np.asarray(mask)
