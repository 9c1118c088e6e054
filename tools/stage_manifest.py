"""The manifest of the pictures of the photographic stage, which two tools write."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eqforge.core.files import storage
from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes.assets import STAGE_MANIFEST

VERSION = "1"
FOLDER = Path(STAGE_MANIFEST).parent


def picture_entry(
    asset_id: str, filename: str, data: bytes, metadata: Mapping[str, str], extra: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns a picture's entry in the manifest."""
    return {
        "asset_type": "Texture",
        "id": asset_id,
        "kwargs": {"filename": filename},
        "license": "CC0-1.0",
        "metadata": dict(metadata),
        "num_bytes": len(data),
        "path": None,
        "sha256": sha256_hex(data),
        **extra,
    }


def replace_entries(category: str, entries: Mapping[str, Mapping[str, Any]]) -> None:
    """Writes the manifest with other entries of one category."""
    path = Path(STAGE_MANIFEST)
    there = json.loads(path.read_text())["assets"] if path.exists() else {}
    others = {key: one for key, one in there.items() if one["metadata"]["category"] != category}
    document = {"name": "eqforge-stage", "version": VERSION, "assets": {**others, **entries}}
    text = json.dumps(document, indent=1, sort_keys=True) + "\n"
    storage.write_bytes(STAGE_MANIFEST, text.encode())
