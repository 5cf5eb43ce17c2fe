"""firebird-crypt: switched on, waited for, visible on the pages, refused without its key; and what it leaves
unencrypted."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path

import msgspec
import pytest

from ciphercost.engines import StartRequest
from ciphercost.engines.firebird import ENGINE, FILE
from ciphercost.host import supervisor
from ciphercost.host.installation import Installation
from ciphercost.host.volumes.volume import Volume
from ciphercost.load.agent import Agent
from ciphercost.mechanisms._rest import ArmAtRest, AtRestContext
from ciphercost.mechanisms.firebird_crypt import KEY_FILE, MECHANISM, Pages, judge, pages_of, state
from ciphercost.model import run_directory
from ciphercost.model.constrained_types import CANARY_TABLE
from ciphercost.model.errors import AgentError, MissingServer
from ciphercost.model.spec import ARMS, Arm

CANARY = "canary0123456789abcdef0123456789abcdef"
TRIES = 20
"""A busy machine may look at a file of a short statement only when it is gone."""


class Arms(msgspec.Struct):
    """Two roots created in the same way; one database is encrypted."""

    rest: AtRestContext
    directories: dict[Arm, Path]

    @contextmanager
    def look(self, arm: Arm) -> Iterator[ArmAtRest]:
        """Start the arm's server as a run would, with one connection."""
        rest, directory = self.rest, self.directories[arm]
        server = ENGINE.start(
            StartRequest(
                rest.installation,
                directory,
                rest.supervisor,
                settings=MECHANISM.settings(arm, rest),
                logs=directory.parent,
            )
        )
        try:
            with Agent() as agent:
                fields = server.connection()
                agent.connect("look", fields)
                yield ArmAtRest(arm, rest, Volume(directory, (directory,)), server, agent, "look", fields)
        finally:
            server.stop()


@pytest.fixture(scope="module")
def installation(require_server: Callable[[str], Installation]) -> Installation:
    return require_server("firebird")


@pytest.fixture(scope="module")
def arms(installation: Installation) -> Iterator[Arms]:
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        secrets = scratch / "secrets"
        rest = AtRestContext(ENGINE, installation, MECHANISM.check({}), secrets, run_supervisor)
        filled = Arms(rest, {arm: scratch / arm for arm in ARMS})
        for arm in ARMS:
            ENGINE.initialise(
                MECHANISM.prepare(rest), filled.directories[arm], run_supervisor, MECHANISM.settings(arm, rest)
            )
            MECHANISM.write_cluster_files(arm, filled.directories[arm], rest)
            with filled.look(arm) as look:
                MECHANISM.encrypt(look)
                MECHANISM.settled(look)
            with filled.look(arm) as look:
                look.query(f"CREATE TABLE {CANARY_TABLE} (word varchar(100))")
                look.query(f"INSERT INTO {CANARY_TABLE} VALUES ('{CANARY}')")
                look.query("CREATE TABLE filling (n INT, t VARCHAR(2000))")
                look.query(
                    "INSERT INTO filling SELECT FIRST 6000 A.RDB$TYPE, RPAD(A.RDB$TYPE_NAME, 2000, UUID_TO_CHAR(GEN_UUID())) "
                    "FROM RDB$TYPES A CROSS JOIN RDB$TYPES B"
                )
                MECHANISM.settled(look)
        yield filled


# ── the arms are what their names say ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("arm", ARMS)
def test_server_and_pages_say_what_the_arms_name_says_and_refuse_the_others(arms: Arms, arm: Arm) -> None:
    with arms.look(arm) as look:
        assert MECHANISM.status(look)[0], MECHANISM.status(look)
        assert MECHANISM.structure(look)[0], MECHANISM.structure(look)
        other = msgspec.structs.replace(look, arm="plain" if arm == "encrypted" else "encrypted")
        assert not MECHANISM.status(other)[0]
        assert not MECHANISM.structure(other)[0]
        assert look.query(f"SELECT word FROM {CANARY_TABLE}") == [[CANARY]]


