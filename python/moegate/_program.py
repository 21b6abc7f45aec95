# SPDX-License-Identifier: Apache-2.0
"""The command ``moegate`` of an environment into which a wheel of ci/wheel was installed."""

import importlib.util
import os
import pathlib
import sys

_HOME = pathlib.Path(__file__).parent / "_home"


def _nvidia_libraries():
    """Folders of NVIDIA's packages for Python that hold libraries: CUPTI, cuBLAS."""
    spec = importlib.util.find_spec("nvidia")
    places = spec.submodule_search_locations if spec else None
    return sorted(str(path) for place in places or [] for path in pathlib.Path(place).glob("*/lib") if path.is_dir())


def main():
    """Becomes the program. Files of kernels are imported by this Python unless MOEGATE_PYTHON names another;
    libraries that the loader finds nowhere else are those of NVIDIA's packages beside this one."""
    program = _HOME / "bin" / "moegate"
    if not program.exists():
        sys.exit("moegate: this package has no program in it: it was not installed from a wheel of ci/wheel")
    os.environ.setdefault("MOEGATE_PYTHON", sys.executable)
    known = [place for place in os.environ.get("LD_LIBRARY_PATH", "").split(":") if place]
    places = known + [place for place in _nvidia_libraries() if place not in known]
    if places:
        os.environ["LD_LIBRARY_PATH"] = ":".join(places)
    os.execv(program, [str(program), *sys.argv[1:]])
