"""What the program tells of a module as rows: why it fused what, how long kernels take, what makes them slow, and how
they compare with those of others."""

from __future__ import annotations

import json
from typing import Any, Dict, Optional, Sequence

from . import program
from .options import arguments
from .source import source_of
from .table import Table


class Explanation(Table):
    """What `explain` gives: a row a decision. `kernels`, `tiles` and `advice` are tables beside it."""

    def __init__(self, data: Dict[str, Any]) -> None:
        super().__init__(data["decisions"])
        #: The kernels that fusing ended with, and what they take by the model that it searched with.
        self.kernels = Table(data["kernels"])
        #: Of a dot or convolution that was named: the tiles that its kernel could have, the fastest first.
        self.tiles = Table(data["tiles"])
        #: What would save time, tried and estimated.
        self.advice = Table(data["advice"])


def _ask(what: Any, args: Sequence[Any], lower_for: Optional[str], options: Dict[str, Any], own: str) -> Any:
    source = source_of(what, args, lower_for)
    line = [source.argument, own, *arguments(options, (own[2:].split("=")[0],))]
    outcome = program.call(line, source.standard_input)
    found_something = own == "--lint=json" and outcome.exit_code == 4
    return json.loads(outcome.check(*([4] if found_something else [])).text)


def explain(
    what: Any, *args: Any, about: Optional[str] = None, lower_for: Optional[str] = "cuda", **options: Any
) -> Explanation:
    """Why instructions were fused or not: a row for each edge of the program with `producer`, `user`, `fused`,
    `reason`, and what that saves, `saves_bytes` and `saves_us` (microseconds), negative where fusing would cost.
    `about`: one instruction. `what`, `args` and errors are as for `compile`.

    >>> text = "HloModule m\\nENTRY e { p = f32[8] parameter(0) a = f32[8] add(p, p) ROOT t = f32[8] tanh(a) }"
    >>> [(row["producer"], row["user"], row["fused"]) for row in explain(text)]
    [('a', 't', True)]
    """
    own = "--explain=json" + (f":{about}" if about else "")
    return Explanation(_ask(what, args, lower_for, options, own))


def estimate(what: Any, *args: Any, lower_for: Optional[str] = "cuda", **options: Any) -> Table:
    """How long each kernel takes by the cost model: a row a kernel, times in microseconds (`total_us`; `memory_us`,
    `issue_us`, `shared_us` and `latency_us` are what it is made of), and what bounds it. `.about` has what holds of
    all: `device`, `total_us` with copies and fills, `memory`; with `what_if="..."` also what that would change.
    `device="h200"` names another device.

    >>> rows = estimate("f32[8] add(f32[8] x, f32[8] x)")
    >>> rows[0]["launches"], rows.about["device"]
    (1, 'h100')
    """
    data = _ask(what, args, lower_for, options, "--estimate=json")
    rows = data.pop("kernels")
    return Table(rows, data)


def lint(what: Any, *args: Any, lower_for: Optional[str] = "cuda", **options: Any) -> Table:
    """What in the PTX makes kernels slow, by named rules: a row a finding. None are found in most. A path may name PTX.

    >>> lint("f32[8] add(f32[8] x, f32[8] x)")
    []
    """
    return Table(_ask(what, args, lower_for, options, "--lint=json")["findings"])


def compare(
    what: Any, *args: Any, peers: Sequence[str] = (), lower_for: Optional[str] = "cuda", run_options: Sequence[str] = ()
) -> Table:
    """Kernels of several compilers for one module, by counters and estimate: a row each. `peers`: what `--with` of
    `hloc compare` takes: `NAME.ptx`, `NAME.cu`, `hloc:OPTIONS`, `xla`; `run_options`: words for `hloc run`, as on the
    command line. `agrees` of a row says whether it agrees with the interpreter.

    >>> [row["name"] for row in compare("f32[8] add(f32[8] x, f32[8] x)", peers=["hloc:--fusion=none"])]
    ['hloc', 'hloc:--fusion=none']
    """
    source = source_of(what, args, lower_for)
    words = ["compare", source.argument, "--json", *(f"--with={peer}" for peer in peers)]
    outcome = program.call(words + (["--", *run_options] if run_options else []), source.standard_input)
    data = json.loads(outcome.check(*([4, 5] if outcome.output.strip() else [])).text)
    rows = [row for one in data["inputs"] for row in one["rows"]]
    return Table(rows, {"device": data["device"]})
