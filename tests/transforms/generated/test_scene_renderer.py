"""The renderer's process may be killed, hang, or lack what it needs; the bytes stay the same."""

import dataclasses
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.sandbox.child import ChildDied, ChildFailed, ChildTimeout
from eqforge.generators.scenes import kubric_import
from eqforge.schemas.records.scenes import RenderSettings
from eqforge.transforms.generated import scene_renderer
from eqforge.transforms.generated.scene_renderer import SceneKillsRenderer, SceneRenderer
from tests.renders import BALL, BRICK, SETTINGS, needs_blender, open_renderer, scene


@pytest.fixture(scope="module")
def renderer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SceneRenderer]:
    renderer = open_renderer(tmp_path_factory.mktemp("assets"))
    yield renderer
    renderer.close()


def children() -> list[psutil.Process]:
    return psutil.Process().children()


@contextmanager
def meanwhile(act: Callable[[], bool]) -> Iterator[None]:
    """Calls a function again and again from another thread until it returns True."""
    is_over = threading.Event()

    def repeat() -> None:
        while not is_over.is_set() and not act():
            time.sleep(0.005)

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@needs_blender
def test_the_bytes_are_the_same_again_after_others_and_in_another_process(
    renderer: SceneRenderer, tmp_path: Path
) -> None:
    wanted = scene(BALL, dataclasses.replace(BRICK, asset="gift_box", scale=1.5))
    other = scene(BRICK, dataclasses.replace(BALL, asset="mug", material="glass"), seed=8)
    first, again = renderer.render([wanted, wanted])
    _, after_another = renderer.render([other, wanted])
    copy = pickle.loads(pickle.dumps(renderer))
    (elsewhere,) = copy.render([wanted])
    copy.close()
    assert first == again == after_another == elsewhere


@needs_blender
def test_a_renderer_that_is_killed_loses_nothing(
    renderer: SceneRenderer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenes = [scene(BALL, BRICK, seed=seed) for seed in range(4)]
    expected = renderer.render(scenes)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = children()
    killed: list[int] = []

    def kill() -> bool:
        if not list(tmp_path.glob("*/*[0-9].png")):
            return False
        (child,) = set(children()) - set(before)
        child.kill()
        killed.append(child.pid)
        return True

    other = open_renderer(tmp_path / "other")
    with meanwhile(kill):
        assert other.render(scenes) == expected
    assert len(killed) == 1
    other.close()
    assert [path for path in tmp_path.iterdir() if path.name != "other"] == []


@needs_blender
def test_a_renderer_that_is_killed_before_it_is_ready_is_started_again(
    renderer: SceneRenderer, tmp_path: Path
) -> None:
    (expected,) = renderer.render([scene(BALL)])
    before = children()

    def kill() -> bool:
        for child in set(children()) - set(before):
            child.kill()
            return True
        return False

    other = open_renderer(tmp_path)
    with meanwhile(kill):
        assert other.render([scene(BALL)]) == (expected,)
    other.close()


@needs_blender
def test_a_scene_that_always_ends_the_renderer_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = children()

    def kill_all() -> bool:
        with suppress(FileNotFoundError):  # the renderer's folder goes with it
            for folder in tmp_path.glob("*/blender_*"):  # Blender runs
                for child in set(children()) - set(before):
                    child.kill()
                folder.rename(folder.with_name("seen"))
        return False

    renderer = open_renderer(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with (
        meanwhile(kill_all),
        pytest.raises(SceneKillsRenderer, match=r"scene 0: .*SIGKILL") as caught,
    ):
        renderer.render([scene(BALL)])
    assert isinstance(caught.value.cause, ChildDied)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.index, str(copy), type(copy.cause)) == (0, str(caught.value), ChildDied)
    assert len(renderer.render([scene(BALL)])) == 1
    renderer.close()


@needs_blender
def test_a_renderer_that_hangs_is_ended(tmp_path: Path) -> None:
    before = children()
    renderer = open_renderer(tmp_path, timeout_s=0.05)  # less than Blender takes to start
    with pytest.raises(SceneKillsRenderer, match="no response") as caught:
        renderer.render([scene(BALL)])
    assert isinstance(caught.value.cause, ChildTimeout)
    assert set(children()) == set(before)


@needs_blender
def test_a_missing_asset_is_named(renderer: SceneRenderer) -> None:
    with pytest.raises(InputError, match="no asset 'unicorn'"):
        renderer.render([scene(dataclasses.replace(BALL, asset="unicorn"))])


@needs_blender
def test_without_a_graphics_card_the_error_says_what_there_is(tmp_path: Path) -> None:
    settings = dataclasses.replace(SETTINGS, device="gpu")
    renderer = SceneRenderer(settings, assets="builtin", cache=str(tmp_path))
    with pytest.raises(InputError, match=r"OPTIX or CUDA graphics card; it found .*\(CPU\)"):
        renderer.render([scene(BALL)])
    renderer.close()


def test_a_missing_package_is_told_before_a_process_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubric_import, "no_blender", lambda: "")  # as where there may be one
    monkeypatch.setitem(sys.modules, "bpy", None)  # as if it were not installed
    before = children()
    with pytest.raises(MissingExtra, match=r"bpy .*eqforge\[render\]"):
        open_renderer(tmp_path).render([])
    assert set(children()) == set(before)


@needs_blender
def test_a_missing_library_of_the_system_names_the_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module of that name stands before Blender's and fails as the loader of libraries does."""
    broken = "raise ImportError('libXi.so.6: cannot open shared object file')"
    (tmp_path / "bpy.py").write_text(broken)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    renderer = open_renderer(tmp_path)
    with pytest.raises(InputError, match=r"libXi\.so\.6.*apt-get install .*libxi6"):
        renderer.render([scene(BALL)])
    renderer.close()


@pytest.mark.parametrize(
    "wrong", [{"resolution": 15}, {"resolution": 4097}, {"samples": 0}, {"samples": 65537}]
)
def test_settings_outside_their_range_are_refused(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(InputError, match=name):
        RenderSettings(**wrong)


@pytest.mark.parametrize("name", ["outside", "link", "pipe", "..", "nul\0", None])
def test_a_renderer_that_was_taken_over_has_no_other_file_read(
    name: str | None, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("secret")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "good.png").write_bytes(b"picture")
    (folder / "link").symlink_to(tmp_path / "outside")
    os.mkfifo(folder / "pipe")
    good = {"image": str(folder / "good.png"), "objects": [], "overlaps": []}
    mask = name and str((tmp_path if name == "outside" else folder) / name)

    assert scene_renderer._read(good | {"mask": good["image"]}, str(folder)).mask_png == b"picture"
    with pytest.raises(ChildFailed, match="no answer"):
        scene_renderer._read(good | {"mask": mask}, str(folder))
