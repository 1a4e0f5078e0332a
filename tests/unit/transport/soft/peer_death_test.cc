// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <iostream>

#include "verbena/tests/unit/transport/soft/end.h"

namespace verbena::soft {
namespace {

using std::chrono::steady_clock;

constexpr size_t kLargeBytes = 256 << 20;

double MillisecondsSince(steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(steady_clock::now() - start).count();
}

TEST(PeerDeath, InTheMiddleOfACopyIsNoticedWithinASecond) {
  const std::string name = FreshName();
  auto* copying = SharedWithChildren<std::atomic<int>>();
  Child child([&] {
    End end({.region_bytes = kLargeBytes});
    end.Connect(name);
    for (;;) {  // Until killed.
      copying->store(1);
      end.Send(1, 0, kLargeBytes);
      end.AwaitCompletion();
    }
    return 0;
  });
  End end({.region_bytes = kLargeBytes});
  for (uint64_t i = 0; i < 32; ++i) end.PostRecv(i, 0, kLargeBytes);
  end.Listen(name);
  end.Accept();
  while (copying->load() == 0) usleep(100);
  usleep(5000);

  const auto start = steady_clock::now();
  child.Kill();
  const ConnectionEvent event = end.AwaitEvent();
  const double event_ms = MillisecondsSince(start);
  EXPECT_EQ(event.type, ConnectionEvent::Type::kDisconnected);
  EXPECT_EQ(event.queue_pair, end.pair.get());
  EXPECT_EQ(event.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(end.pair->state(), QueuePairState::kError);
  uint64_t expected = 0;
  bool flushed = false;
  while (expected < 32) {
    const WorkCompletion completion = end.AwaitCompletion();
    EXPECT_EQ(completion.wr_id, expected++);
    // What was complete before it died is delivered, and nothing after the first flush.
    EXPECT_FALSE(flushed && completion.status == CompletionStatus::kSuccess);
    flushed = flushed || completion.status == CompletionStatus::kFlushed;
  }
  const double flush_ms = MillisecondsSince(start);
  std::cout << "noticed after " << event_ms << " ms, all flushed after " << flush_ms << " ms\n";
  EXPECT_LT(event_ms, 1000);
  EXPECT_LT(flush_ms, 1000);
}

TEST(PeerDeath, WhatItHadPublishedIsDelivered) {
  const std::string name = FreshName();
  Child child([&]() -> int {
    End end;
    end.Connect(name);
    for (uint64_t i = 0; i < 10; ++i) end.Send(i, 0, 100 + 100 * i);
    // The first may wait until the server's memory is mapped; none is lost once it is complete.
    for (uint64_t i = 0; i < 10; ++i) end.AwaitCompletion();
    _exit(0);  // Without a word.
  });
  End end;
  for (uint64_t i = 0; i < 20; ++i) end.PostRecv(i, 0, 4096);
  end.Listen(name);
  end.Accept();
  EXPECT_EQ(child.Join(), 0);
  EXPECT_EQ(end.AwaitEvent().type, ConnectionEvent::Type::kDisconnected);
  for (uint64_t i = 0; i < 20; ++i) {
    const WorkCompletion completion = end.AwaitCompletion();
    EXPECT_EQ(completion.wr_id, i);
    if (i < 10) {
      EXPECT_EQ(completion.status, CompletionStatus::kSuccess);
      EXPECT_EQ(completion.byte_length, 100 + 100 * i);
    } else {
      EXPECT_EQ(completion.status, CompletionStatus::kFlushed);
    }
  }
}

TEST(PeerDeath, EndsASendThatWaitsForAReceive) {
  const std::string name = FreshName();
  Child child([&] {
    End end;
    end.Connect(name);
    pause();
    return 0;
  });
  End end;
  end.Listen(name);
  end.Accept();
  end.Send(1, 0, 8);
  end.Send(2, 0, 8);
  child.Kill();
  WorkCompletion completion = end.AwaitCompletion();
  EXPECT_EQ(completion.wr_id, 1u);
  EXPECT_EQ(completion.status, CompletionStatus::kRetryExceeded);
  completion = end.AwaitCompletion();
  EXPECT_EQ(completion.wr_id, 2u);
  EXPECT_EQ(completion.status, CompletionStatus::kFlushed);
}

// A stopped peer may hold the mark of a copy for ever; the flush waits for it, but not for ever.
TEST(PeerDeath, AStoppedPeerDelaysTheFlushAtMostSoLong) {
  const std::string name = FreshName();
  auto* copying = SharedWithChildren<std::atomic<int>>();
  Child child([&] {
    End end({.region_bytes = kLargeBytes});
    end.Connect(name);
    copying->store(1);
    for (;;) {
      end.Send(1, 0, kLargeBytes);
      end.AwaitCompletion();
    }
    return 0;
  });
  End end({.region_bytes = kLargeBytes});
  for (uint64_t i = 0; i < 32; ++i) end.PostRecv(i, 0, kLargeBytes);
  end.Listen(name);
  end.Accept();
  while (copying->load() == 0) usleep(100);
  usleep(5000);
  kill(child.pid(), SIGSTOP);
  const auto start = steady_clock::now();
  end.pair->MoveToError();
  for (int i = 0; i < 32; ++i) end.AwaitCompletion();
  EXPECT_LT(MillisecondsSince(start), 5000);
}

}  // namespace
}  // namespace verbena::soft
