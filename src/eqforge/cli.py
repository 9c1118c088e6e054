"""The command `eqforge`: import the module of a command and pass it the arguments."""

import importlib
import io
import itertools
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from eqforge.core import signals
from eqforge.core.errors import check_memory, is_not_about_gcp, reported_errors
from eqforge.core.visible import in_lines, nearest, visible

COMMANDS = {
    "demo": "Build example datasets from bundled inputs, offline.",
    "plan": "Show what a build would produce and cost.",
    "build": "Build a dataset.",
    "import": "Import a published benchmark, or your own table, as a dataset.",
    "combine": "Combine several datasets into one, such as EqBen's subsets.",
    "verify": "Check the digests, schemas, ids, images and counts of a finished dataset.",
    "inspect": "Show counts, rejection reasons, columns and a few rows of a dataset.",
    "report": "Write web pages that show every sample and every rejected candidate.",
    "review": "Create review tasks for people, and turn their votes into decisions.",
    "diff": "Show which records and columns differ between two datasets.",
    "export": "Write a dataset in another format, for a data loader or an evaluation harness.",
    "card": "Write a dataset's card and a Croissant description of the dataset.",
    "lint": "Find defects in text pairs from published files, your own files, or a dataset.",
    "audit": "Measure how well text alone separates true captions from false ones.",
    "score": "Score a dataset's images and captions with a model.",
    "metrics": "Compute the papers' tables from scores, with confidence intervals.",
    "tables": "Print your numbers in the layout of a paper's tables, next to the paper's numbers.",
    "converse": "Ask a multimodal language model which caption belongs to which image.",
    "answer": "Solve a VLUE task, such as VQA or captioning, with a local model.",
    "classify": "Classify images without training, using prompts for each class.",
    "efficiency": "Measure a model's speed, for single images and in batches.",
    "pareto": "Find the models on the Pareto front of accuracy against time.",
    "plot": "Plot scores, tables and Pareto fronts as in the papers.",
    "finetune": "Train a model on a dataset, with losses for minimal pairs.",
    "ablate": "Train and score a model with several settings, and print one table.",
    "overlap": "Find images in a dataset that a model saw in training.",
    "assets": "List, check and fetch the 3D objects that appear in rendered scenes.",
    "doctor": "List missing tools, what you cannot do without them, and how to install them.",
    "completion": "Print a bash or zsh script for Tab completion of commands and options.",
    "setup": "Download WordNet, which no package includes.",
}
"""What each command does."""

_MODULES = {
    "plan": "pipelines.base.command",
    "build": "pipelines.base.command",
    "import": "pipelines.base.command",
    "combine": "pipelines.combined",
    "inspect": "commands.inspection",
    "lint": "generators.text.lints.command",
    "audit": "evaluation.shortcuts.command",
    "score": "evaluation.scoring.command",
    "metrics": "evaluation.tables.command",
    "tables": "evaluation.tables.papers",
    "converse": "evaluation.conversations.command",
    "answer": "evaluation.scoring.answer",
    "classify": "evaluation.scoring.classify",
    "efficiency": "evaluation.efficiency.command",
    "pareto": "evaluation.efficiency.pareto_command",
    "plot": "evaluation.plots.command",
    "finetune": "evaluation.training.command",
    "ablate": "evaluation.training.ablate",
    "setup": "commands.setup_tools",
}
"""Modules, below eqforge, whose names differ from their commands."""

COMMON = ("--quiet", "--verbose", "--json", "--config")
EVERYWHERE = """Every command accepts --help, --help GROUP, --help-all, --verbose, --quiet and
--config FILE. With --quiet, eqforge prints only errors and the last line of the output. FILE is a
TOML file with option names as keys. You can also set options with environment variables. For
example, EQFORGE_SEED=3 is the same as --seed 3. `eqforge --version` or -V prints the version."""

_LAST_S = 5.0
"""Seconds that the program may take to exit after its command."""

GO_ON = frozenset(
    (
        "ablate",
        "answer",
        "assets adopt",
        "assets fetch",
        "build",
        "combine",
        "converse",
        "export",
        "finetune",
        "import",
        "score",
    )
)
"""Commands that resume where they were stopped."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status: 0 done, 1 failed, 2 wrong input.

    Args:
      argv: the command and its options; None runs the program's own command line and then ends
        the process.
    """
    if argv is not None:
        return _reported(list(argv))
    _prepare_streams()
    _prepare_logging()
    status: int | str | None = 1
    try:
        status = _reported(sys.argv[1:])
        return status
    except SystemExit as left:
        status = left.code
        if signals.is_of_signal(status):
            signals.end(status)
        raise
    finally:
        signals.end_within(_LAST_S, status if isinstance(status, int) else 0)


def _reported(arguments: list[str]) -> int:
    with reported_errors(goes_on=not GO_ON.isdisjoint((*arguments[:1], " ".join(arguments[:2])))):
        try:
            check_memory()
            return _run(arguments)
        finally:
            sys.stdout.flush()  # while a full disk or a closed pipe can still be reported
    raise AssertionError("reported_errors swallows nothing")


