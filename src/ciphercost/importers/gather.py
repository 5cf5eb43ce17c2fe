"""gather: files of other tools -> what they say, and which arm each is of. Reads files; no statistics.

A format is known by its content; an arm by what was said, else by names. What can't be told is refused, never guessed.
"""

from __future__ import annotations

import codecs
import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import msgspec

from ciphercost.importers import formats
from ciphercost.importers.formats import Bad, Lines, clean, discreet, pgbench_log, set_rate
from ciphercost.importers.formats import csv as table
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import ImportedRecord, Reading
from ciphercost.model.result import ImportedFile, Warning_
from ciphercost.model.spec import ARMS, Arm
from ciphercost.model.terms import FORMAT

HEAD = 262_144
"""Bytes in which a format is looked for."""
LONGEST_LINE = 1_000_000
STRICT = ("pgbench_log", "csv", "hyperfine")
"""Formats whose readers refuse every line that isn't their own."""
CPU = ("sar", "sadf", "atop")
"""Formats of a machine's counters: their headings name hosts."""
FEW_LEFT, FEW_NAMED = 3, 3
"""Files left out that are named one by one, each with its reason; of more, so many of each reason."""
MOST_SAID = 12
"""Files that are told one by one of how they were read."""
SAMPLE_TOLERANCE = 0.02
"""Between a summary's count of transactions and that which a sampled log tells of."""
NAMED = re.compile(r"(.*?\.\d+)(?:\.\d+)?")
"""`pgbench_log.PID`, and of further threads `pgbench_log.PID.N`."""


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


PLAIN = words_of(
    "plain plaintext clear cleartext unencrypted notls nossl notde noenc noencryption nocrypt http insecure baseline"
)
ENCRYPTED = words_of(
    "encrypted encryption enc encrypt tls ssl mtls tde https cipher sqlcipher luks fscrypt gocryptfs secure sslmode pgsslmode usessl tlsv sslv"
)
NOT = words_of("no not non without skip")
WITH = words_of("with")
"""Of the word behind them."""
OFF = words_of("off disabled disable none false")
ON = words_of("on enabled enable required require true")
"""Of the word before them; without one, of that behind."""
VERBS = words_of("disable enable require")
UNSURE = words_of("prefer preferred allow")
"""Modes in which the server decides."""
WHOLE = (OFF | ON | words_of("with without")) - words_of("true false")
"""What tells of an arm where a name has nothing else."""
NEUTRAL = words_of("run runs test tests bench benchmark result results mode is was turned set txt log out csv json")
"""Words between which others are neighbours."""
SAYABLE = "plain, clear, off, notls, disabled … or tls, ssl, tde, enc, on, required …"

OWN_LINE = re.compile(
    r"\s*(?:Running .* test @|progress: |transaction type|SQL script|TLS Protocol|Cipher|Server Temp Key|Application protocol|pgbench)"
    r"(?!.*\bPGSSLMODE=).*",
    re.IGNORECASE,
)
"""Lines of a tool's own, with words of TLS in them that tell of no arm, or are read elsewhere."""
MAY_TELL = re.compile(r"plain|clear|enc|tls|ssl|tde|http|cipher|luks|fscrypt|secure|baseline|crypt", re.IGNORECASE)
VERSION_LINE = re.compile(r"\s*(?:pgbench \(|(?:pgbench|sysbench) \d)")
COMMAND = re.compile(r"(?:^|[\s/;&|=])(?:wrk2?|pgbench|sysbench|h2load)\s.*")
RATE = re.compile(r"\s(?:-R\s*|--rate[ =]|--rps[ =])(\d[\d.]*[kKmM]?)\b")
"""On the command line of wrk2, pgbench, sysbench or h2load."""
LONGEST_HEADING = 300

