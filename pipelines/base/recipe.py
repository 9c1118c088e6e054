"""The configuration that a recipe stands for, less the places that its user names."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
import tyro

from eqforge.core.console import DocumentOptions
from eqforge.core.errors import InputError
from eqforge.core.files.checked import clipped, name_of, shown
from eqforge.core.shell import CommandLine
from eqforge.core.visible import counted, nearest
from eqforge.pipelines.base.command import default_config, parse_line
from eqforge.pipelines.base.identity import NOT_OF_THE_ROWS
from eqforge.pipelines.base.pipeline import MEDIA, Pipeline
from eqforge.pipelines.base.settings import Mode
from eqforge.schemas.dataset.manifest import Manifest

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


def parse_recipe(
    pipeline: type[Pipeline[Any]],
    recipe: RecipeSettings,
    argv: Sequence[str],
    program: str,
    console: type[DocumentOptions] = DocumentOptions,
) -> tuple[CommandLine, list[str]]:
    """Returns the command line that completes a recipe, and Beam's arguments.

    Args:
      pipeline: the dataset.
      recipe: what the recipe sets.
      argv: where the user's sources are, and how the run happens.
      program: what the help calls the command.
      console: the options of the output.

    Raises:
      InputError: the command line has a setting that the recipe sets, or does not name a source.
      SystemExit: help was asked for (0), or an option is unknown or missing (2).
    """
    note = f"The settings are those of {recipe.url}: sources and the run are named here."
    line, beam_args = parse_line(pipeline, argv, program, note, console, lambda _: recipe.config)
    named = {name.replace("-", "_"): f"--{name} ({each})" for name, each in line.sources.items()}
    recipe.check_given(named)
    return line, beam_args


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
    usual = default_config(pipeline, mode)
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
