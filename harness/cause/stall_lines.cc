// SPDX-License-Identifier: Apache-2.0
#include "harness/cause/stall_lines.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <boost/algorithm/string/erase.hpp>
#include <cmath>
#include <deque>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace moegate {
namespace {

constexpr std::string_view kIssued = "selected";  // a warp that did not wait

/// Of one kernel of one side: an instruction with how often warps waited there, by reason.
struct HotInstruction {
  int64_t offset = 0;
  std::string text, line, shape;
  std::map<std::string, double> shares;
};

struct HotKernel {
  std::string name;
  std::vector<HotInstruction> code;  // by offset
};

/// Of all its processes, where it is several in one.
double samples_of(const Result& r) {
  double counted = 0, stored = 0;
  for (const Metric& m : r.metrics) {
    if (m.name == "pc_samples" && m.ordinal == Metric::kWholeLaunch) counted += m.value;
  }
  for (const StallRow& row : r.stalls) stored += static_cast<double>(row.samples);
  return std::max({counted, stored, 1.0});
}

std::vector<HotKernel> hot_kernels(const Result& r) {
  const double all = samples_of(r);
  std::map<int, std::map<int64_t, HotInstruction>> found;  // by ordinal, then offset
  for (const StallRow& row : r.stalls) {
    HotInstruction& hot = found[row.ordinal][row.offset];
    hot.offset = row.offset;
    hot.text = row.instruction;
    hot.line = row.line;
    hot.shape = row.instruction.empty() ? fmt::format("+{:#x}", row.offset)
                                        : instruction_shape(row.instruction);
    hot.shares[row.reason] += static_cast<double>(row.samples) / all;
  }
  std::vector<HotKernel> kernels;
  for (auto& [ordinal, code] : found) {
    const auto at = static_cast<size_t>(ordinal);
    HotKernel& kernel = kernels.emplace_back();
    kernel.name = ordinal >= 0 && at < r.kernels.size() ? r.kernels[at].name
                                                        : fmt::format("kernel {}", ordinal + 1);
    for (auto& [offset, hot] : code) kernel.code.push_back(std::move(hot));
  }
  return kernels;
}

/// What matches in base and head; null: the side has none.
template <class T>
using Pairs = std::vector<std::pair<const T*, const T*>>;

/// Of the same name; then what is left, in order.
Pairs<HotKernel> matching_kernels(const std::vector<HotKernel>& base,
                                  const std::vector<HotKernel>& head) {
  Pairs<HotKernel> pairs;
  std::deque<const HotKernel*> left;  // of the base
  for (const HotKernel& kernel : base) left.push_back(&kernel);
  for (const HotKernel& now : head) {
    const auto same = std::ranges::find(left, now.name, &HotKernel::name);
    pairs.emplace_back(same == left.end() ? nullptr : *same, &now);
    if (same != left.end()) left.erase(same);
  }
  for (auto& [was, now] : pairs) {
    if (was || left.empty()) continue;
    was = left.front();
    left.pop_front();
  }
  for (const HotKernel* kernel : left) pairs.emplace_back(kernel, nullptr);
  return pairs;
}

/// By the longest common subsequence of shapes.
Pairs<HotInstruction> matching_code(const std::vector<HotInstruction>& base,
                                    const std::vector<HotInstruction>& head) {
  const size_t n = base.size(), m = head.size();
  std::vector<std::vector<int>> longest(n + 1, std::vector<int>(m + 1, 0));  // from i, j on
  for (size_t i = n; i-- > 0;) {
    for (size_t j = m; j-- > 0;) {
      longest[i][j] = base[i].shape == head[j].shape
                          ? 1 + longest[i + 1][j + 1]
                          : std::max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  Pairs<HotInstruction> pairs;
  size_t i = 0, j = 0;
  while (i < n || j < m) {
    if (i < n && j < m && base[i].shape == head[j].shape) {
      pairs.emplace_back(&base[i++], &head[j++]);
    } else if (j == m || (i < n && longest[i + 1][j] >= longest[i][j + 1])) {
      pairs.emplace_back(&base[i++], nullptr);
    } else {
      pairs.emplace_back(nullptr, &head[j++]);
    }
  }
  return pairs;
}

double share_of(const HotInstruction* hot, const std::string& reason) {
  if (!hot) return 0;
  const auto found = hot->shares.find(reason);
  return found == hot->shares.end() ? 0 : found->second;
}

void add_lines(const std::string& kernel, const HotInstruction* base, const HotInstruction* head,
               std::vector<StallLine>& lines) {
  const HotInstruction& shown = head ? *head : *base;
  std::set<std::string> reasons;
  for (const HotInstruction* side : {base, head}) {
    if (!side) continue;
    for (const auto& [reason, share] : side->shares) reasons.insert(reason);
  }
  for (const std::string& reason : reasons) {
    if (reason == kIssued) continue;
    StallLine line{
        kernel, shown.text, shown.line, reason, share_of(base, reason), share_of(head, reason)};
    if (base) line.base_offset = base->offset;
    if (head) line.head_offset = head->offset;
    lines.push_back(std::move(line));
  }
}

}  // namespace

std::string instruction_shape(const std::string& instruction) {
  static const re2::RE2 target(R"((?s)(\b(?:BRA|BRX|JMP|JMX|CALL|BSSY|RET)\b.*?)\b0x\w*)");
  static const re2::RE2 label(R"(\.L_\w*)"), numbered(R"(\b(UR|UP|UB|R|P|B)\d+\b)");
  std::string shape = instruction;
  while (re2::RE2::Replace(&shape, target, R"(\1)")) continue;
  re2::RE2::GlobalReplace(&shape, label, ".L");
  re2::RE2::GlobalReplace(&shape, numbered, R"(\1)");
  boost::erase_all(shape, ".reuse");  // which operand is kept for the next instruction
  return shape;
}

std::vector<StallLine> align_stalls(const Result& base, const Result& head) {
  const std::vector<HotKernel> before = hot_kernels(base), after = hot_kernels(head);
  std::vector<StallLine> lines;
  const std::vector<HotInstruction> none;
  for (const auto& [b, h] : matching_kernels(before, after)) {
    for (const auto& [was, now] : matching_code(b ? b->code : none, h ? h->code : none)) {
      add_lines(h ? h->name : b->name, was, now, lines);
    }
  }
  std::ranges::stable_sort(lines, {}, [](const StallLine& l) {
    return std::pair(-std::abs(l.change()), -std::max(l.base_share, l.head_share));
  });
  return lines;
}

}  // namespace moegate
