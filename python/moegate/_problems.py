# SPDX-License-Identifier: Apache-2.0
"""A problem as a variant sees it: tensors and parameters as attributes."""

import ctypes
import sys

from moegate._formats import FORMATS


def number(text):
    """A parameter's value: an int or a float where the text is one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


class Case:
    """The parameters of a case, as attributes."""

    def __init__(self, params):
        self.params = dict(params)
        self.__dict__.update({name.replace("-", "_"): number(text) for name, text in params.items()})


class DeviceTensor:
    """A tensor in a GPU's memory, for whatever takes DLPack or __cuda_array_interface__."""

    def __init__(self, data, dtype, shape, ordinal, stream):
        self.dtype, self.shape = dtype, tuple(shape)
        self._data, self._ordinal, self._stream = data, ordinal, stream

    def data_ptr(self):
        return self._data

    @property
    def nbytes(self):
        size = FORMATS[self.dtype][1] // 8
        for extent in self.shape:
            size *= extent
        return size

    @property
    def __cuda_array_interface__(self):
        # Types that numpy does not have are exported as their bits.
        kind = {"float32": "<f4", "float16": "<f2", "uint16": "<u2", "uint8": "|u1", "int32": "<i4"}
        kind["int8"] = "|i1"
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": kind[FORMATS[self.dtype][0]],
            "data": (self._data, False),
            "stream": self._stream or 1,
        }

    def __dlpack_device__(self):
        return (2, self._ordinal)  # kDLCUDA

    def __dlpack__(self, stream=None, **_):
        from moegate import _dlpack

        return _dlpack.capsule(self)


def current_device():
    """The number of the GPU whose context the worker has made current."""
    ordinal = ctypes.c_int(0)
    ctypes.CDLL("libcuda.so.1").cuCtxGetDevice(ctypes.byref(ordinal))
    return ordinal.value


class HostBytes:
    """Memory of the harness, for numpy."""

    def __init__(self, data, typestr, shape):
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(shape),
            "typestr": typestr,
            "data": (data, False),
        }


def host_array(data, dtype, shape):
    """The numpy array of a tensor in this process's memory; bf16 and fp8: of its bits."""
    import numpy as np

    kind = np.dtype(FORMATS[dtype][0]).str
    return np.asarray(HostBytes(data, kind, shape))


def torch_tensor(tensor):
    """The same memory as a torch tensor, of the type that torch has for it."""
    torch = sys.modules["torch"]
    flat = DeviceTensor(
        tensor.data_ptr(), "uint8", (tensor.nbytes,), tensor._ordinal, tensor._stream
    )
    bits = torch.as_tensor(flat, device=f"cuda:{tensor._ordinal}")
    return bits.view(getattr(torch, FORMATS[tensor.dtype][2])).view(tensor.shape)


class Problem:
    """What a launch gets. `params`: as text, by name; `stream`: a cudaStream_t as an int; `packed` of prepare()."""

    def __init__(self, calls, handle, description, rows=""):
        self._calls, self._handle = calls, handle
        self._packed = {}
        self._backend = description["backend"]
        self.stream = description["stream"]
        self._ordinal = 0 if self._backend == "host" else current_device()
        self._add_params(description["params"])
        named = {t["name"]: t for t in description["tensors"] if t["role"] != "workspace"}  # that may be replaced
        for name, tensor in named.items():
            setattr(self, name, self._view(named.get(f"{rows} {name}", tensor)))
        self._tensors = frozenset(named)

    def __setattr__(self, name, value):
        held = self.__dict__.get(name)
        if name in self.__dict__.get("_tensors", ()) and value is not held:  # `p.out += 1` gives back the same
            raise AttributeError(f"p.{name} is a tensor to be written to: p.{name}[...] = values; nothing was written")
        super().__setattr__(name, value)

    def _add_params(self, params):
        self.params = params
        for name, value in Case(params).__dict__.items():
            if name != "params":
                setattr(self, name, value)

    def _view(self, tensor):
        if self._backend == "host":
            return host_array(tensor["data"], tensor["dtype"], tensor["shape"])
        view = DeviceTensor(
            tensor["data"], tensor["dtype"], tensor["shape"], self._ordinal, self.stream
        )
        return torch_tensor(view) if "torch" in sys.modules else view

    @property
    def workspace(self):
        """Scratch memory, as bytes: what the variant's workspace= asked for."""
        return self._view(self._calls.workspace(self._handle))

    def packed(self, layout, shape=None, dtype="uint8"):
        """A tensor of weights laid out anew: prepare() names its shape and fills it, launch() finds it by its name.
        It lives as long as the problem; variants that name it share it."""
        if shape is not None:
            made = self._calls.packed(self._handle, layout, shape, dtype)
            self._packed[layout] = self._view(made)
        return self._packed[layout]


def address(array):
    """Of the first element of a contiguous numpy array."""
    return ctypes.c_void_p(array.ctypes.data)
