"""The MLflow mirror beside a training run: brought up to date at every evaluation, and never in its way.

The first thing that goes wrong is said in one line, and then only the end tries again: training goes on as if nothing
were. At the end it says what the whole command wrote, not only its last call.
"""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.finish import say_mirror, tell
from orchestrator.tracking_uri import location
from sweeps.store import RunDir

if TYPE_CHECKING:
    from workers.training.fitting import FitProgress


class TrainingMirror:
    """Follows a training run in `folder`. Raises ValueError at once for a tracking URI that cannot work."""

    def __init__(self, folder: Path, tracking_uri: str = "") -> None:
        location(folder, tracking_uri)
        self._run, self._uri = RunDir(folder), tracking_uri
        self._broken = False
        self._written = 0

    def follow(self, progress: "FitProgress") -> None:
        """After a step: when it was judged, its numbers go to the mirror."""
        if progress.evaluation is None or self._broken:
            return
        from orchestrator.tracking import sync

        outcome = sync(self._run.root, self._uri)
        if outcome.failed:
            self._broken = True
            tell(outcome.message)
        self._written += outcome.written

    def finish(self) -> int:
        """After the end: whatever is still missing; an exit code."""
        from orchestrator.tracking import evaluations_message, sync

        outcome = sync(self._run.root, self._uri)
        if self._written and not outcome.failed:
            written = self._written + outcome.written
            before = max(0, outcome.unchanged - self._written)
            outcome = replace(outcome, message=evaluations_message(written, before))
        return say_mirror(outcome)
