"""How the options of a short run are told from those that stand beside its spec."""

from __future__ import annotations

import short


def test_what_is_written_and_shown_stands_beside_the_spec() -> None:
    argv = [
        "run",
        "null:busy",
        "--json",
        "out.json",
        "--quick",
        "-o",
        "here",
        "--time",
        "3s",
        "--no-progress",
        "--clients",
        "2",
    ]
    assert short.apart(argv) == (
        ["run", "null:busy", "--quick", "--time", "3s", "--clients", "2"],
        ["--json", "out.json", "-o", "here", "--no-progress"],
    )