KNOWN_BINARY: tuple[tuple[bytes, str], ...] = (
    (b"\x96\xd5", "sysstat's own binary file: print it with `sadf -d FILE -- -u -r > FILE.csv`, and import that"),
    (b"\xd5\x96", "sysstat's own binary file: print it with `sadf -d FILE -- -u -r > FILE.csv`, and import that"),
    (
        b"\xef\xbe\xed\xfe",
        "atop's own binary file: print it with `atop -r FILE -P CPU,MEM > FILE.txt`, and import that",
    ),
    (
        b"\xfe\xed\xbe\xef",
        "atop's own binary file: print it with `atop -r FILE -P CPU,MEM > FILE.txt`, and import that",
    ),
    (b"\x1f\x8b", "compressed (gzip): unpack it first"),
    (b"\xfd7zXZ", "compressed (xz): unpack it first"),
    (b"\x28\xb5\x2f\xfd", "compressed (zstd): unpack it first"),
    (b"PK\x03\x04", "an archive or an office document: unpack it, or save the table as CSV"),
)
KNOWN_TEXT: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"^Benchmark (?:#?1|\S+): .*\n\s+Time \(", re.MULTILINE), "hyperfine's screen, which rounds: run it with --export-json FILE"),
    (re.compile(r"\Acommand,mean,stddev,median,user,system,min,max"), "hyperfine's CSV, which has no single times: run it with --export-json FILE"),
    (re.compile(r'\A\s*\{\s*"sysstat"'), "sysstat's JSON: print it with `sadf -d FILE -- -u -r > FILE.csv`, and import that"),
    (re.compile(r"^ATOP - ", re.MULTILINE), "atop's screen: print its file with `atop -r FILE -P CPU,MEM`, and import that"),
    (re.compile(r"^(?:RESET|SEP)\s*$", re.MULTILINE), "atop's output without CPU: run `atop -P CPU,MEM`"),
)  # fmt: skip


class Wanted(NamedTuple):
    """What the user said of arms and columns."""

    plain: Sequence[Path] = ()
    encrypted: Sequence[Path] = ()
    words: Sequence[tuple[Arm, str]] = ()
    """(arm, word or pattern of its files' names)."""
    only: Arm | None = None
    """All are of this arm."""
    columns: Sequence[table.Column] = ()


class Heading(NamedTuple):
    """A line above a run that is no tool's own: a shell's echo, or a title."""

    line: int
    text: str
    arm: Arm | None
    """That it tells of."""
    rate: str | None
    """Of a command: the rate that it sets, or empty. None: no command."""


class Source(NamedTuple):
    """A file, and the folders whose names may tell of what it is."""

    path: Path
    folders: tuple[Path, ...]
    """The nearest first."""
    arm: Arm | None
    named: bool
    """Given by name, and not found in a folder."""

    @property
    def names(self) -> tuple[str, ...]:
        return (clean(self.path.name), *(clean(folder.name) for folder in self.folders))

    @property
    def label(self) -> str:
        """Its path as it can be written down."""
        return clean(str(self.path))


def gather(files: Sequence[Path], wanted: Wanted) -> tuple[ImportedRecord, list[str]]:
    """(all that the files say, what is to be said aloud of how they were read). Raises UsageError naming file and line."""
    given: tuple[tuple[Sequence[Path], Arm | None], ...] = (
        (files, wanted.only),
        (wanted.plain, "plain"),
        (wanted.encrypted, "encrypted"),
    )
    sources = [each for paths, arm in given for path in paths for each in found(path, arm)]
    if sources:
        # A folder in which all of them lie tells nothing of any.
        common = set.intersection(*(set(each.folders) for each in sources))
        sources = [
            each._replace(folders=tuple(folder for folder in each.folders if folder not in common)) for each in sources
        ]
    if not sources:
        raise UsageError("nothing to import: name files or a folder of them, e.g. `ciphercost import plain/ tls/`")
    said: list[str] = []
    left: list[tuple[str, str, str]] = []
    kept: list[tuple[Source, ImportedFile, list[Reading]]] = []
    seen: dict[tuple[int, int], Source] = {}
    alike: dict[str, Source] = {}
    for source in sources:
        if other := seen.get(identity(source.path)):
            if other.arm != source.arm:
                raise UsageError(f"{source.label} and {other.label} are one file, and were given as both arms")
            left.append((source.label, "the same file as another", f"{source.label} is the same file as {other.label}"))
            continue
        try:
            name, readings, digest = read(source.path, list(wanted.columns))
        except Unknown as error:
            if source.named:
                raise UsageError(str(error)) from None
            left.append((source.label, error.kind, str(error)))
            continue
        seen[identity(source.path)] = source
        if other := alike.get(digest):
            text = (
                f"it has the same content as {other.label}, but figures so coarse that two runs may share them: it was counted; "
                "leave it out if it is a copy"
            )
            readings[0].notes.append(Warning_("same-content", text))
            said.append(f"{source.label} has the same content as {other.label}: copies of a run are counted once")
        alike.setdefault(digest, source)
        kept.append((source, ImportedFile(source.label, name, digest, [], ""), readings))
    if not kept:
        reasons = "\n".join(left_out(left))
        raise UsageError(f"nothing in what was given could be read as another tool's result:\n{reasons}")
    said += left_out(left)
    told = arms(kept, wanted)
    said += read_as(told)
    readings = put_together(told)
    return ImportedRecord(FORMAT, [file for _, file, _ in told], readings), said


