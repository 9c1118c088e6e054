"""Captions that a language model rewrites: what it is asked about each, and which answer counts."""

import random
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from eqforge.core.identity import derive_seed
from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.llm.model import LanguageModel, Question
from eqforge.generators.text.llm.prompts import OF_THE_CODE, PromptName
from eqforge.generators.text.llm.rewrite import (
    Asking,
    Rewrite,
    RewriteRefusal,
    Taken,
    Task,
    is_asked,
    question,
    rewrite_captions,
)
from eqforge.generators.text.llm.writer import WriterSettings, open_model
from eqforge.transforms.dataset.ledger import Ledger

_DRAW_VERSION: Final = 3
_LOCK = threading.Lock()


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """How a language model writes hard positives.

    Attributes:
      model: the language model.
      rest: whether it writes only those for which no rule is found, else all.
      prompts: what it may be asked for; SWAP is for captions with "and".
      taken: which answers are taken.
      retries: how often an answer that is not taken is asked for again.
      ledger: where the model's answers are kept, so that no run asks twice.
    """

    model: WriterSettings
    rest: bool = False
    prompts: tuple[PromptName, ...] = OF_THE_CODE
    taken: Taken = "checked"
    retries: int = 3
    ledger: Ledger | None = None

    def asking(self, seed: int) -> Asking:
        """Returns how the model is asked in a run with a seed."""
        return Asking(
            run_seed=seed, sample=self.model.sample, retries=self.retries, taken=self.taken
        )


def write_captions(
    captions: Sequence[tuple[str, Analysis]],
    written: Written,
    seed: int,
    model: LanguageModel | None = None,
) -> list[Rewrite | RewriteRefusal]:
    """Returns what a language model makes of captions, in order.

    Args:
      captions: their ids and analyses.
      written: how it writes.
      seed: of the run.
      model: the model; None opens that of the settings.
    """
    if not captions:
        return []
    tasks = [
        Task(
            record_id=caption_id,
            analysis=analysis,
            prompt=_prompt_of(caption_id, analysis.text, written.prompts, seed),
        )
        for caption_id, analysis in captions
    ]
    with _LOCK:
        found = model or open_model(written.model)
        return rewrite_captions(tasks, found, written.asking(seed), written.ledger)


def first_question(caption_id: str, caption: str, written: Written, seed: int) -> Question | None:
    """Returns what is asked first about a caption; None where no prompt is for it."""
    prompt = _prompt_of(caption_id, caption, written.prompts, seed)
    if not is_asked(caption, prompt):
        return None
    return question(caption_id, caption, prompt, written.asking(seed))


def _prompt_of(
    caption_id: str, caption: str, prompts: tuple[PromptName, ...], seed: int
) -> PromptName:
    """SWAP where it applies, as in the paper; else one of the REPLACE prompts."""
    others = sorted(name for name in prompts if name != "swap")
    if not others or ("swap" in prompts and is_asked(caption, "swap")):
        return "swap"
    return random.Random(derive_seed(seed, caption_id, "prompt", _DRAW_VERSION)).choice(others)
