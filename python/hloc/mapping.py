"""`hloc.map`: many modules, by any executor, each once whatever dies meanwhile.

When a worker dies, a pool of processes says so of every job that was in it. These suspects are then done one at a
time, each with nobody beside it, so that a module that kills its worker is found: after so many attempts alone it
gets a row that says `killed`. All others are done as ever.
"""

from __future__ import annotations

import concurrent.futures
import os
from collections import deque
from pathlib import Path
from typing import Any, Callable, Deque, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from . import executors, program
from .errors import InternalError, OptionError
from .jobs import NAMES, Job, What, perform
from .options import arguments
from .records import Records, identity
from .source import source_of
from .table import Row, Table

Modules = Union[str, "os.PathLike[str]", Mapping[str, Any], Iterable[Any]]
Execution = Union[None, str, concurrent.futures.Executor, executors.Maker]
Progress = Callable[[int, int], None]

_IN_FLIGHT = 64  # jobs that an executor holds at a time, beside those that its workers do: their texts are in memory


class _Workers:
    """An executor, and another one like it when it has died."""

    def __init__(self, execution: Execution, jobs: Optional[int]) -> None:
        self._make: Optional[executors.Maker] = None
        self.executor: Optional[concurrent.futures.Executor] = None
        if execution is None or isinstance(execution, str):
            self._make = executors.maker_of(execution or "processes", jobs)
        elif isinstance(execution, concurrent.futures.Executor):
            self.executor = execution
        else:
            self._make = execution

    def submit(self, job: Job, times: bool) -> "concurrent.futures.Future[Row]":
        if self.executor is None:
            assert self._make is not None
            self.executor = self._make()
        return self.executor.submit(perform, job, times)

    def renew(self, error: BaseException) -> None:
        """After a worker was lost: a pool that is broken takes no more jobs. One that was given cannot be made
        again."""
        if not isinstance(error, concurrent.futures.BrokenExecutor):
            return  # the cluster goes on without that worker
        if self._make is None:
            raise InternalError(f"the executor is broken; give a function that makes one, to go on: {error}") from error
        self.end()

    def end(self) -> None:
        """Of executors that were made here."""
        if self._make is not None and self.executor is not None:
            self.executor.shutdown(wait=False)
            client = getattr(self.executor, "client", None)
            if client is not None:
                client.shutdown()
            self.executor = None


