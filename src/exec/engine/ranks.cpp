// SPDX-License-Identifier: Apache-2.0
// Ranks by way of libtorch's c10d: notes in a TCPStore, bytes by Gloo.
#include "exec/engine/ranks.h"

#include <unistd.h>

#include <map>
#include <set>

#include "base/format.h"
#include "base/module.h"
#include "exec/engine/nccl/group.h"
#include "exec/engine/ranks_store.h"
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#include <c10/util/Logging.h>

#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#pragma GCC diagnostic pop

namespace quench::exec {
namespace {

constexpr std::size_t kMostNote = std::size_t{4} << 20U;
constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;

/// FNV-1a.
std::int64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return static_cast<std::int64_t>(hash >> 1U);
}

class GlooRanks final : public Ranks {
 public:
  GlooRanks(const RankOptions& options, const Context& context)
      : context_(context.alone()), store_(options) {
    try {
      agree("the number of processes", format("{}", options.size));
      agree("--elastic", options.elastic ? "given" : "not given");
      agree("--tensor-parallel", options.tensor_parallel ? "given" : "not given");
      store_.come();  // last: once all are here they connect, and Gloo would wait for who failed
      // Who may die may also never come: nobody waits, and pieces go to those who are here.
      if (options.elastic) return;
      store_.wait_for_all();
      store_.guarded([&] { connect(options); });
    } catch (const Error& error) {
      (void)store_.fail(error.kind(), error.what());  // those who came are told
      throw;
    }
  }

  int rank() const noexcept override { return store_.options().rank; }
  int size() const noexcept override { return store_.options().size; }
  bool tensor_parallel() const noexcept override { return store_.options().tensor_parallel; }

  void send(int to, std::span<const std::byte> bytes, std::string_view what) override {
    meet(rank(), to, to);
    store_.guarded([&] {
      std::vector<at::Tensor> head = {
          at::tensor({static_cast<std::int64_t>(bytes.size()), hash_of(what)}, at::kLong)};
      group_->send(head, to, 0)->wait();
      if (bytes.empty()) return;
      auto* data = const_cast<std::byte*>(bytes.data());  // libtorch asks for a mutable pointer
      std::vector<at::Tensor> body = {
          at::from_blob(data, {static_cast<std::int64_t>(bytes.size())}, at::kByte)};
      group_->send(body, to, 0)->wait();
    });
  }

  std::vector<std::byte> receive(int from, std::string_view what) override {
    meet(from, rank(), from);
    return store_.guarded([&] {
      std::vector<at::Tensor> head = {at::zeros({2}, at::kLong)};
      group_->recv(head, from, 0)->wait();
      const auto size = head[0][0].item<std::int64_t>();
      if (head[0][1].item<std::int64_t>() != hash_of(what) || size < 0 || size > kMostBytes) {
        quench::fail(
            ErrorKind::BadConfig,
            "rank {} and rank {} have gone apart: one has no {} to tell; are their machines "
            "alike (--max-isa), and their data the same?",
            from, rank(), what);
      }
      std::vector<std::byte> bytes(static_cast<std::size_t>(size));
      if (size == 0) return bytes;
      std::vector<at::Tensor> body = {at::from_blob(bytes.data(), {size}, at::kByte)};
      group_->recv(body, from, 0)->wait();
      return bytes;
    });
  }

  bool elastic() const noexcept override { return store_.options().elastic; }

