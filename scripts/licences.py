"""Prints the table of docs/about/design.md of licences that ask for more than a notice.

It reads the metadata of the packages of requirements/*.lock that are installed here; those whose
metadata states a licence of PERMISSIVE are left out.
"""

import re
from collections import defaultdict
from collections.abc import Iterator
from importlib.metadata import PackageMetadata, PackageNotFoundError, metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("base", "models", "render", "dataflow")
PERMISSIVE = re.compile(
    r"^(MIT|BSD|Apache|PSF|ISC|Python Soft|Boost|[23]-Clause BSD|2-clause|zlib)"
)


def rows() -> Iterator[tuple[str, str, str]]:
    """Yields the lock, name and stated licence of each package in question."""
    for lock in LOCKS:
        text = (ROOT / "requirements" / f"{lock}.lock").read_text()
        for name in sorted(set(re.findall(r"^([a-z0-9-]+)==", text, re.M))):
            try:
                licence = stated(metadata(name))
            except PackageNotFoundError:
                continue  # of another system or extra
            if not PERMISSIVE.match(licence):
                yield lock, name, licence or "none stated"


def stated(of: PackageMetadata) -> str:
    """Returns the licence that a package's metadata states; empty if it states none."""
    classified = [text for text in of.get_all("Classifier") or () if text.startswith("License")]
    named = "; ".join(text.rpartition(" :: ")[2] for text in classified)
    free = (of.get("License") or "").partition("\n")[0]
    return of.get("License-Expression") or named or free


if __name__ == "__main__":
    packages: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for lock, name, licence in rows():
        packages[lock, licence].append(name)
    print("| lock | packages | licence in their metadata |\n|---|---|---|")
    for (lock, licence), names in packages.items():
        print(f"| {lock} | {', '.join(names)} | {licence} |")
