"""CUDA graphs as the driver has them: what nodes are added with, and the functions that take it.

The driver's library is called itself: in cuda-python the names of these functions and the form of a node's parameters
differ between versions.
"""

from __future__ import annotations

import ctypes
from typing import Any, Optional, Sequence, Tuple

from .errors import Unsupported

_LIBRARY = "libcuda.so.1"
_FUNCTIONS = (  # all there are since CUDA 12.3
    "cuGraphCreate",
    "cuGraphDestroy",
    "cuGraphAddNode_v2",
    "cuGraphConditionalHandleCreate",
    "cuGraphKernelNodeSetAttribute",
    "cuGraphInstantiateWithFlags",
    "cuGraphExecNodeSetParams",
    "cuGraphExecDestroy",
    "cuGraphLaunch",
)
_KERNEL, _COPY, _FILL, _CONDITIONAL = 0, 1, 2, 13
IF, WHILE = 0, 1
_ON_DEVICE = 2
_CLUSTER = 4

BRANCH_KERNEL, ROUND_KERNEL = "hloc_takes_branch", "hloc_goes_round"
# Kernels of one thread that decide, on the device, whether a conditional node's graph runs. The driver itself defines
# cudaGraphSetConditional. The text is that of include/hloc_launch/Conditions.h, which a test compares.
CONDITION_PTX = """\
.version 7.0
.target sm_80
.address_size 64

.extern .func cudaGraphSetConditional
(
  .param .b64 handle,
  .param .b32 value
);

// Selectors of one byte choose branch 0 if they are not 0, else 1; of four bytes the last one if they are negative or
// too large, which as unsigned numbers are the same.
.visible .entry hloc_takes_branch
(
  .param .u64 handle,
  .param .u64 selector,
  .param .u32 bytes,
  .param .u32 branch,
  .param .u32 branches
)
{
  .reg .pred %isByte, %holds, %isTaken;
  .reg .b64 %handle, %selector;
  .reg .b32 %bytes, %branch, %last, %chosen, %value;

  ld.param.u64 %handle, [handle];
  ld.param.u64 %selector, [selector];
  cvta.to.global.u64 %selector, %selector;
  ld.param.u32 %bytes, [bytes];
  ld.param.u32 %branch, [branch];
  ld.param.u32 %last, [branches];
  sub.u32 %last, %last, 1;
  setp.eq.u32 %isByte, %bytes, 1;
  @%isByte bra BYTE;
  ld.global.u32 %chosen, [%selector];
  min.u32 %chosen, %chosen, %last;
  bra DECIDE;
BYTE:
  ld.global.u8 %chosen, [%selector];
  setp.ne.u32 %holds, %chosen, 0;
  selp.u32 %chosen, 0, 1, %holds;
DECIDE:
  setp.eq.u32 %isTaken, %chosen, %branch;
  selp.u32 %value, 1, 0, %isTaken;
  {
    .param .b64 first;
    .param .b32 second;
    st.param.b64 [first], %handle;
    st.param.b32 [second], %value;
    call.uni cudaGraphSetConditional, (first, second);
  }
  ret;
}

// Counts, from 0, how often it was asked.
.visible .entry hloc_goes_round
(
  .param .u64 handle,
  .param .u64 counter,
  .param .u64 rounds
)
{
  .reg .pred %goesOn;
  .reg .b64 %handle, %counter, %rounds, %before, %after;
  .reg .b32 %value;

  ld.param.u64 %handle, [handle];
  ld.param.u64 %counter, [counter];
  cvta.to.global.u64 %counter, %counter;
  ld.param.u64 %rounds, [rounds];
  ld.global.u64 %before, [%counter];
  add.u64 %after, %before, 1;
  st.global.u64 [%counter], %after;
  setp.lt.u64 %goesOn, %before, %rounds;
  selp.u32 %value, 1, 0, %goesOn;
  {
    .param .b64 first;
    .param .b32 second;
    st.param.b64 [first], %handle;
    st.param.b32 [second], %value;
    call.uni cudaGraphSetConditional, (first, second);
  }
  ret;
}
"""


