"""--price turns the CPU time that encryption adds into money, with its interval, or states why that is unknown."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from click.testing import Result as Done
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import result_schema
import short
from ciphercost import commands
from ciphercost.load import units
from ciphercost.model import run_directory
from ciphercost.model.errors import UsageError
from ciphercost.model.result import Cell, Estimate, Imported, Money, Price, Result
from ciphercost.report import formats, markdown, money
from ciphercost.report.formats import html, md, terminal
from repetitions import examples
from results import cell, estimate, failed, recorded, result

HOURLY = Price(0.036, "hour", prefix="$")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recorded(tmp_path_factory.mktemp("money") / "run")


def asked(*args: object) -> Done:
    return CliRunner().invoke(commands.cli, [str(arg) for arg in args])


def priced(unpriced: Cell, price: Price = HOURLY) -> Money:
    (shown,) = money.at_price(result(unpriced), price).cells
    assert shown.money is not None
    return shown.money


# ── prices ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "price", "printed"),
    [
        ("0.04/vcpu-hour", Price(0.04, "hour"), "0.04 per vCPU-hour"),
        ("$0.04/vcpu-hour", Price(0.04, "hour", prefix="$"), "$0.04 per vCPU-hour"),
        ("US$ 0.04 / vCPU-hour", Price(0.04, "hour", prefix="US$"), "US$0.04 per vCPU-hour"),
        ("EUR 29/vcpu-month", Price(29.0, "month", prefix="EUR"), "EUR 29 per vCPU-month"),
        ("29EUR/vcpu-month", Price(29.0, "month", suffix="EUR"), "29 EUR per vCPU-month"),
        ("29.5€/VCPU-MONTH", Price(29.5, "month", suffix="€"), "29.5 € per vCPU-month"),
        (".00001/vcpu-hour", Price(0.00001, "hour"), "0.00001 per vCPU-hour"),
    ],
)
def test_a_price_is_understood_and_printed_as_it_was_typed(text: str, price: Price, printed: str) -> None:
    assert units.price(text) == price
    assert money.price_text(price) == printed


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not a price; write e.g."),
        ("0.04", "not a price; write e.g."),
        ("0.04/hour", "not a price; write e.g."),
        ("0,04/vcpu-hour", "not a price; write e.g."),
        ("-1/vcpu-hour", "not a price; write e.g."),
        ("nan/vcpu-hour", "not a price; write e.g."),
        ("1e3/vcpu-hour", "not a price; write e.g."),
        ("4 euros and more/vcpu-hour", "not a price; write e.g."),
        ("<b>4/vcpu-hour", "not a price; write e.g."),
        ("$4EUR/vcpu-hour", "two currencies"),
        ("0/vcpu-hour", "above 0"),
        ("99999999999/vcpu-month", "at most"),
    ],
)
def test_a_bad_price_is_refused(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as caught:
        units.price(text)
    assert caught.value.exit_status == 2
    assert f"--price: '{text}'" in str(caught.value)


CURRENCIES = st.sampled_from(["", "$", "€", "£", "¥", "US$", "EUR", "kr", "₹"])


@given(st.decimals("0.000001", "999999", places=6), CURRENCIES, CURRENCIES, st.sampled_from(["hour", "month"]))
@settings(max_examples=examples(300), deadline=None)
def test_every_price_is_read_back_from_what_is_printed(amount: object, prefix: str, suffix: str, per: str) -> None:
    assume(not (prefix and suffix))
    price = units.price(f"{prefix}{amount:f}{suffix}/vcpu-{per}")
    assert price == Price(float(str(amount)), "hour" if per == "hour" else "month", prefix, suffix)
    assert units.price(money.price_text(price).replace(" per ", "/")) == price


ALMOST = st.builds(
    "{}{}{}/vcpu-{}".format,
    CURRENCIES | st.text(max_size=2),
    st.decimals("-1", "1e12", places=2) | st.text("0123456789.,", max_size=6),
    CURRENCIES | st.text(max_size=2),
    st.sampled_from(["hour", "month", "day"]),
)
"""Texts of which some are prices; of other texts hardly one is."""


@given(st.text(max_size=20) | st.text("0123456789.,$€EUR /vcpu-hourmonth", max_size=25) | ALMOST)
@example("$4/vcpu-hour")
@settings(max_examples=examples(500), deadline=None)
def test_any_text_is_a_price_or_a_usage_error(text: str) -> None:
    try:
        price = units.price(text)
    except UsageError:
        return
    assert 0 < price.amount <= units.MOST_MONEY
    assert not (price.prefix and price.suffix)
    assert not set(price.prefix + price.suffix) & set("<>&\"'\\`*_[]()#|@!\n\t 0123456789")


# ── amounts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_money_is_the_added_cpu_time_at_the_price() -> None:
    """12.75 µs · 25 % = 3.1875 CPU seconds more per million operations; an hour of 0.036 costs 0.00001 per second."""
    amounts = priced(cell(overhead={"server_cpu_per_op": Estimate(1.25, 1.2, 1.3)}))
    million, busy = amounts.per_million_operations, amounts.per_busy_vcpu_month
    assert amounts.metric == "server_cpu_per_op"
    assert million is not None
    assert busy is not None
    assert (million.value, million.low, million.high) == pytest.approx((3.1875e-5, 2.55e-5, 3.825e-5))
    assert (busy.value, busy.low, busy.high) == pytest.approx([0.036 * 730 * share for share in (0.25, 0.2, 0.3)])


def test_a_price_per_month_is_a_price_per_hour_of_730_hours() -> None:
    hourly, monthly = (priced(cell(), price) for price in (Price(0.04, "hour"), Price(0.04 * 730, "month")))
    for field in ("per_million_operations", "per_busy_vcpu_month"):
        one, other = getattr(hourly, field), getattr(monthly, field)
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high))


@given(
    st.floats(0.2, 20),
    st.just(0.0) | st.floats(1e-6, 0.5),
    st.just(0.0) | st.floats(1e-6, 0.5),
    st.floats(0.000001, 1e6),
)
@settings(max_examples=examples(200), deadline=None)
def test_the_line_has_the_amounts_in_order(ratio: float, below: float, above: float, amount: float) -> None:
    measured = cell(overhead={"server_cpu_per_op": Estimate(ratio, ratio * (1 - below), ratio * (1 + above))})
    (shown,) = money.at_price(result(measured), Price(amount, "hour")).cells
    line = money.line(shown)
    assert "e-" not in line
    assert "nan" not in line
    assert shown.money is not None
    million = shown.money.per_million_operations
    assert million is not None
    assert million.low <= million.value <= million.high
    if million.low > 0 and below + above:
        match = re.search(r": ([\d.,]+) more \(([\d.,]+)–([\d.,]+)\) per million", line)
        assert match is not None
        value, low, high = (float(number.replace(",", "")) for number in match.groups())
        assert low <= value <= high
        assert low < high


@pytest.mark.parametrize(
    ("ratio", "low", "high", "text"),
    [
        (1.25, 1.2, 1.3, "$6.57 more (5.26–7.88) a month"),
        (0.8, 0.7, 0.9, "$5.26 less (2.63–7.88) a month"),
        (1.05, 0.98, 1.12, "$1.31 more (0.53 less to 3.15 more) a month"),
        (1.25, 1.25, 1.25, "$6.57 more (exact) a month"),
        (1.25, 1.24999, 1.25001, "$6.5700 more (6.5697–6.5703) a month"),
    ],
)
def test_words_and_digits_follow_the_interval(ratio: float, low: float, high: float, text: str) -> None:
    measured = cell(overhead={"server_cpu_per_op": Estimate(ratio, low, high)})
    (shown,) = money.at_price(result(measured), HOURLY).cells
    assert text in money.line(shown)


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        (cell(overhead={"throughput": estimate(0.8)}), "ciphercost can't see its processes"),
        (cell("null", "busy", layer="control"), "encrypts nothing"),
        (cell(status="unproven"), "not proven"),
        (failed(), "has no number"),
        (
            cell(status="unproven", mode="imported", imported=Imported("pgbench", [], {}, "unknown")),
            "an imported run has no proven CPU time",
        ),
    ],
)
def test_unknown_money_has_its_reason(measured: Cell, reason: str) -> None:
    amounts = priced(measured)
    assert amounts.per_million_operations is None
    assert amounts.per_busy_vcpu_month is None
    assert reason in amounts.reason
    (shown,) = money.at_price(result(measured), HOURLY).cells
    assert amounts.reason in money.line(shown)


# ── reports ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def spoken(text: str) -> str:
    return " ".join(text.split())


def test_every_format_with_money_has_the_same_line() -> None:
    run_result = money.at_price(result(cell(), cell(workload="connect")), HOURLY)
    line = money.line(run_result.cells[0])
    assert formats.with_price() == ["html", "json", "md", "terminal"]
    assert line in spoken(terminal.render(run_result))
    assert markdown.escaped(line) in md.render(run_result)
    assert line in html.render(run_result)
    read = msgspec.json.decode(formats.get("json")(run_result), type=Result)
    assert read.cells[0].money == run_result.cells[0].money
    result_schema.validate(json.loads(formats.get("json")(run_result)))


def test_an_experiment_has_money_for_each_cell() -> None:
    cells = [cell(group="g", variant=f"cipher={cipher}") for cipher in ("aes256-gcm", "chacha20")]
    run_result = money.at_price(result(*cells), HOURLY)
    page = spoken(terminal.render(run_result))
    assert [f"{cell.variant}: {money.line(cell)}" in page for cell in run_result.cells] == [True, True]


def test_without_a_price_no_report_mentions_money() -> None:
    for name in ("terminal", "md", "html"):
        assert "vCPU" not in formats.get(name)(result(cell()))


def test_the_command_prints_money_or_refuses(run: Path, tmp_path: Path) -> None:
    done = asked("report", run, "--price", "$0.04/vcpu-hour")
    assert (done.exit_code, "$0.04 per vCPU-hour: unknown" in done.output) == (0, True)
    done = asked("report", run, "--price", "4/vcpu-hour", "--format", "html", "-o", tmp_path / "page.html")
    assert done.exit_code == 0
    assert "4 per vCPU-hour" in (tmp_path / "page.html").read_text()
    for args, reason in (
        (("--price", "4"), "not a price"),
        (("--price", "4/vcpu-hour", "--format", "csv"), "use html, json, md, terminal"),
        (("--price", "4/vcpu-hour", "--max-cost", "5%"), "advice without money"),
    ):
        refused = asked("report", run, *args).exception
        assert isinstance(refused, UsageError)
        assert reason in str(refused)


def test_a_run_prints_money_and_refuses_a_bad_price_before_it_starts(tmp_path: Path) -> None:
    refused = asked("run", "sqlite:sqlcipher", "--price", "4", "-o", tmp_path / "never")
    assert isinstance(refused.exception, UsageError)
    assert not (tmp_path / "never").exists()
    args = ("--quick", "--time", "3s", "--no-latency", "--no-progress", "--price", "29EUR/vcpu-month")
    done = short.run(("run", "sqlite:sqlcipher", *args, "-o", "run", "--json", "run.json"), cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    written = msgspec.json.decode((tmp_path / "run.json").read_bytes(), type=Result)
    assert written.cells[0].money is not None
    assert money.line(written.cells[0]) in spoken(done.stdout)
    assert written.cells[0].money.metric in ("machine_cpu_per_op", "client_cpu_per_op")
    assert run_directory.find(str(tmp_path / "run")) == tmp_path / "run"
