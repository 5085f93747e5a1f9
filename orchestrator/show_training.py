"""Progress and outcome of training, for people: a plain line on stderr every few seconds, at once when something is
wrong; then how often the model is right beside the stale confidence.
"""

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from orchestrator.words import duration

if TYPE_CHECKING:
    from rich.table import Table

    from orchestrator.collect import CollectProgress
    from workers.training.fitting import FitProgress
    from workers.training.order_accuracy import JudgingProgress
    from workers.training.order_card import OrderCard, Share
    from workers.training.target import Progress

LINE_SECONDS = 5.0
SHOWN_DEPTHS = (1, 2, 3, 4, 6, 10)


class TrainingScreen:
    """Says how far collecting or training is, and how long it will take at the pace since this process began."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._spoken = float("-inf")
        self._first: dict[str, tuple[float, int]] = {}

    def collect(self, progress: "CollectProgress") -> None:
        """Trajectories so far."""
        have = progress.kept + progress.done
        text = f"trajectories {have}/{progress.total} ({progress.kept} from before), failed {progress.failed}"
        text += self._left("collect", have + progress.failed, progress.total)
        at_once = bool(progress.note) or have == progress.total
        self._say(f"{text}: {progress.note}" if progress.note else text, at_once=at_once)

    def model(self, progress: "FitProgress") -> None:
        """A step of an order model or a set model."""
        text = f"step {progress.step}/{progress.steps}, loss {progress.loss:.3f}, {progress.seconds:.0f} s"
        text += self._left("model", progress.step, progress.steps)
        if progress.evaluation:
            for role, loss in progress.evaluation.losses.items():
                if loss is not None:
                    name = "held out" if role == "trained on" else role
                    shares = " ".join(percent(share) for share in progress.evaluation.accuracy[role][:4])
                    text += f"; {name}, on a sample: loss {loss:.3f}, right at depths 1 to 4 {shares} %"
        self._say(text, at_once=progress.evaluation is not None)

    def judging(self, progress: "JudgingProgress") -> None:
        """A source whose prompts the trained model is asked about."""
        source = progress.source
        what = f"{source.task} T = {source.temperature:g} of {source.target}"
        self._say(f"judging {progress.number}/{progress.total}: {what}", at_once=True)

    def target(self, progress: "Progress") -> None:
        """A step of a target."""
        done = progress.step == progress.steps
        text = f"{progress.phase} step {progress.step}/{progress.steps}, loss {progress.loss:.3f}"
        text += f", {progress.seconds:.0f} s" + self._left(progress.phase, progress.step, progress.steps)
        self._say(text, at_once=done)

    def _left(self, phase: str, done: int, total: int) -> str:
        """The time left, once there is a pace."""
        now = self._clock()
        began, before = self._first.setdefault(phase, (now, done))
        if done == before or done >= total:
            return ""
        return f", {duration((now - began) / (done - before) * (total - done))} left"

    def _say(self, text: str, *, at_once: bool) -> None:
        now = self._clock()
        if at_once or now - self._spoken >= LINE_SECONDS:
            self._spoken = now
            print(text, file=sys.stderr, flush=True)


def accuracy_table(card: "OrderCard") -> "Table":
    """Next-commit accuracy of the model, and of the stale confidence in brackets, for each role and what is in it."""
    from rich.table import Table
    from rich.text import Text

    from workers.training.order_card import ROLES

    warned = (depth for role in ROLES for depth, row in card.totals(role).items() if row.worse)
    depths = sorted({*warned, *(depth for depth in SHOWN_DEPTHS if depth <= card.recipe.max_depth)})
    several = len({source.target for source in card.sources}) > 1
    title = "next-commit accuracy on prompts not trained on, % (stale confidence), by draft depth"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    names = ("", "target", "task", "T") if several else ("", "task", "T")
    for name in (*names, *(str(depth) for depth in depths)):
        table.add_column(name, no_wrap=True, justify="left" if name in names else "right")
    for group in dict.fromkeys(row.group for row in card.accuracy):
        role, target, task, temperature = group
        rows = {row.depth: row for row in card.accuracy if row.group == group}
        texts = [role, *([target or "all"] if several else []), task or "all"]
        texts.append("all" if temperature is None else f"{temperature:g}")
        for depth in depths:
            texts.append(f"{percent(rows[depth].order_model)} ({percent(rows[depth].stale_confidence)})")
        table.add_row(*(Text(text) for text in texts))
    return table


def percent(share: "Share") -> str:
    """A share in percent, or a dash."""
    return "-" if share.value is None else f"{100 * share.value:.1f}"