def test_the_canary_is_readable_in_one_file_and_behind_xor_in_the_other(arms: Arms) -> None:
    key = int((arms.rest.secrets / KEY_FILE).read_text())
    plain, encrypted = ((arms.directories[arm] / FILE).read_bytes() for arm in ARMS)
    hidden = bytes(byte ^ key for byte in CANARY.encode())
    assert (plain.count(CANARY.encode()), plain.count(hidden)) == (1, 0)
    assert (encrypted.count(CANARY.encode()), encrypted.count(hidden)) == (0, 1)
    with arms.look("encrypted") as look:
        assert f"makes the first row readable {1} times" in MECHANISM.structure(look)[1]


def test_the_arms_differ_only_in_the_databases_state(arms: Arms) -> None:
    settings: dict[Arm, dict[str, str | None]] = {}
    for arm in ARMS:
        with arms.look(arm) as look:
            settings[arm] = {str(name): value for name, value in look.query(ENGINE.variables)}
            assert look.query(ENGINE.home) == [[str(arms.directories[arm] / FILE)]]
    names = {name for name in settings["plain"] if settings["plain"][name] != settings["encrypted"][name]}
    names = {name for name in names if not any(fnmatch(name, pattern) for pattern in ENGINE.unlike)}
    assert names == {"MON$CRYPT_STATE"}
    assert settings["plain"]["KeyHolderPlugin"] == "fbSampleKeyHolder"
    assert settings["plain"]["MON$FORCED_WRITES"] == "1"


def test_both_files_are_of_the_same_size(arms: Arms) -> None:
    plain, encrypted = (pages_of(arms.directories[arm] / FILE) for arm in ARMS)
    assert abs(plain.clear - encrypted.encrypted) <= 0.02 * plain.clear


def test_the_result_states_that_this_is_no_cryptography(arms: Arms) -> None:
    assert "XOR with one byte" in MECHANISM.title
    assert MECHANISM.protects.startswith("nothing")
    with arms.look("encrypted") as look:
        facts = MECHANISM.implementation(look)
    assert facts["cipher"] == "XOR with one byte"
    assert "not of cryptography" in facts["warning"]
    (finding,) = MECHANISM.findings(arms.rest)
    assert finding.severity == "high"


# ── witnesses that must fail ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_running_conversion_is_refused_and_so_is_its_result(arms: Arms) -> None:
    """Encryption is switched off outside ciphercost, and on where it should be off."""
    with arms.look("plain") as look:
        for statement, converting, ends_in in (
            ('ALTER DATABASE ENCRYPT WITH "fbSampleDbCrypt"', 3, 1),
            ("ALTER DATABASE DECRYPT", 2, 0),
        ):
            for _ in range(5):  # on a machine that stalls, the conversion may be over before the question
                look.query(statement)
                now = state(look)[0]
                verdicts = [MECHANISM.status(msgspec.structs.replace(look, arm=arm)) for arm in ARMS]
                if now == state(look)[0] == converting:
                    break
                look.query(
                    'ALTER DATABASE ENCRYPT WITH "fbSampleDbCrypt"' if ends_in == 0 else "ALTER DATABASE DECRYPT"
                )
                MECHANISM.settled(look)
            assert now == converting, "the data is too small: the conversion was over at once"
            assert all(not passed and "being" in detail for passed, detail in verdicts)
            MECHANISM.settled(look)
            assert state(look)[0] == ends_in
            assert MECHANISM.status(look)[0] == (ends_in == 0)


def test_a_page_of_the_other_kind_is_detected() -> None:
    assert judge(Pages(flagged=True, plugin=True, encrypted=9, clear=0), "encrypted")[0]
    assert not judge(Pages(flagged=True, plugin=True, encrypted=9, clear=1), "encrypted")[0]
    assert not judge(Pages(flagged=False, plugin=True, encrypted=9, clear=0), "encrypted")[0]
    assert not judge(Pages(flagged=True, plugin=False, encrypted=9, clear=0), "encrypted")[0]
    assert not judge(Pages(flagged=True, plugin=True, encrypted=0, clear=0), "encrypted")[0]
    assert judge(Pages(flagged=False, plugin=False, encrypted=0, clear=9), "plain")[0]
    assert not judge(Pages(flagged=False, plugin=False, encrypted=1, clear=9), "plain")[0]
    assert not judge(Pages(flagged=False, plugin=False, encrypted=0, clear=0), "plain")[0]


