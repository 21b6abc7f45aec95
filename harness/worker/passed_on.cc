// SPDX-License-Identifier: Apache-2.0
#include "harness/worker/passed_on.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "harness/base/error.h"
#include "harness/base/notes.h"

namespace moegate {
namespace {

constexpr size_t kLongestLine = 65536;  // bytes; then it goes on without its end

}  // namespace

PassedOn::PassedOn(int fd) : fd_(fd) {
  if (pipe2(end_, O_CLOEXEC) != 0) {
    throw Error(Exit::environment, fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  }
  fcntl(fd_, F_SETFL, O_NONBLOCK);
  reader_ = std::thread([this] { pass_on(); });
}

PassedOn::~PassedOn() {
  close(end_[1]);
  reader_.join();
  close(end_[0]);
  close(fd_);
}

bool PassedOn::take() {
  std::array<char, 4096> bytes;
  for (;;) {
    const ssize_t got = read(fd_, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got < 0 && errno == EAGAIN;
    text_.append(bytes.data(), static_cast<size_t>(got));
    say_lines();
  }
}

void PassedOn::say_lines() {
  const size_t last = text_.rfind('\n');
  const size_t whole = last != std::string::npos      ? last + 1
                       : text_.size() >= kLongestLine ? text_.size()
                                                      : 0;
  if (whole == 0) return;
  say_text(text_.substr(0, whole));
  text_.erase(0, whole);
}

void PassedOn::pass_on() {
  for (bool goes_on = true; goes_on;) {
    std::array<pollfd, 2> ready{pollfd{fd_, POLLIN, 0}, pollfd{end_[0], POLLIN, 0}};
    if (poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) break;
    goes_on = take() && ready[1].revents == 0;
  }
  if (!text_.empty()) say_text(text_);
}

}  // namespace moegate
