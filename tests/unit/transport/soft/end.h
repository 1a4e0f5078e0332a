// SPDX-License-Identifier: Apache-2.0
//
// One end of a connection over the software device, with all it needs, for tests in two processes.
// A helper that fails ends its process: in a child there is nobody to report to.
//
// Threads: one. RunInChild before this process has a device (factory.h: fork).

#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "verbena/transport/device.h"
#include "verbena/transport/soft/factory.h"

namespace verbena::soft {

struct EndOptions {
  bool fence = false;
  bool channel = false;
  uint32_t depth = 64;  // Of both queues.
  size_t region_bytes = 1 << 20;
};

struct End {
  explicit End(const EndOptions& options = {});

  void Listen(const std::string& name);
  void Accept();                          // One connection, up to kEstablished.
  void Connect(const std::string& name);  // The same; waits for the server to appear.
  ConnectionEvent AwaitEvent();

  void PostRecv(uint64_t id, size_t offset, uint32_t bytes);
  void Send(uint64_t id, size_t offset, uint32_t bytes, SendFlags flags = kSendSignaled);
  // Polls, for at most the hang bound, until something is there.
  WorkCompletion AwaitCompletion();

  std::unique_ptr<Device> device;
  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<CompletionChannel> channel;
  std::unique_ptr<CompletionQueue> queue;
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<ConnectionManager> manager;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<QueuePair> pair;
};

// A name that no other test uses.
std::string FreshName();

// A child process that runs `body` and ends with what it returns.
class Child {
 public:
  explicit Child(const std::function<int()>& body);
  ~Child();  // Kills it if it still runs.
  void Kill();
  // Waits for its end: the exit code, or -signal.
  int Join();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

// Memory that a child shares with its parent, zeroed, until the process ends.
void* AllocateShared(size_t bytes);
template <typename T>
T* SharedWithChildren() {
  return static_cast<T*>(AllocateShared(sizeof(T)));
}

}  // namespace verbena::soft
