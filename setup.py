"""Packaging; Beam workers install this with `--setup_file=./setup.py`."""

import re
from pathlib import Path

from setuptools import find_packages, setup

FOLDERS = {
    *("core", "evaluation", "generators", "models"),
    *("pipelines", "schemas", "sources", "transforms"),
}

packages = find_packages("src")
if missing := FOLDERS - {name.removeprefix("eqforge.") for name in packages}:
    raise SystemExit(f"src/eqforge lacks {sorted(missing)}: check out with git symlinks on")

IMAGE = re.compile(r"^!\[[^]]*\]\((?!https?:)[^)]*\)\n+(\*.*\*\n+)?", re.M)
LINK = re.compile(r"\[([^]]*)\]\((?!https?:|#)[^)]*\)")
# An index shows the README alone: without images, and with the texts of links to other files.
readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
description = LINK.sub(r"\1", IMAGE.sub("", readme))

setup(
    long_description=description,
    long_description_content_type="text/markdown",
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
