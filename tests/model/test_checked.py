"""Mutations of real runs: any damaged record gives either the same figures or a one-line error."""

from __future__ import annotations

import contextlib
import copy
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ciphercost.model import checked
from ciphercost.model.command_load import ToolFigures
from ciphercost.model.connection_memory import MemoryLevel
from ciphercost.model.errors import UsageError
from ciphercost.model.key_rotation import KeyRotationSlice
from ciphercost.model.replication import ReplicationEvent
from ciphercost.model.slices import SliceRecord, StorageSlice
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.model.storms import StormSlice
from ciphercost.model.study import HostSample, StudyRecord, StudyRun
from ciphercost.plan import specs, toml
from ciphercost.report import formats, frames, inventory
from ciphercost.runs import conclude, pipeline, resume
from repetitions import examples
from test_gather import SAMPLES
from test_gather import import_texts as imported
from test_real import ciphercost

DEEP: Any = "deep"
LONG = 10**400
NUMBERS: list[Any] = [-1, -(10**15), LONG, -LONG, 2**63, 2**64, 1e300, -1e300, 10**17]
"""Values that no field of a record may have."""
OTHERS: list[Any] = [None, "", "x" * 300, "\x1b[31m", [], {}, [[]], True, DEEP, "NaN", "Infinity"]
ZEROS: list[Any] = [0, 0.0, 1, 1e-300]
PROOFS = [{"cell": 0, "arm": "plain", "witness": "wire", "passed": True, "detail": "", "session": 1}]
FORMATS = ("terminal", "md", "csv", "json", "latex")


def encode(value: object) -> str:
    """JSON that ciphercost never writes: deep nesting, numbers of 400 digits, NaN."""
    text = json.dumps(value)
    for word, spelt in (('"deep"', "[" * 100_000 + "]" * 100_000), ('"NaN"', "NaN"), ('"Infinity"', "1e999")):
        text = text.replace(word, spelt)
    return text


def paths(value: Any, so_far: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every place in a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*so_far, key)
        yield from paths(inner, (*so_far, key))


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    changed = copy.deepcopy(value)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return changed


def drop(value: Any, path: tuple[Any, ...]) -> Any:
    changed = copy.deepcopy(value)
    place = changed
    for key in path[:-1]:
        place = place[key]
    del place[path[-1]]
    return changed


def outcome(directory: Path) -> str | None:
    """All figures as text, or None after a one-line error. Anything else raises or fails an assertion."""
    try:
        result = conclude.result_of(directory)
        texts = [formats.get(name)(result) for name in FORMATS]
    except UsageError as error:
        message = str(error)
    else:
        return figures_of(texts)
    assert "\n" not in message
    assert str(directory) in message or "slices.jsonl" in message, message
    assert len(message) < 1000
    return None


