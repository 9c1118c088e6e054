"""Says what the help of every command costs before it is shown, each in a process of its own.

    python benchmarks/startup.py

The budget is one of imports, which do not depend on the machine: none of the packages of HEAVY, and
at most MODULES modules. CPU seconds are printed beside, for comparison. Returns 1 if the help of a
command is over the budget.
"""

import os
import subprocess
import sys

from eqforge.cli import COMMANDS
from eqforge.schemas.tables.datasets import DATASETS

HEAVY = frozenset(
    {
        *("accelerate", "apache_beam", "av", "bpy", "cv2", "datasets", "diffusers", "dlib"),
        *("face_recognition", "fsspec", "ftfy", "grpc", "imagehash", "inflect"),
        *("kubric", "lemminflect", "matplotlib", "nltk", "open_clip", "pandas"),
        *("py3langid", "pyarrow", "scipy", "skimage", "sklearn", "spacy", "textblob", "tokenizers"),
        *("torch", "torchvision", "transformers", "wordfreq"),
    }
)
"""Packages whose import takes a twentieth of a second or more, or that are not always installed."""

MODULES = 500
"""Modules of any package; Python's own and tyro's are about 200 of them."""

_HELP = """
import resource, sys
from eqforge.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime + used.ru_stime, *sys.modules, file=sys.stderr)
"""


def helps() -> list[list[str]]:
    """Returns the command lines that show each command's and each dataset's help."""
    on_dataset = [[command, name] for command in ("plan", "build") for name in DATASETS]
    on_dataset.append(["import", "winoground"])
    return [[*words, "--help"] for words in ([], *([name] for name in COMMANDS), *on_dataset)]


def main() -> int:
    """Prints the costs; returns 1 if one is over the budget."""
    status = 0
    # Bytecode is kept, as on a user's machine; without it every module is compiled each time.
    environment = {key: os.environ[key] for key in os.environ if key != "PYTHONDONTWRITEBYTECODE"}
    print(f"{'CPU s':>6} {'modules':>8}  command")
    for words in helps():
        command = [sys.executable, "-c", _HELP, *words]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        seconds, *modules = run.stderr.splitlines()[-1].split()
        heavy = sorted(HEAVY.intersection(modules))
        is_over = bool(heavy) or len(modules) > MODULES
        status |= is_over
        notes = f"  OVER BUDGET: {' '.join(heavy) or 'modules'}" if is_over else ""
        print(f"{float(seconds):6.2f} {len(modules):8}  eqforge {' '.join(words)}{notes}")
    return status


if __name__ == "__main__":
    sys.exit(main())
