// The answers of an evaluation as they come, on disk: what a run that was interrupted need not
// compute again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace octavo {

// What came of one request: a log-likelihood, or a text.
struct RequestAnswer {
  double loglikelihood = 0;
  bool is_greedy = false;
  std::string text = {};

  friend bool operator==(const RequestAnswer&, const RequestAnswer&) = default;
};

// A line of JSON for each document, written through as it comes; numbers read back to the last bit.
class AnswerJournal {
 public:
  // Begins a journal, or goes on with the one that is there; a last line that was cut off is
  // dropped. CorruptFile for lines that are no journal's.
  static Result<std::unique_ptr<AnswerJournal>> Open(const std::filesystem::path& path);

  // The answers to a document's requests; null: not there.
  const std::vector<RequestAnswer>* Find(const std::string& task, int64_t doc_id) const;
  Status Add(const std::string& task, int64_t doc_id, std::vector<RequestAnswer> answers);
  // Documents that an earlier run left.
  int64_t found() const { return found_; }
  // The run is done.
  void Remove();

 private:
  Status ReadLine(const std::string& line);

  std::filesystem::path path_;
  std::ofstream file_;
  std::map<std::pair<std::string, int64_t>, std::vector<RequestAnswer>> answers_;
  int64_t found_ = 0;
};

}  // namespace octavo
