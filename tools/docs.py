"""Build the documentation site: assemble its pages in build/docs, then run zensical.

Written pages are in docs/. Generated ones are the command line, engines, mechanisms and workloads, which come from the
registries, and the documents at the repository's root.
"""

from __future__ import annotations

import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from ciphercost import commands, engines, mechanisms
from ciphercost.commands._options import Sectioned
from ciphercost.load import workloads

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "docs"
DOCUMENTS = {
    "METHODOLOGY.md": "explanation/method.md",
    "LIMITS.md": "explanation/limits.md",
    "FORMAT.md": "reference/run-directory.md",
    "PROTOCOL.md": "reference/protocol.md",
    "docs/grants.md": "reference/grants.md",
}
"""Documents of the repository, and their pages."""
LAYERS = {
    "transit": "In transit",
    "rest": "At rest",
    "column": "In columns",
    "control": "Controls",
}


def write(page: str, lines: Iterable[str]) -> None:
    path = PAGES / page
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")


def cell(text: str) -> str:
    """Text that fits a table's cell."""
    return " ".join(text.split()).replace("|", "\\|")


def command_line() -> None:
    lines = [
        "# Command line",
        "",
        "What `--help` prints. `NO_COLOR`, `--no-progress` and a pipe all give plain output.",
        "",
    ]
    write("reference/cli.md", [*lines, *of_command(commands.cli, context_of(commands.cli, "ciphercost"))])


def context_of(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    return click.Context(command, info_name=name, parent=parent, **command.context_settings)


def of_command(command: click.Command, context: click.Context) -> Iterator[str]:
    """A command's section and those of its subcommands: usage, help and options as `--help` prints them."""
    yield from (f"## {context.command_path}", "")
    yield from paragraphs(command.help or "")
    yield from ("```text", " ".join([context.command_path, *command.collect_usage_pieces(context)]), "```", "")
    groups = command.sections(context) if isinstance(command, Sectioned) else {"": command.get_params(context)}
    for title, parameters in groups.items():
        yield from (f"**{title}**", "") if title else ()
        for parameter in parameters:
            if (record := parameter.get_help_record(context)) and record[1]:
                yield from (f"`{record[0]}`", f":   {escaped(record[1])}", "")
    yield from paragraphs(command.epilog) if command.epilog else ()
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            if (below := command.get_command(context, name)) and not below.hidden:
                yield from of_command(below, context_of(below, name, context))


def paragraphs(help_text: str) -> Iterator[str]:
    """Paragraphs of a command's help. Click prints those that begin with \\b line by line, so they become code blocks."""
    for each in inspect.cleandoc(help_text).split("\n\n"):
        kept = each.startswith("\b\n")
        yield from ("```text", each.removeprefix("\b\n"), "```", "") if kept else (escaped(each), "")


def escaped(text: str) -> str:
    """Text in which Markdown finds no markup but code spans."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"([\\*_<>|\[\]#])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def engine_page() -> None:
    lines = ["# Engines", "", "Write an engine before the colon: `ciphercost run postgresql@18:tls`.", ""]
    for name in engines.names():
        engine = engines.get(name)
        have = mechanisms.folded(mechanisms.of(engine))
        lines += [f"## {name}", "", f"{engine.title}. Mechanisms: {', '.join(f'`{each}`' for each in have)}.", ""]
    write("reference/engines.md", lines)


def mechanism_page() -> None:
    lines = ["# Mechanisms", "", "Write a mechanism behind the colon: `ciphercost run postgresql:tls`.", ""]
    shown: set[str] = set()
    for layer, heading in LAYERS.items():
        lines += [f"## {heading}", ""]
        for name in mechanisms.names():
            mechanism = mechanisms.get(name)
            if mechanism.layer != layer or (mechanism.family or name) in shown:
                continue
            shown.add(mechanism.family or name)
            serves = [each for each in engines.names() if mechanism.serves(engines.get(each))]
            lines += [
                f"### {mechanism.family or name}",
                "",
                f"{cell(mechanism.title)}. Engines: {', '.join(f'`{each}`' for each in serves) or 'see the limits'}.",
                "",
                f"Protects {cell(mechanisms.protection(mechanism)) or 'nothing'}.",
                "",
            ]
            if mechanism.witnesses:
                lines += [f"Witnesses: {', '.join(mechanism.witnesses)}.", ""]
            if mechanism.factors:
                lines += ["| `--set` | values (first: default) | |", "|---|---|---|"]
                for factor in mechanism.factors:
                    values = ", ".join(f"`{each}`" for each in factor.values) or "any"
                    lines.append(f"| `{factor.name}` | {cell(values)} | {cell(factor.text)} |")
                lines.append("")
    write("reference/mechanisms.md", lines)


def workload_page() -> None:
    lines = ["# Workloads", "", "`ciphercost run postgresql:tls --workload tpcb`", ""]
    for name in workloads.names():
        workload = workloads.get(name)
        lines += [f"## {name}", "", f"An operation is: {cell(workload.title)}.", "", f"{cell(workload.measures)}.", ""]
        if workload.parameters or workload.choices:
            lines += ["| `--set` | default |", "|---|---|"]
            lines += [f"| `{each}` | {value} |" for each, value in workload.parameters.items()]
            lines += [
                f"| `{each}` | {', '.join(values)} (first: default) |" for each, values in workload.choices.items()
            ]
            lines.append("")
    write("reference/workloads.md", lines)


def document_pages() -> None:
    """Copy the repository's documents. Links between them become links between their pages, others become plain text."""
    for source, page in DOCUMENTS.items():
        text = (ROOT / source).read_text()
        up = "../" * page.count("/")

        def link(match: re.Match[str], source: str = source, up: str = up) -> str:
            words, target, anchor = match[1], match[2], match[3] or ""
            if not target:
                return match[0]
            name = target.removeprefix("./")
            name = str((Path(source).parent / name).as_posix()) if not name.startswith("..") else Path(name).name
            if name in DOCUMENTS:
                return f"[{words}]({up}{DOCUMENTS[name]}{anchor})"
            return words

        write(page, [re.sub(r"\[([^\]]*)\]\(((?!https?:)[^)#]*)(#[^)]*)?\)", link, text)])


def schema_page() -> None:
    lines = [
        "# Result schema",
        "",
        "`result.json` and `ciphercost report RUN --format json` follow this JSON Schema (2020-12).",
        "",
        "```json",
        (ROOT / "docs" / "result.schema.json").read_text(),
        "```",
        "",
        "`machines.json` and `ciphercost report RUN --format json` of a run over machines follow this one:",
        "",
        "```json",
        (ROOT / "docs" / "machines.schema.json").read_text(),
        "```",
    ]
    write("reference/result-schema.md", lines)


def assemble() -> None:
    """Make build/docs anew."""
    shutil.rmtree(PAGES, ignore_errors=True)
    shutil.copytree(ROOT / "docs", PAGES, ignore=shutil.ignore_patterns("state", "lib"))  # of a recipe that runs
    for page in (command_line, engine_page, mechanism_page, workload_page, document_pages, schema_page):
        page()
    (PAGES / "grants.md").unlink()


def main() -> int:
    assemble()
    command = [Path(sys.executable).parent / "zensical", "build", "--clean", "--strict"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
