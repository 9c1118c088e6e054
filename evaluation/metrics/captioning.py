"""BLEU and CIDEr of captions cut into words, as by COCO's evaluation server."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eqforge.core.errors import InputError, MissingExtra
from eqforge.core.late import numpy as np
from eqforge.evaluation.metrics.ngrams import bleu, cider_d

if TYPE_CHECKING:
    from numpy.typing import NDArray

Tokenizer = Literal["treebank", "ptb"]
"""How captions are tokenized: by NLTK's Treebank rules, or by the Java program of COCO's server,
which was used for the published numbers."""

_DROPPED = {
    "''",
    "'",
    "``",
    "`",
    '"',
    "(",
    ")",
    "{",
    "}",
    "[",
    "]",
    ".",
    "?",
    "!",
    ",",
    ":",
    "-",
} | {*("-lrb-", "-rrb-", "-lcb-", "-rcb-", "-lsb-", "-rsb-", "--", "...", ";")}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class CaptionScores:
    """Scores of captions.

    Attributes:
      bleu: BLEU-1 to BLEU-4 over the corpus, in [0, 1].
      cider: CIDEr-D of each caption [n], in [0, 10]; the score is their mean. Document
        frequencies come from all references, so scores depend on each other.
    """

    bleu: tuple[float, ...]
    cider: NDArray[np.float64]


def score_captions(
    captions: Sequence[str], references: Sequence[Sequence[str]], tokenizer: Tokenizer = "treebank"
) -> CaptionScores:
    """Scores captions against their references.

    Args:
      captions: one per image.
      references: at least one per image.
      tokenizer: how both are tokenized.

    Raises:
      InputError: an image has no reference, or the tokenizer needs Java and there is none.
      MissingExtra: nltk is not installed.
    """
    if not all(references):
        raise InputError("an image has no reference caption")
    flat = [text for group in references for text in group]
    words = [line.split() for line in tokenize([*captions, *flat], tokenizer)]
    said, rest = words[: len(captions)], iter(words[len(captions) :])
    true = [[next(rest) for _ in group] for group in references]
    return CaptionScores(bleu=bleu(said, true), cider=cider_d(said, true))


def tokenize(texts: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """Returns each text as lower-case words separated by single spaces, without punctuation.

    Raises:
      InputError: the tokenizer is `ptb` and Java or its program is missing, or it fails.
      MissingExtra: nltk is not installed.
    """
    lines = [" ".join(text.split()) for text in texts]
    cut = _by_treebank(lines) if tokenizer == "treebank" else _by_java(lines)
    return [" ".join(word for word in words if word not in _DROPPED) for words in cut]


def _by_treebank(lines: Sequence[str]) -> list[list[str]]:
    try:
        from nltk.tokenize import TreebankWordTokenizer
    except ImportError as error:
        raise MissingExtra("nltk", "models") from error
    cut = TreebankWordTokenizer().tokenize
    return [cut(line.lower()) for line in lines]


def _by_java(lines: Sequence[str]) -> list[list[str]]:
    home = find_spec("pycocoevalcap")
    if home is None or home.submodule_search_locations is None:
        raise InputError(
            "the tokenizer ptb is a Java program of pycocoevalcap's: "
            "pip install --no-deps pycocoevalcap==1.2, or take treebank"
        )
    if shutil.which("java") is None:
        raise InputError("the tokenizer ptb needs Java, and there is none; take treebank")
    (jar,) = Path(home.submodule_search_locations[0], "tokenizer").glob("stanford-corenlp-*.jar")
    command = ["java", "-cp", str(jar), "edu.stanford.nlp.process.PTBTokenizer"]
    done = subprocess.run(
        [*command, "-preserveLines", "-lowerCase"],
        input="".join(f"{line}\n" for line in lines),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    found = done.stdout.removesuffix("\n").split("\n")
    if done.returncode != 0 or len(found) != len(lines):
        raise InputError(f"the tokenizer ptb failed: {done.stderr.strip()[-300:]}")
    return [line.split() for line in found]
