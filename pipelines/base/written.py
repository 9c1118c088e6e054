"""Base of datasets of captions edited by rules or a language model: settings, cost, pipeline."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated, Any, Literal

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.identity import Trace
from eqforge.core.ledger import Ledger
from eqforge.core.ranges import expect
from eqforge.core.visible import counted
from eqforge.generators.text.lexicon import load_lexicon
from eqforge.generators.text.llm.endpoint import Endpoint
from eqforge.generators.text.llm.rewrite import OF_THE_CODE, OF_THE_PAPER, Asking, Taken
from eqforge.generators.text.llm.validate import PromptName
from eqforge.generators.text.llm.writer import WriterSettings, open_model
from eqforge.pipelines.base.pipeline import Configured, Mode, Record, RunPlan
from eqforge.pipelines.base.text import TextPipeline, check_language, language_of_mode
from eqforge.schemas.tables.texts import JUDGEMENTS_TABLE
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.dataset.census import Medium, model_files
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.dataset.tables import Table, table_of
from eqforge.transforms.judges.settings import Judging, prepare_judges
from eqforge.transforms.text.asking import Estimate, ask_ahead, estimate
from eqforge.transforms.text.caption_edits import EditRules, Written
from eqforge.transforms.text.perturb import tagger_of


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """Language model that writes hard positives, and its prompts."""

    model: Annotated[str | None, Trace.NAME] = None
    """Language model that writes the hard positives (default: rules generate them). Pass the folder
    of a saved Transformers model, or an id on the Hugging Face Hub. For an OpenAI-compatible
    server, pass NAME@URL, such as llama-2-70b-chat@http://localhost:8000/v1. Set the environment
    variable EQFORGE_MODEL_KEY to the server's API key."""

    model_for: Literal["all", "rest"] = "all"
    """Use the model for every hard positive (`all`), or only where no rule applies (`rest`)."""

    model_prompts: tuple[PromptName, ...] = OF_THE_CODE
    """Prompts for the model. eqforge uses `swap` for captions of up to 14 words that contain "and".
    Otherwise, it chooses one of the other prompts at random. `replace_printed` is the prompt
    printed in the paper. The other prompts come from the authors' code."""

    model_answers: Taken = "checked"
    """Check the model's answers (`checked`), or accept them unchecked, as the authors did (`raw`).
    A checked answer must contain exactly one edit of the requested kind, and only dictionary
    words."""

    model_revision: str | None = None
    """Branch, tag or commit of the model on the Hub. Only a commit makes runs reproducible."""

    model_device: str = "cpu"
    """PyTorch device for the model, such as cuda:0."""

    model_dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Data type of the model weights."""

    model_batch: int = 32
    """Number of prompts per batch, or number of parallel requests to a server."""

    model_sample: bool = False
    """Sample the model's answers with one seed per caption, instead of decoding greedily."""

    model_temperature: float = 0.7
    """Sampling temperature for --model-sample."""

    model_top_p: float = 0.95
    """Nucleus sampling (top-p): total probability of the tokens that --model-sample draws from."""

    model_chat: bool = False
    """Apply the model's chat template. Only for Transformers models; servers do it themselves."""

    model_retries: int = 3
    """Number of retries after an invalid answer. Each retry uses the next seed."""

    model_timeout_s: Annotated[float, Trace.NONE] = 120.0
    """Number of seconds to wait for a server's answer before retrying."""

    model_prices: Annotated[tuple[float, float] | None, Trace.NONE] = None
    """Price per million input tokens, followed by the price per million output tokens."""

    model_budget: Annotated[float | None, Trace.NONE] = None
    """Maximum cost of the requests, at the prices in --model-prices. The build stops before it
    exceeds this limit."""

    model_requests: Annotated[int | None, Trace.NONE] = None
    """Maximum number of requests. The build stops before it exceeds this limit."""

    model_memory: Annotated[str | None, Trace.NONE] = None
    """Folder or URL of a cache that shares model answers between datasets (default: no sharing)."""


def defaults_of_model(mode: Mode) -> dict[str, Any]:
    """Return a mode's settings: paper mode uses two prompts and unchecked answers, drawn once.

    The authors drew as Llama-2-70b-chat's generation_config.json says.
    """
    if mode != "paper":
        return language_of_mode(mode)
    return {
        **language_of_mode(mode),
        "model_prompts": OF_THE_PAPER,
        "model_answers": "raw",
        "model_sample": True,
        "model_temperature": 0.6,
        "model_top_p": 0.9,
        "model_retries": 0,
    }


