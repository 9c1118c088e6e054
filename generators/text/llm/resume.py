"""Rewrites that outlive an interruption: answers are kept in a file and not asked for again."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
from more_itertools import chunked

from eqforge.generators.text.analysis import Analysis
from eqforge.generators.text.llm.prompts import PROMPTS, PromptName
from eqforge.generators.text.llm.rewrite import (
    STEP_VERSION,
    Rewrite,
    RewriteRefusal,
    Writer,
    rewrite_captions,
)
from eqforge.schemas.errors import InputError
from eqforge.schemas.identity import fingerprint
from eqforge.schemas.typed_json import decode


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    rewrite: Rewrite | None = None
    refusal: RewriteRefusal | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteRun:
    """How captions are rewritten; equal runs may share a file.

    Attributes:
      prompt: what to ask for.
      run_seed: the seed of the run.
      writer_fingerprint: digest of everything in the model that decides an answer.
      sample: whether the first answer is drawn.
      retries: how often an answer that is not taken is asked for again.
    """

    prompt: PromptName
    run_seed: int
    writer_fingerprint: str
    sample: bool = False
    retries: int = 3

    def key(self, record_id: str, caption: str) -> str:
        """Returns the name of an answer: equal if nothing that decides it has changed."""
        return fingerprint(
            {
                "step": STEP_VERSION,
                "template": PROMPTS[self.prompt].template,
                "seed": self.run_seed,
                "writer": self.writer_fingerprint,
                "sample": self.sample,
                "retries": self.retries,
                "id": record_id,
                "caption": caption,
            }
        )


def rewrite_resumably(
    captions: Iterable[tuple[str, Analysis]],
    writer: Writer,
    run: RewriteRun,
    file: Path,
    *,
    chunk: int = 512,
) -> Iterator[Rewrite | RewriteRefusal]:
    """Yields one result per caption, in order, and keeps each in a file before it is yielded.

    What the file holds already, of an earlier run with the same settings, is not asked for again. A
    last line that was cut off when a run was killed is dropped.

    Args:
      captions: ids and analyses.
      writer: the language model.
      run: how captions are rewritten.
      file: JSON lines; made if missing.
      chunk: how many captions are asked for between two writes.

    Raises:
      InputError: a line of the file is none of this function's.
    """
    done = _read(file)
    with open(file, "ab") as stream:
        for items in chunked(captions, chunk):
            keys = [run.key(record_id, analysis.text) for record_id, analysis in items]
            missing = [(k, item) for k, item in zip(keys, items, strict=True) if k not in done]
            found = rewrite_captions(
                [item for _, item in missing],
                writer,
                run.prompt,
                run_seed=run.run_seed,
                sample=run.sample,
                retries=run.retries,
            )
            new = {key: result for (key, _), result in zip(missing, found, strict=True)}
            stream.writelines(_encode(key, result) for key, result in new.items())
            stream.flush()
            os.fsync(stream.fileno())
            yield from (new.get(key) or done[key] for key in keys)


def _encode(key: str, result: Rewrite | RewriteRefusal) -> bytes:
    if isinstance(result, Rewrite):
        return msgspec.json.encode(_Line(key=key, rewrite=result)) + b"\n"
    return msgspec.json.encode(_Line(key=key, refusal=result)) + b"\n"


def _read(file: Path) -> dict[str, Rewrite | RewriteRefusal]:
    """Reads the results of earlier runs, and cuts off a last line that is not whole."""
    if not file.exists():
        return {}
    data = file.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if len(whole) < len(data):
        with open(file, "r+b") as stream:
            stream.truncate(len(whole))
    results: dict[str, Rewrite | RewriteRefusal] = {}
    for number, line in enumerate(whole.splitlines(), start=1):
        entry = decode(line, _Line, file.name, f"line {number}")
        result = entry.rewrite or entry.refusal
        if result is None:
            raise InputError(f"{file.name}: line {number}: expected a rewrite or a refusal")
        results[entry.key] = result
    return results
