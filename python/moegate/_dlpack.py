# SPDX-License-Identifier: Apache-2.0
"""DLPack 0.8 capsules of tensors that somebody else owns."""

import ctypes

from moegate._formats import FORMATS


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    pass


_DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [
    ("tensor", _Tensor),
    ("context", ctypes.c_void_p),
    ("deleter", _DELETER),
]

_alive = {}  # what a consumer has not given back


@_DELETER
def _delete(managed):
    _alive.pop(ctypes.addressof(managed.contents), None)


_new = ctypes.pythonapi.PyCapsule_New
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


def capsule(tensor):
    """A capsule "dltensor" of a DeviceTensor. The memory is the harness's: giving it back frees only the description."""
    _, bits, _, code = FORMATS[tensor.dtype]
    shape = (ctypes.c_int64 * len(tensor.shape))(*tensor.shape)
    kind, ordinal = tensor.__dlpack_device__()
    managed = _Managed(
        _Tensor(
            tensor.data_ptr(),
            _Device(kind, ordinal),
            len(tensor.shape),
            _DataType(code, bits, 1),
            shape,
            None,  # contiguous
            0,
        ),
        None,
        _delete,
    )
    _alive[ctypes.addressof(managed)] = (managed, shape)
    return _new(ctypes.addressof(managed), b"dltensor", None)
