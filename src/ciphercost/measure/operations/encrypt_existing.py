"""Turning encryption on: existing data become encrypted, in the plain arm they are rewritten in the same way without it."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

from ciphercost.host import canary_scan, deadlines
from ciphercost.load.operation_client import Done, Operation
from ciphercost.measure.operations.context import OperationContext, own_agent, timed, tool_of
from ciphercost.mechanisms._rest import AtRest, Conversion
from ciphercost.model.errors import AgentError, RunError
from ciphercost.model.spec import ARMS, Arm
from ciphercost.provision import cache

TABLE = "document"
COPIED = 'cp -a "$1" "$2" && sync -f "$2"'
"""Copies a directory and waits until it is on the disk."""


def encrypt_existing(context: OperationContext, stack: contextlib.ExitStack) -> Operation:
    """By the server, or by a copy into an encrypted directory where encryption lies below it."""
    mechanism = context.bench.mechanism
    assert isinstance(mechanism, AtRest)
    if mechanism.loaded_once:
        return CopyIntoEncrypted(context, stack)
    return ConvertInPlace(context, stack)


class CopyIntoEncrypted(Operation):
    """Copies the server's directory as it was loaded, unencrypted, to where the arm's data lie."""

    name = "encrypt-existing"
    tool = "cp -a and sync"

    def __init__(self, context: OperationContext, stack: contextlib.ExitStack) -> None:
        self._context = context
        self._tool = tool_of(context, stack)

    def execute(self, arm: Arm) -> Done:
        source = self._context.bench.dataset.template(self._context.bench.dataset.place(arm))
        ended = self._tool.run(["sh", "-c", COPIED, "sh", str(source), str(self._target(arm))], "cp", as_us=True)
        return Done(ended["seconds"], ended["user_ns"], ended["system_ns"], cache.size(self._target(arm)))

    def verify(self, arm: Arm) -> None:
        volume = self._context.pair.by_arm[arm].volume
        assert volume is not None
        mechanism = self._context.bench.mechanism
        assert isinstance(mechanism, AtRest)
        mechanism.flush(volume)

    def clear(self, arm: Arm) -> None:
        shutil.rmtree(self._target(arm), ignore_errors=True)

    def _target(self, arm: Arm) -> Path:
        volume = self._context.pair.by_arm[arm].volume
        assert volume is not None
        return volume.path.with_name("ciphercost-copy")


class ConvertInPlace(Operation):
    """Lets the server encrypt a copy of the workload's table, or SQLCipher a copy of the database."""

    name = "encrypt-existing"

    def __init__(self, context: OperationContext, stack: contextlib.ExitStack) -> None:
        self._context = context
        bench, pair = context.bench, context.pair
        mechanism = bench.mechanism
        assert isinstance(mechanism, AtRest)
        self._agent = own_agent(context, stack)
        self._places = {arm: context.directory / arm for arm in ARMS}
        self._conversions: dict[Arm, Conversion] = {}
        for arm in ARMS:
            connection = pair.connect[arm].single
            self._agent.connect(arm, connection)
            found = mechanism.conversion(pair.look(arm, self._agent, arm, connection), TABLE, self._places[arm])
            assert found is not None
            self._conversions[arm] = found

    def prepare(self, arm: Arm) -> None:
        self.clear(arm)
        self._context.make(self._places[arm])
        for statement in self._conversions[arm].make:
            self._agent.query(arm, statement, timeout=deadlines.load())

    def execute(self, arm: Arm) -> Done:
        conversion = self._conversions[arm]
        took, cpu = timed(self._agent, arm, conversion.convert)
        return Done(took, cpu, 0, cache.size(conversion.converted))

    def verify(self, arm: Arm) -> None:
        """Whether the encrypted arm's data are encrypted now, as the server or the file itself shows."""
        conversion = self._conversions[arm]
        if self._context.pair.side(arm) == "plain":
            return
        if conversion.encrypted:
            rows = self._agent.query(arm, conversion.encrypted)
            done, how = rows == [["Y"]], f"the server reports {rows}"
        else:
            seen = canary_scan.search([("", conversion.converted)], self._context.pair.canary)
            done, how = not seen.hits and seen.size > 0, f"the canary is in its file ({seen})"
        if not done:
            raise RunError(f"encrypted arm: the data are not encrypted although that was asked for: {how}")

    def clear(self, arm: Arm) -> None:
        for statement in self._conversions[arm].drop:
            with contextlib.suppress(AgentError):  # nothing was made, or it is gone
                self._agent.query(arm, statement, timeout=deadlines.load())
        shutil.rmtree(self._places[arm], ignore_errors=True)
