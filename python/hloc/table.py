"""Rows of data, which become a table where they are shown."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional

if TYPE_CHECKING:
    import pandas

Row = Dict[str, Any]


class Table(List[Row]):
    """A list of dictionaries, one a row, that have the same keys. It prints as a table, Jupyter shows it as one, and
    `to_pandas` makes a data frame of it.

    >>> rows = Table([{"kernel": "a", "us": 1.5}, {"kernel": "bc", "us": 22.25}])
    >>> print(rows)
    kernel     us
    a         1.5
    bc      22.25
    >>> rows[1]["us"], rows.columns
    (22.25, ['kernel', 'us'])
    """

    def __init__(self, rows: Iterable[Row] = (), about: Optional[Dict[str, Any]] = None) -> None:
        super().__init__(rows)
        #: What holds of all rows together, such as the device of an estimate.
        self.about: Dict[str, Any] = about or {}

    @property
    def columns(self) -> List[str]:
        """Names of the columns, in the order in which they appear first."""
        return list(dict.fromkeys(name for row in self for name in row))

    def to_pandas(self) -> "pandas.DataFrame":
        """A data frame with a row each. Needs pandas."""
        import pandas

        return pandas.DataFrame(list(self), columns=self.columns)

    def __str__(self) -> str:
        if not self:
            return "(nothing)"
        cells = [self.columns] + [[_text(row.get(name)) for name in self.columns] for row in self]
        widths = [max(len(line[i]) for line in cells) for i in range(len(self.columns))]
        are_numbers = [all(_is_number(row.get(name)) for row in self) for name in self.columns]
        lines = []
        for line in cells:
            parts = [
                cell.rjust(width) if number else cell.ljust(width)
                for cell, width, number in zip(line, widths, are_numbers)
            ]
            lines.append("  ".join(parts).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        def line(cells: List[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        names = self.columns
        body = "".join(line([_text(row.get(name)) for name in names], "td") for row in self)
        return f"<table><thead>{line(names, 'th')}</thead><tbody>{body}</tbody></table>"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return str(value)
