"""A pair names its arms; result.json calls them reference and compared, and reads back."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as some

from ciphercost.model import pair
from ciphercost.model.pair import Pair, PairArm

VERSIONS = Pair("versus", PairArm("TLS 1.2", {"version": "1.2"}), PairArm("TLS 1.3", {"version": "1.3"}))
KEYS = some.sampled_from(
    ["plain", "encrypted", "plain_slices", "encrypted_us", "arm", "x", "plainly", "explain", "mean"]
)
VALUES = some.recursive(
    some.sampled_from(["plain", "encrypted", "word", 1, 2.5, None]),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(some.dictionaries(some.sampled_from(["arms", "failures", "proofs"]), VALUES))
def test_what_is_written_is_read_back(fields: dict[str, Any]) -> None:
    known = {"cells": [{**fields, "pair": msgspec.to_builtins(VERSIONS)}, fields], "id": "plain"}
    written = pair.outward(known)
    assert pair.inward(written) == known
    assert written["cells"][1] == fields, "a cell with a plain arm stays as it is"


def test_no_key_of_a_pair_says_plain() -> None:
    cell = {
        "arms": {"plain": {"throughput": 1.0}, "encrypted": {}},
        "failures": {"plain": 1, "plain_slices": 2, "encrypted_slices": 3},
        "proofs": [{"arm": "plain", "detail": "plain words stay"}],
        "pair": msgspec.to_builtins(VERSIONS),
    }
    (written,) = pair.outward({"cells": [cell]})["cells"]
    assert written["arms"] == {"reference": {"throughput": 1.0}, "compared": {}}
    assert written["failures"] == {"reference": 1, "reference_slices": 2, "compared_slices": 3}
    assert written["proofs"] == [{"arm": "reference", "detail": "plain words stay"}]


@given(VALUES)
def test_what_is_no_result_is_left_to_its_reader(value: Any) -> None:
    assert pair.inward({"cells": value}) == {"cells": value} or isinstance(value, list)


def test_texts_call_the_arms_by_name() -> None:
    counted = VERSIONS.worded("2 encrypted, 0 plain; 51 plain and 49 encrypted requests; plain 117 to 163 a second")
    assert counted == "2 TLS 1.3, 0 TLS 1.2; 51 TLS 1.2 and 49 TLS 1.3 requests; TLS 1.2 117 to 163 a second"
    worded = VERSIONS.worded("2 of 3 plain slices and the encrypted arm's core; an unencrypted arm; plain words")
    assert worded == "2 of 3 TLS 1.2 slices and the TLS 1.3 arm's core; an unencrypted arm; plain words"
