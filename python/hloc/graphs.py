"""A module's steps as one CUDA graph: started by one call, with loops and branches decided on the device."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple

from . import graph_api
from .device import DeviceArray, Memory
from .errors import Unsupported
from .graph_api import GraphApi, NodeParams

if TYPE_CHECKING:
    from .launch import Launcher

_Step = Dict[str, Any]
_Addresses = Tuple[int, ...]
# Loops of a known number of rounds become as many copies of their body if these are no more nodes together: a node more
# takes less time than a decision.
_MOST_UNROLLED = 512
_COUNTER_BYTES = 8
_SCALARS = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}


@dataclass
class _Line:
    """Nodes one behind the other, of the graph itself or of a conditional node's body."""

    graph: int
    last: Optional[int] = None
    last_is_kernel: bool = False
    early: Optional[int] = None  # that may still run when `last` has ended, which has not waited for its end


@dataclass
class _Node:
    """One with parameters, which are made of addresses. Neither function knows the graph, which would not be freed with its
    last reference."""

    node: int
    addresses: Callable[[], _Addresses]  # as they are now
    params: Callable[[_Addresses], NodeParams]
    was: _Addresses = ()  # as they were set last


def _handle_of(stream: Any) -> int:
    """A number, or an object that says by `__cuda_stream__` which it is."""
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is None:
        return int(stream)
    return int((protocol() if callable(protocol) else protocol)[1])


def nodes_of(steps: Sequence[_Step]) -> int:
    """How many nodes steps become, about; 0 only if they become none."""
    return sum(map(_nodes_of_step, steps))


def _nodes_of_step(step: _Step) -> int:
    if step["kind"] in ("copy", "fill"):
        return int(step["to"]["bytes"] != 0)
    if step["kind"] == "conditional":
        return sum(inside + 2 for inside in map(nodes_of, step["branches"]) if inside)
    if step["kind"] != "while":
        return 1
    body = nodes_of(step["body"])
    if "predicate" in step:
        return 2 * nodes_of(step["condition"]) + body + 3
    return int(step["rounds"] * body if step["rounds"] * body <= _MOST_UNROLLED else body + 4)


