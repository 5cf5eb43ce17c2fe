"""The headline with a sentence per mechanism, the terminal's summary, labels, and figures left out as noise."""

from __future__ import annotations

import re
from typing import Any

import pytest

import results
from ciphercost.estimate import notation
from ciphercost.model.result import Cell, Estimate
from ciphercost.model.slices import Finding
from ciphercost.report import capacity, figures, notebook
from ciphercost.report.formats import html, latex, md, terminal
from ciphercost.report.plots import Subject, forest
from ciphercost.report.words import cell_text, figure_text, verdict_text

RANKING = re.compile("cheapest|dearest|best|worst|fastest|slowest")


def cell(ratio: float, half: float = 0.02, **more: Any) -> Cell:
    known: dict[str, Any] = {"overhead": {"throughput": results.estimate(ratio, half)}}
    return results.cell(**known | more)


def one_core(**more: Any) -> Cell:
    overhead = {"throughput": results.estimate(0.72), "server_cpu_per_op": results.estimate(1.37)}
    return results.cell(**{"regime": "one-core", "overhead": overhead} | more)


# ── the sentences ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_each_mechanism_has_a_sentence_and_nothing_is_ranked() -> None:
    run_result = results.result(
        cell(0.8),
        cell(0.5, engine="mysql"),
        cell(0.6, engine="sqlite", mechanism="sqlcipher", layer="rest"),
        cell(0.9, engine="nginx", workload="file"),
    )
    sentences = verdict_text.sentences(run_result)
    assert len(sentences) == 4
    for sentence, measured in zip(sentences, run_result.cells, strict=True):
        assert sentence.startswith(f"{measured.engine} {measured.version} with {measured.mechanism} does ")
        assert sentence.count("95 % CI") == 1
        assert not RANKING.search(sentence)


def test_a_few_cells_of_a_mechanism_are_named_one_by_one() -> None:
    run_result = results.result(cell(0.816, clients=1), cell(0.781, clients=8))
    (sentence,) = verdict_text.sentences(run_result)
    assert sentence.startswith("postgresql 18.4 with tls ")
    assert "18.4 % fewer operations/s (95 % CI 16.8–20.0 %) for 1 client" in sentence
    assert "21.9 % fewer (20.3–23.5 %) for 8 clients" in sentence


def test_many_cells_have_lowest_and_highest_cost_unless_their_intervals_overlap() -> None:
    apart = results.result(*(cell(0.9 - 0.1 * n, 0.02, variant=f"cipher=c{n}") for n in range(5)))
    (sentence,) = verdict_text.sentences(apart)
    lowest, highest = apart.cells[0], apart.cells[-1]
    for extreme in (lowest, highest):
        assert figure_text.cost("throughput", extreme.overhead["throughput"]) in sentence
        assert extreme.variant in sentence
    assert not [cell.variant for cell in apart.cells[1:-1] if cell.variant in sentence]
    overlapping = results.result(*(cell(0.9 - 0.01 * n, 0.1, variant=f"cipher=c{n}") for n in range(5)))
    (sentence,) = verdict_text.sentences(overlapping)
    assert "cipher=" not in sentence, "no cell is named as lowest or highest if intervals overlap"


def test_on_one_core_the_servers_cpu_leads() -> None:
    (sentence,) = verdict_text.sentences(results.result(one_core()))
    cpu, rate = (figure_text.priced(one_core(), key) for key in ("server_cpu_per_op", "throughput"))
    figures_ = [text.partition(" (")[0] for text in (cpu, rate)]
    assert sentence.index(figures_[0]) < sentence.index(figures_[1])
    several = results.result(one_core(), one_core(workload="connect"))
    assert "operations/s" not in verdict_text.answer(several)
    assert html.render(several).count("server CPU per operation (95 % CI") > 0
    # Without such a figure the headline uses throughput.
    assert "operations/s" in verdict_text.answer(results.result(cell(0.8, regime="one-core")))
    assert figure_text.lead_metric(cell(0.8)) == "throughput"


def test_an_embedded_database_leads_with_its_process() -> None:
    overhead = {"throughput": results.estimate(0.22), "client_cpu_per_op": results.estimate(4.45, 0.003)}
    embedded = results.cell("sqlite", "sqlcipher", layer="rest", regime="one-core", overhead=overhead)
    assert figure_text.lead_metric(embedded) == "client_cpu_per_op"
    assert figure_text.priced(embedded) in verdict_text.answer(results.result(embedded))


