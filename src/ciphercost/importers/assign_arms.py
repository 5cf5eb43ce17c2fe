"""assign_arms: readings -> each with its arm: as the user said, else by the file's own words, its name, its folders or its address."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch

import msgspec

from ciphercost.importers.arm_words import ENCRYPTED, arm_in, told_by
from ciphercost.importers.formats import discreet
from ciphercost.importers.input_files import Source
from ciphercost.importers.wanted import Wanted
from ciphercost.model.errors import UsageError
from ciphercost.model.imported import Reading
from ciphercost.model.result import ImportedFile
from ciphercost.model.spec import ARMS, Arm

SAYABLE = "plain, clear, off, notls, disabled … or tls, ssl, tde, enc, on, required …"


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
