r"""Every figure of a result as a LaTeX table with booktabs (`\usepackage{booktabs}`), or longtable if it is longer than a page.

Every text of the record is escaped. A letter that not every LaTeX encoding has is printed as its number, U+4E2D, so that no text can stop
the table from compiling.
"""

from __future__ import annotations

from collections.abc import Iterator

from ciphercost.model.result import Result
from ciphercost.report import disturbed
from ciphercost.report.words import cell_text, figure_text, pair_text

A_PAGE = 40
"""Rows above which the table may break across pages."""
HEAD = ("", "figure", "cost", r"95\,\% interval")
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
    '"': r"\textquotedblright{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "→": r"$\to$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "·": r"$\cdot$",
    "µ": r"\textmu{}",
    "…": r"\dots{}",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "÷": r"$\div$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "[": "{[}",  # behind \\ it would be an argument
    "]": "{]}",
    "-": "{-}",  # two of them would be a dash
}


LETTERS = frozenset("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ")
"""Letters beyond ASCII that LaTeX's oldest encoding has."""


def render(result: Result) -> str:
    """A `table` with one `tabular`, or a `longtable`. A cell's first row has its name."""
    rows = list(_rows(result))
    head = f"{' & '.join((*HEAD, escaped(pair_text.arrow(pair_text.of(result.cells)))))} \\\\"
    caption = rf"\caption{{{escaped(disturbed.answer(result))}}}"
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
            r"\setlength{\belowcaptionskip}{6pt}",
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
    for number, (name, cell) in enumerate(zip(cell_text.names(result.cells), result.cells, strict=True)):
        if number:
            yield r"\midrule"
        figures = list(figure_text.rows(cell))
        if not figures:
            why = escaped(f"{cell_text.standing(cell)}: {cell.reason}")
            yield rf"{escaped(name)} & \multicolumn{{4}}{{p{{0.5\linewidth}}}}{{{why}}} \\"
        named = name + (f" ({cell_text.standing(cell)})" if cell_text.standing(cell) else "")
        for row, figure in enumerate(figures):
            columns = (named if not row else "", figure.label, figure.cost, figure.interval, figure.levels)
            yield f"{' & '.join(map(escaped, columns))} \\\\"


def escaped(text: str) -> str:
    """One line, escaped for LaTeX."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return "".join(ESCAPES.get(letter) or _known(letter) for letter in line)


def _known(letter: str) -> str:
    return letter if letter.isascii() or letter in LETTERS else f"U+{ord(letter):04X}"


def comment(text: str) -> str:
    return " ".join(text.split())
