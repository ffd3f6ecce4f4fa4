"""Manifests carried out: on a fake of cuda.bindings.driver, whose kernels are functions of Python."""

import sys
import types

import pytest

import hloc
from hloc.launch import Launcher
from hloc.shapes import parse_array_type

from conftest import ADD
from fake_driver import FakeDriver

numpy = pytest.importorskip("numpy")

LOOP = """HloModule w
body { s = (s32[], f32[8]) parameter(0) i = s32[] get-tuple-element(s), index=0 x = f32[8] get-tuple-element(s), index=1
  one = s32[] constant(1) j = s32[] add(i, one) y = f32[8] add(x, x) ROOT t = (s32[], f32[8]) tuple(j, y) }
cond { s = (s32[], f32[8]) parameter(0) x = f32[8] get-tuple-element(s), index=1 z = f32[1] slice(x), slice={[0:1]}
  zz = f32[] reshape(z) h = f32[] constant(100) ROOT l = pred[] compare(zz, h), direction=LT }
ENTRY e { i = s32[] parameter(0) x = f32[8] parameter(1) t = (s32[], f32[8]) tuple(i, x)
  w = (s32[], f32[8]) while(t), condition=cond, body=body
  y = f32[8] get-tuple-element(w), index=1 j = s32[] get-tuple-element(w), index=0
  ROOT r = (s32[], f32[8], f32[8]) tuple(j, y, x) }
"""


def add(driver, a, b, c):
    driver.view(c, "<f4", 64)[:] = driver.view(a, "<f4", 64) + driver.view(b, "<f4", 64)


def less(driver, x, predicate):
    driver.view(predicate, "|b1", 1)[:] = driver.view(x, "<f4", 8)[0] < 100


def count(driver, i, same):
    assert i == same
    driver.view(i, "<i4", 1)[:] += 1


def double(driver, x, same):
    assert x == same
    driver.view(x, "<f4", 8)[:] *= 2


@pytest.fixture
def driver(monkeypatch):
    """Installs a fake of the bindings that has some kernels."""

    def install(kernels, **settings):
        fake = FakeDriver(kernels, **settings)
        for name, module in (("cuda", types.ModuleType("cuda")), ("cuda.bindings", types.ModuleType("bindings"))):
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setitem(sys.modules, "cuda.bindings.driver", fake)
        return fake

    return install


class OnDevice:
    """An array of somebody else's in the fake's memory."""

    def __init__(self, fake, array, **changes):
        self.address = fake.cuMemAlloc(array.nbytes)[1]
        fake.view(self.address, array.dtype, array.size)[:] = array.ravel()
        shape, kind = array.shape, array.dtype.str
        self.__cuda_array_interface__ = {"shape": shape, "typestr": kind, "data": (self.address, False), "version": 3}
        self.__cuda_array_interface__.update(changes)


def test_arrays_of_host_and_device(driver):
    fake = driver({"m": add})
    compiled = hloc.compile(ADD)
    x, y = numpy.arange(64, dtype="<f4"), numpy.ones(64, "<f4")
    result = compiled(x, OnDevice(fake, y))
    assert isinstance(result, hloc.DeviceArray) and result.shape == (64,) and (result.numpy() == x + 1).all()
    assert result.__cuda_array_interface__["data"] == (result.address, False)
    (kernel,) = compiled.manifest["kernels"]
    assert fake.launches == [("m", tuple(kernel["grid"]), tuple(kernel["block"]), 0)]
    again = compiled(result, y)
    assert (
        (again.numpy() == x + 2).all() and (result.numpy() == x + 1).all() and fake.calls.count("cuModuleLoadData") == 1
    )


def test_memory_is_freed(driver):
    fake = driver({"m": add})
    compiled = hloc.compile(ADD)
    for _ in range(3):
        compiled(numpy.zeros(64, "<f4"), numpy.ones(64, "<f4")).numpy()
    assert not fake.allocations


def test_loops_copies_and_results_that_are_arguments(driver):
    fake = driver({"cond": less, "body_0": count, "body_1": double})
    compiled = hloc.compile(LOOP)
    assert {step["kind"] for step in compiled.manifest["steps"]} >= {"while", "copy"}
    x = numpy.linspace(1, 8, 8, dtype="<f4")
    given = OnDevice(fake, x)
    rounds, doubled, same = compiled(numpy.int32(3), given)
    assert rounds.numpy() == 10 and (doubled.numpy() == x * 128).all() and (same.numpy() == x).all()
    assert same.address != given.address and (fake.view(given.address, "<f4", 8) == x).all()


