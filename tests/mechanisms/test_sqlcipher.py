"""sqlcipher: as many pages in both arms, opened by its key only, visible on the pages; what stays unencrypted; a
passphrase's rounds."""

from __future__ import annotations

import json
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

import warm
from ciphercost.engines import StartRequest
from ciphercost.engines.sqlite import ENGINE
from ciphercost.host import supervisor
from ciphercost.host.volumes.volume import Volume
from ciphercost.load.agent import Agent
from ciphercost.mechanisms._rest import ArmAtRest, AtRestContext
from ciphercost.mechanisms.sqlcipher import (
    HMAC,
    ITERATIONS,
    KEY_FILE,
    LOCK_BYTE,
    MECHANISM,
    Tails,
    judge,
    tails,
    tails_in_wal,
)
from ciphercost.model import run_directory
from ciphercost.model.constrained_types import CANARY_TABLE
from ciphercost.model.errors import AgentError, UsageError
from ciphercost.model.secret import reveal
from ciphercost.model.spec import ARMS, Arm

CANARY = b"canary0123456789abcdef0123456789abcdef"
QUICK = {"kdf": "passphrase", "kdf_iter": "1000"}


@contextmanager
def arms(**factors: str) -> Iterator[dict[Arm, ArmAtRest]]:
    """Both files, filled in the same way by separate processes; some rows are only in the WAL."""
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor, ExitStack() as agents:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        rest = AtRestContext(ENGINE, ENGINE.find(), MECHANISM.check(factors), scratch / "secrets", run_supervisor)
        looks: dict[Arm, ArmAtRest] = {}
        for arm in ARMS:
            directory = scratch / arm
            ENGINE.initialise(rest.installation, directory, run_supervisor, MECHANISM.settings(arm, rest))
            server = ENGINE.start(
                StartRequest(rest.installation, directory, run_supervisor, settings=MECHANISM.settings(arm, rest))
            )
            fields = server.connection() | MECHANISM.connection(ENGINE, arm, rest.factors, rest.secrets)
            agent = agents.enter_context(Agent())
            agent.connect("look", fields)
            looks[arm] = ArmAtRest(arm, rest, Volume(directory, (directory,)), server, agent, "look", fields)
            looks[arm].query(f"CREATE TABLE {CANARY_TABLE} (word varchar(100))")
            looks[arm].query(f"INSERT INTO {CANARY_TABLE} VALUES ('{CANARY.decode()}')")
            looks[arm].query(
                "CREATE TABLE filling (n INTEGER PRIMARY KEY, t TEXT); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c "
                "WHERE n < 20000) INSERT INTO filling SELECT n, printf('%050d', n) FROM c; DELETE FROM filling WHERE n % 3 = 0"
            )
            looks[arm].query("PRAGMA wal_checkpoint(TRUNCATE)")
            looks[arm].query(f"INSERT INTO {CANARY_TABLE} VALUES ('{CANARY.decode()}')")
        yield looks


def path_of(look: ArmAtRest) -> Path:
    return Path(str(look.connect.path))


def wal_of(look: ArmAtRest) -> Path:
    return path_of(look).with_name(f"{path_of(look).name}-wal")


# ── the arms are what their names say ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "factors",
    [
        *({"hmac": setting} for setting in (*HMAC, "off")),
        {"page_size": "1024"},
        {"page_size": "65536"},
        QUICK,
    ],
    ids=lambda factors: " ".join(factors.values()),
)
def test_every_witness_speaks_for_its_own_arm_and_against_the_other_and_the_pages_are_as_many(
    factors: dict[str, str],
) -> None:
    with arms(**factors) as looks:
        for arm, look in looks.items():
            for witness in (MECHANISM.status, MECHANISM.structure):
                passed, detail = witness(look)
                assert passed, (arm, detail)
                other: Arm = "plain" if arm == "encrypted" else "encrypted"
                assert not witness(msgspec.structs.replace(look, arm=other))[0]
            assert (CANARY in path_of(look).read_bytes()) == (arm == "plain")
            assert (CANARY in wal_of(look).read_bytes()) == (arm == "plain")
        sizes = {arm: (path_of(look).stat().st_size, wal_of(look).stat().st_size) for arm, look in looks.items()}
        assert sizes["plain"] == sizes["encrypted"]
        page = int(factors.get("page_size", "4096"))
        assert tails(path_of(looks["plain"]), page).filled == 0
        assert tails_in_wal(wal_of(looks["plain"]), page) == Tails(filled=0, empty=1)
        assert tails_in_wal(wal_of(looks["encrypted"]), page) == Tails(filled=1, empty=0)
        assert tails(path_of(looks["encrypted"]), page).filled * page == sizes["plain"][0]


def test_the_file_opens_only_with_its_key() -> None:
    for factors in ({}, QUICK):
        with arms(**factors) as looks:
            passed, detail = MECHANISM.refuses(looks["encrypted"])
            assert passed, detail
            assert "without a key: " in detail
            assert "with another key: " in detail
            passed, detail = MECHANISM.refuses(looks["plain"])
            assert not passed, "an unencrypted file opens without a key"
            assert "without a key: it opens" in detail


