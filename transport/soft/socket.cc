// SPDX-License-Identifier: Apache-2.0

#include "verbena/transport/soft/socket.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "verbena/transport/soft/constants.h"

namespace verbena::soft {
namespace {

// Abstract names start with a zero byte and are as long as the address says.
socklen_t FillAddress(std::string_view name, sockaddr_un* address) {
  const std::string full =
      absl::StrCat("verbena.shm.", absl::string_view(name.data(), name.size()));
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  CHECK_LE(full.size() + 1, sizeof address->sun_path);
  memcpy(address->sun_path + 1, full.data(), full.size());
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + full.size());
}

}  // namespace

absl::StatusOr<UniqueFd> CreateSocket() {
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no Unix socket: ", strerror(errno), ". Look at the limit of open files."));
  }
  return fd;
}

absl::StatusOr<UniqueFd> ListenOn(std::string_view name) {
  absl::StatusOr<UniqueFd> fd = CreateSocket();
  if (!fd.ok()) return fd;
  sockaddr_un address;
  const socklen_t length = FillAddress(name, &address);
  if (bind(fd->get(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
    const absl::string_view text(name.data(), name.size());
    if (errno == EADDRINUSE) {
      return absl::AlreadyExistsError(
          absl::StrCat("another server listens at shm:", text,
                       "; stop it or choose another name (ss -xl shows who)"));
    }
    return absl::ResourceExhaustedError(absl::StrCat("bind to shm:", text, ": ", strerror(errno)));
  }
  if (listen(fd->get(), kListenBacklog) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat("listen: ", strerror(errno)));
  }
  return fd;
}

int ConnectTo(int fd, std::string_view name) {
  sockaddr_un address;
  const socklen_t length = FillAddress(name, &address);
  return connect(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 ? 0 : errno;
}

absl::Status CheckPeerUser(int fd) {
  ucred peer;
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) {
    return absl::PermissionDeniedError("the peer's user is unknown");
  }
  if (peer.uid != geteuid() && peer.uid != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat("the peer runs as user ", peer.uid, " and we as ", geteuid(),
                     "; shared memory serves one user (or root) only"));
  }
  return absl::OkStatus();
}

bool IsTransient(int error) {
  // ETOOMANYREFS: descriptors in flight are limited, too; the peer takes them soon.
  return error == EAGAIN || error == ENOBUFS || error == ENOMEM || error == ETOOMANYREFS ||
         error == EINTR;
}

int SendMessage(int fd, const ControlMessage& message, std::span<const int> descriptors) {
  DCHECK_EQ(descriptors.size(), DescriptorsOf(message.type));
  iovec data{const_cast<ControlMessage*>(&message), sizeof message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kDescriptorsMax)] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!descriptors.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  }
  return sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? errno : 0;
}

ReceiveResult ReceiveMessage(int fd, ControlMessage* message,
                             std::vector<UniqueFd>* descriptors) {
  descriptors->clear();
  iovec data{message, sizeof *message};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kDescriptorsMax)];
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t bytes = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (bytes < 0 && errno == ECONNRESET) {
    // The peer closed with messages of ours unread. Told once; what it had sent comes afterwards.
    bytes = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  }
  if (bytes < 0) {
    return errno == EAGAIN || errno == EINTR ? ReceiveResult::kNothing : ReceiveResult::kClosed;
  }
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int received;
      memcpy(&received, CMSG_DATA(part) + i * sizeof(int), sizeof received);
      descriptors->emplace_back(received);
    }
  }
  // An empty datagram looks like the end; no message of ours is empty.
  if (bytes == 0) return ReceiveResult::kClosed;
  // MSG_CTRUNC also says that we ran out of descriptors.
  if (bytes != sizeof *message || (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 ||
      !IsWellFormed(*message, descriptors->size())) {
    descriptors->clear();
    return ReceiveResult::kMalformed;
  }
  return ReceiveResult::kMessage;
}

}  // namespace verbena::soft
