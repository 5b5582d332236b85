// Status and Result: how every function that can be refused by its input says so.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace octavo {

enum class StatusCode {
  kOk,
  kInvalidArgument,  // a flag, a request or a recipe asks for what cannot be
  kNotFound,         // a file, a tensor or a name is missing
  kAlreadyExists,    // an output is there and would be overwritten
  kCorruptFile,      // a file breaks its own format
  kUnsupported,      // valid, but not implemented here
  kIo,               // the operating system refused
  kOutOfMemory,      // a budget would be exceeded
  kCancelled,        // the user asked to stop
  kBoundMissed,      // a measured figure is beyond a bound that was asked for
  kInternal,         // our own mistake, noticed in time
};

// The code's name as users see it, e.g. "corrupt file".
std::string_view StatusCodeName(StatusCode code);

// A code and a message for people. The message says what was found, what was expected and what to
// do; callers add where ("tensor X in shard Y: ...") with Annotate on the way up.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // "context: message", the code kept; no effect on success.
  Status Annotate(std::string_view context) const;
  // "corrupt file: message".
  std::string ToString() const;

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status OkStatus() {
  return Status();
}
Status InvalidArgument(std::string message);
Status NotFound(std::string message);
Status AlreadyExists(std::string message);
Status CorruptFile(std::string message);
Status Unsupported(std::string message);
Status IoError(std::string message);
Status OutOfMemory(std::string message);
Status Cancelled(std::string message);
Status BoundMissed(std::string message);
Status Internal(std::string message);

namespace internal {
// The program is wrong: a value asked of an error, or an error made of success.
[[noreturn]] void AbortOnResult(const Status& status);
}  // namespace internal

// A value or the Status that explains its absence. value() on an error aborts.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}         // NOLINT: implicit on purpose
  Result(Status status) : status_(std::move(status)) {  // NOLINT: likewise
    if (status_.ok()) internal::AbortOnResult(status_);
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }

  T& value() & {
    if (!ok()) internal::AbortOnResult(status_);
    return *value_;
  }
  const T& value() const& {
    if (!ok()) internal::AbortOnResult(status_);
    return *value_;
  }
  T&& value() && {
    if (!ok()) internal::AbortOnResult(status_);
    return *std::move(value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace octavo
