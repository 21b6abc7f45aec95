# SPDX-License-Identifier: Apache-2.0
"""The plugin of pytest, as a user's pytest runs it: options, markers and a store, on the host device."""

import os
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import needs

ROOT = pathlib.Path(__file__).resolve().parents[2]

TESTS = '''
import numpy as np
import pytest

@pytest.mark.parametrize("n", [256, 512])
@pytest.mark.moegate(budget_s=0.05)
def test_add(moegate_bench, n):
    x = np.ones(n, np.float32)
    assert moegate_bench(np.add, x, 1, reference=x + 1.0).verified
    moegate_bench(np.negative, x, name="negative", reference=-x)

def test_without():
    pass
'''


class Plugin(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.write(TESTS)

    def write(self, text):
        (self.folder / "test_it.py").write_text(text)

    def run_pytest(self, *arguments, **variables):
        environment = {key: value for key, value in os.environ.items() if key not in ("MOEGATE_DB", "MOEGATE_BENCH")}
        environment.update(PYTHONPATH=str(ROOT / "python"), PYTEST_PLUGINS="moegate._pytest", **variables)
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    def query(self, sql):
        with sqlite3.connect(self.folder / "s.sqlite") as db:
            return db.execute(sql).fetchall()

    def test_times_are_printed_and_nothing_is_stored(self):
        code, text = self.run_pytest()
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"test_it\.py::test_add n=256: \d+\.\d\d us .* clock, cold")
        self.assertIn("test_it.py::test_add:negative n=512: ", text)
        self.assertEqual([path.name for path in self.folder.iterdir() if path.suffix == ".sqlite"], [])

    def test_it_is_inert_until_it_is_used(self):
        self.write("import sys\ndef test_it():\n    assert not {'numpy', 'moegate._bench'} & set(sys.modules)\n")
        code, text = self.run_pytest()
        self.assertEqual(code, 0, text)
        self.assertNotIn("moegate", text)

    def test_a_session_is_a_run(self):
        code, text = self.run_pytest("--moegate-store", "s.sqlite")
        self.assertEqual(code, 0, text)
        keys = ["test_it.py::test_add/n=256", "test_it.py::test_add/n=512"]
        keys += ["test_it.py::test_add:negative/n=256", "test_it.py::test_add:negative/n=512"]
        self.assertEqual([key for (key,) in self.query("SELECT key FROM bench_case ORDER BY key")], keys)
        self.assertEqual(self.query("SELECT status, rounds FROM run"), [("complete", 1)])
        self.assertEqual(self.query("SELECT count(*) FROM result"), [(4,)])

    def test_the_environment_names_a_store(self):
        self.assertEqual(self.run_pytest(MOEGATE_DB="s.sqlite")[0], 0)
        self.assertEqual(self.query("SELECT count(*) FROM result"), [(4,)])

    def test_off_verifies_alone(self):
        code, text = self.run_pytest("--moegate-store", "s.sqlite", MOEGATE_BENCH="off")
        self.assertEqual(code, 0, text)
        self.assertIn("verified, not timed", text)
        self.assertFalse((self.folder / "s.sqlite").exists())

    def test_beside_other_workers_nothing_is_timed(self):
        code, text = self.run_pytest(PYTEST_XDIST_WORKER="gw0")
        self.assertEqual(code, 0, text)
        self.assertIn("test_it.py::test_add n=512: verified, not timed", text)

    def test_a_wrong_output_fails_the_test(self):
        self.write(TESTS.replace("x + 1.0", "x + 2.0"))
        code, text = self.run_pytest()
        self.assertEqual(code, 1, text)
        self.assertIn("moegate._bench.Wrong", text)

    def test_a_limit_fails_the_test(self):
        self.write(TESTS.replace("budget_s=0.05", "budget_s=0.05, limit=0.001"))
        code, text = self.run_pytest()
        self.assertEqual(code, 1, text)
        self.assertIn("over its limit of 0.001 us", text)

    def test_rounds_are_fresh_processes_of_one_run(self):
        code, text = self.run_pytest("--moegate-store", "s.sqlite", "--moegate-rounds", "3", "-k", "256 or without")
        self.assertEqual(code, 0, text)
        self.assertEqual(self.query("SELECT status, rounds FROM run"), [("complete", 3)])
        rounds = "SELECT round, count(*) FROM process JOIN result USING (process_id) GROUP BY process_id ORDER BY round"
        self.assertEqual(self.query(rounds), [(0, 2), (1, 2), (2, 2)])
        self.assertEqual(self.query("SELECT count(DISTINCT pid) FROM process"), [(3,)])

    def test_a_round_that_fails_is_told(self):
        self.write(TESTS + "    import os\n    assert 'MOEGATE_ROUND' not in os.environ, 'only when alone'\n")
        code, text = self.run_pytest("--moegate-store", "s.sqlite", "--moegate-rounds", "2")
        self.assertEqual(code, 0, f"a test without times is not repeated: {text}")
        self.write(TESTS.replace("    x = np", "    import os\n    assert 'MOEGATE_ROUND' not in os.environ\n    x = np"))
        code, text = self.run_pytest("--moegate-store", "s.sqlite", "--moegate-rounds", "2")
        self.assertEqual(code, 1, text)
        self.assertIn("round 2 of 2 failed:", text)
        self.assertIn("AssertionError", text)

    def compare(self, rounds, exit_code):
        """A session beside an earlier one, with a program that answers as one that finds a row slower."""
        program = self.folder / "program"
        row = '{"outcome": "regressed", "key": "a/n=256", "why": "slower: +50 %"}, {"outcome": "pass", "key": "b", "why": ""}'
        program.write_text(
            f"""#!/bin/sh
echo "$@" >>{self.folder}/asked
for last; do :; done
echo '{{"sentence": "FAIL (exit 10): 1 regressed", "cases": [{row}]}}' >"$last"
exit {exit_code}
"""
        )
        program.chmod(0o755)
        options = ["--moegate-store", "s.sqlite", "-k", "256", "--moegate-compare", "latest"]
        return self.run_pytest(*options, "--moegate-rounds", str(rounds), MOEGATE_PROGRAM=str(program))

    def test_a_comparison_fails_what_is_slower(self):
        code, text = self.compare(rounds=1, exit_code=10)
        self.assertEqual(code, 0, text)
        self.assertIn("nothing to compare with", text)
        code, text = self.compare(rounds=1, exit_code=10)
        self.assertEqual(code, 0, f"one process fails nothing: {text}")
        self.assertIn("regressed: a/n=256: slower: +50 %", text)
        code, text = self.compare(rounds=2, exit_code=10)
        self.assertEqual(code, 1, text)
        self.assertIn("FAIL (exit 10): 1 regressed\nregressed: a/n=256: slower: +50 %\n", text)
        self.assertEqual(self.compare(rounds=2, exit_code=20)[0], 0, "undecided")
        asked = (self.folder / "asked").read_text().splitlines()
        self.assertEqual(len(asked), 3, "one for each session, and none for a round")
        self.assertIn("gate --db s.sqlite --run 3 --against 2 --out ", asked[1])

    def test_usage_errors(self):
        code, text = self.run_pytest("--moegate-rounds", "2")
        self.assertEqual(code, 4, text)
        self.assertIn("need --moegate-store", text)
        self.write(TESTS.replace("budget_s=0.05", "budget=0.05"))
        code, text = self.run_pytest()
        self.assertEqual(code, 4, text)
        self.assertIn("marker moegate takes launch, cache, limit, tolerance, budget_s, not budget", text)


if __name__ == "__main__":
    needs.run("pytest")
