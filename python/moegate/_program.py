# SPDX-License-Identifier: Apache-2.0
"""The command ``moegate`` of an environment into which a wheel of ci/wheel was installed."""

import os
import pathlib
import sys

_HOME = pathlib.Path(__file__).parent / "_home"


def main():
    """Becomes the program. Files of kernels are imported by this Python unless MOEGATE_PYTHON names another; NVIDIA's
    packages beside that one have the libraries that are nowhere else."""
    program = _HOME / "bin" / "moegate"
    if not program.exists():
        sys.exit("moegate: this package has no program in it: it was not installed from a wheel of ci/wheel")
    os.environ.setdefault("MOEGATE_PYTHON", sys.executable)
    os.execv(program, [str(program), *sys.argv[1:]])
