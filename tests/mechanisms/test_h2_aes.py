"""h2-aes: the file that H2 encrypts, opened by its key only; and the temporary files that it does not encrypt."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import msgspec
import pytest

import h2_servers
from ciphercost.engines import StartRequest
from ciphercost.engines.h2 import ENGINE, FILE, TEMPORARY
from ciphercost.host import supervisor
from ciphercost.host.volumes.volume import Volume
from ciphercost.mechanisms._rest import ArmAtRest, AtRestContext
from ciphercost.mechanisms.h2_aes import KEY_FILE, MECHANISM, judge
from ciphercost.model import run_directory
from ciphercost.model.constrained_types import CANARY_TABLE
from ciphercost.model.errors import AgentError
from ciphercost.model.secret import Secret, reveal
from ciphercost.model.spec import ARMS, Arm
from ciphercost.prove import rest_witnesses
from conftest import RequireServer

CANARY = b"canary0123456789abcdef0123456789abcdef"
OTHER: dict[Arm, Arm] = {"plain": "encrypted", "encrypted": "plain"}
Looks = dict[Arm, ArmAtRest]
TRIES = 20
"""A busy machine may look at the file of a short sort only when it is gone."""


@pytest.fixture(scope="module")
def looks(require_server: RequireServer, require_java: None) -> Iterator[Looks]:
    """Both servers, filled in the same way."""
    del require_java
    installation = require_server("h2")
    with supervisor.Supervisor(run_directory.new_id()) as run_supervisor, ExitStack() as open_:
        scratch = supervisor.scratch(run_supervisor.run_id, run_supervisor)
        rest = AtRestContext(ENGINE, installation, MECHANISM.check({}), scratch / "secrets", run_supervisor)
        filled: Looks = {}
        for arm in ARMS:
            directory = scratch / arm
            ENGINE.initialise(installation, directory, run_supervisor)
            server = ENGINE.start(StartRequest(installation, directory, run_supervisor, logs=scratch))
            open_.callback(server.stop)
            arm_fields = MECHANISM.connection(ENGINE, arm, rest.factors, rest.secrets)
            fields = server.connection() | arm_fields | {"connections": 1, "threads": 1}
            agent = open_.enter_context(h2_servers.agent(fields, run_supervisor))
            agent.connect("look", fields)
            look = ArmAtRest(arm, rest, Volume(directory, (directory,)), server, agent, "look", fields)
            for statement in (*ENGINE.make_canaries, ENGINE.keep_canary(CANARY.decode())):
                look.query(statement)
            filled[arm] = look
        yield filled


@pytest.mark.parametrize("arm", ARMS)
def test_every_witness_speaks_for_its_own_arm_and_against_the_other(looks: Looks, arm: Arm) -> None:
    look = looks[arm]
    for witness in (MECHANISM.status, MECHANISM.structure):
        passed, detail = witness(look)
        assert passed, detail
        assert not witness(msgspec.structs.replace(look, arm=OTHER[arm]))[0]
    assert look.query(ENGINE.first_canary) == [[CANARY.decode()]]
    assert (CANARY in (look.volume.path / FILE).read_bytes()) == (arm == "plain")


def test_the_key_is_the_runs_own_and_only_its_owner_can_read_it(looks: Looks) -> None:
    key = looks["plain"].rest.secrets / KEY_FILE
    assert key.stat().st_mode & 0o777 == 0o600
    assert reveal(looks["encrypted"].connect.key) == key.read_text()
    assert looks["plain"].connect.key is None


def test_a_closed_file_opens_only_with_its_key(looks: Looks) -> None:
    """While the database is closed, H2 has to try the key on the file itself."""
    look = looks["encrypted"]
    look.query("SET DB_CLOSE_DELAY 0")
    look.agent.disconnect("look")
    right = reveal(look.connect.key)
    fields = look.connect | {"properties": None}
    with pytest.raises(AgentError, match=r"Encryption error in file .*90049"):
        look.agent.connect("look", fields | {"key": Secret("0" + right[1:] if right[0] != "0" else "1" + right[1:])})
    with pytest.raises(AgentError, match=r"File corrupted .*90030"):
        look.agent.connect("look", fields | {"key": None, "cipher": None})
    look.agent.connect("look", look.connect)
    assert look.query(f"SELECT word FROM {CANARY_TABLE}") == [[CANARY.decode()]]


@pytest.mark.parametrize(
    ("head", "arm"), [(b"H2encrypt\nsalt", "encrypted"), (b"H:2,block:3", "plain"), (b"SQLite format 3", "")]
)
def test_the_file_is_told_by_how_it_begins(head: bytes, arm: str) -> None:
    assert [name for name in ARMS if judge(head, name)[0]] == [arm][: bool(arm)]


def spilt(look: ArmAtRest) -> int:
    """Bytes of temporary files that are there now."""
    size = 0
    for file in (look.volume.path / TEMPORARY).iterdir():
        with contextlib.suppress(FileNotFoundError):
            size += file.stat().st_size
    return size


def test_temporary_files_are_encrypted_with_the_database(looks: Looks) -> None:
    """H2 writes a sorted result that exceeds its memory to a file of its own."""
    word = "spilt0123456789abcdef"
    sort = ENGINE.spills(word)[0].statements[-1]
    for arm, look in looks.items():
        sizes, hits = [0], [0]
        for _ in range(TRIES):
            with ThreadPoolExecutor(1) as other:
                running = other.submit(look.query, sort)
                while not running.done():
                    before = spilt(look)
                    seen = rest_witnesses.at_rest(look, MECHANISM, word)
                    hits.append(
                        sum(count for name, count in seen.hits.items() if rest_witnesses.is_temporary(name, look))
                    )
                    sizes.append(min(before, spilt(look)))
                assert str(running.result()[0][1]).startswith(word)
            if max(sizes) > 100_000 and (max(hits) > 0 or arm == "encrypted"):
                break
        assert max(sizes) > 100_000, "the sort stayed in memory"
        assert (max(hits) > 0) == (arm == "plain")


@pytest.mark.parametrize("arm", ARMS)
def test_the_server_says_which_file_holds_its_data(looks: Looks, arm: Arm) -> None:
    """The witness of an encrypted file system looks at that file."""
    look = looks[arm]
    ((path,),) = look.query(ENGINE.home)
    assert path
    assert Path(path).is_file()
    assert Path(path).is_relative_to(look.volume.path)
