# SPDX-License-Identifier: Apache-2.0
"""How tests of libmoegate.so end: they run, or are skipped (77) where something is not there."""

import importlib.util
import os
import sys
import unittest


def run(*modules):
    for module in modules:
        if importlib.util.find_spec(module) is None:
            print(f"skipped: this Python has no {module}")
            sys.exit(77)
    if not os.environ.get("MOEGATE_LIBRARY"):
        print("skipped: MOEGATE_LIBRARY names no libmoegate.so")
        sys.exit(77)
    unittest.main()
