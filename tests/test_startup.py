"""What `--help` of any command imports, and `import eqforge`: nothing that takes long."""

import subprocess
import sys
from pathlib import Path

from benchmarks.startup import HEAVY, helps

SHOW_ALL = """
import contextlib, io, sys
from eqforge.cli import main
for words in {helps}:
    shown, before = io.StringIO(), set(sys.modules)
    with contextlib.redirect_stdout(shown), contextlib.suppress(SystemExit):
        main(words)
    assert "usage: eqforge" in shown.getvalue(), (words, shown.getvalue())
    print(" ".join(words), *{heavy}.intersection(set(sys.modules) - before), sep=",")
"""


def test_no_help_imports_a_heavy_package() -> None:
    code = SHOW_ALL.format(helps=helps(), heavy=set(HEAVY))
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = {words: heavy for words, *heavy in (line.split(",") for line in run.stdout.split("\n"))}
    assert len(found) == len(helps()) + 1  # the last line ends
    assert {words: heavy for words, heavy in found.items() if heavy} == {}


def test_importing_eqforge_imports_no_package_but_its_own() -> None:
    code = (
        "import sys; before = set(sys.modules); import eqforge; from eqforge import InputError\n"
        "print(*{name.partition('.')[0] for name in set(sys.modules) - before})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) - sys.stdlib_module_names == {"eqforge"}


def test_linting_text_pairs_leaves_what_their_packages_would_load_aside(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(
        '{"image": "a.jpg", "caption": "an cat sits on a mat", "hard_negative": "a dog sits"}\n'
    )
    code = (
        "import sys; from eqforge.cli import main; main(['lint', sys.argv[1]])\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, pairs], capture_output=True, text=True, check=True
    )
    *findings, loaded = run.stdout.splitlines()
    assert any("article" in line for line in findings), findings
    assert set(loaded.split()) >= {"inflect", "textblob"}
    assert set(loaded.split()) & {"nltk", "spacy", "torch", "pyarrow", "scipy"} == set()
