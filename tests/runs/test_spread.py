"""Runs over machines: cells are dealt out evenly, each machine's part comes back, what is lost is named, and the machines are compared."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jsonschema
import msgspec
import pytest

import fake
from ciphercost.book.check import check
from ciphercost.commands import main
from ciphercost.host.supervisor import Supervisor
from ciphercost.load.fleet import ray_cluster
from ciphercost.model import run_directory, schema
from ciphercost.model.errors import Interrupted, RunError, UsageError
from ciphercost.model.machines import MachinesRun
from ciphercost.model.run_directory import read_facts
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import specs
from ciphercost.report import inventory, machines_formats
from ciphercost.report.layout import WIDTH
from ciphercost.report.machines_types import Concluded
from ciphercost.report.words import machines_text
from ciphercost.runs import html_page_process, node_run, pipeline, spread
from ciphercost.runs.node_run import Part
from local_nodes import LocalNodes

DOCS = Path(__file__).parents[2] / "docs"
USUAL, SLOWED = 0.1, 0.4
"""How much longer an encrypted operation takes."""
CELLS = [CellSpec("null", "busy", regime="one-core")]


def spec_of(cells: list[CellSpec], machines: int = 0) -> Spec:
    return Spec(cells, 7, "quick", 1, 4.0, latency=False, cluster="auto", spread=True, machines=machines)


def here(part: Part) -> bytes:
    """Measure in this process."""

    def run(of: Part, spec: Path, directory: Path, _: Supervisor) -> None:
        node_run.main(str(spec), str(directory), of.machine, of.run)

    return node_run.measure(part, run)


class Measured(NamedTuple):
    """A run over three nodes of which one is slowed."""

    directory: Path
    concluded: Concluded
    printed: list[str]
    packed: dict[str, bytes]
    parts: dict[str, Part]


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """By the fake agent in virtual time, whose figures don't depend on this machine."""
    packed: dict[str, bytes] = {}
    place = tmp_path_factory.mktemp("agents")
    options = {
        f"local-{number}": f"--effect {effect} --sd 0.01 --seed {number}"
        for number, effect in enumerate((USUAL, SLOWED, USUAL), start=1)
    }

    def measure(node: str, part: Part) -> bytes:
        with fake.in_place(place, options[node]):
            packed[node] = here(part)
        return packed[node]

    nodes, printed = LocalNodes(3, measure), list[str]()
    directory = spread.begin(
        specs.plan(spec_of(CELLS)), nodes, tmp_path_factory.mktemp("spread") / "run", "ciphercost run …"
    )
    concluded = spread.run_remaining(directory, nodes, printed.append)
    return Measured(directory, concluded, printed, packed, nodes.parts)


# ── dealing out ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("cells", "nodes", "machines"), [(1, 3, 2), (5, 3, 1), (7, 4, 3), (2, 8, 1), (6, 3, 0)])
def test_every_cell_is_on_as_many_machines_as_asked_and_machines_have_equal_parts(
    cells: int, nodes: int, machines: int
) -> None:
    dealt = spread.deal(spec_of(CELLS * cells, machines), nodes)
    for number in range(cells):
        assert sum(number in part for part in dealt) == (machines or nodes)
    counts = [len(part) for part in dealt]
    assert max(counts) - min(counts) <= 1
    assert all(part == sorted(set(part)) for part in dealt)


def test_cells_that_share_their_sessions_stay_together() -> None:
    grouped = [msgspec.structs.replace(CELLS[0], group=name) for name in ("a", "a", "b", "b", "")]
    for part in spread.deal(spec_of(grouped, 1), 3):
        assert part in ([0, 1], [2, 3], [4])


def test_more_machines_than_there_are_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--machines 4: the cluster has 3 machines"):
        spread.begin(specs.plan(spec_of(CELLS, 4)), LocalNodes(3), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cluster": "10.0.0.1/x"}, "--cluster 10.0.0.1/x: write auto"),
        ({"cluster": ""}, "--spread: .*add --cluster auto"),
        ({"spread": False, "machines": 0}, "runs inside the agent"),
        ({"spread": False, "machines": 2}, "--machines: says on how many"),
    ],
)
def test_a_spec_that_does_not_say_where_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        specs.check(msgspec.structs.replace(spec_of(CELLS), **change))


