"""`hloc.run` and `hloc.check`: kernels executed without a GPU, and compared with the interpreter of HLO."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from . import program
from .arrays import are_concrete, read_arrays, write_arrays
from .errors import Diagnostic, InputError, Undecided, error_for
from .options import arguments
from .source import Source, source_of
from .table import Table

_TAKEN = ("outputs", "verdict", "repeat_verdict")
_BY_EXIT_CODE = {4: "wrong", 5: "undecided"}


class Run:
    """What `run` gives.

    `verdict` is `"agrees"`, `"wrong"`, `"undecided"` or, where nothing was compared, `"executed"`; `agreement` what
    agrees with what, in words; `results` the arrays computed, in the order of the module's results, of the first
    regime; `value` the same in the form that the function returns; `findings` what is wrong, as diagnostics;
    `diagnostics` these and the warnings; `data` the whole of `--verdict` as a dictionary.
    """

    def __init__(
        self, source: Source, outcome: program.Outcome, data: Dict[str, Any], results: Tuple[Any, ...]
    ) -> None:
        self.exit_code = outcome.exit_code
        self.data = data
        self.verdict = str(data["verdict"])
        self.agreement = str(data.get("agreement", ""))
        self.results = results
        self.diagnostics: List[Diagnostic] = outcome.diagnostics
        self._source = source
        self._other = outcome.other

    @property
    def findings(self) -> List[Diagnostic]:
        """What is wrong with the kernels or their results, or cannot be decided."""
        return [one for one in self.diagnostics if one.is_error]

    @property
    def value(self) -> Any:
        """The results in the form that the function returns; of other modules the only one, or a tuple."""
        return self._source.unflatten(self.results)

    @property
    def regimes(self) -> List[str]:
        """Kinds of generated inputs, in order; `"given"` of inputs that were given."""
        return [str(one.get("regime", "given")) for one in self.data.get("runs", [])]

    @property
    def counters(self) -> Table:
        """With `counters=True`: a row with what was counted in the first regime: instructions, requests, sectors, bank
        conflicts."""
        rows = [(one.get("regime", "given"), one["counters"]) for one in self.data.get("runs", []) if "counters" in one]
        return Table(_counter_row(regime, counters) for regime, counters in rows)

    @property
    def estimates(self) -> Table:
        """With `estimate=True`: a row a kernel, of how long it would take by what was counted."""
        return Table(
            {"regime": one.get("regime", "given"), **row}
            for one in self.data.get("runs", [])
            if "estimate" in one
            for row in one["estimate"]["kernels"]
        )

    def raise_if_wrong(self) -> "Run":
        """Itself if nothing is wrong. Raises `Defect`, of which `Disagreement` is one, or `Undecided`."""
        if self.exit_code:
            raise error_for(self.exit_code, self.diagnostics, self._other)
        return self

    def __repr__(self) -> str:
        return f"<hloc.Run: {self.agreement or self.verdict}>"


def _counter_row(regime: str, counters: Dict[str, Any]) -> Dict[str, Any]:
    row: Dict[str, Any] = {"regime": regime}
    for name, count in counters["instructions"].items():
        row[name.replace(" ", "_").replace("-", "_") + "_warps"] = count["warps"]
    row.update({name: value for name, value in counters.items() if isinstance(value, (int, float))})
    return row


def run(
    what: Any,
    *args: Any,
    inputs: Any = None,
    target: Optional[str] = None,
    lower_for: Optional[str] = "cuda",
    seconds: Optional[float] = None,
    **options: Any,
) -> Run:
    """Compiles a module, executes its kernels on the emulator and compares the results with the interpreter's.

    `what` and `args` are as for `compile`. `inputs`: what is computed on. A sequence of arrays, one a parameter; a path
    of an .npz file; `"given"`: the `args`; `"generated"`: values that fit the ops, in several regimes. By default those
    that were given, if they are arrays. `seconds`: the program is stopped then. `options`: those of `hloc run`, such as
    `counters=True`, `estimate=True`, `check=["bounds", "races"]`, `platform="interpreter"`, `f32_dots="tf32"`.

    Findings and results that differ are data of the `Run`. Raises `InputError`, `OptionError`, `Unsupported` or
    `InternalError` where there is nothing to run.

    >>> run("f32[8] add(f32[8] x, f32[8] x)").verdict
    'agrees'
    """
    source = source_of(what, args, lower_for)
    if target is not None:
        options = {"target": target, **options}
    with tempfile.TemporaryDirectory(prefix="hloc-") as folder:
        verdict, outputs = Path(folder) / "verdict.json", Path(folder) / "outputs.npz"
        line = ["run", source.argument, f"--verdict={verdict}", f"--outputs={outputs}"]
        given = _inputs_file(source, inputs, Path(folder))
        if given is not None:
            line.append(f"--inputs={given}")
        line += arguments(options, _TAKEN + ("inputs",))
        outcome = program.call(line, source.standard_input, seconds).check(4, 5)
        data = json.loads(verdict.read_text(encoding="utf-8")) if verdict.is_file() else _ended(outcome)
        results = tuple(read_arrays(outputs)) if outputs.is_file() else ()
    return Run(source, outcome, data, results)


def _ended(outcome: program.Outcome) -> Dict[str, Any]:
    """Of a run that its --timeout ended."""
    return {"verdict": _BY_EXIT_CODE.get(outcome.exit_code, "executed"), "exit_code": outcome.exit_code, "runs": []}


def _inputs_file(source: Source, inputs: Any, folder: Path) -> Optional[str]:
    """The .npz file of the arguments; None if they are generated."""
    if inputs is None and source.arguments is None:
        raise InputError("which arguments are static cannot be told: give inputs=[...] or inputs='generated'", 1)
    if inputs is None:
        inputs = "given" if are_concrete(source.arguments or ()) else "generated"
    if isinstance(inputs, (str, Path)) and str(inputs) not in ("given", "generated"):
        return str(inputs)
    if isinstance(inputs, str) and inputs == "generated":
        return None
    leaves = source.arguments or () if isinstance(inputs, str) else tuple(inputs)
    if not are_concrete(leaves):
        raise InputError("inputs are to be those that were given, but there are none with values", 1)
    write_arrays(folder / "inputs.npz", leaves, source.dtypes)
    return str(folder / "inputs.npz")


def check(what: Any, *args: Any, inputs: Any = "generated", undecided: str = "raise", **options: Any) -> Run:
    """A test in one line: that the kernels of a module give what its HLO means, and that nothing is wrong with them.

        def test_softmax():
            hloc.check(jax.nn.softmax, jnp.zeros((64, 1000)))

    Arguments are those of `run`; by default `args` tell shapes and types alone, and inputs are generated in all regimes
    that apply, special values among them. Gives the `Run` if all agrees.

    Raises `Disagreement` if results differ and `Defect` if a check of the emulator has found something: both are
    `AssertionError`. Where the reference cannot tell whether results are right, raises `Undecided`, which is none; or
    skips the test with `undecided="skip"`, or accepts it with `undecided="accept"`. Other errors as `run`.
    """
    if undecided not in ("raise", "skip", "accept"):
        raise ValueError(f"undecided is `raise`, `skip` or `accept`, not `{undecided}`")
    result = run(what, *args, inputs=inputs, **options)
    try:
        return result.raise_if_wrong()
    except Undecided as error:
        if undecided == "skip":
            import pytest

            pytest.skip(str(error))
        if undecided == "accept":
            return result
        raise
