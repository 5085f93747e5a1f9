"""The results to take away: LaTeX tables, and where the complete data lies."""

from reports import latex
from reports.frames import Frames
from reports.labels import labels_of
from reports.model import Facts, Group, Listing, Part, SectionInfo
from reports.text import count

MOST_TABLES = 12


def info(frames: Frames) -> SectionInfo:
    """The LaTeX source as a listing, and the files beside the page."""
    labels = labels_of(frames.results)
    settings = [
        (setting, results)
        for setting, results in labels.by_setting(frames.results)
        if any(not result.cell.is_baseline for result in results)
    ]
    tables = [latex.table(setting, results, labels) for setting, results in settings[:MOST_TABLES]]
    body = "\n\n".join(tables)
    files = [
        ("report-data/cells.csv", f"{count(len(frames.cells), 'row')}, one a cell"),
        ("report-data/prompts.csv", f"{count(len(frames.prompts), 'row')}, one a prompt, with full texts"),
    ]
    if frames.studies:
        rows = f"{count(len(frames.study_rows), 'row')}, one a look-ahead and commit index of the order study"
        files.append(("report-data/order_study.csv", rows))
    files.append(("report-data/columns.md", "what each column means"))
    parts: list[Part] = [Facts(rows=tuple(files))]
    if tables:
        parts.append(Listing(title="LaTeX tables", text=f"{latex.note(body)}\n{body}", filename="results.tex"))
    more = len(settings) - MOST_TABLES
    return SectionInfo(
        key="downloads",
        title="Take away",
        lead="The files lie beside this page; `spot export` writes the same rows as csv, json or parquet.",
        groups=(Group(title="", parts=tuple(parts)),),
        cuts=(f"LaTeX tables of {count(more, 'more setting')}",) if more > 0 else (),
    )
