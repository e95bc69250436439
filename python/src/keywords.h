// SPDX-License-Identifier: Apache-2.0
// Keyword arguments: those of the table of options, and those that a function has of its own.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "python/src/call.h"
#include "quench/option_table.h"
#include "quench/session.h"

namespace quench::python {

namespace py = pybind11;

/// What a call was given by keyword. Each function takes its own first; what is left must be in the
/// table of options.
class Keywords {
 public:
  explicit Keywords(const py::kwargs& given);

  /// None where it was not given.
  py::object take(const std::string& name);
  std::string take_text(const std::string& name, const std::string& by_default = "");
  template <typename T>
  T take_as(const std::string& name, const T& by_default) {
    const py::object value = take(name);
    if (value.is_none()) return by_default;
    try {
      return py::cast<T>(value);
    } catch (const py::cast_error&) {
      refuse(name, value);
    }
  }
  /// threads, seed, progress, device, precision and max_memory_mb.
  std::unique_ptr<Call> take_call();
  /// Likewise, with distributed.
  std::unique_ptr<Call> take_shared_call();
  /// A model to write; checked to be text.
  bool has(const std::string& name) const { return given_.contains(name.c_str()); }

  /// Lays the options that are left over `options`: nothing is left afterwards. Observers that are
  /// callables call back through `call`.
  void apply(QuantizeOptions& options, unsigned job, Call& call);
  /// Of the options that `apply` has set.
  const std::vector<std::string_view>& applied() const { return applied_; }
  /// Where nothing is left to be in a table.
  void expect_none() const;

 private:
  [[noreturn]] static void refuse(const std::string& name, const py::object& value);
  [[noreturn]] void refuse_unknown(const std::string& name, unsigned job) const;

  py::dict given_;
  std::vector<std::string> own_;
  std::vector<std::string_view> applied_;
};

/// The words for how a session runs.
Dequantize dequantize_of(const std::string& word);
Rounding rounding_of(const std::string& word);
/// Text that speaks of flags, such as --skip-node, in terms of arguments.
std::string in_python(std::string text);
/// The options of a job as the lines of a docstring.
std::string options_doc(unsigned job);
/// The table for stubs and tests: a dict for each option.
py::list option_rows();

}  // namespace quench::python
