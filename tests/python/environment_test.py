# SPDX-License-Identifier: Apache-2.0
"""What python/moegate says of an environment, in virtual environments whose packages are written by hand."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LOADED = "import json; from moegate import _environment; print(json.dumps(_environment.loaded()))"


class Environment(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def site(self, name, constant=1, version="1.0", record=True, direct_url=None):
        """A folder of packages with one distribution, `stub`."""
        site = self.folder / name
        info = site / f"stub-{version}.dist-info"
        (site / "stub").mkdir(parents=True)
        info.mkdir()
        text = f"CONSTANT = {constant}\n"
        (site / "stub/__init__.py").write_text(text)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: Stub\nVersion: {version}\n")
        (info / "INSTALLER").write_text("hand\n")
        if record:
            (info / "RECORD").write_text(
                f"stub/__init__.py,sha256={constant},{len(text)}\n../../bin/stub,sha256={name},9\n"
                f"stub/__pycache__/__init__.pyc,,\n{info.name}/INSTALLER,sha256={name},5\n{info.name}/RECORD,,\n"
            )
        else:
            (info / "top_level.txt").write_text("stub\n")
        if direct_url:
            (info / "direct_url.json").write_text(json.dumps(direct_url))
        return site

    @staticmethod
    def loaded(site, before="import stub"):
        """By name, as (value, digest)."""
        path = os.pathsep.join([str(site), str(ROOT / "python")])
        told = subprocess.run(
            [sys.executable, "-B", "-c", f"{before}; {LOADED}"],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            check=True,
        )
        return {item["name"]: (item["value"], item["digest"]) for item in json.loads(told.stdout)}

    def test_a_package_counts_once_it_is_loaded(self):
        site = self.site("a")
        self.assertNotIn("stub", self.loaded(site, before="pass"))
        self.assertEqual(self.loaded(site)["stub"][0], "1.0")
        self.assertNotIn("moegate", self.loaded(site))

    def test_the_same_package_in_another_place_is_the_same(self):
        self.assertEqual(self.loaded(self.site("a"))["stub"], self.loaded(self.site("b"))["stub"])

    def test_another_content_of_the_same_version_is_another(self):
        a, b = self.loaded(self.site("a"))["stub"], self.loaded(self.site("b", constant=2))["stub"]
        self.assertEqual(a[0], b[0])
        self.assertNotEqual(a[1], b[1])

    def test_without_record_the_loaded_files_count(self):
        a, b = self.site("a", record=False), self.site("b", record=False)
        self.assertEqual(self.loaded(a)["stub"], self.loaded(b)["stub"])
        (b / "stub/__init__.py").write_text("CONSTANT = 2\n")
        self.assertNotEqual(self.loaded(a)["stub"], self.loaded(b)["stub"])

    def test_an_editable_installation_counts_by_its_files(self):
        site = self.site("a", direct_url={"url": "file:///somewhere", "dir_info": {"editable": True}})
        (site / "stub-1.0.dist-info/top_level.txt").write_text("stub\n")
        before = self.loaded(site)["stub"]
        (site / "stub/__init__.py").write_text("CONSTANT = 2\n")
        self.assertNotEqual(self.loaded(site)["stub"], before)

    def test_a_commit_is_part_of_the_version(self):
        site = self.site("a", direct_url={"url": "https://x/y", "vcs_info": {"vcs": "git", "commit_id": "abc123"}})
        self.assertEqual(self.loaded(site)["stub"][0], "1.0 at abc123")

    def test_what_shadows_a_package_is_not_it(self):
        site = self.site("a")
        (self.folder / "stub.py").write_text("CONSTANT = 3\n")
        self.assertNotIn("stub", self.loaded(site, before=f"import sys; sys.path.insert(0, '{self.folder}'); import stub"))

    def test_a_shadowed_installation_is_not_the_loaded_one(self):
        first, second = self.site("a", version="2.0"), self.site("b", version="1.0")
        self.assertEqual(self.loaded(f"{first}{os.pathsep}{second}")["stub"][0], "2.0")

    def test_a_later_import_is_seen(self):
        site = self.site("a")
        before = "from moegate import _environment; _environment.loaded(); import stub"
        self.assertIn("stub", self.loaded(site, before))

    def test_the_interpreter_is_told(self):
        number = ".".join(map(str, sys.version_info[:3])) + sys.abiflags
        self.assertEqual(self.loaded(self.site("a"))[sys.implementation.name], (number, ""))

    def test_a_side_knows_what_is_installed_and_where_its_libraries_are(self):
        def said(site):
            program = ROOT / "python/moegate/_environment.py"
            told = subprocess.run(
                [sys.executable, "-B", program],
                env={**os.environ, "PYTHONPATH": str(site)},
                capture_output=True,
                check=True,
            )
            return json.loads(told.stdout)

        a, b, c = said(self.site("a")), said(self.site("b")), said(self.site("c", constant=2))
        self.assertIn("stub", [name for name, version, digest in a["installed"]])
        self.assertEqual(a, b)
        self.assertNotEqual(a, c)


if __name__ == "__main__":
    unittest.main()
