"""`python -m hloc sweep`: `hloc.map` over a folder, with a table as its output."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Dict, List, Sequence, Tuple

from . import executors
from .errors import Error
from .jobs import NAMES
from .mapping import map as map_modules


def main(words: Sequence[str]) -> int:
    """Exit code 0 if every row is `ok` or `unsupported`, else 4; 2 if the command line is wrong."""
    given, options = _split(list(words))
    parsed = _parser().parse_args(given)
    shows = sys.stderr.isatty()

    def show(done: int, all_: int) -> None:
        if shows:
            print(f"\r{done} of {all_}", end="", file=sys.stderr, flush=True)

    try:
        table = map_modules(
            parsed.what,
            parsed.folder,
            executor=executors.maker_of(parsed.executor, parsed.jobs, parsed.scheduler),
            output=parsed.output,
            resume=parsed.resume,
            attempts=parsed.attempts,
            limit=parsed.limit,
            times=parsed.times,
            progress=show,
            **_keywords(options),
        )
    except Error as error:
        print(error, file=sys.stderr)
        return 2 if error.exit_code == 2 else 70
    if shows:
        print(file=sys.stderr)
    outcomes = Counter(row["outcome"] for row in table)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())) or "no modules")
    return 0 if set(outcomes) <= {"ok", "unsupported"} else 4


def _split(words: List[str]) -> Tuple[List[str], List[str]]:
    return (words[: words.index("--")], words[words.index("--") + 1 :]) if "--" in words else (words, [])


def _keywords(options: Sequence[str]) -> Dict[str, Any]:
    """Options of the program, `--name=value` or `--name`, for `hloc.map`."""
    found: Dict[str, List[Any]] = {}
    for option in options:
        if not option.startswith("--"):
            raise Error(f"behind -- stand options of hloc as --name=value, not `{option}`", 2)
        name, is_given, value = option[2:].partition("=")
        found.setdefault(name.replace("-", "_"), []).append(value if is_given else True)
    return dict(found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hloc sweep",
        description="Does the same with all modules of a folder, on one machine or many, and writes a table.",
        epilog="Behind -- stand options of hloc. Exit codes: 0 all rows are ok or unsupported, 2 the command line is "
        "wrong, 4 other rows.",
    )
    parser.add_argument("folder", type=Path, help="whose .hlo files are taken, also those in its folders")
    parser.add_argument("--what", choices=NAMES, required=True, help="what is done with each module")
    parser.add_argument("--output", type=Path, required=True, help="the table: a file ending in .jsonl or .parquet")
    parser.add_argument(
        "--resume", action="store_true", help="keep the rows that are there, of the same text, options, program"
    )
    parser.add_argument(
        "--executor", default="processes", help="processes, threads, dask, ray or mpi; default processes"
    )
    parser.add_argument(
        "--scheduler", help="address of a cluster of Dask or Ray; else they are started on this machine"
    )
    parser.add_argument("--jobs", type=int, help="workers, by default one a core")
    parser.add_argument("--attempts", type=int, default=2, help="of a module that kills its worker; default 2")
    parser.add_argument("--limit", type=float, default=600, help="seconds of a module; default 600")
    parser.add_argument("--times", action="store_true", help="a column with the seconds that each took")
    return parser
