"""The pipeline of texts that rules or a language model write, and that models judge."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from eqforge.generators.text.lexicon import load_lexicon
from eqforge.pipelines.base.language_model import (
    ask_model,
    check_writer,
    confirm_server,
    cost_lines,
    language_and_model_of_mode,
    written,
)
from eqforge.pipelines.base.pipeline import Configured
from eqforge.pipelines.base.settings import Mode
from eqforge.pipelines.base.text import JudgedPipeline, check_language
from eqforge.sources.caption_sources import CaptionRecord
from eqforge.transforms.dataset.census import Medium, model_files
from eqforge.transforms.dataset.plan import PlanFiles, read_plan
from eqforge.transforms.text.caption_edits import EditRules
from eqforge.transforms.text.perturb import tagger_of


class WrittenPipeline(JudgedPipeline[Configured]):
    """A dataset of captions, each edited by rules or a language model.

    Attributes:
      judged: the count of a plan that says how many rows judges are asked about.
      captions_of: returns the captions that are edited, by the rules and a record of the plan.
    """

    judged: str
    captions_of: Callable[[Any, Any], Sequence[CaptionRecord]]

    @classmethod
    def defaults(cls, mode: Mode) -> dict[str, Any]:
        return language_and_model_of_mode(mode)

    def _asked(self, records: Iterable[Any]) -> Iterator[Sequence[CaptionRecord]]:
        return map(partial(self.captions_of, self.rules()), records)

    def rules(self) -> Any:
        """Return how texts are made, with the rules of edits as `edits`."""
        raise NotImplementedError

    def edit_rules(self, **others: Any) -> EditRules:
        """Return how captions are edited, by the options that all such datasets have."""
        config = self.config
        return EditRules(
            seed=config.run.seed,
            lexicon=None if config.lexicon is None else load_lexicon(config.lexicon),
            spacy_model=config.spacy_model,
            written=written(config, config.run),
            **others,
        )

    def check_edits(self) -> None:
        """Check and load what edits and judges captions, before any work."""
        config = self.config
        self.check_images()
        check_language(config.language)
        load_lexicon(config.lexicon)
        tagger_of(config.spacy_model)
        check_writer(config, config.mode)
        self.judges()

    def report(self, records: Iterable[Any]) -> Iterator[str]:
        yield from super().report(records)
        edits = self.rules().edits
        yield from cost_lines(self.config, edits, lambda: self._asked(self.plan()))

    def confirm(self, plan: PlanFiles) -> None:
        """Check that images and server can be found, and what judges may be asked."""
        super().confirm(plan)
        self.confirm_judges(plan.counts.get(self.judged, 0))
        confirm_server(self.config, self.run)

    def media(self, plan: PlanFiles) -> Iterator[Medium]:
        yield from super().media(plan)
        yield from model_files(self.config.model)

    def prepare(self, plan: PlanFiles) -> None:
        """Say what a language model will be asked, and ask a server; see `ask_model`."""
        records = partial(read_plan, self.record, plan.files)
        ask_model(self.config, self.rules().edits, lambda: self._asked(records()))
