"""Which pool a command uses, by name. Ray is imported only when it is asked for."""

from typing import Literal

from orchestrator.pool import Pool
from orchestrator.pool_inline import InlinePool
from orchestrator.stop import Stop
from sweeps.effort import ResourceSpec

PoolName = Literal["ray", "inline"]


def make_pool(name: PoolName, resources: ResourceSpec, *, address: str, stop: Stop | None = None) -> Pool:
    """Ray actors at `address` ("local": a private Ray on this machine), or this very process.

    Both give a worker as many torch threads as it has whole CPUs, so the same item gives the same numbers in either.
    """
    if name == "inline":
        device = "cuda" if resources.gpus else "cpu"
        return InlinePool(device=device, threads=max(1, int(resources.cpus)), stop=stop)
    from orchestrator.pool_ray import RayPool

    return RayPool(resources, address=address)
