// SPDX-License-Identifier: Apache-2.0
// Composes error texts.
#include "quench/error.h"

#include <utility>

namespace quench {

Error::Error(ErrorKind kind, std::string sentence) : kind_(kind), sentence_(std::move(sentence)) {
  compose();
}

Error& Error::in(std::string frame) {
  frames_.push_back(std::move(frame));
  compose();
  return *this;
}

void Error::compose() {
  text_.clear();
  for (auto frame = frames_.rbegin(); frame != frames_.rend(); ++frame) {
    text_ += *frame + ": ";
  }
  text_ += sentence_;
}

const char* name_of(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::Usage:
      return "usage";
    case ErrorKind::BadModel:
      return "bad_model";
    case ErrorKind::BadData:
      return "bad_data";
    case ErrorKind::BadConfig:
      return "bad_config";
    case ErrorKind::Unsupported:
      return "unsupported";
    case ErrorKind::Io:
      return "io";
    case ErrorKind::Internal:
      return "internal";
    case ErrorKind::Cancelled:
      return "cancelled";
  }
  return "internal";
}

}  // namespace quench
