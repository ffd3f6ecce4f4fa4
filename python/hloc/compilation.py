"""`hloc.compile`: PTX, machine code and what describes them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from . import program
from .errors import Diagnostic
from .options import arguments
from .page import Page
from .source import Source, source_of
from .table import Table

if TYPE_CHECKING:
    from .graphs import Graph

_TAKEN = ("manifest", "report", "report_diff")


class Compiled:
    """What `compile` gives.

    `ptx` is text; `manifest` the description as a dictionary (`src/kernel/manifest.schema.json` has its form); `hlo`
    the text that was compiled; `diagnostics` the warnings and remarks; `output` what an option such as
    `list_kernels=True` prints. Called with arrays on a GPU, it launches: see `hloc.launch`.
    """

    def __init__(
        self,
        source: Source,
        options: Dict[str, Any],
        ptx: str,
        manifest: Dict[str, Any],
        diagnostics: List[Diagnostic],
        output: str = "",
    ) -> None:
        self._source = source
        self._options = options
        self.ptx = ptx
        self.manifest = manifest
        self.diagnostics = diagnostics
        self.output = output
        self._cubin: Optional[bytes] = None
        self._launcher: Any = None

    @property
    def hlo(self) -> str:
        """The text that was compiled; of a function, what jax makes of it."""
        return self._source.text

    @property
    def name(self) -> str:
        """The module's name."""
        return str(self.manifest["module"])

    @property
    def target(self) -> str:
        """Such as `sm_90`."""
        return str(self.manifest["target"])

    @property
    def cubin(self) -> bytes:
        """Machine code, made when it is asked for first. Raises `Unsupported` where there is neither nvJitLink nor
        ptxas."""
        if self._cubin is None:
            self._cubin = self._written("cubin")
        return self._cubin

    @property
    def kernels(self) -> Table:
        """A row a kernel: what it is called, what it was made of and by which emitter, how it is launched, and the
        registers and bytes of shared memory that it takes, None where there is no assembler to tell."""
        return Table(_kernel_row(kernel) for kernel in self.manifest["kernels"])

    def emit(self, kind: str) -> Union[str, bytes]:
        """What `--emit` writes: "hlo-fused", "mlir", "llvm", "ptx", "dot", ... as text, "cubin" and "fatbin" as
        bytes."""
        written = self._written(kind)
        return written if kind in ("cubin", "fatbin") else written.decode("utf-8")

    def _written(self, kind: str) -> bytes:
        with tempfile.TemporaryDirectory(prefix="hloc-") as folder:
            path = Path(folder) / "output"
            line = [self._source.argument, f"--emit={kind}", f"--output={path}", *arguments(self._options, _TAKEN)]
            program.call(line, self._source.standard_input).check()
            return path.read_bytes()

    def report(self) -> Page:
        """A page for a browser: steps, memory, times, and of each kernel what every pass made of it, line by line.
        Jupyter shows it; `.save(path)` writes it."""
        with tempfile.TemporaryDirectory(prefix="hloc-") as folder:
            path = Path(folder) / "report.html"
            line = [self._source.argument, f"--report={path}", *arguments(self._options, _TAKEN)]
            program.call(line, self._source.standard_input).check()
            return Page(path.read_text(encoding="utf-8"))

    def __call__(self, *arrays: Any) -> Any:
        """Runs the module on the GPU: see `hloc.launch.Launcher`. Gives the results in the form that the function
        has."""
        return self._source.unflatten(self._launcher_of_module()(*self._source.parameters(arrays)))

    def _launcher_of_module(self) -> Any:
        if self._launcher is None:
            from .launch import Launcher

            self._launcher = Launcher(self.manifest, self.ptx)
        return self._launcher

    def graph(self, *arrays: Any) -> Graph:
        """The module as one CUDA graph, for arrays like those of a call: see `hloc.graphs.Graph`."""
        from .graphs import Graph

        return Graph(self._launcher_of_module(), arrays, self._source.parameters, self._source.unflatten)

    def __repr__(self) -> str:
        names = ", ".join(kernel["name"] for kernel in self.manifest["kernels"])
        return f"<hloc.Compiled {self.name} for {self.target}: {names or 'no kernels'}>"

    def _repr_html_(self) -> str:
        return self.kernels._repr_html_()


def _call(line: List[str], standard_input: Optional[str], folder: Path) -> program.Outcome:
    """Machine code is only made to describe the kernels: an assembler without the target is no reason to fail."""
    outcome = program.call(line, standard_input)
    if any(one.is_error and one.kind == "unsupported-target" for one in outcome.diagnostics):
        outcome = program.call([*line, "--assembler=ptxas", f"--ptxas={folder / 'none'}"], standard_input)
    return outcome.check()


def _kernel_row(kernel: Dict[str, Any]) -> Dict[str, Any]:
    resources = kernel.get("resources", {})
    return {
        "kernel": kernel["name"],
        "instruction": kernel["instruction"],
        "hero": kernel["hero"],
        "grid": tuple(kernel["grid"]),
        "block": tuple(kernel["block"]),
        "registers": resources.get("registers"),
        "spill_bytes": resources.get("spill_store_bytes"),
        "shared_bytes": kernel["static_shared_bytes"] + kernel["dynamic_shared_bytes"],
        "bytes_read": kernel["bytes_read"],
        "bytes_written": kernel["bytes_written"],
        "plan": kernel["plan"],
    }


def compile(
    what: Any, *args: Any, target: Optional[str] = None, lower_for: Optional[str] = "cuda", **options: Any
) -> Compiled:
    """Compiles a module to PTX.

    `what`: a function, jitted or plain, with its example arguments behind it (arrays or `jax.ShapeDtypeStruct`); a
    `jax.stages.Lowered` or `Compiled`; HLO text, or StableHLO where jaxlib is installed; or the path of a file.
    `target`: `sm_70` to `sm_121`, or a product such as `"a100"`; the program's default if None. `lower_for`: the
    platform for which jax lowers a function. `options`: those of the command line (`f32_dots="tf32"` is
    `--f32-dots=tf32`).

    Raises the `Error` that the program's exit code stands for.

    >>> compiled = compile("f32[8] add(f32[8] x, f32[8] x)", target="h100")
    >>> compiled
    <hloc.Compiled module_entry for sm_90a: entry>
    >>> compiled.kernels[0]["hero"]
    'loop'
    """
    source = source_of(what, args, lower_for)
    if target is not None:
        options = {"target": target, **options}
    with tempfile.TemporaryDirectory(prefix="hloc-") as folder:
        ptx, manifest = Path(folder) / "module.ptx", Path(folder) / "manifest.json"
        line = [source.argument, f"--output={ptx}", f"--manifest={manifest}", *arguments(options, _TAKEN)]
        outcome = _call(line, source.standard_input, Path(folder))
        return Compiled(
            source,
            options,
            ptx.read_text(encoding="utf-8"),
            json.loads(manifest.read_text(encoding="utf-8")),
            outcome.diagnostics,
            outcome.text,
        )
