"""Answers requests in order. Holds the program and the arms; a refused request changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
import platform
import ssl
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, NamedTuple, TypeVar

from ciphercost_agent_python import NAME, VERSION, deadline, drivers, fields, floor, histogram, kinds, settings
from ciphercost_agent_python.failure import Failure, bad_message, no_program
from ciphercost_agent_python.fields import Fields
from ciphercost_agent_python.link import Link, NullLink, Rows, Seen
from ciphercost_agent_python.load import Load, Plan, Tally, Total, driven
from ciphercost_agent_python.program import Into, Program
from ciphercost_agent_python.settings import Settings
from ciphercost_agent_python.sql_link import SqlLink

PROTOCOL = 1
NAMED_KINDS = 16
"""Most kinds of errors that are listed; the rest is `other`."""
LONGEST_SECONDS = 86_400
Answer = dict[str, Any]
Say = Callable[[Answer], None]
T = TypeVar("T")


class Arm(NamedTuple):
    links: Sequence[Link]
    settings: Settings | None
    """None: the null driver."""
    driver_version: str = ""


class Session:
    def __init__(self) -> None:
        self.status: int | None = None
        """The exit status, set if the agent ends after the answer."""
        self._greeted = False
        self._program: Program | None = None
        self._arms: dict[str, Arm] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._say: Say = lambda _: None
        """Sends what precedes the answer to the line that is answered now."""

    def answer(self, line: bytes, say: Say) -> Answer:
        """The answer to one line. `say` sends the event that precedes a slice's answer."""
        try:
            self._say = say
            return self._handled(Fields(fields.read(line)))
        except Failure as failure:
            return _said("error", code=failure.code, text=str(failure))
        except Exception as error:
            traceback.print_exc()
            self.close()
            return _said(
                "error", code="internal", text=f"the agent failed ({type(error).__name__}); its arms are disconnected"
            )

    def close(self) -> None:
        for arm in list(self._arms):
            self._drop(arm)

    def _handled(self, given: Fields) -> Answer:
        kind = given.text("type")
        handler = HANDLERS.get(kind)
        if handler is None:
            raise Failure("unknown-message", f'unknown message type "{kind}"')
        if not self._greeted and kind != "hello":
            raise Failure("protocol", "send `hello` first")
        answer = handler(self, given)
        return _said("ok") if answer is None else answer

    # ── the program ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _hello(self, given: Fields) -> Answer:
        protocol = given.unsigned("protocol")
        given.end()
        if self._greeted:
            raise Failure("protocol", "`hello` was already sent")
        if protocol != PROTOCOL:
            self.status = 2
            raise Failure("protocol", f"this agent supports protocol {PROTOCOL}, not {protocol}")
        self._greeted = True
        return _said(
            "hello",
            protocol=PROTOCOL,
            agent=NAME,
            version=VERSION,
            drivers=" ".join(["null", *drivers.here()]),
            tls_library=_library(),
            aes=floor.uses_aes(),
        )

    def _new_program(self, given: Fields) -> None:
        name, mode, tries = given.text("name"), given.text("mode", "prepared"), given.unsigned("tries", 0)
        given.end()
        self._program = Program(name, mode, tries)

    def _variable(self, given: Fields) -> None:
        name = given.text("name")
        kind = kinds.read(given.text("kind"), given)
        given.end()
        self._known().add_variable(name, kind)

    def _transaction(self, given: Fields) -> None:
        name, weight = given.text("name"), given.whole("weight")
        given.end()
        self._known().add_transaction(name, weight)

    def _statement(self, given: Fields) -> None:
        transaction, sql, parameters = given.text("transaction"), given.text("sql"), given.text("parameters")
        arm, opens = given.text("arm", None), given.flag("open", False)
        prefix, every = given.text("into", None), given.flag("every", False)
        given.end()
        program = self._known()
        if opens:
            raise bad_message("open: this agent does not seal or open values")
        program.add_statement(transaction, arm, sql, parameters, None if prefix is None else Into(prefix, every))

    def _step(self, given: Fields) -> None:
        program = self._known()
        transaction, arm = given.text("transaction"), given.text("arm", None)
        program.add_step(transaction, arm, given.text("do"), given)

    def _cipher(self, given: Fields) -> None:
        del given
        raise bad_message("cipher: this agent does not seal or open values")

    def _known(self) -> Program:
        if self._program is None:
            raise no_program("send `program` first")
        return self._program

    # ── connections ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _connect(self, given: Fields) -> Answer:
        name = given.text("arm")
        connections = given.within("connections", 1, 1, 10_000)
        given.within("threads", 1, 1, 1_000)  # only checked: a connection that blocks has its own thread
        per_request = given.flag("per_request", False)
        seconds = deadline.seconds(given, deadline.CONNECT)
        driver = given.text("driver")
        answer = _said(
            "connected", arm=name, connections=connections, encrypted=False, protocol="", cipher="", group="", resumed=0, verified=False,
            peer="", peer_key="", server_version="", auth="", library="",
        )  # fmt: skip
        if driver == "null":
            busy, jitter = given.unsigned("busy_ns", 0), given.number("jitter", 0.0)
            given.end()
            if not 0 <= jitter <= 1:
                raise bad_message("jitter: must lie between 0 and 1")
            self._drop(name)
            links = [NullLink(busy, jitter, number, per_request=per_request) for number in range(connections)]
            self._arms[name] = Arm(links, None)
            return answer
        if driver not in drivers.here():
            raise bad_message(f'driver: no "{driver}" here')
        asked = settings.read(driver, given, seconds, per_request=per_request)
        kind = drivers.links(driver)
        self._drop(name)
        opened = [kind(asked) for _ in range(connections)]
        try:
            seen, server, version = self._opened(opened, asked)
        except BaseException:
            self._end(opened)
            raise
        self._arms[name] = Arm(opened, asked, version)
        more = {"server_version": server, "driver_version": version, "library": _library()}
        return answer | _seen(seen) | more

    def _opened(self, links: Sequence[SqlLink], asked: Settings) -> tuple[list[Seen], str, str]:
        """Open an arm's connections: with one for each operation, one, to report what was negotiated. Raises Failure."""
        until = time.monotonic() + asked.seconds * deadline.of_all(len(links))
        seen = []
        for link in links[:1] if asked.per_request else links:
            left = min(asked.seconds, max(0.0, until - time.monotonic()))
            seen.append(self._within(left, "finish the login", link.open(), [link]))
        server, version = links[0].versions()
        if asked.per_request:
            self._end(links[:1])
        return seen, server, version

    def _within(self, seconds: float, what: str, work: Coroutine[Any, Any, T], links: Sequence[Link]) -> T:
        """The result of a coroutine of these links, in the event loop if they wait."""

        def abort() -> None:
            for link in links:
                link.abort()

        if not links[0].waits:
            return deadline.within(seconds, what, lambda: driven(work), abort)
        future = asyncio.run_coroutine_threadsafe(work, self._running())
        return deadline.within(seconds, what, future.result, lambda: (abort(), future.cancel())[0])

    def _running(self) -> asyncio.AbstractEventLoop:
        """The event loop, in a thread of its own."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, daemon=True, name="loop").start()
        return self._loop

    def _end(self, links: Sequence[Link]) -> None:
        """Close connections. What does not close at once is left to the end of the process."""
        if not links:
            return

        async def close() -> None:
            for link in links:
                await link.close()

        with contextlib.suppress(Failure):
            self._within(2.0, "close", close(), links)

    def _drop(self, name: str) -> None:
        if (arm := self._arms.pop(name, None)) is not None:
            self._end(arm.links)

    def _arm(self, name: str) -> Arm:
        if name not in self._arms:
            raise Failure("no-arm", f'arm "{name}" is not connected; send `connect` first')
        return self._arms[name]

    def _disconnect(self, given: Fields) -> None:
        name = given.text("arm")
        given.end()
        self._arm(name)
        self._drop(name)

    def _bye(self, given: Fields) -> None:
        given.end()
        self.close()
        self.status = 0

    # ── queries and load ──────────────────────────────────────────────────────────────────────────────────────────────

    def _query(self, given: Fields) -> Answer:
        name, sql, every = given.text("arm"), given.text("sql"), given.flag("all", False)
        seconds = deadline.seconds(given, deadline.QUERY)
        given.end()
        links = self._arm(name).links
        links = links if every else links[:1]

        async def ask() -> list[Rows]:
            return [await link.query(sql) for link in links]

        try:
            found = self._within(seconds, "finish its answer", ask(), links)
        except Failure as failure:
            raise self._dropped_if_lost(name, failure) from None
        text = "\n".join(rows.text for rows in found if rows.rows)
        return _said("rows", rows=sum(rows.rows for rows in found), columns=found[-1].columns, text=text)

    def _slice(self, given: Fields) -> Answer:
        name = given.text("arm")
        plan = _plan(given)
        arm = self._arm(name)
        script = self._known().script(name)

        async def prepare() -> None:
            for link in arm.links:
                await link.prepare(script, open_loop=bool(plan.interval_ns))

        try:
            self._within(plan.silence_ns / 1e9, "prepare the statements", prepare(), arm.links)
            loop = self._running() if arm.links[0].waits else None
            total = Load(arm.links, script, plan).run(lambda: self._say(_said("counting", arm=name)), loop)
        except Failure as failure:
            raise self._dropped_if_lost(name, failure) from None
        answer = _counts(name, total)
        if arm.settings is None:
            return answer
        links = arm.links[:1] if arm.settings.per_request else arm.links
        seen = [link.seen for link in links if isinstance(link, SqlLink)]
        return answer | _seen(seen) | {"driver_version": arm.driver_version}

    def _dropped_if_lost(self, name: str, failure: Failure) -> Failure:
        """Disconnect an arm that lost a connection, because load on the remaining ones is not what was requested."""
        if failure.lost:
            self._drop(name)
        return failure

    def _floor(self, given: Fields) -> Answer:
        cipher, size = given.text("cipher"), given.unsigned("bytes")
        mac, unit = given.text("mac", None), given.whole("unit", floor.RECORD_BYTES)
        given.end()
        return _said("floor", cipher=cipher, **floor.measure(cipher, mac, unit, size))


HANDLERS: dict[str, Callable[[Session, Fields], Answer | None]] = {
    "hello": Session._hello,
    "program": Session._new_program,
    "cipher": Session._cipher,
    "variable": Session._variable,
    "transaction": Session._transaction,
    "statement": Session._statement,
    "step": Session._step,
    "connect": Session._connect,
    "query": Session._query,
    "slice": Session._slice,
    "floor": Session._floor,
    "disconnect": Session._disconnect,
    "bye": Session._bye,
}


def _said(type_: str, **more: Any) -> Answer:
    return {"type": type_, **more}


def _library() -> str:
    """`Python 3.11.2, OpenSSL 3.0.15 …`: the driver's own OpenSSL, if it brings one and has loaded it."""
    with contextlib.suppress(Failure, OSError, AttributeError):
        return f"Python {platform.python_version()}, {floor.version()}"
    return f"Python {platform.python_version()}, {ssl.OPENSSL_VERSION}"


