"""The language model that writes hard negatives: its options, and their check."""

from dataclasses import dataclass
from typing import Literal

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.generators.text.llm.endpoint import Endpoint
from eqforge.generators.text.llm.writer import WriterSettings, open_model
from eqforge.pipelines.base.settings import RunSettings
from eqforge.pipelines.base.text import check_at_least
from eqforge.schemas.dataset.manifest import WORK
from eqforge.transforms.dataset.ledger import Ledger
from eqforge.transforms.text.negatives import NegativeWriting


@dataclass(frozen=True, kw_only=True, slots=True)
class NegativeWriterSettings:
    """The language model that writes hard negatives, and how it is asked."""

    writer: str | None = None
    """A language model that writes the negatives of captions that bring none: a folder saved by
    transformers, an id on the Hugging Face hub, or NAME@URL for a model of an OpenAI-compatible
    server, whose key is in the environment variable EQFORGE_MODEL_KEY. Without it rules make
    them."""

    writer_for: Literal["all", "rest"] = "all"
    """all: it writes every negative that is not given. rest: those for which no rule is found."""

    writer_revision: str | None = None
    """Its branch, tag or commit on the hub; a commit makes runs repeatable."""

    writer_device: str = "cpu"
    """Its device as torch names it, such as cuda:0."""

    writer_dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Type of its weights."""

    writer_chat: bool = False
    """Put the prompts into its chat template; a server does, unless its address ends in
    /completions."""

    writer_retries: int = 3
    """How often an answer that is no negative is asked for again, with the next seed."""

    @property
    def model(self) -> WriterSettings:
        """The model, as it is opened."""
        return WriterSettings(
            model=str(self.writer),
            revision=self.writer_revision,
            device=self.writer_device,
            dtype=self.writer_dtype,
            chat=self.writer_chat,
        )


def writing_of(settings: NegativeWriterSettings, run: RunSettings) -> NegativeWriting | None:
    """Returns how a language model writes hard negatives; None where rules make them."""
    if settings.writer is None:
        return None
    return NegativeWriting(
        model=settings.model,
        rest=settings.writer_for == "rest",
        retries=settings.writer_retries,
        seed=run.seed,
        ledger=Ledger(root=storage.join(run.output, WORK, "done"), step="answers", basis=None),
    )


def check_writer(settings: NegativeWriterSettings) -> None:
    """Checks the options, and that a model of a folder or of the hub is there, before any work.

    Raises:
      InputError: an option is wrong or has no model to ask, or the model cannot be loaded.
      MissingExtra: a required package is not installed.
    """
    check_at_least("--writer-retries", settings.writer_retries, 0)
    if settings.writer is not None:
        open_model(settings.model)
    elif settings != NegativeWriterSettings():
        raise InputError("--writer-...: needs a language model; name it with --writer")


def confirm_writer(settings: NegativeWriterSettings) -> None:
    """Checks that a server answers, before the output is begun.

    Raises:
      InputError: it cannot be reached, refuses the key, or does not know the model.
    """
    model = None if settings.writer is None else open_model(settings.model)
    if isinstance(model, Endpoint):
        model.check()
