"""Two encrypted arms instead of a plain and an encrypted one: what `--versus` may change, and what each arm is called."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from ciphercost.load import clients
from ciphercost.mechanisms import Mechanism
from ciphercost.model.errors import UsageError, nearest
from ciphercost.model.pair import Pair, PairArm
from ciphercost.model.spec import CellSpec
from ciphercost.plan.planned import PlannedCell

BY_CLIENT = "client-"
"""How the names of mechanisms begin that encrypt in the application."""
CLIENT, MECHANISM = "client", "mechanism"


def reference_of(cell: CellSpec, mechanism: Mechanism, other: Mechanism) -> CellSpec | None:
    """The cell as its reference arm sees it; None if that arm is plain. Raises UsageError for what the arms can't differ in.

    `other`: the mechanism of that arm, usually the cell's own.
    """
    if not cell.versus:
        return None
    if mechanism.layer == "control":
        raise UsageError(
            f"--versus: {cell.engine}:{cell.mechanism} encrypts nothing, so it has no second encrypted arm; name a mechanism that encrypts"
        )
    known = [factor.name for factor in mechanism.factors]
    others = [CLIENT, *([MECHANISM] if mechanism.layer == "column" else [])]
    for name, value in cell.versus.items():
        if name not in (*known, *others):
            raise UsageError(
                f"--versus {name}={value}: the arms can differ in a factor of {cell.mechanism} or in {' or '.join(others)}, and share "
                f"everything else; {nearest(name, (*known, *others))}"
            )
    hop = cell.factors.get("hop", "") or cell.versus.get("hop", "")
    for name, value in (("hop", hop), ("cpu_crypto", cell.cpu_crypto)):
        if value not in ("", "on"):
            raise UsageError(
                f"--versus and {name}={value}: only a pair of a plain and an encrypted arm can have both; remove one of them"
            )
    instead = cell.versus.get(MECHANISM, "")
    if other.layer != mechanism.layer:
        raise UsageError(
            f"--versus mechanism={instead}: {cell.mechanism} encrypts in columns and {instead} does not; name a mechanism that does, or "
            "measure both against none in cells of their own"
        )
    if CLIENT in cell.versus and not clients.comparable(
        cell, msgspec.structs.replace(cell, client=cell.versus[CLIENT], driver="")
    ):
        raise UsageError(
            f"--versus {CLIENT}={cell.versus[CLIENT]}: two JDBC drivers, or two versions of another driver, can be compared so, as they read "
            f"rows in the same form; write --client jdbc:VERSION --versus client=jdbc:VERSION, or use --matrix client={cell.client or 'rust'},"
            f"{cell.versus[CLIENT]}"
        )
    if cell.mechanism.startswith(BY_CLIENT) and not instead:
        raise UsageError(
            f"--versus: {cell.mechanism} encrypts in the application, which can seal values for one arm only; compare it with a mechanism of "
            "the server, by --versus mechanism=NAME, or measure its settings in cells of their own, by --matrix NAME=VALUE,VALUE"
        )
    if instead.startswith(BY_CLIENT):
        raise UsageError(
            f"--versus mechanism={instead}: encrypts in the application, which can seal values for one arm only; name it as the target, and the "
            f"other mechanism with --versus mechanism={cell.mechanism}"
        )
    # Factors that only the one mechanism has say nothing of the other.
    unknown = set(known) - {factor.name for factor in other.factors}
    given = {name: value for name, value in cell.versus.items() if name not in others}
    factors = {name: value for name, value in cell.factors.items() if name not in unknown} | given
    return msgspec.structs.replace(
        cell,
        versus={},
        factors=without_effect(other, factors, given),
        client=cell.versus.get(CLIENT, cell.client),
        mechanism=cell.versus.get(MECHANISM, cell.mechanism),
    )


def without_effect(mechanism: Mechanism, factors: Mapping[str, str], changed: Collection[str]) -> dict[str, str]:
    """The factors without those that a changed one takes the effect of: bits, where search is no longer a blind index. Pure."""
    usual = {factor.name: factor.values[0] if factor.values else "" for factor in mechanism.factors}
    idle = {
        factor.name
        for factor in mechanism.factors
        if factor.only_with.partition("=")[0] in changed and not factor.acts_beside({**usual, **factors})
    }
    return {name: value for name, value in factors.items() if name not in idle - set(changed)}


def pair_of(cell: PlannedCell) -> Pair | None:
    """The cell's two arms by name; None if they are plain and encrypted. Pure."""
    other = cell.reference
    if other is None:
        return None
    differ = [name for name, value in cell.factors.items() if other.factors.get(name) != value]
    differ += [name for name in other.factors if name not in cell.factors]
    given = [name for name in cell.factors if name in cell.spec.versus or name in cell.spec.factors]
    named = [name for name in given if name in differ] or [name for name in given if name in cell.spec.versus]
    arms = []
    for arm in (other, cell):
        settings = {name: arm.factors[name] for name in (*named, *differ) if name in arm.factors}
        words = [arm.mechanism.called({name: settings[name] for name in named if name in settings})] if named else []
        if arm.mechanism is not (cell if arm is other else other).mechanism:
            words, settings = [arm.mechanism.name, *words], {MECHANISM: arm.mechanism.name, **settings}
        if CLIENT in cell.spec.versus:
            assert arm.client is not None
            words.append(arm.client.driver.title)
            settings[CLIENT] = arm.spec.client
        arms.append(PairArm(", ".join(words), settings))
    first, second = arms
    if first.name == second.name:
        second = msgspec.structs.replace(second, name=f"{second.name}, again")
    return Pair("versus", first, second)
