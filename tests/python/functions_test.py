# SPDX-License-Identifier: Apache-2.0
"""`moegate run FILE.py:FUNCTION`, as a user types it, on the host device."""

import os
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import needs

FUNCTIONS = """
import numpy as np

def arguments():
    return {f"n={n}": (np.ones((n, 8), np.float32),) for n in (16, 64)}

def mine(x):
    return x @ np.ones(8, np.float32)

def theirs(x):
    return x.sum(axis=1)

def off(x):
    return 1.01 * x.sum(axis=1)
"""


class Functions(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        (self.folder / "f.py").write_text(FUNCTIONS)
        (self.folder / "g.py").write_text("def mine(x):\n    return x.sum(axis=1)\n")

    def run_moegate(self, *arguments):
        command = [os.environ["MOEGATE_PROGRAM"], "run", *arguments]
        environment = {**os.environ, "MOEGATE_PYTHON": sys.executable}
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    def query(self, sql):
        with sqlite3.connect(self.folder / "s.sqlite") as db:
            return db.execute(sql).fetchall()

    def test_two_functions_are_compared(self):
        code, text, said = self.run_moegate("f.py:mine", "--against", "f.py:theirs", "--db", "s.sqlite", "--budget", "50ms")
        self.assertEqual(code, 0, said)
        self.assertEqual(self.query("SELECT label, status, rounds FROM run"), [("mine", "complete", 3)])
        rows = "SELECT key, variant, count(*) FROM result JOIN bench_case USING (case_id) GROUP BY 1, 2 ORDER BY 1, 2"
        expected = [(f"mine/n={n}", variant, 3) for n in (16, 64) for variant in ("mine", "theirs")]
        self.assertEqual(self.query(rows), expected)
        self.assertRegex(text, r"mine/n=16 +mine .*theirs", "the report says what it is compared with")
        order = re.findall(r"round (\d): (\w+) \{'n': '16'\}", said)
        sides = {0: ["mine", "theirs"], 1: ["theirs", "mine"]}
        self.assertEqual(order, [(str(n + 1), side) for n in range(3) for side in sides[n % 2]])

    def test_one_function_has_no_reference(self):
        code, _, said = self.run_moegate("f.py:mine", "--db", "s.sqlite", "--budget", "50ms", "--rounds", "1")
        self.assertEqual(code, 0, said)
        self.assertIn("one process, not verified", said)

    def test_files_tell_functions_of_one_name_apart(self):
        code, _, said = self.run_moegate(
            "f.py:mine", "--against", "g.py:mine", "--db", "s.sqlite", "--budget", "50ms", "--rounds", "1"
        )
        self.assertEqual(code, 0, said)
        self.assertEqual(self.query("SELECT DISTINCT variant FROM result ORDER BY 1"), [("f.mine",), ("g.mine",)])

    def test_a_wrong_function_has_no_time(self):
        code, _, said = self.run_moegate("f.py:off", "--against", "f.py:theirs", "--db", "s.sqlite", "--budget", "50ms")
        self.assertEqual(code, 11, said)
        self.assertIn("wrong: off {'n': '16'}: output 0: 16 of 16 elements off", said)

    def test_usage_errors(self):
        for arguments, why in (
            (["f.py:none"], "f.py has no function 'none'"),
            (["h.py:mine"], "there is no file h.py"),
            (["f.py:mine", "--against", "f.py:mine"], "--against names the function itself"),
            (["f.py:mine", "--budget", "3"], "'3' is no time"),
            (["f.py:mine", "--rounds", "0"], "--rounds 0: at least 1"),
        ):
            code, _, said = self.run_moegate(*arguments)
            self.assertEqual(code, 2, said)
            self.assertIn(why, said)


if __name__ == "__main__":
    needs.run("numpy")
