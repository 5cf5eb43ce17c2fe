"""dump_loading: loads the user's dump (`--dump`) into a cell's templates, or takes the copies that an earlier run has kept."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ciphercost.engines.capabilities.dumps import Dump, DumpTarget, LoadsDumps, Rows
from ciphercost.host import kept_dumps, run_ownership
from ciphercost.load.agent import Agent
from ciphercost.mechanisms._rest import ArmAtRest, AtRest
from ciphercost.model.connection import Connection
from ciphercost.model.errors import AgentError, RefusedDump, RunError, UsageError
from ciphercost.model.sizes import size as sized
from ciphercost.provision import cache, kept_templates
from ciphercost.provision.dataset import arm_at
from ciphercost.provision.kept_templates import Kept
from ciphercost.provision.prepared_cell import PreparedCell

WORDS = {"both": "the server of both arms", "plain": "the plain arm", "encrypted": "the encrypted arm"}
LEAST_TELLING = 10_000_000
"""Bytes of the smallest dump whose load tells how fast others are: below, the server's start counts more."""
LOADED = "loaded"
"""First word of the line that tells that a dump is loaded."""

Start = Callable[[Callable[[ArmAtRest], None], Mapping[str, str]], None]
"""Starts a template's server with further settings, does one thing, and stops it."""


class DumpLoad(msgspec.Struct):
    """What is loaded into one template."""

    bench: PreparedCell
    place: str
    template: Path
    dump: Dump

    @property
    def engine(self) -> LoadsDumps:
        return LoadsDumps.of(self.bench.engine)

    def fill(self, initialise: Callable[[], None], encrypt: Callable[[], None], start: Start) -> None:
        """Make the template: from a kept copy, or anew. `initialise` makes its cluster; `encrypt` then switches encryption on.

        Raises UsageError if the dump is at fault, RunError.
        """
        first = encrypt if not self.engine.loads_stopped else _nothing
        after = encrypt if self.engine.loads_stopped else _nothing
        kept_place = self._kept_place()
        if not (kept_place and self._restored(kept_place)):
            initialise()
            first()
            began = time.monotonic()
            notes = self._load(start)
            seconds = time.monotonic() - began
            if self.dump.size >= LEAST_TELLING:
                kept_dumps.note_rate(f"{self.bench.engine.name}, {self.dump.form}", self.dump.size, seconds)
            size = cache.size(self.template)
            self._say(
                f"{LOADED} {self.dump.path} into {WORDS[self.place]} in {seconds:.1f} s; it takes {sized(size)} there"
            )
            for note in notes:
                self._note(note)
            if kept_place:
                self._say(kept_templates.keep(kept_place, self.template, self._receipt(notes), self.bench.supervisor))
        after()

    # ── copies of earlier runs ────────────────────────────────────────────────────────────────────────────────────────

    def _kept_place(self) -> Path | None:
        """Where a copy of this template is kept. None: the mechanism can't tell which keys it would need."""
        bench, mechanism = self.bench, self.bench.mechanism
        of_arm = bench.planned.of(arm_at(self.place))
        own: object = ()
        if isinstance(mechanism, AtRest) and not self.engine.loads_stopped:
            if bench.side(arm_at(self.place)) == "encrypted" and not mechanism.loaded_once:
                if mechanism.key_files(bench.rest_of(arm_at(self.place)), self.template) is None:
                    return None
                own = (mechanism.name, sorted(of_arm.factors.items()))
            elif not mechanism.loaded_once:
                own = ("beside", mechanism.name, sorted(of_arm.factors.items()))
        settings = sorted(bench.planned.conditions.settings.items())
        installation = (bench.installation.engine, bench.installation.version, bench.planned.spec.bindir)
        content = kept_dumps.content_hash(self.dump.path)
        if settings:
            own = (own, isinstance(mechanism, AtRest))
        return kept_templates.place_of(content, installation, settings, sorted(bench.listening.items()), own)

    def _restored(self, kept_place: Path) -> bool:
        """Whether a kept copy is now the template."""
        bench, arm = self.bench, arm_at(self.place)
        with kept_templates.locked(kept_place) as kept:
            if kept is None:
                return False
            secrets = bench.secrets_of(arm)
            if bench.shared.templates and not kept_templates.matches(kept.keys, secrets):
                return False  # cells of this experiment use other keys already
            began = time.monotonic()
            self.template.rmdir()
            kept_templates.restore(kept_place, self.template)
        for name, text in kept.keys.items():
            run_ownership.own_file(secrets / name, text)
        if kept.keys and isinstance(bench.mechanism, AtRest):
            bench.mechanism.adopt_keys(bench.rest_of(arm), self.template, tuple(kept.keys))
        size = cache.size(self.template)
        self._say(
            f"took the kept copy of {self.dump.path} for {WORDS[self.place]} in {time.monotonic() - began:.1f} s ({sized(size)} from {kept_place})"
        )
        for note in kept.notes:
            self._note(note)
        return True

    def _receipt(self, notes: list[str]) -> Kept:
        keys: Mapping[str, Path] = {}
        arm = arm_at(self.place)
        if isinstance(self.bench.mechanism, AtRest) and self.bench.side(arm) == "encrypted":
            keys = self.bench.mechanism.key_files(self.bench.rest_of(arm), self.template) or {}
        return Kept({name: path.read_text() for name, path in keys.items()}, notes)

    # ── loading ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _load(self, start: Start) -> list[str]:
        notes: list[str] = []
        self._say(f"loading {self.dump.path} ({self.dump.form}, {sized(self.dump.size)}) into {WORDS[self.place]} …")
        if self.engine.loads_stopped:
            notes += self._by_tools(None, lambda _: [])
            return notes

        def by_server(look: ArmAtRest) -> None:
            assert isinstance(look.agent, Agent)
            notes.extend(self._by_tools(look.connect, look.query))

        start(by_server, self.engine.load_settings)
        return notes

    def _by_tools(self, connection: Connection | None, query: Callable[[str], Rows]) -> list[str]:
        bench = self.bench
        work = bench.directory / f"loading-{self.place}"
        work.mkdir(mode=0o700)
        run_ownership.hand_over(work)
        progress = Progress(self.dump, WORDS[self.place], self._show)
        target = DumpTarget(bench.installation, self.template, bench.supervisor, work, progress.read, connection, query)
        try:
            return self.engine.load_dump(self.dump, target)
        except UsageError as error:
            raise RefusedDump(str(error)) from None
        except AgentError as error:
            raise RunError(f"{self.dump.option}: the server failed while it was loaded{words_of(error)}") from None
        finally:
            shutil.rmtree(work, ignore_errors=True)

    def _say(self, text: str) -> None:
        self.bench.say(text)

    def _note(self, note: str) -> None:
        """Say once what both arms' loads report."""
        if note not in self.bench.shared.notes:
            self.bench.shared.notes.add(note)
            self._say(f"{self.dump.path}: {note}")

    def _show(self, text: str) -> None:
        self.bench.show(text)


