"""Only a run whose result follows from its slices enters the book. Real runs on the null engine, changed in every way."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import fake
from ciphercost import commands
from ciphercost.book import site
from ciphercost.book.check import check
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.runs import anonymize, pipeline


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a closed and an open loop, by the fake agent in virtual time."""
    cells = [CellSpec("null", "busy", factors={"effect": "20%"}, regime="one-core")]
    spec = Spec(cells=cells, mode="quick", sessions=1, time=6.0)
    directory = tmp_path_factory.mktemp("run") / "run"
    with fake.in_place(directory.parent, "--effect 0.2 --sd 0.01"):
        result = pipeline.run(spec, directory)
    assert result.cells[0].overhead, result.cells[0].reason
    assert "latency_p50" in result.cells[0].overhead
    return directory


@pytest.fixture
def copy(recorded: Path, tmp_path: Path) -> Path:
    shutil.copytree(recorded, tmp_path / "run")
    return tmp_path / "run"


def change(path: Path, edit: Callable[[Any], None]) -> None:
    """Change a JSON document."""
    value = json.loads(path.read_bytes())
    edit(value)
    path.write_text(json.dumps(value))


def change_slice(directory: Path, edit: Callable[[Any], None]) -> None:
    """Change the first counted slice of the closed loop."""
    lines = (directory / "slices.jsonl").read_text().splitlines()
    for number, line in enumerate(lines):
        value = json.loads(line)
        if value["phase"] == "capacity" and value["position"]:
            edit(value)
            lines[number] = json.dumps(value)
            break
    (directory / "slices.jsonl").write_text("\n".join(lines) + "\n")


def rehash(directory: Path) -> None:
    """What a forger does: write the hash of the changed file."""
    digest = hashlib.sha256((directory / "slices.jsonl").read_bytes()).hexdigest()
    change(directory / "plan.json", lambda plan: plan["hashes"].__setitem__("slices.jsonl", digest))


def book(*argv: str | Path) -> Result:
    return CliRunner().invoke(commands.cli, ["book", *map(str, argv)])


def test_a_run_keeps_the_hashes_of_its_files(recorded: Path) -> None:
    kept = json.loads((recorded / "plan.json").read_bytes())["hashes"]
    assert kept == {
        name: hashlib.sha256((recorded / name).read_bytes()).hexdigest() for name in ("slices.jsonl", "proofs.json")
    }
    assert check(recorded).hashed == "complete"


def test_a_record_without_hashes_is_accepted_and_labelled(copy: Path) -> None:
    change(copy / "plan.json", lambda plan: plan.pop("hashes"))
    assert check(copy).label == "no hash"
    assert "no hash" in book("--check", copy).output


def faster(value: Any) -> None:
    value["agent"]["work"] *= 1.5


def test_a_changed_slice_is_refused_by_its_hash(copy: Path) -> None:
    change_slice(copy, faster)
    with pytest.raises(UsageError, match=r"slices\.jsonl was changed after the run"):
        check(copy)


def test_a_changed_slice_with_a_new_hash_is_refused_by_its_figures(copy: Path) -> None:
    change_slice(copy, faster)
    rehash(copy)
    with pytest.raises(UsageError, match=r"result\.json does not follow.*: cell 1, `"):
        check(copy)


def test_a_changed_proof_is_refused(copy: Path) -> None:
    (copy / "proofs.json").write_text("[ ]\n")
    with pytest.raises(UsageError, match=r"proofs\.json was changed"):
        check(copy)


def cheaper(result: Any) -> None:
    result["cells"][0]["overhead"]["throughput"]["ratio"] = 0.99


def certain(result: Any) -> None:
    result["cells"][0]["verdict"] = "equivalent"


def silent(result: Any) -> None:
    result["cells"][0]["overhead"].pop("latency_p50")


def invented(result: Any) -> None:
    result["cells"][0]["overhead"]["memory"] = {"ratio": 1.0, "low": 1.0, "high": 1.0}


def elsewhere(result: Any) -> None:
    result["machine"]["cpu"] = "a faster one"


def renamed(result: Any) -> None:
    result["cells"][0]["engine"] = "postgresql"


def shorter(result: Any) -> None:
    result["cells"].clear()


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (cheaper, "overhead.throughput.ratio"),
        (certain, "verdict"),
        (silent, "overhead.latency_p50"),
        (invented, "overhead.memory"),
        (elsewhere, "machine"),
        (renamed, "engine"),
        (shorter, "0 cells"),
    ],
)
def test_a_changed_figure_is_refused_with_its_name(copy: Path, edit: Callable[[Any], None], named: str) -> None:
    change(copy / "result.json", edit)
    done = book("--check", copy)
    assert done.exit_code == 2
    assert f"refused: {copy}: result.json does not follow" in done.output
    assert named in done.output


