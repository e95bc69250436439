// SPDX-License-Identifier: Apache-2.0
// Finds and opens modules beside this library.
#include "base/module.h"

#include <dlfcn.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <vector>

#include "base/format.h"

namespace quench {
namespace {

namespace fs = std::filesystem;

fs::path own_folder() {
  Dl_info where{};
  static const char kAnchor = 0;
  if (::dladdr(&kAnchor, &where) == 0 || where.dli_fname == nullptr) return {};
  std::error_code ignored;
  return fs::canonical(where.dli_fname, ignored).parent_path();
}

void* open_module(const std::string& name, const Context& context) {
  const std::string file = "libquench_" + name + ".so";
  std::vector<fs::path> folders;
  if (!context.module_dir.empty()) {
    folders = {context.module_dir};
  } else {
    folders = {own_folder(), own_folder() / "quench"};
  }
  std::string tried;
  for (const fs::path& folder : folders) {
    const fs::path path = folder / file;
    if (!fs::exists(path)) {
      tried += "\n  " + path.string() + ": not there";
      continue;
    }
    // Lazily: binding every function of the hundreds of libraries behind libtorch takes 50 ms.
    if (void* module = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) return module;
    const char* reason = ::dlerror();
    tried += "\n  " + path.string() + ": " + (reason == nullptr ? "unknown reason" : reason);
  }
  fail(ErrorKind::Unsupported, "this needs the module '{}', which could not be loaded; tried:{}",
       file, tried);
}

}  // namespace

void* module_symbol(const std::string& name, const std::string& symbol, const Context& context) {
  static std::mutex mutex;
  static std::map<std::string, void*> modules;
  const std::lock_guard lock(mutex);
  auto found = modules.find(name);
  if (found == modules.end()) found = modules.emplace(name, open_module(name, context)).first;
  void* address = ::dlsym(found->second, symbol.c_str());
  if (address == nullptr) {
    fail(ErrorKind::Internal, "module '{}' has no '{}': it is from another version of Quench", name,
         symbol);
  }
  return address;
}

}  // namespace quench
