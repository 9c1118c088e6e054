"""Rewrite captions with the authors' prompts: ask, check, and ask again with the next seed.

The prompts come from their code, except `replace_printed`, which the paper prints: it has no
"Input:" and "Output:", and says "this sentence". REPLACE_VERB and REPLACE_SPATIAL are only in the
code.

Source: Kamath et al. 2024, appendix C.1; github.com/amitakamath/hard_positives,
generate_hard_positives.py.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from eqforge.core.identity import derive_seed
from eqforge.core.ledger import Ledger
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.edits import EditedText
from eqforge.generators.text.llm.model import Answer, LanguageModel, Question, ask
from eqforge.generators.text.llm.validate import (
    InvalidRewrite,
    PromptName,
    check_rewrite,
    first_valid,
    parse_published_rewrite,
)
from eqforge.generators.text.words import DATA

OF_THE_CODE: Final[tuple[PromptName, ...]] = ("swap", "replace", "replace_verb", "replace_spatial")
OF_THE_PAPER: Final[tuple[PromptName, ...]] = ("swap", "replace_printed")
"""Prompts of the paper's main training set (section 5.1, appendix C.1): SWAP, and one REPLACE."""

Taken = Literal["checked", "raw"]
"""Accept only answers with one edit of the prompt's kind; or, as the authors did, any text like the
caption."""

_STEP_VERSION: Final = 2
_DRAW_VERSION: Final = 3
_MAX_SWAP_WORDS: Final = 15


@dataclass(frozen=True, kw_only=True, slots=True)
class Prompt:
    """A prompt with `{example}` in place of the caption, and the paper's limit of tokens."""

    name: PromptName
    template: str
    max_new_tokens: int

    def render(self, caption: str) -> str:
        """Return the prompt for a caption, stripped of white space, as the authors sent it."""
        return self.template.replace("{example}", caption).strip()

    def applies_to(self, caption: str) -> bool:
        """Follow the authors: SWAP needs the word "and" and fewer than 15 words."""
        words = caption.lower().split()
        return self.name != "swap" or ("and" in words and len(words) < _MAX_SWAP_WORDS)


PROMPTS: Final = msgspec.toml.decode(
    (DATA / "prompts.toml").read_bytes(), type=dict[PromptName, Prompt]
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Asking:
    """How to ask a model, and which answers to accept.

    Attributes:
      sample: whether the first answer is sampled too.
      retries: how many more answers to ask for if one is rejected.
    """

    run_seed: int
    prompts: tuple[PromptName, ...] = OF_THE_CODE
    sample: bool = False
    retries: int = 3
    taken: Taken = "checked"

    def prompt_of(self, caption_id: str, caption: str) -> Prompt:
        others = sorted(name for name in self.prompts if name != "swap")
        if not others or ("swap" in self.prompts and PROMPTS["swap"].applies_to(caption)):
            return PROMPTS["swap"]
        seed = derive_seed(self.run_seed, caption_id, "prompt", _DRAW_VERSION)
        return PROMPTS[random.Random(seed).choice(others)]

    def question(self, caption_id: str, caption: str, attempt: int = 0) -> Question | None:
        """Return the question of an attempt, from 0; None if no prompt applies.

        The first answer takes the likeliest tokens, unless sampled; others have seeds of their own.
        """
        prompt = self.prompt_of(caption_id, caption)
        if not prompt.applies_to(caption):
            return None
        step = f"rewrite/{prompt.name}/{attempt}"
        seed = derive_seed(self.run_seed, caption_id, step, _STEP_VERSION)
        return Question(
            prompt=prompt.render(caption),
            seed=seed if attempt or self.sample else None,
            max_new_tokens=prompt.max_new_tokens,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Rewrite:
    """A caption as a language model rewrote it.

    Attributes:
      seed: of this answer; None if the likeliest tokens were taken.
    """

    prompt: PromptName
    edited: EditedText
    seed: int | None
    model: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteRefusal:
    """Why a caption has no rewrite: a key of REWRITE_REFUSALS, for the last answer."""

    prompt: PromptName
    reason: str
    attempts: int
    answer: str


def rewrite_captions(
    captions: Iterable[tuple[str, Analysis]],
    model: LanguageModel,
    asking: Asking,
    memory: Ledger | None = None,
) -> list[Rewrite | RewriteRefusal]:
    """Return one result per caption, in order; none depends on the other captions."""
    items = list(captions)
    prompts = [asking.prompt_of(name, analysis.text).name for name, analysis in items]
    results: list[Rewrite | RewriteRefusal] = [
        RewriteRefusal(prompt=prompt, reason="not_applicable", attempts=0, answer="")
        for prompt in prompts
    ]
    pending = list(range(len(items)))
    for attempt in range(asking.retries + 1):
        questions = {
            index: question
            for index in pending
            if (question := asking.question(items[index][0], items[index][1].text, attempt))
        }
        answers = ask(model, list(questions.values()), memory)
        for (index, question), answer in zip(questions.items(), answers, strict=True):
            prompt = prompts[index]
            edited = _edited(items[index][1], prompt, answer, asking.taken)
            if isinstance(edited, EditedText):
                results[index] = Rewrite(
                    prompt=prompt,
                    edited=edited,
                    seed=question.seed,
                    model=answer.model,
                )
            else:
                text = answer.refusal or answer.text
                results[index] = RewriteRefusal(
                    prompt=prompt, reason=edited, attempts=attempt + 1, answer=text
                )
        pending = [index for index in questions if isinstance(results[index], RewriteRefusal)]
    return results


def _edited(
    analysis: Analysis, prompt: PromptName, answer: Answer, taken: Taken
) -> EditedText | str:

    def check(line: str) -> EditedText:
        if taken == "raw":
            return parse_published_rewrite(analysis.text, line)
        return check_rewrite(analysis, line, prompt)

    if answer.refusal:
        return "refused"
    try:
        return first_valid(answer.text, analysis.text, check, is_cut=answer.is_cut)
    except InvalidRewrite as error:
        return str(error)
