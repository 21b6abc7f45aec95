// SPDX-License-Identifier: Apache-2.0
// Configs of public models in tests/models/, and the suites that are made of them.
#include "harness/commands/model_suite.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "harness/base/files.h"
#include "harness/base/test_fixture.h"
#include "harness/campaign/suite.h"

namespace moegate::test {
namespace {

namespace fs = std::filesystem;
using ::testing::IsSubstring;

class ModelSuite : public testing::Test {
 protected:
  static std::string text(const std::string& name, const Ranks& ranks) {
    return suite_text(read_model(name + ".json"), name, ranks, own_registry());
  }
  /// Of a suite in suites/, or of one that is written first.
  static std::set<std::string> keys(const std::string& suite) {
    std::set<std::string> keys;
    const auto operators = describe_operators(own_registry(), Backend::host);
    for (const Case& c : load_suite(suite, {}, operators)) {
      EXPECT_NO_THROW(find_op(c.op).validate(c)) << c.key();
      keys.insert(c.key());
    }
    return keys;
  }
  std::set<std::string> keys_of_text(const std::string& text) const {
    const fs::path path = folder_ / "written.suite";
    std::ofstream(path) << text;
    return keys(path.string());
  }
  /// Without the line ends of comments.
  static std::string one_line(std::string text) {
    for (size_t at = 0; (at = text.find("\n# ", at)) != std::string::npos;) {
      text.replace(at, 3, " ");
    }
    return text;
  }
  /// What a config of these fields is refused for, or the suite of it.
  std::string of_config(const std::string& json) const {
    const fs::path path = folder_ / "config.json";
    std::ofstream(path) << json;
    std::string made;
    const std::string refusal = refusal_of(
        [&] { made = suite_text(read_model(folder_.path().string()), "m", {}, own_registry()); });
    return refusal == "accepted" ? made : refusal;
  }

