// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/event_queue.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <memory>
#include <thread>

#include "verbena/base/event_fd.h"

namespace verbena {
namespace {

template <class Event>
bool IsReadable(const EventQueue<Event>& queue) {
  pollfd entry{.fd = queue.fd(), .events = POLLIN, .revents = 0};
  return poll(&entry, 1, /*timeout=*/0) == 1;
}

TEST(EventQueue, IsReadableExactlyWhileEventsWait) {
  EventQueue<int> queue(MakeEventFd());
  int event = 0;
  EXPECT_FALSE(IsReadable(queue));
  EXPECT_FALSE(queue.Pop(&event));
  for (int round = 0; round < 3; ++round) {
    queue.Push(1);
    EXPECT_TRUE(IsReadable(queue));
    queue.Push(2);
    EXPECT_EQ(queue.size(), 2u);
    EXPECT_TRUE(queue.Pop(&event));
    EXPECT_EQ(event, 1);
    EXPECT_TRUE(IsReadable(queue));
    EXPECT_TRUE(queue.Pop(&event));
    EXPECT_EQ(event, 2);
    EXPECT_FALSE(IsReadable(queue));
    EXPECT_FALSE(queue.Pop(&event));
  }
}

TEST(EventQueue, EraseIfTakesTheChosenOnesAndKeepsTheOrder) {
  EventQueue<int> queue(MakeEventFd());
  for (int i = 0; i < 6; ++i) queue.Push(i);
  queue.EraseIf([](int event) { return event % 2 == 0; });
  EXPECT_TRUE(IsReadable(queue));
  int event = 0;
  for (int expected : {1, 3, 5}) {
    ASSERT_TRUE(queue.Pop(&event));
    EXPECT_EQ(event, expected);
  }
  EXPECT_FALSE(IsReadable(queue));
}

TEST(EventQueue, IsNotReadableOnceAllAreErased) {
  EventQueue<int> queue(MakeEventFd());
  queue.EraseIf([](int) { return true; });
  queue.Push(1);
  queue.Push(2);
  queue.EraseIf([](int) { return true; });
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_FALSE(IsReadable(queue));
  queue.Push(3);
  EXPECT_TRUE(IsReadable(queue));
}

// The destructor of an event that Pop replaces may come back to the queue.
TEST(EventQueue, DestroysWhatTheCallerHeldOutsideOfItsLock) {
  struct Comeback {
    EventQueue<std::shared_ptr<Comeback>>* queue = nullptr;
    ~Comeback() {
      if (queue != nullptr) queue->size();
    }
  };
  EventQueue<std::shared_ptr<Comeback>> queue(MakeEventFd());
  auto held = std::make_shared<Comeback>();
  held->queue = &queue;
  queue.Push(std::make_shared<Comeback>());
  EXPECT_TRUE(queue.Pop(&held));
}

TEST(EventQueue, LosesNothingBetweenTwoThreads) {
  constexpr int kEvents = 20000;
  EventQueue<int> queue(MakeEventFd());
  std::thread pusher([&] {
    for (int i = 0; i < kEvents; ++i) queue.Push(i);
  });
  for (int expected = 0; expected < kEvents;) {
    pollfd entry{.fd = queue.fd(), .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, /*timeout=*/20'000) != 1) {
      ADD_FAILURE() << "not readable, and " << expected << " of " << kEvents << " have come";
      break;
    }
    int event = 0;
    if (!queue.Pop(&event)) {
      ADD_FAILURE() << "readable, and nothing there";
      break;
    }
    EXPECT_EQ(event, expected++);
  }
  pusher.join();
}

}  // namespace
}  // namespace verbena
