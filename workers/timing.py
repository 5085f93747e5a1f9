"""Throughput: two ways to decode the same prompt, in turn, on one worker: a drafter and draft-free decoding, or two
commit rules without any drafter (`Cell.timed_beside`).

Each side decodes the prompt once untimed, which meets every batch shape of the timed runs, as these repeat it exactly.
Then the sides alternate A B B A, so that a machine that drifts slows both alike. Both count tokens the same way.
"""

from collections.abc import Sequence

from sweeps.records import TimingRecord
from sweeps.spec import DecodeSpec
from workers.decoding.loop import decode
from workers.decoding.tally import Generation
from workers.decoding.verification import PLAIN, Verification
from workers.drafters.base import Drafter
from workers.drafters.none import NoDrafter
from workers.targets.base import Target
from workers.tasks.base import Prompt


def time_prompt(
    target: Target,
    drafter: Drafter,
    prompt: Prompt,
    index: int,
    ids: Sequence[int],
    *,
    spec: DecodeSpec,
    seed: int,
    repeats: int,
    verification: Verification = PLAIN,
    beside: DecodeSpec | None = None,
) -> TimingRecord:
    """Time `repeats` decodes of each side: by `spec` with the drafter, by `beside` (None: by `spec` too) without any.

    Raises RuntimeError when a repeat differs from the untimed run.
    """

    def run_of(side: tuple[Drafter, DecodeSpec]) -> Generation:
        return decode(target, side[0], ids, spec=side[1], seed=seed, verification=verification)

    sides: dict[str, tuple[Drafter, DecodeSpec]]
    sides = {"variant": (drafter, spec), "baseline": (NoDrafter(), beside or spec)}
    first = {name: run_of(side) for name, side in sides.items()}
    runs: dict[str, list[Generation]] = {name: [] for name in sides}
    for repeat in range(repeats):
        for name in ("variant", "baseline") if repeat % 2 == 0 else ("baseline", "variant"):
            run = run_of(sides[name])
            if run.output_ids != first[name].output_ids or run.counters.nfe != first[name].counters.nfe:
                was, now = first[name].counters.nfe, run.counters.nfe
                raise RuntimeError(
                    f"repeat {repeat} of the {name} is another generation (nfe {now}, before {was}): not reproducible"
                )
            runs[name].append(run)
    variant = runs["variant"]
    return TimingRecord(
        prompt_id=prompt.id,
        prompt_index=index,
        tokens_kept=first["variant"].tokens_kept,
        nfe=first["variant"].counters.nfe,
        baseline_nfe=first["baseline"].counters.nfe,
        baseline_tokens_kept=first["baseline"].tokens_kept,
        identical=first["variant"].output_ids == first["baseline"].output_ids,
        variant_seconds=tuple(run.seconds for run in variant),
        baseline_seconds=tuple(run.seconds for run in runs["baseline"]),
        drafter_seconds=sum(run.drafter_seconds for run in variant),
        forward_seconds=sum(run.forward_seconds for run in variant),
        walk_seconds=sum(run.walk_seconds for run in variant),
        baseline_forward_seconds=sum(run.forward_seconds for run in runs["baseline"]),
    )
