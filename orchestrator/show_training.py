"""Progress of training, for people: a plain line on stderr every few seconds, and at once when something is wrong."""

import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.collect import CollectProgress
    from workers.training.order import OrderProgress
    from workers.training.target import Progress

LINE_SECONDS = 5.0


class TrainingScreen:
    """Says how far collecting or training is."""

    def __init__(self) -> None:
        self._spoken = float("-inf")

    def collect(self, progress: "CollectProgress") -> None:
        """Trajectories so far."""
        have = progress.kept + progress.done
        text = f"trajectories {have}/{progress.total} ({progress.kept} from before), failed {progress.failed}"
        self._say(
            f"{text}: {progress.note}" if progress.note else text, at_once=bool(progress.note) or have == progress.total
        )

    def order(self, progress: "OrderProgress") -> None:
        """A step of an order model."""
        text = f"step {progress.step}/{progress.steps}, loss {progress.loss:.3f}, {progress.seconds:.0f} s"
        held_out = progress.held_out_loss is not None and progress.held_out_accuracy is not None
        if held_out:
            text += f"; held out: loss {progress.held_out_loss:.3f}, accuracy {progress.held_out_accuracy:.1%}"
        self._say(text, at_once=held_out)

    def target(self, progress: "Progress") -> None:
        """A step of a target."""
        done = progress.step == progress.steps
        text = f"{progress.phase} step {progress.step}/{progress.steps}, loss {progress.loss:.3f}"
        text += f", {progress.seconds:.0f} s"
        self._say(text, at_once=done)

    def _say(self, text: str, *, at_once: bool) -> None:
        now = time.monotonic()
        if at_once or now - self._spoken >= LINE_SECONDS:
            self._spoken = now
            print(text, file=sys.stderr, flush=True)
