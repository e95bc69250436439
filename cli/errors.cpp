// SPDX-License-Identifier: Apache-2.0
// How a failure becomes a sentence on stderr and an exit code.
#include "cli/errors.h"

#include <unistd.h>

#include <cstdio>
#include <new>

#include "cli/distributed.h"
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

namespace {

/// Of several processes one speaks for all.
bool speaks() {
  const Ranks* ranks = process_ranks();
  return ranks == nullptr || ranks->rank() == 0;
}

/// Ends the job for the other processes, too; whether this one should say why.
bool tell_ranks(ErrorKind kind, std::string_view sentence) {
  Ranks* ranks = process_ranks();
  return ranks == nullptr || ranks->fail(kind, sentence);
}

int print_error(std::string_view sentence, ExitCode code) {
  const std::string text = printable(sentence);
  const std::string head = styled(STDERR_FILENO, Style::Error, "quench: error:");
  std::fprintf(stderr, "%s %s\n", head.c_str(), text.c_str());
  return code;
}

int fail_for_all(ErrorKind kind, const std::string& sentence) {
  const ExitCode code = exit_code(kind);
  return tell_ranks(kind, sentence) ? print_error(sentence, code) : code;
}

}  // namespace

int report_error(std::string_view sentence, ExitCode code) {
  return speaks() ? print_error(sentence, code) : code;
}

int report_current_exception() {
  try {
    throw;
  } catch (const Error& error) {
    // A stop that the user asked for needs no sentence.
    if (error.kind() != ErrorKind::Cancelled) return fail_for_all(error.kind(), error.what());
    (void)tell_ranks(error.kind(), error.what());
    return kInterrupted;
  } catch (const std::bad_alloc&) {
    return fail_for_all(ErrorKind::Internal, "there is not enough memory for this");
  } catch (const std::exception& error) {
    return fail_for_all(ErrorKind::Internal, std::string("internal: ") + error.what());
  } catch (...) {
    return fail_for_all(ErrorKind::Internal, "internal: something unknown was thrown");
  }
}

}  // namespace quench::cli
