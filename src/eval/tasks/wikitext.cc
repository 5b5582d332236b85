// wikitext: perplexity of articles, a word, a byte.
#include <utility>

#include "eval/task_definition.h"
#include "eval/wikitext_page.h"

namespace octavo {
namespace {

constexpr char kConfig[] = R"json({
  "training_split": "train",
  "validation_split": "validation",
  "test_split": "test",
  "doc_to_text": "",
  "doc_to_target": "(built into octavo)",
  "process_results": "(built into octavo)",
  "metric_list": [
    {
      "metric": "word_perplexity"
    },
    {
      "metric": "byte_perplexity"
    },
    {
      "metric": "bits_per_byte"
    }
  ],
  "output_type": "loglikelihood_rolling",
  "should_decontaminate": true,
  "doc_to_decontamination_query": "{{page}}",
  "metadata": {
    "version": 2.0
  }
})json";

Result<Value> Target(const Value& doc) {
  OCTAVO_ASSIGN_OR_RETURN(const std::string page, doc.RequireString("page"));
  return Value(DetokenizeWikitext(page));
}

// Of the page as it is in the file.
TaskDefinition::Counts Counts(const Value& doc) {
  const std::string& page = doc.Find("page")->as_string();
  return {CountWords(page), static_cast<int64_t>(page.size())};
}

std::vector<Value> Pages(std::string_view text) {
  std::vector<Value> rows;
  for (std::string& page : SplitWikitextPages(text)) {
    Value row = Value::MakeObject();
    row.Set("page", std::move(page));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<TaskDefinition> Tasks() {
  TaskDefinition task;
  task.name = "wikitext";
  task.config = kConfig;
  task.files = {"wikitext/{split}.jsonl", "wikitext/wiki.{split}.raw", "wikitext2/wiki.{split}.raw",
                "wiki.{split}.raw"};
  task.columns = {"page"};
  task.origin =
      "wiki.test.raw of wikitext-2-raw-v1, or JSON lines with a \"page\" (EleutherAI/"
      "wikitext_document_level, wikitext-2-raw-v1)";
  task.read_text = Pages;
  task.target = Target;
  task.counts = Counts;
  return {task};
}

}  // namespace

extern const TaskFamily kWikitextTasks;
const TaskFamily kWikitextTasks = {.tasks = Tasks};

}  // namespace octavo
