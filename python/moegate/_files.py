# SPDX-License-Identifier: Apache-2.0
"""Files of kernels: how one is imported, and what it is made of."""

import hashlib
import importlib.util
import os
import sys
import sysconfig

from moegate import _environment


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


def digest(path):
    with open(path, "rb") as source:
        return hashlib.sha256(source.read()).hexdigest()


_told = set()


def _file_of(module):
    """Where a module came from, as an absolute path: the archive that it is in, too; None where it has none."""
    known = getattr(module, "__dict__", None) or {}
    path, spec = known.get("__file__"), known.get("__spec__")
    if not path and getattr(spec, "has_location", False):
        path = spec.origin
    if not isinstance(path, str) or path in _told:
        return None
    _told.add(path)
    if not os.path.isabs(path) and not os.path.exists(path):
        return None  # a name that a package made up
    path = os.path.abspath(path)
    above = path
    while above != os.path.dirname(above):
        if os.path.isfile(above):
            return above
        above = os.path.dirname(above)
    return path


def loaded():
    """Files of what was imported since the last call, and folders: of what is the interpreter's and the tool's, and of
    packages, where a file has the same name in every environment."""
    files = [_file_of(module) for module in list(sys.modules.values())]
    tool = os.path.dirname(os.path.abspath(__file__))
    worker = os.path.join(os.path.dirname(tool), "moegate_worker.py")
    left_out = [tool] + [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    packages = _environment.folders()
    return {"files": [f for f in files if f and f != worker], "left_out": left_out, "packages": packages}
