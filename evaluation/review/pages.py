"""Writes tasks as pages, which reviewers open from disk."""

from typing import Any, Final

from eqforge.evaluation.report.folder import Folder, write_assets, write_page
from eqforge.evaluation.review.dealt import Dealt
from eqforge.evaluation.review.protocols import Form

CHUNK: Final = 20
"""So many items are in a file of tasks."""

_DECIDED: Final = (("keep", "Keep", "k"), ("drop", "Drop", "d"), ("unsure", "Unsure", "u"))
_GIVEN: Final = (("given", "Done", "Enter"), ("skipped", "Skip", "k"))


def write_pages(output: str, dealt: Dealt) -> None:
    """Writes a page for each reviewer who has tasks, and one that leads to them."""
    folder, protocol = Folder(output), dealt.protocol
    about = {
        **dealt.about,
        "reasons": protocol.reasons,
        "answers": dealt.answers,
        "seconds": protocol.seconds,
        "chunk": CHUNK,
    }
    for reviewer, tasks in dealt.busy.items():
        shown = dealt.show(reviewer, tasks)
        for start in range(0, len(shown), CHUNK):
            folder.give(f"{reviewer}/items/{start // CHUNK}", shown[start : start + CHUNK])
        own = [[task.id, task.is_repeat] for task in tasks]
        folder.give(f"{reviewer}/tasks", {**about, "reviewer": reviewer, "tasks": own})
    write_assets(folder)
    shared = {"here": "", **dealt.shared}
    write_page(folder, "reviewers.html", "index.html", reviewers=dealt.reviewers, **shared)
    shared |= _buttons(protocol.form)
    for name in dealt.busy:
        write_page(folder, "review.html", f"{name}.html", reviewer=name, **shared)


def _buttons(form: Form) -> dict[str, Any]:
    """Returns the answers that a page offers, and which of them needs a reason."""
    named = _DECIDED if form == "decide" else _GIVEN
    answers = [{"answer": name, "label": label, "key": key} for name, label, key in named]
    return {"answers": answers, "refusal": "drop" if form == "decide" else "skipped"}
