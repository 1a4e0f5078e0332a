// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/work_request.h"

namespace verbena {

std::string_view CompletionStatusName(CompletionStatus status) {
  switch (status) {
    case CompletionStatus::kSuccess:
      return "success";
    case CompletionStatus::kLocalLengthError:
      return "local length error: the message is longer than the receive posted for it";
    case CompletionStatus::kLocalQueuePairOperationError:
      return "local queue pair operation error";
    case CompletionStatus::kLocalProtectionError:
      return "local protection error: a local key does not cover the buffer";
    case CompletionStatus::kFlushed:
      return "flushed: the queue pair is in the error state";
    case CompletionStatus::kWindowBindError:
      return "memory window bind error";
    case CompletionStatus::kBadResponseError:
      return "bad response";
    case CompletionStatus::kLocalAccessError:
      return "local access error";
    case CompletionStatus::kRemoteInvalidRequestError:
      return "remote invalid request error";
    case CompletionStatus::kRemoteAccessError:
      return "remote access error: key, bound or right refused";
    case CompletionStatus::kRemoteOperationError:
      return "remote operation error";
    case CompletionStatus::kRetryExceeded:
      return "transport retries exceeded: the peer does not answer";
    case CompletionStatus::kReceiverNotReadyRetryExceeded:
      return "receiver not ready: retries exceeded";
    case CompletionStatus::kRemoteAborted:
      return "remote aborted";
    case CompletionStatus::kFatal:
      return "fatal device error";
    case CompletionStatus::kResponseTimeout:
      return "response timeout";
    case CompletionStatus::kGeneral:
      return "general error";
  }
  return "unknown completion status";
}

}  // namespace verbena
