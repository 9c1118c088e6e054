"""Settings of a recipe that a user completes, and commands that reproduce a manifest."""

import dataclasses
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, get_args, get_type_hints

import msgspec
import tyro

from eqforge.core.errors import InputError
from eqforge.core.files.checked import clipped, shown
from eqforge.core.identity import Trace, TraceOf, trace_of
from eqforge.core.visible import counted, nearest
from eqforge.pipelines import pipeline_of
from eqforge.pipelines.base.identity import traced
from eqforge.pipelines.base.pipeline import AnyPipeline, Mode
from eqforge.schemas.dataset.manifest import InputFile, Manifest, PartManifest, run_of
from eqforge.schemas.tables.benchmark_rows import COMBINED
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import TYPES
from eqforge.transforms.filters.plausibility import KIND

OTHER_BYTES = "the recipe was made from different versions of"
SHOWN = 10
_TEXTS = ("columns", "evaluated_families", "hdri", "kinds", "only", "sample", "subtitle_language")
"""Texts that a recipe may set. The user sets all others, which may name code or files to load."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeSettings:
    """The settings of a recipe, which its user completes.

    Attributes:
      config: the configuration, without the places that the user has to name.
      url: of the recipe, for messages.
    """

    config: Any
    url: str
    _values: Mapping[str, Any]
    _usual: Any

    def check_given(self, labels: Mapping[str, str]) -> None:
        """Check that a user sets exactly what the recipe leaves open."""
        settings = {name: found for name, *found in _settings(self._usual, self._values)}
        chosen = set(_of_the_run(self._usual))
        for name, label in labels.items():
            value, usual, hint = settings.get(name, (None, None, None))
            is_open = value and (_is_named(name, hint) or _is_place(hint))
            if name in chosen or is_open:
                continue
            use = "does not use this option"
            if value not in (None, False):
                use = f"sets this option to {shown(value)}"
            raise InputError(
                f"{label}: the recipe {self.url} {use}; omit either the option or the recipe"
            )
        for name, (value, usual, hint) in settings.items():
            if _is_named(name, hint) and value and value != usual and name not in labels:
                flag = name.replace("_", "-")
                raise InputError(
                    f"{self.url}: the recipe used --{flag}. Recipes do not load code or models, so "
                    f"pass --{flag} yourself. Its value in the recipe is {shown(value)}."
                )


def settings_of_recipe(
    pipeline: type[AnyPipeline], recipe: Manifest, url: str, output: Any = tyro.MISSING
) -> RecipeSettings:
    mode = next((each for each in get_args(Mode) if each == recipe.mode), None)
    if mode is None:
        raise InputError(f"{url}: mode {shown(recipe.mode)}: expected 'paper' or 'corrected'")
    if (named := recipe.config.get("mode", mode)) != mode:
        raise InputError(f"{url}: 'mode' is {mode!r}, but 'mode' in 'config' is {shown(named)}")
    usual = pipeline.usual(mode, output)
    config = _filled(usual, recipe.config, url)
    if isinstance(recipe.max_error_rate, float):
        try:
            run = dataclasses.replace(config.run, max_error_rate=recipe.max_error_rate)
        except InputError as error:
            raise InputError(f"{url}: {error}") from error
        config = dataclasses.replace(config, run=run)
    return RecipeSettings(config=config, url=url, _values=recipe.config, _usual=usual)


def changed_inputs(recipe: Manifest, manifest: Manifest) -> tuple[str, ...]:
    """Return a recipe's input files, by name, whose bytes match none of a dataset's inputs."""
    digests = {file.sha256 for file in manifest.inputs}
    return tuple(file.name for file in recipe.inputs if file.sha256 not in digests)


def named_line(names: Sequence[str], kind: str, fault: str) -> Iterator[str]:
    if names:
        more = [f"and {len(names) - SHOWN:,} more"] * (len(names) > SHOWN)
        yield f"{fault} {counted(len(names), kind)}: {', '.join([*names[:SHOWN], *more])}"


def _filled(config: Any, values: Mapping[str, Any], url: str) -> Any:
    """Return settings with the values of a recipe, and without places of this machine."""
    kind = type(config)
    hints = get_type_hints(kind, include_extras=True)
    names = [field.name for field in dataclasses.fields(kind)]
    chosen = set(_of_the_run(config))
    # A setting that was off changes nothing, also where this version has it no more.
    values = {name: value for name, value in values.items() if name in names or value is not None}
    if unknown := [name for name in values if name not in names]:
        hint = nearest(unknown[0], names)
        raise InputError(
            f"{url}: this version of eqforge has no setting {shown(unknown[0])}{hint}; use "
            "the version that wrote the recipe"
        )
    found = {}
    for name, value in values.items():
        default = getattr(config, name)
        if dataclasses.is_dataclass(default) and isinstance(value, dict):
            found[name] = _filled(default, value, url)
        elif name in chosen or _is_named(name, hints[name]):
            continue
        elif _is_place(hints[name]):
            found[name] = tyro.MISSING if value else default
        else:
            try:
                found[name] = msgspec.convert(value, hints[name])
            except msgspec.ValidationError as error:
                flag, why = name.replace("_", "-"), clipped(str(error))
                raise InputError(f"{url}: --{flag} {shown(value)}: {why}") from error
    try:
        return dataclasses.replace(config, **found)
    except InputError as error:
        raise InputError(f"{url}: {error}") from error


def _of_the_run(config: Any) -> Iterator[str]:
    """Yield the settings that a user chooses, whatever the recipe says."""
    yield "follow_links"
    for name, hint in get_type_hints(type(config), include_extras=True).items():
        if trace_of(hint) is Trace.NONE:
            yield name
        elif dataclasses.is_dataclass(default := getattr(config, name)):
            yield from _of_the_run(default)


def _is_named(name: str, hint: Any) -> bool:
    """Return True if the user must name a setting; no file says which model is loaded."""
    is_model = trace_of(hint) is Trace.NAME or isinstance(trace_of(hint), TraceOf)
    return is_model or (name not in _TEXTS and _holds(str, hint) and not _is_place(hint))


def _is_place(hint: Any) -> bool:
    return trace_of(hint) is Trace.GIVEN or _holds(Path, hint)


def _holds(kind: type, hint: Any) -> bool:
    return hint is kind or any(_holds(kind, each) for each in get_args(hint))


def _settings(config: Any, values: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any, Any]]:
    hints = get_type_hints(type(config), include_extras=True)
    for name, value in values.items():
        usual = getattr(config, name)
        if dataclasses.is_dataclass(usual):
            yield from _settings(usual, value)
        else:
            yield name, value, usual, hints[name]


FOLDER = "path/to"
"""Placeholder for a user's folder, which a manifest does not name."""
DIGITS: Final = 12
"""Digits of a manifest's digest that distinguish datasets of one name."""


