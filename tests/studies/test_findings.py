"""The findings that no run changes: each is used, and one number of each is computed again from the published tables."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from datetime import datetime
from statistics import fmean, variance

import numpy as np
import pytest
from scipy import stats

from ciphercost import studies
from ciphercost.model.spec import CellSpec
from ciphercost.plan.resolve import resolve
from ciphercost.studies import catalogue


def sections(study: str) -> list[str]:
    return re.findall(r"^## (.+)$", studies.get(study).file("findings.md"), re.MULTILINE)


@functools.cache
def table(study: str, file: str) -> list[dict[str, str]]:
    return list(studies.get(study).rows(file))


def number(study: str, file: str, column: str, **where: str) -> float:
    """The one value of that column in the row where the others have these values."""
    (row,) = (row for row in table(study, file) if all(row[name] == value for name, value in where.items()))
    return float(row[column])


@pytest.mark.parametrize("study", studies.names())
def test_every_finding_is_read_and_every_one_that_is_read_exists(study: str) -> None:
    code = (catalogue.FOLDER / catalogue.folder(study) / "findings.py").read_text()
    headings = sections(study)
    assert headings
    assert len(set(headings)) == len(headings)
    assert [name for name in headings if f'"{name}"' not in code and f"'{name}'" not in code] == []
    for name in re.findall(r"study\.finding\([\"'](.+?)[\"']\)", code):
        assert studies.get(study).finding(name)
    with pytest.raises(KeyError):
        studies.get(study).finding("no such finding")


# ── one number of each, computed again ────────────────────────────────────────────────────────────────────────────────

CF = "column-functions"


def seconds(server: str, operation: str, records: str, arm: str) -> float:
    return number(CF, "time.csv", "seconds_mean", server=server, operation=operation, records=records, arm=arm)


def column_costs() -> dict[tuple[str, str, str], float]:
    keys = dict.fromkeys((row["server"], row["operation"], row["records"]) for row in table(CF, "time.csv"))
    return {key: seconds(*key, "encrypted") / seconds(*key, "plain") for key in keys}


def mean_cost_of_mariadb() -> str:
    """Mean over the operations of the mean over the loads."""
    by_operation: dict[str, list[float]] = {}
    for (server, operation, _), cost in column_costs().items():
        if server == "mariadb":
            by_operation.setdefault(operation, []).append(cost)
    means = [fmean(costs) for costs in by_operation.values()]
    return f"from its authors' spreadsheets {100 * (fmean(means) - 1):.2f} ± {100 * math.sqrt(variance(means)):.2f} %"


def hours_between_arms() -> str:
    first = {
        (r["server"], r["records"], r["arm"]): datetime.fromisoformat(r["first_run"]) for r in table(CF, "order.csv")
    }
    apart = [
        abs((began - first[server, records, "plain"]).total_seconds()) / 3600
        for (server, records, arm), began in first.items()
        if arm == "encrypted"
    ]
    return f"began {min(apart):.1f} to {max(apart):.0f} hours later"


def idle_cells() -> str:
    plain = [float(row["cpu_percent_mean"]) for row in table(CF, "cpu.csv") if row["arm"] == "plain"]
    return f"In {sum(percent < 90 for percent in plain)} of {len(plain)} published cells of the plain arm"


def largest_change_of_memory() -> str:
    level = {
        (row["server"], row["operation"], row["records"], row["arm"]): float(row["memory_gb_mean"]) * 1024**3 / 1e6
        for row in table(CF, "memory.csv")
    }
    changes = [
        used - level[server, operation, records, "plain"]
        for (server, operation, records, arm), used in level.items()
        if arm == "encrypted"
    ]
    return f"to {max(changes):+,.0f} MB"


def failures_of_the_cpu_order() -> str:
    rows = {
        tuple(row[key] for key in ("operation", "records", "arm", "server")): float(row["cpu_percent_mean"])
        for row in table(CF, "cpu.csv")
    }
    cells = sorted({key[:3] for key in rows})
    failing = [
        cell for cell in cells if not rows[*cell, "mariadb"] > rows[*cell, "postgresql"] > rows[*cell, "firebird"]
    ]
    assert all(rows[*cell, "firebird"] > rows[*cell, "postgresql"] for cell in failing)
    return f"In {len(failing)} of {len(cells)} comparisons"


def memory_of_small_loads() -> str:
    rows = {
        (int(row["records"]), row["operation"], row["arm"]): float(row["memory_gb_mean"])
        for row in table(CF, "memory.csv")
        if row["server"] == "postgresql"
    }
    cells = sorted({key[:2] for key in rows})
    higher = [cell for cell in cells if rows[*cell, "encrypted"] > rows[*cell, "plain"]]
    assert {records for records, _ in higher} == {1000, 2000}
    return f"higher with encryption, in {len(higher)} of {sum(records <= 2000 for records, _ in cells)} cells"


def share_of_reading() -> str:
    share = seconds("mariadb", "select", "8000", "plain") / seconds("mariadb", "update", "8000", "plain")
    return f"mariadb update {100 * share:.0f} %"


def mistyped_run() -> str:
    row = next(row for row in table(CF, "slips.csv") if row["kind"] == "value")
    return f"run {row['run']} is {float(row['spreadsheet']):.2f} s; its log has {float(row['log']):.2f} s"


PGEE = "cybertec-tde-cost"


def logs_of_pgee() -> tuple[list[float], list[float]]:
    rows = table(PGEE, "figures.csv")
    with_tde, without = (
        [math.log(float(row["tps"])) for row in rows if (row["bits"] != "0") is tde] for tde in (True, False)
    )
    return with_tde, without


def resolution_of_pgee() -> str:
    with_tde, without = logs_of_pgee()
    degrees = len(with_tde) + len(without) - 2
    pooled = (variance(with_tde) * (len(with_tde) - 1) + variance(without) * (len(without) - 1)) / degrees
    return f"known to ±{100 * math.expm1(stats.t.ppf(0.975, degrees) * math.sqrt(2 * pooled)):.2f} %"


def interval_of_pgee() -> str:
    with_tde, without = logs_of_pgee()
    interval = stats.ttest_ind(with_tde, without).confidence_interval(0.95)
    least, most = (100 * -math.expm1(bound) for bound in (interval.high, interval.low))
    return f"95 % interval {least:.2f} to {most:.2f} %"


def checksums_of_pgee() -> str:
    off, on = (number(PGEE, "figures.csv", "tps", bits="128", checksums=checksums) for checksums in ("off", "on"))
    assert on > off
    return f"128 bits ({off:,.1f} → {on:,.1f} TPS)"


def waiting_of_pgee() -> str:
    return f"{1000 * 3 / number(PGEE, 'figures.csv', 'tps', bits='0', checksums='off'):.2f} ms for a transaction"


MT = "mysql-tls"


def cpu(operation: str, counter: str, arm: str) -> list[float]:
    """One column of a CPU table, its last row included; blanks left out."""
    column = f"{counter}_percent_tls_{arm}"
    return [float(row[column]) for row in table(MT, "cpu.csv") if row["operation"] == operation and row[column]]


def cost_of_select() -> str:
    off, on = (number(MT, "response_time.csv", f"seconds_tls_{arm}", operation="select") for arm in ("off", "on"))
    return f"select {100 * (on / off - 1):.1f} % more"


def without_its_average_row() -> str:
    system = cpu("update", "system", "off")
    return f"update without TLS {fmean(system):.2f} and {fmean(system[:-1]):.2f}"


def rows_of_select() -> str:
    return f"select {5 * (len(cpu('select', 'idle', 'off')) - 1)} s of rows"


def inferred_cell() -> str:
    row = next(row for row in table(MT, "cpu.csv") if row["operation"] == "insert" and not row["iowait_percent_tls_on"])
    others = [float(value) for name, value in row.items() if name.endswith("_percent_tls_on") and value]
    return f"add up to {sum(others):.2f}, so we infer {100 - sum(others):.2f}"


def maximum_of_select() -> str:
    text = max(float(row["percent"]) for row in table(MT, "text.csv") if row["operation"] == "select")
    values = max(("off", "on"), key=lambda arm: max(cpu("select", "system", arm)))
    system = cpu("select", "system", values)
    return f"a maximum of {text:.2f} at 30 s, Table II has {max(system):.2f} at {5 * (system.index(max(system)) + 1)} s"


def update_at_55_seconds() -> str:
    off, on = (
        number(MT, "cpu.csv", f"system_percent_tls_{arm}", operation="update", time_s="55") for arm in ("off", "on")
    )
    assert off < on
    return f"at 55 s has {off:.2f} without TLS against {on:.2f} with it"


def quoted_average() -> str:
    quoted = number(MT, "text.csv", "percent", operation="update", tls="off", statistic="average")
    return f"update without TLS {quoted:.2f} ({fmean(cpu('update', 'system', 'off')[:-1]):.3f})"


def idle_rows() -> str:
    idle = [row[f"idle_percent_tls_{arm}"] for row in table(MT, "cpu.csv") for arm in ("off", "on")]
    return f"{sum(float(percent or 0) >= 99 for percent in idle)} rows show an idle machine"


def user_of_update() -> str:
    off, on = (fmean(cpu("update", "user", arm)[:-1]) for arm in ("off", "on"))
    return f"%user {off:.2f} → {on:.2f}"


def time_of_an_update() -> str:
    return f"{number(MT, 'response_time.csv', 'seconds_tls_off', operation='update') / 10:.1f} ms per UPDATE"


PT = "postgres-tde"


def figure(server: str, encryption: str, column: str) -> float:
    rows = [row for row in table(PT, "figures.csv") if (row["server"], row["encryption"]) == (server, encryption)]
    return float(rows[0][column])


def of_tde(column: str) -> float:
    return figure("cybertec-15.8", "tde-aes", column)


def of_plain(column: str) -> float:
    return figure("cybertec-15.8", "none", column)


def after_the_fall() -> str:
    rates = [float(row["tps"]) for row in table(PT, "progress.csv") if row["figure"] == "2"]
    return f"{fmean(rates[8:]):.0f} TPS on average from then on"


def fall_of_two_seconds() -> str:
    rates = {int(row["time_s"]): float(row["tps"]) for row in table(PT, "progress.csv") if row["figure"] == "2"}
    return f"{rates[7]:,.0f} to {rates[9]:,.0f} TPS in {9 - 7} s is called slow"


def second_pair() -> str:
    row = table(PT, "edb_pairs.csv")[1]
    return f"= {float(row['clients']) / float(row['latency_avg_ms']) * 1000:,.3f} TPS"


def smallest_size() -> str:
    return f"for {int(table(PT, 'figures.csv')[0]['rows']):,}, "


def typo() -> str:
    row = table(PT, "contradictions.csv")[0]
    return f"{row['in_text']} in the text"


def quoted_system() -> str:
    row = table(PT, "elsewhere.csv")[0]
    return f"{row['system']}: {row['percent']} %"


VT = "valkey-tls"


def set_figure(name: str, arm: str) -> float:
    return number(VT, "figures.csv", arm, figure=name)


def thread_without_a_plain_arm() -> str:
    row = table(VT, "elsewhere.csv")[0]
    return f"{row['figure']} {float(row['before']):,.0f} → {float(row['after']):,.0f}"


SC = "pg-tde-small-cost"


def speed_of_a_copy() -> str:
    """Seconds for a gigabyte without encryption, if decrypting and encrypting it is 30 % of that."""
    added = 2 / number(SC, "bandwidth.csv", "gb_s", what="AES-128-CTR")
    whole = added / (number(SC, "claims.csv", "percent", operation="create-table-as") / 100)
    assert round(number(SC, "bandwidth.csv", "gb_s", what="disk sequential write") * whole) == 5, "a fifth"
    return f"{added:.2f} s for each GB, and this is 30 %, then the copy without encryption took {whole:.2f} s for each GB. That is {1 / whole:.1f} GB/s"


VS = "valkey-storm"


def time_of_a_new_connection() -> str:
    """Milliseconds of one saturated thread, from the fall with 160 new connections a second."""
    rates = [
        number(VS, "figures.csv", when, handshakes="main thread", figure="operations/s")
        for when in ("before", "during")
    ]
    fall = 1 - rates[1] / rates[0]
    return f"{100 * fall:.1f} % of its time for 160 connections is {1e3 * fall / 160:.2f} ms for each"


WT = "web-tls"
FILES_MB = (3, 10, 13, 24, 30, 73, 167, 250)


def counter(name: str, statistic: str, size: int, arm: str) -> float:
    return number(WT, "counters.csv", arm, counter=name, statistic=statistic, file_size_mb=str(size))


def processor(size: int, arm: str) -> float:
    return counter("processor_time_percent", "mean", size, arm)


def not_larger_with_ssl() -> str:
    smaller = [
        (row["table"], row["file_size_mb"], f"{row['http']} → {row['https']}")
        for row in table(WT, "counters.csv")
        if row["table"] in ("II", "III", "IX") and float(row["https"]) <= float(row["http"])
    ]
    assert [entry[:2] for entry in smaller] == [("II", "13"), ("III", "13"), ("IX", "13"), ("IX", "24"), ("IX", "30")]
    of_ix = ", ".join(entry[2] for entry in smaller[2:])
    return f"13 MB in Table II ({smaller[0][2]}) and Table III ({smaller[1][2]}), and for 13, 24 and 30 MB in Table IX ({of_ix})"


def window_of_http() -> float:
    rates = [counter("network_bytes_per_s", "mean", size, "http") for size in FILES_MB]
    return float(1 / np.polyfit([size * 1e6 for size in FILES_MB], rates, 1)[0])


def busy(size: int, arm: str) -> float:
    """Share of the window in which bytes moved: CV² = (1 − p)/p."""
    return 1 / (1 + counter("network_bytes_per_s", "cv", size, arm) ** 2)


def while_busy(name: str, scale: float) -> str:
    return " → ".join(f"{counter(name, 'mean', 250, arm) / busy(250, arm) / scale:.3g}" for arm in ("http", "https"))


def rows_with_more_memory() -> str:
    more = [
        size
        for size in FILES_MB
        if counter("memory_available_bytes", "mean", size, "https")
        > counter("memory_available_bytes", "mean", size, "http")
    ]
    return f"higher with TLS in {len(more)} of {len(FILES_MB)} rows"


def errors_of_the_smallest_file() -> str:
    means, variances = (
        [counter("processor_time_percent", statistic, 3, arm) for arm in ("http", "https")]
        for statistic in ("mean", "variance")
    )
    return f"{(means[1] - means[0]) / math.sqrt(sum(variances) / window_of_http()):+.1f} standard errors"


def change_of_the_disk_queue() -> str:
    most = max(
        counter("disk_queue_length", "mean", size, "https") / counter("disk_queue_length", "mean", size, "http")
        for size in FILES_MB
    )
    return f"{100 * (most - 1):.0f} % more"


def printed_change() -> str:
    plain, encrypted = (counter("disk_queue_length", "mean", 30, arm) for arm in ("http", "https"))
    printed = number(WT, "change.csv", "percent_as_printed", counter="disk_queue_length", file_size_mb="30")
    return f"30 MB is printed as {printed:g}, a decrease, and {plain:g} → {encrypted:g} is {100 * (encrypted / plain - 1):.1f} % more"


def captured() -> str:
    row = table("jdbc-tls", "packets.csv")[0]
    iv, mysql, mac, padding = (int(row[f"{part}_bytes"]) for part in ("iv", "mysql", "mac", "padding"))
    return f"{iv} + {mysql} + {mac} + {padding} = {iv + mysql + mac + padding}"


def limits_of_the_post() -> str:
    share = float(table("mysql-openssl", "limits.csv")[0]["percent"])
    return f"at most {share:g} %, so at most {100 * (1 / (1 - share / 100) - 1):.1f} % apart"


FH = "fips-haproxy"


def fips_figure(fips: str, name: str, library: str = "openssl") -> float:
    return number(FH, "figures.csv", library, fips=fips, figure=name)


def peaks_in_fips_mode() -> str:
    lost = [100 * (1 - fips_figure("on", "peak", name) / fips_figure("off", "peak", name)) for name in LIBRARIES]
    return f"{lost[0]:.1f} % of the new connections a second (~5,000 → 3,363) and AWS-LC {lost[1]:.1f} %"


LIBRARIES = ("openssl", "aws_lc")


def rounded_peak() -> str:
    low, high = (100 * (1 - fips_figure("on", "peak") / (fips_figure("off", "peak") + half)) for half in (-50, 50))
    return f"leaves {low:.1f} to {high:.1f} %"


def cpu_of_a_connection() -> str:
    more = (fips_figure("on", "CPU at 2000/s") / 2000) / (fips_figure("off", "CPU at 4000/s") / 4000)
    return f"{100 * (more - 1):.0f} % more CPU for a connection"


def lower_cpu() -> str:
    before, after = (fips_figure("on", "CPU at 2000/s", name) for name in LIBRARIES)
    return f"{before:.0f} % → {after:.0f} %, which is {100 * (1 - after / before):.0f} % lower"


DT = "direct-tls"


def psql_ms(statistic: str, how: str = "postgres", time: str = "real") -> float:
    return 1e3 * number(DT, "figures.csv", how, time=time, statistic=statistic)


def interval_of_starts() -> str:
    return f"differ by ± {1.96 * psql_ms('sd') * math.sqrt(2 / 1000):.2f} ms (95 %)"


def starts_for_a_round_trip() -> str:
    return f"takes {math.ceil(2 * (1.96 * psql_ms('sd') / 0.05) ** 2):,} starts"


def cpu_of_psql() -> str:
    user, system = (psql_ms("mean", time=time) for time in ("user", "sys"))
    left = psql_ms("mean") - user - system
    text = f"Of the {psql_ms('mean'):.0f} ms, {user + system:.0f} are CPU time of psql itself ({user:.0f} user, {system:.0f} system)"
    assert f"What is left is {left:.0f} ms" in studies.get(DT).finding("start")
    return text


def means_and_medians() -> str:
    means, medians = (f"{psql_ms(name):.0f} → {psql_ms(name, 'direct'):.0f}" for name in ("mean", "median"))
    return f"in the mean ({means}) and in the median ({medians})"


DR = "driver-tls"


def with_tls(test: str) -> float:
    """MB/s with TLS, per cent more than without."""
    plain, encrypted = (number(DR, "pymongo.csv", arm, test=test) for arm in ("plain", "encrypted"))
    return 100 * (encrypted / plain - 1)


def rows_without_a_network() -> str:
    first, second, third = map(with_tls, ("JsonFullDecoding", "JsonFullEncoding", "JsonDeepDecoding"))
    return f"{-first:.1f} % lower, {-second:.1f} % lower and {third:.1f} % higher"


def downloads() -> str:
    return f"GridFsDownload loses {-with_tls('GridFsDownload'):.1f} % and FindOneByID {-with_tls('FindOneByID'):.1f} %"


def delayed_by_nagle() -> str:
    before, after = (
        number(DR, "proxy.csv", "encrypted", when=when) - number(DR, "proxy.csv", "plain", when=when)
        for when in ("before", "after")
    )
    return f"Of the {before:.0f} s that TLS added to 101 connections through the proxy, {before - after:.0f} were gone"


OL = "odyssey-large-value"


def odyssey(column: str, pooler: str = "odyssey") -> float:
    return number(OL, "figures.csv", column, pooler=pooler)


def quotient_of_poolers() -> str:
    return f"20.812 s ÷ 0.714 s is {odyssey('seconds') / odyssey('seconds', 'pgbouncer'):.1f}"


def copies_of_what_is_left() -> str:
    records, size = math.ceil(odyssey("bytes") / 16384), odyssey("bytes")
    copied = sum(size - 16384 * written for written in range(records))
    speed = copied / odyssey("seconds") / 1e9
    assert f"In 20.8 s that is {speed:.1f} GB/s" in studies.get(OL).finding("cause")
    return f"takes {records:,} writes and {copied / 1e9:.1f} GB of copies"


def reads_with_a_replica() -> str:
    least, most = (
        number("volume-encryption", "claims.csv", bound, workload="read", setup="HA") for bound in ("least", "most")
    )
    return f"even reads lose {least:.0f} to {most:.0f} %"


def test_commands_in_findings_name_what_exists() -> None:
    for study in studies.names():
        for command in re.findall(r"`ciphercost run (.+?)`", " ".join(studies.get(study).file("findings.md").split())):
            words = command.split()
            engine, _, mechanism = words[0].partition(":")
            given = dict(zip(words[1::2], words[2::2], strict=True))
            assert set(given) <= {"--workload", "--objective"}
            cell = CellSpec(engine, mechanism, workload=given["--workload"], objective=given.get("--objective", ""))
            assert resolve(cell).workload.name == given["--workload"]


TE = "turso-encryption"


def turso_figure(name: str, arm: str) -> float:
    return number(TE, "figures.csv", arm, figure=name)


def fewer_transactions() -> str:
    return f"{100 * (1 - turso_figure('transactions', 'encrypted') / turso_figure('transactions', 'plain')):.1f} % fewer transactions"


def mixed_of_both_claims() -> str:
    read, write = (number(TE, "claims.csv", "percent", operation=name) for name in ("read", "write"))
    more = 100 * (turso_figure("total time", "encrypted") / turso_figure("total time", "plain") - 1)
    assert f"own runs took {more:.1f} % more" in studies.get(TE).finding("per-cent")
    return f"would take {0.75 * read + 0.25 * write:.1f} % more time"


def rows_in_the_end() -> str:
    return f"had {turso_figure('write operations', 'plain'):,.0f} rows in the end"


def found_by_reads() -> str:
    found = [turso_figure("reads found", arm) for arm in ("plain", "encrypted")]
    assert found[0] == found[1]
    return f'"{found[0]:.0f} found, 0 not found"'


def room_of_the_tag() -> str:
    return f"{100 * 48 / 4096:.1f} % of the encrypted arm's pages"


COMPUTED: dict[tuple[str, str], Callable[[], str]] = {
    (TE, "one-run"): fewer_transactions,
    (TE, "reads"): found_by_reads,
    (TE, "per-cent"): mixed_of_both_claims,
    (TE, "growth"): rows_in_the_end,
    (TE, "pages"): room_of_the_tag,
    ("volume-encryption", "replica"): reads_with_a_replica,
    (DR, "noise"): rows_without_a_network,
    (DR, "who-pays"): downloads,
    (DR, "proxy"): delayed_by_nagle,
    (OL, "one-run"): quotient_of_poolers,
    (OL, "cause"): copies_of_what_is_left,
    (DT, "words"): means_and_medians,
    (DT, "in-order"): interval_of_starts,
    (DT, "round-trip"): starts_for_a_round_trip,
    (DT, "start"): cpu_of_psql,
    (FH, "cost"): peaks_in_fips_mode,
    (FH, "one-run"): rounded_peak,
    (FH, "cpu"): cpu_of_a_connection,
    (FH, "summary"): lower_cpu,
    (CF, "modes"): lambda: f"mariadb AES-128-ECB {float(table(CF, 'cost.csv')[0]['cost_percent_mean']):.1f} % more",
    (CF, "cpus"): lambda: (
        f"for {sum(row['aes_instructions'] == 'yes' for row in table(CF, 'machines.csv'))} of the {len(table(CF, 'machines.csv'))} models"
    ),
    (CF, "no-interval"): lambda: f"± {float(table(CF, 'cost.csv')[0]['cost_percent_stddev']):.1f} %",
    (CF, "averages"): mean_cost_of_mariadb,
    (CF, "below-zero"): lambda: f"mariadb delete 1,000 {100 * (1 - min(column_costs().values())):.1f} % less",
    (CF, "order"): hours_between_arms,
    (CF, "slips"): mistyped_run,
    (CF, "waiting"): idle_cells,
    (CF, "memory"): largest_change_of_memory,
    (CF, "cpu-order"): failures_of_the_cpu_order,
    (CF, "less-memory"): memory_of_small_loads,
    (CF, "elsewhere"): lambda: f"nor here: {', '.join(row['value'] for row in table(CF, 'elsewhere.csv'))}.",
    (CF, "reads-first"): share_of_reading,
    (PGEE, "answer"): resolution_of_pgee,
    (PGEE, "all-cells"): interval_of_pgee,
    (PGEE, "contradictions"): checksums_of_pgee,
    (PGEE, "waiting"): waiting_of_pgee,
    (MT, "intervals"): cost_of_select,
    (MT, "one-pass"): rows_of_select,
    (MT, "sar"): lambda: f"from the {(len(table(MT, 'cpu.csv')[0]) - 2) // 2} counters",
    (MT, "consistently"): update_at_55_seconds,
    (MT, "averages"): without_its_average_row,
    (MT, "blank"): inferred_cell,
    (MT, "maxima"): maximum_of_select,
    (MT, "quoted-averages"): quoted_average,
    (MT, "edges"): idle_rows,
    (MT, "system-only"): user_of_update,
    (MT, "statements"): time_of_an_update,
    (PT, "loss"): lambda: f"{100 * (1 - of_tde('tps') / of_plain('tps')):.0f} % lost",
    (PT, "falling"): after_the_fall,
    (PT, "screen"): lambda: f"{of_plain('initial_connection_ms'):.3f} ms to connect, {of_plain('tps'):.6f} TPS",
    (PT, "promised"): lambda: f"{figure('enterprisedb-15.10', 'none', 'tps'):.1f} TPS",
    (PT, "wording"): fall_of_two_seconds,
    (PT, "unequal-work"): lambda: f"ended after {of_plain('transactions') / of_plain('tps'):.2f} s",
    (PT, "same-latency"): smallest_size,
    (PT, "two-pairs"): second_pair,
    (PT, "littles-law"): lambda: f"CYBERTEC without {50 / of_plain('latency_avg_ms') * 1000:,.0f} by latency",
    (PT, "spread"): lambda: f"is {of_tde('latency_stddev_ms') / of_tde('latency_avg_ms'):.2f} of its mean",
    (PT, "contradictions"): typo,
    (PT, "loads"): lambda: f"low load, {table(PT, 'edb_pairs.csv')[1]['clients']} clients",
    (PT, "elsewhere"): quoted_system,
    (SC, "copy-speed"): speed_of_a_copy,
    (VS, "a-connection"): time_of_a_new_connection,
    (VT, "one-run"): lambda: f"{100 * (1 - set_figure('sets', 'encrypted') / set_figure('sets', 'plain')):.1f} % fewer",
    (VT, "waiting"): lambda: f"{1e6 / 2 / set_figure('sets', 'encrypted'):.1f} µs with it",
    (VT, "missed"): lambda: (
        f"{100 * set_figure('gets that missed', 'plain') / set_figure('gets', 'plain'):.1f} % of the gets"
    ),
    (VT, "without-a-plain-arm"): thread_without_a_plain_arm,
    (WT, "window"): lambda: f"{window_of_http():.1f} s and",
    (WT, "busy-share"): lambda: f"{while_busy('network_bytes_per_s', 1e6)} MB/s",
    (WT, "pace"): lambda: f"{while_busy('network_bytes_per_s', 100e6 / 8 / 100)} % of it",
    (WT, "dilution"): lambda: f"{while_busy('processor_time_percent', 1)} % of the time",
    (WT, "few-samples"): errors_of_the_smallest_file,
    (WT, "changes"): printed_change,
    (WT, "larger"): not_larger_with_ssl,
    (WT, "less-than"): lambda: (
        f"has {number(WT, 'change.csv', 'percent_as_printed', counter='network_bytes_per_s', file_size_mb='30'):g} for 30 MB"
    ),
    (WT, "growth"): lambda: (
        f"by {250 / 3:.1f} times, and Table I's processor time with TLS by {processor(250, 'https') / processor(3, 'https'):.1f} times"
    ),
    (WT, "rsa"): lambda: (
        f"is {processor(3, 'https') - processor(3, 'http'):.3f} % of the window; that of the 250 MB row is "
        f"{processor(250, 'https') - processor(250, 'http'):.3f} %"
    ),
    (WT, "elsewhere"): lambda: f"nor here: {', '.join(row['value'] for row in table(WT, 'elsewhere.csv'))}.",
    (WT, "memory"): rows_with_more_memory,
    (WT, "disk"): change_of_the_disk_queue,
    ("jdbc-tls", "suites"): captured,
    ("jdbc-tls", "unknown"): lambda: f"{number('jdbc-tls', 'time.csv', 'milliseconds', version='5.1.6'):,.0f}",
    ("mysql-openssl", "limits"): limits_of_the_post,
    ("pq-tls", "first-byte"): lambda: (
        f"{number('pq-tls', 'claims.csv', 'percent', bound=''):g} % for the time to the first byte"
    ),
}
"""A text of each finding, computed from the study's tables."""


def test_a_number_of_every_study_is_computed_again() -> None:
    missing = sorted(set(studies.names()) - {study for study, _ in COMPUTED})
    assert not missing, (
        f"{missing}: COMPUTED needs a finding of this study, and how its number follows from the study's tables"
    )


@pytest.mark.parametrize(("study", "name"), COMPUTED, ids=["-".join(key) for key in COMPUTED])
def test_its_number_is_that_of_the_published_table(study: str, name: str) -> None:
    assert COMPUTED[study, name]() in studies.get(study).finding(name)