def manifest(steps, buffers, results, **kernel):
    """One of the form that the program writes."""
    parameters = [{"written": written} for written in kernel.pop("written", [])]
    kernels = [
        {"name": "k", "grid": [1, 1, 1], "block": [1, 1, 1], "dynamic_shared_bytes": 0, "parameters": parameters}
    ]
    kernels[0].update(kernel)
    return {"kernels": kernels, "buffers": buffers, "steps": steps, "results": results}


def buffer(kind, bytes_=4, shape="s32[]", **more):
    return {"kind": kind, "bytes": bytes_, "shape": shape, "leaf": [], **more}


def slice_of(number, bytes_=4, offset=0):
    return {"buffer": number, "offset": offset, "bytes": bytes_}


def result(number, shape="s32[]", leaf=(), **more):
    return {"leaf": list(leaf), "slice": slice_of(number, **more), "shape": shape}


PTX = ".visible .entry k("


def fill(value, number=1):
    return {"kind": "fill", "name": "f", "to": slice_of(number), "value": value}


@pytest.mark.parametrize("given, expected", [(0, 0), (1, 1), (2, 2), (3, 2), (-1, 2)])
def test_conditionals_by_number(driver, given, expected):
    """The last branch is taken where the number is negative or too large."""
    driver({})
    step = {"kind": "conditional", "name": "c", "selector": slice_of(0), "branches": [[fill(i)] for i in range(3)]}
    launcher = Launcher(manifest([step], [buffer("parameter", parameter=0), buffer("result")], [result(1)]), PTX)
    (value,) = launcher(numpy.int32(given))
    assert value.numpy() == expected * 0x01010101


@pytest.mark.parametrize("given", [True, False])
def test_conditionals_by_predicate(driver, given):
    driver({})
    step = {"kind": "conditional", "name": "c", "selector": slice_of(0, 1), "branches": [[fill(1)], [fill(2)]]}
    buffers = [buffer("parameter", 1, "pred[]", parameter=0), buffer("result")]
    (value,) = Launcher(manifest([step], buffers, [result(1)]), PTX)(numpy.bool_(given))
    assert value.numpy() == (0x01010101 if given else 0x02020202)


def test_counted_loops_scalars_constants_and_shared_temporaries(driver):
    seen = []

    def kernel(driver, constant, temporary, scalar, out):
        seen.append(scalar)
        driver.view(temporary, "<i4", 1)[:] = driver.view(constant, "<i4", 1)
        driver.view(out, "<i4", 1)[:] += driver.view(temporary, "<i4", 1)

    fake = driver({"k": kernel})
    arguments = [slice_of(0), slice_of(2), {"value": -1, "bytes": 2}, slice_of(3)]
    body = [{"kind": "launch", "name": "l", "kernel": 0, "arguments": arguments}]
    steps = [fill(0, 3), {"kind": "while", "name": "w", "body": body, "rounds": 3}]
    buffers = [
        buffer("constant", data="05000000"),
        buffer("temporary", offset=0),
        buffer("temporary", offset=256),
        buffer("result"),
    ]
    made = manifest(steps, buffers, [result(3)], written=[False, True, False, True], dynamic_shared_bytes=70000)
    launcher = Launcher(made, PTX)
    assert [len(one) for one in fake.allocations.values()] == [4]
    (value,) = launcher()
    assert sorted(len(one) for one in fake.allocations.values()) == [4, 4, 260]
    assert value.numpy() == 15 and seen == [0xFFFF] * 3
    assert fake.launches[0][3] == 70000 and fake.dynamic_shared == {"k": 70000}


