"""Random numbers from a seed, hashes and a permutation: the same as the Rust agent's (agents/rust/src/draw.rs, program/expression/hashes.rs).

Integers here are unsigned, below 2⁶⁴, unless a name says otherwise.
"""

from __future__ import annotations

import math

MASK = 2**64 - 1
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def signed(number: int) -> int:
    """The same 64 bits as a signed integer."""
    number &= MASK
    return number - 2**64 if number >> 63 else number


class Random:
    """SplitMix64 (Steele, Lea, Flood 2014)."""

    __slots__ = ("_state",)

    def __init__(self, state: int) -> None:
        self._state = state & MASK

    def next(self) -> int:
        self._state = state = (self._state + 0x9E3779B97F4A7C15) & MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
        return state ^ (state >> 31)

    def share(self) -> float:
        """Uniform in [0, 1)."""
        return (self.next() >> 11) / 9007199254740992.0

    def exponential(self) -> float:
        """Exponential with mean 1: the gaps of a Poisson process of rate 1."""
        return -math.log(1.0 - self.share())

    def below(self, below: int) -> int:
        """Uniform in [0, below) without bias (Lemire 2019). 0 stands for 2⁶⁴."""
        if below == 0:
            return self.next()
        while True:
            product = self.next() * below
            low = product & MASK
            if low >= below or low >= (-below & MASK) % below:
                return product >> 64

    def letters(self, length: int) -> str:
        """So many random lower-case letters."""
        out: list[str] = []
        while len(out) < length:
            bits = self.next()
            for _ in range(min(8, length - len(out))):
                # The product's high half gives the letter, its low half the randomness of the next letter.
                product = bits * 26
                out.append(LETTERS[product >> 64])
                bits = product & MASK
        return "".join(out)


def of_operation(seed: int, number: int) -> Random:
    """The generator of one operation, independent of every other's and of the connection that runs it."""
    return Random(Random(seed).next() ^ Random(number * 0xD1B54A32D192ED03).next())


class Zipf:
    """Zipf's distribution over 1..=n by rejection-inversion (Hörmann and Derflinger 1996): constant time, no table."""

    def __init__(self, n: int, skew: float) -> None:
        self._n, self._skew = float(n), skew
        self._first = self._integral(1.5) - 1.0
        self._last = self._integral(self._n + 0.5)
        self._threshold = 2.0 - self._inverse(self._integral(2.5) - 2.0**-skew)

    def _integral(self, x: float) -> float:
        return (power(x, 1.0 - self._skew) - 1.0) / (1.0 - self._skew)

    def _inverse(self, x: float) -> float:
        return power(1.0 + x * (1.0 - self._skew), 1.0 / (1.0 - self._skew))

    def draw(self, random: Random) -> int:
        while True:
            u = self._last + random.share() * (self._first - self._last)
            x = self._inverse(u)
            if math.isinf(x):  # as a float that is above every rank
                rank = self._n
            else:
                whole = math.floor(x)
                rank = max(1.0, min(self._n, float(whole + 1 if x - whole >= 0.5 else whole)))
            if rank - x <= self._threshold or u >= self._integral(rank + 0.5) - power(rank, -self._skew):
                return int(rank)


def power(base: float, exponent: float) -> float:
    """C's `pow`, which has a value where Python's raises an exception."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ValueError:
        return math.copysign(math.inf, base) if base == 0 and exponent % 2 == 1 else math.inf if base == 0 else math.nan


# ── hashes ────────────────────────────────────────────────────────────────────────────────────────────────────────────

MURMUR = 0xC6A4A7935BD1E995


def murmur2(value: int, seed: int) -> int:
    """Appleby's MurmurHash2 for 64 bits (2008) of one number of eight bytes. Signed."""
    key = (value * MURMUR) & MASK
    key = ((key ^ (key >> 47)) * MURMUR) & MASK
    found = (seed ^ (MURMUR * 8)) & MASK
    found = ((found ^ key) * MURMUR) & MASK
    found = ((found ^ (found >> 47)) * MURMUR) & MASK
    return signed(found ^ (found >> 47))


def fnv1a(value: int, seed: int) -> int:
    """Fowler, Noll and Vo's hash 1a of the eight bytes of a number, the lowest first. Signed."""
    found = (0xCBF29CE484222325 ^ seed) & MASK
    for shift in range(0, 64, 8):
        found = ((found ^ ((value >> shift) & 0xFF)) * 0x100000001B3) & MASK
    return signed(found)


class Xoroshiro:
    """Blackman and Vigna's xoroshiro128** (2018), seeded by SplitMix64."""

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self._first, self._second = random.next(), random.next()

    def next(self) -> int:
        number = (_rotated((self._first * 5) & MASK, 7) * 9) & MASK
        mixed = self._first ^ self._second
        self._first = _rotated(self._first, 24) ^ mixed ^ ((mixed << 16) & MASK)
        self._second = _rotated(mixed, 37)
        return number

    def up_to(self, most: int) -> int:
        """Uniform from 0 to `most`, both included and above 0: draws as many bits as `most` has until the value fits."""
        while True:
            value = self.next() >> (64 - most.bit_length())
            if value <= most:
                return value


def _rotated(number: int, by: int) -> int:
    return ((number << by) | (number >> (64 - by))) & MASK


def permute(value: int, size: int, seed: int) -> int:
    """Where a number lands if those below `size`, which is above zero, are permuted, as in pgbench."""
    if size < 2:
        return 0
    random = Xoroshiro(seed)
    bits = size.bit_length() - 1
    mask = (1 << bits) - 1
    place = (value & MASK) % size
    for _ in range(6):
        factor, pattern = (random.next() & mask) | 1, random.next() & mask
        if place <= mask:
            place = _mixed(place, factor, pattern, bits)
        factor, pattern = (random.next() & mask) | 1, random.next() & mask
        from_end = size - 1 - place
        if from_end <= mask:
            place = size - 1 - _mixed(from_end, factor, pattern, bits)
        place = (place + random.up_to(size - 1)) % size
    return place


def _mixed(place: int, factor: int, pattern: int, bits: int) -> int:
    mask = (1 << bits) - 1
    mixed = ((place * factor) ^ pattern) & mask
    return ((mixed << 1) & mask) | (mixed >> (bits - 1))
