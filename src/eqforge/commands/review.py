"""`eqforge review`: write reviewers' tasks, and process their votes."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from eqforge.core.console import DocumentOptions, print_document
from eqforge.core.shell import Command
from eqforge.core.visible import counted, in_lines, visible
from eqforge.evaluation.review.settings import Import, Plan

if TYPE_CHECKING:
    from eqforge.evaluation.review.outcome import ReviewOutcome
    from eqforge.evaluation.review.ranking import Correlation
    from eqforge.evaluation.statistics.shares import Interval


def review_command(arguments: Plan | Import) -> None:
    if isinstance(arguments, Import):
        _import(arguments)
        return
    from eqforge.evaluation.review.plan import in_minutes, write_plan

    written = write_plan(arguments)
    lines = [f"{written.page}: {counted(written.items, 'items')} to review"]
    for name, tasks in written.tasks.items():
        work = f"{counted(tasks, 'tasks')}, {in_minutes(written.minutes[name])}"
        lines.append(f"  {name}: {work if tasks else 'no tasks'}")
    if written.unjudged:
        left_out = counted(written.unjudged, "samples")
        lines.append(f"  left out: {left_out} without a judge's answer")
    print(in_lines(lines))
    print_document(written)


def _import(arguments: Import) -> None:
    from eqforge.evaluation.review.forms import FORMS
    from eqforge.evaluation.review.outcome import import_votes

    found = import_votes(arguments)
    print(in_lines(outcome_lines(found)))
    earlier = f", {found.earlier:,} of them from an earlier round" if arguments.earlier else ""
    count = counted(found.written, FORMS[found.form].written)
    print(visible(f"{arguments.output}: {count}{earlier}"))
    print_document(found)


def outcome_lines(found: "ReviewOutcome") -> Iterator[str]:
    for each in found.reviewers:
        agreement = repeats = alpha = ""
        if each.others is not None:
            agreement = (
                f", {100 * each.others:.0f}% agreement with other reviewers "
                f"{_percent(each.others_interval)}"
            )
        if each.repeats:
            counts = f"{each.same:,} of {each.repeats:,} repeats answered the same"
            repeats = f", {counts} {_percent(each.same_interval)}"
        if each.alpha is not None:
            alpha = f", alpha with other reviewers {each.alpha:.3f} {_range(each.alpha_interval)}"
        answers = ", ".join(f"{name} {count:,}" for name, count in each.answers.items())
        answered = f"{each.answered:,} of {each.tasks:,} answered"
        yield f"{each.name}: {answered}: {answers}{agreement}{repeats}{alpha}"
    agreed = found.agreement
    if found.form in ("write", "box"):
        pass  # texts and boxes of several people are all taken
    elif agreed.alpha is None:
        yield ("Krippendorff's alpha is undefined: no item has two votes, or all votes are equal")
    else:
        yield (
            f"Krippendorff's alpha {agreed.alpha:.3f} {_range(agreed.interval)} over "
            f"{counted(agreed.several, 'items')} with two votes or more; "
            f"{agreed.unanimous:,} unanimous"
        )
    for kind in found.claims:
        share = "" if kind.share is None else f"{100 * kind.share:.0f}% {_percent(kind.interval)} "
        yield (
            f"{kind.kind}, labelled {kind.claimed}: {share}of {kind.answers - kind.unsure:,} "
            f"answers agree, {kind.unsure:,} unsure"
        )
    if found.decisions:
        decided = ", ".join(f"{name} {count:,}" for name, count in found.decisions.items())
        yield f"decisions by {found.rule}: {decided}"
    for somebody in found.people:
        yield f"{somebody.name} compared with other reviewers: {_correlated(somebody)}"
    for model in found.models:
        yield f"{model.name} compared with people: {_correlated(model)}"
    for rule, count in found.broken.items():
        yield f"{counted(count, 'texts')} left out: {rule}"


def _correlated(found: "Correlation") -> str:
    named = (
        ("Spearman's rho", found.spearman, found.spearman_interval),
        ("Kendall's tau", found.kendall, found.kendall_interval),
    )
    return ", ".join(f"{name} {value:.3f} {_range(ends)}" for name, value, ends in named)


def _range(ends: "Interval") -> str:
    return "[no interval]" if math.isnan(ends[0]) else f"[{ends[0]:.3f}, {ends[1]:.3f}]"


def _percent(interval: "Interval") -> str:
    low, high = (100 * end for end in interval)
    return "[no interval]" if math.isnan(low) else f"[{low:.0f}, {high:.0f}]"


main = Command(
    "eqforge review",
    Plan | Import,
    review_command,
    example="""\
eqforge review plan out/eq-gebc --protocol eq-gebc-screening --reviewers ada,ben --output out/tasks
eqforge review import out/eq-gebc ada.json ben.json --output out/decisions.jsonl""",
    basics=("tool", "overlap", "sample", "each", "disputed", "rule", "earlier", "overwrite"),
    console=DocumentOptions,
)
