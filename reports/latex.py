"""The results as LaTeX tables (booktabs): every special character escaped once, the same columns in every row."""

from reports.labels import Labels
from reports.text import NOT_AVAILABLE, number
from sweeps.aggregate import CellResult

ESCAPED = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "#": r"\#",
    "$": r"\$",
    "%": r"\%",
    "&": r"\&",
    "_": r"\_",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "\n": " ",
}


def escape(text: str) -> str:
    """`text` for the inside of a table cell. Braces keep a leading bracket from being read as an option of `\\\\`."""
    escaped = "".join(ESCAPED.get(character, character) for character in text)
    return f"{{{escaped}}}" if escaped.startswith(("[", "*")) else escaped


def table(setting: str, results: list[CellResult], labels: Labels) -> str:
    """One table: a row a method and budget; for each task a column of NFE reductions and one of throughput ratios."""
    tasks = list(dict.fromkeys(labels.task[result.cell_id] for result in results))
    rows: dict[tuple[str, int, int], dict[str, CellResult]] = {}
    for result in results:
        if not result.cell.is_baseline:
            key = labels.method[result.cell_id], result.cell.drafter.budget, result.cell.seed
            rows.setdefault(key, {})[labels.task[result.cell_id]] = result
    lines = [
        r"\begin{table}",
        rf"\caption{{{escape(setting)}. NFE: draft-free over own forwards; Thr.: throughput ratio.}}",
        rf"\begin{{tabular}}{{lr{'rr' * len(tasks)}}}",
        r"\toprule",
        line(["", "", *(rf"\multicolumn{{2}}{{c}}{{{escape(task)}}}" for task in tasks)]),
        line(["Method", "$D$", *(name for _ in tasks for name in ("NFE", "Thr."))]),
        r"\midrule",
    ]
    seeds = len({seed for _, _, seed in rows}) > 1
    for (method, budget, seed), by_task in rows.items():
        cells = [text for task in tasks for text in both(by_task.get(task))]
        lines.append(line([escape(f"{method}, seed {seed}" if seeds else method), str(budget), *cells]))
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines)


def both(result: CellResult | None) -> tuple[str, str]:
    """NFE reduction and throughput ratio of a cell."""
    if result is None:
        return NOT_AVAILABLE, NOT_AVAILABLE
    return number(result.nfe_reduction.value), number(result.throughput.ratio.value)


def line(cells: list[str]) -> str:
    """One row."""
    return " & ".join(cells) + r" \\"


def note(text: str) -> str:
    """The comment at the top: what the tables need."""
    engine = (
        ""
        if text.isascii()
        else "\n% Some names are not Latin: compile with XeLaTeX or LuaLaTeX and a font that has them."
    )
    return f"% Needs \\usepackage{{booktabs}}.{engine}"