def test_tensor_maps_clusters_and_programmatic_launches(driver):
    """Maps are made once for each place, of what the manifest says, and passed by value."""
    seen = []
    fake = driver({"k": lambda driver, *arguments: seen.append(arguments)})
    tiles = {"type": "bf16", "dims": [16, 8], "strides": [32], "box": [8, 4], "element_strides": [1, 2]}
    tiles.update(interleave="16B", swizzle="32B", l2="256B", fill="nan")
    pixels = {"type": "f32", "dims": [4, 2, 2], "strides": [16, 32]}
    pixels["im2col"] = {"lower": [-1], "upper": [-3], "channels": 4, "pixels": 2}
    temporaries = [buffer("temporary", 512, offset=0), buffer("temporary", 512, offset=512)]
    step = [{"kind": "launch", "name": "l", "kernel": 0, "arguments": [slice_of(i, 256, 16)] * 3} for i in range(2)]
    steps = [{"kind": "while", "name": "w", "body": step, "rounds": 3}]
    made = manifest(steps, temporaries, [], cluster=[4, 2, 2], programmatic=True, grid=[4, 2, 2])
    made["kernels"][0]["parameters"] = [
        {"written": False},
        {"written": False, "tensor_map": tiles},
        {"written": False, "tensor_map": pixels},
    ]
    launcher = Launcher(made, PTX)
    assert fake.large_clusters == {"k"}
    launcher()
    as_tiles = (9, [16, 8], [32], [8, 4], [1, 2], 1, 1, 3, 1)
    as_pixels = (7, [4, 2, 2], [16, 32], [-1], [-3], 4, 2, [1, 1, 1], 0, 0, 0, 0)
    addresses = [arguments[0] for arguments in seen]
    assert len(seen) == 6 and len(set(addresses)) == 2
    assert seen == [(at, (at, as_tiles), (at, as_pixels)) for at in addresses]
    assert len(fake.maps) == 4
    launcher()
    assert len(seen) == 12 and len(fake.maps) == 4
    assert fake.attributes == 12 * [
        [(4, {"clusterDim": types.SimpleNamespace(x=4, y=2, z=2)}), (6, fake.attributes[0][1][1])]
    ]
    assert fake.attributes[0][1][1]["programmaticStreamSerializationAllowed"] == 1
    assert fake.launches[0] == ("k", (4, 2, 2), (1, 1, 1), 0)


def test_tensor_maps_that_the_driver_refuses(driver):
    """Of an array of the caller's that is not aligned; and where the driver is too old."""
    fake = driver({"k": lambda driver, *arguments: None})
    row = {"type": "s32", "dims": [4], "strides": [], "box": [4]}
    step = {"kind": "launch", "name": "l", "kernel": 0, "arguments": [slice_of(0, 16)] * 2}
    made = manifest([step], [buffer("parameter", 16, "s32[4]", parameter=0)], [])
    made["kernels"][0]["parameters"] = [{"written": False}, {"written": False, "tensor_map": row}]
    given = OnDevice(fake, numpy.arange(12, dtype="<i4")[:4])
    room = OnDevice(fake, numpy.arange(64, dtype="<i4"))
    aligned = (room.address + 15) // 16 * 16
    given.__cuda_array_interface__["data"] = (aligned, False)
    Launcher(made, PTX)(given)
    assert len(fake.launches) == 1
    given.__cuda_array_interface__["data"] = (aligned + 4, False)
    with pytest.raises(hloc.Unsupported, match=r"cuTensorMapEncodeTiled fails with code 1 for an address of 0x.*4$"):
        Launcher(made, PTX)(given)
    fake.failing = "cuGetProcAddress"
    with pytest.raises(hloc.Unsupported, match="cuGetProcAddress fails: CUDA_ERROR_ILLEGAL_ADDRESS"):
        Launcher(made, PTX)(room.__class__(fake, numpy.arange(4, dtype="<i4")))
    assert len(fake.launches) == 1


def test_arguments_that_are_overwritten_are_copied(driver):
    def kernel(driver, inout):
        driver.view(inout, "<i4", 1)[:] += 1

    fake = driver({"k": kernel})
    step = {"kind": "launch", "name": "l", "kernel": 0, "arguments": [slice_of(0)]}
    launcher = Launcher(manifest([step], [buffer("parameter", parameter=0)], [result(0)], written=[True]), PTX)
    given = OnDevice(fake, numpy.int32([41]).reshape(()))
    (value,) = launcher(given)
    assert value.numpy() == 42 and fake.view(given.address, "<i4", 1)[0] == 41


