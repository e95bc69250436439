// SPDX-License-Identifier: Apache-2.0
// The engine's side of a session: names on the outside, slots on the inside.
#include <ATen/core/grad_mode.h>
#include <omp.h>

#include <algorithm>

#include "base/memory.h"
#include "base/nearest.h"
#include "exec/device_error.h"
#include "exec/engine/bridge.h"
#include "exec/engine/fetch.h"
#include "exec/engine/making.h"
#include "exec/engine/pool_allocator.h"
#include "exec/engine/prepare.h"
#include "exec/engine/program.h"
#include "exec/engine/slices.h"
#include "exec/engine/start.h"
#include "exec/engine/values.h"
#include "exec/parts.h"
#include "exec/session_impl.h"
#include "passes/parallel_layers.h"

namespace quench::exec {
namespace {

[[noreturn]] void fail_unsupported(const std::vector<UnsupportedNode>& nodes) {
  constexpr std::size_t kMaxShown = 20;
  std::string text = format("{} node{} cannot be run:", nodes.size(), nodes.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < std::min(nodes.size(), kMaxShown); ++i) {
    text += format("\n  {}: {}", nodes[i].node, nodes[i].reason);
  }
  if (nodes.size() > kMaxShown) text += format("\n  and {} more", nodes.size() - kMaxShown);
  fail(ErrorKind::Unsupported, "{}", text);
}

void warn_of_float(const std::vector<std::string>& layers, const Context& context) {
  if (layers.empty()) return;
  constexpr std::size_t kMaxShown = 20;
  const std::span<const std::string> shown(layers.data(), std::min(layers.size(), kMaxShown));
  context.warn(
      format("without VNNI products of bytes may saturate in between: {} layer{} of the "
             "8-bit model run{} in float, exactly but slowly: {}{}",
             layers.size(), layers.size() == 1 ? "" : "s", layers.size() == 1 ? "s" : "",
             fmt::join(shown, ", "), layers.size() > kMaxShown ? ", ..." : ""));
}

std::vector<std::string> made_values(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.outputs) {
      if (id != kNoValue) names.push_back(graph[id].name);
    }
  }
  return names;
}

void check_feed(const Value& value, const Tensor& tensor) {
  const ValueType& type = value.type;
  const auto refuse_it = [&] {
    fail(ErrorKind::BadData, "input '{}' must be {}, but {} was given", value.name, to_string(type),
         to_string(ValueType::of(tensor)));
  };
  if (type.kind != ValueType::Kind::Tensor) return;
  if (type.dtype != DType::Undefined && type.dtype != tensor.dtype()) refuse_it();
  if (!type.shape) return;
  if (type.shape->size() != tensor.shape().size()) refuse_it();
  for (std::size_t i = 0; i < tensor.shape().size(); ++i) {
    if ((*type.shape)[i].known() && (*type.shape)[i].value != tensor.shape()[i]) refuse_it();
  }
}

/// A copy for the caller: of a view, that may be far more than the run needed.
Tensor to_result(const std::string& name, const at::Tensor& value) {
  if (!value.defined()) fail(ErrorKind::BadModel, "no node gives '{}' a value", name);
  try {
    return from_torch(value);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::Unsupported, "there is not enough memory for '{}' of shape {}", name,
         to_string(value.sizes().vec()));
  }
}

std::uint64_t constant_bytes(const Graph& graph) {
  std::uint64_t bytes = 0;
  for (const Value& value : graph.values()) {
    if (value.constant) bytes += value.constant->num_bytes();
  }
  return bytes;
}

/// Whether constants are too many to be packed all at once. Under a ceiling several sessions may be
/// open at a time, and what there is besides counts too.
bool has_to_stream(std::uint64_t constants, const Context& context) {
  const std::uint64_t limit = memory_limit(context);
  if (context.max_memory_mb == 0) return constants > limit / 2;
  return constants > limit / 4 || resident_bytes() + 2 * constants > limit;
}

/// Runs that read each weight together. More hide what reading costs only a little better.
constexpr std::size_t kRunsTogether = 32;

bool is_out_of_memory(std::string_view reason) {
  return reason.find("not enough memory") != std::string_view::npos;
}

