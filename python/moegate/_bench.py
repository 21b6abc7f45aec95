# SPDX-License-Identifier: Apache-2.0
"""moegate.bench(): a function of this process, verified and timed as kernels are, by libmoegate.so."""

import atexit
import contextlib
import ctypes
import dataclasses
import json
import os
import pathlib
import sys
import threading
import time
import typing
import warnings

from moegate import _memory

ABI = 1

_LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


class Wrong(Exception):
    """An output that is not the reference's, or an input that changed. `accuracy`: a dict for each output."""

    def __init__(self, why, accuracy=()):
        super().__init__(why)
        self.accuracy = list(accuracy)


class TimerBusy(RuntimeError):
    """CUPTI was asked for by timer="cupti" or watch(), and another tool holds it."""


@dataclasses.dataclass
class Kernel:
    """A kernel, copy or fill of a launch. `gap_us`: from the end of the one before it."""

    name: str
    grid: str
    block: str
    registers: int
    us: float
    gap_us: float


@dataclasses.dataclass
class Timing:
    """What bench() found. `us` is the median of one process, `low_us` and `high_us` its 95 % interval; what differs
    from process to process is not in it. There is no float(): the unit would be a guess."""

    us: float
    low_us: float
    high_us: float
    samples_us: list
    kernels: list
    timer: str
    cache: str
    verified: bool
    accuracy: list
    notes: list
    first_call_s: float
    code: str
    result: typing.Any

    def __str__(self):
        if not self.samples_us:
            return "verified, not timed" if self.verified else "not timed, not verified"
        text = f"{self.us:.2f} us [{self.low_us:.2f}, {self.high_us:.2f}] {self.timer}, {self.cache}, "
        text += f"{len(self.samples_us)} samples, one process"
        return text if self.verified else text + ", not verified"


def _candidates():
    here = pathlib.Path(__file__).resolve().parent
    yield here / "_home" / "lib" / "libmoegate.so"  # of a wheel
    yield here.parents[1] / "lib" / "libmoegate.so"  # of an installed folder
    yield here.parents[1] / "build" / "libmoegate.so"  # of a clone


def _open_library(path):
    library = ctypes.CDLL(str(path))
    if library.moegate_abi() != ABI:
        raise ImportError(
            f"{path} has interface {library.moegate_abi()}, and this package needs {ABI}: they are of two versions"
        )
    library.moegate_open.restype = ctypes.c_void_p
    library.moegate_open.argtypes = [ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p)]
    library.moegate_ask.restype = ctypes.c_char_p
    library.moegate_ask.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p, _LAUNCH, ctypes.c_void_p]
    library.moegate_close.argtypes = [ctypes.c_void_p]
    library.moegate_close.restype = None
    return library


_loaded = None


def library():
    """libmoegate.so: that of MOEGATE_LIBRARY, of the wheel, the installed folder or the clone. Raises ImportError."""
    global _loaded
    if _loaded is None:
        named = os.environ.get("MOEGATE_LIBRARY")
        found = named or next((path for path in _candidates() if path.exists()), None)
        if not found:
            raise ImportError("there is no libmoegate.so: install a wheel, build it, or set MOEGATE_LIBRARY to its path")
        _loaded = _open_library(found)
    return _loaded


class Session:
    """A device, and perhaps a run of a store, of one thread. `options`: those of moegate_open()."""

    def __init__(self, options):
        self.library, why = library(), ctypes.c_char_p()
        self.handle = self.library.moegate_open(json.dumps(options).encode(), ctypes.byref(why))
        if not self.handle:
            raise RuntimeError((why.value or b"").decode())

    def ask(self, what, question, launch=None):
        answer = self.library.moegate_ask(
            self.handle, what.encode(), json.dumps(question).encode(), launch or _LAUNCH(), None
        )
        return json.loads(answer)

    def close(self):
        if self.handle:
            self.library.moegate_close(self.handle)
            self.handle = None


_local = threading.local()
_sessions = []  # of all threads, to be closed at the end
run_options = {}  # of the runs that this process begins
runs = {}  # the numbers of its runs, by device
_ROUND = "MOEGATE_ROUND"  # a round of runs that another process began
_joined = json.loads(os.environ.get(_ROUND, '{"runs": {}}'))


