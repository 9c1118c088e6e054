"""The language model that writes hard positives: its options, what it would cost, and asking it."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, Literal

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.visible import counted
from eqforge.generators.text.llm.endpoint import Endpoint
from eqforge.generators.text.llm.rewrite import OF_THE_CODE, OF_THE_PAPER, Asking, Taken
from eqforge.generators.text.llm.validate import PromptName
from eqforge.generators.text.llm.writer import WriterSettings, open_model
from eqforge.pipelines.base.settings import Mode, RunSettings
from eqforge.pipelines.base.text import check_at_least, language_of_mode
from eqforge.schemas.dataset.manifest import WORK
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.dataset.ledger import Ledger
from eqforge.transforms.text.asking import Estimate, ask_ahead, estimate
from eqforge.transforms.text.caption_edits import EditRules, Written

Batches = Callable[[], Iterable[Sequence[CaptionRecord]]]


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The language model that writes hard positives, and how it is asked."""

    model: str | None = None
    """A language model that writes the hard positives by the paper's prompts: a folder saved by
    transformers, an id on the Hugging Face hub, or NAME@URL for a model of an OpenAI-compatible
    server, such as llama-2-70b-chat@http://localhost:8000/v1, whose key is in the environment
    variable EQFORGE_MODEL_KEY. Without it they are made by rules."""

    model_for: Literal["all", "rest"] = "all"
    """all: the model writes every hard positive. rest: those for which no rule is found."""

    model_prompts: tuple[PromptName, ...] = OF_THE_CODE
    """What the model is asked for: swap where the caption has "and", else one of the others, drawn
    by the caption's seed. replace_printed is the paper's REPLACE, the others are the code's."""

    model_answers: Taken = "checked"
    """checked: answers that differ from the caption in one edit of the prompt's kind, and by words
    of a dictionary. raw: as the authors took them, several edits in one answer included."""

    model_revision: str | None = None
    """Branch, tag or commit of the model on the hub; a commit makes runs repeatable."""

    model_device: str = "cpu"
    """Device of the model as torch names it, such as cuda:0."""

    model_dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Type of the model's weights."""

    model_batch: int = 32
    """Prompts completed at a time; of a server, requests under way at a time."""

    model_sample: bool = False
    """Draw the model's answers, each from its caption's seed, instead of the likeliest tokens."""

    model_temperature: float = 0.7
    """How freely answers are drawn."""

    model_top_p: float = 0.95
    """Answers are drawn from the likeliest tokens that have this probability together."""

    model_chat: bool = False
    """Put the prompts into the chat template of a model of transformers. A server does, unless its
    address ends in /completions."""

    model_retries: int = 3
    """How often an answer that is not valid is asked for again, with the next seed."""

    model_timeout_s: float = 120.0
    """How long a server may take for an answer until it is asked again."""

    model_prices: tuple[float, float] | None = None
    """What a million tokens cost, those of the questions and those of the answers."""

    model_budget: float | None = None
    """Stop before anything is asked if it may cost more, at the prices given."""

    model_requests: int | None = None
    """Stop before anything is asked if more may be asked than so many questions."""

    model_memory: str | None = None
    """Folder or URL in which answers are kept for other datasets too; without it they are kept with
    the dataset. No question is asked twice."""


def language_and_model_of_mode(mode: Mode) -> dict[str, Any]:
    """Returns a mode's settings: in the paper, two prompts and answers as they came, drawn once.

    The authors drew as Llama-2-70b-chat's generation_config.json says.
    """
    if mode != "paper":
        return {**language_of_mode(mode)}
    return {
        **language_of_mode(mode),
        "model_prompts": OF_THE_PAPER,
        "model_answers": "raw",
        "model_sample": True,
        "model_temperature": 0.6,
        "model_top_p": 0.9,
        "model_retries": 0,
    }


def written(config: ModelSettings, run: RunSettings) -> Written | None:
    """Returns how a language model writes hard positives; None where rules make them."""
    if config.model is None:
        return None
    kept = config.model_memory or storage.join(run.output, WORK, "done")
    return Written(
        model=_writer(config),
        asking=Asking(
            run_seed=run.seed,
            prompts=config.model_prompts,
            sample=config.model_sample,
            retries=config.model_retries,
            taken=config.model_answers,
        ),
        rest=config.model_for == "rest",
        ledger=Ledger(root=kept, step="answers", basis=None),
    )


def _writer(config: ModelSettings) -> WriterSettings:
    return WriterSettings(
        model=str(config.model),
        revision=config.model_revision,
        device=config.model_device,
        dtype=config.model_dtype,
        batch_size=config.model_batch,
        sample=config.model_sample,
        temperature=config.model_temperature,
        top_p=config.model_top_p,
        chat=config.model_chat,
        timeout_s=config.model_timeout_s,
    )


