"""The state file of a training run of a drafter's model: what it takes to go on as if it had never stopped."""

import hashlib
import io
from dataclasses import asdict
from pathlib import Path

import torch

from sweeps.store import atomic_write
from workers.training.update import Schedule

AGAIN = "delete it to start again, or choose another --out"
LONGEST = 200


def write_state(
    path: Path,
    trainee: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    recipe: Schedule,
    data_digest: str,
    step: int,
    seconds: float,
) -> None:
    """Replace the state file at once or not at all."""
    state = {
        "recipe": asdict(recipe),
        "data_digest": data_digest,
        "step": step,
        "seconds": seconds,
        "threads": torch.get_num_threads(),
        "trainee": trainee.state_dict(),
        "optimizer": optimizer.state_dict(),
        "sha256": contents(trainee, optimizer, step),
    }
    file = io.BytesIO()
    torch.save(state, file)
    atomic_write(path, file.getvalue())


def read_state(
    path: Path, trainee: torch.nn.Module, optimizer: torch.optim.Optimizer, *, recipe: Schedule, data_digest: str
) -> tuple[int, float]:
    """Load a state file into trainee and optimizer; returns steps done and seconds spent (0 and 0.0 without a file).

    From then on torch uses as many threads as before: with others the last bits of sums, and so the weights, differ.
    Raises ValueError when it belongs to another recipe or other traces, is damaged or cannot be read.
    """
    if not path.exists():
        return 0, 0.0
    try:
        state = torch.load(path, weights_only=True)
        recorded, digest, step, seconds, threads = (
            state[key] for key in ("recipe", "data_digest", "step", "seconds", "threads")
        )
        names = [name for name, value in asdict(recipe).items() if recorded.get(name) != value]
    except Exception as error:  # torch names no error type for files it cannot read
        raise damaged(path, error) from None
    if names:
        raise ValueError(
            f"training state {path}: belongs to another recipe (it differs in {', '.join(names)}); {AGAIN}"
        )
    if digest != data_digest:
        raise ValueError(f"training state {path}: belongs to other traces; {AGAIN}")
    try:
        trainee.load_state_dict(state["trainee"])
        optimizer.load_state_dict(state["optimizer"])
        if contents(trainee, optimizer, step) != state["sha256"]:
            raise ValueError("its tensors are not those that were written")
        torch.set_num_threads(threads)
        return int(step), float(seconds)
    except Exception as error:  # nor for tensors that do not fit
        raise damaged(path, error) from None


def contents(trainee: torch.nn.Module, optimizer: torch.optim.Optimizer, step: int) -> str:
    """sha256 (hex) over weights, moments and the number of steps done."""
    digest = hashlib.sha256(str(step).encode())
    for parameter in trainee.parameters():
        for tensor in (parameter, *(value for _, value in sorted(optimizer.state.get(parameter, {}).items()))):
            digest.update(tensor.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def damaged(path: Path, error: Exception) -> ValueError:
    """What to do about a state that cannot be used."""
    brief = " ".join(f"{type(error).__name__}: {error}".split())[:LONGEST]
    return ValueError(f"training state {path}: damaged ({brief}); delete it to start again (trajectories are kept)")
