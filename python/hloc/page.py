"""Pages of the program, shown in notebooks or written to files."""

from __future__ import annotations

import html
import os
from typing import Union


class Page:
    """A page of HTML that needs nothing beside it. `html` is its text."""

    def __init__(self, text: str, height: int = 800) -> None:
        self.html = text
        self.height = height

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes it to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def _repr_html_(self) -> str:
        """In a frame of its own, `height` pixels high: styles and scripts of the page do not reach the notebook."""
        return (
            f'<iframe srcdoc="{html.escape(self.html, quote=True)}" sandbox="allow-scripts" '
            f'style="width: 100%; height: {self.height}px; border: 1px solid #ccc"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<hloc report, {len(self.html)} characters; .save(path) writes it>"
