"""The rules that turn clips into samples: measures and limits."""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from eqforge.core.files import pictures, storage
from eqforge.core.files.source_folder import SourceFolder
from eqforge.core.identity import versions_of
from eqforge.core.ledger import Ledger
from eqforge.generators.text import words
from eqforge.schemas.records.frames import FrameSettings
from eqforge.transforms.dataset.media import MediaStore
from eqforge.transforms.filters import cuts, minimality, minimality_score, registration
from eqforge.transforms.filters.images import ImageFilters
from eqforge.transforms.oracle.judges import Oracle

if TYPE_CHECKING:
    from eqforge.transforms.video.frames.extract import FrameExtractor


@dataclass(frozen=True, kw_only=True, slots=True)
class FramePairFilters:
    """Which pairs are rejected.

    Attributes:
      cuts: limits for a camera cut between the two frames.
      max_pairs_per_video: None keeps all.
      oracle: the models that judge whether captions match, if any.
      minimal: limits on the minimality score; they need `registers`.
      registers: whether pairs are also measured apart from the camera's motion and the light.
    """

    cuts: cuts.CutSettings
    gates: minimality.GateSettings
    distinct_captions: bool
    max_pairs_per_video: int | None
    oracle: Oracle = field(default_factory=Oracle)
    minimal: minimality_score.MinimalitySettings = field(
        default_factory=minimality_score.MinimalitySettings
    )
    registers: bool = False

    def basis(self) -> list[object]:
        """Return everything the measures depend on besides the images."""
        packages = ("numpy", "scipy", "pillow", "opencv-python-headless", "scikit-image")
        versions = [pictures.VERSION, cuts.VERSION, minimality.VERSION, words.VERSION]
        if self.registers:
            versions.append(f"registration {registration.VERSION} {minimality_score.VERSION}")
        return [*versions, versions_of(*packages, "imagehash", "rapidfuzz")]


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoPairRules:
    """How the clips of a plan become samples.

    Attributes:
      work: the folder or URL of the media store and of finished work.
      frames_fps: rate in frames per second of folders of frames; None if unknown.
      decoder_timeout_s: seconds without a packet read or a frame finished before a video is
        abandoned.
    """

    videos: SourceFolder
    work: str
    frames: FrameSettings
    decoder_timeout_s: float
    image_filters: ImageFilters
    pair_filters: FramePairFilters
    frames_fps: float | None = None

    @property
    def media(self) -> MediaStore:
        return MediaStore(storage.join(self.work, "media"))

    def ledger(self, step: str) -> Ledger:
        """Return the ledger of one of the steps `extract`, `score`, `measure` and `match`."""
        basis: dict[str, Any] = {
            "extract": [
                encoding_parameters(self.frames),
                self.frames.end_tolerance_s,
                self.frames.max_pixels,
                self.frames.stored_pixels,
                versions_of("eqforge", "av", "pillow", "numpy"),
            ],
            "score": self.image_filters.basis(),
            "measure": self.pair_filters.basis(),
            "match": self.pair_filters.oracle.basis(),
        }
        return Ledger(root=storage.join(self.work, "done"), step=step, basis=basis[step])

    def extractor(self) -> "FrameExtractor":
        from eqforge.transforms.video.frames.extract import FrameExtractor

        return FrameExtractor(
            store=self.media,
            folder=self.videos.root if self.videos.is_on_disk else None,
            settings=self.frames,
            timeout_s=self.decoder_timeout_s,
        )


def encoding_parameters(settings: FrameSettings) -> dict[str, object]:
    names = ["image_format", "max_side"] + ["jpeg_quality"] * (settings.image_format == "jpeg")
    return {name: value for name, value in asdict(settings).items() if name in names}
