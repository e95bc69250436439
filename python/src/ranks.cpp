// SPDX-License-Identifier: Apache-2.0
// A process joins others once, and leaves them when Python ends.
#include "python/src/ranks.h"

#include <fmt/format.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "quench/launched.h"
#include "quench/nearest.h"

namespace quench::python {
namespace {

namespace py = pybind11;

/// The ranks of this process, which keep their place for as long as it runs.
struct Joined {
  RankOptions options;
  std::shared_ptr<Ranks> ranks;
  bool failed = false;
};

Joined& joined() {
  static Joined place;
  return place;
}

template <typename T>
std::function<void(const py::handle&)> into(T& to) {
  return [&to](const py::handle& value) { to = py::cast<T>(value); };
}

void read(const py::dict& given, LaunchedRank& place) {
  RankOptions& ranks = place.ranks;
  const std::map<std::string, std::function<void(const py::handle&)>> keys = {
      {"rank", into(ranks.rank)},
      {"size", into(ranks.size)},
      {"address", into(ranks.address)},
      {"port", into(ranks.port)},
      {"interface", into(ranks.interface)},
      {"timeout", into(ranks.timeout_seconds)},
      {"elastic", into(ranks.elastic)},
      {"tensor_parallel", into(ranks.tensor_parallel)},
      {"local_rank", into(place.local_rank)},
      {"local_size", into(place.local_size)}};
  for (const auto& [key, value] : given) {
    const std::string name = py::str(key);
    const auto found = keys.find(name);
    if (found == keys.end()) {
      std::vector<std::string> names;
      for (const auto& [known, read_one] : keys) names.push_back(known);
      throw Error(ErrorKind::Usage, fmt::format("distributed has no '{}'{}; it has {}", name,
                                                did_you_mean(name, names), fmt::join(names, ", ")));
    }
    try {
      found->second(value);
    } catch (const py::cast_error&) {
      throw Error(ErrorKind::Usage, fmt::format("{} of distributed cannot be {}", name,
                                                std::string(py::repr(value))));
    }
  }
  if (ranks.size < 1 || ranks.rank < 0 || ranks.rank >= ranks.size) {
    throw Error(ErrorKind::Usage, fmt::format("rank {} of {} cannot be: ranks are counted from 0",
                                              ranks.rank, ranks.size));
  }
}

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

LaunchedRank place_of(const py::object& distributed) {
  if (py::isinstance<py::bool_>(distributed)) return launched_rank(variable);
  if (!py::isinstance<py::dict>(distributed)) {
    throw Error(ErrorKind::Usage, fmt::format("distributed is True, False or a dict, not {}",
                                              std::string(py::repr(distributed))));
  }
  const py::dict given(distributed);
  const bool whole = given.contains("rank") && given.contains("size");
  LaunchedRank place = whole ? LaunchedRank() : launched_rank(variable);
  read(given, place);
  return place;
}

bool same(const RankOptions& a, const RankOptions& b) {
  return a.rank == b.rank && a.size == b.size && a.address == b.address && a.port == b.port &&
         a.elastic == b.elastic && a.tensor_parallel == b.tensor_parallel;
}

/// Rank 0 holds what the others read: it goes last.
void leave_at_exit() {
  const auto leave = [] {
    const Joined place = std::exchange(joined(), {});
    if (!place.ranks || place.failed) return;
    try {
      const py::gil_scoped_release release;
      place.ranks->leave();
    } catch (const Error&) {  // another process has failed meanwhile, and says so itself
    }
  };
  py::module_::import("atexit").attr("register")(py::cpp_function(leave));
}

}  // namespace

void join(const py::object& distributed, Context& context) {
  if (distributed.is_none() || distributed.is(py::bool_(false))) return;
  const LaunchedRank place = place_of(distributed);
  take_place(place, context);
  if (place.ranks.rank > 0) {  // one speaks for all
    context.progress = {};
    context.log = {};
  }
  Joined& known = joined();
  if (known.ranks && !same(known.options, place.ranks)) {
    throw Error(ErrorKind::Usage,
                fmt::format("this process is rank {} of {} at {}:{} already, and keeps that place; "
                            "start others for another job",
                            known.options.rank, known.options.size, known.options.address,
                            known.options.port));
  }
  if (known.failed) {
    throw Error(ErrorKind::Usage,
                "the processes that share this job have failed together; start them anew");
  }
  if (!known.ranks) {
    {
      const py::gil_scoped_release release;
      // libtorch logs what it tries, before it throws.
      (void)::setenv("TORCH_CPP_LOG_LEVEL", "FATAL", 0);
      known = {.options = place.ranks, .ranks = join_ranks(place.ranks, context), .failed = false};
    }
    leave_at_exit();
  }
  context.ranks = known.ranks;
}

void wait_for_files(const Context& context) {
  if (context.ranks) context.ranks->agree("the end of the call", "");
}

void tell_ranks(const Context& context, const Error& error) {
  if (!context.ranks || joined().failed) return;
  joined().failed = true;
  (void)context.ranks->fail(error.kind(), error.what());
}

}  // namespace quench::python
