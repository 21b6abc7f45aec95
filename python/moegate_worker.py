# SPDX-License-Identifier: Apache-2.0
"""Run by `moegate worker` in the interpreter that it holds: loads files of kernels, then lets it serve.

    python3 moegate_worker.py ADDRESS FILE...        ADDRESS: of the worker's functions (_bridge.Calls)
"""

import sys

from moegate import _bridge

_bridge.main(int(sys.argv[1]), sys.argv[2:])
