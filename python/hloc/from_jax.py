"""HLO of what jax has: functions, lowered and compiled ones, and StableHLO text. jax is imported where it is needed."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any, Callable, List, Optional, Sequence, Tuple

from .errors import InputError

_CONVERTERS = (
    ("jaxlib._jax", "mlir"),  # jaxlib 0.6 and later
    ("jaxlib.xla_extension", "mlir"),  # before
)


@dataclass(frozen=True)
class JaxProgram:
    """HLO text of a jax function. Of its `count` arguments, flattened and without static ones, `kept` are the module's
    parameters in order, each of the numpy type in `dtypes`; `unflatten` makes what the function returns of the module's
    results."""

    text: str
    count: int
    kept: Tuple[int, ...]
    dtypes: Tuple[Any, ...]
    unflatten: Callable[[Sequence[Any]], Any]


def is_lowered(value: Any) -> bool:
    """Whether it is a `jax.stages.Lowered`, or looks like one."""
    return hasattr(value, "compiler_ir") and hasattr(value, "args_info")


def is_compiled(value: Any) -> bool:
    """Whether it is a `jax.stages.Compiled`, or looks like one."""
    return hasattr(value, "as_text") and hasattr(value, "input_shardings")


def is_traced(value: Any) -> bool:
    """Whether it is a `jax.stages.Traced`, or looks like one."""
    return hasattr(value, "lower") and hasattr(value, "jaxpr")


def is_exported(value: Any) -> bool:
    """Whether it is a `jax.export.Exported`, or looks like one."""
    return hasattr(value, "mlir_module") and hasattr(value, "in_avals")


def lower(function: Callable[..., Any], arguments: Sequence[Any], platform: Optional[str] = "cuda") -> Any:
    """The function, jitted if it is not yet, lowered for what jax calls a platform, although there may be no such
    device; None is jax's default. The arguments are arrays, or `jax.ShapeDtypeStruct`, or trees of them."""
    import jax

    jitted = function if hasattr(function, "lower") else jax.jit(function)
    if not hasattr(jitted, "trace"):
        return jitted.lower(*arguments)
    return lower_traced(jitted.trace(*arguments), platform)


def lower_traced(traced: Any, platform: Optional[str] = "cuda") -> Any:
    """The same of a `jax.stages.Traced`."""
    if platform is not None:
        try:
            return traced.lower(lowering_platforms=(platform,))
        except NotImplementedError:  # ops that jaxlib lowers for that platform only where its plugin is installed
            pass
    return traced.lower()


def program_of(lowered: Any) -> JaxProgram:
    """HLO text, with all constants, of a `jax.stages.Lowered`."""
    import jax

    flat = jax.tree_util.tree_leaves(lowered.args_info, is_leaf=lambda node: hasattr(node, "donated"))
    tree = lowered.out_tree
    text = _text_of(lowered.compiler_ir("hlo"))
    kept = _kept_arguments(lowered, len(flat))
    return JaxProgram(
        text, len(flat), kept, tuple(flat[i].dtype for i in kept), lambda leaves: tree.unflatten(list(leaves))
    )


def text_of_compiled(compiled: Any) -> str:
    """HLO text of a `jax.stages.Compiled`: what XLA's passes for the device it was compiled for have made of it."""
    return str(compiled.as_text())


def _text_of(computation: Any) -> str:
    """Long constants are left out unless they are asked for."""
    return str(computation.as_hlo_text(print_large_constants=True))


def _kept_arguments(lowered: Any, count: int) -> Tuple[int, ...]:
    """Arguments that the function does not use are no parameters of the module, unless jit was told to keep them."""
    details = getattr(getattr(lowered, "_lowering", None), "compile_args", None)
    kept = details.get("kept_var_idx") if isinstance(details, dict) else None
    return tuple(range(count)) if kept is None else tuple(sorted(kept))


def from_stablehlo(text: str) -> str:
    """HLO text of StableHLO text, such as `lowered.as_text()` gives.

    Raises `InputError` where there is no jaxlib to convert it, or jaxlib does not take it.
    """
    for module, attribute in _CONVERTERS:
        try:
            convert = getattr(importlib.import_module(module), attribute).mlir_module_to_xla_computation
        except (ImportError, AttributeError):
            continue
        try:
            return _text_of(convert(text, use_tuple_args=False, return_tuple=False))
        except (RuntimeError, ValueError) as error:
            raise InputError(f"jaxlib does not take this StableHLO: {error}", 1) from error
    raise InputError(
        "this is StableHLO, which jaxlib converts, and there is none; "
        'jax gives HLO by `jax.jit(f).lower(...).as_text("hlo")`',
        1,
    )


def looks_like_stablehlo(text: str) -> bool:
    """Whether it is MLIR of the dialects that jax writes, rather than HLO text.

    >>> looks_like_stablehlo("module @m { func.func public @main() { stablehlo.return } }")
    True
    >>> looks_like_stablehlo('HloModule m\\nENTRY e { ROOT c = f32[] constant(1), metadata={op_name="stablehlo.add"} }')
    False
    """
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and not line.startswith(("//", "#"))), "")
    is_mlir = first.startswith(("module", '"builtin.module"', "func.func", "vhlo"))
    return is_mlir and any(dialect in text for dialect in ("stablehlo.", "mhlo.", "func.func"))


def leaves_of(arguments: Sequence[Any]) -> List[Any]:
    """The arguments' arrays in order; trees only where jax is imported already."""
    import sys

    jax = sys.modules.get("jax")
    return list(jax.tree_util.tree_leaves(list(arguments))) if jax is not None else list(arguments)
