// SPDX-License-Identifier: Apache-2.0
// The door to the engine module.
#include "quench/session.h"

#include <algorithm>

#include "base/module.h"
#include "exec/input_scales.h"
#include "exec/session_impl.h"

namespace quench {
namespace {

exec::OpenFunction engine(const Context& context) {
  return reinterpret_cast<exec::OpenFunction>(
      module_symbol("engine", "quench_engine_open", context));
}

}  // namespace

// The engine moves the model on.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
Session::Session(Model model, const SessionOptions& options, const Context& context) {
  std::vector<Value> described;
  for (const ValueId id : model.graph.inputs) {
    if (!model.graph[id].constant) described.push_back(model.graph[id]);
  }
  exec::note_scales(model.graph, described);
  impl_.reset(engine(context)(std::move(model), options, context));
  impl_->inputs = std::move(described);
}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

TensorMap Session::run(const TensorMap& feeds, std::span<const std::string> wanted) {
  return impl_->leave(impl_->compute(impl_->enter(feeds), wanted));
}
EngineValues Session::enter(const TensorMap& feeds) const { return impl_->enter(feeds); }
EngineValues Session::compute(const EngineValues& feeds, std::span<const std::string> wanted) {
  return impl_->compute(feeds, wanted);
}
TensorMap Session::leave(const EngineValues& values) const { return impl_->leave(values); }
std::vector<EngineValues> Session::compute_all(std::span<const RunRequest> runs) {
  return impl_->compute_all(runs);
}
std::size_t Session::runs_together() const noexcept { return impl_->runs_together(); }

std::vector<TensorMap> Session::run_all(std::span<const TensorMap> feeds,
                                        std::span<const std::string> wanted) {
  std::vector<TensorMap> results;
  while (results.size() < feeds.size()) {
    std::vector<RunRequest> runs;
    const std::size_t rest = feeds.size() - results.size();
    for (const TensorMap& each : feeds.subspan(results.size(), std::min(runs_together(), rest))) {
      runs.push_back({.feeds = enter(each), .wanted = {wanted.begin(), wanted.end()}});
    }
    for (const EngineValues& values : compute_all(runs)) results.push_back(leave(values));
  }
  return results;
}

const std::vector<Value>& Session::inputs() const noexcept { return impl_->inputs; }
const std::vector<Value>& Session::outputs() const noexcept { return impl_->outputs; }

void load_engine(const Context& context) { (void)engine(context); }

}  // namespace quench