class _KernelParams(ctypes.Structure):
    _fields_ = (
        ("function", ctypes.c_void_p),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("parameters", ctypes.c_void_p),
        ("extra", ctypes.c_void_p),
        ("kernel", ctypes.c_void_p),
        ("context", ctypes.c_void_p),
    )


class _CopyEnd(ctypes.Structure):
    _fields_ = (
        ("x_y_z_level", ctypes.c_size_t * 4),
        ("memory_type", ctypes.c_int),
        ("host", ctypes.c_void_p),
        ("device", ctypes.c_uint64),
        ("array_and_reserved", ctypes.c_void_p * 2),
        ("pitch_and_height", ctypes.c_size_t * 2),
    )


class _CopyParams(ctypes.Structure):
    _fields_ = (
        ("flags_and_reserved", ctypes.c_int * 2),
        ("context", ctypes.c_void_p),
        ("source", _CopyEnd),
        ("to", _CopyEnd),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("depth", ctypes.c_size_t),
    )


class _FillParams(ctypes.Structure):
    _fields_ = (
        ("to", ctypes.c_uint64),
        ("pitch", ctypes.c_size_t),
        ("value", ctypes.c_uint32),
        ("element_bytes", ctypes.c_uint32),
        ("width", ctypes.c_size_t),
        ("height", ctypes.c_size_t),
        ("context", ctypes.c_void_p),
    )


class _ConditionalParams(ctypes.Structure):
    _fields_ = (
        ("handle", ctypes.c_uint64),
        ("type", ctypes.c_int),
        ("size", ctypes.c_uint32),
        ("bodies", ctypes.POINTER(ctypes.c_void_p)),
        ("context", ctypes.c_void_p),
    )


class _OneOf(ctypes.Union):
    _fields_ = (
        ("all", ctypes.c_uint64 * 29),
        ("kernel", _KernelParams),
        ("copy", _CopyParams),
        ("fill", _FillParams),
        ("conditional", _ConditionalParams),
    )


class NodeParams(ctypes.Structure):
    """CUgraphNodeParams. What is reserved or not used has to be 0."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("reserved", ctypes.c_int * 3),
        ("one", _OneOf),
        ("reserved_end", ctypes.c_uint64),
    )

    @property
    def is_kernel(self) -> bool:
        """Whether the node launches one."""
        return bool(self.type == _KERNEL)


class _EdgeData(ctypes.Structure):
    _fields_ = (
        ("from_port", ctypes.c_ubyte),
        ("to_port", ctypes.c_ubyte),
        ("type", ctypes.c_ubyte),
        ("reserved", ctypes.c_ubyte * 5),
    )


_EARLY = (1, 0, 1)  # as soon as all blocks have let the next kernel begin: programmatic


def kernel_params(
    function: int, grid: Sequence[int], block: Sequence[int], shared_bytes: int, arguments: Sequence[Any]
) -> NodeParams:
    """A launch. `arguments`: the kernel's, as values of ctypes, which the driver copies when it is given these."""
    made = NodeParams(type=_KERNEL)
    pointers = (ctypes.c_void_p * max(len(arguments), 1))(*map(ctypes.addressof, arguments))
    kernel = made.one.kernel
    kernel.function, kernel.shared_bytes = function, shared_bytes
    kernel.grid[:], kernel.block[:] = list(grid), list(block)
    kernel.parameters = ctypes.addressof(pointers)
    made.kept = (pointers, arguments)
    return made


def copy_params(context: int, to: int, source: int, num_bytes: int) -> NodeParams:
    """A copy within the device."""
    made = NodeParams(type=_COPY)
    copy = made.one.copy
    copy.context, copy.width, copy.height, copy.depth = context, num_bytes, 1, 1
    copy.source.memory_type = copy.to.memory_type = _ON_DEVICE
    copy.source.device, copy.to.device = source, to
    return made


def fill_params(context: int, to: int, value: int, num_bytes: int) -> NodeParams:
    """Every byte becomes `value`."""
    made = NodeParams(type=_FILL)
    fill = made.one.fill
    fill.to, fill.value, fill.element_bytes, fill.width, fill.height = to, value, 1, num_bytes, 1
    fill.context = context
    return made


