"""Makes the demo's workspace: a folder of clips and annotations to build every dataset from.

    workspace = make_workspace(Path("demo"))

writes the same bytes every time:

    demo/videos/*.mp4, *.webm, own/tour.mkv    what there is to see
    demo/youcook2.json                         as youcookii_annotations_trainval.json
    demo/gebplus.json                          as GEB+'s val.json
    demo/action_genome/*.pkl, frame_list.txt   as Action Genome's annotations
    demo/captions.jsonl                        a user's own captioned videos
    demo/images/*.jpg                          photographs and their mirror images
    demo/captions_val2017.json                 their captions, as COCO's
    demo/relationships.json, image_data.json   who holds what in them, as Visual Genome's
    demo/vlue/*.json                           test items on them, as VLUE's
    demo/README.md                             what is in it, and whose photographs they are
"""

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eqforge.core.errors import InputError
from eqforge.generators.demo import annotations, stills
from eqforge.generators.demo.boundaries import EVENT_VIDEOS
from eqforge.generators.demo.clips import film
from eqforge.generators.demo.cooking import COOKING_VIDEOS
from eqforge.generators.demo.own import OWN_CAPTIONS
from eqforge.generators.demo.photographs import PHOTOGRAPHS
from eqforge.generators.demo.scene_graphs import GRAPH_VIDEOS
from eqforge.generators.demo.scenes import Clip

_PICKLE_PROTOCOL = 4  # as in the published files
_JPEG_QUALITY = 95

