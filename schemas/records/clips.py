"""What a plan says about one video: the frames to extract and the pairs to make of them."""

from dataclasses import dataclass, field

from eqforge.schemas.records.books import Reject, Tally
from eqforge.schemas.records.frames import FrameRequest


@dataclass(frozen=True, kw_only=True, slots=True)
class PairCandidate:
    """Two frames of one video and a caption of each.

    Attributes:
      sample_id: the id the sample will have.
      frame_0_id, frame_1_id: ids of two frame requests of the same clip.
      caption_0, caption_1: the captions that are scored.
      captions_0, captions_1: every caption known for the image; the scored one is among them.
      annotation: what the source says of the pair, as text by field name.
    """

    sample_id: str
    frame_0_id: str
    frame_1_id: str
    caption_0: str
    caption_1: str
    captions_0: tuple[str, ...]
    captions_1: tuple[str, ...]
    annotation: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Clip:
    """One video of a plan.

    Attributes:
      clip_id: the video's id, unique in the plan.
      video: the name under which the video is looked up below the videos folder.
      split: the source's split, such as `train`.
      licence: licence of the video, where the source states one.
      root: what the ids of its candidates begin with, such as `eq-youcook2/xHr8X2Wpmno`; the
        candidate id of the video itself.
      frames: the frames that the pairs need, each once.
      pairs: the candidate pairs.
      rejects: annotation records that gave no candidate, each with its reason.
      tallies: the books of the planning stages.
    """

    clip_id: str
    video: str
    split: str
    licence: str | None = None
    root: str = ""
    frames: tuple[FrameRequest, ...] = ()
    pairs: tuple[PairCandidate, ...] = ()
    rejects: tuple[Reject, ...] = ()
    tallies: tuple[Tally, ...] = ()