def left_out(files: Sequence[tuple[str, str, str]]) -> Iterator[str]:
    """What is to be said of files (name, kind of reason, reason in full) that were left out: of many, a line for each kind. Pure."""
    kinds: dict[str, list[tuple[str, str]]] = {}
    for name, kind, reason in files:
        kinds.setdefault(kind, []).append((name, reason))
    for kind, own in kinds.items():
        if len(files) <= FEW_LEFT or len(own) == 1:
            yield from (f"left out: {reason}" for _, reason in own)
        else:
            names = ", ".join(name for name, _ in own[:FEW_NAMED]) + (" …" if len(own) > FEW_NAMED else "")
            yield f"left out: {count(len(own), 'file')}, {kind}: {names}"


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def found(path: Path, arm: Arm | None) -> Iterator[Source]:
    """The file, or every file of the folder that is not hidden. Raises UsageError."""
    try:
        if path.is_dir():
            inside = sorted(each for each in path.rglob("*") if each.is_file() and not hidden(each.relative_to(path)))
            if not inside:
                raise UsageError(f"{clean(str(path))}: the folder has no files")
            for each in inside:
                yield Source(
                    each, tuple(folder for folder in each.parents if folder.is_relative_to(path)), arm, named=False
                )
        elif path.is_file():
            yield Source(path, tuple(path.parents), arm, named=True)
        elif path.exists():
            raise UsageError(f"{clean(str(path))} is no file: save the tool's output in one, and import that")
        else:
            raise UsageError(f"{clean(str(path))}: there is no such file")
    except (OSError, ValueError) as error:
        raise UsageError(f"{clean(str(path))} can't be read: {getattr(error, 'strerror', None) or error}") from None


def identity(path: Path) -> tuple[int, int]:
    """The same for one file, by whatever path. Raises UsageError."""
    try:
        known = path.stat()
    except OSError as error:
        raise UsageError(f"{clean(str(path))} can't be read: {error.strerror}") from None
    return known.st_dev, known.st_ino


def hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


