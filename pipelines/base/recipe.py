"""What a manifest stands for: settings that a user completes, and commands to make it again."""

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
from eqforge.core.files.checked import clipped, name_of, shown
from eqforge.core.visible import counted, nearest
from eqforge.pipelines.base.identity import IDENTIFIED, NOT_OF_THE_ROWS, without_places
from eqforge.pipelines.base.pipeline import MEDIA, Pipeline
from eqforge.pipelines.base.registry import pipeline_of
from eqforge.pipelines.base.settings import Mode
from eqforge.schemas.dataset.manifest import InputFile, Manifest, PartManifest, run_of
from eqforge.schemas.tables.benchmark_rows import COMBINED
from eqforge.schemas.tables.benchmarks import BENCHMARKS
from eqforge.schemas.tables.datasets import TYPES

OTHER_BYTES = "with other bytes than the recipe's"
SHOWN = 10
"""So many names stand in a line."""
_OF_THE_RUN = (*NOT_OF_THE_ROWS, "follow_links")
"""Settings that a user chooses, whatever the recipe says."""
_NAMED = (
    *(
        "oracle",
        "perceptual",
        "plausibility",
        "embedding",
        "entailment",
        "verify",
        "model",
        "revision",
        "model_revision",
    ),
    *("assets", "spacy_model", "device", "model_device"),
)
"""Settings that a user names where they are no default: no file says which model is loaded."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Setting:
    """A setting of a recipe.

    Attributes:
      name: of the setting, which is distinct in all groups.
      value: what the recipe says.
      is_open: whether the user may name it.
      is_wanted: whether the user has to.
    """

    name: str
    value: Any
    is_open: bool
    is_wanted: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeSettings:
    """The settings of a recipe, which its user completes.

    Attributes:
      config: the configuration, in which places that the user has to name are missing.
      url: of the recipe, for messages.
    """

    config: Any
    url: str
    _settings: dict[str, _Setting]

    def check_given(self, given: Mapping[str, str]) -> None:
        """Checks that a user names what the recipe leaves open, and nothing else.

        Args:
          given: how messages call each setting that is given, by its name.

        Raises:
          InputError: it is not so.
        """
        for name, called in given.items():
            known = self._settings.get(name)
            if name in _OF_THE_RUN or (known and known.is_open):
                continue
            has_none = known is None or known.value in (None, False)
            had = "was made without" if has_none else f"sets it to {shown(known and known.value)}"
            raise InputError(
                f"{called}: the recipe {self.url} {had}; leave it out, or build without the recipe"
            )
        for name, setting in self._settings.items():
            if setting.is_wanted and name not in given:
                raise InputError(
                    f"the recipe {self.url} was made with --{_flag(name)} {shown(setting.value)}, "
                    "which you have to name yourself: a recipe does not say what is loaded"
                )


def settings_of_recipe(
    pipeline: type[Pipeline[Any]], recipe: Manifest, url: str, output: str = ""
) -> RecipeSettings:
    """Returns the settings of a recipe.

    Args:
      pipeline: the dataset.
      recipe: what its `recipe.json` says.
      url: of the recipe, for messages.
      output: the output folder where the user need not name one; empty where it has to be named.

    Raises:
      InputError: the recipe has a setting that is not known or has a wrong value.
    """
    mode = next((each for each in get_args(Mode) if each == recipe.mode), None)
    if mode is None:
        raise InputError(f"{url}: the mode {shown(recipe.mode)}: expected paper or corrected")
    if (said := recipe.config.get("mode", mode)) != mode:
        raise InputError(f"{url}: is of {mode} mode, but its settings name {shown(said)}")
    usual = pipeline.usual(mode)
    config = _filled(usual, recipe.config, url)
    if output:
        config = dataclasses.replace(config, run=dataclasses.replace(config.run, output=output))
    settings = {each.name: each for each in _settings(usual, recipe.config)}
    return RecipeSettings(config=config, url=url, _settings=settings)


def changed_inputs(recipe: Manifest, manifest: Manifest) -> tuple[str, ...]:
    """Returns a recipe's input files, by name, that none of a dataset's has the bytes of."""
    digests = {file.sha256 for file in manifest.inputs}
    return tuple(file.name for file in recipe.inputs if file.sha256 not in digests)


def named_line(names: Sequence[str], what: str, said: str) -> Iterator[str]:
    """Yields a line that counts and names some inputs or sources, if there are any."""
    if names:
        more = [f"and {len(names) - SHOWN:,} more"] * (len(names) > SHOWN)
        yield f"{counted(len(names), what)} {said}: {', '.join([*names[:SHOWN], *more])}"


def _filled(config: Any, values: Mapping[str, Any], url: str) -> Any:
    """Returns settings with the values of a recipe, and without the places of this machine.

    Raises:
      InputError: a setting is not known, or a value is not of its type.
    """
    kind = type(config)
    hints, names = get_type_hints(kind), [field.name for field in dataclasses.fields(kind)]
    # A setting that was off changes nothing, also where this version has it no more.
    values = {name: value for name, value in values.items() if name in names or value is not None}
    if unknown := [name for name in values if name not in names]:
        hint = nearest(unknown[0], names)
        raise InputError(
            f"{url}: this version has no setting {name_of(unknown[0])}{hint}; use the version of "
            "eqforge that wrote the recipe"
        )
    found = {}
    for name, value in values.items():
        there = getattr(config, name)
        if dataclasses.is_dataclass(there) and isinstance(value, dict):
            found[name] = _filled(there, value, url)
        elif name in _OF_THE_RUN or name in _NAMED:
            continue
        elif _is_place(name, hints[name]):
            found[name] = tyro.MISSING if value else there
        else:
            found[name] = _converted(name, value, hints[name], url)
    try:
        return dataclasses.replace(config, **found)
    except InputError as error:
        raise InputError(f"{url}: {error}") from error


def _converted(name: str, value: Any, hint: Any, url: str) -> Any:
    try:
        return msgspec.convert(value, hint)
    except msgspec.ValidationError as error:
        said = clipped(str(error))
        raise InputError(f"{url}: --{_flag(name)} {shown(value)}: {said}") from error


def _is_place(name: str, hint: Any) -> bool:
    return name in MEDIA or _is_path(hint)


def _is_path(hint: Any) -> bool:
    return hint is Path or any(map(_is_path, get_args(hint)))


def _settings(config: Any, values: Mapping[str, Any]) -> Iterator[_Setting]:
    """Yields the settings of a recipe."""
    hints = get_type_hints(type(config))
    for name, value in values.items():
        usual = getattr(config, name)
        if dataclasses.is_dataclass(usual):
            yield from _settings(usual, value)
        else:
            is_named = name in _NAMED
            yield _Setting(
                name=name,
                value=value,
                is_open=bool(value) and (is_named or _is_place(name, hints[name])),
                is_wanted=is_named and bool(value) and value != usual,
            )


def _flag(name: str) -> str:
    return name.replace("_", "-")


FOLDER = "path/to"
"""Stands for a folder of the user, which a manifest does not name."""
DIGITS: Final = 12
"""So many digits of a manifest's digest tell datasets of one name apart."""
_VERIFY = "verify"
_SOURCE = "source"


