"""How a run ended, and the row counts behind it."""

from collections.abc import Iterable
from dataclasses import dataclass

from orchestrator.stop import EXIT_INTERRUPTED
from sweeps.results import Loaded
from sweeps.todo import KINDS, Job


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended, in rows (a prompt decoded or timed).

    `done` rows were stored now and `skipped` were there before; `failed` is every wanted row whose last word is a
    failure, now or before; `left` are neither. `message` says why a run ended early. `exit_code` is 0 when nothing is
    failed or left, 130 after an interrupt, else 1.
    """

    done: int
    failed: int
    skipped: int
    left: int
    interrupted: bool = False
    message: str = ""

    @property
    def exit_code(self) -> int:
        """What the process should return."""
        if self.interrupted:
            return EXIT_INTERRUPTED
        return 1 if self.failed or self.left or self.message else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Wanted rows by state."""

    good: int = 0
    failed: int = 0
    open: int = 0


def tally(jobs: Iterable[Job], loaded: Loaded) -> Tally:
    """Count the wanted rows of jobs by what is stored of them."""
    good = failed = missing = 0
    for job in jobs:
        rows = loaded.rows(job.cell_id)
        for kind in KINDS:
            for index in range(job.wanted(kind)):
                if rows.has(kind, index, job.repeats):
                    good += 1
                elif (kind, index) in rows.failed:
                    failed += 1
                else:
                    missing += 1
    return Tally(good=good, failed=failed, open=missing)
