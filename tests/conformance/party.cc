// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/conformance/party.h"

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "verbena/tests/conformance/matchers.h"

namespace verbena::conformance {
namespace {

using Clock = std::chrono::steady_clock;

// Polls of an idle loop before it sleeps: the tests share few cores.
constexpr int kSpinsBeforeSleep = 200;

}  // namespace

bool Loop::RunUntil(const std::function<bool()>& done, std::chrono::milliseconds bound) const {
  const Clock::time_point end = Clock::now() + bound;
  for (int turn = 0; !done(); ++turn) {
    if (Clock::now() > end) return false;
    for (Party* party : parties_) party->Step();
    if (turn > kSpinsBeforeSleep) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

void Loop::RunQuietly() const {
  RunUntil([] { return false; }, kQuietTime);
}

bool Accepts(const DeviceUnderTest& subject, CompletionStatus wanted, CompletionStatus got) {
  if (wanted == got) return true;
  const auto [first, last] = subject.may_report.equal_range(wanted);
  return std::any_of(first, last, [got](const auto& entry) { return entry.second == got; });
}

Party::Party(std::string name, Device& device, Loop& loop, const PartyOptions& options)
    : device_(device), loop_(&loop), name_(std::move(name)) {
  if (options.sleeps) channel_ = Must(device.CreateCompletionChannel());
  queue_ = Must(device.CreateCompletionQueue(options.completion_depth, channel_.get()));
  domain_ = Must(device.AllocateProtectionDomain());
  manager_ = Must(device.CreateConnectionManager());
  loop_->Add(this);
}

Party::~Party() { loop_->Remove(this); }

void Party::MoveTo(Loop& loop) {
  loop_->Remove(this);
  loop_ = &loop;
  loop_->Add(this);
}

QueuePairOptions Party::DefaultOptions() const {
  const Capabilities& can = device_.capabilities();
  return {.send_queue = queue_.get(),
          .recv_queue = queue_.get(),
          .send_depth = 64,
          .recv_depth = 64,
          .send_sge_max = std::min(can.send_sge_max, 4u),
          .recv_sge_max = std::min(can.recv_sge_max, 4u),
          .inline_bytes_max = can.inline_bytes_max};
}

std::unique_ptr<QueuePair> Party::NewQueuePair(QueuePairOptions options) {
  if (options.send_queue == nullptr) options.send_queue = queue_.get();
  if (options.recv_queue == nullptr) options.recv_queue = queue_.get();
  return Must(domain_->CreateQueuePair(options));
}

Buffer& Party::Allocate(size_t bytes, AccessFlags access) {
  return buffers_.emplace_back(Must(domain_->AllocateMemory(bytes, access)));
}

Buffer& Party::RegisterUserMemory(size_t bytes, AccessFlags access) {
  std::vector<std::byte>& memory = user_memory_.emplace_back(bytes);
  return buffers_.emplace_back(Must(domain_->RegisterMemory(memory.data(), bytes, access)));
}

void Party::Post(QueuePair& pair, const std::vector<Request>& requests) {
  size_t accepted = ~size_t{0};
  const absl::Status status = TryPost(pair, requests, &accepted);
  ASSERT_THAT(status, IsOk()) << name_ << " posts " << requests.size();
  EXPECT_EQ(accepted, requests.size()) << name_;
}

absl::Status Party::TryPost(const std::vector<Request>& requests, size_t* accepted) {
  return TryPost(pair(), requests, accepted);
}

absl::Status Party::TryPost(QueuePair& pair, const std::vector<Request>& requests,
                            size_t* accepted) {
  std::vector<SendWorkRequest> works;
  for (const Request& request : requests) works.push_back(request.work());
  return pair.PostSend(works, accepted);
}

void Party::PostRecv(QueuePair& pair, uint64_t id, Pieces into) {
  const RecvWorkRequest request{.wr_id = id, .sg_list = into};
  size_t accepted = 0;
  ASSERT_THAT(pair.PostRecv({&request, 1}, &accepted), IsOk()) << name_ << " receive " << id;
  EXPECT_EQ(accepted, 1u);
}

void Party::PostRecv(SharedReceiveQueue& queue, uint64_t id, Pieces into) {
  const RecvWorkRequest request{.wr_id = id, .sg_list = into};
  size_t accepted = 0;
  ASSERT_THAT(queue.PostRecv({&request, 1}, &accepted), IsOk()) << name_ << " receive " << id;
  EXPECT_EQ(accepted, 1u);
}

void Party::Step() {
  WorkCompletion batch[16];
  const size_t count = queue_->Poll(batch);
  completions_.insert(completions_.end(), batch, batch + count);
  ConnectionEvent event;
  while (manager_->PollEvent(&event)) events_.push_back(std::move(event));
}

WorkCompletion Party::NextCompletion() {
  if (!loop_->RunUntil([this] { return has_completion(); })) {
    throw std::runtime_error(absl::StrCat(name_, ": no completion came"));
  }
  const WorkCompletion completion = completions_.front();
  completions_.pop_front();
  return completion;
}

WorkCompletion Party::ExpectStatus(CompletionStatus status) {
  const WorkCompletion completion = NextCompletion();
  if (!loop_->Accepts(status, completion.status)) {
    EXPECT_EQ(completion.status, status) << name_ << ", completion of " << completion.wr_id;
  }
  return completion;
}

WorkCompletion Party::ExpectCompletion(uint64_t id, CompletionStatus status,
                                       std::optional<CompletionOpcode> opcode) {
  SCOPED_TRACE(absl::StrCat(name_, " waits for the completion of ", id));
  const WorkCompletion completion = ExpectStatus(status);
  EXPECT_EQ(completion.wr_id, id);
  if (opcode && completion.status == CompletionStatus::kSuccess) {
    EXPECT_EQ(completion.opcode, *opcode);
  }
  if (completion.status == CompletionStatus::kSuccess &&
      completion.opcode == CompletionOpcode::kWrite && pair_ != nullptr &&
      completion.queue_pair_number == pair_->number()) {
    WaitUntilWritesLanded();
  }
  return completion;
}

void Party::WaitUntilWritesLanded() {
  if (device_.capabilities().error_tells_sender) return;
  // The answer to a READ comes behind all that was sent before it (RFC 5040, section 5.5).
  static constexpr uint64_t kId = ~uint64_t{0} - 12345;
  Post(Read(kId, {}, RemoteTarget{}));
  const bool came = loop_->RunUntil([this] {
    const auto found = std::ranges::find(completions_, kId, &WorkCompletion::wr_id);
    if (found == completions_.end()) return false;
    completions_.erase(found);
    return true;
  });
  EXPECT_TRUE(came) << name_ << ": no answer to the READ behind a WRITE";
}

void Party::ExpectReceived(uint64_t id, uint32_t byte_length) {
  const WorkCompletion completion = ExpectSuccess(id, CompletionOpcode::kRecv);
  EXPECT_EQ(completion.byte_length, byte_length) << name_ << " receive " << id;
  EXPECT_EQ(completion.flags, 0u) << name_ << " receive " << id;
}

void Party::ExpectRefusedByPeer(QueuePair& pair, uint64_t id, CompletionStatus status,
                                const std::vector<uint64_t>& behind) {
  if (device_.capabilities().error_tells_sender) {
    ExpectCompletion(id, status);
    ExpectFlushed(behind);
  } else {
    std::vector<uint64_t> ids = behind;
    ids.insert(ids.begin(), id);
    for (uint64_t expected : ids) {
      const WorkCompletion completion = NextCompletion();
      EXPECT_EQ(completion.wr_id, expected) << name_;
      EXPECT_TRUE(completion.status == CompletionStatus::kSuccess ||
                  completion.status == CompletionStatus::kFlushed ||
                  loop_->Accepts(status, completion.status))
          << name_ << ": " << CompletionStatusName(completion.status);
    }
  }
  ExpectState(pair, QueuePairState::kError);
}

void Party::ExpectFlushed(const std::vector<uint64_t>& ids) {
  for (uint64_t id : ids) ExpectCompletion(id, CompletionStatus::kFlushed);
}

void Party::ExpectNoCompletion() {
  loop_->RunQuietly();
  if (!has_completion()) return;
  ADD_FAILURE() << name_ << " has " << completions_.size() << " unexpected completions, first "
                << completions_.front().wr_id << ": "
                << testing::PrintToString(completions_.front().status);
}

void Party::ExpectState(QueuePair& pair, QueuePairState state) {
  loop_->RunUntil([&] { return pair.state() == state; });
  EXPECT_EQ(pair.state(), state) << name_;
}

ConnectionEvent Party::NextEvent() {
  if (!loop_->RunUntil([this] { return has_event(); })) {
    throw std::runtime_error(absl::StrCat(name_, ": no connection event came"));
  }
  ConnectionEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

ConnectionEvent Party::ExpectEvent(ConnectionEvent::Type type, const QueuePair* pair) {
  ConnectionEvent event = NextEvent();
  if (event.type != type) {
    throw std::runtime_error(absl::StrCat(name_, ": expected ", testing::PrintToString(type),
                                          ", got ", testing::PrintToString(event.type), ", ",
                                          event.status.ToString()));
  }
  if (pair != nullptr) {
    EXPECT_EQ(event.queue_pair, pair) << name_;
  }
  const bool asked_for =
      type == ConnectionEvent::Type::kConnectRequest || type == ConnectionEvent::Type::kEstablished;
  EXPECT_EQ(event.status.ok(), asked_for) << name_ << ": " << event.status;
  EXPECT_EQ(event.request != nullptr, type == ConnectionEvent::Type::kConnectRequest) << name_;
  return event;
}

void Party::ExpectNoEvent() {
  loop_->RunQuietly();
  if (!has_event()) return;
  ADD_FAILURE() << name_ << " has an unexpected " << testing::PrintToString(events_.front().type)
                << ", " << events_.front().status;
}

std::thread StartThread(std::function<void()> body) {
  return std::thread([body = std::move(body)] {
    try {
      body();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  });
}

PrivateData MakePrivateData(size_t size, uint32_t seed) {
  PrivateData data;
  data.size = size;
  FillPattern(std::span(data.bytes).first(size), seed);
  return data;
}

testing::AssertionResult IsPaddedCopy(const PrivateData& got, const PrivateData& sent) {
  if (got.size < sent.size || got.size > kPrivateDataBytesMax) {
    return testing::AssertionFailure() << got.size << " bytes arrived of " << sent.size;
  }
  const std::span<const std::byte> bytes = got.span();
  if (!std::ranges::equal(bytes.first(sent.size), sent.span())) {
    return testing::AssertionFailure() << "other private data arrived than was sent";
  }
  return HoldsOnly(bytes.subspan(sent.size), 0) << " in the padding";
}

void Join(Party& client, QueuePair& client_pair, Party& server, QueuePair& server_pair,
          const Address& address, const ConnectOptions& client_options,
          const ConnectOptions& server_options) {
  using Type = ConnectionEvent::Type;
  const std::unique_ptr<Listener> listener = Must(server.manager().Listen(address));
  Must(client.manager().Connect(client_pair, listener->address(), client_options));
  ConnectionEvent asked = server.ExpectEvent(Type::kConnectRequest);
  Must(server.manager().Accept(std::move(asked.request), server_pair, server_options));
  client.ExpectEvent(Type::kEstablished, &client_pair);
  server.ExpectEvent(Type::kEstablished, &server_pair);
}

}  // namespace verbena::conformance
