// SPDX-License-Identifier: Apache-2.0
// External data: paths that stay in the model's folder, ranges that stay in the file.
#include "formats/onnx/source.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/format.h"
#include "formats/onnx/onnx.pb.h"

namespace quench::onnx {
namespace {

namespace fs = std::filesystem;

/// Where a tensor lies, as its external_data says.
struct Place {
  std::string location;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

std::uint64_t number(const StringStringEntryProto& entry) {
  std::uint64_t value = 0;
  const std::string& text = entry.value();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    fail(ErrorKind::BadModel, "its external data has the {} '{}', which is not a byte count",
         entry.key(), text);
  }
  return value;
}

Place place_of(const TensorProto& proto, std::uint64_t expected) {
  Place place{.location = {}, .offset = 0, .length = expected};
  for (const StringStringEntryProto& entry : proto.external_data()) {
    if (entry.key() == "location") place.location = entry.value();
    if (entry.key() == "offset") place.offset = number(entry);
    if (entry.key() == "length") place.length = number(entry);
  }
  if (place.location.empty()) {
    fail(ErrorKind::BadModel, "its data is external but names no file");
  }
  if (place.length != expected) {
    fail(ErrorKind::BadModel, "its external data has {} bytes, but its type and shape take {}",
         place.length, expected);
  }
  return place;
}

bool leaves_folder(const fs::path& location) {
  return location.is_absolute() || std::any_of(location.begin(), location.end(),
                                               [](const fs::path& part) { return part == ".."; });
}

/// The path of a data file; links are followed, and must not lead out of the folder either.
fs::path resolve(const fs::path& folder, const std::string& location) {
  if (location.find('\0') != std::string::npos || leaves_folder(location)) {
    fail(ErrorKind::BadModel,
         "its external data file '{}' is outside the model's folder, which is not allowed; put it "
         "beside the model",
         location);
  }
  std::error_code error;
  const fs::path root = fs::canonical(folder.empty() ? "." : folder, error);
  fs::path path = fs::canonical(folder / location, error);
  if (error) {
    fail(ErrorKind::Io, "the external data file '{}' is missing: {}; put it beside the model",
         (folder / location).string(), error.message());
  }
  const auto [end, unused] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (end != root.end()) {
    fail(ErrorKind::BadModel,
         "its external data file '{}' is a link that leads outside the model's folder, which is "
         "not allowed; put the file itself there",
         location);
  }
  return path;
}

}  // namespace

Source::Source(const std::string& path, Stored file, ReadOptions options)
    : folder_(fs::path(path).parent_path().string()),
      file_(std::move(file)),
      options_(std::move(options)) {}

Stored Source::part(std::uint64_t number, std::uint64_t size) const {
  if (number >= parts_.size() || parts_[number].bytes.size() != size) {
    fail(ErrorKind::BadModel, "its bytes are not in the file; the file is damaged");
  }
  return parts_[number];
}

Stored Source::inside(std::uint64_t position, std::uint64_t size) const {
  if (numbered_) return part(position, size);
  if (position > file_.bytes.size() || size > file_.bytes.size() - position) {
    fail(ErrorKind::Internal, "a tensor was recorded outside the file");
  }
  return {file_.bytes.subspan(static_cast<std::size_t>(position), static_cast<std::size_t>(size)),
          file_.owner};
}

const WindowedFile& Source::open(const std::string& location) {
  auto& file = files_[location];
  if (options_.locations != nullptr) options_.locations->insert(location);
  if (!file) {
    const auto redirect = options_.redirects.find(location);
    file = WindowedFile::open(redirect != options_.redirects.end()
                                  ? redirect->second
                                  : resolve(folder_, location).string());
  }
  return *file;
}

std::shared_ptr<const ByteSource> Source::outside(const TensorProto& proto, std::uint64_t expected,
                                                  std::size_t alignment) {
  if (numbered_)
    fail(ErrorKind::BadModel, "its data is external, but this file holds all its data");
  const Place place = place_of(proto, expected);
  const WindowedFile& file = open(place.location);
  if (place.offset > file.size() || expected > file.size() - place.offset) {
    fail(ErrorKind::BadModel,
         "its data should lie at {} + {} bytes of '{}', which has only {}; the data file does not "
         "belong to this model or is truncated",
         place.offset, expected, place.location, file.size());
  }
  auto& known = outside_[{place.location, place.offset, expected}];
  const auto size = static_cast<std::size_t>(expected);
  if (!known) {
    known =
        size <= kSmall ? file.copy(place.offset, size) : file.part(place.offset, size, alignment);
  }
  return known;
}

}  // namespace quench::onnx
