"""column_checks: Are the columns encrypted, and what do they give away? The server and the disk are asked. I/O."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import msgspec

from ciphercost.engines.capabilities.own_schema import OwnSchema
from ciphercost.engines.capabilities.storage import StoresData
from ciphercost.host import canary_scan
from ciphercost.mechanisms._column import IV
from ciphercost.model.errors import AgentError
from ciphercost.model.slices import Finding, Severity
from ciphercost.prove import leakage
from ciphercost.provision.columns import FLIPS, LENGTH, SHOWN, Sight, rows, schema_name, word


def server(sight: Sight) -> tuple[bool, str]:
    """The row comes back with the right key, and does not with a wrong one."""
    secrets, wanted = sight.secrets, word(sight.canary, sight.arm)
    try:
        found = sight.text(secrets.of(sight.arm))
    except AgentError as error:
        return False, f"the canary row does not come back: {error}"
    if found != wanted:
        return False, f"the canary row does not come back: {str(found)[:60]}"
    if sight.arm == "plain":
        return True, "the canary row comes back as it was written"
    stored = sight.ask(secrets.codec.hex("word"))
    if not stored or wanted.encode().hex() in stored.lower():
        return False, f"the canary stands in the column in clear: {str(stored)[:60]}"
    # By the very expression that the other key is tried with: else that it gives nothing would prove nothing.
    control = sight.opened(secrets.codec)
    if control is None or bytes.fromhex(control) != wanted.encode():
        return False, f"the canary's bytes do not come back with their own key: {str(control)[:60]}"
    try:
        other = sight.opened(secrets.wrong)
    except AgentError as error:
        if sight.text(secrets.codec) != wanted:  # the connection may be what is gone
            return False, f"the canary row does not come back a second time, after: {error}"
        return True, f"the canary row comes back with its key; with another: {error}"
    if other is not None and bytes.fromhex(other) == wanted.encode():
        return False, "the canary row comes back with another key too"
    instead = "nothing" if other is None else "other bytes"
    return True, f"the canary row comes back with its key, and {instead} with another; {len(stored) // 2} bytes stored"


def disk(sight: Sight) -> tuple[bool, str]:
    """The server's files hold the canary of the plain arm, and not that of the encrypted one."""
    if not sight.places:
        found = sight.ask("word") if sight.arm == "plain" else sight.ask(sight.secrets.codec.hex("word"))
        clear = word(sight.canary, sight.arm)
        seen = bool(found) and (clear in str(found) or clear.encode().hex() in str(found).lower())
        where = "the server's files can't be seen from here; as it is stored, by the server's own word, the value "
        return seen == (sight.arm == "plain"), where + ("is in clear" if seen else "is not in clear")
    found_ = canary_scan.search(canary_scan.below(sight.places), word(sight.canary, sight.arm))
    if not found_.size:
        return False, "no bytes seen: the witness looked at nothing"
    names = ", ".join(list(found_.hits)[:SHOWN])
    if found_.hits:
        return sight.arm == "plain", f"the canary is in {names} ({found_})"
    return sight.arm == "encrypted", f"the canary is in none of {found_}"


def findings(sight: Sight) -> list[Finding]:
    """What the stored bytes of the encrypted arm give away, each seen and counted. Raises AgentError."""
    codec, texts = sight.secrets.codec, rows(sight.canary, "encrypted")
    found = written_keys(sight)
    stored = {number: bytes.fromhex(str(sight.ask(codec.hex("word"), number))) for number in texts}
    iv = "iv=random, which stores an IV of its own with each value"
    if IV not in sight.secrets.mechanism.factors:
        iv = f"a mode that has an IV, with {iv}"
    found += leakage.findings({number: text.encode() for number, text in texts.items()}, stored, iv)
    if not notices(sight, stored[1]):
        found.append(leakage.UNAUTHENTICATED)
    return found


def written_keys(sight: Sight) -> list[Finding]:
    """Where the key, which stands in every statement, is written down: in the server's files, or in logs that it says it keeps."""
    secrets = sight.secrets
    key = secrets.key.hex()
    if key not in secrets.codec.seal("''", LENGTH):
        return []
    found = []
    if isinstance(secrets.engine, StoresData) and (logs := secrets.engine.statement_logs):
        for what, closes, severity in sight.agent.query(sight.name, logs):
            text = f"the server writes down {what}: with the key that stands in it"
            found.append(Finding("key-in-log", msgspec.convert(severity, Severity), text, str(closes)))
    if hits := canary_scan.search(canary_scan.below(sight.places), key).hits:
        text = f"the key lies in clear in the server's files: {', '.join(list(hits)[:SHOWN])}"
        found.append(Finding("key-in-files", "high", text, "what makes the server write statements down"))
    return found


def notices(sight: Sight, stored: bytes) -> bool:
    """Whether a stored value that was changed is refused, wherever it was changed. Raises AgentError where not even the unchanged one opens."""
    codec = sight.secrets.codec
    if not sight.opened(codec, stored):
        raise AgentError(
            "a stored value that nobody changed does not open, so it can't be told what a changed one does", "statement"
        )
    for at in range(0, len(stored), max(1, len(stored) // FLIPS)):
        changed = bytearray(stored)
        changed[at] ^= 1
        text = None
        with contextlib.suppress(AgentError):
            text = sight.opened(codec, bytes(changed))
        if text is not None:
            return False
    return True


def sizes(sights: Iterable[Sight]) -> dict[str, dict[str, int]]:
    """Bytes of each arm's tables and indexes, as the server counts them or its files show them."""
    found: dict[str, dict[str, int]] = {}
    for sight in sights:
        engine = sight.secrets.engine
        if not isinstance(engine, OwnSchema):
            continue
        if engine.sizes:
            tables, indexes = (int(each or 0) for each in sight.agent.query(sight.name, engine.sizes)[0][:2])
        elif sight.places and (counted := engine.stored_bytes(sight.places[0], schema_name(sight.arm))):
            tables, indexes = counted
        else:
            continue
        found[sight.arm] = {"table_bytes": tables, "index_bytes": indexes}
    return found
