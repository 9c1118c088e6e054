"""Renders proposed pairs of scenes, and rejects pairs whose images do not show their captions.

Source: EqBen, section 4.2 and appendix B.4; the gates are ours.
"""

import functools
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from eqforge.core.files.pictures import read_pixels
from eqforge.core.identity import sha256_hex, version, versions_of
from eqforge.core.ledger import Ledger
from eqforge.core.sandbox.child import ChildFailed
from eqforge.generators.scenes.assets import STAGE_MANIFEST, AssetLibrary
from eqforge.generators.scenes.propose import SCENES_STAGE
from eqforge.schemas.records.scenes import (
    Claim,
    RenderSettings,
    ScenePair,
    SceneSpec,
    lean_claim,
    lean_spec,
)
from eqforge.schemas.records.scores import Rejection, compact_json
from eqforge.schemas.records.stages import Reject, Stage
from eqforge.schemas.tables.generated import Generation
from eqforge.transforms.dataset.failures import guarded
from eqforge.transforms.filters import minimality
from eqforge.transforms.generated import scene_scores
from eqforge.transforms.generated.pairs import (
    GeneratedRules,
    coloured,
    make_once,
    read_numbers,
    store_image,
    store_mask,
)
from eqforge.transforms.generated.scene_colours import RenderedView
from eqforge.transforms.generated.scene_gates import SCENE_REASONS, SceneGates, gate_scenes
from eqforge.transforms.generated.scene_renderer import Render, SceneKillsRenderer, SceneRenderer
from eqforge.transforms.generated.scene_scores import score_scenes
from eqforge.transforms.generated.work import MadePair, PairProposal, PairWork

RENDERS_STAGE = Stage(
    "renders",
    SCENE_REASONS,
    note="eqforge restarts a renderer once if it dies or hangs. After a second failure, the "
    "reason is `error:ChildDied` or `error:ChildTimeout`.",
)

RENDERED = "rendered"

VERSION = "4"
"""Increment whenever the same pair and settings would be stored differently."""

DETAIL = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class PlannedPair:
    """One pair of the plan: its scenes, or why there are none."""

    pair: ScenePair | None
    reject: Reject | None = None

    @classmethod
    def of(cls, proposed: ScenePair | Reject) -> "PlannedPair":
        if isinstance(proposed, Reject):
            return cls(pair=None, reject=proposed)
        return cls(pair=proposed)

    @property
    def counts(self) -> dict[str, int]:
        if self.pair is None:
            return {"pairs": 1, "rejects": 1}
        counts = {"pairs": 1, f"of {self.pair.kind}": 1}
        if self.pair.kind == "attribute":
            counts[f"changing {self.pair.change}"] = 1
        return counts

    @property
    def assets(self) -> set[str]:
        return set() if self.pair is None else assets_of(self.pair)


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderRules:
    """How proposed scenes become pairs.

    Attributes:
      assets: path or URL of the manifest of assets, or `builtin`.
      cache: folder for unpacked assets.
      timeout_s: seconds without a sign of life after which a renderer is considered hung.
    """

    render: RenderSettings
    assets: str
    assets_sha256: str
    cache: str
    timeout_s: float
    gates: SceneGates
    generated: GeneratedRules

    def ledger(self) -> Ledger:
        packages = ("eqforge", "kubric-nightly", "bpy", "trimesh", "numpy", "scipy", "pillow")
        own = [
            VERSION,
            sha256_hex(Path(STAGE_MANIFEST).read_bytes()),
            scene_scores.VERSION,
            minimality.VERSION,
            versions_of(*packages),
        ]
        return self.generated.ledger("render", [asdict(self.render), self.assets_sha256, *own])

    def renderer(self) -> SceneRenderer:
        return SceneRenderer(
            self.render,
            assets=self.assets,
            assets_sha256=self.assets_sha256,
            cache=self.cache,
            timeout_s=self.timeout_s,
        )

    @contextmanager
    def started(self, pair: ScenePair) -> Iterator[SceneRenderer]:
        """Yield a renderer that rendered an empty scene, so Blender and the device are ready."""
        with closing(self.renderer()) as renderer:
            renderer.render([replace(pair.scenes[0], objects=())])
            yield renderer


