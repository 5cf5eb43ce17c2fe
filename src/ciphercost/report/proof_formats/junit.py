"""JUnit XML (junit-10.xsd): one test case for each target. One that is not proven is a failure, one that can't be examined an error."""

from __future__ import annotations

from xml.etree import ElementTree

from ciphercost.report.formats.junit import SUITE, counted, text_of
from ciphercost.report.proof_formats import Rows
from ciphercost.report.words.figure_text import printable

ERRORS = ("unreachable", "refused")


def render(rows: Rows) -> str:
    cases = []
    for row in rows:
        engine = row.target.partition("://")[0].replace(":", "-")
        case = ElementTree.Element("testcase", {"classname": f"{SUITE}.prove.{engine}", "name": printable(row.target)})
        if not row.ok:
            message = {"type": row.verdict, "message": printable(row.reason)}
            tag = "error" if row.verdict in ERRORS else "failure"
            ElementTree.SubElement(case, tag, message).text = printable(row.reason)
        ElementTree.SubElement(case, "system-out").text = printable(row.details)
        cases.append(case)
    counts = counted(cases)
    of_root = {name: count for name, count in counts.items() if name != "skipped"}
    root = ElementTree.Element("testsuites", {"name": SUITE} | of_root)
    suite = ElementTree.SubElement(root, "testsuite", {"name": f"{SUITE} prove"} | counts)
    suite.extend(cases)
    return text_of(root)
