"""A backup by the server's own tool, or by a statement of it, into an unencrypted directory in both arms."""

from __future__ import annotations

import contextlib
import shutil

from ciphercost.engines.capabilities.backups import BacksUp, Backup, BackupRequest
from ciphercost.host import canary_scan
from ciphercost.host.run_ownership import hand_over
from ciphercost.load.operation_client import Done, Operation
from ciphercost.measure.operations.context import OperationContext, own_agent, timed, tool_of
from ciphercost.model.errors import RunError
from ciphercost.model.slices import Finding
from ciphercost.model.spec import ARMS, Arm
from ciphercost.provision import cache

READABLE = "backup-in-clear"


class BackupOperation(Operation):
    name = "backup"

    def __init__(self, context: OperationContext, stack: contextlib.ExitStack) -> None:
        self._context = context
        bench, pair = context.bench, context.pair
        engine = BacksUp.of(bench.engine)
        asked = bench.planned.choices["tool"]
        tool = engine.backup_tools[0] if asked == "usual" else asked
        self._targets = {arm: context.directory / f"backup-{arm}" for arm in ARMS}
        self._backups: dict[Arm, Backup] = {}
        for arm in ARMS:
            server = pair.by_arm[arm]
            assert server.directory is not None
            secrets = bench.shared.secrets / f"backup-{arm}"
            secrets.mkdir(mode=0o700, exist_ok=True)
            hand_over(secrets)
            self._backups[arm] = engine.backup(
                BackupRequest(
                    tool, bench.installation, pair.connect[arm], server.directory, self._targets[arm], secrets
                )
            )
        self.tool = self._backups["plain"].tool or tool
        self._seen: set[Arm] = set()
        self._tool = tool_of(context, stack)
        self._agent = own_agent(context, stack)

    def prepare(self, arm: Arm) -> None:
        self.clear(arm)
        self._context.empty_cache(arm)
        self._context.make(self._targets[arm])

    def execute(self, arm: Arm) -> Done:
        backup = self._backups[arm]
        done = self._by_command(backup) if backup.command else self._by_statement(arm, backup)
        return Done(*done, output_bytes=cache.size(self._targets[arm]))

    def _by_command(self, backup: Backup) -> tuple[float, int, int]:
        """Seconds, and CPU time of the tool in user mode and in the kernel, ns."""
        ended = self._tool.run(backup.command, self.tool)
        return ended["seconds"], ended["user_ns"], ended["system_ns"]

    def _by_statement(self, arm: Arm, backup: Backup) -> tuple[float, int, int]:
        agent = self._agent
        agent.connect(arm, self._context.pair.connect[arm].single)
        took, cpu = timed(agent, arm, [backup.statement])
        agent.disconnect(arm)
        return took, cpu, 0

    def clear(self, arm: Arm) -> None:
        if self._targets[arm].exists():
            shutil.rmtree(self._targets[arm])

    def verify(self, arm: Arm) -> None:
        """Search the first backup of each arm: it must hold the data, and may hold them unencrypted. Raises RunError."""
        if arm in self._seen:
            return
        self._seen.add(arm)
        seen = canary_scan.search(canary_scan.below([self._targets[arm]]), self._context.pair.canary)
        if self._context.pair.side(arm) == "plain":
            if not seen.hits:
                raise RunError(f"{self.tool}: the backup of the plain arm does not contain the data ({seen})")
            return
        text = f"the backup that {self.tool} makes of the encrypted arm is not encrypted"
        finding = Finding(READABLE, "high", text, "encrypt the backup where it is kept, e.g. with age or gpg")
        facts = self._context.facts
        if seen.hits and all(known.code != READABLE for known in facts.findings):
            facts.findings = [*facts.findings, finding]
