"""Whether outputs that promise to equal draft-free decoding do: the last word of a run, and its exit code.

Cheaper than a report: records are compared token for token, nothing is estimated. A near-tie, which rounding explains,
is shown in the report with its margin and is no reason to fail; anything else is.
"""

from collections.abc import Iterator

from reports.labels import mark_of
from sweeps.aggregate import wanted_rows
from sweeps.belongs import read_history, read_jobs
from sweeps.claims import claim_of
from sweeps.identity import compare
from sweeps.laws import count_alarms
from sweeps.merge import NO_ROWS, merge_all
from sweeps.results import load_results
from sweeps.store import RunDir


def broken_promises(run: RunDir) -> Iterator[str]:
    """One line for each cell whose output or counts cannot be right."""
    digests = {start.code_digest for start in read_history(run).starts}
    jobs = read_jobs(run)
    rows = wanted_rows(jobs, merge_all(load_results(run, code_digests=digests).results))
    for job in jobs:
        cell = job.cell
        own, draft_free, beside = (
            rows.get(other.cell_id, NO_ROWS) for other in (cell, cell.baseline(), cell.timed_beside())
        )
        target = f"{cell.target.name} without cache" if job.reference else cell.target.name
        name = f"{job.cell_id[:10]} ({cell.drafter.name}{mark_of(cell)} on {target}, {cell.task.name})"
        alarms = (*own.alarms, *count_alarms(cell, own, draft_free, beside))
        for alarm in alarms[:1]:
            more = f" (and {len(alarms) - 1} more alarms)" if len(alarms) > 1 else ""
            yield f"cell {name}: {alarm.kind}: {alarm.message}{more}"
        identity = compare(
            own.generations,
            draft_free.generations,
            dtype=cell.target.dtype,
            temperature=cell.decode.temperature,
            promised=claim_of(cell).promises_identity,
        )
        if identity.bugs:
            checked = f"{identity.bugs} of {identity.n_checked} prompts"
            yield f"cell {name}: {checked} differ from draft-free decoding by more than rounding explains"
