"""journal: an entry is on disk before the thing exists, a torn line announces nothing, and a note of a schema finds its server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import structs

from ciphercost.host import dead_runs, journal, leftovers, run_ownership, supervisor
from ciphercost.host.journal import Entry, Note
from ciphercost.host.supervisor import Supervisor
from ciphercost.model import run_directory
from ciphercost.model.errors import RunError

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NOTE = Note("ciphercost_x", "20261123-120000-ab12", "1:1:another-boot:1", "postgresql", "db.example", 5432, "me", "app")


@example(entries=[("directory", "/a\x85b"), ("directory", "/\u2028")], cut=0)
@given(
    entries=st.lists(st.tuples(st.sampled_from(["process", "mount", "directory"]), TEXT), max_size=5),
    cut=st.integers(0),
)
def test_entries_come_back_and_a_torn_line_announces_nothing(
    entries: list[tuple[journal.Kind, str]], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("journal") / journal.FILE
    written = [Entry(*fields) for fields in entries]
    for entry in written:
        journal.add(path, entry)
    data = path.read_bytes() if written else b""
    assert list(journal.read(data.decode())) == written
    torn = data[: cut % (len(data) + 1)]
    whole = torn.count(b"\n")
    read = list(journal.read(torn.decode(errors="replace")))
    assert read[:whole] == written[:whole]
    assert read[whole:] in ([], written[whole : whole + 1])


def test_whatever_a_run_starts_or_makes_is_in_its_journal_before_it_exists(own_scratch: Path, tmp_path: Path) -> None:
    run_id = run_directory.new_id()
    group = run_ownership.cgroup_for(run_id, "one")
    with Supervisor(run_id) as run_supervisor:
        elsewhere = tmp_path / f"ciphercost-{run_id}-ab12"
        run_supervisor.remove(elsewhere)
        undone = run_supervisor.undo(["true"], Entry("mount", "/somewhere"))
        run_supervisor.spawn(["sleep", "1000"], cgroups=group)
        text = (own_scratch / run_id / journal.FILE).read_text()
        undone()
    assert list(journal.read(text)) == [
        Entry("directory", str(elsewhere), tmp_path.stat().st_ino),
        Entry("mount", "/somewhere"),
        *(Entry("control group", str(directory)) for directory in group),
        Entry("process", "sleep"),
    ]
    assert list(own_scratch.iterdir()) == []


def test_nothing_is_made_without_an_entry(own_scratch: Path, tmp_path: Path) -> None:
    with Supervisor(run_directory.new_id()) as run_supervisor:
        (supervisor.scratch(run_supervisor.run_id, run_supervisor) / journal.FILE).unlink()
        (own_scratch / run_supervisor.run_id / journal.FILE).mkdir()
        with pytest.raises(RunError, match="can't write to the run's journal"):
            run_supervisor.remove(tmp_path / "x")
        with pytest.raises(RunError, match="can't write to the run's journal"):
            run_supervisor.undo(["false"], Entry("mount", "/x"))
        # What ends an earlier step, e.g. `umount`, must start even then.
        assert run_supervisor.run(["echo", "done"]) == "done\n"


# ── schemas on your own server ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def ours_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What other runs left is not found, and so not removed."""
    every = leftovers.leftovers
    monkeypatch.setattr(leftovers, "leftovers", lambda: [left for left in every() if left.run == NOTE.run])


@pytest.mark.usefixtures("ours_alone")
def test_a_note_comes_back_until_it_is_dropped(own_scratch: Path) -> None:
    other = Note(
        "ciphercost_y", "20261123-120000-ab12", run_ownership.identity(), "firebird", "::1", 3050, "me you", "/x y.fdb"
    )
    journal.keep(own_scratch, NOTE)
    journal.keep(own_scratch, other)
    assert NOTE.url == "postgresql://me@db.example:5432/app"
    assert other.url == "firebird://me%20you@[::1]:3050//x%20y.fdb"
    assert dead_runs.dead_notes() == [NOTE]
    assert [str(leftover) for leftover in leftovers.leftovers()] == [
        f"schema ciphercost_x on {NOTE.url} of run {NOTE.run}"
    ]
    text, worked = leftovers.sweep()
    assert not worked
    assert f"ciphercost clean --url {NOTE.url}" in text
    journal.drop(own_scratch, NOTE)
    text, worked = leftovers.sweep()
    assert worked
    assert text.splitlines()[0] == "Nothing is left over.", "stopped supervisors of living runs may follow"


@pytest.mark.usefixtures("ours_alone")
def test_a_note_names_the_whole_command_that_encrypts_as_the_run_did(own_scratch: Path) -> None:
    note = structs.replace(
        NOTE, host="10.0.0.1", name="db.example", encryption=(("tls", "verify-full"),), ca="/my cas/ca.pem"
    )
    assert note.command == "ciphercost clean --url postgresql://me@db.example:5432/app --ca '/my cas/ca.pem'"
    journal.keep(own_scratch, note)
    assert f"Run: {note.command} (if" in leftovers.sweep()[0]
    local = structs.replace(NOTE, engine="mysql", host="127.0.0.1", port=3306, database="", socket="/run/my sql/s")
    assert local.url == "mysql://me@127.0.0.1:3306/?socket=/run/my%20sql/s"
    asked = structs.replace(note, ca="", query="sslmode=require")
    assert asked.command == "ciphercost clean --url 'postgresql://me@db.example:5432/app?sslmode=require'"
    journal.drop(own_scratch, note)


@pytest.mark.parametrize("fault", ["open", "link", "renamed", "no note", "control characters"])
def test_notes_that_others_could_have_written_or_that_are_none_are_left_out(
    own_scratch: Path, tmp_path: Path, fault: str
) -> None:
    note = NOTE if fault != "control characters" else Note("ciphercost_x\x1b[2J", "r", "", "mysql", "h", 1)
    journal.keep(own_scratch, note)
    path = own_scratch / journal.NOTES / note.file
    if fault == "open":
        path.chmod(0o666)
    elif fault == "link":
        path.rename(tmp_path / "real")
        path.symlink_to(tmp_path / "real")
    elif fault == "renamed":
        path.rename(path.with_name("other.json"))
    elif fault == "no note":
        path.write_text("{}\n")
    within = os.open(own_scratch, os.O_RDONLY)
    try:
        assert list(journal.notes(within)) == []
    finally:
        os.close(within)
