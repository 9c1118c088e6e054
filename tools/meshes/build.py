"""Makes the archives of eqforge's own assets and the manifest that pins them.

They are committed as files, so that their bytes do not depend on a user's package versions; a test
compares them with what this makes.

Example:
    python -m tools.meshes.build    # from the root of the repository
"""

import json
import sys
from pathlib import Path
from typing import Any

from eqforge.core.files import storage
from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes.assets import BUILTIN_MANIFEST, packed
from tools.meshes.catalogue import CATALOGUE, Entry, words_entry
from tools.meshes.wavefront import asset_files, asset_kwargs, normalised

LICENCE = "Apache-2.0"
VERSION = "1"


def model_files(asset_id: str, entry: Entry) -> dict[str, bytes]:
    """Returns the files of an asset by name."""
    return asset_files(asset_id, normalised(entry.model()), entry.surfaces, LICENCE)


def manifest_entry(asset_id: str, entry: Entry, archive: bytes) -> dict[str, Any]:
    """Returns an asset's entry in the manifest."""
    return {
        "asset_type": "FileBasedObject",
        "id": asset_id,
        "kwargs": asset_kwargs(normalised(entry.model())),
        "license": LICENCE,
        "metadata": {"category": entry.category},
        "num_bytes": len(archive),
        "path": f"meshes/{asset_id}.tar.gz",
        "sha256": sha256_hex(archive),
        "words": words_entry(entry.words),
    }


def main() -> None:
    """Writes all archives and the manifest."""
    folder, entries = Path(BUILTIN_MANIFEST).parent, {}
    for asset_id, entry in CATALOGUE.items():
        archive = packed(model_files(asset_id, entry), level=9)
        entries[asset_id] = manifest_entry(asset_id, entry, archive)
        storage.write_bytes(str(folder / entries[asset_id]["path"]), archive)
        print(f"{asset_id:<16}{len(archive):>9,} bytes", file=sys.stderr)
    document = {"name": "eqforge", "version": VERSION, "assets": entries}
    text = json.dumps(document, indent=1, sort_keys=True) + "\n"
    storage.write_bytes(BUILTIN_MANIFEST, text.encode())


if __name__ == "__main__":
    main()
