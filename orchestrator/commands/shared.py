"""What several commands share: the SWEEP argument, the run directory, the console, JSON."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sweeps.paths import expanded
from sweeps.store import RunDir

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 160  # columns when the output is no terminal: tables in a file or a pipe are not squeezed

sweep_argument = click.argument("sweep")
settings_option = click.option(
    "--with",
    "settings",
    multiple=True,
    metavar="FILE",
    help="Settings laid over the sweep: a YAML file or a packaged name (spot list settings); may be repeated.",
)
overrides_argument = click.argument("overrides", nargs=-1, metavar="[KEY=VALUE]...")


class UserPath(click.Path):
    """A path option: `~` is the home directory, and a path that no file can have is refused with the option's name."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path. Raises UsageError."""
        field = param.opts[-1] if isinstance(param, click.Option) else getattr(param, "human_readable_name", "path")
        try:
            return expanded(value, field)
        except ValueError as error:
            raise click.UsageError(str(error), ctx) from None


def once(context: click.Context, option: click.Parameter, values: tuple[str, ...]) -> str:
    """The one value of an option that is collected only so that a second one is refused instead of winning silently."""
    if len(values) != 1:
        given = ", ".join(values) or "none"
        raise click.UsageError(f"{option.opts[0]} is given {len(values)} times ({given}): allowed is once", context)
    return values[0]


target_option = click.option(
    "--target",
    required=True,
    multiple=True,
    callback=once,
    help="A target name (spot list targets), a directory or a hub id.",
)


def pool_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of the commands that run items: which pool, where, how many workers."""
    for option in (
        click.option("--workers", type=click.IntRange(1), help="Workers (default: as many as fit)."),
        click.option(
            "--address", default="local", show_default=True, help="Ray: this machine, or a cluster's address."
        ),
        click.option("--pool", type=click.Choice(["ray", "inline"]), default="ray", show_default=True),
    ):
        command = option(command)
    return command


def recording_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options of the commands that record a target's trajectories: how it decodes, and what a worker has."""
    for option in (
        click.option("--gpus", type=click.FloatRange(0), default=0.0, show_default=True, help="GPUs of each worker."),
        click.option("--cache", default="", help="Kind of cache of every target (default: each one's own)."),
    ):
        command = option(command)
    return pool_options(command)


def run_directory(out: Path | None, name: str) -> RunDir:
    """The run directory that was asked for, or the default one of a sweep."""
    return RunDir(out if out is not None else Path("runs") / name)


def existing_run(folder: Path) -> RunDir:
    """The run in a folder, or of that name below `runs/`. Raises ValueError when there is none."""
    from sweeps.belongs import read_spec

    default = Path("runs") / folder
    if not folder.is_dir() and not default.is_dir():
        raise ValueError(f"no run directory {folder}, and no {default}")
    run = RunDir(folder if folder.is_dir() else default)
    read_spec(run)
    return run


def existing_training(folder: Path) -> RunDir | None:
    """The training directory in a folder, or of that name below `runs/`; None when there is none."""
    from orchestrator.tracking_training import is_training

    return next((RunDir(path) for path in (folder, Path("runs") / folder) if is_training(path)), None)


def console(*, stderr: bool = False) -> "Console":
    """A console that never wraps a table at 80 columns because it is piped."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else WIDE, highlight=False)


def say_lengths(targets: Sequence[str], block_length: int | None) -> None:
    """Say of which of a command's targets a stated block length is not the one that the target was made for."""
    from orchestrator.block_lengths import length_notes
    from orchestrator.train_shared import target_spec

    if block_length is not None:
        for note in length_notes((target_spec(name, ""), block_length) for name in targets):
            click.echo(f"note: {note}", err=True)


def default_of(option: str) -> str:
    """What an option of a drafter is when nothing is said, as people write it."""
    from sweeps.spec import DrafterSpec

    value = getattr(DrafterSpec(name="plain", kind="ssd"), option)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if not isinstance(value, str) else value or "not given"


def json_line(value: Any, **more: Any) -> str:
    """A dataclass (and further named values) as one JSON document."""
    import msgspec

    data = msgspec.to_builtins(value)
    return msgspec.json.encode(data | msgspec.to_builtins(more)).decode()
