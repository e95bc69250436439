// SPDX-License-Identifier: Apache-2.0
// Reads label files.
#include "data/labels.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/file.h"
#include "base/format.h"
#include "data/coco.h"
#include "data/idx.h"
#include "data/truths.h"
#include "quench/data.h"

namespace quench::data {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;

std::optional<std::int64_t> parse_index(std::string_view text) {
  std::int64_t index = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (code != std::errc{} || end != text.data() + text.size() || index < 0) return std::nullopt;
  return index;
}

Labels from_tensor(const Tensor& tensor, const std::string& path) {
  if (tensor.rank() == 3) return from_array(tensor, path);
  if (info(tensor.dtype()).is_float || tensor.rank() > 2 ||
      (tensor.rank() == 2 && tensor.shape()[1] != 1)) {
    fail(ErrorKind::BadData, "{}: labels must be one whole number a sample, got {} of {}", path,
         to_string(tensor.shape()), name_of(tensor.dtype()));
  }
  const Tensor wide = convert(tensor, DType::Int64);
  const auto values = wide.data<std::int64_t>();
  return {.path = path, .indices = {values.begin(), values.end()}, .names = {}};
}

/// Collects lines and sees to it that all are of one kind.
class LineReader {
 public:
  explicit LineReader(const std::string& path) { labels_.path = path; }

  void add(std::string_view line, int number) {
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty()) return;
    const std::size_t split = line.find_last_of(" \t");
    const bool named = split != std::string_view::npos;
    const auto index = parse_index(named ? line.substr(split + 1) : line);
    if (!index || (!labels_.indices.empty() && named != labels_.by_name())) {
      fail(ErrorKind::BadData, "{}:{}: expected {}, got '{}'", labels_.path, number,
           labels_.by_name() || named ? "'name index'" : "a class index", line);
    }
    labels_.indices.push_back(*index);
    if (named) add_name(line.substr(0, line.find_last_not_of(" \t", split) + 1), number);
  }
  Labels take() { return std::move(labels_); }

 private:
  void add_name(std::string_view name, int number) {
    const auto [found, fresh] = lines_.emplace(name, number);
    if (!fresh) {
      fail(ErrorKind::BadData, "{}:{}: '{}' is named a second time (first in line {})",
           labels_.path, number, name, found->second);
    }
    labels_.names.emplace_back(name);
  }

  Labels labels_;
  std::unordered_map<std::string, int> lines_;
};

/// The first images may have no boxes.
bool any_box_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (is_box_line(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

}  // namespace

Labels read_labels(const std::string& path, const std::string& characters) {
  if (path.ends_with(".npy") || path.find(".npz") != std::string::npos) {
    return from_tensor(read_npy(path), path);
  }
  if (file_size(path) > kMaxBytes) fail(ErrorKind::BadData, "{}: too large for labels", path);
  if (is_idx(path)) return from_tensor(read_idx(path), path);
  if (path.ends_with(".json")) return read_coco(path);
  const std::string whole = read_text(path);
  std::string_view text = whole;
  if (!characters.empty()) return texts_from_lines(path, text, characters);
  if (any_box_line(text)) return boxes_from_lines(path, text);
  LineReader reader(path);
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    reader.add(text.substr(0, end), number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  Labels labels = reader.take();
  if (labels.indices.empty()) fail(ErrorKind::BadData, "{}: holds no labels", path);
  return labels;
}

}  // namespace quench::data
