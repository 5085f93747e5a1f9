"""From a run directory to one page: `report.html`, self-contained, offline, without script; complete rows beside it.

The same files give the same bytes: nothing of the time or place of rendering is in the page. Both templates escape
everything; the only text that goes in as markup is the SVG that `reports.charts` made.
"""

from base64 import b64encode
from importlib import import_module
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from reports import charts, marks
from reports.columns import CELL_COLUMNS, PROMPT_COLUMNS, STUDY_COLUMNS, documentation
from reports.export import encoded
from reports.frames import Frames, load
from reports.model import Chart, Group, Head, Lines, SectionInfo, Table, Value
from reports.sections import SECTIONS, SUMMARY
from reports.text import DASH, number, visible
from sweeps.store import RunDir, atomic_write

STUDY_FILE = "order_study.csv"
LONGEST_REASON = 200


def render(run_dir: Path) -> Path:
    """Write the report of a run and return its path. Raises ValueError when `run_dir` is no run directory.

    A section that fails is a defect, but must not cost the others: a box takes its place, and once everything is
    written `SectionsFailedError` holds what was raised.
    """
    frames = load(run_dir)
    run = RunDir(run_dir)
    data = run.report_data
    atomic_write(data / "cells.csv", encoded(frames.cells, "csv"))
    atomic_write(data / "prompts.csv", encoded(frames.prompts, "csv"))
    columns = f"# cells.csv\n\n{documentation(CELL_COLUMNS)}\n\n# prompts.csv\n\n{documentation(PROMPT_COLUMNS)}\n"
    if frames.studies:
        atomic_write(data / STUDY_FILE, encoded(frames.study_rows, "csv"))
        columns += f"\n# {STUDY_FILE}\n\n{documentation(STUDY_COLUMNS)}\n"
    else:
        (data / STUDY_FILE).unlink(missing_ok=True)  # of a sweep that was studied before it was edited
    atomic_write(data / "columns.md", columns.encode())
    sections, failures = attempted(frames)
    atomic_write(run.report, page_of(frames, sections).encode())
    if failures:
        raise SectionsFailedError(f"{run.report} is written, but some of its sections failed", failures)
    return run.report


class SectionsFailedError(ExceptionGroup[Exception]):
    """What the sections of a page raised. The page is there, with a box in the place of each of them."""


def page(frames: Frames) -> str:
    """The page as text; raises what a section raises."""
    return page_of(frames, infos(frames))


def page_of(frames: Frames, sections: list[SectionInfo]) -> str:
    """The page that shows these sections."""
    title = visible(frames.spec.title or frames.spec.name, 160)
    return environment().get_template("report.html.j2").render(title=title, name=frames.spec.name, sections=sections)


def infos(frames: Frames) -> list[SectionInfo]:
    """The data of every section that has something to say, in the order of the table; raises what a section raises."""
    sections, failures = attempted(frames)
    if failures:
        raise failures[0]
    return sections


def attempted(frames: Frames) -> tuple[list[SectionInfo], list[Exception]]:
    """The data of every section that has something to say, a box where one failed, and what the failed ones raised."""
    made: dict[str, SectionInfo] = {}
    failures: list[Exception] = []
    for reference in sorted(SECTIONS, key=SUMMARY.__eq__):  # the summary last: it repeats what the others found
        others = (tuple(made.values()),) if reference == SUMMARY else ()
        try:
            info = function(reference)(frames, *others)
        except Exception as error:  # a defect: said on the page and raised when the page is written
            info = failed(reference, error)
            failures.append(error)
        if info is not None:
            made[reference] = info
    return [made[reference] for reference in SECTIONS if reference in made], failures


def failed(reference: str, error: Exception) -> SectionInfo:
    """The box in the place of a section that failed."""
    name = reference.partition(":")[0].rpartition(".")[2]
    reason = visible(f"{type(error).__name__}: {error}", LONGEST_REASON)
    text = f"This section failed ({reason}): a defect of spot. The other sections and all files of the run are whole."
    alarm = Lines(lines=(("alarm", text),))
    title = f"{name.replace('_', ' ').capitalize()}: failed"
    return SectionInfo(key=f"failed-{name}", title=title, lead="", groups=(Group(title="", parts=(alarm,)),))


def function(reference: str) -> Any:
    """The function behind an entry of the table."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name)


def environment() -> Environment:
    """The template environment: everything escaped, a misspelt name is an error."""
    made = Environment(
        loader=PackageLoader("reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["svg"] = lambda chart: Markup(charts.svg(chart))  # the one text that is markup
    made.filters["numbers"] = numbers
    made.filters["marks"] = marks.notes
    made.filters["data_uri"] = data_uri
    return made


def numbers(chart: Chart) -> Table:
    """The numbers of a chart as a table."""
    heads = [Head(name=chart.facet, number=False), Head(name=chart.of, number=False)]
    placed = chart.shape not in charts.ROWS
    heads += [Head(name=chart.x)] if placed else []
    heads += [Head(name=chart.y), Head(name="95 % interval")]
    heads += [Head(name=chart.least)] if chart.least else []
    heads += [Head(name=chart.text, number=False)] if chart.text else []
    rows = []
    for point in chart.points:
        low, high = number(point.low, chart.digits), number(point.high, chart.digits)
        span = DASH if point.low is None or point.high is None else f"{low} {DASH} {high}"
        place = [chart.at(point)] if placed else []
        texts = [point.facet, point.series, *place, number(point.y, chart.digits) + point.mark, span]
        texts += [DASH if point.least is None else number(point.least, chart.digits)] if chart.least else []
        texts += [point.text] if chart.text else []
        rows.append(tuple(Value(text) for text in texts))
    return Table(caption=f"Numbers: {chart.title}", heads=tuple(heads), groups=(("", tuple(rows)),))


def data_uri(text: str) -> str:
    """`text` as a link that a browser saves without asking any server."""
    return f"data:text/plain;charset=utf-8;base64,{b64encode(text.encode()).decode()}"
