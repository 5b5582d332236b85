// The parts of tokenizer.json: what a normalizer, a pre-tokenizer, a model, a post-processor and a
// decoder do, and how they are made. Each is one file here and one line in a list (*.inc).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/value.h"
#include "text/aligned_text.h"
#include "text/tokenizer.h"
#include "text/vocabulary.h"

namespace octavo {

// All components are immutable once made and may be used by several threads.

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  virtual Status Normalize(AlignedText& text) const = 0;
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Cuts each piece further, and may rewrite the text. Leaves no empty piece.
  virtual Status PreTokenize(PiecedText& text) const = 0;
};

// A token and the bytes of the piece it stands for.
struct ModelToken {
  TokenId id;
  int32_t begin;
  int32_t end;
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Appends the tokens of one piece.
  virtual void Tokenize(std::string_view piece, std::vector<ModelToken>& tokens) const = 0;
  // Cuts a piece, where that is known, into parts whose tokens, one after another, are those of the
  // whole. For long pieces: short parts repeat, and then have to be tokenized only once.
  virtual void Cut(std::string_view piece, std::vector<ByteRange>& parts) const {
    parts.push_back({0, piece.size()});
  }
  virtual const Vocabulary& vocabulary() const = 0;
};

class PostProcessor {
 public:
  virtual ~PostProcessor() = default;
  // One or two sequences in, the same or (by a template) one out; the caller joins what comes out.
  virtual std::vector<Encoding> Process(std::vector<Encoding> sequences,
                                        bool add_special_tokens) const = 0;
};

// How a decoder is used. Whole texts and streams take the same road, token by token; they differ
// where something is only certain at the end.
struct DecodeMode {
  // Off: every stage may wait for Finish. On: a stage passes on what it has, even parts of
  // characters, and the stream makes characters of the bytes.
  bool streaming = false;
  // The tokens before this stage have become one text: what arrives are parts of one token.
  bool fused = false;
  // Set by a stage that finds that the text already given out cannot be what decoding everything at
  // once gives; from then on each byte counts for itself (see decoder_byte_fallback.cc). Never null
  // where streaming.
  bool* by_bytes = nullptr;
};

// One step of decoding, fed with one token after another.
class DecodeStage {
 public:
  virtual ~DecodeStage() = default;
  // Appends to `out` what goes to the next stage.
  virtual void Push(std::string token, std::vector<std::string>& out) = 0;
  virtual void Finish(std::vector<std::string>&) {}
};
using DecodeStages = std::vector<std::unique_ptr<DecodeStage>>;

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Appends fresh stages for one text, and sets mode.fused where the stages after them see one
  // token. Stages outlive neither the decoder nor mode.by_bytes.
  virtual void AddStages(DecodeMode& mode, DecodeStages& stages) const = 0;
};

// From the object in tokenizer.json, whose "type" is looked up in the list of its kind. Unsupported
// names a type that is not there, and those that are. Sequences may be nested `kMaxNesting` deep.
inline constexpr int kMaxNesting = 16;
Result<std::unique_ptr<Normalizer>> MakeNormalizer(const Value& config, int nesting = 0);
Result<std::unique_ptr<PreTokenizer>> MakePreTokenizer(const Value& config, int nesting = 0);
Result<std::unique_ptr<TokenModel>> MakeTokenModel(const Value& config, int nesting = 0);
Result<std::unique_ptr<PostProcessor>> MakePostProcessor(const Value& config, int nesting = 0);
Result<std::unique_ptr<Decoder>> MakeDecoder(const Value& config, int nesting = 0);

// config[key] as an array, for components that consist of others.
Result<const Value::Array*> RequireArray(const Value& config, std::string_view key);

}  // namespace octavo
