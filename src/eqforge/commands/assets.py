"""`eqforge assets`: list, check, fetch and adopt 3D assets for scenes."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import Node
from eqforge.core.shell import Command
from eqforge.core.visible import counted, in_lines, visible
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
    Asset,
    manifest_to_grow,
    read_asset,
    read_manifest,
    write_manifest,
)
from eqforge.schemas.dataset.manifest import IDENTITY, WORK
from eqforge.transforms.engines.exclusive_job import locked

MANIFEST = "manifest.json"
SCANS_LICENCE = "CC-BY-4.0"
"""Licence of Google Scanned Objects."""

AT_ONCE = 4
PINNED_EVERY = 20
"""Number of archives between writes of the manifest: a power cut loses no more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Chosen:
    """Assets to select from a manifest."""

    manifest: str = BUILTIN
    """Path or URL of a manifest in Kubric's format, or `builtin`. A gs:// URL needs gcsfs."""

    ids: tuple[str, ...] = ()
    """Ids of the assets to use (default: all)."""

    category: tuple[str, ...] = ()
    """Categories of assets to use (default: all)."""

    limit: int | None = None
    """Maximum number of assets, in the order of their ids."""


@dataclass(frozen=True, kw_only=True, slots=True)
class List(Chosen):
    """Show the assets in a manifest and the words that captions use for them."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Check(Chosen):
    """Check that assets exist, match their pinned digests, can be unpacked and are complete."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Fetch(Chosen):
    """Copy assets into a folder, with a manifest that pins their digests.

    Builds use only pinned assets, and captions mention only assets that have words. To resume an
    interrupted fetch, run the same command again.
    """

    output: str
    """Folder or URL for the archives and their manifest.json. Existing files are kept."""

    words: str | None = None
    """JSON file of caption words by asset id, such as {"Dog": {"noun": "dog", "plural": "dogs",
    "colour": "brown", "parts": []}}."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Adopt:
    """Turn a folder of scanned objects into assets, with a manifest that pins their digests.

    Supported layouts are Google Scanned Objects for Gazebo or MuJoCo, and folders with one OBJ, GLB
    or glTF file. Words are taken from names and colours from textures, so check both before you
    build.
    """

    folder: Annotated[Path, tyro.conf.Positional]
    """Folder with one scan, or with one subfolder per scan."""

    output: str
    """Folder or URL for the archives and their manifest.json. Other assets are kept."""

    nouns: Path | None = None
    """JSON file of caption words by asset name, phrase or category: {"mug": {"noun": "mug"}}."""

    axis_up: Literal["Z", "Y"] | None = None
    """Axis that points up in the files (default: Z for OBJ, Y for GLB and glTF)."""

    licence: str = SCANS_LICENCE
    """Licence of the scans. The default is the licence of the Google Scanned Objects."""


def assets_command(arguments: List | Check | Fetch | Adopt) -> int:
    if isinstance(arguments, Adopt):
        return _adopt(arguments)
    found = list(choose(arguments))
    if isinstance(arguments, Fetch):
        return _fetch(arguments, found)
    if isinstance(arguments, Check):
        bad = 0
        for asset in found:
            findings = list(findings_of(asset))
            bad += any(finding.is_wrong for finding in findings)
            lines = [("" if each.is_wrong else "warning: ") + each.text for each in findings]
            print(in_lines(lines), end="\n" if lines else "")
        print(f"{len(found) - bad} of {len(found)} assets are intact")
        return 1 if bad else 0
    width = max((len(asset.asset_id) for asset in found), default=0)
    for asset in found:
        pinned = "pinned" if asset.sha256 else "not pinned"
        line = f"{asset.asset_id:<{width}}  {asset.category:<12} {pinned:<11} {_called(asset)}"
        print(visible(line))
    print(counted(len(found), "assets"))
    return 0


def choose(chosen: Chosen) -> Iterator[Asset]:
    if chosen.limit is not None and chosen.limit < 1:
        raise InputError(f"--limit {chosen.limit}: expected 1 or more")
    library = AssetLibrary(chosen.manifest, "")
    categories = {asset.category for asset in library.assets.values()}
    if unknown := sorted(set(chosen.category) - categories):
        raise InputError(
            f"{library.url} has no category {unknown[0]!r}; the categories are "
            f"{', '.join(sorted(categories))}"
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
    url = storage.join(folder, MANIFEST)
    copies = dict(manifest_to_grow(url, "copies").assets)
    results: dict[str, Asset] = {}
    failures = {}

    def copy(asset: Asset) -> Asset | InputError:
        own_words, known = words.get(asset.asset_id), copies.get(asset.asset_id)
        try:
            if known is not None and is_there(known, asset):
                return with_words(known, own_words)
            return fetch_asset(asset, folder, own_words)
        except InputError as error:
            return error

    with (
        _alone(folder),
        _grown(url, "copies", results) as grow,
        ThreadPoolExecutor(at_once) as threads,
    ):
        done = zip(assets, threads.map(copy, assets), strict=True)
        for number, (asset, result) in enumerate(done, start=1):
            if isinstance(result, InputError):
                failures[asset.asset_id] = str(result)
                verdict = ": failed"
            else:
                verdict = _over(copies.get(asset.asset_id), result)
                results[asset.asset_id] = result
            say(f"{number}/{len(assets)} {asset.asset_id}{verdict}")
            if number % PINNED_EVERY == 0:
                grow()
    return failures


def _fetch(arguments: Fetch, assets: list[Asset]) -> int:
    theirs = {asset.asset_id for asset in assets if asset.words is not None}
    ours = {key: words for key, words in load_words(GSO_WORDS).items() if key not in theirs}
    words = ours | (load_words(arguments.words) if arguments.words else {})
    failures = fetch_assets(
        assets, arguments.output, words, lambda line: print(visible(line), file=sys.stderr)
    )
    print(in_lines(failures.values()), end="\n" if failures else "")
    print(_total(storage.join(arguments.output, MANIFEST)))
    return 1 if failures else 0


def _adopt(arguments: Adopt) -> int:
    from eqforge.generators.scenes.adopt import adopt
    from eqforge.generators.scenes.scan_files import scans_in
    from eqforge.transforms.generated.scene_renderer import kept_look

    nouns = {} if arguments.nouns is None else load_words(str(arguments.nouns))
    url = storage.join(arguments.output, MANIFEST)
    there = manifest_to_grow(url, "adopted").assets
    assets: dict[str, Asset] = {}
    failures, unused = 0, set(nouns)
    folders, empty = scans_in(arguments.folder)
    for folder in empty:
        print(
            visible(f"{folder.name}: left out, because the folder contains no mesh"),
            file=sys.stderr,
        )
    look = kept_look(storage.join(arguments.output, WORK, "done"))
    with _alone(arguments.output), _grown(url, "adopted", assets) as grow:
        for number, folder in enumerate(folders, start=1):
            try:
                scan = adopt(folder, nouns, arguments.axis_up, arguments.licence, look)
                node = Node(folder.name, "", scan.entry)
                asset = read_asset(folder.name, node, arguments.output)
            except (InputError, OSError) as error:
                failures += 1
                print(visible(str(error)))
                continue
            unused.discard(scan.key or "")
            known = there.get(asset.asset_id)
            if known is not None and scan.key is None and known.sha256 == asset.sha256:
                asset = with_words(asset, known.entry.get("words"))
            storage.write_bytes(asset.archive, scan.archive)
            assets[asset.asset_id] = asset
            about = "; ".join((f"{asset.asset_id}: {_called(asset)}", *scan.notes))
            print(visible(f"{number}/{len(folders)} {about}{_over(known, asset)}"), file=sys.stderr)
            if number % PINNED_EVERY == 0:
                grow()
    for key in sorted(unused):
        line = f"{arguments.nouns}: no scan matches the words for {key!r}"
        print(visible(line), file=sys.stderr)
    print(f"{_total(url)}, {failures} rejected")
    return 1 if failures else 0


@contextlib.contextmanager
def _alone(folder: str) -> Iterator[None]:
    """Lock a folder for one command; delete its work folder at the end."""
    if storage.exists(storage.join(folder, WORK, IDENTITY)):
        raise InputError(
            f"--output {folder} contains a dataset; choose a separate folder for the assets"
        )
    with locked(folder):
        yield
        storage.delete_folder(storage.join(folder, WORK))


@contextlib.contextmanager
def _grown(url: str, name: str, assets: Mapping[str, Asset]) -> Iterator[Callable[[], None]]:
    """Yield a function that adds assets to a manifest; it runs once more at the end."""

    def grow() -> None:
        there = manifest_to_grow(url, name)
        write_manifest(url, replace(there, assets={**there.assets, **assets}))

    try:
        yield grow
    finally:
        grow()


def _total(url: str) -> str:
    there = read_manifest(url).assets
    mute = sum(asset.words is None and asset.kind == "object" for asset in there.values())
    return f"{url}: {counted(len(there), 'assets')}, {mute} without caption words"


def _called(asset: Asset) -> str:
    words = asset.words
    return "(no words)" if words is None else " ".join(filter(None, (words.colour, words.noun)))


def _over(known: Asset | None, asset: Asset) -> str:
    is_other = known is not None and known.sha256 != asset.sha256
    return "; replaces an asset with the same id" if is_other else ""


main = Command("eqforge assets", List | Check | Fetch | Adopt, assets_command, keeps_output=True)
