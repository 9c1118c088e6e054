"""The command lines of a dataset's pipeline: build, import, combine and plan."""

import contextlib
import itertools
import re
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eqforge.core import shell, signals
from eqforge.core.console import ConsoleOptions, DocumentOptions, print_document, session
from eqforge.core.errors import InputError, reported_errors
from eqforge.core.files.source_file import one_content
from eqforge.core.help import Help
from eqforge.core.options import COMMAND_LINE
from eqforge.core.urls import copied_urls
from eqforge.core.visible import in_lines
from eqforge.pipelines.base.pipeline import AnyPipeline, Mode
from eqforge.schemas.dataset.manifest import Manifest
from eqforge.schemas.tables.datasets import MADE_BY
from eqforge.transforms.engines.run_folder import private_folder

UNNAMED = "no folder"
"""Placeholder for the output of a plan without one; never read."""


@dataclass(frozen=True, slots=True)
class Main:
    """The command line of a dataset's pipeline."""

    pipeline: type[AnyPipeline]
    command: str = "build"

    def __call__(self, argv: Sequence[str]) -> int:
        stack = contextlib.ExitStack()
        with reported_errors(goes_on=True), stack, session(), inputs_from_stores():
            about = help_of(self.pipeline, self.command)
            line, beam_args = parse_line(self.pipeline, argv, about)
            with signals.idle():  # an exception may leave a library half loaded
                from eqforge.pipelines.base.runner import build_dataset
            report = build_dataset(self.pipeline(line.settings), beam_args, print)
            stack.enter_context(signals.ignored())
            print_document(report)
            return 0
        return 2


@dataclass(frozen=True, kw_only=True)
class PlanOptions(DocumentOptions):
    """Console output, configuration file and cost estimate."""

    pilot: int | None = None
    """Build only this many records, in a temporary folder, to estimate time and storage."""


def plan_command(pipeline: type[AnyPipeline], argv: Sequence[str]) -> int:
    """Print what a build would make and cost; return the exit status."""
    with reported_errors(), one_content(), session(keeps_output=True), inputs_from_stores():
        line, _ = parse_line(
            pipeline,
            argv,
            help_of(pipeline, "plan"),
            console_of(pipeline),
            lambda mode: pipeline.usual(mode, UNNAMED),
        )
        print_plan(pipeline, line)
        return 0
    return 2


def console_of(pipeline: type[AnyPipeline]) -> type[DocumentOptions]:
    return DocumentOptions if pipeline.pilot is None else PlanOptions


def print_plan(
    pipeline: type[AnyPipeline], line: shell.CommandLine, recipe: Manifest | None = None
) -> None:
    from eqforge.pipelines.base.plan import plan_dataset

    options, pilots = line.console, 0
    if pipeline.pilot is not None:
        pilots = pipeline.pilot.number if options.pilot is None else options.pilot
        if pilots < 0:
            raise InputError(f"--pilot {pilots}: expected 0 or more {pipeline.pilot.records}")
    # A plan writes nothing; given the build's folder, it also checks that this is free.
    report = plan_dataset(
        pipeline(line.settings),
        pilots,
        checks_output="output" in line.sources,
        show=lambda lines: print(in_lines(lines)),
        recipe=recipe,
    )
    for name, source in line.sources.items():
        if source != COMMAND_LINE:
            print(in_lines([f"  --{name} is set by {source}"]))
    print_document(replace(report, sources=line.sources))


def help_of(pipeline: type[AnyPipeline], command: str, note: str = "") -> Help:
    """Return a dataset's help; the example is the first in the module's docstring."""
    program = f"eqforge {command} {pipeline.name}".rstrip()
    docstring = f"{sys.modules[pipeline.Config.__module__].__doc__}"
    found = re.search(r"Example:\n((?:.*\\\n)*.*)", docstring)
    example = textwrap.dedent(found[1]) if found else ""
    if pipeline.name in MADE_BY["import"]:
        example = f"{program} SOURCE --output out/{pipeline.name}"
    if command == "plan":
        example = example.replace("eqforge build", "eqforge plan")
        note = "A plan lists the records to build and the rejected records. --output is optional."
    return Help(program=program, note=note, example=example, basics=pipeline.basics)


def parse_line(
    pipeline: type[AnyPipeline],
    argv: Sequence[str],
    about: Help,
    console: type[ConsoleOptions] = DocumentOptions,
    default: Callable[[Mode], Any] | None = None,
) -> tuple[shell.CommandLine, list[str]]:
    """Return a parsed command line, and Beam's arguments after `--`.

    Args:
        default: returns the configuration of an empty command line in a mode.
    """
    split = list(argv).index("--") if "--" in argv else len(argv)
    usual = default or pipeline.usual

    def default_of(words: Sequence[str]) -> Any:
        modes = [value for flag, value in itertools.pairwise(words) if flag == "--mode"]
        modes += [text.partition("=")[2] for text in words if text.startswith("--mode=")]
        return usual("paper" if modes[-1:] == ["paper"] else "corrected")

    line = shell.parse_line(pipeline.Config, argv[:split], about, console, default_of)
    return line, list(argv[split + 1 :])


@contextlib.contextmanager
def inputs_from_stores() -> Iterator[None]:
    """Allow URLs in the block for options of a dataset that name a file; see `copied_urls`."""
    with private_folder(tempfile.gettempdir()) as folder, copied_urls(folder):
        yield
