"""`eqforge verify`: check a finished dataset against its manifest and for consistency.

A check is `ok`, `FAILED`, or `not checked` if a package is missing; lints are `not linted` for
datasets without edited captions. Stored scores are `unmeasured` if rendered pairs have no scores
of a version that can be remeasured. Lints of error level fail a dataset of captions, except the
lint of CLIP's context. In paper mode they are `noted`, because that mode keeps the defects of the
published sets.
"""

from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from eqforge.core.console import DocumentOptions, print_document
from eqforge.core.errors import MAX_MESSAGE_CHARS, EqforgeError, MissingExtra
from eqforge.core.shell import Command
from eqforge.core.visible import counted, shortened, visible

if TYPE_CHECKING:
    from eqforge.schemas.dataset.reader import Dataset

SHOWN = 20
NOT_CHECKED = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Arguments:
    """Check a finished dataset: files, schemas, counts, ids, images and captions.

    The exit status is 0 if the dataset is valid, 1 if there are errors, and 2 if it cannot be read.
    The exit status is 3 if no errors were found, but a check was skipped because a package is
    missing.
    """

    dataset: Annotated[str, tyro.conf.Positional]
    """Folder or URL of the dataset."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The result of a check.

    Attributes:
      state: result. `noted` marks defects that the dataset's mode allows.
      lines: findings, skipped checks, and packages to install.
    """

    state: Literal["ok", "FAILED", "noted", "not checked", "not linted", "unmeasured"]
    lines: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """The results of all checks.

    Attributes:
      checks: result of each check, by name.
      verdict: overall result in words.
    """

    checks: dict[str, Outcome]
    verdict: str

    @property
    def states(self) -> set[str]:
        return {outcome.state for outcome in self.checks.values()}

    @property
    def is_sound(self) -> bool:
        return not self.states & {"FAILED", "not checked"}


def verify_command(arguments: Arguments) -> int:
    found = verify_dataset(arguments.dataset, _print)
    print(visible(f"{arguments.dataset.rstrip('/') or '/'}: {found.verdict}"))
    print_document(found)
    return 1 if "FAILED" in found.states else 0 if found.is_sound else NOT_CHECKED


def verify_dataset(
    folder: str, show: Callable[[str, Outcome], None] = lambda name, outcome: None
) -> Verification:
    """Run all checks of a dataset; `show` is called with the name and result of each."""
    from eqforge.commands.checks import CHECKS, changed_files
    from eqforge.schemas.dataset.reader import open_dataset

    opened = open_dataset(folder)
    dataset = replace(opened, changed=changed_files(opened))
    checks: dict[str, Outcome] = {}
    for name in CHECKS:
        checks[name] = _outcome(name, dataset)
        show(name, checks[name])
    dataset.check_unreplaced()
    return Verification(checks=checks, verdict=_verdict(checks.values()))


def _outcome(name: str, dataset: "Dataset") -> Outcome:
    """Run a check; damage that stops it is a finding, a missing package is not."""
    from eqforge.commands.checks import CHECKS, LINTS, SCORES, notes
    from eqforge.commands.row_checks import why_not_measured
    from eqforge.sources.labelled_captions import why_not_linted

    is_noted = name == LINTS and dataset.manifest.mode == "paper"
    found: list[str] = []
    stopped: list[str] = []
    try:
        if name == LINTS and (reason := why_not_linted(dataset)):
            return Outcome(state="not linted", lines=[reason])
        found.extend(CHECKS[name](dataset))
        if name == SCORES and not found and (reason := why_not_measured(dataset)):
            return Outcome(state="unmeasured", lines=[reason])
    except MissingExtra as error:
        if is_noted or not found:
            return Outcome(state="not checked", lines=[str(error)])
        stopped.append(f"the remaining checks were not run: {error}")
    except EqforgeError as error:
        stopped.append(str(error))
    except Exception as error:
        # Rows of a file that was tampered with may break any expectation of a check.
        stopped.append(f"the rows cannot be checked: {type(error).__name__}: {error}")
    if not found and not stopped:
        return Outcome(state="ok", lines=[*notes(name, dataset)])
    if stopped or not is_noted:  # what stops a check is damage in any mode
        return Outcome(state="FAILED", lines=found + stopped)
    return Outcome(state="noted", lines=found)


def _print(name: str, outcome: Outcome) -> None:
    print(f"{outcome.state:<11} {name}")
    for line in outcome.lines[:SHOWN]:
        print(f"        {shortened(line, MAX_MESSAGE_CHARS)}")
    if len(outcome.lines) > SHOWN:
        print(f"        and {len(outcome.lines) - SHOWN} more")


def _verdict(outcomes: Collection[Outcome]) -> str:
    """Word the verdict; it is never just `sound` if something was noted or not checked."""
    found = Counter({"FAILED": 0, "noted": 0})
    for outcome in outcomes:
        found[outcome.state] += len(outcome.lines)
    missing = sum(outcome.state == "not checked" for outcome in outcomes)
    verdict = counted(found["FAILED"], "problems") if found["FAILED"] else "sound"
    if missing:
        verdict = verdict if found["FAILED"] else "no problem found"
        verdict += f", but {missing} of {len(outcomes)} checks were not run"
    return verdict + (f"; {found['noted']} published defects were noted" if found["noted"] else "")


main = Command(
    "eqforge verify",
    Arguments,
    verify_command,
    example="eqforge verify out/eq-video",
    console=DocumentOptions,
)
