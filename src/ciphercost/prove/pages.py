"""pages: compares two arms' answers to the same requests where the pages hold a token, a nonce, the time, or their own address. Pure.

Status, content type and encoding must be the same in both arms. A page that an arm returns the same each time must be the same in
both, but for the arm's own address in it. Of a page that differs from request to request the size is compared; how far the arms may
be apart follows from how far an arm's own answers are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ciphercost.load.agent_messages import Reply
from ciphercost.model.spec import ARMS, Arm
from ciphercost.prove.replies import Verdict

SPREADS = 2.0
"""How many times an arm's own spread the arms' mean sizes may differ by."""
SMALL, SHARE = 32, 0.005
"""Sizes may always differ by this many bytes, or by this share: a few answers show a small spread by chance."""
LIKENED = {"type": "content type", "encoding": "content encoding", "status": "status"}
"""Columns that must be the same, as messages name them."""
SAME_ADDRESS = "//the.server/"


def compare(asked: Sequence[str], found: Mapping[Arm, Sequence[Sequence[Reply]]], places: Mapping[Arm, str]) -> Verdict:
    """Compare both arms' pages. `asked`: by question, the request; `found`: by question, each answer of the arm; `places`: each
    arm's own `host:port`, as its requests name it.
    """
    sizes: dict[Arm, list[int]] = {arm: [] for arm in ARMS}
    moves = addressed = False
    for number, request in enumerate(asked):
        own = {arm: [_fields(each) for each in found[arm][number]] for arm in ARMS}
        for column, title in LIKENED.items():
            said = {arm: {each[column] for each in own[arm]} for arm in ARMS}
            if not said["plain"] & said["encrypted"]:
                plain, encrypted = (" or ".join(sorted(said[arm])) or "none" for arm in ARMS)
                return Verdict(f"{request}: {title} {plain} in the plain arm, {encrypted} in the encrypted arm")
        bodies = {arm: [_neutral(each["body"], places) for each in own[arm]] for arm in ARMS}
        raw = {arm: {each["body"] for each in own[arm]} for arm in ARMS}
        own_sizes = {
            arm: [
                int(each["length"]) - _bytes(each["body"]) + _bytes(body)
                for each, body in zip(own[arm], bodies[arm], strict=True)
            ]
            for arm in ARMS
        }
        if reason := _sizes_differ(own_sizes):
            return Verdict(f"{request}: {reason}")
        if all(len(set(bodies[arm])) == 1 for arm in ARMS):
            if bodies["plain"][0] != bodies["encrypted"][0]:
                return Verdict(f"{request}: the arms return different pages, each arm the same one every time")
            addressed |= raw["plain"] != raw["encrypted"]
            continue
        moves = True
        for arm in ARMS:
            sizes[arm] += [int(each["length"]) for each in own[arm]]
    if moves:
        shown = ", ".join(f"{_range(sizes[arm])} {arm}" for arm in ARMS)
        return Verdict(
            said="the page differs from one request to the next (a token, the time): status, content type and size were compared "
            f"instead of every byte ({shown})"
        )
    return (
        Verdict(said="the page holds its own address, which differs between the arms; the rest of it is the same")
        if addressed
        else Verdict()
    )


def _fields(reply: Reply) -> dict[str, str]:
    row = reply.rows[0] if reply.rows else []
    return {name: str(value or "") for name, value in zip(reply.columns, row, strict=False)}


def _neutral(body: str, places: Mapping[Arm, str]) -> str:
    """A page without what its own address differs by between the arms."""
    for scheme, place in zip(("http", "https"), (places[arm] for arm in ARMS), strict=True):
        for slashes in ("//", r"\/\/", "%2F%2F"):
            colon = "%3A" if slashes.startswith("%") else ":"
            address = place.replace(":", colon)
            body = body.replace(f"{scheme}{colon}{slashes}{address}", SAME_ADDRESS)
    for place in sorted({*places.values()}, key=len, reverse=True):
        body = body.replace(place, SAME_ADDRESS) if ":" in place else body
    return body


def _bytes(text: str) -> int:
    return len(text.encode())


def _sizes_differ(sizes: Mapping[Arm, Sequence[int]]) -> str:
    spread = max(max(sizes[arm]) - min(sizes[arm]) for arm in ARMS)
    plain, encrypted = (sum(sizes[arm]) / len(sizes[arm]) for arm in ARMS)
    if abs(plain - encrypted) <= max(SPREADS * spread, SMALL, SHARE * max(plain, encrypted)):
        return ""
    return (
        f"the page has {plain:,.0f} bytes in the plain arm and {encrypted:,.0f} in the encrypted arm, but within an arm its sizes differ "
        f"by {spread:,} at most"
    )


def _range(sizes: Sequence[int]) -> str:
    low, high = min(sizes), max(sizes)
    return f"{low:,}{f' to {high:,}' if high > low else ''} bytes"