def _prepare_streams() -> None:
    """Redirect closed standard streams to /dev/null, and escape characters that cannot be encoded.

    Otherwise the next opened file would get a closed stream's number, and the output of libraries.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest that is free
    for name, number, mode in (("stdin", 0, "r"), ("stdout", 1, "w"), ("stderr", 2, "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(arguments: list[str]) -> int:
    # Beam warns of extras that only Dataflow needs as soon as it is imported.
    logging.getLogger().addFilter(is_not_about_gcp)
    logging.getLogger("apache_beam").setLevel(logging.ERROR)
    logging.setLogRecordFactory(_Record)
    warnings.formatwarning = _escaped_warning
    usage = _help(COMMANDS, "eqforge COMMAND", "command")
    if arguments in ([], ["-h"], ["--help"]):
        print(f"{usage}\n\n{EVERYWHERE}")
        return 0
    if arguments in (["-V"], ["--version"]):
        from eqforge import __version__

        print(__version__)
        return 0
    name, *rest = _options_last(arguments) or [""]
    if name not in COMMANDS:
        return _refuse(name, COMMANDS, usage, "command")
    if name in ("plan", "build", "import"):
        words = itertools.takewhile(lambda word: word != "--", rest)
        if any(word.partition("=")[0] == "--recipe" for word in words):
            on_recipe: Callable[[str, list[str]], int] = _import("commands.recipe").main
            return on_recipe(name, rest)
        return _on_one_of(name, _options_last(rest))
    run: Callable[[list[str]], int] = _import(module_of(name)).main
    return run(rest)


def module_of(command: str) -> str:
    return _MODULES.get(command, f"commands.{command}")


def _options_last(arguments: list[str]) -> list[str]:
    number = 0
    while number < len(arguments) and arguments[number].partition("=")[0] in COMMON:
        number += 2 if arguments[number] == "--config" else 1
    rest = arguments[number:]
    end = rest.index("--") if "--" in rest else len(rest)
    return [*rest[:end], *arguments[:number], *rest[end:]]


def _on_one_of(command: str, arguments: list[str]) -> int:
    """Run a command whose options depend on the dataset or benchmark."""
    known = _import("schemas.tables.datasets").MADE_BY[command]
    kind = "benchmark" if command == "import" else "dataset"
    summaries = {name: each.summary for name, each in known.items()}
    usage = _help(summaries, f"eqforge {command} {kind.upper()}", kind)
    does = "plans" if command == "plan" else "rebuilds"
    usage += f"\n\neqforge {command} --recipe RECIPE {does} a recipe's dataset and lists "
    usage += "the differences."
    if arguments in ([], ["-h"], ["--help"]):
        print(usage)
        return 0 if arguments else 2
    name, rest = arguments[0], arguments[1:]
    if name not in known:
        if other := _other_command(name, command):
            print(f"eqforge: {name} is not a {kind}; {other}", file=sys.stderr)
            return 2
        return _refuse(name, known, usage, kind)
    run = _import("pipelines.base.command")
    pipeline = _import("pipelines").pipeline_of(name)
    if command == "plan":
        return int(run.plan_command(pipeline, rest))
    return int(run.Main(pipeline, command)(rest))


def _other_command(name: str, command: str) -> str:
    """Return the command that builds a dataset unknown to this one; empty if there is none."""
    made_by = _import("schemas.tables.datasets").MADE_BY
    dataset = made_by["build"].get(name)
    if dataset is not None and command == "import":
        built = f"eqforge build {name}"
        if not dataset.released:
            return f"run {built}"
        note = "" if dataset.released.startswith(built) else f"; for new samples, run {built}"
        return f"to read the released files, run {dataset.released}{note}"
    return f"run eqforge import {name}" if name in made_by["import"] else ""


def _import(module: str) -> Any:
    with signals.idle():  # an exception may leave a library half loaded
        return importlib.import_module(f"eqforge.{module}")


def _prepare_logging() -> None:
    """Set up the log before Beam does, without the messages of object stores."""
    logging.basicConfig()
    for handler in logging.getLogger().handlers:
        handler.addFilter(_is_not_of_a_store)
    signals.quieten_way_out()


_formatted_warning = warnings.formatwarning


class _Record(logging.LogRecord):
    """A log message of a library; it may quote data, so hidden characters are written out."""

    def getMessage(self) -> str:
        return in_lines(super().getMessage().split("\n"))


def _escaped_warning(*values: Any, **named: Any) -> str:
    return in_lines(_formatted_warning(*values, **named).split("\n"))


def _is_not_of_a_store(record: logging.LogRecord) -> bool:
    from eqforge.core.files.storage import LIBRARIES  # imported only when something is logged

    is_verbose = logging.getLogger().level == logging.INFO
    return is_verbose or record.name.partition(".")[0] not in LIBRARIES


def _help(texts: Mapping[str, str], usage: str, kind: str) -> str:
    width = max(map(len, texts))
    lines = [f"  {name:<{width}}  {text}" for name, text in texts.items()]
    return "\n".join(
        [
            "Construct benchmarks of minimal pairs for vision-language models.",
            "",
            f"usage: {usage} [options]      ({usage} --help shows a {kind}'s options)",
            "",
            *lines,
        ]
    )


def _refuse(name: str, known: Iterable[str], usage: str, kind: str) -> int:
    begin = [each for each in known if name and each.startswith(name)]
    hint = f"; did you mean {', '.join(begin)}?" if begin else nearest(name, known)
    shown = "" if hint else f"\n\n{usage}"
    print(f"eqforge: unknown {kind} {visible(name)!r}{hint}{shown}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