def test_the_key_is_the_runs_own_and_only_its_owner_can_read_it() -> None:
    with arms() as looks:
        key = looks["plain"].rest.secrets / KEY_FILE
        assert key.stat().st_mode & 0o777 == 0o600
        assert reveal(looks["encrypted"].connect.key) == key.read_text()
        assert looks["plain"].connect.key is None


def test_both_arms_have_the_same_settings() -> None:
    with arms() as looks:
        settings = {
            arm: dict(msgspec.convert(look.query(ENGINE.variables), list[tuple[str, str]]))
            for arm, look in looks.items()
        }
        assert settings["plain"] == settings["encrypted"]
        assert settings["plain"]["temp_store"] == "2"
        assert settings["plain"]["journal_mode"] == "wal"
        for look in looks.values():
            assert look.query(ENGINE.home) == [[str(path_of(look))]]


def test_the_library_reports_what_encrypted() -> None:
    with arms(**QUICK, hmac="sha1") as looks:
        facts = MECHANISM.implementation(looks["encrypted"])
        assert facts["implementation"].startswith("OpenSSL 3")
        assert facts["sqlcipher"].startswith("4.")
        assert facts["hmac"] == "HMAC_SHA1"
        assert "1000 rounds" in facts["key_from"]
        assert facts["opening"].endswith(" ms")
        assert MECHANISM.implementation(looks["plain"]) == {}
    with arms(hmac="off") as looks:
        facts = MECHANISM.implementation(looks["encrypted"])
        assert (facts["hmac"], facts["key_from"]) == ("off", "raw")


@pytest.mark.parametrize(
    ("factors", "asked", "words"),
    [
        ({"hmac": "sha1"}, {}, "HMAC is HMAC_SHA1, but HMAC_SHA512 was requested"),
        ({}, {"hmac": "off"}, "HMAC is HMAC_SHA512, but off was requested"),
        ({"hmac": "off"}, {}, "HMAC is off, but HMAC_SHA512 was requested"),
        ({"page_size": "8192"}, {}, "cipher_page_size is 8192, but 4096 was requested"),
        (QUICK, {"kdf": "passphrase", "kdf_iter": "2000"}, "kdf_iter is 1000, but 2000 was requested"),
    ],
)
def test_a_file_with_other_settings_than_were_asked_for_fails_the_server_witness(
    factors: dict[str, str], asked: dict[str, str], words: str
) -> None:
    with arms(**factors) as looks:
        look = looks["encrypted"]
        assert MECHANISM.status(look)[0]
        other = msgspec.structs.replace(look.rest, factors=MECHANISM.check(asked))
        passed, detail = MECHANISM.status(msgspec.structs.replace(look, rest=other))
        assert not passed
        assert detail.endswith(words)


