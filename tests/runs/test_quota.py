"""A server whose container or unit has a CPU quota: the run says so, and which slices it held back."""

from __future__ import annotations

import contextlib
from pathlib import Path

from ciphercost import engines
from ciphercost.host.procfs import tree
from ciphercost.model import run_directory
from conftest import Require
from limited_cpu import limited_cpu
from test_real import SHORT, ciphercost, result_of
from userservers import user_server


def test_a_users_server_under_a_quota_is_marked_and_its_limit_is_named(tmp_path: Path, require: Require) -> None:
    require(list(engines.get("postgresql").available()), "no postgresql here: `ciphercost install postgresql`")
    with limited_cpu(0.1, require) as group, user_server("postgresql", tmp_path) as server:
        for pid in tree(server.server.pid):
            with contextlib.suppress(ProcessLookupError):  # one of its children has ended
                (group / "cgroup.procs").write_text(str(pid))
        target = ("postgresql:tls", "--url", server.url, *server.by_ca)
        argv = ("run", *target, *SHORT, "-o", "out", "--json", "out.json")
        done = ciphercost(*argv, cwd=tmp_path, **server.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    cell = result_of(tmp_path)["cells"][0]
    texts = {warning["code"]: warning["text"] for warning in cell["warnings"]}
    assert "0.1 cores holds for the server" in texts["cpu-quota"]
    assert "client" not in texts["cpu-quota"].partition(":")[0]
    assert "throttled" in texts
    for arm in cell["arms"].values():
        assert arm["host"]["throttled"]["mean"] > 5
    slices = list(run_directory.read_slices(tmp_path / "out"))
    held = [record for record in slices if "throttled" in record.marks]
    assert held
    assert all(record.counters and record.counters.throttled_ns for record in held)
    assert "limited by the CPU quota" in " ".join(done.stdout.split())
