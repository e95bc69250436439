// SPDX-License-Identifier: Apache-2.0
// Reads COCO's annotation files.
#include "data/coco.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/format.h"

namespace quench::data {
namespace {

using Json = nlohmann::json;

constexpr int kMaxSide = 65535;

/// One file, with words for what is wrong in it.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path) {
    json_ = Json::parse(read_text(path), nullptr, false);
    if (json_.is_discarded() || !json_.is_object()) {
      fail(ErrorKind::BadData, "{}: not an annotation file: it is no JSON object", path);
    }
  }

  const Json& list(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end() || !found->is_array()) {
      fail(ErrorKind::BadData, "{}: there is no list '{}', as COCO's annotation files have it",
           path_, key);
    }
    return *found;
  }

  std::int64_t whole(const Json& entry, const char* key, const char* list, std::size_t at) const {
    const auto found = entry.is_object() ? entry.find(key) : entry.end();
    if (!entry.is_object() || found == entry.end() || !found->is_number_integer()) {
      refuse(list, at, format("needs a whole number '{}'", key));
    }
    return found->get<std::int64_t>();
  }

  [[noreturn]] void refuse(const char* list, std::size_t at, const std::string& why) const {
    fail(ErrorKind::BadData, "{}: {}[{}] {}", path_, list, at, why);
  }

  /// The place of each category in the order of ids.
  std::map<std::int64_t, std::int64_t> classes() const {
    std::map<std::int64_t, std::int64_t> places;
    const Json& all = list("categories");
    for (std::size_t i = 0; i < all.size(); ++i) places[whole(all[i], "id", "categories", i)] = 0;
    std::int64_t next = 0;
    for (auto& [id, place] : places) place = next++;
    return places;
  }

 private:
  std::string path_;
  Json json_;
};

ImageSize size_of(const Reader& reader, const Json& entry, std::size_t at) {
  if (!entry.contains("width") && !entry.contains("height")) return {};
  const std::int64_t width = reader.whole(entry, "width", "images", at);
  const std::int64_t height = reader.whole(entry, "height", "images", at);
  if (width < 1 || height < 1 || width > kMaxSide || height > kMaxSide) {
    reader.refuse("images", at, format("has an impossible size of {}x{}", width, height));
  }
  return {static_cast<int>(width), static_cast<int>(height)};
}

LabelBox box_of(const Reader& reader, const Json& entry, std::size_t at) {
  const auto found = entry.find("bbox");
  std::array<double, 4> numbers{};
  bool good = found != entry.end() && found->is_array() && found->size() == numbers.size();
  for (std::size_t i = 0; good && i < numbers.size(); ++i) {
    good = (*found)[i].is_number();
    if (good) numbers[i] = (*found)[i].get<double>();
    good = good && std::isfinite(numbers[i]);
  }
  if (!good || numbers[2] < 0 || numbers[3] < 0) {
    reader.refuse("annotations", at, "needs 'bbox': x, y, width and height");
  }
  return {numbers[0], numbers[1], numbers[0] + numbers[2], numbers[1] + numbers[3], 0};
}

}  // namespace

Labels read_coco(const std::string& path) {
  const Reader reader(path);
  Labels labels{.path = path, .indices = {}, .names = {}, .names_more = true};
  auto boxes = std::make_shared<BoxList>();
  std::map<std::int64_t, std::size_t> places;
  const Json& images = reader.list("images");
  for (std::size_t i = 0; i < images.size(); ++i) {
    const std::int64_t id = reader.whole(images[i], "id", "images", i);
    const auto name = images[i].find("file_name");
    if (name == images[i].end() || !name->is_string()) {
      reader.refuse("images", i, "needs a 'file_name'");
    }
    if (!places.emplace(id, i).second) reader.refuse("images", i, "has the id of another image");
    labels.names.push_back(name->get<std::string>());
    labels.indices.push_back(static_cast<std::int64_t>(i));
    boxes->push_back({{}, size_of(reader, images[i], i)});
  }
  const std::map<std::int64_t, std::int64_t> classes = reader.classes();
  const Json& annotations = reader.list("annotations");
  for (std::size_t i = 0; i < annotations.size(); ++i) {
    const auto place = places.find(reader.whole(annotations[i], "image_id", "annotations", i));
    const auto label = classes.find(reader.whole(annotations[i], "category_id", "annotations", i));
    if (place == places.end()) reader.refuse("annotations", i, "is of an image that is not listed");
    if (label == classes.end()) {
      reader.refuse("annotations", i, "is of a category that is not listed");
    }
    const auto crowd = annotations[i].find("iscrowd");
    if (crowd != annotations[i].end() && *crowd == 1) continue;
    LabelBox box = box_of(reader, annotations[i], i);
    box[4] = static_cast<double>(label->second);
    (*boxes)[place->second].boxes.push_back(box);
  }
  if (labels.names.empty()) fail(ErrorKind::BadData, "{}: holds no images", path);
  labels.boxes = std::move(boxes);
  return labels;
}

}  // namespace quench::data
