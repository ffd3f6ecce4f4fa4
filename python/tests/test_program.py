"""Where the program is looked for, and `python -m hloc`."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import hloc
from hloc import program

PACKAGE = pathlib.Path(hloc.__file__).resolve().parent


def run_python(code, **environment):
    kept = {name: value for name, value in os.environ.items() if name not in ("HLOC_PROGRAM", "PYTHONPATH")}
    return subprocess.run(
        [sys.executable, *code], env={**kept, **environment}, cwd="/", capture_output=True, text=True, timeout=60
    )


def make_program(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\necho here\n")
    path.chmod(0o755)
    return path


def test_the_variable_wins(monkeypatch, tmp_path):
    own = make_program(tmp_path / "own")
    monkeypatch.setenv("HLOC_PROGRAM", str(own))
    assert hloc.find_program() == str(own)
    monkeypatch.setenv("HLOC_PROGRAM", str(tmp_path / "nothing"))
    with pytest.raises(hloc.ProgramNotFound, match="HLOC_PROGRAM names"):
        hloc.find_program()


@pytest.mark.parametrize("package", ["lib/python3.9/site-packages", "."])
def test_beside_the_package(tmp_path, package):
    """`pip install --prefix` and `--target` put the program into another folder than the environment's."""
    home = tmp_path / package
    shutil.copytree(PACKAGE, home / "hloc", ignore=shutil.ignore_patterns("__pycache__"))
    expected = make_program(tmp_path / "bin" / "hloc")
    done = run_python(["-c", "import hloc; print(hloc.find_program())"], PYTHONPATH=str(home), PATH="")
    assert done.stdout.strip() == str(expected), done.stderr


def test_the_environments_own_comes_first(monkeypatch, tmp_path):
    expected = make_program(tmp_path / "scripts" / "hloc")
    monkeypatch.delenv("HLOC_PROGRAM", raising=False)
    monkeypatch.setattr(program.sysconfig, "get_path", lambda *names, **more: str(tmp_path / "scripts"))
    assert hloc.find_program() == str(expected)
    expected.write_text("#!/usr/bin/python3\n")  # the package's own, had it one
    try:
        assert hloc.find_program() != str(expected)
    except hloc.ProgramNotFound:
        pass  # there is no other here


def test_on_path_and_nowhere(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "a/b/c/hloc", ignore=shutil.ignore_patterns("__pycache__"))
    expected = make_program(tmp_path / "tools" / "hloc")
    ask = ["-c", "import hloc; print(hloc.find_program())"]
    home = str(tmp_path / "a/b/c")
    assert run_python(ask, PYTHONPATH=home, PATH=str(expected.parent)).stdout.strip() == str(expected)
    missing = run_python(ask, PYTHONPATH=home, PATH=str(tmp_path))
    assert "ProgramNotFound: the program `hloc` is not at hand" in missing.stderr
    assert str(tmp_path / "a/b/c/bin/hloc") in missing.stderr and "HLOC_PROGRAM" in missing.stderr


def test_a_script_of_python_is_not_the_program(tmp_path):
    script = make_program(tmp_path / "hloc")
    script.write_text("#!/usr/bin/env python3\n")
    assert program._is_wrapper(script)
    script.write_bytes(b"\x7fELF")
    assert not program._is_wrapper(script)


def test_the_module_is_the_program(tmp_path):
    """The same output, exit code and standard input."""
    environment = {"HLOC_PROGRAM": hloc.find_program(), "PYTHONPATH": str(PACKAGE.parent)}
    version = run_python(["-m", "hloc", "--version"], **environment)
    assert version.stdout.strip() == hloc.version() and version.returncode == 0
    assert run_python(["-m", "hloc", str(tmp_path / "none.hlo")], **environment).returncode == 1
    assert run_python(["-m", "hloc", "--nothing"], **environment).returncode == 2
    make_program(tmp_path / "empty" / "tool")
    lost = run_python(["-m", "hloc"], HLOC_PROGRAM=str(tmp_path / "none"), PYTHONPATH=str(PACKAGE.parent))
    assert lost.returncode == 2 and lost.stderr.startswith("hloc: error: HLOC_PROGRAM names")


def test_importing_is_cheap():
    """Neither numpy nor jax is imported before it is needed."""
    modules = ("numpy", "jax", "pandas", "concurrent.futures.process")
    code = f"import sys, hloc; print([name for name in {modules} if name in sys.modules])"
    assert run_python(["-c", code], PYTHONPATH=str(PACKAGE.parent)).stdout.strip() == "[]"


def test_what_does_not_end_is_stopped(monkeypatch, tmp_path):
    slow = make_program(tmp_path / "slow")
    slow.write_text("#!/bin/sh\nexec sleep 30\n")
    monkeypatch.setenv("HLOC_PROGRAM", str(slow))
    with pytest.raises(hloc.InternalError, match="did not end within 0.2 s"):
        program.call(["x"], seconds=0.2)


def test_a_signal_is_an_internal_error(monkeypatch, tmp_path):
    broken = make_program(tmp_path / "broken")
    broken.write_text("#!/bin/sh\necho lost >&2\nkill -SEGV $$\n")
    monkeypatch.setenv("HLOC_PROGRAM", str(broken))
    with pytest.raises(hloc.InternalError, match="lost") as raised:
        hloc.compile("f32[8] add(f32[8] x, f32[8] x)")
    assert raised.value.exit_code == -11
