// SPDX-License-Identifier: Apache-2.0
// The devices that one --device names: the GPUs of a host may share a run.
#pragma once

#include <string>
#include <vector>

namespace moegate {

/// One by one: "cuda:0,1" and "cuda:0,cuda:1" are {"cuda:0", "cuda:1"}, "host" is {"host"}. Throws
/// Error(usage) for a list that names a GPU twice, or what is no numbered GPU. Whether they are
/// there is the workers' to say.
std::vector<std::string> devices_of(const std::string& spec);

/// As short as it can be typed: "cuda:0,1".
std::string device_list(const std::vector<std::string>& devices);

/// The number of "cuda:1", which devices_of() has read from a list.
int gpu_number(const std::string& device);

}  // namespace moegate