class Unknown(UsageError):
    """A file of no format that is known; `kind`: why, without its name."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


def read(path: Path, columns: list[table.Column]) -> tuple[str, list[Reading], str]:
    """(format, what it says, SHA-256) of a file. Raises UsageError naming file and line; Unknown where it is something else."""
    digest = hashlib.sha256()
    label = clean(str(path))
    try:
        with path.open("rb") as file:
            head = file.read(HEAD)
            if not head.strip(b"\0 \t\r\n"):
                raise Unknown(f"{label}: the file is empty: was the tool's output sent elsewhere (2>&1)?", "empty")
            encoding = encoding_of(head, label)
            beginning = codecs.getincrementaldecoder(encoding)("replace").decode(head)
            importer = format_of(beginning.replace("\r\n", "\n"), columns, label)
            file.seek(0)
            headings: list[Heading] = []
            above = None if importer in (*STRICT, *CPU) else headings
            lines = Lines(texts(file, encoding, digest, "" if importer in STRICT else importer, above))
            readings = table.read(lines, columns) if importer == "csv" else formats.get(importer).read(lines)
            for _ in lines:  # what the reader left, for the checksum
                pass
    except OSError as error:
        raise UsageError(f"{label} can't be read: {error.strerror}") from None
    except Bad as error:
        where = f"{label}, line {error.line}" if error.line else label
        raise UsageError(f"{where}: {clean(error.what)}") from None
    except (ValueError, ArithmeticError) as error:
        raise UsageError(f"{label}, line {lines.number}: a figure can't be read ({clean(str(error))})") from None
    if not readings:
        raise UsageError(f"{label}, line {lines.number}: {importer}'s output ends before its result: import all of it")
    try:
        under_headings(readings, headings)
    except Bad as error:
        raise UsageError(f"{label}, line {error.line}: {error.what}") from None
    for each in readings:
        each.file = label
        cleaned(each)
        finite(each)
        if each.errors > each.operations > 0:
            raise UsageError(
                f"{label}, line {each.line}: more failed ({each.errors:,}) than was done ({each.operations:,}): this is no result; "
                "find out why, and run it again"
            )
    return importer, readings, digest.hexdigest()


def cleaned(reading: Reading) -> None:
    """Its names with letters alone. Changes it."""
    reading.tool, reading.version = clean(reading.tool), clean(reading.version)
    reading.engine, reading.workload = clean(reading.engine), clean(reading.workload)
    reading.names = [clean(each) for each in reading.names]
    reading.factors = {clean(name): clean(value) for name, value in reading.factors.items()}
    reading.encryption = {clean(name): clean(value) for name, value in reading.encryption.items()}
    reading.notes = [Warning_(each.code, clean(each.text)) for each in reading.notes]


def finite(reading: Reading) -> None:
    """Raises UsageError where a figure is none that can be reckoned with."""
    figures = [("seconds", [reading.seconds]), *((name, [value]) for name, value in reading.figures.items())]
    for name, values in [*figures, *reading.series.items()]:
        if wrong := [value for value in values if not math.isfinite(value)]:
            raise UsageError(
                f"{reading.file}, line {reading.line}: {name} is {wrong[0]}: no figure that can be compared; is the output whole?"
            )


def encoding_of(head: bytes, label: str) -> str:
    """UTF-8, UTF-16 as Windows' shell writes it, or, where bytes don't fit either, cp1252. Raises Unknown for what is no text."""
    for mark, what in KNOWN_BINARY:
        if head.startswith(mark):
            raise Unknown(f"{label} is {what}", what)
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if head.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    zeros = head.count(0)
    if zeros:
        odd = head[1::2].count(0)
        if zeros > 0.3 * len(head) and (odd > 0.9 * zeros or odd < 0.1 * zeros):
            return "utf-16-le" if odd > 0.5 * zeros else "utf-16-be"
        raise Unknown(f"{label} is no text: import what a tool printed", "no text")
    try:
        # The head may end in the middle of a letter.
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return "cp1252"
    return "utf-8"


def heading(line: str, number: int) -> Heading | None:
    """What a line that is no tool's own tells of the runs below it; None: nothing. Pure."""
    if len(line) > LONGEST_HEADING:
        return None
    # `pgbench (16.2)` and `sysbench 1.0.20` are the tools' own first lines, and no commands.
    command = None if VERSION_LINE.match(line) else COMMAND.search(line)
    rate = (match[1] if (match := RATE.search(line)) else "") if command else None
    arm = arm_in(line) if MAY_TELL.search(line) and not (OWN_LINE.fullmatch(line.rstrip()) and not command) else None
    return Heading(number, line.strip(), arm, rate) if arm or command else None