def test_layouts(driver):
    """A parameter's and a result's memory has the order that the shape says; arrays of the host are put into it."""
    fake = driver({})
    kind, bytes_ = "s32[2,3]{0,1}", 24
    step = {"kind": "copy", "name": "c", "from": slice_of(0, bytes_), "to": slice_of(1, bytes_)}
    buffers = [buffer("parameter", bytes_, kind, parameter=0), buffer("result", bytes_, kind)]
    launcher = Launcher(manifest([step], buffers, [result(1, kind, bytes_=bytes_)]), PTX)
    array = numpy.arange(6, dtype="<i4").reshape(2, 3)
    (value,) = launcher(array)
    assert (value.numpy() == array).all() and value.__cuda_array_interface__["strides"] == (4, 8)
    assert list(fake.view(value.address, "<i4", 6)) == [0, 3, 1, 4, 2, 5]
    with pytest.raises(hloc.InputError, match="strides"):
        launcher(OnDevice(fake, array))
    (value,) = launcher(OnDevice(fake, numpy.ascontiguousarray(array.T).reshape(2, 3), strides=(4, 8)))
    assert (value.numpy() == array).all()


def test_streams_of_others_are_waited_for(driver):
    fake = driver({"m": add})
    waited = []
    fake.cuStreamSynchronize = lambda stream: waited.append(stream) or (0,)
    x = numpy.zeros(64, "<f4")
    hloc.compile(ADD)(OnDevice(fake, x, stream=1234), OnDevice(fake, x, stream=1))
    assert waited == [1234, 0]


def test_arrays_that_do_not_fit(driver):
    driver({"m": add})
    compiled = hloc.compile(ADD)
    ones = numpy.ones(64, "<f4")
    with pytest.raises(hloc.InputError, match="2 parameters, and 1 arrays"):
        compiled(ones)
    with pytest.raises(hloc.InputError, match=r"array 1 is <f4\[63\], and the parameter <f4\[64\]"):
        compiled(ones, ones[1:])
    with pytest.raises(hloc.InputError, match="array 0 is <f8"):
        compiled(ones.astype(float), ones)


def test_what_cannot_be_done_is_refused_before_anything_is_launched(driver):
    fake = driver({})
    calls = {
        "library-call": {"function": "cublasLtMatmul"},
        "external": {"function": "all-reduce"},
        "unsupported": {"reason": "an op is not known"},
    }
    for kind, more in calls.items():
        inner = [{"kind": kind, "name": "s", **more}]
        step = {"kind": "while", "name": "w", "body": inner, "rounds": 1}
        with pytest.raises(hloc.Unsupported, match=next(iter(more.values()))):
            Launcher(manifest([step], [buffer("result")], [result(0)]), PTX)
    with pytest.raises(hloc.Unsupported, match=r"s4\[8\]"):
        Launcher(manifest([], [buffer("parameter", 4, "s4[8]", parameter=0)], []), PTX)
    assert fake.calls == []


def test_failures_of_the_driver_are_named(driver):
    driver({"m": add}, failing="cuStreamSynchronize")
    x = numpy.zeros(64, "<f4")
    with pytest.raises(hloc.Unsupported, match="cuStreamSynchronize fails: CUDA_ERROR_ILLEGAL_ADDRESS"):
        hloc.compile(ADD)(x, x)


def test_without_the_bindings(monkeypatch):
    for name in ("cuda", "cuda.bindings", "cuda.bindings.driver", "cuda.cuda"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(hloc.Unsupported, match="pip install cuda-python"):
        hloc.compile(ADD)(numpy.zeros(64, "<f4"), numpy.zeros(64, "<f4"))


def test_array_types():
    assert parse_array_type("bf16[2,3]{1,0:T(8)}").strides == (6, 2)
    assert parse_array_type("c64[4]").num_bytes == 32 and parse_array_type("f32[0,3]").num_bytes == 0
    for text in ("s4[8]", "f8e4m3fn[2]", "token[]", "(f32[], f32[])", "f32[<=3]"):
        with pytest.raises(hloc.Unsupported):
            parse_array_type(text)


def test_functions_get_their_results_back(driver):
    jax = pytest.importorskip("jax")
    fake = driver({})
    compiled = hloc.compile(lambda x, unused: {"same": x}, jax.ShapeDtypeStruct((8,), "float32"), 1.0)
    value = compiled(numpy.arange(8.0), 2.0)
    assert set(value) == {"same"} and list(value["same"].numpy()) == list(range(8)) and not fake.launches
