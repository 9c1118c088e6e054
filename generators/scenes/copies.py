"""Copy assets into the user's own folder, pinned, and check the existing copies."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html import unescape
from pathlib import Path, PurePosixPath
from typing import Any

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import Node, load_json
from eqforge.core.files.pictures import FILE_SUFFIXES, why_unreadable
from eqforge.core.identity import sha256_hex
from eqforge.generators.scenes.assets import fetch_archive, files_of, unpack_into
from eqforge.generators.scenes.manifest import Asset, read_words
from eqforge.generators.scenes.mesh_files import libraries_of, pictures_named, read_gltf, read_text

GSO_WORDS = str(Path(__file__).parent / "data" / "gso_words.json")

Words = Mapping[str, Any]
_URDF_FILE = re.compile(r'filename="([^"]*)"')


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A sentence about an asset; `is_wrong` if it can no longer be rendered as recorded."""

    text: str
    is_wrong: bool = True


def findings_of(asset: Asset) -> Iterator[Finding]:
    if asset.sha256 is None:
        yield Finding(text=f"asset {asset.asset_id!r}: its archive has no sha256 in the manifest")
    try:
        data = fetch_archive(asset)
        yield from _findings_inside(asset, data)
    except InputError as error:
        yield Finding(text=str(error))


def fetch_asset(asset: Asset, folder: str, words: Mapping[str, Any] | None) -> Asset:
    data = fetch_archive(asset)
    for finding in _findings_inside(asset, data):
        if finding.is_wrong:
            raise InputError(finding.text)
    file = PurePosixPath(asset.archive)
    name = f"{asset.asset_id}{'.tar.gz' if file.name.endswith('.tar.gz') else file.suffix}"
    storage.write_bytes(storage.join(folder, name), data)
    entry = {**asset.entry, "sha256": sha256_hex(data), "num_bytes": len(data), "path": name}
    if words is not None:
        entry["words"] = dict(words)
    if not name.endswith((".tar.gz", ".tgz")):
        # For an image without an archive, the manifest has a null path.
        entry |= {"path": None, "kwargs": {**asset.entry["kwargs"], "filename": name}}
    return replace(
        asset,
        archive=storage.join(folder, name),
        sha256=entry["sha256"],
        num_bytes=len(data),
        entry=entry,
    )


def is_there(asset: Asset | None, source: Asset) -> bool:
    if asset is None or asset.sha256 is None or source.sha256 not in (None, asset.sha256):
        return False
    found = storage.exists(asset.archive) and storage.digest(asset.archive)
    return found == (asset.num_bytes, asset.sha256)


def load_words(path: str) -> dict[str, Mapping[str, Any]]:
    return checked_words(load_json(path))


def checked_words(table: Node) -> dict[str, Words]:
    found: dict[str, Words] = {}
    for key, node in table.items():
        read_words(node)
        found[key] = node.mapping()
    return found


def with_words(asset: Asset, words: Mapping[str, Any] | None) -> Asset:
    if words is None:
        return asset
    read = read_words(Node(asset.asset_id, "words", words))
    return replace(asset, words=read, entry={**asset.entry, "words": dict(words)})


def _findings_inside(asset: Asset, data: bytes) -> Iterator[Finding]:
    with tempfile.TemporaryDirectory(prefix="eqforge-asset-") as temporary:
        folder = Path(temporary)
        unpack_into(asset, data, folder)
        files = files_of(asset, folder)
        for path in filter(None, (files.render, files.simulation)):
            for name in sorted(_named_in(path)):
                why = None
                if not (folder / name).is_file():
                    why = "which does not exist"
                elif PurePosixPath(name).suffix.lower() in FILE_SUFFIXES:
                    found = why_unreadable((folder / name).read_bytes())
                    why = found and f"which is unusable: {found}"
                if why:
                    yield Finding(text=f"asset {asset.asset_id!r}: {path.name} uses {name}, {why}")
        for text in plain_surfaces(files.render):
            yield Finding(text=f"asset {asset.asset_id!r}: {text}", is_wrong=False)


def plain_surfaces(render: Path) -> Iterator[str]:
    """Yield why Blender misses textures that seem to belong to an OBJ file.

    A missing image is rendered in magenta and is an error; a missing library makes a grey surface.
    """
    if render.suffix.lower() != ".obj":
        return
    for name, path in libraries_of(render).items():
        if path is None:
            yield f"the surfaces of {render.name} are grey, because {name} does not exist"
    named = _pictures_of(render)
    pictures = (
        path for path in sorted(render.parent.iterdir()) if path.suffix.lower() in FILE_SUFFIXES
    )
    unused = [path.name for path in pictures if path.name not in named]
    if unused and not named:
        yield f"{render.name} does not use the texture {unused[0]}, because no .mtl file names it"


def _named_in(path: Path) -> set[str]:
    if path.suffix.lower() == ".urdf":
        found = _URDF_FILE.findall(unescape(read_text(path)))
        return {PurePosixPath(name).name for name in found}
    if path.suffix.lower() == ".gltf":
        return set(read_gltf(path.read_bytes(), path.name).files_named())
    return _pictures_of(path) if path.suffix.lower() == ".obj" else set()


def _pictures_of(mesh: Path) -> set[str]:
    libraries = (path for path in libraries_of(mesh).values() if path is not None)
    named = (name for path in libraries for name in pictures_named(read_text(path)))
    return {PurePosixPath(name).name for name in named}
