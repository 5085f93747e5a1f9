"""What the commands that train a drafter's model do alike: follow it, and say at the end what came of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.commands.shared import console
from orchestrator.show_training import TrainingScreen
from orchestrator.track_training import TrainingMirror
from sweeps.records import Failure

if TYPE_CHECKING:
    from rich.table import Table

    from orchestrator.train import OrderOutcome
    from orchestrator.train_sets import SetsOutcome
    from workers.training.fitting import FitProgress

SHOWN_FAILURES = 5


class Following:
    """A training in `folder`, on the screen and in its mirror. Raises ValueError for a URI that cannot work."""

    def __init__(self, folder: Path, tracking_uri: str) -> None:
        self.folder = folder
        self.screen, self.mirror = TrainingScreen(), TrainingMirror(folder, tracking_uri)

    def step(self, progress: "FitProgress") -> None:
        """After a training step."""
        self.screen.model(progress)
        self.mirror.follow(progress)

    def end(self, outcome: "OrderOutcome | SetsOutcome", table: "Table", how: str) -> int:
        """Say what the model is worth and what is missing; an exit code."""
        card = outcome.trained.card
        console().print(table)
        for warning in card.warnings():
            click.echo(warning)
        click.echo(f"{self.folder / 'model'}: {how} on {card.traces} trajectories (accuracies in its README.md)")
        say_failures(outcome.failures)
        behind = self.mirror.finish()
        return int(bool(outcome.failures)) or behind


def say_failures(failures: Sequence[Failure]) -> None:
    """Name the first prompts that have no trajectory."""
    for failure in failures[:SHOWN_FAILURES]:
        click.echo(f"no trajectory of prompt {failure.prompt_index}: {failure.type}: {failure.message}", err=True)