  const ScopedVariable home_{"MOEGATE_HOME", MOEGATE_SOURCE_DIR};
  const ScopedCurrentFolder here_{fs::path(MOEGATE_SOURCE_DIR) / "tests/models"};
  const ScratchFolder folder_;
};

TEST_F(ModelSuite, IsAsExpected) {
  const std::map<std::string, Ranks> models = {{"deepseek-r1", {8, 8}}, {"glm-4-5", {4, {}}},
                                               {"gpt-oss-120b", {}},    {"hunyuan-lists", {2, {}}},
                                               {"kimi-k2", {8, {}}},    {"llama-4-scout", {}},
                                               {"minimax-m2", {4, {}}}, {"mixtral-8x7b", {{}, 3}},
                                               {"qwen3-30b-a3b", {}},   {"qwen3-next", {8, {}}},
                                               {"unknown", {}}};
  for (const auto& [name, ranks] : models) {
    const std::string made = text(name, ranks);
    EXPECT_EQ(made, read_file(name + ".suite"));
    EXPECT_FALSE(keys_of_text(made).empty()) << name;
  }
}

TEST_F(ModelSuite, HasTheKeysOfTheCommittedSuites) {
  const std::map<std::string, std::vector<Ranks>> models = {{"deepseek-r1", {{8, 8}, {4, {}}}},
                                                            {"qwen3-30b-a3b", {{1, {}}, {2, {}}}},
                                                            {"qwen3-235b-a22b", {{4, {}}}},
                                                            {"qwen3-next", {{1, {}}, {4, {}}}},
                                                            {"gpt-oss-120b", {{}}},
                                                            {"gpt-oss-20b", {{}}}};
  std::set<std::string> all;
  for (const auto& [name, splits] : models) {
    std::set<std::string> made;
    for (const Ranks& ranks : splits) made.merge(keys_of_text(text(name, ranks)));
    for (const std::string& key : keys(name)) EXPECT_EQ(made.count(key), 1u) << key;
    all.merge(made);
  }
  for (const std::string& key : keys("moe-align")) EXPECT_EQ(all.count(key), 1u) << key;
}

TEST_F(ModelSuite, RanksThatDoNotDivideBecomeAComment) {
  const std::string bf16 = text("gpt-oss-120b", {7, {}});
  EXPECT_PRED_FORMAT2(IsSubstring,
                      "No sections gpt-oss-120b-tp7-...: intermediate_size = 2880 does not split "
                      "into 7 whole parts. --tp that work: 1, 2, 3, 4, 5, 6, 8,",
                      one_line(bf16));
  EXPECT_EQ(bf16.find("[gpt-oss-120b-tp"), std::string::npos);
  EXPECT_NE(bf16.find("[gpt-oss-120b-align]"), std::string::npos);
  EXPECT_PRED_FORMAT2(IsSubstring, "into 8 whole parts of a multiple",
                      text("qwen3-235b-a22b", {8, {}}));
  EXPECT_PRED_FORMAT2(IsSubstring, "--tp that work: 1, 2, 3, 4, 6, 12.",
                      one_line(text("qwen3-235b-a22b", {8, {}})));
}

constexpr const char* kPlain =
    R"("hidden_size": 256, "num_experts_per_tok": 2, "moe_intermediate_size": 128)";

TEST_F(ModelSuite, AmbiguousAndMissingFieldsAreListed) {
  const auto of = [&](const std::string& fields) {
    return of_config(std::string("{\"model_type\": \"new\", ") + kPlain + fields + "}");
  };
  EXPECT_PRED_FORMAT2(IsSubstring, "num_experts = 8, num_local_experts = 4?",
                      of(R"(, "num_experts": 8, "num_local_experts": 4)"));
  EXPECT_PRED_FORMAT2(IsSubstring, "\nexperts = 8    # num_experts\n",
                      of(R"(, "num_experts": 8, "num_local_experts": 8)"));
  EXPECT_PRED_FORMAT2(IsSubstring, "has no number of experts (model_type 'new', looked for ",
                      of(""));
  EXPECT_PRED_FORMAT2(IsSubstring, "num_experts = -8 is no whole number",
                      of(R"(, "num_experts": -8)"));
  EXPECT_PRED_FORMAT2(IsSubstring, "num_experts = \"8\" is no whole",
                      of(R"(, "num_experts": "8")"));
  EXPECT_PRED_FORMAT2(IsSubstring, "hidden_size has 1 values, but num_hidden_layers is 0",
                      of_config(R"({"num_experts": 8, "num_experts_per_tok": 2,
                                   "intermediate_size": 128, "hidden_size": [256]})"));
  EXPECT_PRED_FORMAT2(IsSubstring, "is no config.json: it is no object", of_config("[]"));
  EXPECT_PRED_FORMAT2(IsSubstring, "no_such.json", refusal_of([] { read_model("no_such.json"); }));
}

TEST_F(ModelSuite, NothingThatAConfigSaysBeginsALine) {
  const std::string made = of_config("{\"model_type\": \"a\\n[b]\\nop = c\", " +
                                     std::string(kPlain) + ", \"num_experts\": 8}");
  EXPECT_PRED_FORMAT2(IsSubstring, "a model_type a [b] op = c, decode", one_line(made));
}

TEST_F(ModelSuite, AKnownTypeHasItsOwnNames) {
  const std::string fields = std::string(kPlain) + R"(, "num_experts": 8, "n_routed_experts": 16)";
  EXPECT_PRED_FORMAT2(IsSubstring, "\nexperts = 8    # num_experts\n",
                      of_config("{\"model_type\": \"qwen3_moe\", " + fields + "}"));
}

TEST_F(ModelSuite, DenseLayersAreNotCounted) {
  const auto layers = [&](const std::string& fields) {
    const std::string text =
        of_config(std::string("{") + kPlain + R"(, "num_experts": 8, "num_hidden_layers": 8, )" +
                  fields + "}");
    const size_t at = text.find("# Its MoE layers are ") + 21;
    return text.substr(at, text.find(", counted", at) - at);
  };
  EXPECT_EQ(layers(R"("first_k_dense_replace": 3)"), "3 to 7");
  EXPECT_EQ(layers(R"("first_k_dense_replace": 1, "moe_layer_freq": 2)"), "2, 4, 6");
  EXPECT_EQ(layers(R"("moe_layer_freq": [0, 1, 1, 0, 1, 1, 1, 1])"), "1 to 2, 4 to 7");
  EXPECT_EQ(layers(R"("decoder_sparse_step": 2, "mlp_only_layers": [3])"), "1, 5, 7");
  EXPECT_EQ(layers(R"("interleave_moe_layer_step": 4)"), "3, 7");
  EXPECT_EQ(layers(R"("moe_layers": [0, 2], "interleave_moe_layer_step": 4)"), "0, 2");
  EXPECT_PRED_FORMAT2(IsSubstring, "none of its 8 layers is an MoE layer",
                      of_config(std::string("{") + kPlain + R"(, "num_experts": 8,
                                "num_hidden_layers": 8, "mlp_only_layers": [0,1,2,3,4,5,6,7]})"));
}

TEST_F(ModelSuite, ListsHaveAValueForEachLayer) {
  EXPECT_PRED_FORMAT2(IsSubstring, "moe_topk has 2 values, but num_hidden_layers is 3",
                      of_config(R"({"model_type": "hunyuan", "hidden_size": 256, "num_experts": 8,
                                   "moe_topk": [2, 2], "intermediate_size": 128,
                                   "num_hidden_layers": 3})"));
  // A layer of one expert is dense.
  EXPECT_PRED_FORMAT2(IsSubstring, "# Its MoE layers are 1 to 2, counted from 0.",
                      of_config(R"({"model_type": "hunyuan", "hidden_size": 256,
                                   "num_experts": [1, 8, 8], "moe_topk": 2,
                                   "intermediate_size": 128, "num_hidden_layers": 3})"));
}

TEST_F(ModelSuite, WeightsAreFp8OnlyInBlocksOf128) {
  const auto of = [&](const std::string& config) {
    return of_config(std::string("{") + kPlain + R"(, "num_experts": 8, "quantization_config": )" +
                     config + "}");
  };
  EXPECT_EQ(of(R"({"quant_method": "fp8", "weight_block_size": [128, 128]})").find("bf16"),
            std::string::npos);
  EXPECT_PRED_FORMAT2(IsSubstring, "(quant_method = \"fp8\"), which no",
                      of(R"({"quant_method": "fp8"})"));
  EXPECT_PRED_FORMAT2(IsSubstring, "weight_block_size = [64,64]",
                      of(R"({"quant_method": "fp8", "weight_block_size": [64, 64]})"));
  EXPECT_PRED_FORMAT2(IsSubstring, "\"gptq\", bits = 4",
                      of(R"({"quant_method": "gptq", "bits": 4})"));
  EXPECT_PRED_FORMAT2(IsSubstring, "\ndtype   = bf16\n", of("null"));
}

TEST_F(ModelSuite, RoutersThatNoOperatorHasAreComments) {
  const auto of = [&](const std::string& fields) {
    return of_config(std::string("{") + kPlain + R"(, "num_experts": 8, )" + fields + "}");
  };
  EXPECT_PRED_FORMAT2(IsSubstring, "No section of its router: scoring_func is sqrtsoftplus.",
                      of(R"("scoring_func": "sqrtsoftplus")"));
  EXPECT_PRED_FORMAT2(IsSubstring, "scoring_func is sigmoid, without a bias",
                      of(R"("scoring_func": "sigmoid")"));
  EXPECT_PRED_FORMAT2(IsSubstring, "topk_method is group_limited_greedy",
                      of(R"("topk_method": "group_limited_greedy", "scoring_func": "softmax")"));
  // Groups that do not fit the experts: the operator's own words.
  EXPECT_PRED_FORMAT2(IsSubstring, "# No section [m]: ",
                      of(R"("topk_method": "noaux_tc", "n_group": 3, "topk_group": 1)"));
}

TEST_F(ModelSuite, SharedExpertsOfAnotherWidthStayALayerOfTheirOwn) {
  const auto of = [&](const std::string& fields) {
    return of_config(std::string("{") + kPlain + R"(, "num_experts": 8, )" + fields + "}");
  };
  EXPECT_PRED_FORMAT2(IsSubstring, "(n_shared_experts = 2) are 256 wide in all, not 128",
                      of(R"("n_shared_experts": 2)"));
  EXPECT_PRED_FORMAT2(IsSubstring, "experts = 9    # num_experts, and n_shared_experts",
                      of(R"("n_shared_experts": 1)"));
  EXPECT_EQ(of(R"("n_shared_experts": null)").find("-shared-"), std::string::npos);
  EXPECT_PRED_FORMAT2(IsSubstring, "A shared expert (shared_intermediate_size) stays",
                      of(R"("shared_intermediate_size": 512)"));
}

}  // namespace
}  // namespace moegate::test
