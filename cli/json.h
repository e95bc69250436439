// SPDX-License-Identifier: Apache-2.0
// JSON on stdout.
#pragma once

#include <nlohmann/json.hpp>

#include "quench/evaluate.h"
#include "quench/files.h"

namespace quench::cli {

using Json = nlohmann::ordered_json;

/// Prints one object and a newline. NaN becomes null.
void print_json(const Json& json);

/// Writes one object to a file when `outputs` commits.
void write_json(const Json& json, const std::string& path, Outputs& outputs);

/// A score as JSON, which has no infinity: +-1e308 compares as one would.
Json number(double value);
Json to_json(const Value& value);
Json to_json(const OutputScores& scores);
Json to_json(const BenchResult& result);

}  // namespace quench::cli