def render_pair(pair: ScenePair, rules: RenderRules, renderer: SceneRenderer) -> PairWork:
    work = PairWork(proposal=_propose(pair)).passed(SCENES_STAGE)
    inputs = [*map(lean_spec, pair.scenes), *map(lean_claim, pair.claims)]
    make = partial(_make, pair, rules, renderer)
    result = guarded(partial(make_once, inputs, rules.ledger(), rules.generated.media, make))
    if isinstance(result, Rejection):
        return work.refused(RENDERS_STAGE, result)
    return replace(work, made=result).decided(
        RENDERS_STAGE, gate_scenes(result.scores, rules.gates)
    )


def _propose(pair: ScenePair) -> PairProposal:
    first, second = (
        msgspec.json.encode({**lean_spec(scene), "claim": lean_claim(claim)}).decode()
        for scene, claim in zip(pair.scenes, pair.claims, strict=True)
    )
    return PairProposal(
        sample_id=pair.sample_id,
        source_id=pair.source_id or pair.sample_id,
        kind=pair.kind,
        change=pair.change,
        captions=pair.captions,
        specs=(first, second),
    )


class _Claimed(msgspec.Struct, frozen=True):
    claim: Claim


def scene_pair_of(row: Mapping[str, Any]) -> ScenePair:
    """Return the pair of scenes that a row of the samples was rendered from."""
    specs = (row["spec_0"], row["spec_1"])
    scenes = [msgspec.json.decode(spec, type=SceneSpec) for spec in specs]
    claims = [msgspec.json.decode(spec, type=_Claimed).claim for spec in specs]
    return ScenePair(
        sample_id=row["sample_id"],
        kind=row["kind"],
        change=row["change"],
        scenes=(scenes[0], scenes[1]),
        captions=(row["caption_0"], row["caption_1"]),
        claims=(claims[0], claims[1]),
    )


def _make(pair: ScenePair, rules: RenderRules, renderer: SceneRenderer) -> MadePair | Rejection:
    try:
        first, second = renderer.render(pair.scenes)
    except SceneKillsRenderer as error:
        # More likely the machine's fault than the scene's, so it counts as an error.
        reason = f"error:{type(error.__cause__).__name__}"
        return Rejection(reason=reason, detail=str(error)[:DETAIL])
    except ChildFailed as error:
        # Only the traceback's last line states the error; the others name local files.
        last = str(error).strip().rpartition("\n")[2]
        return Rejection(reason="error:ChildFailed", detail=last[:DETAIL])
    media, side = rules.generated.media, rules.render.resolution
    return MadePair(
        images=(
            store_image(media, first.image_png, side, side),
            store_image(media, second.image_png, side, side),
        ),
        generation=_generation(pair, rules),
        masks=(
            store_mask(media, coloured(first.mask_png), side, side),
            store_mask(media, coloured(second.mask_png), side, side),
        ),
        objects=(first.objects, second.objects),
        scores=score_scenes(pair, (_view(first), _view(second))),
    )


def _view(render: Render) -> RenderedView:
    return RenderedView(
        pixels=read_pixels(render.image_png),
        numbers=read_numbers(render.mask_png),
        objects=render.objects,
        overlaps=render.overlaps,
    )


def assets_of(pair: ScenePair) -> set[str]:
    """Return the ids of the objects, environment images and floor textures of both scenes."""
    objects = {item.asset for scene in pair.scenes for item in scene.objects}
    return objects.union(*(scene.backdrop.pictures for scene in pair.scenes))


def _generation(pair: ScenePair, rules: RenderRules) -> Generation:
    library = _library(rules.assets, rules.cache, rules.assets_sha256)
    # kubric's own shapes, such as the sphere, are in no manifest.
    assets = {
        name: library.asset(name).sha256 if name in library else None for name in assets_of(pair)
    }
    settings = rules.render.of_stage(pair.scenes[0].stage)
    parameters = {"engine": "cycles", **asdict(settings), "assets": assets}
    return Generation(
        generator="kubric",
        version=f"{version('kubric-nightly')}, bpy {version('bpy')}",
        model=None,
        revision=None,
        device=rules.render.device,
        seed=pair.scenes[0].seed,
        parameters=compact_json(parameters),
    )


_library = functools.lru_cache(maxsize=1)(AssetLibrary)
