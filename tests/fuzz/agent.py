"""The Rust agent's fuzz targets: their names, their samples, and the program that libFuzzer runs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
CRATE = HERE.parents[1] / "agents" / "rust"
SAMPLES = HERE / "samples"
"""Inputs to begin with: what real servers sent (`fuzz.record`), or written by hand."""
REQUESTS = CRATE / "src" / "fuzz" / "requests"
TARGETS = re.findall(r'^    \("([\w-]+)", ', (CRATE / "src" / "fuzz" / "mod.rs").read_text(), flags=re.MULTILINE)
BUILT = CRATE / "target" / "fuzzing"
COVERAGE = (
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
)
"""What cargo-fuzz passes without a sanitizer. A stable compiler takes it; the parsers have no unsafe code to sanitize."""


def build() -> Path:
    """Compile the agent with libFuzzer in place of `main`, unless that is done. Raises CalledProcessError."""
    version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    # Given a target, cargo instruments no build script.
    target = version.partition("host: ")[2].split()[0]
    environment = {**os.environ, **_openssl(), "RUSTFLAGS": " ".join(["--cfg fuzzing", *COVERAGE])}
    command = [
        "cargo",
        "build",
        "--quiet",
        "--locked",
        "--profile",
        "fuzz",
        "--target",
        target,
        "--target-dir",
        str(BUILT),
    ]
    subprocess.run(command, cwd=CRATE, env=environment, check=True)
    return BUILT / target / "fuzz" / "ciphercost-agent"


def _openssl() -> dict[str, str]:
    """The OpenSSL that the agent's build has compiled, as `openssl-sys` takes one; empty: it compiles its own."""
    builds = sorted((CRATE / "target" / "release" / "build").glob("openssl-sys-*/out/openssl-build/install"))
    if not builds:
        return {}
    kept = BUILT / "openssl"
    if not kept.is_dir():
        # A copy, whose path does not change when the agent is built anew.
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(builds[-1], kept)
    return {"OPENSSL_NO_VENDOR": "1", "OPENSSL_STATIC": "1", "OPENSSL_DIR": str(kept)}
