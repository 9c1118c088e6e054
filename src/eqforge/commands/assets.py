"""`eqforge assets`: lists, checks, fetches and adopts the 3D assets that scenes are made of."""

import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from eqforge.generators.scenes.assets import BUILTIN, AssetLibrary
from eqforge.generators.scenes.copies import (
    GSO_WORDS,
    fetch_asset,
    findings_of,
    is_there,
    load_words,
    with_words,
)
from eqforge.generators.scenes.manifest import (
    AS_STORED,
    Asset,
    parse_asset,
    read_manifest,
    write_manifest,
)
from eqforge.generators.scenes.nouns import load_nouns
from eqforge.schemas.errors import InputError
from eqforge.schemas.io import storage
from eqforge.schemas.shell import shell
from eqforge.schemas.visible import in_lines, visible

if TYPE_CHECKING:
    from eqforge.generators.scenes.adopt import Adopted

MANIFEST = "manifest.json"
SCANS_LICENCE = "CC-BY-4.0"
"""Of Google Scanned Objects."""

AT_ONCE = 4
PINNED_EVERY = 20
"""How many archives are fetched between writes of the manifest, and at most lost in a power cut."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """Which assets of which manifest."""

    manifest: str = BUILTIN
    """Path or URL of a manifest in kubric's form, such as gs://kubric-public/assets/GSO/GSO.json
    (gs:// needs the package gcsfs); builtin is eqforge's own."""

    ids: tuple[str, ...] = ()
    """Only these assets."""

    category: tuple[str, ...] = ()
    """Only assets of these categories."""

    limit: int | None = None
    """At most so many, in the order of their ids."""


@dataclass(frozen=True, kw_only=True, slots=True)
class List(Chosen):
    """Show the assets of a manifest, and what captions call them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check(Chosen):
    """Check that assets are there, are the pinned ones, unpack, and hold the files they name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetch(Chosen):
    """Copy assets into a folder, with a manifest there that pins them; goes on where it stopped.

    Builds refuse assets that are not pinned, and speak only of those with words.
    """

    output: str
    """Folder or URL for the archives and their manifest.json; what is there already is kept."""

    words: str | None = None
    """JSON file with words for assets, by id, such as {"Dog": {"noun": "dog", "plural": "dogs",
    "colour": "brown", "parts": []}}; some Google Scanned Objects have words without it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Adopt:
    """Make assets of a folder of scanned objects, with words for captions and a manifest.

    Takes the layouts of Google Scanned Objects for Gazebo (NAME/meshes/model.obj) and for MuJoCo
    (NAME/model.obj, NAME/texture.png), and folders that hold one OBJ or GLB file. What a scan is
    called is told by its name, and its colour by its texture; look at both before you build.
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """Folder with a folder for each scan, or that of one scan."""

    output: str
    """Folder or URL for the archives and their manifest.json; other assets there are kept."""

    nouns: Path | None = None
    """JSON file with words by a phrase of the names, a whole name or a category, such as {"mug":
    {"noun": "mug"}}; they count before those that eqforge knows."""

    axis_up: Literal["Z", "Y"] = "Z"
    """Which axis of the files points up: Z in both layouts of Google Scanned Objects, Y in many
    others. A GLB file has to have it along Z."""

    licence: str = SCANS_LICENCE
    """Of the scans, for the manifest: that of Google Scanned Objects."""


def assets_command(arguments: List | Check | Fetch | Adopt) -> int:
    """Lists, checks, fetches or adopts assets; returns 1 if one failed, else 0."""
    if isinstance(arguments, Adopt):
        return _adopt(arguments)
    found = list(choose(arguments))
    if isinstance(arguments, List):
        return _list(found)
    return _check(found) if isinstance(arguments, Check) else _fetch(arguments, found)


def choose(chosen: Chosen) -> Iterator[Asset]:
    """Yields the chosen assets by id.

    Raises:
      InputError: the manifest cannot be read, or lacks an asset or a category that is asked for.
    """
    library = AssetLibrary(chosen.manifest, "")
    categories = {asset.category for asset in library.assets.values()}
    if unknown := sorted(set(chosen.category) - categories):
        raise InputError(
            f"{library.url}: no category {unknown[0]!r}; it has {', '.join(sorted(categories))}"
        )
    ids = [library.asset(name).asset_id for name in chosen.ids] or sorted(library.assets)
    assets = (library.asset(name) for name in ids)
    wanted = [a for a in assets if not chosen.category or a.category in chosen.category]
    yield from wanted[: chosen.limit]


def fetch_assets(
    assets: list[Asset],
    folder: str,
    words: Mapping[str, Mapping[str, Any]],
    say: Callable[[str], object],
    at_once: int = AT_ONCE,
) -> dict[str, str]:
    """Copies assets into a folder and pins them in its manifest.

    Args:
      assets: as the source's manifest has them.
      folder: path or URL of the folder.
      words: for assets, by id.
      say: called with a line for each asset.
      at_once: how many archives are fetched at the same time.

    Returns:
      Why assets could not be fetched, by id.
    """
    manifest = storage.join(folder, MANIFEST)
    copies = dict(read_manifest(manifest).assets) if storage.exists(manifest) else {}
    failures = {}

    def copy(asset: Asset) -> Asset | InputError:
        said = words.get(asset.asset_id)
        known = copies.get(asset.asset_id)
        try:
            if known is not None and is_there(known, asset):
                return with_words(known, said)
            return fetch_asset(asset, folder, said)
        except InputError as error:
            return error

    try:
        with ThreadPoolExecutor(at_once) as threads:
            done = zip(assets, threads.map(copy, assets), strict=True)
            for number, (asset, result) in enumerate(done, start=1):
                if isinstance(result, InputError):
                    failures[asset.asset_id] = str(result)
                else:
                    copies[asset.asset_id] = result
                verdict = ": failed" if asset.asset_id in failures else ""
                say(f"{number}/{len(assets)} {asset.asset_id}{verdict}")
                if number % PINNED_EVERY == 0:
                    write_manifest(manifest, "copies", "1", copies)
    finally:
        write_manifest(manifest, "copies", "1", copies)
    return failures


def _list(assets: list[Asset]) -> int:
    width = max((len(asset.asset_id) for asset in assets), default=0)
    for asset in assets:
        called = asset.words.noun if asset.words else "(no words)"
        pinned = "pinned" if asset.sha256 else "not pinned"
        print(visible(f"{asset.asset_id:<{width}}  {asset.category:<12} {pinned:<11} {called}"))
    print(f"{len(assets)} assets")
    return 0


def _check(assets: list[Asset]) -> int:
    bad = 0
    for asset in assets:
        found = list(findings_of(asset))
        bad += any(finding.is_wrong for finding in found)
        said = [("" if each.is_wrong else "warning: ") + each.text for each in found]
        print(in_lines(said), end="\n" if found else "")
    print(f"{len(assets) - bad} of {len(assets)} assets are sound")
    return 1 if bad else 0


def _fetch(arguments: Fetch, assets: list[Asset]) -> int:
    words = load_words(GSO_WORDS) | (load_words(arguments.words) if arguments.words else {})
    failures = fetch_assets(
        assets, arguments.output, words, lambda line: print(visible(line), file=sys.stderr)
    )
    print(in_lines(failures.values()), end="\n" if failures else "")
    there = read_manifest(storage.join(arguments.output, MANIFEST)).assets
    mute = sum(asset.words is None and asset.kind == "object" for asset in there.values())
    print(f"{storage.join(arguments.output, MANIFEST)}: {len(there)} assets, {mute} without words")
    return 1 if failures else 0


def _adopt(arguments: Adopt) -> int:
    from eqforge.generators.scenes.adopt import adopt, scans_in

    nouns = {} if arguments.nouns is None else load_nouns(str(arguments.nouns))
    axes = AS_STORED if arguments.axis_up == "Z" else {"axis_forward": "-Z", "axis_up": "Y"}
    manifest = storage.join(arguments.output, MANIFEST)
    there = dict(read_manifest(manifest).assets) if storage.exists(manifest) else {}
    folders, failures = list(scans_in(arguments.folder)), 0
    for number, folder in enumerate(folders, start=1):
        try:
            made = adopt(folder, nouns, axes, arguments.licence)
            asset = parse_asset(folder.name, made.entry, arguments.output)
        except InputError as error:
            failures += 1
            print(visible(str(error)))
            continue
        storage.write_bytes(asset.archive, made.archive)
        there[asset.asset_id] = asset
        print(visible(f"{number}/{len(folders)} {_told(asset, made)}"), file=sys.stderr)
    write_manifest(manifest, "adopted", "1", there)
    mute = sum(asset.words is None for asset in there.values() if asset.kind == "object")
    print(f"{manifest}: {len(there)} assets, {mute} without words, {failures} refused")
    return 1 if failures else 0


def _told(asset: Asset, made: "Adopted") -> str:
    """Returns what an adopted scan is called, and what is to be known of it."""
    words = asset.words
    called = "(no words)" if words is None else " ".join(filter(None, (words.colour, words.noun)))
    return "; ".join((f"{asset.asset_id}: {called}", *made.notes))


main = shell("eqforge assets", List | Check | Fetch | Adopt, assets_command, keeps_output=True)
"""Lists, checks, fetches or adopts what a command line names."""
