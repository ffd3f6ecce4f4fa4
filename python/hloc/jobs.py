"""One module of many: what is done with it, and the row that comes of it.

A job carries the module's text, so that workers need no file system in common, and is done by a process of the
program that sees nothing else: the same job gives the same row on every machine with the same program and assembler,
times apart.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import program
from .errors import Diagnostic, OptionError, error_for
from .table import Row

What = Union[str, Callable[[str], Row]]

_OUTCOMES = {0: "ok", 1: "invalid", 3: "unsupported", 4: "wrong", 5: "undecided"}
_MEMORY_GIB = 8  # of `hloc run`, which otherwise takes what the machine has


@dataclass(frozen=True)
class Job:
    """`name` is what the row is called, `text` HLO; `what` is `"cubin"`, `"run"`, `"golden"` or `"compare"`, or a
    function of the text that gives more columns; `words` are options of the command line; `version` is the
    program's fingerprint; `limit` how many seconds it may take."""

    name: str
    text: str
    what: What
    words: Tuple[str, ...] = ()
    version: str = ""
    limit: float = 600

    @property
    def key(self) -> str:
        """Of the text, what is done with it, the options and the program: what the row depends on."""
        what = self.what if isinstance(self.what, str) else f"{self.what.__module__}.{self.what.__qualname__}"
        return hashlib.sha256(json.dumps([self.text, what, self.words, self.version]).encode()).hexdigest()[:32]

    def row(self, outcome: str, **more: Any) -> Row:
        """One that says how it went."""
        what = self.what if isinstance(self.what, str) else self.what.__qualname__
        return {"name": self.name, "key": self.key, "what": what, "outcome": outcome, **more}


def perform(job: Job, times: bool = False) -> Row:
    """Does a job. `outcome` of the row is `ok`, `invalid`, `unsupported`, `wrong`, `undecided`, `crashed` or
    `time-limit`.

    Raises `OptionError` if the options are wrong, which all jobs have, or the worker has another program.
    """
    if job.version and program.fingerprint() != job.version:
        raise OptionError(f"a worker has another program: {program.fingerprint()}, not {job.version}", 2)
    begin = time.monotonic()
    row = job.row("ok", **job.what(job.text)) if callable(job.what) else _BY_NAME[job.what](job)
    if times:
        row["seconds"] = round(time.monotonic() - begin, 3)
    return row


def _ended(job: Job, exit_code: int, diagnostics: List[Diagnostic], other: str, **more: Any) -> Row:
    if exit_code == 2:
        raise error_for(exit_code, diagnostics, other)
    first = next((one for one in diagnostics if one.is_error), None)
    message = first.message if first else ""
    outcome = _OUTCOMES.get(exit_code, "crashed")
    if message.startswith("time-limit"):  # where it was when time was up is another place every time
        outcome, message, more = "time-limit", "", {}
    kind = first.kind if first else None
    return job.row(outcome, exit_code=exit_code, kind=kind, message=message, **more)


def _call(job: Job, words: List[str]) -> Optional[program.Outcome]:
    """None if it did not end in time."""
    return program.call_in_time([*words, "--jobs=1", *job.words], job.text, job.limit)


def _time_limit(job: Job) -> Row:
    return job.row("time-limit", exit_code=None, kind=None, message="")


def _cubin(job: Job) -> Row:
    with tempfile.TemporaryDirectory(prefix="hloc-") as folder:
        cubin, manifest = Path(folder) / "module.cubin", Path(folder) / "manifest.json"
        outcome = _call(job, ["-", f"--output={cubin}", f"--manifest={manifest}"])
        if outcome is None:
            return _time_limit(job)
        made = _described(manifest)
        if outcome.exit_code == 0:
            code = cubin.read_bytes()
            made.update(cubin_bytes=len(code), cubin_sha256=hashlib.sha256(code).hexdigest())
    return _ended(job, outcome.exit_code, outcome.diagnostics, outcome.other, **made)


def _described(path: Path) -> Row:
    if not path.is_file():
        return {}
    manifest = json.loads(path.read_text(encoding="utf-8"))
    resources = [kernel.get("resources", {}) for kernel in manifest["kernels"]]
    return {
        "target": manifest["target"],
        "tools": ", ".join(f"{tool['name']} {tool['version']}" for tool in manifest["tools"]),
        "kernels": len(resources),
        "registers": max((one.get("registers", 0) for one in resources), default=0),
        "spill_bytes": sum(one.get("spill_store_bytes", 0) for one in resources),
    }


def _run(job: Job) -> Row:
    with tempfile.TemporaryDirectory(prefix="hloc-") as folder:
        verdict = Path(folder) / "verdict.json"
        memory = [] if any(word.startswith("--memory") for word in job.words) else [f"--memory={_MEMORY_GIB}"]
        outcome = _call(job, ["run", "-", f"--verdict={verdict}", *memory])
        if outcome is None:
            return _time_limit(job)
        data: Dict[str, Any] = json.loads(verdict.read_text(encoding="utf-8")) if verdict.is_file() else {}
    found = {"verdict": data.get("verdict"), "agreement": data.get("agreement", "")}
    return _ended(job, outcome.exit_code, outcome.diagnostics, outcome.other, **found)


def _golden(job: Job) -> Row:
    """A digest of what a golden file would have: PTX, launches, registers."""
    with tempfile.TemporaryDirectory(prefix="hloc-") as folder:
        outcome = _call(job, ["-", f"--golden={folder}", "--update-golden"])
        if outcome is None:
            return _time_limit(job)
        texts = [path.read_bytes() for path in sorted(Path(folder).iterdir())]
    made = {"golden_sha256": hashlib.sha256(b"".join(texts)).hexdigest()} if outcome.exit_code == 0 else {}
    return _ended(job, outcome.exit_code, outcome.diagnostics, outcome.other, **made)


def _compare(job: Job) -> Row:
    """hloc's kernels beside those of every op for itself, unless --with names others: a column for each number."""
    peers = [] if any(word.startswith("--with") for word in job.words) else ["--with=hloc:--fusion=none"]
    outcome = program.call_in_time(["compare", "-", "--json", *peers, *job.words], job.text, job.limit)
    if outcome is None:
        return _time_limit(job)
    columns: Row = {}
    if outcome.output.strip():
        for row in json.loads(outcome.text)["inputs"][0]["rows"]:
            columns.update({f"{row['name']} {name}": value for name, value in row.items() if name != "name"})
    return _ended(job, outcome.exit_code, outcome.diagnostics, outcome.other, **columns)


_BY_NAME: Dict[str, Callable[[Job], Row]] = {"cubin": _cubin, "run": _run, "golden": _golden, "compare": _compare}
NAMES = tuple(_BY_NAME)
