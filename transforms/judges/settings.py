"""Chooses the models that judge generated texts, and the limits on their answers."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Annotated, Final, Literal

import tyro

from eqforge.core.errors import InputError
from eqforge.core.identity import Trace, TraceOf, versions_of
from eqforge.core.ranges import check_range
from eqforge.schemas.records.scores import Identity

if TYPE_CHECKING:
    from eqforge.models.spec import ScorerSpec

VERSION: Final = 1
"""Version of the questions and of how answers become probabilities."""

_HELD: Final = frozenset({"device", "precision"})
KINDS: Final = {"nli": _HELD, "llm": _HELD | {"parallel"}, "vqa": _HELD}

QUESTIONS_A_ROW: Final = 4
READS_PICTURES: Final = "vqa"
PICTURES_A_BATCH: Final = 16
"""Number of images per progress update; answers do not depend on it."""

_LIMITS: Final = ("entailed_min", "contradicted_min", "shown_min", "probability_min")


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class JudgeSettings:
    """Models that judge the generated texts, and limits on their answers."""

    verify: Annotated[tyro.conf.UseAppendAction[tuple[str, ...]], TraceOf(judges_of)] = ()
    """Model that judges the texts, in the form nli:MODEL, llm:MODEL or vqa:MODEL. You can pass
    several models. `nli` is a natural language inference classifier, `llm` is a language model that
    answers yes or no, and `vqa` also sees the image. MODEL is the folder of a saved Transformers
    model, or ID@COMMIT from the Hugging Face Hub. For llm, MODEL can also be NAME@URL of an
    OpenAI-compatible server. Set the environment variable EQFORGE_MODEL_KEY to the server's API
    key. Add options after commas, such as ,device=cuda:0 or ,parallel=8. Texts are rejected only if
    you set a limit, such as --entailed-min."""

    verify_requests: Annotated[int | None, Trace.NONE] = None
    """Maximum number of requests to servers. A build that may need more requests does not start."""

    entailed_min: float | None = None
    """Minimum probability that the caption and the hard positive entail each other."""

    contradicted_min: float | None = None
    """Minimum probability that the hard negative contradicts both true texts."""

    shown_min: float | None = None
    """Minimum probability that the image matches both true texts but not the hard negative."""

    probability_min: float | None = None
    """Minimum probability that a row is correct, estimated from the precision of the rules."""

    refuse_by: Literal["any", "all"] = "any"
    """Reject a text if at least one judge rejects it (`any`), or only if all judges reject it
    (`all`)."""

    def __post_init__(self) -> None:
        """Check the limits, and that a limit has a judge."""
        for name in _LIMITS:
            check_range(name, getattr(self, name), 0, 1)
        specs_of(self)
        limits = [name for name in _LIMITS[:3] if getattr(self, name) is not None]
        if self.verify and self.refuse_by == "all" and not limits:
            raise InputError(
                "--refuse-by all has no effect without a limit; also pass one, such as "
                "--entailed-min"
            )
        if self.verify:
            return
        needing = limits
        needing += ["refuse_by"] * (self.refuse_by == "all")
        needing += ["verify_requests"] * (self.verify_requests is not None)
        if needing:
            flag = needing[0].replace("_", "-")
            raise InputError(f"--{flag} needs judges; specify them with --verify")

    def questions(self, rows: int) -> int:
        from eqforge.generators.text.llm.endpoint import is_endpoint

        servers = sum(is_endpoint(spec.source) for spec in specs_of(self) if spec.kind == "llm")
        return servers * QUESTIONS_A_ROW * rows

    def check_requests(self, rows: int) -> int:
        """Return the maximum number of questions to servers; reject more than are allowed."""
        most = self.questions(rows)
        if self.verify_requests is not None and most > self.verify_requests:
            raise InputError(
                f"--verify-requests {self.verify_requests:,}: this build may need {most:,} "
                "requests; raise --verify-requests, or lower --limit or --sample"
            )
        return most

    def batch(self, usual: int) -> int:
        """Return the number of images per batch; `usual` applies without judges."""
        return min(PICTURES_A_BATCH, usual) if self.verify else usual


def specs_of(settings: JudgeSettings) -> tuple[ScorerSpec, ...]:
    if not settings.verify:
        return ()
    from eqforge.models.spec import parse_spec

    if twice := [text for text in settings.verify if settings.verify.count(text) > 1]:
        raise InputError(f"--verify {twice[0]} was passed twice")
    return tuple(parse_spec(text, KINDS) for text in settings.verify)


@dataclasses.dataclass(frozen=True, kw_only=True, slots=True)
class Judging:
    """The judges and their limits; sent to workers, which load the models."""

    settings: JudgeSettings
    judges: tuple[Identity, ...]
    by_rules: bool = False
    ledger_root: str
    media_root: str | None = None

    @property
    def specs(self) -> tuple[ScorerSpec, ...]:
        return specs_of(self.settings)

    @property
    def uses_gpu(self) -> bool:
        return any(spec.device != "cpu" for spec in self.specs)


def basis_of(judge: Identity) -> list[object]:
    """Return everything a judge's answers depend on besides texts and images."""
    packages = ("torch", "transformers", "tokenizers", "pillow")
    return [VERSION, dataclasses.asdict(judge), versions_of(*packages)]


def prepare_judges(
    settings: JudgeSettings,
    ledger_root: str,
    media_root: str | None = None,
    *,
    by_rules: bool = False,
) -> Judging | None:
    """Return the requested judges with their identities; None if nothing judges the texts."""
    if settings.probability_min is not None and not by_rules:
        raise InputError(
            "--probability-min works only with rows from the rules of corrected mode; the "
            "probability of other rows is unknown"
        )
    if not settings.verify and not by_rules:
        return None
    if media_root is None and any(spec.kind == READS_PICTURES for spec in specs_of(settings)):
        raise InputError(
            f"--verify {READS_PICTURES}: this judge needs images; pass --images FOLDER"
        )
    judges = judges_of(settings.verify)
    names = [judge.name for judge in judges]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InputError(f"--verify: two judges have the name {twice[0]!r}")
    return Judging(
        settings=settings,
        judges=judges,
        by_rules=by_rules,
        ledger_root=ledger_root,
        media_root=media_root,
    )


def judges_of(named: tuple[str, ...]) -> tuple[Identity, ...]:
    return tuple(map(_identify, specs_of(JudgeSettings(verify=named))))


@functools.cache
def _identify(spec: ScorerSpec) -> Identity:
    from eqforge.models.spec import identify
    from eqforge.transforms.judges.models import load_judge

    return identify(spec, load_judge)
