"""pyproject.toml explains each dependency, and the locks pin the same ones."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import NormalizedName, canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
EXTRA_LOCKS = ("dev", "models", "render", "dataflow")  # each adds to base.lock what it needs
IN_BASE = ("", "video", "text", "faces")
IN_DEV = ("dev", "s3")
LOCK_LINE = re.compile(
    r"[a-z0-9-]+==[\w.]+( ; [\w '.<>=!()*-]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?|\s*#.*"
)
PIN = re.compile(r"^([a-z0-9-]+)==(\S+) ", re.MULTILINE)


def direct_requirements() -> list[tuple[str, Requirement]]:
    """The extra, empty for the core, or group, and the requirement; no extra of extras."""
    read = tomllib.loads((ROOT / "pyproject.toml").read_text())
    by_extra = {"": read["project"]["dependencies"], **read["project"]["optional-dependencies"]}
    by_extra |= read["dependency-groups"]
    found = [(extra, Requirement(text)) for extra, texts in by_extra.items() for text in texts]
    return [(extra, requirement) for extra, requirement in found if requirement.name != "eqforge"]


def pins(lock: str) -> dict[str, set[str]]:
    """The versions of each package: one, or one for each Python."""
    found: dict[str, set[str]] = {}
    for name, version in PIN.findall((ROOT / "requirements" / f"{lock}.lock").read_text()):
        found.setdefault(name, set()).add(version)
    return found


@pytest.mark.parametrize("lock", ["base", *EXTRA_LOCKS])
def test_a_lock_holds_names_versions_and_hashes_only(lock: str) -> None:
    lines = (ROOT / "requirements" / f"{lock}.lock").read_text().splitlines()
    assert [line for line in lines if not LOCK_LINE.fullmatch(line)] == []
    assert [line for line in lines if "://" in line or "index" in line] == []


def imported_modules(files: Iterable[Path]) -> Iterator[tuple[str, str]]:
    ours = {"benchmarks", "eqforge", "scripts", "tests", "tools"}
    for path in files:
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                names = [node.module or ""]
            for name in {name.partition(".")[0] for name in names} - ours:
                if name not in sys.stdlib_module_names:
                    yield path.relative_to(ROOT).as_posix(), name


def undeclared(files: Iterable[Path], declared: set[NormalizedName]) -> list[tuple[str, str]]:
    providers = dict(packages_distributions())
    # What their metadata does not say.
    providers |= {"dlib": ["dlib-bin"], "mathutils": ["bpy"]}
    return [
        (file, name)
        for file, name in imported_modules(files)
        if not {canonicalize_name(found) for found in providers.get(name, [name])} & declared
    ]


def test_every_direct_requirement_is_met_by_its_lock() -> None:
    base = pins("base")
    locks = dict.fromkeys(IN_BASE, base) | dict.fromkeys(IN_DEV, base | pins("dev"))
    locks |= {extra: base | pins(extra) for extra in EXTRA_LOCKS if extra not in IN_DEV}
    locks["plots"] = locks["models"]
    unmet = []
    for extra, requirement in direct_requirements():
        pinned = locks[extra].get(canonicalize_name(requirement.name), set())
        if not any(map(requirement.specifier.contains, pinned)):
            unmet.append(str(requirement))
    assert unmet == [], "run make lock"


def test_the_locks_agree_and_the_base_has_no_neural_framework() -> None:
    base = pins("base")
    pinned: dict[str, set[str]] = {}
    for extra in EXTRA_LOCKS:
        added = pins(extra)
        assert not base.keys() & added.keys()
        assert all(pinned.setdefault(name, found) == found for name, found in added.items())
    assert not {"torch", "torchvision", "timm", "transformers", "dlib"} & base.keys()


def test_every_package_that_eqforge_imports_is_declared() -> None:
    package = ROOT / "src" / "eqforge"
    folders = [package, *(link.resolve() for link in package.iterdir() if link.is_symlink())]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    declared = {
        canonicalize_name(need.name) for extra, need in direct_requirements() if extra != "dev"
    }
    assert undeclared(files, declared) == []


def test_every_package_that_the_tests_import_is_declared() -> None:
    declared = {canonicalize_name(need.name) for _, need in direct_requirements()}
    fuzzing = (ROOT / "tests" / "fuzz" / "requirements.txt").read_text().splitlines()
    for line in fuzzing:
        if not line.startswith("#"):
            declared.add(canonicalize_name(Requirement(line).name))
    assert undeclared((ROOT / "tests").rglob("*.py"), declared) == []


def test_every_direct_dependency_is_explained() -> None:
    lines = (ROOT / "pyproject.toml").read_text().splitlines()
    explained = [line for line in lines if re.fullmatch(r'  "[^"]+",  # \S.+', line)]
    assert len(explained) == len(direct_requirements())
