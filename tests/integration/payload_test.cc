// SPDX-License-Identifier: Apache-2.0
//
// Messages and attachments of every size, both ways. What is too long for a slot goes by RDMA
// WRITE.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "verbena/tests/integration/trial_fixture.h"
#include "verbena/tests/support/pattern.h"
#include "verbena/tests/support/vm_environment.h"

namespace verbena {
namespace {

constexpr size_t kSlotBytes = 4096;

// Every size up to that of a slot and some more, and each power of two up to `most` with its
// neighbours.
std::vector<size_t> Sizes(size_t most) {
  std::set<size_t> sizes = {0};
  for (size_t size = 1; size <= most; size *= 2) sizes.insert({size - 1, size, size + 1});
  for (size_t size = 0; size <= kSlotBytes + 2; ++size) sizes.insert(size);
  return {sizes.begin(), sizes.end()};
}

class Payload : public TrialTest {
 protected:
  Buffer MakeBuffer(size_t bytes, uint64_t seed) {
    Buffer buffer = Must(pool_.Allocate(bytes));
    FillPattern(buffer.span(), seed);
    return buffer;
  }
  // Sends attachments of these sizes there and back.
  void Mirror(trial::Trial::Stub& stub, const std::vector<size_t>& sizes, uint64_t seed) {
    ClientContext context;
    context.set_timeout(milliseconds(60'000));
    for (size_t i = 0; i < sizes.size(); ++i) {
      context.AddAttachment(MakeBuffer(sizes[i], seed + i));
    }
    trial::Text response;
    ASSERT_THAT(stub.Mirror(&context, MakeText("with"), &response), IsOk()) << sizes[0];
    EXPECT_EQ(response.text(), "with");
    ASSERT_EQ(context.response_attachments().size(), sizes.size());
    for (size_t i = 0; i < sizes.size(); ++i) {
      const Buffer& buffer = context.response_attachments()[i].buffer;
      ASSERT_EQ(buffer.size(), sizes[i]);
      EXPECT_EQ(PatternMismatch(buffer.span(), seed + i), sizes[i]);
    }
  }

  BufferPool pool_;
};

TEST_F(Payload, MessagesOfEverySizeArriveWhole) {
  StartServer();
  auto stub = MakeStub();
  for (const size_t size : Sizes(size_t{4} << 20)) {
    std::string text(size, '\0');
    FillPattern(std::as_writable_bytes(std::span(text)), size);
    const EchoResult result = Echo(*stub, text);
    ASSERT_THAT(result.status, IsOk()) << size;
    ASSERT_TRUE(result.text == text) << size;
  }
}

TEST_F(Payload, AttachmentsOfEverySizeArriveWhole) {
  StartServer();
  auto stub = MakeStub();
  for (const size_t size : Sizes(size_t{64} << 20)) Mirror(*stub, {size}, size);
}

TEST_F(Payload, ManyAttachmentsKeepTheirOrder) {
  StartServer();
  auto stub = MakeStub();
  std::vector<size_t> sizes;
  for (size_t i = 0; i < 1000; ++i) sizes.push_back(i * 37 % 5000);
  Mirror(*stub, sizes, 1);
  Mirror(*stub, {0, 0, 0}, 2);
  Mirror(*stub, {100'000, 0, 1}, 3);
  Mirror(*stub, {3, 0, 100'000}, 4);
}

TEST_F(Payload, AResponseLongerThanExpectedComesAllTheSame) {
  StartServer();
  auto stub = MakeStub();
  for (const uint64_t expected : {uint64_t{0}, uint64_t{1}, uint64_t{8192}, uint64_t{300'000},
                                  uint64_t{1} << 20, uint64_t{1} << 22}) {
    ClientContext context;
    context.set_timeout(milliseconds(20'000));
    context.set_response_bytes_max(expected);
    trial::MakeRequest request;
    request.set_bytes(300'000);
    request.set_seed(expected);
    trial::Text response;
    ASSERT_THAT(stub->Make(&context, request, &response), IsOk());
    ASSERT_EQ(context.response_attachments().size(), 1u);
    EXPECT_EQ(PatternMismatch(context.response_attachments()[0].buffer.span(), expected), 300'000u);
  }
}

TEST_F(Payload, AnOptionSaysWhatStillGoesIntoASlot) {
  StartServer([](ServerOptions& options) { options.endpoint.slot_frame_bytes_max = 512; });
  ChannelOptions options;
  options.endpoint.slot_frame_bytes_max = 1024;
  auto stub = MakeStub(options);
  // 24 bytes of header, 16 of the response's, 3 before the text.
  EXPECT_THAT(Echo(*stub, std::string(512 - 16 - 3, 'x')).status, IsOk());
  EXPECT_EQ(server_->statistics().payload_bytes_sent, 0u);
  EXPECT_THAT(Echo(*stub, std::string(512 - 16 - 2, 'x')).status, IsOk());
  EXPECT_EQ(channels_[0]->statistics().payload_bytes_sent, 0u);
  EXPECT_EQ(channels_[0]->statistics().payload_bytes_received, 512u + 1);
  EXPECT_THAT(Echo(*stub, std::string(1024 - 24 - 3, 'x')).status, IsOk());
  EXPECT_EQ(channels_[0]->statistics().payload_bytes_sent, 0u);
  EXPECT_THAT(Echo(*stub, std::string(1024 - 24 - 2, 'x')).status, IsOk());
  EXPECT_EQ(channels_[0]->statistics().payload_bytes_sent, 64u + 1024 + 1);
  EXPECT_GT(channels_[0]->statistics().payload_memory_bytes, 0u);
  // Of what landed, where there are no memory windows.
  const bool copies = Environment("VERBENA_TEST_DEVICE").starts_with("siw");
  const ChannelStatistics statistics = channels_[0]->statistics();
  EXPECT_EQ(statistics.payload_bytes_copied, copies ? statistics.payload_bytes_received : 0u);
}

TEST_F(Payload, AResponseLandsInTheCallersMemory) {
  StartServer();
  auto stub = MakeStub();
  for (const uint64_t bytes : {uint64_t{100}, uint64_t{100'000}}) {
    std::vector<std::byte> memory(bytes + 10);
    ClientContext context;
    context.set_timeout(milliseconds(20'000));
    context.set_response_memory(memory);
    trial::MakeRequest request;
    request.set_bytes(bytes);
    request.set_seed(bytes);
    trial::Text response;
    ASSERT_THAT(stub->Make(&context, request, &response), IsOk());
    const Buffer& buffer = context.response_attachments()[0].buffer;
    EXPECT_EQ(buffer.data(), memory.data());
    EXPECT_EQ(buffer.size(), bytes);
    EXPECT_EQ(PatternMismatch(buffer.span(), bytes), bytes);
  }
}

}  // namespace
}  // namespace verbena