def figures_of(texts: list[str]) -> str:
    """The figures, after checking that each is possible."""
    figures = json.loads(texts[FORMATS.index("json")])
    for cell in figures["cells"]:
        for name, estimate in cell["overhead"].items():
            assert 0 < estimate["low"] <= estimate["high"], (name, estimate)
            assert estimate["ratio"] > 0, (name, estimate)
    assert not re.search(r"\b(nan|inf)\b", texts[0], re.IGNORECASE), texts[0]
    return json.dumps([(cell["status"], cell["overhead"], cell["arms"]) for cell in figures["cells"]])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run with both phases."""
    spec = Spec(cells=[CellSpec("null", "busy", regime="one-core")], seed=1, sessions=2, time=5.0)
    directory = tmp_path_factory.mktemp("run") / "run"
    pipeline.run_in(specs.plan(spec), directory)
    return directory


@pytest.fixture(scope="module")
def tampered(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`tampered(name, content)`: a copy of the run in which one file has this content."""
    place = tmp_path_factory.mktemp("tampered") / "run"

    def make(name: str = "", content: str | bytes = b"") -> Path:
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(run, place)
        if name:
            (place / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return place

    return make


def counted(run: Path) -> list[int]:
    """Numbers of the lines with counted slices."""
    lines = (run / "slices.jsonl").read_text().splitlines()
    return [
        number
        for number, line in enumerate(lines)
        if (entry := json.loads(line))["phase"] in ("capacity", "latency") and entry["position"]
    ]


EXAMPLES = settings(max_examples=examples(120), suppress_health_check=list(HealthCheck))


@EXAMPLES
@given(data=st.data())
def test_an_impossible_value_in_a_slice_gives_the_same_figures_or_one_line(
    run: Path, tampered: Callable[..., Path], data: st.DataObject
) -> None:
    lines = (run / "slices.jsonl").read_text().splitlines()
    number = data.draw(st.sampled_from(counted(run)))
    value = json.loads(lines[number])
    path = data.draw(st.sampled_from(list(paths(value))))
    new = data.draw(st.sampled_from(NUMBERS + OTHERS))
    lines[number] = encode(put(value, path, new))
    figures = outcome(tampered("slices.jsonl", "\n".join(lines) + "\n"))
    if new in NUMBERS:
        assert figures in (None, outcome(run))


@EXAMPLES
@given(data=st.data())
def test_zeros_and_lost_or_doubled_lines_never_give_impossible_figures(
    run: Path, tampered: Callable[..., Path], data: st.DataObject
) -> None:
    lines = (run / "slices.jsonl").read_text().splitlines()
    number = data.draw(st.sampled_from(counted(run)))
    what = data.draw(st.sampled_from(["zero", "field", "line", "twice", "swap"]))
    value = json.loads(lines[number])
    if what == "zero":
        path = data.draw(st.sampled_from(list(paths(value))))
        lines[number] = encode(put(value, path, data.draw(st.sampled_from(ZEROS))))
    elif what == "field":
        lines[number] = encode(drop(value, data.draw(st.sampled_from(list(paths(value))))))
    elif what == "line":
        del lines[number]
    elif what == "twice":
        lines.insert(number, lines[number])
    else:
        other = data.draw(st.sampled_from(counted(run)))
        lines[number], lines[other] = lines[other], lines[number]
    figures = outcome(tampered("slices.jsonl", "\n".join(lines) + "\n"))
    if what == "twice":
        assert figures is None


@EXAMPLES
@given(data=st.data())
@pytest.mark.parametrize("name", ["plan.json", "proofs.json"])
def test_a_tampered_plan_or_proof_gives_the_same_figures_or_one_line(
    run: Path, tampered: Callable[..., Path], name: str, data: st.DataObject
) -> None:
    value = json.loads((run / name).read_text()) or PROOFS
    path = data.draw(st.sampled_from(list(paths(value))))
    if data.draw(st.booleans()):
        value = put(value, path, data.draw(st.sampled_from(NUMBERS + OTHERS + ZEROS)))
    else:
        value = drop(value, path)
    directory = tampered(name, encode(value))
    outcome(directory)
    for ask in (resume.finished, lambda place: frames.slices(place).height):
        with contextlib.suppress(UsageError):
            ask(directory)


@EXAMPLES
@given(
    content=st.binary(max_size=300),
    name=st.sampled_from(
        [
            "plan.json",
            "slices.jsonl",
            "proofs.json",
            "storage.jsonl",
            "storm.jsonl",
            "memory.jsonl",
            "replication.jsonl",
        ]
    ),
)
def test_any_bytes_are_read_or_refused_in_one_line(tampered: Callable[..., Path], name: str, content: bytes) -> None:
    outcome(tampered(name, content))


@pytest.mark.parametrize("name", ["study.json", "imported.json"])
@EXAMPLES
@given(content=st.binary(max_size=100) | st.sampled_from([b"[" * 100_000, b"{}", b'{"format": 1' + b"0" * 5000 + b"}"]))
def test_any_bytes_of_a_study_or_an_import_are_refused_in_one_line(
    tampered: Callable[..., Path], name: str, content: bytes
) -> None:
    assert outcome(tampered(name, content)) is None


@pytest.mark.parametrize("load", [{}, {"queries": 0}, {"queries": -1}, {"queries": 1e300}])
@pytest.mark.parametrize("series", [{}, {"seconds": []}, {"seconds": [0.0]}, {"seconds": [-1.0, 2.0]}])
def test_a_tampered_study_is_refused_in_one_line(
    tampered: Callable[..., Path], load: dict[str, float], series: dict[str, list[float]]
) -> None:
    host = HostSample(0.0, 0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    runs = [StudyRun("insert", arm, 0.0, load, series, [host]) for arm in ("plain", "encrypted")]
    study = StudyRecord(1, "mysql-tls", "mysql", "tls", arms=["plain", "encrypted"], runs=runs, complete=True)
    directory = tampered()
    (directory / "study.json").write_bytes(msgspec.json.encode(study))
    outcome(directory)


@pytest.mark.parametrize(
    ("slices", "problem"),
    [
        (StorageSlice(0, 1, 0, "ABBA", 1, "plain", "random_read"), "0 operations and 0 bytes"),
        (StorageSlice(0, 1, 0, "ABBA", 1, "plain", "random_read", 1.0, -5, 10), ">= 0"),
        (StorageSlice(7, 1, 0, "ABBA", 1, "plain", "random_read", 1.0, 5, 10), "a slice of cell 7"),
        (StorageSlice(0, 1, 0, "ABBA", 2, "plain", "random_read", 1.0, 5, 10), "belongs to the encrypted arm"),
    ],
)
def test_impossible_storage_is_refused(tampered: Callable[..., Path], slices: StorageSlice, problem: str) -> None:
    directory = tampered("storage.jsonl", msgspec.json.encode(slices) + b"\n")
    with pytest.raises(UsageError, match=rf"storage\.jsonl, line 1: .*{problem}"):
        conclude.result_of(directory)


COPY = ReplicationEvent(0, 1, 0, "ABBA", 1, "plain", "copy")
STORM = StormSlice(0, 1, 0, "ABBA", 1, "plain", "rate", "160", 0.5, 100.0)


@pytest.mark.parametrize(
    ("name", "record", "problem"),
    [
        ("storm.jsonl", STORM, "`before` is missing"),
        ("storm.jsonl", msgspec.structs.replace(STORM, position=2), "belongs to the encrypted arm"),
        ("storm.jsonl", msgspec.structs.replace(STORM, cell=7), "a slice of cell 7"),
        ("storm.jsonl", msgspec.structs.replace(STORM, rate=-1.0), ">= 0"),
        ("storm.jsonl", msgspec.structs.replace(STORM, rate=0.0), "`rate` 0 in a storm of kind rate"),
        ("storm.jsonl", msgspec.structs.replace(STORM, kind="saturated"), "`rate` 100 in a storm of kind saturated"),
        ("memory.jsonl", MemoryLevel(7, 1, "plain", "traffic", 10, 5, 5), "a slice of cell 7"),
        ("memory.jsonl", MemoryLevel(0, 1, "plain", "traffic", 10, -5, 5), ">= 0"),
        ("replication.jsonl", COPY, "`seconds` is missing"),
        ("replication.jsonl", msgspec.structs.replace(COPY, kind="catch-up", seconds=1.0), "`rows` is missing"),
        ("replication.jsonl", msgspec.structs.replace(COPY, seconds=1.0, position=2), "belongs to the encrypted arm"),
        ("replication.jsonl", msgspec.structs.replace(COPY, seconds=1.0, cell=7), "a slice of cell 7"),
        ("rotation.jsonl", KeyRotationSlice(7, 1, 0, "keys", "ALTER", 1.0), "a slice of cell 7"),
        ("rotation.jsonl", KeyRotationSlice(0, 1, 0, "keys", "ALTER", -1.0), ">= 0"),
        ("rotation.jsonl", KeyRotationSlice(0, 1, 0, "keys", "ALTER", 1.0, quiet=5.0), "without `meanwhile_s`"),
    ],
)
def test_impossible_storms_levels_of_memory_replicas_and_rotations_are_refused(
    tampered: Callable[..., Path],
    name: str,
    record: StormSlice | MemoryLevel | ReplicationEvent | KeyRotationSlice,
    problem: str,
) -> None:
    directory = tampered(name, msgspec.json.encode(record) + b"\n")
    with pytest.raises(UsageError, match=rf"{re.escape(name)}, line 1: .*{problem}"):
        conclude.result_of(directory)


def change(run: Path, line: int, **fields: Any) -> str:
    lines = (run / "slices.jsonl").read_text().splitlines()
    value = json.loads(lines[line])
    for name, new in fields.items():
        part, _, field = name.partition("__")
        if field:
            value[part][field] = new(value[part][field]) if callable(new) else new
        else:
            value[part] = new(value[part]) if callable(new) else new
    lines[line] = json.dumps(value)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"agent__operations": lambda n: -n}, "Expected `int` >= 0 in `agent.operations`"),
        ({"agent__operations": 0}, "can't belong to one slice"),
        ({"agent__seconds": 0}, "operations in 0 s"),
        ({"agent__seconds": lambda s: 1000 * s}, "longer than the slice"),
        ({"agent__arm": "other"}, "the agent answered for arm 'other'"),
        ({"counters__window_ns": 0}, "in `counters.window_ns`"),
        ({"counters__host_user": 1.5}, "in `counters.host_user`"),
        ({"counters__server_cpu_ns": 10**14}, "CPU time in"),
        ({"agent__cpu_user_ns": 10**14}, "CPU time in"),
        ({"started": 0.0}, "is before the start of the previous slice"),
        ({"cell": 3}, "a slice of cell 3, but plan.json has 1 cells"),
        ({"position": 9}, "positions 0 to 4"),
        ({"order": "AAAA"}, "ABBA or BAAB"),
        ({"arm": lambda arm: "plain" if arm == "encrypted" else "encrypted"}, "arm, not to the"),
        ({"length": 0}, "in `length`"),
    ],
)
def test_what_is_impossible_is_named_with_its_file_and_line(
    run: Path, tampered: Callable[..., Path], fields: dict[str, Any], problem: str
) -> None:
    line = counted(run)[9]
    directory = tampered("slices.jsonl", change(run, line, **fields))
    with pytest.raises(UsageError) as told:
        conclude.result_of(directory)
    assert f"{directory}/slices.jsonl, line {line + 1}: " in str(told.value)
    assert problem in str(told.value)
    assert checked.REMEDY in str(told.value)


