# SPDX-License-Identifier: Apache-2.0
"""What kernels run with beside their own files: the interpreter, the packages that are loaded, the compilers that these
start. As a program: what a side of an A/B has to know of an interpreter before it starts workers with it."""

import csv
import glob
import hashlib
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig

# Of RECORD, what says how a package came here and not what it is. Scripts (../) begin with the path of the interpreter.
_OF_INSTALLING = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")


def _item(kind, name, value, digest=""):
    return {"kind": kind, "name": name, "value": value, "digest": digest}


def _short(digest):
    return digest.hexdigest()[:16]


class _Distribution:
    """An installed distribution, read when it is asked about."""

    def __init__(self, found):
        self._found = found
        self.root = os.path.abspath(str(found.locate_file("")))
        self.rows = [row for row in csv.reader((found.read_text("RECORD") or "").splitlines()) if row]
        self._origin = None

    @property
    def origin(self):
        """What direct_url.json says; {} without one."""
        if self._origin is None:
            self._origin = json.loads(self._found.read_text("direct_url.json") or "{}")
        return self._origin

    @property
    def name(self):
        return re.sub(r"[-_.]+", "-", self._found.metadata["Name"] or "").lower()

    @property
    def version(self):
        commit = self.origin.get("vcs_info", {}).get("commit_id", "")
        return (self._found.version or "") + (f" at {commit}" if commit else "")

    @property
    def is_recorded(self):
        """Whether RECORD says what its modules are: of an editable installation it names a link."""
        return bool(self.rows) and not self.origin.get("dir_info", {}).get("editable", False)

    def tops(self):
        """Names under which its modules are imported."""
        listed = (self._found.read_text("top_level.txt") or "").split()
        if self.is_recorded:
            listed += [row[0].split("/")[0].split(".")[0] for row in self.rows if not row[0].startswith("../")]
        return set(listed or [self.name.replace("-", "_")])

    def digest_of_record(self):
        kept = [
            row
            for row in self.rows
            if not row[0].startswith(("../", "/")) and not row[0].endswith(".pyc")
            and not (".dist-info/" in row[0] and row[0].rsplit("/", 1)[1] in _OF_INSTALLING)
        ]
        return _short(hashlib.sha256("\n".join(sorted(",".join(row) for row in kept)).encode()))

    def loaded_of(self, modules):
        """Its files among those of modules, by name of module."""
        if self.is_recorded:
            own = {os.path.normpath(os.path.join(self.root, row[0])) for row in self.rows}
            return {name: file for name, file in modules.items() if file in own}
        tops = self.tops()
        mine = {name: file for name, file in modules.items() if name.split(".")[0] in tops}
        if self.origin:
            return mine  # editable: its files are elsewhere
        return {name: file for name, file in mine.items() if file.startswith(self.root + os.sep)}


_digests = {}  # by path and state


def _digest_of_files(files):
    """Of modules' contents, by their names: wherever they lie."""
    whole = hashlib.sha256()
    for name, path in sorted(files.items()):
        try:
            state = os.stat(path)
            key = (path, state.st_size, state.st_mtime_ns)
            if key not in _digests:
                with open(path, "rb") as file:
                    _digests[key] = hashlib.sha256(file.read()).digest()
            whole.update(name.encode() + b"\0" + _digests[key])
        except OSError:
            whole.update(name.encode() + b"\0gone")
    return _short(whole)


_known = {}  # distributions by sys.path


def _distributions():
    path = tuple(sys.path)
    if path not in _known:
        _known.clear()
        _known[path] = [(one, one.tops()) for one in map(_Distribution, importlib.metadata.distributions())]
    return _known[path]


def packages():
    """The distributions of which a module is loaded, but for the tool's own."""
    modules = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__dict__", {}).get("__file__")
        if isinstance(file, str):
            modules[name] = os.path.abspath(file)
    tops = {name.split(".")[0] for name in modules} - {"moegate"}
    items = {}
    for one, names in _distributions():
        if names.isdisjoint(tops):
            continue
        loaded = one.loaded_of(modules)
        if not loaded or one.name in ("", "moegate") or one.name in items:
            continue
        digest = one.digest_of_record() if one.is_recorded else _digest_of_files(loaded)
        items[one.name] = _item("package", one.name, one.version, digest)
    return list(items.values())


_said = {}  # what a program answers to --version


def _version_of(program):
    if program not in _said:
        try:
            told = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20)
            _said[program] = re.findall(r"\bV?(\d+\.\d+\.\d+)\b", told.stdout.decode(errors="replace"))
        except (OSError, subprocess.SubprocessError):
            _said[program] = []
    return _said[program][-1] if _said[program] else ""


def tools():
    """The compilers that packages start: Triton's ptxas, and nvcc of CUDA_HOME."""
    found = {}
    triton = getattr(sys.modules.get("triton"), "__file__", None)
    if triton:
        own = os.path.join(os.path.dirname(triton), "backends", "nvidia", "bin", "ptxas")
        found["ptxas"] = os.environ.get("TRITON_PTXAS_PATH") or own
    if os.environ.get("CUDA_HOME"):
        found["nvcc"] = os.path.join(os.environ["CUDA_HOME"], "bin", "nvcc")
    versions = {name: _version_of(path) for name, path in found.items()}
    return [_item("tool", name, version) for name, version in versions.items() if version]


def interpreter():
    number = ".".join(map(str, sys.version_info[:3]))
    return _item("python", sys.implementation.name, number + getattr(sys, "abiflags", ""))


_answer = None  # and how many modules were loaded then


def loaded():
    """All of it, as it is now."""
    global _answer
    if _answer is None or _answer[0] != len(sys.modules):
        items = [interpreter(), *packages(), *tools()]
        _answer = (len(sys.modules), items)
    return _answer[1]


def folders():
    """Where packages lie: a file below one of them has the same name in every environment."""
    return sorted({path for path in map(sysconfig.get_path, ("purelib", "platlib")) if path})


def installed():
    """What tells one environment from another before anything is loaded, and where its libraries of CUDA are."""
    known, libraries = {}, []
    for one in map(_Distribution, importlib.metadata.distributions()):
        digest = one.digest_of_record() if one.is_recorded else one.root
        known.setdefault(one.name, [one.name, one.version, digest])
    for folder in folders():
        libraries += sorted(glob.glob(os.path.join(folder, "nvidia", "*", "lib")))
    said = interpreter()
    return {"python": said["name"] + " " + said["value"], "libraries": libraries, "installed": sorted(known.values())}


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, which is no place of packages
    print(json.dumps(installed()))
