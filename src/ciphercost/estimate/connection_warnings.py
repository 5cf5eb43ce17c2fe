"""connection_warnings: how the server or this machine treats connections, where that changes what a cell's figures mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ciphercost.model.constrained_types import EARLY
from ciphercost.model.facts import CellFacts
from ciphercost.model.result import CellEstimate, Warning_

CLOSES, SELDOM = 0.5, 0.02
"""Connections per request from which the server closes every one, and below which closing is not worth a word."""
PACED_BYTES = 32 * 1024
"""Bytes of an operation from which pacing on loopback was seen to limit a server: 1 MB much, 10 KB not at all."""


def warnings(machine: Mapping[str, Any], known: CellFacts, estimate: CellEstimate | None) -> list[Warning_]:
    """All of this module's warnings that this cell deserves. Pure."""
    return [*not_resumed(known, estimate), *paced(machine, known, estimate), *closing(known, estimate)]


def closing(known: CellFacts, estimate: CellEstimate | None) -> list[Warning_]:
    """The warning that the server closes connections that the load would keep. Pure."""
    if estimate is None or not known.keeps_connections:
        return []
    share = {}
    for arm, figures in estimate.arms.items():
        requests = figures.get("operations", 0) * max(1.0, figures.get("rows_per_op", 1.0))
        share[arm] = figures.get("connects", 0) / requests if requests else 0.0
    most = max(share.values(), default=0.0)
    if most < SELDOM:
        return []
    arms = " and ".join(arm for arm, value in share.items() if value >= most / 2)
    where = f"in the {arms} arm{'s' * (' ' in arms)}"
    if most >= CLOSES:
        text = (
            f"the server closes every connection after one request ({where}), so each request pays for a new one, which with encryption "
            "means a handshake; let the server keep connections alive to measure encryption on open ones"
        )
    else:
        after = round(1 / most)
        text = (
            f"the server closes a connection after about {after} requests ({where}), so one in {after} pays for a new one, which with "
            "encryption means a handshake"
        )
    return [Warning_("server-closes", text)]


def not_resumed(known: CellFacts, estimate: CellEstimate | None) -> list[Warning_]:
    """The warning that connections may resume a session but none did. Pure."""
    arm = estimate.arms.get("encrypted", {}) if estimate else {}
    asked = known.factors.get("resumption", "off")
    if arm and asked == EARLY and not arm.get("connects"):
        text = f"resumption is {EARLY}, but the workload keeps its connections, so no request was early; use --workload connect or --per-request"
        return [Warning_("not-early", text)]
    if asked == "off" or not arm.get("connects") or arm.get("resumed"):
        return []
    text = "resumption is on, but no connection resumed a session: the server keeps or issues none"
    return [Warning_("not-resumed", text)]


def paced(machine: Mapping[str, Any], known: CellFacts, estimate: CellEstimate | None) -> list[Warning_]:
    """The warning that this machine paces connections within itself, which hides what encryption costs. Pure.

    BBR paces by its own timers (tcp_bbr.c in Linux), also on loopback: with responses of 1 MB, nginx without TLS reached a fifth of
    what it reaches with CUBIC on the machine where this was found.
    """
    size = estimate.arms["plain"].get("wire_bytes_per_op") if estimate else None
    if machine.get("congestion_control") != "bbr" or known.spec.url or not size or size < PACED_BYTES:
        return []
    text = (
        "TCP's bbr paces both arms; that may hide the cost, so run "
        "`sysctl -w net.ipv4.tcp_congestion_control=cubic` and measure again"
    )
    return [Warning_("paced", text)]
