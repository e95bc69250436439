// SPDX-License-Identifier: Apache-2.0
// Samples from Python: arrays, dicts, tuples, and anything that can be iterated over.
#include "python/src/samples.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "python/src/tensors.h"
#include "quench/error.h"

namespace quench::python {
namespace {

/// An iterable without a length and a limit may never end. More than this is taken for that.
constexpr std::int64_t kMostItems = 100'000;
/// What is iterated over is held in memory. Half of what the machine can still give: who has no end
/// is told so before the machine is out of memory.
std::uint64_t most_bytes() {
  std::uint64_t bytes = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::ifstream memory("/proc/meminfo");
  for (std::string line; std::getline(memory, line);) {
    std::uint64_t kib = 0;
    if (line.starts_with("MemAvailable:") && std::istringstream(line.substr(13)) >> kib) {
      bytes = kib * 1024;
    }
  }
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) == 0) bytes = std::min<std::uint64_t>(bytes, space.rlim_cur);
  return bytes / 2;
}

bool is_array(const py::handle& object) {
  return py::hasattr(object, "__array__") || py::hasattr(object, "__array_interface__") ||
         PyObject_CheckBuffer(object.ptr()) != 0;
}

bool is_number(const py::handle& object) {
  return PyNumber_Check(object.ptr()) != 0 && !is_array(object);
}

bool is_list(const py::handle& object) {
  return py::isinstance<py::tuple>(object) || py::isinstance<py::list>(object);
}

/// Lists of numbers, at any depth: an array that nobody made one yet.
bool is_nested_numbers(py::object object) {
  constexpr int kMostDepth = 16;
  for (int depth = 0; depth < kMostDepth && is_list(object) && py::len(object) > 0; ++depth) {
    object = object[py::int_(0)];
  }
  return is_number(object);
}

GivenBatch batch_of(const py::handle& item) {
  if (py::isinstance<py::dict>(item)) {
    return {.named = to_tensors(py::reinterpret_borrow<py::dict>(item)), .in_order = {}};
  }
  const auto object = py::reinterpret_borrow<py::object>(item);
  if (is_list(item) && py::len(object) == 1 && py::isinstance<py::dict>(object[py::int_(0)])) {
    return batch_of(object[py::int_(0)]);  // a dict for each device, as Paddle's loaders give them
  }
  GivenBatch batch;
  if (!is_list(item) || is_nested_numbers(object)) {
    batch.in_order.push_back(to_tensor(item));
    return batch;
  }
  for (const py::handle part : object) batch.in_order.push_back(to_tensor(part));
  return batch;
}

std::size_t bytes_of(const GivenBatch& batch) {
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : batch.named) bytes += tensor.bytes().size();
  for (const Tensor& tensor : batch.in_order) bytes += tensor.bytes().size();
  return bytes;
}

py::iterator iterate(const py::object& data) {
  // PaddleSlim's generators are functions that make them.
  if (!py::hasattr(data, "__iter__") && PyCallable_Check(data.ptr()) != 0) return py::iter(data());
  if (!py::hasattr(data, "__iter__") && !py::hasattr(data, "__getitem__")) {
    throw Error(ErrorKind::Usage,
                fmt::format("data is a path, an array, or an iterable of arrays, dicts or tuples; "
                            "got {}",
                            std::string(py::str(py::type::of(data).attr("__name__")))));
  }
  return py::iter(data);
}

/// The next item, or nothing at the end. pybind11's own loops ask once more behind the end, which
/// paddle's loaders take badly.
py::object next_of(const py::iterator& items) {
  auto item = py::reinterpret_steal<py::object>(PyIter_Next(items.ptr()));
  if (!item && PyErr_Occurred() != nullptr) throw py::error_already_set();
  return item;
}

[[noreturn]] void refuse_more(std::int64_t items) {
  throw Error(
      ErrorKind::BadData,
      fmt::format("the data has not ended after {} items, and what is iterated over is held "
                  "in memory: give limit=N to use the first N samples",
                  items));
}

/// Elements of one sample, where the input tells; 0: it does not.
std::int64_t sample_size(const ValueType& type) {
  if (!type.shape || type.shape->size() < 2) return 0;
  std::int64_t size = 1;
  for (std::size_t i = 1; i < type.shape->size(); ++i) {
    if (!(*type.shape)[i].known()) return 0;
    size *= (*type.shape)[i].value;
  }
  return size;
}

