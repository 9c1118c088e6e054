"""`eqforge build --recipe`: rebuild a dataset from a recipe and compare, or plan it."""

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import tyro

from eqforge.commands.diff import Difference, diff_datasets, difference_lines
from eqforge.core.console import DocumentOptions, print_document, session
from eqforge.core.errors import InputError, reported_errors
from eqforge.core.files import storage
from eqforge.core.files.checked import name_of
from eqforge.core.files.source_file import one_content
from eqforge.core.help import Help
from eqforge.core.identity import versions_of
from eqforge.core.visible import in_lines, nearest, visible
from eqforge.pipelines import pipeline_of
from eqforge.pipelines.base.command import (
    UNNAMED,
    console_of,
    inputs_from_stores,
    parse_line,
    print_plan,
)
from eqforge.pipelines.base.recipe import (
    OTHER_BYTES,
    SHOWN,
    changed_inputs,
    named_line,
    settings_of_recipe,
)
from eqforge.pipelines.base.runner import BuildReport, build_dataset
from eqforge.schemas.dataset.reader import Dataset, open_dataset
from eqforge.schemas.dataset.recipe import FILE_NAME, open_recipe, sources_of
from eqforge.schemas.tables.benchmark_rows import COMBINED
from eqforge.schemas.tables.datasets import MADE_BY
from eqforge.transforms.export.rows import check_files

OPTION = "--recipe"
NAMED = 1_000
"""Maximum number of added, removed or changed records in the document."""

USAGE = f"""usage: eqforge {{command}} {OPTION} RECIPE [options]

Rebuild a dataset from a recipe, with the recipe's settings and your own sources, and list the
records that no longer match. To write a recipe, run eqforge export DATASET --format recipe. The
exit status is 0 if all records match the recipe, and 1 otherwise. The options depend on the
recipe's dataset. To list them, run eqforge {{command}} {OPTION} RECIPE --help."""


PLAN_USAGE = f"""usage: eqforge plan [DATASET] {OPTION} RECIPE [options]

Show what eqforge build {OPTION} would build, and which of your input files differ from the
recipe's. To write a recipe, run eqforge export DATASET --format recipe. The options depend on
the recipe's dataset. To list them, run eqforge plan {OPTION} RECIPE --help."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RecipeReport:
    """The result of `eqforge build --recipe`.

    Attributes:
      build: result of the build.
      inputs: the recipe's input files whose contents differ from every input of the build.
      changed_sources: videos and images whose bytes changed.
      missing_sources: videos and images that have no record because they are missing, unreadable
        or rejected.
      difference: differences between the recipe (A) and the dataset (B) for up to 1,000 records per
        table, or None if the command did not wait for the build.
    """

    build: BuildReport
    inputs: tuple[str, ...] = ()
    changed_sources: tuple[str, ...] = ()
    missing_sources: tuple[str, ...] = ()
    difference: Difference | None = None


def main(command: str, argv: Sequence[str]) -> int:
    """Plan, build or import a recipe, and compare; return the exit status."""
    is_plan = command == "plan"
    with (
        reported_errors(goes_on=not is_plan),
        one_content() if is_plan else contextlib.nullcontext(),
        session(keeps_output=is_plan),
        inputs_from_stores(),
    ):
        folder, rest = _recipe_of(argv)
        if not folder:
            print((PLAN_USAGE if is_plan else USAGE).format(command=command))
            return 0 if {"-h", "--help"} & {*argv} else 2
        recipe = open_recipe(folder)
        manifest, url = recipe.manifest, storage.join(recipe.folder, FILE_NAME)
        _check_command(command, manifest.dataset, url)
        if argv[0] in MADE_BY[command]:
            if argv[0] != manifest.dataset:
                raise InputError(f"the recipe {url} is for {manifest.dataset}, not for {argv[0]}")
            rest = rest[1:]
        pipeline = pipeline_of(manifest.dataset)
        settings = settings_of_recipe(pipeline, manifest, url, UNNAMED if is_plan else tyro.MISSING)
        for table in manifest.tables:
            check_files(recipe, table)
        line, beam_args = parse_line(
            pipeline,
            rest,
            Help(
                program=f"eqforge {command} {OPTION} {recipe.folder}",
                note=f"The settings come from {url}. Pass the sources and the run options here.",
            ),
            console_of(pipeline) if is_plan else DocumentOptions,
            lambda _: settings.config,
        )
        sources = {name.replace("-", "_"): f"--{name} ({at})" for name, at in line.sources.items()}
        settings.check_given(sources)
        there, here = manifest.versions.get("eqforge", "none"), versions_of("eqforge")["eqforge"]
        if there != here:
            note = f"{url} was written by eqforge {there}, but this is eqforge {here}"
            print(visible(note), file=sys.stderr)
        if is_plan:
            print_plan(pipeline, line, manifest)
            return 0
        report = _compared(recipe, build_dataset(pipeline(line.settings), beam_args, print))
        print_document(report)
        return 0 if report.difference is None or report.difference.is_equal else 1
    return 2


def _recipe_of(argv: Sequence[str]) -> tuple[str, list[str]]:
    own_args, beam_args = list(argv), list[str]()
    if "--" in argv:
        own_args, beam_args = own_args[: own_args.index("--")], own_args[own_args.index("--") :]
    found: list[str] = []
    rest: list[str] = []
    words = iter(own_args)
    for word in words:
        if word == OPTION:
            found.append(next(words, ""))
        elif word.startswith(f"{OPTION}="):
            found.append(word.partition("=")[2])
        else:
            rest.append(word)
    if len(found) > 1:
        raise InputError(f"{OPTION}: pass one recipe at a time")
    folder = "" if found[0].startswith("-") else found[0]
    return folder, [*rest, *beam_args]


def _check_command(command: str, name: str, url: str) -> None:
    other = "import" if command == "build" else "build"
    if name in MADE_BY[command]:
        return
    if name in MADE_BY[other]:
        raise InputError(f"{url}: {command} cannot rebuild {name}; run eqforge {other} {OPTION}")
    if name in COMBINED:
        raise InputError(f"{url}: a combined dataset has no recipe; pass the recipes of its parts")
    hint = nearest(name, MADE_BY[command])
    raise InputError(f"the recipe {url} is for {name_of(name)}, which eqforge does not know{hint}")


def _compared(recipe: Dataset, build: BuildReport) -> RecipeReport:
    if build.manifest is None:
        print(f"to compare the finished build, run eqforge diff {recipe.folder} {build.output}")
        return RecipeReport(build=build)
    found = diff_datasets(recipe.folder, build.output, examples=NAMED)
    there, here = sources_of(recipe), sources_of(open_dataset(build.output))
    report = RecipeReport(
        build=build,
        inputs=changed_inputs(recipe.manifest, build.manifest),
        changed_sources=tuple(n for n in sorted(there) if n in here and there[n] != here[n]),
        missing_sources=tuple(n for n in sorted(there) if n not in here),
        difference=found,
    )
    lines = (
        *named_line(report.inputs, "inputs", OTHER_BYTES),
        *named_line(report.changed_sources, "sources", OTHER_BYTES),
        *named_line(report.missing_sources, "sources", "see the table rejects: no records from"),
        *difference_lines(found, SHOWN),
    )
    print(in_lines(lines))
    return report
