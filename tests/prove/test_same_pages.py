"""Pages that differ from request to request, or that hold their own address: what of them must be the same in both arms."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ciphercost.load.agent_messages import Reply
from ciphercost.model.spec import Arm
from ciphercost.prove import pages
from ciphercost.prove.replies import Verdict

COLUMNS = ("status", "location", "server", "body", "length", "type", "encoding", "closes", "stretch")
PLACES: dict[Arm, str] = {"plain": "the.shop:8080", "encrypted": "the.shop:8443"}
LONG = "x" * 10_000


def reply(body: str, status: str = "200", kind: str = "text/html", encoding: str = "") -> Reply:
    return Reply(COLUMNS, [[status, "", "", body, str(len(body.encode())), kind, encoding, "", ""]])


def compared(plain: Sequence[Reply], encrypted: Sequence[Reply]) -> Verdict:
    return pages.compare(["GET /"], {"plain": [plain], "encrypted": [encrypted]}, PLACES)


def test_a_token_is_compared_by_its_size() -> None:
    verdict = compared([reply(f"{LONG}a1"), reply(f"{LONG}b2")], [reply(f"{LONG}c3"), reply(f"{LONG}d45")])
    assert not verdict.differs
    assert "differs from one request to the next" in verdict.note
    assert "10,002 bytes plain" in verdict.note
    assert "10,002 to 10,003 bytes encrypted" in verdict.note


@pytest.mark.parametrize("slashes", ["://", r":\/\/", "%3A%2F%2F"])
def test_a_pages_own_address_is_no_difference(slashes: str) -> None:
    def page(arm: Arm, scheme: str) -> Reply:
        place = PLACES[arm].replace(":", "%3A") if "%" in slashes else PLACES[arm]
        return reply(f"{scheme}{slashes}{place}/ " * 300 + f"Host {PLACES[arm]}")

    verdict = compared([page("plain", "http")] * 2, [page("encrypted", "https")] * 2)
    assert (verdict.differs, "holds its own address" in verdict.note) == ("", True)


def test_an_own_spread_widens_the_tolerance() -> None:
    def sizes(*lengths: int) -> list[Reply]:
        return [reply("y" * length) for length in lengths]

    assert not compared(sizes(1000, 1400), sizes(1500, 1900)).differs
    verdict = compared(sizes(1000, 1001), sizes(1500, 1501))
    assert "1,000 bytes in the plain arm" in verdict.differs
    assert "1,500 in the encrypted arm" in verdict.differs
    assert "its sizes differ by 1 at most" in verdict.differs


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (reply("a", status="204"), "status 200 in the plain arm, 204 in the encrypted arm"),
        (reply("a", kind="application/json"), "content type text/html in the plain arm, application/json"),
        (reply("a", encoding="gzip"), "content encoding none in the plain arm, gzip in the encrypted arm"),
        (reply("b"), "different pages, each arm the same one every time"),
    ],
)
def test_what_must_be_the_same(other: Reply, words: str) -> None:
    assert words in compared([reply("a")] * 2, [other] * 2).differs
