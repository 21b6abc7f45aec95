# SPDX-License-Identifier: Apache-2.0
"""The Python side of harness/plugin/python.cc: what each of the two calls of the other."""

import contextlib
import ctypes
import json
import os
import sys
import traceback

from moegate import _choices, _environment, _files, _kernels
from moegate._problems import Case, Problem, address

_TEXT, _SIZE = ctypes.c_char_p, ctypes.c_int64
# (number of the variant or operator, what to do, problem, stream, argument) -> 0, or 1 where it failed
_DISPATCH = ctypes.CFUNCTYPE(ctypes.c_int, _SIZE, _TEXT, _SIZE, ctypes.c_void_p, _TEXT)


class _Functions(ctypes.Structure):
    """Of the worker, in the order of PythonCalls in harness/plugin/python.cc."""

    _fields_ = [
        ("attach", ctypes.CFUNCTYPE(None, _DISPATCH)),
        ("answer", ctypes.CFUNCTYPE(None, _TEXT)),
        ("add_operator", ctypes.CFUNCTYPE(None, _TEXT)),
        ("add_variant", ctypes.CFUNCTYPE(None, _TEXT)),
        ("add_source", ctypes.CFUNCTYPE(None, _TEXT, _TEXT)),
        ("describe", ctypes.CFUNCTYPE(_TEXT, _SIZE)),
        ("move", ctypes.CFUNCTYPE(_TEXT, _SIZE, _TEXT, ctypes.c_void_p, _SIZE, ctypes.c_int)),
        ("packed", ctypes.CFUNCTYPE(_TEXT, _SIZE, _TEXT)),
        ("expect", ctypes.CFUNCTYPE(_TEXT, _SIZE, _TEXT, ctypes.c_void_p, _SIZE)),
        ("decoded", ctypes.CFUNCTYPE(_TEXT, _SIZE, _TEXT, ctypes.c_void_p, _SIZE)),
        ("serve", ctypes.CFUNCTYPE(None)),
    ]


def _text(value):
    return json.dumps(value).encode()


class Calls:
    """What Problem asks of the worker."""

    def __init__(self, functions):
        self.functions = functions

    def packed(self, handle, layout, shape, dtype):
        asked = {"layout": layout, "dtype": dtype, "shape": list(shape)}
        return self._answer(self.functions.packed(handle, _text(asked)))

    def workspace(self, handle):
        return self._answer(self.functions.packed(handle, _text({"layout": None})))

    def describe(self, handle):
        return self._answer(self.functions.describe(handle))

    def download(self, handle, tensor):
        import numpy as np

        from moegate._formats import FORMATS

        values = np.empty(tensor["shape"], dtype=FORMATS[tensor["dtype"]][0])
        self._answer(
            self.functions.move(handle, tensor["name"].encode(), address(values), values.nbytes, 0)
        )
        return values

    def upload(self, handle, name, values):
        self._answer(self.functions.move(handle, name.encode(), address(values), values.nbytes, 1))

    def outputs(self, handle):
        """{name: array of its elements}"""
        outputs = [t for t in self.describe(handle)["tensors"] if t["role"] == "output"]
        return {t["name"]: self.download(handle, t) for t in outputs}

    def expect(self, handle, name, values):
        self._answer(self.functions.expect(handle, name.encode(), address(values), values.size))

    def decoded(self, handle, name, values):
        self._answer(self.functions.decoded(handle, name.encode(), address(values), values.size))

    @staticmethod
    def _answer(text):
        answer = json.loads(text)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer


def _elements(values, tensor):
    """The array as elements of the tensor; floating values of bf16 and fp8 are rounded to them."""
    import numpy as np

    from moegate._formats import FORMATS, INTEGERS, encode

    floating = np.issubdtype(values.dtype, np.floating)
    if floating and tensor.dtype in INTEGERS:
        raise ValueError(f"{tensor.name}: filled with {values.dtype}, and is of {tensor.dtype}")
    if floating:
        values = encode(values, tensor.dtype)
    return np.ascontiguousarray(values, dtype=FORMATS[tensor.dtype][0])


