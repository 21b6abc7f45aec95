# SPDX-License-Identifier: Apache-2.0
"""Tensors of numpy and torch as memory: where they are, what is in them, and on which stream who works on them."""

import ctypes
import math
import sys

# Name of a floating type in numpy and torch: ours. Elements of all others are bytes, compared exactly.
_FLOATING = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
}

# rel_l2, row, scale: the table of kernels/README.md. An element may be off by what a row may.
_LIMITS = {
    "fp64": (1e-5, 3e-5, 1e-5),
    "fp32": (1e-5, 3e-5, 1e-5),
    "fp16": (4e-3, 1.2e-2, 2e-3),
    "bf16": (4e-3, 1.2e-2, 2e-3),
    "fp8": (1e-2, 4e-2, 5e-3),
}

_NOT_STATED = -1  # of a tolerance's `between`


def is_numpy(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def is_torch(value):
    return hasattr(value, "data_ptr") and hasattr(value, "untyped_storage")


def tensors_of(value):
    """Every tensor in a value: itself, or what is in lists, tuples and dicts."""
    if is_numpy(value) or is_torch(value):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from tensors_of(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors_of(one)


def clone(value):
    """The same with a copy of every tensor."""
    if is_numpy(value):
        return value.copy()
    if is_torch(value):
        return value.clone()
    if isinstance(value, dict):
        return {key: clone(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        copies = [clone(one) for one in value]
        return type(value)(*copies) if hasattr(value, "_fields") else type(value)(copies)
    return value


def address(tensor):
    return tensor.ctypes.data if is_numpy(tensor) else tensor.data_ptr()


def _format(tensor):
    return _FLOATING.get(str(tensor.dtype).replace("torch.", ""), "bytes")


def _strides_and_size(tensor):
    """In bytes, as numpy has them; of an element."""
    if is_numpy(tensor):
        return tensor.strides, tensor.itemsize
    return [step * tensor.element_size() for step in tensor.stride()], tensor.element_size()


def describe_input(name, tensor):
    """Its memory from the first to the last element; of a view also what lies between its own."""
    strides, size = _strides_and_size(tensor)
    steps = [(extent - 1) * step for extent, step in zip(tensor.shape, strides)]
    if any(extent == 0 for extent in tensor.shape):
        return {"name": name, "data": 0, "bytes": 0}
    low = sum(step for step in steps if step < 0)
    high = sum(step for step in steps if step > 0)
    return {"name": name, "data": address(tensor) + low, "bytes": high - low + size}


def describe_output(name, tensor):
    """Raises ValueError for one whose elements do not follow each other."""
    contiguous = tensor.flags["C_CONTIGUOUS"] if is_numpy(tensor) else tensor.is_contiguous()
    if not contiguous:
        raise ValueError(f"{name} of shape {tuple(tensor.shape)} is not contiguous; give or return one that is")
    _, size = _strides_and_size(tensor)
    kind, elements = _format(tensor), math.prod(tensor.shape)
    row = tensor.shape[-1] if len(tensor.shape) > 0 else 1
    if kind == "bytes":
        elements, row = elements * size, row * size
    return {
        "name": name,
        "format": kind,
        "elements": elements,
        "row": row,
        "data": address(tensor),
        "bytes": math.prod(tensor.shape) * size,
    }


class Truth:
    """The expected elements of an output in this process's memory, and the limits: doubles, or for what is no floating
    type its bytes."""

    def __init__(self, output, expected, kind, tolerance):
        if tuple(output.shape) != tuple(expected.shape):
            raise ValueError(f"an output has shape {tuple(output.shape)}, its reference {tuple(expected.shape)}")
        floating = kind != "bytes"
        if is_numpy(expected):
            import numpy as np

            wanted = np.float64 if floating else output.dtype
            self.values = np.ascontiguousarray(expected, dtype=wanted)
            rms = math.sqrt(float(np.mean(np.square(self.values)))) if floating and self.values.size else 0.0
        else:
            import torch

            wanted = torch.float64 if floating else output.dtype
            self.values = expected.detach().to(device="cpu", dtype=wanted).contiguous()
            some = floating and self.values.numel() > 0
            rms = math.sqrt(float((self.values * self.values).mean())) if some else 0.0
        self.address = address(self.values)
        self.tolerance = _stated(tolerance) if tolerance else _usual(kind, rms) if floating else None


def _stated(t):
    return [t.rtol, t.atol, t.rel_l2, t.row, t.scale, _NOT_STATED if t.between is None else t.between, t.by_chance]


def _usual(kind, rms):
    rel_l2, row, scale = _LIMITS[kind]
    return [row, row * rms, rel_l2, row, scale, _NOT_STATED, 0.0]


def _cuda():
    """torch, where it has a GPU; else None."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and torch.cuda.is_available() else None


def device_of(tensors, stream):
    """"host" or "cuda:N": where the tensors are; without any, where torch works."""
    on_gpu = [t for t in tensors if is_torch(t) and t.is_cuda]
    if len({t.device.index for t in on_gpu}) > 1:
        raise ValueError("the tensors are on several GPUs; a launch is timed on one")
    if on_gpu:
        return f"cuda:{on_gpu[0].device.index}"
    torch = _cuda()
    if tensors and stream is None or (torch is None and stream is None):
        return "host"
    return f"cuda:{torch.cuda.current_device()}" if torch else "cuda:0"


def _handle(stream):
    if hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        return int((protocol() if callable(protocol) else protocol)[1])
    return int(getattr(stream, "cuda_stream", stream))


_LEGACY = (0, 1, 2)  # handles of the default streams, which no graph can be captured of


def enter_stream(stack, device, stream, launch):
    """Makes the stream torch's current one for as long as `stack` lives; returns its handle, 0 on the host."""
    if device == "host":
        return 0
    torch = _cuda()
    handle = _handle(stream) if stream is not None else torch.cuda.current_stream().cuda_stream if torch else 0
    if torch is None:
        return handle
    stack.enter_context(torch.cuda.device(int(device.split(":")[1])))
    if launch == "graph" and handle in _LEGACY:
        own = torch.cuda.Stream()
        own.wait_stream(torch.cuda.current_stream())
        handle = own.cuda_stream
    elif stream is None:
        return handle
    stack.enter_context(torch.cuda.stream(torch.cuda.ExternalStream(handle)))
    return handle


def wait():
    """For what torch has launched."""
    torch = _cuda()
    if torch is not None:
        torch.cuda.synchronize()
