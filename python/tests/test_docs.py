"""docs/python.md: what it shows is what happens."""

import doctest
import pathlib

import pytest


def test_the_page():
    jax = pytest.importorskip("jax")
    pytest.importorskip("pandas")
    if jax.__version_info__ < (0, 10):
        pytest.skip("instructions have other names")
    page = pathlib.Path(__file__).resolve().parent.parent.parent / "docs" / "python.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert tried > 15 and failed == 0
