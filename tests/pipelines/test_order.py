"""The order of records, videos and keys in an annotation file changes nothing that is planned.

What a plan holds decides every row: pairs, ids, frames and rejects. Own captions are compared byte
for byte after a build, in `test_eq_video`.
"""

import json
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eqforge.core.help import Help
from eqforge.generators.demo.workspace import Workspace
from eqforge.pipelines import eq_ag, eq_gebc, eq_youcook2
from eqforge.pipelines.base.command import parse_line
from eqforge.pipelines.base.pipeline import AnyPipeline
from eqforge.schemas.records.frames import Clip


def shuffled(value: Any, rng: random.Random) -> Any:
    """Every object and every array of objects in another order; bounds and boxes stay."""
    if isinstance(value, dict):
        members = [(name, shuffled(member, rng)) for name, member in value.items()]
        return dict(rng.sample(members, len(members)))
    if isinstance(value, list) and all(isinstance(member, dict) for member in value):
        return rng.sample([shuffled(member, rng) for member in value], len(value))
    return value


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def write_pickle(path: Path, value: Any) -> None:
    path.write_bytes(pickle.dumps(value))


@pytest.mark.parametrize(
    ("pipeline", "flag", "source", "load", "write"),
    [
        (eq_youcook2.EqYouCook2, "annotations", "youcook2", json.loads, write_json),
        (eq_gebc.EqGebc, "annotations", "gebplus", json.loads, write_json),
        (eq_ag.EqAg, "objects", "object_boxes", pickle.loads, write_pickle),
    ],
)
@pytest.mark.parametrize("limit", [[], ["--limit", "7"]])
def test_the_order_of_an_annotation_file_changes_no_plan(
    demo_workspace: Workspace,
    tmp_path: Path,
    pipeline: type[AnyPipeline],
    flag: str,
    source: str,
    load: Callable[[bytes], Any],
    write: Callable[[Path, Any], None],
    limit: list[str],
) -> None:
    published: Path = getattr(demo_workspace, source)

    def plan(annotations: Path) -> list[Clip]:
        inputs = [f"--{flag}", str(annotations), "--videos", str(demo_workspace.videos)]
        argv = [*inputs, "--output", str(tmp_path / "out"), *limit]
        line, _ = parse_line(pipeline, argv, Help(program="eqforge plan"))
        return list(pipeline(line.settings).plan())

    first = plan(published)
    assert any(clip.pairs for clip in first)
    for seed in range(3):
        other = tmp_path / published.name
        write(other, shuffled(load(published.read_bytes()), random.Random(seed)))
        assert other.read_bytes() != published.read_bytes()
        assert plan(other) == first