def under_headings(readings: list[Reading], headings: list[Heading]) -> None:
    """Give each run what the lines above it tell: a rate that was set, and, in a file of both arms, its arm. Changes the readings.

    Raises Bad where a file tells of both arms, and not of each of its runs.
    """
    both = len({each.arm for each in headings if each.arm}) == 2
    for reading in readings:
        above = [each for each in headings if each.line < reading.line]
        commands = [each for each in above if each.rate is not None]
        if commands and commands[-1].rate not in ("", "0", None):
            set_rate(reading, str(commands[-1].rate))
        told = [each for each in above if each.arm]
        if both and not told:
            other = next(each for each in headings if each.arm)
            text = f"its file has runs of both arms (line {other.line} tells of {other.arm}), and nothing above this one tells of its arm"
            raise Bad(reading.line, f"{text}: give each arm a file of its own")
        if both:
            reading.names = [told[-1].text]


def texts(
    file: Iterable[bytes], encoding: str, digest: object, of: str, headings: list[Heading] | None = None
) -> Iterator[str]:
    """The lines of a file, one at a time; each byte goes through the checksum. `headings`: gets those that tell of the runs below them.

    Raises Bad where, far below the beginning, another tool's mark is than that of `of` (empty: its reader sees to that).
    """
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    rest = ""
    number = 0
    for block in iter(lambda: file.read(HEAD), b""):  # type: ignore[attr-defined]
        digest.update(block)  # type: ignore[attr-defined]
        *whole, rest = (rest + decoder.decode(block)).split("\n")
        if of and number:
            for name, line_of_it in formats.recognised("\n".join(whole)).items():
                if name not in (of, "pgbench_log"):
                    raise Bad(
                        number + line_of_it,
                        f"here begins a result of {name}, in a file of {of}: give each tool's output a file of its own",
                    )
        for line in whole:
            number += 1
            if headings is not None and (told := heading(line, number)):
                headings.append(told)
            yield line + "\n"
        if len(rest) > LONGEST_LINE and not rest.lstrip().startswith("{"):
            raise Bad(number + 1, "a line of more than a million letters: this is no tool's output")
    rest += decoder.decode(b"", final=True)
    if rest:
        yield rest


def format_of(head: str, columns: list[table.Column], label: str) -> str:
    """The importer whose mark the text bears. Raises UsageError where two do, Unknown where none does."""
    fits = formats.recognised(head)
    if "hyperfine" in fits:
        return "hyperfine"
    if len(fits) > 1:
        where = " and ".join(f"{name} (line {line})" for name, line in sorted(fits.items(), key=lambda item: item[1]))
        raise UsageError(f"{label} holds results of {where}: give each tool's output a file of its own")
    if fits:
        return next(iter(fits))
    for pattern, what in KNOWN_TEXT:
        if pattern.search(head):
            raise Unknown(f"{label} is {what}", what)
    if columns:
        return "csv"
    known = ", ".join(name for name in formats.names() if name != "csv")
    first = next((line for line in head.splitlines() if line.strip()), "")
    if any(first.count(each) >= 1 for each in (";", ",", "\t")):
        raise Unknown(
            f"{label}, line 1: if this is a table ('{discreet(first[:300])[:60]}'), say which column is what: {table.EXAMPLE}. Known without: {known}",
            f"maybe tables (say which column is what: {table.EXAMPLE})",
        )
    raise Unknown(
        f"{label}, line 1: '{discreet(first[:300])[:60]}' is the beginning of no output that is known: {known}",
        "not the output of a tool that is known",
    )


# ── arms ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def arm_in(text: str) -> Arm | None:
    """The arm that a name tells of: `tls-off` is plain, `notls` too, `tls` encrypted; None where it tells of none or of both. Pure."""
    told = told_by(text)
    return told[0] if told else None


