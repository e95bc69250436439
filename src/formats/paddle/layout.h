// SPDX-License-Identifier: Apache-2.0
// Images whose channels come last, turned for operators that want them second.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/paddle/op.h"

namespace quench::paddle {

/// How an operator's data lie. Where channels come last, `first` and `set` transpose.
class Layout {
 public:
  Layout(Op& op, std::string_view input, const std::string& format)
      : last_(format == "NHWC" || format == "NDHWC" || format == "NLC" || format == "NWC"),
        rank_(last_ ? op.need_rank(input) : 0) {}

  bool last() const noexcept { return last_; }
  ValueId first(Op& op, ValueId value) const {
    if (!last_) return value;
    std::vector<std::int64_t> perm{0, rank_ - 1};
    for (std::int64_t i = 1; i < rank_ - 1; ++i) perm.push_back(i);
    return op.transpose(value, perm);
  }
  void set(Op& op, std::string_view output, ValueId value) const {
    if (last_) {
      std::vector<std::int64_t> perm{0};
      for (std::int64_t i = 2; i < rank_; ++i) perm.push_back(i);
      perm.push_back(1);
      value = op.transpose(value, perm);
    }
    op.set(output, value);
  }
  Shape channels_first(Shape shape) const {
    if (last_ && shape.size() > 1) {
      shape.insert(shape.begin() + 1, shape.back());
      shape.pop_back();
    }
    return shape;
  }

 private:
  bool last_;
  std::int64_t rank_;
};

}  // namespace quench::paddle
