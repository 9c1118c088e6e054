"""The folder of a training run: its state for resuming, and its results.

During a run, `_work` holds its identity (`run.json`), its images and accelerate's last checkpoint.
`training.json` is written last, and `_work` is deleted.
"""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from eqforge.core.errors import InputError
from eqforge.core.files import storage
from eqforge.core.files.checked import clipped, load_json, name_of, shown
from eqforge.schemas.dataset.manifest import WORK

MANIFEST = "training.json"
LOG = "log.jsonl"


class RunFolder:
    """The folder of a run, which resumes only with an equal `identity` (JSON values)."""

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder = folder
        self.work = folder / WORK
        self._identity = json.loads(json.dumps(identity))
        self._check()

    @property
    def is_finished(self) -> bool:
        return (self.folder / MANIFEST).exists()

    def begin(self) -> None:
        if not (self.work / "run.json").exists():
            storage.write_bytes(str(self.work / "run.json"), _json(self._identity))

    def _check(self) -> None:
        if not storage.is_local(str(self.folder)):
            raise InputError(f"{self.folder}: expected a local folder, not a URL")
        if self.folder.is_file():
            raise InputError(f"{self.folder}: expected a folder, found a file")
        if self.is_finished:
            there = load_json(self.folder / MANIFEST).get("run")
            self._compare(
                "contains a finished training run", {} if there is None else there.mapping()
            )
        elif (self.work / "run.json").exists():
            self._compare(
                "contains an unfinished training run", load_json(self.work / "run.json").mapping()
            )
        # A full disk may have left the work folder empty.
        elif self.folder.exists() and any(path != self.work for path in self.folder.iterdir()):
            raise InputError(
                f"{self.folder} is not empty and does not contain a training run; choose a "
                "different folder"
            )

    def _compare(self, state: str, there: Mapping[str, Any]) -> None:
        names = sorted(self._identity.keys() | there.keys())
        name = next((n for n in names if self._identity.get(n) != there.get(n)), None)
        if name is not None:
            raise InputError(
                f"{self.folder} {state} with different settings: {name_of(name)!r} is "
                f"{shown(there.get(name))} there, but {shown(self._identity.get(name))} here; "
                "choose a different folder, or delete this one"
            )

    def save_checkpoint(self, accelerator: Any, step: int) -> None:
        """Save the state of all processes, then delete the previous checkpoint."""
        part = self.work / "checkpoint.part"
        with system_errors(part):
            accelerator.save_state(str(part))
        accelerator.wait_for_everyone()
        if accelerator.is_main_process:
            before = self._checkpoints()
            part.rename(self.work / f"checkpoint-{step}")
            for folder in before.values():
                shutil.rmtree(folder)
        accelerator.wait_for_everyone()

    def load_checkpoint(self, accelerator: Any) -> int:
        """Load the last checkpoint into the objects `accelerator` prepared; return its step or 0.

        accelerate reads only tensors and plain values; nothing in the files is executed.
        """
        if not (found := self._checkpoints()):
            return 0
        step = max(found)
        try:
            accelerator.load_state(str(found[step]))
        except Exception as error:  # readers of damaged files raise anything
            what = " ".join(str(error).split()).partition(". ")[0]
            raise InputError(
                f"{found[step]} is damaged or belongs to a different training run; to start over, "
                f"delete {found[step].name} ({type(error).__name__}: {clipped(what)})"
            ) from error
        return step

    def _checkpoints(self) -> dict[int, Path]:
        return {int(path.name[11:]): path for path in self.work.glob("checkpoint-*")}

    @contextlib.contextmanager
    def log(self, step: int | None) -> Iterator[Callable[[Mapping[str, float]], None]]:
        if step is None:
            yield lambda _: None
            return
        path = self.folder / LOG
        kept = []
        if path.exists():
            for line in path.read_bytes().splitlines(keepends=True):
                # The last line may be truncated.
                with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                    if json.loads(line)["step"] <= step:
                        kept.append(line)
        storage.write_bytes(str(path), b"".join(kept))
        with path.open("a", encoding="utf-8", buffering=1) as stream:
            yield lambda entry: print(json.dumps(entry), file=stream)

    def finish(self, save: Callable[[Path], None], manifest: Mapping[str, Any]) -> None:
        model = self.work / "model"
        shutil.rmtree(model, ignore_errors=True)
        model.mkdir(parents=True)
        with system_errors(model):
            save(model)
        weights = storage.digest(str(model / "model.safetensors"))[1]
        for file in sorted(model.iterdir()):
            os.replace(file, self.folder / file.name)
        content = {"run": self._identity, **manifest, "weights_sha256": weights}
        storage.write_bytes(str(self.folder / MANIFEST), _json(content))
        shutil.rmtree(self.work)


@contextlib.contextmanager
def system_errors(path: Path) -> Iterator[None]:
    """Turn torch's and safetensors' errors for a full disk back into OSError."""
    try:
        yield
    except Exception as error:
        if isinstance(error.__context__, OSError):
            raise error.__context__ from None
        code = re.search(r"\(os error (\d+)\)", str(error))
        if code is None:
            raise
        raise OSError(int(code[1]), os.strerror(int(code[1])), str(path)) from error


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()
