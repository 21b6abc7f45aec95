# SPDX-License-Identifier: Apache-2.0
"""Packages of engines that are not there, and rows as the harness orders them."""

import importlib
import importlib.metadata
import pathlib
import sys
import types
from unittest import mock

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "examples/engines")]


def module(name, **has):
    one = types.ModuleType(name)
    vars(one).update(has)
    return one


def imported(name, modules, package, version="0.11"):
    """examples/engines/NAME.py where these modules can be imported and `package` is installed; version None: it is not."""
    parents = {".".join(one.__name__.split(".")[:n]) for one in modules for n in range(1, one.__name__.count(".") + 1)}
    places = {parent: types.ModuleType(parent) for parent in parents} | {one.__name__: one for one in modules}
    for place, one in places.items():
        parent, _, last = place.rpartition(".")
        if parent:
            setattr(places[parent], last, one)
    missing = importlib.metadata.PackageNotFoundError(package)
    told = mock.Mock(return_value=version, side_effect=missing if version is None else None)
    found = mock.Mock(return_value=[types.SimpleNamespace(version=version)] if version else [])
    sys.modules.pop(name, None)
    with mock.patch.dict(sys.modules, places), mock.patch.multiple(
            "importlib.metadata", version=told, distributions=found):
        return importlib.import_module(name)


def pad(array, widths):
    """torch.nn.functional.pad of the last dimension."""
    return np.pad(array, [(0, 0)] * (array.ndim - 1) + [widths])


TORCH = {
    "arange": lambda count, device: np.arange(count),
    "as_tensor": np.asarray,
    "float32": np.float32,
    "index_select": lambda array, axis, at: np.take(array, at, axis),
    "int32": np.int32,
    "clamp": lambda array, max: np.minimum(array, max),
    "cumsum": np.cumsum,
    "div": lambda array, by, rounding_mode: array // by,
    "repeat_interleave": np.repeat,
    "searchsorted": lambda array, values, right: np.searchsorted(array, values, "right" if right else "left"),
    "transpose": np.swapaxes,
}


class OnDevice(np.ndarray):
    device = "cuda:0"


class Routed:
    """Rows of tokens by expert, as moe_align and the harness's other orders have them."""

    def __init__(self, random, tokens, topk, experts, block):
        self.rows = tokens * topk
        self.expert = random.integers(0, experts, self.rows)
        self.sorted, self.blocks = [], []
        for e in range(experts):
            mine = [row for row in range(self.rows) if self.expert[row] == e]
            mine += [self.rows] * (-len(mine) % block)
            self.sorted += mine
            self.blocks += [e] * (len(mine) // block)
        self.padded = len(self.sorted)
        capacity = self.rows * block if self.rows < experts else self.rows + experts * (block - 1)
        self.sorted = np.array(self.sorted + [self.rows] * (capacity - self.padded))
        self.blocks = np.array(self.blocks + [-1] * (-(-capacity // block) - len(self.blocks)))
        self.counts = np.bincount(self.expert, minlength=experts)
        self.listed = np.argsort(self.expert, kind="stable")
