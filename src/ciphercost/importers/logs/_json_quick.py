"""Reads the lines of a JSON access log that have the fields of its first lines, without making an object of every other field. Pure.

A type is made for the log: it requires each field that says something, and refuses what would change the meaning, such as another field that
comes first in the lists of `_json_plan`. A line that it refuses is read in the general way, so both ways always say the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import msgspec

from ciphercost.importers.logs import _json_plan as names
from ciphercost.importers.logs._json_plan import Plan, planned

Value = str | int | float | None
_REFUSED = Literal["\0"]
"""The type of a field that must not be there: no log has this value."""
_NOTHING = "nothing"
OF_PLAN = (
    *("request", "time", "client", "method", "path", "protocol", "status"),
    *("size", "seconds", "bytes_in", "connection", "nth", "tls", "reused"),
)
"""The fields of a plan, in the order of `Quick.get`."""


class Tls(msgspec.Struct, gc=False):
    """What Caddy says of TLS."""

    resumed: bool | str | int | None = None


class Quick(NamedTuple):
    """How the lines of one log are read quickly."""

    plan: Plan
    decode: Callable[[bytes], Any]
    """Raises msgspec.DecodeError or UnicodeDecodeError for a line that must be read in the general way."""
    get: Callable[[Any], tuple[Any, ...]]
    """The values of `OF_PLAN`, then what Caddy says of TLS."""


def of(examples: Iterable[Mapping[str, Any]]) -> Quick | None:
    """How to read lines like the most frequent of these. None: they say too little to be requests."""
    alike: Counter[tuple[str, ...]] = Counter()
    first: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for fields in examples:
        nested = fields.get("request")
        key = (*fields, "\0", *(nested if isinstance(nested, dict) else ()))
        alike[key] += 1
        first.setdefault(key, fields)
    return _of(first[alike.most_common(1)[0][0]]) if alike else None


def _of(example: Mapping[str, Any]) -> Quick | None:
    nested = example.get("request")
    inner: Mapping[str, Any] = nested if isinstance(nested, dict) else {}
    merged = {**example, **inner}
    if inner:
        merged.pop("request")
    plan = planned(merged)
    outer_fields, inner_fields = _Fields(), _Fields()
    where: dict[str, str] = {}
    asked = plan._asdict()
    if plan.request:
        # Its line has them all.
        asked |= {"method": "", "path": "", "protocol": ""}
    for part in OF_PLAN:
        name: str = asked[part]
        if name:
            inside = name in inner
            where[part] = f"inner.{part}" if inside else part
            (inner_fields if inside else outer_fields).require(part, name)
            if inner and not inside:
                inner_fields.refuse([name])
        if part in ("method", "path", "protocol") and plan.request:
            continue
        before = [each for each in _before(part, name) if not isinstance(merged.get(each), dict | list)]
        if inner and part == "request":
            before.remove("request")
        outer_fields.refuse(before)
        inner_fields.refuse(before)
    scalar = merged.get("tls") is not None and not isinstance(merged["tls"], dict)
    (inner_fields if inner else outer_fields).optional("by_caddy", "tls", bool | Value if scalar else Tls | None)
    if inner:
        outer_fields.refuse(["tls"])
        outer_fields.fields.append(("inner", inner_fields.type("Inner")))
        outer_fields.renamed["inner"] = "request"
    if not (plan.time and plan.status and (plan.request or (plan.method and plan.path))):
        return None
    paths = [where.get(part, _NOTHING) for part in OF_PLAN]
    caddy = _NOTHING if scalar else "inner.by_caddy" if inner else "by_caddy"
    return Quick(plan, msgspec.json.Decoder(outer_fields.type("Outer")).decode, attrgetter(*paths, caddy))


def _before(part: str, name: str) -> Sequence[str]:
    """The names that would say it in place of `name`."""
    if part == "seconds":
        every: tuple[str, ...] = (*names.SECONDS, *names.MILLISECONDS, *names.MICROSECONDS)
    else:
        every = getattr(names, part.upper())
    return every[: every.index(name)] if name else every


class _Fields:
    """The fields of a type."""

    def __init__(self) -> None:
        self.fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
        self.renamed: dict[str, str] = {}

    def require(self, part: str, name: str) -> None:
        self.fields.append((part, Value))
        self.renamed[part] = name

    def optional(self, part: str, name: str, type_: Any) -> None:
        self.fields.append((part, type_, None))
        self.renamed[part] = name

    def refuse(self, unwanted: Sequence[str]) -> None:
        for name in unwanted:
            if name not in self.renamed.values():
                self.optional(f"refused_{len(self.fields)}", name, _REFUSED)

    def type(self, name: str) -> type[msgspec.Struct]:
        # Required fields come first.
        ordered = sorted(self.fields, key=len)
        return msgspec.defstruct(name, ordered, namespace={_NOTHING: None}, rename=self.renamed, gc=False)
