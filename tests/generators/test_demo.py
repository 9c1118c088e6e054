import os
import pickle
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from PIL import Image

from eqforge.core.errors import InputError
from eqforge.generators.demo.clips import (
    Clip,
    all_clips,
    draw_frame,
    load_photograph,
    ticks,
)
from eqforge.generators.demo.workspace import Workspace, make_workspace, workspace_at

WHOLE = [clip for clip in all_clips() if clip.condition == "whole"]

MAKE = "import sys, pathlib; from eqforge.generators.demo.workspace import make_workspace as make; "
MAKE += "make(pathlib.Path(sys.argv[1]))"


@pytest.fixture(scope="module")
def workspace(demo_workspace: Workspace) -> Workspace:
    return demo_workspace


def decode(path: Path) -> Iterator[tuple[float, Image.Image]]:
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            assert frame.time is not None
            picture = Image.fromarray(frame.to_ndarray(format="rgb24"))
            yield frame.time, picture.rotate(frame.rotation, expand=True)


def collect_times(frames: Iterator[tuple[float, Image.Image]], times_s: list[float]) -> None:
    """Appends the times of the frames, and keeps those it had when the decoder fails."""
    for time_s, _ in frames:
        times_s.append(time_s)


def difference(first: Image.Image, second: Image.Image) -> float:
    """Mean absolute difference of two pictures, in grey levels."""
    pair = [np.asarray(picture, dtype=float) for picture in (first, second)]
    return float(np.abs(pair[0] - pair[1]).mean())


def files_of(workspace: Workspace) -> dict[str, bytes]:
    paths = (path for path in workspace.folder.rglob("*") if path.is_file())
    return {str(path.relative_to(workspace.folder)): path.read_bytes() for path in paths}


def read_pickle(path: Path) -> dict[str, Any]:
    return pickle.loads(path.read_bytes())


# --- the scenes


def test_photographs_come_from_the_wheel_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a photograph was looked for in the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    load_photograph.cache_clear()
    names = {shot.photograph for clip in all_clips() for shot in clip.shots}
    assert {load_photograph(name).mode for name in names} == {"RGB"}


# --- the workspace


def test_bytes_are_the_same_in_another_process(workspace: Workspace, tmp_path: Path) -> None:
    """In one with another hash seed and dirtied memory."""
    # MALLOC_PERTURB_ fills what is allocated, so that an encoder that reads it unset is found.
    environment = os.environ | {"PYTHONHASHSEED": "4711", "MALLOC_PERTURB_": "165"}
    subprocess.run([sys.executable, "-c", MAKE, str(tmp_path)], env=environment, check=True)
    ours, other = files_of(workspace), files_of(workspace_at(tmp_path))
    assert sorted(ours) == sorted(other)
    assert [name for name in ours if ours[name] != other[name]] == []


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(InputError, match="cannot create the folder"):
        make_workspace(tmp_path / "file")


@pytest.mark.parametrize("clip", WHOLE, ids=lambda clip: clip.file)
def test_every_frame_has_its_time_and_its_size(workspace: Workspace, clip: Clip) -> None:
    frames = list(decode(workspace.videos / clip.file))
    # Matroska and WebM keep times in milliseconds.
    assert [time_s for time_s, _ in frames] == pytest.approx(
        [tick / clip.fps for tick in ticks(clip)], abs=6e-4
    )
    assert {picture.size for _, picture in frames} == {clip.size}


@pytest.mark.parametrize("clip", WHOLE, ids=lambda clip: clip.file)
def test_the_middle_of_every_shot_shows_what_was_drawn(workspace: Workspace, clip: Clip) -> None:
    pictures = dict(zip(ticks(clip), decode(workspace.videos / clip.file), strict=True))
    for shot, start_s in zip(clip.shots, clip.starts_s, strict=False):
        tick = max(t for t in pictures if t <= (start_s + shot.seconds / 2) * clip.fps)
        drawn = draw_frame(clip, tick / clip.fps)
        # The codecs cost up to 3 grey levels; the two shots most alike in one clip are 9 apart.
        assert difference(pictures[tick][1], drawn) < 5


def test_the_variety_of_real_videos_is_there(workspace: Workspace) -> None:
    codecs, gaps = {}, {}
    for clip in WHOLE:
        path = workspace.videos / clip.file
        with av.open(str(path)) as container:
            codecs[clip.file] = container.streams.video[0].codec_context.name
            pts = sorted(p.pts for p in container.demux(video=0) if p.pts is not None)
            gaps[clip.file] = max(np.diff(pts)) > 1.5 * min(np.diff(pts))
    assert {"h264", "hevc"} < set(codecs.values())
    assert codecs["demoKitchn2.webm"] in {"vp9", "libvpx-vp9"}
    assert [file for file, is_variable in gaps.items() if is_variable] == ["demoRocket1.mp4"]


def test_the_imperfect_videos_are_imperfect(workspace: Workspace) -> None:
    by_condition = {clip.condition: clip for clip in all_clips()}
    assert not (workspace.videos / by_condition["missing"].file).exists()
    assert (workspace.videos / by_condition["empty"].file).read_bytes() == b""
    truncated = by_condition["truncated"]
    frames = decode(workspace.videos / truncated.file)
    shown_s: list[float] = []
    with pytest.raises(av.error.InvalidDataError):  # of the packet that was cut
        collect_times(frames, shown_s)
    middles_s = [
        start_s + shot.seconds / 2
        for shot, start_s in zip(truncated.shots, truncated.starts_s, strict=False)
    ]
    assert [middle_s <= max(shown_s) for middle_s in middles_s] == [True, True, False, False]


# --- the annotations


def test_frame_numbers_count_from_one_and_boxes_fit_the_pixels(workspace: Workspace) -> None:
    """Around a print runs a white margin: the box's border must be white, a step outside not."""
    frames = [picture for _, picture in decode(workspace.videos / "DEMO1.mp4")]
    checked = 0
    for key, objects in read_pickle(workspace.object_boxes).items():
        if key.startswith("DEMO1.mp4") and objects[0]["bbox"] is not None:
            left, top, width, height = map(int, objects[0]["bbox"])
            grey = np.asarray(frames[int(key[-10:-4]) - 1].convert("L"), dtype=float)
            assert grey[top + 1 : top + 3, left + 2 : left + width - 2].mean() > 225
            assert grey[top + 2 : top + height - 2, left + 1 : left + 3].mean() > 225
            assert grey[top - 4 : top - 2, left : left + width].mean() < 215
            checked += 1
    assert checked == 8
