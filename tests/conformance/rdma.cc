// SPDX-License-Identifier: Apache-2.0
//
// rdma-core's device, on whatever NIC this machine has: in the VM Soft-RoCE or Soft-iWARP
// (VERBENA_TEST_DEVICE, rxe or siw, with the address VERBENA_TEST_HOST).

#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "verbena/tests/conformance/device_under_test.h"
#include "verbena/tests/support/vm_environment.h"
#include "verbena/transport/rdma/factory.h"

namespace verbena::conformance {
namespace {

absl::StatusOr<std::unique_ptr<Device>> Open() {
  if (Environment("VERBENA_TEST_HOST").empty()) {
    return absl::UnavailableError("VERBENA_TEST_HOST, the address of an RDMA device, is not set");
  }
  return CreateRdmaDevice();
}

using Status = CompletionStatus;
using Differences = std::map<std::string, std::string>;
using Statuses = std::multimap<Status, Status>;

DeviceUnderTest InVm(std::string name, Differences known_differences, Statuses may_report) {
  return {.name = std::move(name),
          .create = Open,
          .fresh_address = [] { return FreshRdmaAddress(); },
          .effort_divisor = 20,
          .known_differences = std::move(known_differences),
          .may_report = std::move(may_report)};
}

DeviceUnderTest SoftRoce() {
  constexpr char kUnaligned[] = "librxe refuses unaligned atomics when they are posted";
  constexpr char kSolicited[] = "an error is no solicited event (nobody arms for those alone)";
  // Of Linux 6.1; so a window protects nothing on rxe beyond its region.
  constexpr char kBounds[] = "rxe checks the bounds of the region, and not those of the window";
  constexpr char kDomain[] = "rxe does not check whose window or region it is";
  constexpr char kPort[] = "counted per port, and what is read may be 12 ms old";
  constexpr char kNoEvent[] = "no asynchronous event about the peer's errors";
  constexpr char kPanic[] = "rxe crashes the kernel: it frees a region that the window has lost";
  return InVm("SoftRoce",
              {{"Atomics.UnalignedAddressIsAnInvalidRequest", kUnaligned},
               {"Atomics.UnalignedAddressTellsTheRespondersProgram", kUnaligned},
               {"Sleeping.ErrorCompletionWakesEvenWhoAskedForSolicitedOnly", kSolicited},
               {"MemoryWindows.EndWhereTheyWereBoundTo", kBounds},
               {"MemoryWindows.BeginWhereTheyWereBoundTo", kBounds},
               {"BindingAWindow.DoesNotWrapAround", kBounds},
               {"BindingAWindow.TakesNoRegionOfAnotherDomain", kDomain},
               {"Invalidation.ByAnotherPeerFails", kDomain},
               {"Invalidation.ByThePeerOfADeadKeyFails", kPanic},
               {"ReceiverNotReady.IsCountedWhenItRecovers", kPort},
               {"ReceiverNotReady.CountsEveryTime", kPort},
               {"RemoteAccess.TellsTheRespondersProgram", kNoEvent}},
              // One status for all that a requester or a responder finds wrong with its own memory.
              {{Status::kLocalProtectionError, Status::kLocalQueuePairOperationError},
               {Status::kLocalLengthError, Status::kLocalQueuePairOperationError},
               {Status::kRemoteInvalidRequestError, Status::kRemoteOperationError},
               // The receive that a refused WRITE_WITH_IMM took.
               {Status::kFlushed, Status::kRemoteAccessError}});
}

DeviceUnderTest SoftIwarp() {
  constexpr char kSolicited[] = "no solicited events (nobody arms for those alone)";
  constexpr char kTcp[] = "the end of the TCP connection tells at once";
  constexpr char kQueues[] =
      "libsiw finds no place for the queue whose memory begins at page 144 of a device";
  constexpr char kPieces[] = "bounds are checked piece by piece: the good ones have landed";
  constexpr char kRead[] = "the driver answers a READ of memory that is open to writes only";
  constexpr char kNoEvent[] = "no asynchronous event about the peer's errors";
  return InVm("SoftIwarp",
              {{"Sleeping.SolicitedOnlySleepsThroughOrdinaryMessages", kSolicited},
               {"Sleeping.ArmedForAnyStaysSoWhenArmedForSolicitedToo", kSolicited},
               {"Sleeping.ErrorCompletionWakesEvenWhoAskedForSolicitedOnly", kSolicited},
               {"Sleeping.FlushWakes", kSolicited},
               {"SleepingPingPong.LosesNoSolicitedWakeUp", kSolicited},
               {"PeerInError.IsNotNoticedUntilSomethingIsSent", kTcp},
               {"Connecting.ManyAtOnceEachGetTheirOwn", kQueues},
               {"RemoteAccess.LargeWriteThatEndsBehindTheRegion", kPieces},
               {"RemoteAccess.ReadWithoutTheRight", kRead},
               {"RemoteAccess.TellsTheRespondersProgram", kNoEvent}},
              // The requester learns that the connection ended, and not why.
              {{Status::kLocalProtectionError, Status::kLocalQueuePairOperationError},
               {Status::kLocalProtectionError, Status::kGeneral},
               {Status::kRemoteInvalidRequestError, Status::kLocalQueuePairOperationError},
               {Status::kRemoteOperationError, Status::kLocalQueuePairOperationError},
               {Status::kRemoteAccessError, Status::kLocalQueuePairOperationError},
               {Status::kRemoteAccessError, Status::kGeneral}});
}

}  // namespace

std::vector<DeviceUnderTest> DevicesUnderTest() {
  return {Environment("VERBENA_TEST_DEVICE") == "siw" ? SoftIwarp() : SoftRoce()};
}

}  // namespace verbena::conformance
