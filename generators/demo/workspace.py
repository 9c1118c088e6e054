"""Make the demo's workspace: clips and annotations to build every dataset from.

    workspace = make_workspace(Path("demo"))

writes the same bytes every time:

    demo/videos/*.mp4, *.webm, own/tour.mkv    clips
    demo/youcook2.json                         like youcookii_annotations_trainval.json
    demo/gebplus.json                          like GEB+'s val.json
    demo/action_genome/*.pkl, frame_list.txt   like Action Genome's annotations
    demo/captions.jsonl                        a user's own captioned videos
    demo/images/*.jpg                          photographs and their mirror images
    demo/captions_val2017.json                 their captions, like COCO's
    demo/relationships.json, image_data.json   their relationships, like Visual Genome's
    demo/vlue/*.json                           test items on them, like VLUE's
    demo/README.md                             contents, and the photographs' licences

The videos include difficult cases: faces, a black frame, and a rotated, a truncated, an empty and a
missing file. The annotations include action words and unchanged descriptions.
"""

import json
import pickle
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from sys import intern
from typing import Any, Final

import numpy as np
from PIL import ImageOps

from eqforge.core.errors import InputError
from eqforge.generators.demo.clips import all_clips, film, load_photograph

STILLS: Final = ("coffee", "chelsea", "astronaut", "camera", "rocket", "coins")
"""Photographs that are images too: each and its mirror image, as a gallery needs a second match."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Workspace:
    """The paths of a demo workspace; see the module for their formats.

    Attributes:
      videos: the folder of clips; annotations name them relative to it, or by their stem.
      action_genome: the folder of the three files below.
      vlue: the folder of `<task>.json`.
      readme: the workspace's contents, with the photographs' licences.
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


def make_workspace(folder: Path) -> Workspace:
    """Write the demo's clips and annotations; overwrite files of the same names."""
    workspace, clips = workspace_at(folder), all_clips()
    try:
        _copy(_data() / "inputs", folder)
        workspace.images.mkdir(exist_ok=True)
        for clip in clips:
            (workspace.videos / clip.file).parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot create the folder {folder}: {error}") from error
    for clip in clips:
        film(clip, workspace.videos / clip.file)
    for place, name in enumerate(STILLS):
        picture = load_photograph(name)
        picture.save(workspace.images / f"{2 * place + 1}.jpg", quality=95)
        ImageOps.mirror(picture).save(workspace.images / f"{2 * place + 2}.jpg", quality=95)
    _write_pickle(workspace.object_boxes, _object_boxes())
    _write_pickle(workspace.person_boxes, _person_boxes())
    return workspace


def _data() -> Traversable:
    return resources.files(__package__)


def _copy(source: Traversable, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for each in source.iterdir():
        if each.is_file():
            (target / each.name).write_bytes(each.read_bytes())
        else:
            _copy(each, target / each.name)


def _write_pickle(path: Path, value: Any) -> None:
    path.write_bytes(pickle.dumps(value, protocol=4))  # as in the published files


def _object_boxes() -> dict[str, Any]:
    """Return the objects of each frame: (x, y, width, height) in pixels, or None out of sight."""
    frames: dict[str, Any] = json.loads((_data() / "object_boxes.json").read_bytes())
    # A pickle refers to an object it already has by number: equal bytes need equal identities.
    for row in (row for rows in frames.values() for row in rows):
        for name, value in row.items():
            if isinstance(value, list):
                is_box = name == "bbox"
                row[name] = tuple(value) if is_box else [intern(word) for word in value]
        row["class"], row["metadata"]["set"] = intern(row["class"]), intern(row["metadata"]["set"])
    return frames


def _person_boxes() -> dict[str, Any]:
    """Return the person in each frame: boxes float32 [n, 4], scores float32 [n]."""
    frames: dict[str, Any] = json.loads((_data() / "person_boxes.json").read_bytes())
    sizes: dict[tuple[int, ...], tuple[int, ...]] = {}
    for row in frames.values():
        size = tuple(row["bbox_size"])
        row["bbox"] = np.array(row["bbox"], dtype=np.float32).reshape(-1, 4)
        row["bbox_score"] = np.array(row["bbox_score"], dtype=np.float32)
        row["bbox_size"], row["bbox_mode"] = sizes.setdefault(size, size), intern(row["bbox_mode"])
    return frames
