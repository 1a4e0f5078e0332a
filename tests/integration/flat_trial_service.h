// SPDX-License-Identifier: Apache-2.0
//
// The server's side of flat_trial.fbs. Threads: any.

#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/flat_trial.verbena.h"
#include "verbena/rpc/flat_message.h"
#include "verbena/rpc/verbena.h"
#include "verbena/tests/support/wait.h"

namespace verbena {

template <class Table>
using Flat = FlatMessage<Table>;

// A Text with a copy of `text`.
inline Flat<flat_trial::Text> BuildText(FlatMessageBuilder& builder, std::string_view text) {
  builder.Finish(flat_trial::CreateText(
      builder, builder.CreateVector(reinterpret_cast<const uint8_t*>(text.data()), text.size())));
  return builder.ReleaseMessage<flat_trial::Text>();
}

inline std::string_view TextOf(const Flat<flat_trial::Text>& message) {
  if (message->text() == nullptr) return {};
  return {reinterpret_cast<const char*>(message->text()->data()), message->text()->size()};
}

inline void Describe(const flat_trial::Tagged* tagged, std::string* text) {
  absl::StrAppend(text, "tagged ", tagged->name() == nullptr ? "-" : tagged->name()->c_str(), ";");
}

inline void Describe(const flat_trial::Tree& tree, std::string* text) {
  absl::StrAppend(text, tree.name() == nullptr ? "-" : tree.name()->c_str());
  if (tree.number().has_value()) absl::StrAppend(text, "=", *tree.number());
  absl::StrAppend(text, ";");
  if (const auto* tagged = tree.any_as_Tagged()) Describe(tagged, text);
  if (const auto* aligned = tree.any_as_Aligned();
      aligned != nullptr && aligned->wide() != nullptr) {
    absl::StrAppend(text, "wide ", aligned->wide()->w(), ";");
  }
  if (tree.flat() != nullptr) Describe(tree.flat_nested_root(), text);
  if (tree.children() == nullptr) return;
  for (const flat_trial::Tree* child : *tree.children()) Describe(*child, text);
}

class FlatTrialService final : public flat_trial::FlatTrial::Service {
 public:
  using Text = flat_trial::Text;

  absl::Status Echo(ServerContext* context, const Flat<Text>* request,
                    Flat<Text>* response) override {
    ++calls;
    FlatMessageBuilder builder(*context);
    *response = BuildText(builder, TextOf(*request));
    return absl::OkStatus();
  }
  absl::Status Forward(ServerContext*, const Flat<Text>* request, Flat<Text>* response) override {
    *response = *request;
    return absl::OkStatus();
  }
  absl::Status Keep(ServerContext* context, const Flat<Text>* request,
                    Flat<flat_trial::Where>* response) override {
    {
      std::lock_guard lock(mutex_);
      kept_.push_back(*request);
    }
    FlatMessageBuilder builder(*context);
    builder.Finish(
        flat_trial::CreateWhere(builder, reinterpret_cast<uint64_t>(request->bytes().data())));
    *response = builder.ReleaseMessage<flat_trial::Where>();
    return absl::OkStatus();
  }
  // Those that were kept so far.
  std::vector<Flat<Text>> TakeKept() {
    std::lock_guard lock(mutex_);
    return std::move(kept_);
  }
  absl::Status Linger(ServerContext* context, const Flat<Text>* request,
                      Flat<Text>* response) override {
    ++lingering;
    EXPECT_TRUE(WaitUntil([&] {
      if (context->IsCancelled()) lingers_for_nobody = true;
      return go_on.load();
    }));
    FlatMessageBuilder builder(*context);
    *response = BuildText(builder, TextOf(*request));
    last_lingered = std::string(TextOf(*response));
    --lingering;
    return absl::OkStatus();
  }
  absl::Status Nothing(ServerContext*, const Flat<Text>*, Flat<Text>*) override {
    return absl::OkStatus();
  }
  absl::Status Mirror(ServerContext* context, const Flat<Text>* request,
                      Flat<Text>* response) override {
    for (const Attachment& attachment : context->attachments()) {
      context->AddResponseAttachment(attachment.buffer);
    }
    FlatMessageBuilder builder(*context);
    *response = BuildText(builder, TextOf(*request));
    return absl::OkStatus();
  }
  absl::Status Walk(ServerContext* context, const Flat<flat_trial::Tree>* request,
                    Flat<Text>* response) override {
    ++calls;
    std::string text;
    Describe(**request, &text);
    FlatMessageBuilder builder(*context);
    *response = BuildText(builder, text);
    return absl::OkStatus();
  }
  absl::Status Tag(ServerContext*, const Flat<flat_trial::Tagged>* request,
                   Flat<flat_trial::Tagged>* response) override {
    ++calls;
    *response = *request;
    return absl::OkStatus();
  }
  absl::Status Align(ServerContext* context, const Flat<flat_trial::Aligned>* request,
                     Flat<flat_trial::Aligned>* response) override {
    // Where the schema says that it is, or a vector instruction would trap.
    EXPECT_EQ(reinterpret_cast<uintptr_t>((*request)->wide()) % 32, 0u);
    FlatMessageBuilder builder(*context);
    const auto text = builder.CreateVector((*request)->text()->data(), (*request)->text()->size());
    builder.Finish(flat_trial::CreateAligned(builder, (*request)->wide(), text));
    *response = builder.ReleaseMessage<flat_trial::Aligned>();
    return absl::OkStatus();
  }

  std::atomic<int> calls{0};
  std::atomic<int> lingering{0};
  std::atomic<bool> lingers_for_nobody{false};  // It has seen that its caller is gone.
  std::atomic<bool> go_on{false};
  std::string last_lingered;  // Of the last that ended, with one executor thread.

 private:
  std::mutex mutex_;
  std::vector<Flat<Text>> kept_;  // Guarded by mutex_.
};

}  // namespace verbena
