"""`eqforge demo`: build small datasets end to end in its own workspace, offline."""

import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from eqforge.core.errors import EqforgeError
from eqforge.core.shell import Command
from eqforge.core.visible import visible
from eqforge.generators.text.wordnet import open_wordnet
from eqforge.schemas.tables.vlue import TASKS

if TYPE_CHECKING:
    from eqforge.generators.demo.workspace import Workspace

OWN = "eq-video"
LARGE = frozenset(("eq-sd", "eq-edit", "eq-kubric"))
"""Datasets that need gigabytes of packages."""

SMALL_SCENES = ("--pairs", "3", "--resolution", "128")
"""A pair of each kind, in a quarter of the default's time."""

SMALL_DRAWINGS = (
    *("--object-pairs", "1", "--scene-pairs", "1", "--attribute-pairs", "1"),
    *("--model", "tiny", "--steps", "4", "--guidance-scale", "30", "--cpu-threads", "1"),
)
"""A pair of each kind by a model of random weights; strong guidance makes prompts matter."""

SMALL_EDITS = (
    *("--limit", "4", "--max-side", "128", "--model", "tiny", "--editor", "instruct-pix2pix"),
    *("--steps", "2", "--cpu-threads", "1"),
    *("--max-changed-area", "None", "--min-background-ssim", "None"),
)
"""Some photographs edited by a model of random weights, which changes everything."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Build and verify example datasets from bundled photographs, clips and captions, offline."""

    output: Path = Path("out/demo")
    """Folder for the inputs and the datasets."""

    all: bool = False
    """Also render, generate, edit and score a few pairs. The models have random weights, so their
    results mean nothing."""

    workers: int = 1
    """Number of parallel processes."""

    overwrite: bool = False
    """Overwrite datasets from an earlier demo, even if its settings or eqforge version changed."""


@dataclass(frozen=True, slots=True)
class Build:
    """A dataset of the demo: its arguments, and a check that raises if a requirement is missing."""

    arguments: tuple[object, ...]
    check: Callable[[], object] = lambda: None


def builds(workspace: "Workspace") -> dict[str, Build]:
    from eqforge.generators.scenes.kubric_import import check_installed
    from eqforge.pipelines.base import drawn

    videos, images = ("--videos", workspace.videos), ("--images", workspace.images)
    objects = ("--objects", workspace.object_boxes, "--persons", workspace.person_boxes)
    captions = ("--captions", workspace.coco, *images)
    regions = ("--relationships", workspace.relationships, "--image-data", workspace.image_data)
    tasks = [word for task in TASKS for word in (f"--{task}", workspace.vlue / f"{task}.json")]
    texts = Build(captions, open_wordnet)
    return {
        "eq-youcook2": Build(("--annotations", workspace.youcook2, *videos)),
        "eq-gebc": Build(("--annotations", workspace.gebplus, *videos)),
        "eq-ag": Build((*objects, *videos)),
        "eq-video": Build(("--captions", workspace.captions, *videos)),
        "hard-positives": texts,
        "training-captions": texts,
        "retrieval-perturbations": texts,
        "simat": Build((*regions, *images)),
        "vlue": Build((*tasks, *images)),
        "eq-sd": Build(SMALL_DRAWINGS, drawn.check_installed),
        "eq-edit": Build((*captions, *SMALL_EDITS), drawn.check_installed),
        "eq-kubric": Build(SMALL_SCENES, check_installed),
    }


def demo(arguments: Arguments) -> int:
    """Make the workspace, build and verify the datasets; return 0 only if all are sound."""
    from eqforge.commands.contact_sheet import draw_sheet
    from eqforge.generators.demo.workspace import make_workspace
    from eqforge.pipelines.base import drawn
    from eqforge.schemas.dataset.reader import open_dataset

    started = time.monotonic()
    print(f"creating clips and annotations in {arguments.output / 'workspace'}", file=sys.stderr)
    chosen = builds(make_workspace(arguments.output / "workspace"))
    if not arguments.all:
        chosen = {name: build for name, build in chosen.items() if name not in LARGE}
    missing = {name: text for name, build in chosen.items() if (text := _missing(build))}
    for name, text in missing.items():  # printed before the work, and at its end
        print(visible(f"skipping {name}: {text}"), file=sys.stderr)
    built = [name for name in chosen if name not in missing]
    status = max(_build(name, chosen[name], arguments) for name in built)
    if arguments.all and (text := _missing(Build((), drawn.check_installed))):
        missing["score"] = text
    elif arguments.all:
        status = max(status, _score(arguments.output))
    sheet = arguments.output / "pairs.png"
    shown = arguments.output / (OWN if OWN in built else built[0])
    draw_sheet(open_dataset(str(shown)), 6, False, sheet)
    print(f"\nthe demo took {time.monotonic() - started:.0f} s")
    for name, text in missing.items():
        print(visible(f"skipped {name}: {text}"))
    print(f"to see a dataset's rows, run eqforge inspect {shlex.quote(str(shown))}")
    print(f"to see its pairs, open {shlex.quote(str(sheet))}")
    return status


def _score(output: Path) -> int:
    from eqforge.evaluation.scoring import command as scoring
    from eqforge.evaluation.tables import command as tables
    from eqforge.generators.diffusion.tiny import save_tiny_clip

    dataset, scores = str(output / OWN), str(output / "scores")
    model = f"clip:{save_tiny_clip(output / 'tiny-clip')}"
    scored = scoring.main([dataset, "--model", model, "--output", scores])
    return max(scored, tables.main([dataset, scores]))


def _missing(build: Build) -> str | None:
    try:
        build.check()
    except EqforgeError as error:
        return str(error)
    return None


def _build(name: str, build: Build, arguments: Arguments) -> int:
    from eqforge.commands import verify
    from eqforge.pipelines import pipeline_of
    from eqforge.pipelines.base.command import Main

    output = str(arguments.output / name)
    common = ["--output", output, "--workers", str(arguments.workers)]
    common += ["--overwrite"] * arguments.overwrite
    argv = [*map(str, build.arguments), *common]
    return max(Main(pipeline_of(name))(argv), verify.main([output]))


main = Command("eqforge demo", Arguments, demo)
