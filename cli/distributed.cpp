// SPDX-License-Identifier: Apache-2.0
// What a process of several does at its beginning and its end.
#include "cli/distributed.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cli/help_flags.h"

namespace quench::cli {
namespace {

/// Kept until the program ends, also where a verb fails.
std::shared_ptr<Ranks>& joined() {
  static std::shared_ptr<Ranks> ranks;
  return ranks;
}

bool& warns_at_end() {
  static bool warns = false;
  return warns;
}

}  // namespace

LaunchedRank launched_by_environment() {
  return launched_rank([](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);
    if (value == nullptr) return std::nullopt;
    return value;
  });
}

namespace {

/// A process has one command line.
bool& tensor_parallel_flag() {
  static bool given = false;
  return given;
}

}  // namespace

CLI::Option* add_tensor_parallel_flag(CLI::App& app) {
  return for_experts(
             app.add_flag("--tensor-parallel", tensor_parallel_flag(),
                          "Each process has one part of a model whose layers are split over them; "
                          "{rank} in a path is its number"))
      ->needs(app.get_option("--distributed"));
}

bool tensor_parallel() { return tensor_parallel_flag(); }

std::vector<std::string> with_rank(std::vector<std::string> words) {
  constexpr std::string_view kPlace = "{rank}";
  const auto has = [&](const char* flag) {
    return std::find(words.begin(), words.end(), flag) != words.end();
  };
  // What is launched gets its rank where it runs.
  const bool launches = !words.empty() && words.front() == "launch";
  if (launches || !has("--tensor-parallel") || !has("--distributed")) return words;
  const std::string rank = std::to_string(launched_by_environment().ranks.rank);
  for (std::string& word : words) {
    for (auto at = word.find(kPlace); at != std::string::npos; at = word.find(kPlace, at)) {
      word.replace(at, kPlace.size(), rank);
    }
  }
  return words;
}

std::shared_ptr<Ranks> join_process(const RankOptions& options, const Context& context,
                                    bool quiet) {
  joined() = join_ranks(options, context);
  warns_at_end() = options.rank == 0 && !quiet;
  if (options.rank > 0) (void)std::freopen("/dev/null", "w", stdout);
  return joined();
}

Ranks* process_ranks() noexcept { return joined().get(); }

void leave_ranks() {
  if (!joined()) return;
  joined()->leave();
  if (!warns_at_end()) return;
  for (const int rank : joined()->missing()) {
    std::fprintf(stderr, "quench: warning: rank %d of %d never came: others did its share\n", rank,
                 joined()->size());
  }
}

}  // namespace quench::cli
