"""What may be compiled or run: jax functions, lowered and compiled ones, texts and files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Optional, Sequence, Tuple

from . import from_jax
from .arrays import as_numpy
from .errors import InputError


def _as_they_are(leaves: Sequence[Any]) -> Any:
    return leaves[0] if len(leaves) == 1 else tuple(leaves)


@dataclass(frozen=True)
class Source:
    """A module, as the program gets it: `path` names a file, else `text` goes to its standard input.

    `text` is HLO. `arguments` are the module's parameters among what was given beside it; None where that cannot be
    told, for some are static. Of a function `kept` says which of its `count` arguments are parameters, and `dtypes`
    of what type these are; `unflatten` makes its result of the module's results.
    """

    text: str
    path: Optional[str] = None
    arguments: Optional[Tuple[Any, ...]] = ()
    count: int = 0
    kept: Optional[Tuple[int, ...]] = None
    dtypes: Optional[Tuple[Any, ...]] = None
    unflatten: Callable[[Sequence[Any]], Any] = field(default=_as_they_are)

    def parameters(self, arguments: Sequence[Any]) -> Tuple[Any, ...]:
        """The module's parameters among the arguments of a call; arrays of the host become what jax makes of them."""
        leaves = from_jax.leaves_of(arguments)
        if self.kept is None:
            return tuple(leaves)
        if len(leaves) != self.count:
            raise InputError(
                f"the function has {self.count} arguments that are not static, and {len(leaves)} are given", 1
            )
        used = [leaves[i] for i in self.kept]
        dtypes = self.dtypes or [None] * len(used)
        on_device = [hasattr(one, "__cuda_array_interface__") for one in used]
        return tuple(one if there else as_numpy(one, dtype) for one, dtype, there in zip(used, dtypes, on_device))

    @property
    def argument(self) -> str:
        """What stands for it on the command line."""
        return self.path if self.path is not None else "-"

    @property
    def standard_input(self) -> Optional[str]:
        """What the program reads, if it is no file."""
        return self.text if self.path is None else None


def source_of(what: Any, arguments: Sequence[Any] = (), lower_for: Optional[str] = "cuda") -> Source:
    """`what`: a function, jitted or not, with example `arguments`; a `jax.stages.Traced`, `Lowered` or `Compiled`, or
    a `jax.export.Exported`; HLO or StableHLO as text; a `pathlib.Path`, or a string without line breaks, that names a
    file. `lower_for`: the platform for which jax lowers a function.

    Raises `InputError` for what is none of these.
    """
    if isinstance(what, Source):
        return what
    if isinstance(what, os.PathLike) or (isinstance(what, str) and _is_path(what)):
        return _of_file(Path(what), arguments)
    if isinstance(what, str):
        return _of_text(what, arguments)
    if from_jax.is_lowered(what):
        return _of_program(from_jax.program_of(what), arguments)
    if from_jax.is_traced(what):
        return _of_program(from_jax.program_of(from_jax.lower_traced(what, lower_for)), arguments)
    if from_jax.is_exported(what):
        return _of_text(from_jax.from_stablehlo(what.mlir_module()), arguments)
    if from_jax.is_compiled(what):
        return _of_text(from_jax.text_of_compiled(what), arguments)
    if callable(what):
        return _of_program(from_jax.program_of(from_jax.lower(what, arguments, lower_for)), arguments)
    raise InputError(
        f"`{type(what).__name__}` is no module: functions, jax.stages.Lowered, HLO text and paths are taken", 1
    )


def _is_path(text: str) -> bool:
    """A line is one unless it is an instruction, which has parentheses, as few files have."""
    return "\n" not in text and bool(text.strip()) and ("(" not in text or os.path.isfile(text))


def _of_text(text: str, arguments: Sequence[Any], path: Optional[str] = None) -> Source:
    if from_jax.looks_like_stablehlo(text):
        text, path = from_jax.from_stablehlo(text), None
    return Source(text, path, tuple(from_jax.leaves_of(arguments)))


def _of_file(path: Path, arguments: Sequence[Any]) -> Source:
    try:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        text = ""  # the program says why
    return _of_text(text, arguments, str(path))


def _of_program(program: from_jax.JaxProgram, arguments: Sequence[Any]) -> Source:
    given = from_jax.leaves_of(arguments)
    used: Optional[Tuple[Any, ...]] = ()
    if given:
        used = tuple(given[i] for i in program.kept) if len(given) == program.count else None
    return Source(program.text, None, used, program.count, program.kept, program.dtypes, program.unflatten)
