// SPDX-License-Identifier: Apache-2.0
// What a long call from Python runs with: without Python's lock, stopped by Ctrl-C, logging there.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "python/src/ranks.h"
#include "quench/context.h"
#include "quench/error.h"

namespace quench::python {

namespace py = pybind11;

/// Text that may come from a file: what is no UTF-8 is replaced.
py::str to_text(std::string_view text);

/// Throws where work with several threads would wait for threads that stayed behind: in a process
/// forked from one in which such work was done.
void expect_threads(const Context& context);

/// One call. It must outlive the work, and callbacks made by `callback`.
class Call {
 public:
  /// `progress` is what the Python side takes: a callable, True, False or None.
  Call(int threads, std::uint64_t seed, const py::object& progress);
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call();

  /// Where models run, what a GPU computes in, and a ceiling of memory (0: none).
  void run_on(const std::string& device, const std::string& precision, int max_memory_mb);

  /// As one of several processes; see `quench::python::join`.
  void share(const py::object& distributed);

  const Context& context() const { return context_; }

  /// Runs work(context) without Python's lock. What a callback raised, or Ctrl-C, comes out as it
  /// was raised.
  template <typename Work>
  auto run(const Work& work) {
    expect_threads(context_);
    const Watch watch(*this);
    try {
      const py::gil_scoped_release release;
      if constexpr (std::is_void_v<decltype(work(context_))>) {
        work(context_);
        wait_for_files(context_);
      } else {
        auto result = work(context_);
        wait_for_files(context_);
        return result;
      }
    } catch (const Error& error) {
      tell_ranks(context_, error);
      raise_pending(error);
      throw;
    }
  }

  /// Calls Python from any thread of the work. What it raises ends the work.
  template <typename Body>
  auto callback(const Body& body) {
    const py::gil_scoped_acquire lock;
    try {
      return body();
    } catch (py::error_already_set& raised) {
      keep(std::move(raised));
      throw Error(ErrorKind::Cancelled, "a callback raised an exception");
    }
  }

 private:
  /// Listens for Ctrl-C while it lives, on the main thread of a program that leaves it to Python.
  class Watch {
   public:
    explicit Watch(Call& call);
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch();

   private:
    bool watching_ = false;
  };

  void keep(py::error_already_set raised);
  void raise_pending(const Error& error);
  void log(LogLevel level, std::string_view line);
  void show(const Progress& progress);

  Context context_;
  std::atomic<bool> cancel_{false};
  const int unwinding_ = std::uncaught_exceptions();
  std::optional<py::error_already_set> raised_;
  py::object bar_;
};

/// Makes quench.Error, and what turns ours into it.
void bind_errors(py::module_& module);

}  // namespace quench::python
