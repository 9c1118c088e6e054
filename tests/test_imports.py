"""The import directions of the design, and what importing eqforge must not drag in."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LAYERS = "Imports run one way, from pipelines down to core"
BEAM = "Beam stays in transforms and pipelines"
SCHEMAS = "Schemas build on one another, from datasets down to records"
TRANSFORMS = "Transforms build on one another, from datasets down to filters"
EVALUATION = "Evaluation knows datasets only by their schemas"

# A folder, what a module in it must not import, and the contract that forbids it.
VIOLATIONS = [
    ("models", "apache_beam", BEAM),
    ("core", "eqforge.schemas", LAYERS),
    ("pipelines", "eqforge.evaluation", LAYERS),
    ("evaluation", "eqforge.transforms", EVALUATION),
    ("schemas/records", "eqforge.schemas.tables", SCHEMAS),
    ("transforms/dataset", "eqforge.transforms.video", TRANSFORMS),
]
FOLDERS = (
    *("core", "evaluation", "generators", "models"),
    *("pipelines", "schemas", "sources", "transforms"),
)

# Modules of torch's own classes, which only functions import.
TORCH_MODULES = tuple(
    f"eqforge.evaluation.training.{name}" for name in ("finetune", "fusion", "loop", "networks")
)
IMPORT_ALL = """
import importlib, pkgutil, sys
for package in {packages}:
    path = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(path, package + "."):
        if not module.name.endswith("__main__") and module.name not in {skipped}:
            importlib.import_module(module.name)
print(*{{name.partition(".")[0] for name in sys.modules}})
"""

OPTIONAL = {
    *("av", "cv2", "dlib", "face_recognition"),
    *("inflect", "lemminflect", "nltk", "open_clip", "sklearn", "spacy", "textblob"),
    *("torch", "transformers"),
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "eqforge"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "cli.py").touch()
    for folder in FOLDERS:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "__init__.py").touch()
        (package / folder).symlink_to(f"../../{folder}")
    for path in (*(ROOT / "schemas").iterdir(), *(ROOT / "transforms").iterdir()):
        place = tmp_path / path.relative_to(ROOT)
        if path.suffix == ".py":
            place.touch()
        elif (path / "__init__.py").exists():
            place.mkdir()
            (place / "__init__.py").touch()
    (tmp_path / "pyproject.toml").write_bytes((ROOT / "pyproject.toml").read_bytes())
    return tmp_path


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(folder / "src")},
        capture_output=True,
        text=True,
        check=False,
    )


def modules_loaded_by(*packages: str) -> set[str]:
    code = IMPORT_ALL.format(packages=packages, skipped=TORCH_MODULES)
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_the_contracts_hold_for_a_package_without_imports(checkout: Path) -> None:
    done = lint_imports(checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 kept, 0 broken" in done.stdout


def test_imports_against_the_direction_are_found_behind_the_links(checkout: Path) -> None:
    for folder, imported, _ in VIOLATIONS:
        (checkout / folder / "offender.py").write_text(f"import {imported}\n")
    done = lint_imports(checkout)
    assert done.returncode == 1
    for folder, imported, contract in VIOLATIONS:
        assert f"eqforge.{folder.replace('/', '.')}.offender -> {imported}" in done.stdout
        assert f"{contract} BROKEN" in done.stdout


def test_a_new_module_beside_the_folders_needs_a_place_in_the_layers(checkout: Path) -> None:
    (checkout / "src" / "eqforge" / "stray.py").touch()
    done = lint_imports(checkout)
    assert done.returncode == 1
    assert "eqforge.stray" in done.stdout


def test_importing_everything_loads_no_optional_package() -> None:
    assert modules_loaded_by("eqforge") & OPTIONAL == set()


def test_folders_without_beam_do_not_load_it() -> None:
    folders = sorted(set(FOLDERS) - {"pipelines", "transforms"})
    assert "apache_beam" not in modules_loaded_by(*(f"eqforge.{folder}" for folder in folders))


def test_captions_of_videos_are_linted_and_compared_without_the_extra_for_texts() -> None:
    text = ("spacy", "nltk", "textblob", "lemminflect", "inflect", "py3langid", "sklearn")
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({(*text, 'open_clip', 'torch')}))\n"
        "from eqforge.generators.text.caption_lint import CaptionSettings, lint_caption\n"
        "from eqforge.generators.text.words import word_edit\n"
        "import eqforge.pipelines.eq_video\n"
        "print(lint_caption('onion ' * 90, CaptionSettings()).value)\n"
        "print(word_edit('切红洋葱', '切白洋葱').distance)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["92", "1"]
