# SPDX-License-Identifier: Apache-2.0
"""Traces of FlashInfer-Bench, out of a store and into a suite. e2e/exchange_test.cc has the rest: stores and suites of
the program's own."""

import contextlib
import io
import json
import math
import os
import pathlib
import random
import re
import sqlite3
import struct
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

import numpy as np  # noqa: E402
from moegate import _client
from moegate import flashinfer as fi  # noqa: E402

TRACES = ROOT / "tests" / "traces" / "flashinfer"
CORPUS = ROOT / "tests" / "traces" / "corpus"


def refusal(call, *arguments):
    """(exit code, message) of the Error that the call ends with; (0, "") where it ends well."""
    try:
        call(*arguments)
    except fi.Error as error:
        return error.code, str(error)
    return 0, ""


class Scratch(unittest.TestCase):
    """In a folder of its own."""

    def setUp(self):
        before, folder = os.getcwd(), tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, before)
        os.chdir(folder.name)
        for name in ("MOEGATE_DB", "MOEGATE_HOME"):
            os.environ.pop(name, None)

    @staticmethod
    def command(*arguments):
        """(exit code, standard output, standard error)"""
        out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = fi.main(arguments)
            except SystemExit as stopped:  # --help
                code = stopped.code
            out.flush(), err.flush()
        return code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()


def safetensors(header, data):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def one_tensor(dtype, shape, end):
    tensor = {"dtype": dtype, "shape": shape, "data_offsets": [0, end]}
    return {"__metadata__": {"format": "pt"}, "x": tensor}


class Safetensors(unittest.TestCase):
    def values(self, dtype, data):
        content = safetensors(one_tensor(dtype, [2], len(data)), data)
        return fi.read_safetensors("f", content, "x").tolist()

    def test_reads_every_type_of_number(self):
        for dtype, data in (
            ("F32", struct.pack("<2f", 1, -2)),
            ("F64", struct.pack("<2d", 1, -2)),
            ("BF16", b"\x80\x3f\0\xc0"),
            ("F16", b"\0\x3c\0\xc0"),
            ("I64", struct.pack("<2q", 1, -2)),
            ("I32", struct.pack("<2i", 1, -2)),
            ("I16", struct.pack("<2h", 1, -2)),
            ("I8", b"\1\xfe"),
        ):
            self.assertEqual(self.values(dtype, data), [1, -2], dtype)
        self.assertEqual(self.values("U8", b"\1\xfe"), [1, 254])
        self.assertEqual(self.values("U64", struct.pack("<2Q", 1, 1 << 63)), [1, 2.0**63])

    def test_reads_every_half(self):
        self.assertEqual(self.values("F16", b"\1\0\xff\x7b"), [2.0**-24, 65504])
        ends = self.values("F16", b"\0\xfc\0\x7e")
        self.assertEqual(ends[0], -math.inf)
        self.assertTrue(math.isnan(ends[1]))

    def test_keeps_the_shape(self):
        content = safetensors(one_tensor("I32", [2, 3], 24), bytes(24))
        self.assertEqual(fi.read_safetensors("f", content, "x").shape, (2, 3))

    def test_refuses_what_is_damaged(self):
        def refused(content, what):
            code, why = refusal(fi.read_safetensors, "f.safetensors", content, "x")
            self.assertEqual(code, fi.USAGE, why)
            self.assertIn("f.safetensors", why)
            self.assertIn(what, why)

        refused(b"", "too short")
        refused(b"\xff" * 8, "truncated")
        refused(safetensors({}, b"")[:9], "truncated")
        offsets = {"dtype": "F32", "shape": [2]}
        for header, what in (
            (b"{", "damaged"),
            ([1], "no tensor 'x'; it has none"),
            ({"y": {}, "__metadata__": {}}, "it has y;"),
            ({"x": {}}, "type unknown"),
            (one_tensor("F8_E4M3", [2], 8), "type F8_E4M3"),
            (one_tensor("F32", [-2], 8), "shape"),
            (one_tensor("F32", [True], 4), "shape"),
            (one_tensor("F32", None, 8), "without a shape;"),
            (one_tensor("F32", [1 << 26, 1 << 26], 8), "more than"),
            (one_tensor("F32", [2], 12), "truncated"),
            (one_tensor("F32", [3], 12), "truncated"),
            (one_tensor("F32", [3], 8), "truncated"),
            (one_tensor("F32", [1], 8), "has no 4 bytes"),
            ({"x": {**offsets, "data_offsets": [8, 0]}}, "truncated"),
            ({"x": {**offsets, "data_offsets": "all"}}, "truncated"),
        ):
            refused(safetensors(header, bytes(8)), what)
        self.assertIn("no tensor", refusal(fi.read_safetensors, "f", safetensors({"__metadata__": {}}, b""),
                                           "__metadata__")[1])

    def test_without_numpy_it_says_so(self):
        with mock.patch.dict(sys.modules, {"numpy": None}):
            code, why = refusal(fi.read_safetensors, "f", b"", "x")
        self.assertEqual(code, _client.ENVIRONMENT)
        self.assertIn("numpy", why)


class Json(unittest.TestCase):
    def test_is_what_json_is(self):
        big = fi.parse_json("f", b"\xef\xbb\xbf[18446744073709551615, 18446744073709551616, 1.5]")
        self.assertEqual([type(value) for value in big], [int, float, float])
        for text in (b"", b"[1", b"[NaN]", b"[1e999]", b"[-Infinity]", b'["\xff"]', b'["\\ud800"]', b"[1] 2",
                     b"[" + b"9" * 5000 + b"]"):
            code, why = refusal(fi.parse_json, "f", text)
            self.assertEqual((code, why.partition(" no JSON")[0]), (fi.USAGE, "f: is damaged, or"), text)

    def test_is_not_nested_for_ever(self):
        deep = b"[" * 64 + b"1" + b"]" * 64
        self.assertEqual(refusal(fi.parse_json, "f", deep)[0], 0)
        for text in (b"[" + deep + b"]", b"[" * 100000, b"[" * 900 + b'"\\u0061"' + b"]" * 900):
            self.assertIn("nested deeper than 64", refusal(fi.parse_json, "f", text)[1])


