"""The folder of a training run: its state for resuming, and its results.

While it runs, `_work` holds its identity (`run.json`), its images, and one checkpoint;
`log.jsonl` grows beside it. `training.json` is written last, and `_work` is deleted.
"""

import contextlib
import json
import os
import re
import shutil
import warnings
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
    """Where one training writes.

    Args:
      folder: a local folder; created if missing.
      identity: everything that decides the weights, as JSON values; a run resumes only with an
        equal identity.

    Raises:
      InputError: the folder holds something else.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder = folder
        self.work = folder / WORK
        self._identity = json.loads(json.dumps(identity))
        self.checkpoint = self.work / "checkpoint.pt"
        self._check()

    @property
    def is_finished(self) -> bool:
        """Whether this run has been finished here."""
        return (self.folder / MANIFEST).exists()

    def begin(self) -> None:
        """Writes the identity of the run."""
        if not (self.work / "run.json").exists():
            storage.write_bytes(str(self.work / "run.json"), _json(self._identity))

    def _check(self) -> None:
        if not storage.is_local(str(self.folder)):
            raise InputError(f"{self.folder}: expected a folder on a disk of this machine")
        if self.folder.is_file():
            raise InputError(f"{self.folder}: expected a folder, found a file")
        if self.is_finished:
            there = load_json(self.folder / MANIFEST).get("run")
            self._compare("holds a finished training", {} if there is None else there.mapping())
        elif (self.work / "run.json").exists():
            self._compare(
                "holds an unfinished training", load_json(self.work / "run.json").mapping()
            )
        # A full disk may have left the work folder empty.
        elif self.folder.exists() and any(path != self.work for path in self.folder.iterdir()):
            raise InputError(f"{self.folder} is not empty and holds no training; name another one")

    def _compare(self, what: str, there: Mapping[str, Any]) -> None:
        differing = sorted(
            name
            for name in self._identity.keys() | there.keys()
            if self._identity.get(name) != there.get(name)
        )
        if differing:
            name = differing[0]
            raise InputError(
                f"{self.folder} {what} with other settings: {name_of(name)} is "
                f"{shown(there.get(name))} there and {shown(self._identity.get(name))} here; "
                "name another folder, or delete this one"
            )

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Replaces the checkpoint atomically."""
        import torch

        with storage.open_atomic(str(self.checkpoint)) as stream, system_errors(self.checkpoint):
            torch.save(dict(state), stream)

    def load_checkpoint(self) -> dict[str, Any] | None:
        """Returns the checkpoint, on the CPU; None where there is none.

        Only tensors and plain values are read; nothing in the file is executed.
        """
        import torch

        if not self.checkpoint.exists():
            return None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about pickles not made by torch
                loaded = torch.load(self.checkpoint, map_location="cpu", weights_only=True)
            return {name: loaded[name] for name in ("step", "network", "optimizer")}
        except Exception as error:  # readers of damaged files raise anything
            raise self.damaged(error) from error

    def damaged(self, error: Exception) -> InputError:
        """Returns the error for an unusable checkpoint."""
        return InputError(
            f"{self.checkpoint}: is no checkpoint of this training: {type(error).__name__}: "
            f"{clipped(' '.join(str(error).split()))}; delete it to begin anew"
        )

    def open_log(self, step: int) -> Any:
        """Opens the log for appending from a step; later entries are dropped."""
        path = self.folder / LOG
        kept = []
        if path.exists():
            for line in path.read_bytes().splitlines(keepends=True):
                # The last line may be truncated.
                with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                    if json.loads(line)["step"] <= step:
                        kept.append(line)
        storage.write_bytes(str(path), b"".join(kept))
        return open(path, "a", encoding="utf-8")

    def finish(self, save: Callable[[Path], None], manifest: Mapping[str, Any]) -> None:
        """Saves the model, then the manifest, then deletes the work.

        Args:
          save: writes the model's files into a folder.
          manifest: content of `training.json` besides the identity.
        """
        made = self.work / "model"
        shutil.rmtree(made, ignore_errors=True)
        made.mkdir(parents=True)
        with system_errors(made):
            save(made)
        weights = storage.digest(str(made / "model.safetensors"))[1]
        for file in sorted(made.iterdir()):
            os.replace(file, self.folder / file.name)
        content = {"run": self._identity, **manifest, "weights_sha256": weights}
        storage.write_bytes(str(self.folder / MANIFEST), _json(content))
        shutil.rmtree(self.work)


@contextlib.contextmanager
def system_errors(path: Path) -> Iterator[None]:
    """Turns torch's and safetensors' errors for a full disk back into OSError."""
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
