// SPDX-License-Identifier: Apache-2.0
// What a long call from Python runs with: without Python's lock, stopped by Ctrl-C, logging there.
#include "python/src/call.h"

#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <csignal>

#include "python/src/keywords.h"
#include "python/src/own_libtorch.h"

namespace quench::python {
namespace {

std::atomic<std::atomic<bool>*> watched{nullptr};
struct sigaction before {};

/// Python's own handler only notes the signal, and acts on it when Python code runs again.
extern "C" void on_interrupt(int signal) {
  if (std::atomic<bool>* flag = watched.load()) flag->store(true);
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) before.sa_handler(signal);
}

bool interrupts_are_pythons() {
  const py::module_ threading = py::module_::import("threading");
  if (!threading.attr("current_thread")().is(threading.attr("main_thread")())) return false;
  const py::module_ signal = py::module_::import("signal");
  return signal.attr("getsignal")(SIGINT).is(signal.attr("default_int_handler"));
}

/// The process in which work with several threads was done.
std::atomic<pid_t> worked_in{0};

/// The engine is a library of its own, and its threads come with it.
bool engine_is_loaded() {
  const auto look = [](dl_phdr_info* library, std::size_t, void*) {
    return std::string_view(library->dlpi_name).find("quench_engine") == std::string_view::npos ? 0
                                                                                                : 1;
  };
  return ::dl_iterate_phdr(look, nullptr) != 0;
}

}  // namespace

void expect_threads(const Context& context) {
  if (context.num_threads() < 2) return;
  const pid_t before = worked_in.load();
  if (before == 0 || before == ::getpid() || !engine_is_loaded())
    return worked_in.store(::getpid());
  throw Error(ErrorKind::Unsupported,
              "this process was forked from one that had worked with several threads, which are "
              "not in it: give threads=1, or start processes by multiprocessing's 'spawn'");
}

py::str to_text(std::string_view text) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

Call::Watch::Watch(Call& call) {
  if (watched.load() != nullptr || !interrupts_are_pythons()) return;
  watching_ = true;
  watched.store(&call.cancel_);
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  (void)::sigaction(SIGINT, &action, &before);
}

Call::Watch::~Watch() {
  if (!watching_) return;
  (void)::sigaction(SIGINT, &before, nullptr);
  watched.store(nullptr);
}

Call::Call(int threads, std::uint64_t seed, const py::object& progress) {
  keep_libtorch_apart();
  context_.threads = threads;
  context_.seed = seed;
  context_.cancel = &cancel_;
  context_.log = [this](LogLevel level, std::string_view line) { log(level, line); };
  bar_ = py::module_::import("quench._progress").attr("bar")(progress);
  if (bar_.is_none()) return;
  context_.progress = [this](const Progress& now) { show(now); };
}

void Call::run_on(const std::string& device, const std::string& precision, int max_memory_mb) {
  constexpr int kLeast = 50;  // as the program's --max-memory
  if (max_memory_mb != 0 && max_memory_mb < kLeast) {
    throw Error(ErrorKind::Usage, fmt::format("max_memory_mb is {}; expected {} or more, or 0",
                                              max_memory_mb, kLeast));
  }
  if (max_memory_mb != 0 && device != "cpu") {
    throw Error(ErrorKind::Usage, "max_memory_mb is about the CPU's memory; leave out device");
  }
  context_.device = device;
  context_.precision = precision;
  context_.max_memory_mb = max_memory_mb;
}

void Call::share(const py::object& distributed) {
  if (!distributed.is_none()) expect_threads(context_);
  try {
    join(distributed, context_);
  } catch (const Error& error) {
    raise_pending(error);
    throw;
  }
}

Call::~Call() {
  // The other processes have come for this call, and wait.
  if (std::uncaught_exceptions() > unwinding_) {
    tell_ranks(context_, Error(ErrorKind::Usage, "its call was refused"));
  }
  if (bar_.is_none()) return;
  try {
    bar_.attr("close")();
  } catch (py::error_already_set& raised) {
    raised.discard_as_unraisable("quench: closing the progress bar");
  }
}

void Call::keep(py::error_already_set raised) {
  cancel_.store(true);
  if (!raised_) raised_.emplace(std::move(raised));
}

void Call::raise_pending(const Error& error) {
  if (raised_) {
    py::error_already_set raised = std::move(*raised_);
    raised_.reset();
    throw raised;
  }
  if (error.kind() == ErrorKind::Cancelled && PyErr_CheckSignals() != 0) {
    throw py::error_already_set();
  }
}

void Call::log(LogLevel level, std::string_view line) {
  callback([&] {
    const py::object logger = py::module_::import("logging").attr("getLogger")("quench");
    const char* name = level == LogLevel::Warning ? "warning"
                       : level == LogLevel::Info  ? "info"
                                                  : "debug";
    logger.attr(name)("%s", to_text(in_python(std::string(line))));
    return true;
  });
}

void Call::show(const Progress& progress) {
  callback([&] {
    bar_(to_text(progress.phase), progress.done, progress.total);
    return true;
  });
}

void bind_errors(py::module_& module) {
  static PyObject* type = PyErr_NewExceptionWithDoc(
      "quench.Error",
      "What went wrong, in one sentence that says what to do. `kind` is one of usage, bad_model, "
      "bad_data, bad_config, unsupported, io, internal, cancelled.",
      nullptr, nullptr);
  module.attr("Error") = py::handle(type);
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const Error& error) {
      const py::object raised =
          py::reinterpret_borrow<py::object>(type)(to_text(in_python(error.what())));
      raised.attr("kind") = name_of(error.kind());
      PyErr_SetObject(type, raised.ptr());
    }
  });
}

}  // namespace quench::python
