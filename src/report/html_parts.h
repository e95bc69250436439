// SPDX-License-Identifier: Apache-2.0
// The files that a page is made of, as the build found them.
#pragma once

#include <string_view>

namespace quench::report {

std::string_view page_html();
std::string_view page_css();
std::string_view page_js();
std::string_view graph_js();
/// Chart.js, MIT licence, from Debian's libjs-chart.js.
std::string_view chart_js();

}  // namespace quench::report