class OperatorSide:
    """What the worker asks of an operator."""

    def __init__(self, calls, operator):
        self.calls, self.operator = calls, operator

    def validate(self, handle, stream, case):
        self.operator.validate(Case(case))

    def tensors(self, handle, stream, case):
        case = Case(case)
        cost = self.operator.cost(case)
        return {
            "tensors": [self._tensor(t) for t in self.operator.tensors(case)],
            "cost": None if cost is None else [cost.flops, cost.read_bytes, cost.write_bytes],
            "corruptions": list(self.operator.corruptions()),
        }

    def _tensor(self, tensor):
        from moegate._formats import FORMATS

        if tensor.dtype not in FORMATS:
            file = os.path.basename(type(self.operator).tensors.__code__.co_filename)
            raise ValueError(
                f"{file}: tensor {tensor.name} of {self.operator.name} has dtype '{tensor.dtype}'; use "
                f"{', '.join(FORMATS)}: bytes of any other format are uint8, and an output of them states values="
            )
        stated = {"name": tensor.name, "dtype": tensor.dtype, "shape": [int(n) for n in tensor.shape]}
        if isinstance(tensor, _kernels.Output):
            t = tensor.tolerance
            between = -1 if t is None or t.between is None else t.between
            limits = t and [t.rtol, t.atol, t.rel_l2, t.row, t.scale, between, t.by_chance]
            return {**stated, "role": "output", "tolerance": limits, "decoded": tensor.values is not None}
        fill = tensor.fill if isinstance(tensor.fill, dict) else None
        return {**stated, "role": tensor.role, "fill": fill}

    def fill(self, handle, stream, asked):
        """Writes the inputs that the operator makes itself: all of them, or the activations, drawn anew."""
        import numpy as np

        case = Case(asked["params"])
        generator = np.random.Generator(np.random.Philox(asked["seed"]))
        for tensor in self.operator.tensors(case):
            drawn = isinstance(tensor, _kernels.Input) and callable(tensor.fill)
            if drawn and (asked["all"] or tensor.role == "activation"):
                values = np.asarray(tensor.fill(case, generator))
                if values.shape != tuple(tensor.shape):
                    raise ValueError(
                        f"{tensor.name}: filled with shape {values.shape}, not {tuple(tensor.shape)}"
                    )
                self.calls.upload(handle, tensor.name, _elements(values, tensor))

    def truth(self, handle, stream, case):
        """Hands in the truth of the inputs that are there."""
        import numpy as np

        from moegate._formats import INTEGERS, decode

        held = {t["name"]: t for t in self.calls.describe(handle)["tensors"]}
        case = Case(case)
        tensors = self.operator.tensors(case)
        inputs = {}
        for tensor in tensors:
            if isinstance(tensor, _kernels.Input):
                bits = self.calls.download(handle, held[tensor.name])
                integer = tensor.dtype in INTEGERS
                inputs[tensor.name] = bits if integer else decode(bits, tensor.dtype)
        truth = self.operator.truth(inputs, case)
        for tensor in tensors:
            if isinstance(tensor, _kernels.Output):
                values = np.ascontiguousarray(truth[tensor.name], dtype=np.float64)
                self.calls.expect(handle, tensor.name, values)

    def values(self, handle, stream, asked):
        """Hands in what an output of a format of the operator's own comes to."""
        import numpy as np

        outputs = {t.name: t for t in self.operator.tensors(Case(asked["params"]))}
        values = outputs[asked["output"]].values(self.calls.outputs(handle))
        self.calls.decoded(handle, asked["output"], np.ascontiguousarray(values, dtype=np.float32))

    def corrupt(self, handle, stream, name):
        outputs = self.calls.outputs(handle)
        self.operator.corruptions()[name](outputs)
        for output, elements in outputs.items():
            self.calls.upload(handle, output, elements)


