"""What follows a run: the check of its promises, its report, its mirror, and the exit code.

Results are on disk before any of it, so nothing here can lose one: what goes wrong is a line on stderr and shows in the
exit code. Report and mirror are skipped only when they were made from exactly what is on disk (`orchestrator.fresh`).
"""

import sys
import traceback
from typing import TYPE_CHECKING

import click

from orchestrator.fresh import is_fresh, mirror_digest, note, report_digest
from orchestrator.outcome import RunOutcome
from orchestrator.promises import broken_promises
from sweeps.store import RunDir

if TYPE_CHECKING:
    from orchestrator.tracking import MirrorOutcome

SHOWN = 10
WRONG, MIRROR_ONLY, DEFECT = 1, 3, 70


def finish(run: RunDir, outcome: RunOutcome, *, tracking_uri: str = "") -> int:
    """Say how a run ended and return the exit code of the command."""
    broken = list(broken_promises(run))
    for line in broken[:SHOWN]:
        tell(line)
    if len(broken) > SHOWN:
        tell(f"and {len(broken) - SHOWN} more cells like that")
    if outcome.failed:
        rows = f"{outcome.failed} of the prompts asked for failed"
        tell(f"{rows} (the report says why; --retry-failed asks again)")
    if outcome.interrupted:  # nobody who pressed Ctrl-C waits for a report
        tell(f"interrupted with {outcome.left} prompts left: the same command goes on")
        return outcome.exit_code
    code = outcome.exit_code or (WRONG if broken else 0)
    nothing_missing = not (outcome.done or outcome.failed or outcome.left)
    behind = bring_up_to_date(run, nothing_missing=nothing_missing, tracking_uri=tracking_uri)
    return code or behind


def bring_up_to_date(run: RunDir, *, nothing_missing: bool, tracking_uri: str = "") -> int:
    """Write the report and the mirror where they are stale, and say what was done; an exit code."""
    reported = mirrored = 0
    digest = report_digest(run)
    report_fresh = is_fresh(run, "report", digest) and run.report.is_file() and run.report_data.is_dir()
    if not report_fresh:
        reported = write_report(run)
        if not reported:
            note(run, "report", digest)
    mirror_fresh = is_fresh(run, "mirror", mirror_digest(run, digest, tracking_uri))
    if report_fresh:
        whole = mirror_fresh and nothing_missing
        click.echo(f"nothing was missing; report: {run.report}" if whole else f"report: {run.report} (up to date)")
    if not mirror_fresh:
        mirrored = mirror(run, tracking_uri)
        if not mirrored:
            note(run, "mirror", mirror_digest(run, digest, tracking_uri))
    return reported or mirrored


def write_report(run: RunDir) -> int:
    """Write the report and print its path; an exit code."""
    from reports.render import SectionsFailedError, render

    try:
        click.echo(f"report: {render(run.root)}")
    except (OSError, ValueError) as error:
        tell(f"no report: {error} (spot report {run.root} tries again)")
        return WRONG
    except SectionsFailedError as error:  # the mirror is made all the same
        traceback.print_exception(error)
        tell(f"{error.message}: this is a defect of spot, not of your input")
        return DEFECT
    return 0


def mirror(run: RunDir, tracking_uri: str = "") -> int:
    """Bring the MLflow mirror up to date and say how that went; an exit code."""
    from orchestrator.tracking import sync

    return say_mirror(sync(run.root, tracking_uri))


def say_mirror(outcome: "MirrorOutcome") -> int:
    """Say how a mirroring went; an exit code."""
    for line in outcome.notes:
        tell(line)
    if outcome.failed:
        tell(outcome.message)
        return MIRROR_ONLY
    click.echo(f"mirror: {outcome.uri} ({outcome.message})")
    return 0


def tell(line: str) -> None:
    """One line on stderr."""
    print(f"spot: {line}", file=sys.stderr)
