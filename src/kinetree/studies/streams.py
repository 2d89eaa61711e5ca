"""Random numbers by index: number i of a stream depends on the seed, the name of the stream and i alone.

Thus any part of a study can be computed anywhere, in any order, with the same bits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from ..algebra.arrays import Numbers

WORDS = 4
"""The number of 64-bit words that Philox makes from one value of its counter."""

ROUNDS = 8
"""The rounds of the Feistel network of a permutation: four make it pseudorandom, eight also for small counts."""


def key(seed: int, name: str) -> int:
    """Return the 128-bit key of a stream."""
    return int.from_bytes(hashlib.blake2b(f"{seed}\n{name}".encode(), digest_size=16).digest(), "little")


def uniforms(seed: int, name: str, start: int, stop: int) -> Numbers:
    """Return the numbers start to stop - 1 of a stream, uniform in the open interval (0, 1)."""
    from numpy.random import Philox

    first = start // WORDS
    raw = Philox(key=key(seed, name), counter=first).random_raw((-(-stop // WORDS) - first) * WORDS)
    return ((raw[start - first * WORDS : stop - first * WORDS] >> np.uint64(11)).astype(float) + 0.5) * 2.0**-53


def permuted(seed: int, name: str, indices: np.ndarray, count: int) -> np.ndarray:
    """Return the images of indices under a random permutation of 0 to count - 1, without a table of it.

    A Feistel network permutes the numbers of an even count of bits. Images beyond the count are permuted again until
    they are below it, which makes a permutation of the count.
    """
    half = np.uint64(max(1, -(-(count - 1).bit_length() // 2)))
    mask = np.uint64((1 << int(half)) - 1)
    keys = np.frombuffer(hashlib.blake2b(f"{seed}\n{name}".encode(), digest_size=8 * ROUNDS).digest(), dtype="<u8")
    out = np.asarray(indices).astype(np.uint64)
    beyond = np.ones(out.shape, dtype=bool)
    while beyond.any():
        left, right = out[beyond] >> half, out[beyond] & mask
        for one in keys:
            left, right = right, left ^ (_mixed(right ^ one) & mask)
        out[beyond] = (left << half) | right
        beyond = out >= count
    return out.astype(np.int64)


def sobol_points(seed: int, names: Sequence[str], start: int, stop: int) -> Numbers:
    """Return points of a scrambled Sobol sequence in the unit cube with an axis per name, [stop - start, names]."""
    from scipy.stats import qmc

    sequence = qmc.Sobol(len(names), scramble=True, rng=np.random.default_rng(key(seed, "\n".join(names))))
    if start:
        sequence.fast_forward(start)
        return sequence.random(stop - start)
    first = sequence.random(1)  # SciPy warns of a first request whose count is not a power of two
    return np.concatenate([first, sequence.random(stop - 1)]) if stop > 1 else first


def _mixed(x: np.ndarray) -> np.ndarray:
    """Return 64-bit numbers with their bits mixed (the last step of SplitMix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
