// SPDX-License-Identifier: Apache-2.0
// Why a row became slower or faster: two profiles of it -> one sentence, with the numbers behind
// it. Pure functions over stored values; knows no device.
#pragma once

#include <string>
#include <vector>

#include "harness/values/row_profile.h"

namespace moegate {

/// In the order in which they are looked for: the first that applies is the sentence.
enum class CauseKind {
  launches,   // another path, set of kernels, or shape of one
  resources,  // local memory, blocks per multiprocessor
  work,       // bytes, instructions, atomics
  rate,       // the same counted work in more cycles: which pipe fell, which stall rose
  gaps,       // between launches
  clock,
  nothing,  // all that was looked at is alike
  unknown   // too little was looked at, or what differs explains nothing
};
const char* name_of(CauseKind kind);

struct CauseNumber {
  std::string name, unit;  // "dram__bytes_read.sum", "bytes"; of one kernel: "registers [gather]"
  double base = 0, head = 0;
};

struct Cause {
  CauseKind kind = CauseKind::unknown;
  std::string sentence;              // "DRAM bytes read +12 % (16.8 -> 18.8 MB)"
  std::vector<std::string> also;     // what further kinds found, in their order
  std::vector<CauseNumber> numbers;  // all that both sides state, those of the sentence first
};

/// Effects of less have no direction: what differs is named either way.
constexpr double kEvenEffect = 0.005;
/// The least share of the effect that is a cause: 1 % more bytes do not make 20 % more time.
constexpr double kShareOfEffect = 0.25;

/// What is to be explained. It says which direction of a difference can be a cause, and how large
/// one has to be.
struct Effect {
  double share = 0;    // so much slower is the head; below 0: faster
  bool equal = false;  // the verdict takes the times for equal: whatever the share is, it is noise
};

Cause explain(const RowProfile& base, const RowProfile& head, const Effect& effect);

}  // namespace moegate
