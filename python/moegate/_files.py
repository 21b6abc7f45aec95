# SPDX-License-Identifier: Apache-2.0
"""Files of kernels: how one is imported, and what it is made of."""

import hashlib
import importlib.util
import os
import sys


def load(path):
    """Imports a file, its folder last on the path: one called operator.py must not be everybody's `operator`."""
    name = "kernels_of_" + os.path.splitext(os.path.basename(path))[0]
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.append(folder)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


def sources(path):
    """The file and what it imported from its folder and below: {name: hash}."""
    folder = os.path.dirname(path) + os.sep
    files = {getattr(m, "__file__", None) for m in list(sys.modules.values())}
    files = {os.path.realpath(f) for f in files if f and f.endswith(".py")}
    found = {}
    for file in sorted(f for f in files if f.startswith(folder) and "site-packages" not in f):
        with open(file, "rb") as source:
            found[file[len(folder) :]] = hashlib.sha256(source.read()).hexdigest()
    return found