class _Sweep:
    def __init__(self, workers: _Workers, attempts: int, times: bool) -> None:
        self._workers, self._attempts, self._times = workers, attempts, times
        self._suspects: Deque[Job] = deque()
        self._lost: Dict[Tuple[str, str], int] = {}

    def rows(self, jobs: Iterable[Job]) -> Iterator[Row]:
        """In the order in which they come."""
        waiting = iter(jobs)
        flying: Dict["concurrent.futures.Future[Row]", Job] = {}
        try:
            yield from self._rows(waiting, flying)
        finally:
            for future in flying:  # of a sweep that ends early
                future.cancel()

    def _rows(self, waiting: Iterator[Job], flying: Dict["concurrent.futures.Future[Row]", Job]) -> Iterator[Row]:
        exhausted = False
        while True:
            while not exhausted and not self._suspects and len(flying) < _IN_FLIGHT:
                job = next(waiting, None)
                exhausted = job is None
                if job is not None:
                    self._submit(job, flying)
            if not flying:
                if self._suspects:
                    yield self._alone(self._suspects.popleft())
                elif exhausted:
                    return
                continue
            done, _ = concurrent.futures.wait(flying, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in sorted(done, key=_failed):  # what is done is kept, also where the rest cannot go on
                row = self._taken(future, flying.pop(future))
                if row is not None:
                    yield row

    def _submit(self, job: Job, flying: Dict["concurrent.futures.Future[Row]", Job]) -> None:
        try:
            flying[self._workers.submit(job, self._times)] = job
        except concurrent.futures.BrokenExecutor as error:  # it broke since the last future was taken
            self._suspects.append(job)
            self._workers.renew(error)

    def _taken(self, future: "concurrent.futures.Future[Row]", job: Job) -> Optional[Row]:
        try:
            return future.result()
        except BaseException as error:
            if not executors.is_lost_worker(error):
                raise
            self._workers.renew(error)
            self._suspects.append(job)
            return None

    def _alone(self, job: Job) -> Row:
        """With nobody beside it, until it has a row."""
        for _ in range(self._attempts):
            try:
                return self._workers.submit(job, self._times).result()
            except BaseException as error:
                if not executors.is_lost_worker(error):
                    raise
                self._workers.renew(error)
        message = f"its worker died {self._attempts} times with nothing else to do"
        return job.row("killed", exit_code=None, kind=None, message=message)


def _failed(future: "concurrent.futures.Future[Row]") -> bool:
    return future.cancelled() or future.exception() is not None


def map(
    what: What,
    modules: Modules,
    *,
    executor: Execution = None,
    jobs: Optional[int] = None,
    output: Union[None, str, "os.PathLike[str]"] = None,
    resume: bool = False,
    attempts: int = 2,
    limit: float = 600,
    times: bool = False,
    progress: Optional[Progress] = None,
    **options: Any,
) -> Table:
    """Does the same with many modules, a process of the program each, and gives a table with a row each, sorted by
    name.

    `what`: `"cubin"` compiles to machine code, `"run"` executes and compares with the interpreter, `"golden"` takes a
    digest of PTX and launches, `"compare"` sets hloc's kernels beside others; or a function of the HLO text that
    gives columns. `modules`: a folder, whose .hlo files are taken, also those in folders; names with what
    `hloc.compile` takes; or that alone, of which paths are their own names. `executor`: any of concurrent.futures, a
    function that makes one, or `"processes"` (the default), `"threads"`, `"dask"`, `"ray"`, `"mpi"`, with `jobs`
    workers.

    `output`: a file, .jsonl or .parquet, to which rows are written as they come, and which is sorted at the end; with
    `resume` modules that have a row there of the same text, options and program are not done again. `attempts`: how
    often a job that has lost its worker is tried alone before its row says `killed`. `limit`: seconds of a job, then
    `time-limit`. `times`: a column `seconds`, the only one that differs from one machine to another. `progress`: told
    how many of how many rows there are. `options`: those of the command line.

    What is wrong with a module is its row's `outcome`. Raises `OptionError` if the options are wrong, and
    `InternalError` if an executor that was given breaks.

    >>> rows = map("run", {"a": "f32[8] add(f32[8] x, f32[8] x)", "b": "nonsense("}, executor="threads")
    >>> [(row["name"], row["outcome"]) for row in rows]
    [('a', 'ok'), ('b', 'invalid')]
    """
    if isinstance(what, str) and what not in NAMES:
        raise OptionError(f"there is no `{what}`; there are {', '.join(NAMES)}", 2)
    words = tuple(arguments(options, ("manifest", "verdict", "outputs", "golden", "update_golden", "report")))
    version = program.fingerprint()
    wanted = [Job(name, text, what, words, version, limit) for name, text in texts_of(modules)]
    records = Records(Path(output), resume) if output is not None else None
    workers = _Workers(executor, jobs)
    rows: Dict[Tuple[str, str], Row] = records.rows if records else {}
    todo = [job for job in wanted if (job.name, job.key) not in rows]
    try:
        for row in _Sweep(workers, attempts, times).rows(todo):
            if records is not None:
                records.add(row)
            else:
                rows.setdefault(identity(row), row)
            if progress is not None:
                progress(sum((job.name, job.key) in rows for job in wanted), len(wanted))
        identities = [(job.name, job.key) for job in wanted]
        return records.finish(identities) if records else Table(rows[one] for one in sorted(identities))
    finally:
        workers.end()
        if records is not None:
            records.close()


def texts_of(modules: Modules) -> List[Tuple[str, str]]:
    """Names and HLO texts, in the order of the names.

    Raises `OptionError` if two have one name, or a folder has none.
    """
    found: List[Tuple[str, str]] = []
    if isinstance(modules, (str, os.PathLike)) and Path(modules).is_dir():
        folder = Path(modules)
        found = [(path.relative_to(folder).as_posix(), _read(path)) for path in sorted(folder.rglob("*.hlo"))]
        if not found:
            raise OptionError(f"there are no .hlo files in `{folder}`", 2)
    elif isinstance(modules, Mapping):
        found = [(str(name), source_of(one).text) for name, one in modules.items()]
    else:
        every: Sequence[Any] = [modules] if isinstance(modules, (str, os.PathLike)) else list(modules)
        found = [_named(i, one) for i, one in enumerate(every)]
    names = [name for name, _ in found]
    if len(set(names)) < len(names):
        raise OptionError(f"two modules are called `{next(one for one in names if names.count(one) > 1)}`", 2)
    return sorted(found)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="surrogateescape")


def _named(number: int, module: Any) -> Tuple[str, str]:
    if isinstance(module, tuple) and len(module) == 2:
        return str(module[0]), source_of(module[1]).text
    source = source_of(module)
    return source.path or f"module {number}", source.text
