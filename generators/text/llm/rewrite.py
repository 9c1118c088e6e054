"""Rewrites captions: asks, checks, and asks again with the next seed, a limited number of times."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Literal

from eqforge.core.identity import derive_seed
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import EditedText
from eqforge.generators.text.llm.model import Answer, LanguageModel, Memory, Question, ask
from eqforge.generators.text.llm.prompts import PROMPTS, PromptName
from eqforge.generators.text.llm.validate import (
    InvalidRewrite,
    check_rewrite,
    first_valid,
    take_rewrite,
)

STEP_VERSION = 2

Taken = Literal["checked", "raw"]
"""Which answers are taken: those with one edit of the prompt's kind, or as the authors did, all
that are a text like the caption."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """How a model is asked, and which answers are taken.

    Attributes:
      run_seed: the seed of the run.
      sample: whether the first answer is sampled too.
      retries: how many more answers to ask for if one is rejected.
      taken: which answers are taken.
    """

    run_seed: int
    sample: bool = False
    retries: int = 3
    taken: Taken = "checked"


@dataclass(frozen=True, kw_only=True, slots=True)
class Task:
    """A caption to rewrite.

    Attributes:
      record_id: the caption's id.
      analysis: of the caption.
      prompt: what to ask for.
    """

    record_id: str
    analysis: Analysis
    prompt: PromptName


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewrite:
    """A caption as a language model rewrote it.

    Attributes:
      record_id: the caption's id.
      prompt: the prompt used.
      edited: the caption with the model's one edit, and the spans of the edit before and after.
      attempt: number of answers rejected before this one.
      seed: of this answer; None if the likeliest tokens were taken.
      model: the model and its version.
    """

    record_id: str
    prompt: PromptName
    edited: EditedText
    attempt: int
    seed: int | None
    model: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteRefusal:
    """Why a caption has no rewrite.

    Attributes:
      record_id: the caption's id.
      prompt: the prompt used.
      reason: a key of REWRITE_REFUSALS, for the last answer.
      attempts: number of answers rejected.
      answer: the last answer, or the server's words where it refused.
    """

    record_id: str
    prompt: PromptName
    reason: str
    attempts: int
    answer: str


def rewrite_captions(
    tasks: Iterable[Task], model: LanguageModel, asking: Asking, memory: Memory | None = None
) -> list[Rewrite | RewriteRefusal]:
    """Returns one result per caption, in order.

    The first answer takes the likeliest tokens, unless it is sampled; each further one is sampled
    with a seed derived from the run's seed, the caption's id, the prompt and the number of the
    attempt. A caption's result does not depend on the other captions.

    Args:
      tasks: the captions.
      model: the language model.
      asking: how it is asked.
      memory: where its answers are kept.
    """
    items = list(tasks)
    results: list[Rewrite | RewriteRefusal] = [
        _refusal(task, "not_applicable", 0, "") for task in items
    ]
    pending = [n for n, task in enumerate(items) if is_asked(task.analysis.text, task.prompt)]
    for attempt in range(asking.retries + 1):
        chosen = [items[index] for index in pending]
        questions = [
            question(task.record_id, task.analysis.text, task.prompt, asking, attempt)
            for task in chosen
        ]
        answers = ask(model, questions, memory)
        for index, asked, answer in zip(pending, questions, answers, strict=True):
            results[index] = _result(items[index], asked, answer, attempt, asking.taken)
        pending = [index for index in pending if isinstance(results[index], RewriteRefusal)]
    return results


def is_asked(caption: str, prompt: PromptName) -> bool:
    """Tells whether a prompt is for captions like this."""
    return PROMPTS[prompt].applies_to(caption)


def question(
    record_id: str, caption: str, prompt: PromptName, asking: Asking, attempt: int = 0
) -> Question:
    """Returns what is asked about a caption at an attempt, the first being 0."""
    form = PROMPTS[prompt]
    is_greedy = attempt == 0 and not asking.sample
    return Question(
        prompt=form.render(caption),
        seed=None if is_greedy else _seed(asking.run_seed, record_id, prompt, attempt),
        max_new_tokens=form.max_new_tokens,
    )


def _seed(run_seed: int, record_id: str, prompt: PromptName, attempt: int) -> int:
    return derive_seed(run_seed, record_id, f"rewrite/{prompt}/{attempt}", STEP_VERSION)


def _result(
    task: Task, asked: Question, answer: Answer, attempt: int, taken: Taken
) -> Rewrite | RewriteRefusal:
    """Returns a rewrite, or why an answer is none."""
    if answer.refusal:
        return _refusal(task, "refused", attempt + 1, answer.refusal)
    try:
        edited = first_valid(
            answer.text, task.analysis.text, partial(_edited, task, taken), is_cut=answer.is_cut
        )
    except InvalidRewrite as error:
        return _refusal(task, error.reason, attempt + 1, answer.text)
    return Rewrite(
        record_id=task.record_id,
        prompt=task.prompt,
        edited=edited,
        attempt=attempt,
        seed=asked.seed,
        model=answer.model,
    )


def _edited(task: Task, taken: Taken, line: str) -> EditedText:
    if taken == "raw":
        return take_rewrite(task.analysis.text, line)
    return check_rewrite(task.analysis, line, task.prompt)


def _refusal(task: Task, reason: str, attempts: int, answer: str) -> RewriteRefusal:
    return RewriteRefusal(
        record_id=task.record_id,
        prompt=task.prompt,
        reason=reason,
        attempts=attempts,
        answer=answer,
    )
