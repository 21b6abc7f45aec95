// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/interference.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace moegate {

Interference::Times Interference::read() {
  Times times;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    std::ifstream file(task.path() / "schedstat");
    uint64_t run = 0, wait = 0;
    if (file >> run >> wait) {
      times.run_ns += run;
      times.wait_ns += wait;
    }
  }
  std::ifstream stat("/proc/stat");
  std::string label;
  stat >> label;
  constexpr int kSteal = 7,
                kColumns = 8;  // user nice system idle iowait irq softirq steal (proc(5))
  for (int i = 0; i < kColumns; ++i) {
    uint64_t ticks = 0;
    stat >> ticks;
    times.all_ticks += ticks;
    if (i == kSteal) times.stolen = ticks;
  }
  return times;
}

double Interference::share() const {
  const Times now = read();
  const auto part = [](uint64_t some, uint64_t rest) {
    const double all = static_cast<double>(some) + static_cast<double>(rest);
    return all > 0 ? static_cast<double>(some) / all : 0;
  };
  const double waited = part(now.wait_ns - start_.wait_ns, now.run_ns - start_.run_ns);
  const uint64_t stolen = now.stolen - start_.stolen;
  return std::max(waited, part(stolen, now.all_ticks - start_.all_ticks - stolen));
}

}  // namespace moegate
