// SPDX-License-Identifier: Apache-2.0

#include "verbena/tests/conformance/peer.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "verbena/tests/conformance/matchers.h"

namespace verbena::conformance {
namespace {

using Type = ConnectionEvent::Type;

constexpr int kSocketInChild = 3;
constexpr char kProgram[] = "/proc/self/exe";

void SetText(char (&to)[256], const std::string& text) {
  snprintf(to, sizeof(to), "%s", text.c_str());
}

bool IsReadable(int fd, int timeout_ms) {
  pollfd entry = {.fd = fd, .events = POLLIN, .revents = 0};
  return poll(&entry, 1, timeout_ms) == 1;
}

template <typename T>
bool ReadWhole(int socket, T* value) {
  return recv(socket, value, sizeof(T), MSG_WAITALL) == static_cast<ssize_t>(sizeof(T));
}

template <typename T>
bool WriteWhole(int socket, const T& value) {
  return send(socket, &value, sizeof(T), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(T));
}

}  // namespace

PeerServer::PeerServer(const DeviceUnderTest& subject, std::unique_ptr<Device> device, Loop& loop)
    : subject_(subject),
      device_(std::move(device)),
      party_("peer", *device_, loop),
      memory_(party_.Allocate(kPeerMemoryBytes, device_->capabilities().atomics
                                                    ? kAccessReadWrite | kAccessRemoteAtomic
                                                    : kAccessReadWrite)) {
  party_.MakePair(party_.DefaultOptions());
}

PeerReply PeerServer::Execute(const PeerCommand& command) {
  try {
    return Run(command);
  } catch (const std::exception& error) {
    PeerReply reply{.ok = false};
    SetText(reply.text, error.what());
    return reply;
  }
}

PeerReply PeerServer::Run(const PeerCommand& command) {
  PeerReply reply;
  switch (command.op) {
    case PeerOp::kListen:
      listener_ = Must(party_.manager().Listen(subject_.fresh_address()));
      SetText(reply.text, listener_->address().ToString());
      return reply;
    case PeerOp::kStopListening:
      listener_.reset();
      return reply;
    case PeerOp::kConnect:
      Must(party_.manager().Connect(party_.pair(), Must(Address::Parse(command.text)), {}));
      return reply;
    case PeerOp::kTakeRequest:
      request_ = party_.ExpectEvent(Type::kConnectRequest).request;
      return reply;
    case PeerOp::kAccept:
      if (request_ == nullptr) request_ = party_.ExpectEvent(Type::kConnectRequest).request;
      Must(party_.manager().Accept(std::move(request_), party_.pair(), {}));
      party_.ExpectEvent(Type::kEstablished);
      return reply;
    case PeerOp::kMemory:
      reply.memory = memory_.At(static_cast<int64_t>(command.offset));
      return reply;
    case PeerOp::kFill:
      FillPattern(memory_.bytes(command.offset, command.length), command.seed);
      return reply;
    case PeerOp::kCheck: {
      const testing::AssertionResult holds =
          HoldsPattern(memory_.bytes(command.offset, command.length), command.seed);
      reply.ok = static_cast<bool>(holds);
      SetText(reply.text, holds.message());
      return reply;
    }
    case PeerOp::kNextCompletion:
      reply.completion = party_.NextCompletion();
      return reply;
    case PeerOp::kNextEvent:
      reply.id = static_cast<uint64_t>(party_.NextEvent().type);
      return reply;
    case PeerOp::kMoveToError:
      party_.pair().MoveToError();
      return reply;
    case PeerOp::kDisconnect:
      party_.manager().Disconnect(party_.pair());
      return reply;
    default:
      return RunTransfer(command);
  }
}

PeerReply PeerServer::RunTransfer(const PeerCommand& command) {
  const ScatterGatherEntry piece = memory_.Piece(command.offset, command.length);
  if (command.op == PeerOp::kPostRecv) {
    const RecvWorkRequest receive{.wr_id = command.id, .sg_list = {&piece, 1}};
    Must(party_.pair().PostRecv({&receive, 1}));
  } else if (command.op == PeerOp::kSend) {
    Must(party_.TryPost(conformance::Send(command.id, {piece})));
  } else if (command.op == PeerOp::kSendWithImm) {
    Must(party_.TryPost(conformance::SendWithImm(command.id, {piece}, command.imm)));
  } else if (command.op == PeerOp::kWrite) {
    Must(party_.TryPost(conformance::Write(command.id, {piece}, command.target)));
  } else if (command.op == PeerOp::kRead) {
    Must(party_.TryPost(conformance::Read(command.id, {piece}, command.target)));
  } else {
    throw std::runtime_error("unknown command");
  }
  return {};
}

PeerReply Peer::Do(const PeerCommand& command) {
  const PeerReply reply = Execute(command);
  if (!reply.ok) throw std::runtime_error(absl::StrCat("the peer says: ", reply.text));
  return reply;
}

Address Peer::Listen() { return Must(Address::Parse(Do({.op = PeerOp::kListen}).text)); }

void Peer::StartConnect(const Address& address) {
  PeerCommand command{.op = PeerOp::kConnect};
  snprintf(command.text, sizeof(command.text), "%s", address.ToString().c_str());
  Do(command);
}

RemoteTarget Peer::Memory(uint64_t offset) {
  return Do({.op = PeerOp::kMemory, .offset = offset}).memory;
}

void Peer::PostRecv(uint64_t id, uint64_t offset, uint64_t length) {
  Do({.op = PeerOp::kPostRecv, .id = id, .offset = offset, .length = length});
}

void Peer::Send(uint64_t id, uint64_t offset, uint64_t length) {
  Do({.op = PeerOp::kSend, .id = id, .offset = offset, .length = length});
}

void Peer::SendWithImm(uint64_t id, uint64_t offset, uint64_t length, uint32_t imm) {
  Do({.op = PeerOp::kSendWithImm, .imm = imm, .id = id, .offset = offset, .length = length});
}

void Peer::Write(uint64_t id, uint64_t offset, uint64_t length, RemoteTarget to) {
  Do({.op = PeerOp::kWrite, .id = id, .offset = offset, .length = length, .target = to});
}

void Peer::Read(uint64_t id, uint64_t offset, uint64_t length, RemoteTarget from) {
  Do({.op = PeerOp::kRead, .id = id, .offset = offset, .length = length, .target = from});
}

void Peer::Fill(uint64_t offset, uint64_t length, uint32_t seed) {
  Do({.op = PeerOp::kFill, .offset = offset, .length = length, .seed = seed});
}

void Peer::ExpectHolds(uint64_t offset, uint64_t length, uint32_t seed) {
  Do({.op = PeerOp::kCheck, .offset = offset, .length = length, .seed = seed});
}

WorkCompletion Peer::ExpectCompletion(uint64_t id, CompletionStatus status) {
  const WorkCompletion completion = Do({.op = PeerOp::kNextCompletion}).completion;
  EXPECT_EQ(completion.wr_id, id) << "at the peer";
  if (!Accepts(subject_, status, completion.status)) {
    EXPECT_EQ(completion.status, status) << "at the peer";
  }
  return completion;
}

void Peer::ExpectReceived(uint64_t id, uint32_t byte_length) {
  const WorkCompletion completion = ExpectCompletion(id, CompletionStatus::kSuccess);
  EXPECT_EQ(completion.byte_length, byte_length) << "at the peer";
  EXPECT_EQ(completion.opcode, CompletionOpcode::kRecv) << "at the peer";
}

void Peer::ExpectEvent(Type type) {
  EXPECT_EQ(static_cast<Type>(Do({.op = PeerOp::kNextEvent}).id), type) << "at the peer";
}

ChildPeer::ChildPeer(const DeviceUnderTest& subject, Loop& loop) : Peer(subject), loop_(loop) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    throw std::runtime_error("no socket pair");
  }
  const std::string socket_text = absl::StrCat(kSocketInChild);
  const char* const arguments[] = {kProgram, "--peer", subject.name.c_str(), socket_text.c_str(),
                                   nullptr};
  const pid_t parent = getpid();
  child_ = fork();
  if (child_ == 0) {
    // Only calls that are safe after a fork of a program with threads (signal-safety(7)).
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    if (sockets[1] == kSocketInChild) {
      // dup2() of a descriptor onto itself would keep its close-on-exec flag.
      sockets[1] = dup(sockets[1]);
    }
    if (dup2(sockets[1], kSocketInChild) != kSocketInChild) _exit(126);
    execv(kProgram, const_cast<char* const*>(arguments));
    _exit(127);
  }
  close(sockets[1]);
  socket_ = sockets[0];
  if (child_ < 0) throw std::runtime_error("no child process");
}

