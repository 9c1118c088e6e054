"""`eqforge demo`: builds every dataset end to end on a workspace of its own, offline."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import tyro

from eqforge import verify
from eqforge.generators.demo.workspace import Workspace, make_workspace
from eqforge.pipelines import eq_ag, eq_gebc, eq_video, eq_youcook2
from eqforge.pipelines.command import reported_errors


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Build every dataset end to end on bundled inputs, offline, and verify it.

    The inputs are made on the spot: clips that pan and zoom over the photographs that scikit-image
    ships, with annotations in the published formats.
    """

    output: Path = Path("out/demo")
    """Folder for the inputs and the datasets."""

    workers: int = 1
    """Processes of the local runner."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Build:
    """A pipeline's main and the arguments that name its inputs."""

    main: Callable[[list[str]], int]
    arguments: tuple[str, ...]


def builds(workspace: Workspace) -> dict[str, Build]:
    """Returns the builds of a workspace by dataset."""
    videos = ("--videos", str(workspace.videos))
    annotations = {
        eq_youcook2: ("--annotations", workspace.youcook2),
        eq_gebc: ("--annotations", workspace.gebplus),
        eq_ag: ("--objects", workspace.object_boxes, "--persons", workspace.person_boxes),
        eq_video: ("--captions", workspace.captions),
    }
    return {
        pipeline.NAME: Build(main=pipeline.main, arguments=(*map(str, named), *videos))
        for pipeline, named in annotations.items()
    }


def main(argv: list[str]) -> int:
    """Makes the workspace, builds and verifies the datasets; returns 0 only if all are sound."""
    arguments = tyro.cli(Arguments, args=argv, prog="eqforge demo")
    with reported_errors():
        started = time.monotonic()
        print(f"making clips and annotations in {arguments.output / 'workspace'}", file=sys.stderr)
        workspace = make_workspace(arguments.output / "workspace")
        status = 0
        for name, build in builds(workspace).items():
            output = arguments.output / name
            common = ["--output", str(output), "--workers", str(arguments.workers)]
            status = max(status, build.main([*build.arguments, *common]))
            status = max(status, verify.main([str(output)]))
        print(f"\nthe demo took {time.monotonic() - started:.0f} s. Look at:")
        for name in builds(workspace):
            print(f"  eqforge inspect {arguments.output / name}")
        return status
    return 2
