// SPDX-License-Identifier: Apache-2.0
//
// The server's side of trial.proto. Threads: any.

#pragma once

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "tests/integration/trial.verbena.h"
#include "verbena/rpc/verbena.h"
#include "verbena/tests/support/pattern.h"

namespace verbena {

class TrialService final : public trial::Trial::Service {
 public:
  absl::Status Echo(ServerContext*, const trial::Text* request, trial::Text* response) override {
    response->set_text(request->text());
    return absl::OkStatus();
  }
  absl::Status End(ServerContext*, const trial::EndRequest* request, trial::Text*) override {
    return absl::Status(static_cast<absl::StatusCode>(request->code()), request->message());
  }
  absl::Status Work(ServerContext* context, const trial::WorkRequest* request,
                    trial::Text* response) override {
    ++working;
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::milliseconds(request->milliseconds());
    while (std::chrono::steady_clock::now() < end && !context->IsCancelled()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    --working;
    if (context->IsCancelled()) {
      ++cancelled;
      return absl::CancelledError("the handler saw that nobody waits");
    }
    response->set_text("worked");
    return absl::OkStatus();
  }
  absl::Status Produce(ServerContext*, const trial::ProduceRequest* request,
                       trial::Text* response) override {
    response->set_text(std::string(request->bytes(), 'p'));
    return absl::OkStatus();
  }
  absl::Status Mirror(ServerContext* context, const trial::Text* request,
                      trial::Text* response) override {
    response->set_text(request->text());
    for (const Attachment& attachment : context->attachments()) {
      context->AddResponseAttachment(attachment.buffer);
    }
    return absl::OkStatus();
  }
  absl::Status Make(ServerContext* context, const trial::MakeRequest* request,
                    trial::Text*) override {
    absl::StatusOr<Buffer> buffer = pool.Allocate(request->bytes());
    if (!buffer.ok()) return buffer.status();
    FillPattern(buffer->span(), request->seed());
    context->AddResponseAttachment(*std::move(buffer));
    return absl::OkStatus();
  }
  absl::Status Keep(ServerContext* context, const trial::Text*, trial::Text*) override {
    std::lock_guard lock(mutex_);
    for (const Attachment& attachment : context->attachments()) kept_.push_back(attachment.buffer);
    return absl::OkStatus();
  }
  void DropKept() {
    std::lock_guard lock(mutex_);
    kept_.clear();
  }
  absl::Status Throw(ServerContext*, const trial::Text* request, trial::Text*) override {
    if (request->text().empty()) throw 1;
    throw std::runtime_error(request->text());
  }

  BufferPool pool;
  std::atomic<int> working{0};    // Work handlers that run now.
  std::atomic<int> cancelled{0};  // Those that ended because they were cancelled.

 private:
  std::mutex mutex_;
  std::vector<Buffer> kept_;  // Guarded by mutex_.
};

}  // namespace verbena
