// SPDX-License-Identifier: Apache-2.0
// Messages of the library, which name flags of quench quantize, in converter_lite's words.
#pragma once

#include <string>
#include <string_view>

namespace quench::cli {

/// The message with INI keys in place of flags that quench convert does not have; a flag for which
/// there is no key is said to be quench quantize's. What stands in backquotes is a command line and
/// stays as it is.
std::string in_converter_words(std::string_view message);

}  // namespace quench::cli