def words_of(error: AgentError) -> str:
    """The server's code, without its message, which may hold values. Pure."""
    return f" ({error.code})" if error.code != "agent" else ""


def _nothing() -> None:
    return


class Progress:
    """Shows how far a dump is loaded, and how long the rest may take."""

    def __init__(self, dump: Dump, where: str, show: Callable[[str], None]) -> None:
        self._dump, self._where, self._show = dump, where, show
        self._began = time.monotonic()

    def read(self, count: int) -> None:
        """`count`: bytes of the dump read so far."""
        share = min(1.0, count / max(1, self._dump.size))
        seconds = time.monotonic() - self._began
        left = f", about {seconds / share * (1 - share):.0f} s left" if share > 0.02 else ""
        self._show(f"loading {self._dump.path} into {self._where}: {100 * share:.0f} % read{left}")


def count_rows(bench: PreparedCell, place: str, query: Callable[[str], Rows]) -> None:
    """Count the rows of the user's tables, for `check_equal`. Raises RunError if there are none."""
    try:
        tables = LoadsDumps.of(bench.engine).table_rows(query)
    except AgentError as error:
        raise RunError(f"--dump {bench.cell.dump}: its tables can't be counted{words_of(error)}") from None
    bench.tables[place] = tables


def check_equal(bench: PreparedCell) -> None:
    """Compare the arms' rows and say what was loaded. Raises RunError if they differ."""
    counts = list(bench.tables.items())
    if not counts:
        return
    (first, tables), *others = counts
    for place, other in others:
        differing = sorted(name for name in {*tables, *other} if tables.get(name) != other.get(name))
        if differing:
            shown = ", ".join(
                f"{name} ({tables.get(name, 'no table')} and {other.get(name, 'no table')})" for name in differing[:5]
            )
            raise RunError(
                f"--dump {bench.cell.dump}: the arms do not hold the same rows, {first} and {place}: {shown}"
            )
    total = sum(tables.values())
    largest = sorted(tables.items(), key=lambda pair: -pair[1])[:6]
    listed = ", ".join(f"{name} {rows:,}" for name, rows in largest)
    more = f" and {len(tables) - len(largest)} more" if len(tables) > len(largest) else ""
    equal = ", equal in both arms" if others else ""
    bench.say(f"{bench.cell.dump}: {total:,} rows in {len(tables)} tables{equal} ({listed}{more})")


def loading(bench: PreparedCell, place: str, template: Path) -> DumpLoad | None:
    """The load of a cell's dump into one template; None if it has no dump."""
    if not bench.cell.whole_dump:
        return None
    return DumpLoad(bench, place, template, LoadsDumps.of(bench.engine).dump_of(Path(bench.cell.dump)))
