"""Query-candidate scores, a block of queries at a time, and the true candidates."""

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

Indices: TypeAlias = NDArray[np.int64]


class ScoreRows(Protocol):
    """Scores of queries with all candidates, a block of queries at a time."""

    @property
    def queries(self) -> int:
        """How many queries there are."""

    @property
    def candidates(self) -> int:
        """How many candidates each is compared with."""

    def rows(self, start: int, stop: int) -> NDArray[np.floating[Any]]:
        """Returns scores [stop - start, candidates]; -inf where a pair was not scored."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class VectorRows:
    """Scores that are dot products of two sets of vectors.

    Attributes:
      query_vectors: [queries, d].
      candidate_vectors: [distinct candidates, d].
      query_of, candidate_of: row of the vector of each query and candidate. Those that share one
        have bitwise equal scores. None where each has its own.
    """

    query_vectors: NDArray[np.float32]
    candidate_vectors: NDArray[np.float32]
    query_of: Indices | None = None
    candidate_of: Indices | None = None

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return len(self.query_vectors if self.query_of is None else self.query_of)

    @property
    def candidates(self) -> int:
        """How many candidates each is compared with."""
        return len(self.candidate_vectors if self.candidate_of is None else self.candidate_of)

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        """Returns the scores of some queries."""
        chosen = slice(start, stop) if self.query_of is None else self.query_of[start:stop]
        scores = self.query_vectors[chosen] @ self.candidate_vectors.T
        return scores if self.candidate_of is None else scores[:, self.candidate_of]

    def all_queries(self) -> NDArray[np.float32]:
        """Returns the vector of each query [queries, d]."""
        return self.query_vectors if self.query_of is None else self.query_vectors[self.query_of]

    def all_candidates(self) -> NDArray[np.float32]:
        """Returns the vector of each candidate [candidates, d]."""
        shared = self.candidate_of
        return self.candidate_vectors if shared is None else self.candidate_vectors[shared]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class MatrixRows:
    """Scores in a matrix in memory.

    Attributes:
      matrix: [rows, columns], -inf where a pair was not scored.
      query_of, candidate_of: the row of each query and the column of each candidate; None for
        all rows or columns in order. Only a block is copied at a time.
    """

    matrix: NDArray[np.floating[Any]]
    query_of: Indices | None = None
    candidate_of: Indices | None = None

    @property
    def queries(self) -> int:
        """How many queries there are."""
        return len(self.matrix if self.query_of is None else self.query_of)

    @property
    def candidates(self) -> int:
        """How many candidates each is compared with."""
        return self.matrix.shape[1] if self.candidate_of is None else len(self.candidate_of)

    def rows(self, start: int, stop: int) -> NDArray[np.floating[Any]]:
        """Returns the scores of some queries."""
        chosen = slice(start, stop) if self.query_of is None else self.query_of[start:stop]
        scores = self.matrix[chosen]
        return scores if self.candidate_of is None else scores[:, self.candidate_of]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Truths:
    """The true candidates of each query: those of query q are index[start[q] : start[q + 1]].

    Attributes:
      start: offsets into `index` [queries + 1], from 0; each query has at least one.
      index: candidates, ascending within a query.
    """

    start: Indices
    index: Indices

    @classmethod
    def of_pairs(cls, queries: Indices, candidates: Indices, count: int) -> "Truths":
        """Returns the truths of `count` queries, from true (query, candidate) pairs."""
        order = np.lexsort([candidates, queries])
        sizes = np.bincount(queries, minlength=count)
        start = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return cls(start=start, index=candidates[order].astype(np.int64))
