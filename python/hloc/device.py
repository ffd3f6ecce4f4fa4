"""A GPU through cuda-python: memory, copies and launches, each an exception if it fails."""

from __future__ import annotations

import ctypes
import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence, Tuple, Union

from . import tensor_maps
from .errors import Unsupported
from .shapes import ArrayType

if TYPE_CHECKING:
    import numpy.typing

_SCALARS = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}
_PORTABLE_CLUSTER = 8  # blocks that every device with clusters has in one
_CUDA_WITH_MAPS = 12000
_DEFAULT_STREAM = 1  # as `__cuda_array_interface__` calls it
_BINDINGS = ("cuda.bindings.driver", "cuda.cuda")  # cuda-python 12.6 and later, and before


def _driver() -> ModuleType:
    for name in _BINDINGS:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise Unsupported("launching needs cuda-python, which is not installed: `pip install cuda-python`", 3)


class Memory:
    """Bytes on the device, freed with this object."""

    def __init__(self, device: "Device", num_bytes: int) -> None:
        self._device = device
        self.address = int(device.call("cuMemAlloc", max(num_bytes, 1)))

    def __del__(self) -> None:
        if hasattr(self, "address"):
            self._device.forget(self.address)


class DeviceArray:
    """A result on the device. `numpy()` copies it to the host; cupy, numba, torch and others take it where it is, by
    `__cuda_array_interface__`."""

    def __init__(self, device: "Device", memory: Any, address: int, kind: ArrayType) -> None:
        self._device, self._memory = device, memory
        self.address = address
        self.kind = kind
        self.stream: Optional[int] = None  # that work which writes it may still be on; None: there is none

    @property
    def shape(self) -> Tuple[int, ...]:
        """Sizes of the dimensions."""
        return self.kind.dimensions

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        interface = {
            "shape": self.kind.dimensions,
            "typestr": self.kind.type_string,
            "data": (self.address, False),
            "strides": self.kind.strides,
            "version": 3,
        }
        return interface if self.stream is None else {**interface, "stream": self.stream or _DEFAULT_STREAM}

    def numpy(self) -> "numpy.typing.NDArray[Any]":
        """A copy on the host, after the work on its stream. bf16 needs ml_dtypes."""
        import numpy

        if self.stream is not None:
            self._device.synchronize(self.stream)
        raw = self._device.download(self.address, self.kind.num_bytes)
        if self.kind.element == "bf16":
            import ml_dtypes

            del ml_dtypes
        dtype = numpy.dtype(self.kind.dtype_name)
        return numpy.ndarray(self.kind.dimensions, dtype, raw, strides=self.kind.strides if raw else None).copy()

    def __repr__(self) -> str:
        return f"<hloc.DeviceArray {self.kind.element}{list(self.kind.dimensions)} at {self.address:#x}>"


