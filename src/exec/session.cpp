// SPDX-License-Identifier: Apache-2.0
// The door to the engine module.
#include "quench/session.h"

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

const std::vector<Value>& Session::inputs() const noexcept { return impl_->inputs; }
const std::vector<Value>& Session::outputs() const noexcept { return impl_->outputs; }

void load_engine(const Context& context) { (void)engine(context); }

}  // namespace quench
