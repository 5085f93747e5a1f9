"""The pool of Ray actors: long-lived workers with one item in flight each, on this machine or on a cluster.

Ray only carries bytes and says who died. Restarts, retries and deadlines are the scheduler's, so every retry of Ray's
own is off; and because Ray waits for ever for what no node can give, the demand is checked before anything is asked.
"""

import contextlib
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # the coming default, without the warning about it

import ray

import sweeps
import workers
from orchestrator.address import LOCAL, brief, check_reachable, ignored_variable, refusal
from orchestrator.capacity import demand_of, waiting_for, worker_count
from orchestrator.pool import PoolEvent
from orchestrator.pool_inline import DEFAULT_RUNNER
from orchestrator.scratch import Scratch, make_scratch
from sweeps.cell import Cell
from sweeps.effort import ResourceSpec
from sweeps.origin import code_digest
from sweeps.records import WorkItem
from sweeps.results import parse_result
from workers.actor import Hello, Worker
from workers.guard import RunnerFactory

OBJECT_STORE_BYTES = 120 * 1024**2
PATIENCE_SECONDS = 15.0
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class _Call:
    """A question to a worker that is not answered yet."""

    worker: str
    hello: bool


class RayPool:
    """Workers `ray-1`, `ray-2`, ... ; a name is never used twice.

    `address` is "local" (a private Ray on this machine, whatever RAY_ADDRESS says) or that of a cluster, which gets
    our sources with the job. A Ray that already runs in this process is used as it is and left running.
    """

    def __init__(
        self,
        resources: ResourceSpec,
        *,
        address: str = LOCAL,
        runner_factory: RunnerFactory = DEFAULT_RUNNER,
    ) -> None:
        self._resources = resources
        self._address = address
        self._factory = runner_factory
        self._threads = max(1, int(resources.cpus))
        self._made = 0
        self._actors: dict[str, Any] = {}
        self._calls: dict[Any, _Call] = {}
        self._events: deque[PoolEvent] = deque()
        self._connected = False
        self._scratch: Scratch | None = None
        self._started = 0.0
        self._greeted = False

    def start(self, at_most: int = 0) -> tuple[str, ...]:
        """Connect, check that workers fit, start them.

        Raises ValueError when no node can hold a worker, or when there is no cluster at the address.
        """
        self._connect()
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        count, note = worker_count(nodes, self._resources, at_most)
        self._note(note)
        self._started = time.monotonic()
        return tuple(self._spawn() for _ in range(count))

    def submit(self, worker: str, item: WorkItem, cell: Cell) -> None:
        """Send an item to a worker."""
        ref = self._actors[worker].run.remote(msgspec.json.encode(item), msgspec.json.encode(cell))
        self._calls[ref] = _Call(worker, hello=False)

    def wait(self, timeout: float) -> tuple[PoolEvent, ...]:
        """What workers answered. Raises ValueError when one runs other code than this process."""
        if not self._greeted and time.monotonic() - self._started > PATIENCE_SECONDS:
            self._greeted = True
            self._note(f"no worker is ready after {PATIENCE_SECONDS:g} s: {self._obstacle()}")
        if self._calls:
            ray.wait(list(self._calls), timeout=0 if self._events else timeout)
            ready, _ = ray.wait(list(self._calls), num_returns=len(self._calls), timeout=0)
            for ref in ready:
                self._events.append(self._event(self._calls.pop(ref), ref))
        elif not self._events:
            time.sleep(min(timeout, 0.05))
        events = tuple(self._events)
        self._events.clear()
        return events

    def replace(self, worker: str) -> str:
        """Kill a worker, forget what it was asked, start another."""
        self._kill(worker)
        return self._spawn()

    def close(self) -> None:
        """Kill the workers; stop Ray, if this pool started it, and remove its files."""
        for worker in tuple(self._actors):
            self._kill(worker)
        self._events.clear()
        if self._connected:
            self._connected = False
            with contextlib.suppress(Exception):
                ray.shutdown()
        if self._scratch is not None:
            self._scratch.remove()
            self._scratch = None

    # ---- inside

    def _connect(self) -> None:
        if ray.is_initialized():
            return
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
        if self._address == LOCAL:
            self._note(ignored_variable())
            self._scratch = make_scratch()
            self._note(self._scratch.note)
            options["object_store_memory"] = OBJECT_STORE_BYTES
            options["_temp_dir"] = str(self._scratch.path)
            options["include_dashboard"] = False
        else:
            check_reachable(self._address)
            sources = [str(Path(package.__path__[0])) for package in (sweeps, workers)]
            options["runtime_env"] = {"py_modules": sources}
        self._connected = True
        try:
            self._init(options)
        except Exception as error:  # Ray raises Exception itself when a busy machine takes it more than 30 s
            if self._address != LOCAL:
                self.close()
                raise ValueError(f"no Ray cluster at address {self._address!r}: {refusal(error)}") from None
            self._note(f"Ray did not start ({brief(error)}): trying once more")
            self._init_again(options)

    def _init_again(self, options: dict[str, Any]) -> None:
        try:
            ray.shutdown()
            self._init(options)
        except Exception as error:
            self.close()
            raise ValueError(f"Ray does not start on this machine: {brief(error)}") from None

    def _init(self, options: dict[str, Any]) -> None:
        with _own_signals():
            ray.init(self._address, **options)

    def _spawn(self) -> str:
        self._made += 1
        worker = f"ray-{self._made}"
        demand = demand_of(self._resources)
        variables = {name: str(self._threads) for name in THREAD_VARIABLES} | {"TOKENIZERS_PARALLELISM": "false"}
        options = ray.remote(Worker).options(
            num_cpus=demand["CPU"],
            num_gpus=demand.get("GPU", 0),
            max_restarts=0,
            max_task_retries=0,
            runtime_env={"env_vars": variables},
        )
        try:
            actor = options.remote(self._factory, "cuda" if "GPU" in demand else "cpu", self._threads)
        except (TypeError, AttributeError) as error:
            raise ValueError(f"the runner class cannot be sent to workers: {brief(error)}") from None
        self._actors[worker] = actor
        self._calls[actor.hello.remote()] = _Call(worker, hello=True)
        return worker

    def _kill(self, worker: str) -> None:
        actor = self._actors.pop(worker, None)
        self._calls = {ref: call for ref, call in self._calls.items() if call.worker != worker}
        if actor is not None:
            with contextlib.suppress(Exception):
                ray.kill(actor, no_restart=True)

    def _event(self, call: _Call, ref: Any) -> PoolEvent:
        try:
            answer = ray.get(ref)
        except ray.exceptions.RayTaskError as error:  # our own code raised there: the process lives
            return PoolEvent(kind="lost" if call.hello else "result", worker=call.worker, reason=brief(error))
        except ray.exceptions.RayError as error:
            return PoolEvent(kind="lost", worker=call.worker, reason=brief(error))
        if call.hello:
            return self._greet(call.worker, msgspec.json.decode(answer, type=Hello))
        try:
            return PoolEvent(kind="result", worker=call.worker, result=parse_result(answer))
        except ValueError as error:
            return PoolEvent(kind="result", worker=call.worker, reason=str(error))

    def _greet(self, worker: str, hello: Hello) -> PoolEvent:
        where = f"{hello.host}, process {hello.pid}"
        if hello.code_digest != code_digest():
            theirs, ours = hello.code_digest[:12], code_digest()[:12]
            raise ValueError(f"worker on {where} runs other code ({theirs}) than this one ({ours}): use one version")
        if hello.error:
            return PoolEvent(kind="lost", worker=worker, reason=f"{where}: {hello.error}")
        self._greeted = True
        return PoolEvent(kind="ready", worker=worker, reason=f"{where}, {hello.omp_threads} threads")

    def _obstacle(self) -> str:
        return waiting_for(ray.available_resources(), demand_of(self._resources))

    def _note(self, text: str) -> None:
        if text:
            self._events.append(PoolEvent(kind="note", worker="", reason=text))


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the process's signal handlers through a call that installs its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
