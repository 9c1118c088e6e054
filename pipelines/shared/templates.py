"""A dataset as a Dataflow Flex template: its options as parameters, and parameters as options.

A template is launched with parameters, which are texts. Each parameter is an option of the
command line, by the same name with underscores, so that nothing has to be learnt twice.

Source: `TemplateMetadata` and `ParameterMetadata` of Dataflow's REST reference, v1b3.
"""

import re
import shlex
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import tyro

from eqforge.pipelines.shared.command import default_config
from eqforge.pipelines.shared.driver import Pipeline
from eqforge.schemas.errors import InputError

DATASET = "dataset"
NOT_A_PARAMETER = frozenset({"help", "workers"})
"""Options that say nothing to Dataflow: it has workers of its own."""

_DEFAULT = re.compile(r"\s*\((?:default: (.*)|required)\)$", re.DOTALL)
_NUMBERS = {
    "INT": r"-?[0-9]+",
    "FLOAT": r"-?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][-+]?[0-9]+)?",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Option:
    """An option of a dataset's command line.

    Attributes:
      name: with underscores, such as `max_error_rate`.
      help: what it is for.
      default: as it would be written; None where it has none, and where that is no value.
      is_required: whether it has to be given.
      is_switch: whether it is on or off, and takes no value.
      is_list: whether it takes several values.
      choices: the values it takes, where they are few.
      kind: what stands for the value in the help, such as `INT` or `{None}|INT`.
    """

    name: str
    help: str
    default: str | None
    is_required: bool
    is_switch: bool
    is_list: bool
    choices: tuple[str, ...]
    kind: str

    @property
    def is_file(self) -> bool:
        """Whether it names a file or folder."""
        return "PATH" in self.kind

    @property
    def regexes(self) -> list[str]:
        """Patterns of what the parameter may be; none where only the build can tell."""
        if self.is_switch:
            return ["^(true|false)$"]
        if self.choices:
            one = f"({'|'.join(self.choices)})"
            return [f"^{one}( {one})*$" if self.is_list else f"^{one}$"]
        found = [_NUMBERS[part] for part in self.kind.split("|") if part in _NUMBERS]
        if not set(self.kind.split("|")) <= {*_NUMBERS, "{None}"} or self.is_list:
            return []
        found += ["None"] if "{None}" in self.kind else []
        return [f"^({'|'.join(found)})$"]


def options_of(pipeline: Pipeline[Any]) -> tuple[Option, ...]:
    """Returns the options of a dataset's command line that a template has, in their order."""
    with warnings.catch_warnings():
        # There is no other way yet by which tyro tells of its options.
        warnings.simplefilter("ignore", DeprecationWarning)
        parser = tyro.extras.get_parser(
            pipeline.config, default=default_config(pipeline.config, pipeline.defaults)
        )
    found = map(_option, parser._actions)
    return tuple(option for option in found if option.name not in NOT_A_PARAMETER)


def _option(action: Any) -> Option:
    name = action.option_strings[-1 if action.option_strings[0] == "-h" else 0]
    text = " ".join((action.help or "").replace("%%", "%").split())
    default = _DEFAULT.search(text)
    value = default.group(1) if default is not None else None
    is_switch = len(action.option_strings) == 2 and name != "--help"
    return Option(
        name=name.removeprefix("--").replace("-", "_"),
        help=_DEFAULT.sub("", text),
        default=None if value in (None, "None", "") else _as_parameter(value, is_switch),
        is_required=bool(action.required),
        is_switch=is_switch,
        is_list=action.nargs not in (None, 0, 1),
        choices=tuple(sorted(map(str, action.choices or ()))),  # tyro may hold them as a set
        kind=action.metavar if isinstance(action.metavar, str) else "",
    )


def _as_parameter(value: str, is_switch: bool) -> str:
    return value.lower() if is_switch else value


def metadata(pipeline: Pipeline[Any]) -> dict[str, Any]:
    """Returns the metadata of a dataset's template, as `flex-template build` takes them."""
    return {
        "name": f"eqforge {pipeline.name}",
        "description": " ".join((pipeline.config.__doc__ or "").split()),
        "streaming": False,
        "parameters": [_dataset_parameter(pipeline.name), *map(_parameter, options_of(pipeline))],
    }


def _dataset_parameter(name: str) -> dict[str, Any]:
    return {
        "name": DATASET,
        "label": DATASET,
        "helpText": f"The dataset that this template builds: {name}.",
        "paramType": "TEXT",
        "isOptional": False,
        "regexes": [f"^{name}$"],
        "defaultValue": name,
    }


def _parameter(option: Option) -> dict[str, Any]:
    """Returns the metadata of an option.

    They hold no `defaultValue` but in words: consoles send it along as if the user had given it,
    and `--mode` decides on other defaults.
    """
    notes = " Several are separated by spaces." if option.is_list else ""
    if option.default is not None:
        notes += f" Default: {option.default}"
    found: dict[str, Any] = {
        "name": option.name,
        "label": option.name.replace("_", " "),
        "helpText": (option.help or option.name) + notes,
        "paramType": "TEXT",
        "isOptional": not option.is_required,
    }
    if option.regexes:
        found["regexes"] = option.regexes
    return found


def dataset_of(arguments: Sequence[str]) -> str:
    """Returns the dataset that a template's arguments name.

    Raises:
      InputError: they name none.
    """
    for name, value in _pairs(arguments):
        if name == DATASET:
            return value
    raise InputError(f"--{DATASET} is missing: the dataset that the template builds")


def command_line(
    options: Sequence[Option],
    arguments: Sequence[str],
    fetch: Callable[[str, str], str] = lambda name, value: value,
) -> list[str]:
    """Returns the command line, without command and dataset, that a template's arguments mean.

    Args:
      options: of the dataset.
      arguments: `--name=value` each, as Dataflow's launcher gives them: parameters of the template
        among Beam's own options.
      fetch: gives a local path for the name and value of an option that is a file or folder.

    Raises:
      InputError: a switch is neither true nor false.
    """
    by_name = {option.name: option for option in options}
    own: list[str] = []
    beam: list[str] = []
    for name, value in _pairs(arguments):
        if name in by_name:
            own += _own(by_name[name], fetch(name, value) if by_name[name].is_file else value)
        elif name != DATASET:
            beam.append(f"--{name}={value}" if value else f"--{name}")
    return [*own, "--", *beam]


def _own(option: Option, value: str) -> list[str]:
    flag = option.name.replace("_", "-")
    if option.is_switch:
        if value.lower() not in ("true", "false"):
            raise InputError(f"--{flag} {value}: expected true or false")
        return [f"--{flag}" if value.lower() == "true" else f"--no-{flag}"]
    if option.is_list:
        return [f"--{flag}", *shlex.split(value)]
    return [f"--{flag}={value}"]


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    for argument in arguments:
        name, _, value = argument.removeprefix("--").partition("=")
        yield name, value
