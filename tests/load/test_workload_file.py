"""workload_file: what is written is read again, and what is no workload is refused with file and key."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphercost.load import workload_file, workloads
from ciphercost.load.workloads import Transaction, Workload
from ciphercost.model.errors import UsageError
from ciphercost.model.spec import CellSpec
from ciphercost.model.traffic import Bin, Connections, Hour, LeftOut, OperationClass, Traffic
from ciphercost.plan import resolve
from ciphercost.runs import user_files

TEXTS = st.text(st.characters(codec="utf-8"), max_size=40)
SMALL = """
title = "t"
measures = "m"
languages = ["http"]
draw = "even"
lengths = [[1, 2], [3, 1]]
rate = 12.5
[parameters]
http = 1
[documents]
"/sizes/10" = "10"
[[transaction]]
name = "a"
script = "GET /sizes/10"
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


@given(
    title=TEXTS,
    scripts=st.lists(TEXTS, min_size=1, max_size=4),
    documents=st.dictionaries(
        TEXTS.map(lambda text: f"/{text.replace('.', '')}"), st.integers(0, 10**9).map(str), max_size=4
    ),
    values=st.lists(st.floats(0, 1e9), max_size=5),
)
def test_what_is_written_is_read_again(
    tmp_path_factory: pytest.TempPathFactory,
    title: str,
    scripts: list[str],
    documents: dict[str, str],
    values: list[float],
) -> None:
    workload = Workload(
        title=title,
        measures="m",
        transaction=[Transaction(str(number), script, number + 1) for number, script in enumerate(scripts)],
        documents=documents,
        draw="even",
        lengths=(Bin(1, 5), Bin(7, 2)),
        parameters={"http": 1},
        dialect={"mysql": {"0": title}},
        traffic=Traffic(
            "web",
            ["combined"],
            left_out=[LeftOut(title, 1, "", 3)],
            classes=[OperationClass("GET 2xx", 3, times=[Bin(value, 1) for value in values])],
            connections=Connections("estimate", title, [Bin(1, 5)], resumed=0.25),
            hours=[Hour(3600, 5, 10, 2.0, 0.5)],
        ),
    )
    path = tmp_path_factory.getbasetemp() / "written.toml"
    path.write_text(workload_file.write(workload, ["a comment", ""]))
    again = workload_file.read(path)
    assert (again.name, again.file, again.own_sql) == ("written", str(path), True)
    assert msgspec.structs.replace(again, name="", file="", directory="", own_sql=False) == workload


def test_a_workload_of_ciphercost_is_also_a_file(tmp_path: Path) -> None:
    text = workload_file.write(workloads.get("small-api"))
    again = workload_file.read(written(tmp_path, text))
    assert again.transaction == workloads.get("small-api").transaction
    assert tomllib.loads(text)["documents"] == {"/api/item.json": ":size"}


def test_the_smallest_workload_is_read(tmp_path: Path) -> None:
    """The one that the next test spoils."""
    assert workload_file.read(written(tmp_path, SMALL)).rate == 12.5


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("title", "titel"), "unknown key 'titel': did you mean 'title'"),
        (('draw = "even"', 'draw = "odd"'), "draw"),
        (("[[1, 2], [3, 1]]", "[[0, 2]]"), r"lengths: \[0, 2\] is not"),
        (("[[1, 2], [3, 1]]", "[[1.5, 2]]"), "is not a number of requests"),
        (('"/sizes/10" =', '"sizes" ='), "'sizes' is not a path"),
        (('"/sizes/10" =', '"/../etc" ='), "has no '..'"),
        (("[[transaction]]", "[other]"), "unknown key 'other'"),
        (('script = "GET /sizes/10"', ""), "script"),
        (('name = "a"', 'name = "a"\nweight = 0'), "all transactions have weight 0"),
        (('name = "a"', 'name = "a"\nweight = -1'), "must be from 0"),
        (("rate = 12.5", "rate = -1"), "rate"),
        (("measures", 'name = "x"\nmeasures'), "unknown key 'name'"),
        (
            ("[parameters]", 'arrivals = "logged"\n[parameters]'),
            r"arrivals = \"logged\" and \[arrived\] belong together",
        ),
        (("[parameters]", "[arrived]\ninterval_ms = 10\ncounts = [1]\n[parameters]"), "belong together"),
        (
            ("[parameters]", 'arrivals = "logged"\n[arrived]\ninterval_ms = 10\ncounts = [0]\n[parameters]'),
            "counts has no operation",
        ),
        (
            ("[parameters]", 'arrivals = "logged"\n[arrived]\ninterval_ms = 0\ncounts = [1]\n[parameters]'),
            "interval_ms",
        ),
        (("[parameters]", 'arrivals = "logged"\n[arrived]\ninterval_ms = 10\ncounts = [-1]\n[parameters]'), "counts"),
    ],
)
def test_what_is_no_workload_is_refused(tmp_path: Path, change: tuple[str, str], words: str) -> None:
    path = written(tmp_path, SMALL.replace(*change))
    with pytest.raises(UsageError, match=words) as refused:
        workload_file.read(path)
    assert str(path) in str(refused.value)


def test_a_cell_takes_its_program_from_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL)
    cell = CellSpec(engine="nginx", mechanism="tls", workload=str(path))
    planned = resolve.resolve(cell)
    assert planned.program.name == "mine"
    assert planned.program.documents == {"/sizes/10": 10}
    assert (planned.program.draw, planned.program.lengths) == ("even", (Bin(1, 2), Bin(3, 1)))
    assert planned.spec.rate == 0
    assert [file.path for file in user_files.of([cell])] == [str(path)]
    timed = resolve.resolve(msgspec.structs.replace(cell, regime="latency"))
    assert timed.spec.rate == 12.5
    assert resolve.resolve(msgspec.structs.replace(cell, regime="latency", rate=3.0)).spec.rate == 3.0


def test_a_workload_for_another_server_is_refused(tmp_path: Path) -> None:
    sizes = written(tmp_path, SMALL)
    with pytest.raises(UsageError, match="--keep-paths"):
        resolve.resolve(
            CellSpec(engine="url", mechanism="tls", workload=str(sizes), url="http://a.example https://a.example")
        )
    with pytest.raises(UsageError, match="does not run on postgresql"):
        resolve.resolve(CellSpec(engine="postgresql", mechanism="tls", workload=str(sizes)))
    kept = tmp_path / "paths.toml"
    kept.write_text(SMALL.replace('"/sizes/10" = "10"\n', "").replace("/sizes/10", "/a"))
    with pytest.raises(UsageError, match="without --keep-paths"):
        resolve.resolve(CellSpec(engine="nginx", mechanism="tls", workload=str(kept)))
    planned = resolve.resolve(
        CellSpec(engine="url", mechanism="tls", workload=str(kept), url="http://a.example https://a.example")
    )
    assert planned.program.transactions[0][2].statements[0].sql == "GET /a"