  // In parts: libtorch's store takes no text of more than 8 MiB.
  void leave_note(const std::string& key, std::span<const std::byte> bytes) override {
    std::int64_t parts = 0;
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min(bytes.size(), kMostNote));
      store_.set(format("{}/{}", key, parts++),
                 {reinterpret_cast<const char*>(part.data()), part.size()});
      bytes = bytes.subspan(part.size());
    }
    store_.set(key, format("{}", parts));
  }

  std::optional<std::vector<std::byte>> note(const std::string& key) override {
    if (!store_.has(key)) return std::nullopt;
    const int parts = std::stoi(store_.get(key));
    std::vector<std::byte> bytes;
    for (int i = 0; i < parts; ++i) {
      const std::string part = store_.get(format("{}/{}", key, i));
      const auto more = std::as_bytes(std::span(part));
      bytes.insert(bytes.end(), more.begin(), more.end());
    }
    return bytes;
  }

  int claim(const std::string& key, int from) override {
    const std::string expected = from < 0 ? std::string() : format("{}", from);
    return std::stoi(store_.exchange(key, expected, format("{}", rank())));
  }
  bool alive(int rank) override { return store_.alive(rank); }
  std::vector<int> missing() override { return elastic() ? store_.missing() : std::vector<int>(); }

  std::int64_t open_queue() override { return queues_++; }
  std::int64_t take(std::int64_t queue) override {
    check();
    return store_.add(format("queue/{}", queue), 1) - 1;
  }

  void agree(std::string_view what, std::string_view text) override {
    const std::string key = format("agree/{}", agreed_++);
    const std::string own = format("{}\n{}", what, text);
    if (rank() == 0) return store_.set(key, own);
    store_.wait_for(key, 0);
    if (store_.get(key) == own) return;
    quench::fail(ErrorKind::BadConfig,
                 "{} of rank {} is not that of rank 0; give all ranks the same", what, rank());
  }

  void check() override { store_.check(); }
  bool fail(ErrorKind kind, std::string_view sentence) noexcept override {
    return store_.fail(kind, sentence);
  }
  void leave() override { store_.leave(); }

  /// One tensor a rank, all of one shape.
  std::vector<at::Tensor> gather(const at::Tensor& own) {
    return store_.guarded([&] {
      // Gloo writes on a thread of its own, which is in no inference mode.
      const at::InferenceMode plain(false);
      std::vector<at::Tensor> in = {own.is_inference() ? own.clone() : own};
      std::vector<std::vector<at::Tensor>> out(1);
      for (int i = 0; i < size(); ++i) out[0].push_back(at::empty_like(in[0]));
      group_->allgather(out, in)->wait();
      return std::move(out[0]);
    });
  }

  /// Begins to sum; what is returned waits. A GPU's tensor comes here first where Gloo sums it.
  std::function<void()> sum(at::Tensor& tensor) {
    return store_.guarded([&]() -> std::function<void()> {
      if (tensor.is_cuda() && has_nccl(tensor.device())) {
        return [this, wait = nccl_->sum(tensor)] { store_.guarded(wait); };
      }
      if (tensor.is_cuda()) tensor = tensor.to(at::kCPU);
      std::vector<at::Tensor> one = {tensor};
      return [this, work = group_->allreduce(one)] { store_.guarded([&] { work->wait(); }); };
    });
  }

 private:
  /// Whether GPUs sum by NCCL: every rank has the module and a GPU of its own. Asked by all ranks
  /// at once.
  bool has_nccl(const at::Device& device) {
    if (asked_nccl_) return nccl_ != nullptr;
    asked_nccl_ = true;
    NcclFunction make = nullptr;
    try {
      make = reinterpret_cast<NcclFunction>(module_symbol("nccl", "quench_nccl_group", context_));
    } catch (const Error&) {  // not built
    }
    char host[256] = {};
    (void)::gethostname(host, sizeof(host) - 1);
    const std::int64_t place =
        make == nullptr ? -1 : hash_of(format("{} {}", host, device.index()));
    std::set<std::int64_t> places;
    for (const at::Tensor& each : gather(at::tensor({place}, at::kLong))) {
      places.insert(each.item<std::int64_t>());
    }
    const bool apart = static_cast<int>(places.size()) == size() && !places.contains(-1);
    if (apart) nccl_.reset(make(store_.torch(), rank(), size()));
    return apart;
  }

  void connect(const RankOptions& options) {
    using Gloo = c10d::ProcessGroupGloo;
    const auto most = std::chrono::milliseconds(
        static_cast<std::int64_t>(std::min(options.timeout_seconds, 1e6) * 1000));
    auto how = Gloo::Options::create(most);
    const bool local = options.address == "127.0.0.1" || options.address == "localhost";
    how->devices.push_back(!options.interface.empty()
                               ? Gloo::createDeviceForInterface(options.interface)
                           : local ? Gloo::createDeviceForHostname("127.0.0.1")
                                   : Gloo::createDefaultDevice());
    group_ = c10::make_intrusive<Gloo>(store_.torch(), options.rank, options.size, how);
  }

  /// Both sides of a message say that they are there, and only then go to Gloo: its waiting cannot
  /// tell a rank that computes for long from one that is dead.
  void meet(int from, int to, int other) {
    const std::int64_t number = messages_[{from, to}]++;
    const std::string sends = format("s/{}/{}/{}", from, to, number);
    const std::string reads = format("r/{}/{}/{}", from, to, number);
    const bool sender = from == rank();
    store_.set(sender ? sends : reads, "1");
    store_.wait_for(sender ? reads : sends, other);
    store_.remove(sender ? reads : sends);
  }

  Context context_;
  RankStore store_;
  std::unique_ptr<NcclGroup> nccl_;
  bool asked_nccl_ = false;
  c10::intrusive_ptr<c10d::ProcessGroupGloo> group_;
  std::map<std::pair<int, int>, std::int64_t> messages_;
  std::int64_t queues_ = 0;
  std::int64_t agreed_ = 0;
};

}  // namespace

void sum_over(Ranks& ranks, std::vector<at::Tensor>& tensors) {
  for (at::Tensor& tensor : tensors) begin_sum(ranks, tensor)();
}

std::function<void()> begin_sum(Ranks& ranks, at::Tensor& tensor) {
  if (ranks.size() == 1) return [] {};
  return dynamic_cast<GlooRanks&>(ranks).sum(tensor);
}

at::Tensor gather_over(Ranks& ranks, const at::Tensor& part, std::int64_t axis) {
  if (ranks.size() == 1) return part;
  auto& group = dynamic_cast<GlooRanks&>(ranks);
  at::Tensor rows = part.movedim(axis, 0).contiguous();
  const std::vector<at::Tensor> sizes = group.gather(at::tensor({rows.size(0)}, at::kLong));
  std::int64_t most = 0;
  for (const at::Tensor& size : sizes) most = std::max(most, size.item<std::int64_t>());
  if (rows.size(0) < most) {
    std::vector<std::int64_t> missing = rows.sizes().vec();
    missing[0] = most - rows.size(0);
    rows = at::cat({rows, at::zeros(missing, rows.options())});
  }
  std::vector<at::Tensor> parts = group.gather(rows);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i] = parts[i].narrow(0, 0, sizes[i].item<std::int64_t>());
  }
  return at::cat(parts).movedim(0, axis).contiguous();
}

}  // namespace quench::exec

extern "C" __attribute__((visibility("default"))) quench::Ranks* quench_engine_join(
    const quench::RankOptions& options, const quench::Context& context) {
  c10::initLogging();  // else the caller's TORCH_CPP_LOG_LEVEL is not read
  return new quench::exec::GlooRanks(options, context);
}
