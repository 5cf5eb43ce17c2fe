"""Which part of the CPU time a stack belongs to: by the rules, on stacks that perf recorded from real servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.estimate import profile_parts
from ciphercost.model.profile import SEPARATOR

STACKS = Path(__file__).with_name("profile_stacks.txt")
"""Lines `PART FRAME;FRAME;…`, outermost first: real stacks, and the part that a reader of their source gives them."""


def recorded() -> list[tuple[str, str]]:
    lines = (line for line in STACKS.read_text().splitlines() if line and not line.startswith("#"))
    return [(part, frames) for part, _, frames in (line.partition(" ") for line in lines)]


@pytest.mark.parametrize(("part", "frames"), recorded())
def test_a_recorded_stack_has_its_part(part: str, frames: str) -> None:
    assert profile_parts.part(frames.split(";")) == part


def test_every_part_that_rules_name_has_a_recorded_stack() -> None:
    named = {rule.part for rule in profile_parts.rules()}
    assert named <= {part for part, _ in recorded()}
    assert {"rest", "unresolved"} <= {part for part, _ in recorded()}


def test_the_innermost_known_frame_decides() -> None:
    outer = ["nginx`main", "nginx`ngx_ssl_write", "libssl.so.3`SSL_write"]
    assert profile_parts.part(outer) == "record"
    assert (
        profile_parts.part([*outer, "libssl.so.3`?", "libcrypto.so.3`EVP_EncryptUpdate", "libcrypto.so.3`?"])
        == "cipher"
    )
    assert (
        profile_parts.part([*outer, "libc.so.6`write", "kernel`do_syscall_64", "kernel`ksys_write", "kernel`x"])
        == "system-calls"
    )


def test_a_rule_about_callers_needs_one_of_them() -> None:
    hashed = ["libcrypto.so.3`EVP_DigestSignFinal", "libcrypto.so.3`?"]
    assert profile_parts.part(["nginx`main", "libssl.so.3`SSL_do_handshake", *hashed]) == "handshake"
    assert profile_parts.part(["postgres`scram_mock", *hashed]) == "rest"


def test_a_stack_without_a_name_is_not_resolved_and_never_the_rest() -> None:
    assert profile_parts.part(["libc.so.6`clone3", "libc.so.6`?", "agent`?"]) == "unresolved"
    assert profile_parts.part([]) == "unresolved"
    assert profile_parts.part(["agent`?", "agent`run"]) == "rest"


@given(st.lists(st.tuples(st.text(max_size=12), st.text(max_size=20)).map(SEPARATOR.join), max_size=6))
def test_every_stack_has_exactly_one_known_part(frames: list[str]) -> None:
    assert profile_parts.part(frames) in profile_parts.PARTS


@given(st.lists(st.sampled_from([line for _, line in recorded()]), min_size=1, max_size=1))
def test_a_library_without_any_name_never_gets_a_part_by_its_own(lines: list[str]) -> None:
    """Without symbols a frame says only its library; libssl alone is enough for the record layer, libcrypto for nothing."""
    frames = [f"{frame.partition(SEPARATOR)[0]}{SEPARATOR}?" for frame in lines[0].split(";")]
    assert profile_parts.part(frames) in ("unresolved", "record", "cipher", "system-calls", "handshake")
