"""Many modules: rows, tables on disk, and workers that die."""

import concurrent.futures
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

import hloc
from hloc.records import Records, whole_rows

import columns
from conftest import ADD

PACKAGE = pathlib.Path(hloc.__file__).resolve().parent
TEXTS = {f"m{i:02}": ADD.replace("64", str(32 + i)) for i in range(12)}
BAD = {"bad": "HloModule m\nENTRY e { ROOT r = f32[4] add(p, p) }\n"}
UNSUPPORTED = {"unsupported": ADD.replace("add(p, q)", 'custom-call(p, q), custom_call_target="nobody"')}


@pytest.fixture
def folder(tmp_path):
    home = tmp_path / "modules"
    for name, text in {**TEXTS, "deep/a": ADD, **BAD, **UNSUPPORTED}.items():
        path = home / f"{name}.hlo"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return home


def sweep(*words):
    settings = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-m", "hloc", "sweep", *map(str, words)]
    return subprocess.run(command, env=settings, capture_output=True, text=True, timeout=120)


def test_a_row_each_sorted_by_name(folder):
    rows = hloc.map("run", folder, executor="threads", jobs=2)
    assert [row["name"] for row in rows] == sorted(
        [f"m{i:02}.hlo" for i in range(12)] + ["bad.hlo", "deep/a.hlo", "unsupported.hlo"]
    )
    by_name = {row["name"]: row for row in rows}
    assert by_name["m03.hlo"]["verdict"] == "agrees" and by_name["m03.hlo"]["outcome"] == "ok"
    assert by_name["bad.hlo"]["outcome"] == "invalid" and by_name["bad.hlo"]["kind"] == "undefined-name"
    assert by_name["unsupported.hlo"]["outcome"] == "unsupported" and by_name["unsupported.hlo"]["exit_code"] == 3


def test_what_can_be_done():
    (row,) = hloc.map("golden", {"a": ADD}, executor="threads")
    assert len(row["golden_sha256"]) == 64
    (other,) = hloc.map("golden", {"a": ADD}, executor="threads", target="a100")
    assert other["golden_sha256"] != row["golden_sha256"] and other["key"] != row["key"]
    (row,) = hloc.map("compare", {"a": ADD}, executor="threads")
    assert row["hloc agrees"] == "yes" and row["hloc:--fusion=none launches"] == 1
    (row,) = hloc.map("cubin", {"a": ADD}, executor="threads")
    assert (row["outcome"], row["kernels"]) == ("ok", 1) or row["kind"] == "missing-tool"
    with pytest.raises(hloc.OptionError, match="no `nothing`"):
        hloc.map("nothing", {"a": ADD})


def test_wrong_options_end_it(tmp_path):
    with pytest.raises(hloc.OptionError, match="unknown option `--nothing`"):
        hloc.map("run", TEXTS, executor="threads", nothing=1)
    with pytest.raises(hloc.OptionError, match="no executor `many`"):
        hloc.map("run", TEXTS, executor="many")
    with pytest.raises(hloc.OptionError, match="no .hlo files"):
        hloc.map("run", tmp_path)
    with pytest.raises(hloc.OptionError, match="two modules are called `a`"):
        hloc.map("run", [("a", ADD), ("a", ADD)])
    with pytest.raises(hloc.OptionError, match="end in .jsonl or .parquet"):
        hloc.map("run", TEXTS, output=tmp_path / "table.csv")
    with pytest.raises(hloc.OptionError, match="cannot write the table .*: No such file or directory"):
        hloc.map("run", TEXTS, output=tmp_path / "none" / "table.jsonl")


def test_times_are_a_column_of_their_own():
    with_times = hloc.map("run", {"a": ADD}, executor="threads", times=True)
    assert with_times[0].pop("seconds") >= 0 and with_times == hloc.map("run", {"a": ADD}, executor="threads")


