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


def rows_per_block(p):
    """BM, which the operands' sizes tell: with block = 0 the parameter does not."""
    rows, capacity = p.tokens * p.topk, p.sorted_token_ids.shape[0]
    experts = p.weights.shape[0]  # of the rank
    return capacity // rows if rows < experts else (capacity - rows) // experts + 1