def test_a_users_own_server_is_the_same_from_every_machine(tmp_path: Path) -> None:
    cell = CellSpec("postgresql", "tls", url="postgresql://me@staging/shop")
    with pytest.raises(UsageError, match="is a server that you run"):
        specs.check(spec_of([cell]), load=False)


def test_the_python_interface_names_the_command() -> None:
    with pytest.raises(UsageError, match="--cluster ADDRESS --spread"):
        pipeline.run(spec_of(CELLS))


def test_the_users_files_go_with_the_part(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "q.sql").write_text("SELECT 1;")
    (tmp_path / "one" / "q.sql").write_text("SELECT 2;")
    cells = [
        CellSpec("sqlite", "sqlcipher", sql=str(path)) for path in (tmp_path / "q.sql", tmp_path / "one" / "q.sql")
    ]
    part = node_run.part("run", "node-1", spec_of([*cells, cells[0]]))
    assert [cell.sql for cell in part.spec.cells] == ["0-q.sql", "1-q.sql", "0-q.sql"]
    assert part.files == {"0-q.sql": b"SELECT 1;", "1-q.sql": b"SELECT 2;"}
    with pytest.raises(UsageError, match=r"can't read .*missing\.sql"):
        node_run.part("run", "node-1", spec_of([CellSpec("sqlite", "sqlcipher", sql=str(tmp_path / "missing.sql"))]))


# ── a whole run ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_variance_between_machines_shows_the_slowed_one(measured: Measured) -> None:
    (cell,) = measured.concluded.run.cells
    assert (cell.machines, cell.hosts, cell.lost) == (3, 3, [])
    over = cell.overhead[cell.metric]
    ratios = [machine.estimate.ratio for machine in over.machines]
    assert ratios == pytest.approx([1 + effect for effect in (USUAL, SLOWED, USUAL)], rel=0.05)
    assert over.between is not None
    assert over.between.p_value < 0.01
    true = math.log((1 + SLOWED) / (1 + USUAL)) / math.sqrt(3)  # the standard deviation of (0, δ, 0)
    assert over.between.low < true < over.between.high
    assert over.between.sd == pytest.approx(true, rel=0.1)
    assert over.overall.n == 3
    assert over.overall.low < ratios[0] < over.overall.high


def test_each_machine_has_an_ordinary_run_with_a_seed_of_its_own(measured: Measured) -> None:
    for number in (1, 2, 3):
        place = measured.directory / "machines" / f"node-{number}"
        facts = read_facts(place)
        assert facts.machine["node"] == f"node-{number}"
        assert facts.machine["over_machines"] == measured.concluded.run.id
        assert (facts.seed, facts.spec.cluster, facts.spec.spread) == (7 + number, "", False)
        assert check(place).hashed in ("complete", "abridged")
    assert {part.spec.seed for part in measured.parts.values()} == {8, 9, 10}


def test_the_record_follows_its_published_schema(measured: Measured) -> None:
    published = json.loads((DOCS / "machines.schema.json").read_text())
    assert published == schema.machines_schema(), "run `make schema`"
    jsonschema.Draft202012Validator.check_schema(published)
    jsonschema.Draft202012Validator(published).validate(json.loads((measured.directory / "machines.json").read_text()))


def test_a_report_is_estimated_again_from_the_machines_records(measured: Measured) -> None:
    again = spread.conclude(measured.directory)
    assert again.run.cells == measured.concluded.run.cells
    assert msgspec.json.decode(machines_formats.get("json")(again), type=MachinesRun).cells == again.run.cells


def test_every_report_says_how_many_machines_it_covers(measured: Measured) -> None:
    texts = {name: machines_formats.get(name)(measured.concluded) for name in machines_formats.names()}
    assert texts.keys() == {"html", "json", "md", "terminal"}
    for name, text in texts.items():
        assert "3 machines" in text, name
        assert "node-2" in text, name
    between = measured.concluded.run.cells[0].overhead[measured.concluded.run.cells[0].metric].between
    assert between is not None
    assert machines_text.differ(between) in " ".join(texts["terminal"].split())
    assert machines_text.QUICK in " ".join(texts["terminal"].split())
    assert max(map(len, texts["terminal"].splitlines())) <= WIDTH
    assert texts["html"].count("<svg role=") == 3
    assert "http" not in texts["html"].replace("http-equiv", "")