def test_a_limit_is_a_row():
    loop = (
        "HloModule f\nb { x = s32[] parameter(0) ROOT r = s32[] copy(x) }\n"
        "c { x = s32[] parameter(0) ROOT r = pred[] constant(true) }\n"
        "ENTRY e { p = s32[] parameter(0) ROOT w = s32[] while(p), condition=c, body=b }\n"
    )
    (row,) = hloc.map("run", {"loop": loop}, executor="threads", limit=0.5)
    (other,) = hloc.map("run", {"loop": loop}, executor="threads", timeout=0.5)
    assert row["outcome"] == other["outcome"] == "time-limit" and row["message"] == other["message"] == ""


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_one_table_whatever_the_order(folder, tmp_path, suffix):
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    one, many = tmp_path / f"one.{suffix}", tmp_path / f"many.{suffix}"
    hloc.map("run", folder, executor="threads", jobs=1, output=one)
    hloc.map("run", folder, executor="processes", jobs=3, output=many)
    assert one.read_bytes() == many.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["modules", one.name, many.name])


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_resume_does_what_is_missing(tmp_path, suffix):
    """What has a row is not done again, unless options differ; rows of modules that are gone are not kept."""
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    log, output = tmp_path / "log", tmp_path / f"table.{suffix}"
    modules = {name: hloc.source.Source(f"{name}|{log}") for name in "abcd"}
    whole = hloc.map(columns.note, modules, executor="threads", jobs=1, output=output)
    assert log.read_text().split() == list("abcd") and [row["noted"] for row in whole] == list("abcd")
    finished = output.read_bytes()
    assert hloc.map(columns.note, modules, executor="threads", jobs=1, output=output, resume=True) == whole
    assert log.read_text().split() == list("abcd")
    fewer = {name: modules[name] for name in "bcd"}
    hloc.map(columns.note, fewer, executor="threads", jobs=1, output=output, resume=True)
    hloc.map(columns.note, modules, executor="threads", jobs=1, output=output, resume=True)
    assert log.read_text().split() == list("abcda") and output.read_bytes() == finished
    hloc.map(columns.note, modules, executor="threads", jobs=1, output=output, target="a100", resume=True)
    assert log.read_text().split() == list("abcdaabcd")
    hloc.map(columns.note, modules, executor="threads", jobs=1, output=output)
    assert len(log.read_text().split()) == 13 and output.read_bytes() == finished


def test_every_place_a_line_can_be_torn(tmp_path):
    output = tmp_path / "table.jsonl"
    rows = hloc.map(columns.length, {"a": ADD, "b": ADD + "\n", "ü": ADD + " "}, executor="threads", output=output)
    whole = output.read_bytes()
    for end in range(len(whole) + 1):
        output.write_bytes(whole[:end])
        with Records(output, resume=True) as records:
            kept = list(records.rows.values())
            assert kept == [row for row in rows][: len(kept)] and len(kept) == whole[:end].count(b"\n")
            for row in rows:
                records.add(row)
            records.finish([(row["name"], row["key"]) for row in rows])
        assert output.read_bytes() == whole


def test_a_row_comes_once(tmp_path):
    row = {"name": "a", "key": "1", "outcome": "ok"}
    with Records(tmp_path / "t.jsonl") as records:
        assert records.add(row) and not records.add({**row, "outcome": "other"})
    assert whole_rows((tmp_path / "t.jsonl").read_bytes())[0] == [row]


def test_two_do_not_write_one_table(tmp_path):
    with Records(tmp_path / "t.jsonl"):
        with pytest.raises(hloc.OptionError, match="another process writes"):
            Records(tmp_path / "t.jsonl")


def test_a_module_that_kills_its_worker_is_a_row():
    """And the only one that says so, although it takes the others' pool with it."""
    texts = {f"m{i}": hloc.source.Source(f"text {i}") for i in range(20)}
    texts["deadly"] = hloc.source.Source("kill")
    rows = hloc.map(columns.deadly, texts, executor="processes", jobs=3)
    assert len(rows) == 21
    assert [row["name"] for row in rows if row["outcome"] == "killed"] == ["deadly"]
    assert all(row["outcome"] == "ok" and row["length"] >= 6 for row in rows if row["name"] != "deadly")
    assert "died 2 times" in next(row for row in rows if row["name"] == "deadly")["message"]


def test_a_worker_that_is_killed_once_leaves_no_trace(tmp_path):
    texts = {f"m{i}": hloc.source.Source(f"text {i}") for i in range(10)}
    texts["m4"] = hloc.source.Source(f"x|{tmp_path / 'mark'}")
    rows = hloc.map(columns.deadly_once, texts, executor="processes", jobs=2)
    assert (tmp_path / "mark").exists() and [row["outcome"] for row in rows] == ["ok"] * 10