class VariantSide:
    """What the worker asks of a variant, or of one of its configurations."""

    def __init__(self, calls, variant, config=None):
        self.calls, self.variant, self.config = calls, variant, config
        self.problems = {}
        self.case, self.pools = None, []  # of a variant that allocates

    def _problem(self, handle):
        problem = self.problems.get(handle)
        if problem is None:
            problem = Problem(self.calls, handle, self.calls.describe(handle), self.variant.rows)
            self.problems[handle] = problem
        return problem

    def launch(self, handle, stream, argument):
        problem = self._problem(handle)
        pool = self._pool(problem.params) if self.variant.allocates and stream else None
        _on_stream(stream, self.variant.launch, problem, pool)

    def _pool(self, params):
        """Of the case, for all its graphs: they keep addresses of what has been freed. A case has its own, so that these
        do not depend on the cases before it. An earlier one in which something lasts is still read, and poisoned."""
        case = {name: text for name, text in params.items() if name != "seed"}
        if case != self.case:
            lasting = [pool for pool in self.pools if any(kept for _, _, kept in _segments(pool))]
            self.case, self.pools = case, [*lasting, sys.modules["torch"].cuda.MemPool()]
        return self.pools[-1]

    def segments(self, handle, stream, argument):
        return [segment for pool in self.pools for segment in _segments(pool)]

    def prepare(self, handle, stream, device):
        problem = self._problem(handle)
        if self.variant.choose:
            problem.config = self._config(Case(problem.params), device)
        if self.variant.prepare:
            _on_stream(stream, self.variant.prepare, problem)

    def unsupported(self, handle, stream, asked):
        if self.variant.unmet or not self.variant.unsupported:
            return self.variant.unmet
        try:
            case = self._case(asked)
        except Exception:  # noqa: BLE001: a lookup that fails is the row's fault, and it says so when it runs
            return ""
        return self.variant.unsupported(case, asked["device"]) or ""

    def workspace(self, handle, stream, asked):
        return int(self.variant.workspace(self._case(asked)))

    def _config(self, case, device):
        return self.config if self.config is not None else _choices.chosen(self.variant, case, device).config

    def _case(self, asked):
        case = Case(asked["params"])
        if self.variant.choose:
            case.config = self._config(case, asked["device"])
        return case

    def choose(self, handle, stream, asked):
        case = Case(asked["params"])
        return _choices.told(_choices.chosen(self.variant, case, asked["device"]), case)

    def candidates(self, handle, stream, asked):
        return _choices.candidates(self.variant, Case(asked["params"]), asked["device"])


def _segments(pool):
    """[address, bytes, bytes that are not freed] of each."""
    snapshot = sys.modules["torch"].cuda.memory_snapshot()
    mine = [one for one in snapshot if tuple(one["segment_pool_id"]) == tuple(pool.id)]
    return [[one["address"], one["total_size"], one["allocated_size"]] for one in mine]


_streams = {}


def _on_stream(stream, call, problem, pool=None):
    torch = sys.modules.get("torch")
    if not stream or torch is None:
        call(problem)
        return
    if stream not in _streams:
        _streams[stream] = torch.cuda.ExternalStream(stream)
    with torch.cuda.stream(_streams[stream]):
        with torch.cuda.use_mem_pool(pool) if pool else contextlib.nullcontext():
            call(problem)


def _one_line(error):
    """What happened. Messages of several lines begin with it, and end with advice; where they are about a line of
    source (a SyntaxError, a compiler's), they begin with the place."""
    lines = "".join(traceback.format_exception_only(type(error), error)).strip().split("\n")
    if isinstance(error, SyntaxError):
        return lines[-1]
    return f"{lines[0]} {lines[-1].strip()}" if lines[0].endswith(":") and lines[1:] else lines[0]


