"""How many workers fit on the nodes there are: decided before anything is submitted, because Ray would wait for ever.

A worker lives on one node, so the sum over nodes is never the question.
"""

from collections.abc import Mapping, Sequence

from sweeps.effort import ResourceSpec

NodeResources = Mapping[str, float]


def demand_of(resources: ResourceSpec) -> dict[str, float]:
    """What one worker needs, in Ray's resource names."""
    demand = {"CPU": resources.cpus}
    if resources.gpus:
        demand["GPU"] = resources.gpus
    return demand


def fitting(nodes: Sequence[NodeResources], demand: Mapping[str, float]) -> int:
    """How many workers the nodes hold together, each wholly on one node."""
    return sum(_on(node, demand) for node in nodes)


def worker_count(nodes: Sequence[NodeResources], resources: ResourceSpec, at_most: int = 0) -> tuple[int, str]:
    """How many workers to start, and a line when it is fewer than asked for.

    Raises ValueError when not even one fits any node, saying demand, best node and what is missing.
    """
    demand = demand_of(resources)
    room = fitting(nodes, demand)
    if room == 0:
        raise ValueError(infeasible(nodes, demand))
    wanted = resources.workers or room
    note = f"resources.workers is {wanted}, but only {room} fit: starting {room}" if wanted > room else ""
    count = min(wanted, room)
    return min(count, at_most) if at_most else count, note


def infeasible(nodes: Sequence[NodeResources], demand: Mapping[str, float]) -> str:
    """Why no node can hold a worker."""
    best = min(nodes, key=lambda node: _shortfall(node, demand), default={})
    has = ", ".join(f"{name} {best.get(name, 0.0):g}" for name in demand)
    lacks = ", ".join(f"{name} {amount:g}" for name, amount in _missing(best, demand).items())
    needs = ", ".join(f"{name} {amount:g}" for name, amount in demand.items())
    where = f"the best of {len(nodes)} nodes has {has}" if len(nodes) != 1 else f"this machine has {has}"
    return f"a worker needs {needs} on one node, {where}: missing {lacks} (resources.cpus, resources.gpus)"


def waiting_for(free: NodeResources, demand: Mapping[str, float]) -> str:
    """What to say of workers that fit and are not there yet: Ray does not tell ours from others' use."""
    needs = ", ".join(f"{name} {amount:g}" for name, amount in demand.items())
    has = ", ".join(f"{name} {free.get(name, 0.0):g}" for name in demand)
    return f"they are starting, or others use the cluster (a worker needs {needs}; unused now: {has})"


def _on(node: NodeResources, demand: Mapping[str, float]) -> int:
    return min(int(node.get(name, 0.0) / amount + 1e-9) for name, amount in demand.items())


def _missing(node: NodeResources, demand: Mapping[str, float]) -> dict[str, float]:
    lacks = {name: amount - node.get(name, 0.0) for name, amount in demand.items()}
    return {name: amount for name, amount in lacks.items() if amount > 1e-9}


def _shortfall(node: NodeResources, demand: Mapping[str, float]) -> float:
    return sum(amount / demand[name] for name, amount in _missing(node, demand).items())
