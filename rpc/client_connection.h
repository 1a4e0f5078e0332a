// SPDX-License-Identifier: Apache-2.0
//
// ClientConnection: what is behind a channel. It connects when a call needs it, carries calls, and
// connects again after a failure.
//
//   state         waits for                      leaves when
//   kIdle         a call                         a call starts          -> kConnecting
//   kConnecting   the connection manager         established            -> kReady
//                                                refused or no answer   -> kBackoff
//   kReady        responses                      the connection breaks  -> kIdle
//   kBackoff      time                           a call starts later    -> kConnecting
//
// Threads: any for the public functions; everything else belongs to the thread that holds the
// poller and has the suffix OnPoller.

#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "verbena/base/clock.h"
#include "verbena/base/mpsc_queue.h"
#include "verbena/base/random.h"
#include "verbena/base/single_writer_counter.h"
#include "verbena/rpc/call_table.h"
#include "verbena/rpc/channel.h"
#include "verbena/rpc/message_body.h"
#include "verbena/rpc/message_memory.h"
#include "verbena/rpc/payload_statistics.h"
#include "verbena/transport/endpoint.h"
#include "verbena/transport/poller.h"
#include "verbena/transport/poller_driver.h"

namespace verbena {

class ClientConnection final : public MessageMemory, private Endpoint::Handler {
 public:
  ClientConnection(std::string_view target, ChannelOptions options);
  ~ClientConnection();

  // CallUnary and StartUnary, without the types.
  absl::Status Call(CallStart start);
  void Start(CallStart start);

  absl::Status WaitForConnected(std::chrono::milliseconds timeout);
  const std::string& target() const { return target_; }
  ChannelStatistics statistics() const;

  // MessageMemory.
  absl::StatusOr<Buffer> TakeMessageMemory(size_t bytes) override;
  uint64_t message_domain_id() const override {
    return memory_domain_id_.load(std::memory_order_acquire);
  }

 private:
  friend class ClientCall;
  enum class State { kIdle, kConnecting, kReady, kBackoff };

  // Cancelled contexts wake nobody; this looks for them while calls are outstanding.
  class CancelScan final : public PollerTimer {
   public:
    explicit CancelScan(ClientConnection* connection) : connection_(connection) {}
    void OnTimer() override { connection_->ScanCancelledOnPoller(); }

   private:
    ClientConnection* connection_;
  };

  absl::Status Initialize();
  absl::Status HeldCall(CallStart start, BlockingWaiter& waiter);
  void RunStartsOnPoller();

  // Calls. Start ones end in Complete, exactly once.
  void StartOnPoller(CallStart start);
  void RefuseOnPoller(CallStart start, absl::Status why);
  void QueueOnPoller(ClientCall* call);
  bool SendOnPoller(ClientCall* call);
  bool SendWithPayloadOnPoller(ClientCall* call, size_t message_bytes, uint32_t timeout_us);
  void EndEarlyOnPoller(ClientCall* call, absl::Status why, bool server_has_it = true);
  void FreeCallOnPoller(ClientCall* call);
  void CountPayloadOnPoller();
  void SendQueuedOnPoller();
  void UnqueueOnPoller(ClientCall* call);
  void CompleteOnPoller(ClientCall* call, absl::Status status);
  void GiveUpOnPoller(ClientCall* call, absl::Status why);
  void DeadlineOnPoller(ClientCall* call);
  void ScanCancelledOnPoller();
  void SendCancelOnPoller(uint32_t call_id);
  void FailAllOnPoller(const absl::Status& sent, const absl::Status& queued);
  void OnResponse(IncomingFrame& frame);
  void ReceiveOnPoller(ClientCall* call, IncomingFrame& frame);

  // The connection.
  absl::Status EnsureConnectingOnPoller();
  void OnEventOnPoller(ConnectionEvent& event);
  void EstablishedOnPoller(const ConnectionEvent& event);
  void ConnectFailedOnPoller(const absl::Status& why);
  void TellWaitersOnPoller(const absl::Status& status);
  void WaitForReadyOnPoller(BlockingWaiter* waiter);
  void ShutDown();
  // Null: there is none any more.
  void PublishMemoryOnPoller(std::shared_ptr<ConnectionMemory> memory);

  // Endpoint::Handler.
  Endpoint::Disposition OnFrame(uint32_t slot, std::span<const std::byte> frame) override;
  void OnLanded(Buffer frame) override;
  bool OnZoneWanted(uint32_t call_id) override { return calls_.FindSent(call_id) != nullptr; }
  void OnPayloadDenied(uint32_t call_id, const absl::Status& why, bool sent) override;
  void OnWritable() override;
  void OnClosed(const absl::Status& why) override;
  bool AwaitsPeer() const override { return calls_.in_use() > 0; }

  // Constant after construction.
  const std::string target_;
  const ChannelOptions options_;
  Address address_;
  absl::Status broken_;  // Not OK: what every call gets, since the options or the target are bad.
  const SystemClock clock_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Poller> poller_;
  std::unique_ptr<PollerDriver> driver_;

  // Of the connection that there is now; for whoever builds messages.
  std::mutex memory_mutex_;
  std::shared_ptr<ConnectionMemory> memory_;
  std::atomic<uint64_t> memory_domain_id_{0};

  // Calls that other threads started.
  MpscQueue<CallStart> starts_;

  // Poller only.
  State state_ = State::kIdle;
  std::unique_ptr<Endpoint> endpoint_;
  CallTable calls_;
  ClientCall* queue_head_ = nullptr;
  ClientCall* queue_tail_ = nullptr;
  CancelScan cancel_scan_;
  std::vector<uint32_t> cancels_waiting_;  // Call ids whose cancel found no credit.
  struct Refused {
    CallStart start;
    absl::Status why;
  };
  std::vector<Refused> refused_;  // Told in the next step.
  std::vector<BlockingWaiter*> ready_waiters_;
  Random random_;
  int64_t backoff_ns_ = 0;
  int64_t retry_at_ns_ = 0;
  absl::Status connect_error_;

  // Written on the poller, read anywhere.
  SingleWriterCounter calls_started_;
  SingleWriterCounter calls_ok_;
  SingleWriterCounter calls_failed_;
  SingleWriterCounter connects_;
  SingleWriterCounter disconnects_;
  SingleWriterCounter peers_lost_;
  SingleWriterCounter receiver_not_ready_;
  PayloadStatistics payload_;
  PayloadCounters payload_told_;  // Of this connection, what payload_ has.
};

}  // namespace verbena
