// SPDX-License-Identifier: Apache-2.0
//
// The calls of a ClientConnection: started, sent, answered, given up.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/rpc/client_connection.h"
#include "verbena/rpc/message_body.h"

namespace verbena {
namespace {

// How late a cancelled context is noticed at most, give or take a tick.
constexpr int64_t kCancelScanNs = 5'000'000;
// A caller that sleeps is woken when its call ends; should that fail, it looks this often itself.
constexpr int64_t kWaitBoundNs = 10'000'000;

absl::string_view NameOf(const MethodDescriptor& method) {
  return {method.full_name.data(), method.full_name.size()};
}

absl::Status DeadlinePassed(bool sent) {
  return absl::DeadlineExceededError(
      sent ? "the deadline passed before the response came; the call may have run"
           : "the deadline passed before the call could be sent; it did not run");
}

}  // namespace

void ClientCall::OnTimer() { connection->DeadlineOnPoller(this); }

// ---- Any thread ----

absl::Status ClientConnection::Call(CallStart start) {
  if (!broken_.ok()) return broken_;
  BlockingWaiter waiter;
  start.waiter = &waiter;
  if (driver_->TryHold()) return HeldCall(std::move(start), waiter);
  if (driver_->HeldByThisThread()) {
    return absl::FailedPreconditionError(
        "a blocking call inside a callback of the same channel would wait for itself: use the "
        "callback form, or another thread");
  }
  // Another caller drives. It carries this call, too; when it leaves, the background thread does.
  Start(std::move(start));
  while (!waiter.done()) waiter.Wait(kWaitBoundNs);
  return std::move(waiter.status());
}

absl::Status ClientConnection::HeldCall(CallStart start, BlockingWaiter& waiter) {
  StartOnPoller(std::move(start));
  driver_->Drive([&waiter] { return waiter.done(); });
  driver_->Release();
  return std::move(waiter.status());
}

void ClientConnection::Start(CallStart start) {
  if (driver_ != nullptr && driver_->HeldByThisThread()) {
    StartOnPoller(std::move(start));
    return;
  }
  if (!broken_.ok()) {
    // Without a poller there is no thread of ours to tell it on.
    start.done(broken_);
    return;
  }
  while (!starts_.TryPush(std::move(start))) std::this_thread::yield();
  driver_->Submit(
      {[](void* argument) { static_cast<ClientConnection*>(argument)->RunStartsOnPoller(); },
       this});
}

// ---- Starting ----

void ClientConnection::RunStartsOnPoller() {
  CallStart start;
  while (starts_.TryPop(&start)) StartOnPoller(std::move(start));
  std::vector<Refused> refused;
  refused.swap(refused_);
  for (Refused& call : refused) {
    if (driver_ != nullptr) driver_->AddOutstanding(-1);
    if (call.start.waiter != nullptr) {
      call.start.waiter->Finish(std::move(call.why));
    } else {
      call.start.done(std::move(call.why));
    }
  }
}

// Told in a later step, because a callback never runs inside the call that started it.
void ClientConnection::RefuseOnPoller(CallStart start, absl::Status why) {
  calls_failed_.Add(1);
  if (start.waiter != nullptr) {
    start.waiter->Finish(std::move(why));
    return;
  }
  if (refused_.empty()) {
    const bool submitted = poller_->Submit(
        {[](void* argument) { static_cast<ClientConnection*>(argument)->RunStartsOnPoller(); },
         this});
    LOG_IF(DFATAL, !submitted) << "the poller's task queue is full of this poller's own tasks";
  }
  refused_.push_back({std::move(start), std::move(why)});
  if (driver_ != nullptr) driver_->AddOutstanding(1);  // Somebody has to take that step.
}

void ClientConnection::StartOnPoller(CallStart start) {
  calls_started_.Add(1);
  if (start.context->cancelled()) {
    RefuseOnPoller(std::move(start), absl::CancelledError("cancelled before it was sent"));
    return;
  }
  if (state_ != State::kReady) [[unlikely]] {
    if (absl::Status status = EnsureConnectingOnPoller(); !status.ok()) {
      RefuseOnPoller(std::move(start), std::move(status));
      return;
    }
  }
  ClientCall* call = calls_.Allocate();
  if (call == nullptr) {
    RefuseOnPoller(std::move(start),
                   absl::ResourceExhaustedError(absl::StrCat(
                       calls_.in_use(),
                       " calls are outstanding, which is "
                       "ChannelOptions::outstanding_calls_max: wait for some to end")));
    return;
  }
  call->start = std::move(start);
  call->state = ClientCall::State::kQueued;
  driver_->AddOutstanding(1);
  if (call->start.context->deadline_ns() != ClientContext::kNoDeadline) {
    poller_->Schedule(call, call->start.context->deadline_ns());
  }
  if (!cancel_scan_.IsScheduled()) {
    poller_->Schedule(&cancel_scan_, poller_->NowNs() + kCancelScanNs);
  }
  if (state_ != State::kReady || queue_head_ != nullptr || !SendOnPoller(call)) {
    QueueOnPoller(call);
  }
}

// ---- The queue of calls that can't be sent yet ----

void ClientConnection::QueueOnPoller(ClientCall* call) {
  call->next = nullptr;
  if (queue_head_ == nullptr) {
    queue_head_ = call;
  } else {
    queue_tail_->next = call;
  }
  queue_tail_ = call;
  if (endpoint_ != nullptr) endpoint_->WantWritable();
}

void ClientConnection::SendQueuedOnPoller() {
  while (!cancels_waiting_.empty() && endpoint_ != nullptr) {
    const uint32_t id = cancels_waiting_.back();
    cancels_waiting_.pop_back();
    SendCancelOnPoller(id);
    if (!cancels_waiting_.empty() && cancels_waiting_.back() == id) break;  // Still no credit.
  }
  while (queue_head_ != nullptr && state_ == State::kReady) {
    ClientCall* call = queue_head_;
    queue_head_ = call->next;
    if (!SendOnPoller(call)) {
      call->next = queue_head_;
      queue_head_ = call;
      if (call->next == nullptr) queue_tail_ = call;
      break;
    }
  }
  if ((queue_head_ != nullptr || !cancels_waiting_.empty()) && endpoint_ != nullptr) {
    endpoint_->WantWritable();
  }
}

// Linear in the length of the queue, which only calls that are given up pay.
void ClientConnection::UnqueueOnPoller(ClientCall* call) {
  ClientCall* previous = nullptr;
  for (ClientCall* at = queue_head_; at != nullptr; previous = at, at = at->next) {
    if (at != call) continue;
    (previous == nullptr ? queue_head_ : previous->next) = at->next;
    if (queue_tail_ == at) queue_tail_ = previous;
    return;
  }
}

// ---- Sending ----

// False when the endpoint has no room now. A call that can't be sent at all is given up.
bool ClientConnection::SendOnPoller(ClientCall* call) {
  const MethodDescriptor& method = *call->start.method;
  const ClientContext& context = *call->start.context;
  const size_t message_bytes = method.request->byte_size(call->start.request);
  const size_t bytes = sizeof(RequestHeader) + message_bytes;
  if (message_bytes == 0 && method.request->bytes != nullptr) [[unlikely]] {
    GiveUpOnPoller(call, absl::InvalidArgumentError(absl::StrCat(
                             "the request of ", NameOf(method),
                             " is empty: build it with FlatMessageBuilder, and Finish it before "
                             "ReleaseMessage")));
    return true;
  }
  uint32_t timeout_us = kNoTimeout;
  if (context.deadline_ns() != ClientContext::kNoDeadline) {
    const int64_t left_ns = context.deadline_ns() - poller_->NowNs();
    if (left_ns <= 0) [[unlikely]] {
      GiveUpOnPoller(call, DeadlinePassed(/*sent=*/false));
      return true;
    }
    // At least 1: 0 would ask the server not to run it.
    timeout_us = static_cast<uint32_t>(std::clamp<int64_t>(left_ns / 1000, 1, kNoTimeout));
  }
  if (bytes > endpoint_->slot_frame_bytes_max() || method.request->collect != nullptr ||
      !context.attachments().empty() || context.response_bytes_max() != 0) [[unlikely]] {
    return SendWithPayloadOnPoller(call, message_bytes, timeout_us);
  }
  uint64_t copied = 0;
  const bool sent = SendShort(
      *endpoint_, FrameKind::kRequest, call->id, sizeof(RequestHeader), *method.request,
      call->start.request, message_bytes,
      [&](std::byte* frame) { WriteRequestFields(frame, method.id, timeout_us); }, &copied);
  if (!sent) return false;
  // What the caller had from the call before: while the request is on its way, nobody waits for it.
  if (method.response->adopt != nullptr) method.response->clear(call->start.response);
  if (copied != 0) [[unlikely]]
    payload_.AddCopied(copied);
  poller_->WantService(endpoint_.get());
  call->state = ClientCall::State::kSent;
  return true;
}

// A request with attachments, or for a long response, or too long for a slot.
bool ClientConnection::SendWithPayloadOnPoller(ClientCall* call, size_t message_bytes,
                                               uint32_t timeout_us) {
  if (!endpoint_->CanSend()) return false;
  const MethodDescriptor& method = *call->start.method;
  const ClientContext& context = *call->start.context;
  OutgoingBody body;
  body.codec = method.request;
  body.message = call->start.request;
  body.message_bytes = message_bytes;
  if (body.codec->collect != nullptr) body.codec->collect(body.message, &body.attachments);
  for (const Attachment& attachment : context.attachments()) body.attachments.push_back(attachment);
  // What the caller had from the call before, if it uses the message again, is memory for this one.
  if ((method.response->collect != nullptr || method.response->adopt != nullptr) &&
      call->start.response != call->start.request) {
    method.response->clear(call->start.response);
  }
  if (const uint64_t most = context.response_bytes_max();
      most > endpoint_->slot_frame_bytes_max() - sizeof(ResponseHeader)) {
    call->expected_bytes = ZoneBytesFor(most);
    body.reply_zone = endpoint_->ExpectResponse(call->expected_bytes);
    if (body.reply_zone.has_value()) call->reply_zone = *body.reply_zone;
  }
  uint64_t copied = 0;
  absl::Status status = SendBody(
      *endpoint_, FrameKind::kRequest, call->id, sizeof(RequestHeader), body,
      [&](std::byte* frame) { WriteRequestFields(frame, method.id, timeout_us); }, &copied);
  payload_.AddCopied(copied);
  poller_->WantService(endpoint_.get());
  if (!status.ok()) {
    endpoint_->TakeBack(call->reply_zone);
    GiveUpOnPoller(call, std::move(status));
    return true;
  }
  call->state = ClientCall::State::kSent;
  return true;
}

void ClientConnection::SendCancelOnPoller(uint32_t call_id) {
  std::byte* memory = endpoint_->Reserve(sizeof(FrameHeader), CreditClass::kCancel);
  if (memory == nullptr) {
    cancels_waiting_.push_back(call_id);
    endpoint_->WantWritable();
    return;
  }
  endpoint_->Commit(FrameKind::kCancel, call_id);
  poller_->WantService(endpoint_.get());
}

// ---- Receiving ----

Endpoint::Disposition ClientConnection::OnFrame(uint32_t slot, std::span<const std::byte> frame) {
  IncomingFrame incoming{.bytes = frame, .slot = slot, .landed = Buffer()};
  OnResponse(incoming);
  return incoming.lent ? Endpoint::Disposition::kKept : Endpoint::Disposition::kConsumed;
}

void ClientConnection::OnLanded(Buffer frame) {
  const std::span<const std::byte> bytes = frame.span();
  IncomingFrame incoming{.bytes = bytes, .landed = std::move(frame)};
  OnResponse(incoming);
}

void ClientConnection::OnResponse(IncomingFrame& frame) {
  const auto& header = *reinterpret_cast<const FrameHeader*>(frame.bytes.data());
  if (header.kind != FrameKind::kResponse) {
    endpoint_->FailProtocol(FrameDefect::kWrongDirection);
    return;
  }
  // Null: the answer to a call that was given up. Every frame has been paid for with a credit, so
  // a peer that invents answers can't do more than waste its own.
  if (ClientCall* call = calls_.FindSent(header.call_id)) ReceiveOnPoller(call, frame);
}

void ClientConnection::OnPayloadDenied(uint32_t call_id, const absl::Status& why, bool sent) {
  if (ClientCall* call = calls_.FindSent(call_id)) EndEarlyOnPoller(call, why, sent);
}

void ClientConnection::ReceiveOnPoller(ClientCall* call, IncomingFrame& frame) {
  // Refused before it was sent: it waits for no zone any more.
  if (endpoint_->AbortPayload(call->id)) [[unlikely]]
    endpoint_->TakeBack(call->reply_zone);
  const auto& header = *reinterpret_cast<const ResponseHeader*>(frame.bytes.data());
  const std::span<const std::byte> payload = frame.bytes.subspan(sizeof(ResponseHeader));
  const MethodDescriptor& method = *call->start.method;
  if (header.status_code != 0) [[unlikely]] {
    CompleteOnPoller(call,
                     absl::Status(static_cast<absl::StatusCode>(header.status_code),
                                  absl::string_view(reinterpret_cast<const char*>(payload.data()),
                                                    payload.size())));
    return;
  }
  uint64_t copied = 0;
  absl::Status status;
  if (!frame.has_landed() && frame.flags() == 0) [[likely]] {
    if (!ReadMessage(*endpoint_, frame, payload, *method.response, call->start.response, &copied)) {
      status = absl::InvalidArgumentError("");
    }
    if (copied != 0) [[unlikely]]
      payload_.AddCopied(copied);
  } else {
    status = ReadBody(*endpoint_, frame, *method.response, call->start.response,
                      call->start.context->mutable_response_attachments(), &copied,
                      call->start.context->response_memory());
    payload_.AddCopied(copied);
    CountPayloadOnPoller();
  }
  if (absl::IsInvalidArgument(status)) [[unlikely]] {
    status = absl::InternalError(
        absl::StrCat("the response of ", NameOf(method), " ", method.response->defect));
  }
  CompleteOnPoller(call, std::move(status));
}

void ClientConnection::OnWritable() { SendQueuedOnPoller(); }

// ---- Ending ----

void ClientConnection::CompleteOnPoller(ClientCall* call, absl::Status status) {
  if (call->IsScheduled()) poller_->Cancel(call);
  (status.ok() ? calls_ok_ : calls_failed_).Add(1);
  if (driver_ != nullptr) driver_->AddOutstanding(-1);
  if (BlockingWaiter* waiter = call->start.waiter) {
    FreeCallOnPoller(call);
    waiter->Finish(std::move(status));
    return;
  }
  // The slot is free when the callback runs, which may start the next call.
  const std::function<void(absl::Status)> done = std::move(call->start.done);
  FreeCallOnPoller(call);
  done(std::move(status));
}

// As CompleteOnPoller, but told in a later step: this may be inside the call that starts it.
void ClientConnection::GiveUpOnPoller(ClientCall* call, absl::Status why) {
  if (call->IsScheduled()) poller_->Cancel(call);
  driver_->AddOutstanding(-1);
  CallStart start = std::move(call->start);
  FreeCallOnPoller(call);
  RefuseOnPoller(std::move(start), std::move(why));
}

// Ends a call that the peer has not answered.
void ClientConnection::EndEarlyOnPoller(ClientCall* call, absl::Status why, bool server_has_it) {
  if (call->state == ClientCall::State::kSent) {
    SendCancelOnPoller(call->id);
    if (endpoint_->AbortPayload(call->id) || !server_has_it) endpoint_->TakeBack(call->reply_zone);
    poller_->WantService(endpoint_.get());
  } else {
    UnqueueOnPoller(call);
  }
  CompleteOnPoller(call, std::move(why));
}

void ClientConnection::FreeCallOnPoller(ClientCall* call) {
  if (call->expected_bytes != 0 && endpoint_ != nullptr) {
    endpoint_->EndExpected(call->expected_bytes);
  }
  calls_.Free(call);
}

void ClientConnection::CountPayloadOnPoller() {
  payload_.Add(endpoint_->payload_counters(), &payload_told_);
}

void ClientConnection::DeadlineOnPoller(ClientCall* call) {
  EndEarlyOnPoller(call, DeadlinePassed(call->state == ClientCall::State::kSent));
}

void ClientConnection::ScanCancelledOnPoller() {
  if (endpoint_ != nullptr) CountPayloadOnPoller();  // So that a long transfer is seen to progress.
  calls_.ForEach([this](ClientCall& call) {
    if (!call.start.context->cancelled()) return;
    EndEarlyOnPoller(&call, absl::CancelledError("the caller cancelled the call"));
  });
  if (calls_.in_use() > 0 && !cancel_scan_.IsScheduled()) {
    poller_->Schedule(&cancel_scan_, poller_->NowNs() + kCancelScanNs);
  }
}

void ClientConnection::FailAllOnPoller(const absl::Status& sent, const absl::Status& queued) {
  queue_head_ = nullptr;
  queue_tail_ = nullptr;
  // A callback may start a call, which may be put where this loop has yet to come; it goes to the
  // next connection and is not of those that fail. So collect first.
  // And it may fail to connect at once, which fails everything from inside this loop.
  struct Failing {
    ClientCall* call;
    uint32_t id;
  };
  std::vector<Failing> failing;
  failing.reserve(calls_.in_use());
  calls_.ForEach([&](ClientCall& call) { failing.push_back({&call, call.id}); });
  for (const auto& [call, id] : failing) {
    if (call->id != id || call->state == ClientCall::State::kFree) continue;
    CompleteOnPoller(call, call->state == ClientCall::State::kSent ? sent : queued);
  }
}

}  // namespace verbena
