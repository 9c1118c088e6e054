"""Read and write manifests of assets: kubric's format, with a digest and words per asset.

Source: kubric's `AssetSource.from_manifest`. eqforge adds `sha256` and `num_bytes` of the archive,
and `words`, how captions name the asset; kubric ignores these three keys.
"""

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Literal, TypeVar, get_args

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import Node, parse_json
from eqforge.core.files.source_file import read_input
from eqforge.core.urls import public
from eqforge.generators.scenes.palette import PALETTE
from eqforge.schemas.records.scenes import StageName, SurfaceMaterial, Vector

S = TypeVar("S", bound=str)
T = TypeVar("T")
D = TypeVar("D")
AssetKind = Literal["object", "hdri"]
AS_STORED: Mapping[str, str] = {"axis_forward": "Y", "axis_up": "Z"}
"""Axes that import a mesh as stored in its file, as kubric's own renderer does."""

ROLES = ("object", "support", "stand")
STAGES: tuple[StageName, ...] = get_args(StageName)
MATERIALS: tuple[SurfaceMaterial, ...] = get_args(SurfaceMaterial)


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """Room that a thing has for another thing, as shares of its own largest extent.

    Attributes:
      radius, height: maximum footprint and height of the other thing.
      floor: minimum height at which the other thing stands.
      rim: height of the rim above which it has to be visible; 0 if there is none.
    """

    radius: float
    height: float
    floor: float = 0.0
    rim: float = 0.0

    def scaled(self, factor: float) -> "Room":
        return Room(**{each.name: factor * getattr(self, each.name) for each in fields(self)})