def told_by(text: str) -> tuple[Arm, str] | None:
    """(arm, the words that tell of it). Pure. Words like `off`, `no`, `on` tell only of an encrypting word that they stand beside."""
    split = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", text).lower()
    split = re.sub(r"=\s*0(?![\d.])", "=off ", split)
    # `http2` says nothing of TLS; in `tls13` and `plain2` the digits are a version, or count.
    words = [word for word in re.findall(r"http\d|[a-z]+", split) if word not in NEUTRAL]
    if len(words) == 1 and words[0] in WHOLE:
        return ("encrypted" if words[0] in ON | WITH else "plain"), words[0]
    found: dict[Arm, list[str]] = {"plain": [], "encrypted": []}
    for at, word in enumerate(words):
        before, behind = (words[at - 1] if at else ""), (words[at + 1] if at + 1 < len(words) else "")
        if word in PLAIN:
            if before in NOT:
                return None
            found["plain"].append(word)
        elif word in ENCRYPTED:
            off = _said_of(words, at, NOT, OFF)
            on = _said_of(words, at, WITH, ON)
            if (off and on) or before in UNSURE or behind in UNSURE:
                return None
            found["plain" if off else "encrypted"].append(off or on or word)
        elif word in OFF - VERBS and before not in ENCRYPTED and behind in ENCRYPTED and at:
            return None  # of what, in `cache-off-tls`?
    told = [arm for arm in ARMS if found[arm]]
    return (told[0], found[told[0]][0]) if len(told) == 1 and not set(words) & {"prefer", "preferred"} else None


def _said_of(words: list[str], at: int, ahead: frozenset[str], either: frozenset[str]) -> str:
    """The encrypting word with what is said of it by a word before or behind it; empty: nothing is."""
    word, before, behind = words[at], words[at - 1] if at else "", words[at + 1] if at + 1 < len(words) else ""
    if before in ahead or (before in either and (at == 1 or before in VERBS)):
        return f"{before} {word}"
    last = at + 2 == len(words)
    return f"{word} {behind}" if behind in either or (last and behind in ahead) else ""


def arms(
    kept: list[tuple[Source, ImportedFile, list[Reading]]], wanted: Wanted
) -> list[tuple[Source, ImportedFile, list[Reading]]]:
    """Every reading with its arm; what it was told by stands in its file. Raises UsageError where it can't be told."""
    schemes = {each.scheme for *_, readings in kept for each in readings if each.scheme}
    loose = loosely_named([source for source, *_ in kept])
    told = []
    for source, file, readings in kept:
        how: list[str] = []
        commands: dict[tuple[str, ...], int] = {}
        for each in readings:
            number = commands.setdefault(tuple(each.names), len(commands) + 1)
            each.arm, by = arm_of(source, each, wanted, loose, both_schemes=len(schemes) == 2, number=number)
            how.append(by)
            # What else stands in a command stays out of the record: passwords may.
            each.names = []
        contradicted(source, readings, schemes)
        own = [arm for arm in ARMS if any(each.arm == arm for each in readings)]
        words = ", ".join(dict.fromkeys(how))
        told.append((source, msgspec.structs.replace(file, arms=own, how=words), readings))
    maybe_both(told)
    return told


def loosely_named(sources: Sequence[Source]) -> frozenset[str]:
    """Names of files that stand in folders of both arms, as `plain/ssl-bench.log` and `tls/ssl-bench.log`: they tell of neither. Pure."""
    arms_of: dict[str, set[Arm]] = {}
    for source in sources:
        name, *folders = source.names
        if arm := next((arm for folder in folders if (arm := arm_in(folder))), None):
            arms_of.setdefault(name, set()).add(arm)
    return frozenset(name for name, arms_ in arms_of.items() if len(arms_) == 2)


def maybe_both(told: list[tuple[Source, ImportedFile, list[Reading]]]) -> None:
    """Raises UsageError where several runs are encrypted by nothing but a word like `ssl` in their file's name, and no run is plain.

    `ssl-bench.log` is what one calls a file of both arms.
    """
    if any(reading.arm == "plain" for *_, readings in told for reading in readings):
        return
    for source, file, readings in told:
        known = told_by(source.names[0])
        if len(readings) > 1 and file.how == "its name" and known and known[1] in ENCRYPTED:
            raise UsageError(
                f"{source.label}: it holds {len(readings)} runs, and '{known[1]}' in its name may be what all of them are about: are some "
                "of them plain? No run here is. Give each arm a file of its own, or say --arm encrypted if all are encrypted"
            )


