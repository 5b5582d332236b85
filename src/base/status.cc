#include "base/status.h"

#include <cstdio>
#include <cstdlib>

namespace octavo {

namespace internal {

CheckFailure::CheckFailure(const char* file, int line, const char* condition) {
  stream_ << file << ":" << line << ": broken invariant: " << condition << " ";
}

CheckFailure::~CheckFailure() {
  std::fprintf(stderr, "%s\n", stream_.str().c_str());
  std::abort();
}

void AbortOnResult(const Status& status) {
  CheckFailure(__FILE__, __LINE__, "a result is a value or an error").stream() << status.ToString();
  std::abort();  // not reached: CheckFailure ends the program
}

}  // namespace internal

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kAlreadyExists:
      return "already exists";
    case StatusCode::kCorruptFile:
      return "corrupt file";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kIo:
      return "input/output error";
    case StatusCode::kOutOfMemory:
      return "out of memory";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kBoundMissed:
      return "bound missed";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown";
}

Status Status::Annotate(std::string_view context) const {
  if (ok()) return *this;
  return Status(code_, std::string(context) + ": " + message_);
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  return std::string(StatusCodeName(code_)) + ": " + message_;
}

Status InvalidArgument(std::string message) {
  return Status(StatusCode::kInvalidArgument, std::move(message));
}
Status NotFound(std::string message) {
  return Status(StatusCode::kNotFound, std::move(message));
}
Status AlreadyExists(std::string message) {
  return Status(StatusCode::kAlreadyExists, std::move(message));
}
Status CorruptFile(std::string message) {
  return Status(StatusCode::kCorruptFile, std::move(message));
}
Status Unsupported(std::string message) {
  return Status(StatusCode::kUnsupported, std::move(message));
}
Status IoError(std::string message) {
  return Status(StatusCode::kIo, std::move(message));
}
Status OutOfMemory(std::string message) {
  return Status(StatusCode::kOutOfMemory, std::move(message));
}
Status Cancelled(std::string message) {
  return Status(StatusCode::kCancelled, std::move(message));
}
Status BoundMissed(std::string message) {
  return Status(StatusCode::kBoundMissed, std::move(message));
}
Status Internal(std::string message) {
  return Status(StatusCode::kInternal, std::move(message));
}

}  // namespace octavo
