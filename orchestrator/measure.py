"""`spot measure cost`: one target's cost curve on this machine, in this process, as a file that sweeps may name."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.artifacts import artifact_of
from orchestrator.block_lengths import one_block_length
from orchestrator.resolve import resolve_target
from orchestrator.train_shared import target_spec
from sweeps.facts import Artifact
from sweeps.source import SweepError
from sweeps.spec import DrafterSpec, TargetSpec, TaskSpec
from workers.models.cost_curve import CostCurve, DrafterCost, write_cost_curve

DRAFTER = "spot"
PROMPTS = TaskSpec(name="tiny-arith", kind="tiny-arith", split="train")  # any text will do: only its length matters
PROMPT_COUNT = 4
STATES = (1, 2, 3, 5, 7, 9, 13, 17, 21, 25, 33)
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRequest:
    """What to measure on which device; `checkpoint` names the order model ("": the one of the table).

    `dtype` and `cache` "" and `block_length` None: the target's own.
    """

    target: str
    dtype: str = ""
    cache: str = ""
    device: str = "cpu"
    threads: int = 1
    block_length: int | None = None
    states: tuple[int, ...] = STATES
    prefixes: tuple[int, ...] = ()
    repeats: int = 15
    checkpoint: str = ""


def measure_cost(
    request: CostRequest, out: Path, progress: Progress = lambda what, done, total: None
) -> tuple[CostCurve, str]:
    """Measure and write a curve; it and its digest. Raises ValueError, before anything is loaded, for bad input."""
    if out.is_dir():
        raise ValueError(f"measure cost: out is {str(out)!r}, a directory: allowed is a file")
    named = replace(target_spec(request.target, request.dtype), cache=request.cache)
    length = one_block_length([named], request.block_length)
    target, facts = resolve_target(named)
    drafter = DrafterSpec(name=DRAFTER, kind=DRAFTER, checkpoint=request.checkpoint)
    artifact = artifact_of(target, drafter)
    check_artifact(artifact, length)
    prefixes = request.prefixes or default_prefixes(length, facts.max_positions)
    if prefixes[-1] + length > facts.max_positions:
        allowed = f"up to {facts.max_positions - length}, which leaves the target room for a block"
        raise ValueError(f"measure cost: prefixes are {prefixes}: allowed is {allowed}")
    curve = measured(request, target, drafter, artifact, length, prefixes, progress)
    return curve, write_cost_curve(out, curve)


def check_artifact(artifact: Artifact | None, block_length: int) -> None:
    """Raise SweepError when the order model is for blocks of another length."""
    if artifact is not None and artifact.block_length != block_length:
        raise SweepError(
            f"measure cost: block_length is {block_length}: allowed by the order model is {artifact.block_length}"
        )


def default_prefixes(block_length: int, max_positions: int) -> tuple[int, ...]:
    """Nothing, then 2, 8, 32, .. blocks, as far as the target goes."""
    most = max_positions // block_length - 1
    counts = [0, *(2 * 4**power for power in range(6) if 2 * 4**power < most), most]
    return tuple(block_length * count for count in dict.fromkeys(counts))


def measured(
    request: CostRequest,
    target_spec: TargetSpec,
    drafter: DrafterSpec,
    artifact: Artifact | None,
    length: int,
    prefixes: tuple[int, ...],
    progress: Progress,
) -> CostCurve:
    """Load the target and measure."""
    import torch

    from workers.decode_one import check_device
    from workers.drafters.spot import make
    from workers.loading import Loaded
    from workers.measure_cost import CostGrid, measure_drafter, measure_forwards
    from workers.targets.memory import SequenceSize

    grid = CostGrid(
        states=request.states,
        prefixes=prefixes,
        block_length=length,
        repeats=request.repeats,
        threads=request.threads,
    )
    check_device(request.device)
    torch.set_num_threads(request.threads)
    loaded = Loaded(request.device)
    size = SequenceSize(
        block_length=length, max_new_tokens=length, states=request.states[-1], prompt_tokens=prefixes[-1]
    )
    target = loaded.get_target(target_spec, size)
    texts = loaded.get_task(PROMPTS).prompts(split=PROMPTS.split, limit=PROMPT_COUNT, seed=0)
    prompts = [target.encode(prompt.text) for prompt in texts]
    ids = [token for prompt in prompts for token in prompt]
    forwards = measure_forwards(target, ids, grid, lambda done, total: progress("forwards", done, total))
    drafters: tuple[DrafterCost, ...] = ()
    if artifact is not None:
        specs = [
            replace(drafter, budget=count - 1, checkpoint=artifact.path, digest=artifact.digest)
            for count in grid.states[1:]
        ]
        made = [make(spec, block_length=length, device=request.device) for spec in specs]
        drafters = measure_drafter(target, made, prompts, grid, lambda done, total: progress("drafter", done, total))
    return CostCurve(
        target=target_spec.name,
        target_digest=target_spec.digest,
        dtype=target_spec.dtype,
        cache=target_spec.cache,
        block_length=length,
        device=torch.cuda.get_device_name(request.device) if request.device.startswith("cuda") else request.device,
        threads=request.threads,
        torch=str(torch.__version__),
        repeats=request.repeats,
        drafter=drafter.kind if artifact is not None else "",
        drafter_digest=artifact.digest if artifact is not None else "",
        forwards=forwards,
        drafters=drafters,
    )
