#include "io/checkpoint_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <set>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "base/value.h"
#include "io/descriptor.h"
#include "io/safetensors_header.h"

namespace octavo {

namespace fs = std::filesystem;

namespace {

struct Slot {
  DType dtype = DType::kF32;
  Shape shape;
  size_t shard = 0;
  int64_t offset = 0;  // in the shard's file
  std::atomic<bool> started = false;
  std::atomic<bool> written = false;
  bool durable = false;  // was told by SyncWritten
};

using Shard = std::vector<SafetensorsEntry>;

// Greedy, in the order of the plan; a tensor larger than the limit is alone.
std::vector<Shard> FillShards(const std::vector<PlannedTensor>& plan, int64_t max_shard_bytes) {
  std::vector<Shard> shards(1);
  int64_t filled = 0;
  for (const PlannedTensor& tensor : plan) {
    const int64_t bytes = Elements(tensor.shape) * DTypeBytes(tensor.dtype);
    if (!shards.back().empty() && filled + bytes > max_shard_bytes) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape});
    filled += bytes;
  }
  return shards;
}

std::string ShardName(size_t index, size_t count) {
  if (count == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

// Writes all of `bytes` at `offset`.
Status WriteAt(const Descriptor& file, const fs::path& path, std::span<const std::byte> bytes,
               int64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put = pwrite(file.get(), bytes.data(), bytes.size(), offset);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return SystemError(path, "cannot write");
    bytes = bytes.subspan(static_cast<size_t>(put));
    offset += put;
  }
  return OkStatus();
}

// A file of its final size whose space is taken now, so that a full disk shows before the work.
Status CreateShard(const fs::path& path, const std::string& header, int64_t data_bytes) {
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) return SystemError(path, "cannot create");
  const int64_t size = static_cast<int64_t>(header.size()) + data_bytes;
  if (fallocate(file.get(), 0, 0, size) != 0) {
    if (errno != EOPNOTSUPP && errno != ENOSYS) {
      return SystemError(path, fmt::format("cannot reserve {} bytes", size));
    }
    if (ftruncate(file.get(), size) != 0) return SystemError(path, "cannot set its size");
  }
  return WriteAt(file, path, std::as_bytes(std::span(header)), 0);
}

// The shard that an earlier writer of the same plan left.
Status CheckShard(const fs::path& path, const std::string& header, int64_t data_bytes) {
  const auto expected = static_cast<uintmax_t>(header.size()) + static_cast<uintmax_t>(data_bytes);
  std::error_code error;
  const uintmax_t found = fs::file_size(path, error);
  if (error) return SystemError(path, "cannot read its size", error);
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return SystemError(path, "cannot open");
  std::string start(header.size(), '\0');
  const ssize_t got = pread(file.get(), start.data(), start.size(), 0);
  if (found != expected || got != std::ssize(header) || start != header) {
    return CorruptFile(path.string() + ": is not the file that was begun");
  }
  return OkStatus();
}

Status Sync(const fs::path& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 || fsync(file.get()) != 0) return SystemError(path, "cannot sync");
  return OkStatus();
}

}  // namespace

struct CheckpointWriter::State {
  std::shared_ptr<const WorkFolder> folder;
  fs::path out;         // the folder's
  fs::path unfinished;  // in the folder, the checkpoint
  bool force = false;
  bool finished = false;
  int64_t total_bytes = 0;
  std::vector<std::string> shard_names;
  std::map<std::string, Slot, std::less<>> slots;

  Status Plan(const std::vector<PlannedTensor>& plan);
  Status CreateFiles(std::vector<Shard> shards, bool resume);
  Status WriteIndex() const;
};

