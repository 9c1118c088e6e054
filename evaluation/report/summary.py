"""What the first page says of a dataset: what it is, how many, from where, what was refused."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from eqforge.core.versions import version
from eqforge.core.visible import counted
from eqforge.evaluation.report.links import link
from eqforge.evaluation.report.tables import Written
from eqforge.schemas.dataset import statements
from eqforge.schemas.dataset.manifest import Manifest, run_of
from eqforge.schemas.dataset.profile import UNSTATED, Profile, unit_of_sources
from eqforge.schemas.dataset.reader import Dataset

SAMPLES: Final = "samples.html"
REJECTS: Final = "rejects.html"
_MOST_VALUES: Final = 40
_MOST_SOURCES: Final = 20


def summary(
    dataset: Dataset, profile: Profile, tables: dict[str, Written], thing: str
) -> dict[str, Any]:
    """Returns what the first page says.

    Args:
      dataset: the dataset.
      profile: what is known of it.
      tables: what was written of its tables, `samples` and, where it has some, `rejects`.
      thing: what an item of the samples is called.
    """
    manifest = profile.manifest
    return {
        "title": statements.title(profile),
        "mode": manifest.mode if statements.has_mode(profile) else "",
        "what": statements.description(profile),
        "built_with": f"eqforge {manifest.versions.get('eqforge', '')}".strip(),
        "reported_with": f"eqforge {version('eqforge')}",
        "sha256": dataset.sha256,
        "counts": list(_counts(manifest, tables, thing)),
        "sources": [
            {"name": file.name, "sha256": file.sha256} for file in manifest.inputs[:_MOST_SOURCES]
        ],
        "licences": [
            {
                "name": "not stated" if name == UNSTATED else name,
                "sources": counted(count, unit_of_sources(profile)),
            }
            for name, count in profile.facts.licences.items()
        ],
        "settings": [[name, value] for name, value in _settings(manifest)],
        "warnings": list(manifest.warnings),
        "errata": len(manifest.errata),
        "commands": list(profile.commands),
        "stages": [_stage(profile, name) for name in manifest.stages],
        "facets": list(_facets(tables["samples"])),
        "strip": tables["samples"].strip,
    }


def _counts(manifest: Manifest, tables: dict[str, Written], thing: str) -> Iterable[dict[str, Any]]:
    pages = {"samples": SAMPLES, "rejects": REJECTS if "rejects" in tables else ""}
    if tables["samples"].items != manifest.num_rows("samples"):
        yield {"name": thing, "rows": tables["samples"].items, "page": SAMPLES}
    for name in manifest.tables:
        yield {"name": name, "rows": manifest.num_rows(name), "page": pages.get(name, "")}


def _settings(manifest: Manifest) -> Iterable[tuple[str, str]]:
    run = run_of(manifest.config)
    for name in ("seed", "sample", "limit", "only"):
        if (value := run.get(name)) not in (None, [], "", "100%"):
            yield name, str(value)


def _stage(profile: Profile, name: str) -> dict[str, Any]:
    books = profile.manifest.stages[name]
    reasons = sorted(books.reasons.items(), key=lambda each: (-each[1], each[0]))
    return {
        "name": name,
        "candidates": books.candidates,
        "kept": books.kept,
        "reasons": [
            {
                "reason": reason,
                "meaning": profile.meaning(name, reason),
                "count": count,
                "page": link(REJECTS, stage=name, reason=reason),
            }
            for reason, count in reasons
        ],
    }


def _facets(samples: Written) -> Iterable[dict[str, Any]]:
    for facet in samples.facets:
        named: Sequence[tuple[str, int]] = list(zip(facet.places, facet.counts(), strict=True))
        if len(named) <= _MOST_VALUES:
            values = [
                {"value": value, "count": count, "page": link(SAMPLES, **{facet.title: value})}
                for value, count in named
            ]
            yield {"title": facet.title, "values": values}
