"""Keyword arguments as options of the command line."""

from __future__ import annotations

import os
from typing import Any, Iterable, List, Mapping

from .errors import OptionError

_OURS = frozenset(["diagnostics", "progress", "color", "output", "o", "emit", "help", "man", "completion"])


def arguments(options: Mapping[str, Any], taken: Iterable[str] = ()) -> List[str]:
    """`f32_dots="tf32"` is `--f32-dots=tf32`; `True` gives an option without its value, `False` and `None` none at all,
    a list or tuple one for each of its elements. Which options there are the program knows. `taken`: names that the
    calling function needs for itself, in addition to those that no function takes.

    >>> arguments({"f32_dots": "tf32", "line_info": True, "prove": False, "force": ["hero=loop", "vector=4"]})
    ['--f32-dots=tf32', '--line-info', '--force=hero=loop', '--force=vector=4']

    Raises `OptionError` for options that the package gives itself.
    """
    result: List[str] = []
    reserved = _OURS.union(taken)
    for name, value in options.items():
        if name in reserved:
            raise OptionError(
                f"`{name}` is not for you to give: the function that was called does, or has no use for it", 2
            )
        spelled = "-j" if name == "j" else _spelling(name)
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                result.append(spelled)
            elif one is not False and one is not None:
                text = os.fspath(one) if isinstance(one, os.PathLike) else str(one)
                result.append(spelled + text if spelled == "-j" else f"{spelled}={text}")
    return result


def _spelling(name: str) -> str:
    """XLA's options keep their underscores."""
    return "--" + (name if name.startswith("xla_") else name.replace("_", "-"))
