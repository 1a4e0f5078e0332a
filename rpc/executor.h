// SPDX-License-Identifier: Apache-2.0
//
// Where handlers run when they shall not run on a poller: something of the user's.

#pragma once

namespace verbena {

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `function(argument)` soon, exactly once, on a thread that is not the caller's. False when
  // it can't take more; the call then ends RESOURCE_EXHAUSTED. Any thread; must not block.
  virtual bool Execute(void (*function)(void*), void* argument) = 0;
};

}  // namespace verbena
