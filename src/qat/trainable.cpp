// SPDX-License-Identifier: Apache-2.0
// The engine's side of the public classes; what they hand over is libtorch's and passes unseen.
#include <functional>
#include <memory>

#include "base/module.h"
#include "quench/plan.h"

namespace quench {

class Trainable;
class Quanter;
struct QuanterSetup;
using QuanterMaker = std::function<std::unique_ptr<Quanter>(
    const std::string& op_type, const std::string& name, const QuanterSetup& setup)>;
using BuiltInQuanter = std::unique_ptr<Quanter> (*)(const std::string& name,
                                                    const QuanterSetup& setup);

// Declared in quench/trainable.h, which only those include that have libtorch.
Trainable* open_trainable(const Model& prepared, const QuantPlan& plan, const QuanterMaker& make,
                          const Context& context);
BuiltInQuanter built_in_quanters(const Context& context);

Trainable* open_trainable(const Model& prepared, const QuantPlan& plan, const QuanterMaker& make,
                          const Context& context) {
  using Open = Trainable* (*)(const Model&, const QuantPlan&, const QuanterMaker&, const Context&);
  const auto open =
      reinterpret_cast<Open>(module_symbol("engine", "quench_engine_trainable", context));
  return open(prepared, plan, make, context);
}

BuiltInQuanter built_in_quanters(const Context& context) {
  return reinterpret_cast<BuiltInQuanter>(
      module_symbol("engine", "quench_engine_quanter", context));
}

}  // namespace quench
