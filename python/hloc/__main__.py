"""`python -m hloc` is the program, with the same arguments; `python -m hloc sweep` compiles or runs many modules."""

import os
import sys

from .errors import ProgramNotFound
from .program import find_program


def main() -> int:
    """Sweeps, or becomes the program, so that signals and standard streams are its own."""
    if sys.argv[1:2] == ["sweep"]:
        from .sweep import main as sweep

        return sweep(sys.argv[2:])
    try:
        program = find_program()
    except ProgramNotFound as error:
        print(f"hloc: error: {error}", file=sys.stderr)
        return 2
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
