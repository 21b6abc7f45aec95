// SPDX-License-Identifier: Apache-2.0
#include "kernels/moe_gemm/tiles/tile.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>

#include "harness/kernel/choice.h"
#include "harness/kernel/routing.h"

namespace moegate::moe_gemm::tiles {
namespace {

// A function-local static, as registrations run before main(); a deque, as variants point into it.
std::deque<TileKernel>& table() {
  static std::deque<TileKernel> kernels;
  return kernels;
}

const TileKernel* find_kernel(Backend backend, const std::string& name) {
  const auto found = std::ranges::find_if(table(), [&](const TileKernel& kernel) {
    return kernel.backend == backend && kernel.name == name;
  });
  return found == table().end() ? nullptr : &*found;
}

bool is_compiled(const TileKernel& kernel, const Knobs& knobs) {
  return std::ranges::count(kernel.compiled, knobs) > 0;
}

std::string why_not(const TileKernel& kernel, const MoeGemmShape& shape, const Knobs& knobs) {
  return kernel.unsupported ? kernel.unsupported(shape, knobs) : std::string();
}

template <class P>
void register_tile(const TileKernel* kernel, const Knobs& knobs, const char* file) {
  Variant v;
  v.op = P::kOp;
  v.name = TileConfig{kernel->name, 0, knobs}.variant();
  v.backend = kernel->backend;
  v.help = "one tile configuration, for moegate tune";
  v.launch = [kernel, knobs](Problem& problem, const Launch& where) {
    kernel->launch(static_cast<P&>(problem).args(), knobs, problem.workspace(), where);
  };
  if (kernel->workspace) {
    v.workspace = [kernel](const Case& c, const DeviceFacts&) {
      return kernel->workspace(P::shape_of(c));
    };
  }
  v.unsupported = [kernel, knobs](const Case& c, const DeviceFacts&) {
    return why_not(*kernel, P::shape_of(c), knobs);
  };
  v.file = file;
  register_variant(std::move(v));
}

TileShape file_shape(const MoeGemmShape& s) {
  const char* scaling = s.scaled_by == ScaledBy::block     ? "block"
                        : s.scaled_by == ScaledBy::channel ? "channel"
                                                           : "tensor";
  return {s.experts, s.topk, s.down ? s.n : s.k, s.down ? s.k : s.n / 2,
          tile_dtype(name_of(s.dtype), scaling, s.biased)};
}

const char* op_of(const MoeGemmShape& s) {
  return s.down ? MoeDown::kOp : MoeGateUp::kOp;
}

/// The shape that an entry of a shape's file is for.
MoeGemmShape shape_of(const TunedTile& tile, MoeGemmShape s) {
  const TileShape file = file_shape(s);
  s.tokens = tile.tokens;
  s.down = tile.op == MoeDown::kOp;
  s.k = s.down ? file.inter : file.hidden;
  s.n = s.down ? file.hidden : 2 * file.inter;
  s.block = tile.config.block;
  return s;
}

/// Which of a kernel's knobs, or which value of one, does not exist.
std::string fault_of_knobs(const TileKernel& kernel, const Knobs& knobs) {
  std::vector<std::string> names, combinations;
  for (const auto& [name, value] : kernel.compiled.front()) names.push_back(name);
  for (const auto& [name, value] : knobs) {
    if (std::ranges::count(names, name) > 0) continue;
    return fmt::format("{} = {} is no key of kernel {}; it has kernel, block, us{}{}", name, value,
                       kernel.name, names.empty() ? "" : ", ", fmt::join(names, ", "));
  }
  for (const std::string& name : names) {
    if (!knobs.contains(name)) return fmt::format("lacks '{}', a key of {}", name, kernel.name);
  }
  if (is_compiled(kernel, knobs)) return {};
  const TileConfig asked = {kernel.name, 0, knobs};
  for (const Knobs& one : kernel.compiled) {
    combinations.push_back(TileConfig{kernel.name, 0, one}.variant());
  }
  return fmt::format("{} is not compiled; there are {}", asked.variant(),
                     fmt::join(combinations, ", "));
}

/// The shape by which tiles are chosen: of a rank, what it has at even loads.
MoeGemmShape even_shape(MoeGemmShape shape, const Case& c) {
  const Case even = even_share(c);
  if (even.params == c.params) return shape;
  shape.topk = std::stoi(even.get("topk"));
  shape.tokens = std::stoi(even.get("tokens"));
  return shape;
}

/// What the shape's files say; no kernel where they say nothing.
TileChoice tuned_choice(const MoeGemmShape& shape, const Case& c, const DeviceFacts& device) {
  const MoeGemmShape even = even_shape(shape, c);
  const TunedTile* tile =
      tuned_entry({device.klass, file_shape(even).name(), routing_of(c)}, op_of(shape), even.tokens,
                  [&](const TunedTile& one) {
                    const std::string fault = fault_of(one, even, device.backend);
                    if (!fault.empty())
                      usage_error("{} {}; correct it or tune again", one.where, fault);
                  });
  if (!tile) return {};
  TileChoice choice;
  choice.kernel = find_kernel(device.backend, tile->config.kernel);
  choice.config = tile->config;
  choice.path = fmt::format("tuned: {} for {} tokens", tile->config.text(), tile->tokens);
  return choice;
}

/// The same choice where the kernel takes the shape, else none.
TileChoice where_supported(TileChoice choice, MoeGemmShape shape) {
  shape.block = choice.config.block;
  choice.why = why_not(*choice.kernel, shape, choice.config.knobs);
  if (!choice.why.empty()) choice.kernel = nullptr;
  return choice;
}

constexpr const char* kTunedBlock = "tuned";
constexpr int kTileBlocks[] = {16, 32, 64, 128};

/// Rows that every expert gets, as one drawing of the routing has it: of so many tokens at most,
/// the counts of more being in proportion.
std::vector<double> drawn_rows(const MoeGemmShape& s, const Case& c) {
  constexpr int kMostTokens = 2048;
  constexpr uint64_t kSeed = 1;
  const int tokens = std::min(s.tokens, kMostTokens);
  ExpertRank rank = ExpertRank::of(c);
  const auto ids = routed_experts(routing_of(c), {tokens, rank.experts, s.topk}, kSeed);
  rank.find(ids);
  std::vector<double> rows(s.experts);
  for (const int32_t expert : rank.own(ids)) {
    if (expert >= 0) rows[expert] += static_cast<double>(s.tokens) / tokens;
  }
  return rows;
}

/// What a block's pass over its expert's weights costs beside those of other blocks, fitted to what
/// `moegate tune` measured: usual_block().
double pass_cost(const MoeGemmShape& s, int block) {
  if (!s.scaled()) return 1 + block / 600.0;
  // What prefill's tile costs hides behind the products of a second slice of K.
  if (block == 128) return s.down && s.k_groups() == 1 ? 1.08 : 1.025;
  return block == 64 ? 1.03 : block == 32 ? 1.01 : 1;
}

}  // namespace

TileRegistration::TileRegistration(TileKernel kernel, const char* file) {
  const TileKernel& entry = table().emplace_back(std::move(kernel));
  for (const Knobs& knobs : entry.compiled) {
    register_tile<MoeGateUp>(&entry, knobs, file);
    register_tile<MoeDown>(&entry, knobs, file);
  }
}

std::string tile_unsupported(const MoeGemmShape& s, bool any_scales, bool any_bias, bool int8) {
  if (s.dtype == DType::i8 && !int8) return "does not multiply int8";
  if (s.biased && !any_bias) return "adds no bias";
  if (s.scaled_once() && !any_scales) return "knows scale factors of blocks only";
  if (s.block != 16 && s.block != 32 && s.block != 64 && s.block != 128) {
    return fmt::format("block = {} is not 16, 32, 64 or 128", s.block);
  }
  if (s.n % 8 != 0) return fmt::format("N = {} is not a multiple of 8", s.n);
  return {};
}

std::string fault_of(const TunedTile& tile, const MoeGemmShape& shape, Backend backend) {
  if (tile.op != MoeGateUp::kOp && tile.op != MoeDown::kOp) {
    return fmt::format("{} is no operator with tile configurations; there are {} and {}", tile.op,
                       MoeGateUp::kOp, MoeDown::kOp);
  }
  const TileConfig& config = tile.config;
  if (config.block == 0) return "lacks 'block'; give the rows of a block";
  const TileKernel* kernel = find_kernel(backend, config.kernel);
  if (!kernel) {
    std::vector<std::string> known;
    for (const TileKernel& k : table()) {
      if (k.backend == backend) known.push_back(k.name);
    }
    std::ranges::sort(known);
    return fmt::format("kernel = {} is no kernel with tile configurations on {}; there are {}",
                       config.kernel, name_of(backend), fmt::join(known, ", "));
  }
  std::string fault = fault_of_knobs(*kernel, config.knobs);
  if (fault.empty()) fault = why_not(*kernel, shape_of(tile, shape), config.knobs);
  return fault;
}

TileChoice usual_tile(const std::string& kernel, const MoeGemmShape& shape,
                      const DeviceFacts& device) {
  TileChoice choice;
  choice.kernel = find_kernel(device.backend, kernel);
  choice.config = {kernel, shape.block, {}};
  if (!choice.kernel) {
    choice.why = fmt::format("{} is no kernel with tile configurations on {}", kernel,
                             name_of(device.backend));
    return choice;
  }
  choice.config.knobs =
      choice.kernel->usual ? choice.kernel->usual(shape, device) : choice.kernel->compiled.front();
  choice.path = fmt::format("default: {}", choice.config.text());
  return where_supported(std::move(choice), shape);
}

int usual_block(const MoeGemmShape& shape, std::span<const double> rows_of_experts) {
  const auto cost = [&](int block) {
    double blocks = 0;
    for (const double rows : rows_of_experts) blocks += std::ceil(rows / block);
    return blocks * pass_cost(shape, block);
  };
  return std::ranges::min(kTileBlocks, {}, cost);
}

TileChoice default_tile(const MoeGemmShape& shape, const DeviceFacts& device) {
  // With less than a row for each expert, tiles are too few to pay for what keeps rows resident.
  const bool once = shape.scaled_once();
  const bool resident = !shape.biased && shape.scaled() && !once && shape.down &&
                        shape.k_groups() <= 4 && shape.block <= 64 && shape.rows() >= shape.experts;
  const char* usual = resident                             ? "resident_rows"
                      : shape.biased                       ? "swap_ab"
                      : shape.block < (once ? 128 : 64)    ? "swap_ab"
                      : shape.block > 64 && shape.scaled() ? "prefill"
                                                           : "wide_tiles";
  TileChoice choice = usual_tile(usual, shape, device);
  return choice.kernel ? choice : usual_tile("gather", shape, device);
}

TileChoice best_tile(const MoeGemmShape& shape, const Case& c, const DeviceFacts& device) {
  TileChoice tuned = tuned_choice(shape, c, device);
  if (tuned.kernel) return where_supported(std::move(tuned), shape);
  MoeGemmShape usual = even_shape(shape, c);
  usual.block = usual_block(shape, drawn_rows(shape, c));
  return default_tile(usual, device);
}

TileChoice tile_of(const MoeGemmShape& shape, const Case& c, const DeviceFacts& device) {
  TileChoice tuned = tuned_choice(shape, c, device);
  if (!tuned.kernel) return default_tile(even_shape(shape, c), device);
  if (tuned.config.block == shape.block) {
    return where_supported(std::move(tuned), shape);
  }
  tuned.kernel = nullptr;
  tuned.why =
      fmt::format("{}, the case's block is {}; ask for block = tuned", tuned.path, shape.block);
  return tuned;
}

Case without_tuned_block(Case c) {
  const std::string& block = c.get("block");
  if (block == kTunedBlock || block == kShippedBlock) c.params["block"] = "0";
  return c;
}

namespace {

/// What variant `tuned` can be asked: it takes block and kernel where the block is free.
template <class P>
Chooser tuned_chooser(Backend backend) {
  const auto shape_of = [](const Case& c) { return P::shape_of(without_tuned_block(c)); };
  const auto choose = [shape_of](const Case& c, const DeviceFacts& device) -> Choice {
    const TileChoice tile = best_tile(shape_of(c), c, device);
    if (!tile.kernel) usage_error("{}: {}", c.key(), tile.why);
    const bool by_file = tile.path.starts_with("tuned: ");
    return {.runs = {tile.config.variant(), {{"block", std::to_string(tile.config.block)}}},
            .source = by_file ? "file" : "default",
            .entry = by_file ? tile.path.substr(tile.path.find(" for ") + 1) : "",
            .path = tile.path};
  };
  const auto candidates = [shape_of](const Case& c, const DeviceFacts& device) {
    std::vector<Configuration> all;
    MoeGemmShape shape = shape_of(c);
    for (const int block : kTileBlocks) {
      shape.block = block;
      for (const TileKernel& kernel : table()) {
        if (kernel.backend != device.backend) continue;
        for (const Knobs& knobs : kernel.compiled) {
          if (!why_not(kernel, shape, knobs).empty()) continue;
          all.push_back({TileConfig{kernel.name, block, knobs}.variant(),
                         {{"block", std::to_string(block)}}});
        }
      }
    }
    return all;
  };
  return {.op = P::kOp,
          .variant = "tuned",
          .backend = backend,
          .choose = choose,
          .candidates = candidates};
}

class TunedChoosers {
 public:
  TunedChoosers() {
    for (const Backend backend : {Backend::host, Backend::cuda}) {
      register_chooser(tuned_chooser<MoeGateUp>(backend));
      register_chooser(tuned_chooser<MoeDown>(backend));
    }
  }
};
const TunedChoosers tuned_choosers;

}  // namespace

void resolve_tuned_block(Case& c, const DeviceFacts& device,
                         MoeGemmShape (*shape_of)(const Case&)) {
  if (c.get("block") == kShippedBlock) {
    const bool is_layer = c.op != MoeGateUp::kOp && c.op != MoeDown::kOp;
    const std::vector<std::string> both = {MoeGateUp::kOp, MoeDown::kOp};
    c.params["block"] = shipped_block(c, is_layer ? std::vector{c.op} : both, device);
  }
  if (c.get("block") != kTunedBlock) return;
  const MoeGemmShape shape = shape_of(without_tuned_block(c));
  c.params["block"] = std::to_string(best_tile(shape, c, device).config.block);
}

}  // namespace moegate::moe_gemm::tiles
