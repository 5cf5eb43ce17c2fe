"""`ciphercost predict`: what encryption would cost a server, whose load the user gives or its counters tell."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ciphercost.estimate import prediction, server_load
from ciphercost.load.connection_string.keywords import as_url
from ciphercost.measure import server_load as counters
from ciphercost.model.errors import UsageError
from ciphercost.model.own_tls import NONE, OwnTls
from ciphercost.model.prediction import Load, Prediction
from ciphercost.model.result import Result
from ciphercost.model.server_counters import OPTIONS, GivenLoad
from ciphercost.plan.targets import counting


def predict(
    result: Result,
    given: GivenLoad,
    url: str | None,
    *,
    seconds: float,
    own_tls: OwnTls = NONE,
    begins: Callable[[str], None] = lambda _: None,
) -> list[Prediction]:
    """A prediction for each mechanism of the run. `url`: read what is not given from this server's counters, twice, `seconds` apart.

    `begins`: gets a line before the wait. Raises UsageError.
    """
    if url is None:
        return prediction.predict(result, _given_alone(given))
    url = as_url(url)
    engine = counting(url)
    prediction.measured(result, engine.like, engine.called_when_read)
    reading = counters.read(
        url,
        seconds,
        own_tls=own_tls,
        needs_cpu=given.cpu_us is None,
        begins=lambda server: begins(f"reading the counters of {server} twice, {seconds:g} s apart"),
    )
    derived = server_load.derive(reading, given)
    return [
        msgspec.structs.replace(
            predicted, notes=[*derived.notes, *predicted.notes], operation=derived.operation, sources=derived.sources
        )
        for predicted in prediction.predict(result, derived.load, like=engine.like, read=derived.read)
    ]


def _given_alone(given: GivenLoad) -> Load:
    """The load that the user gave. Raises UsageError unless it has a rate and a CPU time."""
    missing = [OPTIONS[name] for name in ("rate", "cpu_us") if getattr(given, name) is None]
    if given.rate is None or given.cpu_us is None:
        raise UsageError(
            f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing; give what your server does, e.g. --rate 2000/s --cpu "
            "300us, or --url postgresql://USER@HOST/DATABASE to read it from the server's counters"
        )
    return Load(
        given.rate,
        given.cpu_us,
        given.bytes_per_operation,
        given.connections or 0.0,
        given.cores,
        given.round_trips or 1.0,
        given.units,
    )
