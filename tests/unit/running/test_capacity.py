"""How many workers fit is asked of each node, never of their sum."""

import pytest

from orchestrator.capacity import fitting, waiting_for, worker_count
from sweeps.effort import ResourceSpec

LAPTOP = [{"CPU": 2.0}]
CLUSTER = [{"CPU": 16.0, "GPU": 1.0}, {"CPU": 4.0, "GPU": 4.0}, {"CPU": 64.0}]


@pytest.mark.parametrize(
    ("nodes", "resources", "at_most", "count"),
    [
        (LAPTOP, ResourceSpec(), 0, 2),
        (LAPTOP, ResourceSpec(workers=1), 0, 1),
        (LAPTOP, ResourceSpec(workers=2), 1, 1),
        (LAPTOP, ResourceSpec(cpus=0.5), 0, 4),
        (LAPTOP, ResourceSpec(cpus=1.5), 0, 1),
        (LAPTOP, ResourceSpec(cpus=0.1), 0, 20),  # ten times 0.1 is not 1 in floating point
        (CLUSTER, ResourceSpec(cpus=2, gpus=1), 0, 3),  # one on the first node, two by the CPUs of the second
        (CLUSTER, ResourceSpec(cpus=16), 0, 5),
        (CLUSTER, ResourceSpec(cpus=1, gpus=0.5), 0, 6),
    ],
)
def test_count(nodes: list[dict[str, float]], resources: ResourceSpec, at_most: int, count: int) -> None:
    assert worker_count(nodes, resources, at_most) == (count, "")


@pytest.mark.parametrize("workers", [4, 1000])
def test_more_than_fit_is_reduced_with_a_line(workers: int) -> None:
    count, note = worker_count(LAPTOP, ResourceSpec(workers=workers))
    assert count == 2
    assert note == f"resources.workers is {workers}, but only 2 fit: starting 2"


@pytest.mark.parametrize(
    ("nodes", "resources", "line"),
    [
        (LAPTOP, ResourceSpec(gpus=1), "this machine has CPU 2, GPU 0: missing GPU 1"),
        (LAPTOP, ResourceSpec(cpus=3), "this machine has CPU 2: missing CPU 1"),
        (CLUSTER, ResourceSpec(cpus=8, gpus=4), "the best of 3 nodes has CPU 4, GPU 4: missing CPU 4"),
        (CLUSTER, ResourceSpec(cpus=80), "the best of 3 nodes has CPU 64: missing CPU 16"),
        ([], ResourceSpec(), "the best of 0 nodes has CPU 0: missing CPU 1"),
    ],
)
def test_what_fits_nowhere_is_refused_with_the_numbers(
    nodes: list[dict[str, float]], resources: ResourceSpec, line: str
) -> None:
    with pytest.raises(ValueError, match=line):
        worker_count(nodes, resources)


def test_no_worker_at_all_is_no_demand() -> None:
    with pytest.raises(ValueError, match=r"resources\.cpus is 0"):
        ResourceSpec(cpus=0)


def test_the_sum_over_nodes_is_not_what_counts() -> None:
    assert fitting([{"CPU": 1.0}, {"CPU": 1.0}], {"CPU": 2.0}) == 0


def test_waiting_is_explained_with_numbers() -> None:
    line = waiting_for({"CPU": 0.5}, {"CPU": 1.0, "GPU": 1.0})
    assert line.endswith("(a worker needs CPU 1, GPU 1; unused now: CPU 0.5, GPU 0)")
