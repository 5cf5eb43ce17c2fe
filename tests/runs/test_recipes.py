"""docs/recipes: each is documented, its server starts from real parts, its commands prove each arm, and it runs as it is written, shorter."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

import recipe_parts
import warm
from ciphercost.load.command_client import CommandClient, Place
from ciphercost.load.command_place import places
from ciphercost.model.command_load import CommandLoad
from ciphercost.model.errors import MissingServer, RunError
from ciphercost.model.result import Result
from ciphercost.model.run_directory import new_id
from ciphercost.model.slices import Proof
from ciphercost.model.spec import ARMS, Arm
from ciphercost.plan import toml
from ciphercost.prove import command_witness
from ciphercost.runs import command_readers
from conftest import Require
from processes import wait_for
from recipe_parts import RECIPES

SPECS = sorted(str(path.relative_to(RECIPES)) for path in RECIPES.glob("*/*.toml"))
COUNTS = {"--repeat 20000": "--repeat 200", "operations = 20000": "operations = 200", "--total 20000": "--total 400"}
COUNTS |= {"--msgs 100000": "--msgs 2000"}
RECORDS = "2000"
"""What a recipe's commands do in one execution here, so that a test asks for seconds of a busy machine, not minutes."""


@pytest.fixture
def recipe(request: pytest.FixtureRequest, require: Require, tmp_path: Path) -> Iterator[Path]:
    """A recipe's spec file in a copy of its directory, with smaller counts. Its server is stopped afterwards."""
    name, _, spec = request.param.partition("/")
    try:
        environment = recipe_parts.environment(name)
    except MissingServer as error:
        require(False, str(error))
        raise
    shutil.copytree(RECIPES / name, tmp_path / name, ignore=shutil.ignore_patterns("state", "lib"))
    shutil.copy(RECIPES / "serving.sh", tmp_path)
    path = tmp_path / name / spec
    text = path.read_text()
    for usual, less in COUNTS.items():
        text = text.replace(usual, less)
    path.write_text(text)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(path.parent)
        for variable, value in (environment | {"RECORDS": RECORDS, "TMPDIR": str(tmp_path)}).items():
            patched.setenv(variable, value)
        yield path
        serve("stop", path.parent)
        assert not (path.parent / "state").exists()


def serve(word: str, directory: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "serve.sh", word],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=250,
    )


