"""Helpers of the sweep-file tests: tables that no catalog change can move, and a way to write and load a file."""

from pathlib import Path

from sweeps.load import load_sweep
from sweeps.spec import SweepSpec, TargetSpec
from sweeps.tables import ArtifactKind, DrafterKind, Tables, TaskKind

TABLES = Tables(
    targets={
        "small": TargetSpec(name="small", path="/models/small", block_length=32),
        "large": TargetSpec(name="large", path="a/large", block_length=32),
    },
    drafters={
        "none": DrafterKind(),
        "ssd": DrafterKind(uses=("budget",)),
        "spot": DrafterKind(
            uses=("budget", "gamma", "hedge", "merge_states", "checkpoint"),
            artifact=ArtifactKind(noun="order model", command="spot train order"),
        ),
    },
    tasks={"sums": TaskKind(), "code": TaskKind(), "jsonl": TaskKind(needs_path=True)},
)
BASE = "grid:\n  target: small\n  task: sums\n"


def load(folder: Path, text: str | bytes = BASE, *overrides: str, file: str = "s.yaml") -> SweepSpec:
    """The sweep in a file with this content."""
    path = folder / file
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_sweep(path, overrides, TABLES)
