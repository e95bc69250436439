// SPDX-License-Identifier: Apache-2.0
// quench.Session: runs a model on arrays.
#include "quench/session.h"

#include <fmt/format.h>

#include <mutex>

#include "python/src/bindings.h"
#include "python/src/keywords.h"
#include "python/src/samples.h"
#include "python/src/tensors.h"

namespace quench::python {
namespace {

/// A session that several threads of Python may call; their runs come one after the other.
class SharedSession {
 public:
  SharedSession(Model model, const SessionOptions& options, const Context& context)
      : context_(context), session_(std::move(model), options, context) {}

  TensorMap run(const TensorMap& feeds, const std::vector<std::string>& wanted) {
    expect_threads(context_);
    const std::lock_guard lock(mutex_);
    return session_.run(feeds, wanted);
  }
  const Session& session() const { return session_; }

 private:
  std::mutex mutex_;
  Context context_;
  Session session_;
};

/// One name or several.
std::vector<std::string> names_in(const py::object& given) {
  if (given.is_none()) return {};
  if (py::isinstance<py::str>(given)) return {py::cast<std::string>(given)};
  try {
    return py::cast<std::vector<std::string>>(given);
  } catch (const py::cast_error&) {
    throw Error(ErrorKind::Usage, fmt::format("values are asked for by name; got {}",
                                              std::string(py::repr(given)).substr(0, 80)));
  }
}

std::unique_ptr<SharedSession> open_session(const py::object& model, const py::kwargs& kwargs) {
  Keywords words(kwargs);
  SessionOptions options;
  options.taps = names_in(words.take("taps"));
  options.reference = words.take_as("reference", false);
  options.dequantize = dequantize_of(words.take_text("dequantize", "at-load"));
  options.rounding = rounding_of(words.take_text("rounding", "once"));
  const auto threads = words.take_as("threads", 0);
  const std::string device = words.take_text("device", "cpu");
  const std::string precision = words.take_text("precision", "float");
  words.expect_none();
  const ModelFile file(model);
  Call call(threads, 0, py::bool_(false));
  call.run_on(device, precision, 0);
  return call.run([&](const Context& context) {
    // The call ends before the session: its log and its flag must not be used later.
    Context of_session;
    of_session.threads = context.threads;
    of_session.device = context.device;
    of_session.precision = context.precision;
    return std::make_unique<SharedSession>(load(file.path()), options, of_session);
  });
}

TensorMap feeds_of(const Session& session, const py::object& given) {
  if (py::isinstance<py::dict>(given)) return to_tensors(py::reinterpret_borrow<py::dict>(given));
  const bool several = py::isinstance<py::tuple>(given) || py::isinstance<py::list>(given);
  const py::list arrays = several ? py::list(given) : py::list(py::make_tuple(given));
  if (py::len(arrays) != session.inputs().size()) {
    throw Error(ErrorKind::BadData, fmt::format("the model has {} inputs, and {} arrays are given",
                                                session.inputs().size(), py::len(arrays)));
  }
  TensorMap feeds;
  for (std::size_t i = 0; i < session.inputs().size(); ++i) {
    feeds[session.inputs()[i].name] = to_tensor(arrays[i]);
  }
  return feeds;
}

py::dict run_session(SharedSession& session, const py::object& inputs, const py::object& wanted) {
  const std::vector<std::string> outputs = names_in(wanted);
  const TensorMap feeds = feeds_of(session.session(), inputs);
  TensorMap results;
  {
    const py::gil_scoped_release release;
    results = session.run(feeds, outputs);
  }
  return to_arrays(results);
}

std::vector<std::string> names_of(const std::vector<Value>& values) {
  std::vector<std::string> names;
  for (const Value& value : values) names.push_back(value.name);
  return names;
}

}  // namespace

void bind_session(py::module_& module) {
  py::class_<SharedSession>(module, "Session",
                            "A model made ready to run. May be used from several threads, whose "
                            "runs come one after the other.")
      .def(
          py::init(&open_session), py::arg("model"),
          "taps: values besides the outputs that runs may ask for. reference: plain kernels. "
          "dequantize: when stored weights become floats, 'at-load' or 'on-the-fly'. rounding: how "
          "convolutions on integers round, 'once', or 'twice' as LiteRT's reference kernels do. "
          "device: 'cpu', 'cuda' or 'cuda:1'. precision: what a GPU computes in, 'float', 'tf32' "
          "or 'half'.")
      .def("run", &run_session, py::arg("inputs"), py::arg("outputs") = py::none(),
           "Computes outputs by name from a dict of arrays, one array, or a list of them in the "
           "order of the inputs. Arrays are neither copied on the way in nor on the way out; "
           "results are read-only.")
      .def_property_readonly("inputs",
                             [](const SharedSession& s) { return names_of(s.session().inputs()); })
      .def_property_readonly(
          "outputs", [](const SharedSession& s) { return names_of(s.session().outputs()); });
}

}  // namespace quench::python
