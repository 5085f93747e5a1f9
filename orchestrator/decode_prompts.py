"""Decode prompts that were given on the command line, in this process, and print each as it is done."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from math import isfinite
from typing import Any

from rich.console import Console
from rich.text import Text

from orchestrator.prompts import GivenPrompt
from orchestrator.show_decode import harmless, show_generation
from sweeps.cell import Cell
from workers.decoding.loop import decode
from workers.decoding.noise import sample_seed
from workers.decoding.tally import Generation
from workers.loading import Loaded


def decode_prompts(cell: Cell, prompts: Iterable[GivenPrompt], *, device: str, out: Console | None) -> int:
    """Decode each prompt; print it on `out`, or as a JSON line on stdout. Returns 1 when one of them failed, else 0."""
    loaded = Loaded(device)
    target = loaded.get_target(cell.target)
    drafter = loaded.get_drafter(cell.drafter, cell.decode.block_length)
    code = 0
    for prompt in prompts:
        try:
            ids = list(prompt.ids) if prompt.ids is not None else target.encode(prompt.text)
            seed = sample_seed(cell.seed, prompt.id)
            generation = decode(target, drafter, ids, spec=cell.decode, seed=seed)
        except ValueError as error:  # this prompt cannot be decoded; the others may
            code = 1
            failed(out, prompt, str(error))
            continue
        text = target.decode(generation.output_ids[: generation.tokens_kept])
        if out is None:
            print(json.dumps(as_json(prompt, text, generation)), flush=True)
        else:
            out.print(Text(harmless(text)))
            show_generation(
                out, generation, block_length=cell.decode.block_length, piece=lambda token: target.decode([token])
            )
    return code


def failed(out: Console | None, prompt: GivenPrompt, message: str) -> None:
    """Say that a prompt has no generation, and why."""
    if out is None:
        print(json.dumps({"id": prompt.id, "error": message}), flush=True)
    else:
        out.print(Text(f"prompt {prompt.id}: {message}"), soft_wrap=True)


def as_json(prompt: GivenPrompt, text: str, generation: Generation) -> dict[str, Any]:
    """What one JSON line says: an infinite margin (no rival) is null."""
    row = {"id": prompt.id, "text": text} | asdict(generation)
    row["margins"] = [margin if isfinite(margin) else None for margin in generation.margins]
    return row