def joining(number, begun):
    """The environment of a process whose results are round `number` of the runs `begun` (by device)."""
    return {**os.environ, _ROUND: json.dumps({"round": number, "runs": begun})}


def session_of(device, store):
    """This thread's session of a device and a store, which lasts as long as the process."""
    mine = _local.__dict__.setdefault("sessions", {})
    key = (device, store)
    if key not in mine or not mine[key].handle:
        options = {"device": device}
        if store:
            options.update(run_options, store=store, command=" ".join(sys.argv))
            if device in _joined["runs"]:
                options.update(run=_joined["runs"][device], round=_joined["round"])
        mine[key] = Session(options)
        _sessions.append(mine[key])
    return mine[key]


@atexit.register
def close_sessions():
    """Ends the runs of all stores; the next bench() begins new ones."""
    while _sessions:
        _sessions.pop().close()


class _Function:
    """fn as the library calls it. What it raises waits here until the library has returned."""

    def __init__(self, fn, args, kwargs):
        self.fn, self.args, self.kwargs = fn, args, kwargs
        self.error, self.result, self.first_call_s = None, None, None
        self.slots = self.shapes = ()
        self.launch = _LAUNCH(self._launch)

    def call(self):
        began = time.perf_counter()
        self.result = self.fn(*self.args, **self.kwargs)
        if self.first_call_s is None:
            _memory.wait()
            self.first_call_s = time.perf_counter() - began

    def watch(self, tensors):
        """From now on every call says where the tensors are that it returns."""
        self.shapes = [tuple(t.shape) for t in tensors]
        self.slots = (ctypes.c_uint64 * len(tensors))(*(_memory.address(t) for t in tensors))

    def _launch(self, user, stream):
        if self.error is not None:
            return 1
        try:
            self.call()
            if self.slots:
                for i, tensor in enumerate(_memory.tensors_of(self.result)):
                    if tuple(tensor.shape) != self.shapes[i]:
                        raise ValueError(f"returned shape {tuple(tensor.shape)}, and {self.shapes[i]} before")
                    self.slots[i] = _memory.address(tensor)
            return 0
        except BaseException as error:  # noqa: BLE001: KeyboardInterrupt, too; it is raised behind the library
            self.error = error
            return 1


def _truths(reference, args, kwargs):
    """The expected tensors, in the outputs' order; None without a reference. Called on clones, before everything."""
    if reference is None:
        return None
    if callable(reference):
        reference = reference(*_memory.clone(args), **_memory.clone(kwargs))
    truths = list(_memory.tensors_of(reference))
    if not truths:
        raise ValueError("the reference has no tensors; give or return arrays of numpy or tensors of torch")
    return truths


def _outputs(function, named, truths, tolerance):
    """What the library is told of the outputs, and what has to live while it knows the addresses."""
    tensors = list(_memory.tensors_of(named if named is not None else function.result))
    if truths is not None and len(truths) != len(tensors):
        raise ValueError(f"the reference has {len(truths)} tensors, and there are {len(tensors)} outputs")
    stated, alive = [], []
    if named is None and tensors:
        function.watch(tensors)
    for i, tensor in enumerate(tensors):
        output = _memory.describe_output(f"output {i}", tensor)
        if named is None:
            output["slot"] = ctypes.addressof(function.slots) + i * ctypes.sizeof(ctypes.c_uint64)
        truth = None if truths is None else _memory.Truth(tensor, truths[i], output["format"], tolerance)
        alive.append(truth)
        output["truth"] = truth.address if truth else 0
        output["tolerance"] = truth.tolerance if truth else None
        stated.append(output)
    return stated, alive


def _call_first(function, session, question):
    """What fn returns is known when it has been called; that it leaves its inputs alone, before and after."""
    before = session.ask("hash", question)
    function.call()
    for tensor, old, new in zip(question["inputs"], before["hashes"], session.ask("hash", question)["hashes"]):
        if old != new:
            raise Wrong(f"changed its {tensor['name']}; name it in outputs=, or leave it as it is")


def watch():
    """Keeps CUPTI as long as this process lives: `Timing.code` of launch="graph" is then known where all of its kernels
    come from modules that are loaded from now on. Call it before the first CUDA call, torch's too. torch.profiler
    and other tools see nothing of the GPU in such a process. Without a GPU it does nothing.

    Raises TimerBusy where CUPTI cannot be had, and ImportError without libmoegate.so."""
    session = Session({"device": "host"})
    answer = session.ask("watch", {})
    session.close()
    if "error" in answer:
        raise (TimerBusy if answer["busy"] else RuntimeError)(answer["error"])


