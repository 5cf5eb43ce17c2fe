"""RSA keys of two primes that are kept, since finding primes is most of what many tests would do: 0.06 s of CPU for a key of 2048 bits.

The first keys of each length are made as the product makes them, and their primes are kept below `.make`. Every further key is another pair
of these primes, in any process of the tests that called `use`: a key comes again only after all pairs, thousands of keys later. So
two authorities of a test never share a key. (A kept prime in several keys is no secret any more, which matters to no test.)
"""

from __future__ import annotations

import fcntl
from functools import partial
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import rsa

from ciphercost.host import pki

PLACE = Path(__file__).parents[2] / ".make" / "primes"
EXPONENT = 65537
KEPT = 60
"""Primes of each length: 1680 pairs."""
OWN = pki.CERTIFICATES
"""How the product makes its keys."""


def pair(number: int, count: int) -> tuple[int, int]:
    """The `number`th pair of `count` things, from the beginning again after the last; none of neighbours, which are
    one key as it was made. Pure.
    """
    step, first = divmod(number, count)
    return first, (first + 2 + step % ((count - 1) // 2 - 1)) % count


def key_of(p: int, q: int) -> rsa.RSAPrivateKey:
    d = pow(EXPONENT, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(EXPONENT, p * q)
    private = rsa.RSAPrivateNumbers(p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public)
    return private.private_key(unsafe_skip_rsa_key_validation=True)


def key(bits: int) -> rsa.RSAPrivateKey:
    """Another key than all of the last thousand."""
    PLACE.mkdir(parents=True, exist_ok=True)
    file, counter = PLACE / f"{bits}.txt", PLACE / f"{bits}.next"
    with (PLACE / f"{bits}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        primes = [int(each, 16) for each in file.read_text().split()] if file.exists() else []
        if len(primes) < KEPT:
            made = rsa.generate_private_key(EXPONENT, bits)
            numbers = made.private_numbers()
            new = file.with_suffix(".new")
            new.touch(mode=0o600)
            new.write_text("".join(f"{each:x}\n" for each in (*primes, numbers.p, numbers.q)))
            new.replace(file)
            return made
        number = int(counter.read_text() or 0) if counter.exists() else 0
        counter.write_text(str(number + 1))
    first, second = pair(number, len(primes))
    return key_of(primes[first], primes[second])


def use() -> None:
    """From now on, in this process and its forks."""
    pki.CERTIFICATES = {**OWN, **{f"rsa{bits}": partial(key, bits) for bits in pki.RSA_BITS}}
