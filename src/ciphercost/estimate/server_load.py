"""The load of a server, from its counters at two moments and from what the user said about it. Pure."""

from __future__ import annotations

import msgspec

from ciphercost.estimate.notation import number
from ciphercost.model.errors import UsageError
from ciphercost.model.prediction import UNIT_OPTIONS, Load, Source
from ciphercost.model.server_counters import FORGOT, NO_CPU, OPTIONS, TRANSACTIONS, UNITS, Figure, GivenLoad, Reading

FEW = 100
"""Operations below which what was read may be far off."""
UNSURE = 0.01
"""Share of the time between the reads by which a slow answer may move it, from which that is said."""
ROUNDING = 0.02
"""Share by which measured CPU time may exceed what the cores can do: the kernel counts ended processes in ticks."""


Grown = tuple[float, str]
"""By how much a counter grew, and the server's name for it."""


class Derived(msgspec.Struct, frozen=True):
    """A server's load, and where each figure comes from."""

    load: Load
    operation: str
    """As the server counts it; empty if the user gave the rate and the CPU time."""
    sources: list[Source]
    notes: list[str]
    read: frozenset[str]
    """Fields of the load that were read rather than given."""


def derive(reading: Reading, given: GivenLoad) -> Derived:
    """What the server does. What the user gave overrides what was read.

    Raises UsageError if the counters were reset between the reads, or if they can't tell what is needed.
    """
    reading, between = _without_losses(reading, _differences(reading))
    seconds = reading.after.at - reading.before.at
    counted, source = between["operations"]
    told = given.rate is not None and given.cpu_us is not None
    # Who says how many operations there are, and what one takes, says what one is.
    notes = [] if told else [*reading.notes, *reading.after.notes]
    if counted <= 0 and not told:
        raise UsageError(
            f"{reading.server} did no {reading.operation} but our own in {seconds:.1f} s (rate 0/s), so there is no load to predict from: "
            "read it while it has its usual load, longer with --for 60s, or give --rate and --cpu"
        )
    if 0 < counted < FEW and not told:
        many = f"{number(counted)} {reading.operation}{'' if counted == 1 else 's'}"
        notes.append(f"only {many} in {seconds:.1f} s, so what was read is rough; --for 60s reads longer")
    unsure = reading.before.within + reading.after.within
    if unsure > UNSURE * seconds and given.rate is None:
        notes.append(
            f"the server answered slowly, so the rate may be {100 * unsure / seconds:.0f} % off; --for 60s reads longer"
        )
    if encrypted := round(between.get("encrypted_connections", (0.0, ""))[0] if given.cpu_us is None else 0.0):
        of = round(between["connections"][0])
        notes.append(
            f"{encrypted} of {of} new connections were encrypted already, so the CPU time that was read contains encryption"
        )
    figures: dict[str, tuple[float, str]] = {"rate": (counted / seconds, source)}
    if counted > 0:
        if cpu := _cpu(reading, between, seconds):
            figures["cpu_us"] = (cpu[0] / (counted / seconds) * 1e6, f"{cpu[1]}, ÷ operations")
        if "bytes" in between:
            size, source = between["bytes"]
            figures["bytes_per_operation"] = (size / counted, f"{source}, ÷ operations")
    if "connections" in between:
        number_of, source = between["connections"]
        figures["connections"] = (number_of / seconds, source)
    if reading.cores is not None:
        figures["cores"] = (float(reading.cores), "CPUs that the server's process may use")
    units = dict(given.units)
    of_units: list[Source] = []
    for figure, (unit, factor) in UNITS.items():
        if figure in between and unit not in given.units:
            grown, source = between[figure]
            units[unit] = grown * factor / seconds
            of_units.append(Source(unit, units[unit], source))
    of_units += [Source(unit, value, UNIT_OPTIONS[unit]) for unit, value in given.units.items()]
    read = frozenset(name for name in figures if getattr(given, name) is None) | (units.keys() - given.units.keys())
    for name, option in OPTIONS.items():
        if (value := getattr(given, name)) is not None:
            figures[name] = (value, option)
    if "cpu_us" not in figures or figures["cpu_us"][0] <= 0:
        raise UsageError(
            NO_CPU.format(reading.no_cpu or "the server's processes took no CPU time that the kernel counts")
        )
    if {"cpu_us", "cores"} <= read:
        figures["cpu_us"] = (
            _possible(figures["cpu_us"][0], figures["rate"][0], figures["cores"][0]),
            figures["cpu_us"][1],
        )
    load = Load(
        rate=figures["rate"][0],
        cpu_us=figures["cpu_us"][0],
        bytes_per_operation=figures["bytes_per_operation"][0] if "bytes_per_operation" in figures else None,
        connections=figures["connections"][0] if "connections" in figures else 0.0,
        cores=figures["cores"][0] if "cores" in figures else None,
        round_trips=figures["round_trips"][0] if "round_trips" in figures else 1.0,
        units=units,
    )
    sources = [Source(name, *figures[name]) for name in OPTIONS if name in figures] + of_units
    sources.append(Source("seconds", seconds, f"between the two reads of {reading.server}"))
    return Derived(load, "" if told else reading.operation, sources, notes, read)


def _without_losses(reading: Reading, between: dict[Figure, Grown]) -> tuple[Reading, dict[Figure, Grown]]:
    """The same, with transactions as operations if the server forgot statements. Raises UsageError if it counts none."""
    if reading.before.lost == reading.after.lost:
        return reading, between
    if "transactions" not in between:
        raise UsageError(
            f"{reading.server}: {FORGOT}, and its transactions are not counted either; give --rate and --cpu"
        )
    notes = (*reading.notes, TRANSACTIONS.format(FORGOT))
    other = msgspec.structs.replace(reading, operation="transaction", notes=notes)
    return other, {**between, "operations": between["transactions"]}


def _differences(reading: Reading) -> dict[Figure, Grown]:
    """By figure: how much it grew, and from where that is known. Raises UsageError if it did not."""
    before = {count.figure: count for count in reading.before.counts}
    after = {count.figure: count for count in reading.after.counts}
    lossy = reading.before.lost != reading.after.lost
    smaller = [
        count.source
        for figure, count in after.items()
        if count.value < before[figure].value - 0.5 and not (lossy and figure == "operations")
    ]
    if smaller or reading.before.marks != reading.after.marks:
        raise UsageError(
            f"the counters of {reading.server} were reset between the two reads, or the server was started again"
            f"{f' ({smaller[0]} fell)' if smaller else ''}; read them once more"
        )
    return {figure: (max(0.0, count.value - before[figure].value), count.source) for figure, count in after.items()}


def _cpu(reading: Reading, between: dict[Figure, Grown], seconds: float) -> tuple[float, str] | None:
    """Busy cores, and from where that is known."""
    if reading.busy is not None:
        return reading.busy.cores, reading.busy.source
    if "cpu_seconds" in between:
        return between["cpu_seconds"][0] / seconds, between["cpu_seconds"][1]
    return None


def _possible(cpu_us: float, rate: float, cores: float) -> float:
    """The CPU time of an operation, without the little by which the kernel's ticks may exceed what the cores can do."""
    most = cores / rate * 1e6
    return most if most < cpu_us <= most * (1 + ROUNDING) else cpu_us
