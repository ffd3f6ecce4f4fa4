"""What the program says is wrong, as data and as exceptions.

The program prints each error, warning and remark as a line of JSON (`--diagnostics=json`), which becomes a
`Diagnostic`. Where a function of this package cannot give what it was asked for it raises an `Error`, whose class
says which of the program's exit codes it is:

====  ==============================  =====================================================================
code  class                           meaning
====  ==============================  =====================================================================
1     `InputError`                    the input is wrong
2     `OptionError`                   the options are wrong
3     `Unsupported`                   recognised, but unsupported: the message says which op or feature, and why
4     `Disagreement`, or `Defect`     results or golden files differ; or a check found a defect in a kernel
5     `Undecided`                     the reference cannot tell whether some results are right
70    `InternalError`                 a bug in hloc
====  ==============================  =====================================================================
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple


@dataclass(frozen=True)
class Note:
    """What is added to a diagnostic. `line` and `column` count from 1 and are None where it is about no place."""

    message: str
    line: Optional[int] = None
    column: Optional[int] = None


@dataclass(frozen=True)
class Diagnostic:
    """One error, warning or remark of the program.

    `line` and `column` count from 1, the column in bytes; they and `file` are None where it is about no place in a
    file. `kind` is what scripts can match on, such as `"shape-mismatch"`; `exit_code` what an error of that kind ends
    the program with, 0 of warnings and remarks; `rendered` the text for people, with the line of source.
    """

    severity: str
    kind: str
    message: str
    exit_code: int = 0
    file: Optional[str] = None
    line: Optional[int] = None
    column: Optional[int] = None
    end_line: Optional[int] = None
    end_column: Optional[int] = None
    notes: Tuple[Note, ...] = ()
    rendered: str = ""

    @property
    def is_error(self) -> bool:
        """Whether it is one, rather than a warning or a remark."""
        return self.severity == "error"

    def __str__(self) -> str:
        return self.rendered.rstrip("\n") or f"hloc: {self.severity}: {self.message} [{self.kind}]"


def parse_diagnostics(text: str) -> Tuple[List[Diagnostic], str]:
    """Takes what the program wrote to standard error apart: its diagnostics, and all other lines.

    >>> found, rest = parse_diagnostics('{"severity":"error","kind":"bad-usage","message":"no"}\\nhello\\n')
    >>> found[0].kind, rest
    ('bad-usage', 'hello\\n')
    """
    found: List[Diagnostic] = []
    others: List[str] = []
    for line in text.splitlines(keepends=True):
        row = _diagnostic_row(line)
        if row is None:
            others.append(line)
        else:
            found.append(_diagnostic(row))
    return found, "".join(others)


def _diagnostic_row(line: str) -> Optional[Dict[str, Any]]:
    if not line.startswith('{"severity":'):
        return None
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _diagnostic(row: Dict[str, Any]) -> Diagnostic:
    known = {name: row[name] for name in Diagnostic.__dataclass_fields__ if name in row}
    known["notes"] = tuple(Note(note["message"], note.get("line"), note.get("column")) for note in row.get("notes", ()))
    return Diagnostic(**known)


class Error(Exception):
    """What went wrong. `diagnostics` has all that the program said, warnings included, in its order; `kind`, `file`,
    `line`, `column` and `message` are those of the first error, `exit_code` the program's: None if it was not started,
    negative if a signal ended it."""

    def __init__(self, text: str, exit_code: Optional[int] = None, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(text)
        self.exit_code = exit_code
        self.diagnostics: List[Diagnostic] = list(diagnostics)

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (str(self), self.exit_code, self.diagnostics)

    @property
    def first(self) -> Optional[Diagnostic]:
        """The first error among the diagnostics; None if the program gave none."""
        return next((one for one in self.diagnostics if one.is_error), None)

    @property
    def kind(self) -> Optional[str]:
        """What the first error is called, such as `"shape-mismatch"`."""
        return self.first.kind if self.first else None

    @property
    def message(self) -> str:
        """The first error's message, without place and kind."""
        return self.first.message if self.first else str(self)

    @property
    def file(self) -> Optional[str]:
        """The file the first error is about; `<stdin>` of a text or a function."""
        return self.first.file if self.first else None

    @property
    def line(self) -> Optional[int]:
        """Line of the first error, from 1."""
        return self.first.line if self.first else None

    @property
    def column(self) -> Optional[int]:
        """Column of the first error, in bytes from 1."""
        return self.first.column if self.first else None


class InputError(Error):
    """The input is wrong: exit code 1."""


class OptionError(Error):
    """The options are wrong: exit code 2."""


class Unsupported(Error):
    """Recognised, but unsupported: exit code 3."""


class Defect(Error, AssertionError):
    """A check found a defect in a kernel: exit code 4. Test frameworks take it for a failed assertion."""


class Disagreement(Defect):
    """Results differ from the reference's, or a golden file from what is made now: exit code 4."""


class Undecided(Error):
    """The reference cannot tell whether some results are right: exit code 5. No verdict on the kernel."""


class InternalError(Error):
    """A bug in hloc: exit code 70, or a signal."""


class ProgramNotFound(Error):
    """The program `hloc` is nowhere; the message says where it was looked for."""


_CLASSES = {1: InputError, 2: OptionError, 3: Unsupported, 4: Defect, 5: Undecided, 70: InternalError}
_DIFFERENCES = ("result-mismatch", "golden-mismatch")


def error_for(exit_code: int, diagnostics: Sequence[Diagnostic], other: str = "") -> Error:
    """The exception for an exit code other than 0. `other`: what else was on standard error, used as text if there are
    no errors among the diagnostics.

    >>> type(error_for(3, [], "no such op")).__name__
    'Unsupported'
    """
    errors = [one for one in diagnostics if one.is_error]
    text = "\n".join(map(str, errors)) or other.strip() or f"hloc ended with exit code {exit_code}"
    kind = _CLASSES.get(exit_code, InternalError)
    if kind is Defect and errors and errors[0].kind in _DIFFERENCES:
        kind = Disagreement
    return kind(text, exit_code, diagnostics)
