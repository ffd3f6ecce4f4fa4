"""Array types as HLO spells them: `f32[64,3]{1,0}`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Tuple

from .errors import Unsupported

_TYPES = {
    "pred": ("|b1", 1),
    "s8": ("|i1", 1),
    "u8": ("|u1", 1),
    "s16": ("<i2", 2),
    "u16": ("<u2", 2),
    "s32": ("<i4", 4),
    "u32": ("<u4", 4),
    "s64": ("<i8", 8),
    "u64": ("<u8", 8),
    "f16": ("<f2", 2),
    "f32": ("<f4", 4),
    "f64": ("<f8", 8),
    "c64": ("<c8", 8),
    "c128": ("<c16", 16),
    "bf16": ("<V2", 2),
}
_NAMED = {"bf16": "bfloat16"}


@dataclass(frozen=True)
class ArrayType:
    """Element type, dimensions, and which of these lie next to each other in memory: the fastest first."""

    element: str
    dimensions: Tuple[int, ...]
    minor_to_major: Tuple[int, ...]

    @property
    def type_string(self) -> str:
        """As numpy and `__cuda_array_interface__` spell it: `<f4`."""
        return _TYPES[self.element][0]

    @property
    def dtype_name(self) -> str:
        """What `numpy.dtype` takes; a name of ml_dtypes where numpy has no such type."""
        return _NAMED.get(self.element, self.type_string)

    @property
    def strides(self) -> Tuple[int, ...]:
        """Bytes from one element to the next, by dimension."""
        result = [0] * len(self.dimensions)
        bytes_ = _TYPES[self.element][1]
        for dimension in self.minor_to_major:
            result[dimension] = bytes_
            bytes_ *= self.dimensions[dimension]
        return tuple(result)

    @property
    def num_bytes(self) -> int:
        """Of all elements."""
        count = _TYPES[self.element][1]
        for size in self.dimensions:
            count *= size
        return count


def parse_array_type(text: str) -> ArrayType:
    """Raises `Unsupported` for element types that numpy has no arrays of, with or without ml_dtypes' bf16.

    >>> parse_array_type("f32[64,3]{0,1}").strides
    (4, 256)
    >>> parse_array_type("pred[]")
    ArrayType(element='pred', dimensions=(), minor_to_major=())
    """
    found = re.fullmatch(r"(\w+)\[([\d,]*)\](?:\{([\d,]*)[^}]*\})?", text.strip())
    if found is None or found[1] not in _TYPES:
        raise Unsupported(f"arrays of `{text}` cannot be handed to a GPU from Python", 3)
    dimensions = tuple(int(size) for size in found[2].split(",") if size)
    layout = found[3] if found[3] is not None else ",".join(map(str, reversed(range(len(dimensions)))))
    return ArrayType(found[1], dimensions, tuple(int(one) for one in layout.split(",") if one))