@pytest.mark.parametrize(("process", "refused"), [(0.0, True), (900.0, True), (1100.0, False)])
def test_a_slice_of_a_command_is_no_longer_than_its_process(run: Path, process: float, *, refused: bool) -> None:
    """A command that is given a number of operations takes as long as it takes, not the slice's length."""
    line = change(run, counted(run)[9], agent__seconds=1000.0).splitlines()[counted(run)[9]]
    record = msgspec.json.decode(line, type=SliceRecord)
    if process:
        record = msgspec.structs.replace(record, reported=ToolFigures(process_s=process))
    assert ("longer than the slice" in checked.answer(record, 0)) == refused


def test_a_histogram_holds_one_latency_for_each_operation(run: Path, tampered: Callable[..., Path]) -> None:
    lines = [json.loads(line) for line in (run / "slices.jsonl").read_text().splitlines()]
    for line in lines:
        if line["phase"] == "latency" and "agent" in line:
            line["agent"]["operations"] += 1
    more = "".join(f"{json.dumps(line)}\n" for line in lines)
    with pytest.raises(UsageError, match=r"block \d+, position \d: .*histogram holds \d+"):
        conclude.result_of(tampered("slices.jsonl", more))


def test_a_truncated_last_line_is_skipped_and_a_wrong_one_is_refused(run: Path, tampered: Callable[..., Path]) -> None:
    text = (run / "slices.jsonl").read_text()
    assert outcome(tampered("slices.jsonl", text[:-40])) is not None
    wrong = change(run, len(text.splitlines()) - 1, agent__operations=-5)
    assert outcome(tampered("slices.jsonl", wrong.rstrip("\n"))) is None


