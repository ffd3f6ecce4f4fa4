"""The part of `cuda.bindings.driver` that launching uses, on memory of the host: kernels are functions of Python by
name, and every access has to lie in memory that is allocated."""

import ctypes
import types

_WORDS, _LONGS, _INTEGERS = (ctypes.POINTER(one) for one in (ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32))
_BEGIN = (ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p, _LONGS, _LONGS)
_END = (_WORDS, *(4 * [ctypes.c_int]))
TILED = ctypes.CFUNCTYPE(*_BEGIN, _WORDS, *_END)
IM2COL = ctypes.CFUNCTYPE(*_BEGIN, _INTEGERS, _INTEGERS, ctypes.c_uint32, ctypes.c_uint32, *_END)


class Code(int):
    """An error code."""


class FakeDriver(types.ModuleType):
    """`kernels`: by name a function of the views that `view(address, dtype, count)` gives; `calls`: what was called."""

    CUfunction_attribute = types.SimpleNamespace(
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED=14
    )
    CUlaunchAttributeID = types.SimpleNamespace(
        CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION=4, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION=6
    )
    CUlaunchConfig = types.SimpleNamespace

    def __init__(self, kernels, failing=None):
        super().__init__("cuda.bindings.driver")
        self.kernels, self.failing = kernels, failing
        self.allocations, self.calls, self.launches, self.dynamic_shared = {}, [], [], {}
        self.large_clusters, self.attributes, self.maps = set(), [], []
        self._functions = {
            "cuTensorMapEncodeTiled": TILED(self._encode),
            "cuTensorMapEncodeIm2col": IM2COL(self._encode),
        }

    def __getattribute__(self, name):
        found = super().__getattribute__(name)
        if not name.startswith("cu") or not callable(found):
            return found

        def recorded(*arguments):
            self.calls.append(name)
            return (Code(700),) if name == self.failing else found(*arguments)

        return recorded

    def memory(self, address, num_bytes):
        for start, buffer in self.allocations.items():
            if start <= address and address + num_bytes <= start + len(buffer):
                return (ctypes.c_char * num_bytes).from_address(address)
        raise AssertionError(f"{num_bytes} bytes at {address:#x} are not allocated")

    def view(self, address, dtype, count):
        import numpy

        return numpy.frombuffer(self.memory(address, numpy.dtype(dtype).itemsize * count), dtype)

    def cuInit(self, flags):
        return (Code(0),)

    def cuGetErrorName(self, code):
        return Code(0), b"CUDA_ERROR_ILLEGAL_ADDRESS"

    def cuCtxGetCurrent(self):
        return Code(0), 0

    def cuDeviceGet(self, ordinal):
        return Code(0), ordinal

    def cuDevicePrimaryCtxRetain(self, device):
        return Code(0), 77

    def cuCtxSetCurrent(self, context):
        assert context == 77
        return (Code(0),)

    def cuModuleLoadData(self, image):
        self.image = ctypes.string_at(image).decode()
        return Code(0), 5

    def cuModuleGetFunction(self, module, name):
        assert f".entry {name.decode()}(" in self.image
        return Code(0), name.decode()

    def cuFuncSetAttribute(self, function, attribute, value):
        if attribute == 14:
            self.large_clusters.add(function)
        else:
            self.dynamic_shared[function] = value
        return (Code(0),)

    @staticmethod
    def CUlaunchAttribute():
        return types.SimpleNamespace(value=types.SimpleNamespace(clusterDim=types.SimpleNamespace()))

    def cuGetProcAddress(self, symbol, version, flags):
        assert version == 12000 and flags == 0
        return Code(0), ctypes.cast(self._functions[symbol.decode()], ctypes.c_void_p).value, 0

    def _encode(self, to, kind, rank, address, dims, strides, *rest):
        """A map's bytes are its number among those that have been made, then `map`. Refused as the real one does."""
        *box, steps, interleave, swizzle, l2, fill = rest
        if to % 64 or address % 16 or not 1 <= rank <= 5:
            return 1
        box = [box[0][:rank]] if len(box) == 1 else [box[0][: rank - 2], box[1][: rank - 2], *box[2:]]
        said = (kind, dims[:rank], strides[: rank - 1], *box, steps[:rank], interleave, swizzle, l2, fill)
        ctypes.memmove(to, bytes([len(self.maps)]) + b"map" * 42 + b"!", 128)
        self.maps.append((address, said))
        return 0

    def cuMemAlloc(self, num_bytes):
        assert num_bytes > 0
        buffer = ctypes.create_string_buffer(b"\xa5" * num_bytes, num_bytes)
        self.allocations[ctypes.addressof(buffer)] = buffer
        return Code(0), ctypes.addressof(buffer)

    def cuMemFree(self, address):
        del self.allocations[address]
        return (Code(0),)

    def cuMemcpyHtoD(self, to, source, num_bytes):
        self.memory(to, num_bytes)[:] = ctypes.string_at(source, num_bytes)
        return (Code(0),)

    def cuMemcpyDtoH(self, to, source, num_bytes):
        ctypes.memmove(to, self.memory(source, num_bytes), num_bytes)
        return (Code(0),)

    def cuMemcpyDtoDAsync(self, to, source, num_bytes, stream):
        self.memory(to, num_bytes)[:] = self.memory(source, num_bytes)[:]
        return (Code(0),)

    def cuMemsetD8Async(self, address, value, num_bytes, stream):
        self.memory(address, num_bytes)[:] = bytes([value]) * num_bytes
        return (Code(0),)

    def cuStreamSynchronize(self, stream):
        return (Code(0),)

    def cuLaunchKernel(self, function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra):
        values, kinds = parameters
        assert len(values) == len(kinds) and extra == 0 and stream == 0
        self.launches.append((function, (gx, gy, gz), (bx, by, bz), shared))
        # Structures are passed by value: kernels see the address and the recipe of a map.
        passed = [bytes(one) if isinstance(one, ctypes.Structure) else one for one in values]
        assert all((kind is None) == isinstance(one, bytes) for one, kind in zip(passed, kinds))
        assert all(one[1:] == b"map" * 42 + b"!" for one in passed if isinstance(one, bytes))
        self.kernels[function](self, *(self.maps[one[0]] if isinstance(one, bytes) else one for one in passed))
        return (Code(0),)

    def cuLaunchKernelEx(self, configuration, function, parameters, extra):
        c = configuration
        assert len(c.attrs) == c.numAttrs
        self.attributes.append([(one.id, vars(one.value)) for one in c.attrs])
        sizes = (c.gridDimX, c.gridDimY, c.gridDimZ, c.blockDimX, c.blockDimY, c.blockDimZ)
        return self.cuLaunchKernel(function, *sizes, c.sharedMemBytes, c.hStream, parameters, extra)
