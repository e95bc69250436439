// SPDX-License-Identifier: Apache-2.0
// Boxes and texts from lines, boxes and masks from arrays.
#include "data/truths.h"

#include <charconv>
#include <cmath>
#include <map>
#include <unordered_set>

#include "base/file.h"
#include "base/format.h"

namespace quench {

std::string_view to_string(TruthKind kind) {
  switch (kind) {
    case TruthKind::Boxes:
      return "boxes";
    case TruthKind::Text:
      return "texts";
    case TruthKind::Masks:
      return "masks";
  }
  return "";
}

namespace data {
namespace {

constexpr std::size_t kBoxNumbers = 5;
constexpr std::size_t kMostCharacters = 1 << 20;

/// The first word, which is taken off.
std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r"), text.size()));
  const std::size_t end = std::min(text.find_first_of(" \t\r"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

std::optional<LabelBox> parse_box(std::string_view word) {
  LabelBox box{};
  for (std::size_t i = 0; i < kBoxNumbers; ++i) {
    const std::size_t end = std::min(word.find(','), word.size());
    const std::string_view part = word.substr(0, end);
    const auto [stop, code] = std::from_chars(part.data(), part.data() + part.size(), box[i]);
    if (code != std::errc{} || stop != part.data() + part.size() || !std::isfinite(box[i])) {
      return std::nullopt;
    }
    if ((i + 1 == kBoxNumbers) != (end == word.size())) return std::nullopt;
    word.remove_prefix(std::min(end + 1, word.size()));
  }
  const bool good =
      box[2] >= box[0] && box[3] >= box[1] && box[4] >= 0 && box[4] == std::floor(box[4]);
  return good ? std::optional(box) : std::nullopt;
}

/// Calls `body(line, number)` for each line that is not blank.
template <typename Body>
void for_each_line(std::string_view text, const Body& body) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") != std::string_view::npos) body(line, number);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

/// The first character of a UTF-8 text, which is taken off; a byte that begins none is one itself.
std::string take_character(std::string_view& text) {
  const auto first = static_cast<unsigned char>(text.front());
  std::size_t size = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC0 ? 2 : 1;
  size = std::min(size, text.size());
  std::string character(text.substr(0, size));
  text.remove_prefix(size);
  return character;
}

/// The classes of a recogniser's characters.
std::map<std::string, std::int64_t, std::less<>> read_characters(const std::string& path) {
  std::map<std::string, std::int64_t, std::less<>> classes;
  std::int64_t next = 1;  // 0 is the blank
  const std::string whole = read_text(path);
  std::string_view text = whole;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    text.remove_prefix(std::min(end + 1, text.size()));
    classes.emplace(line, next++);
    if (classes.size() > kMostCharacters) {
      fail(ErrorKind::BadData, "{}: too many characters; expected one a line", path);
    }
  }
  if (classes.empty()) fail(ErrorKind::BadData, "{}: holds no characters", path);
  classes.emplace(" ", next);
  return classes;
}

class Texts final : public Truths {
 public:
  Texts(std::string path, std::int64_t characters) : path_(std::move(path)), count_(characters) {}
  void add(std::vector<std::int64_t> text) { texts_.push_back(std::move(text)); }

  TruthKind kind() const override { return TruthKind::Text; }
  std::string path() const override { return path_; }
  std::int64_t characters() const override { return count_; }
  Truth read(std::int64_t index) const override {
    const std::vector<std::int64_t>& text = texts_.at(static_cast<std::size_t>(index));
    return {Tensor::of<std::int64_t>({static_cast<std::int64_t>(text.size())},
                                     std::span<const std::int64_t>(text)),
            {}};
  }

 private:
  std::string path_;
  std::int64_t count_;
  std::vector<std::vector<std::int64_t>> texts_;
};

/// Rows of an array.
class Rows final : public Truths {
 public:
  Rows(std::string path, TruthKind kind, const Tensor& all)
      : path_(std::move(path)),
        kind_(kind),
        all_(convert(all, kind == TruthKind::Boxes ? DType::Float64 : DType::Int64)) {}

  TruthKind kind() const override { return kind_; }
  std::string path() const override { return path_; }
  Truth read(std::int64_t index) const override {
    const Shape& shape = all_.shape();
    const auto size = static_cast<std::size_t>(shape[1] * shape[2]);
    const std::size_t first = static_cast<std::size_t>(index) * size;
    if (kind_ == TruthKind::Masks) {
      return {Tensor::of<std::int64_t>({shape[1], shape[2]},
                                       all_.data<std::int64_t>().subspan(first, size)),
              {}};
    }
    std::vector<double> boxes;
    const auto row = all_.data<double>().subspan(first, size);
    for (std::size_t i = 0; i + kBoxNumbers <= row.size(); i += kBoxNumbers) {
      if (!(row[i + 4] >= 0)) continue;  // an empty place
      boxes.insert(boxes.end(), row.begin() + static_cast<std::ptrdiff_t>(i),
                   row.begin() + static_cast<std::ptrdiff_t>(i + kBoxNumbers));
    }
    const auto count = static_cast<std::int64_t>(boxes.size() / kBoxNumbers);
    return {Tensor::of<double>({count, 5}, std::span<const double>(boxes)), {}};
  }

 private:
  std::string path_;
  TruthKind kind_;
  Tensor all_;
};

void add_name(Labels& labels, std::unordered_set<std::string>& seen, std::string_view name,
              int number) {
  if (!seen.emplace(name).second) {
    fail(ErrorKind::BadData, "{}:{}: '{}' is named a second time", labels.path, number, name);
  }
  labels.names.emplace_back(name);
}

}  // namespace

bool is_box_line(std::string_view line) {
  (void)take_word(line);
  const std::string_view word = take_word(line);
  return parse_box(word).has_value();
}

Labels boxes_from_lines(const std::string& path, std::string_view text) {
  Labels labels{.path = path, .indices = {}, .names = {}};
  auto all = std::make_shared<BoxList>();
  std::unordered_set<std::string> seen;
  for_each_line(text, [&](std::string_view line, int number) {
    add_name(labels, seen, take_word(line), number);
    ImageBoxes& image = all->emplace_back();
    for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
      const std::optional<LabelBox> box = parse_box(word);
      if (!box) {
        fail(ErrorKind::BadData, "{}:{}: expected 'x1,y1,x2,y2,class', got '{}'", path, number,
             word);
      }
      image.boxes.push_back(*box);
    }
    labels.indices.push_back(static_cast<std::int64_t>(labels.indices.size()));
  });
  labels.boxes = std::move(all);
  return labels;
}

Labels texts_from_lines(const std::string& path, std::string_view text,
                        const std::string& characters) {
  Labels labels{.path = path, .indices = {}, .names = {}};
  const auto classes = read_characters(characters);
  auto texts = std::make_shared<Texts>(path, static_cast<std::int64_t>(classes.size()) - 1);
  std::unordered_set<std::string> seen;
  for_each_line(text, [&](std::string_view line, int number) {
    const std::size_t tab = line.find('\t');
    const bool named = tab != std::string_view::npos;
    if (!labels.indices.empty() && named != labels.by_name()) {
      fail(ErrorKind::BadData, "{}:{}: expected {}, got '{}'", path, number,
           named ? "a text alone, as in the lines before" : "a name, a tab and a text", line);
    }
    if (named) add_name(labels, seen, line.substr(0, tab), number);
    std::string_view rest = named ? line.substr(tab + 1) : line;
    std::vector<std::int64_t> indices;
    while (!rest.empty()) {
      const auto found = classes.find(take_character(rest));
      indices.push_back(found == classes.end() ? -1 : found->second);
    }
    texts->add(std::move(indices));
    labels.indices.push_back(static_cast<std::int64_t>(labels.indices.size()));
  });
  labels.truths = std::move(texts);
  return labels;
}

Labels from_array(const Tensor& tensor, const std::string& path) {
  const bool boxes = info(tensor.dtype()).is_float;
  if (tensor.rank() != 3 || (boxes && tensor.shape()[2] != 5)) {
    fail(ErrorKind::BadData,
         "{}: labels are whole numbers [N] (classes) or [N,H,W] (masks), or floats [N,count,5] "
         "(boxes: x1, y1, x2, y2, class; -1 for an empty place), got {} of {}",
         path, to_string(tensor.shape()), name_of(tensor.dtype()));
  }
  Labels labels{.path = path, .indices = {}, .names = {}};
  for (std::int64_t i = 0; i < tensor.shape()[0]; ++i) labels.indices.push_back(i);
  labels.truths = std::make_shared<Rows>(path, boxes ? TruthKind::Boxes : TruthKind::Masks, tensor);
  return labels;
}

}  // namespace data
}  // namespace quench
