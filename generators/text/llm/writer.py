"""Open the language model of the settings: a local one of transformers, or a server's.

A local one decodes in batches in which no record depends on its neighbours. A sampled record draws
from its own generator, on the CPU. A matrix product of a different shape may sum in a different
order. So every batch has the full number of rows, prompts are padded to a length that depends only
on their own, and logits are rounded before a token is chosen. On one device and library version,
results do not depend on order, neighbours or batch size, except for logits within rounding of each
other.
"""

import functools
import hashlib
import importlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from eqforge.core.errors import InputError, importing
from eqforge.core.files.source_file import unchanged
from eqforge.core.identity import fingerprint, sha256_hex
from eqforge.generators.text.llm.endpoint import Endpoint, address_of, is_endpoint
from eqforge.generators.text.llm.model import Answer, LanguageModel, Question

if TYPE_CHECKING:
    import torch


WRITER_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class WriterSettings:
    """The language model, and how it decodes; `--model-...` of hard positives says what each is.

    The authors sampled Llama-2-70b-chat with its default settings, unseeded, 32 prompts at a time,
    without its chat template.
    """

    model: str
    revision: str | None = None
    device: str = "cpu"
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    batch_size: int = 32
    sample: bool = False
    temperature: float = 0.7
    top_p: float = 0.95
    chat: bool = False
    timeout_s: float = 120.0


@functools.lru_cache(maxsize=2)
def open_model(settings: WriterSettings) -> LanguageModel:
    if not is_endpoint(settings.model):
        return CaptionWriter(settings)
    return Endpoint(
        address=address_of(settings.model),
        at_once=settings.batch_size,
        timeout_s=settings.timeout_s,
        temperature=settings.temperature,
        top_p=settings.top_p,
    )


class CaptionWriter:
    """Completes prompts with a causal language model from transformers."""

    def __init__(self, settings: WriterSettings) -> None:
        self.settings = settings
        with unchanged([settings.model]):
            self._tokenizer, self._model = _load(settings)
            self.revision = _revision(settings, self._model)

    @property
    def name(self) -> str:
        model = Path(self.settings.model)
        # A local path does not identify the model; the revision is a digest of its files.
        return f"{model.name if model.is_dir() else self.settings.model}@{self.revision}"

    @property
    def fingerprint(self) -> str:
        settings = self.settings
        return fingerprint(
            {
                "version": WRITER_VERSION,
                "revision": self.revision,
                "dtype": settings.dtype,
                "sample": settings.sample,
                "temperature": settings.temperature,
                "top_p": settings.top_p,
                "chat": settings.chat,
            }
        )

    def answers(self, questions: Sequence[Question]) -> Iterator[tuple[int, Answer]]:
        by_length: dict[int, list[int]] = {}
        for position, question in enumerate(questions):
            by_length.setdefault(question.max_new_tokens, []).append(position)
        for length, positions in by_length.items():
            batch = [questions[position] for position in positions]
            texts = self.complete([q.prompt for q in batch], [q.seed for q in batch], length)
            for position, (text, is_cut) in zip(positions, texts, strict=True):
                yield position, Answer(text=text, model=self.name, is_cut=is_cut)

    def complete(
        self, prompts: Sequence[str], seeds: Sequence[int | None], max_new_tokens: int
    ) -> list[tuple[str, bool]]:
        """Complete each prompt up to the first line break; flag completions without an end."""
        requests = [
            Request(prompt_ids=self._prompt_ids(prompt), seed=seed)
            for prompt, seed in zip(prompts, seeds, strict=True)
        ]
        settings = DecodingSettings(
            max_new_tokens=max_new_tokens,
            batch_size=self.settings.batch_size,
            temperature=self.settings.temperature,
            top_p=self.settings.top_p,
            end_ids=self._end_ids,
            pad_id=min(self._end_ids, default=0),
        )
        completions = complete(self._model, requests, settings, self._ends_line)
        return [
            (self._text(tokens), len(tokens) == max_new_tokens and not self._ends_line(tokens))
            for tokens in completions
        ]

    def _prompt_ids(self, prompt: str) -> tuple[int, ...]:
        if not self.settings.chat:
            return tuple(self._tokenizer(prompt)["input_ids"])
        messages = [{"role": "user", "content": prompt}]
        ids = self._tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, return_dict=False
        )
        return tuple(ids)

    @functools.cached_property
    def _end_ids(self) -> frozenset[int]:
        found = self._model.generation_config.eos_token_id
        listed = found if isinstance(found, list) else [found]
        return frozenset(i for i in (*listed, self._tokenizer.eos_token_id) if i is not None)

    def _ends_line(self, tokens: list[int]) -> bool:
        return "\n" in self._text(tokens).lstrip()

    def _text(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True))


def _load(settings: WriterSettings) -> tuple[Any, Any]:
    with importing("torch and transformers", "models"):
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    transformers: Any = importlib.import_module("transformers")
    transformers.utils.logging.disable_progress_bar()  # it would break our own
    try:
        torch.empty(1, device=settings.device)
    except (RuntimeError, AssertionError) as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(f"device={settings.device}: error from PyTorch: {first}") from error
    common: Any = {"revision": settings.revision, "trust_remote_code": False}
    try:
        tokenizer = AutoTokenizer.from_pretrained(settings.model, **common)
        model: Any = AutoModelForCausalLM.from_pretrained(
            settings.model, dtype=getattr(torch, settings.dtype), **common
        )
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"the language model {settings.model!r} cannot be loaded. Pass a folder saved by "
            f"Transformers, or a Hub id with its revision. Error from Transformers: {error}"
        ) from error
    embeddings = model.get_input_embeddings().num_embeddings
    if len(tokenizer) > embeddings:
        raise InputError(
            f"{settings.model}: the tokenizer has {len(tokenizer)} tokens, but the model has "
            f"{embeddings}; use the tokenizer that was saved with the model"
        )
    return tokenizer, model.to(settings.device).eval()


