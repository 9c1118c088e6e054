"""pyproject.toml, the locks and docs/dependencies.md name the same dependencies."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
LOCK_LINE = re.compile(r"[a-z0-9-]+==[\w.]+ \\|    --hash=sha256:[0-9a-f]{64}( \\)?|\s*#.*")
PIN = re.compile(r"^([a-z0-9-]+)==(\S+) ", re.MULTILINE)


def direct_requirements() -> list[tuple[str, Requirement]]:
    """The extra, empty for the core, and the requirement."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    by_extra = {"": project["dependencies"], **project["optional-dependencies"]}
    return [(extra, Requirement(text)) for extra, texts in by_extra.items() for text in texts]


def pins(lock: str) -> dict[str, str]:
    return dict(PIN.findall((ROOT / "requirements" / lock).read_text()))


@pytest.mark.parametrize("lock", ["base.lock", "models.lock"])
def test_a_lock_holds_names_versions_and_hashes_only(lock: str) -> None:
    lines = (ROOT / "requirements" / lock).read_text().splitlines()
    assert [line for line in lines if not LOCK_LINE.fullmatch(line)] == []
    assert [line for line in lines if "://" in line or "index" in line] == []


def test_every_direct_requirement_is_met_by_its_lock() -> None:
    base, models = pins("base.lock"), pins("models.lock")
    unmet = [
        f"{extra}: {requirement}"
        for extra, requirement in direct_requirements()
        if not requirement.specifier.contains(
            (models if extra == "models" else base).get(canonicalize_name(requirement.name), "0")
        )
    ]
    assert unmet == [], "run make lock"


def test_the_locks_do_not_overlap_and_the_base_has_no_neural_framework() -> None:
    base, models = pins("base.lock"), pins("models.lock")
    assert not base.keys() & models.keys()
    assert not {"torch", "torchvision", "timm", "transformers", "dlib"} & base.keys()


def test_every_direct_dependency_is_explained_once() -> None:
    table = (ROOT / "docs" / "dependencies.md").read_text()
    rows = re.findall(r"^\| ([\w-]+) \| (\w*) ?\| \S.*\|$", table, re.MULTILINE)
    explained = [(extra, name) for name, extra in rows if name != "package"]
    assert explained == [(extra, requirement.name) for extra, requirement in direct_requirements()]
