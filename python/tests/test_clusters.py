"""Dask, Ray and MPI, where they are installed. HLOC_SWEEP names a folder of modules that Dask sweeps instead of
examples, and HLOC_SWEEP_WHAT what it does with them: `cubin`, or by default `run`, of modules that are made small."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import hloc

import columns

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WHAT = os.environ.get("HLOC_SWEEP_WHAT", "run")
OPTIONS = {"shrink": True} if WHAT == "run" else {}
FOLDER = pathlib.Path(os.environ.get("HLOC_SWEEP") or ROOT / "hlo_examples" / "elementwise")


def test_dask_with_a_worker_killed_in_the_middle(tmp_path):
    """The table is complete, and the bytes of the one that a single machine makes."""
    distributed = pytest.importorskip("distributed")
    alone, cluster = tmp_path / "alone.jsonl", tmp_path / "cluster.jsonl"
    begin = time.monotonic()
    hloc.map(WHAT, FOLDER, executor="processes", output=alone, **OPTIONS)
    between = time.monotonic()
    killed = []
    with distributed.Client(n_workers=4, threads_per_worker=1, dashboard_address=None) as client:

        def kill(done, all_):
            if done >= all_ // 3 and not killed:
                killed.append(next(iter(client.run(os.getpid).values())))
                os.kill(killed[0], signal.SIGKILL)

        table = hloc.map(
            WHAT, FOLDER, executor=client.get_executor(pure=False), output=cluster, progress=kill, **OPTIONS
        )
    print(f"{len(table)} modules: {between - begin:.0f} s by processes, {time.monotonic() - between:.0f} s by Dask")
    assert killed and len(table) == len(list(FOLDER.rglob("*.hlo")))
    assert cluster.read_bytes() == alone.read_bytes()


def test_dask_names_a_module_that_kills_its_workers():
    pytest.importorskip("distributed")
    texts = {f"m{i}": hloc.source.Source(f"text {i}") for i in range(8)}
    texts["deadly"] = hloc.source.Source("kill")
    rows = hloc.map(columns.deadly, texts, executor="dask", jobs=2, attempts=1)
    assert [row["name"] for row in rows if row["outcome"] == "killed"] == ["deadly"] and len(rows) == 9


def test_ray(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    here = pathlib.Path(__file__).parent
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (here, here.parent))))  # of workers
    alone, cluster = tmp_path / "alone.jsonl", tmp_path / "cluster.jsonl"
    folder = ROOT / "hlo_examples" / "elementwise"
    hloc.map("run", folder, executor="threads", output=alone)
    hloc.map("run", folder, executor="ray", jobs=2, output=cluster)
    assert cluster.read_bytes() == alone.read_bytes()
    texts = {f"m{i}": hloc.source.Source(f"text {i}") for i in range(4)}
    texts["deadly"] = hloc.source.Source("kill")
    rows = hloc.map(columns.deadly, texts, executor="ray", jobs=2)
    assert [row["name"] for row in rows if row["outcome"] == "killed"] == ["deadly"] and len(rows) == 5


def test_mpi(tmp_path):
    pytest.importorskip("mpi4py.futures")
    mpiexec = pathlib.Path(sys.prefix) / "bin" / "mpiexec"
    if not mpiexec.exists():
        pytest.skip("there is no mpiexec beside this Python")
    alone, cluster = tmp_path / "alone.jsonl", tmp_path / "cluster.jsonl"
    folder = ROOT / "hlo_examples" / "elementwise"
    hloc.map("run", folder, executor="threads", output=alone)
    sweep = [
        "-m",
        "mpi4py.futures",
        "-m",
        "hloc",
        "sweep",
        folder,
        "--what=run",
        f"--output={cluster}",
        "--executor=mpi",
    ]
    settings = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [mpiexec, "-n", "3", sys.executable, *sweep]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert cluster.read_bytes() == alone.read_bytes()
