"""The command line; the package's docstring shows it."""

from __future__ import annotations

import argparse
import sys
from importlib.metadata import version as installed
from pathlib import Path

from . import python, rust, wheels
from .document import rendered


def agent(options: argparse.Namespace) -> int:
    product, packages = rust.packages(options.target)
    tools = rust.tools() | {name: installed(name) for name in ("maturin", "ziglang")}
    options.output.write_text(rendered(product, packages, tools, {"cdx:rustc:sbom:target:triple": options.target}))
    return 0


def whole(options: argparse.Namespace) -> int:
    product, packages = python.packages(options.version, options.jar)
    facts = {"ciphercost:python": ".".join(map(str, sys.version_info[:2]))}
    options.output.write_text(rendered(product, packages, python.tools(), facts))
    return 0


def check(options: argparse.Namespace) -> int:
    status = 0
    for wheel in options.wheels:
        found = wheels.wrong(wheel)
        if found is not None:
            print(f"sbom: {wheel}: {found}", file=sys.stderr)
            status = 1
    return status


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m sbom")
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("agent")
    one.add_argument("--target", required=True)
    one.set_defaults(call=agent)
    other = commands.add_parser("python")
    other.add_argument("--version", required=True)
    other.add_argument("--jar", required=True, type=Path)
    other.set_defaults(call=whole)
    for each in (one, other):
        each.add_argument("-o", "--output", required=True, type=Path)
    checked = commands.add_parser("check")
    checked.add_argument("wheels", nargs="+", type=Path)
    checked.set_defaults(call=check)
    options = parser.parse_args()
    status: int = options.call(options)
    return status


sys.exit(main())
