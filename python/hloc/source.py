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

    `text` is HLO. `arguments` are the leaves of what was given beside a function, of those that it uses, whose numbers are
    `kept`, and `dtypes` their types as jax has them, if it does; `unflatten` makes a function's result of the module's.
    """

    text: str
    path: Optional[str] = None
    arguments: Tuple[Any, ...] = ()
    kept: Optional[Tuple[int, ...]] = None
    dtypes: Optional[Tuple[Any, ...]] = None
    unflatten: Callable[[Sequence[Any]], Any] = field(default=_as_they_are)

    def parameters(self, arguments: Sequence[Any]) -> Tuple[Any, ...]:
        """The module's parameters among the arguments of a call; arrays of the host become what jax makes of them."""
        leaves = from_jax.leaves_of(arguments)
        if self.kept is None or len(leaves) <= max(self.kept, default=-1):
            return tuple(leaves)
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
    """`what`: a function, jitted or not, with example `arguments`; a `jax.stages.Lowered` or `Compiled`; HLO or StableHLO
    as text; a `pathlib.Path`, or a string without line breaks, that names a file. `lower_for`: the platform for which jax
    lowers a function.

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
    used = tuple(given[i] for i in program.kept) if len(given) > max(program.kept, default=-1) else ()
    return Source(program.text, None, used, program.kept, program.dtypes, program.unflatten)
