"""What cross-block drafts can save: forwards and positions of a drafter that knows every step, with and without."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from sweeps.bound import steps_floor
from sweeps.spec import DecodeSpec
from tests.bench.bench_round import prompts_of
from tests.bench.common import report, tiny_target
from tests.toys import KnowingStepsDrafter
from workers.decoding.loop import decode
from workers.decoding.seen import Seen
from workers.decoding.state import BlockState, Commit
from workers.decoding.verification import Verification
from workers.drafters.none import NoDrafter

BUDGET, TAU = 8, 0.95
WAYS = {
    "off": Verification(),
    "on": Verification(cross_block=True),
    "refresh": Verification(cross_block=True, refresh=True),
}


def main() -> None:
    """Print the line."""
    target = tiny_target()
    spec = DecodeSpec(max_new_tokens=128, commit="threshold", tau=TAU)
    forwards, positions = dict.fromkeys(("draft_free", *WAYS), 0), dict.fromkeys(("draft_free", *WAYS), 0)
    floors = {"off": 0, "on": 0, "refresh": 0}
    for ids in prompts_of(target, "tiny-arith")[:2]:
        future: dict[tuple[int, BlockState], tuple[Commit, ...]] = {}
        steps: dict[int, int] = {}

        def watch(seen: Seen, future: dict = future, steps: dict = steps) -> None:  # type: ignore[type-arg]
            future[seen.start, seen.state] = seen.step
            steps[seen.start] = steps.get(seen.start, 0) + 1

        runs = {"draft_free": decode(target, NoDrafter(), ids, spec=spec, seed=0, watch=watch)}
        for name, way in WAYS.items():
            drafter = KnowingStepsDrafter(future, BUDGET)
            runs[name] = decode(target, drafter, ids, spec=spec, seed=0, verification=way)
            floors[name] += steps_floor([*steps.values()], BUDGET, cross_block=way.cross_block)
        for name, run in runs.items():
            forwards[name] += run.counters.nfe
            positions[name] += run.counters.positions
    report(
        "cross_block",
        unit="sums over prompts",
        tau=TAU,
        budget=BUDGET,
        forwards=forwards,
        floor=floors,
        positions=positions,
    )


if __name__ == "__main__":
    main()
