"""case: one command against one server behind one attack, and a judgement."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec

import warm
from middle.attacks import ATTACKS, NONE, Attack
from middle.behind import CLIENTS, COMMANDS, CONNECTING, Behind, takes
from middle.chains import Chains
from middle.middle import Middle

NUMBER = re.compile(r"(fewer|more) operations/s|95 % CI|ENCRYPTED,")
"""What a command prints that has measured or proven something."""
REASON = re.compile(r"(FAILED client: |encrypted arm: |error: |Error: )(?P<reason>.*?)( \[\S+( \(\w+\))?\]|\. )")
EXPLAINED = re.compile(r"to the server after that\. (?P<reason>[^.]+)")
PATH = re.compile(r"/\S+/(?=ca\.pem)")


class Case(NamedTuple):
    """A cell of the table."""

    attack: Attack
    server: str
    client: str
    command: str

    def __str__(self) -> str:
        return "-".join((self.attack.name, *self[1:]))


CASES = [
    Case(attack, server, client, command)
    for attack in ATTACKS
    for server, clients in CLIENTS.items()
    for client in clients
    for command in COMMANDS
    if takes(command, server, client)
    and not (attack.strips and server in ("nginx", "valkey"))  # they have no request for TLS that could be denied
    and not (
        attack.factors and command in ("clean", "predict")
    )  # they take no --set, so their user can't demand more than TLS
]
CONTROLS = [
    Case(NONE, server, client, command)
    for server, clients in CLIENTS.items()
    for client in clients
    for command in CONNECTING
    if takes(command, server, client)
]
"""The same without an attack: a refusal proves nothing where everything is refused."""


class Outcome(msgspec.Struct):
    """What happened in a case."""

    attack: str
    server: str
    client: str
    command: str
    status: int
    error: str
    """The first line of the reason."""
    wrong: list[str] = []
    """What should not have happened. Empty: the attack was refused as promised."""
    text: str = ""
    """Everything that the command printed."""


@contextmanager
def between(attack: Attack, behind: Behind, chains: Chains) -> Iterator[tuple[Middle, Path | None]]:
    """The middle, and the authority that the user names. At the end it has heard every client out."""
    shown = chains.present(attack.chain)
    with Middle(behind.upgrade, attack, shown, behind.port) as middle:
        yield middle, behind.ca if attack.tunnels else shown.ca
        middle.finish()


def attempt(case: Case, behind: Behind, chains: Chains, place: Path) -> Outcome:
    """Run it. `place`: an empty directory."""
    with between(case.attack, behind, chains) as (middle, ca):
        # The cell without TLS comes first, so that it must wait for the other's handshake. It has no TLS settings.
        cells = ("tls",) if case.attack.factors else ("none", "tls")
        argv = [*behind.argv(case.command, middle.port, ca, cells)]
        argv += ["--client", "jdbc"] if case.client == "jdbc" else []
        if case.command in ("prove", "run"):
            argv += [word for factor in case.attack.factors for word in ("--set", factor)]
        environment = {**os.environ, **behind.environment}
        if argv[0].endswith(".py"):
            done = subprocess.run(
                [sys.executable, *argv], cwd=place, env=environment, capture_output=True, text=True, timeout=250
            )
        else:
            done = warm.run(argv, cwd=place, env=environment)
    text = done.stdout + done.stderr
    return Outcome(
        *(case.attack.name, case.server, case.client, case.command),
        done.returncode,
        "" if case.attack == NONE else reason(text, case.client),
        misdeeds(case, middle, done.returncode, text),
        text,
    )


def misdeeds(case: Case, middle: Middle, status: int, text: str) -> list[str]:
    """What contradicts: refused, in words that name the reason, no number, nothing sent to the middle."""
    attack, words = case.attack, " ".join(text.split())
    if attack == NONE:
        disturbed = "NO STEADY STATE" in text  # on a busy machine
        wrongs: dict[str, object] = {f"exit status {status}": status and not disturbed, "no client": not middle.lines}
    else:
        # JDBC drivers take no revocation list, and a command that never encrypts takes no authority, so ciphercost refuses both before
        # anybody connects.
        never = case.command not in CONNECTING
        unable = never or (attack.chain == "revoked" and case.client == "jdbc")
        says = f"would verify no certificate|{attack.says}" if never else attack.says
        wrongs = {
            f"exit status {status}": status != (2 if unable or case.command == "predict" else 1),
            "a number or a proof": NUMBER.search(words),
            f"no reason that matches '{says}'": not re.search(says, words),
            f"sent unencrypted: {middle.in_clear}": middle.in_clear,
            f"sent encrypted to the middle: {bytes(middle.learned)!r}": middle.learned,
            "the attack did not take place": not middle.struck and not unable,
        }
    wrongs["a traceback"] = "Traceback" in text
    return [what for what, happened in wrongs.items() if happened]


def reason(text: str, client: str) -> str:
    """Why it failed, from all that it printed. Pure."""
    words = PATH.sub("", " ".join(text.split()))
    # A driver's own message begins with generalities; ciphercost explains it behind.
    match = (EXPLAINED.search(words) if client == "jdbc" else None) or REASON.search(words)
    return match["reason"] if match else words
