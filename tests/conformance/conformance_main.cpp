// SPDX-License-Identifier: Apache-2.0
// Runs ONNX's conformance cases and holds the result against the list of cases that may be
// unsupported: quench_conformance [--reference] [--verbose] [--device=cuda] [DATA]
// [UNSUPPORTED.txt].
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

#include "base/format.h"
#include "conformance/cases.h"
#include "quench/error.h"

namespace {

using quench::test::Case;
using quench::test::Outcome;

constexpr int kMinPassed = 750;
constexpr int kSkipped = 77;

struct Arguments {
  bool reference = false;
  bool verbose = false;
  std::string device = "cpu";
  std::vector<std::string> paths;
};

struct Tally {
  int passed = 0;
  int unsupported = 0;
  int wrong = 0;
  bool list_broken = false;
};

Arguments parse(int argc, char** argv) {
  Arguments result;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--reference") {
      result.reference = true;
    } else if (argument == "--verbose") {
      result.verbose = true;
    } else if (argument.starts_with("--device=")) {
      result.device = argument.substr(argument.find('=') + 1);
    } else {
      result.paths.push_back(argument);
    }
  }
  return result;
}

/// "case: reason" lines; lines that start with # are comments.
std::set<std::string> read_list(const std::string& path) {
  std::set<std::string> names;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line[0] != '#') names.insert(line.substr(0, line.find(':')));
  }
  return names;
}

std::string last_line(const std::string& text) {
  const auto at = text.rfind("\n  ");
  return at == std::string::npos ? text : text.substr(at + 3);
}

void judge(const Case& which, const Outcome& outcome, const std::set<std::string>& allowed,
           bool verbose, Tally& tally) {
  const bool listed = allowed.contains(which.name);
  switch (outcome.kind) {
    case Outcome::Kind::Passed:
      ++tally.passed;
      if (!listed) return;
      fmt::print("{}: passes now; take it off the list of unsupported cases\n", which.name);
      tally.list_broken = true;
      return;
    case Outcome::Kind::Wrong:
      ++tally.wrong;
      fmt::print("{}: wrong: {}\n", which.name, outcome.reason);
      return;
    case Outcome::Kind::Unsupported:
      ++tally.unsupported;
      if (verbose || !listed) fmt::print("{}: {}\n", which.name, last_line(outcome.reason));
      if (!listed) tally.list_broken = true;
  }
}

/// Why nothing can run on the context's device; "" where it can.
std::string refusal_of_device(const std::vector<Case>& cases, const quench::Context& context) {
  try {
    const quench::Session session(quench::test::load_case(cases.at(0)), {}, context);
    return "";
  } catch (const quench::Error& error) {
    return error.what();
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  const std::string data =
      !arguments.paths.empty() ? arguments.paths[0] : "/usr/share/libonnx-testdata/data";
  const std::string list = arguments.paths.size() > 1 ? arguments.paths[1]
                                                      : QUENCH_TEST_SOURCE
                               "/tests/conformance/unsupported.txt";
  const quench::SessionOptions options{.reference = arguments.reference};
  quench::Context context{.threads = 1};
  context.device = arguments.device;
  Tally tally;
  try {
    const std::set<std::string> allowed = read_list(list);
    const std::vector<Case> cases = quench::test::list_cases(data);
    if (context.device != "cpu") {
      if (const std::string why = refusal_of_device(cases, context); !why.empty()) {
        fmt::print("skipped: {}\n", why);
        return kSkipped;
      }
    }
    for (const Case& which : cases) {
      judge(which, quench::test::run_case(which, options, context), allowed, arguments.verbose,
            tally);
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "cannot run the cases: {}\n", error.what());
    return 1;
  }
  if (tally.list_broken) {
    fmt::print("the list of unsupported cases and the result differ (it may only shrink): {}\n",
               list);
  }
  fmt::print("conformance: {} passed, {} unsupported, {} wrong\n", tally.passed, tally.unsupported,
             tally.wrong);
  return tally.wrong == 0 && tally.passed >= kMinPassed && !tally.list_broken ? 0 : 1;
}
