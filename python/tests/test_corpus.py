"""Programs of a corpus through `hloc.check`: HLOC_CORPUS names a folder, `pytest -k corpus` runs it. Each folder in
it has a `module.hlo`. What is unsupported or undecided is skipped, with the reason."""

import os
import pathlib

import pytest

import hloc

FOLDER = os.environ.get("HLOC_CORPUS")
MODULES = sorted(pathlib.Path(FOLDER).rglob("module.hlo")) if FOLDER else []


@pytest.mark.skipif(not MODULES, reason="HLOC_CORPUS names no folder with module.hlo")
@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.parent.name)
def test_corpus(path):
    try:
        assert hloc.check(path, undecided="skip", timeout=300).verdict == "agrees"
    except hloc.Unsupported as error:
        pytest.skip(f"unsupported: {error.message}")
