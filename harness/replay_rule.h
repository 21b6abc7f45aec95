#pragma once
#include "harness/verdict.h"
namespace moegate {
struct ReplayPlan { int screen_rounds = 4, rounds = 12, extra_rounds = 24; };
bool needs_replay(const Judgement& j);
std::vector<Judgement> judge_replay(std::span<const PairedQuestion> family, const Limits& limits, const ReplayPlan& plan);
std::vector<Judgement> judge_extension(std::span<const PairedQuestion> family, const Limits& limits, const ReplayPlan& plan);
}