// Checks names and sizes before anything is on disk.
Status CheckpointWriter::State::Plan(const std::vector<PlannedTensor>& plan) {
  for (const PlannedTensor& tensor : plan) {
    Result<int64_t> elements = CheckedElements(tensor.shape);
    if (!elements.ok()) return elements.status().Annotate("tensor " + tensor.name);
    int64_t bytes = 0;
    if (__builtin_mul_overflow(*elements, DTypeBytes(tensor.dtype), &bytes) ||
        __builtin_add_overflow(total_bytes, bytes, &total_bytes)) {
      return InvalidArgument(fmt::format("{}: tensor {} {} is too large", out.string(), tensor.name,
                                         ShapeString(tensor.shape)));
    }
    Slot& slot = slots[tensor.name];
    if (slot.started.exchange(true)) {
      return InvalidArgument(
          fmt::format("{}: tensor {} is planned twice", out.string(), tensor.name));
    }
    slot.dtype = tensor.dtype;
    slot.shape = tensor.shape;
  }
  for (auto& [name, slot] : slots) slot.started = false;
  return OkStatus();
}

Status CheckpointWriter::State::CreateFiles(std::vector<Shard> shards, bool resume) {
  std::error_code error;
  if (!resume) {
    fs::remove_all(unfinished, error);
    if (error) return SystemError(unfinished, "cannot remove", error);
    fs::create_directories(unfinished, error);
    if (error) return SystemError(unfinished, "cannot create", error);
  }
  for (size_t i = 0; i < shards.size(); ++i) {
    const int64_t data_bytes = LayOutSafetensors(shards[i]);
    const std::string header = WriteSafetensorsHeader(shards[i], {{"format", "pt"}});
    for (const SafetensorsEntry& entry : shards[i]) {
      Slot& slot = slots.find(entry.name)->second;
      slot.shard = i;
      slot.offset = static_cast<int64_t>(header.size()) + entry.begin;
    }
    shard_names.push_back(ShardName(i, shards.size()));
    const fs::path path = unfinished / shard_names.back();
    OCTAVO_RETURN_IF_ERROR(resume ? CheckShard(path, header, data_bytes)
                                  : CreateShard(path, header, data_bytes));
  }
  return OkStatus();
}

Status CheckpointWriter::State::WriteIndex() const {
  Value::Object weight_map;
  for (const auto& [name, slot] : slots) weight_map.emplace_back(name, shard_names[slot.shard]);
  const Value index = Value::Object{
      {"metadata", Value::Object{{"total_size", total_bytes}}},
      {"weight_map", std::move(weight_map)},
  };
  const JsonStyle style{.indent = 2, .sort_keys = true, .ensure_ascii = true};
  return WriteFileAtomically(unfinished / "model.safetensors.index.json",
                             WriteJson(index, style) + "\n");
}

CheckpointWriter::CheckpointWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
CheckpointWriter::CheckpointWriter(CheckpointWriter&&) noexcept = default;
CheckpointWriter& CheckpointWriter::operator=(CheckpointWriter&&) noexcept = default;
CheckpointWriter::~CheckpointWriter() = default;

Result<CheckpointWriter> CheckpointWriter::Create(const fs::path& out,
                                                  std::vector<PlannedTensor> plan,
                                                  const CheckpointWriterOptions& options) {
  OCTAVO_RETURN_IF_ERROR(CheckOutput(out, options.force));
  OCTAVO_ASSIGN_OR_RETURN(std::shared_ptr<const WorkFolder> folder, WorkFolder::Open(out));
  OCTAVO_RETURN_IF_ERROR(folder->Clear());
  auto writer = Create(folder, std::move(plan), options);
  if (!writer.ok()) folder->Remove();
  return writer;
}

Result<CheckpointWriter> CheckpointWriter::Create(std::shared_ptr<const WorkFolder> folder,
                                                  std::vector<PlannedTensor> plan,
                                                  const CheckpointWriterOptions& options) {
  if (options.max_shard_bytes <= 0) {
    return InvalidArgument(
        fmt::format("shards of {} bytes: expected at least 1", options.max_shard_bytes));
  }
  auto state = std::make_unique<State>();
  state->out = folder->out();
  state->unfinished = folder->path() / "checkpoint";
  state->folder = std::move(folder);
  state->force = options.force;
  OCTAVO_RETURN_IF_ERROR(state->Plan(plan));
  OCTAVO_RETURN_IF_ERROR(
      state->CreateFiles(FillShards(plan, options.max_shard_bytes), options.resume));
  return CheckpointWriter(std::move(state));
}