def check_writer(config: ModelSettings, mode: Mode) -> None:
    """Checks the options, and that the model of a folder or of the hub is there, before any work.

    Raises:
      InputError: one is out of its range or has no model to ask, or the model cannot be loaded.
      MissingExtra: a required package is not installed.
    """
    check_at_least("--model-batch", config.model_batch, 1)
    check_at_least("--model-retries", config.model_retries, 0)
    for name, is_right, rule in (
        ("prompts", bool(config.model_prompts), "at least one"),
        ("temperature", config.model_temperature > 0, "more than 0"),
        ("top_p", 0 < config.model_top_p <= 1, "more than 0 and at most 1"),
        ("timeout_s", config.model_timeout_s > 0, "more than 0 seconds"),
        ("prices", min(config.model_prices or (0.0,)) >= 0, "0 or more"),
    ):
        if not is_right:
            value = getattr(config, f"model_{name}")
            raise InputError(f"--model-{name.replace('_', '-')} {value}: expected {rule}")
    if config.model_budget is not None and config.model_prices is None:
        raise InputError("--model-budget: name what a million tokens cost with --model-prices")
    if config.model is None:
        _check_unused(config, mode)
    else:
        open_model(_writer(config))


def _check_unused(config: ModelSettings, mode: Mode) -> None:
    """Checks that nothing is said of a model where there is none.

    Raises:
      InputError: something is.
    """
    usual = {each.name: each.default for each in fields(ModelSettings)}
    usual |= language_and_model_of_mode(mode)
    for each in fields(ModelSettings):
        if getattr(config, each.name) != usual[each.name]:
            flag = each.name.replace("_", "-")
            raise InputError(f"--{flag}: needs a language model; name it with --model")


def confirm_server(config: ModelSettings, run: RunSettings) -> None:
    """Checks that the model's server is there, before the output is; a plan does not need it.

    Nor does a build whose answers are all known: where some are kept, it is asked for later.

    Raises:
      InputError: it cannot be reached, refuses the key, or does not know the model.
    """
    how = written(config, run)
    model = None if how is None else open_model(how.model)
    if how and isinstance(model, Endpoint) and not (how.ledger and how.ledger.exists()):
        model.check()


def ask_model(config: ModelSettings, rules: EditRules, batches: Batches) -> None:
    """Says what a model will be asked, checks the budget, and asks a server all of it.

    Args:
      config: the options.
      rules: how captions are edited.
      batches: yields the captions that are worked on, in batches of whole images.

    Raises:
      InputError: more may be asked than is allowed, or the server refuses everything.
      BuildError: the server does not answer any more; the answers so far are kept.
    """
    if rules.written is None:
        return
    found = estimate(batches(), rules)
    print("\n".join(_lines(found, config)), file=sys.stderr)
    check = partial(_check_budget, config)
    check(found)
    model = open_model(rules.written.model)
    if not isinstance(model, Endpoint):
        return
    if found.questions:
        model.check()
    asked = ask_ahead(model, batches(), rules, found, check)
    print(
        f"language model: {counted(asked.answered, 'answers')}, by its server's count "
        f"{asked.tokens_in:,} tokens in and {asked.tokens_out:,} out",
        file=sys.stderr,
    )


def cost_lines(config: ModelSettings, rules: EditRules, batches: Batches) -> Iterator[str]:
    """Yields what a model would be asked, in words; nothing without a model."""
    if rules.written is not None:
        yield from _lines(estimate(batches(), rules), config)


def _lines(found: Estimate, config: ModelSettings) -> Iterator[str]:
    """Yields what a model would be asked, in words."""
    known = f", {found.known:,} more are answered already" if found.known else ""
    yield (
        f"language model: {counted(found.questions, 'questions')}{known}; about "
        f"{found.tokens_in:,} tokens in, at most {found.tokens_out:,} out"
        f"{_priced(found, config, 1)}"
    )
    if found.questions and found.tries > 1:
        yield (
            f"  if no answer were taken: {found.tries * found.questions:,} questions"
            f"{_priced(found, config, found.tries)}"
        )


def _priced(found: Estimate, config: ModelSettings, times: int) -> str:
    if config.model_prices is None:
        return ""
    return f"; at your prices {times * found.price(config.model_prices):,.2f}"


def _check_budget(config: ModelSettings, found: Estimate) -> None:
    """Checks that what may be asked is allowed.

    Raises:
      InputError: it is more.
    """
    less = "allow that, ask less often with --model-retries, or build less with --limit or --sample"
    most = found.tries * found.questions
    if config.model_requests is not None and most > config.model_requests:
        raise InputError(
            f"--model-requests {config.model_requests:,}: {most:,} questions may be asked; {less}"
        )
    if config.model_budget is not None and config.model_prices is not None:
        price = found.tries * found.price(config.model_prices)
        if price > config.model_budget:
            raise InputError(
                f"--model-budget {config.model_budget:,.2f}: the answers may cost {price:,.2f}; "
                f"{less}"
            )
