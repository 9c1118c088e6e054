"""Fuzzes the readers of annotations, and the steps that get a user's images and captions.

    python -m tests.fuzz all --inputs 100000                      # inputs drawn by Hypothesis
    python -m tests.fuzz youcook2 --inputs 100000 --engine atheris  # by the branches they take

Atheris comes by `pip install -r tests/fuzz/requirements.txt`. Prints for each target how many
inputs gave records, rejects or one clear error. Anything else is a finding: another exception, more
than two seconds, or half a gigabyte. The inputs that gave findings are written to --keep; status 1.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="+", help="names, or all")
    parser.add_argument("--inputs", type=int, default=100_000, help="for each target")
    parser.add_argument("--engine", choices=("hypothesis", "atheris"), default="hypothesis")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir(), "eqforge-fuzz"))
    options = parser.parse_args()
    if options.engine == "atheris":
        import atheris

        with atheris.instrument_imports(include=["eqforge"]):
            from tests.fuzz.engines import fuzz_with_atheris as fuzz
    else:
        from tests.fuzz.engines import fuzz_with_hypothesis as fuzz
    from tests.fuzz.targets import TARGETS

    names = list(TARGETS) if options.targets == ["all"] else options.targets
    if unknown := sorted(set(names) - set(TARGETS)):
        parser.error(f"unknown target {unknown[0]}; known: {', '.join(TARGETS)}")
    if len(names) == 1:
        return fuzz(names[0], options.inputs, options.seed, options.keep)
    command = [sys.executable, "-m", "tests.fuzz", "--inputs", str(options.inputs)]
    command += ["--engine", options.engine, "--seed", str(options.seed)]
    command += ["--keep", str(options.keep)]
    return max([subprocess.run([*command, name], check=False).returncode for name in names])


if __name__ == "__main__":
    sys.exit(main())