class Texts(unittest.TestCase):
    def test_act_on_nothing(self):
        self.assertEqual(fi.one_line("a\r\nb\tc\x07\u202ed\udcff"), "a b c\ufffd\ufffdd\ufffd")
        self.assertEqual(fi.printable(" ::set\nx ##[group]"), " \u200b::set\nx ##\u200b[group]")


class TraceCase(unittest.TestCase):
    def test_names_what_stays_and_leaves_tokens_to_the_workload(self):
        key = "topk_sort/experts=256,routing=zipf:0.67,scale=2.5,seed=7,tokens=8,topk=4"
        definition, axes, scalars = fi.trace_case(key)
        self.assertEqual(definition, "moegate.topk_sort,experts=256,routing=zipf%3A0.67,scale=2.5,topk=4")
        self.assertEqual(list(axes.items()), [("experts", 256), ("seed", 7), ("tokens", 8), ("topk", 4)])
        self.assertEqual(scalars, {"scale": 2.5})

    def test_knows_which_texts_are_numbers(self):
        _, axes, scalars = fi.trace_case("op/a=08,b=inf,c=1_0,d=-3,e=1e999,f=9223372036854775808,g=0")
        self.assertEqual(axes, {"g": 0})
        self.assertEqual(scalars, {"a": 8.0, "d": -3.0, "f": 2.0**63})

    def test_comes_back_as_it_was(self):
        for key in (
            "topk_sort/experts=256,routing=zipf:0.67,scale=2.5,seed=7,tokens=8,topk=4",
            "moe_gate_up/block=tuned,cache=cold-weights,dtype=bf16,launch=graph,tokens=16384",
            "moe_align/routing=replay:suites/data/a b%=ä~.npy,tokens=08",
            "op-1.x/limit=-3",
            "no_params",
        ):
            definition, axes, _ = fi.trace_case(key)
            self.assertRegex(definition, r"^[A-Za-z0-9_.,=%-]+$")
            op, params = fi.case_of_trace(definition, axes)
            again = ",".join(f"{name}={value}" for name, value in sorted(params.items()))
            self.assertEqual(f"{op}/{again}" if again else op, key)

    def test_refuses_names_of_others_and_contradictions(self):
        self.assertEqual(fi.case_of_trace("moegate.op,a=1", {}), ("op", {"a": "1"}))
        for name in ("rmsnorm_h4096", "moegate.", "moegate.op,a", "moegate.op,a=%4", "moegate.op,a=%zz",
                     "moegate.op,a=b c", "moegate.op,a=1,a=1"):
            self.assertIsNone(fi.case_of_trace(name, {}), name)
        self.assertEqual(fi.case_of_trace("moegate.op,a=1", {"a": 1, "tokens": 3})[1], {"a": "1", "tokens": "3"})
        for name, axes in (("moegate.op,a=1", {"a": 2}), ("moegate.op,a=1", {"b": 2}),
                           ("moegate.op,tokens=many", {"tokens": 2})):
            self.assertIsNone(fi.case_of_trace(name, axes))


class SuiteText(unittest.TestCase):
    def test_cases_that_differ_in_tokens_alone_share_a_section(self):
        suite = fi.SuiteText()
        for tokens in ("16", "8", "16", "08"):
            suite.add("sort", "sort", {"tokens": tokens, "topk": "2"})
        suite.add("from: elsewhere\n[x]", "sort", {"tokens": "8", "topk": "4"})
        suite.add("from: elsewhere\n[x]", "sort", {"topk": "4"})
        self.assertEqual(suite.cases, 5)
        self.assertEqual(
            suite.text("About\nthis"),
            "# About this\n"
            "\n[sort]\nop = sort\ntokens = 08, 8, 16\ntopk = 2\n"
            "\n[from--elsewhere--x--sort]\n# from: elsewhere [x]\nop = sort\ntokens = 8\ntopk = 4\n"
            "\n[from--elsewhere--x--sort-2]\n# from: elsewhere [x]\nop = sort\ntopk = 4\n",
        )

    def test_what_a_suite_cannot_say_is_a_fault(self):
        params = {"topk-groups": "1", "routing": "replay:a b/c=ä.npy"}
        self.assertEqual(fi.fault_of_case("op", params), "")
        for op in ("", "a b", "a]", "a\n"):
            self.assertIn("no name of an operator", fi.fault_of_case(op, {}), op)
        for name in ("", "op", "a=b", "a.b", "[a"):
            self.assertIn("no name of a parameter", fi.fault_of_case("op", {name: "1"}), name)
        for value in ("", " ", "a,b", "a#b", "a\nop = b", "\x7f", "a "):
            self.assertIn("no value", fi.fault_of_case("op", {"name": value}), value)


def router(experts, topk, scoring="", groups=1, topk_groups=1):
    return types.SimpleNamespace(experts=experts, topk=topk, scoring=scoring, groups=groups, topk_groups=topk_groups)


class Routing(unittest.TestCase):
    def chosen(self, layer, logits, bias=None):
        table = np.array(logits, np.float64).reshape(-1, layer.experts)
        return fi.chosen_experts(layer, table, None if bias is None else np.array(bias)).ravel().tolist()

    def test_the_largest_logits_are_chosen_and_ties_go_to_the_lower_expert(self):
        logits = [0, 3, 1, 2, 5, 5, 5, 5, math.nan, -math.inf, -1, math.nan]
        self.assertEqual(self.chosen(router(4, 2), logits), [1, 3, 0, 1, 2, 0])
        many = [number * 7919 % 5 for number in range(256)]
        in_order = sorted(range(256), key=lambda expert: (-many[expert], expert))
        self.assertEqual(self.chosen(router(256, 8), many), in_order[:8])

    def test_the_bias_decides_with_the_sigmoid(self):
        layer = router(3, 1, "noaux_tc")
        self.assertEqual(self.chosen(layer, [0.2, 0.1, 0]), [0])
        self.assertEqual(self.chosen(layer, [0.2, 0.1, 0], [0, 0, 0.1]), [2])
        # Far out on the sigmoid a logit is worth less than the bias.
        self.assertEqual(self.chosen(layer, [9, 8, 0], [0, 0.01, 0]), [1])
        self.assertEqual(self.chosen(layer, [-1e9, 0, 0]), [1])

    def test_only_the_groups_with_the_best_pairs_are_chosen_from(self):
        logits = [4, -9, 1, 1, 0, 0]  # the best expert is alone in its group
        for topk_groups, chosen in ((1, [2, 3]), (2, [2, 3]), (3, [0, 2])):
            layer = router(6, 2, "noaux_tc", 3, topk_groups)
            self.assertEqual(self.chosen(layer, logits), chosen)

    def test_an_id_that_is_no_expert_or_twice_in_a_row_is_named(self):
        for ids, fault in (
            ([[0, 1], [1, 0]], ""),
            ([[0, 2]], "row 0: id 2 is not in [0, 2)"),
            ([[-1, 0]], "row 0: id -1 is not in [0, 2)"),
            ([[0, 1], [1, 1]], "row 1: id 1 appears twice"),
        ):
            self.assertEqual(fi.fault_of_routing(np.array(ids), 2), fault)

    def test_what_is_written_is_what_numpy_reads(self):
        for ids in ([[0, 1, 70000], [3, 4, 5]], np.zeros((0, 1)), np.full((100, 1), 7)):
            content = fi.npy_bytes(np.array(ids))
            read = np.load(io.BytesIO(content))
            self.assertEqual(read.dtype, np.dtype("<i4"))
            np.testing.assert_array_equal(read, ids)
            self.assertEqual((len(content) - read.nbytes) % 64, 0)


