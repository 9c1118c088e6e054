"""From how many seeds a pair is drawn, and which models score what was drawn."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from eqforge.core.errors import InputError
from eqforge.core.files import pictures
from eqforge.core.versions import versions_of
from eqforge.models.scorer import Identity
from eqforge.transforms.judges.settings import READS_PICTURES

if TYPE_CHECKING:
    from eqforge.models.spec import ScorerSpec

VERSION: Final = 1
MOST_SEEDS: Final = 64
_HELD: Final = frozenset({"device", "precision"})


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class RankSettings:
    """From how many seeds each pair is drawn, and which models help to choose the best."""

    seeds: int = 1
    """Draw each pair from so many seeds, and keep the best of the drawings that nothing refuses: by
    the mean of their ranks in what is measured of them. The others are rejects, with their
    scores."""

    direction: str | None = None
    """Dual encoder that measures whether the pictures change as their captions do, the cosine
    between the two changes: clip:MODEL, siglip:MODEL and others that --oracle takes. The score is
    stored; it refuses nothing."""

    vqascore: str | None = None
    """Model that is asked whether each picture shows each caption, P(yes) of its answer: a folder
    that transformers saved, or ID@COMMIT on the Hugging Face hub, and options after commas, such as
    ,device=cuda:0. The scores are stored; they refuse nothing."""

    def __post_init__(self) -> None:
        """Checks the number and how the models are named.

        Raises:
          InputError: the number is out of range, or a model is not named as expected.
        """
        if not 1 <= self.seeds <= MOST_SEEDS:
            raise InputError(f"--seeds {self.seeds}: expected 1 to {MOST_SEEDS}")
        _ = (self.direction_spec, self.vqa_spec)

    @property
    def is_used(self) -> bool:
        """Whether drawings are ranked or scored at all."""
        return self.seeds > 1 or self.direction is not None or self.vqascore is not None

    @property
    def direction_spec(self) -> ScorerSpec | None:
        """The dual encoder.

        Raises:
          InputError: it is not named as expected.
        """
        if self.direction is None:
            return None
        from eqforge.models.image_encoders import DUAL_OPTIONS

        return _parsed("direction", self.direction, DUAL_OPTIONS)

    @property
    def vqa_spec(self) -> ScorerSpec | None:
        """The model that answers questions.

        Raises:
          InputError: it is not named as expected.
        """
        if self.vqascore is None:
            return None
        named = f"{READS_PICTURES}:{self.vqascore.removeprefix(f'{READS_PICTURES}:')}"
        return _parsed("vqascore", named, {READS_PICTURES: _HELD})


def _parsed(name: str, text: str, kinds: Mapping[str, frozenset[str]]) -> ScorerSpec:
    from eqforge.models.spec import parse_spec

    try:
        return parse_spec(text, kinds)
    except InputError as error:
        raise InputError(f"--{name} {error}") from error


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Ranking:
    """How drawings are ranked; sent to workers, which load the models.

    Attributes:
      settings: the number of seeds, and the models asked for.
      direction: the identity of the dual encoder; None where none is asked for.
      vqa: the identity of the model that answers questions; None where none is asked for.
    """

    settings: RankSettings = dataclasses.field(default_factory=RankSettings)
    direction: Identity | None = None
    vqa: Identity | None = None

    @property
    def uses_gpu(self) -> bool:
        """Whether one of the models runs on another device than the CPU."""
        specs = (self.settings.direction_spec, self.settings.vqa_spec)
        return any(spec is not None and spec.device != "cpu" for spec in specs)


def basis_of(model: Identity) -> list[object]:
    """Returns what the scores of a model depend on besides the pictures and their captions."""
    packages = ("torch", "transformers", "tokenizers", "pillow")
    return [VERSION, pictures.VERSION, dataclasses.asdict(model), versions_of(*packages)]


def prepare_ranking(settings: RankSettings) -> Ranking:
    """Returns the models that are asked for, with their identities.

    Raises:
      InputError: a model cannot be loaded.
      MissingExtra: a package is not installed.
    """
    first, second = settings.direction, settings.vqascore
    return Ranking(
        settings=settings,
        direction=None if first is None else directions_of(first)[0],
        vqa=None if second is None else answerers_of(second)[0],
    )


@functools.cache
def directions_of(text: str) -> tuple[Identity, ...]:
    """Returns the identity of the dual encoder in a setting; it is loaded once, as a check.

    Raises:
      InputError, MissingExtra: see prepare_ranking.
    """
    from eqforge.models.spec import identify, load_scorer

    spec = RankSettings(direction=text).direction_spec
    assert spec is not None
    return (identify(spec, load_scorer),)


@functools.cache
def answerers_of(text: str) -> tuple[Identity, ...]:
    """Returns the identity of the model in a setting that answers; it is loaded once, as a check.

    Raises:
      InputError, MissingExtra: see prepare_ranking.
    """
    from eqforge.models.spec import identify
    from eqforge.transforms.judges.models import load_judge

    spec = RankSettings(vqascore=text).vqa_spec
    assert spec is not None
    return (identify(spec, load_judge),)


def ranking_warnings(settings: RankSettings, has_oracle: bool) -> Iterator[str]:
    """Yields what a user should know of a ranking without a model that reads the captions."""
    if settings.seeds == 1 or has_oracle:
        return
    if settings.direction is None and settings.vqascore is None:
        yield (
            f"The best of {settings.seeds} seeds is the one that differs least where nothing is to "
            "change: no model was named that tells what the pictures show (--oracle, --direction, "
            "--vqascore)."
        )
