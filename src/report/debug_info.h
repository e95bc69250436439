// SPDX-License-Identifier: Apache-2.0
// converter_lite's debug reports of two models that are at hand.
#pragma once

#include <map>

#include "quench/files.h"
#include "quench/report.h"
#include "report/debug_pairs.h"

namespace quench {

/// Bits of the scales, by the name of the float tensor: the file may store them in wider integers.
using ParamBits = std::map<std::string, int>;

/// As `write_debug_info`, of a float model that is prepared and of what it was made into. Where no
/// bits are given, those that the quantised model notes.
void write_debug_tables(const Model& real, Model quantized, const DebugInfoOptions& options,
                        const Context& context, Outputs& outputs, const ParamBits& bits = {});

/// What the graph of a quantised model does not say of its scales.
struct ParamFacts {
  ParamBits bits;
  std::map<std::string, Shape> shapes;  ///< by value of the quantised model, in the first round
};

/// quant_param.csv: a row for each scale of each tensor.
std::string params_table(const Graph& real, const Graph& quantized,
                         const std::vector<TensorPair>& pairs, const ParamFacts& facts);

/// A line of a table; converter_lite ends every one with a comma.
std::string debug_line(std::vector<std::string> fields);

/// What the tables of a job look at.
DebugInfoOptions debug_info_of(const QuantizeOptions& options);

}  // namespace quench
