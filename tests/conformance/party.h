// SPDX-License-Identifier: Apache-2.0
//
// A Party is one end of a conversation: a protection domain, a completion queue, a connection
// manager and one queue pair, with helpers that read as sentences. A Loop polls all the parties
// that one thread drives, since a test of two ends in one thread must give both their turn.
//
// Every wait is bounded by kHangBound and ends the test by an exception when it is passed.
// Threads: a Loop and its parties belong to one thread.

#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "verbena/tests/conformance/device_under_test.h"
#include "verbena/tests/conformance/requests.h"
#include "verbena/transport/device.h"

namespace verbena::conformance {

// Only a bound on hanging: nothing is measured, and a loaded machine stays far below it.
inline constexpr std::chrono::milliseconds kHangBound{5000};
// How long something that must not happen is given to happen. Too short only hides a bug.
inline constexpr std::chrono::milliseconds kQuietTime{20};

inline constexpr AccessFlags kAccessReadWrite =
    kAccessLocalWrite | kAccessRemoteWrite | kAccessRemoteRead;

// Registered memory of a party.
class Buffer {
 public:
  explicit Buffer(std::unique_ptr<MemoryRegion> region) : region_(std::move(region)) {}

  MemoryRegion& region() const { return *region_; }
  std::span<std::byte> bytes() const { return region_->bytes(); }
  std::span<std::byte> bytes(size_t offset, size_t length) const {
    return region_->bytes().subspan(offset, length);
  }
  uint64_t& word(size_t offset = 0) const {
    return *reinterpret_cast<uint64_t*>(region_->address() + offset);
  }
  ScatterGatherEntry Piece(size_t offset, size_t length) const {
    return {region_->address() + offset, static_cast<uint32_t>(length), region_->local_key()};
  }
  ScatterGatherEntry First(size_t length) const { return Piece(0, length); }
  ScatterGatherEntry All() const { return Piece(0, region_->size()); }
  RemoteTarget At(int64_t offset) const {
    return {region_->address() + static_cast<uint64_t>(offset), region_->remote_key()};
  }
  RemoteTarget Start() const { return At(0); }
  // The keys are invalid from here on, and bytes() too.
  void Deregister() { region_.reset(); }

 private:
  std::unique_ptr<MemoryRegion> region_;
};

class Party;

// Whether the device may say `got` where the model says `wanted`.
bool Accepts(const DeviceUnderTest& subject, CompletionStatus wanted, CompletionStatus got);

class Loop {
 public:
  explicit Loop(const DeviceUnderTest& subject) : subject_(subject) {}
  // Gives every party its turn until `done`; false when kHangBound passed first.
  bool RunUntil(const std::function<bool()>& done,
                std::chrono::milliseconds bound = kHangBound) const;
  // Gives whatever must not happen the time to happen.
  void RunQuietly() const;
  bool Accepts(CompletionStatus wanted, CompletionStatus got) const {
    return conformance::Accepts(subject_, wanted, got);
  }

  void Add(Party* party) { parties_.push_back(party); }
  void Remove(Party* party) { std::erase(parties_, party); }

 private:
  const DeviceUnderTest& subject_;
  std::vector<Party*> parties_;
};

struct PartyOptions {
  uint32_t completion_depth = 1024;
  bool sleeps = false;  // With a completion channel.
};

class Party {
 public:
  Party(std::string name, Device& device, Loop& loop, const PartyOptions& options = {});
  ~Party();
  Party(const Party&) = delete;
  Party& operator=(const Party&) = delete;

  Device& device() { return device_; }
  ProtectionDomain& domain() { return *domain_; }
  CompletionQueue& queue() { return *queue_; }
  CompletionChannel& channel() { return *channel_; }
  ConnectionManager& manager() { return *manager_; }
  QueuePair& pair() { return *pair_; }
  Loop& loop() { return *loop_; }
  // From here on `loop` drives this party, and it must outlive it or the next MoveTo.
  void MoveTo(Loop& loop);

  // Depths of 64, as many scatter/gather entries (up to 4) and inline bytes as the device has,
  // completions to queue().
  QueuePairOptions DefaultOptions() const;
  // `options` without queues get queue().
  std::unique_ptr<QueuePair> NewQueuePair(QueuePairOptions options);
  void MakePair(const QueuePairOptions& options) { pair_ = NewQueuePair(options); }
  void DestroyPair() { pair_.reset(); }