def test_every_command_that_reads_a_damaged_run_ends_with_2_and_one_line(
    run: Path, tampered: Callable[..., Path]
) -> None:
    for name, content in (
        ("slices.jsonl", "[" * 100_000 + "\n"),
        ("plan.json", '{"format": 1, "seed": ' + "9" * 5000 + "}"),
        ("plan.json", '{"machine": ' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}"),
        ("slices.jsonl", change(run, counted(run)[0], agent__operations=-5)),
    ):
        directory = tampered(name, content)
        shown = (("report", directory), ("compare", directory, directory), ("report", directory, "--format", "csv"))
        for argv in shown if name == "slices.jsonl" else (*shown, ("resume", directory)):
            done = ciphercost(*map(str, argv), cwd=directory)
            assert (done.returncode, done.stdout) == (2, ""), (argv, done.stderr)
            assert len(done.stderr.splitlines()) == 1, done.stderr
            assert f"{name}" in done.stderr


def test_the_list_of_runs_names_a_damaged_one_and_shows_the_others(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run, tmp_path / "runs" / "20260101-000000-aaaaaa")
    (tmp_path / "runs" / "20260102-000000-bbbbbb").mkdir()
    (tmp_path / "runs" / "20260102-000000-bbbbbb" / "plan.json").write_text("[" * 100_000)
    shown = inventory.show("runs")
    assert "null:busy" in shown
    assert "can't be read" in shown.replace("\n", " ")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("x = " + "[" * 50_000 + "]" * 50_000, "nested too deeply"),
        ("seed = " + "9" * 5000, "too many digits"),
        ("seed = " + "9" * 400, "in `seed`"),
        ("seed = -1", "in `seed`"),
        ("time = nan", "in `time`"),
        ("time = inf", "in `time`"),
        ("margin = -inf", "in `margin`"),
        ("[[cells]]\nengine = 'null'\nmechanism = 'none'\nrate = nan", "in `cells[0].rate`"),
    ],
)
def test_a_spec_file_with_impossible_numbers_is_refused_in_one_line(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "grid.toml"
    path.write_text(content + "\n[[cells]]\nengine = 'null'\nmechanism = 'none'\n")
    with pytest.raises(UsageError, match=re.escape(problem)) as told:
        toml.load(path)
    assert str(path) in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("argv", [("--seed", "9" * 400), ("--rows", "9" * 30), ("--time", "9" * 400 + "s")])
def test_endless_numbers_on_the_command_line_are_refused(tmp_path: Path, argv: tuple[str, ...]) -> None:
    done = ciphercost("run", "null:none", *argv, "--print-spec", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, ""), done.stdout


@EXAMPLES
@given(data=st.data())
@pytest.mark.parametrize("tool", sorted(SAMPLES))
def test_another_tools_output_with_impossible_numbers_gives_figures_or_one_line(
    tool: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    text = SAMPLES[tool]
    numbers = list(re.finditer(r"\d+(?:\.\d+)?", text))
    where = data.draw(st.sampled_from(numbers))
    new = data.draw(st.sampled_from(["-1", "0", "9" * 400, "9" * 5000, "1e308", "nan", "inf", "", "-0.0"]))
    tampered = text[: where.start()] + new + text[where.end() :]
    try:
        result = imported(tmp_path_factory.mktemp("tool"), {"plain.txt": tampered, "tls.txt": text})
    except UsageError as error:
        message = str(error)
    else:
        checked.finite(result, "here")
        return
    assert len(message) < 2000