/// Paddle's readers give samples as rows of numbers, which take the shape of the input there.
void unflatten(GivenBatch& batch, const std::vector<Value>& inputs) {
  for (std::size_t i = 0; i < std::min(inputs.size(), batch.in_order.size()); ++i) {
    Tensor& tensor = batch.in_order[i];
    const ValueType& type = inputs[i].type;
    if (tensor.rank() != 1 || tensor.size() != sample_size(type)) continue;
    Shape shape;
    for (std::size_t axis = 1; axis < type.shape->size(); ++axis) {
      shape.push_back((*type.shape)[axis].value);
    }
    tensor = tensor.reshaped(std::move(shape));
  }
}

/// What is made as it is asked for may be made in the same place again.
void own_bytes(GivenBatch& batch) {
  for (auto& [name, tensor] : batch.named) (void)tensor.mutable_bytes();
  for (Tensor& tensor : batch.in_order) (void)tensor.mutable_bytes();
}

GivenBatch next_batch(const py::handle& item, const std::vector<Value>& inputs,
                      const Taken& taken) {
  GivenBatch batch = batch_of(item);
  if (taken.rows) unflatten(batch, inputs);
  return batch;
}

GivenSamples drain(const py::object& data, const std::vector<Value>& inputs, const Taken& taken) {
  const bool endless = !py::hasattr(data, "__len__");
  GivenSamples given;
  std::int64_t samples = 0;
  std::uint64_t bytes = 0;
  const std::uint64_t most = most_bytes();
  const py::iterator items = iterate(data);
  for (py::object item = next_of(items); item; item = next_of(items)) {
    GivenBatch batch;
    const auto index = static_cast<std::int64_t>(given.batches.size());
    try {
      batch = next_batch(item, inputs, taken);
      samples += count_samples(batch, inputs);
    } catch (Error& error) {
      throw error.in(fmt::format("data[{}]", index));
    }
    if (!is_list(data)) own_bytes(batch);
    bytes += bytes_of(batch);
    given.batches.push_back(std::move(batch));
    if (taken.samples > 0 && samples >= taken.samples) break;
    if (taken.items > 0 && index + 1 >= taken.items) break;
    const bool limited = taken.samples > 0 || taken.items > 0;
    if ((endless && !limited && index + 1 >= kMostItems) || bytes > most) {
      refuse_more(index + 1);
    }
  }
  return given;
}

}  // namespace

bool is_path(const py::handle& object) {
  return py::isinstance<py::str>(object) || py::hasattr(object, "__fspath__");
}

std::string to_path(const py::handle& object) {
  return py::cast<std::string>(py::module_::import("os").attr("fspath")(object));
}

void set_data(DataOptions& options, const py::object& data, const std::vector<Value>& inputs,
              const Taken& taken) {
  if (data.is_none()) return;
  if (is_path(data)) {
    options.path = to_path(data);
    return;
  }
  GivenSamples given;
  const bool at_once =
      is_array(data) || py::isinstance<py::dict>(data) || py::isinstance<py::tuple>(data);
  if (at_once) {
    given.batches.push_back(batch_of(data));
    (void)count_samples(given.batches.front(), inputs);  // what does not fit is refused here
  } else {
    given = drain(data, inputs, taken);
  }
  if (options.given) given.labels = options.given->labels;
  options.path = kGivenPath;
  options.given = std::make_shared<const GivenSamples>(std::move(given));
}

void set_labels(DataOptions& options, const py::object& labels) {
  if (is_path(labels)) {
    options.labels = to_path(labels);
    return;
  }
  Tensor tensor;
  try {
    tensor = to_tensor(labels);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::BadData) throw;
    throw Error(ErrorKind::BadData, "labels are class indices, whole numbers, or a path");
  }
  if (info(tensor.dtype()).is_float) {
    throw Error(ErrorKind::BadData,
                "labels are class indices, whole numbers, and these are floats");
  }
  const Tensor whole = convert(tensor, DType::Int64);
  const auto values = whole.data<std::int64_t>();
  GivenSamples given = options.given ? *options.given : GivenSamples{};
  given.labels.assign(values.begin(), values.end());
  if (options.path != kGivenPath) {
    throw Error(
        ErrorKind::Usage,
        "labels as an array go with data as arrays; for data in files give a file of labels");
  }
  options.given = std::make_shared<const GivenSamples>(std::move(given));
}

}  // namespace quench::python
