"""`hloc.compile` and what tells of a compilation, without jax."""

import pytest

import hloc

from conftest import ADD

COLUMNS = """HloModule columns
sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY main {
  p = f32[4096,1024] parameter(0)
  z = f32[] constant(0)
  e = f32[4096,1024] exponential(p)
  r = f32[1024] reduce(e, z), dimensions={0}, to_apply=sum
  b = f32[4096,1024] broadcast(r), dimensions={1}
  ROOT n = f32[4096,1024] subtract(p, b)
}
"""

SLOW = """.version 8.0
.target sm_90
.address_size 64
.visible .entry slow(.param .u64 p) .reqntid 32 { .reg .b64 %rd<2>; .reg .b32 %r<3>;
  ld.param.u64 %rd1, [p];
  atom.relaxed.sys.global.add.u32 %r1, [%rd1], 1;
  ret;
}
"""


def test_ptx_and_manifest():
    compiled = hloc.compile(ADD, target="a100")
    assert ".visible .entry m(" in compiled.ptx and ".target sm_80" in compiled.ptx
    assert compiled.target == "sm_80" and compiled.name == "m" and compiled.hlo == ADD
    assert compiled.manifest["version"] == 2 and compiled.diagnostics == []
    (kernel,) = compiled.kernels
    assert kernel["kernel"] == "m" and kernel["hero"] == "loop" and kernel["bytes_read"] == 512


def test_the_same_text_the_same_ptx(tmp_path):
    path = tmp_path / "m.hlo"
    path.write_text(ADD)
    assert hloc.compile(path).ptx == hloc.compile(str(path)).ptx == hloc.compile(ADD).ptx


def test_options_become_words():
    assert "add.f32" in hloc.compile(ADD).ptx
    assert "// loc" not in hloc.compile(ADD).ptx and ".loc" in hloc.compile(ADD, line_info=True).ptx
    assert ".target sm_100" in hloc.compile(ADD, target="sm_100", optimization_level=1, j=1).ptx


def test_what_options_print():
    printed = hloc.compile(ADD, list_kernels=True).output.splitlines()
    assert printed[1].split()[:2] == ["m", "m"] and hloc.compile(ADD).output == ""


def test_lists_are_repeated(tmp_path):
    with pytest.raises(hloc.Error, match="no-such"):
        hloc.compile(ADD, disable_pass=["cse", "no-such"])
    assert hloc.compile(ADD, disable_pass=["cse", "licm"]).ptx


def test_other_outputs():
    compiled = hloc.compile(ADD)
    assert "func.func" in compiled.emit("mlir") and "define" in compiled.emit("llvm")
    assert compiled.emit("ptx") == compiled.ptx
    with pytest.raises(hloc.OptionError, match="--emit does not take `nothing`"):
        compiled.emit("nothing")


def test_machine_code():
    try:
        cubin = hloc.compile(ADD).cubin
    except hloc.Unsupported as error:
        assert error.kind == "missing-tool"
        pytest.skip("neither nvJitLink nor ptxas")
    assert cubin[:4] == b"\x7fELF"


def test_warnings_are_diagnostics():
    compiled = hloc.compile(ADD, target="sm_70", f32_dots="tf32")
    assert [(one.severity, one.kind) for one in compiled.diagnostics] == [("warning", "ignored-input")]
    assert ".target sm_70" in compiled.ptx


def test_flags_of_xla_are_not_read(monkeypatch, tmp_path):
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to={tmp_path} --xla_force_host_platform_device_count=8")
    assert hloc.compile(ADD).diagnostics == [] and not list(tmp_path.iterdir())
    hloc.compile(ADD, xla_dump_to=tmp_path)
    assert list(tmp_path.iterdir())


def test_the_report_is_a_page(tmp_path):
    page = hloc.compile(ADD).report()
    assert page.html.startswith("<!DOCTYPE html>") or page.html.startswith("<!doctype html>")
    shown = page._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and "<script" not in shown
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page.html


def test_stablehlo_needs_jaxlib(monkeypatch):
    monkeypatch.setattr(hloc.from_jax, "_CONVERTERS", (("no_such_module", "mlir"),))
    with pytest.raises(hloc.InputError, match="StableHLO, which jaxlib converts, and there is none"):
        hloc.compile("module @m {\n  func.func public @main() {\n  }\n}\n")


def test_what_is_no_module():
    with pytest.raises(hloc.InputError, match="`int` is no module"):
        hloc.compile(3)


def test_explanations():
    rows = hloc.explain(COLUMNS)
    by_edge = {(row["producer"], row["user"]): row for row in rows}
    assert (
        by_edge["e", "r"]["fused"] and by_edge["e", "r"]["saves_bytes"] == 2**25 and by_edge["e", "r"]["saves_us"] > 1
    )
    assert not by_edge["r", "b"]["fused"] and "do not fit" in by_edge["r", "b"]["reason"]
    assert [row["hero"] for row in rows.kernels] and rows.tiles == []
    assert {row["user"] for row in hloc.explain(COLUMNS, about="n")} == {"n"}


def test_tiles_are_rows():
    dot = (
        "HloModule d\nENTRY e {\n a = bf16[256,512] parameter(0)\n b = bf16[512,256] parameter(1)\n"
        " ROOT d = f32[256,256] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n"
    )
    tiles = hloc.explain(dot, about="d").tiles
    times = [row["total_us"] for row in tiles]
    assert len(tiles) > 5 and times == sorted(times) and "x" in tiles[0]["tile"]


def test_estimates():
    rows = hloc.estimate(COLUMNS, device="h200", what_if="fusion=none")
    assert rows.about["device"] == "h200" and rows.about["total_us"] >= sum(row["total_us"] for row in rows) * 0.999
    assert {"kernel", "total_us", "bound"} <= set(rows.columns)
    assert hloc.estimate(COLUMNS)[0]["total_us"] != rows[0]["total_us"]


def test_lint_finds_what_is_slow(tmp_path):
    assert hloc.lint(ADD) == []
    path = tmp_path / "slow.ptx"
    path.write_text(SLOW)
    rows = hloc.lint(path)
    assert [(row["rule"], row["severity"]) for row in rows] == [("system-scope", "error")]
    assert rows[0]["kernel"] == "slow" and rows[0]["line"] == 6
    assert hloc.lint(path, lint_disable="system-scope") == []


def test_comparison():
    rows = hloc.compare(ADD, peers=["hloc:-O0"])
    assert [row["name"] for row in rows] == ["hloc", "hloc:-O0"] and all(row["agrees"] == "yes" for row in rows)
    assert rows[0]["instructions"] > 0 and rows.about["device"] == "h100"
