"""CUDA graphs: cuda-python as it is, with the fake driver of the runtime's tests in the driver's place, which runs graphs
as strictly as a real one. A graph does what the steps do when they are issued one by one."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import hloc
from hloc import graph_api

from conftest import ADD

pytest.importorskip("numpy")

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODULES = ["control", "gelu.hlo", "in_place_update.hlo", "attention", "rows", "slices"]
DIFF = [
    "loops_in_place",
    "loops_around_fusions",
    "unread_results_of_a_branch",
    "parameters_change_places",
    "large_constants",
]
DECISIONS = "1101101110" * 5 + "2011301"

# Arrays of somebody else's, and a mark in the trace.
PRELUDE = """
import ctypes, gc, json, os, sys
ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
import hloc, numpy
from hloc.launch import Launcher
from hloc.shapes import parse_array_type
from cuda.bindings import driver

class OnDevice:
    def __init__(self, kind):
        self.address = int(driver.cuMemAlloc(max(kind.num_bytes, 1))[1])
        data = (self.address, False)
        self.__cuda_array_interface__ = {"shape": kind.dimensions, "typestr": kind.type_string, "data": data,
                                         "strides": kind.strides, "version": 3}

def arrays_of(manifest):
    given = [one for one in manifest["buffers"] if one["kind"] == "parameter"]
    given.sort(key=lambda one: (one["parameter"], one["leaf"]))
    return [OnDevice(parse_array_type(one["shape"])) for one in given]

def mark(text):
    with open(os.environ["FAKE_CUDA_TRACE"], "a") as file:
        file.write(f"mark {text}\\n")
"""
# For each module (its manifest and PTX): twice with some arrays, once with others.
RUN = PRELUDE + """
is_graph = sys.argv[1] == "graph"
for name in sys.argv[2:]:
    manifest, ptx = json.load(open(name + ".json")), open(name + ".ptx").read()
    launcher = Launcher(manifest, ptx)
    first, second = arrays_of(manifest), arrays_of(manifest)
    graph = launcher.graph(*first) if is_graph else None
    for number, arrays in enumerate((first, first, second)):
        if graph and number == 2:
            graph.update(*arrays)
        mark(name)
        kept = graph.launch() if graph else launcher(*arrays)
        mark("end")
