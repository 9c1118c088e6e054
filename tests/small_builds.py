"""A command for every dataset, as small as one can be that has every part.

Tests that build all datasets share them: on every engine, and as a job for Dataflow.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from eqforge.generators.demo.workspace import Workspace
from eqforge.generators.scenes import kubric_import
from tests.runners.tiers import need_packages

PICTURES = 8
SMALL_FILES = ["--samples-per-file", "4", "--images-per-file", "4"]


# --- datasets of videos: decoding in a child process, both face detectors


def of_videos(workspace: Workspace, name: str, *inputs: object) -> list[str]:
    """YouCook2's videos are partly missing or cut off; Eq-Video's are a user's own."""
    return [name, *map(str, inputs), "--videos", str(workspace.videos), *SMALL_FILES]


def youcook2(workspace: Workspace, _: Path) -> list[str]:
    return of_videos(workspace, "eq-youcook2", "--annotations", workspace.youcook2)


def gebc(workspace: Workspace, _: Path) -> list[str]:
    return of_videos(workspace, "eq-gebc", "--annotations", workspace.gebplus)


def action_genome(workspace: Workspace, _: Path) -> list[str]:
    boxes = ["--objects", workspace.object_boxes, "--persons", workspace.person_boxes]
    return of_videos(workspace, "eq-ag", *boxes)


def own_videos(workspace: Workspace, _: Path) -> list[str]:
    return of_videos(workspace, "eq-video", "--captions", workspace.captions)


# --- generated datasets


def drawings(*_: object) -> list[str]:
    """A diffusion model with random weights."""
    need_packages("models", ["torch", "diffusers", "transformers"])
    model = ["--model", "tiny", "--steps", "2", "--guidance-scale", "50", "--cpu-threads", "1"]
    pairs = ["--object-pairs", "2", "--scene-pairs", "1", "--attribute-pairs", "1"]
    return ["eq-sd", *pairs, *model, "--samples-per-file", "2", "--images-per-file", "2"]


def edits(_: Workspace, folder: Path) -> list[str]:
    """An editor with random weights; of four photographs one is missing, and one has no mask."""
    need_packages("models", ["torch", "diffusers", "transformers"])
    photographs, masks = pictures(folder), folder / "masks"
    masks.mkdir()
    for n in range(2):
        mask = np.zeros((96, 128), dtype=np.uint8)
        mask[30:60, 40:90] = 255
        Image.fromarray(mask).save(masks / f"{n}.png")
    shown = [("0", "A red car."), ("1", "Two dogs on a sofa."), ("2", "A cat."), ("99", "A cup.")]
    path = folder / "photographs.jsonl"
    path.write_text(
        "".join(json.dumps({"image": f"{n}.jpg", "caption": text}) + "\n" for n, text in shown)
    )
    folders = ["--images", photographs, "--masks", str(masks), "--captions", str(path)]
    model = ["--model", "tiny", "--editor", "inpaint", "--steps", "2", "--cpu-threads", "1"]
    limits = ["--max-changed-outside", "None", "--min-background-ssim", "None"]
    return ["eq-edit", *folders, *model, *limits, *SMALL_FILES]


def scenes(*_: object) -> list[str]:
    """Blender in a child process."""
    need_packages("render", kubric_import.PACKAGES)
    return ["eq-kubric", "--pairs", "3", "--resolution", "64", "--samples", "2"]


# --- datasets of texts, and of images that are there already


def captions(folder: Path) -> str:
    """Three batches of captions, two to an image; one has no word that can be edited."""
    nouns, places = ("dog", "cat", "man", "zzz"), ("sofa", "table", "bench", "qqq", "bed")
    texts = [
        f"A {noun} number {n} and a red {other} on a {place}."
        for n in range(8)
        for noun in nouns
        for other in nouns
        for place in places
    ]
    lines = [
        {"image": f"{n // 2}.jpg", "caption": text, "id": f"c{n}"}
        for n, text in enumerate([*texts, "Zzz qqq."])
    ]
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def of_captions(name: str, *more: str) -> Callable[[Workspace, Path], list[str]]:
    files = ["--samples-per-file", "500"]
    return lambda _, folder: [name, "--captions", captions(folder), *files, *more]


def pictures(folder: Path) -> str:
    """Noise, in files of the names 0.jpg, 1.jpg and so on."""
    images = folder / "images"
    images.mkdir()
    for n in range(PICTURES):
        pixels = np.random.default_rng(n).integers(0, 256, (96, 128, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(images / f"{n}.jpg")
    return str(images)


def vlue(_: Workspace, folder: Path) -> list[str]:
    """All five tasks, one of them in two batches; an image is missing."""
    shown = [f"{n % (PICTURES + 1)}.jpg" for n in range(300)]
    text = "A red dog stands on a green table."
    tasks = {
        "retrieval": [{"image": image, "caption": [text]} for image in shown],
        "nlvr2": [{"sentence": "Both are red.", "images": shown[:2], "label": "False"}],
        "vqa": [{"question_id": 4, "question": "Who?", "image": shown[2], "answer": "man"}],
        "captioning": [{"image_id": 0, "image": shown[3], "caption": [text, text]}],
        "grounding": [{"ref_id": 9, "image": shown[4], "text": "left", "bbox": [30, 0, 20, 5]}],
    }
    files = ["--samples-per-file", "100", "--images-per-file", "4"]
    command = ["vlue", "--images", pictures(folder), *files]
    for task, items in tasks.items():
        path = folder / f"{task}.json"
        path.write_text(json.dumps(items))
        command += [f"--{task}", str(path)]
    return command


def simat(_: Workspace, folder: Path) -> list[str]:
    """Two regions of each of four triplets, cut out of images."""
    shown = [(who, how) for who in ("man", "dog") for how in ("touching", "biting") for _ in "ab"]
    assert len(shown) == PICTURES
    header = "region_id\timage_id\tsubj\trel\tobj\tsubj_bbox\tobj_bbox\tbbox\n"
    box = "0,0,90,90"
    lines = (f"{n}\t{n}\t{who}\t{how}\tball" for n, (who, how) in enumerate(shown))
    path = folder / "retrieval_db.tsv"
    path.write_text(header + "".join(f"{line}\t{box}\t{box}\t{box}\n" for line in lines))
    return ["simat", "--retrieval-db", str(path), "--images", pictures(folder), *SMALL_FILES]


COMMANDS: dict[str, Callable[[Workspace, Path], list[str]]] = {
    "eq-youcook2": youcook2,
    "eq-gebc": gebc,
    "eq-ag": action_genome,
    "eq-video": own_videos,
    "eq-sd": drawings,
    "eq-edit": edits,
    "eq-kubric": scenes,
    "hard-positives": of_captions("hard-positives"),
    "training-captions": of_captions("training-captions"),
    "retrieval-perturbations": of_captions("retrieval-perturbations"),
    "vlue": vlue,
    "simat": simat,
}
