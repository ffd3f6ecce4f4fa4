"""Finding the program `hloc`, and running it."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, List, Optional, Sequence, Union

from .errors import Diagnostic, InternalError, ProgramNotFound, error_for, parse_diagnostics

_PACKAGE = Path(__file__).resolve().parent
SUBCOMMANDS = ("compile", "run", "opt", "reduce", "bisect", "replay", "compare")
_NAME = "hloc" + (sysconfig.get_config_var("EXE") or "")


def _script_folders() -> Iterator[Path]:
    """Where an installer may have put the script of this package: of this environment, of the user's, beside a
    `--target` or `--prefix`."""
    yield Path(sysconfig.get_path("scripts"))
    base = _PACKAGE.parent
    yield base / "bin"  # pip install --target
    if base.name in ("site-packages", "dist-packages"):
        yield base.parent.parent.parent / "bin"  # pip install --prefix
    user = sysconfig.get_preferred_scheme("user") if sys.version_info >= (3, 10) else f"{os.name}_user"
    yield Path(sysconfig.get_path("scripts", scheme=user))


def _clone_programs() -> Iterator[Path]:
    """Builds of the repository that the package is imported from."""
    root = _PACKAGE.parent.parent
    if (root / "CMakePresets.json").is_file() and (root / "python" / "hloc").is_dir():
        for preset in ("release", "dev"):
            yield root / "build" / preset / "bin" / _NAME


def find_program() -> str:
    """Path of the program: the file that the variable HLOC_PROGRAM names; else the one that was installed with this
    package; else, if the package is imported from a clone, the clone's build; else that on PATH.

    Raises `ProgramNotFound`, which says where it was looked for.
    """
    named = os.environ.get("HLOC_PROGRAM")
    if named:
        found = shutil.which(named)
        if found is None:
            raise ProgramNotFound(f"HLOC_PROGRAM names `{named}`, which is no program")
        return found
    looked: List[str] = []
    for candidate in [folder / _NAME for folder in _script_folders()] + list(_clone_programs()):
        if candidate.is_file() and os.access(candidate, os.X_OK) and not _is_wrapper(candidate):
            return str(candidate)
        looked.append(str(candidate))
    on_path = shutil.which("hloc")
    if on_path is not None and not _is_wrapper(Path(on_path)):
        return on_path
    places = "\n  ".join(dict.fromkeys(looked))
    raise ProgramNotFound(
        f"the program `hloc` is not at hand: not in PATH, nor any of\n  {places}\nHLOC_PROGRAM may name it"
    )


def _is_wrapper(path: Path) -> bool:
    """A script that starts Python would start this package, and that the script."""
    with open(path, "rb") as file:
        return b"python" in file.readline(256) if file.read(2) == b"#!" else False


@dataclass(frozen=True)
class Outcome:
    """How the program ended: its exit code, standard output, diagnostics, and the rest of standard error."""

    exit_code: int
    output: bytes
    diagnostics: List[Diagnostic]
    other: str

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.output.decode("utf-8", "replace")

    def check(self, *accepted: int) -> "Outcome":
        """Itself if the exit code is 0 or one of `accepted`; else the `Error` for it is raised."""
        if self.exit_code != 0 and self.exit_code not in accepted:
            raise error_for(self.exit_code, self.diagnostics, self.other)
        return self


def call(
    arguments: Sequence[str], standard_input: Union[str, bytes, None] = None, seconds: Optional[float] = None
) -> Outcome:
    """Runs the program to its end, with diagnostics as JSON. `seconds`: after which it is stopped, which is an
    `InternalError`, for the program's own --timeout ends a run that takes long."""
    outcome = call_in_time(arguments, standard_input, seconds)
    if outcome is None:
        raise InternalError(f"hloc did not end within {seconds} s")
    return outcome


def call_in_time(
    arguments: Sequence[str], standard_input: Union[str, bytes, None], seconds: Optional[float]
) -> Optional[Outcome]:
    """The same; None if it was stopped. XLA_FLAGS is jax's here: what it says of dumps is not for the program."""
    given = standard_input.encode("utf-8", "surrogateescape") if isinstance(standard_input, str) else standard_input
    words = list(arguments)
    words.insert(1 if words and words[0] in SUBCOMMANDS else 0, "--diagnostics=json")
    try:
        done = subprocess.run(
            [find_program(), *words],
            input=given if given is not None else b"",
            capture_output=True,
            timeout=seconds,
            check=False,
            env={name: value for name, value in os.environ.items() if name != "XLA_FLAGS"},
        )
    except subprocess.TimeoutExpired:
        return None
    diagnostics, other = parse_diagnostics(done.stderr.decode("utf-8", "replace"))
    return Outcome(done.returncode, done.stdout, diagnostics, other)


def version() -> str:
    """What the program says to --version: its own version and LLVM's, a line each."""
    return subprocess.run([find_program(), "--version"], check=True, capture_output=True, text=True).stdout.strip()


def fingerprint() -> str:
    """The program's version and a digest of its bytes: builds of one version differ."""
    path = find_program()
    status = os.stat(path)
    return _fingerprint(path, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=8)
def _fingerprint(path: str, _modified: int, _size: int) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return f"{version().splitlines()[0]} {digest.hexdigest()[:16]}"
