// SPDX-License-Identifier: Apache-2.0
//
// ServerConnection: one client's connection. Takes requests from its endpoint, runs their handlers
// inline or on the executor, and sends the responses.
//
// Back-pressure: a request is not looked at before its response could be sent. It waits in its
// receive slot, so what waits is bounded by the ring, and the client runs out of credits.
//
// Threads: the poller's, but for Run. Lifetime: owned by its ServerPoller, until it is closed and
// no handler runs for it any more.

#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "verbena/rpc/message_body.h"
#include "verbena/rpc/message_memory.h"
#include "verbena/rpc/server_call.h"
#include "verbena/transport/endpoint.h"

namespace verbena {

class ServerPoller;

class ServerConnection final : public MessageMemory, private Endpoint::Handler {
 public:
  // Calls of one connection that may run on the executor at once; one more gets
  // RESOURCE_EXHAUSTED. As many as a channel's default.
  static constexpr uint32_t kCallsMax = 1024;

  explicit ServerConnection(ServerPoller& poller) : poller_(poller) {}
  ~ServerConnection();
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  // Makes the endpoint and accepts. Errors: the device's; the request is rejected then.
  absl::Status Accept(std::unique_ptr<ConnectionRequest> request, const Hello& hello,
                      uint64_t epoch);
  // Orderly: a close frame, then the end.
  void Close();
  // Tells the handlers that still run that nobody waits for them, and drops answers that found no
  // room yet.
  void CancelCalls();
  // Closed, and no handler runs for it: may be destroyed.
  bool finished() const { return endpoint_ == nullptr && calls_in_flight_ == 0; }

  // MessageMemory, while a handler runs. Any thread.
  absl::StatusOr<Buffer> TakeMessageMemory(size_t bytes) override;
  uint64_t message_domain_id() const override { return memory_->domain_id(); }
  // A response was in `memory`: the next may be built there, if nobody refers to it any more.
  void KeepSpareMemory(Buffer memory);

 private:
  friend class ServerCall;

  void OnEvent(ConnectionEvent& event, const Hello& hello);
  // Endpoint::Handler.
  Endpoint::Disposition OnFrame(uint32_t slot, std::span<const std::byte> frame) override;
  void OnLanded(Buffer frame) override;
  void OnPayloadDenied(uint32_t call_id, const absl::Status& why, bool sent) override;
  void OnWritable() override;
  void OnClosed(const absl::Status& why) override;
  bool AwaitsPeer() const override { return calls_in_flight_ > 0; }

  bool MustDefer() const;
  void Process(IncomingFrame& frame);
  bool Read(ServerCall* call, IncomingFrame& frame);
  void RunInline(ServerCall* call);
  void RunOnExecutor(ServerCall* call);
  static void Run(ServerCall* call);
  void FinishOnPoller(ServerCall* call);
  void DeadlineOnPoller(ServerCall* call);
  void OnCancel(uint32_t call_id);

  void Answer(ServerCall* call);
  void SendResponse(ServerCall* call);
  void SendLongResponse(ServerCall* call, size_t message_bytes);
  // Sends it as soon as there is room.
  void SendStatusSoon(uint32_t call_id, absl::Status status);
  void CountPayload();
  void SendStatus(uint32_t call_id, const absl::Status& status);
  void ReturnInFlight(ServerCall* call);
  void DropUnanswered();
  void AddCall(ServerCall* call);
  void RemoveCall(ServerCall* call);

  bool HasDeferred() const { return deferred_first_ < deferred_.size(); }
  void Defer(IncomingFrame frame);
  void Release(const IncomingFrame& frame);
  IncomingFrame TakeDeferred() { return std::move(deferred_[deferred_first_++]); }

  ServerPoller& poller_;
  std::unique_ptr<Endpoint> endpoint_;
  std::shared_ptr<ConnectionMemory> memory_;  // From Accept on.
  Buffer spare_memory_;                       // All of a block, that nobody else refers to.
  // Requests that wait in their receive slots, or where they landed. Those before deferred_first_
  // were taken. Waiting are at most the ring; room for twice that means that it never allocates and
  // seldom moves them.
  std::vector<IncomingFrame> deferred_;
  size_t deferred_first_ = 0;
  // Statuses that found no room to send, and must not be lost.
  struct LateStatus {
    uint32_t call_id;
    absl::Status status;
  };
  std::vector<LateStatus> late_statuses_;
  PayloadCounters payload_told_;        // What the poller's statistics have.
  std::deque<ServerCall*> unanswered_;  // Executor calls that ended and found no room to send.
  ServerCall* calls_ = nullptr;         // Those on the executor.
  uint32_t calls_in_flight_ = 0;
  bool ending_ = false;  // After CancelCalls: an answer that finds no room is dropped.
};

}  // namespace verbena
