"""What ciphercost will do to a server that the user already runs, and who can reach those that it starts. Printed before it
does anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from ciphercost.plan.planned import PlannedCell

INDENT = "=== "
CHANGING = ("POST", "PUT", "PATCH", "DELETE")
"""Methods of requests that a site may answer by changing something."""


def lines(planned: Sequence[PlannedCell]) -> list[str]:
    """The banner's lines; none if ciphercost starts every server itself, for this machine alone, and the workloads show all that is asked."""
    from ciphercost.plan import conditions, shown
    from ciphercost.report.layout import wrap

    reached = dict.fromkeys(conditions.who_reaches_it(cell.conditions, cell.engine) for cell in planned)
    opened = [line for text in reached if text for line in wrap(f"{text[0].upper()}{text[1:]}.", INDENT, f"{INDENT}  ")]
    unseen = dict.fromkeys(text for cell in planned for text in shown.not_shown(cell))
    opened += [line for text in unseen for line in wrap(f"{text}.", INDENT, f"{INDENT}  ")]
    cells = [cell for cell in planned if cell.spec.url]
    if not cells:
        return opened
    banner = opened + wrap(
        "You run this server; ciphercost does not control it. Other load on it changes the figures.", INDENT, INDENT
    )
    for url in dict.fromkeys(cell.spec.url for cell in cells):
        cells_of_url = [cell for cell in cells if cell.spec.url == url]
        banner += wrap(f"{_place(url)}:", INDENT, f"{INDENT}  ")
        for does in _does(cells_of_url):
            banner += wrap(does, f"{INDENT}- ", f"{INDENT}  ")
    return banner


def _place(url: str) -> str:
    """`postgresql://staging:5432/shop`, without a user; of the two URLs of a web server, both; an address without a scheme as it is."""
    if "://" not in url:
        return url
    parts = [urlsplit(single_url) for single_url in url.split()]
    return " and ".join(f"{part.scheme}://{part.netloc.rpartition('@')[2] or 'localhost'}{part.path}" for part in parts)


def _creates(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """What the cells create on a server with tables or keys."""
    making = [cell for cell in cells if cell.program.creates]
    keys = all(cell.engine.language == "kv" for cell in cells)
    files = any(cell.spec.workload_file for cell in cells)
    option = "--workload" if files else "--sql"
    yours = (
        f"your commands ({option}) run on your own keys"
        if keys
        else f"your statements ({option}) run on your own tables"
    )
    others = "" if making else "; ciphercost creates nothing"
    if files or any(cell.spec.own_script for cell in cells):
        yield f"{yours} as they are{others}"
    elif not making:
        yield f"ciphercost uses none of your {'keys' if keys else 'tables'} and creates nothing"
    if making:
        only = "works only there" if len(making) == len(cells) else "works only there otherwise"
        yield f"ciphercost creates its own schema, ciphercost_<run>, {only}, and drops it at the end"


def _proof(cells: Sequence[PlannedCell]) -> str:
    """How it is proven what commands send."""
    if all(cell.mechanism.layer == "control" for cell in cells):
        return "to see whether its output can be read"
    return "and its bytes are captured, to prove which arm is encrypted"


def _does(cells: Sequence[PlannedCell]) -> Iterator[str]:
    """What the cells create on one server, and how much load they make."""
    from ciphercost.model.constrained_types import MOST_ERRORS
    from ciphercost.plan import connection_strings, specs

    if all(cell.engine.language == "http" for cell in cells):
        yield "ciphercost sends requests and creates nothing"
        methods = {
            statement.sql.removeprefix("SECURE ").split(maxsplit=1)[0]
            for cell in cells
            for _, _, script in cell.program.transactions
            for statement in script.statements
        }
        if changing := sorted(methods & set(CHANGING)):
            yield (
                f"your {' and '.join(changing)} requests may change what the site stores, thousands of times; the arms' answers to them are "
                "not compared"
            )
        if names := dict.fromkeys(name for cell in cells for name in cell.header_names):
            readable = (
                "" if all(cell.reference for cell in cells) else "; in the plain arm anyone on the way can read them"
            )
            yield f"every request has your {', '.join(names)}{readable}"
    elif any(cell.engine.by_command for cell in cells):
        yield "your commands load it, as hard as they do, dozens of times; ciphercost itself sends it nothing"
        yield f"each arm's command runs once before any load, {_proof(cells)}"
        share = max(cell.spec.max_errors or MOST_ERRORS for cell in cells)
        yield f"the load stops if more than {100 * share:g} % of a slice's operations fail"
        return
    else:
        yield from _creates(cells)
    yield f"at most {specs.most_connections(cells)} connections at once"
    rates = {cell.spec.max_rate for cell in cells}
    most = f"at most {max(rates):g} operations per second" if all(rates) else ""
    yield most or "as much load as it answers (limit it with --max-rate)"
    shares = {cell.spec.max_errors or MOST_ERRORS for cell in cells}
    stops = f"the load stops if more than {100 * max(shares):g} % of a slice's operations fail"
    if all(slow := {cell.spec.max_latency for cell in cells}):
        stops += f" or its 99th percentile is above {1e3 * max(slow):g} ms"
    yield stops
    yield from dict.fromkeys(remark for cell in cells for remark in connection_strings.remarks(cell.spec, cell.engine))
