"""Carrying a manifest's steps out on a GPU.

`hloc.compile(f, x)(x)` does this with cuda-python. What it cannot do - calls of libraries, external steps, what was not
compiled, arrays of less than a byte an element - is refused when the launcher is made, before anything is launched.
"""

from __future__ import annotations

from math import prod
from typing import Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple, Union

from .device import Device, DeviceArray, Memory
from .errors import InputError, Unsupported
from .shapes import ArrayType, parse_array_type
from .tensor_maps import EncodedMap

_Step = Dict[str, Any]
_MOST_MAPS = 4096  # that are kept, some of arrays that the caller has given up since
_STREAMS = (None, 0, 1, 2)  # none, and what are the default streams of `__cuda_array_interface__`


def all_steps(steps: Sequence[_Step]) -> Iterator[_Step]:
    """All steps in order, those inside others after them."""
    for step in steps:
        yield step
        for part in (step.get("condition", ()), step.get("body", ()), *step.get("branches", ())):
            yield from all_steps(part)


def _refuse_what_cannot_be_done(steps: Sequence[_Step]) -> None:
    for step in all_steps(steps):
        name, kind = step["name"], step["kind"]
        if kind == "library-call":
            raise Unsupported(
                f"step `{name}` calls {step['function']}, which is not done from Python: compile with dots='own' and "
                "convolutions='own'",
                3,
            )
        if kind == "external":
            raise Unsupported(f"step `{name}` is external: `{step['function']}` is for whoever runs the module", 3)
        if kind == "unsupported":
            raise Unsupported(f"step `{name}` was not compiled: {step['reason']}", 3)


class Launcher:
    """A compiled module on the GPU: its kernels loaded, its constants and temporaries there.

    Calls take one array a parameter, in order: arrays of the device, which say where they are by
    `__cuda_array_interface__` (cupy, torch, numba, jax on a GPU), or of the host, which are copied there. They give a
    tuple of `DeviceArray`, and have waited for the kernels. Arguments that the module may overwrite are copied first.

    Raises `Unsupported` for what cannot be done, and `InputError` for arrays that do not fit.
    """

    def __init__(self, manifest: Dict[str, Any], image: str) -> None:
        self._manifest = manifest
        self._buffers: List[Dict[str, Any]] = manifest["buffers"]
        _refuse_what_cannot_be_done(manifest["steps"])
        self._parameters = sorted(
            (i for i, one in enumerate(self._buffers) if one["kind"] == "parameter"),
            key=lambda i: (self._buffers[i]["parameter"], self._buffers[i]["leaf"]),
        )
        self._parameter_types = [parse_array_type(self._buffers[i]["shape"]) for i in self._parameters]
        self._overwritten = _written(manifest) | {i for i, one in enumerate(self._buffers) if one.get("donated", False)}
        self._results = sorted(manifest["results"], key=lambda result: list(result["leaf"]))
        self._result_types = [parse_array_type(result["shape"]) for result in self._results]
        self._device = Device()
        module = self._device.load(image.encode())
        self._kernels = [
            self._device.kernel(
                module, kernel["name"], kernel["dynamic_shared_bytes"], prod(kernel.get("cluster", (1,)))
            )
            for kernel in manifest["kernels"]
        ]
        self._maps: Dict[Tuple[int, int, int], EncodedMap] = {}
        self._kept: Dict[int, Tuple[Memory, int]] = {}
        self._keep_constants_and_temporaries()

    def _keep_constants_and_temporaries(self) -> None:
        places = [one for one in self._buffers if "offset" in one]
        shared = Memory(self._device, max(one["offset"] + one["bytes"] for one in places)) if places else None
        for i, one in enumerate(self._buffers):
            if one["kind"] == "temporary" and "offset" in one and shared is not None:
                self._kept[i] = (shared, shared.address + one["offset"])
            elif one["kind"] in ("temporary", "constant"):
                own = Memory(self._device, one["bytes"])
                self._kept[i] = (own, own.address)
                if one["kind"] == "constant":
                    self._device.upload(own.address, bytes.fromhex(one["data"]))

    def __call__(self, *arrays: Any) -> Tuple[DeviceArray, ...]:
        if len(arrays) != len(self._parameters):
            raise InputError(
                f"the module has {len(self._parameters)} parameters, and {len(arrays)} arrays are given", 1
            )
        self._device.enter()
        memory: Dict[int, Tuple[Any, int]] = dict(self._kept)
        for number, (i, kind, array) in enumerate(zip(self._parameters, self._parameter_types, arrays)):
            memory[i] = self._argument(number, kind, array, i in self._overwritten)
        for i, one in enumerate(self._buffers):
            if one["kind"] == "result":
                own = Memory(self._device, one["bytes"])
                memory[i] = (own, own.address)
        if len(self._maps) > _MOST_MAPS:
            self._maps.clear()
        issuer = _Issuer(self._device, self._manifest["kernels"], self._kernels, memory, self._maps)
        issuer.run(self._manifest["steps"])
        results = tuple(self._result(one, kind, memory) for one, kind in zip(self._results, self._result_types))
        self._device.synchronize()
        return results

    def _argument(self, number: int, kind: ArrayType, array: Any, is_overwritten: bool) -> Tuple[Any, int]:
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is None:
            return self._upload(number, kind, array)
        _check_fit(number, kind, tuple(interface["shape"]), str(interface["typestr"]))
        strides = interface.get("strides") or _row_major(kind)
        if tuple(strides) != kind.strides and kind.num_bytes and _matter(kind, tuple(strides)):
            raise InputError(f"array {number} lies in memory by strides {tuple(strides)}, not {kind.strides}", 1)
        if interface.get("stream") not in _STREAMS:
            self._device.synchronize(interface["stream"])
        address = int(interface["data"][0])
        if not is_overwritten:
            return array, address
        own = Memory(self._device, kind.num_bytes)
        self._device.copy(own.address, address, kind.num_bytes)
        return own, own.address

    def _upload(self, number: int, kind: ArrayType, array: Any) -> Tuple[Memory, int]:
        import numpy

        host = numpy.asarray(array)
        _check_fit(number, kind, host.shape, host.dtype.str)
        by_memory = numpy.ascontiguousarray(host.transpose(tuple(reversed(kind.minor_to_major))))
        own = Memory(self._device, kind.num_bytes)
        self._device.upload(own.address, by_memory.tobytes())
        return own, own.address

    def _result(self, result: Dict[str, Any], kind: ArrayType, memory: Dict[int, Tuple[Any, int]]) -> DeviceArray:
        """What lies in an argument of the caller's, or in memory of the launcher, is copied out of it."""
        buffer, offset = result["slice"]["buffer"], result["slice"]["offset"]
        owner, address = memory[buffer]
        if self._buffers[buffer]["kind"] == "result":
            return DeviceArray(self._device, owner, address + offset, kind)
        own = Memory(self._device, kind.num_bytes)
        self._device.copy(own.address, address + offset, kind.num_bytes)
        return DeviceArray(self._device, own, own.address, kind)