def trace_line(definition, axes, inputs="{}", more=""):
    workload = f'{{"uuid":"u","axes":{axes},"inputs":{inputs}}}'
    return f'{{"definition":"{definition}","workload":{workload}{more}}}\n'.encode()


def no_tensor(path, key):
    return None


def sections_of(suite):
    """"op tokens,tokens param=value ...", a text for each section."""
    texts = []
    for section in suite.split("\n[")[1:]:
        entries = dict(line.split(" = ") for line in section.splitlines() if " = " in line)
        text = entries.pop("op")
        if "tokens" in entries:
            text += " " + entries.pop("tokens").replace(", ", ",")
        texts.append(text + "".join(f" {name}={value}" for name, value in entries.items()))
    return texts


class Import(unittest.TestCase):
    def suite(self, *files, tensors=no_tensor):
        every = fi.TraceImport()
        for path, content in files:
            every.add(path, content if isinstance(content, bytes) else json.dumps(content).encode())
        return every.suite("about", "data", tensors)

    def assertSaid(self, imported, what):
        self.assertTrue(any(what in note for note in imported.notes), f"{what}: {imported.notes}")

    def test_every_kind_of_trace_of_the_schema(self):
        imported = fi.import_trace_set(str(TRACES), "about", "data")
        rank, of_rank_1 = (f" experts=8 hidden=128 inter=128 rank={r}/2" for r in (0, 1))
        recorded = " routing=replay:data/routing-b7ba4e16fe3e.npy"
        rest = " experts=8 hidden=128 inter=128 topk=2"
        bf16 = " dtype=bf16 experts=8 hidden=128 inter=64 routing=replay:data/routing-30e2cb6f66a3.npy topk=2"
        head = " experts=8 groups=2 hidden=128"
        of_groups = " scale=2.5 scoring=noaux_tc topk=2 topk-groups=1"
        self.assertEqual(
            sections_of(imported.text),
            [
                f"moe_gate_up 4{bf16}",
                f"moe_down 4{bf16}",
                f"topk_sort 1,5,16{head}{of_groups}",
                f"fused_moe 1,16{rank} topk=2",
                f"moe_gate_up 1,16{rank} topk=2",
                f"moe_down 1,16{rank} topk=2",
                f"topk_sort 3{head}{recorded}{of_groups}",
                f"fused_moe 3{of_rank_1}{recorded} topk=2",
                f"moe_gate_up 3{of_rank_1}{recorded} topk=2",
                f"moe_down 3{of_rank_1}{recorded} topk=2",
                f"fused_moe 5{of_rank_1} topk=2",
                f"moe_gate_up 5{of_rank_1} topk=2",
                f"moe_down 5{of_rank_1} topk=2",
                "topk_sort 2 dtype=bf16 experts=8 hidden=128 scoring=topk_softmax topk=2",
                f"fused_moe 2{rest}",
                f"moe_gate_up 2{rest}",
                f"moe_down 2{rest}",
                "topk_sort 8 dtype=bf16 experts=8 hidden=128 scoring=noaux_tc topk=2",
            ],
        )
        self.assertEqual(imported.cases, 23)
        for note in (
            "rmsnorm_h128: 1 workload left out: it is no MoE layer",
            "fused_something_h64: 1 workload left out: no .json file beside the traces defines it",
            "routing_logits is in a file that is not there; imported with routing = uniform",
            "none has weights of float8_e4m3fn with such scale factors",
            "1 solution not imported",
            "1 COMPILE_ERROR, 1 INCORRECT_DTYPE, 1 INCORRECT_NUMERICAL, 1 INCORRECT_SHAPE, 2 PASSED, "
            "1 RUNTIME_ERROR, 1 TIMEOUT",
            "evaluation.performance.speedup_factor (1)",
            "evaluation.log (7)",
            "workload.uuid (13)",
            "tags[] (2)",
        ):
            self.assertSaid(imported, note)
        for used in ("workload.axes", "routing_logits.path"):
            self.assertFalse(any(used in note for note in imported.notes), used)

    def test_recorded_routing_is_what_the_router_chose(self):
        recordings = fi.import_trace_set(str(TRACES), "about", "data").recordings
        tables = {name[8:20]: np.load(io.BytesIO(content)).tolist() for name, content in recordings.items()}
        self.assertEqual(
            tables,
            {
                "30e2cb6f66a3": [[0, 7], [7, 3], [5, 6], [1, 0]],  # as recorded
                "b7ba4e16fe3e": [[0, 1], [6, 7], [6, 7]],  # from logits and bias
            },
        )

    def test_own_traces_come_back_as_their_cases(self):
        definition = "moegate.topk_sort,experts=8,routing=zipf%3A0.67,scale=2.5"
        inputs = '{"operands":{"type":"random"},"scale":{"type":"scalar","value":2.5}}'
        lines = [
            trace_line(definition, f'{{"experts":8,"tokens":{tokens}}}', inputs, ',"solution":"chain@abc"')
            for tokens in (16, 1, 16)
        ]
        one = trace_line("moegate.moe_sum,topk=2", '{"topk":2,"tokens":4,"seed":3}')
        imported = self.suite(("a.jsonl", b"".join(lines)), ("b.json", one))
        sections = ["moe_sum 4 seed=3 topk=2", "topk_sort 1,16 experts=8 routing=zipf:0.67 scale=2.5"]
        self.assertEqual(sections_of(imported.text), sections)
        self.assertSaid(imported, "not used: solution (3), workload.uuid (4)")

    def test_own_traces_that_a_suite_cannot_say_are_left_out(self):
        names = ("moegate.op,a=b%0Aop%20%3D%20c", "moegate.op,a=b=c", "moegate.op%5D")
        lines = b"".join(trace_line(name, "{}") for name in names)
        imported = self.suite(("a.jsonl", lines + trace_line("moegate.op,a=1", '{"a":2}')))
        self.assertEqual((imported.cases, imported.text), (0, ""))
        self.assertSaid(imported, "is no name of an operator")
        self.assertSaid(imported, "is no value")
        self.assertSaid(imported, "contradict")

    def test_refuses_what_is_damaged_naming_file_and_line(self):
        def refused(path, content, start):
            code, why = refusal(self.suite, (path, content))
            self.assertEqual(code, fi.USAGE, content)
            self.assertTrue(why.startswith(start), why)

        good = trace_line("d", "{}")
        self.assertEqual(refusal(self.suite, ("t.jsonl", good + b"\n \r\n" + good)), (0, ""))
        refused("t.jsonl", good + b'\n{"definition"', "t.jsonl:3: is damaged")
        refused("d.json", b"{", "d.json: is damaged")
        refused("t.jsonl", b"[" * 100000, "t.jsonl:1: its JSON is nested")
        for line in (
            b"[]",
            b"{}",
            b'{"definition":"d"}',
            b'{"definition":1,"workload":{"axes":{},"inputs":{}}}',
            b'{"definition":"d","workload":{"axes":[],"inputs":{}}}',
            b'{"definition":"d","workload":{"axes":{}}}',
        ):
            refused("t.jsonl", line, "t.jsonl:1: is no trace")
        for value in ("-1", "1.5", '"8"', "null", "1e30", "true"):
            refused("t.jsonl", trace_line("d", f'{{"n":{value}}}'), "t.jsonl:1: axis 'n' of the workload is no")
        refused("d.json", {"axes": 1, "inputs": 1, "outputs": 1}, "d.json: is a definition without a name")

    def test_two_definitions_of_one_name_are_refused(self):
        one = {"name": "x", "axes": {}, "inputs": {}, "outputs": {}}
        other = {**one, "axes": {"n": 1}}
        self.assertEqual(refusal(self.suite, ("a.json", one), ("b.json", one))[0], 0)
        code, why = refusal(self.suite, ("a.json", one), ("c.json", other))
        self.assertEqual(code, fi.USAGE)
        self.assertEqual(why, "c.json: defines 'x', which a.json defines otherwise; import one of them")

    def test_a_share_of_the_experts_is_a_ranks(self):
        sizes = {"num_experts": 8, "num_local_experts": 2, "hidden_size": 128, "intermediate_size": 128}
        axes = {"n": {"type": "var"}, **{name: {"value": size} for name, size in sizes.items()}}
        weights = {"w1": {"dtype": "bfloat16", "shape": ["e", "n", "k"]}}
        layer = {"name": "m_topk3", "op_type": "moe", "outputs": {}, "axes": axes, "inputs": weights}
        lines = [trace_line("m_topk3", '{"n":1}')]
        for offset in (6, 3, 8):
            given = {"local_expert_offset": {"type": "scalar", "value": offset}}
            lines.append(trace_line("m_topk3", f'{{"n":{offset}}}', json.dumps(given)))
        imported = self.suite(("d.json", layer), ("t.jsonl", b"".join(lines)))
        busiest, last = (f" dtype=bf16 experts=8 hidden=128 inter=128 rank={r}/4 topk=3" for r in ("busiest", 3))
        self.assertEqual(
            sections_of(imported.text),
            [f"moe_gate_up 1,3,8{busiest}", f"moe_down 1,3,8{busiest}", f"moe_gate_up 6{last}", f"moe_down 6{last}"])
        self.assertSaid(imported, "local_expert_offset is no rank's first expert: imported with rank = busiest/4")
        axes["num_local_experts"]["value"] = 3
        imported = self.suite(("d.json", layer), ("t.jsonl", lines[0]))
        self.assertEqual(imported.text, "")
        self.assertSaid(imported, "moe_down: 3 of 8 experts are no rank's even share")

    def test_a_workload_that_is_there_twice_is_one(self):
        line = trace_line("moegate.op,a=1", '{"a":2}')
        imported = self.suite(("t.jsonl", line + line.replace(b'"u"', b'"v"')))
        self.assertEqual(imported.notes[0], "moegate.op,a=1: a workload is left out: its name and axes contradict")

    def test_odd_definitions_are_left_out_not_believed(self):
        tokens, sizes = {"n": {"type": "var"}}, {"hidden_size": {"value": 128}, "intermediate_size": {"value": 128}}
        plain = {**tokens, **sizes, "num_experts": {"value": 8}}
        for axes in (
            1,
            {},
            {**tokens, "m": {"type": "var"}},
            {**tokens, "num_experts": {"value": -8}},
            {**tokens, **sizes, "num_experts": {"value": 2000}},
            {**tokens, **sizes, "num_experts": {"value": 8}, "n_group": {"value": 3}},
            {**tokens, **sizes, "num_experts": {"value": 8}, "n_group": {"value": 8}},
            {**tokens, **sizes, "num_experts": {"value": 8}, "num_local_experts": {"value": 9}},
            {**tokens, **sizes, "num_experts": {"value": 8}, "top_k": {"value": 9}},
            {**tokens, **sizes, "num_experts": {"value": 32}, "top_k": {"value": 17}},
            plain,
        ):
            inputs = {"w1": {"dtype": "bfloat16", "shape": ["e", "n", "k"]}} if axes != plain else 2
            layer = {"name": "m_topk2_renorm", "op_type": "moe", "outputs": {}, "axes": axes, "inputs": inputs}
            imported = self.suite(("d.json", layer), ("t.jsonl", trace_line("m_topk2_renorm", '{"n":1}')))
            self.assertEqual(imported.cases, 0, axes)
            self.assertSaid(imported, "m_topk2_renorm: 1 workload left out")

    def test_a_tensor_of_another_shape_is_not_replayed(self):
        sizes = {"num_experts": 8, "top_k": 2, "hidden_size": 128, "intermediate_size": 128}
        layer = {
            "name": "m",
            "op_type": "moe",
            "axes": {"n": {"type": "var"}, **{name: {"value": size} for name, size in sizes.items()}},
            "inputs": {
                "w1": {"dtype": "bfloat16", "shape": ["a", "b", "c"]},
                "topk_ids": {"dtype": "int32", "shape": ["n", "top_k"]},
            },
            "outputs": {},
        }
        line = trace_line("m", '{"n":2}', '{"topk_ids":{"type":"safetensors","path":"f","tensor_key":"k"}}')
        for shape, value, what in (
            ((2, 4), 0, "has shape [2, 4], not [2, 2]"),
            ((2, 2), 0, "appears twice"),
            ((2, 2), 0.5, "it has fractions"),
            ((2, 2), math.nan, "it has fractions"),
        ):

            def tensors(path, key):
                self.assertEqual(path + key, "fk")
                return np.full(shape, value, np.float64)

            imported = self.suite(("d.json", layer), ("t.jsonl", line), tensors=tensors)
            self.assertSaid(imported, what)
            self.assertEqual(imported.recordings, {})
            self.assertEqual(imported.cases, 2, "with routing = uniform")

    def test_more_than_a_suite_holds_is_refused(self):
        lines = [trace_line(f"moegate.op,a={'x' * 5000}{n}", "{}") for n in range(300)]
        code, why = refusal(self.suite, ("a.jsonl", b"".join(lines)))
        self.assertEqual(code, fi.USAGE)
        self.assertRegex(why, "300 cases in [0-9]+ bytes are more than a suite holds")

    def test_paths_out_of_the_data_set_are_not_followed(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "secret").write_bytes(b"")
            os.mkdir(os.path.join(folder, "set"))
            tensors = fi.tensors_below(os.path.join(folder, "set"))
            for path in ("/etc/passwd", "../secret", "a/../../secret", ".", "", "a\0b"):
                self.assertIsNone(tensors(path, "x"), path)


