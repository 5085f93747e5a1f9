"""Part `noise`: the Gumbel table of the device against the CPU's, bit for bit.

Coupled noise is only one table for all devices if every operation of it rounds alike everywhere (`workers.decoding.
noise`). The device makes the whole table, the CPU one position at a time: shapes must not matter either.
"""

import torch

from tests.gpu.setting import Row, Rows, Setting
from workers.decoding.noise import gumbel

SEEDS = (0, 1, 2**63 - 1)
STARTS = (0, 1 << 20)


def noise_rows(setting: Setting) -> Rows:
    """One row a seed, place and vocabulary."""
    positions, sizes = (4, (300,)) if setting.small else (32, (300, 151936))
    for seed in SEEDS:
        for start in STARTS:
            for size in sizes:
                yield compared(setting, seed, start, positions, size)


def compared(setting: Setting, seed: int, start: int, positions: int, size: int) -> Row:
    """How many numbers of two tables differ, and by how much at most."""
    places_P = torch.arange(start, start + positions)
    there_PV = gumbel(seed, places_P.to(setting.device), size).cpu()
    here_PV = torch.cat([gumbel(seed, place_1, size) for place_1 in places_P.split(1)])
    differing = int((there_PV.view(torch.int64) != here_PV.view(torch.int64)).sum())
    return {
        "kind": "noise",
        "seed": seed,
        "start": start,
        "positions": positions,
        "vocab_size": size,
        "numbers": there_PV.numel(),
        "differing": differing,
        "largest_difference": float((there_PV - here_PV).abs().max()),
        "problems": [f"noise: {differing} of {there_PV.numel()} numbers differ from the CPU's"] if differing else [],
    }