def commands_of(manifest: Manifest) -> Iterator[str]:
    """Yield the commands that reproduce a dataset: those of its parts, then its own.

    A comment with eqforge's version precedes each change of it. An unknown dataset yields nothing.
    """
    names = [manifest.dataset, *(part.dataset for part in manifest.parts)]
    folders = {
        part.sha256: part.dataset
        if names.count(part.dataset) == 1
        else f"{part.dataset}@{part.sha256[:DIGITS]}"
        for part in manifest.parts
    }
    steps: list[tuple[Manifest | PartManifest, str]] = []
    steps += ((part, folders[part.sha256]) for part in manifest.parts)
    installed = ""
    for step, output in (*steps, (manifest, manifest.dataset)):
        if step.dataset not in TYPES:
            continue
        version = step.versions.get("eqforge", "")
        if version != installed and re.fullmatch(r"[\w.+-]+", version):
            yield f"# with eqforge {version}"
            installed = version
        yield command_of(step, output, folders)


def command_of(
    manifest: Manifest | PartManifest, output: str = "", folders: Mapping[str, str] | None = None
) -> str:
    """Return the command that builds a dataset with the settings of a manifest.

    It lists only settings that differ from the defaults of the mode. Paths start with `path/to`, as
    manifests store names only.

    Args:
        output: the name of its folder; empty for its own name.
        folders: folder names of its parts by digest; by default the names of the inputs.
    """
    dataset = manifest.dataset
    mode: Mode = "paper" if manifest.mode == "paper" else "corrected"
    if dataset in BENCHMARKS:
        source = manifest.config.get("source")
        words = ["import", dataset, f"{FOLDER}/{source}"]
    elif dataset in COMBINED:  # its mode is that of its parts
        run = run_of(manifest.config)
        others = sum(bool(run.get(name)) for name in ("errata", "decisions"))  # which stand last
        parts = manifest.inputs[: len(manifest.inputs) - others]
        words = ["combine", *(_part(part, folders or {}) for part in parts)]
    else:
        words = ["build", dataset, *(["--mode", mode] if mode == "paper" else [])]
    pipeline = pipeline_of(dataset)
    usual, config = (
        msgspec.json.decode(msgspec.json.encode(each, enc_hook=repr))
        for each in (traced(pipeline.usual(mode)), manifest.config)
    )
    if dataset in BENCHMARKS:
        config.pop("source", None)  # which stands first
    for name, hint, value in _different(pipeline.Config, config, usual):
        words += _arguments(name, hint, value)
    if isinstance(manifest.max_error_rate, float):
        words += ["--max-error-rate", f"{manifest.max_error_rate:g}"]
    return shlex.join(["eqforge", *words, "--output", f"{FOLDER}/{output or dataset}"])


