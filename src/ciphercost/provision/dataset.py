"""dataset: the data that a cell's sessions start with: its template, its size, and copies of it.

Data is loaded once, into a template. Cells of an experiment that load the same data share it. At rest and in an
embedded engine, each arm has its own template.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec

from ciphercost.host.environment import child_environment
from ciphercost.host.installation import Installation
from ciphercost.load.program import Program
from ciphercost.mechanisms._rest import AtRest
from ciphercost.model import system_error
from ciphercost.model.errors import RunError
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan.planned import PlannedCell
from ciphercost.provision import cache
from ciphercost.provision.experiment_resources import ExperimentResources


class Dataset(msgspec.Struct, frozen=True):
    """What one cell loads, and where."""

    planned: PlannedCell
    program: Program
    installation: Installation
    shared: ExperimentResources
    in_columns: bool
    """Whether the mechanism encrypts columns."""
    apart: bool = False
    """Whether each arm has a server of its own, with the same data."""

    @property
    def separate(self) -> bool:
        """Whether each arm has a data directory of its own."""
        return self.apart or isinstance(self.planned.mechanism, AtRest) or self.planned.engine.embedded

    @property
    def places(self) -> tuple[str, ...]:
        """Names of the data directories: one per arm, or one for both."""
        return ARMS if self.separate else ("both",)

    def place(self, arm: Arm) -> str:
        """The data directory of an arm."""
        return arm if self.separate else "both"

    @property
    def key(self) -> str:
        """What the loaded data depends on. Cells with the same key share their data."""
        mechanism = self.planned.mechanism
        apart = self.origin("encrypted") == "encrypted" and (self.separate or self.in_columns)
        other = self.planned.reference
        reference = (other.mechanism.name, other.factors) if other else ()
        mechanism_part = (mechanism.name, self.planned.factors, self.planned.secret, reference) if apart else ()
        parameters = sorted(self.program.parameters.items())
        return repr(
            (
                self.installation,
                self.program.data or self.program.name,
                parameters,
                self.planned.spec.csv,
                self.planned.spec.no_header,
                self.planned.spec.dump,
                mechanism_part,
            )
        )

    @property
    def writer(self) -> str:
        """The workload that changes the data, if others start with the same: then it has a copy of its own. Empty: cells can share it."""
        return self.program.name if self.program.data and not self.program.read_only else ""

    def origin(self, place: str) -> str:
        """The template that a place's data is copied from."""
        mechanism = self.planned.mechanism
        same = mechanism.loaded_once if isinstance(mechanism, AtRest) else self.apart
        return "plain" if same else place

    @property
    def loaded(self) -> bool:
        """Whether the template is filled."""
        return self.key in self.shared.templates

    def template(self, place: str) -> Path:
        """The directory of a place's loaded data. Valid only once it is loaded."""
        return self.shared.templates[self.key] / self.origin(place)

    @property
    def bytes(self) -> int:
        """Size of the plain arm's loaded data, so that both arms' caches have the same size. 0: not loaded yet."""
        if self.planned.spec.url or not self.loaded:
            return 0
        if self.key not in self.shared.sizes:
            self.shared.sizes[self.key] = cache.size(self.template(self.places[0]))
        return self.shared.sizes[self.key]


def arm_at(place: str) -> Arm:
    """The arm that a place's data belongs to. Pure."""
    return "encrypted" if place == "encrypted" else "plain"


def copy(source: Path, target: Path) -> None:
    """Copy a data directory. Keeps owners and modes, and shares blocks if the file system can. Raises RunError."""
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o711)
    done = subprocess.run(
        ["cp", "-a", "--reflink=auto", str(source), str(target)],
        capture_output=True,
        text=True,
        check=False,
        env=child_environment({"LC_ALL": "C"}),
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [""])[-1].removeprefix("cp: ")
        raise RunError(f"can't copy the data: {system_error.advised(reason)}")
