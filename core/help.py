"""The text of `--help`: an example, the common options, and the names of the rest."""

import inspect
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tyro

from eqforge.core.errors import InputError
from eqforge.core.options import NO_PAIR, Option
from eqforge.core.visible import nearest

ALL = "--help-all"
MAIN = "main"
"""Group of options without a group."""
_COLUMN, _WIDEST, _LONG = 30, 100, 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Help:
    """The help text of a command, besides its options.

    Attributes:
      note: added to the docstring of its settings.
      example: one or more working command lines.
      basics: common options. The first page of the help shows the required options and these; if
        basics is empty, it shows every option.
    """

    program: str
    note: str = ""
    example: str = ""
    basics: tuple[str, ...] = ()


def asked_help(
    about: Help, settings: type, options: Sequence[Option], argv: Sequence[str]
) -> str | None:
    """Return the help that a command line asks for; None if it asks for none."""
    place = next((n for n, text in enumerate(argv) if text in ("-h", "--help", ALL)), None)
    if place is None:
        return None
    groups: dict[str, type] = {}
    for option in options:
        groups.setdefault(option.group or MAIN, option.owner)
    wanted = "".join(text for text in argv[place + 1 : place + 2] if not text.startswith("-"))
    if argv[place] == ALL or not (wanted or about.basics):
        shown = _sections(groups, options)
    elif not wanted:
        shown = _first_page(about, groups, options)
    elif wanted in groups:
        shown = _sections({wanted: groups[wanted]}, options)
    else:
        known = nearest(wanted, groups) or f"; the groups are {', '.join(groups)}"
        raise InputError(f"--help {wanted}: unknown group{known}")
    required = [each for each in options if each.default is tyro.MISSING]
    needed = map(_label, sorted(required, key=lambda each: not each.is_positional))
    usage = _wrapped(" ".join(("usage:", about.program, *needed, "[options]")), "  ")
    text = inspect.cleandoc(f"{settings.__doc__}") + f" {about.note}"
    paragraphs = (_wrapped(" ".join(each.split())) for each in text.split("\n\n"))
    example = "\n".join(f"  {line}" for line in about.example.splitlines())
    parts = (usage, *paragraphs, example, *shown)
    return "\n\n".join(filter(None, parts))


def subcommands_help(about: Help, kinds: Mapping[str, type]) -> str:
    lines = [f"usage: {about.program} COMMAND [options]", ""]
    for name, kind in kinds.items():
        lines.append(_beside(f"  {name}", [_first_sentence(kind.__doc__ or "")]))
    return "\n".join(
        (*lines, "", (f"{about.program} COMMAND --help shows the options of a command."))
    )


def _first_page(about: Help, groups: Mapping[str, Any], options: Sequence[Option]) -> Iterator[str]:
    by_name = {option.name: option for option in options}
    required = [each for each in options if each.default is tyro.MISSING]
    # Subcommands share the list; each shows its own.
    named = (by_name[name] for name in about.basics if name in by_name)
    often = [each for each in named if each not in required]
    for title, shown in (("Required:", required), ("Often changed:", often)):
        if shown:
            yield "\n".join((title, *(_entry(each, is_brief=True) for each in shown)))
    hint = f"--help GROUP shows the options of a group. {ALL} shows all {len(options)} options."
    yield _wrapped(f"{hint} {_names(groups)}")


def _sections(groups: Mapping[str, type], options: Sequence[Option]) -> Iterator[str]:
    for group, owner in groups.items():
        title = "Options" if group == MAIN else f"{group}: {_first_sentence(owner.__doc__ or '')}"
        members = (option for option in options if (option.group or MAIN) == group)
        yield "\n".join((_wrapped(title), *map(_entry, members)))


def _names(groups: Iterable[str]) -> str:
    return f"Groups: {', '.join(groups)}."


def _label(option: Option) -> str:
    if option.is_positional:
        return f"{option.name.upper()}{' ...' if option.is_list else ''}"
    if option.kind is bool:
        return f"--{'no-' * (option.default is True and NO_PAIR not in option.marks)}{option.name}"
    return f"--{option.name} {option.spec.metavar.removesuffix(' or None')}"


def _entry(option: Option, *, is_brief: bool = False) -> str:
    text, label, default, shown = option.text, _label(option), option.default, ""
    if default not in (tyro.MISSING, None, (), "") and not isinstance(default, bool):
        shown = " ".join(map(str, default)) if isinstance(default, tuple) else f"{default}"
        shown = f" (default: {shown})"
    if is_brief:
        label = re.sub(r"\{.*\}", "NAME", label) if len(label) > _LONG else label
        shown = shown if len(shown) <= _LONG else ""
        room = 2 * (_width() - _COLUMN - 4) - len(shown)
        text = textwrap.shorten(_first_sentence(text), room, placeholder=" …")
    return _beside(f"  {label}", f"{text}{shown}".split("\n\n"))


def _beside(label: str, paragraphs: Iterable[str]) -> str:
    """Return paragraphs next to a label, or below a long label."""
    indent = " " * _COLUMN
    text = "\n".join(_wrapped(indent + each, indent) for each in paragraphs)
    return label + (text[len(label) :] if len(label) < _COLUMN - 1 else f"\n{text}")


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=\.)\s(?=[A-Z`-])|\n\n", text, maxsplit=1)[0].replace("\n", " ")


def _width() -> int:
    return max(_COLUMN + 20, min(shutil.get_terminal_size().columns, _WIDEST))


def _wrapped(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text, _width(), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
