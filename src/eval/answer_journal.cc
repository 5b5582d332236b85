#include "eval/answer_journal.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"

namespace octavo {

Result<std::unique_ptr<AnswerJournal>> AnswerJournal::Open(const std::filesystem::path& path) {
  std::unique_ptr<AnswerJournal> journal(new AnswerJournal);
  journal->path_ = path;
  if (std::filesystem::exists(path)) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      const Status status = journal->ReadLine(text.substr(begin, end - begin));
      if (!status.ok())
        return CorruptFile(
            fmt::format("{}: {}; remove the file to begin anew", path.string(), status.message()));
      begin = end + 1;
    }
    std::filesystem::resize_file(path, begin);
    journal->found_ = std::ssize(journal->answers_);
  }
  journal->file_.open(path, std::ios::app);
  if (!journal->file_) return IoError(fmt::format("{}: cannot write", path.string()));
  return journal;
}

Status AnswerJournal::ReadLine(const std::string& line) {
  OCTAVO_ASSIGN_OR_RETURN(const Value row, ParseJson(line, "a line"));
  OCTAVO_ASSIGN_OR_RETURN(const std::string task, row.RequireString("task"));
  OCTAVO_ASSIGN_OR_RETURN(const int64_t doc_id, row.RequireInt("doc_id"));
  const Value* answers = row.Find("answers");
  if (answers == nullptr || !answers->is_array()) return CorruptFile("a line has no \"answers\"");
  std::vector<RequestAnswer> read;
  for (const Value& answer : answers->as_array()) {
    OCTAVO_ASSIGN_OR_RETURN(const double loglikelihood, answer.GetDouble("loglikelihood", 0));
    OCTAVO_ASSIGN_OR_RETURN(const bool is_greedy, answer.GetBool("is_greedy", false));
    OCTAVO_ASSIGN_OR_RETURN(std::string text, answer.GetString("text", ""));
    read.push_back({loglikelihood, is_greedy, std::move(text)});
  }
  answers_[{task, doc_id}] = std::move(read);
  return OkStatus();
}

const std::vector<RequestAnswer>* AnswerJournal::Find(const std::string& task,
                                                      int64_t doc_id) const {
  const auto found = answers_.find({task, doc_id});
  return found == answers_.end() ? nullptr : &found->second;
}

Status AnswerJournal::Add(const std::string& task, int64_t doc_id,
                          std::vector<RequestAnswer> answers) {
  Value row = Value::MakeObject();
  row.Set("task", task);
  row.Set("doc_id", doc_id);
  Value list = Value::MakeArray();
  for (const RequestAnswer& answer : answers) {
    Value entry = Value::MakeObject();
    entry.Set("loglikelihood", answer.loglikelihood);
    entry.Set("is_greedy", answer.is_greedy);
    entry.Set("text", answer.text);
    list.as_array().push_back(std::move(entry));
  }
  row.Set("answers", std::move(list));
  file_ << WriteJson(row) << "\n" << std::flush;
  if (!file_) return IoError(fmt::format("{}: cannot write; is the disk full?", path_.string()));
  answers_[{task, doc_id}] = std::move(answers);
  return OkStatus();
}

void AnswerJournal::Remove() {
  file_.close();
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace octavo
