"""`--csv FILE --secret …` on real servers with every mechanism in columns: the same rows in both arms, every operation, the blind
index, and what the stored values reveal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from ciphercost.host import canary_scan
from ciphercost.load import tables
from ciphercost.load.program import Program
from ciphercost.load.tables.columns import NULL
from ciphercost.load.tables.transactions import TABLE
from ciphercost.mechanisms import _blind
from ciphercost.mechanisms._column import Columns
from ciphercost.model.errors import AgentError
from ciphercost.model.slices import AgentSlice, Finding
from ciphercost.model.spec import ARMS, Arm
from ciphercost.prove import secret_rows
from ciphercost.provision.columns import Secrets
from test_in_columns import SERVERS, ServerWithArms, both_arms, get

__all__ = ["both_arms"]

PATIENTS = Path(__file__).parent.parent / "cases" / "rows" / "patients.csv"
SECRET = ("ssn", "weight", "diagnosis")
"""`weight` is a number with an empty value; `diagnosis` has a line break."""
OPERATIONS = 8


def cases(server: ServerWithArms) -> Iterator[tuple[str, Columns, dict[str, str]]]:
    """Every mechanism of the server, also in the application, with a blind index too where it can have one."""
    client = get("client-aes-gcm-256")
    for name, mechanism, factors in [*server.cases, ("client", client, client.check({}))]:
        if mechanism.key_bytes != 32 and not server.version.startswith("10."):
            continue  # one key length will do; that version has but one
        yield name, mechanism, factors
        # One key length will do.
        if mechanism.key_bytes == 32 and (factors.get("iv") == "random" or mechanism.name in ("pgp-sym", client.name)):
            yield f"{name} blind", mechanism, mechanism.check({**given(factors), "search": "blind-index", "bits": "16"})


def given(factors: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in factors.items() if name == "iv"}


def program_of(
    server: ServerWithArms, sealing: Secrets, workload: str, path: Path = PATIENTS, secret: Sequence[str] = SECRET
) -> Program:
    return tables.program(path, workload, server.engine.dialect, secret=secret, codec=sealing.codec)


def fill(server: ServerWithArms, program: Program) -> None:
    for arm in ARMS:
        server.drop(arm, TABLE)
        for step in program.tables(arm).load:
            server.agent.query(arm, step.sql)


def check(server: ServerWithArms, program: Program, arm: Arm) -> list[list[str | None]]:
    arm_tables = program.tables(arm)
    return arm_tables.read(server.agent.query(arm, arm_tables.check))


def run(server: ServerWithArms, program: Program) -> dict[Arm, AgentSlice]:
    server.agent.program(program)
    return {arm: server.agent.slice(arm, 60, discard=0.0, seed=1, operations=OPERATIONS) for arm in ARMS}


def test_every_operation_runs_on_the_same_rows_in_both_arms(both_arms: ServerWithArms) -> None:
    for name, mechanism, factors in cases(both_arms):
        sealing = both_arms.sealing(mechanism, factors)
        # Those that only read come first.
        for workload in ("point-select", "search", "insert", "update", "delete", "mixed-crud"):
            program = program_of(both_arms, sealing, workload)
            if workload == "point-select":
                fill(both_arms, program)
                assert check(both_arms, program, "plain") == check(both_arms, program, "encrypted"), name
            done = run(both_arms, program)
            assert [answer.first_error for answer in done.values()] == ["", ""], (name, workload)
            if program.read_only:
                assert done["plain"].rows >= OPERATIONS, (name, workload)
                assert done["plain"].rows == done["encrypted"].rows, (name, workload)
                assert done["plain"].checksum == done["encrypted"].checksum, (name, workload)


def test_a_text_that_is_missing_stays_null(both_arms: ServerWithArms, tmp_path: Path) -> None:
    """Other than an empty one."""
    path = tmp_path / "rows.csv"
    path.write_text(f"id,note\n1,{NULL}\n2,\n3,some text\n")
    for name, mechanism, factors in cases(both_arms):
        program = program_of(both_arms, both_arms.sealing(mechanism, factors), "point-select", path, ["note"])
        fill(both_arms, program)
        assert check(both_arms, program, "plain") == check(both_arms, program, "encrypted"), name
        (note,) = program.secrets
        for arm in ARMS:
            counted = both_arms.agent.query(arm, f"SELECT count(*), count({note.name}) FROM {TABLE}")
            assert counted == [["3", "2"]], (name, arm)


def test_each_value_is_stored_sealed_and_its_entry_is_the_hmac_of_it(both_arms: ServerWithArms) -> None:
    for name, mechanism, factors in cases(both_arms):
        if "blind" not in name:
            continue
        sealing = both_arms.sealing(mechanism, factors)
        program = program_of(both_arms, sealing, "point-select")
        fill(both_arms, program)
        codec = sealing.codec
        [ssn] = [column for column in program.secrets if column.title == "ssn"]
        asked = f"SELECT {codec.hex(ssn.name)}, {codec.hex(ssn.blind)} FROM {TABLE} ORDER BY ciphercost_id"
        rows = both_arms.agent.query("encrypted", asked)
        texts = [
            str(row[0])
            for row in both_arms.agent.query("plain", f"SELECT {ssn.name} FROM {TABLE} ORDER BY ciphercost_id")
        ]
        assert texts[0] == "001234567"
        key = bytes.fromhex(sealing.key.reveal())
        assert [str(row[1]).lower() for row in rows] == [
            _blind.entry(key, text.encode(), 16).hex() for text in texts
        ], name
        assert not [
            text for text, row in zip(texts, rows, strict=True) if text.encode().hex() in str(row[0]).lower()
        ], name


def test_entries_that_collide_are_told_apart_by_decrypting(both_arms: ServerWithArms, tmp_path: Path) -> None:
    """Eight bits cannot tell 600 values apart."""
    path = tmp_path / "many.csv"
    path.write_text("n,name\n" + "".join(f"{n},name {n % 600}\n" for n in range(1200)))
    mechanism, factors = both_arms.some()
    client = get("client-aes-gcm-256")
    ways = [(client, client.check({"search": "blind-index", "bits": "8"}))]
    if factors.get("iv") == "random":
        ways.append((mechanism, mechanism.check({"search": "blind-index", "bits": "8"})))
    for way, way_factors in ways:
        sealing = both_arms.sealing(way, way_factors)
        program = program_of(both_arms, sealing, "search", path, ["name"])
        fill(both_arms, program)
        done = run(both_arms, program)
        assert {answer.rows for answer in done.values()} == {2 * OPERATIONS}, way.name
        assert done["plain"].checksum == done["encrypted"].checksum
        if way is client:
            assert done["encrypted"].opened > 2 * OPERATIONS  # rows with another value were opened too
        codes = {finding.code for finding in revealed(both_arms, sealing, program)}
        assert codes >= {"blind-index-shows", "blind-index-collides"}
        assert "equal-rows-show" not in codes


def revealed(server: ServerWithArms, sealing: Secrets, program: Program) -> list[Finding]:
    views = {arm: server.arm_view(sealing, canary_scan.canary(), arm) for arm in ARMS}
    return secret_rows.findings(views["plain"], views["encrypted"], program.secrets)


def test_what_is_revealed_fits_the_mechanism_and_shows_no_value(both_arms: ServerWithArms, tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    long = "a long beginning that is the same for all "
    path.write_text("n,name,code,note\n" + "".join(f"{n},{'x' * (n % 40)},{n % 5:03},{long}{n}\n" for n in range(60)))
    mechanism, factors = both_arms.some()
    fixed = {"iv": "fixed"} if "iv" in factors else {}
    for wanted, way_factors in ((True, mechanism.check(fixed)), (False, mechanism.check({}))):
        if not fixed and not wanted:
            continue  # ECB alone: equal values always show
        sealing = both_arms.sealing(mechanism, way_factors)
        program = program_of(both_arms, sealing, "point-select", path, ["name", "code", "note"])
        fill(both_arms, program)
        found = revealed(both_arms, sealing, program)
        codes = {(finding.code, finding.text.split(":")[0]) for finding in found}
        assert ("length-shows", "column name") in codes
        assert (("equal-rows-show", "column code") in codes) == wanted
        assert (("beginnings-show", "column note") in codes) == wanted
        assert not [finding for finding in found if "long beginning" in finding.text or "004" in finding.text]


def test_a_changed_value_fails_the_check_without_being_shown(both_arms: ServerWithArms) -> None:
    mechanism, factors = both_arms.some()
    sealing = both_arms.sealing(mechanism, factors)
    program = program_of(both_arms, sealing, "search")
    fill(both_arms, program)
    [ssn] = [column for column in program.secrets if column.title == "ssn"]
    changed = sealing.codec.seal("'999999999'", 9)
    both_arms.agent.query("encrypted", f"UPDATE {TABLE} SET {ssn.name} = {changed} WHERE ciphercost_id = 1")
    assert check(both_arms, program, "plain") != check(both_arms, program, "encrypted")


# MariaDB 10.11 has ECB alone, which has no blind index.
@pytest.mark.parametrize("both_arms", [name for name in SERVERS if name != "mariadb@10.11"], indirect=True)
def test_a_message_shows_no_key_of_a_blind_index(both_arms: ServerWithArms) -> None:
    mechanism, factors = both_arms.some()
    sealing = both_arms.sealing(mechanism, mechanism.check({"search": "blind-index"}))
    blind = sealing.codec.blind
    assert blind is not None
    with pytest.raises(AgentError) as caught:
        both_arms.ask(f"SELECT {blind.of('no_such_column', 20)} FROM nothing_of_that_name")
    for part in _blind.hidden(bytes.fromhex(sealing.key.reveal())):
        assert part.hex()[:12] not in str(caught.value).lower()
    assert msgspec.json.encode(factors)