_warned = set()


def _notes(answer):
    notes = [text for text in (answer["note"], answer["why"]) if text]
    if answer["note"] and answer["note"] not in _warned:
        _warned.add(answer["note"])
        warnings.warn(answer["note"], RuntimeWarning, stacklevel=4)
    if not answer["deterministic"]:
        notes.append("outputs differ from launch to launch")
    return notes


def _timing(answer, function, cache):
    if answer["status"] == "wrong":
        raise Wrong(answer["why"], answer["accuracy"])
    if answer["status"] == "unsupported" or (answer["status"] == "bad_timer" and not answer["samples"]):
        raise RuntimeError(answer["why"])
    known = bool(answer["spans_ns"])
    us = [answer[name] / 1e3 if known else float("nan") for name in ("median_ns", "low_ns", "high_ns")]
    kernels = [
        Kernel(k["name"], k["grid"], k["block"], k["registers"], k["ns"] / 1e3, k["gap_ns"] / 1e3)
        for k in answer["kernels"]
    ]
    return Timing(
        *us,
        samples_us=[ns / 1e3 for ns in answer["spans_ns"]],
        kernels=kernels,
        timer=answer["timer"],
        cache=cache,
        verified=answer["verified"],
        accuracy=answer["accuracy"],
        notes=_notes(answer),
        first_call_s=function.first_call_s,
        code=answer["code"],
        result=function.result,
    )


def bench(
    fn,
    *args,
    name=None,
    variant="fn",
    params=None,
    outputs=None,
    reference=None,
    tolerance=None,
    cache="cold",
    launch="stream",
    min_samples=200,
    max_samples=2000,
    budget_s=0.5,
    stream=None,
    timer="auto",
    store=None,
    **kwargs,
):
    """Verifies fn(*args, **kwargs), times it with cold caches, and returns a Timing.

    fn: launches on `stream` and does not wait; without a GPU it works on numpy arrays.
    outputs: the tensors that it writes, which are spoilt before it is launched, so that it must not read them;
        default: what it returns.
    reference: a function of the same arguments, called once on clones, or the expected tensors. Without one the
        result is "not verified". tolerance: a moegate.Tolerance; default: by the outputs' types.
    cache: "cold" or "warm". launch: "stream" or "graph". budget_s: seconds, warm-up included.
    stream: an int, or what has __cuda_stream__; default: torch's current one. timer: "auto", "cupti" or "event".
    store: path of a store that gets the row `name` with `params`; default: none. `variant` tells functions apart that
        do the same.

    Raises Wrong, TimerBusy, what fn raises, and ValueError or RuntimeError for what cannot be measured."""
    truths = _truths(reference, args, kwargs)
    inputs = list(_memory.tensors_of((args, kwargs)))
    device = _memory.device_of(inputs + list(_memory.tensors_of(outputs)), stream)
    question = {
        "name": name or getattr(fn, "__name__", type(fn).__name__),
        "variant": variant,
        "params": {key: str(value) for key, value in (params or {}).items()},
        "cache": cache,
        "launch": launch,
        "min_samples": min_samples,
        "max_samples": max_samples,
        "budget_s": budget_s,
        "timer": timer,
        "timed": os.environ.get("MOEGATE_BENCH") != "off",
        "inputs": [_memory.describe_input(f"input {i}", tensor) for i, tensor in enumerate(inputs)],
    }
    function = _Function(fn, args, kwargs)
    with contextlib.ExitStack() as stack:
        question["stream"] = _memory.enter_stream(stack, device, stream, launch)
        session = session_of(device, os.fspath(store) if store else None)
        if outputs is None:
            _call_first(function, session, question)
        question["outputs"], alive = _outputs(function, outputs, truths, tolerance)
        answer = session.ask("bench", question, function.launch)
        del alive
    if answer.get("run"):
        runs[device] = answer["run"]
    if function.error is not None:
        raise function.error
    if answer.get("busy"):
        raise TimerBusy(answer["error"])
    if "error" in answer:
        raise (ValueError if answer["exit"] == 2 else RuntimeError)(answer["error"])
    return _timing(answer, function, cache)
