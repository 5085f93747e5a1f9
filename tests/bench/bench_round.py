"""Where the time of a round goes (drafter with tree, forward, walk), and draft-free beside naive decoding."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from sweeps.spec import DecodeSpec, DrafterSpec, TaskSpec
from tests.bench.common import interleaved, report, tiny_target
from workers.catalog import DRAFTERS, TARGETS, TASKS, resolve
from workers.decoding.loop import decode
from workers.decoding.noise import sample_seed
from workers.decoding.reference import reference
from workers.drafters.none import NoDrafter

PROMPTS, BUDGETS = 4, (4, 8, 20)


def prompts_of(target: object, kind: str) -> list[list[int]]:
    """The first prompts of a task, as ids."""
    task = resolve(TASKS[kind].factory)(TaskSpec(name=kind, kind=kind))
    return [target.encode(prompt.text) for prompt in task.prompts(split="test", limit=PROMPTS, seed=0)]  # type: ignore[attr-defined]


def main() -> None:
    """Print the two lines."""
    target = tiny_target()
    prompts, spec = prompts_of(target, "tiny-arith"), DecodeSpec()
    for kind in ("ssd", "spot"):
        for budget in BUDGETS:
            settings = DrafterSpec(
                name=kind, kind=kind, budget=budget, checkpoint=TARGETS["tiny-sdar"].artifacts["order_model"]
            )
            drafter = resolve(DRAFTERS[kind].factory)(settings, block_length=spec.block_length)
            decode(target, drafter, prompts[0], spec=spec, seed=sample_seed(0, "0"))
            runs = [decode(target, drafter, ids, spec=spec, seed=sample_seed(0, "0")) for ids in prompts]
            total = sum(run.seconds for run in runs)
            report(
                "round",
                drafter=kind,
                budget=budget,
                unit="share of decoding time",
                drafter_share=round(sum(run.drafter_seconds for run in runs) / total, 3),
                forward_share=round(sum(run.forward_seconds for run in runs) / total, 3),
                walk_share=round(sum(run.walk_seconds for run in runs) / total, 3),
                rounds=sum(run.counters.nfe for run in runs),
            )
    ids, seed = prompts[0], sample_seed(0, "0")
    seconds = interleaved(
        {
            "draft_free": lambda: decode(target, NoDrafter(), ids, spec=spec, seed=seed),
            "reference": lambda: reference(target, ids, spec=spec, seed=seed),
        },
        repeats=3,
    )
    report(
        "draft_free",
        unit="tokens per second relative to the naive decoder",
        ratio=round(seconds["reference"] / seconds["draft_free"], 2),
    )


if __name__ == "__main__":
    main()
