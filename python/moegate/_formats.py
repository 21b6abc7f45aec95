# SPDX-License-Identifier: Apache-2.0
"""Element types, and exact conversions of those that numpy does not have."""

# name: numpy's type of the elements, or of their bits; bits; torch's name; DLPack's type code
FORMATS = {
    "fp32": ("float32", 32, "float32", 2),
    "fp16": ("float16", 16, "float16", 2),
    "bf16": ("uint16", 16, "bfloat16", 4),
    "fp8": ("uint8", 8, "float8_e4m3fn", 10),
    "int32": ("int32", 32, "int32", 0),
    "uint8": ("uint8", 8, "uint8", 1),
    "int8": ("int8", 8, "int8", 0),
}
INTEGERS = ("int32", "uint8", "int8")


def decode(array, dtype):
    """Values, in float32, of an array of a tensor's elements (bf16 and fp8: of their bits)."""
    import numpy as np

    if dtype == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    if dtype == "fp8":
        return _e4m3_values()[array]
    return array.astype(np.float32)


def encode(values, dtype):
    """The nearest elements of `values`, ties to even; fp8 (e4m3) saturates at 448. Inverse of decode()."""
    import numpy as np

    values = np.asarray(values, dtype=np.float32)
    if dtype == "bf16":
        bits = values.view(np.uint32).astype(np.uint64)
        rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
        return np.where(np.isnan(values), np.uint16(0x7FC0), rounded)
    if dtype == "fp8":
        return _encode_e4m3(values)
    return values.astype(FORMATS[dtype][0])


def _e4m3_values():
    import numpy as np

    code = np.arange(256)
    exponent, mantissa = (code >> 3) & 15, code & 7
    magnitude = np.where(
        exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * np.exp2(exponent - 10.0)
    )
    values = np.where(code & 128, -magnitude, magnitude).astype(np.float32)
    values[[0x7F, 0xFF]] = np.nan
    return values


def _encode_e4m3(values):
    import numpy as np

    magnitude = np.minimum(np.abs(values.astype(np.float64)), 448)
    exponent = np.floor(np.log2(np.maximum(magnitude, 2.0**-6)))
    unit = np.exp2(exponent - 3)
    rounded = np.rint(magnitude / unit) * unit  # ties to even, and perhaps the next exponent's least
    positive = _e4m3_values()[:0x7F].astype(np.float64)
    code = np.searchsorted(positive, np.where(np.isnan(values), 0, rounded)).astype(np.uint8)
    code |= np.where(np.signbit(values), np.uint8(0x80), np.uint8(0))
    return np.where(np.isnan(values), np.uint8(0x7F), code)
