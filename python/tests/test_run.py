"""`hloc.run` and `hloc.check` with numpy, without jax."""

import pytest

import hloc

from conftest import ADD

numpy = pytest.importorskip("numpy")

TRANSPOSE = """HloModule t
ENTRY e {
  p = f32[64,1000,3] parameter(0)
  ROOT t = f32[64,3,1000] transpose(p), dimensions={0,2,1}
}
"""
TWO = """HloModule two
ENTRY e {
  p = f32[8] parameter(0)
  n = f32[8] negate(p)
  i = s32[8] iota(), iota_dimension=0
  ROOT t = (f32[8], s32[8]) tuple(n, i)
}
"""
FOREVER = """HloModule f
b { x = s32[] parameter(0) ROOT r = s32[] copy(x) }
c { x = s32[] parameter(0) ROOT r = pred[] constant(true) }
ENTRY e { p = s32[] parameter(0) ROOT w = s32[] while(p), condition=c, body=b }
"""


@pytest.fixture
def broken(tmp_path):
    """Options of a run of PTX of TRANSPOSE without its barrier."""
    compiled = hloc.compile(TRANSPOSE)
    assert "bar.sync" in compiled.ptx
    lines = [line for line in compiled.ptx.splitlines(keepends=True) if "bar.sync" not in line]
    ptx, manifest = tmp_path / "broken.ptx", tmp_path / "broken.json"
    ptx.write_text("".join(lines))
    manifest.write_text(compiled.emit("manifest"))
    return {"ptx": ptx, "manifest": manifest}


@pytest.fixture
def wrong(tmp_path):
    """Options of a run of PTX of ADD that subtracts."""
    ptx, manifest = tmp_path / "wrong.ptx", tmp_path / "wrong.json"
    compiled = hloc.compile(ADD)
    ptx.write_text(compiled.ptx.replace("add.f32", "sub.f32"))
    assert ptx.read_text() != compiled.ptx
    manifest.write_text(compiled.emit("manifest"))
    return {"ptx": ptx, "manifest": manifest}


def test_arrays_in_and_out():
    x, y = numpy.arange(64, dtype=numpy.float32), numpy.ones(64, numpy.float32)
    run = hloc.run(ADD, x, y)
    assert run.verdict == "agrees" and run.regimes == ["given"] and run.findings == []
    assert run.value.dtype == numpy.float32 and (run.value == x + 1).all()
    assert (hloc.run(ADD, inputs=[x, y]).value == x + 1).all()


def test_an_npz_file(tmp_path):
    numpy.savez(tmp_path / "in.npz", numpy.full(64, 2, numpy.float32), numpy.full(64, 3, numpy.float32))
    assert (hloc.run(ADD, inputs=tmp_path / "in.npz").value == 5).all()


def test_generated_inputs():
    run = hloc.run(ADD)
    assert run.regimes == ["ordinary", "exact", "special"] and run.data["results"]["comparisons"] == 192
    assert (hloc.run(ADD, seed=1).value != hloc.run(ADD, seed=2).value).any()


def test_tuples():
    run = hloc.run(TWO, platform="interpreter")
    first, second = run.value
    assert run.verdict == "executed" and first.shape == (8,) and list(second) == list(range(8))


def test_bf16_results():
    pytest.importorskip("ml_dtypes")
    value = hloc.run(
        "HloModule b\nENTRY e { p = f32[3] parameter(0) ROOT c = bf16[3] convert(p) }", numpy.float32([1, 2, 3])
    ).value
    assert str(value.dtype) == "bfloat16" and list(value.astype(float)) == [1, 2, 3]


def test_counters_and_estimates():
    run = hloc.run(TRANSPOSE, counters=True, estimate=True)
    assert run.counters[0]["regime"] == "ordinary" and run.counters[0]["global_load_sectors"] == 24000
    assert run.counters[0]["barriers"] > 0 and run.estimates[0]["total_us"] > 1
    assert hloc.run(ADD).counters == []


def test_findings_are_data(broken):
    run = hloc.run(TRANSPOSE, **broken)
    assert run.verdict == "wrong" and run.exit_code == 4
    (finding,) = [one for one in run.findings if "shared-race" in one.message][:1]
    assert finding.kind == "kernel-finding" and finding.file == str(broken["ptx"]) and finding.line > 10


def test_check_raises_what_a_test_fails_with(broken, wrong):
    with pytest.raises(AssertionError, match="shared-race") as raised:
        hloc.check(TRANSPOSE, **broken)
    assert type(raised.value) is hloc.Defect
    with pytest.raises(AssertionError, match="result-mismatch") as raised:
        hloc.check(ADD, **wrong)
    assert type(raised.value) is hloc.Disagreement and raised.value.exit_code == 4


def test_check_gives_the_run():
    assert hloc.check(ADD).agreement.startswith("64 elements agree with the interpreter in 3 regimes")


def undecided_program(tmp_path, monkeypatch):
    """A program whose reference cannot tell."""
    path = tmp_path / "hloc"
    row = '{"severity":"error","kind":"undecided-result","exit_code":5,"message":"nothing is known","notes":[]}'
    path.write_text(f"#!/bin/sh\necho '{row}' >&2\nexit 5\n")
    path.chmod(0o755)
    monkeypatch.setenv("HLOC_PROGRAM", str(path))


def test_undecided_is_an_outcome_of_its_own(tmp_path, monkeypatch):
    undecided_program(tmp_path, monkeypatch)
    with pytest.raises(hloc.Undecided, match="nothing is known") as raised:
        hloc.check(ADD)
    assert not isinstance(raised.value, AssertionError)
    with pytest.raises(pytest.skip.Exception):
        hloc.check(ADD, undecided="skip")
    assert hloc.check(ADD, undecided="accept").verdict == "undecided"
    with pytest.raises(ValueError):
        hloc.check(ADD, undecided="never")


def test_wrong_inputs():
    with pytest.raises(hloc.InputError):
        hloc.run(ADD, numpy.zeros(3, numpy.float32), numpy.zeros(64, numpy.float32))
    with pytest.raises(hloc.InputError, match="none with values"):
        hloc.run(ADD, inputs="given")
    with pytest.raises(hloc.InputError):
        hloc.check("HloModule m\nENTRY e { ROOT r = f32[4] add(p, p) }")


def test_a_time_limit_is_a_finding(tmp_path):
    run = hloc.run(FOREVER, timeout=1)
    assert run.verdict == "wrong" and run.findings[0].message.startswith("time-limit")
