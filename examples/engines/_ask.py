# SPDX-License-Identifier: Apache-2.0
"""What adapters share: it finds functions of engines, which move between modules and change their parameters from month
to month."""

import importlib
import importlib.metadata
import inspect


class Found:
    """A function of an installed package, or `why` it cannot be used."""

    def __init__(self, package, function=None, why=""):
        self.package, self.function, self.why = package, function, why

    def __call__(self, **given):
        """Leaves out optional parameters that this version does not have."""
        known = inspect.signature(self.function).parameters
        return self.function(**{name: value for name, value in given.items() if name in known})


def ask(package, places, needed, optional=()):
    """The first function of `places` (pairs of module and name, the newest first) that is there, if it has the
    parameters `needed` and demands none but those and `optional`. `needed` None: a function of C++, which does not say
    what it takes. `package`: its distribution's name."""
    installed = next((one.version for one in importlib.metadata.distributions(name=package)), "")
    version = f"{package} {installed}".rstrip()
    missing = []
    for module, name in places:
        try:
            function = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError) as error:
            missing.append(str(error))
            continue
        if needed is None:
            return Found(version, function)
        parameters = inspect.signature(function).parameters
        unknown = [p for p in needed if p not in parameters]
        demanded = [
            p.name for p in parameters.values() if p.default is p.empty and p.name not in (*needed, *optional)
        ]
        if unknown:
            return Found(version, why=f"{version}: {name} has no parameter '{unknown[0]}'")
        if demanded:
            return Found(version, why=f"{version}: {name} demands '{demanded[0]}', which this file does not know")
        return Found(version, function)
    return Found(version, why=f"{version}: {missing[-1]}")


def no_layer(case, engine, takes):
    """Why an engine's layer of all experts, which `takes` x in bf16 or fp8, cannot run a case of fused_moe, or None."""
    given, rank = getattr(case, "input", "fp8"), getattr(case, "rank", "0/1")
    if rank != "0/1":
        return f"rank = {rank}: this adapter passes all experts"
    return None if given == takes else f"input = {given}: {engine} takes x in {takes}; give input = {takes}"


def no_block_scaling(case):
    """Why an engine's product of fp8 scaled in blocks cannot run a case of moe_gate_up or moe_down, or None."""
    if case.dtype == "fp8" and case.scaling == "block":
        return None
    return f"dtype = {case.dtype}, scaling = {case.scaling}: this adapter knows fp8 scaled in blocks only"


# Activations rounded to bf16 before their quantisation, as by our chain_gather (fused_moe.h: kOtherCodes).
AS_CHAIN_GATHER = {"tolerance": 4, "between": 0.02}


def rows_per_block(p, weights=None):
    """BM, which the operands' sizes tell: with block = 0 the parameter does not."""
    rows, capacity = p.tokens * p.topk, p.sorted_token_ids.shape[0]
    experts = (p.weights if weights is None else weights).shape[0]  # of the rank
    return capacity // rows if rows < experts else (capacity - rows) // experts + 1


def factors_with_weights(p):
    """Of moe_down's sorted rows of x: scale factors, with the routing weights in them for a product that has none."""
    if not p.weighted:
        return p.x_scales
    rows = p.sorted_token_ids.clip(max=p.tokens * p.topk - 1)  # of padding: any
    return p.x_scales * p.routing_weights[rows][:, None]
