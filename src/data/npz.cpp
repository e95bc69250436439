// SPDX-License-Identifier: Apache-2.0
// Reads .npz archives through libzip.
#include <zip.h>

#include <algorithm>

#include "base/file.h"
#include "base/format.h"
#include "base/nearest.h"
#include "data/npy.h"

namespace quench::data {
namespace {

// Deflate cannot do better than this.
constexpr std::uint64_t kMaxRatio = 1100;
constexpr zip_int64_t kMaxMembers = 65536;

struct CloseArchive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct CloseFile {
  void operator()(zip_file_t* file) const { zip_fclose(file); }
};
using Archive = std::unique_ptr<zip_t, CloseArchive>;

Archive open_archive(const std::string& path) {
  int code = 0;
  ReadFile file(path);
  Archive archive(zip_fdopen(file.descriptor(), 0, &code));
  if (archive) {
    (void)file.release();  // libzip closes it
    return archive;
  }
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  const std::string reason = zip_error_strerror(&error);
  zip_error_fini(&error);
  const bool system = code == ZIP_ER_OPEN || code == ZIP_ER_NOENT || code == ZIP_ER_READ;
  fail(system ? ErrorKind::Io : ErrorKind::BadData, "{}: not a readable .npz archive: {}", path,
       reason);
}

std::vector<std::string> members_of(zip_t* archive, const std::string& path) {
  const zip_int64_t count = zip_get_num_entries(archive, 0);
  if (count > kMaxMembers) fail(ErrorKind::BadData, "{}: too many members", path);
  std::vector<std::string> names;
  for (zip_int64_t i = 0; i < count; ++i) {
    const char* name = zip_get_name(archive, static_cast<zip_uint64_t>(i), 0);
    std::string text = name == nullptr ? "" : name;
    if (text.ends_with(".npy")) text.resize(text.size() - 4);
    names.push_back(std::move(text));
  }
  return names;
}

std::shared_ptr<std::vector<std::byte>> read_member(zip_t* archive, zip_uint64_t index) {
  zip_stat_t stat;
  zip_stat_init(&stat);
  constexpr zip_uint64_t kNeeded = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
  if (zip_stat_index(archive, index, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded) {
    fail(ErrorKind::BadData, "the archive's directory is damaged");
  }
  if (stat.size / kMaxRatio > stat.comp_size) {
    fail(ErrorKind::BadData, "{} bytes cannot come out of {}", stat.size, stat.comp_size);
  }
  const std::unique_ptr<zip_file_t, CloseFile> file(zip_fopen_index(archive, index, 0));
  if (!file) fail(ErrorKind::BadData, "{}", zip_strerror(archive));
  // Grows with what really comes out, as the directory may lie about both sizes.
  auto bytes = std::make_shared<std::vector<std::byte>>();
  constexpr std::size_t kStep = std::size_t{1} << 24;
  while (bytes->size() < stat.size) {
    const std::size_t before = bytes->size();
    bytes->resize(before + std::min<std::size_t>(kStep, stat.size - before));
    const zip_int64_t got = zip_fread(file.get(), bytes->data() + before, bytes->size() - before);
    if (got <= 0) fail(ErrorKind::BadData, "the member is damaged or cut off");
    bytes->resize(before + static_cast<std::size_t>(got));
  }
  // Reading to the very end makes libzip compare the checksum.
  char rest = 0;
  if (zip_fread(file.get(), &rest, 1) != 0) fail(ErrorKind::BadData, "the member is damaged");
  return bytes;
}

}  // namespace

std::vector<std::string> npz_members(const std::string& path) {
  return members_of(open_archive(path).get(), path);
}

Tensor read_npz(const std::string& path, const std::string& member) {
  const Archive archive = open_archive(path);
  const std::vector<std::string> members = members_of(archive.get(), path);
  const auto found = std::find(members.begin(), members.end(), member);
  if (found == members.end()) {
    fail(ErrorKind::BadData, "{} has no array '{}'; it holds {}{}", path, member,
         fmt::join(members, ", "), did_you_mean(member, members));
  }
  try {
    const auto bytes =
        read_member(archive.get(), static_cast<zip_uint64_t>(found - members.begin()));
    return parse_npy(*bytes, bytes);
  } catch (Error& error) {
    error.in(format("{}:{}", path, member));
    throw;
  }
}

}  // namespace quench::data