@dataclass(frozen=True, kw_only=True, slots=True)
class Trim:
    """A part that captions name by its colour: "The red toy house has a green roof"."""

    noun: str
    is_plural: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class AssetWords:
    """How captions name an asset, and how scenes use it.

    Attributes:
      is_plural: even one of it takes the plural, such as gloves; noun and plural are the same.
      detail: follows the noun, such as `with a red ribbon`; usually empty.
      plural_detail: follows the plural, such as `with red ribbons`; None for `detail`.
      colour: its own colour, a name of the palette; None if none fits.
      parts: names of the materials in its file that can be recoloured; None for all of them.
      clashes: colours of its other parts, to which it is not recoloured.
      roles: captions name an `object`; counted copies stand on a `support`; a `stand` is an object
        with a flat top that can carry another.
      size: its largest extent in a scene, in metres; real sizes vary too much for one image.
      front_deg: direction of its most recognisable side, from its x axis towards its y axis. Scenes
        turn it roughly to the camera; None allows any rotation.
      materials: possible materials; pairs of materials on the photographic stage need two.
      holds, shelters: the room in it, such as in a basket, and under it, such as under a table.
      faces: whether its front shows which way it faces, as for a car.
      lies: whether it stays on its side when tipped over about its y axis, as for a bottle.
      trims: parts that captions may name by colour, by material names that `parts` leaves out.
    """

    noun: str
    plural: str
    is_plural: bool = False
    detail: str = ""
    plural_detail: str | None = None
    colour: str | None = None
    parts: tuple[str, ...] | None = None
    clashes: tuple[str, ...] = ()
    roles: tuple[str, ...] = ("object",)
    size: float = 1.0
    front_deg: float | None = None
    materials: tuple[SurfaceMaterial, ...] = ()
    stages: tuple[StageName, ...] = ("photo", "plain")
    holds: Room | None = None
    shelters: Room | None = None
    faces: bool = False
    lies: bool = False
    trims: Mapping[str, Trim] = field(default_factory=dict)

    @property
    def is_recolourable(self) -> bool:
        return self.parts != ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Asset:
    """One asset of a manifest.

    Attributes:
      kind: `object` stands in a scene, `hdri` is an environment image around one.
      archive: path or URL of its archive (`.tar.gz`), or of the image itself.
      sha256, num_bytes: of that file; None if the manifest does not pin them.
      bounds: the lowest and highest corner of its box, in metres, z up; all 0 for an image.
      render, simulation: the file in the archive to render, and the URDF file or None.
      words: how captions name it; None if missing in the manifest.
      entry: its whole entry, for writing it back.
    """

    asset_id: str
    kind: AssetKind
    archive: str
    sha256: str | None
    num_bytes: int | None
    bounds: tuple[Vector, Vector]
    render: str
    simulation: str | None
    import_kwargs: Mapping[str, Any]
    category: str
    licence: str
    words: AssetWords | None
    entry: Mapping[str, Any] = field(repr=False)

    @property
    def naming(self) -> AssetWords:
        assert self.words is not None
        return self.words

    @property
    def extent(self) -> Vector:
        (x0, y0, z0), (x1, y1, z1) = self.bounds
        return (x1 - x0, y1 - y0, z1 - z0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """A named set of assets, by id, in file order."""

    name: str
    version: str
    assets: Mapping[str, Asset]


def tipped(bounds: tuple[Vector, Vector]) -> tuple[Vector, Vector]:
    (x0, y0, z0), (x1, y1, z1) = bounds
    return ((z0, y0, -x1), (z1, y1, -x0))


def read_manifest(url: str) -> Manifest:
    try:
        text = read_input(url).decode()
    except InputError:
        raise
    except Exception as error:
        # Every file system of fsspec has its own errors.
        is_missing = isinstance(error, FileNotFoundError)
        why = f"cannot be read ({type(error).__name__}: {public(str(error))})"
        raise InputError(
            f"{public(url)}: the asset manifest {'does not exist' if is_missing else why}"
        ) from error
    node = parse_json(text, public(url))
    folder, _, name = url.replace("\\", "/").rpartition("/")
    data_dir = optional(node, "data_dir", Node.text, "") or folder or "."
    assets = {key: read_asset(key, value, data_dir) for key, value in node["assets"].items()}
    for asset in assets.values():
        if storage.is_local(asset.archive) and not storage.is_below(asset.archive, folder or "."):
            raise InputError(
                f"{public(url)}: asset {asset.asset_id!r}: the archive {asset.archive} is outside "
                "the manifest's folder; move the archive into this folder"
            )
    return Manifest(
        name=optional(node, "name", Node.text, name.partition(".")[0]),
        version=optional(node, "version", Node.text, ""),
        assets=assets,
    )


def manifest_to_grow(url: str, name: str) -> Manifest:
    if not storage.exists(url):
        return Manifest(name=name, version="1", assets={})
    known = read_manifest(url)
    node = parse_json(read_input(url).decode(), public(url))
    folder = optional(node, "data_dir", Node.text, "")
    if folder:
        raise InputError(
            f"{public(url)}: 'data_dir' is {public(folder)}, where eqforge cannot add archives; "
            "choose a different --output"
        )
    return known


def write_manifest(url: str, manifest: Manifest) -> None:
    assets = manifest.assets
    entries = {asset_id: dict(assets[asset_id].entry) for asset_id in sorted(assets)}
    document = {"name": manifest.name, "version": manifest.version, "assets": entries}
    storage.write_bytes(url, (json.dumps(document, indent=2, sort_keys=True) + "\n").encode())


def read_asset(asset_id: str, node: Node, data_dir: str) -> Asset:
    if not _is_plain(asset_id):
        raise InputError(f"{node.file}: asset {asset_id!r}: expected a plain file name as the id")
    kinds: dict[str, AssetKind] = {"FileBasedObject": "object", "Texture": "hdri"}
    asset_type = node["asset_type"]
    kind = kinds.get(asset_type.name()) or asset_type.fail(" or ".join(kinds))
    kwargs, metadata = node["kwargs"], node.get("metadata")
    draws = kwargs["render_filename" if kind == "object" else "filename"]
    return Asset(
        asset_id=asset_id,
        kind=kind,
        archive=_archive(asset_id, node, data_dir, draws),
        sha256=optional(node, "sha256", _read_digest, None),
        num_bytes=optional(node, "num_bytes", Node.integer, None),
        bounds=_read_bounds(kwargs["bounds"]) if kind == "object" else ((0.0,) * 3, (0.0,) * 3),
        render=_inside(draws),
        simulation=optional(kwargs, "simulation_filename", _inside, None),
        import_kwargs=dict(optional(kwargs, "render_import_kwargs", Node.mapping, AS_STORED)),
        category="" if metadata is None else optional(metadata, "category", Node.text, ""),
        licence=optional(node, "license", Node.text, ""),
        words=optional(node, "words", read_words, None),
        entry=node.mapping(),
    )


def read_words(node: Node) -> AssetWords:
    """Read how captions name an asset; a missing plural is the noun with an s."""
    _check_fields(node, AssetWords, "`words`")
    noun, parts = node["noun"].name(), optional(node, "parts", Node.names, None)
    is_plural = optional(node, "is_plural", Node.flag, False)
    for key in ("detail", "plural_detail") if parts is None else ():
        if not set(PALETTE).isdisjoint(optional(node, key, Node.text, "").split()):
            raise InputError(
                f"{node[key].place} names a colour; remove the colour, or add `parts` with the "
                "list of materials that can change colour ([] for none)"
            )
    return AssetWords(
        noun=noun,
        plural=noun if is_plural else optional(node, "plural", Node.text, noun + "s"),
        is_plural=is_plural,
        detail=optional(node, "detail", Node.text, ""),
        plural_detail=optional(node, "plural_detail", Node.text, None),
        colour=optional(node, "colour", partial(_one_of, PALETTE), None),
        parts=parts,
        clashes=optional(node, "clashes", partial(_some_of, PALETTE), ()),
        roles=optional(node, "roles", partial(_some_of, ROLES), ("object",)),
        size=optional(node, "size", _positive, 1.0),
        front_deg=optional(node, "front_deg", Node.number, None),
        materials=optional(node, "materials", partial(_some_of, MATERIALS), ()),
        stages=optional(node, "stages", partial(_some_of, STAGES), STAGES),
        holds=optional(node, "holds", _read_room, None),
        shelters=optional(node, "shelters", _read_room, None),
        faces=optional(node, "faces", Node.flag, False),
        lies=optional(node, "lies", Node.flag, False),
        trims=optional(node, "trims", partial(_read_trims, parts), {}),
    )


def _check_fields(node: Node, kind: type[Any], name: str) -> None:
    known = [each.name for each in fields(kind)]
    for key, member in node.items():
        if key not in known:
            raise InputError(
                f"{node.file}: {member.where}: unknown field; the fields of {name} are "
                f"{', '.join(known)}"
            )


def _read_room(node: Node) -> Room:
    _check_fields(node, Room, "a room")
    values = {key: member.number() for key, member in node.items()}
    return Room(
        **{"radius": _positive(node["radius"]), "height": _positive(node["height"]), **values}
    )


def _read_trims(parts: tuple[str, ...] | None, node: Node) -> Mapping[str, Trim]:
    trims = {}
    for key, member in node.items():
        if parts is None:
            node.fail("`parts` beside `trims`", "no `parts`")
        if key in parts:
            member.fail("a material that is not in `parts`", repr(key))
        _check_fields(member, Trim, "a trim")
        is_plural = optional(member, "is_plural", Node.flag, False)
        trims[key] = Trim(noun=member["noun"].name(), is_plural=is_plural)
    return trims


def optional(node: Node, key: str, read: Callable[[Node], T], default: D) -> T | D:
    member = node.get(key)
    return default if member is None else read(member)


def _archive(asset_id: str, node: Node, data_dir: str, draws: Node) -> str:
    """Return the asset's path or URL; a null path means that its file is not in an archive."""
    has_path = "path" in node.mapping()
    if has_path and node.mapping()["path"] is None:
        name = draws.name()
        return name if "://" in name else storage.join(data_dir, name)
    name = node["path"].text() if has_path else ""
    return storage.join(data_dir, name or f"{asset_id}.tar.gz")


def _inside(node: Node) -> str:
    name = node.name().removeprefix("{asset_dir}/").rpartition("/")[2]
    return name if _is_plain(name) else node.fail("the name of a file")


def _is_plain(name: str) -> bool:
    return name not in ("", ".", "..") and "/" not in name and "\\" not in name


def _read_bounds(node: Node) -> tuple[Vector, Vector]:
    corners = [tuple(number.number() for number in corner.elements()) for corner in node.elements()]
    if [len(corner) for corner in corners] != [3, 3]:
        node.fail("two corners of three numbers")
    low, high = corners
    if not all(a < b for a, b in zip(low, high, strict=True)):
        node.fail("a first corner with every coordinate less than the second's")
    return (low[0], low[1], low[2]), (high[0], high[1], high[2])


def _read_digest(node: Node) -> str:
    digest = node.name()
    is_digest = len(digest) == 64 and set(digest) <= set("0123456789abcdef")
    return digest if is_digest else node.fail("64 lower-case hexadecimal digits")


def _one_of(choices: Collection[S], node: Node) -> S:
    name = node.name()
    found = next((choice for choice in choices if choice == name), None)
    return node.fail(f"one of {', '.join(choices)}") if found is None else found


def _some_of(choices: Collection[S], node: Node) -> tuple[S, ...]:
    return tuple(_one_of(choices, element) for element in node.elements())


def _positive(node: Node) -> float:
    return number if (number := node.number()) > 0 else node.fail("a number above 0")