def test_a_file_that_is_not_a_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_bytes(bytes(9000))
    with pytest.raises(ValueError, match="not a header page"):
        pages_of(path)


def test_a_server_without_the_sample_plugins_is_named(arms: Arms, tmp_path: Path) -> None:
    elsewhere = Installation("firebird", "4.0.9", "path", str(tmp_path / "bin"))
    with pytest.raises(MissingServer, match="lacks its sample plugin fbSampleDbCrypt"):
        MECHANISM.prepare(msgspec.structs.replace(arms.rest, installation=elsewhere))


# ── its key ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("which", MECHANISM.key_states)
def test_the_database_opens_only_with_its_own_key(arms: Arms, which: str) -> None:
    directory = arms.directories["encrypted"]
    key = arms.rest.secrets / KEY_FILE
    before = key.read_text()
    assert key.stat().st_mode & 0o777 == 0o600
    with MECHANISM.key_taken(which, arms.rest, directory):  # type: ignore[arg-type]
        assert key.read_text() != before
        words = {"missing": "its key is missing; plugin fbSampleDbCrypt", "wrong": "another key"}[which]
        with pytest.raises(AgentError, match=words), arms.look("encrypted") as look:
            look.query(f"SELECT word FROM {CANARY_TABLE}")
        with arms.look("plain") as look:
            assert look.query(f"SELECT word FROM {CANARY_TABLE}") == [[CANARY]]
    assert key.read_text() == before
    assert (directory / "plugins.conf").stat().st_mode & 0o777 == 0o600
    with arms.look("encrypted") as look:
        assert look.query(f"SELECT word FROM {CANARY_TABLE}") == [[CANARY]]


# ── temporary data ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("arm", ARMS)
def test_temporary_tables_are_encrypted_but_sorts_are_not(arms: Arms, arm: Arm) -> None:
    """Both lie in unlinked files."""
    word = "canaryfedcba9876543210fedcba9876543210"
    key = int((arms.rest.secrets / KEY_FILE).read_text())
    hidden = bytes(byte ^ key for byte in word.encode())
    with arms.look(arm) as look:
        for spill in ENGINE.spills(word):
            wanted = word.encode() if arm == "plain" or spill.name == "sort" else hidden
            hits: set[tuple[str, bytes]] = set()
            for _ in range(TRIES):
                *first, last = spill.statements
                for statement in first:
                    look.query(statement)
                hits |= _seen_while(look, last, [word.encode(), hidden])
                if wanted in {hit for _, hit in hits}:
                    break
            in_clear, behind = ({name for name, hit in hits if hit == one} for one in (word.encode(), hidden))
            assert bool(in_clear) == (arm == "plain" or spill.name == "sort"), spill.name
            assert bool(behind) == (arm == "encrypted" and spill.name != "sort"), spill.name
            for place in in_clear | behind:
                relative = place.removesuffix(" (deleted)").removeprefix(f"{look.volume.path}/")
                assert any(fnmatch(relative, pattern) for pattern in ENGINE.temporary)
                kind = "TempDirectories" if spill.name == "sort" else "TempTableDirectory"
                assert MECHANISM.advice(place).startswith(f"{kind} in firebird.conf"), place


def _seen_while(look: ArmAtRest, statement: str, words: list[bytes]) -> set[tuple[str, bytes]]:
    """Return files that only the server holds open, with the words they contained at any time until the statement
    ended."""
    hits: set[tuple[str, bytes]] = set()
    with ThreadPoolExecutor(1) as other:
        running = other.submit(look.query, statement)
        last = False
        while not last:
            last = running.done()
            for link in Path(f"/proc/{look.server.pid}/fd").iterdir():
                try:
                    name = str(link.readlink())
                    content = link.read_bytes() if name.endswith(" (deleted)") else b""
                except OSError:
                    continue
                hits.update((name, word) for word in words if word in content)
            time.sleep(0.05)
        running.result()
    return hits
