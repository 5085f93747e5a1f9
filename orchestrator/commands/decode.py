"""`spot decode`: decode single prompts, without a sweep, and see in which order their positions were filled."""

import sys
from pathlib import Path
from typing import Any

import click

from orchestrator.commands.shared import console


@click.command()
@click.argument("text", required=False)
@click.option("--target", required=True, help="A target name (spot list targets), a directory or a hub id.")
@click.option("--drafter", default="spot", show_default=True, help="A drafter (spot list drafters).")
@click.option("--checkpoint", default="", help="The drafter's order model, where the target has none of its own.")
@click.option("--budget", type=int, help="Draft states verified beside the root (default 8).")
@click.option("--gamma", type=float, help="Mass floor: drafts below it are not verified.")
@click.option("--temperature", type=float, default=0.0, show_default=True)
@click.option("--noise", type=click.Choice(["coupled", "independent"]), default="coupled", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--max-new-tokens", type=int, default=128, show_default=True)
@click.option("--block-length", type=int, default=32, show_default=True)
@click.option("--device", default="cpu", show_default=True, help="A torch device.")
@click.option("--ids-file", type=click.Path(path_type=Path), help='Prompts as token ids: one {"ids": [...]} a line.')
@click.option("--json", "as_json", is_flag=True, help="One JSON line a prompt.")
def decode(text: str | None, target: str, drafter: str, ids_file: Path | None, as_json: bool, **options: Any) -> int:
    """Decode TEXT (- reads it from stdin), or the prompts of --ids-file, with one target and one drafter.

    On a terminal shows block by block which position was committed in which round. Exit code 1 when a prompt failed.
    """
    from orchestrator.prompts import GivenPrompt, read_ids_file
    from orchestrator.single import single_cell

    if (text is None) == (ids_file is None):
        raise click.UsageError("give either TEXT or --ids-file")
    prompts: tuple[GivenPrompt, ...]
    if ids_file is not None:
        prompts = read_ids_file(ids_file)
    else:
        prompts = (GivenPrompt(id="1", text=sys.stdin.read() if text == "-" else str(text)),)
    own = {name: options[name] for name in ("budget", "gamma", "checkpoint") if options[name] not in (None, "")}
    axes = {name: options[name] for name in ("temperature", "noise", "seed", "max_new_tokens", "block_length")}
    cell = single_cell(target=target, drafter=drafter, options=own, grid=axes)
    from orchestrator.decode_prompts import decode_prompts

    return decode_prompts(cell, prompts, device=options["device"], out=None if as_json else console())
