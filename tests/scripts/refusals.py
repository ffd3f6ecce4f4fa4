"""Which refusals (exit code 3) of a set of programs are expected: tests/refusals/*.txt, used by check-run and check-corpus.

Each line is a number of programs and a reason, which is the text of an error with its kind, the dimensions in it left
out. What hloc says must be the same exactly: a refusal more is support that was lost, a refusal less is support that was
gained, after which the list is made shorter (--update-refusals) so that it cannot be lost again unseen.
"""
import collections
import pathlib
import re


def reasons(text):
    """The reasons that one program's refusal gives, without its places and dimensions."""
    errors = re.findall(r"(?:^|: )error: (.*\[[a-z-]+\])$", text, re.MULTILINE)
    return {re.sub(r"\[[\d,<=]*\](\{[^}]*\})?", "[...]", error) for error in errors} or {"(no error was printed)"}


def read(path):
    """The number of programs by reason. Lines that start with # and empty ones say nothing."""
    expected = {}
    for line in pathlib.Path(path).read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            count, reason = line.split(maxsplit=1)
            expected[reason] = int(count)
    return expected


def count(texts):
    """The number of programs by reason, of the output of every refused program."""
    return collections.Counter(reason for text in texts for reason in reasons(text))


def write(path, counted):
    path = pathlib.Path(path)
    head = [line for line in path.read_text().splitlines() if line.startswith("#")] if path.exists() else []
    lines = [f"{number:4} {reason}" for reason, number in sorted(counted.items())]
    path.write_text("\n".join(head + lines) + "\n")


def differences(expected, counted):
    """Sentences about what is not as expected; none if everything is."""
    said = []
    for reason in sorted({*expected, *counted}):
        listed, found = expected.get(reason, 0), counted.get(reason, 0)
        if found > listed:
            said.append(f"refused {found} times, expected {listed}: {reason}")
        elif found < listed:
            said.append(f"refused only {found} times, the list says {listed} and has to shrink: {reason}")
    return said
