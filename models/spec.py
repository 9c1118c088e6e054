"""Scorers by name, as in a setting or on a command line."""

import dataclasses
import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, get_args

from eqforge.core.errors import InputError
from eqforge.core.files.source_file import unchanged
from eqforge.core.visible import nearest
from eqforge.models.chat import VqaScorer
from eqforge.models.dual_encoders import ARCHITECTURES, DINOV2, ContrastiveScorer, Dinov2Encoder
from eqforge.models.fusion import REGIONS, Blip2ItmScorer, BlipItmScorer, LxmertScorer, ViltScorer
from eqforge.models.open_clip import OpenClipScorer
from eqforge.models.oscar import MAX_REGIONS, MAX_TOKENS, OscarScorer
from eqforge.models.pretrained import Precision, Weights, check_device
from eqforge.models.score_matrix import MatrixFiles, MatrixScorer
from eqforge.models.scorer import Identified, Identity, Picture, Scorer
from eqforge.models.stored_vectors import VECTORS, StoredScorer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NO_TAGS = "none"
"""Value of OSCAR's option `tags` for a model without object tags."""

_OPTION = re.compile(r",([a-z]+)=")
_SECOND = re.compile(r"\+([A-Za-z0-9-]+):")
_COMMIT = re.compile(r"(.+)@([^@/]+)")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class ScorerSpec:
    """A scorer of a kind of SCORERS, and its files; workers receive it and load the model.

    The source is a folder, a file, or an id on the Hugging Face hub with its commit.
    """

    kind: str
    source: str
    revision: str | None = None
    options: tuple[tuple[str, str], ...] = ()

    def text(self, name: str) -> str | None:
        return dict(self.options).get(name)

    def number(self, name: str) -> float | None:
        text = self.text(name)
        try:
            return None if text is None else float(text)
        except ValueError as error:
            raise InputError(f"{name}={text}: expected a number") from error

    def whole(self, name: str, default: int) -> int:
        text = self.text(name) or str(default)
        if not text.isdecimal():
            raise InputError(f"{name}={text}: expected a whole number")
        return int(text)

    def path(self, name: str) -> Path | None:
        text = self.text(name)
        return None if text is None else Path(text)

    @property
    def precision(self) -> Precision:
        found = self.text("precision") or "float32"
        for known in get_args(Precision):
            if found == known:
                return known
        expected, hint = ", ".join(get_args(Precision)), nearest(found, get_args(Precision))
        raise InputError(f"precision={found}: expected one of {expected}{hint}")

    @property
    def device(self) -> str:
        return self.text("device") or "cpu"

    def on_cpu(self) -> "ScorerSpec":
        """Return the same scorer on the CPU; its identity does not depend on the device."""
        options = tuple(option for option in self.options if option[0] != "device")
        return dataclasses.replace(self, options=options)

    def on(self, device: str) -> "ScorerSpec":
        """Return the same scorer on a device; unchanged if it uses none."""
        if "device" not in SCORERS[self.kind].options:
            return self
        options = (*self.on_cpu().options, ("device", device))
        return dataclasses.replace(self, options=tuple(sorted(options)))

    def weights(self) -> Weights:
        return Weights(
            source=self.source, revision=self.revision, precision=self.precision, device=self.device
        )


def parse_specs(text: str) -> tuple[ScorerSpec, ...]:
    """Read `KIND:SOURCE[@COMMIT][,OPTION=VALUE]...`, or several of them with `+` between."""
    kinds = "|".join(SCORERS)
    options = {kind: known.options for kind, known in SCORERS.items()}
    return tuple(parse_spec(part, options) for part in re.split(rf"\+(?=(?:{kinds}):)", text))