def _written(manifest: Dict[str, Any]) -> Set[int]:
    """Buffers that a step writes."""
    found: Set[int] = set()
    for step in all_steps(manifest["steps"]):
        if step["kind"] == "launch":
            parameters = manifest["kernels"][step["kernel"]]["parameters"]
            for argument, parameter in zip(step["arguments"], parameters):
                if "buffer" in argument and parameter["written"]:
                    found.add(argument["buffer"])
        elif step["kind"] in ("copy", "fill"):
            found.add(step["to"]["buffer"])
    return found


def _row_major(kind: ArrayType) -> Tuple[int, ...]:
    return ArrayType(kind.element, kind.dimensions, tuple(reversed(range(len(kind.dimensions))))).strides


def _matter(kind: ArrayType, strides: Tuple[int, ...]) -> bool:
    """Strides of dimensions of one element do not."""
    return any(a != b for a, b, size in zip(strides, kind.strides, kind.dimensions) if size > 1)


def _check_fit(number: int, kind: ArrayType, shape: Tuple[int, ...], type_string: str) -> None:
    if shape != kind.dimensions or type_string != kind.type_string:
        raise InputError(
            f"array {number} is {type_string}{list(shape)}, and the parameter "
            f"{kind.type_string}{list(kind.dimensions)}",
            1,
        )


class _Issuer:
    """Steps, one after the other, over buffers that are somewhere."""

    def __init__(
        self,
        device: Device,
        kernels: Sequence[Dict[str, Any]],
        functions: Sequence[Any],
        memory: Dict[int, Tuple[Any, int]],
        maps: Dict[Tuple[int, int, int], EncodedMap],
    ) -> None:
        self._device, self._kernels, self._functions, self._memory = device, kernels, functions, memory
        self._maps = maps

    def run(self, steps: Sequence[_Step]) -> None:
        for step in steps:
            getattr(self, "_" + step["kind"])(step)

    def _address(self, slice_: Dict[str, int]) -> int:
        return self._memory[slice_["buffer"]][1] + slice_["offset"]

    def _launch(self, step: _Step) -> None:
        kernel = self._kernels[step["kernel"]]
        arguments: List[Tuple[Union[int, EncodedMap], Optional[int]]] = []
        for i, one in enumerate(step["arguments"]):
            if "tensor_map" in kernel["parameters"][i]:
                arguments.append((self._map(step["kernel"], i, self._address(one)), None))
            elif "buffer" in one:
                arguments.append((self._address(one), None))
            else:
                arguments.append((one["value"] & (256 ** one["bytes"] - 1), one["bytes"]))
        shared = kernel["dynamic_shared_bytes"]
        cluster, programmatic = kernel.get("cluster"), kernel.get("programmatic", False)
        function, grid, block = self._functions[step["kernel"]], kernel["grid"], kernel["block"]
        self._device.launch(function, grid, block, shared, arguments, cluster, programmatic)

    def _map(self, kernel: int, parameter: int, address: int) -> EncodedMap:
        """Once for each address: what is in a map depends on nothing else."""
        key = (kernel, parameter, address)
        if key not in self._maps:
            recipe = self._kernels[kernel]["parameters"][parameter]["tensor_map"]
            self._maps[key] = self._device.tensor_map(recipe, address)
        return self._maps[key]

    def _copy(self, step: _Step) -> None:
        self._device.copy(self._address(step["to"]), self._address(step["from"]), step["to"]["bytes"])

    def _fill(self, step: _Step) -> None:
        self._device.fill(self._address(step["to"]), step["value"], step["to"]["bytes"])

    def _read(self, slice_: Dict[str, int]) -> int:
        raw = self._device.download(self._address(slice_), slice_["bytes"])
        return int.from_bytes(raw, "little", signed=True)

    def _while(self, step: _Step) -> None:
        if "predicate" not in step:
            for _ in range(step["rounds"]):
                self.run(step["body"])
            return
        while True:
            self.run(step["condition"])
            if not self._read(step["predicate"]):
                return
            self.run(step["body"])

    def _conditional(self, step: _Step) -> None:
        value, branches = self._read(step["selector"]), step["branches"]
        if step["selector"]["bytes"] == 1:
            chosen = 0 if value else 1
        else:
            chosen = value if 0 <= value < len(branches) else len(branches) - 1
        self.run(branches[chosen])