def _seen(seen: Sequence[Seen]) -> Answer:
    """Encrypted only if all are; lists every protocol and cipher."""
    protocols, ciphers = (
        " ".join(dict.fromkeys(getattr(each, name) for each in seen)).strip() for name in ("protocol", "cipher")
    )
    return {"encrypted": bool(seen) and all(each.encrypted for each in seen), "protocol": protocols, "cipher": ciphers}


def _counts(name: str, total: Total) -> Answer:
    tally = total.tally
    return _said(
        "slice", arm=name, seconds=total.seconds, operations=tally.operations, work=tally.work, errors=tally.errors,
        error_kinds=_kinds(tally), rows=tally.rows, sealed=0, opened=0, retries=tally.retries, checksum=f"{tally.checksum % 2**64:016x}",
        cpu_user_ns=tally.cpu.user_ns, cpu_system_ns=tally.cpu.system_ns, bytes_sent=0, bytes_received=0, segments_sent=0,
        segments_received=0, connects=tally.connects, resumed=0, early=0, late=tally.late, threads=total.threads,
        histogram=histogram.encoded(tally.latencies), first_error=tally.first_error, process_cpu_ns=total.process_ns,
    )  # fmt: skip


def _kinds(tally: Tally) -> str:
    """The most frequent first; equal counts in order of their names."""
    counts: Counter[str] = tally.kinds
    listed = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    words = [f"{kind}={count}" for kind, count in listed[:NAMED_KINDS]]
    rest = sum(count for _, count in listed[NAMED_KINDS:])
    return " ".join([*words, *([f"other={rest}"] if rest else [])])