def parse_spec(text: str, kinds: Mapping[str, frozenset[str]]) -> ScorerSpec:
    """Read `KIND:SOURCE[@COMMIT][,OPTION=VALUE]...`; `kinds` has the options of each kind."""
    kind, _, rest = text.partition(":")
    if kind not in kinds or not rest:
        hint = "" if kind in kinds else nearest(kind, kinds)
        known = ", ".join(kinds)
        raise InputError(f"{text!r}: expected KIND:SOURCE, where KIND is one of {known}{hint}")
    source, *parts = _OPTION.split(rest)
    for other in _SECOND.findall(source):
        if hint := nearest(other, kinds):
            raise InputError(f"{text!r}: unknown KIND {other!r} after the +{hint}")
    options = dict(zip(parts[::2], parts[1::2], strict=True))
    if unknown := sorted(options.keys() - kinds[kind]):
        known = ", ".join(sorted(kinds[kind]))
        hint = nearest(unknown[0], kinds[kind])
        raise InputError(
            f"{text!r}: unknown option {unknown[0]!r}; {kind} has the options {known}{hint}"
        )
    commit = _COMMIT.fullmatch(source)
    # A path may contain an @; an id on the hub cannot.
    if commit is None or source.startswith((".", "/")) or Path(source).exists():
        return ScorerSpec(kind=kind, source=source, options=tuple(sorted(options.items())))
    return ScorerSpec(
        kind=kind, source=commit[1], revision=commit[2], options=tuple(sorted(options.items()))
    )


def identify(spec: ScorerSpec, load: Callable[[ScorerSpec], Identified]) -> Identity:
    """Return the identity of a model that workers will load; it is loaded once, as a check.

    It is loaded on the CPU: the accelerator's memory is for the workers.
    """
    if spec.text("device") is not None:
        check_device(spec.device)
    return load(spec.on_cpu()).identity


def load_scorer(spec: ScorerSpec) -> Scorer:
    with unchanged([spec.source, *(value for _, value in spec.options)]):
        scorer = SCORERS[spec.kind].load(spec)
        _ = scorer.identity  # it hashes the files, and is cached
    return scorer


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class _Kind:
    """Loader of a kind of scorers, and its option names."""

    load: Callable[[ScorerSpec], Scorer]
    options: frozenset[str]


def _features(spec: ScorerSpec) -> Path:
    features = spec.path("features")
    if features is None:
        raise InputError(
            f"{spec.kind}:{spec.source} needs region features; append ',features=FILE.tsv'"
        )
    return features


def _open_clip(spec: ScorerSpec) -> Scorer:
    return OpenClipScorer(
        source=spec.source,
        revision=spec.revision,
        checkpoint=spec.path("weights"),
        precision=spec.precision,
        device=spec.device,
    )


def _oscar(spec: ScorerSpec) -> Scorer:
    features = _features(spec)
    tags = spec.path("tags") or features.parent / "predictions.tsv"
    return OscarScorer(
        checkpoint=Path(spec.source),
        features=features,
        tags=None if str(tags) == NO_TAGS else tags,
        max_tokens=spec.whole("tokens", MAX_TOKENS),
        max_regions=spec.whole("regions", MAX_REGIONS),
        precision=spec.precision,
        device=spec.device,
    )


def _matrix(spec: ScorerSpec) -> Scorer:
    files = MatrixFiles(
        scores=Path(spec.source),
        rows=spec.path("rows"),
        columns=spec.path("columns"),
        family=spec.text("family") or "unknown",
    )
    return MatrixScorer(files)


_HELD = frozenset({"precision", "device"})
SCORERS: Mapping[str, _Kind] = {
    "blip-itm": _Kind(load=lambda spec: BlipItmScorer(spec.weights()), options=_HELD),
    **{
        kind: _Kind(
            load=lambda spec: ContrastiveScorer(
                spec.kind, spec.weights(), spec.number("scale"), spec.number("centre")
            ),
            options=_HELD | {"scale", "centre"},
        )
        for kind in ARCHITECTURES
    },
    "open-clip": _Kind(load=_open_clip, options=_HELD | {"weights"}),
    "blip2-itm": _Kind(load=lambda spec: Blip2ItmScorer(spec.weights()), options=_HELD),
    "vqascore": _Kind(load=lambda spec: VqaScorer(spec.weights()), options=_HELD),
    "vilt": _Kind(load=lambda spec: ViltScorer(spec.weights()), options=_HELD),
    "lxmert": _Kind(
        load=lambda spec: LxmertScorer(
            spec.weights(), _features(spec), spec.whole("regions", REGIONS)
        ),
        options=_HELD | {"features", "regions"},
    ),
    "oscar": _Kind(load=_oscar, options=_HELD | {"features", "tags", "tokens", "regions"}),
    "matrix": _Kind(load=_matrix, options=frozenset({"rows", "columns", "family"})),
    VECTORS: _Kind(
        load=lambda spec: StoredScorer(Path(spec.source), spec.path("heads")),
        options=frozenset({"heads"}),
    ),
}
_OF_PAIRS = ("blip", "blip2", "vilt", "lxmert", "oscar")
FAMILIES = tuple(dict.fromkeys([*(each.family for each in ARCHITECTURES.values()), *_OF_PAIRS]))
"""Model families; a matrix may have any family."""


