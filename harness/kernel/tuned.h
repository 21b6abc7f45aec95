// SPDX-License-Identifier: Apache-2.0
// Variant `tuned` of the operators that state a Tuning: it launches the variant that `moegate tune`
// found fastest for the shape and the nearest token count on this class of device, else the first
// of Tuning::usual(), in the operator's file, that takes the case. The path of a row says which.
#pragma once

#include <string>

#include "harness/kernel/registry.h"

namespace moegate {

/// Adds what OpEntry::tuning asks for, where it is not there yet: variant `tuned`, its candidates
/// as variants "tile/NAME", and its Chooser.
void add_tuned(Registry& registry);

/// Names the file of a case's tuned entries: "dense_fc2,E=256,topk=8,H=7168,N=256,k_tile=128", and
/// of the grouped GEMMs, which share one, TileShape::name(). Throws Error(usage) for a case that
/// lacks a parameter.
std::string tuned_name(const Case& c);
/// The token count of its entry: of a rank that of its even_share().
int tuned_tokens(const Case& c);

/// Whether a variant launches others of its operator, so that their code is its own.
bool launches_others(const Variant& variant);

}  // namespace moegate
