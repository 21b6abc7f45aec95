#include "harness/replay_rule.h"
#include "harness/stats.h"
namespace moegate {
std::vector<Judgement> judge_pairs(std::span<const PairedQuestion> family, const Limits& limits) {
  std::vector<Question> qs;
  for (auto& q : family) { Question x; x.head.n = x.base.n = (int)q.log_ratios.size(); if (x.head.n) {x.head.mean_log = mean(q.log_ratios); x.head.sd_log = stddev(q.log_ratios)/1.414; x.base.sd_log = x.head.sd_log;} x.tick = q.tick; qs.push_back(x); }
  return judge_family(qs, limits);
}
bool needs_replay(const Judgement& j) { return j.outcome != Outcome::pass; }
std::vector<Judgement> judge_replay(std::span<const PairedQuestion> family, const Limits& limits, const ReplayPlan& plan) {
  Limits l = limits; if (plan.extra_rounds > 0) l.alpha /= 2; return judge_pairs(family, l); }
std::vector<Judgement> judge_extension(std::span<const PairedQuestion> family, const Limits& limits, const ReplayPlan&) {
  Limits l = limits; l.alpha /= 2; return judge_pairs(family, l); }
}
