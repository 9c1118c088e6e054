"""Proposes pairs of frames between which a person's relations to an object change: Eq-AG."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eqforge.generators.text.words import word_set
from eqforge.schemas.records.frames import Clip, FrameRequest, PairCandidate
from eqforge.schemas.records.scores import Rejection
from eqforge.schemas.records.stages import Reject, Stage
from eqforge.sources.action_genome import (
    RELATION_KINDS,
    AnnotatedFrame,
    FourNumbers,
    FrameObject,
    SceneGraphVideo,
)

OBJECTS_STAGE = Stage(
    "objects",
    {
        "object_invisible": "The object is not visible in the frame.",
        "unknown_class": "Action Genome has no class with this name.",
        "unknown_relation": "Action Genome has no relation with this name.",
        "object_twice": "The frame shows several objects of the same class, so the caption would "
        "be ambiguous.",
        "too_few_moments": "The video has no annotation.",
        "no_caption": "eqforge cannot write a caption from the annotated relations.",
        "near_chosen_frame": "A slightly earlier frame is already in a pair (--skip-frames).",
        "no_partner": "No other frame differs in enough kinds of relation "
        "(--min-changed-relations).",
    },
)

OBJECT_NAMES = word_set("scene_graphs.objects")

_FIRST_SLOT = word_set("scene_graphs.first_slot")
"""Relations that follow "The person is"."""
_SECOND_SLOT = word_set("scene_graphs.second_slot")
"""Relations that say where the object is."""
_UNTOLD = ("unsure", "other_relationship")
_REPHRASED = {
    "have_it_on_the_back": "carrying the {} on the back",
    "not_contacting": "not touching the {}",
    "in": "around",
}
"""English wording of relations whose names are not English."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SceneGraphRules:
    """How scene graphs become pairs.

    Attributes:
      min_changed_relations: how many of the three kinds of relation must differ.
      skip_frames: annotated frames skipped after a chosen one.
      english: whether captions are English, or the template filled with the published names.
    """

    dataset: str
    min_changed_relations: int
    skip_frames: int
    english: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Sight:
    """One object in one frame, with canonical names, its captions and the published boxes."""

    number: int
    relations: dict[str, tuple[str, ...]]
    captions: tuple[str, ...]
    box_xywh: FourNumbers | None = None
    person_boxes_xyxy: tuple[FourNumbers, ...] | None = None


def propose_scene_graph_pairs(video: SceneGraphVideo, rules: SceneGraphRules) -> Clip:
    """Plan, object by object, the pairs of frames in which at least two relation kinds differ.

    Source: EqBen, section 4.1 (skips 2 frames) and appendix B.1 (skips 1).
    """
    root = f"{rules.dataset}/{video.video}"
    by_object, rejects = _sights(root, video, rules)
    pairs: list[PairCandidate] = []
    chosen_pairs: list[tuple[Sight, Sight]] = []
    kept = 0
    for name, sights in sorted(by_object.items()):
        chosen = choose_pairs(sights, rules.min_changed_relations, rules.skip_frames)
        chosen_pairs += chosen
        pairs += (_candidate(root, name, *pair) for pair in chosen)
        used = {sight.number for pair in chosen for sight in pair}
        kept += len(used)
        for place, sight in enumerate(sights):
            if sight.number not in used:
                before = sights[max(0, place - rules.skip_frames) : place]
                is_near = any(earlier.number in used for earlier in before)
                reason = "near_chosen_frame" if is_near else "no_partner"
                lost = f"{root}/{_slug(name)}/{sight.number:06d}"
                rejects.append(_reject(video.video, lost, reason, name))
    numbers = sorted({sight.number for pair in chosen_pairs for sight in pair})
    total = sum(len(frame.objects) for frame in video.frames)
    if total == 0:
        rejects.append(_reject(video.video, root, "too_few_moments", ""))
    return Clip(
        clip_id=video.video,
        video=video.video,
        split=min(
            (found.subset for frame in video.frames for found in frame.objects), default="unknown"
        ),
        root=root,
        frames=tuple(
            FrameRequest(frame_id=f"{root}/{number:06d}", frame_index=number - 1)
            for number in numbers
        ),
        pairs=tuple(pairs),
        rejects=tuple(rejects),
        tallies=(OBJECTS_STAGE.tally(max(1, total), kept),),
    )


def choose_pairs(
    sights: Sequence[Sight], min_changed_relations: int, skip_frames: int
) -> list[tuple[Sight, Sight]]:
    """Choose the pairs of one object's frames, in temporal order.

    A pair (i, j), i before j, is chosen if its frames differ in enough kinds of relation and
    neither is among the `skip_frames` frames after one that an earlier pair chose. Skipped frames
    stay skipped, even if an earlier pair uses them. So no two pairs share a frame while their other
    frames are that near: (i, x) never occurs with (i + 1, x), nor (x, j) with (x, j + 1). The two
    frames of one pair may be neighbours: a changed relation tells them apart, which is the
    appendix's answer to its first problem.

    Args:
      min_changed_relations: how many of the three kinds of relation must differ, 1 to 3.
      skip_frames: how many of `sights` after a chosen one are skipped, 0 or more.

    Source: EqBen, appendix B.1: the immediate next frame of a chosen one is too similar to it, "if
    it is chosen, we will skip the subsequent frame"; section 4.1: "if it is chosen for previous
    samples". Neither exempts a frame that is already in use.
    """
    skipped: set[int] = set()
    pairs = []
    for i, first in enumerate(sights):
        for j in range(i + 1, len(sights)):
            if i in skipped:
                break
            if j in skipped or _changed(first, sights[j]) < min_changed_relations:
                continue
            pairs.append((first, sights[j]))
            skipped |= {place + step for place in (i, j) for step in range(1, skip_frames + 1)}
    return pairs


