"""Tables on disk that survive being interrupted: JSON lines, or Parquet.

Rows are appended as they come, each in one write. What was torn off by a kill or a full disk is dropped when the file
is read again. In the end the rows are sorted and the file is replaced in one step, so that the same rows are the same
bytes, whatever the order in which they came.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any, Dict, Iterable, List, Optional, Tuple

from .errors import OptionError
from .table import Row, Table

Identity = Tuple[str, str]


def identity(row: Row) -> Identity:
    """What a row is recognised by: the module's name, and the key of what it was computed from."""
    return row["name"], row["key"]


def line_of(row: Row) -> bytes:
    """A row as a line of JSON."""
    return (json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "surrogateescape")


class Records:
    """The table at `path`, which ends in `.jsonl` or `.parquet`; Parquet needs pyarrow, and has JSON lines beside it
    until it is finished. `resume`: what is there already is kept, else it is begun anew. One process at a time may
    write it.
    """

    def __init__(self, path: Path, resume: bool = False) -> None:
        self.path = path
        self.is_parquet = path.suffix == ".parquet"
        if not self.is_parquet and path.suffix != ".jsonl":
            raise OptionError(f"the table `{path}` is to end in .jsonl or .parquet", 2)
        if self.is_parquet:
            _pyarrow()  # rather now than when all is done
        self.journal = path.with_name(path.name + ".journal") if self.is_parquet else path
        try:
            self._file = os.open(self.journal, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise OptionError(f"cannot write the table `{path}`: {error.strerror}", 2) from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise OptionError(f"another process writes the table `{path}`", 2) from None
        self.rows: Dict[Identity, Row] = {}
        if resume:
            self._read()
        else:
            os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_END)

    def _read(self) -> None:
        if self.is_parquet and self.path.is_file():
            for row in _pyarrow().read_table(self.path).to_pylist():
                self.rows[identity(row)] = {name: value for name, value in row.items() if name in _present(row)}
        with open(self.journal, "rb") as file:
            rows, whole = whole_rows(file.read())
        os.ftruncate(self._file, whole)
        for row in rows:
            self.rows.setdefault(identity(row), row)

    def add(self, row: Row) -> bool:
        """Appends a row. False, and nothing, if there is one of that identity."""
        if identity(row) in self.rows:
            return False
        self.rows[identity(row)] = row
        line = line_of(row)
        while line:  # a full disk takes a part, and then fails
            line = line[os.write(self._file, line) :]
        return True

    def finish(self, wanted: Iterable[Identity]) -> Table:
        """Replaces the file by one that has the rows that are wanted, sorted by name, and gives these."""
        table = Table(self.rows[one] for one in sorted(set(wanted)) if one in self.rows)
        temporary = self.path.with_name(self.path.name + ".new")
        if self.is_parquet:
            _write_parquet(table, temporary)
        else:
            with open(temporary, "wb") as file:
                file.writelines(map(line_of, table))
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, self.path)
        if self.is_parquet:
            os.unlink(self.journal)
        return table

    def close(self) -> None:
        """Lets others write it; what was added stays."""
        os.close(self._file)

    def __enter__(self) -> "Records":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


def whole_rows(data: bytes) -> Tuple[List[Row], int]:
    """The rows of JSON lines up to the first that is torn, and how many bytes they have.

    >>> whole_rows(b'{"name":"a","key":"1"}\\n{"name":"b","k')
    ([{'name': 'a', 'key': '1'}], 23)
    """
    rows: List[Row] = []
    whole = 0
    for line in data.splitlines(keepends=True):
        row = _row(line)
        if row is None:
            break
        rows.append(row)
        whole += len(line)
    return rows, whole


def _row(line: bytes) -> Optional[Row]:
    if not line.endswith(b"\n"):
        return None
    try:
        row = json.loads(line.decode("utf-8", "surrogateescape"))
    except ValueError:
        return None
    return row if isinstance(row, dict) and "name" in row and "key" in row else None


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise OptionError("Parquet needs pyarrow, which is not installed; .jsonl needs nothing", 2) from None
    return pyarrow.parquet


def _present(row: Row) -> List[str]:
    """Columns that a row has itself: which others there are is said in one of them."""
    return json.loads(row["columns"]) if isinstance(row.get("columns"), str) else list(row)


def _write_parquet(table: Table, path: Path) -> None:
    parquet = _pyarrow()
    import pyarrow

    rows = [{**row, "columns": json.dumps(list(row))} for row in table]
    columns = Table(rows).columns
    arrays = {name: [row.get(name) for row in rows] for name in sorted(columns, key=lambda one: (one == "columns",))}
    parquet.write_table(pyarrow.table(arrays), path)
