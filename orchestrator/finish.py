"""What follows a run: the check of its promises, its report, and the exit code.

Results are on disk before any of it, so nothing here can lose one: what goes wrong is a line on stderr and shows in the
exit code.
"""

import sys

import click

from orchestrator.outcome import RunOutcome
from orchestrator.promises import broken_promises
from sweeps.store import RunDir

SHOWN = 10


def finish(run: RunDir, outcome: RunOutcome) -> int:
    """Say how a run ended and return the exit code of the command."""
    code = outcome.exit_code
    broken = list(broken_promises(run))
    for line in broken[:SHOWN]:
        print(f"spot: {line}", file=sys.stderr)
    if len(broken) > SHOWN:
        print(f"spot: and {len(broken) - SHOWN} more cells like that", file=sys.stderr)
    if outcome.failed:
        print(
            f"spot: {outcome.failed} prompts failed (the report says why; --retry-failed asks again)", file=sys.stderr
        )
    if outcome.interrupted:  # nobody who pressed Ctrl-C waits for a report
        print(f"spot: interrupted, {outcome.left} prompts left: the same command goes on", file=sys.stderr)
        return code
    reported = _report(run)
    return code or int(bool(broken)) or reported


def _report(run: RunDir) -> int:
    """Write the report and print its path; 1 when that fails."""
    from reports.render import render

    try:
        click.echo(f"report: {render(run.root)}")
    except (OSError, ValueError) as error:
        print(f"spot: no report: {error} (spot report {run.root} tries again)", file=sys.stderr)
        return 1
    return 0
