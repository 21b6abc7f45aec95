# SPDX-License-Identifier: Apache-2.0
"""What commands in Python share: errors with exit codes, text, files, JSON, flags."""

import argparse
import contextlib
import json
import math
import os
import re
import secrets
import struct
import sys

# Exit codes of harness/base/error.h.
USAGE, COVERAGE, ENVIRONMENT, STORE, INTERRUPTED = 2, 13, 21, 30, 130


class Error(Exception):
    """What ends a command: an exit code, and a sentence that names the thing, the value and the
    remedy."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


# ---- Text. Bytes that are no UTF-8 are surrogates in Python's texts, here too.

_ACTS = "\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"  # what shows nothing but acts


def valid_text(text):
    valid = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return valid.replace("\r\n", "\n")


def one_line(text):
    return re.sub(f"[{_ACTS}]", "\ufffd", re.sub("[\n\r\t\x85\u2028\u2029]", " ", valid_text(text)))


def printable(text):
    """For a terminal or a log: no line is a command to the machinery that reads a CI job's log."""
    shown = re.sub(f"[{_ACTS}]", "\ufffd", valid_text(text))
    return re.sub(r"(?m)^([ \t]*):", "\\1\u200b:", shown).replace("##[", "##\u200b[")


def clipped(text, characters):
    return text if len(text) <= characters else text[: characters - 1] + "…"


def counted(count, what):
    return f"{count} {what}{'' if count == 1 else 's'}"


def print_result(text):
    """A result that could not be printed is no success."""
    try:
        sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape"))
        sys.stdout.flush()
    except (OSError, AttributeError):
        sys.stdout = None  # else the interpreter complains of it, too
        why = "standard output cannot be written; the command did not print its result"
        raise Error(USAGE, why) from None


def say(text):
    """On standard error, which may be closed or full: what is done matters more."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.buffer.write(printable(text).encode() + b"\n")
        sys.stderr.flush()


# ---- Files


def read_file(path, most=64 << 20):
    if not os.path.exists(path):
        raise Error(USAGE, f"{path}: no such file")
    if not os.path.isfile(path):
        raise Error(USAGE, f"{path}: this is not a regular file; name a regular file")
    try:
        with open(path, "rb") as file:
            content = file.read(most + 1)
    except OSError as error:
        raise Error(USAGE, f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > most:
        raise Error(USAGE, f"{path}: is longer than {most} bytes; name the right file")
    return content


def write_file(path, content):
    """Replaces a regular file by a rename: a reader sees the old content or the new. Anything else
    (a device, a pipe) stays what it is and is written to."""
    target = os.path.realpath(path)
    # As harness/base/files.cc names it, which removes what a killed writer has left.
    temporary = f"{target}.{secrets.token_hex(8)}.tmp"
    made = False
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as file:
                file.write(content)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(temporary, flags, 0o644), "wb") as file:
            made = True
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, target)
    except OSError as error:
        if made:
            os.unlink(temporary)
        raise Error(USAGE, f"{path}: cannot be written: {error.strerror}") from None


def make_folder(folder):
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise Error(USAGE, f"--out {folder}: {error.strerror}") from None


def check_output(path):
    """Before it is computed what is to be written."""
    target = os.path.realpath(path)
    replaced = os.path.isfile(target) or not os.path.exists(target)
    place = (os.path.dirname(path) or ".") if replaced else path
    if os.access(os.path.dirname(target) if replaced else target, os.W_OK):
        return
    why = "Permission denied" if os.path.exists(place) else "No such file or directory"
    raise Error(USAGE, f"{path}: cannot be written: {place}: {why}")


# ---- JSON that somebody else wrote

_DEEPEST = 64


def _real(text):
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"number {text} is out of range")
    return value


def _whole(text):
    """A number of 64 bits; else as a float."""
    value = int(text) if len(text) < 24 else 1 << 64
    return value if -(1 << 63) <= value < 1 << 64 else _real(text)


def _is_deep(value):
    level = [value]
    for _ in range(_DEEPEST + 1):
        level = [inner for outer in level for inner in _inside(outer)]
    return bool(level)


def _inside(value):
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def parse_json(where, content):
    """`where` is what messages begin with: a path, or a path and a line."""
    try:
        text = content.decode("utf-8-sig")
        value = json.loads(text, parse_int=_whole, parse_float=_real, parse_constant=_real)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no text
        deep = _is_deep(value)
    except RecursionError:
        deep = True
    except ValueError as error:
        why = clipped(one_line(str(error)), 160)
        raise Error(USAGE, f"{where}: is damaged, or no JSON: {why}") from None
    if deep:
        why = f"its JSON is nested deeper than {_DEEPEST}; is it the right file?"
        raise Error(USAGE, f"{where}: {why}")
    return value


def member(of, name):
    return of.get(name) if isinstance(of, dict) else None


def is_count(value, most):
    return type(value) is int and 0 <= value <= most  # a bool is an int, too


# ---- Arrays


def import_numpy():
    try:
        import numpy
    except ImportError:
        why = f"{sys.executable} has no numpy, which recorded tensors are read with"
        raise Error(ENVIRONMENT, f"{why}; install it, or use a Python that has it") from None
    return numpy


def npy_bytes(table, kind="<i4"):
    """An array as an .npy file of a type: numpy's own differ from version to version."""
    shape = tuple(int(extent) for extent in table.shape)
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(10 + len(header) + 1) % 64) + "\n"
    start = b"\x93NUMPY\1\0" + struct.pack("<H", len(header))
    return start + header.encode() + table.astype(kind).tobytes()


# ---- The command line


class Once(argparse.Action):
    """A flag that is given twice is a mistake."""

    def __call__(self, parser, namespace, value, option=None):
        given = namespace.__dict__.setdefault("given", set())
        if option in given:
            parser.error(f"option '{option}' cannot be specified more than once")
        given.add(option)
        setattr(namespace, self.dest, value)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Error(USAGE, f"{self.prog.replace('python3 -m ', '')}: {message}; see --help")


def exit_code_of(run, arguments):
    """Runs a command; an Error is its line on standard error, and its code."""
    try:
        run(arguments)
        code = 0
    except Error as error:
        say(f"moegate: {error}")
        code = error.code
    except KeyboardInterrupt:
        code = INTERRUPTED
    return code