def _changed(first: Sight, second: Sight) -> int:
    return sum(set(first.relations[kind]) != set(second.relations[kind]) for kind in RELATION_KINDS)


def _sights(
    root: str, video: SceneGraphVideo, rules: SceneGraphRules
) -> tuple[dict[str, list[Sight]], list[Reject]]:
    by_object: dict[str, list[Sight]] = {}
    rejects: list[Reject] = []
    caption = english_captions if rules.english else template_captions
    for frame in video.frames:
        objects = sorted(frame.objects, key=repr)  # their order in the file tells nothing
        slugs = [_slug(canonical_object(found.name) or found.name) for found in objects]
        for place, (found, slug) in enumerate(zip(objects, slugs, strict=True)):
            candidate_id = f"{root}/{slug}/{frame.number:06d}"
            name = canonical_object(found.name)
            reason, sight = _see(frame, found, name, caption)
            if slugs.count(slug) > 1:
                reason, candidate_id = reason or "object_twice", f"{candidate_id}.{place}"
            if reason is None and name is not None and sight is not None:
                by_object.setdefault(name, []).append(sight)
            else:
                rejects.append(_reject(video.video, candidate_id, reason or "", found.name))
    return by_object, rejects


def _see(
    frame: AnnotatedFrame,
    found: FrameObject,
    name: str | None,
    caption: Callable[..., tuple[str, ...]],
) -> tuple[str | None, Sight | None]:
    if name is None:
        return "unknown_class", None
    if not found.visible:
        return "object_invisible", None
    relations: dict[str, tuple[str, ...]] = {}
    for kind in RELATION_KINDS:
        known = [_RELATIONS_BY_BARE.get(_bare(name)) for name in getattr(found, kind)]
        if None in known:
            return "unknown_relation", None
        relations[kind] = tuple(relation for relation in known if relation is not None)
    captions = caption(name, **relations)
    if not captions:
        return "no_caption", None
    return None, Sight(
        number=frame.number,
        relations=relations,
        captions=captions,
        box_xywh=found.box_xywh,
        person_boxes_xyxy=frame.person_boxes_xyxy,
    )


def _reject(video: str, candidate_id: str, reason: str, name: str) -> Reject:
    rejection = Rejection(reason=reason, detail=name)
    return OBJECTS_STAGE.reject(candidate_id, rejection, source_id=video)


def _slug(name: str) -> str:
    return name.replace("/", "_")


def _candidate(root: str, name: str, first: Sight, second: Sight) -> PairCandidate:
    changed = [
        kind for kind in RELATION_KINDS if set(first.relations[kind]) != set(second.relations[kind])
    ]
    return PairCandidate(
        sample_id=f"{root}/{_slug(name)}/{first.number:06d}-{second.number:06d}",
        frame_0_id=f"{root}/{first.number:06d}",
        frame_1_id=f"{root}/{second.number:06d}",
        caption_0=first.captions[0],
        caption_1=second.captions[0],
        captions_0=first.captions,
        captions_1=second.captions,
        annotation={"object": name, "changed_relations": ",".join(changed)}
        | _boxes(first, "0")
        | _boxes(second, "1"),
    )


def _boxes(sight: Sight, side: str) -> dict[str, str]:
    boxes = {
        f"object_box_xywh_{side}": sight.box_xywh,
        f"person_boxes_xyxy_{side}": sight.person_boxes_xyxy,
    }
    return {name: json.dumps(box) for name, box in boxes.items() if box is not None}


def _bare(name: str) -> str:
    return re.sub(r"[^a-z]", "", name.lower())


_OBJECTS_BY_BARE = {_bare(name): name for name in OBJECT_NAMES}
_RELATIONS_BY_BARE = {_bare(name): name for name in (*_FIRST_SLOT, *_SECOND_SLOT, *_UNTOLD)}


def canonical_object(name: str) -> str | None:
    return _OBJECTS_BY_BARE.get(_bare(name))


def english_captions(
    name: str, attention: tuple[str, ...], spatial: tuple[str, ...], contacting: tuple[str, ...]
) -> tuple[str, ...]:
    """Return every caption of one object, in English, attention relations first.

    `unsure` and `other_relationship` give no caption.

    Source: EqBen, appendix B.1, "The person is {attention} {object} which is {spatial} him/her.";
    the published captions also put contacting relations in the first slot.
    """
    noun = _noun(name)
    return tuple(
        f"The person is {_REPHRASED.get(first, f'{_spaced(first)} the {{}}').format(noun)} "
        f"which is {_REPHRASED.get(second, _spaced(second))} him/her."
        for first in (*attention, *contacting)
        for second in spatial
        if first in _FIRST_SLOT and second in _SECOND_SLOT
    )


def template_captions(
    name: str, attention: tuple[str, ...], spatial: tuple[str, ...], contacting: tuple[str, ...]
) -> tuple[str, ...]:
    """Return the captions with the relation names put into the template unchanged.

    This is the paper's wording, with "The person is unsure the book" if the scene graph says so.
    """
    return tuple(
        f"The person is {_spaced(first)} the {_noun(name)} which is {_spaced(second)} him/her."
        for first in (*attention, *contacting)
        for second in spatial
    )


def _noun(name: str) -> str:
    """Return the noun for captions: "sofa" for "sofa/couch"."""
    return name.partition("/")[0]


def _spaced(name: str) -> str:
    return name.replace("_", " ")
