// SPDX-License-Identifier: Apache-2.0
// NVRTC and the driver, found in the process where libtorch's CUDA half has brought them.
#include "exec/engine/cuda/kernels.h"

#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "base/format.h"
#include "exec/engine/cuda/sources.h"
#include "exec/engine/torch.h"

namespace quench::exec {
namespace {

/// Headers of C++ that the shared texts include: NVRTC has none.
constexpr CudaText kShims[] = {
    {"cstdint",
     "namespace std { using int32_t = int; using int64_t = long long; "
     "using uint32_t = unsigned; using uint64_t = unsigned long long; }"},
    {"cmath",
     "namespace std { inline double floor(double x) { return ::floor(x); } "
     "inline double ldexp(double x, int n) { return ::ldexp(x, n); } "
     "inline int ilogb(double x) { return ::ilogb(x); } }"},
};

/// The functions of NVRTC and of the driver that are used. Their C interfaces have stayed the same
/// since CUDA 8, so no header of CUDA's is needed.
struct Driver {
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(void*, int, const char* const*);
  int (*log_size)(void*, std::size_t*);
  int (*log)(void*, char*);
  int (*code_size)(void*, std::size_t*);
  int (*code)(void*, char*);
  int (*destroy)(void**);
  int (*attribute)(int*, int, int);
  int (*load)(void**, const void*);
  int (*function)(void**, void*, const char*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**);
};

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) fail(ErrorKind::Unsupported, "libtorch's NVRTC has no '{}'", name);
}

/// libtorch's own door to NVRTC knows where both libraries are.
const Driver& driver() {
  static const Driver kDriver = [] {
    const std::string path = (torch_folder() / "libcaffe2_nvrtc.so").string();
    void* library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (library == nullptr) {
      const char* reason = ::dlerror();
      fail(ErrorKind::Unsupported, "{} cannot be loaded: {}", path,
           reason == nullptr ? "unknown reason" : reason);
    }
    Driver all{};
    find(library, "nvrtcCreateProgram", all.create);
    find(library, "nvrtcCompileProgram", all.compile);
    find(library, "nvrtcGetProgramLogSize", all.log_size);
    find(library, "nvrtcGetProgramLog", all.log);
    find(library, "nvrtcGetCUBINSize", all.code_size);
    find(library, "nvrtcGetCUBIN", all.code);
    find(library, "nvrtcDestroyProgram", all.destroy);
    find(library, "cuDeviceGetAttribute", all.attribute);
    find(library, "cuModuleLoadData", all.load);
    find(library, "cuModuleGetFunction", all.function);
    find(library, "cuLaunchKernel", all.launch);
    return all;
  }();
  return kDriver;
}

void check(int status, std::string_view what) {
  constexpr int kOutOfMemory = 2;
  if (status == 0) return;
  if (status == kOutOfMemory) {
    fail(ErrorKind::Unsupported, "the GPU is out of memory: it could not {}", what);
  }
  fail(ErrorKind::Unsupported, "the GPU refused to {} (CUDA's error {})", what, status);
}

const char* text_of(const std::string& file) {
  const auto texts = cuda_texts();
  const auto found = std::ranges::find(texts, file, &CudaText::name);
  if (found == texts.end()) fail(ErrorKind::Internal, "no CUDA file is called '{}'", file);
  return found->text;
}

std::string architecture(int gpu) {
  constexpr int kMajor = 75;
  constexpr int kMinor = 76;
  int major = 0;
  int minor = 0;
  check(driver().attribute(&major, kMajor, gpu), "say what it is");
  check(driver().attribute(&minor, kMinor, gpu), "say what it is");
  return format("sm_{}{}", major, minor);
}

std::vector<char> compiled(const std::string& file, const std::string& architecture) {
  std::vector<const char*> names;
  std::vector<const char*> texts;
  const auto add = [&](const CudaText& each) {
    names.push_back(each.name);
    texts.push_back(each.text);
  };
  std::ranges::for_each(kShims, add);
  std::ranges::for_each(cuda_texts(), add);
  void* program = nullptr;
  const Driver& nvrtc = driver();
  check(nvrtc.create(&program, text_of(file), file.c_str(), static_cast<int>(names.size()),
                     texts.data(), names.data()),
        "take a program");
  const std::string target = "--gpu-architecture=" + architecture;
  const std::array<const char*, 3> options = {target.c_str(), "--std=c++17", "-default-device"};
  const int status = nvrtc.compile(program, static_cast<int>(options.size()), options.data());
  std::size_t size = 0;
  if (status != 0) {
    check(nvrtc.log_size(program, &size), "say what is wrong");
    std::string log(size, ' ');
    check(nvrtc.log(program, log.data()), "say what is wrong");
    fail(ErrorKind::Unsupported, "{} cannot be compiled for {}: {}", file, architecture, log);
  }
  check(nvrtc.code_size(program, &size), "compile");
  std::vector<char> code(size);
  check(nvrtc.code(program, code.data()), "compile");
  check(nvrtc.destroy(&program), "compile");
  return code;
}

class Loaded final : public CudaKernels {
 public:
  Loaded(const std::string& file, int gpu) : code_(compiled(file, architecture(gpu))) {
    check(driver().load(&module_, code_.data()), "load our kernels");
  }

 private:
  void start(const char* name, const Launch& size, void** arguments) override {
    if (size.x <= 0 || size.y <= 0) return;
    check(driver().launch(function(name), static_cast<unsigned>(size.x),
                          static_cast<unsigned>(size.y), 1, static_cast<unsigned>(size.threads), 1,
                          1, 0, nullptr, arguments, nullptr),
          format("run '{}'", name));
  }

  void* function(const char* name) {
    const std::lock_guard lock(mutex_);
    void*& found = functions_[name];
    if (found == nullptr) check(driver().function(&found, module_, name), "find a kernel");
    return found;
  }

  std::vector<char> code_;
  void* module_ = nullptr;  ///< lives as long as the process: others may still run its kernels
  std::mutex mutex_;
  std::map<std::string, void*> functions_;
};

}  // namespace

std::filesystem::path torch_folder() {
  Dl_info where{};
  if (::dladdr(reinterpret_cast<const void*>(&at::get_num_threads), &where) == 0 ||
      where.dli_fname == nullptr) {
    fail(ErrorKind::Internal, "libtorch cannot be found in this process");
  }
  std::error_code ignored;
  return std::filesystem::canonical(where.dli_fname, ignored).parent_path();
}

std::shared_ptr<CudaKernels> cuda_kernels(const std::string& file, int gpu) {
  static std::mutex mutex;
  static std::map<std::pair<std::string, int>, std::shared_ptr<CudaKernels>> all;
  const std::lock_guard lock(mutex);
  auto& kernels = all[{file, gpu}];
  if (kernels == nullptr) kernels = std::make_shared<Loaded>(file + ".cu", gpu);
  return kernels;
}

}  // namespace quench::exec
