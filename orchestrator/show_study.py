"""The headline numbers of an observation study on a console."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sweeps.aggregate import wanted_rows
from sweeps.belongs import read_history, read_jobs
from sweeps.merge import merge_all
from sweeps.order_study import OrderStudy, order_studies
from sweeps.results import load_results
from sweeps.statistics import Estimate
from sweeps.store import RunDir
from sweeps.study import is_study

HEADS = ("target", "task", "T", "k", "prompts", "commits", "token: argmax", "position: confidence", "position: model")
AHEAD = (1, 2, 4, 8)


def studies_in(run: RunDir) -> tuple[OrderStudy, ...]:
    """The studies that a run directory holds, as far as they got."""
    digests = {start.code_digest for start in read_history(run).starts}
    jobs = [job for job in read_jobs(run) if is_study(job.cell)]
    rows = wanted_rows(jobs, merge_all(load_results(run, code_digests=digests).results))
    return tuple(order_studies(jobs, rows).values())


def show_studies(console: Console, studies: Iterable[OrderStudy]) -> None:
    """Print, for a few look-aheads, the shares that were right, each with its interval."""
    table = Table(show_edge=False, pad_edge=False)
    for name in HEADS:
        table.add_column(name, justify="left" if name in HEADS[:2] else "right")
    for study in studies:
        cell = study.cell
        names = escape(cell.target.name), escape(cell.task.name), f"{cell.decode.temperature:g}"
        for shares in study.ahead():
            if shares.look_ahead in AHEAD:
                rights = (shares.argmax, shares.by_confidence, shares.by_model)
                ahead = str(shares.look_ahead), f"{shares.by_model.n:,}", f"{shares.asked:,}"
                table.add_row(*names, *ahead, *map(percent, rights))
        if not study.shares:
            table.add_row(*names, "-", f"0 of {study.n_expected}", "-", "n/a", "n/a", "n/a")
    console.print(table)
    console.print(
        "share right, in %, with its 95 % interval (prompts are its units), measured on draft-free trajectories"
    )


def percent(estimate: Estimate) -> str:
    """A share in per cent with its interval."""
    if estimate.value is None:
        return "n/a"
    if estimate.low is None or estimate.high is None:
        return f"{100 * estimate.value:.1f}"
    return f"{100 * estimate.value:.1f} ({100 * estimate.low:.1f} to {100 * estimate.high:.1f})"
