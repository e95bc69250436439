// SPDX-License-Identifier: Apache-2.0
// The one exception type of the library: a kind, a sentence, and where it happened.
#pragma once

#include <exception>
#include <string>
#include <vector>

namespace quench {

/// What went wrong, in terms of who has to act.
enum class ErrorKind {
  Usage,        ///< an argument or option makes no sense
  BadModel,     ///< the model file is damaged or breaks its format's rules
  BadData,      ///< samples, labels or tensors do not fit
  BadConfig,    ///< a configuration file or recipe is wrong
  Unsupported,  ///< valid, but Quench cannot do it
  Io,           ///< the operating system refused a file
  Internal,     ///< our own mistake
  Cancelled,    ///< the caller asked to stop
};

/// Thrown by every public function that fails. Nothing else leaves the library.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string sentence);

  /// Adds an outer frame, such as "model.onnx" or "node 'conv1'"; returns *this for rethrowing.
  Error& in(std::string frame);

  ErrorKind kind() const noexcept { return kind_; }
  /// The frames, outermost first, then the sentence: "model.onnx: node 'conv1': ...".
  const char* what() const noexcept override { return text_.c_str(); }
  const std::string& sentence() const noexcept { return sentence_; }

 private:
  void compose();

  ErrorKind kind_;
  std::string sentence_;
  std::vector<std::string> frames_;
  std::string text_;
};

/// The name of a kind for logs and JSON, such as "bad_model".
const char* name_of(ErrorKind kind) noexcept;

}  // namespace quench