ENCODERS: Mapping[str, frozenset[str]] = {
    DINOV2: _HELD,
    **{kind: SCORERS[kind].options - {"scale", "centre"} for kind in (*ARCHITECTURES, "open-clip")},
}
"""Kinds of image encoders, with the options that affect their vectors."""


class ImageEncoder(Identified, Protocol):
    """A model that encodes images as unit vectors."""

    def prepare(self, picture: Picture) -> Any:
        """Return the model's input for one image."""

    def encode_images(self, prepared: Sequence[Any]) -> "Sequence[NDArray[np.float32]]":
        """Return a unit vector for each image, float32 of shape (dimensions,)."""


def load_encoder(spec: ScorerSpec) -> ImageEncoder:
    if spec.kind != DINOV2:
        return load_scorer(spec)
    with unchanged([spec.source]):
        return Dinov2Encoder(spec.weights())


PREFIX = "python:"
_OWN = f"{PREFIX}MODULE:FACTORY[,OPTION=VALUE]..."
_NEEDED = ("identity", "reads_pixels", "prepare", "encode_images", "match")


def device_of(text: str) -> str | None:
    if text.startswith(PREFIX):
        return _parse(text)[2].get("device")
    return _one(text).text("device")


def load_model(text: str, device: str) -> Scorer:
    """Load `KIND:SOURCE[@COMMIT][,OPTION=VALUE]...` or `python:MODULE:FACTORY[,OPTION=VALUE]...`.

    A user's own factory gets the device as its option `device`.
    """
    if text.startswith(PREFIX):
        module, factory, options = _parse(text)
        return _call(module, factory, options | {"device": device})
    return load_scorer(_one(text).on(device))


def _one(text: str) -> Any:
    try:
        specs = parse_specs(text)
    except InputError as error:
        if text.partition(":")[0] in SCORERS:
            raise
        own = " For" if str(error).endswith("?") else "; for"
        raise InputError(f"{error}{own} your own model, write {_OWN}") from error
    if len(specs) != 1:
        raise InputError(f"{text!r}: expected one model; run the command once for each model")
    return specs[0]


def _parse(text: str) -> tuple[str, str, dict[str, str]]:
    name, *parts = text.removeprefix(PREFIX).split(",")
    module, _, factory = name.partition(":")
    options = dict(option.partition("=")[::2] for option in parts)
    if not module or not factory or "" in options:
        raise InputError(f"{text!r}: expected {_OWN}")
    return module, factory, options


def _call(module: str, factory: str, options: dict[str, str]) -> Scorer:
    try:
        make: Callable[..., Any] = getattr(importlib.import_module(module), factory)
    except (ImportError, AttributeError) as error:
        raise InputError(
            f"{PREFIX}{module}:{factory}: {error}. Install the module, or put its folder on "
            f"PYTHONPATH. The module must contain the function {factory!r}."
        ) from error
    try:
        scorer = make(**options)
    except TypeError as error:
        raise InputError(f"{PREFIX}{module}:{factory}: {error}") from error
    missing = [name for name in _NEEDED if not hasattr(scorer, name)]
    if missing or not isinstance(scorer.identity, Identity):
        lacks = ", ".join(missing) or "an identity of the class Identity"
        raise InputError(
            f"{PREFIX}{module}:{factory} returned a {type(scorer).__name__} without {lacks}; "
            "docs/guides/scoring.md lists what a model needs"
        )
    checked: Scorer = scorer
    return checked