  // Memory that lives as long as the party, so longer than every work request.
  Buffer& Allocate(size_t bytes, AccessFlags access = kAccessReadWrite);
  Buffer& RegisterUserMemory(size_t bytes, AccessFlags access = kAccessLocalWrite);

  // Must be accepted.
  void Post(const Request& request) { Post(pair(), request); }
  void Post(QueuePair& pair, const Request& request) { Post(pair, std::vector{request}); }
  void Post(const std::vector<Request>& requests) { Post(pair(), requests); }
  void Post(QueuePair& pair, const std::vector<Request>& requests);
  void PostRecv(uint64_t id, Pieces into) { PostRecv(pair(), id, std::move(into)); }
  void PostRecv(QueuePair& pair, uint64_t id, Pieces into);
  void PostRecv(SharedReceiveQueue& queue, uint64_t id, Pieces into);
  // May be refused.
  absl::Status TryPost(const Request& request) { return TryPost(std::vector{request}, nullptr); }
  absl::Status TryPost(const std::vector<Request>& requests, size_t* accepted);
  absl::Status TryPost(QueuePair& pair, const std::vector<Request>& requests, size_t* accepted);

  WorkCompletion NextCompletion();
  // Expects that the next completion is this one, and returns it. The opcode of an error means
  // nothing (ibv_poll_cq(3)) and is not compared.
  WorkCompletion ExpectCompletion(uint64_t id, CompletionStatus status,
                                  std::optional<CompletionOpcode> opcode = {});
  WorkCompletion ExpectSuccess(uint64_t id, std::optional<CompletionOpcode> opcode = {}) {
    return ExpectCompletion(id, CompletionStatus::kSuccess, opcode);
  }
  void ExpectReceived(uint64_t id, uint32_t byte_length);
  // Our request `id` broke a rule that the peer checks: it fails, those posted `behind` it are
  // flushed and the pair is in kError. Where errors do not tell the sender, all of them may also
  // succeed before the connection ends.
  void ExpectRefusedByPeer(uint64_t id, CompletionStatus status,
                           const std::vector<uint64_t>& behind = {}) {
    ExpectRefusedByPeer(pair(), id, status, behind);
  }
  void ExpectRefusedByPeer(QueuePair& pair, uint64_t id, CompletionStatus status,
                           const std::vector<uint64_t>& behind = {});
  WorkCompletion ExpectStatus(CompletionStatus status);
  void ExpectFlushed(const std::vector<uint64_t>& ids);
  void ExpectNoCompletion();
  void ExpectState(QueuePairState state) { ExpectState(pair(), state); }
  void ExpectState(QueuePair& pair, QueuePairState state);

  ConnectionEvent NextEvent();
  ConnectionEvent ExpectEvent(ConnectionEvent::Type type, const QueuePair* pair = nullptr);
  void ExpectNoEvent();

  // Takes what waits, without blocking.
  void Step();
  bool has_completion() const { return !completions_.empty(); }
  bool has_event() const { return !events_.empty(); }

 private:
  Device& device_;
  Loop* loop_;
  const std::string name_;
  std::unique_ptr<CompletionChannel> channel_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<ProtectionDomain> domain_;
  std::unique_ptr<ConnectionManager> manager_;
  // Where the success of a WRITE says nothing of the peer's memory: until it has landed there.
  void WaitUntilWritesLanded();

  std::deque<std::vector<std::byte>> user_memory_;
  std::deque<Buffer> buffers_;
  std::unique_ptr<QueuePair> pair_;
  std::deque<WorkCompletion> completions_;
  std::deque<ConnectionEvent> events_;
};

// A thread that turns the exception of a passed bound into a test failure.
std::thread StartThread(std::function<void()> body);

// Private data of `size` bytes with a pattern, and whether data that arrived is the same, padded.
PrivateData MakePrivateData(size_t size, uint32_t seed);
testing::AssertionResult IsPaddedCopy(const PrivateData& got, const PrivateData& sent);

// Connects two queue pairs through a listener of `server` that lives as long as the call.
void Join(Party& client, QueuePair& client_pair, Party& server, QueuePair& server_pair,
          const Address& address, const ConnectOptions& client_options = {},
          const ConnectOptions& server_options = {});

}  // namespace verbena::conformance
