// SPDX-License-Identifier: Apache-2.0
#include "harness/campaign/trace_import.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/base/error.h"
#include "harness/base/ini_file.h"
#include "harness/base/refusal_fixture.h"
#include "harness/base/scratch_fixture.h"

namespace moegate {
namespace {

constexpr const char* kTraceFolder = MOEGATE_SOURCE_DIR "/tests/traces/flashinfer";

std::string trace_line(const std::string& definition, const std::string& axes,
                       const std::string& inputs = "{}", const std::string& more = "") {
  return R"({"definition":")" + definition + R"(","workload":{"uuid":"u","axes":)" + axes +
         R"(,"inputs":)" + inputs + "}" + more + "}\n";
}

std::optional<NumberTensor> no_tensor(const std::string&, const std::string&) {
  return std::nullopt;
}

/// The message of the Error(usage) that reading throws; "accepted" where it throws none.
std::string import_refusal(const std::string& path, const std::string& text) {
  return refusal_of([&] {
    TraceImport all;
    all.add(path, text);
    all.suite("about", "data", no_tensor);
  });
}

/// "op tokens,tokens param=value ...", a text for each section.
std::vector<std::string> sections_of(const std::string& suite) {
  std::vector<std::string> texts;
  const IniFile file = parse_ini("x.suite", suite);
  for (size_t i = 1; i < file.sections.size(); ++i) {
    std::string text;
    for (const IniEntry& entry : file.sections[i].entries) {
      if (entry.key != "op" && entry.key != "tokens") text += " " + entry.key + "=";
      if (entry.key == "tokens") text += " ";
      for (size_t v = 0; v < entry.values.size(); ++v) text += (v ? "," : "") + entry.values[v];
    }
    texts.push_back(text);
  }
  return texts;
}

bool is_said(const std::vector<std::string>& notes, const std::string& what) {
  return std::ranges::any_of(
      notes, [&](const std::string& note) { return note.find(what) != std::string::npos; });
}

TEST(TraceImport, EveryKindOfTraceOfTheSchema) {
  const ImportedSuite imported = import_trace_set(kTraceFolder, "about", "data");
  // At even loads one of a token's two choices is of the four experts of the rank.
  const std::string rank = " experts=4 hidden=128 inter=128 topk=1";
  const std::string rank_3 =
      " experts=4 hidden=128 inter=128 routing=replay:data/routing-f909674dae4a.npy topk=1";
  const std::string rest = " experts=8 hidden=128 inter=128 topk=2";
  const std::string bf16 =
      " dtype=bf16 experts=8 hidden=128 inter=64 routing=replay:data/routing-30e2cb6f66a3.npy "
      "topk=2";
  const std::string router = " experts=8 groups=2 hidden=128";
  EXPECT_EQ(
      sections_of(imported.text),
      (std::vector<std::string>{
          "moe_gate_up 4" + bf16, "moe_down 4" + bf16,
          "topk_sort 1,5,16" + router + " scale=2.5 scoring=noaux_tc topk=2 topk-groups=1",
          "fused_moe 1,5,16" + rank, "moe_gate_up 1,5,16" + rank, "moe_down 1,5,16" + rank,
          "topk_sort 3" + router +
              " routing=replay:data/routing-b7ba4e16fe3e.npy scale=2.5 scoring=noaux_tc topk=2 "
              "topk-groups=1",
          "fused_moe 4" + rank_3, "moe_gate_up 4" + rank_3, "moe_down 4" + rank_3,
          "topk_sort 2 dtype=bf16 experts=8 hidden=128 scoring=topk_softmax topk=2",
          "fused_moe 2" + rest, "moe_gate_up 2" + rest, "moe_down 2" + rest,
          "topk_sort 8 dtype=bf16 experts=8 hidden=128 scoring=noaux_tc topk=2"}));
  EXPECT_EQ(imported.cases, 23u);
  for (const char* note :
       {"rmsnorm_h128: 1 workload left out: it is no MoE layer",
        "fused_something_h64: 1 workload left out: no .json file beside the traces defines it",
        "routing_logits is in a file that is not there; imported with routing = uniform",
        "none has weights of float8_e4m3fn with such scale factors", "a rank with 4 of 8 experts",
        "1 solution not imported",
        "1 COMPILE_ERROR, 1 INCORRECT_DTYPE, 1 INCORRECT_NUMERICAL, 1 INCORRECT_SHAPE, 2 PASSED, "
        "1 RUNTIME_ERROR, 1 TIMEOUT",
        "evaluation.performance.speedup_factor (1)", "evaluation.log (7)", "workload.uuid (13)",
        "tags[] (2)"}) {
    EXPECT_TRUE(is_said(imported.notes, note)) << note;
  }
  EXPECT_FALSE(is_said(imported.notes, "workload.axes")) << "used";
  EXPECT_FALSE(is_said(imported.notes, "routing_logits.path")) << "used";
}

TEST(TraceImport, RecordedRoutingIsWhatTheRouterChose) {
  const ImportedSuite imported = import_trace_set(kTraceFolder, "about", "data");
  ASSERT_EQ(imported.recordings.size(), 3u);
  const auto table = [&](const std::string& name) {
    return imported.recordings.at("routing-" + name + ".npy");
  };
  EXPECT_EQ(table("30e2cb6f66a3"), npy_bytes({4, 2, {0, 7, 7, 3, 5, 6, 1, 0}})) << "as recorded";
  EXPECT_EQ(table("b7ba4e16fe3e"), npy_bytes({3, 2, {0, 1, 6, 7, 6, 7}})) << "from logits and bias";
  EXPECT_EQ(table("f909674dae4a"), npy_bytes({4, 1, {2, 3, 2, 3}})) << "of experts 4 to 7";
}

TEST(TraceImport, OwnTracesComeBackAsTheirCases) {
  TraceImport all;
  const std::string definition = "moegate.topk_sort,experts=8,routing=zipf%3A0.67,scale=2.5";
  const std::string inputs =
      R"({"operands":{"type":"random"},"scale":{"type":"scalar","value":2.5}})";
  for (const char* tokens : {"16", "1", "16"}) {
    all.add("a.jsonl",
            trace_line(definition, R"({"experts":8,"tokens":)" + std::string(tokens) + "}", inputs,
                       R"(,"solution":"chain@abc")"));
  }
  all.add("b.json", trace_line("moegate.moe_sum,topk=2", R"({"topk":2,"tokens":4,"seed":3})"));
  const ImportedSuite imported = all.suite("about", "data", no_tensor);
  EXPECT_EQ(sections_of(imported.text),
            (std::vector<std::string>{"moe_sum 4 seed=3 topk=2",
                                      "topk_sort 1,16 experts=8 routing=zipf:0.67 scale=2.5"}));
  EXPECT_TRUE(is_said(imported.notes, "not used: solution (3), workload.uuid (4)"))
      << imported.notes.back();
}

TEST(TraceImport, OwnTracesThatASuiteCannotSayAreLeftOut) {
  TraceImport all;
  all.add("a.jsonl", trace_line("moegate.op,a=b%0Aop%20=%20c", "{}") +
                         trace_line("moegate.op%5D", "{}") +
                         trace_line("moegate.op,a=1", R"({"a":2})"));
  const ImportedSuite imported = all.suite("about", "data", no_tensor);
  EXPECT_EQ(imported.cases, 0u);
  EXPECT_EQ(imported.text, "");
  EXPECT_TRUE(is_said(imported.notes, "is no name of an operator"));
  EXPECT_TRUE(is_said(imported.notes, "contradict"));
}

TEST(TraceImport, RefusesWhatIsDamagedNamingFileAndLine) {
  const std::string good = trace_line("d", "{}");
  EXPECT_EQ(import_refusal("t.jsonl", good + "\n\n" + good), "accepted");
  EXPECT_EQ(import_refusal("t.jsonl", good + "\n{\"definition\"").find("t.jsonl:3: is damaged"),
            0u);
  EXPECT_EQ(import_refusal("d.json", "{").find("d.json: is damaged"), 0u);
  EXPECT_NE(import_refusal("t.jsonl", std::string(100000, '[')).find("nested"), std::string::npos);
  for (const std::string line : {"[]", "{}", R"({"definition":"d"})",
                                 R"({"definition":1,"workload":{"axes":{},"inputs":{}}})",
                                 R"({"definition":"d","workload":{"axes":[],"inputs":{}}})",
                                 R"({"definition":"d","workload":{"axes":{}}})"}) {
    EXPECT_EQ(import_refusal("t.jsonl", line).find("t.jsonl:1: is no trace"), 0u) << line;
  }
  for (const char* value : {"-1", "1.5", "\"8\"", "null", "1e30"}) {
    const std::string axes = std::string("{\"n\":") + value + "}";
    EXPECT_NE(import_refusal("t.jsonl", trace_line("d", axes)).find("axis 'n'"), std::string::npos)
        << value;
  }
  EXPECT_NE(import_refusal("d.json", R"({"axes":1,"inputs":1,"outputs":1})").find("name"),
            std::string::npos);
}

TEST(TraceImport, TwoDefinitionsOfOneNameAreRefused) {
  TraceImport all;
  all.add("a.json", R"({"name":"x","axes":{},"inputs":{},"outputs":{}})");
  all.add("b.json", R"({"name":"x","axes":{},"inputs":{},"outputs":{}})");
  EXPECT_THROW(all.add("c.json", R"({"name":"x","axes":{"n":1},"inputs":{},"outputs":{}})"), Error);
}

TEST(TraceImport, OddDefinitionsAreLeftOutNotBelieved) {
  const std::string head = R"("name":"m_topk2_renorm","op_type":"moe","outputs":{},)";
  for (const std::string rest :
       {R"("axes":1,"inputs":2)", R"("axes":{},"inputs":{})",
        R"("axes":{"n":{"type":"var"},"m":{"type":"var"}},"inputs":{})",
        R"("axes":{"n":{"type":"var"},"num_experts":{"value":-8}},"inputs":{})",
        R"("axes":{"n":{"type":"var"},"num_experts":{"value":2000},"hidden_size":{"value":128},)"
        R"("intermediate_size":{"value":128}},"inputs":{})",
        R"("axes":{"n":{"type":"var"},"num_experts":{"value":8},"hidden_size":{"value":128},)"
        R"("intermediate_size":{"value":128},"n_group":{"value":3}},"inputs":{})"}) {
    TraceImport all;
    all.add("d.json", "{" + head + rest + "}");
    all.add("t.jsonl", trace_line("m_topk2_renorm", R"({"n":1})"));
    const ImportedSuite imported = all.suite("about", "data", no_tensor);
    EXPECT_EQ(imported.cases, 0u) << rest;
    EXPECT_TRUE(is_said(imported.notes, "m_topk2_renorm: 1 workload left out")) << rest;
  }
}

TEST(TraceImport, ATensorOfAnotherShapeIsNotReplayed) {
  for (const auto& [shape, value, what] : {std::tuple<std::vector<int64_t>, double, std::string>{
                                               {2, 4}, 0, "has shape [2, 4], not [2, 2]"},
                                           {{2, 2}, 0, "appears twice"},
                                           {{2, 2}, 0.5, "it has fractions"}}) {
    TraceImport all;
    all.add("d.json",
            R"({"name":"m","op_type":"moe","axes":{"n":{"type":"var"},"num_experts":{"value":8},)"
            R"("top_k":{"value":2},"hidden_size":{"value":128},"intermediate_size":{"value":128}},)"
            R"("inputs":{"w1":{"dtype":"bfloat16","shape":["a","b","c"]},)"
            R"("topk_ids":{"dtype":"int32","shape":["n","top_k"]}},"outputs":{}})");
    all.add("t.jsonl",
            trace_line("m", R"({"n":2})",
                       R"({"topk_ids":{"type":"safetensors","path":"f","tensor_key":"k"}})"));
    const NumberTensor tensor{shape, std::vector<double>(8, value)};
    const ImportedSuite imported =
        all.suite("about", "data", [&](const std::string& path, const std::string& key) {
          EXPECT_EQ(path + key, "fk");
          return std::optional(tensor);
        });
    EXPECT_TRUE(is_said(imported.notes, what)) << what;
    EXPECT_TRUE(imported.recordings.empty());
    EXPECT_EQ(imported.cases, 2u) << "with routing = uniform";
  }
}

TEST(TraceImport, PathsOutOfTheDataSetAreNotFollowed) {
  const ScratchFolder folder;
  const TensorSource tensors = tensors_below((folder / "set").string());
  for (const char* path : {"/etc/passwd", "../secret", "a/../../secret", ".", ""}) {
    EXPECT_FALSE(tensors(path, "x")) << path;
  }
}

}  // namespace
}  // namespace moegate
