"""hloc from Python: HLO compiled to PTX, executed without a GPU and compared with what it means.

    import hloc
    compiled = hloc.compile(jax.nn.gelu, x)       # .ptx .cubin .manifest .kernels .report() .hlo .diagnostics
    run = hloc.run(jax.nn.gelu, x)                # .value .verdict .findings .counters
    hloc.check(jax.nn.gelu, x)                    # a test: raises if kernels are wrong
    hloc.explain(f, x), hloc.estimate(f, x)       # rows, which are data frames where there is pandas
    hloc.map("run", folder)                       # many modules, on one machine or a cluster

Everything is done by the program `hloc`, which is started for each call.
"""

from .analysis import Explanation, compare, estimate, explain, lint
from .compilation import Compiled, compile
from .device import DeviceArray
from .errors import (
    Defect,
    Diagnostic,
    Disagreement,
    Error,
    InputError,
    InternalError,
    Note,
    OptionError,
    ProgramNotFound,
    Undecided,
    Unsupported,
)
from .execution import Run, check, run
from .graphs import Graph
from .mapping import map
from .page import Page
from .program import find_program, version
from .table import Table

__all__ = [
    "Compiled",
    "Defect",
    "DeviceArray",
    "Diagnostic",
    "Disagreement",
    "Error",
    "Explanation",
    "Graph",
    "InputError",
    "InternalError",
    "Note",
    "OptionError",
    "Page",
    "ProgramNotFound",
    "Run",
    "Table",
    "Undecided",
    "Unsupported",
    "check",
    "compare",
    "compile",
    "estimate",
    "explain",
    "find_program",
    "lint",
    "map",
    "run",
    "version",
]
