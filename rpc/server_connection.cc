// SPDX-License-Identifier: Apache-2.0

#include "verbena/rpc/server_connection.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/rpc/message_body.h"
#include "verbena/rpc/server_poller.h"

namespace verbena {
namespace {

// As many as a channel has calls at the most (CallTable::kCapacityMax).
constexpr size_t kLateStatusesMax = 4096;
// Longer memory goes back to its pool when a response is sent.
constexpr size_t kSpareBytesMax = 64 * 1024;

absl::string_view ToAbsl(std::string_view text) { return {text.data(), text.size()}; }

absl::Status DeadlinePassed() {
  return absl::DeadlineExceededError("the deadline passed on the server");
}

absl::Status ShuttingDown() {
  return absl::UnavailableError("the server is shutting down; the call did not run");
}

// The only place where a handler runs; nothing it throws gets out.
absl::Status Invoke(ServerCall& call) {
  try {
    return call.method->handler(call.method->service, &call.context, call.messages.request,
                                call.messages.response);
  } catch (const std::exception& exception) {
    return absl::UnknownError(absl::StrCat("the handler of ",
                                           ToAbsl(call.method->descriptor->full_name),
                                           " threw: ", exception.what()));
  } catch (...) {
    return absl::UnknownError(absl::StrCat("the handler of ",
                                           ToAbsl(call.method->descriptor->full_name),
                                           " threw something that is no std::exception"));
  }
}

}  // namespace

ServerConnection::~ServerConnection() {
  DCHECK_EQ(calls_in_flight_, 0u);
  if (endpoint_ != nullptr) poller_.poller().Bury(std::move(endpoint_));
}

absl::Status ServerConnection::Accept(std::unique_ptr<ConnectionRequest> request,
                                      const Hello& hello, uint64_t epoch) {
  auto endpoint = poller_.poller().CreateEndpoint(
      poller_.options().endpoint, this,
      [this, hello](ConnectionEvent& event) { OnEvent(event, hello); });
  if (!endpoint.ok()) return endpoint.status();
  endpoint_ = *std::move(endpoint);
  memory_ = endpoint_->memory();
  deferred_.reserve(2 * poller_.options().endpoint.ring_depth);
  return poller_.poller().connection_manager().Accept(std::move(request), endpoint_->queue_pair(),
                                                      endpoint_->MakeConnectOptions(epoch));
}

void ServerConnection::OnEvent(ConnectionEvent& event, const Hello& hello) {
  if (endpoint_ == nullptr) return;
  if (event.type == ConnectionEvent::Type::kEstablished) {
    endpoint_->Open(hello, Endpoint::Side::kAccepting);
    endpoint_->WantWritable();  // Requests may have come before this event did.
  } else {
    endpoint_->Break(event.status);
  }
}

void ServerConnection::Close() {
  if (endpoint_ != nullptr) endpoint_->Close();
}

void ServerConnection::CancelCalls() {
  for (ServerCall* call = calls_; call != nullptr; call = call->next) call->context.Cancel();
  // A client that takes no answers must not keep the server from ending.
  ending_ = true;
  DropUnanswered();
}

void ServerConnection::DropUnanswered() {
  for (ServerCall* call : unanswered_) ReturnInFlight(call);
  unanswered_.clear();
}

void ServerConnection::OnClosed(const absl::Status& why) {
  if (absl::IsInternal(why)) poller_.CountProtocolError();
  if (endpoint_->peer_lost()) poller_.CountPeerLost();
  poller_.CountReceiverNotReady(endpoint_->queue_pair().counters().receiver_not_ready);
  poller_.payload().End(endpoint_->payload_counters(), &payload_told_);
  spare_memory_ = Buffer();
  late_statuses_.clear();
  deferred_.clear();
  deferred_first_ = 0;
  DropUnanswered();
  for (ServerCall* call = calls_; call != nullptr; call = call->next) {
    poller_.poller().Cancel(call);
    call->answered = true;
    call->context.Cancel();
  }
  poller_.poller().Bury(std::move(endpoint_));
  poller_.OnConnectionClosed();
}

// ---- Memory for responses ----

absl::StatusOr<Buffer> ServerConnection::TakeMessageMemory(size_t bytes) {
  return memory_->staging()->TakeWhole(bytes);
}

void ServerConnection::KeepSpareMemory(Buffer memory) {
  if (memory.block() == nullptr || endpoint_ == nullptr) return;
  // Of the pool that responses are built in; and not what the device may still read.
  if (memory.block()->pool == nullptr || memory.block()->domain_id != memory_->domain_id() ||
      memory.block()->bytes.size() > kSpareBytesMax || !memory.IsOnly()) {
    return;
  }
  spare_memory_ = std::move(memory).Whole();
}

// ---- Requests ----

Endpoint::Disposition ServerConnection::OnFrame(uint32_t slot, std::span<const std::byte> frame) {
  const auto& header = *reinterpret_cast<const FrameHeader*>(frame.data());
  if (header.kind == FrameKind::kCancel) {
    OnCancel(header.call_id);
    return Endpoint::Disposition::kConsumed;
  }
  if (header.kind != FrameKind::kRequest) {
    endpoint_->FailProtocol(FrameDefect::kWrongDirection);
    return Endpoint::Disposition::kConsumed;
  }
  IncomingFrame incoming{.bytes = frame, .slot = slot, .landed = Buffer()};
  if (MustDefer()) {
    Defer(std::move(incoming));
    return Endpoint::Disposition::kKept;
  }
  Process(incoming);
  return incoming.lent ? Endpoint::Disposition::kKept : Endpoint::Disposition::kConsumed;
}

bool ServerConnection::MustDefer() const {
  return HasDeferred() || !unanswered_.empty() || !late_statuses_.empty() || !endpoint_->CanSend();
}

void ServerConnection::OnLanded(Buffer frame) {
  const std::span<const std::byte> bytes = frame.span();
  if (reinterpret_cast<const FrameHeader*>(bytes.data())->kind != FrameKind::kRequest) {
    endpoint_->FailProtocol(FrameDefect::kWrongDirection);
    return;
  }
  IncomingFrame incoming{.bytes = bytes, .landed = std::move(frame)};
  if (MustDefer()) {
    Defer(std::move(incoming));
    return;
  }
  Process(incoming);
}

void ServerConnection::OnPayloadDenied(uint32_t call_id, const absl::Status& why, bool) {
  SendStatusSoon(call_id, why);
}

void ServerConnection::OnWritable() {
  size_t sent = 0;
  for (; sent < late_statuses_.size() && endpoint_->CanSend(); ++sent) {
    SendStatus(late_statuses_[sent].call_id, late_statuses_[sent].status);
  }
  late_statuses_.erase(late_statuses_.begin(),
                       late_statuses_.begin() + static_cast<ptrdiff_t>(sent));
  while (!unanswered_.empty() && endpoint_ != nullptr && endpoint_->CanSend()) {
    ServerCall* call = unanswered_.front();
    unanswered_.pop_front();
    Answer(call);
    ReturnInFlight(call);
  }
  while (HasDeferred() && endpoint_ != nullptr && endpoint_->CanSend()) {
    IncomingFrame deferred = TakeDeferred();
    Process(deferred);
    Release(deferred);
  }
  if (endpoint_ != nullptr && (HasDeferred() || !unanswered_.empty() || !late_statuses_.empty())) {
    endpoint_->WantWritable();
  }
}

void ServerConnection::Defer(IncomingFrame frame) {
  if (!HasDeferred() || deferred_.size() == deferred_.capacity()) {
    deferred_.erase(deferred_.begin(), deferred_.begin() + static_cast<ptrdiff_t>(deferred_first_));
    deferred_first_ = 0;
  }
  deferred_.push_back(std::move(frame));
  endpoint_->WantWritable();
}

// Of a frame that was deferred: its slot is posted again, unless a reader has it.
void ServerConnection::Release(const IncomingFrame& frame) {
  if (endpoint_ == nullptr || frame.lent || frame.slot == IncomingFrame::kNoSlot) return;
  endpoint_->ReleaseReceive(frame.slot);
}

void ServerConnection::Process(IncomingFrame& frame) {
  const auto& header = *reinterpret_cast<const RequestHeader*>(frame.bytes.data());
  const uint32_t call_id = header.frame.call_id;
  poller_.CountCall();
  const MethodEntry* method = poller_.methods().Find(header.method_id);
  if (method == nullptr) [[unlikely]] {
    SendStatus(call_id, absl::UnimplementedError(
                            "the server has no such service or method: is the service registered, "
                            "and are both sides built from the same schema?"));
    return;
  }
  if (poller_.shutting_down()) [[unlikely]] {
    SendStatus(call_id, ShuttingDown());
    return;
  }
  int64_t deadline_ns = ServerContext::kNoDeadline;
  if (header.timeout_us != kNoTimeout) {
    deadline_ns = poller_.poller().NowNs() + int64_t{header.timeout_us} * 1000;
  }
  ServerCall* call = poller_.calls().Take(*method);
  call->connection = this;
  call->id = call_id;
  call->landed = frame.has_landed();
  call->context.Reset(deadline_ns);
  call->context.SetMessageMemory(
      this, poller_.options().executor == nullptr ? &spare_memory_ : nullptr);
  if (!Read(call, frame)) [[unlikely]] {
    poller_.calls().Return(call);
    return;
  }
  if (poller_.options().executor == nullptr) {
    RunInline(call);
  } else {
    RunOnExecutor(call);
  }
}

// False: not such a request, or no memory for it; answered.
bool ServerConnection::Read(ServerCall* call, IncomingFrame& frame) {
  const Codec& codec = *call->method->descriptor->request;
  absl::Status status;
  uint64_t copied = 0;
  if (!frame.has_landed() && frame.flags() == 0) [[likely]] {
    const std::span<const std::byte> message = frame.bytes.subspan(sizeof(RequestHeader));
    const bool read =
        ReadMessage(*endpoint_, frame, message, codec, call->messages.request, &copied);
    if (copied != 0) [[unlikely]]
      poller_.payload().AddCopied(copied);
    if (read) [[likely]]
      return true;
    status = absl::InvalidArgumentError("");
  } else {
    status = ReadBody(*endpoint_, frame, codec, call->messages.request,
                      call->context.mutable_attachments(), &copied);
    poller_.payload().AddCopied(copied);
    CountPayload();
    if (status.ok()) return true;
  }
  if (absl::IsInvalidArgument(status)) {
    status = absl::InvalidArgumentError(absl::StrCat(
        "the request of ", ToAbsl(call->method->descriptor->full_name), " ", codec.defect));
  }
  SendStatus(call->id, status);
  return false;
}

void ServerConnection::RunInline(ServerCall* call) {
  call->status = Invoke(*call);
  Answer(call);
  poller_.calls().Return(call);
}

// ---- On the executor ----

void ServerConnection::RunOnExecutor(ServerCall* call) {
  if (calls_in_flight_ >= kCallsMax) {
    SendStatus(call->id, absl::ResourceExhaustedError(
                             absl::StrCat(kCallsMax,
                                          " calls of this connection are running, which is the "
                                          "server's limit: wait for some to end")));
    poller_.calls().Return(call);
    return;
  }
  ++calls_in_flight_;
  poller_.CountInFlight(1);
  AddCall(call);
  if (call->context.deadline_ns() != ServerContext::kNoDeadline) {
    poller_.poller().Schedule(call, call->context.deadline_ns());
  }
  const bool accepted = poller_.options().executor->Execute(
      [](void* argument) { Run(static_cast<ServerCall*>(argument)); }, call);
  if (accepted) return;
  call->status = absl::ResourceExhaustedError("the server's executor is full: try again later");
  FinishOnPoller(call);
}

void ServerConnection::Run(ServerCall* call) {
  ServerPoller& poller = call->connection->poller_;
  if (call->context.IsCancelled()) {  // Nobody waits: it need not start.
    call->status = poller.shutting_down() ? ShuttingDown() : DeadlinePassed();
  } else {
    call->status = Invoke(*call);
  }
  poller.driver().Submit({[](void* argument) {
                            auto* call = static_cast<ServerCall*>(argument);
                            call->connection->FinishOnPoller(call);
                          },
                          call});
}

void ServerConnection::FinishOnPoller(ServerCall* call) {
  poller_.poller().Cancel(call);
  RemoveCall(call);
  if (!call->answered && endpoint_ != nullptr) {
    if (unanswered_.empty() && endpoint_->CanSend()) {
      Answer(call);
    } else if (!ending_) {
      unanswered_.push_back(call);
      endpoint_->WantWritable();
      return;
    }
  }
  ReturnInFlight(call);
  if (finished()) poller_.OnConnectionClosed();
}

void ServerConnection::DeadlineOnPoller(ServerCall* call) {
  poller_.CountDeadline();
  call->context.Cancel();
  // Without room to send the caller's own timer has to do.
  if (!call->answered && endpoint_ != nullptr && endpoint_->CanSend()) {
    SendStatus(call->id, DeadlinePassed());
  }
  call->answered = true;
}

void ServerConnection::OnCancel(uint32_t call_id) {
  for (ServerCall* call = calls_; call != nullptr; call = call->next) {
    if (call->id != call_id) continue;
    call->context.Cancel();
    call->answered = true;
    return;
  }
  endpoint_->DropIncoming(call_id);
  if (endpoint_->AbortPayload(call_id)) return;
  // Not started yet: it never will be.
  const auto first = deferred_.begin() + static_cast<ptrdiff_t>(deferred_first_);
  auto found = std::find_if(first, deferred_.end(), [&](const IncomingFrame& deferred) {
    return reinterpret_cast<const FrameHeader*>(deferred.bytes.data())->call_id == call_id;
  });
  if (found == deferred_.end()) return;
  Release(*found);
  deferred_.erase(found);
}

void ServerConnection::ReturnInFlight(ServerCall* call) {
  --calls_in_flight_;
  poller_.CountInFlight(-1);
  poller_.calls().Return(call);
}

void ServerConnection::AddCall(ServerCall* call) {
  call->next = calls_;
  call->previous = nullptr;
  if (calls_ != nullptr) calls_->previous = call;
  calls_ = call;
}

void ServerConnection::RemoveCall(ServerCall* call) {
  (call->previous == nullptr ? calls_ : call->previous->next) = call->next;
  if (call->next != nullptr) call->next->previous = call->previous;
}

// ---- Responses. All REQUIRE that the endpoint can send. ----

void ServerConnection::Answer(ServerCall* call) {
  // Before the answer: the client, when it has that, finds zones granted for its next request.
  call->DropRequestPayload();
  endpoint_->RegrantZones();
  if (call->context.deadline_ns() != ServerContext::kNoDeadline &&
      poller_.poller().NowNs() >= call->context.deadline_ns()) [[unlikely]] {
    if (!absl::IsDeadlineExceeded(call->status)) poller_.CountDeadline();
    SendStatusSoon(call->id, DeadlinePassed());
    return;
  }
  if (call->status.ok()) [[likely]] {
    SendResponse(call);
  } else {
    SendStatusSoon(call->id, call->status);
  }
}

void ServerConnection::SendResponse(ServerCall* call) {
  const Codec& codec = *call->method->descriptor->response;
  const void* const response = call->messages.response;
  const size_t message_bytes = codec.byte_size(response);
  const size_t bytes = sizeof(ResponseHeader) + message_bytes;
  if (message_bytes == 0 && codec.bytes != nullptr) [[unlikely]] {
    SendStatusSoon(call->id, absl::InternalError(absl::StrCat(
                                 "the handler of ", ToAbsl(call->method->descriptor->full_name),
                                 " returned OK and set no response")));
    return;
  }
  if (bytes > endpoint_->slot_frame_bytes_max() || codec.collect != nullptr ||
      !call->context.mutable_response_attachments()->empty()) [[unlikely]] {
    SendLongResponse(call, message_bytes);
    return;
  }
  uint64_t copied = 0;
  const bool sent = SendShort(
      *endpoint_, FrameKind::kResponse, call->id, sizeof(ResponseHeader), codec, response,
      message_bytes, [](std::byte* frame) { WriteResponseFields(frame, /*status_code=*/0); },
      &copied);
  if (!sent) [[unlikely]] {  // Granting zones took the room.
    SendLongResponse(call, message_bytes);
    return;
  }
  if (copied != 0) [[unlikely]]
    poller_.payload().AddCopied(copied);
  poller_.poller().WantService(endpoint_.get());
}

// One with attachments, or too long for a slot.
void ServerConnection::SendLongResponse(ServerCall* call, size_t message_bytes) {
  OutgoingBody body;
  body.codec = call->method->descriptor->response;
  body.message = call->messages.response;
  body.message_bytes = message_bytes;
  if (body.codec->collect != nullptr) body.codec->collect(body.message, &body.attachments);
  for (Attachment& attachment : *call->context.mutable_response_attachments()) {
    body.attachments.push_back(std::move(attachment));
  }
  poller_.poller().WantService(endpoint_.get());
  uint64_t copied = 0;
  absl::Status status = SendBody(
      *endpoint_, FrameKind::kResponse, call->id, sizeof(ResponseHeader), body,
      [](std::byte* frame) { WriteResponseFields(frame, /*status_code=*/0); }, &copied);
  poller_.payload().AddCopied(copied);
  if (!status.ok()) SendStatusSoon(call->id, std::move(status));
}

void ServerConnection::SendStatusSoon(uint32_t call_id, absl::Status status) {
  if (late_statuses_.empty() && endpoint_->CanSend()) {
    SendStatus(call_id, status);
    return;
  }
  if (late_statuses_.size() == kLateStatusesMax) {
    endpoint_->Break(absl::ResourceExhaustedError(
        "the client takes no answers, and more than any client may have to be told"));
    return;
  }
  late_statuses_.push_back({call_id, std::move(status)});
  endpoint_->WantWritable();
  poller_.poller().WantService(endpoint_.get());
}

void ServerConnection::CountPayload() {
  poller_.payload().Add(endpoint_->payload_counters(), &payload_told_);
}

void ServerConnection::SendStatus(uint32_t call_id, const absl::Status& status) {
  const size_t text_bytes_max = endpoint_->frame_bytes_max() - sizeof(ResponseHeader);
  const absl::string_view text = status.message().substr(0, text_bytes_max);
  std::byte* memory = endpoint_->Reserve(sizeof(ResponseHeader) + text.size());
  DCHECK(memory != nullptr);
  // Status::code() maps what is not canonical to UNKNOWN; a handler's OK has no message to send.
  WriteResponseFields(memory, static_cast<uint32_t>(status.code()));
  std::copy(text.begin(), text.end(), reinterpret_cast<char*>(memory + sizeof(ResponseHeader)));
  endpoint_->Commit(FrameKind::kResponse, call_id);
  poller_.poller().WantService(endpoint_.get());
}

}  // namespace verbena
