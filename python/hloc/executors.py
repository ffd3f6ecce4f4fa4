"""Who does the jobs: processes of this machine, or of a cluster by Dask, Ray or MPI.

Any executor of `concurrent.futures` will do. What is here makes those that `python -m hloc sweep` has names for, and
knows by which exceptions they say that a worker has died.
"""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
from typing import Any, Callable, Dict, Optional

from .errors import OptionError

Maker = Callable[[], concurrent.futures.Executor]

_LOST = frozenset(
    [
        "BrokenExecutor",  # concurrent.futures: processes, threads; mpi4py.futures
        "KilledWorker",  # Dask, after several of its own attempts
        "CommClosedError",
        "FutureCancelledError",
        "CancelledError",
        "WorkerCrashedError",  # Ray
        "NodeDiedError",
        "OutOfMemoryError",
    ]
)


def is_lost_worker(error: BaseException) -> bool:
    """Whether an exception of a future says that who did the job is gone, rather than what came of it."""
    return any(kind.__name__ in _LOST for kind in type(error).__mro__)


def num_cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processes(jobs: Optional[int] = None) -> concurrent.futures.Executor:
    """Processes of this machine, begun anew rather than forked: by default one a core."""
    context = multiprocessing.get_context("spawn")
    return concurrent.futures.ProcessPoolExecutor(jobs or num_cores(), mp_context=context)


def dask(jobs: Optional[int] = None, scheduler: Optional[str] = None) -> concurrent.futures.Executor:
    """Dask's: of the cluster at an address, such as `tcp://host:8786`; else worker processes of this machine."""
    distributed = _needed("distributed", "dask")
    if scheduler:
        client = distributed.Client(scheduler)
    else:
        client = distributed.Client(n_workers=jobs or num_cores(), threads_per_worker=1, dashboard_address=None)
    executor = client.get_executor(pure=False)
    executor.client = client  # lives as long
    return executor  # type: ignore[no-any-return]


def mpi(jobs: Optional[int] = None) -> concurrent.futures.Executor:
    """mpi4py's: `mpiexec -n 5 python -m mpi4py.futures -m hloc sweep ...` has four workers and who tells them."""
    return _needed("mpi4py.futures", "mpi4py").MPIPoolExecutor(jobs)  # type: ignore[no-any-return]


class RayExecutor(concurrent.futures.Executor):
    """Ray's tasks as an executor, which Ray itself lacks. A task whose worker dies is not tried again here."""

    def __init__(self, jobs: Optional[int] = None, address: Optional[str] = None) -> None:
        self._ray = _needed("ray", "ray")
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            own: Dict[str, Any] = {"num_cpus": jobs or num_cores(), "include_dashboard": False}
            self._ray.init(address=address, log_to_driver=False, **({} if address else own))

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Any:
        """A future of `function(*arguments, **named)`, done by a worker of Ray's with one core."""
        remote = self._ray.remote(function).options(max_retries=0, num_cpus=1)
        return remote.remote(*arguments, **named).future()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leaves Ray, unless somebody else has joined it before."""
        if self._is_ours:
            self._ray.shutdown()


def _needed(module: str, package: str) -> Any:
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise OptionError(f"`{package}` is needed, and not installed: {error}", 2) from None


def maker_of(name: str, jobs: Optional[int] = None, scheduler: Optional[str] = None) -> Maker:
    """By name: `processes`, `threads`, `dask`, `ray` or `mpi`."""
    makers: Dict[str, Maker] = {
        "processes": lambda: processes(jobs),
        "threads": lambda: concurrent.futures.ThreadPoolExecutor(jobs or num_cores()),
        "dask": lambda: dask(jobs, scheduler),
        "ray": lambda: RayExecutor(jobs, scheduler),
        "mpi": lambda: mpi(jobs),
    }
    if name not in makers:
        raise OptionError(f"there is no executor `{name}`; there are {', '.join(makers)}", 2)
    return makers[name]
