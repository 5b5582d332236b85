// ByteFallback: runs of byte tokens ("<0xE4>") become the characters they spell.
//
// A whole run is UTF-8, or each of its bytes becomes one U+FFFD. So in a stream nothing of a run is
// certain that is not yet, or no longer, UTF-8: it waits. If text of a run was given out and a
// later byte breaks the run, no continuation agrees with decoding everything at once; from there on
// the bytes go on as they are, and only those that are wrong are replaced.
#include <optional>

#include "text/components/component.h"
#include "text/unicode.h"

namespace octavo {
namespace {

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<char> ByteOf(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return std::nullopt;
  const int high = HexDigit(token[3]);
  const int low = HexDigit(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

class ByteFallbackStage : public DecodeStage {
 public:
  explicit ByteFallbackStage(const DecodeMode& mode) : mode_(mode) {}

  void Push(std::string token, std::vector<std::string>& out) override {
    const std::optional<char> byte = ByteOf(token);
    if (!byte) {
      EndRun(out);
      out.push_back(std::move(token));
    } else if (!mode_.streaming) {
      run_ += *byte;
    } else if (*mode_.by_bytes) {
      out.emplace_back(1, *byte);
    } else {
      StreamByte(*byte, out);
    }
  }

  void Finish(std::vector<std::string>& out) override { EndRun(out); }

 private:
  // run_ holds the bytes of the run that were not passed on; those before them were UTF-8.
  void StreamByte(char byte, std::vector<std::string>& out) {
    run_ += byte;
    if (!broken_) {
      character_ += byte;
      const Utf8Unit unit = ClassifyUtf8(character_, 0);
      if (unit.kind == Utf8Unit::Kind::kCutOff) return;
      broken_ = unit.kind == Utf8Unit::Kind::kInvalid;
      character_.clear();
    }
    if (broken_ && !passed_on_) return;
    *mode_.by_bytes = broken_;
    PassOn(out);
  }

  void EndRun(std::vector<std::string>& out) {
    if (!run_.empty()) {
      if (mode_.streaming && passed_on_) {
        *mode_.by_bytes = true;
        PassOn(out);
      } else if (IsValidUtf8(run_)) {
        PassOn(out);
      } else {
        for (size_t i = 0; i < run_.size(); ++i) out.emplace_back(kReplacementCharacter);
      }
    }
    run_.clear();
    character_.clear();
    passed_on_ = false;
    broken_ = false;
  }

  void PassOn(std::vector<std::string>& out) {
    out.push_back(std::move(run_));
    run_.clear();
    passed_on_ = true;
  }

  DecodeMode mode_;
  std::string run_;
  std::string character_;   // the beginning of a character at the end of run_
  bool passed_on_ = false;  // some of this run
  bool broken_ = false;     // this run is not UTF-8, whatever follows
};

class ByteFallbackDecoder : public Decoder {
 public:
  void AddStages(DecodeMode& mode, DecodeStages& stages) const override {
    stages.push_back(std::make_unique<ByteFallbackStage>(mode));
  }
};

}  // namespace

Result<std::unique_ptr<Decoder>> MakeByteFallbackDecoder(const Value&, int) {
  return std::unique_ptr<Decoder>(new ByteFallbackDecoder);
}

}  // namespace octavo
