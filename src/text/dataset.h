// Calibration data: rows of a JSON-lines file, turned into token ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
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
  int64_t rows = 0;       // in the file
  int64_t tokens = 0;     // in samples
  int64_t truncated = 0;  // samples that were cut
  int64_t skipped = 0;    // rows taken that had no token at all
};

// Each line is an object with "messages" (rendered by the chat template, then encoded so that BOS
// occurs once), "text" (encoded with special tokens), or "input_ids". `tokenizer` and
// `chat_template` may be null where no row needs them; a row that needs a missing one is an error
// that says so. Bad rows name file and line. Fewer rows than asked: all are used.
Result<Dataset> ReadDataset(const std::filesystem::path& path, const DatasetOptions& options,
                            const Tokenizer* tokenizer, const ChatTemplate* chat_template);

// Encodes a rendered chat: special tokens that the template wrote are not added again, and a BOS
// that both would add comes once.
Result<std::vector<TokenId>> EncodeChat(const Tokenizer& tokenizer,
                                        const ChatTemplate& chat_template, const Value& messages,
                                        const Value& options);

}  // namespace octavo
