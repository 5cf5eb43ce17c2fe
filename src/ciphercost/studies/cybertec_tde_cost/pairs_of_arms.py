"""The study's pairs of arms: a server's own TDE with every key length it has, or what stands in for it, with 256 bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ciphercost import engines
from ciphercost.studies import tde_pairs
from ciphercost.studies.tde_pairs import Pair

FACTOR = {"cybertec-tde": "bits", "edb-tde": "bits", "pg-tde": "cipher"}
LENGTHS: Mapping[str, Mapping[int, str]] = {
    "cybertec-tde": {128: "128", 192: "192", 256: "256"},
    "edb-tde": {128: "128", 256: "256"},
    "pg-tde": {128: "aes_128", 256: "aes_256"},
}
"""By mechanism: how each key length is called."""


def pairs(given: Sequence[str], file_systems: Sequence[str]) -> list[Pair]:
    """One pair for each server and key length. Arguments and errors as in `tde_pairs.pairs`."""
    all_pairs = []
    for pair in tde_pairs.pairs(given, file_systems):
        if pair.mechanism not in LENGTHS:
            all_pairs.append(pair._replace(server=named(pair.server, tde_pairs.BITS)))
            continue
        longer = has_long_keys(pair)
        for bits, value in LENGTHS[pair.mechanism].items():
            if longer or bits == tde_pairs.SHORT_BITS:
                factors = {**pair.factors, FACTOR[pair.mechanism]: value}
                all_pairs.append(pair._replace(server=named(pair.server, bits), factors=factors))
    return all_pairs


def has_long_keys(pair: Pair) -> bool:
    """Whether the pair's server has keys of more than 128 bits. Raises MissingServer."""
    return tde_pairs.has_256(pair.mechanism, engines.get("postgresql").find(bindir=pair.bindir))


def named(server: str, bits: int) -> str:
    """`pgee 256-bit`: the user's name for a server, with the key length."""
    return f"{server} {bits}-bit".strip()


def bits_of(name: str) -> int:
    """The key length in a pair's name. Raises ValueError if it has none."""
    return int(next(word.removesuffix("-bit") for word in name.split() if word.endswith("-bit")))