@pytest.mark.parametrize("name", ["slices.jsonl", "proofs.json", "result.json"])
def test_a_missing_file_is_named(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(UsageError, match=name):
        check(copy)


def test_damage_is_named_with_its_place(copy: Path) -> None:
    change(copy / "plan.json", lambda plan: plan.pop("hashes"))
    with (copy / "slices.jsonl").open("a") as file:
        file.write("{}\n")
    done = book("--check", copy)
    assert done.exit_code == 2
    assert "slices.jsonl, line " in done.output


def test_a_run_that_did_not_end_is_refused(copy: Path) -> None:
    change(copy / "plan.json", lambda plan: plan.pop("ended"))
    with pytest.raises(UsageError, match="did not end"):
        check(copy)


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "x", ""])
def test_an_id_that_is_no_name_of_a_run_is_refused(copy: Path, tmp_path: Path, name: str) -> None:
    for file in ("plan.json", "result.json"):
        change(copy / file, lambda value: value.__setitem__("id", name))
    (tmp_path / "a" / "b").mkdir(parents=True)
    done = book("--pack", copy, "-o", tmp_path / "a" / "b")
    assert done.exit_code == 2
    assert "its id" in done.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "run"]


def test_imported_figures_are_refused(copy: Path) -> None:
    (copy / "imported.json").write_text("{}")
    with pytest.raises(UsageError, match="other tools"):
        check(copy)


def test_a_packed_run_gives_the_same_figures(recorded: Path, tmp_path: Path) -> None:
    result = check(recorded).result
    for options in ([], ["--condense"]):
        place = tmp_path / "-".join(["packed", *options])
        done = book("--pack", *options, recorded, "-o", place)
        assert done.exit_code == 0, done.output
        (packed,) = place.iterdir()
        assert packed.name == f"{result.id}.tar.xz"
        again = site.checked_run(packed)
        assert again.result.cells == result.cells
        assert again.hashed == ("abridged" if options else "complete")
        assert book("--check", packed).exit_code == 0


def test_a_condensed_record_is_smaller_and_keeps_the_hash_of_the_full_one(recorded: Path) -> None:
    full, condensed = (anonymize.shareable(recorded, condense=condense) for condense in (False, True))
    assert full["slices.jsonl"] == (recorded / "slices.jsonl").read_bytes()
    slices = [json.loads(line) for line in condensed["slices.jsonl"].splitlines()]
    kept = {(record["phase"], record["position"] > 0) for record in slices if record["agent"]["histogram"]}
    assert kept == {("latency", True)}, "only these are read by estimates"
    assert len(condensed["slices.jsonl"]) < len(full["slices.jsonl"])
    before, after = (json.loads(files["plan.json"]) for files in (full, condensed))
    assert after["full_hashes"] == {"slices.jsonl": before["hashes"]["slices.jsonl"]}
    assert after["hashes"]["slices.jsonl"] == hashlib.sha256(condensed["slices.jsonl"]).hexdigest()


def test_what_is_packed_has_no_directory_of_the_user(copy: Path) -> None:
    def personal(value: Any) -> None:
        value["command"] = (
            "ciphercost run null:busy --csv '/home/alice/my runs/patients.csv' -o '/home/alice/my runs/x' --json=/home/alice/y --set a='b c' --url=postgresql://alice@db7.example.internal:5432/shop"
        )
        cell_specs = [value["spec"]["cells"][0], *(cell["spec"] for cell in value["cells"] if "spec" in cell)]
        for spec in cell_specs:
            spec["csv"] = "/home/alice/my runs/patients.csv"
            spec["url"] = "postgresql://alice@db7.example.internal:5432/shop"
        value["cells"][0]["reason"] = "db7.example.internal: no such file: /srv/x/y"

    for name in ("plan.json", "result.json"):
        change(copy / name, personal)
    (copy / "logs" / "server.log").write_text("alice logged in")
    files = anonymize.shareable(copy)
    assert set(files) == {"plan.json", "slices.jsonl", "proofs.json", "result.json"}
    text = b"".join(files.values()).decode()
    for word in ("alice", "my runs", "db7.example", "/srv/x"):
        assert word not in text
    assert (
        json.loads(files["plan.json"])["command"]
        == "ciphercost run null:busy --csv …/patients.csv --set 'a=b c' --url=postgresql://server:5432/shop"
    )
    assert json.loads(files["plan.json"])["spec"]["cells"][0]["url"] == "postgresql://server:5432/shop"


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("/usr/sbin/mysqld 9.7", "/usr/sbin/mysqld 9.7"),
        ("in /var/tmp/ciphercost-0/run/data/base: 3 blocks", "in …/base: 3 blocks"),
        ("(/root/x/server.pem)", "(…/server.pem)"),
        ("12/15 ms and 3 bytes/op", "12/15 ms and 3 bytes/op"),
        ("https://me:word@localhost/a/b", "https://localhost/a/b"),
        ("/home/me/a.jar:/home/me/b.jar", "…/a.jar:…/b.jar"),
        ("jdbc:mysql://me@db/shop is a mysql", "jdbc:mysql://server/shop is a mysql"),
        ("10.1.2.3:5432 and 10.1.2.34 and own.example.org", "server:5432 and 10.1.2.34 and server"),
    ],
)
def test_directories_of_the_system_are_no_secret(text: str, public: str) -> None:
    urls = ["jdbc:mysql://me@db,10.1.2.3:5432/shop?x=/y", "https://[::1]/ https://me@own.example.org"]
    assert anonymize.hiding(urls)(text) == public


def test_the_address_on_which_a_server_listened_is_the_users_own() -> None:
    hide = anonymize.hiding([], ["", "127.0.0.2", "10.1.2.3"])
    assert hide("on 10.1.2.3, port 5, not 10.1.2.34 or 127.0.0.2") == "on server, port 5, not 10.1.2.34 or 127.0.0.2"
