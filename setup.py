"""Packaging; Beam workers install this with `--setup_file=./setup.py`."""

from setuptools import find_packages, setup

FOLDERS = {
    *("core", "evaluation", "generators", "models"),
    *("pipelines", "schemas", "sources", "transforms"),
}

packages = find_packages("src")
if missing := FOLDERS - {name.removeprefix("eqforge.") for name in packages}:
    raise SystemExit(f"src/eqforge lacks {sorted(missing)}: check out with git symlinks on")

setup(
    package_dir={"": "src"},
    packages=packages,
    package_data={
        "eqforge": ["py.typed"],
        "": [
            *("**/*.json", "**/*.txt", "**/*.tsv", "**/*.csv", "**/*.tar.gz"),
            *("site/**", "inputs/**"),
            *("**/*.toml", "**/*.exr", "**/*.jpg", "**/*.png"),
        ],
    },
)