@pytest.mark.parametrize(
    ("whole", "leads"), [(1.9, "machine_cpu_per_op"), (1.2, "client_cpu_per_op"), (1.0, "client_cpu_per_op")]
)
def test_an_embedded_database_leads_with_the_daemon_that_encrypts_for_it(whole: float, leads: str) -> None:
    """As with gocryptfs: without its daemon most of the cost would be missing."""
    overhead = {"client_cpu_per_op": results.estimate(1.2), "machine_cpu_per_op": results.estimate(whole)}
    arms = {"plain": {"client_cpu_us_per_op": 2.0, "machine_cpu_us_per_op": 2.0}, "encrypted": {}}
    embedded = results.cell("sqlite", "gocryptfs", layer="rest", regime="one-core", overhead=overhead, arms=arms)
    assert figure_text.lead_metric(embedded) == leads
    planned = capacity.of(embedded)
    assert planned is not None
    assert planned.key == leads, "capacity is planned with the figure of the headline"


def test_a_proof_and_findings_like_those_of_the_cell_above_are_printed_once() -> None:
    def in_clear(count: int, fix: str = "PRAGMA x") -> list[Finding]:
        return [Finding("temporary-data-in-clear", "medium", f"sort: {count} times in /tmp/a{count}", fix)]

    run_result = results.result(
        results.cell(findings=in_clear(3)),
        results.cell(workload="connect", findings=in_clear(44)),
        results.cell(workload="insert", findings=in_clear(5, "none")),
    )
    text = terminal.render(run_result)
    assert text.count("proven: as above") == 2
    assert text.count("findings: as above") == 1
    assert text.count("Fixed by: PRAGMA x") == 1
    assert text.count("Fixed by: none") == 1


def test_no_change_is_a_sentence_too() -> None:
    none = cell(1.0, overhead={"throughput": Estimate(1.0, 0.99999, 1.00001)}, verdict="equivalent")
    assert figure_text.priced(none) in verdict_text.answer(results.result(none))
    assert notation.NO_CHANGE in figure_text.priced(none)


def test_more_mechanisms_than_a_headline_holds_are_counted() -> None:
    run_result = results.result(*(cell(0.8, engine=f"engine{n}") for n in range(9)))
    sentences = verdict_text.sentences(run_result)
    assert len(sentences) == verdict_text.MOST_SENTENCES
    assert sentences[-1].startswith(f"{9 - verdict_text.MOST_SENTENCES + 1} more ")


# ── where it stands ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_terminal_begins_with_the_answer_and_a_table_of_all_cells() -> None:
    run_result = results.result(
        one_core(), one_core(workload="connect"), results.failed(workload="insert", regime="one-core")
    )
    text = terminal.render(run_result)
    first = verdict_text.sentences(run_result)[0]
    assert " ".join(text.split()).startswith(" ".join(first.split()))
    summary, details = text.index("server CPU/op"), text.index("what encryption costs")
    assert summary < details
    lines = text[:details].splitlines()
    row = next(line for line in lines if line.startswith("  point-select "))
    for figure in ("37.0 % more", "34.3–39.7 %", "28.0 % fewer", "26.6–29.4 %"):
        assert figure in row
    assert "  insert: FAILED" in lines
    assert text.count("what it protects") == 0, "there is one mechanism"


def test_markdown_and_latex_have_the_sentences_too() -> None:
    run_result = results.result(cell(0.8), cell(0.5, engine="mysql"))
    first, second = verdict_text.sentences(run_result)
    assert md.render(run_result).startswith(f"### {first}")
    assert f"\n{second}" in md.render(run_result)
    assert second.replace("%", r"\%")[:40] in latex.render(run_result)


# ── labels ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_label_leaves_out_what_all_share_and_repeats_nothing() -> None:
    matrix = [cell(0.8, clients=n, variant=f"clients={n} cipher=chacha20") for n in (1, 8)]
    assert cell_text.names(matrix) == ["1 client", "8 clients"]
    conditions = [cell(0.8, conditions={"delay": "10ms", "cache": "small"}), cell(0.8, conditions={"delay": "10ms"})]
    shown = cell_text.names(conditions)
    assert "10ms" not in " ".join(shown)
    assert "10ms" in cell_text.in_common(conditions)
    assert shown == [
        "cache small",
        "no other conditions",
    ]


def test_a_long_label_of_a_plot_takes_more_lines_and_loses_nothing() -> None:
    long = "certificate=rsa4096 resumption=tickets cipher=TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 share="
    cells = [cell(0.8, variant=long + share) for share in ("all", "none")] + [cell(0.7, variant="version=1.2")]
    (plot,) = forest.plots(Subject(results.result(*cells)))
    for width in ("wide", "narrow"):
        drawn = plot.drawn(width)
        for last in ("share=all", "share=none"):
            assert last in drawn
        assert "…" not in drawn


def test_the_axis_has_the_notation_of_the_figures() -> None:
    slow = results.cell(overhead={"latency_p50": results.estimate(8.0)})
    (plot,) = forest.plots(Subject(results.result(slow)))
    drawn = plot.drawn()
    assert "latency p50, encrypted ÷ plain (logarithmic)" in drawn
    assert ">×" in drawn
    (plot,) = forest.plots(Subject(results.result(cell(0.8), cell(1.3, workload="connect"))))
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", plot.drawn())
    assert not [text for text in texts if text.startswith(("−", "-"))], "a direction is a word"
    assert any("fewer →" in text for text in texts)


