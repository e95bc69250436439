// SPDX-License-Identifier: Apache-2.0
// Copies of libtorch without symbols that a whole process has once.
//
// The linker gives variables in inline functions to the whole process (STB_GNU_UNIQUE), however
// privately a library is loaded: c10's dispatcher is one of them. Two versions of libtorch then
// work on one object, and crash. In the copies these symbols are ordinary ones.
#include "python/src/own_libtorch.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "python/src/bindings.h"

namespace quench::python {
namespace {

/// Closes what it holds.
struct Descriptor {
  explicit Descriptor(int value) : number(value) {}
  ~Descriptor() {
    if (number >= 0) (void)::close(number);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number;
};

bool read_at(int file, void* bytes, std::size_t size, std::uint64_t offset) {
  return ::pread(file, bytes, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

/// Makes unique symbols of a section ordinary; false where the file is not as it should be.
bool make_ordinary(int file, const Elf64_Shdr& section) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 28;
  if (section.sh_size > kMost) return false;
  std::vector<Elf64_Sym> symbols(section.sh_size / sizeof(Elf64_Sym));
  const std::size_t bytes = symbols.size() * sizeof(Elf64_Sym);
  if (!read_at(file, symbols.data(), bytes, section.sh_offset)) return false;
  for (Elf64_Sym& symbol : symbols) {
    if (ELF64_ST_BIND(symbol.st_info) != STB_GNU_UNIQUE) continue;
    symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, ELF64_ST_TYPE(symbol.st_info));
  }
  return ::pwrite(file, symbols.data(), bytes, static_cast<off_t>(section.sh_offset)) ==
         static_cast<ssize_t>(bytes);
}

bool make_ordinary(int file) {
  Elf64_Ehdr head{};
  if (!read_at(file, &head, sizeof head, 0) || head.e_shentsize != sizeof(Elf64_Shdr)) return false;
  std::vector<Elf64_Shdr> sections(head.e_shnum);
  if (!read_at(file, sections.data(), sections.size() * sizeof(Elf64_Shdr), head.e_shoff)) {
    return false;
  }
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_DYNSYM && !make_ordinary(file, section)) return false;
  }
  return true;
}

/// A file without a name.
int open_nameless() { return ::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0700); }

/// Copies a library into a file, and loads that. It stays loaded.
bool load_copy(const char* path, const Descriptor& copy) {
  const Descriptor from(::open(path, O_RDONLY | O_CLOEXEC));
  struct stat about {};
  if (from.number < 0 || ::fstat(from.number, &about) != 0) return false;
  if (copy.number < 0) return false;
  off_t done = 0;
  while (done < about.st_size) {
    if (::sendfile(copy.number, from.number, &done,
                   static_cast<std::size_t>(about.st_size - done)) <= 0) {
      return false;
    }
  }
  if (!make_ordinary(copy.number)) return false;
  const std::string name = "/proc/self/fd/" + std::to_string(copy.number);
  return ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr;
}

}  // namespace

void keep_libtorch_apart() {
#if defined(QUENCH_C10) && defined(QUENCH_TORCH_CPU)
  static bool done = false;  // Python's lock is held
  if (std::exchange(done, true)) return;
  const py::object spec = py::module_::import("importlib.util").attr("find_spec")("torch");
  if (spec.is_none()) return;
  // Both at once: the linker tells libraries apart by path, which has the descriptor's number.
  const Descriptor c10(open_nameless());
  const Descriptor torch_cpu(open_nameless());
  // The engine finds them under their own names, as they are loaded already.
  if (load_copy(QUENCH_C10, c10)) (void)load_copy(QUENCH_TORCH_CPU, torch_cpu);
#endif
}

}  // namespace quench::python
