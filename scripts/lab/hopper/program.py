"""Kernels written by hand, how they are launched, and how `hloc run` executes them: on a card and in the emulator.

A Fact has a kernel, inputs and a result, both arrays of 32-bit words. The HLO that `hloc run` wants has only their shapes;
nothing is compared with it.
"""
import array
import ast
import json
import pathlib
import struct
import subprocess
import zipfile
from dataclasses import dataclass, field

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"


@dataclass
class Fact:
    """name: also that of files. question: what the table says of it.

    steps: those of the launch description. inputs: words of parameter 0, 1, ..., which fill buffers 0, 1, ...; scratch: bytes of
    each buffer behind these. result: (buffer, bytes). refused: the emulator reports it, which is no disagreement. traps: it
    does so since a card ends the kernel.
    explain(card, emulated): lines on two results, lists of words, that differ; `emulated` is None where there is none.
    describe(words): what a result says.
    """
    name: str
    question: str
    ptx: str
    steps: list
    inputs: list
    result: tuple
    scratch: list = field(default_factory=list)
    refused: bool = False
    traps: bool = False
    explain: object = None
    describe: object = None


def buffer(identifier, nbytes, offset=0):
    return {"buffer": identifier, "offset": offset, "bytes": nbytes}


def tensor_map(identifier, nbytes, kind, dims, box=None, **more):
    """Dense unless `strides` says more. dims and box: the innermost first."""
    sizes = {"u8": 1, "u16": 2, "f16": 2, "bf16": 2, "u64": 8, "s64": 8, "f64": 8}
    stride, strides = sizes.get(kind, 4), []
    for dim in dims[:-1]:
        stride *= dim
        strides.append(stride)
    made = {**buffer(identifier, nbytes), "type": kind, "dims": dims, "strides": more.pop("strides", strides)}
    if box:
        made["box"] = box
    return {"tensor_map": {**made, **more}}


def launch(kernel, arguments, grid=1, block=128, inputs=0, shared=0, cluster=None):
    made = {"kernel": kernel, "grid": [grid, 1, 1], "block": [block, 1, 1], "dynamic_shared_bytes": shared,
            "inputs": inputs, "arguments": arguments}
    if cluster:
        made["cluster"] = cluster
    return {"launch": made}


def write(fact, folder):
    base = folder / fact.name
    parameters = "".join(f"  p{i} = u32[{len(words)}]{{0}} parameter({i})\n" for i, words in enumerate(fact.inputs))
    result, nbytes = fact.result
    base.with_suffix(".hlo").write_text(
        f"HloModule {fact.name}\nENTRY main {{\n{parameters}  zero = u32[] constant(0)\n"
        f"  ROOT r = u32[{nbytes // 4}]{{0}} broadcast(zero), dimensions={{}}\n}}\n")
    base.with_suffix(".ptx").write_text(fact.ptx)
    buffers = [{"id": i, "bytes": 4 * len(words), "parameter": i} for i, words in enumerate(fact.inputs)]
    buffers += [{"id": len(buffers) + i, "bytes": size} for i, size in enumerate(fact.scratch)]
    base.with_suffix(".json").write_text(json.dumps(
        {"target": "sm_90a", "buffers": buffers, "steps": fact.steps,
         "results": [{"index": [], **buffer(result, nbytes)}]}, indent=1))
    with zipfile.ZipFile(base.with_suffix(".npz"), "w") as archive:
        for i, words in enumerate(fact.inputs):
            header = f"{{'descr': '<u4', 'fortran_order': False, 'shape': ({len(words)},), }}"
            header += " " * (63 - (10 + len(header)) % 64) + "\n"
            archive.writestr(f"{i}.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                             array.array("I", words).tobytes())


def read_result(path):
    """The words of the first array of an npz file."""
    with zipfile.ZipFile(path) as archive:
        data = archive.read(archive.namelist()[0])
    length = struct.unpack("<H", data[8:10])[0]
    header = ast.literal_eval(data[10:10 + length].decode())
    assert header["descr"] == "<u4", header
    return array.array("I", data[10 + length:]).tolist()


def run(hloc, fact, folder, platform, seconds):
    """(words or None, output). The words are there if the run gave any, whatever the exit code."""
    base = folder / fact.name
    out = pathlib.Path(f"{base}.{platform}.npz")
    out.unlink(missing_ok=True)
    arguments = [hloc, "run", f"{base}.hlo", f"--ptx={base}.ptx", f"--launch={base}.json", f"--inputs={base}.npz",
                 f"--outputs={out}", "--reference=none", f"--platform={platform}"]
    if platform == "emulator":
        arguments += ["--approximations=hopper", "--jobs=1"]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=seconds)
        text, code = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired:
        text, code = f"no result after {seconds} s\n", -1
    pathlib.Path(f"{base}.{platform}.log").write_text(f"{text}exit {code}\n")
    return (read_result(out) if out.exists() and code == 0 else None), text
