"""BLEU and CIDEr of captions, as implemented by COCO's evaluation server."""

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from eqforge.schemas.errors import InputError, MissingExtra

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
      MissingExtra: pycocoevalcap or nltk is not installed.

    Source: BLEU (Papineni et al. 2002) and CIDEr-D (Vedantam et al. 2015) in `pycocoevalcap`.
    """
    try:
        from pycocoevalcap.bleu.bleu import Bleu
        from pycocoevalcap.cider.cider import Cider
    except ImportError as error:
        raise MissingExtra("pycocoevalcap", "models") from error
    if not all(references):
        raise InputError("an image has no reference caption")
    flat = [text for group in references for text in group]
    words = tokenize([*captions, *flat], tokenizer)
    said = {number: [line] for number, line in enumerate(words[: len(captions)])}
    true: dict[int, list[str]] = {}
    rest = iter(words[len(captions) :])
    for number, group in enumerate(references):
        true[number] = [next(rest) for _ in group]
    bleu, _ = Bleu(4).compute_score(true, said, verbose=0)
    _, cider = Cider().compute_score(true, said)
    return CaptionScores(bleu=tuple(map(float, bleu)), cider=np.asarray(cider, dtype=np.float64))


def tokenize(texts: Sequence[str], tokenizer: Tokenizer) -> list[str]:
    """Returns each text as lower-case words separated by single spaces, without punctuation.

    Raises:
      InputError: the tokenizer is `ptb` and there is no Java, or it fails.
      MissingExtra: nltk or pycocoevalcap is not installed.
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
    try:
        import pycocoevalcap
    except ImportError as error:
        raise MissingExtra("pycocoevalcap", "models") from error
    if shutil.which("java") is None:
        raise InputError("the tokenizer ptb needs Java, and there is none; take treebank")
    (jar,) = Path(pycocoevalcap.__path__[0], "tokenizer").glob("stanford-corenlp-*.jar")
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
