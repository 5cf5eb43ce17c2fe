"""`make middle`: attacks × commands × clients × servers; prints a table and writes benchmarks/middle.json."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from middle import logins
from middle.attacks import ATTACKS
from middle.behind import CLIENTS, server
from middle.case import CASES, CONTROLS, Case, Outcome, attempt
from middle.chains import Chains

KEPT = Path(__file__).parents[2] / "benchmarks" / "middle.json"
USAGE = 2
"""Exit status of a command that can't do what it was asked for."""
WIDTH = 9
"""Characters of a cell of the table."""
LONGEST = 110
"""Characters of an error in the table."""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="make middle", description=__doc__)
    parser.add_argument("--servers", default=" ".join(CLIENTS), help=f"[default: {' '.join(CLIENTS)}]")
    parser.add_argument("--clients", default="rust jdbc", help="[default: rust jdbc]")
    parser.add_argument(
        "--attacks", default="", help="only those whose name contains one of these words, separated by ;"
    )
    parser.add_argument(
        "--kept", type=Path, default=KEPT, help="where the outcomes are written; those of other cases stay"
    )
    asked = parser.parse_args(argv)
    words = [word.strip() for word in asked.attacks.split(";") if word.strip()]
    chosen = [
        *(case for case in CONTROLS if case.client in asked.clients.split()),
        *(
            case
            for case in CASES
            if case.client in asked.clients.split() and (not words or any(word in case.attack.name for word in words))
        ),
    ]
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="ciphercost-middle-", dir="/var/tmp") as place:
        Path(place).chmod(0o711)
        for name in asked.servers.split():
            for outcome in _server(name, chosen, Path(place)):
                outcomes.append(outcome)
                print(f"{line(outcome)}\n{outcome.text if outcome.wrong else ''}".rstrip(), flush=True)
    keep(asked.kept, outcomes)
    print(f"\n{table(outcomes)}\n\nA man in the middle who goes on to the login:\n")
    differ = logins.main(asked.servers.split(), asked.clients.split())
    return 0 if not any(outcome.wrong for outcome in outcomes) and not differ else 1


def keep(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write them to a file, in the place of earlier outcomes of the same cases; others stay as they are."""
    earlier = msgspec.json.decode(path.read_bytes(), type=list[Outcome]) if path.exists() else []
    by_case = {
        (outcome.attack, outcome.server, outcome.client, outcome.command): outcome for outcome in (*earlier, *outcomes)
    }
    known = [(case.attack.name, *case[1:]) for case in (*CONTROLS, *CASES)]
    kept = [by_case[key] for key in known if key in by_case]
    for outcome in kept:
        outcome.text = outcome.text if outcome.wrong else ""
    path.write_text(json.dumps(msgspec.to_builtins(kept), indent=1, ensure_ascii=False) + "\n")


def _server(name: str, chosen: Sequence[Case], place: Path) -> Iterator[Outcome]:
    """The cases of one server."""
    chains = Chains(place / "chains" / name)
    with server(name, place / name) as behind:
        for number, case in enumerate(case for case in chosen if case.server == name):
            directory = place / f"{name}-{number}"
            directory.mkdir()
            yield attempt(case, behind, chains, directory)


def line(outcome: Outcome) -> str:
    """One row: what happened, and the first line of the error."""
    where = f"{outcome.attack:<26} {outcome.server:<11} {outcome.client:<5} {outcome.command:<9}"
    why = "; ".join(outcome.wrong) or outcome.error
    return f"{where} {_cell(outcome):<8} {why[:LONGEST]}".rstrip()


def table(outcomes: Sequence[Outcome]) -> str:
    """A row per attack, a column per server, client and command."""
    columns = list(dict.fromkeys((outcome.server, outcome.client, outcome.command) for outcome in outcomes))
    by_case = {(outcome.attack, outcome.server, outcome.client, outcome.command): outcome for outcome in outcomes}
    rows = [
        ("attack", *(server[:WIDTH] for server, _, _ in columns)),
        ("", *(client for _, client, _ in columns)),
        ("", *(command for _, _, command in columns)),
    ]
    for name in ("none", *(attack.name for attack in ATTACKS)):
        row = [by_case.get((name, *column)) for column in columns]
        if any(row):
            rows.append((name, *map(_cell, row)))
    lines = [f"{name:<26} {' '.join(f'{cell:>{WIDTH}}' for cell in cells)}".rstrip() for name, *cells in rows]
    refused = [outcome for outcome in outcomes if outcome.attack != "none" and not outcome.wrong]
    tried = [outcome for outcome in outcomes if outcome.attack != "none"]
    lines.append(f"{len(refused)} of {len(tried)} refused")
    lines.append(
        "*: before it connects, since JDBC drivers take no revocation list, and calibrate, which never encrypts, no authority"
    )
    return "\n".join(lines)


def _cell(outcome: Outcome | None) -> str:
    if outcome is None:
        return "–"
    if outcome.wrong:
        return "WRONG"
    if outcome.attack == "none":
        return "works"
    return "refused*" if outcome.status == USAGE else "refused"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
