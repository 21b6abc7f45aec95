// SPDX-License-Identifier: Apache-2.0
// What a program has, as a value: a worker serves the registry that it is given.
#pragma once

#include "harness/kernel/description.h"
#include "harness/kernel/kernel.h"

namespace moegate {

/// Operators and variants, sorted by name.
struct Registry {
  std::vector<OpEntry> ops;
  std::vector<Variant> variants;
};

/// Sorts by name. Throws Error(internal) for what does not fit together: a name given twice, a
/// variant of no operator, a part, yardstick or before that does not exist.
void sort_and_check(Registry& registry);

/// Whether there are variants beside those that a Python file adds to a compiled operator: not in a
/// build without the backend.
bool has_variants_of_its_own(const Registry& registry, const OpEntry& op, Backend backend);

/// All that registered themselves in this program. Throws as sort_and_check() does.
const Registry& own_registry();

/// As those of kernel.h, which are of own_registry().
const OpEntry& find_op(const std::string& name, const Registry& registry);
const Variant& find_variant(const std::string& op, Backend backend, const std::string& name,
                            const Registry& registry);
Case resolved(Case c, const DeviceFacts& device, const Registry& registry);

/// The operators without their code, as a backend knows them, sorted by name. One that states no
/// before has its yardstick, else its first variant, for one.
std::vector<OpDescription> describe_operators(const Registry& registry, Backend backend);
/// The variants for a backend without their code, sorted by operator and name.
std::vector<VariantDescription> describe_variants(const Registry& registry, Backend backend);

}  // namespace moegate
