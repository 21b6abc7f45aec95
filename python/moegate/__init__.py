# SPDX-License-Identifier: Apache-2.0
"""Kernels in Python for moegate: variants of its operators, and operators of one's own.

A file with them is given to any command that takes a suite: ``moegate run --module my_kernels.py --suite ...``.
It is imported in the process that measures, which has set up ``moegate`` before; nothing needs to be installed.
numpy, torch and Triton are imported by the file itself.

bench() measures a function of any other program, in its own process.
"""

from moegate._formats import decode, encode
from moegate._kernels import (
    Choice,
    Cost,
    Input,
    Operator,
    Output,
    Param,
    Tolerance,
    e4m3_normal,
    int4_normal,
    uniform,
    variant,
)
from moegate._results import best_configurations, results

__all__ = [
    "Choice",
    "Cost",
    "Input",
    "Operator",
    "Output",
    "Param",
    "TimerBusy",
    "Timing",
    "Tolerance",
    "Wrong",
    "bench",
    "best_configurations",
    "decode",
    "e4m3_normal",
    "encode",
    "int4_normal",
    "results",
    "uniform",
    "variant",
    "watch",
]


def __getattr__(name):
    """What measures here is imported when it is asked for: workers and a pytest without the fixture need none of it."""
    if name not in ("TimerBusy", "Timing", "Wrong", "bench", "watch"):
        raise AttributeError(f"module 'moegate' has no attribute '{name}'")
    from moegate import _bench

    return getattr(_bench, name)