"""


@pytest.fixture
def driver(tmp_path):
    """Runs a script with the fake driver: what it prints, and the lines of its trace."""
    pytest.importorskip("cuda.bindings")
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")

    def run(script, *words, define="nothing", **environment):
        folder = tmp_path / define
        folder.mkdir(exist_ok=True)
        library, trace = folder / "libcuda.so.1", tmp_path / "trace"
        source = pathlib.Path(__file__).parent / "fake_graphs.c"
        line = ["cc", "-shared", "-fPIC", "-w", f"-D{define}=absent", "-o", library, source, "-Wl,-soname,libcuda.so.1"]
        if not library.exists():
            subprocess.run(line, check=True)
        trace.unlink(missing_ok=True)
        package = pathlib.Path(hloc.__file__).parent.parent
        settings = {**os.environ, "LD_LIBRARY_PATH": str(folder), "PYTHONPATH": str(package)}
        settings.update(FAKE_CUDA_TRACE=str(trace), FAKE_CUDA_DECISIONS=DECISIONS, **environment)
        command = [sys.executable, "-c", script, *map(str, words)]
        done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout, trace.read_text().splitlines()

    return run


def named(lines):
    """Launches, copies, fills and decisions between marks, by module, with addresses as which memory, in the order in
    which it is first used, and how far behind its beginning. Without what a graph says in another way."""
    memory, runs, names = [], [], {}

    def name(word):
        address = int(word, 16)
        begin = next(begin for begin, size in memory if begin <= address <= begin + size)
        return f"{names.setdefault(begin, len(names))}+{address - begin}"

    for line in lines:
        kind, *words = line.split()
        if kind == "mark":
            if words[0] != "end":
                runs.append((words[0], []))
            names = {}
        elif kind == "alloc":
            memory.append((int(words[0], 16), int(words[1])))
        elif kind == "free":
            memory = [one for one in memory if one[0] != int(words[0], 16)]
        elif not runs or kind in ("upload", "load", "encode", "graph") or line == "attribute 6 1 0 0":
            continue
        elif kind == "attribute":
            runs[-1][1].append(line)
        elif kind == "launch":
            maps = [word.split(":") for word in words[9:]]
            places = [f"{name(one[-2] if len(one) > 1 else one[0])}:{one[-1] if len(one) > 1 else ''}" for one in maps]
            runs[-1][1].append(" ".join(["launch", *words[:8], *places]))
        elif kind in ("download", "decide"):
            runs[-1][1].append(f"decide {name(words[0])} {words[1]}")
        elif kind == "copy":
            runs[-1][1].append(f"copy {name(words[0])} {name(words[1])} {words[2]}")
        elif kind == "fill":
            if (int(words[0], 16), 8) not in memory:  # but counters of rounds
                runs[-1][1].append(f"fill {name(words[0])} {' '.join(words[1:])}")
    return runs


def compiled_modules(folder):
    """Names of files, without their ends, of examples and of what none of them has."""
    files = [
        path
        for name in MODULES
        for path in (sorted((ROOT / "hlo_examples" / name).glob("*.hlo")) or [ROOT / "hlo_examples" / name])
    ]
    for path in files + [ROOT / "tests/diff" / f"{name}.hlo" for name in DIFF]:
        made = hloc.compile(path)
        (folder / f"{path.stem}.json").write_text(json.dumps(made.manifest))
        (folder / f"{path.stem}.ptx").write_text(made.ptx)
        yield folder / path.stem
    yield made_up(folder)


def made_up(folder):
    """Loops of many rounds, conditionals by number with a branch that is empty, tensor maps, clusters, early launches, a
    parameter that is overwritten, a result that lies in a temporary."""

    def part(number, bytes_=4, offset=0):
        return {"buffer": number, "offset": offset, "bytes": bytes_}

    def step(kind, **more):
        return {"kind": kind, "name": kind, **more}

    def buffer(kind, bytes_, **more):
        return {"kind": kind, "bytes": bytes_, "shape": f"u8[{bytes_}]", "leaf": [], **more}

    row = {"type": "u8", "dims": [16], "strides": [], "box": [16]}
    parameters = [{"written": False}, {"written": True}, {"written": False, "tensor_map": row}]
    kernel = {"name": "k", "grid": [4, 1, 1], "block": [8, 1, 1], "dynamic_shared_bytes": 0, "parameters": parameters}
    kernels = [kernel, {**kernel, "cluster": [2, 1, 1]}, {**kernel, "programmatic": True}]
    launches = [step("launch", kernel=i, arguments=[part(0, 16), part(1, 16), part(0, 16)]) for i in range(3)]
    branches = [
        [step("fill", to=part(3, 16), value=7)],
        [],
        [launches[2], launches[2], step("copy", **{"from": part(0), "to": part(2)})],
    ]
    choose = step("conditional", selector=part(2), branches=branches)
    inner = step("while", condition=[launches[0]], predicate=part(2, 1), body=[launches[1], choose])
    steps = [launches[0], launches[2], step("while", rounds=200, body=[launches[1], launches[2], launches[0]]), inner]
    steps += [step("while", rounds=3, body=[choose]), step("while", rounds=9, body=[])]
    buffers = [
        buffer("parameter", 16, parameter=0),
        buffer("parameter", 16, parameter=1),
        buffer("temporary", 16, offset=0),
    ]
    buffers += [buffer("result", 16)]
    results = [{"leaf": [i], "slice": part(i + 1, 16), "shape": "u8[16]"} for i in range(3)]
    manifest = {"kernels": kernels, "buffers": buffers, "steps": steps, "results": results}
    (folder / "made_up.json").write_text(json.dumps(manifest))
    (folder / "made_up.ptx").write_text(
        ".visible .entry k(.param .u64 a, .param .u64 b, .param .align 64 .b8 m[128]) { ret; }\n"
    )
    return folder / "made_up"


def test_graphs_do_what_the_steps_do(driver, tmp_path):
    names = list(compiled_modules(tmp_path))
    as_steps, as_graphs = (driver(RUN, kind, *names)[1] for kind in ("steps", "graph"))
    expected, done = named(as_steps), named(as_graphs)
    assert len(expected) == 3 * len(names) and sum(len(lines) for _, lines in expected) > 2000
    for (name, wanted), (same, lines) in zip(expected, done):
        assert name == same and lines == wanted, name
    calls = [line.split()[1] for line in as_graphs if line.startswith("graph ")]
    assert calls.count("instantiate") == len(names) and calls.count("launch") == 3 * len(names) and "set" in calls


ADDED = PRELUDE + """
fails = lambda text: os.environ.update(FAKE_CUDA_FAIL=text)
def expect(kind, text, function, *arguments):
    try:
        function(*arguments)
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)

class Stream:
    def __cuda_stream__(self):
        return 0, 0x1234

