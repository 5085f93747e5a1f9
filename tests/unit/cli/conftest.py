"""A tiny checkpoint, an order model and a sweep over both, on disk; `spot` runs a command line in this process."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.cli import main
from tests.tiny_checkpoints import write_checkpoint

SWEEP = """\
name: small
grid:
  target: rand
  task: tiny-arith
  drafter: [ssd, spot, floor]
  budget: [2, 4]
  max_new_tokens: 8
  block_length: 32
targets:
  rand: {path: TARGET}
drafters:
  spot: {checkpoint: ORDER}
  floor: {kind: spot, gamma: 0.05, checkpoint: ORDER}
measure: {prompts: 4, timed_prompts: 1, repeats: 1, chunk: 2}
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command line ended."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `target` (random weights, 2048 positions) and `order` (untrained, for blocks of 32)."""
    import torch

    from workers.models.facts import OrderConfig
    from workers.models.order_model import OrderModel, save_order_model

    folder = tmp_path_factory.mktemp("models")
    write_checkpoint(folder / "target", config={"max_position_embeddings": 2048})
    torch.manual_seed(0)
    config = OrderConfig(block_length=32, layers=1, width=16, heads=2, feedforward=16)
    save_order_model(OrderModel(config), folder / "order")
    return folder


@pytest.fixture
def sweep(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sweep file over them, in the current directory."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.yaml"
    path.write_text(SWEEP.replace("TARGET", str(models / "target")).replace("ORDER", str(models / "order")))
    return path


@pytest.fixture(autouse=True)
def mirror(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No MLflow mirror (seconds a run), unless a test asks for `real_mirror`."""
    if "real_mirror" not in request.fixturenames:
        from orchestrator.tracking import MirrorOutcome

        none = MirrorOutcome(status="unchanged", uri="nowhere", message="left out of this test")
        monkeypatch.setattr("orchestrator.finish.mirror", lambda *_: 0)
        monkeypatch.setattr("orchestrator.tracking.sync", lambda *_: none)


@pytest.fixture
def real_mirror() -> None:
    """Asks for the mirror."""


@pytest.fixture
def spot(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ended]:
    """Run a command line; whatever was printed before is forgotten."""

    def run(*arguments: object) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Ended(int(ended.value.code or 0), printed.out, printed.err)

    return run
