"""From planned clips to samples, images and rejects: the construction of EqBen's section 4.1."""

from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from eqforge.schemas.io import storage
from eqforge.schemas.records.books import Reject
from eqforge.schemas.records.clips import Clip
from eqforge.schemas.records.frames import FrameSettings
from eqforge.schemas.tables.pairs import ImageRow, PairSample
from eqforge.schemas.versions import versions_of
from eqforge.transforms.dataset.ledger import Ledger
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.filters.images import ImageFilters
from eqforge.transforms.video.clip_work import (
    ClipWork,
    images_of,
    rejects_of,
    samples_of,
    tallies_of,
)
from eqforge.transforms.video.extract import ExtractFrames, encoding_parameters, extract_frames
from eqforge.transforms.video.frames.extract import FrameExtractor
from eqforge.transforms.video.images import DropFrames, ScoreImages, drop_frames, score_images
from eqforge.transforms.video.oracle_pairs import ScoreMatches, score_matches
from eqforge.transforms.video.pair import (
    DropPairs,
    MeasurePairs,
    PairFilters,
    drop_pairs,
    measure_pairs,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoPairRules:
    """How the clips of a plan become samples.

    Attributes:
      dataset: name of the dataset.
      videos: the folder of videos.
      follow_links: whether symbolic links may lead out of it.
      work: the folder or URL of the media store and of what is known to be done.
      frames: how frames are taken and encoded.
      decoder_timeout_s: seconds without a new frame after which a video is given up.
      image_filters, pair_filters: what is measured and what is refused.
    """

    dataset: str
    videos: str
    work: str
    frames: FrameSettings
    decoder_timeout_s: float
    image_filters: ImageFilters
    pair_filters: PairFilters
    follow_links: bool = False

    @property
    def media_root(self) -> str:
        """The folder of the media store."""
        return storage.join(self.work, "media")

    def ledger(self, step: str) -> Ledger:
        """Returns the ledger of one of the steps `extract`, `score`, `measure` and `match`."""
        basis: dict[str, Any] = {
            "extract": [
                encoding_parameters(self.frames),
                self.frames.end_tolerance_s,
                self.frames.max_pixels,
                versions_of("eqforge", "av", "pillow", "numpy"),
            ],
            "score": self.image_filters.basis(),
            "measure": self.pair_filters.basis(),
            "match": self.pair_filters.oracle.basis(),
        }
        return Ledger(root=storage.join(self.work, "done"), step=step, basis=basis[step])

    def extractor(self) -> FrameExtractor:
        """Returns a frame extractor; the caller closes it."""
        return FrameExtractor(
            store=MediaStore(self.media_root),
            folder=self.videos,
            settings=self.frames,
            timeout_s=self.decoder_timeout_s,
        )


def make_video_pairs(clip: Clip, rules: VideoPairRules, extractor: FrameExtractor) -> ClipWork:
    """Returns a finished clip, made without Beam by the same steps."""
    media = MediaStore(rules.media_root)
    work = extract_frames(
        clip, rules.videos, extractor, rules.ledger("extract"), rules.follow_links
    )
    work = score_images(work, media, rules.image_filters, rules.ledger("score"))
    work = drop_frames(work, rules.image_filters)
    work = measure_pairs(work, media, rules.pair_filters, rules.ledger("measure"))
    work = score_matches(work, media, rules.pair_filters, rules.ledger("match"))
    return drop_pairs(work, rules.pair_filters)


@dataclass
class MakeVideoPairs(beam.PTransform):
    """Makes samples of clips; gives samples, images, rejects and the books, in this order."""

    rules: VideoPairRules
    progress_folder: str | None = None

    def expand(self, clips: beam.PCollection[Clip]) -> Any:
        rules, notes = self.rules, self.progress_folder
        finished = (
            clips
            | "ExtractFrames"
            >> ExtractFrames(
                rules.videos,
                rules.extractor(),
                rules.ledger("extract"),
                notes,
                rules.follow_links,
            )
            | "ScoreImages"
            >> ScoreImages(rules.media_root, rules.image_filters, rules.ledger("score"), notes)
            | "DropFrames" >> DropFrames(rules.image_filters)
            | "MeasurePairs"
            >> MeasurePairs(rules.media_root, rules.pair_filters, rules.ledger("measure"))
            | "ScoreMatches"
            >> ScoreMatches(rules.media_root, rules.pair_filters, rules.ledger("match"), notes)
            | "DropPairs" >> DropPairs(rules.pair_filters)
        )
        return (
            finished
            | "Samples" >> beam.FlatMap(samples_of, rules.dataset).with_output_types(PairSample),
            finished | "Images" >> beam.FlatMap(images_of).with_output_types(ImageRow),
            finished | "Rejects" >> beam.FlatMap(rejects_of).with_output_types(Reject),
            finished | "Tallies" >> beam.FlatMap(tallies_of),
        )
