"""Reads ApacheBench's output. ab prints the TLS version for an https address, so a whole output without it was unencrypted.
Pure.
"""

from __future__ import annotations

import re

from ciphercost.importers.formats import NUMBER, Bad, Lines, digits, line_of, number
from ciphercost.importers.formats._http import contradictions
from ciphercost.model.imported import Reading
from ciphercost.model.result import Warning_

MARK = re.compile(
    r"^(?:This is ApacheBench, Version |Concurrency Level: +\d|Requests per second: +[\d.]+ \[#/sec\])", re.MULTILINE
)
BEGIN = re.compile(r"This is ApacheBench, Version (\S+).*")
FIELD = re.compile(r"([A-Z][A-Za-z0-9/ -]+?):\s+(.*?)\s*")
NUMBERS = {
    "Concurrency Level": "clients",
    "Complete requests": "done",
    "Failed requests": "failed",
    "Write errors": "written",
    "Non-2xx responses": "status",
    "Keep-Alive requests": "kept",
}
TIME = re.compile(rf"{NUMBER} seconds")
RATE = re.compile(rf"{NUMBER} \[#/sec\] \(mean\)")
MEAN = re.compile(rf"{NUMBER} \[ms\] \(mean\)")
FAILED = re.compile(r"\(Connect: (\d+), Receive: (\d+), Length: (\d+), Exceptions: (\d+)\)")
QUANTILE = re.compile(r"(50|99)%\s+(\d+)\s*")
END = re.compile(r"100%\s+\d+ \(longest request\)\s*")
SERVERS = {"nginx": "nginx", "apache": "apache", "caddy": "caddy"}


def recognise(head: str) -> int:
    return line_of(MARK, head)


def read(lines: Lines) -> list[Reading]:
    """Return a reading per run. A run ends with its `100%`, with the next run's first line, or with the file."""
    readings: list[Reading] = []
    run = Run()
    for line in lines:
        if match := BEGIN.fullmatch(line):
            if run.told:
                readings.append(run.reading(lines.number))
            run = Run(match[1], lines.number)
        elif lines.cut and not RATE.search(line):
            break  # a last line without its end may lack digits
        elif run.take(line, lines.number):
            readings.append(run.reading(lines.number, whole=True))
            run = Run()
    if run.told or (run.began and not readings):
        readings.append(run.reading(lines.number))
    return readings


class Run:
    """One run, while it is read."""

    def __init__(self, version: str = "", began: int = 0) -> None:
        self.version, self.began = version, began
        self.told: dict[str, float] = {}
        self.texts: dict[str, str] = {}
        self.digits = 0

    def take(self, line: str, number_: int) -> bool:
        """Process a line. Return whether it is the last one of a run."""
        text = line.strip()
        if match := QUANTILE.fullmatch(text):
            # Whole milliseconds: a 0 is no time.
            self.told[f"latency_p{match[1]}"] = number(match[2])
        elif match := FAILED.fullmatch(text):
            self.told["length"] = number(match[3])
        elif match := FIELD.fullmatch(text):
            self.field(match[1], match[2])
        if self.told:
            self.began = self.began or number_
        return bool(END.fullmatch(text))

    def field(self, name: str, value: str) -> None:
        """Process `Name:   value`."""
        if name in NUMBERS and value.isdigit():
            self.told[NUMBERS[name]] = number(value)
        elif name == "Time taken for tests" and (match := TIME.fullmatch(value)):
            self.told["seconds"] = number(match[1])
        elif name == "Requests per second" and (match := RATE.fullmatch(value)):
            self.told["rate"], self.digits = number(match[1]), digits(match[1])
        elif name == "Time per request" and (match := MEAN.fullmatch(value)):
            self.told.setdefault("latency_mean", number(match[1]))
        elif name in ("Server Software", "Document Path", "SSL/TLS Protocol", "Server Port"):
            self.texts[name] = value

    def reading(self, end: int, *, whole: bool = False) -> Reading:
        """Return the run. Raises Bad if its rate or number of requests is missing, or most answers were errors."""
        told = self.told
        for name, label in (("done", "Complete requests"), ("rate", "Requests per second")):
            if name not in told:
                raise Bad(
                    end,
                    f"the run that begins on line {self.began or 1} has no line '{label}'; import ab's whole output",
                )
        done, status = told["done"], told.get("status", 0.0)
        # A page whose length varies counts as failed in ab, though its answers are complete.
        lost = max(0.0, told.get("failed", 0.0) - told.get("length", 0.0)) + told.get("written", 0.0)
        if not done or not told["rate"]:
            raise Bad(self.began, "no request was answered, so there is nothing to compare")
        if status > done / 2:
            text = f"{status:,.0f} of {done:,.0f} answers were errors (not 2xx)"
            raise Bad(self.began, f"{text}, so this is the speed of error pages; fix the address and run it again")
        return Reading(
            tool="ab",
            version=self.version,
            line=self.began,
            engine="web",
            server=SERVERS.get(re.split(r"[/ ]", self.texts.get("Server Software", ""))[0].lower(), ""),
            workload=self.workload(),
            clients=int(told.get("clients", 0)),
            scheme="https" if "SSL/TLS Protocol" in self.texts else "http" if "Server Port" in self.texts else "",
            encryption=self.encryption(),
            operations=int(done),
            errors=int(lost + status),
            seconds=told.get("seconds", done / told["rate"]),
            digits=self.digits,
            figures={"throughput": told["rate"]}
            | {name: value for name, value in told.items() if name.startswith("latency_") and value > 0},
            notes=self.notes(int(lost + status), whole=whole),
        )

    def workload(self) -> str:
        path = self.texts.get("Document Path", "").partition("?")
        return ("GET " + path[0] + ("?…" if path[1] else "") if path[0] else "requests") + (
            ", kept alive" if "kept" in self.told else ""
        )

    def encryption(self) -> dict[str, str]:
        """`TLSv1.3,TLS_AES_256_GCM_SHA384,2048,256` is protocol, cipher, and sizes of keys."""
        words = self.texts.get("SSL/TLS Protocol", "").split(",")
        return dict(zip(("protocol", "cipher"), words[:2], strict=False)) if words[0] else {}

    def notes(self, wrong: int, *, whole: bool) -> list[Warning_]:
        told = self.told
        notes = contradictions(told["done"], told.get("seconds", 0.0), told["rate"])
        if wrong:
            notes.append(
                Warning_("errors", f"{wrong:,} of {told['done']:,.0f} requests failed or were not answered with 2xx")
            )
        if told.get("length"):
            text = f"{told['length']:,.0f} answers differ in length from the first, which ab calls failed; they count as answers"
            notes.append(Warning_("lengths-differ", text))
        if "kept" not in told:
            text = "each request opened a connection (ab without -k), so the figures include its handshake"
            notes.append(Warning_("connect-each", text))
        if not whole:
            lacks = "" if "latency_mean" in told else ", so it has no latency"
            notes.append(
                Warning_("cut-off", f"the run that begins on line {self.began} is cut off before its '100%'{lacks}")
            )
        return notes
