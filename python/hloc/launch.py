"""Carrying a manifest's steps out on a GPU.

`hloc.compile(f, x)(x)` does this with cuda-python. What it cannot do - calls of libraries, external steps, what was not
compiled, arrays of less than a byte an element - is refused when the launcher is made, before anything is launched.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Sequence, Set, Tuple, Union

from .device import Device, DeviceArray, Memory
from .errors import InputError, Unsupported
from .graph_api import CONDITION_PTX
from .shapes import ArrayType, parse_array_type
from .tensor_maps import EncodedMap

if TYPE_CHECKING:
    from .graphs import Graph

_Step = Dict[str, Any]
Places = Dict[int, Tuple[Any, int]]
"""By buffer: who owns it, and its address."""
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
    """A compiled module on the GPU: its kernels loaded, its constants there.

    Calls take one array a parameter, in order: arrays of the device, which say where they are by
    `__cuda_array_interface__` (cupy, torch, numba, jax on a GPU), or of the host, which are copied there. They give a
    tuple of `DeviceArray`, and have waited for the kernels. Arguments that the module may overwrite are copied first.
    `hloc.graphs.Graph` does the same as a CUDA graph.

    Raises `Unsupported` for what cannot be done, and `InputError` for arrays that do not fit.
    """

    def __init__(self, manifest: Dict[str, Any], image: str) -> None:
        self._manifest = manifest
        self.buffers: List[Dict[str, Any]] = manifest["buffers"]
        self.steps: List[_Step] = manifest["steps"]
        self.kernels: List[Dict[str, Any]] = manifest["kernels"]
        _refuse_what_cannot_be_done(self.steps)
        self._parameters = sorted(
            (i for i, one in enumerate(self.buffers) if one["kind"] == "parameter"),
            key=lambda i: (self.buffers[i]["parameter"], self.buffers[i]["leaf"]),
        )
        self._parameter_types = [parse_array_type(self.buffers[i]["shape"]) for i in self._parameters]
        overwritten = _written(manifest) | {i for i, one in enumerate(self.buffers) if one.get("donated", False)}
        self.overwritten_parameters = [i for i in self._parameters if i in overwritten]
        results = sorted(manifest["results"], key=lambda result: list(result["leaf"]))
        self.results = [(result, parse_array_type(result["shape"])) for result in results]
        self.device = Device()
        module = self.device.load(image.encode())
        self.functions = [
            self.device.kernel(
                module, kernel["name"], kernel["dynamic_shared_bytes"], prod(kernel.get("cluster", (1,)))
            )
            for kernel in self.kernels
        ]
        self._maps: Dict[Tuple[int, int, int], EncodedMap] = {}
        self._conditions: Any = None
        self._temporaries: Optional[Places] = None
        self.constants: Places = {}
        for i, one in enumerate(self.buffers):
            if one["kind"] == "constant":
                self.constants[i] = self._new(one["bytes"])
                self.device.upload(self.constants[i][1], bytes.fromhex(one["data"]))

    def _new(self, num_bytes: int) -> Tuple[Memory, int]:
        own = Memory(self.device, num_bytes)
        return own, own.address

    def new_temporaries(self) -> Places:
        """Memory for what lies between the steps, of those that run one after the other."""
        shared_bytes = max((one["offset"] + one["bytes"] for one in self.buffers if "offset" in one), default=None)
        made: Places = {}
        if shared_bytes is not None:
            shared, begin = self._new(shared_bytes)
        for i, one in enumerate(self.buffers):
            if one["kind"] == "temporary":
                made[i] = (shared, begin + one["offset"]) if "offset" in one else self._new(one["bytes"])
        return made

    def new_results(self) -> Places:
        """Memory for the results that steps write where the caller finds them."""
        return {i: self._new(one["bytes"]) for i, one in enumerate(self.buffers) if one["kind"] == "result"}

    def places(self, arrays: Sequence[Any]) -> Places:
        """Where the arrays of the parameters are: by the parameter's buffer who owns them, and the address. Those of the
        host are copied to the device."""
        if len(arrays) != len(self._parameters):
            raise InputError(
                f"the module has {len(self._parameters)} parameters, and {len(arrays)} arrays are given", 1
            )
        kinds = zip(self._parameters, self._parameter_types, arrays)
        return {i: self._place(number, kind, array) for number, (i, kind, array) in enumerate(kinds)}

    def issuer(self, memory: Places) -> Issuer:
        """Who carries steps out over buffers that lie there."""
        if len(self._maps) > _MOST_MAPS:
            self._maps.clear()
        return Issuer(self.device, self.kernels, self.functions, memory, self._maps)

    def condition_kernel(self, name: str) -> int:
        """A kernel that decides for a graph."""
        if self._conditions is None:
            self._conditions = self.device.load(CONDITION_PTX.encode())
        return int(self.device.kernel(self._conditions, name, 0))

    def __call__(self, *arrays: Any) -> Tuple[DeviceArray, ...]:
        self.device.enter()
        given = self.places(arrays)
        if self._temporaries is None:
            self._temporaries = self.new_temporaries()
        memory = {**self.constants, **self._temporaries, **given, **self.new_results()}
        for i in self.overwritten_parameters:
            owner, address = given[i]
            if not isinstance(owner, Memory):  # but the caller's
                memory[i] = self._new(self.buffers[i]["bytes"])
                self.device.copy(memory[i][1], address, self.buffers[i]["bytes"])
        self.issuer(memory).run(self.steps)
        results = tuple(self._result(one, kind, memory) for one, kind in self.results)
        self.device.synchronize()
        return results

    def graph(self, *arrays: Any) -> Graph:
        """The module as a CUDA graph, for arrays like those of a call."""
        from .graphs import Graph

        return Graph(self, arrays)

    def _place(self, number: int, kind: ArrayType, array: Any) -> Tuple[Any, int]:
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is None:
            return self._upload(number, kind, array)
        _check_fit(number, kind, tuple(interface["shape"]), str(interface["typestr"]))
        strides = interface.get("strides") or _row_major(kind)
        if tuple(strides) != kind.strides and kind.num_bytes and _matter(kind, tuple(strides)):
            raise InputError(f"array {number} lies in memory by strides {tuple(strides)}, not {kind.strides}", 1)
        if interface.get("stream") not in _STREAMS:
            self.device.synchronize(interface["stream"])
        return array, int(interface["data"][0])

    def _upload(self, number: int, kind: ArrayType, array: Any) -> Tuple[Memory, int]:
        import numpy

        host = numpy.asarray(array)
        _check_fit(number, kind, host.shape, host.dtype.str)
        by_memory = numpy.ascontiguousarray(host.transpose(tuple(reversed(kind.minor_to_major))))
        own = Memory(self.device, kind.num_bytes)
        self.device.upload(own.address, by_memory.tobytes())
        return own, own.address

    def _result(self, result: Dict[str, Any], kind: ArrayType, memory: Places) -> DeviceArray:
        """What lies in an argument of the caller's, or in memory of the launcher, is copied out of it."""
        buffer, offset = result["slice"]["buffer"], result["slice"]["offset"]
        owner, address = memory[buffer]
        if self.buffers[buffer]["kind"] == "result":
            return DeviceArray(self.device, owner, address + offset, kind)
        own = Memory(self.device, kind.num_bytes)
        self.device.copy(own.address, address + offset, kind.num_bytes)
        return DeviceArray(self.device, own, own.address, kind)


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


