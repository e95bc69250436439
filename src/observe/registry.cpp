// SPDX-License-Identifier: Apache-2.0
// The list of observers, and what they share.
#include <algorithm>
#include <cctype>

#include "base/format.h"
#include "base/nearest.h"
#include "observe/observer.h"

namespace quench {
namespace observe {

Range clip_at(const Statistic& statistic, const QuantSpec& spec, double threshold) {
  if (spec.symmetric) return {-threshold, threshold};
  return {std::clamp(statistic.min, -threshold, 0.0), std::clamp(statistic.max, 0.0, threshold)};
}

Range whole_range(const Statistic& statistic, const QuantSpec& spec) {
  return clip_at(statistic, spec, statistic.abs_max());
}

bool has_two_ends(const Statistic& statistic, const QuantSpec& spec) {
  return !spec.symmetric && statistic.min < 0 && statistic.max > 0;
}

}  // namespace observe

namespace {

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

std::span<const ObserverInfo> all_observers() noexcept {
  static const std::vector<ObserverInfo> list = {
#define QUENCH_OBSERVER(name) observe::name(),
#include "observe/observers.inc"
#undef QUENCH_OBSERVER
  };
  return list;
}

const ObserverInfo& find_observer(std::string_view name) {
  const std::string wanted = lower_case(name);
  std::vector<std::string> names;
  std::vector<std::string> known;
  for (const auto& info : all_observers()) {
    if (lower_case(info.name) == wanted || lower_case(info.alias) == wanted) return info;
    names.emplace_back(info.name);
    known.emplace_back(lower_case(info.name));
    known.emplace_back(lower_case(info.alias));
  }
  fail(ErrorKind::Usage, "there is no observer '{}'{}; there are {}", name,
       did_you_mean(wanted, known), fmt::join(names, ", "));
}

}  // namespace quench
