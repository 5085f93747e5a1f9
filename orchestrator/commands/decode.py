"""`spot decode`: decode single prompts, without a sweep, and see in which order their positions were filled."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import click

from orchestrator.commands.shared import UserPath, console, default_of, say_lengths, target_option
from sweeps.spec import Acceptance, check_tau
from workers.catalog import OPTIONS

OWN: dict[str, Any] = {
    "checkpoint": str,
    "budget": int,
    "gamma": float,
    "verify_margin": float,
    "cost": str,
    "acceptance": click.Choice(get_args(Acceptance)),
    "max_commit": bool,
    "cross_block": bool,
    "refresh": bool,
}
AXES = ("temperature", "noise", "confidence", "seed", "max_new_tokens", "block_length")


def drafter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of drafters, each as `spot list drafters` explains it; what is not given is the drafter's default."""
    for name, kind in reversed(OWN.items()):
        text = f"{OPTIONS[name][0].upper()}{OPTIONS[name][1:]} (default {default_of(name)})."
        given: dict[str, Any] = {"is_flag": True, "default": None} if kind is bool else {"type": kind}
        command = click.option(f"--{name.replace('_', '-')}", help=text, **given)(command)
    return command


@click.command()
@click.argument("text", required=False)
@target_option
@click.option(
    "--cache", default="", help="Kind of cache: dual | prefix | none, or exact, as its family can (default: the first)."
)
@click.option(
    "--drafter",
    help="A drafter (spot list drafters; default: spot; with --tau spot-sets where a set model is, else freedave).",
)
@drafter_options
@click.option("--temperature", type=float, default=0.0, show_default=True)
@click.option("--noise", type=click.Choice(["coupled", "independent"]), default="coupled", show_default=True)
@click.option("--confidence", type=click.Choice(["top1", "sampled"]), default="top1", show_default=True)
@click.option("--tau", type=float, help="Threshold rule: fill what is surer than this (default: the standard rule).")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--max-new-tokens", type=int, default=128, show_default=True)
@click.option("--block-length", type=int, help="Positions of a block (default: the target's own).")
@click.option("--ignore-eos", is_flag=True, help="Go on behind an end token.")
@click.option("--device", default="cpu", show_default=True, help="A torch device.")
@click.option("--threads", type=click.IntRange(1), default=1, show_default=True, help="As a worker of a sweep has.")
@click.option("--ids-file", type=UserPath(), help='Prompts as token ids: one {"ids": [...]} a line.')
@click.option("--json", "as_json", is_flag=True, help="One JSON line a prompt.")
def decode(
    text: str | None, target: str, drafter: str | None, ids_file: Path | None, as_json: bool, **options: Any
) -> int:
    """Decode TEXT (- reads it from stdin), or the prompts of --ids-file, with one target and one drafter.

    Shows block by block which position was committed in which round. Exit code 1 when a prompt could not be decoded.
    """
    from orchestrator.prompts import read_ids_file
    from orchestrator.single import drafter_for, single_cell

    if (text is None) == (ids_file is None):
        raise click.UsageError("give either TEXT or --ids-file")
    given = read_ids_file(ids_file) if ids_file is not None else (_stdin() if text == "-" else str(text),)
    own = {name: options[name] for name in OWN if options[name] is not None}
    axes = {name: options[name] for name in AXES if options[name] is not None}
    if (tau := options["tau"]) is not None:
        check_tau("--tau", tau)
        axes |= {"commit": "threshold", "tau": tau}
    drafter = drafter or drafter_for(target, threshold=tau is not None, checkpoint=options["checkpoint"])
    cell = single_cell(
        target=target,
        drafter=drafter,
        options=own,
        grid=axes,
        ignore_eos=options["ignore_eos"],
        cache=options["cache"],
    )
    import json

    from orchestrator import show_decode
    from workers.decode_one import decode_prompts

    say_lengths((target,), options["block_length"])
    if options["max_commit"] and cell.drafter.acceptance == "exact":
        why = "it accepts one path alone (subset, cut and product choose among several)"
        click.echo(f"note: --max-commit changes nothing with --acceptance exact: {why}", err=True)
    failed, screen = False, console()
    for decoded in decode_prompts(
        cell.target,
        cell.drafter,
        cell.decode,
        cell.seed,
        given,
        device=options["device"],
        threads=options["threads"],
    ):
        failed = failed or decoded.failure is not None
        if as_json:
            click.echo(json.dumps(show_decode.as_json(decoded, cell)))
        else:
            show_decode.show(screen, decoded, cell)
    return int(failed)


def _stdin() -> str:
    """The prompt on stdin, UTF-8 whatever the locale. Raises ValueError when it is something else."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8", errors="strict")
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise ValueError(f"TEXT on stdin is not UTF-8 ({error})") from None
