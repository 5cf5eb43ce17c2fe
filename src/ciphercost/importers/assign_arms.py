"""Assigns an arm to each reading: the user's choice, else the file's content, its name, its folders or its address."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch

import msgspec

from ciphercost.importers.arm_words import ENCRYPTED, NUMBERED, arm_in, arm_stated_in, server_decides
from ciphercost.importers.choices import Choices
from ciphercost.importers.formats import without_secrets
from ciphercost.importers.input_files import Source
from ciphercost.importers.server_words import SERVERS, server_in
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import Reading
from ciphercost.model.result import ImportedFile
from ciphercost.model.spec import ARMS, Arm

NAMING_PARTS = 3
"""Parts of a path that may name the server: the file and two folders."""
SAYABLE = "plain, clear, off, notls, disabled … or tls, ssl, tde, enc, on, required …"


def arms(
    kept: list[tuple[Source, ImportedFile, list[Reading]]], wanted: Choices
) -> list[tuple[Source, ImportedFile, list[Reading]]]:
    """Return every reading with its arm, and record in its file how it was found.

    Raises UsageError if it can't be found.
    """
    schemes = {reading.scheme for *_, readings in kept for reading in readings if reading.scheme}
    loose = loosely_named([source for source, *_ in kept])
    told = []
    for source, file, readings in kept:
        how: list[str] = []
        commands: dict[tuple[str, ...], int] = {}
        for reading in readings:
            number = commands.setdefault(tuple(reading.names), len(commands) + 1)
            reading.arm, by = arm_of(source, reading, wanted, loose, both_schemes=len(schemes) == 2, number=number)
            how.append(by)
            if reading.server not in SERVERS.values():
                narrower = server_in(source.path.parts[: -1 - NAMING_PARTS : -1], reading.server or reading.engine)
                reading.server = narrower or reading.server
            # Commands may contain passwords, so only this word goes into the record.
            reading.names = []
        contradicted(source, readings, schemes)
        file_arms = [arm for arm in ARMS if any(reading.arm == arm for reading in readings)]
        words = ", ".join(dict.fromkeys(how))
        told.append((source, msgspec.structs.replace(file, arms=file_arms, how=words), readings))
    maybe_both(told)
    maybe_counted(told)
    return told


def loosely_named(sources: Sequence[Source]) -> frozenset[str]:
    """Names of files found in folders of both arms, such as `plain/ssl-bench.log` and `tls/ssl-bench.log`: they state
    no arm. Pure.
    """
    arms_of: dict[str, set[Arm]] = {}
    for source in sources:
        name, *folders = source.names
        if arm := next((arm for folder in folders if (arm := arm_in(folder))), None):
            arms_of.setdefault(name, set()).add(arm)
    return frozenset(name for name, arms_ in arms_of.items() if len(arms_) == 2)


def maybe_both(told: list[tuple[Source, ImportedFile, list[Reading]]]) -> None:
    """Raise UsageError if several runs count as encrypted only because of a word like `ssl` in their file's name, and
    no run is plain.

    `ssl-bench.log` is a likely name for a file with both arms.
    """
    if any(reading.arm == "plain" for *_, readings in told for reading in readings):
        return
    for source, file, readings in told:
        known = arm_stated_in(source.names[0])
        if len(readings) > 1 and file.how == "its name" and known and known[1] in ENCRYPTED:
            raise UsageError(
                f"{source.label}: it contains {len(readings)} runs, and '{known[1]}' in its name may describe the whole test, both arms. "
                "No run here is plain. Put each arm into its own file, or use --arm encrypted if all runs are encrypted"
            )


def maybe_counted(told: list[tuple[Source, ImportedFile, list[Reading]]]) -> None:
    """Raise UsageError if a name such as `ssl0` may be a switch or the first of several numbered runs.

    It is a switch if no other name ends in a number above 1, and no run is plain for another reason. `ssl-0` counts runs,
    unless only `ssl-1` stands beside it and no run is plain.
    """
    numbered: dict[int, tuple[Source, str, bool]] = {}
    for source, file, _ in told:
        if file.how != "its name" and not file.how.startswith("its folder"):
            continue
        text = next((name for name in source.names if arm_stated_in(name)), "")
        if match := NUMBERED.search(text):
            numbered.setdefault(int(match[2]), (source, match[0], match[0] == match[1] + match[2]))
    if 0 not in numbered:
        return
    source, word, switched_off = numbered[0]
    others = [other for other, *_ in told if other is not source]
    plain = [file for other, file, _ in told if "plain" in file.arms and other in others and not _numbered_0(other)]
    if (switched_off and (plain or max(numbered) > 1)) or (not switched_off and set(numbered) == {0, 1} and not plain):
        raise UsageError(
            f"{source.label}: '{word}' may mean that encryption was off, or count the runs; use --plain FILE --encrypted FILE, or rename it"
        )


def _numbered_0(source: Source) -> bool:
    return any((match := NUMBERED.search(name)) and int(match[2]) == 0 for name in source.names)


def arm_of(
    source: Source, reading: Reading, wanted: Choices, loose: frozenset[str], *, both_schemes: bool, number: int = 0
) -> tuple[Arm, str]:
    """Return (arm, how it was found): the user's choice, the file's content, its name, its folders' names, http or
    https.

    `loose`: names of files that contain a word for an arm but state none.
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
                f"{source.label}: {called(reading, text, number)} contains the words of both arms; choose other words, or use --plain FILE --encrypted FILE"
            )
    if len({arm for arm, _ in wanted.words}) == 2:
        words = ", ".join(f"'{word}' ({arm})" for arm, word in wanted.words)
        raise UsageError(
            f"{source.label}: its name contains none of your words {words}; choose other words, or use --plain FILE --encrypted FILE"
        )
    names = source.names[1:] if source.names[0] in loose else source.names
    for text in reading.names or names:
        if told := arm_stated_in(text):
            arm, word = told
            if reading.names:
                return arm, f"its own words '{word}'"
            contrary(source, text, told)
            return arm, "its name" if text == source.names[0] else f"its folder '{text}'"
    if both_schemes and reading.scheme:
        return ("encrypted" if reading.scheme == "https" else "plain"), f"its address ({reading.scheme})"
    name = reading.names[0] if reading.names else source.names[0]
    if mode := server_decides(name):
        raise UsageError(
            f"{source.label}: is {called(reading, name, number)} plain or encrypted? With the mode '{mode}' the server decides, and the tool "
            "doesn't say what it decided. If you know it, use --plain FILE --encrypted FILE, or --arm plain=WORD --arm encrypted=WORD"
        )
    raise UsageError(
        f"{source.label}: is {called(reading, name, number)} plain or encrypted? It contains none of the words {SAYABLE} (or some of both). "
        "Use --plain FILE --encrypted FILE, or --arm plain=WORD --arm encrypted=WORD, or --arm encrypted if all runs are of one arm"
    )


