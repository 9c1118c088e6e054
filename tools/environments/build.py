"""Copies six environment pictures out of Blender's wheel, and measures them for the manifest.

They are by Greg Zaal (Poly Haven, https://polyhaven.com) and CC0: the wheel says so in
`datafiles/studiolights/world/license.txt`. Night and studio, its other two, light no floor from
outside.

Example:
    python -m tools.environments.build    # from the root of the repository, with the render extra
"""

import sys
from collections.abc import Mapping
from importlib.metadata import distribution
from pathlib import Path

import msgspec

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes.environments import measure_environment, read_high_range
from tools.stage_manifest import FOLDER, picture_entry, replace_entries

WORLDS = "bpy/4.2/datafiles/studiolights/world"

PINNED: Mapping[str, str] = {
    "city": "70940108df90c0721799d29f758ca79e67e509d9a2636487e639db7779561524",
    "courtyard": "1518fa37da6a8a389810a7a70262c410553018a51f0be9e248155b9bb363ff3d",
    "forest": "63ad3243d0f9c29bd1f51b9a3bbf5c0ad25ea39299698dba6cfc29d1660d6008",
    "interior": "4f6810b182ade346eac6964bf02405adf430c321b8853a644316af4e05d0fdb5",
    "sunrise": "b97206217e29763d62d9a65ad2d7058460acfb4824659e7a59f5bde374f21937",
    "sunset": "a164f20b86bc43ba4afd66c988a20a9dd5f1a0a5d8e960aed57a33f78119c168",
}
"""SHA-256 of the pictures, by name."""

INDOORS = {"interior"}
"""Of them, those that were taken in a room."""

METADATA = {
    "author": "Greg Zaal (Poly Haven)",
    "category": "environment",
    "source": "https://polyhaven.com",
}


def blender_picture(name: str) -> bytes:
    """Returns an environment picture of Blender's wheel.

    Raises:
      InputError: it is not the pinned one.
    """
    data = Path(str(distribution("bpy").locate_file(f"{WORLDS}/{name}.exr"))).read_bytes()
    if sha256_hex(data) != PINNED[name]:
        raise InputError(f"{name}.exr of bpy is another one than the pinned {PINNED[name]}")
    return data


def main() -> None:
    """Writes the pictures and their part of the manifest."""
    entries = {}
    for name in PINNED:
        data, filename = blender_picture(name), f"environments/{name}.exr"
        storage.write_bytes(str(FOLDER / filename), data)
        measured = measure_environment(read_high_range(FOLDER / filename), name)
        entries[f"stage_{name}"] = picture_entry(
            f"stage_{name}",
            filename,
            data,
            METADATA,
            {
                "measured": msgspec.to_builtins(measured),
                "place": "indoors" if name in INDOORS else "outdoors",
            },
        )
        print(f"{name:<10}{len(data):>9,} bytes, exposure {measured.exposure:.3f}", file=sys.stderr)
    replace_entries("environment", entries)


if __name__ == "__main__":
    main()