def test_a_run_writes_the_page(measured: Measured, tmp_path: Path) -> None:
    shutil.copytree(measured.directory, tmp_path / "run")
    html_page_process.main(tmp_path / "run")
    assert "run over machines" in (tmp_path / "run" / "report.html").read_text()


def test_the_command_reports_it_and_refuses_what_only_one_machine_has(
    measured: Measured, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    place = str(measured.directory)
    assert of_command("report", place) == 0
    assert "node-2" in capsys.readouterr().out
    assert of_command("report", place, "--format", "html", "-o", str(tmp_path / "page.html")) == 0
    assert (tmp_path / "page.html").is_file()
    assert of_command("report", place, "--format", "csv") == 2
    assert "csv" in capsys.readouterr().err
    assert of_command("report", place, "--max-cost", "5%") == 2
    assert "node-1" in capsys.readouterr().err
    assert of_command("resume", place) == 0
    assert "is finished" in capsys.readouterr().out
    assert of_command("report", f"{place}/machines/node-1") == 0


def of_command(*words: str) -> int:
    """Exit status of the command."""
    argv, sys.argv = sys.argv, ["ciphercost", *words]
    try:
        main()
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        sys.argv = argv


# ── by CPU model ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def mixed(measured: Measured, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run, as if it were another one and its third machine had another CPU."""
    place = tmp_path_factory.mktemp("mixed") / "run"
    shutil.copytree(measured.directory, place)
    plan = json.loads((place / "machines.json").read_text())
    (place / "machines.json").write_text(json.dumps(plan | {"id": "20261125-000000-abcdef"}))
    for name in ("plan.json", "result.json"):
        path = place / "machines" / "node-3" / name
        value = json.loads(path.read_text())
        path.write_text(json.dumps(value | {"machine": value["machine"] | {"cpu": "Other CPU"}}))
    return place


def test_runs_over_machines_are_compared_by_cpu_model(
    measured: Measured, mixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (model,) = {machine.cpu for machine in measured.concluded.run.machines}
    assert of_command("compare", str(measured.directory), str(mixed), "--format", "json") == 0
    (group,) = json.loads(capsys.readouterr().out)
    assert group["cpu"] == model
    assert [run["name"].rpartition(", ")[2] for run in group["comparison"]["runs"]] == ["3 machines", "2 machines"]
    (pair,) = group["comparison"]["pairs"]
    over = measured.concluded.run.cells[0].overhead["throughput"]
    assert pair["costs"]["throughput"][0]["ratio"] == pytest.approx(over.overall.ratio)
    two = [machine.estimate.ratio for machine in over.machines[:2]]
    assert pair["costs"]["throughput"][1]["ratio"] == pytest.approx(math.sqrt(two[0] * two[1]))
    assert of_command("compare", str(mixed), str(measured.directory / "machines" / "node-1")) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"{model}\n\n")
    assert "Other CPU" not in printed


def test_one_run_over_machines_compares_its_cpu_models_or_is_checked_against_a_budget(
    measured: Measured, mixed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert of_command("compare", str(mixed), "--format", "md") == 0
    assert "Other CPU" in capsys.readouterr().out
    assert of_command("compare", str(measured.directory)) == 2
    assert "have one CPU model" in capsys.readouterr().err
    assert of_command("compare", str(mixed), "--fail-over", "95%", "--format", "json") == 0
    assert [group["cpu"] for group in json.loads(capsys.readouterr().out)][1] == "Other CPU"
    assert of_command("compare", str(mixed), "--fail-over", "0.001%") == 3
    capsys.readouterr()
    assert of_command("compare", str(mixed), str(measured.directory), "--format", "csv") == 2
    assert "terminal, md or json" in capsys.readouterr().err


def test_a_report_shows_each_cpu_model_and_how_many_machines_it_has(mixed: Path) -> None:
    concluded = spread.conclude(mixed)
    text = machines_formats.get("terminal")(concluded)
    assert "2 machines of this model" in text
    assert "one machine of this model: node-3" in " ".join(text.split())
    types = concluded.run.cells[0].overhead["throughput"].types
    assert [model.covers for model in types][1] == "one machine (node-3), and no other"


def test_the_results_book_groups_the_machines_by_cpu_model(measured: Measured, mixed: Path, tmp_path: Path) -> None:
    assert of_command("book", str(measured.directory), "-o", str(tmp_path / "book")) == 0
    page = re.sub(r"<[^>]*>", " ", (tmp_path / "book" / "machines.html").read_text())
    assert "all 3 machines of this model" in page
    index = (tmp_path / "book" / "index.html").read_text()
    assert index.count('<select name="cpu">') == 1
    assert index.count("data-cpu=") == 3
    assert of_command("book", str(mixed), "-o", str(tmp_path / "other")) == 0
    page = re.sub(r"<[^>]*>", " ", (tmp_path / "other" / "machines.html").read_text())
    assert "both machines of this model" in page
    assert page.count("Other CPU") >= 2, "a heading and a row"


def test_the_list_of_runs_has_it(measured: Measured, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shutil.copytree(measured.directory, tmp_path / "runs" / "fleet")
    monkeypatch.chdir(tmp_path)
    assert spread.find("latest") == Path("runs/fleet")
    shutil.copytree(measured.directory / "machines" / "node-1", tmp_path / "runs" / "later")
    (tmp_path / "runs" / "later" / "plan.json").touch()
    assert spread.find("latest") is None
    assert run_directory.find("latest") == Path("runs/later")
    assert inventory.show("runs", "fleet").split() == ["fleet", "over", "3", "machines:", "null:busy", "point-select"]


# ── what goes wrong ───────────────────────────────────────────────────────────────────────────────────────────────────


def kept(measured: Measured, broken: Callable[[str], None] = lambda _: None) -> LocalNodes:
    """Nodes that send what was measured before. `broken` may raise for a node."""

    def measure(node: str, _: Part) -> bytes:
        broken(node)
        return measured.packed[node]

    return LocalNodes(3, measure)


def test_a_machine_that_is_lost_costs_its_cells_there_and_resume_measures_them(
    measured: Measured, tmp_path: Path
) -> None:
    def dies(node: str) -> None:
        if node == "local-3":
            raise RunError("the node was lost (WorkerCrashedError)")

    nodes, printed = kept(measured, dies), list[str]()
    directory = spread.begin(specs.plan(spec_of(CELLS)), nodes, tmp_path / "run")
    concluded = spread.run_remaining(directory, nodes, printed.append)
    (cell,) = concluded.run.cells
    assert [loss.machine for loss in cell.lost] == ["node-3"]
    assert cell.machines == cell.overhead[cell.metric].overall.n == 2
    for name in ("terminal", "md", "html"):
        text = " ".join(machines_formats.get(name)(concluded).split())
        assert "node-3" in text
        assert "WorkerCrashedError" in text
    assert not spread.finished(directory)
    whole = spread.run_remaining(directory, kept(measured), printed.append)
    assert list(nodes.parts) == ["local-1", "local-2", "local-3"]
    assert whole.run.cells == measured.concluded.run.cells
    assert spread.finished(directory)


def test_a_new_node_takes_the_place_of_one_that_is_gone(measured: Measured, tmp_path: Path) -> None:
    def dies(node: str) -> None:
        if node == "local-3":
            raise RunError("gone")

    first, printed = kept(measured, dies), list[str]()
    directory = spread.begin(specs.plan(spec_of(CELLS)), first, tmp_path / "run")
    spread.run_remaining(directory, first, printed.append)
    later = LocalNodes(4, lambda _, __: measured.packed["local-3"])
    del later.nodes[2]
    concluded = spread.run_remaining(directory, later, printed.append)
    assert concluded.run.machines[2].node == "local-4"
    assert later.parts.keys() == {"local-4"}
    assert concluded.run.cells[0].machines == 3
    assert any("takes its place" in line for line in printed)


def test_ctrl_c_ends_what_runs_and_keeps_what_arrived(measured: Measured, tmp_path: Path) -> None:
    def interrupts(node: str) -> None:
        if node == "local-2":
            raise KeyboardInterrupt

    nodes, printed = kept(measured, interrupts), list[str]()
    directory = spread.begin(specs.plan(spec_of(CELLS)), nodes, tmp_path / "run")
    with pytest.raises(Interrupted):
        spread.run_remaining(directory, nodes, printed.append)
    assert nodes.closed == 1
    early = spread.conclude(directory)
    (cell,) = early.run.cells
    assert (cell.machines, [loss.reason for loss in cell.lost]) == (1, ["not measured yet"] * 2)
    assert machines_text.ONE in " ".join(machines_formats.get("terminal")(early).split())
    again = kept(measured)
    assert spread.run_remaining(directory, again, printed.append).run.cells == measured.concluded.run.cells
    assert list(again.parts) == ["local-2", "local-3"]


def test_a_damaged_part_is_lost_and_leaves_nothing(measured: Measured, tmp_path: Path) -> None:
    nodes = LocalNodes(3, lambda node, _: measured.packed[node][: 400 if node == "local-1" else None])
    directory = spread.begin(specs.plan(spec_of(CELLS)), nodes, tmp_path / "run")
    concluded = spread.run_remaining(directory, nodes, lambda _: None)
    assert concluded.run.machines[0].state == "lost"
    assert "can't be unpacked" in concluded.run.machines[0].reason
    assert sorted(path.name for path in (directory / "machines").iterdir()) == ["node-2", "node-3"]


def test_nodes_of_one_host_are_named_in_the_result(measured: Measured, tmp_path: Path) -> None:
    nodes = LocalNodes(3, lambda node, _: measured.packed[node], host="one")
    directory, printed = spread.begin(specs.plan(spec_of(CELLS)), nodes, tmp_path / "run"), list[str]()
    concluded = spread.run_remaining(directory, nodes, printed.append)
    assert concluded.run.cells[0].hosts == 1
    assert machines_text.covers(concluded.run.cells[0]) in " ".join(machines_formats.get("terminal")(concluded).split())
    assert any("one after the other" in line for line in printed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "../../etc"}, "`name` of a machine"),
        ({"cells": [4]}, "has a cell that the spec doesn't have"),
        ({"state": "gone"}, "state"),
    ],
)
def test_a_damaged_plan_is_refused(measured: Measured, tmp_path: Path, change: dict[str, object], message: str) -> None:
    plan = json.loads((measured.directory / "machines.json").read_text())
    plan["machines"][0] |= change
    (tmp_path / "machines.json").write_text(json.dumps(plan))
    with pytest.raises(UsageError, match=message):
        spread.conclude(tmp_path)


def test_a_part_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    node_run.unpack(node_run.measure(node_run.part("run", "node-1", part_of(CELLS))), tmp_path / "run")
    facts = read_facts(tmp_path / "run")
    assert facts.ended
    assert facts.machine["node"] == "node-1"


def part_of(cells: list[CellSpec]) -> Spec:
    return spread.own_spec(spec_of(cells), range(len(cells)), 7)


def test_a_part_that_can_not_run_says_why_in_one_line() -> None:
    part = node_run.part("run", "node-1", part_of([CellSpec("null", "busy", factors={"effect": "nonsense"})]))
    with pytest.raises(RunError, match="nonsense"):
        node_run.measure(part)


def test_without_ray_the_command_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"pip install 'ciphercost\[ray\]'") as refused:
        ray_cluster.connect("auto")
    assert refused.value.exit_status == 2
    assert of_command("run", "null:busy", "--quick", "--cluster", "auto", "--spread") == 2
    assert list(tmp_path.iterdir()) == []


def test_nothing_imports_ray_at_the_start() -> None:
    code = "import sys, ciphercost.commands, ciphercost.runs.ray_tasks; print([name for name in sys.modules if name.startswith('ray')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
