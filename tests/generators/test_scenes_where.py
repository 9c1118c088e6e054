import platform
import sys

import pytest

from eqforge.core.errors import InputError
from eqforge.generators.scenes import kubric_import
from eqforge.generators.scenes.kubric_import import check_installed, no_blender


@pytest.mark.parametrize(
    ("version", "system", "machine", "said"),
    [
        ((3, 11, 7), "linux", "x86_64", ""),
        ((3, 11, 7), "darwin", "arm64", ""),
        ((3, 13, 0), "linux", "x86_64", ""),
        ((3, 12, 1), "linux", "x86_64", "Python 3.11 (Blender 4.2) or Python 3.13 (Blender 5.2)"),
        ((3, 14, 0), "darwin", "arm64", "but this is Python 3.14"),
        ((3, 11, 7), "linux", "aarch64", "does not support Linux on ARM64"),
    ],
)
def test_what_cannot_render_says_why(
    version: tuple[int, int, int],
    system: str,
    machine: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert said in no_blender()
    assert bool(no_blender()) == bool(said)


def test_a_package_that_cannot_be_had_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubric_import, "PACKAGES", ("no_such_package",))
    monkeypatch.setattr(sys, "version_info", (3, 14, 0))
    with pytest.raises(InputError, match=r"needs Python 3\.11 .* this is Python 3\.14"):
        check_installed()
