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


def compare(
    asked: Sequence[str], answers: Mapping[Arm, Sequence[Sequence[Reply]]], places: Mapping[Arm, str]
) -> Verdict:
    """Compare both arms' pages. `asked`: by question, the request; `answers`: by question, each answer of the arm; `places`: each
    arm's own `host:port`, as its requests name it.
    """
    sizes: dict[Arm, list[int]] = {arm: [] for arm in ARMS}
    moves = addressed = False
    for number, request in enumerate(asked):
        pages = {arm: [_fields(answer) for answer in answers[arm][number]] for arm in ARMS}
        for column, title in LIKENED.items():
            values = {arm: {page[column] for page in pages[arm]} for arm in ARMS}
            if not values["plain"] & values["encrypted"]:
                plain, encrypted = (" or ".join(sorted(values[arm])) or "none" for arm in ARMS)
                return Verdict(f"{request}: {title} {plain} in the plain arm, {encrypted} in the encrypted arm")
        bodies = {arm: [_neutral(page["body"], places) for page in pages[arm]] for arm in ARMS}
        raw = {arm: {page["body"] for page in pages[arm]} for arm in ARMS}
        own_sizes = {
            arm: [
                int(page["length"]) - _bytes(page["body"]) + _bytes(body)
                for page, body in zip(pages[arm], bodies[arm], strict=True)
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
            sizes[arm] += [int(page["length"]) for page in pages[arm]]
    if moves:
        shown = ", ".join(f"{_range(sizes[arm])} {arm}" for arm in ARMS)
        return Verdict(
            remark="the page differs from one request to the next (a token, the time): status, content type and size were compared "
            f"instead of every byte ({shown})"
        )
    return (
        Verdict(remark="the page holds its own address, which differs between the arms; the rest of it is the same")
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