def _plan(given: Fields) -> Plan:
    operations = given.unsigned("operations", 0)
    if operations >= 2**63:
        raise bad_message("operations: too many to count")
    seconds = given.number("seconds", 3600.0) if operations else given.number("seconds")
    discard, rate, seed = given.number("discard", 0.0), given.number("rate", 0.0), given.unsigned("seed", 0)
    arrivals = given.text("arrivals", None)
    silence = deadline.seconds(given, deadline.SLICE)
    given.end()
    if not 0 < seconds <= LONGEST_SECONDS:
        raise bad_message("seconds: must be above 0 and at most 86400")
    if not 0 <= discard < 1:
        raise bad_message("discard: must be at least 0 and below 1")
    if operations and discard:
        raise bad_message("discard: must be 0 with `operations`")
    if not 0 <= rate <= 1e9:
        raise bad_message("rate: must lie between 0 and 1e9")
    if arrivals not in (None, "even", "random"):
        raise bad_message("arrivals: must be even or random")
    if arrivals is not None and not rate:
        raise bad_message("arrivals: needs an open loop; set a rate")
    length = seconds * 1e9
    return Plan(
        int(length),
        int(length * discard),
        seed,
        1e9 / rate if rate else 0.0,
        arrivals == "random",
        operations,
        int(silence * 1e9),
    )
