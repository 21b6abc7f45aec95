# SPDX-License-Identifier: Apache-2.0
"""Run by `moegate worker` in the interpreter that it holds: loads files of kernels, then lets it serve.

    python3 moegate_worker.py ADDRESS FILE...        ADDRESS: of the worker's functions (_bridge.Calls)
"""

import os
import sys

# Nothing is left in the repository of a kernel, nor beside this file. Processes that a compiler starts inherit it.
sys.dont_write_bytecode = True
os.environ["PYTHONDONTWRITEBYTECODE"] = "1"

from moegate import _bridge  # noqa: E402

_bridge.main(int(sys.argv[1]), sys.argv[2:])
