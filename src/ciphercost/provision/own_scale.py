"""own_scale: finds the scale of pgbench's tables on the user's server, as pgbench does, for scripts that use `:scale`."""

from __future__ import annotations

import msgspec

from ciphercost.load import own_scripts
from ciphercost.load.load_client import LoadClient
from ciphercost.load.plaintext_guard import encrypted_first
from ciphercost.model.errors import AgentError, RunError
from ciphercost.plan.planned import prepare
from ciphercost.provision.prepared_cell import PreparedCell
from ciphercost.provision.server_pair import ServerPair

QUESTION = "SELECT count(*) FROM pgbench_branches"
INSTEAD = f"give it with -D {own_scripts.SCALE}=N"


def find(bench: PreparedCell, pair: ServerPair, agent: LoadClient) -> None:
    """Let the cell's program use the scale, if it needs it and does not know it yet. Raises RunError if there is none."""
    if not bench.program.asks_scale:
        return
    arm = encrypted_first(pair.connect)[0]
    try:
        agent.connect("scale", pair.connect[arm].single)
        try:
            rows = agent.query("scale", QUESTION)
        finally:
            agent.disconnect("scale")
    except AgentError as error:
        raise RunError(f"can't find the scale of pgbench's tables ({QUESTION}): {error}; {INSTEAD}") from None
    scale = str(rows[0][0]) if rows and rows[0] else "0"
    if int(scale) < 1:
        raise RunError(
            f"pgbench_branches has no row, so its scale is unknown; fill the tables with `pgbench -i`, or {INSTEAD}"
        )
    planned, program = bench.planned, bench.program
    cell = msgspec.structs.replace(planned.spec, define={**planned.spec.define, own_scripts.SCALE: scale})
    new = prepare(cell, planned.engine, planned.workload, planned.parameters)
    bench.program = msgspec.structs.replace(
        program,
        transactions=new.transactions,
        parameters={**program.parameters, own_scripts.SCALE: int(scale)},
        asks_scale=False,
    )
