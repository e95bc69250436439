// SPDX-License-Identifier: Apache-2.0
// What quench list shows: tables for people, programs and documents.
#pragma once

#include <string>
#include <vector>

#include "cli/json.h"

namespace quench::cli {

/// A list as a table and as JSON: the first column is the name.
struct Listing {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  /// A heading for each row, where documents have a table under each; else empty.
  std::vector<std::string> headings = {};
};

/// Tables in Markdown, with what is typed between backticks.
std::string markdown(const Listing& listing);

/// Every option, and what another tool ("converter_lite", "paddleslim") calls it.
Listing list_options();
Listing list_options_of(const std::string& tool);
/// All that is known of every option, those that only files set too.
Json options_json();

/// The names that quench list KIND shows.
std::vector<std::string> listed_names(const std::string& kind);

}  // namespace quench::cli
