// SPDX-License-Identifier: Apache-2.0
//
// Two devices on one host: 10.3.0.1 is rxe1's, 10.3.0.2 is rxe2's (tools/vm/guest/pair).

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/integration/trial.verbena.h"
#include "tests/vm/rdma_check.h"
#include "verbena/rpc/verbena.h"

namespace verbena {

std::vector<conformance::DeviceUnderTest> conformance::DevicesUnderTest() { return {ThisDevice()}; }

namespace {

using absl::StatusCode;
using conformance::HasCodeAndNames;
using conformance::IsOk;
using conformance::Must;

const std::string kFirst = "10.3.0.1";
const std::string kSecond = "10.3.0.2";

class EchoService final : public trial::Trial::Service {
  absl::Status Echo(ServerContext*, const trial::Text* request, trial::Text* response) override {
    response->set_text(request->text());
    return absl::OkStatus();
  }
};

class PairCheck : public Guards, public testing::Test {
 protected:
  static Address At(const std::string& host) { return FreshRdmaAddress(host); }
  // "rxe1".
  static std::string Name(int number) {
    return absl::StrCat(IsSoftIwarp() ? "siw" : "rxe", number);
  }
};

TEST_F(PairCheck, AddressToListenAtIsItsOwners) {
  EXPECT_EQ(Must(RdmaDeviceFor(At(kFirst), AddressUse::kListen)), Name(1));
  EXPECT_EQ(Must(RdmaDeviceFor(At(kSecond), AddressUse::kListen)), Name(2));
}

TEST_F(PairCheck, AddressIsReachedByTheDeviceOfItsRoute) {
  EXPECT_EQ(Must(RdmaDeviceFor(At(kFirst), AddressUse::kConnect)), Name(2));
  EXPECT_EQ(Must(RdmaDeviceFor(At(kSecond), AddressUse::kConnect)), Name(1));
}

TEST_F(PairCheck, AddressThatNoDeviceServesIsUnavailable) {
  for (const AddressUse use : {AddressUse::kListen, AddressUse::kConnect}) {
    for (const char* host : {"127.0.0.1", "nobody.invalid"}) {
      EXPECT_THAT(RdmaDeviceFor(At(host), use), HasCodeAndNames(StatusCode::kUnavailable, host));
    }
  }
  EXPECT_THAT(RdmaDeviceFor(At("0.0.0.0"), AddressUse::kListen),
              HasCodeAndNames(StatusCode::kUnavailable, "listens at an address of each"));
}

TEST_F(PairCheck, ListeningOnTheOtherDevicesAddressNamesTheOwner) {
  for (int number : {1, 2}) {
    const auto device = Must(CreateRdmaDevice({.device = Name(number)}));
    const auto manager = Must(device->CreateConnectionManager());
    EXPECT_THAT(manager->Listen(At(number == 1 ? kFirst : kSecond)), IsOk());
    const auto refused = manager->Listen(At(number == 1 ? kSecond : kFirst));
    EXPECT_THAT(refused, HasCodeAndNames(StatusCode::kInvalidArgument,
                                         absl::StrCat("belongs to ", Name(3 - number))));
    EXPECT_THAT(refused, HasCodeAndNames(StatusCode::kInvalidArgument,
                                         absl::StrCat("this is ", Name(number))));
    EXPECT_THAT(manager->Listen(At("127.0.0.1")),
                HasCodeAndNames(StatusCode::kInvalidArgument, "127.0.0.1"));
  }
}

TEST_F(PairCheck, OneServerListensOnBoth) {
  EchoService service;
  const std::string targets[] = {At(kFirst).ToString(), At(kSecond).ToString()};
  ServerBuilder builder;
  builder.RegisterService(&service);
  for (const std::string& target : targets) builder.AddListeningPort(target);
  const auto server = Must(builder.BuildAndStart());
  // Devices that are chosen by the routes.
  for (const std::string& target : targets) {
    const auto channel = CreateChannel(target);
    ASSERT_THAT(channel->WaitForConnected(std::chrono::seconds(20)), IsOk()) << target;
    const auto stub = trial::Trial::NewStub(channel);
    ClientContext context;
    context.set_timeout(std::chrono::seconds(20));
    trial::Text request;
    request.set_text(target);
    trial::Text response;
    EXPECT_THAT(stub->Echo(&context, request, &response), IsOk()) << target;
    EXPECT_EQ(response.text(), target);
  }
}

TEST_F(PairCheck, DeviceThatIsNotOnTheWaySaysWhichIs) {
  EchoService service;
  const Address address = At(kSecond);
  ServerBuilder builder;
  builder.RegisterService(&service).AddListeningPort(address.ToString());
  const auto server = Must(builder.BuildAndStart());
  // The route to rxe2's address leaves by rxe1.
  const auto wrong = Must(CreateRdmaDevice({.device = Name(2)}));
  ChannelOptions options;
  options.devices = {wrong.get()};
  const auto channel = CreateChannel(address.ToString(), options);
  EXPECT_THAT(
      channel->WaitForConnected(std::chrono::seconds(20)),
      HasCodeAndNames(StatusCode::kUnavailable, absl::StrCat("is reached by ", Name(1),
                                                             ", and this channel uses ", Name(2))));
}

}  // namespace
}  // namespace verbena
