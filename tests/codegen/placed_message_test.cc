// SPDX-License-Identifier: Apache-2.0
//
// The generated classes around messages: what their functions do, and that the runtime's codec for
// them carries everything over, in two parts.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/codegen/corpus/payload.verbena.h"
#include "tests/codegen/corpus/payload_names.verbena.h"
#include "tests/codegen/corpus/payload_proto2.verbena.h"
#include "verbena/rpc/attachment.h"
#include "verbena/rpc/codec.h"
#include "verbena/rpc/protobuf_codec.h"
#include "verbena/rpc/verbena.h"
#include "verbena/transport/buffer.h"

namespace {

using corpus::payload::PlacedUploadRequest;
using testing::ElementsAre;
using testing::Pair;
using verbena::AttachmentList;
using verbena::Buffer;

// Five different places in memory, of 1, 2, 3, 4 and 5 bytes.
class PlacedMessage : public testing::Test {
 protected:
  Buffer Bytes(size_t size) { return Buffer::Wrap(std::span(memory_[size - 1]).first(size)); }

 private:
  std::array<std::array<std::byte, 5>, 5> memory_{};
};

// What there is of each field, by its number and the Buffer's size.
std::vector<std::pair<uint32_t, size_t>> Summary(const AttachmentList& attachments) {
  std::vector<std::pair<uint32_t, size_t>> result;
  for (const verbena::Attachment& attachment : attachments) {
    result.emplace_back(attachment.field, attachment.buffer.size());
  }
  return result;
}

TEST_F(PlacedMessage, HoldsMessageAndBuffers) {
  PlacedUploadRequest request;
  EXPECT_TRUE(request.payload().empty());
  EXPECT_TRUE(request.chunks().empty());

  request.mutable_message()->set_name("name");
  const Buffer payload = Bytes(3);
  request.set_payload(payload);
  request.add_chunks(Bytes(1));
  request.add_chunks(Bytes(2));
  EXPECT_EQ(request.message().name(), "name");
  EXPECT_EQ(request.message().payload(), "");
  EXPECT_EQ(request.payload().data(), payload.data());
  EXPECT_EQ(request.payload().size(), 3u);
  ASSERT_EQ(request.chunks().size(), 2u);
  EXPECT_EQ(request.chunks()[1].size(), 2u);

  request.clear_chunks();
  EXPECT_TRUE(request.chunks().empty());
  request.clear_payload();
  EXPECT_TRUE(request.payload().empty());
  EXPECT_EQ(request.message().name(), "name");
}

TEST_F(PlacedMessage, ClearLetsGoOfEverything) {
  int released = 0;
  std::array<std::byte, 8> memory;
  PlacedUploadRequest request;
  request.mutable_message()->set_name("name");
  request.set_payload(Buffer::Wrap(memory, [&released] { ++released; }));
  request.add_chunks(Buffer::Wrap(memory, [&released] { ++released; }));
  request.Clear();
  EXPECT_EQ(request.message().name(), "");
  EXPECT_TRUE(request.payload().empty());
  EXPECT_TRUE(request.chunks().empty());
  EXPECT_EQ(released, 2);
}

TEST_F(PlacedMessage, CopyRefersToTheSameMemory) {
  PlacedUploadRequest request;
  request.mutable_message()->set_name("name");
  request.set_payload(Bytes(4));
  const PlacedUploadRequest copy = request;
  request.Clear();
  EXPECT_EQ(copy.message().name(), "name");
  EXPECT_EQ(copy.payload().size(), 4u);
}

TEST_F(PlacedMessage, CollectsByFieldNumberAndLeavesOutSingularEmptyOnes) {
  PlacedUploadRequest request;
  AttachmentList attachments;
  request.VerbenaCollect(&attachments);
  EXPECT_TRUE(attachments.empty());

  request.add_chunks(Bytes(1));
  request.add_chunks(Buffer());
  request.add_chunks(Bytes(2));
  request.VerbenaCollect(&attachments);
  EXPECT_THAT(Summary(attachments),
              ElementsAre(Pair(536870911, 1), Pair(536870911, 0), Pair(536870911, 2)));

  // Appends to what is there.
  request.clear_chunks();
  request.set_payload(Bytes(5));
  request.VerbenaCollect(&attachments);
  ASSERT_EQ(attachments.size(), 4u);
  EXPECT_EQ(attachments[3].field, 2u);
  EXPECT_EQ(attachments[3].buffer.data(), request.payload().data());
}

TEST_F(PlacedMessage, PlacesByFieldNumber) {
  PlacedUploadRequest request;
  EXPECT_TRUE(request.VerbenaPlace(536870911, Bytes(1)));
  EXPECT_TRUE(request.VerbenaPlace(2, Bytes(3)));
  EXPECT_TRUE(request.VerbenaPlace(536870911, Buffer()));
  EXPECT_EQ(request.payload().size(), 3u);
  ASSERT_EQ(request.chunks().size(), 2u);
  EXPECT_EQ(request.chunks()[0].size(), 1u);
  EXPECT_TRUE(request.chunks()[1].empty());
}

TEST_F(PlacedMessage, PlacesNothingInFieldsThatTravelInside) {
  PlacedUploadRequest request;
  for (const uint32_t field : {0u, 1u, 3u, 4u, 5u, 536870912u}) {
    EXPECT_FALSE(request.VerbenaPlace(field, Bytes(1))) << field;
  }
  AttachmentList attachments;
  request.VerbenaCollect(&attachments);
  EXPECT_TRUE(attachments.empty());
}

TEST_F(PlacedMessage, CodecCarriesItOverInTwoParts) {
  PlacedUploadRequest sent;
  sent.mutable_message()->set_name("name");
  sent.mutable_message()->set_stays("stays");
  sent.set_payload(Bytes(4));
  sent.add_chunks(Bytes(2));
  sent.add_chunks(Buffer());
  const verbena::Codec& codec = verbena::kPlacedProtobufCodec<PlacedUploadRequest>;
  std::vector<std::byte> bytes(codec.byte_size(&sent));
  codec.write(&sent, bytes);
  EXPECT_EQ(bytes.size(), 2 + 4 + 2 + 5);  // A tag and a length each, and what was set above.
  AttachmentList attachments;
  codec.collect(&sent, &attachments);

  auto* got = static_cast<PlacedUploadRequest*>(codec.create());
  got->add_chunks(Bytes(5));  // Of a call before.
  ASSERT_TRUE(codec.parse(got, bytes));
  for (verbena::Attachment& attachment : attachments) {
    EXPECT_TRUE(codec.place(got, attachment.field, std::move(attachment.buffer)));
  }
  EXPECT_EQ(got->message().name(), "name");
  EXPECT_EQ(got->message().stays(), "stays");
  EXPECT_EQ(got->payload().data(), sent.payload().data());
  ASSERT_EQ(got->chunks().size(), 2u);
  EXPECT_EQ(got->chunks()[0].data(), sent.chunks()[0].data());
  EXPECT_TRUE(got->chunks()[1].empty());
  codec.destroy(got);
}

TEST_F(PlacedMessage, MessageIsTheSameToThoseWhoDoNotKnowTheOption) {
  // What such a sender puts inside stays there.
  corpus::payload::UploadRequest message;
  message.set_payload("inside");
  const std::string bytes = message.SerializeAsString();
  PlacedUploadRequest got;
  const verbena::Codec& codec = verbena::kPlacedProtobufCodec<PlacedUploadRequest>;
  ASSERT_TRUE(codec.parse(&got, std::as_bytes(std::span(bytes))));
  EXPECT_EQ(got.message().payload(), "inside");
  EXPECT_TRUE(got.payload().empty());
}

TEST_F(PlacedMessage, NamesThatGiveWayWork) {
  corpus::verbena::PlacedFields fields;
  fields.set_delete_(Bytes(1));
  fields.set_message_(Bytes(2));
  fields.set_clear(Bytes(3));
  fields.set_data(Bytes(4));
  fields.set_clear_data_(Bytes(5));
  fields.add_attachments(Bytes(1));
  fields.mutable_message()->set_set_message("inside");
  AttachmentList attachments;
  fields.VerbenaCollect(&attachments);
  EXPECT_THAT(Summary(attachments), ElementsAre(Pair(1, 1), Pair(2, 2), Pair(4, 3), Pair(10, 4),
                                                Pair(11, 5), Pair(20, 1)));
  fields.clear_data();
  EXPECT_TRUE(fields.data().empty());
  EXPECT_EQ(fields.clear_data_().size(), 5u);
  EXPECT_EQ(fields.message().set_message(), "inside");
}

// Stubs and services take and give the classes, of types that have one.
namespace payload = corpus::payload;
static_assert(std::is_same_v<decltype(&payload::Store::StubInterface::Upload),
                             absl::Status (payload::Store::StubInterface::*)(
                                 verbena::ClientContext*, const payload::PlacedUploadRequest&,
                                 payload::UploadResponse*)>);
static_assert(std::is_same_v<decltype(&payload::Store::AsyncInterface::Download),
                             void (payload::Store::AsyncInterface::*)(
                                 verbena::ClientContext*, const payload::DownloadRequest*,
                                 payload::PlacedDownload_Response*, verbena::DoneCallback)>);
static_assert(std::is_same_v<decltype(&payload::Store::Service::Echo),
                             absl::Status (payload::Store::Service::*)(
                                 verbena::ServerContext*, const corpus::imported::PlacedBlob*,
                                 corpus::imported::PlacedBlob*)>);
static_assert(std::is_same_v<decltype(&CorpusLegacyStore::Service::Store),
                             absl::Status (CorpusLegacyStore::Service::*)(
                                 verbena::ServerContext*, const PlacedCorpusLegacyRequest*,
                                 corpus::verbena::PlacedOuter_Middle_Inner*)>);

}  // namespace
