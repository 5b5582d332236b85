#include "compress/request.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <set>

#include "base/cpu.h"
#include "base/json.h"
#include "io/sha256.h"

namespace octavo {

namespace fs = std::filesystem;

namespace {

// The bytes of a model are not read for this: a file that was written again has another time.
Value DescribeFile(const fs::path& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return "missing";
  return fmt::format("{} bytes of {}.{:09}", static_cast<int64_t>(info.st_size),
                     static_cast<int64_t>(info.st_mtim.tv_sec),
                     static_cast<int64_t>(info.st_mtim.tv_nsec));
}

Value DescribeModel(const Checkpoint& checkpoint) {
  std::set<fs::path> paths;
  for (const SafetensorsFile& file : checkpoint.files()) paths.insert(file.path());
  for (const char* name :
       {"config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"}) {
    if (fs::exists(checkpoint.folder() / name)) paths.insert(checkpoint.folder() / name);
  }
  Value files = Value::MakeObject();
  for (const fs::path& path : paths) files.Set(path.filename().string(), DescribeFile(path));
  return files;
}

// For messages: a recipe is long.
std::string Short(const Value& value) {
  constexpr size_t kLongest = 100;
  std::string text = WriteJson(value);
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

void AddDifferences(const std::string& name, const Value* before, const Value* now,
                    std::vector<std::string>* differences) {
  if (before != nullptr && now != nullptr && before->is_object() && now->is_object()) {
    std::set<std::string> keys;
    for (const Value* side : {before, now}) {
      for (const Value::Member& member : side->as_object()) keys.insert(member.first);
    }
    for (const std::string& key : keys) {
      AddDifferences(name.empty() ? key : name + " " + key, before->Find(key), now->Find(key),
                     differences);
    }
    return;
  }
  if (before != nullptr && now != nullptr && *before == *now) return;
  differences->push_back(fmt::format("{} was {}, is {}", name, before ? Short(*before) : "absent",
                                     now ? Short(*now) : "absent"));
}

}  // namespace

Result<Value> DescribeRequest(const QuantizeOptions& options, const Recipe& recipe,
                              const Checkpoint& checkpoint, Isa isa) {
  Value request = Value::MakeObject();
  request.Set("program", OCTAVO_VERSION);
  request.Set("instructions", IsaName(isa));
  request.Set("recipe", RecipeYaml(recipe));
  request.Set("model", DescribeModel(checkpoint));
  request.Set("max_shard_size", options.max_shard_bytes);
  if (options.calibration.empty()) return request;
  OCTAVO_ASSIGN_OR_RETURN(const std::string sha, Sha256OfFile(options.calibration));
  request.Set("calibration", "sha256 " + sha);
  request.Set("num_samples", options.dataset.num_samples);
  request.Set("max_length", options.dataset.max_length);
  request.Set("shuffle", options.dataset.shuffle);
  request.Set("seed", static_cast<int64_t>(options.dataset.seed));
  request.Set("propagate", static_cast<int64_t>(options.propagate));
  return request;
}

std::vector<std::string> RequestDifferences(const Value& before, const Value& now) {
  std::vector<std::string> differences;
  AddDifferences("", &before, &now, &differences);
  return differences;
}

}  // namespace octavo
