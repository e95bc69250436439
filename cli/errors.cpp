// SPDX-License-Identifier: Apache-2.0
// How a failure becomes a sentence on stderr and an exit code.
#include "cli/errors.h"

#include <unistd.h>

#include <cstdio>
#include <new>

#include "cli/style.h"

namespace quench::cli {

ExitCode exit_code(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::Usage:
      return kUsage;
    case ErrorKind::BadModel:
    case ErrorKind::BadData:
    case ErrorKind::BadConfig:
    case ErrorKind::Io:
      return kBadInput;
    case ErrorKind::Unsupported:
      return kUnsupported;
    case ErrorKind::Internal:
      return kInternal;
    case ErrorKind::Cancelled:
      return kInterrupted;
  }
  return kInternal;
}

std::string printable(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    const bool control = (code < 0x20 && c != '\n') || code == 0x7f;
    result += control ? '?' : c;
  }
  return result;
}

int report_error(std::string_view sentence, ExitCode code) {
  const std::string text = printable(sentence);
  const std::string head = styled(STDERR_FILENO, Style::Error, "quench: error:");
  std::fprintf(stderr, "%s %s\n", head.c_str(), text.c_str());
  return code;
}

int report_current_exception() {
  try {
    throw;
  } catch (const Error& error) {
    // A stop that the user asked for needs no sentence.
    if (error.kind() == ErrorKind::Cancelled) return kInterrupted;
    return report_error(error.what(), exit_code(error.kind()));
  } catch (const std::bad_alloc&) {
    return report_error("there is not enough memory for this", kInternal);
  } catch (const std::exception& error) {
    return report_error(std::string("internal: ") + error.what(), kInternal);
  } catch (...) {
    return report_error("internal: something unknown was thrown", kInternal);
  }
}

}  // namespace quench::cli