class WrittenPipeline(TextPipeline[Configured, Record]):
    """A dataset of captions that rules or a language model edit, and that models judge.

    Attributes:
      judged: the count of a plan with the number of rows that judges see.
      captions_of: returns the captions to edit, given the rules and a record of the plan.
    """

    config: Any
    judged: str
    captions_of: Callable[[Any, Any], Sequence[CaptionRecord]]

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        return defaults_of_model(mode)

    @property
    def is_by_rules(self) -> bool:
        return self.config.mode != "paper" and self.config.language == "en"

    def judges(self) -> Judging | None:
        media = None if self.config.images is None else self.media_root
        done = storage.join(self.work, "done")
        return prepare_judges(self.config.judging, done, media, by_rules=self.is_by_rules)

    def judgements_table(self, shards: int) -> tuple[Table, ...]:
        """Return the table of judgements, if samples are judged or made by rules."""
        is_judged = self.config.judging.verify or self.is_by_rules
        return (table_of(JUDGEMENTS_TABLE, shards),) if is_judged else ()

    def edit_rules(self, **others: Any) -> EditRules:
        config = self.config
        return EditRules(
            seed=config.run.seed,
            lexicon=None if config.lexicon is None else load_lexicon(config.lexicon),
            spacy_model=config.spacy_model,
            written=self._written(),
            **others,
        )

    def _written(self) -> Written | None:
        config = self.config
        if config.model is None:
            return None
        return Written(
            model=writer_of(config),
            asking=Asking(
                run_seed=self.run.seed,
                prompts=config.model_prompts,
                sample=config.model_sample,
                retries=config.model_retries,
                taken=config.model_answers,
            ),
            rest=config.model_for == "rest",
            ledger=Ledger(
                root=config.model_memory or storage.join(self.work, "done"),
                step="answers",
                basis=None,
            ),
        )

    def check_edits(self) -> None:
        config = self.config
        self.check_format()
        self.check_images()
        check_language(config.language)
        load_lexicon(config.lexicon)
        tagger_of(config.spacy_model)
        check_writer(config, config.mode)
        self.judges()

    def report(self, records: Iterable[Record]) -> Iterator[str]:
        yield from super().report(records)
        edits = self.rules().edits
        if edits.written is not None:
            found = estimate(self._asked(self.plan()), edits)
            yield from _cost_lines(found, self.config.model_prices)

    def _asked(self, records: Iterable[Record]) -> Iterator[Sequence[CaptionRecord]]:
        return map(partial(self.captions_of, self.rules()), records)

    def confirm(self, plan: PlanFiles) -> None:
        """Check that images exist, that judges accept the rows, and that the server answers.

        A build whose answers may all be cached needs no server yet.
        """
        super().confirm(plan)
        if most := self.config.judging.check_requests(plan.counts.get(self.judged, 0)):
            print(f"judges will send up to {most:,} questions to servers", file=sys.stderr)
        written = self._written()
        model = None if written is None else open_model(written.model)
        is_asked = written and not (written.ledger and written.ledger.exists())
        if is_asked and isinstance(model, Endpoint):
            model.check()

    def media(self, plan: PlanFiles) -> Iterator[Medium]:
        yield from super().media(plan)
        yield from model_files(self.config.model)

    def final_plan(self, plan: PlanFiles, run: "RunPlan | None", scratch: str) -> PlanFiles:
        """Print the expected cost, check the budget, and ask a server all questions.

        If the server stops answering, the answers so far are kept.
        """
        rules = self.rules().edits
        if rules.written is None:
            return plan

        def batches() -> Iterator[Sequence[CaptionRecord]]:
            return self._asked(read_plan(self.record, plan.files))

        found = estimate(batches(), rules)
        print("\n".join(_cost_lines(found, self.config.model_prices)), file=sys.stderr)
        self._check_budget(found)
        model = open_model(rules.written.model)
        if not isinstance(model, Endpoint):
            return plan
        if found.questions:
            model.check()
        usage = ask_ahead(model, batches(), rules, found, self._check_budget)
        print(
            f"language model: {counted(usage.answered, 'answers')}; the server counted "
            f"{usage.tokens_in:,} input tokens and {usage.tokens_out:,} output tokens",
            file=sys.stderr,
        )
        return plan

    def _check_budget(self, found: Estimate) -> None:
        config, most = self.config, found.tries * found.questions
        less = "or lower --model-retries, --limit or --sample"
        if config.model_requests is not None and most > config.model_requests:
            raise InputError(
                f"the build may need {most:,} requests, but --model-requests allows only "
                f"{config.model_requests:,}; raise --model-requests, {less}"
            )
        if config.model_budget is not None and config.model_prices is not None:
            price = found.tries * found.price(config.model_prices)
            if price > config.model_budget:
                raise InputError(
                    f"--model-budget {config.model_budget:,.2f}: the answers may cost "
                    f"{price:,.2f}; raise --model-budget, {less}"
                )


def writer_of(config: ModelSettings) -> WriterSettings:
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
    """Check the options, and that the model of a folder or of the hub exists, before any work."""
    expect(config, "model_batch", config.model_batch >= 1, "1 or more")
    expect(config, "model_retries", config.model_retries >= 0, "0 or more")
    expect(config, "model_prompts", bool(config.model_prompts), "at least one")
    expect(config, "model_temperature", config.model_temperature > 0, "more than 0")
    expect(config, "model_top_p", 0 < config.model_top_p <= 1, "more than 0 and at most 1")
    expect(config, "model_timeout_s", config.model_timeout_s > 0, "more than 0 seconds")
    expect(config, "model_prices", min(config.model_prices or (0.0,)) >= 0, "0 or more")
    if config.model_budget is not None and config.model_prices is None:
        raise InputError(
            "--model-budget: also pass the price per million tokens with --model-prices"
        )
    if config.model is not None:
        open_model(writer_of(config))
        return
    usual = defaults_of_model(mode)
    for each in fields(ModelSettings):
        if getattr(config, each.name) != usual.get(each.name, each.default):
            flag = each.name.replace("_", "-")
            raise InputError(f"--{flag} needs a language model; pass one with --model")


def _cost_lines(found: Estimate, prices: tuple[float, float] | None) -> Iterator[str]:
    def price(times: int) -> str:
        return "" if prices is None else f"; {times * found.price(prices):,.2f} at your prices"

    known = f", and {found.known:,} more that are already answered" if found.known else ""
    yield (
        f"language model: {counted(found.questions, 'questions')}{known}; about "
        f"{found.tokens_in:,} input tokens, at most {found.tokens_out:,} output tokens{price(1)}"
    )
    if found.questions and found.tries > 1:
        yield (
            f"  if every answer is invalid: {found.tries * found.questions:,} "
            f"questions{price(found.tries)}"
        )