EngineValue inside(at::Tensor tensor) {
  return EngineValue(std::make_shared<const at::Tensor>(std::move(tensor)));
}

/// How many threads libtorch and oneDNN use while it lives: both read OpenMP's number, which every
/// calling thread has for itself and gets back. at::set_num_threads would set the same number, and
/// start and end another pool of threads (XNNPACK's) that nothing here uses: 5 ms. The first
/// question sets libtorch's own choice.
class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(at::get_num_threads()) {
    if (before_ != threads) omp_set_num_threads(threads);
  }
  ~ThreadCount() { omp_set_num_threads(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

/// What libtorch refuses between steps becomes one sentence, as what it refuses in them does.
template <typename Work>
auto without_torch_errors(const Work& work) {
  try {
    return work();
  } catch (const c10::Error& error) {
    fail(ErrorKind::Unsupported, "libtorch: {}", first_line(error.what_without_backtrace()));
  }
}

/// Of the first feed; a number alone is one.
std::int64_t rows_of(const Feeds& feeds) {
  if (feeds.empty() || feeds.front().second.dim() == 0) return 1;
  return feeds.front().second.size(0);
}

class EngineSession final : public Session::Impl {
 public:
  EngineSession(Model&& model, const SessionOptions& options, const Context& context)
      : threads_(context.num_threads()), context_(context.alone()), place_(open_device(context)) {
    for (const ValueId id : model.graph.inputs) {
      if (!model.graph[id].constant) inputs.push_back(model.graph[id]);
    }
    for (const ValueId id : model.graph.outputs) outputs.push_back(model.graph[id]);
    const ThreadCount count(threads_);
    const CeilingScope ceiling(memory_ceiling(context));
    at::NoGradGuard no_gradients;
    CompileOptions compile;
    // The fast kernels are the CPU's: a GPU runs libtorch's own.
    compile.fast = !options.reference && !place_.away();
    compile.place = place_;
    // The fast kernels round once; the exact ones need no products of bytes.
    const bool once = options.rounding == Rounding::Once;
    compile.byte_products =
        once && options.byte_products == ByteProducts::OfProcessor && multiplies_bytes_exactly();
    const bool asked = once && compile.fast && options.integer && !options.tap_all;
    if (asked && !compile.byte_products) warn_of_float(integer_layers(model.graph), context);
    compile.on_step = options.on_step;
    compile.on_sample = options.on_sample;
    if (place_.away() && options.on_summary && gpu_counts(context)) {
      compile.on_summary = options.on_summary;
      compile.summarized = options.summarized;
    }
    compile.taps = options.tap_all ? made_values(model.graph) : options.taps;
    if (context.ranks && context.ranks->tensor_parallel()) {
      compile.shards = context.ranks;
      if (options.on_sample) compile.split = passes::ParallelLayers(model.graph).split_values();
    }
    Graph graph = prepare(std::move(model), options, compile);
    for (const std::string& note : compile.notes) context.warn(note);
    compile.streams = !place_.away() && has_to_stream(constant_bytes(graph), context);
    if (compile.streams) together_ = kRunsTogether;
    watched_ = static_cast<bool>(options.on_sample);
    if (!options.on_sample) sample_bytes_ = compile.sample_bytes;
    // What taps have seen of a run that did not fit cannot be taken back here.
    samplewise_ = compile.samplewise && (place_.away() || !options.on_sample);
    std::vector<UnsupportedNode> unsupported;
    program_ = std::make_unique<Program>(std::move(graph), compile, unsupported);
    if (!unsupported.empty()) fail_unsupported(unsupported);
  }

  ~EngineSession() override {
    program_.reset();
    trim_pool();
  }
  EngineSession(const EngineSession&) = delete;
  EngineSession& operator=(const EngineSession&) = delete;

  EngineValues enter(const TensorMap& feeds) const override {
    at::InferenceMode inference;
    EngineValues values;
    for (const auto& [name, tensor] : feeds) {
      check_feed(program_->graph()[find(name, "feed")], tensor);
      values.emplace(name, inside(brought(to_torch(tensor))));
    }
    return values;
  }

  EngineValues compute(const EngineValues& feeds, std::span<const std::string> wanted) override {
    const ThreadCount count(threads_);
    const CeilingScope ceiling(memory_ceiling(context_));
    at::InferenceMode inference;
    const std::vector<std::string> names = names_of(wanted);
    auto [slots, ids] = slots_of(feeds, names);
    return named_values(names,
                        place_.away() ? run_away(slots, ids) : run_here(std::move(slots), ids));
  }

  std::size_t runs_together() const noexcept override { return together_; }

  std::vector<EngineValues> compute_all(std::span<const RunRequest> runs) override {
    std::vector<EngineValues> results;
    while (results.size() < runs.size()) {
      const auto rest = runs.subspan(results.size());
      const auto part = rest.first(std::min(together_, rest.size()));
      if (part.size() == 1) {
        results.push_back(compute(part.front().feeds, part.front().wanted));
        continue;
      }
      try {
        for (EngineValues& each : run_together(part)) results.push_back(std::move(each));
      } catch (const Error& error) {
        if (!is_out_of_memory(error.what())) throw;
        together_ = (part.size() + 1) / 2;
        // What taps have seen cannot be taken back here.
        if (watched_) throw;
      }
    }
    return results;
  }

  TensorMap leave(const EngineValues& values) const override {
    const ThreadCount count(threads_);
    at::InferenceMode inference;
    TensorMap map;
    for (const auto& [name, value] : values) {
      const at::Tensor here = without_torch_errors([&] { return place_.here(tensor_of(value)); });
      Tensor& tensor = map[name] = to_result(name, here);
      const DType dtype = program_->graph()[find(name, "compute")].type.dtype;
      if (dtype == DType::UInt16) tensor = convert(tensor, dtype);
    }
    return map;
  }

 private:
  /// To where the model runs. What the GPU's memory has no room for stays here: the run brings it,
  /// in parts if it must.
  at::Tensor brought(const at::Tensor& here) const {
    if (!place_.away() || !place_.wants(here)) return here;
    try {
      return fetch(here, place_);
    } catch (const c10::Error& error) {
      if (gpu_is_full(error.what())) return here;
      fail(ErrorKind::Unsupported, "libtorch: {}", first_line(error.what_without_backtrace()));
    }
  }

  /// Whether our kernels can be had on this GPU; else values are copied and counted on the CPU.
  bool gpu_counts(const Context& context) const {
    try {
      (void)cuda_kernels("statistics", place_.device.index());
      return true;
    } catch (const Error& error) {
      context.warn(format("statistics are counted on the CPU: {}", error.what()));
      return false;
    }
  }

  std::vector<at::Tensor> run_here(Feeds slots, const std::vector<int>& ids) {
    if (context_.max_memory_mb > 0) return run_below(slots, ids);
    const std::int64_t batch = sample_bytes_ ? batch_to_slice(slots, ids) : 0;
    const std::int64_t size = batch < 2 ? batch : slice_size(batch, *sample_bytes_, threads_);
    return size < batch ? run_in_slices(*program_, slots, ids, size)
                        : program_->run_between(std::move(slots), ids);
  }

  /// On a GPU, whose memory is not to be had by waiting: a batch that does not fit is run in parts.
  std::vector<at::Tensor> run_away(const Feeds& slots, const std::vector<int>& ids) {
    return run_in_parts(
        slots, ids,
        {.name = "the GPU's memory", .way_out = "--device cpu", .is_full = gpu_is_full});
  }

  /// Likewise where the caller has set a ceiling.
  std::vector<at::Tensor> run_below(const Feeds& slots, const std::vector<int>& ids) {
    return run_in_parts(slots, ids,
                        {.name = format("the ceiling of {} MB of memory", context_.max_memory_mb),
                         .way_out = "a higher --max-memory",
                         .is_full = is_out_of_memory});
  }

  std::vector<EngineValues> run_together(std::span<const RunRequest> runs) {
    const ThreadCount count(threads_);
    const CeilingScope ceiling(memory_ceiling(context_));
    at::InferenceMode inference;
    std::vector<Program::Between> between;
    std::vector<std::vector<std::string>> names;
    for (const RunRequest& run : runs) {
      names.push_back(names_of(run.wanted));
      auto [slots, ids] = slots_of(run.feeds, names.back());
      between.push_back({.feeds = std::move(slots), .wanted = std::move(ids)});
    }
    auto found = without_torch_errors([&] { return program_->run_together(std::move(between)); });
    std::vector<EngineValues> results;
    for (std::size_t i = 0; i < found.size(); ++i) {
      results.push_back(named_values(names[i], std::move(found[i])));
    }
    return results;
  }

  std::vector<std::string> names_of(std::span<const std::string> wanted) const {
    std::vector<std::string> names(wanted.begin(), wanted.end());
    if (!names.empty()) return names;
    for (const Value& value : outputs) names.push_back(value.name);
    return names;
  }

  std::pair<Feeds, std::vector<int>> slots_of(const EngineValues& feeds,
                                              const std::vector<std::string>& wanted) const {
    Feeds slots;
    for (const auto& [name, value] : feeds) {
      slots.emplace_back(find(name, "feed"), tensor_of(value));
    }
    std::vector<int> ids;
    for (const std::string& name : wanted) ids.push_back(find(name, "compute"));
    return {std::move(slots), std::move(ids)};
  }

  static EngineValues named_values(const std::vector<std::string>& names,
                                   std::vector<at::Tensor> results) {
    EngineValues values;
    for (std::size_t i = 0; i < names.size(); ++i) values[names[i]] = inside(std::move(results[i]));
    return values;
  }

  std::vector<at::Tensor> run_in_parts(const Feeds& slots, const std::vector<int>& ids,
                                       const Room& room) {
    const std::int64_t split = samplewise_ ? batch_to_slice(slots, ids) : 0;
    const std::int64_t batch = split > 0 ? split : rows_of(slots);
    std::vector<at::Tensor> results;
    parts_.run(batch, split > 0, room, context_, [&](std::int64_t size) {
      try {
        results = without_torch_errors([&] {
          auto found = size < batch ? run_in_slices(*program_, slots, ids, size)
                                    : program_->run_between(slots, ids);
          program_->show_kept();
          return found;
        });
      } catch (const Error&) {
        program_->forget_kept();
        throw;
      }
    });
    return results;
  }

  /// The batch of a run of the whole graph that may be split into slices; 0 otherwise.
  std::int64_t batch_to_slice(const Feeds& feeds, const std::vector<int>& wanted) const {
    const Graph& graph = program_->graph();
    if (feeds.size() != inputs.size() || feeds.empty()) return 0;
    if (!std::ranges::equal(wanted, graph.outputs)) return 0;
    const std::int64_t batch = feeds.front().second.size(0);
    const bool whole = std::ranges::all_of(feeds, [&](const auto& feed) {
      return std::ranges::find(graph.inputs, feed.first) != graph.inputs.end() &&
             feed.second.size(0) == batch;
    });
    return whole ? batch : 0;
  }

  ValueId find(const std::string& name, const char* verb) const {
    const Graph& graph = program_->graph();
    const ValueId id = graph.find(name);
    if (id != kNoValue) return id;
    std::vector<std::string> names;
    for (const Value& value : std::string_view(verb) == "feed" ? inputs : outputs) {
      names.push_back(value.name);
    }
    fail(ErrorKind::BadData, "cannot {} '{}': the model has no such {}{} (it has: {})", verb, name,
         std::string_view(verb) == "feed" ? "input" : "value", did_you_mean(name, names),
         fmt::join(names, ", "));
  }

  int threads_;
  Context context_;
  Placement place_;
  std::optional<SampleBytes> sample_bytes_;  ///< where a batch may be split into slices
  bool samplewise_ = false;                  ///< likewise, where memory is short
  Parts parts_;                              ///< where memory has no room for a batch
  std::size_t together_ = 1;                 ///< runs that take each step together
  bool watched_ = false;                     ///< taps are shown as they are computed
  std::unique_ptr<Program> program_;
};

}  // namespace
}  // namespace quench::exec

extern "C" __attribute__((visibility("default"))) quench::Session::Impl* quench_engine_open(
    quench::Model&& model, const quench::SessionOptions& options, const quench::Context& context) {
  quench::exec::start_engine();
  return new quench::exec::EngineSession(std::move(model), options, context);
}