def contrary(source: Source, text: str, told: tuple[Arm, str]) -> None:
    """Raise UsageError if a bare word like `ssl` in a file's name contradicts the folder that contains the file."""
    if text != source.names[0] or told[1] not in ENCRYPTED:
        return
    for folder in source.names[1:]:
        if (arm := arm_in(folder)) and arm != told[0]:
            raise UsageError(
                f"{source.label}: its name says {told[0]} ('{told[1]}'), but its folder '{folder}' says {arm}; "
                f"use --plain FILE --encrypted FILE, or rename one of the two"
            )
        if arm:
            return


def called(reading: Reading, text: str, number: int) -> str:
    """Return a name for error messages: commands get a number, since they may contain passwords. Pure."""
    if reading.tool == "hyperfine" and text in reading.names:
        return f"command {number}"
    return f"'{without_secrets(text[:300])[:80]}'"


def matches(text: str, word: str) -> bool:
    """Whether a name contains this word or matches it as a pattern. Pure."""
    if any(letter in word for letter in "*?["):
        return fnmatch(text.lower(), word.lower())
    return word.lower() in text.lower()


def contradicted(source: Source, readings: list[Reading], schemes: set[str]) -> None:
    """Raise UsageError if a file's address contradicts its name and the import has both http and https addresses."""
    for reading in readings:
        scheme_arm = {"http": "plain", "https": "encrypted"}.get(reading.scheme)
        if scheme_arm and len(schemes) == 2 and reading.arm != scheme_arm:
            raise UsageError(
                f"{source.label}, line {reading.line}: assigned to the {reading.arm} arm, but it used {reading.scheme}; the files are swapped or misnamed"
            )
