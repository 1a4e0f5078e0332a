// SPDX-License-Identifier: Apache-2.0
//
// A peer that does what it is told, in this process or in a child process: the same commands, so
// that a test is written once for both. A child is this program, executed anew as
// `--peer DEVICE FD`, and is told by a socket.

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "verbena/tests/conformance/device_under_test.h"
#include "verbena/tests/conformance/party.h"

namespace verbena::conformance {

enum class PeerOp : uint32_t {
  kListen,  // -> text: the address.
  kStopListening,
  kConnect,      // text: the address. The answer comes as an event.
  kTakeRequest,  // Waits for a connection request and keeps it.
  kAccept,       // The request kept, or else the next one. Waits for kEstablished.
  kMemory,       // -> address, key.
  kPostRecv,
  kSend,
  kSendWithImm,
  kWrite,
  kRead,
  kFill,   // Memory with the pattern `seed`.
  kCheck,  // That it holds the pattern `seed`.
  kNextCompletion,
  kNextEvent,  // -> id: the type.
  kMoveToError,
  kDisconnect,
};

struct PeerCommand {
  PeerOp op;
  uint32_t imm = 0;
  uint64_t id = 0;
  uint64_t offset = 0;  // In the peer's memory.
  uint64_t length = 0;
  uint32_t seed = 0;
  RemoteTarget target = {};  // kWrite, kRead: our memory.
  char text[128] = {};
};

struct PeerReply {
  bool ok = true;
  char text[256] = {};  // Why not; or the address.
  uint64_t id = 0;
  RemoteTarget memory = {};
  WorkCompletion completion{};
};

inline constexpr size_t kPeerMemoryBytes = size_t{4} << 20;

// Carries the commands out.
class PeerServer {
 public:
  PeerServer(const DeviceUnderTest& subject, std::unique_ptr<Device> device, Loop& loop);
  // Never throws: what went wrong is in the reply.
  PeerReply Execute(const PeerCommand& command);
  Party& party() { return party_; }

 private:
  PeerReply Run(const PeerCommand& command);
  PeerReply RunTransfer(const PeerCommand& command);

  const DeviceUnderTest& subject_;
  std::unique_ptr<Device> device_;
  Party party_;
  const Buffer& memory_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<ConnectionRequest> request_;
};

// Gives the commands. A command that fails ends the test by an exception.
class Peer {
 public:
  virtual ~Peer() = default;

  Address Listen();
  void StopListening() { Do({.op = PeerOp::kStopListening}); }
  void StartConnect(const Address& address);
  void TakeRequest() { Do({.op = PeerOp::kTakeRequest}); }
  void Accept() { Do({.op = PeerOp::kAccept}); }
  RemoteTarget Memory(uint64_t offset);
  void PostRecv(uint64_t id, uint64_t offset, uint64_t length);
  void Send(uint64_t id, uint64_t offset, uint64_t length);
  void SendWithImm(uint64_t id, uint64_t offset, uint64_t length, uint32_t imm);
  void Write(uint64_t id, uint64_t offset, uint64_t length, RemoteTarget to);
  void Read(uint64_t id, uint64_t offset, uint64_t length, RemoteTarget from);
  void Fill(uint64_t offset, uint64_t length, uint32_t seed);
  void ExpectHolds(uint64_t offset, uint64_t length, uint32_t seed);
  WorkCompletion ExpectCompletion(uint64_t id, CompletionStatus status);
  void ExpectReceived(uint64_t id, uint32_t byte_length);
  void ExpectEvent(ConnectionEvent::Type type);
  void MoveToError() { Do({.op = PeerOp::kMoveToError}); }
  void Disconnect() { Do({.op = PeerOp::kDisconnect}); }

 protected:
  explicit Peer(const DeviceUnderTest& subject) : subject_(subject) {}
  virtual PeerReply Execute(const PeerCommand& command) = 0;

 private:
  PeerReply Do(const PeerCommand& command);

  const DeviceUnderTest& subject_;
};

class LocalPeer : public Peer {
 public:
  LocalPeer(const DeviceUnderTest& subject, std::unique_ptr<Device> device, Loop& loop)
      : Peer(subject), server_(subject, std::move(device), loop) {}

 private:
  PeerReply Execute(const PeerCommand& command) override { return server_.Execute(command); }
  PeerServer server_;
};

class ChildPeer : public Peer {
 public:
  // `loop` goes on while we wait for an answer.
  ChildPeer(const DeviceUnderTest& subject, Loop& loop);
  ~ChildPeer() override;  // Lets the child end, or makes it.
  void Signal(int signal);
  // SIGKILL, and waits until it is gone.
  void Kill();

 private:
  PeerReply Execute(const PeerCommand& command) override;
  bool WaitForEnd();

  Loop& loop_;
  int socket_ = -1;
  pid_t child_ = -1;
};

// The child's main().
int RunPeer(const std::string& device_name, int socket);

}  // namespace verbena::conformance
