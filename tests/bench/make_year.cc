// SPDX-License-Identifier: Apache-2.0
// make_year OUT.sqlite [CASES [NIGHTS [SAMPLED_NIGHTS]]]: see year_store.h
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "tests/bench/year_store.h"

int main(int argc, char** argv) {
  if (argc < 2 || argc > 5 || std::filesystem::exists(argv[1])) {
    fmt::print(stderr, "usage: make_year NEW.sqlite [CASES [NIGHTS [SAMPLED_NIGHTS]]]\n");
    return 2;
  }
  moegate::test::YearOptions options;
  if (argc > 2) options.cases = std::atoi(argv[2]);
  if (argc > 3) options.nights = std::atoi(argv[3]);
  options.sampled_nights = argc > 4 ? std::atoi(argv[4]) : options.nights;
  const auto begin = std::chrono::steady_clock::now();
  try {
    make_year(argv[1], options);
  } catch (const std::exception& e) {
    fmt::print(stderr, "make_year: {}\n", e.what());
    return 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  fmt::print("{} cases x {} variants x {} processes x {} nights: {:.2f} GB in {:.0f} s\n",
             options.cases, options.variants, options.processes, options.nights,
             static_cast<double>(std::filesystem::file_size(argv[1])) / 1e9, took.count());
  return 0;
}
