r"""latex: every figure of a result as a table for a paper, with booktabs: `\usepackage{booktabs}`, and longtable beyond a page.

Every text of the record is escaped. Letters outside of what pdfLaTeX knows stand as they are, for LuaLaTeX and XeLaTeX.
"""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost import words
from ciphercost.model import Result

A_PAGE = 40
"""Rows above which the table may break across pages."""
HEAD = ("", "figure", "cost", r"95\,\% interval", r"plain $\to$ encrypted")
COLUMNS = "llrll"

ESCAPES = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "_": r"\_",
    "%": r"\%",
    "&": r"\&",
    "#": r"\#",
    "$": r"\$",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "→": r"$\to$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "µ": r"\textmu{}",
    "…": r"\dots{}",
    "[": "{[}",  # behind \\ it would be an argument
    "]": "{]}",
    "-": "{-}",  # two of them would be a dash
}


def render(result: Result) -> str:
    """A `table` of one `tabular`, or a `longtable`; the cell's name stands in its first row."""
    rows = list(_rows(result))
    head = f"{' & '.join(HEAD)} \\\\"
    caption = rf"\caption{{{escaped(words.answer(result))}}}"
    used = rf"% \usepackage{{booktabs{',longtable' if len(rows) > A_PAGE else ''}}}; run {result.id}"
    if len(rows) > A_PAGE:
        return "\n".join(
            [
                comment(used),
                rf"\begin{{longtable}}{{{COLUMNS}}}",
                rf"{caption} \\",
                r"\toprule",
                head,
                r"\midrule",
                r"\endfirsthead",
                r"\toprule",
                head,
                r"\midrule",
                r"\endhead",
                *rows,
                r"\bottomrule",
                r"\end{longtable}",
            ]
        )
    return "\n".join(
        [
            comment(used),
            r"\begin{table}",
            r"\centering",
            caption,
            rf"\begin{{tabular}}{{{COLUMNS}}}",
            r"\toprule",
            head,
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
        ]
    )


def _rows(result: Result) -> Iterator[str]:
    for number, (name, cell) in enumerate(zip(words.names(result.cells), result.cells, strict=True)):
        if number:
            yield r"\midrule"
        figures = list(words.rows(cell))
        if not figures:
            status = cell.status.upper().replace("-", " ")
            yield rf"{escaped(name)} & \multicolumn{{4}}{{l}}{{{escaped(f'{status}: {cell.reason}')}}} \\"
        for row, each in enumerate(figures):
            columns = (name if not row else "", each.label, each.cost, each.interval, each.levels)
            yield f"{' & '.join(map(escaped, columns))} \\\\"


def escaped(text: str) -> str:
    """One line that LaTeX sets as it is. Pure."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return "".join(ESCAPES.get(letter, letter) for letter in line)


def comment(text: str) -> str:
    return " ".join(text.split())
