"""One machine's part of a run over several: an ordinary run in a process of its own, which comes back packed. I/O.

`measure` runs on that machine. Its supervisor ends the run and removes everything if this process is killed or interrupted.
`python -m ciphercost.runs.node_run SPEC.toml DIRECTORY MACHINE RUN` is the process that it starts.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from ciphercost.host import supervisor
from ciphercost.host.environment import child_environment
from ciphercost.host.supervisor import Supervisor
from ciphercost.load import own_scripts
from ciphercost.model.errors import CiphercostError, UsageError
from ciphercost.model.run_directory import new_id
from ciphercost.model.spec import CellSpec, Spec
from ciphercost.plan import schedule, toml
from ciphercost.runs import anonymize, archive, html_page, pipeline

LONGER, SLACK_SECONDS = 5.0, 1800.0
"""A run may take that many times its estimate, and this long to fetch its servers, before it is given up."""


class Part(msgspec.Struct, frozen=True):
    """What one machine is to measure."""

    run: str
    """Id of the whole run."""
    machine: str
    spec: Spec
    """Its cells, with the names of files instead of paths."""
    files: dict[str, bytes] = {}


def part(run: str, machine: str, spec: Spec) -> Part:
    """The part, with the user's files that its cells name. Raises UsageError if one can't be read."""
    files: dict[str, bytes] = {}
    cells: list[CellSpec] = []
    for cell in spec.cells:
        scripts = [(own_scripts.of_file(script), script) for script in cell.scripts]
        kept = [_kept(name, files) + script.removeprefix(name) for (name, _), script in scripts]
        csv = _kept(cell.csv, files) if cell.csv else ""
        workload = _kept(cell.workload, files) if cell.workload_file else cell.workload
        cells.append(msgspec.structs.replace(cell, sql=_as_field(kept), csv=csv, workload=workload))
    return Part(run, machine, msgspec.structs.replace(spec, cells=cells), files)


def _as_field(scripts: list[str]) -> str | list[str]:
    return scripts if len(scripts) > 1 else "".join(scripts)


def _kept(name: str, files: dict[str, bytes]) -> str:
    """Put a file of the user's into the part. Return its name there: two files may have the same name in different directories."""
    path = Path(name)
    content = _read(path)
    key = next((known for known in files if known.endswith(f"-{path.name}") and files[known] == content), "")
    key = key or f"{len(files)}-{path.name}"
    files[key] = content
    return key


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"can't read {path}: {error.strerror}") from None


def in_own_process(of: Part, spec: Path, directory: Path, supervisor_: Supervisor) -> None:
    """Measure a spec's file in a process that the supervisor ends with this one. Raises RunError."""
    command = [sys.executable, "-m", "ciphercost.runs.node_run", str(spec), str(directory), of.machine, of.run]
    timeout = LONGER * schedule.time_estimate(of.spec) + SLACK_SECONDS
    # The controller writes pages, and reads only the record.
    env = child_environment({html_page.SWITCH: "off"})
    # The mask of a shell: servers that run as nobody must reach directories that this run makes for them.
    supervisor_.run(command, timeout=timeout, env=env, cwd=spec.parent, umask=0o022)


def measure(of: Part, run: Callable[[Part, Path, Path, Supervisor], None] = in_own_process) -> bytes:
    """Measure a part on this machine. Returns its packed record, without private paths and logs.

    `run`: writes the run of a spec's file into a directory. Raises RunError, with the reason in words, if it left no record.
    """
    with Supervisor(new_id()) as run_supervisor, supervisor.temporary(run_supervisor, "part") as place:
        directory, spec = place / "run", place / "part.toml"
        for name, content in of.files.items():
            (place / name).write_bytes(content)
        spec.write_text(toml.dump(_there(of.spec, place)))
        run(of, spec, directory, run_supervisor)
        packed = place / "run.tar.xz"
        archive.pack(anonymize.shareable(directory), of.machine, packed)
        return packed.read_bytes()


def _there(spec: Spec, place: Path) -> Spec:
    """The spec with the paths that the user's files have here."""
    cells = [
        msgspec.structs.replace(
            cell,
            sql=_as_field([str(place / script) for script in cell.scripts]),
            csv=cell.csv and str(place / cell.csv),
        )
        for cell in spec.cells
    ]
    return msgspec.structs.replace(spec, cells=cells)


def unpack(packed: bytes, target: Path) -> None:
    """Write a packed record to the directory `target`, all of it or nothing. Raises UsageError if it is damaged."""
    beside = target.with_name(f".{target.name}.tar.xz")
    new = target.with_name(f".{target.name}.new")
    try:
        beside.write_bytes(packed)
        new.mkdir(mode=0o700)
        archive.unpack(beside, new)
        (new / "logs").mkdir()
        new.replace(target)
    finally:
        beside.unlink(missing_ok=True)
        shutil.rmtree(new, ignore_errors=True)


def main(spec: str, directory: str, machine: str, run: str) -> None:
    """Measure the spec. Raises CiphercostError."""
    pipeline.run_in(toml.plan(Path(spec)), Path(directory), place={"node": machine, "over_machines": run})


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except CiphercostError as refused:
        raise SystemExit(f"{refused}") from None
