"""`python -m hloc` is the program, with the same arguments; `python -m hloc sweep` compiles or runs many modules."""

import os
import sys

from .errors import ProgramNotFound
from .program import find_program


def main() -> int:
    """Becomes the program, so that signals and standard streams are its own."""
    try:
        program = find_program()
    except ProgramNotFound as error:
        print(f"hloc: error: {error}", file=sys.stderr)
        return 2
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
