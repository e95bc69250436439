// SPDX-License-Identifier: Apache-2.0
// How a program makes kernels and calls them.
#pragma once

#include "exec/engine/kernel.h"
#include "exec/engine/onednn/onednn.h"

namespace quench::exec {

/// The kernel's function, computing in float32 where 16-bit floats may come and it cannot take
/// them.
KernelFunction as_wide(const KernelInfo& info, const OpContext& context, KernelFunction kernel);

inline std::string first_line(const char* text) {
  const std::string whole(text);
  return whole.substr(0, whole.find('\n'));
}

/// Runs a part of a kernel. Whatever libtorch, oneDNN or memory refuses becomes one sentence that
/// names the node: its kernel was asked for what no such operator can compute.
template <typename Run>
void named(const std::string& label, Run run) {
  try {
    run();
  } catch (Error& error) {
    throw error.in(label);
  } catch (const c10::Error& error) {
    fail(ErrorKind::BadData, "{}: {}", label, first_line(error.what_without_backtrace()));
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::Unsupported, "{}: there is not enough memory for what it makes", label);
  } catch (const dnnl::error& error) {
    fail(ErrorKind::BadData, "{}: {}", label, first_line(error.what()));
  } catch (const std::runtime_error& error) {  // libtorch's where a shape does not fit
    fail(ErrorKind::BadData, "{}: {}", label, first_line(error.what()));
  } catch (const std::exception& error) {
    fail(ErrorKind::Internal, "{}: {}", label, first_line(error.what()));
  }
}

}  // namespace quench::exec
