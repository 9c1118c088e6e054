"""Makes the datasets that later versions have to read; run once for each release.

    python -m tests.old.make        # writes tests/old/VERSION, less than 1.1 MB

They are made of the demo's own inputs, at the smallest size that has every table and column.
"""

import shutil
import tempfile
from pathlib import Path

import eqforge
from eqforge import cli
from eqforge.generators.demo.workspace import make_workspace
from tests.small_builds import COMMANDS

FOLDER = Path(__file__).parent
OF_CAPTIONS = ("hard-positives", "training-captions", "retrieval-perturbations")


def main() -> None:
    version = FOLDER / eqforge.__version__
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        workspace = make_workspace(scratch / "workspace")
        for dataset, command in COMMANDS.items():
            (inputs := scratch / f"of-{dataset}").mkdir()
            arguments = command(workspace, inputs)
            if dataset in OF_CAPTIONS:
                arguments += ["--limit", "4"]
            if "--videos" in arguments:
                arguments += ["--max-side", "32", "--max-pairs-per-video", "1"]
            arguments += ["--samples-per-file", "10000"]
            if "--images-per-file" in arguments:
                arguments += ["--images-per-file", "10000"]
            output = scratch / dataset
            assert cli.main(["build", *arguments, "--output", str(output)]) == 0
            keep = version / dataset
            shutil.rmtree(keep, ignore_errors=True)
            shutil.copytree(output, keep, ignore=shutil.ignore_patterns("_work"))


if __name__ == "__main__":
    main()
