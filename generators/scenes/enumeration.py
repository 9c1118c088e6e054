"""Enumerates a finite set in a pseudorandom order, without storing what it visited."""

import hashlib

ROUNDS = 4


def permuted(index: int, size: int, key: int) -> int:
    """Returns the image of an index under a permutation of 0 ... size - 1 chosen by the key.

    Any index can be asked for alone. It is a Feistel network over the next power of four, walked
    until it lands inside the range (Black and Rogaway, Ciphers with Arbitrary Finite Domains).

    Raises:
      ValueError: the index is not in the range.
    """
    if not 0 <= index < size:
        raise ValueError(f"{index} is not in the range of {size}")
    half = max((size - 1).bit_length() + 1, 2) // 2
    while True:
        index = _network(index, half, key)
        if index < size:
            return index


def _network(value: int, half: int, key: int) -> int:
    mask = (1 << half) - 1
    left, right = value >> half, value & mask
    for number in range(ROUNDS):
        left, right = right, left ^ (_mix(right, number, key) & mask)
    return left << half | right


def _mix(value: int, number: int, key: int) -> int:
    text = f"{key}/{number}/{value}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")
