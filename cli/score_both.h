// SPDX-License-Identifier: Apache-2.0
// What labels say of a model before and after it was quantised.
#pragma once

#include <string>

#include "cli/json.h"
#include "quench/evaluate.h"

namespace quench::cli {

struct BeforeAndAfter {
  EvaluateResult before;
  EvaluateResult after;
};
BeforeAndAfter score_both(const std::string& model, const std::string& quantised,
                          const DataOptions& data, const Context& context);
Json to_json(const BeforeAndAfter& scores);
void print_scores(const BeforeAndAfter& scores);

}  // namespace quench::cli
