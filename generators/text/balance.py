"""Draw negatives so that a text alone does not show whether it is true.

A classifier learns which of a true text and its possible negatives is true. A negative's
probability depends on how true it looks, so that the expected sums of all features are equal over
drawn negatives and true texts. At this optimum a classifier of pairs has nothing to learn. Captions
that look much truer than all their negatives often get none. A caption and its rewording count as
one, by their mean.

The balance is not exact: if every edit occurred as often as its reverse, all rows but one would
reveal the last. So each caption is drawn on its own, from a classifier that weights captions at
random (Rubin 1981, "The Bayesian bootstrap"). Sums over the kept rows then vary as if a fair coin
had decided which text of each is true. A draw of probability p has variance p(1 - p), and its
weight adds p^2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, count, pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from eqforge.core.console import Ticker
from eqforge.core.errors import importing
from eqforge.core.identity import bucket, derive_seed
from eqforge.core.word_model import WORD, WordModel, words_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

Numbers: TypeAlias = "NDArray[Any]"
Analyzer: TypeAlias = Callable[[str], Iterator[str]]
VERSION: Final = 1
NO_NEGATIVE: Final = -1

_THIRDS: Final = 3
_LETTERS: Final = (2, 3, 4)
_HASHED: Final = 1 << 22
_FEWEST: Final = 20
"""A feature is balanced if at least this many negatives change it; rarer ones cannot be learnt."""
_PENALTY: Final = 20.0
"""On squared weights: the precision of a normal prior. Chosen on half of the images of COCO val2017
and of VLUE's captions. With 5, chance features of true texts are copied, and a classifier of words
is right on 46 to 48% of the rows; with 30, on 51 to 53%."""
_NONE: Final = 0.05
"""Weight of no negative; a negative that looks as true as the caption has 1."""
_GROUPS: Final = 10
"""Number of groups of images; word frequencies come from the other groups."""
_CHUNK: Final = 2_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Possible:
    """True texts with the same meaning, at least one, and their possible negatives."""

    name: str
    image: str
    true: tuple[str, ...]
    negatives: tuple[str, ...]


def draw_negatives(captions: Sequence[Possible], seed: int) -> list[int]:
    if not captions:
        return []
    order = sorted(range(len(captions)), key=lambda place: captions[place].name)
    ordered = [captions[place] for place in order]
    sizes = np.array([len(each.negatives) for each in ordered])
    starts = np.cumsum(sizes) - sizes
    counts, points = (
        np.array([derive_seed(seed, each.name, step, VERSION) / 2**63 for each in ordered])
        for step in ("balance/weight", "balance/draw")
    )
    changes = _changes(ordered)
    margins = changes @ _weights(changes, starts, -np.log1p(-counts))
    chances, _ = _chances(margins, starts)
    draws = [NO_NEGATIVE] * len(captions)
    for place, point, start, size in zip(order, points, starts, sizes, strict=True):
        found = int(np.searchsorted(np.cumsum(chances[start : start + size]), point, side="right"))
        draws[place] = found if found < size else NO_NEGATIVE
    return draws


def features_of(text: str) -> Iterator[str]:
    """Yield the features of a text that a blind classifier may use.

    These are its words; runs of two and three, with its ends; any two of its words; the third of
    the text in which each stands; runs of two to four letters; and its numbers of words and
    characters.
    """
    words = WORD.findall(text.lower())
    yield from _runs(text)
    yield from ("~".join(each) for each in combinations(sorted(set(words)), 2))
    yield from (f"{n * _THIRDS // len(words)}:{word}" for n, word in enumerate(words))
    for word in text.split():
        padded = f" {word} "
        for size in _LETTERS:
            yield from (f"_{padded[n : n + size]}" for n in range(len(padded) - size + 1))
    yield from "#" * len(words)
    yield from "." * len(text)


def _runs(text: str) -> Iterator[str]:
    ends = words_of(text)
    yield from ends[1:-1]
    yield from (" ".join(each) for each in pairwise(ends))
    yield from (" ".join(each) for each in zip(ends, ends[1:], ends[2:], strict=False))


def _changes(captions: Sequence[Possible]) -> Any:
    """Subtract the features of the true texts from each negative's [negatives, features].

    The last four are the frequency of its runs of words in captions of other images, and its
    likelihood under them: together they balance features too rare to balance one by one.
    """
    from scipy import sparse  # type: ignore[import-untyped]

    changes = _hashed_changes(captions, features_of)
    changing = np.bincount(changes.indices, minlength=_HASHED)
    often = changes[:, np.flatnonzero(changing >= _FEWEST)]
    dense = np.column_stack([_commonness(captions), _likelihoods(captions)])
    return sparse.hstack([often, sparse.csr_matrix(dense)], format="csr")


def _commonness(captions: Sequence[Possible]) -> Numbers:
    """Return the scaled changes of log frequency and of unknown runs [negatives, 2]."""
    changes = _hashed_changes(captions, _runs)
    texts = _mean_hashed(captions, _hash(_runs))
    groups = np.array([bucket(each.image, _GROUPS) for each in captions])
    owners = np.repeat(groups, [len(each.negatives) for each in captions])
    found = np.zeros((changes.shape[0], 2))
    for group in range(_GROUPS):
        counts = np.asarray(texts[groups != group].sum(axis=0)).ravel()
        own = changes[owners == group]
        found[owners == group] = np.column_stack([own @ np.log(counts + 0.5), own @ (counts == 0)])
    return _scaled(found)


def _likelihoods(captions: Sequence[Possible]) -> Numbers:
    """Return how much likelier a model of words finds negatives, and how often [negatives, 2].

    The model learns the true texts of the other groups of images. Both columns are scaled means
    over the true texts; a few unique words change only the first.
    """
    model = WordModel()
    groups: dict[int, list[int]] = {}
    for place, each in enumerate(captions):
        groups.setdefault(bucket(each.image, _GROUPS), []).append(place)
        model.learn(each.true)
    found: dict[int, Numbers] = {}
    for places in groups.values():
        true_texts = [text for place in places for text in captions[place].true]
        model.forget(true_texts)
        for place in places:
            true, negatives = (
                np.array([model.score(text) for text in texts])
                for texts in (captions[place].true, captions[place].negatives)
            )
            more = (negatives[:, None] - true).round(9)
            found[place] = np.column_stack([more.mean(axis=1), np.sign(more).mean(axis=1)])
        model.learn(true_texts)
    return _scaled(np.concatenate([found[place] for place in range(len(captions))]))


def _scaled(columns: Numbers) -> Numbers:
    return columns / np.maximum(columns.std(axis=0), 1e-9)


def _hashed_changes(captions: Sequence[Possible], analyzer: Analyzer) -> Any:
    from scipy import sparse

    hashed = _hash(analyzer)
    parts = []
    for start in range(0, len(captions), _CHUNK):
        chunk = captions[start : start + _CHUNK]
        owners = np.repeat(np.arange(len(chunk)), [len(each.negatives) for each in chunk])
        negatives = hashed.transform(text for each in chunk for text in each.negatives)
        part = negatives - _mean_hashed(chunk, hashed)[owners]
        part.eliminate_zeros()
        parts.append(part)
    return sparse.vstack(parts, format="csr")


def _mean_hashed(captions: Sequence[Possible], hashed: Any) -> Any:
    from scipy import sparse

    sizes = [len(each.true) for each in captions]
    texts = hashed.transform(text for each in captions for text in each.true)
    starts = np.cumsum([0, *sizes])
    shares = np.repeat(1 / np.array(sizes), sizes)
    return sparse.csr_matrix((shares, np.arange(len(shares)), starts)) @ texts


def _hash(analyzer: Analyzer) -> Any:
    with importing("scikit-learn", "text"):
        from sklearn.feature_extraction.text import HashingVectorizer
    return HashingVectorizer(analyzer=analyzer, n_features=_HASHED, norm=None, alternate_sign=False)


def _weights(changes: Any, starts: Numbers, counts: Numbers) -> Numbers:
    """Return how true each feature looks; `starts` are indices of first negatives [captions]."""
    from scipy.optimize import minimize  # type: ignore[import-untyped]

    counted = np.repeat(counts, np.diff(starts, append=changes.shape[0]))

    def loss(weights: Numbers) -> tuple[float, Numbers]:
        chances, surprises = _chances(changes @ weights, starts)
        slope = changes.T @ (counted * chances) + _PENALTY * weights
        return float(counts @ surprises + _PENALTY / 2 * weights @ weights), slope

    ticker, rounds = Ticker(None, "rounds", task="balance"), count(1)
    found = minimize(
        loss,
        np.zeros(changes.shape[1]),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500},
        callback=lambda _: ticker.show(next(rounds)),
    )
    ticker.close()
    return found.x


def _chances(margins: Numbers, starts: Numbers) -> tuple[Numbers, Numbers]:
    """Return the probability of each negative, and the loss of each caption.

    Args:
      margins: how much truer than its caption each negative looks [negatives].
    """
    sizes = np.diff(starts, append=len(margins))
    most = np.maximum(np.maximum.reduceat(margins, starts), 0)
    likely = np.exp(margins - np.repeat(most, sizes))
    total = np.add.reduceat(likely, starts) + _NONE * np.exp(-most)
    return likely / np.repeat(total, sizes), most + np.log(total)