class GraphApi:
    """The driver's functions for graphs, in a context. Raises `Unsupported` where they are not all there: before CUDA
    12.3."""

    def __init__(self, context: int) -> None:
        self.context = context
        try:
            self._library = ctypes.CDLL(_LIBRARY)
        except OSError as error:
            raise Unsupported(f"graphs need the driver's {_LIBRARY}: {error}", 3) from error
        missing = [name for name in _FUNCTIONS if not hasattr(self._library, name)]
        if missing:
            raise Unsupported(
                f"the CUDA driver is too old for graphs, which take CUDA 12.3: it lacks {', '.join(missing)}", 3
            )

    def call(self, function: str, *arguments: Any) -> None:
        """Raises `Unsupported` with the error's name."""
        code = getattr(self._library, function)(*arguments)
        if code:
            name = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(name))
            raise Unsupported(f"{function} fails: {name.value.decode() if name.value else f'CUDA error {code}'}", 3)

    def create(self) -> int:
        """A graph without nodes."""
        graph = ctypes.c_void_p()
        self.call("cuGraphCreate", ctypes.byref(graph), 0)
        return graph.value or 0

    def add(self, graph: int, params: NodeParams, before: Sequence[Tuple[int, bool]]) -> int:
        """A node. `before`: nodes that it waits for, and of which it only does so as far as a kernel says itself."""
        node = ctypes.c_void_p()
        nodes = (ctypes.c_void_p * max(len(before), 1))(*(one for one, _ in before))
        edges = (_EdgeData * max(len(before), 1))(
            *(_EdgeData(*_EARLY) if early else _EdgeData() for _, early in before)
        )
        count = ctypes.c_size_t(len(before))
        self.call(
            "cuGraphAddNode_v2", ctypes.byref(node), ctypes.c_void_p(graph), nodes, edges, count, ctypes.byref(params)
        )
        return node.value or 0

    def condition(self, graph: int) -> int:
        """What a conditional node of the graph asks, and a kernel tells: 0 before that."""
        handle = ctypes.c_uint64()
        context = ctypes.c_void_p(self.context)
        self.call("cuGraphConditionalHandleCreate", ctypes.byref(handle), ctypes.c_void_p(graph), context, 0, 0)
        return handle.value

    def add_conditional(
        self, graph: int, handle: int, kind: int, before: Sequence[Tuple[int, bool]]
    ) -> Tuple[int, int]:
        """A node of `kind` IF or WHILE, and the graph that it runs."""
        params = NodeParams(type=_CONDITIONAL)
        conditional = params.one.conditional
        conditional.handle, conditional.type, conditional.size = handle, kind, 1
        conditional.context = self.context
        node = self.add(graph, params, before)
        return node, conditional.bodies[0] or 0

    def set_cluster(self, node: int, cluster: Sequence[int]) -> None:
        """How many blocks are a cluster of a kernel's node."""
        value = (ctypes.c_uint32 * 16)(*cluster)  # as large as CUlaunchAttributeValue
        self.call("cuGraphKernelNodeSetAttribute", ctypes.c_void_p(node), _CLUSTER, ctypes.byref(value))

    def instantiate(self, graph: int) -> int:
        """An executable graph."""
        executable = ctypes.c_void_p()
        flags = ctypes.c_uint64(0)
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(executable), ctypes.c_void_p(graph), flags)
        return executable.value or 0

    def set_params(self, executable: int, node: int, params: NodeParams) -> None:
        """Changes a node in place, for launches from now on."""
        self.call("cuGraphExecNodeSetParams", ctypes.c_void_p(executable), ctypes.c_void_p(node), ctypes.byref(params))

    def launch(self, executable: int, stream: int) -> None:
        """Enqueues all of it."""
        self.call("cuGraphLaunch", ctypes.c_void_p(executable), ctypes.c_void_p(stream))

    def destroy(self, executable: Optional[int], graph: Optional[int]) -> None:
        """Gives them up; nothing can be done about a failure."""
        if executable:
            self._library.cuGraphExecDestroy(ctypes.c_void_p(executable))
        if graph:
            self._library.cuGraphDestroy(ctypes.c_void_p(graph))