compiled = hloc.compile(sys.argv[1])
a, b, c = (arrays_of(compiled.manifest)[0] for _ in range(3))
host = numpy.ones(64, "<f4")
gc.disable()  # memory is freed with the last reference
graph = compiled.graph(a, host)
out = graph.launch()
assert out is graph.results and isinstance(out, hloc.DeviceArray) and graph.launch() is out
assert out.__cuda_array_interface__["stream"] == 1
graph.update(a, c)
assert graph.launch(Stream()).__cuda_array_interface__["stream"] == 0x1234
assert graph.launch(driver.CUstream(0x4321)) is out
expect(hloc.InputError, "2 parameters, and 1 arrays", graph.update, a)
expect(hloc.InputError, "array 1 is <f4[63]", graph.update, b, host[1:])
mark(f"as before {a.address:x} {c.address:x} {out.address:x}")
graph.launch()
fails("cuGraphExecNodeSetParams=700")
graph.update(a, c)  # nothing to do
expect(hloc.Unsupported, "cuGraphExecNodeSetParams fails: CUDA_ERROR_ILLEGAL_ADDRESS", graph.update, b, c)
expect(hloc.Unsupported, "the graph's last update has failed", graph.launch)
fails("")
graph.update(b, c)
mark(f"then {b.address:x} {c.address:x} {out.address:x}")
graph.launch(0)
fails("cuGraphLaunch=1")
expect(hloc.Unsupported, "cuGraphLaunch fails: CUDA error 1", graph.launch)
for function in ("cuGraphCreate", "cuGraphAddNode_v2", "cuGraphInstantiateWithFlags"):
    fails(function + "=2")
    expect(hloc.Unsupported, function + " fails: CUDA_ERROR_OUT_OF_MEMORY", compiled.graph, a, b)
fails("")
del graph, out
mark("end")
"""


def test_updates_streams_and_failures(driver):
    _, trace = driver(ADDED, ADD)
    marks = {line.split()[-4]: i for i, line in enumerate(trace) if line.startswith("mark ") and line != "mark end"}
    for text in ("before", "then"):
        line = trace[marks[text]].split()
        launch = next(one for one in trace[marks[text] :] if one.startswith("launch")).split()
        assert launch[10:] == line[-3:]
    streams = [line.split()[9] for line in trace if line.startswith("launch")]
    assert streams == ["(nil)", "(nil)", "0x1234", "0x4321", "(nil)", "(nil)"]
    left = sum(line.startswith("alloc") - line.startswith("free") for line in trace[: trace.index("mark end")])
    assert left == 6  # of OnDevice: nothing of the graph's is


EDGES = PRELUDE + """
manifest, ptx = json.load(open(sys.argv[1] + ".json")), open(sys.argv[1] + ".ptx").read()
first, _, early = ({**manifest["steps"][0], "kernel": i} for i in range(3))
copy = {"kind": "copy", "name": "c"}
copy.update({"from": {"buffer": 0, "offset": 0, "bytes": 4}, "to": {"buffer": 3, "offset": 0, "bytes": 4}})
manifest["steps"], manifest["results"] = [first, early, early, copy, early], []
for kernel in manifest["kernels"]:
    kernel["parameters"][1]["written"] = False
library = ctypes.CDLL("libcuda.so.1")
library.fakeCudaLog.restype = ctypes.c_char_p
library.fakeCudaReset()
graph = Launcher(manifest, ptx).graph(*arrays_of(manifest))
print("\\n".join(line for line in library.fakeCudaLog().decode().splitlines() if line.startswith("node")))
"""


def test_what_comes_behind_an_early_kernel_waits_for_both(driver, tmp_path):
    said, _ = driver(EDGES, made_up(tmp_path))
    assert said.splitlines() == [
        "node 0: kernel",
        "node 1: kernel after 0(early)",
        "node 2: kernel after 1(early) 0",
        "node 3: copy after 2 1",
        "node 4: kernel after 3",
    ]


OLD = PRELUDE + """
compiled = hloc.compile(sys.argv[1])
a, b = arrays_of(compiled.manifest)
try:
    compiled.graph(a, b)
except hloc.Unsupported as error:
    print(error)
compiled(a, b)
"""


def test_old_drivers(driver):
    said, trace = driver(OLD, ADD, define="cuGraphAddNode_v2")
    assert said == "the CUDA driver is too old for graphs, which take CUDA 12.3: it lacks cuGraphAddNode_v2\n"
    assert sum(line.startswith("launch m ") for line in trace) == 1


def test_kernels_that_decide_are_those_of_the_header():
    header = ROOT / "include/hloc_launch/Conditions.h"
    if not header.exists():
        pytest.skip("this is no clone")
    text = header.read_text()
    assert re.search(r'R"\((.*?)\)"', text, re.S).group(1) == graph_api.CONDITION_PTX
    for name in (graph_api.BRANCH_KERNEL, graph_api.ROUND_KERNEL):
        assert f'"{name}"' in text and f".entry {name}\n" in graph_api.CONDITION_PTX