const fs::path& CheckpointWriter::unfinished_folder() const {
  return state_->unfinished;
}

int64_t CheckpointWriter::total_bytes() const {
  return state_->total_bytes;
}

Status CheckpointWriter::Write(std::string_view name, const TensorView& tensor) {
  const auto found = state_->slots.find(name);
  if (found == state_->slots.end()) {
    return Internal(fmt::format("{}: tensor {} was not planned", state_->out.string(), name));
  }
  Slot& slot = found->second;
  if (tensor.dtype != slot.dtype || tensor.shape != slot.shape) {
    return Internal(fmt::format("{}: tensor {} is {} {}, planned as {} {}", state_->out.string(),
                                name, DTypeName(tensor.dtype), ShapeString(tensor.shape),
                                DTypeName(slot.dtype), ShapeString(slot.shape)));
  }
  if (slot.started.exchange(true)) {
    return Internal(fmt::format("{}: tensor {} is written twice", state_->out.string(), name));
  }
  const fs::path path = state_->unfinished / state_->shard_names[slot.shard];
  const Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.get() < 0) return SystemError(path, "cannot open");
  const std::span bytes(tensor.bytes, static_cast<size_t>(tensor.num_bytes()));
  const Status status = WriteAt(file, path, bytes, slot.offset);
  if (!status.ok()) return status.Annotate("tensor " + std::string(name));
  slot.written = true;
  return OkStatus();
}

Result<std::vector<std::string>> CheckpointWriter::SyncWritten() {
  std::vector<std::string> names;
  std::set<size_t> shards;
  for (auto& [name, slot] : state_->slots) {
    if (!slot.written || slot.durable) continue;
    slot.durable = true;
    names.push_back(name);
    shards.insert(slot.shard);
  }
  for (const size_t shard : shards) {
    OCTAVO_RETURN_IF_ERROR(Sync(state_->unfinished / state_->shard_names[shard]));
  }
  return names;
}

Status CheckpointWriter::MarkWritten(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const auto found = state_->slots.find(name);
    if (found == state_->slots.end())
      return CorruptFile(fmt::format("tensor {} is not in the plan", name));
    found->second.started = true;
    found->second.written = true;
    found->second.durable = true;
  }
  return OkStatus();
}

Status CheckpointWriter::Finish() {
  for (const auto& [name, slot] : state_->slots) {
    if (!slot.written) {
      return Internal(
          fmt::format("{}: tensor {} was planned but not written", state_->out.string(), name));
    }
  }
  if (state_->shard_names.size() > 1) OCTAVO_RETURN_IF_ERROR(state_->WriteIndex());
  std::error_code error;
  for (fs::directory_iterator at(state_->unfinished, error), end; !error && at != end;
       at.increment(error)) {
    OCTAVO_RETURN_IF_ERROR(Sync(at->path()));
  }
  if (error) return SystemError(state_->unfinished, "cannot list", error);
  OCTAVO_RETURN_IF_ERROR(Sync(state_->unfinished));
  state_->finished = true;
  return OkStatus();
}

Status CheckpointWriter::Commit() {
  if (!state_->finished)
    return Internal(state_->out.string() + ": committed before it is finished");
  const fs::path& out = state_->out;
  const fs::path& unfinished = state_->unfinished;
  OCTAVO_RETURN_IF_ERROR(CheckOutput(out, state_->force));
  std::error_code error;
  // With an old folder there, both change places at once: at every moment `out` is whole.
  if (renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, out.c_str(), RENAME_EXCHANGE) != 0) {
    if (errno != ENOENT) {  // the file system cannot exchange
      fs::remove_all(out, error);
      if (error) return SystemError(out, "cannot remove the folder to be replaced", error);
    }
    fs::rename(unfinished, out, error);
    if (error) return SystemError(out, "cannot rename into place", error);
  }
  OCTAVO_RETURN_IF_ERROR(Sync(out.parent_path()));
  state_->folder->Remove();  // and in it the output that was replaced
  return OkStatus();
}

void CheckpointWriter::Abandon() {
  state_->folder->Remove();
}

}  // namespace octavo
