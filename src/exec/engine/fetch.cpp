// SPDX-License-Identifier: Apache-2.0
// Copies by way of pinned memory, with what is libtorch's own on every device.
#include "exec/engine/fetch.h"

#include <chrono>
#include <map>
#include <mutex>
#include <thread>
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#pragma GCC diagnostic pop

namespace quench::exec {
namespace {

/// One for each GPU: memory that came on a stream is free for that stream alone.
c10::Stream feeding_stream(const c10::impl::VirtualGuardImpl& streams, at::Device device) {
  static std::mutex mutex;
  static std::map<c10::DeviceIndex, c10::Stream> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(device.index());
  if (found != known.end()) return found->second;
  return known.emplace(device.index(), streams.getStreamFromGlobalPool(device)).first->second;
}

}  // namespace

at::Tensor fetch(const at::Tensor& tensor, const Placement& place) {
  at::Tensor pinned = at::empty(tensor.sizes(), tensor.options().pinned_memory(true));
  pinned.copy_(tensor);
  const c10::impl::VirtualGuardImpl streams(place.device.type());
  const c10::Stream usual = streams.getStream(place.device);
  const c10::StreamGuard guard(feeding_stream(streams, place.device));
  const at::Tensor copied = pinned.to(place.device, /*non_blocking=*/true);
  const at::Tensor moved = place.there(copied);
  c10::Event done(place.device.type());
  done.record(guard.current_stream());
  constexpr std::chrono::microseconds kMoment{50};
  while (!done.query()) std::this_thread::sleep_for(kMoment);
  moved.record_stream(usual);  // its memory is not free before what reads it there has run
  return moved;
}

}  // namespace quench::exec