KEY = "topk_sort/experts=256,routing=zipf:0.67,scale=2.5,tokens=8"


class Export(Scratch):
    def setUp(self):
        super().setUp()
        self.db = sqlite3.connect("results.sqlite", isolation_level=None)
        self.addCleanup(self.db.close)
        self.db.executescript((ROOT / "harness" / "store" / "schema.sql").read_text())
        self.insert("device", device_id=1, backend="cuda", name="NVIDIA H200", uuid="GPU-1", processors=1,
                    driver="driver 575.57, CUDA 12.9, runtime 12.4", cache_bytes=0, memory_bytes=0,
                    shared_per_block=0, **{"class": "nvidia-h200"})
        self.insert("run", run_id=1, label="", started="2026-11-21T20:00:00Z", status="complete", device_id=1,
                    protocol=1, timer="auto", flush="read", rounds=2, git_sha="abc123", dirty=0, build="", host="",
                    command="", options="{}", uuid="0123")
        self.insert("operator", run_id=1, op="topk_sort", yardstick="")
        self.insert("before", run_id=1, op="topk_sort", rank=0, variant="chain3", after="fused*")
        self.insert("before", run_id=1, op="topk_sort", rank=1, variant="chain2", after="*")
        for round, began in ((0, "2026-11-21T20:00:00Z"), (1, "2026-11-21T20:10:00Z")):
            self.insert("process", process_id=round + 1, run_id=1, round=round, pid=1, started=began, uuid=str(round))
        self.insert("bench_case", case_id=1, key=KEY, op="topk_sort", params="{}", flops=0, read_bytes=0,
                    write_bytes=0)
        self.insert("run_case", run_id=1, case_id=1, suite="s", section="x", facts="{}")

    def insert(self, table, **row):
        places = ", ".join("?" * len(row))
        self.db.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", list(row.values()))

    def verify(self, number, **outputs):
        self.insert("verification", verification_id=number, digest=str(number))
        for output, errors in outputs.items():
            row = {"mismatches": 0, "nonfinite": 0, "rel_l2": 0, "max_abs": 0, "max_rel": 0, "worst_row": 0, **errors}
            self.insert("verified_output", verification_id=number, output=output, ok=1, why="", elements=1,
                        worst_index=0, **row)

    def add(self, variant, us, round=0, status="ok", **more):
        numbers = dict.fromkeys(("tick_ns median_ns low_ns high_ns min_ns busy_ns sum_ns ratio ratio_low ratio_high "
                                 "sm_mhz impossible suspect_warm wall_s invalid flags").split(), 0)
        timed = {"timer": "cupti" if us else "", "samples": 200 if us else 0, "span_ns": us * 1000.0}
        row = {"why": "", "path": "", "deterministic": 1, **numbers, **timed, **more}
        self.insert("result", process_id=round + 1, case_id=1, variant=variant, status=status, **row)

    def export(self):
        with fi.Store("results.sqlite") as store:
            self.written = fi.TraceWriter(store, 1).write()
        lines = "".join(self.written.lines.values()).splitlines()
        return {trace["solution"]: trace for trace in map(json.loads, lines)}

    def performance(self):
        return {name.split("@")[0]: t["evaluation"]["performance"] for name, t in self.export().items()}

    def test_one_result_is_one_trace_of_the_schema(self):
        self.verify(1, ids={}, weights={"max_rel": 1e-7, "max_abs": 2e-7, "mismatches": 3})
        self.add("fused", 8, verification_id=1)
        trace = self.export()["fused@abc123"]
        self.assertEqual(self.written.count, 1)
        self.assertEqual(trace["definition"], "moegate.topk_sort,experts=256,routing=zipf%3A0.67,scale=2.5")
        self.assertEqual(trace["workload"]["axes"], {"experts": 256, "tokens": 8})
        scale = {"type": "scalar", "value": 2.5}
        self.assertEqual(trace["workload"]["inputs"], {"operands": {"type": "random"}, "scale": scale})
        evaluation = trace["evaluation"]
        self.assertEqual(evaluation["status"], "PASSED")
        self.assertEqual(evaluation["environment"]["hardware"], "NVIDIA H200")
        libs = {"cuda": "12.4", "driver": "driver 575.57, CUDA 12.9, runtime 12.4", "moegate": "abc123",
                "moegate.flush": "read", "moegate.protocol": "1"}
        self.assertEqual(evaluation["environment"]["libs"], libs)
        self.assertEqual(evaluation["timestamp"], "2026-11-21T20:00:00Z")
        log = "moegate: ok\n200 valid samples, 0 invalid, timer cupti\nrun 0123, round 0, suite s, section x"
        self.assertEqual(evaluation["log"], log)
        self.assertEqual(evaluation["correctness"]["max_relative_error"], 1e-7)
        self.assertEqual(evaluation["correctness"]["max_absolute_error"], 2e-7)
        self.assertEqual(evaluation["correctness"]["extra"]["outputs"], ["ids", "weights"])
        self.assertEqual(evaluation["correctness"]["extra"]["mismatches"], 3)
        performance = {"latency_ms": 0.008, "reference_latency_ms": 0, "speedup_factor": 0}
        self.assertEqual(evaluation["performance"], performance, "nothing was timed beside it")

    def test_a_workload_has_one_uuid_in_every_run(self):
        self.add("fused", 8)
        self.add("chain3", 10)
        uuids = {trace["workload"]["uuid"] for trace in self.export().values()}
        self.db.execute("UPDATE run SET git_sha = 'def456', dirty = 1")
        uuids |= {self.export()["fused@def456-dirty"]["workload"]["uuid"]}
        self.assertEqual(uuids, {fi.uuid_of_case(KEY)})
        self.assertRegex(fi.uuid_of_case(KEY), "^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
        self.assertEqual(fi.uuid_of_case("topk_sort/experts=16,hidden=64,routing=zipf:0.67,tokens=20,topk=2"),
                         "de00a819-acbd-8f83-a69f-6d7571c4997f", "as earlier programs made it")

    def test_without_a_commit_the_program_is_named(self):
        self.add("fused", 8)
        self.db.execute("UPDATE run SET git_sha = '', program = 'feed'")
        self.assertEqual(list(self.export()), ["fused@sha256:feed"])
        self.db.execute("UPDATE run SET program = ''")
        self.assertEqual(list(self.export()), ["fused@unknown"])

    def test_the_reference_is_what_the_operator_states(self):
        for variant, us in (("chain2", 12), ("chain3", 10), ("fused_a", 8), ("other", 6)):
            self.add(variant, us)
        performance = self.performance()
        self.assertEqual(performance["fused_a"]["reference_latency_ms"], 0.01)
        self.assertEqual(performance["fused_a"]["speedup_factor"], 1.25)
        self.assertEqual(performance["other"]["speedup_factor"], 2.0)
        self.assertEqual(performance["chain3"]["speedup_factor"], 1.0, "a before is its own reference")

    def test_the_reference_is_of_the_same_round_and_timed(self):
        self.add("fused", 8)
        self.add("chain3", 10, round=1)
        self.assertEqual(self.performance()["fused"]["speedup_factor"], 0)
        self.assertEqual(self.export()["chain3@abc123"]["evaluation"]["timestamp"], "2026-11-21T20:10:00Z")
        self.add("fused_b", 5, round=1)
        self.assertEqual(self.performance()["fused_b"]["speedup_factor"], 2.0)
        self.add("chain3", 0, status="crashed", why="because")
        self.add("chain2", 12)
        self.assertEqual(self.performance()["fused"]["speedup_factor"], 1.5, "the next one that was measured")

    def test_every_status_is_one_of_the_schema_or_is_counted(self):
        self.add("a", 8)
        self.add("b", 8, status="noisy", why="because")
        statuses = {"c": "wrong", "d": "crashed", "e": "timeout", "f": "unsupported", "g": "bad_timer"}
        for variant, status in statuses.items():
            self.add(variant, 0, status=status, why="because")
        self.add("h", 0)
        expected = {"a": "PASSED", "b": "PASSED", "c": "INCORRECT_NUMERICAL", "d": "RUNTIME_ERROR", "e": "TIMEOUT"}
        every = {name.split("@")[0]: trace["evaluation"] for name, trace in self.export().items()}
        self.assertEqual({name: evaluation["status"] for name, evaluation in every.items()}, expected)
        for name, evaluation in every.items():
            passed, wrong = expected[name] == "PASSED", expected[name] == "INCORRECT_NUMERICAL"
            self.assertEqual(evaluation["correctness"] is None, not passed and not wrong, name)
            self.assertEqual(evaluation["performance"] is None, not passed, name)
        self.assertTrue(every["d"]["log"].startswith("moegate: crashed: because\n"))
        self.assertTrue(every["b"]["log"].startswith("moegate: noisy: because\n"))
        no_status = "the schema has no status for that"
        self.assertEqual(
            self.written.notes[:-1],
            [f"1 result is left out, {what}: {no_status}" for what in ("bad_timer", "not timed", "unsupported")],
        )

    def test_numbers_that_json_has_not_are_texts(self):
        self.verify(1, ids={"max_rel": None, "max_abs": math.inf}, weights={"max_rel": 1})
        self.add("c", 0, status="wrong", verification_id=1)
        self.add("d", 0, status="wrong", why="spoilt \x01")
        every = self.export()
        errors = every["c@abc123"]["evaluation"]["correctness"]
        self.assertEqual((errors["max_relative_error"], errors["max_absolute_error"]), ("NaN", "Infinity"))
        errors = every["d@abc123"]["evaluation"]["correctness"]
        self.assertEqual(errors["max_relative_error"], "NaN", "unknown is not 0")
        self.db.execute("UPDATE result SET why = CAST(x'ff' AS TEXT) WHERE variant = 'd'")
        self.assertIn("\ufffd", self.export()["d@abc123"]["evaluation"]["log"])

    def test_names_the_fields_that_the_schema_has_no_place_for(self):
        self.add("a", 8)
        self.export()
        fields = self.written.notes[-1].partition(": ")[2].split(", ")
        for field in ("median_ns", "ratio", "kernels", "spans_ns", "accuracy.cosine"):
            self.assertIn(field, fields)
        for field in ("span_ns", "result_id", "accuracy.rel_l2", "accuracy.verification_id"):
            self.assertNotIn(field, fields)

    def test_goes_where_it_is_told_to(self):
        self.add("a", 8)
        code, out, err = self.command("export", "flashinfer-trace", "--out", "-")
        self.assertEqual((code, out.count("\n")), (0, 1))
        self.assertIn("has no place for", err)
        self.assertEqual(self.command("export", "flashinfer-trace", "--out", "t.jsonl")[:2],
                         (0, "1 traces of run 1 in t.jsonl\n"))
        self.assertEqual(pathlib.Path("t.jsonl").read_text(), out)
        self.assertEqual(self.command("export", "flashinfer-trace", "--out", "set/")[0], 0)
        self.assertEqual(pathlib.Path("set/traces/topk-sort/moegate-0123.jsonl").read_text(), out)
        self.assertEqual(sorted(os.listdir()), ["results.sqlite", "set", "t.jsonl"], "no temporary file is left")

    def test_finds_a_run_as_the_program_does(self):
        self.insert("tag", run_id=1, name="sets", value="1")
        self.db.execute("UPDATE run SET label = 'night'")
        with fi.Store("results.sqlite") as store:
            self.assertEqual([store.find_run(which) for which in ("latest", "1", "night")], [1, 1, 1])
            for which, why in (("nigth", "did you mean 'night'?"), ("2", "its runs: 1 'night' (complete)")):
                self.assertEqual(refusal(store.find_run, which)[0], fi.USAGE)
                self.assertIn(why, refusal(store.find_run, which)[1])
        self.insert("tag", run_id=1, name="ab", value="")
        with fi.Store("results.sqlite") as store:
            self.assertIn("no finished run", refusal(store.find_run, "latest")[1])

    def test_a_night_has_its_store_in_out(self):
        os.mkdir("out")
        os.rename("results.sqlite", "out/results.sqlite")
        code, out, err = self.command("export", "flashinfer-trace", "--out", "-")
        self.assertEqual((code, out), (fi.COVERAGE, ""))
        self.assertIn("store: out/results.sqlite (no results.sqlite here)", err)
        with mock.patch.dict(os.environ, MOEGATE_DB="gone.sqlite"):
            code, _, err = self.command("export", "flashinfer-trace", "--out", "-")
        self.assertEqual(code, fi.STORE)
        self.assertIn("gone.sqlite: no such store", err)

    def test_a_store_that_is_none_is_refused(self):
        pathlib.Path("notes.txt").write_text("notes")
        pathlib.Path("void").write_bytes(b"")
        made = {"other": (77, 1), "earlier": (0x4D6F4550, 9), "newer": (0x4D6F4547, 3), "zero": (0x4D6F4547, 0)}
        for name, (application, version) in made.items():
            with contextlib.closing(sqlite3.connect(name)) as db:
                db.executescript(f"PRAGMA application_id = {application}; PRAGMA user_version = {version};"
                                 "CREATE TABLE run (x)")
        with contextlib.closing(sqlite3.connect("strange")) as db:
            db.executescript("PRAGMA application_id = 1299137863; PRAGMA user_version = 1; CREATE TABLE run (x)")
        for name, why in (
            ("none", "none: no such store; `moegate run --db none` makes one"),
            (".", "is a folder"),
            ("/dev/null", "is not a regular file"),
            ("notes.txt", "notes.txt: file is not a database"),
            ("void", "is an empty file, no store"),
            ("other", "of another program (application_id 0x4d)"),
            ("earlier", "a moegate before 0.2.0 wrote this store (version 9)"),
            ("newer", "this store has version 3, and this program knows versions up to 2"),
            ("zero", "it is damaged"),
            ("strange", "strange: a statement failed: no such table"),
        ):
            code, _, err = self.command("export", "flashinfer-trace", "--out", "x", "--db", name)
            self.assertEqual(code, fi.STORE, name)
            self.assertIn(why, err)
        for name in ("", ":memory:"):
            code, _, err = self.command("export", "flashinfer-trace", "--out", "x", "--db", name)
            self.assertEqual(code, fi.USAGE)
            self.assertIn("names no file", err)
        self.assertFalse(os.path.exists("x"))

    def test_a_damaged_store_is_no_traceback(self):
        self.add("a", 8)
        self.verify(1, ids={})
        self.db.execute("UPDATE result SET verification_id = 1")
        self.db.close()
        whole, codes = pathlib.Path("results.sqlite").read_bytes(), set()
        for seed in range(150):
            draw, content = random.Random(seed), bytearray(whole)
            for _ in range(draw.choice([1, 30, 3000])):
                content[draw.randrange(len(content))] = draw.randrange(256)
            end = draw.choice([len(content), draw.randrange(len(content))])
            pathlib.Path("spoilt.sqlite").write_bytes(content[:end])
            code, _, err = self.command("export", "flashinfer-trace", "--out", "-", "--db", "spoilt.sqlite")
            self.assertIn(code, (0, fi.USAGE, fi.COVERAGE, fi.STORE), err)
            codes.add(code)
        self.assertLessEqual({0, fi.STORE}, codes)


class Commands(Scratch):
    def expect(self, arguments, code, what):
        is_code, out, err = self.command(*arguments)
        self.assertEqual(is_code, code, err)
        self.assertIn(what, err)

    def test_help_has_an_example(self):
        for command in ("import", "export"):
            code, out, err = self.command(command, "--help")
            self.assertEqual((code, err), (0, ""))
            self.assertIn(f"usage: python3 -m moegate.flashinfer {command}", out)
            self.assertIn(f"    python3 -m moegate.flashinfer {command} flashinfer-trace ", out)
        self.assertEqual(self.command("--help")[0], 0)

    def test_what_cannot_be_exchanged_is_named(self):
        os.mkdir("empty")
        pathlib.Path("bad.jsonl").write_bytes(b'\n{"definition":')
        pathlib.Path("file").write_bytes(b"")
        to, back = ["export", "flashinfer-trace"], ["import", "flashinfer-trace"]
        for arguments, code, what in (
            ([], 2, "give a command, import or export"),
            (["exprot"], 2, "exprot"),
            (["export", "csv", "--out", "x"], 2, "there is no format 'csv'; use flashinfer-trace"),
            (to, 2, "give --out FILE"),
            ([*to, "--out", "no/such/folder"], 2, "no/such/folder: cannot be written: no/such: No such file"),
            ([*to, "--out", "x"], 30, "results.sqlite: no such store"),
            ([*to, "--out", "x", "--out", "y"], 2, "'--out' cannot be specified more than once"),
            ([*to, "--out"], 2, "--out"),
            ([*to, "--ou", "x"], 2, "--ou"),
            (back, 2, "give the folder of the data set"),
            ([*back, "empty"], 2, "give --out FOLDER"),
            ([*back, "nowhere", "--out", "x"], 2, "'nowhere' cannot be read: No such file or directory"),
            ([*back, "empty", "--out", "x", "--name", "a/b"], 2, "'a/b' is no file's name"),
            ([*back, "empty", "--out", "x", "--name", ""], 2, "--name is empty"),
            ([*back, "empty", "--out", "x", "--name", "a\nb"], 2, "--name 'a b' has control characters"),
            ([*back, "empty", "--out", "x"], 13, "empty: no workload is one of an operator"),
            ([*back, "bad.jsonl", "--out", "x"], 2, "bad.jsonl:2: is damaged"),
            ([*back, str(TRACES), "--out", "file"], 2, "--out file/data: "),
        ):
            self.expect(arguments, code, what)
        self.assertFalse(os.path.exists("x"))

    def test_a_suite_says_where_its_recordings_are(self):
        code, out, _ = self.command("import", "flashinfer-trace", str(TRACES), "--out", "./imported", "--name", "n")
        self.assertEqual(code, 0)
        self.assertTrue(out.endswith("23 cases, 2 recorded routings in ./imported/n.suite; "
                                     "`moegate list cases --suite ./imported/n.suite`\n"), out)
        text = pathlib.Path("imported/n.suite").read_text()
        self.assertIn("routing = replay:imported/data/routing-b7ba4e16fe3e.npy\n", text)
        self.assertEqual(len(os.listdir("imported/data")), 2)
        for name in ("home/suites", "home/reports"):
            os.makedirs(name)
        with mock.patch.dict(os.environ, MOEGATE_HOME="home"):
            self.assertEqual(self.command("import", "flashinfer-trace", str(TRACES), "--out", "home/suites/of")[0], 0)
        text = pathlib.Path("home/suites/of/flashinfer-trace.suite").read_text()
        self.assertIn("routing = replay:suites/of/data/routing-b7ba4e16fe3e.npy\n", text)

    def test_a_result_that_could_not_be_printed_is_no_success(self):
        pathlib.Path("t.jsonl").write_bytes(trace_line("moegate.op,a=1", "{}"))  # so little that it is buffered
        arguments = [sys.executable, "-B", "-m", "moegate.flashinfer", "import", "flashinfer-trace", "t.jsonl"]
        arguments += ["--out", "x"]
        with open("/dev/full", "wb") as full:
            ended = subprocess.run(arguments, stdout=full, stderr=subprocess.PIPE, check=False,
                                   env={"PYTHONPATH": str(ROOT / "python")})
        self.assertEqual(ended.returncode, fi.USAGE)
        self.assertEqual(ended.stderr.decode(), "moegate: standard output cannot be written; "
                                                "the command did not print its result\n")

    def test_a_device_stays_one(self):
        os.mkfifo("pipe")
        reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
        fi.write_file("pipe", b"content")
        self.assertEqual(os.read(reader, 100), b"content")
        os.close(reader)
        pathlib.Path("file").write_bytes(b"old")
        os.symlink("file", "link")
        fi.write_file("link", b"new")
        self.assertEqual(pathlib.Path("file").read_bytes(), b"new")
        self.assertTrue(os.path.islink("link"))


class Robust(unittest.TestCase):
    """Any bytes end well, or with a sentence."""

    def take(self, content):
        """Documents, one in a line; behind an empty line the file of tensors that every workload means."""
        documents, _, tensors = content.partition(b"\n\n")
        every = fi.TraceImport()
        for line in documents.rstrip(b"\n").split(b"\n"):
            every.add("input.json", line)
        imported = every.suite("about", "data", lambda path, key: fi.read_safetensors(path, tensors, key))
        imported.text.encode("utf-8", "surrogateescape")
        "".join(map(fi.printable, imported.notes)).encode()
        listed = 0
        for section in imported.text.split("\n\n[")[1:]:
            tokens = [line for line in section.split("\n") if line.startswith("tokens = ")]
            listed += len(tokens[0].split(",")) if tokens else 1
        self.assertEqual(listed, imported.cases, "of the suite's text")
        return imported.cases

    def mutated(self, content, draw):
        words = [b"null", b"-1", b"0", b"3", b"1e3", b"1.5", b"true", b"[]", b"{}", b'"var"', b'"\\ud800"', b'"a,b"',
                 b'"moegate.op,tokens=08,a=%C3%A4%FF"', b'"bfloat16"', b'"safetensors"', b"9" * 30, b"[" * 70]
        for _ in range(draw.randint(1, 3)):
            values = [m.span() for m in re.finditer(rb'"[^"]*"|[0-9.]+|\{[^{}]*\}|\[[^][]*\]', content)]
            at = draw.randrange(len(content) + 1)
            end, new = at + draw.choice([0, 1, 4, 30]), bytes([draw.randrange(256)])
            if values and draw.random() < 0.8:
                (at, end), new = draw.choice(values), draw.choice(words)
            content = content[:at] + new + content[end:]
        return content

    def test_the_corpus_and_what_is_like_it(self):
        inputs = [path.read_bytes() for path in sorted(CORPUS.iterdir())]
        self.assertGreater(len(inputs), 2)
        for content in inputs:
            self.assertGreater(self.take(content), 0)
        ends = set()
        for seed in range(1500):
            draw = random.Random(seed)
            content = self.mutated(draw.choice(inputs), draw)
            with self.subTest(seed=seed):
                code, why = refusal(self.take, content)
                self.assertIn(code, (0, fi.USAGE))
                self.assertEqual(code == 0, why == "")
                ends.add(code)
        self.assertEqual(ends, {0, fi.USAGE})

    def test_no_bytes_at_all(self):
        self.assertEqual(refusal(self.take, b"")[0], fi.USAGE)


if __name__ == "__main__":
    unittest.main()