def read_as(told: list[tuple[Source, ImportedFile, list[Reading]]]) -> Iterator[str]:
    """As what each file was read; of many, how many of each kind. Pure."""
    alike: dict[str, list[tuple[Source, int]]] = {}
    for source, file, readings in told:
        alike.setdefault(f"{' and '.join(file.arms)} by {file.how} ({file.format})", []).append((source, len(readings)))
    for what, files in alike.items():
        if len(told) <= MOST_SAID:
            yield from (f"{source.label}: {count(runs, 'run')}, {what}" for source, runs in files)
        else:
            yield f"{count(len(files), 'file')}, {count(sum(runs for _, runs in files), 'run')}, {what}: {files[0][0].label} …"


def count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def arm_of(
    source: Source, reading: Reading, wanted: Wanted, loose: frozenset[str], *, both_schemes: bool, number: int = 0
) -> tuple[Arm, str]:
    """(arm, by what it is told): what was said, the file's own words, its name, its folders' names, http or https.

    `loose`: names of files that tell of no arm, though they have a word of one.
    """
    if source.arm:
        return source.arm, "what you said"
    texts = [*reading.names, *source.names]
    for text in texts if wanted.words else ():
        fits = {arm: word for arm, word in wanted.words if matches(text, word)}
        if len(fits) == 1:
            arm, word = next(iter(fits.items()))
            return arm, f"your word '{word}'"
        if fits:
            raise UsageError(
                f"{source.label}: {called(reading, text, number)} has the words of both arms: choose others, or say --plain FILE --encrypted FILE"
            )
    if len({arm for arm, _ in wanted.words}) == 2:
        words = ", ".join(f"'{word}' ({arm})" for arm, word in wanted.words)
        raise UsageError(
            f"{source.label}: its name has none of your words {words}: choose others, or say --plain FILE --encrypted FILE"
        )
    names = source.names[1:] if source.names[0] in loose else source.names
    for text in reading.names or names:
        if told := told_by(text):
            arm, word = told
            if reading.names:
                return arm, f"its own words '{word}'"
            contrary(source, text, told)
            return arm, "its name" if text == source.names[0] else f"its folder '{text}'"
    if both_schemes and reading.scheme:
        return ("encrypted" if reading.scheme == "https" else "plain"), f"its address ({reading.scheme})"
    name = reading.names[0] if reading.names else source.names[0]
    raise UsageError(
        f"{source.label}: is {called(reading, name, number)} plain or encrypted? It has none of the words {SAYABLE} (or some of both). "
        "Say --plain FILE --encrypted FILE, or --arm plain=WORD --arm encrypted=WORD, or --arm encrypted if all are of one arm"
    )


def contrary(source: Source, text: str, told: tuple[Arm, str]) -> None:
    """Raises UsageError where a bare word like `ssl` in a file's name tells of the other arm than the folder that it is in."""
    if text != source.names[0] or told[1] not in ENCRYPTED:
        return
    for folder in source.names[1:]:
        if (arm := arm_in(folder)) and arm != told[0]:
            raise UsageError(
                f"{source.label}: its name tells of the {told[0]} arm ('{told[1]}'), and its folder '{folder}' of the {arm} one: "
                f"say --plain FILE --encrypted FILE, or rename one of the two"
            )
        if arm:
            return


def called(reading: Reading, text: str, number: int) -> str:
    """A name as an error may say it: a command by its number, as passwords may stand in it. Pure."""
    if reading.tool == "hyperfine" and text in reading.names:
        return f"command {number}"
    return f"'{discreet(text[:300])[:80]}'"


def matches(text: str, word: str) -> bool:
    """Whether a name has this word in it, or fits it as a pattern. Pure."""
    if any(letter in word for letter in "*?["):
        return fnmatch(text.lower(), word.lower())
    return word.lower() in text.lower()


def contradicted(source: Source, readings: list[Reading], schemes: set[str]) -> None:
    """Raises UsageError where a file's address says the other arm than its name, and the import has both kinds of address."""
    for each in readings:
        own = {"http": "plain", "https": "encrypted"}.get(each.scheme)
        if own and len(schemes) == 2 and each.arm != own:
            raise UsageError(
                f"{source.label}, line {each.line}: given as the {each.arm} arm, but it tells of {each.scheme}: the files are swapped, or named wrongly"
            )


