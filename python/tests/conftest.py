"""The package of this clone, and the program that is tested: HLOC_PROGRAM, or the clone's build."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

ADD = (
    "HloModule m\nENTRY e {\n  p = f32[64] parameter(0)\n  q = f32[64] parameter(1)\n  ROOT r = f32[64] add(p, q)\n}\n"
)
"""p + q of f32[64]."""