class Device:
    """The context that is current in this thread, else the primary one of the first GPU. What is launched goes to the
    default stream."""

    def __init__(self) -> None:
        self._driver = _driver()
        try:
            self.call("cuInit", 0)
        except RuntimeError as error:  # what the bindings raise where there is no libcuda
            raise Unsupported(f"there is no driver for a GPU: {error}", 3) from error
        context = self.call("cuCtxGetCurrent")
        if not int(context):
            context = self.call("cuDevicePrimaryCtxRetain", self.call("cuDeviceGet", 0))
        self._context = context
        self.enter()

    def enter(self) -> None:
        """Makes the context current in the thread that calls."""
        self.call("cuCtxSetCurrent", self._context)

    @property
    def context(self) -> int:
        """CUcontext."""
        return int(self._context)

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function of the driver gives beside its error code. Raises `Unsupported` with the error's name."""
        code, *values = getattr(self._driver, function)(*arguments)
        if int(code) != 0:
            _, name = self._driver.cuGetErrorName(code)
            text = name.decode() if isinstance(name, bytes) else str(name)
            raise Unsupported(f"{function} fails: {text}", 3)
        return values[0] if values else None

    def forget(self, address: int) -> None:
        """Frees memory; nothing can be done about a failure."""
        self._driver.cuMemFree(address)

    def load(self, image: bytes) -> Any:
        """A module of PTX, which the driver compiles, or of machine code."""
        text = ctypes.create_string_buffer(image)
        return self.call("cuModuleLoadData", ctypes.addressof(text))

    def kernel(self, module: Any, name: str, dynamic_shared_bytes: int, cluster_blocks: int = 1) -> Any:
        """A kernel of a module that can have so many bytes of shared memory, and blocks in a cluster."""
        function = self.call("cuModuleGetFunction", module, name.encode())
        if dynamic_shared_bytes:
            attribute = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.call("cuFuncSetAttribute", function, attribute, dynamic_shared_bytes)
        if cluster_blocks > _PORTABLE_CLUSTER:
            attribute = self._driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
            self.call("cuFuncSetAttribute", function, attribute, 1)
        return function

    def tensor_map(self, recipe: Dict[str, Any], address: int) -> tensor_maps.EncodedMap:
        """A tensor map by what the manifest says of it, of the memory at `address`."""
        function = self.call("cuGetProcAddress", tensor_maps.function_of(recipe).encode(), _CUDA_WITH_MAPS, 0)
        return tensor_maps.encode(int(function), recipe, address)

    def upload(self, address: int, data: Any) -> None:
        """Host to device: the bytes of a contiguous buffer."""
        view = memoryview(data).cast("B") if memoryview(data).nbytes else memoryview(b"")
        if view.nbytes:
            whole = (ctypes.c_char * view.nbytes).from_buffer_copy(view)
            self.call("cuMemcpyHtoD", address, ctypes.addressof(whole), view.nbytes)

    def download(self, address: int, num_bytes: int) -> bytearray:
        """Device to host, after all work before."""
        result = bytearray(num_bytes)
        if num_bytes:
            whole = (ctypes.c_char * num_bytes).from_buffer(result)
            self.call("cuMemcpyDtoH", ctypes.addressof(whole), address, num_bytes)
        return result

    def copy(self, to: int, source: int, num_bytes: int) -> None:
        """Within the device."""
        if num_bytes:
            self.call("cuMemcpyDtoDAsync", to, source, num_bytes, 0)

    def fill(self, address: int, value: int, num_bytes: int) -> None:
        """Every byte becomes `value`."""
        if num_bytes:
            self.call("cuMemsetD8Async", address, value, num_bytes, 0)

    def launch(
        self,
        function: Any,
        grid: Sequence[int],
        block: Sequence[int],
        shared_bytes: int,
        arguments: Sequence[Tuple[Union[int, tensor_maps.EncodedMap], Optional[int]]],
        cluster: Optional[Sequence[int]] = None,
        programmatic: bool = False,
    ) -> None:
        """`arguments`: addresses and tensor maps, or values with how many bytes they have. `cluster`: blocks of each, if
        not as the kernel says itself; `programmatic`: it may begin before the kernel before it is complete."""
        values = tuple(value for value, _ in arguments)
        types = tuple(_type_of(value, size) for value, size in arguments)
        if cluster is None and not programmatic:
            self.call("cuLaunchKernel", function, *grid, *block, shared_bytes, 0, (values, types), 0)
            return
        configuration = self._driver.CUlaunchConfig()
        configuration.gridDimX, configuration.gridDimY, configuration.gridDimZ = grid
        configuration.blockDimX, configuration.blockDimY, configuration.blockDimZ = block
        configuration.sharedMemBytes, configuration.hStream = shared_bytes, 0
        attributes = self._launch_attributes(cluster, programmatic)
        configuration.attrs, configuration.numAttrs = attributes, len(attributes)
        self.call("cuLaunchKernelEx", configuration, function, (values, types), 0)

    def _launch_attributes(self, cluster: Optional[Sequence[int]], programmatic: bool) -> List[Any]:
        attributes = []
        names = self._driver.CUlaunchAttributeID
        if cluster is not None:
            one = self._driver.CUlaunchAttribute()
            one.id = names.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
            extents = one.value.clusterDim
            extents.x, extents.y, extents.z = cluster
            attributes.append(one)
        if programmatic:
            one = self._driver.CUlaunchAttribute()
            one.id = names.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
            one.value.programmaticStreamSerializationAllowed = 1
            attributes.append(one)
        return attributes

    def synchronize(self, stream: int = 0) -> None:
        """Waits for all work of a stream, and finds out whether it failed."""
        self.call("cuStreamSynchronize", stream)


def _type_of(value: Union[int, tensor_maps.EncodedMap], size: Optional[int]) -> Any:
    """As the bindings want to be told: a structure's address they take themselves."""
    if isinstance(value, tensor_maps.EncodedMap):
        return None
    return ctypes.c_void_p if size is None else _SCALARS[size]