def _place(error, files):
    """The line of one of the files that it came through last: which call could not be captured, say."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if os.path.realpath(f.filename) in files]
    if not frames:
        return ""
    last = frames[-1]
    return f" ({os.path.basename(last.filename)}:{last.lineno}: {last.line})"


def _why_not_loaded(error):
    """What happened, and where a module is missing: from which interpreter, and how it gets there."""
    if not isinstance(error, ModuleNotFoundError) or not error.name:
        return _one_line(error)
    python, package = sys.executable, error.name.split(".")[0]
    return (
        f"{_one_line(error)} in {python}; install it with `{python} -m pip install {package}`, or set "
        "MOEGATE_PYTHON to a Python that has it"
    )


class Host:
    """The interpreter's end: all sides by number, and the worker's functions."""

    def __init__(self, functions):
        self.functions, self.calls = functions, Calls(functions)
        self.sides = []
        self.places = {}  # of variants, by operator and name
        self.files = set()
        self._dispatch = _DISPATCH(self._ask)  # must outlive the worker
        functions.attach(self._dispatch)

    def register(self, path):
        known_variants, known_operators = len(_kernels.VARIANTS), len(_kernels.operators())
        self.files.add(os.path.realpath(path))
        _files.load(path)
        base = os.path.basename(path)
        where = f"{base}/{base}"
        for operator in _kernels.operators()[known_operators:]:
            self._add_operator(operator(), where)
        for variant in _kernels.VARIANTS[known_variants:]:
            self._add_variant(variant, where)
        self.functions.add_source(where.encode(), _files.digest(path).encode())

    def _add(self, side, add, stated):
        self.sides.append(side)
        add(_text({"id": len(self.sides) - 1, **stated}))

    def _add_operator(self, operator, where):
        parameters = [[p.name, str(p.default), p.help] for p in operator.parameters]
        before = {device: list(names) for device, names in operator.before.items()}
        stated = {
            "file": where,
            "name": operator.name,
            "help": operator.help,
            "yardstick": operator.yardstick,
            "params": parameters,
            "before": before,
        }
        self._add(OperatorSide(self.calls, operator), self.functions.add_operator, stated)

    def _add_variant(self, variant, where):
        self._add(VariantSide(self.calls, variant), self.functions.add_variant, self._stated(variant, where))
        for config in _choices.listed(variant):
            stated = self._stated(variant, where, _choices.text_of(config))
            self._add(VariantSide(self.calls, variant, config), self.functions.add_variant, stated)
        self.places[variant.op, variant.name] = where

    @staticmethod
    def _stated(variant, where, config=None):
        has = ["workspace"] if variant.workspace else []
        has += ["unsupported"] if variant.unsupported or variant.unmet else []
        has += ["prepare"] if variant.prepare or variant.choose or variant.rows else []
        has += ["choose"] if variant.choose and config is None else []
        has += ["segments"] if variant.allocates else []
        return {
            "file": where,
            "op": variant.op,
            "name": variant.name if config is None else f"{variant.name}/{config}",
            "backend": variant.backend,
            "help": variant.help if config is None else "one configuration, for moegate tune",
            "tolerance": variant.tolerance,
            "between": variant.between,
            "rows": variant.rows,
            "has": has,
        }

    def _configured(self, number, text):
        """Makes the side of a configuration that no dict of knobs lists, and states it."""
        variant = self.sides[number].variant
        self.sides.append(VariantSide(self.calls, variant, _choices.config_of(text)))
        where = self.places[variant.op, variant.name]
        return {"id": len(self.sides) - 1, **self._stated(variant, where, text)}

    def _ask(self, number, what, handle, stream, argument):
        try:
            if what == b"forget":
                for side in self.sides:
                    if isinstance(side, VariantSide):
                        side.problems.pop(handle, None)
                return 0
            if what == b"loaded":
                self.functions.answer(_text(_files.loaded()))
                return 0
            if what == b"environment":
                self.functions.answer(_text(_environment.loaded()))
                return 0
            given = json.loads(argument) if argument else None
            if what == b"configured":
                self.functions.answer(_text(self._configured(number, given)))
                return 0
            result = getattr(self.sides[number], what.decode())(handle, stream, given)
            if result is not None:
                self.functions.answer(_text(result))
            return 0
        except Exception as error:  # noqa: BLE001: whatever a kernel raises is its row's fault
            if what == b"validate" and isinstance(error, ValueError):
                self.functions.answer(str(error).encode())
            else:
                traceback.print_exc()
                sys.stderr.flush()
                self.functions.answer((_one_line(error) + _place(error, self.files)).encode())
            return 1


def main(address_of_functions, files):
    host = Host(_Functions.from_address(address_of_functions))
    for path in files:
        try:
            host.register(path)
        except BaseException as error:  # noqa: BLE001: SystemExit, too
            if not isinstance(error, ImportError):
                traceback.print_exc()
            host.functions.answer(f"--module {path}: {_why_not_loaded(error)}".encode())
            return
    host.functions.serve()
    sys.stdout.flush()