def test_a_worker_killed_from_outside(folder, tmp_path):
    """In the middle: nothing is lost, nothing is there twice, and the table is that of a run in peace."""
    peace, war = tmp_path / "peace.jsonl", tmp_path / "war.jsonl"
    hloc.map("run", folder, executor="threads", output=peace)
    pools = []

    def make():
        pools.append(hloc.executors.processes(2))
        return pools[-1]

    def kill(done, all_):
        if done == 5 and len(pools) == 1:
            os.kill(next(iter(pools[0]._processes)), signal.SIGKILL)

    hloc.map("run", folder, executor=make, output=war, progress=kill)
    assert len(pools) > 1 and war.read_bytes() == peace.read_bytes()


def test_an_executor_that_was_given(tmp_path):
    """It stays open; if it breaks there is no other one, and what is done is kept."""
    with concurrent.futures.ThreadPoolExecutor(2) as own:
        assert len(hloc.map(columns.length, TEXTS, executor=own)) == 12
        assert own.submit(int, 3).result() == 3
    output = tmp_path / "t.jsonl"
    texts = {"a": hloc.source.Source("a"), "b": hloc.source.Source("kill")}
    with hloc.executors.processes(1) as own:
        with pytest.raises(hloc.InternalError, match="give a function that makes one"):
            hloc.map(columns.deadly, texts, executor=own, output=output)
    assert [row["name"] for row in whole_rows(output.read_bytes())[0]] == ["a"]


def test_mistakes_of_a_function_are_raised():
    with pytest.raises(ValueError, match="a mistake of the function"):
        hloc.map(columns.failing, TEXTS, executor="processes", jobs=1)


def test_other_programs_are_refused():
    job = hloc.jobs.Job("a", ADD, "run", version="hloc 0.0.0")
    with pytest.raises(hloc.OptionError, match="a worker has another program"):
        hloc.jobs.perform(job)


def test_rows_of_another_build_are_done_again(tmp_path, monkeypatch):
    """Of one version: the bytes count."""
    output = tmp_path / "t.jsonl"
    (first,) = hloc.map("run", {"a": ADD}, executor="threads", output=output)
    other = tmp_path / "hloc"
    other.write_text(f'#!/bin/sh\nexec {hloc.find_program()} "$@"\n')
    other.chmod(0o755)
    monkeypatch.setenv("HLOC_PROGRAM", str(other))
    (second,) = hloc.map("run", {"a": ADD}, executor="threads", output=output, resume=True)
    assert second["key"] != first["key"] and {**second, "key": ""} == {**first, "key": ""}


def test_the_command_line(folder, tmp_path):
    output = tmp_path / "t.jsonl"
    done = sweep(
        folder, "--what=run", f"--output={output}", "--executor=threads", "--", "--target=a100", "--force=vector=1"
    )
    assert done.stdout == "1 invalid, 13 ok, 1 unsupported\n" and done.returncode == 4, done.stderr
    expected = hloc.map("run", folder, executor="threads", target="a100", force="vector=1")
    assert [json.loads(line) for line in output.read_text().splitlines()] == expected
    (folder / "bad.hlo").unlink()
    assert sweep(folder, "--what=run", f"--output={output}", "--resume", "--", "--target=a100").returncode == 0
    wrong = sweep(folder, "--what=run", f"--output={output}", "--", "--nothing")
    assert wrong.returncode == 2 and "unknown option `--nothing`" in wrong.stderr
    assert sweep(folder, "--what=run", f"--output={output}", "--executor=many").returncode == 2
    assert sweep(folder, "--what=run", f"--output={output}", "--", "target").returncode == 2


def test_killed_in_the_middle_and_resumed(folder, tmp_path):
    """The sweep itself: what it has written is there, and it goes on from there."""
    output = tmp_path / "t.jsonl"
    settings = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-m", "hloc", "sweep", folder, "--what=run", f"--output={output}", "--jobs=1"]
    with subprocess.Popen(command, env=settings, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        while not (output.exists() and output.read_bytes().count(b"\n") >= 3):
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
    assert 3 <= output.read_bytes().count(b"\n") < 15
    assert sweep(folder, "--what=run", f"--output={output}", "--resume", "--jobs=1").returncode == 4
    expected = tmp_path / "expected.jsonl"
    hloc.map("run", folder, executor="threads", output=expected)
    assert output.read_bytes() == expected.read_bytes()