# ── noise ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("plain", "encrypted", "estimate", "noise"),
    [
        (0.009, 0.05, Estimate(5.9, 0.255, 136), True),
        (0.00988, 1.15, Estimate(116, 26.6, 509), True),
        (20.0, 22.0, Estimate(1.1, 0.7, 1.6), True),
        (20.0, 30.0, Estimate(1.5, 1.4, 1.6), False),
        (4476.0, 4379.0, Estimate(0.98, 0.9, 1.1), False),
    ],
)
def test_byte_counts_near_zero_are_left_out(plain: float, encrypted: float, estimate: Estimate, *, noise: bool) -> None:
    overhead = {"throughput": results.estimate(0.8), "disk_read_per_op": estimate}
    arms = {"plain": {"read_bytes_per_op": plain}, "encrypted": {"read_bytes_per_op": encrypted}}
    run_result = results.result(results.cell("sqlite", "sqlcipher", layer="rest", overhead=overhead, arms=arms))
    shown = [row.key for row in figure_text.rows(run_result.cells[0])]
    assert ("disk_read_per_op" in shown) is not noise
    for text in (terminal.render(run_result), md.render(run_result), html.render(run_result)):
        assert ("bytes read from disk" in text) is not noise
    # Data formats keep what reports leave out.
    assert "disk_read_per_op" in {row["metric"] for row in figures.figures(run_result)}


# ── one lead, one name ────────────────────────────────────────────────────────────────────────────────────────────────


def test_different_workloads_are_not_one_range() -> None:
    several = [cell(0.9 - 0.1 * n, workload=f"load{n}") for n in range(5)]
    (sentence,) = verdict_text.sentences(results.result(*several))
    assert "5 workloads in 5 cells" in sentence
    assert "%" not in sentence
    two = [cell(0.9 - 0.1 * n, workload=load, clients=n + 1) for n, load in enumerate("aabb")]
    (sentence,) = verdict_text.sentences(results.result(*two))
    assert re.fullmatch(r"[^;]* under a [^;]*; [^;]* under b [^;]*", sentence), sentence
    assert "in 4 cells" not in sentence


def test_an_embedded_database_has_no_client_included() -> None:
    overhead = {"throughput": results.estimate(0.22), "client_cpu_per_op": results.estimate(4.45, 0.003)}
    embedded = results.cell("sqlite", "sqlcipher", layer="rest", regime="one-core", overhead=overhead)
    answer = verdict_text.answer(results.result(embedded))
    assert figure_text.cost("throughput", overhead["throughput"]) in answer
    assert "client included" not in answer


def test_every_report_leads_with_the_same_figure() -> None:
    run_result = results.result(one_core(), one_core(workload="connect"))
    (plot,) = forest.plots(Subject(run_result))
    assert plot.name == "forest"
    assert plot.title == forest.TITLES["cpu"]
    lead = figure_text.lead_metric(run_result.cells[0])
    cost = figure_text.cost(lead, run_result.cells[0].overhead[lead])
    assert notation.of_what(cost, figure_text.short(run_result.cells[0], lead)) == next(
        cell_text.costs(run_result.cells[0])
    )
    assert next(cell_text.costs(run_result.cells[0])) in md.render(run_result)
    assert f"{figure_text.label(run_result.cells[0], lead)} {cost}" in notebook.line(run_result)
    budgeted = [plot.title for plot in forest.plots(Subject(run_result, (), 0.1))]
    assert budgeted == [forest.TITLES["cpu"], forest.TITLES["throughput"]], "the budget is one of operations per second"


def test_an_unresolved_cost_is_marked() -> None:
    open_ = cell(0.99, overhead={"throughput": results.estimate(0.99, 0.05)}, verdict="unresolved")
    assert next(cell_text.costs(open_)).endswith("fewer operations/s (unresolved)")
    assert "(unresolved)" in html.render(results.result(open_))


def test_a_control_is_marked_in_every_label_and_has_no_encrypted_arm() -> None:
    control = cell(1.04, mechanism="no-sendfile", layer="control", variant="size=1KB no-sendfile")
    assert [name.endswith(" (control)") for name in cell_text.names([cell(0.8), control])] == [False, True]
    assert not cell_text.names([control])[0].endswith("(control)")
    both = results.result(control, cell(0.8, mechanism="no-sendfile", layer="control", variant="size=1MB no-sendfile"))
    assert verdict_text.answer(both).count("no-sendfile") == 1


def test_a_controls_gain_does_not_compress_the_axis_of_costs() -> None:
    control = cell(2.1, 0.05, mechanism="no-sendfile", layer="control")
    _, second = forest.plots(Subject(results.result(cell(0.8), control)))
    assert "controls" in second.title
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", second.drawn())
    assert any("encrypted ÷ plain" in text for text in texts)
