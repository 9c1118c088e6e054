"""Prints docs/reference/json.md: the JSON Schema of what each command prints with `--json`."""

import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import msgspec

from eqforge.commands.diff import Difference
from eqforge.commands.inspection import Inspection
from eqforge.commands.recipe import RecipeReport
from eqforge.commands.verify import Verification
from eqforge.evaluation.report.write import Report
from eqforge.evaluation.review.outcome import ReviewOutcome
from eqforge.evaluation.review.plan import ReviewPlan
from eqforge.generators.text.lints.command import LintReport
from eqforge.pipelines.base.plan import PlanReport
from eqforge.pipelines.base.runner import BuildReport
from eqforge.transforms.export.note import ExportNote

DOCUMENTS = {
    "plan": PlanReport,
    "build": BuildReport,
    "build --recipe": RecipeReport,
    "verify": Verification,
    "inspect": Inspection,
    "report": Report,
    "review plan": ReviewPlan,
    "review import": ReviewOutcome,
    "diff": Difference,
    "export": ExportNote,
    "lint": list[LintReport],
}
"""The documents that commands print with `--json`, by command."""

WIDTH = 120
INTRODUCTION = """\
With `--json` these commands print one JSON document to standard output, and everything for people
to standard error. The exit status stays what it is without. From Python, `eqforge.plan`, `verify`
and `lint` return the same records, and an open dataset has the manifest. Fields may be added in
later versions; those that are here keep their meaning. (This page is written by `make docs`.)
"""
ENTRY = re.compile(r"^  (\w+(?:,\s+\w+)*):\s(.+?)(?=^  \w|\Z)", re.M | re.S)


def page() -> Iterator[str]:
    """Yields the lines of the page."""
    yield "# JSON documents\n"
    yield textwrap.fill(INTRODUCTION, WIDTH)
    for command, kind in DOCUMENTS.items():
        yield f"\n## eqforge {command}\n"
        yield f"```json\n{json.dumps(schema(kind), indent=2)}\n```"


def schema(kind: Any) -> dict[str, Any]:
    """Returns the JSON Schema of a document, with the meaning of each field."""
    found = msgspec.json.schema(kind)
    for definition in found["$defs"].values():
        said = inspect.cleandoc(definition.get("description", ""))
        summary, _, attributes = said.partition("Attributes:\n")
        definition["description"] = " ".join(summary.split())
        meanings = {
            name.strip(): " ".join(text.split())
            for names, text in ENTRY.findall(attributes)
            for name in names.split(",")
        }
        for name, field in definition.get("properties", {}).items():
            if name in meanings:
                definition["properties"][name] = {"description": meanings[name], **field}
    return found


if __name__ == "__main__":
    print("\n".join(page()))
