"""What the package carries of others is what they published, byte for byte, with their licence."""

import re
from pathlib import Path

from eqforge.core.identity import sha256_hex

ROOT = Path(__file__).resolve().parents[1]
UPLOT = ROOT / "evaluation" / "report" / "site" / "assets" / "uplot"
UPLOT_VERSION = "1.6.32"
# Of the files in the archive that `npm pack uplot@1.6.32` gets, whose own integrity npm states as
# sha512-KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==
UPLOT_FILES = {
    "LICENSE": "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
    "uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uPlot.min.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}


def test_uplot_is_as_it_was_published() -> None:
    """That the wheel holds these files too is in test_packaging.py, as of every file."""
    found = {path.name: sha256_hex(path.read_bytes()) for path in UPLOT.iterdir()}

    assert found == UPLOT_FILES
    assert f"(v{UPLOT_VERSION})" in (UPLOT / "uPlot.iife.min.js").read_text("utf-8")[:100]
    page = (ROOT / "docs" / "about" / "design.md").read_text()
    assert re.findall(r"uPlot (\S+) \(MIT", page) == [UPLOT_VERSION]
    assert "Permission is hereby granted, free of charge" in (UPLOT / "LICENSE").read_text()