class Graph:
    """A compiled module as one CUDA graph, for certain arrays: instantiated once, launched many times.

        graph = compiled.graph(a, b)
        out = graph.launch()           # enqueued; the same arrays each time
        graph.update(c, d)             # later launches take these, in place
        graph.launch(stream)

    Arrays of the device are used where they are, by every launch with what they hold then, and have to stay there; those
    of the host are copied to the device once, by `graph` and `update`. The results are memory of the graph's own, which
    every launch writes over. So are the values between the steps. Arguments that the module would overwrite are copied
    first, by the graph itself.

    One thread at a time uses it. Launches run one after the other, also on several streams.

    Raises `Unsupported` where drivers are older than CUDA 12.3 - calling the module does the same work there - and for
    what the driver refuses, and `InputError` for arrays that do not fit.
    """

    def __init__(
        self,
        launcher: "Launcher",
        arrays: Sequence[Any],
        parameters: Callable[[Sequence[Any]], Sequence[Any]] = tuple,
        unflatten: Callable[[Sequence[Any]], Any] = tuple,
    ) -> None:
        self._launcher, self._parameters = launcher, parameters
        self._device = launcher.device
        self._device.enter()
        self._graph: Optional[int] = None
        self._executable: Optional[int] = None
        self._api = GraphApi(self._device.context)
        self._memory = {**launcher.constants, **launcher.new_temporaries(), **launcher.new_results()}
        self._given: Dict[int, Tuple[Any, int]] = {}
        self._issuer = launcher.issuer(self._memory)
        for i in launcher.overwritten_parameters:
            own = Memory(self._device, launcher.buffers[i]["bytes"])
            self._memory[i] = (own, own.address)
        self._counters: List[Memory] = []
        self._nodes: List[_Node] = []
        self._take(arrays)
        self._arrays = tuple(self._results())
        self._build()
        self._is_whole = True  # no update has failed halfway
        self.results = unflatten(self._arrays)

    def __del__(self) -> None:
        if hasattr(self, "_api"):
            self._api.destroy(self._executable, self._graph)

    def launch(self, stream: Any = 0) -> Any:
        """Enqueues all steps on a stream, by default the default one, and gives the results, which are there when the
        stream is. `stream`: its handle, or an object with `__cuda_stream__`. Raises `Unsupported` if the driver fails, also
        of work that was enqueued before."""
        if not self._is_whole:
            raise Unsupported("the graph's last update has failed", 3)
        self._device.enter()
        handle = _handle_of(stream)
        self._api.launch(self._executable or 0, handle)
        for one in self._arrays:
            one.stream = handle
        return self.results

    def update(self, *arrays: Any) -> None:
        """Later launches take these arrays; those before, also if they have not run yet, keep theirs. Only nodes that have
        other addresses now are changed, in place. After an `InputError` the graph is as it was; if the driver has refused
        an update, it cannot be launched before another one succeeds."""
        self._device.enter()
        self._take(arrays)
        self._is_whole = False
        for node in self._nodes:
            addresses = node.addresses()
            if addresses != node.was:
                node.was = ()
                self._api.set_params(self._executable or 0, node.node, node.params(addresses))
                node.was = addresses
        self._is_whole = True

    def _take(self, arrays: Sequence[Any]) -> None:
        given = self._launcher.places(self._parameters(arrays))
        self._given.update(given)
        self._memory.update((i, one) for i, one in given.items() if i not in self._launcher.overwritten_parameters)

    def _results(self) -> Iterator[DeviceArray]:
        """What lies in an argument of the caller's, or in memory that later steps use, is copied out of it."""
        for result, kind in self._launcher.results:
            buffer, offset = result["slice"]["buffer"], result["slice"]["offset"]
            if self._launcher.buffers[buffer]["kind"] == "result":
                owner, address = self._memory[buffer]
                yield DeviceArray(self._device, owner, address + offset, kind)
            else:
                own = Memory(self._device, kind.num_bytes)
                yield DeviceArray(self._device, own, own.address, kind)

    # ---- nodes

    def _build(self) -> None:
        self._graph = self._api.create()
        line = _Line(self._graph)
        for i in self._launcher.overwritten_parameters:
            self._copy_argument(line, i)
        self._add_steps(line, self._launcher.steps)
        for array, (result, _) in zip(self._arrays, self._launcher.results):
            if self._launcher.buffers[result["slice"]["buffer"]]["kind"] != "result":
                self._copy_result(line, array, result["slice"])
        self._executable = self._api.instantiate(self._graph)

    def _copy_argument(self, line: _Line, buffer: int) -> None:
        memory, given = self._memory, self._given
        size = self._launcher.buffers[buffer]["bytes"]
        self._add_copy(line, size, lambda: (memory[buffer][1], given[buffer][1]))

    def _copy_result(self, line: _Line, array: DeviceArray, place: Dict[str, int]) -> None:
        issuer, to = self._issuer, array.address
        self._add_copy(line, array.kind.num_bytes, lambda: (to, issuer.address(place)))

    def _add_steps(self, line: _Line, steps: Sequence[_Step]) -> None:
        for step in steps:
            getattr(self, "_" + step["kind"])(line, step)

    def _launch(self, line: _Line, step: _Step) -> None:
        issuer, kernel = self._issuer, self._launcher.kernels[step["kernel"]]
        function, grid, block = int(self._launcher.functions[step["kernel"]]), kernel["grid"], kernel["block"]

        def params(_: _Addresses) -> NodeParams:
            arguments = [
                value if isinstance(value, ctypes.Structure) else _SCALARS[size or 8](value)
                for value, size in issuer.arguments(step)
            ]
            return graph_api.kernel_params(function, grid, block, kernel["dynamic_shared_bytes"], arguments)

        def addresses() -> _Addresses:
            return tuple(issuer.address(one) for one in step["arguments"] if "buffer" in one)

        node = self._add(line, addresses, params, bool(kernel.get("programmatic", False)))
        if "cluster" in kernel:
            self._api.set_cluster(node, kernel["cluster"])

    def _copy(self, line: _Line, step: _Step) -> None:
        issuer, to, source = self._issuer, step["to"], step["from"]
        self._add_copy(line, to["bytes"], lambda: (issuer.address(to), issuer.address(source)))

    def _fill(self, line: _Line, step: _Step) -> None:
        issuer, to, value = self._issuer, step["to"], step["value"]
        self._add_fill(line, to["bytes"], value, lambda: (issuer.address(to),))

    def _while(self, line: _Line, step: _Step) -> None:
        """The condition stands before the loop and at the end of its body, each time with what tells the loop its
        result."""
        if "predicate" not in step:
            self._counted(line, step)
            return
        handle = self._api.condition(line.graph)
        self._add_steps(line, step["condition"])
        self._add_branch(line, handle, step["predicate"], 0, 2)
        body = self._add_conditional(line, handle, graph_api.WHILE)
        self._add_steps(body, step["body"])
        self._add_steps(body, step["condition"])
        self._add_branch(body, handle, step["predicate"], 0, 2)

    def _counted(self, line: _Line, step: _Step) -> None:
        count, rounds = nodes_of(step["body"]), step["rounds"]
        if count == 0:
            return
        if rounds * count <= _MOST_UNROLLED:
            for _ in range(rounds):
                self._add_steps(line, step["body"])
            return
        handle = self._api.condition(line.graph)
        counter = Memory(self._device, _COUNTER_BYTES)
        self._counters.append(counter)
        self._add_fill(line, _COUNTER_BYTES, 0, lambda: (counter.address,))
        self._add_round(line, handle, counter.address, rounds)
        body = self._add_conditional(line, handle, graph_api.WHILE)
        self._add_steps(body, step["body"])
        self._add_round(body, handle, counter.address, rounds)

    def _conditional(self, line: _Line, step: _Step) -> None:
        """A conditional node for each branch. All are told before the first runs: a branch may write over the
        selector."""
        branches = step["branches"]
        handles = {i: self._api.condition(line.graph) for i, branch in enumerate(branches) if nodes_of(branch)}
        for i, handle in handles.items():
            self._add_branch(line, handle, step["selector"], i, len(branches))
        for i, handle in handles.items():
            self._add_steps(self._add_conditional(line, handle, graph_api.IF), branches[i])

    def _add_copy(self, line: _Line, num_bytes: int, addresses: Callable[[], _Addresses]) -> None:
        if num_bytes:
            context = self._api.context
            self._add(line, addresses, lambda at: graph_api.copy_params(context, at[0], at[1], num_bytes))

    def _add_fill(self, line: _Line, num_bytes: int, value: int, addresses: Callable[[], _Addresses]) -> None:
        if num_bytes:
            context = self._api.context
            self._add(line, addresses, lambda at: graph_api.fill_params(context, at[0], value, num_bytes))

    def _add_branch(self, line: _Line, handle: int, selector: Dict[str, int], branch: int, branches: int) -> None:
        """Tells a condition whether the selector chooses this branch."""
        issuer, function = self._issuer, self._launcher.condition_kernel(graph_api.BRANCH_KERNEL)
        numbers = [ctypes.c_uint32(one) for one in (selector["bytes"], branch, branches)]

        def params(at: _Addresses) -> NodeParams:
            arguments = [ctypes.c_uint64(handle), ctypes.c_uint64(at[0]), *numbers]
            return graph_api.kernel_params(function, (1, 1, 1), (1, 1, 1), 0, arguments)

        self._add(line, lambda: (issuer.address(selector),), params)

    def _add_round(self, line: _Line, handle: int, counter: int, rounds: int) -> None:
        """Counts, and tells a condition whether there are rounds left."""
        function = self._launcher.condition_kernel(graph_api.ROUND_KERNEL)
        arguments = [ctypes.c_uint64(one) for one in (handle, counter, rounds)]
        params = graph_api.kernel_params(function, (1, 1, 1), (1, 1, 1), 0, arguments)
        self._add(line, lambda: (counter,), lambda _: params)

    def _add(
        self,
        line: _Line,
        addresses: Callable[[], _Addresses],
        params: Callable[[_Addresses], NodeParams],
        is_programmatic: bool = False,
    ) -> int:
        was = addresses()
        made = params(was)
        begins_early = is_programmatic and line.last_is_kernel
        node = self._api.add(line.graph, made, self._before(line, begins_early))
        self._follow(line, node, begins_early, made.is_kernel)
        self._nodes.append(_Node(node, addresses, params, was))
        return node

    def _add_conditional(self, line: _Line, handle: int, kind: int) -> _Line:
        node, body = self._api.add_conditional(line.graph, handle, kind, self._before(line, False))
        self._follow(line, node, False, False)
        return _Line(body)

    @staticmethod
    def _before(line: _Line, begins_early: bool) -> List[Tuple[int, bool]]:
        """A kernel that may begin early waits itself for the end of the one before it, as far as it has to. What comes
        behind it knows nothing of that, so it waits for both."""
        before = [(line.last, begins_early)] if line.last is not None else []
        return before + ([(line.early, False)] if line.early is not None else [])

    @staticmethod
    def _follow(line: _Line, node: int, begins_early: bool, is_kernel: bool) -> None:
        line.early = line.last if begins_early else None
        line.last, line.last_is_kernel = node, is_kernel