ChildPeer::~ChildPeer() {
  // A stopped child goes on first. Not later: LeakSanitizer stops the threads of a process that ends
  // by ptrace, and a SIGCONT that meets it there leaves it waiting for ever.
  if (child_ >= 0) Signal(SIGCONT);
  close(socket_);  // The child ends when it reads the end of the stream.
  if (child_ < 0) return;
  if (!WaitForEnd()) {
    ADD_FAILURE() << "the peer process did not end by itself";
    Kill();
  }
}

void ChildPeer::Signal(int signal) { kill(child_, signal); }

void ChildPeer::Kill() {
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
  child_ = -1;
}

bool ChildPeer::WaitForEnd() {
  int status = 0;
  const bool ended = loop_.RunUntil([&] { return waitpid(child_, &status, WNOHANG) == child_; });
  if (ended) {
    child_ = -1;
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "the peer process ended with the wait status " << status;
  }
  return ended;
}

PeerReply ChildPeer::Execute(const PeerCommand& command) {
  PeerReply reply{.ok = false};
  SetText(reply.text, "the peer process is gone, or hangs");
  if (!WriteWhole(socket_, command)) return reply;
  // It may use the whole bound itself before it answers that nothing came.
  if (!loop_.RunUntil([this] { return IsReadable(socket_, 0); }, 2 * kHangBound)) return reply;
  PeerReply answer;
  return ReadWhole(socket_, &answer) ? answer : reply;
}

int RunPeer(const std::string& device_name, int socket) {
  for (const DeviceUnderTest& subject : DevicesUnderTest()) {
    if (subject.name != device_name) continue;
    Loop loop(subject);
    PeerServer server(subject, Must(subject.create()), loop);
    PeerCommand command;
    while (true) {
      // Sends that wait for a receive move forward when they are polled.
      while (!IsReadable(socket, 1)) server.party().Step();
      if (!ReadWhole(socket, &command)) return 0;
      if (!WriteWhole(socket, server.Execute(command))) return 0;
    }
  }
  fprintf(stderr, "no device %s\n", device_name.c_str());
  return 2;
}

}  // namespace verbena::conformance
