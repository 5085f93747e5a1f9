"""Cost of verifying N block states in one forward, relative to one state, on the tiny target."""

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.bench.common import interleaved, report, tiny_target

STATES = (1, 2, 5, 9, 21)
BLOCK, PREFIX = 32, 128


def main() -> None:
    """Print the line."""
    target = tiny_target()
    generator = torch.Generator().manual_seed(0)
    prompt = torch.randint(0, 200, (PREFIX,), generator=generator).tolist()
    session = target.start(prompt, block_length=BLOCK, max_new_tokens=BLOCK)
    blocks_NL = torch.full((max(STATES), BLOCK), target.traits.mask_id)
    seconds = interleaved({n: (lambda n=n: session.forward(blocks_NL[:n])) for n in STATES}, repeats=31)
    report(
        "verify",
        unit="time of a forward relative to one state",
        prefix=PREFIX,
        block_length=BLOCK,
        ratio={n: round(seconds[n] / seconds[1], 3) for n in STATES},
        milliseconds_of_one=round(1000 * seconds[1], 3),
    )


if __name__ == "__main__":
    main()