def commands_of(manifest: Manifest) -> Iterator[str]:
    """Yields the command lines that make a dataset again: those of its parts, then its own.

    A line that installs eqforge stands before each that another version ran. Nothing is yielded of
    a dataset that eqforge does not know.
    """
    folders = _folders(manifest)
    steps: list[tuple[Manifest | PartManifest, str]] = []
    steps += ((part, folders[part.sha256]) for part in manifest.parts)
    installed = ""
    for made, output in (*steps, (manifest, manifest.dataset)):
        if made.dataset not in TYPES:
            continue
        version = made.versions.get("eqforge", "")
        if version != installed and re.fullmatch(r"[\w.+-]+", version):
            yield f"pip install eqforge=={version}"
            installed = version
        yield command_of(made, output, folders)


def _folders(manifest: Manifest) -> dict[str, str]:
    """Returns what the folders of a dataset's parts are called, by the digests of the parts."""
    names = [manifest.dataset, *(part.dataset for part in manifest.parts)]
    return {
        part.sha256: part.dataset
        if names.count(part.dataset) == 1
        else f"{part.dataset}@{part.sha256[:DIGITS]}"
        for part in manifest.parts
    }


def command_of(
    manifest: Manifest | PartManifest, output: str = "", folders: Mapping[str, str] | None = None
) -> str:
    """Returns the command line that makes a dataset with the settings of a manifest.

    Only what differs from the defaults of the mode stands in it; files and folders are named below
    `path/to`, as the manifest has their names alone.

    Args:
      manifest: of the dataset, which eqforge has to know.
      output: what its folder is called; empty for its name.
      folders: what those of its parts are called, by their digests; else as the inputs name them.
    """
    pipeline = pipeline_of(manifest.dataset)
    words = ["eqforge", "build", manifest.dataset]
    if manifest.dataset in BENCHMARKS:
        words = ["eqforge", "import", manifest.dataset, f"{FOLDER}/{manifest.config.get(_SOURCE)}"]
    is_combined = manifest.dataset in COMBINED  # its mode is that of its parts
    if is_combined:
        run = run_of(manifest.config)
        others = sum(bool(run.get(name)) for name in ("errata", "decisions"))  # which stand last
        parts = manifest.inputs[: len(manifest.inputs) - others]
        words = ["eqforge", "combine", *(_part(part, folders or {}) for part in parts)]
    has_modes = not is_combined and manifest.dataset not in BENCHMARKS
    words += ["--mode", manifest.mode] if manifest.mode == "paper" and has_modes else []
    mode: Any = "paper" if manifest.mode == "paper" else "corrected"
    usual = pipeline.usual(mode)
    plain, given = (
        msgspec.json.decode(msgspec.json.encode(each, enc_hook=repr))
        for each in (usual, manifest.config)
    )
    if manifest.dataset in BENCHMARKS:
        given.pop(_SOURCE, None)  # which stands first
    for name, hint, value in _different(pipeline.Config, given, without_places(plain)):
        words += _arguments(name, hint, value)
    return shlex.join([*words, "--output", f"{FOLDER}/{output or manifest.dataset}"])