def processes_of(directory: Path) -> list[str]:
    """Command lines of living processes that name this directory."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(directory) in line:
            lines.append(line)
    return lines


def lasting(command: CommandLoad, seconds: int) -> CommandLoad:
    """The command with executions of this length, if they have one."""
    plain, encrypted = (each.replace("{seconds}", str(seconds)) for each in (command.plain, command.encrypted))
    return msgspec.structs.replace(command, plain=plain, encrypted=encrypted)


def proven(url: str, command: CommandLoad) -> tuple[list[Proof], dict[Arm, command_witness.Trial]]:
    """Proofs and trials of the command at these places."""
    ends = dict(zip(ARMS, places(url), strict=True))
    with CommandClient(
        command,
        {arm: Place(*end) for arm, end in ends.items()},
        command_readers.reader(command),
        clients=1,
        run_id=new_id(),
    ) as client:
        return command_witness.prove(client, command.canary, 1)


@pytest.mark.parametrize("recipe", SPECS, indirect=True)
def test_each_arm_is_proven(recipe: Path) -> None:
    """What a session does first: `before`, then each command once, through the relay or with its packets captured."""
    (cell,) = toml.load(recipe).cells
    assert cell.command is not None
    before = subprocess.run(cell.command.before.split(), capture_output=True, text=True, check=False, timeout=500)
    assert before.returncode == 0, before.stderr
    try:
        proofs, trials = proven(cell.url, cell.command)
        too_short = not all(trial.outcome.answer.operations for trial in trials.values())
    except RunError:
        too_short = True
    if too_short:  # on a busy machine, a JVM may not have sent its first message within the second of a trial
        proofs, trials = proven(cell.url, lasting(cell.command, 10))
    assert [proof.passed for proof in proofs] == [True, True], proofs
    assert trials["encrypted"].protocol == "TLSv1.3"
    assert all(trial.outcome.answer.operations > 0 and not trial.outcome.answer.errors for trial in trials.values())
    assert all(trial.outcome.figures.process_s > 0 for trial in trials.values())
    stopped = serve("stop", recipe.parent)
    assert stopped.returncode == 0, stopped.stderr
    assert processes_of(recipe.parent) == []


@pytest.mark.parametrize("recipe", SPECS, indirect=True)
def test_it_runs_as_it_is_written(recipe: Path) -> None:
    text = re.sub(r"^time = .*\nsessions = .*$", 'mode = "quick"\ntime = 24.0', recipe.read_text(), flags=re.MULTILINE)
    assert "quick" in text
    recipe.write_text(text)
    done = warm.run(
        ["run", recipe.name, "-o", str(recipe.parent / "run"), "--no-progress"],
        cwd=recipe.parent,
        env=dict(os.environ),
        timeout=900,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    result = msgspec.json.decode((recipe.parent / "run" / "result.json").read_bytes(), type=Result)
    (cell,) = result.cells
    assert cell.status == "ok"
    assert {(proof.arm, proof.passed) for proof in cell.proofs} == {(arm, True) for arm in ARMS}
    assert cell.overhead["throughput"].ratio > 0
    assert cell.overhead["server_cpu_per_op"].ratio > 0
    assert processes_of(recipe.parent) == []


def any_in_a_block(stored: Path) -> bool:
    """Whether JetStream, which writes after it has answered, has written messages below this directory."""
    return any(path.stat().st_size for path in stored.rglob("*.blk"))


def test_jetstream_writes_no_message_in_clear(require: Require, tmp_path: Path) -> None:
    """The recipe's server has its key; without it, the same message is readable."""
    try:
        environment = os.environ | recipe_parts.environment("nats")
    except MissingServer as error:
        require(False, str(error))
    found = {}
    for name in ("with key", "without"):
        place = tmp_path / name.replace(" ", "-")
        shutil.copytree(RECIPES / "nats", place / "nats")
        serving = (RECIPES / "serving.sh").read_text()
        (place / "serving.sh").write_text(serving)
        script = place / "nats" / "serve.sh"
        if name == "without":
            script.write_text(script.read_text().replace("cipher: aes, key: \\$JETSTREAM_KEY, ", ""))
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("PATH", environment["PATH"])
            patched.setenv("TMPDIR", str(place))
            started = serve("start", place / "nats")
            assert started.returncode == 0, started.stderr
            for words in (
                ["stream", "add", "canaries", "--subjects", "canary", "--storage", "file", "--defaults"],
                ["pub", "canary", "a canary of forty bytes in a stream's file"],
                ["request", "--raw", "$JS.API.STREAM.INFO.canaries", "x"],
            ):
                command = ["nats", "--server", "nats://127.0.0.1:14222", *words]
                done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
                assert done.returncode == 0, done.stderr + done.stdout
            stored = place / "nats" / "state" / "jetstream"
            wait_for("a block of messages", partial(any_in_a_block, stored))
            files = [path for path in stored.rglob("*") if path.is_file()]
            found[name] = any(b"canary of forty bytes" in path.read_bytes() for path in files)
            serve("stop", place / "nats")
    assert found == {"with key": False, "without": True}


@pytest.mark.parametrize("recipe", ["mosquitto/publish.toml"], indirect=True)
def test_a_server_that_can_not_start_is_one_line_and_leaves_nothing(recipe: Path) -> None:
    assert serve("start", recipe.parent).returncode == 0
    again = serve("start", recipe.parent)
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert "port 18830 is in use" in again.stderr
    serve("stop", recipe.parent)
    configuration = recipe.parent / "serve.sh"
    configuration.write_text(configuration.read_text().replace("allow_anonymous true", "no_such_option true"))
    wrong = serve("start", recipe.parent)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (1, 1), wrong.stderr
    assert "no_such_option" in wrong.stderr
    assert not (recipe.parent / "state").exists()
    assert processes_of(recipe.parent) == []
    assert serve("", recipe.parent).returncode == 1


def test_every_recipe_is_documented_and_tested() -> None:
    folders = {path.name for path in RECIPES.iterdir() if path.is_dir()}
    assert folders == {path.parts[0] for path in map(Path, SPECS)} == set(recipe_parts.PARTS)
    index = (RECIPES / "README.md").read_text()
    for folder in folders:
        assert f"({folder}/README.md)" in index, f"docs/recipes/README.md does not link {folder}"
        text = (RECIPES / folder / "README.md").read_text()
        for spec in (path for path in SPECS if path.startswith(f"{folder}/")):
            assert f"ciphercost run {Path(spec).name}" in text, f"{folder}/README.md does not name {spec}"
        for script in (RECIPES / folder).glob("*.sh"):
            assert f"`{script.name}`" in text, f"{folder}/README.md does not name {script.name}"


@pytest.mark.parametrize("spec", SPECS)
def test_a_spec_is_accepted_and_its_ports_are_those_of_its_server(spec: str) -> None:
    path = RECIPES / spec
    (cell,) = toml.load(path).cells
    (again,) = tomllib.loads(path.read_text())["cells"]
    assert again["url"] == cell.url
    script = (path.parent / "serve.sh").read_text()
    for _, port in places(cell.url):
        assert str(port) in script