def _revision(settings: WriterSettings, model: Any) -> str:
    folder = Path(settings.model)
    if not folder.is_dir():
        return str(getattr(model.config, "_commit_hash", None) or settings.revision or "unknown")
    digests = {}
    for file in filter(Path.is_file, folder.rglob("*")):
        with open(file, "rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        digests[file.relative_to(folder).as_posix()] = sha256
    return f"sha256:{sha256_hex(repr(sorted(digests.items())).encode())[:16]}"


_BUCKET_TOKENS = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """A prompt to complete.

    Attributes:
      prompt_ids: the tokens of the prompt, at least one.
      seed: of the record's generator, in [0, 2**63); None always takes the likeliest token.
    """

    prompt_ids: tuple[int, ...]
    seed: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodingSettings:
    """How tokens are chosen, and when a completion ends.

    Attributes:
      temperature: divides the logits of sampled records; above 0.
      top_p: samples from the fewest likeliest tokens with at least this total probability, in (0,
        1].
      pad_id: the token that pads prompts; it is never attended to.
    """

    max_new_tokens: int
    batch_size: int
    temperature: float
    top_p: float
    end_ids: frozenset[int]
    pad_id: int


def complete(
    model: Any,
    requests: Sequence[Request],
    settings: DecodingSettings,
    is_done: Callable[[list[int]], bool],
) -> list[list[int]]:
    """Return the new tokens of each request, in order, without the token that ended it.

    Args:
      model: a causal language model of transformers, in evaluation mode.
      is_done: decides from a completion's tokens so far whether it ends there.
    """
    results: list[list[int]] = [[] for _ in requests]
    size = settings.batch_size
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, request in enumerate(requests):
        buckets = -(-len(request.prompt_ids) // _BUCKET_TOKENS)
        by_length[buckets * _BUCKET_TOKENS].append(index)
    batches = (
        (length, indices[start : start + size])
        for length, indices in sorted(by_length.items())
        for start in range(0, len(indices), size)
    )
    for length, indices in batches:
        rows = [requests[index] for index in indices]
        padded = [*rows, *[rows[0]] * (size - len(rows))]
        completions = _complete_batch(model, padded, length, settings, is_done)
        for index, tokens in zip(indices, completions, strict=False):
            results[index] = tokens
    return results


def _complete_batch(
    model: Any,
    rows: Sequence[Request],
    length: int,
    settings: DecodingSettings,
    is_done: Callable[[list[int]], bool],
) -> list[list[int]]:
    import torch

    pads = [length - len(row.prompt_ids) for row in rows]
    ids = [[settings.pad_id] * pad + list(r.prompt_ids) for r, pad in zip(rows, pads, strict=True)]
    tokens = torch.tensor(ids, device=model.device)
    mask = torch.tensor([[0] * pad + [1] * (length - pad) for pad in pads], device=model.device)
    generators = [
        None if row.seed is None else torch.Generator(device="cpu").manual_seed(row.seed)
        for row in rows
    ]
    completions: list[list[int]] = [[] for _ in rows]
    open_rows = set(range(len(rows)))
    cache = None
    with torch.inference_mode():
        for _ in range(settings.max_new_tokens):
            logits, cache = _step(model, tokens, mask, cache)
            chosen = [
                _choose(row, generator, settings)
                for row, generator in zip(logits, generators, strict=True)
            ]
            for index in sorted(open_rows):
                if chosen[index] in settings.end_ids:
                    open_rows.discard(index)
                    continue
                completions[index].append(chosen[index])
                if is_done(completions[index]):
                    open_rows.discard(index)
            if not open_rows:
                break
            tokens = torch.tensor([[token] for token in chosen], device=model.device)
            mask = torch.cat([mask, mask.new_ones((len(rows), 1))], dim=1)
    return completions


def _step(
    model: Any, tokens: "torch.Tensor", mask: "torch.Tensor", cache: Any
) -> tuple["torch.Tensor", Any]:
    """Run the model on new tokens; return logits [rows, vocabulary] in float64 and the cache."""
    positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -tokens.shape[1] :]
    output = model(
        input_ids=tokens,
        attention_mask=mask,
        position_ids=positions,
        past_key_values=cache,
        use_cache=True,
    )
    logits = output.logits[:, -1].double().cpu()
    return logits.round(decimals=3), output.past_key_values


def _choose(
    logits: "torch.Tensor", generator: "torch.Generator | None", settings: DecodingSettings
) -> int:
    """Choose a token from logits [vocabulary]; ties go to the lowest id."""
    import torch

    if generator is None:
        return int(torch.nonzero(logits == logits.max())[0])
    ordered = torch.sort(logits / settings.temperature, descending=True, stable=True)
    probabilities = torch.softmax(ordered.values, dim=0)
    cumulative = probabilities.cumsum(dim=0)
    kept = int((cumulative - probabilities < settings.top_p).sum())
    draw = torch.rand((), generator=generator, dtype=torch.float64) * cumulative[kept - 1]
    position = min(int(torch.searchsorted(cumulative[:kept], draw, right=True)), kept - 1)
    return int(ordered.indices[position])