_NOTES = {
    "whole": "",
    "truncated": "cut off in the middle of the file",
    "empty": "0 bytes",
    "missing": "named by the annotations, but not there",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Workspace:
    """The paths of a demo workspace.

    Attributes:
      folder: the workspace.
      videos: the folder of clips; annotations name them relative to it, or by their stem.
      youcook2: annotations in YouCook2's format.
      gebplus: annotations in GEB+'s format.
      action_genome: the folder of the three files below.
      object_boxes: object_bbox_and_relationship.pkl.
      person_boxes: person_bbox.pkl.
      frame_list: frame_list.txt.
      captions: a user's own captioned videos, JSON lines.
      images: the folder of still images.
      coco: their captions in COCO's format.
      relationships, image_data: who holds what in them, in Visual Genome's formats.
      vlue: the folder of `<task>.json` in VLUE's formats.
      readme: what is in the workspace, with the photographs' licences.
    """

    folder: Path
    videos: Path
    youcook2: Path
    gebplus: Path
    action_genome: Path
    object_boxes: Path
    person_boxes: Path
    frame_list: Path
    captions: Path
    images: Path
    coco: Path
    relationships: Path
    image_data: Path
    vlue: Path
    readme: Path


def workspace_at(folder: Path) -> Workspace:
    """Returns the paths of a workspace in a folder, whether it exists or not."""
    action_genome = folder / "action_genome"
    return Workspace(
        folder=folder,
        videos=folder / "videos",
        youcook2=folder / "youcook2.json",
        gebplus=folder / "gebplus.json",
        action_genome=action_genome,
        object_boxes=action_genome / "object_bbox_and_relationship.pkl",
        person_boxes=action_genome / "person_bbox.pkl",
        frame_list=action_genome / "frame_list.txt",
        captions=folder / "captions.jsonl",
        images=folder / "images",
        coco=folder / "captions_val2017.json",
        relationships=folder / "relationships.json",
        image_data=folder / "image_data.json",
        vlue=folder / "vlue",
        readme=folder / "README.md",
    )


def make_workspace(
    folder: Path, *, on_clip: Callable[[str, int, int], None] | None = None
) -> Workspace:
    """Writes the demo's clips and annotations; files of the same names are overwritten.

    Args:
      folder: where to write; created if missing.
      on_clip: called before each clip with its file name, its number from 1 and their count.

    Returns:
      The paths of all that was written.

    Raises:
      InputError: the folder cannot be made, or scikit-image lacks a photograph.
      MissingExtra: PyAV is not installed.
    """
    workspace = workspace_at(folder)
    clips = all_clips()
    _make_folders(workspace, clips)
    for number, clip in enumerate(clips, start=1):
        if on_clip is not None:
            on_clip(clip.file, number, len(clips))
        film(clip, workspace.videos / clip.file)
    for picture in stills.PICTURES:
        picture.draw().save(workspace.images / picture.file, quality=_JPEG_QUALITY)
    _write_annotations(workspace)
    _write_text(workspace.readme, _readme(clips))
    return workspace


def all_clips() -> tuple[Clip, ...]:
    """Returns every clip the annotations name, each once, in the order they are made."""
    named = (
        *(video.clip for video in COOKING_VIDEOS),
        *(video.clip for video in EVENT_VIDEOS),
        *(video.clip for video in GRAPH_VIDEOS),
        *(caption.clip for caption in OWN_CAPTIONS),
    )
    return tuple({clip.file: clip for clip in named}.values())


def _make_folders(workspace: Workspace, clips: Sequence[Clip]) -> None:
    try:
        for made in (workspace.action_genome, workspace.images, workspace.vlue):
            made.mkdir(parents=True, exist_ok=True)
        for clip in clips:
            (workspace.videos / clip.file).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {workspace.folder}: {error}") from error


def _write_annotations(workspace: Workspace) -> None:
    _write_text(workspace.youcook2, json.dumps(annotations.youcook2(COOKING_VIDEOS)))
    _write_text(workspace.gebplus, json.dumps(annotations.gebplus(EVENT_VIDEOS)))
    _write_pickle(workspace.object_boxes, annotations.object_boxes(GRAPH_VIDEOS))
    _write_pickle(workspace.person_boxes, annotations.person_boxes(GRAPH_VIDEOS))
    _write_lines(workspace.frame_list, annotations.frame_list(GRAPH_VIDEOS))
    records = annotations.own_captions(OWN_CAPTIONS)
    _write_lines(workspace.captions, [json.dumps(record) for record in records])
    _write_text(workspace.coco, json.dumps(stills.coco_captions()))
    _write_text(workspace.relationships, json.dumps(stills.relationships()))
    _write_text(workspace.image_data, json.dumps(stills.image_data()))
    for task, items in stills.vlue_tasks().items():
        _write_text(workspace.vlue / f"{task}.json", json.dumps(items))


def _write_text(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _write_lines(path: Path, lines: Sequence[str]) -> None:
    _write_text(path, "".join(f"{line}\n" for line in lines))


def _write_pickle(path: Path, value: Any) -> None:
    path.write_bytes(pickle.dumps(value, protocol=_PICKLE_PROTOCOL))


def _readme(clips: Sequence[Clip]) -> str:
    videos = "".join(f"| videos/{clip.file} | {_clip_notes(clip)} |\n" for clip in clips)
    photographs = "".join(
        f"| {photograph.shows} | {photograph.credit} | {photograph.licence} |\n"
        for photograph in PHOTOGRAPHS.values()
    )
    return (
        "# A demo workspace\n\n"
        "Made by eqforge. The clips pan and zoom over photographs; what the annotations say of\n"
        "cooking is made up. `images` holds the same photographs and their mirror images.\n\n"
        f"| video | |\n|---|---|\n{videos}\n"
        "## Photographs\n\n"
        "They come with scikit-image, whose documentation states the terms below.\n\n"
        f"| what | by | terms |\n|---|---|---|\n{photographs}"
    )


def _clip_notes(clip: Clip) -> str:
    width, height = clip.size
    notes = (
        f"{clip.codec}, {width}x{height}, {clip.duration_s:g} s",
        "" if clip.rhythm == "1" else "variable frame rate",
        "stored lying on its side" if clip.is_turned else "",
        _NOTES[clip.condition],
    )
    return "; ".join(note for note in notes if note)
