"""What each command prints with `--json`, for docs/reference/python.md."""

import inspect
import re
from collections import defaultdict
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

ENTRY = re.compile(r"^  (\w+(?:,\s+\w+)*):\s(.+?)(?=^  \w|\Z)", re.M | re.S)


def lines() -> Iterator[str]:
    """Yields a table of the commands, then each record with its fields."""
    yield "| command with `--json` | document |\n|---|---|"
    records: dict[str, Any] = {}
    for command, kind in DOCUMENTS.items():
        found = schema(kind)
        records |= found["$defs"]
        yield f"| `{command}` | {type_of(found)} |"
    for name, record in sorted(records.items()):
        yield f"\n### {name}\n\n{record['description']}\n"
        fields: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for field, about in record.get("properties", {}).items():
            fields[type_of(about), about.get("description", "")].append(f"`{field}`")
        for (type_, meaning), names in fields.items():
            yield f"* {', '.join(names)}: {type_}" + (
                f". {meaning[0].upper()}{meaning[1:]}" if meaning else ""
            )


def type_of(value: dict[str, Any]) -> str:
    """Returns the type of a JSON Schema in words, with links to records."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(map(type_of, value["anyOf"])))
    if "enum" in value:
        return ", ".join(f"`{each}`" for each in value["enum"])
    if "prefixItems" in value:
        return f"[{', '.join(map(type_of, value['prefixItems']))}]"
    if value.get("type") == "array":
        return f"list of {_plural(type_of(value.get('items') or {}))}"
    if value.get("type") == "object":
        values = value.get("additionalProperties")
        return f"mapping to {_plural(type_of(values))}" if values else "object"
    return str(value.get("type", "any"))


def _plural(type_: str) -> str:
    return re.sub(r"^(string|integer|number|object|mapping|list)\b", r"\1s", type_)


def schema(kind: Any) -> dict[str, Any]:
    """Returns the JSON Schema of a document, with the meaning of each field."""
    found = msgspec.json.schema(kind)
    for definition in found["$defs"].values():
        said = inspect.cleandoc(definition.get("description", ""))
        summary, _, attributes = said.partition("Attributes:\n")
        definition["description"] = " ".join(summary.split())
        meanings = {
            name.strip(): " ".join(text.split()).replace("None", "null")
            for names, text in ENTRY.findall(attributes)
            for name in names.split(",")
        }
        for name, field in definition.get("properties", {}).items():
            if name in meanings:
                definition["properties"][name] = {"description": meanings[name], **field}
    return found
