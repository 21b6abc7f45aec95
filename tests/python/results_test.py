# SPDX-License-Identifier: Apache-2.0
"""moegate.results with a stub for the program: how it is called, and what becomes of its answer."""

import os
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

from moegate import _results  # noqa: E402

_ANSWER = (
    '[{"case": "a/tokens=8", "us": 7.5, "speedup": 1.21, "path": ""},'
    ' {"case": "a/tokens=9", "us": null, "speedup": null, "path": "fused"}]'
)


class Results(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.stub(f"cat <<'END'\n{_ANSWER}\nEND")

    def stub(self, body):
        program = self.folder / "moegate"
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >"{self.folder}/arguments"\n{body}\n')
        program.chmod(0o755)
        os.environ["MOEGATE_PROGRAM"] = str(program)

    def arguments(self):
        return (self.folder / "arguments").read_text().split("\n")[:-1]

    def test_numbers_are_numbers(self):
        first, second = _results.results("r.sqlite", "speedup")
        self.assertEqual(first["us"], 7.5)
        self.assertEqual(first["speedup"], 1.21)
        self.assertIsNone(second["us"])
        self.assertIsNone(second["speedup"])

    def test_filters_are_flags_and_columns(self):
        rows = _results.results(pathlib.Path("r.sqlite"), case="tokens", variant="^v$", run=3, path="fused")
        self.assertEqual([row["case"] for row in rows], ["a/tokens=9"])
        self.assertEqual(
            self.arguments(),
            "report latency --run 3 --format json --db r.sqlite --filter tokens --variant ^v$".split(),
        )
        with self.assertRaises(KeyError):
            _results.results(no_such_column=1)

    def test_best_configurations_are_dicts_by_tokens(self):
        row = '{"case": "c", "routing": "uniform", "tokens": %d, "best": "%s"}'
        self.stub(f"echo '[{row % (32, 'BLOCK=64,WARPS=8')}, {row % (8, 'BLOCK=16,WARPS=4')}]'")
        best = _results.best_configurations("t.sqlite", "engine", routing="uniform")
        self.assertEqual(list(best.items()), [(8, {"BLOCK": 16, "WARPS": 4}), (32, {"BLOCK": 64, "WARPS": 8})])
        self.assertIn("^engine$", self.arguments())
        for rows in ([row % (8, "A=1"), row % (8, "A=2")], [row % (8, "")], [row % (8, "A=1 + A=2")], []):
            self.stub(f"echo '[{', '.join(rows)}]'")
            with self.assertRaises(ValueError):
                _results.best_configurations("t.sqlite", "engine")

    def test_an_error_is_the_programs(self):
        self.stub("echo 'moegate: no run' >&2; exit 2")
        with self.assertRaisesRegex(RuntimeError, "^moegate: no run$"):
            _results.results()


if __name__ == "__main__":
    unittest.main()
