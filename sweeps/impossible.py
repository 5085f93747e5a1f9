"""Which points of a grid cannot run, and why: a pure function of a point and of what is known of the world."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from sweeps.facts import Facts

Point = dict[str, Any]


class Gone(NamedTuple):
    """The axis values that cannot go together, why, and which of the drafter's options would have to be others."""

    axes: Point
    reason: str
    instead: Point | None = None


def impossible(point: Point, facts: Facts) -> Gone | None:
    """The first reason against a point; None when it can run."""
    return next((gone for reasons in (_by_rule, _by_cost, _by_artifact) for gone in reasons(point, facts)), None)


def _by_rule(point: Point, facts: Facts) -> Iterator[Gone]:
    """What target, drafter and rules rule out by themselves."""
    target, drafter, tokens = point["target"].name, point["drafter"], point["max_new_tokens"]
    kind, acceptance = facts.kinds[drafter.kind], point["acceptance"]
    lenient = acceptance not in (None, "exact")
    if tokens >= (positions := facts.max_positions.get(target, math.inf)):
        reason = f"can never fit: {target} has {positions} positions, and a prompt takes some of them"
        yield Gone({"target": target, "max_new_tokens": tokens}, reason)
    if point["commit"] not in kind.commits:
        reason = f"{drafter.kind} drafts for the commit rule {' or '.join(kind.commits)} only"
        yield Gone({"drafter": drafter.name, "commit": point["commit"]}, reason)
    if lenient and point["commit"] == "standard":
        reason = f"the rule {acceptance} accepts steps of threshold decoding, and the standard rule has none"
        yield Gone({"drafter": drafter.name, "commit": "standard", "acceptance": acceptance}, reason)
    if lenient and drafter.verify_margin:
        reason = f"a verify_margin gives the draft-free output, which the rule {acceptance} does not keep"
        yield Gone({"drafter": drafter.name, "acceptance": acceptance}, reason)
    if drafter.cross_block and not point["target"].crosses:
        reason = f"cross_block needs block-causal attention with an exact cache, and {target} has no such cache"
        switches = {name: False for name in ("cross_block", "refresh") if getattr(drafter, name)}
        yield Gone({"target": target, "drafter": drafter.name}, reason, switches)
    if kind.oracle and point["temperature"] > 0 and point["noise"] == "independent":
        reason = f"{drafter.kind} knows one future: with independent noise the target draws another at every forward"
        yield Gone({"drafter": drafter.name, "noise": "independent"}, reason)


def _by_cost(point: Point, facts: Facts) -> Iterator[Gone]:
    """What the cost curve that a drafter names does not know."""
    pair = {"target": point["target"].name, "drafter": point["drafter"].name}
    cost = facts.costs.get((pair["target"], pair["drafter"]))
    if cost is None:
        return
    if cost.fault:
        yield Gone(pair, cost.fault)
    if cost.block_length not in (None, length := point["block_length"]):
        yield Gone(pair | {"block_length": length}, f"its cost curve is for blocks of {cost.block_length}")
    if cost.budget_max is not None and point["budget"] > cost.budget_max:
        yield Gone(pair | {"budget": point["budget"]}, f"its cost curve ends at budget {cost.budget_max}")


def _by_artifact(point: Point, facts: Facts) -> Iterator[Gone]:
    """What the artifact that a drafter needs is not there for, or was not made for."""
    target, drafter = point["target"].name, point["drafter"]
    needed = facts.kinds[drafter.kind].artifact
    if needed is None:
        return
    names, pair, noun = (target, drafter.name), {"target": target, "drafter": drafter.name}, needed.noun
    artifact = facts.artifacts.get(names)
    if artifact is None:
        ways = facts.ways.get(names, f"make one ({needed.command})")
        yield Gone(pair, f"no {noun} is known for {target}: {ways}")
        return
    if artifact.commit not in (None, point["commit"]):
        make = facts.remakes.get((*names, point["tau"]), f"make another ({needed.command})")
        reason = f"its {noun} is for the commit rule {artifact.commit}: {make}"
        yield Gone(pair | {"commit": point["commit"]}, reason)
    if artifact.block_length not in (None, length := point["block_length"]):
        yield Gone(pair | {"block_length": length}, f"its {noun} is for blocks of {artifact.block_length}")
    if artifact.hidden not in (None, wide := facts.hidden.get(target, artifact.hidden)):
        fit = facts.fits.get(names, f"fit it to {target} ({needed.command})")
        reason = f"its {noun} reads vectors {artifact.hidden} wide, and those of {target} are {wide} wide: {fit}"
        yield Gone(pair, reason)
    if artifact.budget_max is not None and point["budget"] > artifact.budget_max:
        yield Gone(pair | {"budget": point["budget"]}, f"its {noun} is for budgets up to {artifact.budget_max}")
