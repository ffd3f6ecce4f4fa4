"""What is done with modules in tests of `hloc.map`; workers import it."""

import os
import pathlib
import signal


def length(text):
    return {"length": len(text)}


def note(text):
    """Appends to the file that the text names, so that what is done twice shows."""
    name, path = text.split("|")
    with open(path, "a") as file:
        file.write(name + "\n")
    return {"noted": name}


def deadly(text):
    """Kills the worker if the text says so."""
    if text.startswith("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    return length(text)


def deadly_once(text):
    """Kills the worker, unless the file that the text names is there."""
    path = pathlib.Path(text.split("|")[1]) if "|" in text else None
    if path and not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return length(text)


def failing(text):
    raise ValueError("a mistake of the function")
