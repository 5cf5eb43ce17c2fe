"""Which directory is a unit's control group: in both versions of the kernel's groups, and where systemd can't be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from ciphercost.host import control_groups

V1, V2 = "cpuacct.usage", "cpu.stat"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc whose mounts are those of a hybrid machine: `cpu`, `cpuacct` and `unified`."""
    (tmp_path / "proc/self").mkdir(parents=True)
    mounts = [
        f"cgroup {tmp_path}/cpu cgroup rw,cpu 0 0",
        f"cgroup {tmp_path}/cpuacct cgroup rw,cpuacct 0 0",
        f"cgroup2 {tmp_path}/unified cgroup2 rw 0 0",
    ]
    (tmp_path / "proc/self/mounts").write_text("\n".join(mounts) + "\n")
    (tmp_path / "proc/self/cgroup").write_text("1:cpuacct:/\n0::/\n")
    return tmp_path / "proc"


def group(place: Path, counter: str, text: str = "usage_usec 5\n") -> Path:
    place.mkdir(parents=True)
    (place / counter).write_text(text)
    (place / "cgroup.procs").write_text("")
    return place


def test_a_units_group_is_found_where_its_cpu_time_is_counted(proc: Path, tmp_path: Path) -> None:
    group(tmp_path / "cpu/system.slice/a.service", V2, "nr_periods 0\n")
    assert control_groups.of_unit("a", proc) == []
    second = group(tmp_path / "unified/system.slice/a.service", V2)
    assert control_groups.of_unit("a", proc) == [second]
    first = group(tmp_path / "cpuacct/system.slice/a.service", V1, "5\n")
    assert control_groups.of_unit("a.service", proc) == [first]
    assert control_groups.counting("/system.slice/a.service", proc) == first
    assert control_groups.counting("/system.slice/b.service", proc) is None


def test_units_of_users_and_of_templates_are_found_and_several_are_told(proc: Path, tmp_path: Path) -> None:
    below = group(tmp_path / "unified/system.slice/system-postgresql.slice/postgresql@16-main.service", V2)
    assert control_groups.of_unit("postgresql@16-main", proc) == [below]
    places = [f"unified/user.slice/user-{user}.slice/user@{user}.service/app.slice/a.service" for user in (1, 2)]
    both = [group(tmp_path / place, V2) for place in places]
    assert sorted(control_groups.of_unit("a", proc)) == both
    assert control_groups.of_unit("a*", proc) == []


def test_members_are_those_of_the_groups_below_too(tmp_path: Path) -> None:
    (group(tmp_path / "a", V2) / "cgroup.procs").write_text("7\n")
    (group(tmp_path / "a/b", V2) / "cgroup.procs").write_text("5\n0\n")
    assert control_groups.members(tmp_path / "a") == [0, 5, 7]
    assert control_groups.members(tmp_path / "missing") == []
