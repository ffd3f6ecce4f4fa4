"""The part of `cuda.bindings.driver` that launching uses, on memory of the host: kernels are functions of Python by
name, and every access has to lie in memory that is allocated."""

import ctypes
import types


class Code(int):
    """An error code."""


class FakeDriver(types.ModuleType):
    """`kernels`: by name a function of the views that `view(address, dtype, count)` gives; `calls`: what was called."""

    CUfunction_attribute = types.SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8)

    def __init__(self, kernels, failing=None):
        super().__init__("cuda.bindings.driver")
        self.kernels, self.failing = kernels, failing
        self.allocations, self.calls, self.launches, self.dynamic_shared = {}, [], [], {}

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
        self.dynamic_shared[function] = value
        return (Code(0),)

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
        self.kernels[function](self, *values)
        return (Code(0),)