def _part(part: InputFile, folders: Mapping[str, str]) -> str:
    """Returns a part as a command line names it, with the name that its user gave it."""
    folder = folders.get(part.sha256, part.name)
    is_named = part.name.partition("@")[0] != folder.partition("@")[0]
    return f"{part.name}={FOLDER}/{folder}" if is_named else f"{FOLDER}/{folder}"


def _different(
    kind: type, given: Mapping[str, Any], usual: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yields name, type and value of each setting that is not the usual one."""
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        if field.name not in given or field.name == "mode":
            continue  # it leaves no trace in the rows, or came with a later version
        hint, value, other = hints[field.name], given[field.name], usual.get(field.name)
        if dataclasses.is_dataclass(hint) and isinstance(value, dict):
            assert isinstance(hint, type)
            # Where the usual settings judge nothing, they stand nowhere.
            yield from _different(hint, value, other or msgspec.to_builtins(hint()))
        elif field.name in MEDIA or value != other:
            yield field.name, hint, value


def _arguments(name: str, hint: Any, value: Any) -> list[str]:
    """Returns the words that give a setting its value."""
    flag = name.replace("_", "-")
    if name in MEDIA:
        return [f"--{flag}", f"{FOLDER}/{name}"] if value else []
    if name in IDENTIFIED and value is not None:
        return [f"--{flag}", f"{FOLDER}/{name}"]
    if name == _VERIFY:
        judges = (f"{each['kind']}:{FOLDER}/{each['model']}" for each in value)
        return [word for judge in judges for word in (f"--{flag}", judge)]
    if isinstance(value, bool) and hint is bool:
        return [f"--{flag}" if value else f"--no-{flag}"]
    values = [str(each) for each in (value if isinstance(value, list) else [value])]
    if _is_path(hint) and value is not None:
        values = [f"{FOLDER}/{each}" for each in values]
    return [f"--{flag}", *values]
