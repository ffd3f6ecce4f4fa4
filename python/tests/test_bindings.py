"""cuda-python as it is, with a library of C in the driver's place."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import hloc

from conftest import ADD

pytest.importorskip("numpy")
pytest.importorskip("cuda.bindings")

LAUNCH = """
import ctypes, sys
ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
import hloc, numpy
compiled = hloc.compile(sys.argv[1])
x = numpy.arange(64, dtype="<f4")
first = compiled(x, numpy.ones(64, "<f4"))
print(bool((compiled(first, x).numpy() == 2 * x + 1).all()))
"""


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_the_real_bindings_take_the_calls(tmp_path):
    source = pathlib.Path(__file__).parent / "fake_libcuda.c"
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source, "-Wl,-soname,libcuda.so.1"], check=True)
    package = pathlib.Path(hloc.__file__).parent.parent
    settings = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(package)}
    done = subprocess.run([sys.executable, "-c", LAUNCH, ADD], env=settings, capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "True", done.stderr


def test_no_driver():
    code = "import hloc, numpy, sys; x = numpy.zeros(64, '<f4'); hloc.compile(sys.argv[1])(x, x)"
    settings = {**os.environ, "PYTHONPATH": str(pathlib.Path(hloc.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code, ADD], env=settings, capture_output=True, text=True, timeout=60)
    if done.returncode == 0:
        pytest.skip("there is a GPU")
    assert "hloc.errors.Unsupported: " in done.stderr
