// SPDX-License-Identifier: Apache-2.0
// How each weight was stored, as a table and as JSON.
#include "cli/weight_table.h"

#include <algorithm>

#include "cli/table.h"

namespace quench::cli {

Json weights_json(const QuantizeReport& report) {
  Json list = Json::array();
  for (const WeightChoice& choice : report.weights) {
    list.push_back({{"node", choice.node},
                    {"op_type", choice.op_type},
                    {"weight", choice.weight},
                    {"bits", choice.bits},
                    {"elements", choice.elements},
                    {"bytes", choice.bytes},
                    {"error", number(choice.error)},
                    {"method", choice.method}});
  }
  return list;
}

void print_weights(const QuantizeReport& report) {
  constexpr std::size_t kMaxRows = 60;
  Table table;
  table.column("weight").column("read by").column("elements", Align::Right);
  table.column("bits", Align::Right).column("error", Align::Right).column("rounded by");
  for (std::size_t i = 0; i < std::min(kMaxRows, report.weights.size()); ++i) {
    const WeightChoice& choice = report.weights[i];
    table.row({choice.weight, choice.op_type, grouped(choice.elements), grouped(choice.bits),
               fixed(choice.error, 4), choice.method});
  }
  print(table.text());
  std::int64_t bytes = 0;
  std::int64_t elements = 0;
  for (const WeightChoice& choice : report.weights) {
    bytes += choice.bytes;
    elements += choice.elements;
  }
  if (report.weights.size() > kMaxRows) {
    print("and " + grouped(static_cast<std::int64_t>(report.weights.size() - kMaxRows)) +
          " more (--json lists them all)\n");
  }
  if (elements > 0) {
    const double share = 25.0 * static_cast<double>(bytes) / static_cast<double>(elements);
    print("as ONNX stores them, these weights take " + fixed(share, 2) +
          " % of their float32 size\n");
  }
  print("\n");
}

}  // namespace quench::cli
