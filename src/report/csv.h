// SPDX-License-Identifier: Apache-2.0
// Comma-separated values as RFC 4180 has them.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace quench::report {

/// A field; quoted where it holds a comma, a quote or a line break.
std::string csv_field(std::string_view text);
/// Fields and the line's end, CRLF.
std::string csv_line(const std::vector<std::string>& fields);

}  // namespace quench::report
