"""Tensor maps: what the driver makes of a kernel's parameter that is one, and of an address.

The driver's function is called where it lies: the bindings would have it write into an object of Python, which is not
aligned to 64 bytes.
"""

from __future__ import annotations

import ctypes
from typing import Any, Dict, Sequence

from .errors import Unsupported

_BYTES, _ALIGNMENT = 128, 128
# In the driver's order.
_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz")
_WORDS = {
    "interleave": ("none", "16B", "32B"),
    "swizzle": ("none", "32B", "64B", "128B"),
    "l2": ("none", "64B", "128B", "256B"),
    "fill": ("zero", "nan"),
}


class EncodedMap(ctypes.Structure):
    """The bytes that a kernel is passed by value."""

    _fields_ = (("bytes", ctypes.c_ubyte * _BYTES),)


def function_of(recipe: Dict[str, Any]) -> str:
    """The driver's function that makes such a map."""
    return "cuTensorMapEncodeIm2col" if "im2col" in recipe else "cuTensorMapEncodeTiled"


def encode(function: int, recipe: Dict[str, Any], address: int) -> EncodedMap:
    """`function`: where `function_of(recipe)` lies; `recipe`: `tensor_map` of a parameter in the manifest; `address`: of
    the tensor. Raises `Unsupported` where the driver refuses the map, as that of an address that is not aligned."""
    rank = len(recipe["dims"])
    room = ctypes.create_string_buffer(_BYTES + _ALIGNMENT)
    to = (ctypes.addressof(room) + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
    steps = _array(ctypes.c_uint32, recipe.get("element_strides") or [1] * rank)
    if "im2col" in recipe:
        pixels = recipe["im2col"]
        box = [_array(ctypes.c_int32, pixels[corner]) for corner in ("lower", "upper")]
        box += [ctypes.c_uint32(pixels["channels"]), ctypes.c_uint32(pixels["pixels"])]
    else:
        box = [_array(ctypes.c_uint32, recipe["box"])]
    arguments = [
        ctypes.c_void_p(to),
        ctypes.c_int(_TYPES.index(recipe["type"])),
        ctypes.c_uint32(rank),
        ctypes.c_void_p(address),
        _array(ctypes.c_uint64, recipe["dims"]),
        _array(ctypes.c_uint64, recipe["strides"]),
        *box,
        steps,
        *(ctypes.c_int(words.index(recipe.get(name, words[0]))) for name, words in _WORDS.items()),
    ]
    code = ctypes.CFUNCTYPE(ctypes.c_int, *map(type, arguments))(function)(*arguments)
    if code:
        raise Unsupported(f"{function_of(recipe)} fails with code {code} for an address of {address:#x}", 3)
    return EncodedMap.from_buffer_copy(ctypes.string_at(to, _BYTES))


def _array(kind: Any, values: Sequence[int]) -> Any:
    return (kind * max(len(values), 1))(*values)
