"""What a driver finds in a run directory when it starts: stored results, and things that are none.

Only a validated file counts as done. Everything else under `results/` is moved to the quarantine, never deleted, and
its prompts run again.
"""

import os

from orchestrator.events import EventLog, RunEvent
from sweeps.belongs import read_history
from sweeps.results import Loaded, Problem, load_results
from sweeps.store import RunDir, remove_temporaries


def open_results(run: RunDir, log: EventLog) -> Loaded:
    """The stored results, once a killed writer's leftovers are removed and foreign files moved aside (with a line)."""
    remove_temporaries(run)
    digests = {start.code_digest for start in read_history(run).starts}
    loaded = load_results(run, code_digests=digests)
    for problem in loaded.problems:
        aside = quarantine(run, problem)
        where = problem.path.relative_to(run.root)
        log.write(RunEvent(kind="quarantined", message=f"{where}: {problem.reason}; moved to {aside}, runs again"))
    return loaded


def quarantine(run: RunDir, problem: Problem) -> str:
    """Move a path out of `results/`; returns where it went, relative to the run."""
    run.quarantine.mkdir(exist_ok=True)
    number = sum(1 for _ in run.quarantine.iterdir())
    aside = run.quarantine / f"{number:04d}-{problem.path.parent.name}-{problem.path.name}"[:200]
    os.replace(problem.path, aside)
    return str(aside.relative_to(run.root))