class Issuer:
    """Steps, one after the other, over buffers that are somewhere."""

    def __init__(
        self,
        device: Device,
        kernels: Sequence[Dict[str, Any]],
        functions: Sequence[Any],
        memory: Places,
        maps: Dict[Tuple[int, int, int], EncodedMap],
    ) -> None:
        self._device, self._kernels, self._functions, self._memory = device, kernels, functions, memory
        self._maps = maps

    def run(self, steps: Sequence[_Step]) -> None:
        for step in steps:
            getattr(self, "_" + step["kind"])(step)

    def address(self, slice_: Dict[str, int]) -> int:
        """Of a slice of a buffer."""
        return self._memory[slice_["buffer"]][1] + slice_["offset"]

    def arguments(self, step: _Step) -> List[Tuple[Union[int, EncodedMap], Optional[int]]]:
        """Of a launch: addresses and tensor maps, or values with how many bytes they have."""
        kernel = self._kernels[step["kernel"]]
        arguments: List[Tuple[Union[int, EncodedMap], Optional[int]]] = []
        for i, one in enumerate(step["arguments"]):
            if "tensor_map" in kernel["parameters"][i]:
                arguments.append((self._map(step["kernel"], i, self.address(one)), None))
            elif "buffer" in one:
                arguments.append((self.address(one), None))
            else:
                arguments.append((one["value"] & (256 ** one["bytes"] - 1), one["bytes"]))
        return arguments

    def _launch(self, step: _Step) -> None:
        kernel, arguments = self._kernels[step["kernel"]], self.arguments(step)
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
        self._device.copy(self.address(step["to"]), self.address(step["from"]), step["to"]["bytes"])

    def _fill(self, step: _Step) -> None:
        self._device.fill(self.address(step["to"]), step["value"], step["to"]["bytes"])

    def _read(self, slice_: Dict[str, int]) -> int:
        raw = self._device.download(self.address(slice_), slice_["bytes"])
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
