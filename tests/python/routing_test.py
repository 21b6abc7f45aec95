# SPDX-License-Identifier: Apache-2.0
"""Dumps of engines as files for replays. Each test writes the dump as the engine would; a stub stands for torch."""

import base64
import contextlib
import hashlib
import io
import json
import os
import pathlib
import pickle
import sys
import tempfile
import types
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import numpy as np  # noqa: E402
from moegate import routing  # noqa: E402


def random_ids(rows, layers, k, experts, seed=1):
    """[rows, layers, k], different ids in a row, none of layers all zeros."""
    random = np.random.default_rng(seed)
    return np.array([[random.permutation(experts)[:k] for _ in range(layers)] for _ in range(rows)])


def load(path, map_location, weights_only):
    """As torch.load() of tensors, which are arrays here."""
    assert map_location == "cpu" and weights_only
    with open(path, "rb") as file:
        return pickle.load(file)


class Scratch(unittest.TestCase):
    """In a folder of its own, with a stub for torch."""

    def setUp(self):
        before, folder = os.getcwd(), tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, before)
        os.chdir(folder.name)
        stub = mock.patch.dict(sys.modules, torch=types.SimpleNamespace(load=load))
        stub.start()
        self.addCleanup(stub.stop)

    def make(self, *arguments):
        """Standard output of an import into d."""
        out, err = io.TextIOWrapper(io.BytesIO()), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = routing.main(["import", *arguments, "--out", "d"])
        self.assertEqual(code, 0)
        out.seek(0)
        return out.read()

    def refuse(self, why, *arguments, code=2):
        """`why` is in the only line that it says; nothing is written."""
        err = io.TextIOWrapper(io.BytesIO())
        with contextlib.redirect_stderr(err):
            self.assertEqual(routing.main(["import", *arguments, "--out", "d"]), code)
        err.seek(0)
        said = err.read()
        self.assertIn(why, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertFalse(os.path.exists("d"), said)

    @staticmethod
    def dump(name, content):
        with open(name, "wb") as file:
            pickle.dump(content, file)

    @staticmethod
    def facts():
        return json.loads(pathlib.Path("d/routing.json").read_text())

    def expect_layer(self, layer, ids):
        got = np.load(f"d/layer_{layer:03}.npy")
        self.assertEqual(got.dtype, np.int16)
        np.testing.assert_array_equal(got, ids)


class OfVllm(Scratch):
    def test_every_layer_is_a_file_of_its_ids(self):
        for kind in (np.uint8, np.int32):
            ids = random_ids(20, 3, 8, 60)
            np.save("routed.npy", ids.astype(kind))
            said = self.make("routed.npy", "--experts", "60", "--topk", "8", "--model", "mine")
            self.assertEqual(said, "3 layers, 20 tokens with 8 experts each; routing = replay:d/\n")
            for layer in range(3):
                self.expect_layer(layer, ids[:, layer])
            facts = self.facts()
            content = pathlib.Path("d/layer_001.npy").read_bytes()
            self.assertEqual(facts["files"]["layer_001.npy"], hashlib.sha256(content).hexdigest())
            known = {name: facts.get(name) for name in ("engine", "model", "experts", "topk", "tokens")}
            self.assertEqual(list(known.values()), ["vllm", "mine", 60, 8, 20])
            self.assertNotIn("passes", facts)
            for path in pathlib.Path("d").iterdir():
                path.unlink()

    def test_a_layer_of_zeros_is_left_out_and_named(self):
        ids = random_ids(9, 4, 2, 30)
        ids[:, [0, 2]] = 0
        np.save("routed.npy", ids)
        said = self.make("routed.npy")
        self.assertIn("- layer 0: all ids are 0: a dense layer, or", said)
        self.assertIn("- layer 2: all ids are 0", said)
        self.assertIn(f"- the largest id is {ids.max()}; --experts E", said)
        self.assertEqual(sorted(os.listdir("d")), ["layer_001.npy", "layer_003.npy", "routing.json"])
        self.assertEqual(len(self.facts()["left_out"]), 2)

    def test_doubled_and_foreign_ids_are_refused(self):
        ids = random_ids(9, 2, 3, 30)
        ids[4, 1] = [7, 2, 7]
        np.save("routed.npy", ids)
        again = "id 7 appears twice; record it again; of counts, give --experts"
        self.refuse(f"routed.npy layer 1: row 4: {again}", "routed.npy")
        ids[4, 1] = [7, 2, 30]
        np.save("routed.npy", ids)
        self.refuse("row 4: id 30 is not in [0, 30)", "routed.npy", "--experts", "30")
        self.refuse("has 3 experts of a token, not --topk 4", "routed.npy", "--topk", "4")

    def test_files_follow_each_other_and_layers_are_selected(self):
        first, second = random_ids(5, 30, 2, 16, 1), random_ids(3, 30, 2, 16, 2)
        np.save("a.npy", first)
        np.save("b.npy", second)
        self.make("a.npy", "b.npy", "--layers", "3, 10-12")
        self.assertEqual(len(self.facts()["files"]), 4)
        self.expect_layer(11, np.concatenate([first[:, 11], second[:, 11]]))

    def test_layers_that_are_none_are_refused(self):
        np.save("a.npy", random_ids(5, 2, 2, 16))
        self.refuse("there is no layer 2; it has 0, 1", "a.npy", "--layers", "1-3")
        for text in ("", "x", "3-1", "1,,2", "-1"):
            self.refuse("use numbers and ranges", "a.npy", f"--layers={text}")

    def test_a_fused_shared_expert_is_cut(self):
        ids = random_ids(6, 2, 4, 16)
        fused = np.concatenate([ids, np.full((6, 2, 1), 16)], axis=2)
        np.save("a.npy", fused)
        self.make("a.npy", "--experts", "16", "--topk", "4")
        self.expect_layer(1, ids[:, 1])

    def test_loads_are_summed(self):
        steps = np.random.default_rng(1).integers(1, 100, (5, 3, 64))
        steps[:, 0] = 0
        np.save("steps.npy", steps)
        said = self.make("steps.npy", "--experts", "64")
        self.assertIn("- layer 0: all counts are 0", said)
        self.assertIn("routing = load:d/load_001.npy\n", said)
        got = np.load("d/load_002.npy")
        self.assertEqual(got.dtype, np.int64)
        np.testing.assert_array_equal(got, steps[:, 2].sum(axis=0))
        self.assertEqual(self.facts()["experts"], 64)

    def test_loads_of_one_step_need_no_flag(self):
        np.save("load.npy", np.arange(1.0, 9).reshape(2, 4))
        self.make("load.npy")
        np.testing.assert_array_equal(np.load("d/load_001.npy"), [5, 6, 7, 8])

    def test_loads_that_are_none_are_refused(self):
        np.save("load.npy", np.array([[1, -1]]))
        self.refuse("layer 0: has a count below 0", "load.npy")
        self.refuse("counts of 2 experts, not --experts 3", "load.npy", "--experts", "3")
        np.save("load.npy", np.array([[1, 0.5]]))
        self.refuse("fractions", "load.npy")
        np.save("load.npy", np.array([1, 2]))
        self.refuse("has 1 dimensions; ids have [tokens, layers, k]", "load.npy")
        np.save("load.npy", np.array([[1, 2]]))
        np.save("ids.npy", random_ids(3, 1, 2, 8))
        self.refuse("ids and counts", "load.npy", "ids.npy")


class ResponsesOfSglang(Scratch):
    @staticmethod
    def response(ids, prompt=4):
        text = base64.b64encode(ids.astype("<i4").tobytes()).decode()
        counts = {"prompt_tokens": prompt, "completion_tokens": len(ids) + 1 - prompt}
        return {"text": "x", "meta_info": {"routed_experts": text, **counts}}

    def test_of_generate(self):
        ids, more = random_ids(9, 3, 8, 128, 1), random_ids(5, 3, 8, 128, 2)
        pathlib.Path("a.json").write_text(json.dumps([self.response(ids), self.response(more)]))
        self.make("a.json", "--topk", "8")
        self.assertEqual(self.facts()["engine"], "sglang")
        self.expect_layer(2, np.concatenate([ids[:, 2], more[:, 2]]))

    def test_of_chat_completions_in_lines(self):
        ids = random_ids(9, 3, 10, 128)
        one = self.response(ids)["meta_info"]
        chat = {"sglext": {"routed_experts": one.pop("routed_experts")}, "usage": one}
        pathlib.Path("a.jsonl").write_text(json.dumps(chat) + "\n\n")
        self.make("a.jsonl", "--topk", "10")
        self.expect_layer(0, ids[:, 0])

    def test_what_does_not_fit_is_refused(self):
        whole = self.response(random_ids(9, 3, 8, 128))

        def refuse(why, *flags, **replaced):
            response = {"meta_info": {**whole["meta_info"], **replaced}}
            pathlib.Path("a.json").write_text(json.dumps(response))
            self.refuse(why, "a.json", *flags)

        refuse("give --topk K")
        refuse("9 tokens (of 10, without the last) of 7 experts", "--topk", "7")
        refuse("which are no int32 of 4 tokens", "--topk", "8", prompt_tokens=1, completion_tokens=4)
        refuse("says no prompt_tokens", "--topk", "8", prompt_tokens=None)
        refuse("is no base64", "--topk", "8", routed_experts="?")
        refuse("has no routed_experts", "--topk", "8", routed_experts=None)


class RecorderOfSglang(Scratch):
    def setUp(self):
        super().setUp()
        self.maps = np.array([np.random.default_rng(n).permutation(64) % 60 for n in range(3)])
        # Of each logical expert, one physical.
        self.physical = [{logical: n for n, logical in enumerate(one)} for one in self.maps.tolist()]

    def record(self, number, logical, width=8, rank=0):
        """Of ids [tokens, layers, k]: as the recorder has them, the first layer dense."""
        tokens, layers, k = logical.shape
        ids = np.full((layers, tokens, width), -1)
        for layer in range(1, layers):
            for token in range(tokens):
                ids[layer, token, :k] = [self.physical[layer][e] for e in logical[token, layer]]
        return {"forward_pass_id": number, "rank": rank, "topk_ids_of_layer": ids}

    def dump_records(self, *records, name="r.pt"):
        self.dump(name, {"records": list(records), "last_physical_to_logical_map": self.maps})

    def test_ids_become_logical_and_passes_have_starts(self):
        passes = [random_ids(n, 3, 6, 60, n) for n in (5, 1, 2)]
        self.dump_records(self.record(9, passes[2]), self.record(7, passes[0]), self.record(8, passes[1]))
        said = self.make("r.pt", "--experts", "60")
        self.assertIn("2 layers, 8 tokens with 6 experts each, forward passes: 3", said)
        self.assertIn("- layer 0: no ids: a dense layer, or not recorded", said)
        self.assertEqual(self.facts()["passes"], [0, 5, 6])
        for layer in (1, 2):
            self.expect_layer(layer, np.concatenate([one[:, layer] for one in passes]))

    def test_ranks_that_recorded_the_same_count_once(self):
        ids, others = random_ids(3, 3, 2, 60, 1), random_ids(3, 3, 2, 60, 2)
        self.dump_records(self.record(1, ids), self.record(2, ids))
        self.dump_records(self.record(2, ids), self.record(1, others), self.record(1, ids), name="r1.pt")
        self.make("r.pt", "r1.pt")
        self.assertEqual(self.facts()["passes"], [0, 3, 6])
        self.expect_layer(1, np.concatenate([ids[:, 1], others[:, 1], ids[:, 1]]))

    def test_a_k_that_it_cannot_keep_is_refused(self):
        self.dump_records(self.record(1, random_ids(3, 3, 8, 60)))
        self.refuse("keeps 8 experts of a token, not all 10", "r.pt", "--topk", "10")
        said = self.make("r.pt")
        self.assertIn("- all 8 columns are full: a model with more", said)

    def test_ten_columns_are_refused(self):
        self.dump_records(self.record(1, random_ids(3, 3, 10, 60), width=10))
        self.refuse("keeps 8 experts of a token, not all 10", "r.pt")

    def test_half_filled_rows_are_refused(self):
        record = self.record(1, random_ids(3, 3, 4, 60))
        record["topk_ids_of_layer"][1, 2, 3] = -1
        self.dump_records(record)
        self.refuse("layer 1: row 2: id -1 is not in [0, 60)", "r.pt", "--experts", "60")

    def test_a_fused_shared_expert_beyond_the_map_is_cut(self):
        ids = random_ids(4, 3, 7, 60)
        record = self.record(1, ids)
        record["topk_ids_of_layer"][1:, :, 7] = 64
        self.dump_records(record)
        self.refuse("has 8 experts of a token, not --topk 7", "r.pt", "--topk", "7")
        self.make("r.pt", "--experts", "60", "--topk", "7")
        self.expect_layer(2, ids[:, 2])

    def test_without_ids_or_a_map_it_is_refused(self):
        self.dump("r.pt", {"records": [{"forward_pass_id": 1, "global_physical_count": [[1]]}]})
        self.refuse("record with --expert-distribution-recorder-mode per_token", "r.pt")
        self.dump("r.pt", {"records": [self.record(1, random_ids(3, 3, 2, 60))]})
        self.refuse("has no last_physical_to_logical_map", "r.pt")
        self.dump("r.pt", {"a": 1, "b": 2})
        self.refuse("has neither records nor logical_count, but a, b", "r.pt")

    def test_stat_becomes_loads(self):
        counts = np.random.default_rng(1).integers(0, 50, (4, 3, 60))
        self.dump("stat.pt", {"rank": 0, "logical_count": counts})
        self.make("stat.pt", "--layers", "1-2")
        np.testing.assert_array_equal(np.load("d/load_001.npy"), counts[:, 1].sum(axis=0))
        self.assertEqual(sorted(os.listdir("d")), ["load_001.npy", "load_002.npy", "routing.json"])


class TuningDumpsOfSglang(Scratch):
    def test_are_put_in_order_by_name(self):
        ids = {(layer, n): random_ids(4 + n, 1, 8, 60, layer + 50 * n)[:, 0] for layer in (3, 10) for n in (0, 1)}
        for (layer, n), one in ids.items():
            self.dump(f"topk_ids_layer{layer}_idx{n}.pt", one)
        self.make(*sorted(os.listdir("."), reverse=True), "--topk", "8")
        for layer in (3, 10):
            self.expect_layer(layer, np.concatenate([ids[layer, 0], ids[layer, 1]]))
        self.assertEqual(self.facts()["passes"], [0, 4])

    def test_layers_of_different_length_are_refused(self):
        self.dump("topk_ids_layer3_idx0.pt", random_ids(4, 1, 8, 60)[:, 0])
        self.dump("topk_ids_layer4_idx0.pt", random_ids(5, 1, 8, 60)[:, 0])
        self.refuse("layers have different shapes: [4, 8], [5, 8]", *sorted(os.listdir(".")))


class Files(Scratch):
    def test_a_folder_with_recordings_is_left_alone(self):
        np.save("a.npy", random_ids(5, 2, 2, 16))
        self.make("a.npy")
        before = pathlib.Path("d/routing.json").read_bytes()
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(routing.main(["import", "a.npy", "--layers", "1", "--out", "d"]), 2)
        self.assertEqual(pathlib.Path("d/routing.json").read_bytes(), before)
        self.assertEqual(len(os.listdir("d")), 3)

    def test_what_cannot_be_read_is_refused(self):
        self.refuse("give files", code=2)
        self.refuse("x.npy: no such file", "x.npy")
        self.refuse("x.pt: no such file", "x.pt")
        pathlib.Path("x.bin").write_bytes(b"")
        self.refuse("is none of .npy, .json, .jsonl and .pt", "x.bin")
        pathlib.Path("x.npy").write_bytes(b"PK")
        self.refuse("x.npy: is no .npy file that can be read", "x.npy")
        pathlib.Path("x.json").write_bytes(b"{")
        self.refuse("x.json: is damaged, or no JSON", "x.json")
        pathlib.Path("x.pt").write_bytes(b"no pickle")
        self.refuse("x.pt: cannot be read by torch.load(weights_only=True)", "x.pt")
        np.save("a.npy", random_ids(5, 2, 2, 16))
        self.refuse("--experts: 'x' is no whole number", "a.npy", "--experts", "x")

    def test_without_torch_only_pt_is_refused(self):
        np.save("a.npy", random_ids(5, 2, 2, 16))
        self.dump("b.pt", 1)
        with mock.patch.dict(sys.modules, torch=None):
            self.refuse("has no torch, which .pt files are read with", "b.pt", code=21)
            self.make("a.npy")


if __name__ == "__main__":
    unittest.main()
