// Calibration data: rows of a file of JSON, CSV or plain text, turned into token ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "octavo/dataset_options.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace octavo {

// What was read, for the report.
struct Dataset {
  std::vector<std::vector<TokenId>> samples;
  int64_t rows = 0;       // in the file (of a text file: pieces)
  int64_t tokens = 0;     // in samples
  int64_t truncated = 0;  // samples that were cut
  int64_t skipped = 0;    // rows taken that had no token at all
};

// Rows are the lines of a .jsonl file, the elements of an array in a .json file, or the records of
// a .csv file with a header; any of them may be packed (.gz). A row has one of these, the first
// that is there:
//   "input_ids"      integers in [0, 2^31), taken as they are;
//   "messages"       rendered by the chat template (with "tools" of the row, if it has them) and
//                    encoded by EncodeChat;
//   "conversations"  the same as ShareGPT has it: a list of {"from", "value"}, from human (user),
//                    gpt (assistant), system or a role of the template;
//   "text"           encoded by EncodeText.
// A column of CSV that holds a list or an object holds it as JSON. Blank lines are no rows.
//
// With shuffle the rows are the first num_samples of Rng(seed).Permutation(rows): our own choice,
// the same on every machine, and not that of datasets.shuffle(seed). `skip` of them are left out
// before; an error where none is left. Only rows that are taken are parsed. `tokenizer` and
// `chat_template` may be null where no row needs them; a row that needs a missing one is an error
// that says so. Bad rows name file and line. Fewer rows than asked: all are used. An error where no
// row that was taken has a token.
//
// A file whose name ends in .txt (or .txt.gz) is plain text: encoded whole by EncodeText and cut
// into pieces of max_length tokens, each a row; the last one may be shorter.
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
