"""Valkey's and Redis's own counters of their load: INFO.

Source: the documentation of the command INFO.
"""

from __future__ import annotations

from ciphercost.engines.capabilities.load_counters import Counted, CounterReader
from ciphercost.model.errors import UsageError
from ciphercost.model.server_counters import Count

REQUEST = len(b"*1\r\n$4\r\nINFO\r\n")


def parse(lines: str) -> dict[str, str]:
    """The fields of INFO by their names. Pure."""
    pairs = (line.strip().partition(":") for line in lines.splitlines() if ":" in line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


class StoreCounters(CounterReader):
    """Counts commands, and the CPU time of all the server's threads."""

    operation = "command"
    knows_cpu = True

    def prepare(self) -> None:
        self._commands = 0
        self._bytes = 0

    def read(self) -> Counted:
        rows = self.agent.query(self.arm, "INFO")
        text = "\n".join(str(value) for row in rows for value in row)
        known = parse(text)
        self._bytes += REQUEST
        try:
            counts = (
                Count(
                    "operations",
                    float(known["total_commands_processed"]) - self._commands,
                    "commands: total_commands_processed in INFO",
                ),
                Count("connections", float(known["total_connections_received"]), "total_connections_received in INFO"),
                Count(
                    "bytes",
                    float(known["total_net_input_bytes"]) + float(known["total_net_output_bytes"]) - self._bytes,
                    "total_net_input_bytes + total_net_output_bytes in INFO",
                ),
                Count(
                    "cpu_seconds",
                    float(known["used_cpu_user"]) + float(known["used_cpu_sys"]),
                    "used_cpu_user + used_cpu_sys in INFO",
                ),
            )
        except (KeyError, ValueError):
            raise UsageError(
                "--url: the server's INFO has no commands, connections, bytes and CPU time; is it Valkey or Redis 4 or later?"
            ) from None
        # A command is counted, and its answer sent, after INFO has been written.
        self._commands += 1
        self._bytes += len(f"${len(text)}\r\n{text}\r\n")
        return Counted(counts, (known.get("run_id", ""),))