# ── runs ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def put_together(told: list[tuple[Source, ImportedFile, list[Reading]]]) -> list[Reading]:
    """The runs: threads' logs as one, a log with its summary, the CPU's samples with the load that they were taken under."""
    logs: dict[tuple[str, ...], list[Reading]] = {}
    loads: list[Reading] = []
    cpus: list[Reading] = []
    for source, file, readings in told:
        match = NAMED.fullmatch(source.path.name)
        for each in readings:
            if file.format == "pgbench_log":
                key = (str(each.arm), str(source.path.parent), match[1] if match else source.path.name)
                logs.setdefault(key, []).append(each)
            elif each.kind == "cpu":
                cpus.append(each)
            else:
                loads.append(each)
    for parts in logs.values():
        try:
            whole = pgbench_log.together(parts)
        except Bad as error:
            raise UsageError(f"{', '.join(part.file for part in parts)}: {error.what}") from None
        whole.file, whole.arm, whole.clock = ", ".join(part.file for part in parts), parts[0].arm, "utc"
        whole.counts, whole.by_second = {}, {}
        with_summary(whole, loads)
    for each in loads:
        each.clock = each.clock or ("utc" if each.started is not None else "")
    alone = [each for each in cpus if not under_load(each, loads)]
    return [*loads, *alone]


def with_summary(log: Reading, loads: list[Reading]) -> None:
    """The log joins the summary of its own run: the one with as many transactions; else it is a run of its own. Changes `loads`."""
    fits = [
        each
        for each in loads
        if each.tool == "pgbench" and each.arm == log.arm and as_many(each, log) and not each.names
    ]
    if len(fits) != 1:
        loads.append(log)
        return
    own = fits[0]
    # A throughput that the summary lacks was set, and the log's is as little a result.
    own.figures |= {name: log.figures[name] for name in log.figures if name not in {*own.figures, "throughput"}}
    own.series = own.series or ({} if "throughput" not in own.figures else log.series)
    own.notes += [note for note in log.notes if note.code == "sampled-log"]
    own.started, own.ended = log.started, log.ended
    own.file = f"{own.file}, {log.file}"
    own.names = ["joined"]


def as_many(summary: Reading, log: Reading) -> bool:
    """Whether a log is of as many transactions as a summary; of a sampled one that is an estimate."""
    if any(note.code == "sampled-log" for note in log.notes):
        return not formats.differ(summary.operations, log.operations, SAMPLE_TOLERANCE)
    return summary.operations == log.operations


def under_load(cpu: Reading, loads: list[Reading]) -> bool:
    """Whether these samples were taken while runs of their arm went on; then each run gets the figures of its own time. Changes `loads`."""
    joined = False
    for load in loads:
        if (
            load.arm != cpu.arm
            or load.started is None
            or load.ended is None
            or cpu.clock != "utc"
            or load.clock != "utc"
        ):
            continue
        # sar's and atop's stamps are whole seconds.
        own = [row for row in cpu.rows if load.started - 1 <= row[0] - row[1] and row[0] <= load.ended + 1]
        if not own:
            continue
        busy = (
            sum(row[1] * row[2] for row in own) / sum(row[1] for row in own)
            if sum(row[1] for row in own)
            else own[0][2]
        )
        load.figures["host_busy"] = busy
        rate = load.figures.get("throughput", load.operations / load.seconds if load.seconds > 0 else 0.0)
        if cpu.cpus and rate > 0:
            load.figures["host_cpu_per_op"] = busy / 100 * cpu.cpus / rate * 1e6
        load.notes += [note for note in cpu.notes if note.code != "idle-edges"]
        load.notes.append(
            Warning_("joined", f"CPU by {cpu.tool} over the {count(len(own), 'sample')} that lie in the run")
        )
        load.file = f"{load.file}, {cpu.file}"
        joined = True
    return joined
