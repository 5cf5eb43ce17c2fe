"""journal: an entry is on disk before the thing exists, a torn line announces nothing, and a note of a schema finds its server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from ciphercost.host import dead_runs, journal, leftovers, run_ownership, supervisor
from ciphercost.host.journal import Entry, Note
from ciphercost.host.supervisor import Supervisor
from ciphercost.model import run_directory
from ciphercost.model.errors import RunError

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
NOTE = Note("ciphercost_x", "20261123-120000-ab12", "1:1:another-boot:1", "postgresql", "db.example", 5432, "me", "app")


@given(
    entries=st.lists(st.tuples(st.sampled_from(["process", "mount", "directory"]), TEXT), max_size=5),
    cut=st.integers(0),
)
def test_entries_come_back_and_a_torn_line_announces_nothing(
    entries: list[tuple[journal.Kind, str]], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("journal") / journal.FILE
    made = [Entry(*each) for each in entries]
    for each in made:
        journal.add(path, each)
    data = path.read_bytes() if made else b""
    assert list(journal.read(data.decode())) == made
    torn = data[: cut % (len(data) + 1)]
    whole = torn.count(b"\n")
    read = list(journal.read(torn.decode(errors="replace")))
    assert read[:whole] == made[:whole]
    assert read[whole:] in ([], made[whole : whole + 1])


def test_whatever_a_run_starts_or_makes_is_in_its_journal_before_it_exists(own_scratch: Path, tmp_path: Path) -> None:
    run_id = run_directory.new_id()
    group = run_ownership.cgroup_for(run_id, "one")
    with Supervisor(run_id) as made:
        elsewhere = tmp_path / f"ciphercost-{run_id}-ab12"
        made.remove(elsewhere)
        undone = made.undo(["true"], Entry("mount", "/somewhere"))
        made.spawn(["sleep", "1000"], cgroups=group)
        text = (own_scratch / run_id / journal.FILE).read_text()
        undone()
    assert list(journal.read(text)) == [
        Entry("directory", str(elsewhere), tmp_path.stat().st_ino),
        Entry("mount", "/somewhere"),
        *(Entry("control group", str(each)) for each in group),
        Entry("process", "sleep"),
    ]
    assert list(own_scratch.iterdir()) == []


def test_nothing_is_made_without_an_entry(own_scratch: Path, tmp_path: Path) -> None:
    with Supervisor(run_directory.new_id()) as made:
        (supervisor.scratch(made.run_id, made) / journal.FILE).unlink()
        (own_scratch / made.run_id / journal.FILE).mkdir()
        with pytest.raises(RunError, match="can't write to the run's journal"):
            made.remove(tmp_path / "x")
        with pytest.raises(RunError, match="can't write to the run's journal"):
            made.undo(["false"], Entry("mount", "/x"))
        # What ends an earlier step, e.g. `umount`, must start even then.
        assert made.run(["echo", "done"]) == "done\n"


# ── schemas on your own server ────────────────────────────────────────────────────────────────────────────────────────


def test_a_note_comes_back_until_it_is_dropped(own_scratch: Path) -> None:
    other = Note(
        "ciphercost_y", "20261123-120000-ab12", run_ownership.identity(), "firebird", "::1", 3050, "me you", "/x y.fdb"
    )
    journal.keep(own_scratch, NOTE)
    journal.keep(own_scratch, other)
    assert NOTE.url == "postgresql://me@db.example:5432/app"
    assert other.url == "firebird://me%20you@[::1]:3050//x%20y.fdb"
    assert dead_runs.dead_notes() == [NOTE]
    assert [str(each) for each in leftovers.leftovers()] == [f"schema ciphercost_x on {NOTE.url} of run {NOTE.run}"]
    text, worked = leftovers.sweep()
    assert not worked
    assert f"only its server can drop it. Run: ciphercost clean --url {NOTE.url}" in text
    journal.drop(own_scratch, NOTE)
    assert leftovers.sweep() == ("Nothing is left over.", True)


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