def _part(part: InputFile, folders: Mapping[str, str]) -> str:
    folder = folders.get(part.sha256, part.name)
    is_named = part.name.partition("@")[0] != folder.partition("@")[0]
    return f"{part.name}={FOLDER}/{folder}" if is_named else f"{FOLDER}/{folder}"


def _different(
    kind: type, config: Mapping[str, Any], usual: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    hints, extras = get_type_hints(kind), get_type_hints(kind, include_extras=True)
    for field in dataclasses.fields(kind):
        if field.name not in config or field.name == "mode":
            continue  # it leaves no trace in the rows, or came with a later version
        hint, value, other = hints[field.name], config[field.name], usual.get(field.name)
        if dataclasses.is_dataclass(hint) and isinstance(value, dict):
            assert isinstance(hint, type)
            # Where the usual settings judge nothing, they stand nowhere.
            yield from _different(hint, value, other or msgspec.to_builtins(hint()))
        elif trace_of(extras[field.name]) is Trace.GIVEN or value != other:
            yield field.name, extras[field.name], value


def _arguments(name: str, hint: Any, value: Any) -> list[str]:
    flag, trace = name.replace("_", "-"), trace_of(hint)
    if trace is Trace.GIVEN:
        return [f"--{flag}", f"{FOLDER}/{name}"] if value else []
    if isinstance(trace, TraceOf) and value is not None:
        models = [_model(each) for each in value]
        models = models if name == "verify" else ["+".join(models)]
        return [word for model in models for word in (f"--{flag}", model)]
    if isinstance(value, bool) and hint is bool:
        return [f"--{flag}" if value else f"--no-{flag}"]
    values = [str(each) for each in (value if isinstance(value, list) else [value])]
    if _holds(Path, hint) and value is not None:
        values = [f"{FOLDER}/{each}" for each in values]
    return [f"--{flag}", *values]


def _model(identity: Mapping[str, str]) -> str:
    """Return an option's text for a model, from its identity in a manifest."""
    is_public = re.fullmatch(r"[0-9a-f]{40}", identity["revision"])
    name, revision = identity["model"], identity["revision"]
    architecture, is_checkpoint, weights = name.partition(",weights=")
    place = f"{name}@{revision}" if is_public else f"{FOLDER}/{name}"
    if is_checkpoint:
        place = f"{architecture},weights={FOLDER}/{weights}"
    if (precision := identity.get("precision")) in ("float16", "bfloat16"):
        place += f",precision={precision}"
    return place if identity["kind"] == KIND else f"{identity['kind']}:{place}"
