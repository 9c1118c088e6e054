"""Arranges the objects of a draft: one attempt at both scenes of a pair."""

from dataclasses import dataclass
from random import Random

from eqforge.generators.scenes.claims import relation_holds
from eqforge.generators.scenes.compose import compose_counted, compose_related
from eqforge.generators.scenes.families.base import Spots, StagedDraft
from eqforge.generators.scenes.families.composing import compose_staged
from eqforge.generators.scenes.pieces import CountedDraft, RelatedDraft, colours_of
from eqforge.generators.scenes.placement import BOTH, Layout
from eqforge.generators.scenes.scatter import scatter_counted, scatter_related
from eqforge.generators.scenes.settings import SceneSettings
from eqforge.generators.scenes.surroundings import MUTED, draw_backdrop, draw_light, draw_muted
from eqforge.schemas.records.scenes import Claim, Relation, SceneSpec


@dataclass(frozen=True, kw_only=True, slots=True)
class Arranged:
    """Two scenes, and what their captions claim about them."""

    scenes: tuple[SceneSpec, SceneSpec]
    claims: tuple[Claim, Claim]


def arrange_related(
    draft: RelatedDraft, settings: SceneSettings, progress: float, seed: int, rng: Random
) -> Arranged | None:
    """Tries once to place a target beside a reference; returns None on failure.

    Args:
      draft: the objects.
      settings: the limits.
      progress: share of the tries that failed, in [0, 1): later ones step back, or ask for less.
      seed: of the renderer's noise.
      rng: what to draw with.
    """
    place = compose_related if settings.stage == "photo" else scatter_related
    layout = place(draft, settings, progress, rng)
    if layout is None:
        return None
    floor = draw_muted(rng, colours_of((draft.target, draft.reference, *draft.distractors)))
    scenes = _scenes(layout, floor, seed, rng)
    claims = _claims(draft.relations)
    margin = settings.min_relation_margin_deg
    is_plain = layout.is_plain(("target", "reference")) and all(
        relation_holds(scene, claim, margin) for scene, claim in zip(scenes, claims, strict=True)
    )
    return Arranged(scenes=scenes, claims=claims) if is_plain else None


def arrange_counted(
    draft: CountedDraft, settings: SceneSettings, progress: float, seed: int, rng: Random
) -> Arranged | None:
    """Tries once to place copies on a support; returns None on failure.

    Args:
      draft: the objects.
      settings: the limits.
      progress: share of the tries that failed, in [0, 1): later ones step back, or ask for less.
      seed: of the renderer's noise.
      rng: what to draw with.
    """
    colours = colours_of((draft.copies[0], *draft.distractors))
    floor = draw_muted(rng, colours)
    paint = MUTED[draw_muted(rng, colours, avoid=floor)][0]
    place = compose_counted if settings.stage == "photo" else scatter_counted
    layout = place(draft, paint, settings, progress, rng)
    if layout is None or not layout.is_plain([piece.variants[0].name for piece in draft.copies]):
        return None
    claims = [_count_claim(draft, count) for count in draft.counts]
    return Arranged(scenes=_scenes(layout, floor, seed, rng), claims=(claims[0], claims[1]))


def arrange_staged(
    draft: StagedDraft,
    spots: tuple[Spots, Spots],
    settings: SceneSettings,
    progress: float,
    seed: int,
    rng: Random,
) -> Arranged | None:
    """Tries once to place the things of a family at their spots; returns None on failure.

    Args:
      draft: the objects.
      spots: where they stand.
      settings: the limits.
      progress: share of the tries that failed, in [0, 1): later ones step back, or ask for less.
      seed: of the renderer's noise.
      rng: what to draw with.
    """
    layout = compose_staged(draft, spots, settings, progress, rng)
    if layout is None:
        return None
    floor = draw_muted(rng, colours_of((*draft.pieces, *draft.distractors)))
    return Arranged(scenes=_scenes(layout, floor, seed, rng), claims=draft.claims)


def _scenes(layout: Layout, floor: str, seed: int, rng: Random) -> tuple[SceneSpec, SceneSpec]:
    backdrop = draw_backdrop(layout.settings, rng, floor)
    light = draw_light(rng, layout.camera, backdrop)
    first, second = (
        SceneSpec(
            objects=layout.objects(scene),
            camera=layout.camera,
            light=light,
            backdrop=backdrop,
            seed=seed,
        )
        for scene in BOTH
    )
    return first, second


def _claims(relations: tuple[Relation, Relation]) -> tuple[Claim, Claim]:
    first, second = (
        Claim(target="target", copies=("target",), relation=relation, reference="reference")
        for relation in relations
    )
    return first, second


def _count_claim(draft: CountedDraft, count: int) -> Claim:
    names = tuple(piece.variants[0].name for piece in draft.copies[:count])
    return Claim(target=names[0], copies=names)
