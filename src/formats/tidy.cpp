// SPDX-License-Identifier: Apache-2.0
// What several readers and writers of other tools' files share.
#include "formats/tidy.h"

#include <filesystem>

#include "base/format.h"

namespace quench::formats {

void lift_constants(Graph& graph) {
  std::vector<bool> dead(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const auto* value = node.op_type == "Constant" ? node.get<Tensor>("value") : nullptr;
    if (value == nullptr) continue;
    graph[node.outputs[0]].constant = *value;
    dead[i] = true;
  }
  compact(graph, dead);
}

std::vector<std::string> counted(const std::map<std::string, int>& names) {
  std::vector<std::string> texts;
  for (const auto& [name, count] : names) {
    texts.push_back(count == 1 ? name : format("{} ({} times)", name, count));
  }
  return texts;
}

std::vector<std::string> files_in(const std::string& folder, std::string_view extension) {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (at->path().extension() == extension) found.push_back(at->path().string());
  }
  return found;
}

}  // namespace quench::formats
