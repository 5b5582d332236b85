#include "text/byte_source.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"

namespace octavo {

namespace {

constexpr size_t kChunkBytes = size_t{1} << 18;

// A gzip file may unpack to as much as it likes up to the first, beyond it to no more than the
// second times its size: text packs by 3 to 30, zeros by 1030.
constexpr uint64_t kFreeBytes = uint64_t{16} << 20;
constexpr uint64_t kMaxRatio = 200;

Status Damaged(std::string_view what) {
  return CorruptFile(fmt::format("the gzip data {}; fetch or pack the file again", what));
}

}  // namespace

// One gzip member after another (RFC 1952). Feed() when it wants input, then Unpack().
class ByteSource::Unpacker {
 public:
  Unpacker() : input_(kChunkBytes, '\0') {
    // 15 is the largest window, + 16 makes zlib expect gzip's header and check its checksum.
    OCTAVO_CHECK(inflateInit2(&stream_, 15 + 16) == Z_OK) << "zlib: out of memory";
  }
  ~Unpacker() { inflateEnd(&stream_); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  bool wants_input() const { return stream_.avail_in == 0; }
  std::span<char> input() { return input_; }
  void Feed(size_t size) {
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(size);
    packed_bytes_ += size;
  }

  // Called with no input left in the file: false if a member is complete.
  bool inside_member() const { return inside_member_; }

  Result<size_t> Unpack(std::span<char> out) {
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(std::min(out.size(), kChunkBytes));
    const uInt wanted = stream_.avail_out;
    inside_member_ = true;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    const size_t unpacked = wanted - stream_.avail_out;
    unpacked_bytes_ += unpacked;
    if (result == Z_STREAM_END) {
      inside_member_ = false;
      OCTAVO_CHECK(inflateReset(&stream_) == Z_OK);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      return Damaged(fmt::format("is damaged ({})",
                                 stream_.msg != nullptr ? stream_.msg : "no further information"));
    }
    if (unpacked_bytes_ > kFreeBytes && unpacked_bytes_ / kMaxRatio > packed_bytes_) {
      return CorruptFile(
          fmt::format("unpacks to more than {} times its size, which no text does: the first {} "
                      "bytes became {}",
                      kMaxRatio, packed_bytes_, unpacked_bytes_));
    }
    return unpacked;
  }

 private:
  z_stream stream_ = {};
  std::string input_;
  uint64_t packed_bytes_ = 0;
  uint64_t unpacked_bytes_ = 0;
  bool inside_member_ = true;
};

ByteSource::ByteSource(std::ifstream file, std::unique_ptr<Unpacker> unpacker)
    : file_(std::move(file)), unpacker_(std::move(unpacker)) {}
ByteSource::ByteSource(ByteSource&&) noexcept = default;
ByteSource& ByteSource::operator=(ByteSource&&) noexcept = default;
ByteSource::~ByteSource() = default;

Result<ByteSource> ByteSource::Open(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return IoError("cannot be opened");
  std::array<char, 2> head{};
  file.read(head.data(), head.size());
  const bool gzip = file.gcount() == 2 && head[0] == '\x1F' && head[1] == '\x8B';
  file.clear();
  file.seekg(0);
  return ByteSource(std::move(file), gzip ? std::make_unique<Unpacker>() : nullptr);
}

Result<size_t> ByteSource::ReadFile(std::span<char> out) {
  if (!file_) return 0;
  file_.read(out.data(), static_cast<std::streamsize>(out.size()));
  if (file_.bad()) return IoError("reading failed");
  return static_cast<size_t>(file_.gcount());
}

Result<size_t> ByteSource::Read(std::span<char> out) {
  if (unpacker_ == nullptr) return ReadFile(out);
  while (true) {
    if (unpacker_->wants_input()) {
      OCTAVO_ASSIGN_OR_RETURN(const size_t size, ReadFile(unpacker_->input()));
      if (size == 0) {
        if (unpacker_->inside_member()) return Damaged("ends too early");
        return 0;
      }
      unpacker_->Feed(size);
    }
    OCTAVO_ASSIGN_OR_RETURN(const size_t unpacked, unpacker_->Unpack(out));
    if (unpacked > 0) return unpacked;
  }
}

Result<std::string> ReadAll(ByteSource& source, int64_t max_bytes) {
  std::string all;
  std::string chunk(kChunkBytes, '\0');
  while (true) {
    OCTAVO_ASSIGN_OR_RETURN(const size_t size, source.Read(chunk));
    if (size == 0) return all;
    all.append(chunk, 0, size);
    if (static_cast<int64_t>(all.size()) > max_bytes) {
      return CorruptFile(fmt::format("has more than {} bytes", max_bytes));
    }
  }
}

}  // namespace octavo
