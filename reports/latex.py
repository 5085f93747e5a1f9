"""The results as LaTeX tables (booktabs): every special character escaped once, the same columns in every row.

Numbers carry their intervals and their marks (`reports.marks`): a broken claim, a failed gate, missing
prompts.
"""

from reports import marks
from reports.labels import Labels
from reports.text import DASH, NOT_AVAILABLE, count, interval, number
from reports.uncached import totals
from sweeps.aggregate import CellResult
from sweeps.claims import Claim
from sweeps.statistics import Estimate

BROKEN, GATE = r"\textsuperscript{$\times$}", r"\textsuperscript{\dag}"
HEADS = ("$n$", "NFE reduction", "Throughput ratio")
CAPTION = "NFE reduction: draft-free over own forwards, $n$ prompts; brackets: 95\\,\\% intervals."

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
    """One table: a row a method and budget; for each task columns of prompts, NFE reductions and throughput ratios."""
    tasks = list(dict.fromkeys(labels.task[result.cell_id] for result in results))
    rows: dict[tuple[str, int, int], dict[str, CellResult]] = {}
    for result in results:
        if not result.cell.is_baseline:
            key = labels.method[result.cell_id], result.cell.drafter.budget, result.cell.seed
            rows.setdefault(key, {})[labels.task[result.cell_id]] = result
    lines = [
        r"\begin{table}",
        rf"\caption{{{escape(setting)}. {CAPTION}{legend(results)}}}",
        rf"\begin{{tabular}}{{lr{'r' * len(HEADS) * len(tasks)}}}",
        r"\toprule",
        line(["", "", *(rf"\multicolumn{{{len(HEADS)}}}{{c}}{{{escape(task)}}}" for task in tasks)]),
        line(["Method", "$D$", *(name for _ in tasks for name in HEADS)]),
        r"\midrule",
    ]
    seeds = len({seed for _, _, seed in rows}) > 1
    for (method, budget, seed), by_task in rows.items():
        cells = [text for task in tasks for text in numbers(by_task.get(task))]
        name = escape(f"{method}, seed {seed}" if seeds else method) + cross(*by_task.values())
        lines.append(line([name, str(budget), *cells]))
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines)


def numbers(result: CellResult | None) -> tuple[str, ...]:
    """Prompts, NFE reduction and throughput ratio of a cell, the last two with their marks and intervals."""
    if result is None:
        return (NOT_AVAILABLE,) * len(HEADS)
    dagger = GATE if marks.gate(result) else ""
    timed = shown(result.throughput.ratio, cross(result) + dagger)
    return marks.partial(result) or str(result.n), shown(result.nfe_reduction, cross(result)), timed


def shown(estimate: Estimate, mark: str) -> str:
    """A number with its mark and interval."""
    if estimate.value is None:
        return NOT_AVAILABLE
    span = interval(estimate).replace(f" {DASH} ", ", ")
    return f"{number(estimate.value)}{mark}" + (rf" {{\scriptsize [{span}]}}" if span else "")


def cross(*results: CellResult) -> str:
    """The cross of cells of which one is broken."""
    return BROKEN if marks.broken(*results) else ""


def legend(results: list[CellResult]) -> str:
    """What the marks mean that a table has."""
    drafting = [result for result in results if not result.cell.is_baseline]
    used = ((BROKEN, marks.broken(*drafting)), (GATE, marks.gate(*drafting)))
    meanings = dict(marks.MEANINGS)
    signs = "".join(f" {sign}: {meanings[found.strip()]}." for sign, found in used if found)
    caches = sorted({result.cell.target.cache for result in results if not result.cell.target.exact_cache})
    return signs + (given(caches, results) if caches else "")


def given(caches: list[str], results: list[CellResult]) -> str:
    """What an approximate cache means for a table: what is claimed under it, and what it was seen to change."""
    promised = all(result.claim == Claim.EXACT_GIVEN_CACHE for result in results)
    equal, n = totals(result for result in results if result.cell.is_baseline)
    claim = ": exact given that cache" if promised else ""
    seen = f" {equal:,} of {count(n, 'draft-free output')} equal decoding without a cache." if n else ""
    return f" Decoded with an approximate cache ({escape(', '.join(caches))}){claim}.{seen}"


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
