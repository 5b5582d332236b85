// Calibration data: rows of a JSON-lines file or a plain text file, turned into token ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

struct DatasetOptions {
  int64_t num_samples = 512;
  int64_t max_length = 2048;  // tokens; longer rows are cut, shorter ones not padded
  bool shuffle = true;  // which rows are taken, and their order; off: the first ones, in order
  uint64_t seed = 42;
};

// What was read, for the report.
struct Dataset {
  std::vector<std::vector<TokenId>> samples;
  int64_t rows = 0;       // in the file (of a text file: pieces)
  int64_t tokens = 0;     // in samples
  int64_t truncated = 0;  // samples that were cut
  int64_t skipped = 0;    // rows taken that had no token at all
};

// Each line is an object with one of these, the first that is there:
//   "input_ids"  integers in [0, 2^31), taken as they are;
//   "messages"   rendered by the chat template (with "tools" of the row, if it has them) and
//                encoded by EncodeChat;
//   "text"       encoded by EncodeText.
// Blank lines are no rows. With shuffle the rows are the first num_samples of
// Rng(seed).Permutation(rows). Only rows that are taken are parsed. `tokenizer` and `chat_template`
// may be null where no row needs them; a row that needs a missing one is an error that says so. Bad
// rows name file and line. Fewer rows than asked: all are used.
//
// A file whose name ends in .txt is plain text: encoded whole by EncodeText and cut into pieces of
// max_length tokens, each a row; the last one may be shorter.
Result<Dataset> ReadDataset(const std::filesystem::path& path, const DatasetOptions& options,
                            const Tokenizer* tokenizer, const ChatTemplate* chat_template);

// Renders a chat and encodes it without special tokens, as transformers' apply_chat_template does:
// the template alone decides whether there is a BOS, so there are never two.
Result<std::vector<TokenId>> EncodeChat(const Tokenizer& tokenizer,
                                        const ChatTemplate& chat_template, const Value& messages,
                                        const Value& options);

// Encodes text with the tokenizer's special tokens; where the text already begins with the BOS that
// the tokenizer puts in front, there is one.
Result<std::vector<TokenId>> EncodeText(const Tokenizer& tokenizer, std::string_view text);

}  // namespace octavo
