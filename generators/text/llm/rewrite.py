"""Rewrites captions: asks, checks, and asks again with the next seed, a limited number of times."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import EditedText
from eqforge.generators.text.llm.prompts import PROMPTS, PromptName
from eqforge.generators.text.llm.validate import InvalidRewrite, check_rewrite
from eqforge.schemas.identity import derive_seed

STEP_VERSION = 2


class Writer(Protocol):
    """Completes prompts, as `CaptionWriter` does with a transformers model."""

    def complete(
        self, prompts: Sequence[str], seeds: Sequence[int | None], max_new_tokens: int
    ) -> list[str]:
        """Returns each prompt's completion; for a seed of None, that of the likeliest tokens."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewrite:
    """A caption as a language model rewrote it.

    Attributes:
      record_id: the caption's id.
      prompt: the prompt used.
      edited: the caption with the model's one edit, and the spans of the edit before and after.
      attempt: number of answers rejected before this one.
      seed: of this answer; None if the likeliest tokens were taken.
      answer: what the model wrote.
    """

    record_id: str
    prompt: PromptName
    edited: EditedText
    attempt: int
    seed: int | None
    answer: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteRefusal:
    """Why a caption has no rewrite.

    Attributes:
      record_id: the caption's id.
      prompt: the prompt used.
      reason: a key of REWRITE_REFUSALS, for the last answer.
      attempts: number of answers rejected.
      answer: the last answer.
    """

    record_id: str
    prompt: PromptName
    reason: str
    attempts: int
    answer: str


def rewrite_captions(
    captions: Iterable[tuple[str, Analysis]],
    writer: Writer,
    prompt: PromptName,
    *,
    run_seed: int,
    sample: bool = False,
    retries: int = 3,
) -> list[Rewrite | RewriteRefusal]:
    """Returns one result per caption, in order.

    The first answer takes the likeliest tokens, unless `sample` is set; each further one is sampled
    with a seed derived from the run's seed, the caption's id, the prompt and the number of the
    attempt. A caption's result does not depend on the other captions.

    Args:
      captions: ids and analyses.
      writer: the language model.
      prompt: what to ask for.
      run_seed: the seed of the run.
      sample: whether the first answer is sampled too.
      retries: how many more answers to ask for if one is rejected.
    """
    items = list(captions)
    results: list[Rewrite | RewriteRefusal] = [
        _refusal(record_id, prompt, "not_applicable", 0, "") for record_id, _ in items
    ]
    pending = [i for i, (_, a) in enumerate(items) if PROMPTS[prompt].applies_to(a.text)]
    for attempt in range(retries + 1):
        chosen = [items[index] for index in pending]
        seeds = [
            None if attempt == 0 and not sample else _seed(run_seed, record_id, prompt, attempt)
            for record_id, _ in chosen
        ]
        answers = _ask(chosen, writer, prompt, seeds, attempt) if chosen else []
        for index, result in zip(pending, answers, strict=True):
            results[index] = result
        pending = [index for index in pending if isinstance(results[index], RewriteRefusal)]
    return results


def _seed(run_seed: int, record_id: str, prompt: PromptName, attempt: int) -> int:
    return derive_seed(run_seed, record_id, f"rewrite/{prompt}/{attempt}", STEP_VERSION)


def _ask(
    items: Sequence[tuple[str, Analysis]],
    writer: Writer,
    prompt: PromptName,
    seeds: Sequence[int | None],
    attempt: int,
) -> Iterator[Rewrite | RewriteRefusal]:
    """Yields the checked answer to each caption."""
    form = PROMPTS[prompt]
    prompts = [form.render(analysis.text) for _, analysis in items]
    answers = writer.complete(prompts, seeds, form.max_new_tokens)
    for (record_id, analysis), seed, answer in zip(items, seeds, answers, strict=True):
        try:
            edited = check_rewrite(analysis, answer, prompt)
        except InvalidRewrite as error:
            yield _refusal(record_id, prompt, error.reason, attempt + 1, answer)
            continue
        yield Rewrite(
            record_id=record_id,
            prompt=prompt,
            edited=edited,
            attempt=attempt,
            seed=seed,
            answer=answer,
        )


def _refusal(
    record_id: str, prompt: PromptName, reason: str, attempts: int, answer: str
) -> RewriteRefusal:
    return RewriteRefusal(
        record_id=record_id, prompt=prompt, reason=reason, attempts=attempts, answer=answer
    )
