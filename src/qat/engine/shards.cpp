// SPDX-License-Identifier: Apache-2.0
// Functions between ranks with their gradients, and quanters that see the ranges of all of them.
#include "qat/engine/shards.h"

#include "exec/engine/ranks.h"

namespace quench::qat {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor summed(const at::Tensor& part, Ranks& ranks) {
  std::vector<at::Tensor> sum = {part.detach().clone(at::MemoryFormat::Contiguous)};
  exec::sum_over(ranks, sum);
  return sum[0];
}

/// libtorch carries no pointers of ours from the forward pass to the backward one.
Ranks& ranks_of(const AutogradContext& context) {
  return *reinterpret_cast<Ranks*>(context.saved_data.at("ranks").toInt());
}

void keep(AutogradContext& context, Ranks& ranks) {
  context.saved_data["ranks"] = static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(&ranks));
}

struct Sum : torch::autograd::Function<Sum> {
  static at::Tensor forward(AutogradContext* /*context*/, const at::Tensor& part, Ranks* ranks) {
    return summed(part, *ranks);
  }
  static variable_list backward(AutogradContext* /*context*/, variable_list gradients) {
    return {gradients[0], at::Tensor()};
  }
};

struct Gather : torch::autograd::Function<Gather> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& part, std::int64_t axis,
                            Ranks* ranks) {
    const at::Tensor sizes = exec::gather_over(*ranks, at::tensor({part.size(axis)}, at::kLong), 0);
    context->saved_data["axis"] = axis;
    context->saved_data["size"] = part.size(axis);
    context->saved_data["first"] = sizes.narrow(0, 0, ranks->rank()).sum().item<std::int64_t>();
    return exec::gather_over(*ranks, part.detach(), axis);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto number = [&](const char* name) { return context->saved_data.at(name).toInt(); };
    return {gradients[0].narrow(number("axis"), number("first"), number("size")), at::Tensor(),
            at::Tensor()};
  }
};

struct Copy : torch::autograd::Function<Copy> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& whole, Ranks* ranks) {
    keep(*context, *ranks);
    return whole.view_as(whole);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    return {summed(gradients[0], ranks_of(*context)), at::Tensor()};
  }
};

class SharedQuanter final : public Quanter {
 public:
  SharedQuanter(std::unique_ptr<Quanter> quanter, Shards shards, int axis)
      : quanter_(std::move(quanter)), shards_(std::move(shards)), axis_(axis) {
    for (const Trained& each : quanter_->parameters()) {
      each.tensor.register_hook(
          [ranks = shards_](const at::Tensor& gradient) { return summed(gradient, *ranks); });
    }
  }

  /// The greatest and least numbers of all parts go in beside this one, and do not come out.
  at::Tensor forward(const at::Tensor& x) override {
    quanter_->train(training());
    const at::Tensor rows = axis_ < 0 ? x.reshape({-1, 1}) : x.movedim(axis_, 0);
    const at::Tensor made = quanter_->forward(back(at::cat({rows, extremes(rows.detach())})));
    const at::Tensor own = (axis_ < 0 ? made : made.movedim(axis_, 0)).narrow(0, 0, rows.size(0));
    return axis_ < 0 ? own.reshape(x.sizes()) : own.movedim(0, axis_);
  }
  QuantParams params() const override { return quanter_->params(); }
  std::vector<Trained> parameters() const override { return quanter_->parameters(); }
  std::vector<at::Tensor> state() const override { return quanter_->state(); }
  at::Tensor written(const at::Tensor& weight) const override { return quanter_->written(weight); }
  bool ready() const override { return quanter_->ready(); }

 private:
  at::Tensor back(const at::Tensor& rows) const {
    return axis_ < 0 ? rows : rows.movedim(0, axis_).contiguous();
  }

  at::Tensor extremes(const at::Tensor& rows) const {
    const at::Tensor own = at::stack({rows.amax(0), rows.amin(0)}).unsqueeze(0).contiguous();
    const at::Tensor all = exec::gather_over(*shards_, own.to(at::kCPU), 0).to(rows.device());
    return at::stack({all.select(1, 0).amax(0), all.select(1, 1).amin(0)});
  }

  std::unique_ptr<Quanter> quanter_;
  Shards shards_;
  int axis_;
};

}  // namespace

exec::Kernel joining_kernel(const exec::OpContext& context, const Shards& shards) {
  if (context.node.op_type == "AllReduce") {
    return [shards](exec::Call& call) { call.set(0, Sum::apply(call.in(0), shards.get())); };
  }
  if (context.node.find("axis") == nullptr) return exec::refuse("it has no attribute axis");
  return [shards, axis = context.node.get_int("axis", 0)](exec::Call& call) {
    const std::int64_t along = axis < 0 ? axis + call.in(0).dim() : axis;
    call.set(0, Gather::apply(call.in(0), along, shards.get()));
  };
}

exec::KernelFunction reading_whole(exec::KernelFunction kernel, const Shards& shards) {
  return [kernel = std::move(kernel), shards](exec::Call& call) {
    std::vector<at::Tensor> slots;
    std::vector<int> in;
    for (std::size_t i = 0; i < call.num_in(); ++i) {
      in.push_back(call.has(i) ? static_cast<int>(i) : -1);
      slots.push_back(i == 0 ? Copy::apply(call.in(0), shards.get()) : call.in(i));
    }
    const std::vector<int> out = {static_cast<int>(slots.size())};
    slots.emplace_back();
    exec::Call inner(slots, in, out);
    kernel(inner);
    call.set(0, slots.back());
  };
}

std::unique_ptr<Quanter> shared_quanter(std::unique_ptr<Quanter> quanter, const Shards& shards,
                                        int axis) {
  return std::make_unique<SharedQuanter>(std::move(quanter), shards, axis);
}

}  // namespace quench::qat
