// SPDX-License-Identifier: Apache-2.0
// A row of the table of options: what is known of an option, and how it is set and stored.
#pragma once

#include <functional>

#include "options/json.h"

namespace quench::options {

/// What an option does with the options of a job.
struct Row {
  std::function<void(QuantizeOptions& options, const Words& words)> set;
  std::function<std::string(QuantizeOptions& options)> print;
  std::function<Json(QuantizeOptions& options)> encode;
  std::function<void(QuantizeOptions& options, const Json& json, const std::string& place)> decode;
};

/// The rows, each at the place that its option has in `all_options`.
const std::vector<Row>& all_rows();
/// The place of an option by its name, with '-' or '_'; nothing where there is none.
std::optional<std::size_t> find_row(std::string_view name);

/// "name:conv*:activation_observer=KL,bits=8": adds a rule to the configuration. Throws
/// Error(Usage) that shows what a rule looks like.
void add_rule(const std::string& text, QuantConfig& config);

}  // namespace quench::options