# ── witnesses that must fail ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_file_in_clear_in_the_place_of_the_encrypted_one_is_seen() -> None:
    """Encryption is switched off outside ciphercost."""
    with arms() as looks:
        look = looks["encrypted"]
        look.agent.disconnect("look")
        looks["plain"].query("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copyfile(path_of(looks["plain"]), path_of(look))
        assert not MECHANISM.structure(look)[0]
        passed, detail = MECHANISM.status(look)
        assert not passed
        assert "without a key: it opens" in detail


def test_a_page_written_with_another_key_is_detected() -> None:
    with arms() as looks:
        look = looks["encrypted"]
        assert MECHANISM.status(look)[0]
        with path_of(look).open("r+b") as file:
            file.seek(3 * 4096 + 100)
            file.write(b"\0\0\0\0")
        passed, detail = MECHANISM.status(look)
        assert not passed
        assert "HMAC verification failed for page 4" in detail


def test_a_mixture_of_pages_fits_neither_arm() -> None:
    none, some = Tails(0, 0), Tails(filled=1, empty=0)
    assert judge(False, Tails(9, 0), some, "encrypted")[0]
    assert not judge(False, Tails(9, 1), none, "encrypted")[0]
    assert not judge(False, Tails(9, 0), Tails(filled=1, empty=1), "encrypted")[0]
    assert not judge(True, Tails(9, 0), none, "encrypted")[0]
    assert judge(True, Tails(0, 9), Tails(0, 9), "plain")[0]
    assert not judge(True, Tails(1, 9), none, "plain")[0]
    assert not judge(True, Tails(0, 9), some, "plain")[0]
    assert not judge(True, none, none, "plain")[0]


def test_a_file_that_is_not_a_wal_is_named(tmp_path: Path) -> None:
    wal = tmp_path / "database.sqlite-wal"
    assert tails_in_wal(wal, 4096) == Tails(0, 0)
    wal.write_bytes(bytes(8192))
    with pytest.raises(ValueError, match="WAL"):
        tails_in_wal(wal, 4096)


# ── factors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_rounds_belong_to_a_passphrase() -> None:
    assert MECHANISM.check({"kdf": "passphrase"})["kdf_iter"] == ITERATIONS
    assert MECHANISM.check({})["kdf_iter"] == ""
    filled = MECHANISM.check(QUICK)
    assert MECHANISM.check(filled) == filled
    for wrong, words in (
        ({"kdf_iter": "1000"}, "applies only to a passphrase"),
        ({"kdf": "passphrase", "kdf_iter": "many"}, "not a number"),
        ({"kdf": "passphrase", "kdf_iter": "0"}, "not a number"),
    ):
        with pytest.raises(UsageError, match=words):
            MECHANISM.check(wrong)


def test_each_opening_costs_a_passphrases_rounds() -> None:
    """CPU time of the agent, which the rounds cost: 300 times as many are visible through any noise."""

    def spent(rounds: str) -> int:
        with arms(kdf="passphrase", kdf_iter=rounds) as looks:
            look = looks["encrypted"]
            clock = ~look.agent.pid << 3 | 2
            before = time.clock_gettime_ns(clock)
            look.agent.connect("again", look.connect)
            return time.clock_gettime_ns(clock) - before

    assert spent("300000") > 5 * spent("1000")


def test_rotation_encrypts_every_page_with_a_new_key() -> None:
    for factors in ({}, QUICK):
        with arms(**factors) as looks:
            look = looks["encrypted"]
            before = path_of(look).read_bytes()
            for statement in MECHANISM.rotate(look):
                look.query(statement)
            look.query("PRAGMA wal_checkpoint(TRUNCATE)")
            after = path_of(look).read_bytes()
            assert len(after) == len(before)
            assert not any(before[at : at + 4096] == after[at : at + 4096] for at in range(0, len(before), 4096))
            assert look.query(f"SELECT count(*) FROM {CANARY_TABLE}") == [["2"]]
            with pytest.raises(AgentError, match="not a database"):
                look.agent.connect("old", look.connect)


# ── temporary data ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_temporary_data_stays_in_memory_and_is_unencrypted_in_files() -> None:
    word = "canaryfedcba9876543210fedcba9876543210"
    with arms() as looks:
        for look in looks.values():
            for spill in ENGINE.spills(word):
                look.agent.connect("spill", look.connect)
                *first, last = spill.statements
                for statement in first:
                    look.agent.query("spill", statement)
                files = _seen_while(look, last, word.encode())
                if "files" in spill.name:  # they exist for less than a second
                    for _ in range(4):
                        files = files or _seen_while(look, last, word.encode())
                look.agent.disconnect("spill")
                assert bool(files) == ("files" in spill.name), (look.arm, spill.name)
                for name in files:
                    assert Path(name).match(ENGINE.temporary[0])
                    assert "temp_store=2" in MECHANISM.advice(name)


def _seen_while(look: ArmAtRest, statement: str, word: bytes) -> Counter[str]:
    """Count files that only the agent holds open and that contain the word, until the statement ends and once more
    after it."""
    hits: Counter[str] = Counter()
    with ThreadPoolExecutor(1) as other:
        running = other.submit(look.agent.query, "spill", statement)
        last = False
        while not last:
            last = running.done()
            for link in Path(f"/proc/{look.agent.pid}/fd").iterdir():
                try:
                    name = str(link.readlink())
                    hits[name] += link.read_bytes().count(word) if name.endswith(" (deleted)") else 0
                except OSError:
                    continue
            time.sleep(0.05)
        running.result()
    return +hits


def test_connect_measures_the_cpu_time_that_each_opening_takes(tmp_path: Path) -> None:
    """Each of its operations opens the file: 20,000 rounds cost a hundred times what opening the other file does."""
    argv = ["run", "sqlite:sqlcipher", "--workload", "connect", "--set", "kdf=passphrase", "--set", "kdf_iter=20000"]
    done = warm.run((*argv, "--quick", "--time", "6", "-o", "run", "--json", "run.json"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (cell,) = json.loads((tmp_path / "run.json").read_text())["cells"]
    assert all(cell["arms"][arm]["connects"] >= cell["arms"][arm]["operations"] > 0 for arm in ARMS)
    assert cell["overhead"]["client_cpu_per_op"]["low"] > 3
    assert "factor-not-shown" not in {warning["code"] for warning in cell["warnings"]}
    assert "time to open" not in done.stdout


@pytest.mark.parametrize("page", [16384, 65536])
def test_the_page_that_sqlite_uses_for_locks_counts_as_neither(page: int, tmp_path: Path) -> None:
    """In a file above 1 GiB it stays empty; everything else in this file is a hole too, up to the last page."""
    file = tmp_path / "large.sqlite"
    with file.open("wb") as opened:
        opened.truncate(LOCK_BYTE + 2 * page)
        opened.seek(LOCK_BYTE + 2 * page - 1)
        opened.write(b"\1")
    pages = LOCK_BYTE // page + 2
    assert tails(file, page) == Tails(filled=1, empty=pages - 2)
