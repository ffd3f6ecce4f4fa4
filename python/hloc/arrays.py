"""Arrays that go to the program and come back: numpy's .npz files."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, List, Optional, Sequence

from .errors import InputError

if TYPE_CHECKING:
    import numpy
    import numpy.typing


def are_concrete(leaves: Sequence[Any]) -> bool:
    """Whether all of them have values, rather than a shape and a type alone as `jax.ShapeDtypeStruct` has."""
    return bool(leaves) and all(map(_is_concrete, leaves))


def _is_concrete(leaf: Any) -> bool:
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(leaf, jax.Array):  # random keys are arrays of jax, and none of numpy
        return True
    return hasattr(leaf, "__array__") or isinstance(leaf, (bool, int, float, complex))


def write_arrays(path: Path, leaves: Sequence[Any], dtypes: Optional[Sequence[Any]] = None) -> None:
    """One array for each parameter, in order. `dtypes`: what numbers and arrays become first, as jax does it."""
    import numpy

    arrays = [as_numpy(leaf, dtypes[i] if dtypes is not None else None) for i, leaf in enumerate(leaves)]
    numpy.savez(path, *arrays)


def as_numpy(leaf: Any, dtype: Any = None) -> "numpy.typing.NDArray[Any]":
    """The array, or number, as one of numpy's. `dtype` None: as it is."""
    import numpy

    if dtype is not None and str(dtype).startswith("key<"):  # jax's random keys are arrays of integers
        import jax

        return numpy.asarray(jax.random.key_data(leaf))
    array = numpy.asarray(leaf)
    return array if dtype is None or array.dtype == dtype else array.astype(dtype)


def read_arrays(path: Path) -> List["numpy.typing.NDArray[Any]"]:
    """The results that the program has written, in order: `0`, `1`, ...

    bf16 and floats and integers of less than two bytes are types of ml_dtypes. Raises `InputError` where it is not
    installed and there are such.
    """
    import numpy

    try:
        import ml_dtypes  # numpy knows its types by name from then on

        del ml_dtypes
    except ImportError:
        pass
    try:
        with numpy.load(path) as file:
            names = sorted(file.files, key=lambda name: int(re.sub(r"\D", "", name) or 0))
            return [file[name] for name in names]
    except (ValueError, TypeError) as error:
        raise InputError(f"results have a type that numpy knows where `ml_dtypes` is installed: {error}", 1) from error
