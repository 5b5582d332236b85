// The table of figures.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "eval/eval_report.h"
#include "text/unicode.h"

namespace octavo {

namespace {

constexpr size_t kColumns = 9;
using Row = std::array<std::string, kColumns>;

// How far each name is below the groups, and the order: a group, then its members by name.
class Hierarchy {
 public:
  Hierarchy(const Value& members, const Value& figures) : members_(members), figures_(figures) {
    std::vector<std::string> inner;
    std::vector<std::string> groups;
    for (const auto& [group, names] : members.as_object()) {
      groups.push_back(group);
      for (const Value& name : names.as_array()) inner.push_back(name.as_string());
    }
    std::sort(groups.begin(), groups.end());
    for (const std::string& group : groups) {
      if (std::find(inner.begin(), inner.end(), group) == inner.end()) Visit(group, 0);
    }
    std::vector<std::string> rest;
    for (const auto& [name, values] : figures.as_object()) {
      if (!seen_.contains(name)) rest.push_back(name);
    }
    std::sort(rest.begin(), rest.end());
    for (std::string& name : rest) order_.emplace_back(std::move(name), 0);
  }

  const std::vector<std::pair<std::string, int>>& order() const { return order_; }

 private:
  void Visit(const std::string& name, int depth) {
    seen_[name] = true;
    if (figures_.Find(name) != nullptr) order_.emplace_back(name, depth);
    const Value* names = members_.Find(name);
    if (names == nullptr) return;
    std::vector<std::string> sorted;
    for (const Value& member : names->as_array()) sorted.push_back(member.as_string());
    std::sort(sorted.begin(), sorted.end());
    for (const std::string& member : sorted) Visit(member, depth + 1);
  }

  const Value& members_;
  const Value& figures_;
  std::map<std::string, bool> seen_;
  std::vector<std::pair<std::string, int>> order_;
};

std::string Number(const Value& value) {
  return value.is_number() ? fmt::format("{:.4f}", value.as_double()) : "   N/A";
}

std::string Version(const Value& version) {
  return version.is_string() ? version.as_string() : fmt::format("{:g}", version.as_double());
}

// The rows of one task or group.
void AddRows(const Value& results, const Value& figures, const std::string& name, int depth,
             std::vector<Row>* rows) {
  const Value* better = results.Find("higher_is_better")->Find(name);
  std::string label = figures.Find("alias")->as_string();
  if (depth > 0) label = fmt::format("{:{}}- {}", "", depth, label);
  std::string version = Version(*results.Find("versions")->Find(name));
  const Value* shots = results.Find("n-shot")->Find(name);
  std::vector<std::string> keys;
  for (const auto& [key, value] : figures.as_object()) {
    if (key.find(',') != std::string::npos && key.find("_stderr,") == std::string::npos)
      keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  for (const std::string& key : keys) {
    const size_t comma = key.find(',');
    const std::string metric = key.substr(0, comma);
    const std::string filter = key.substr(comma + 1);
    const Value* higher = better != nullptr ? better->Find(metric) : nullptr;
    const char* arrow = higher == nullptr ? "" : higher->as_bool() ? "↑" : "↓";
    rows->push_back({label, version, filter,
                     shots != nullptr ? std::to_string(shots->as_int()) : " ", metric, arrow,
                     Number(*figures.Find(key)), "±",
                     Number(*figures.Find(metric + "_stderr," + filter))});
    label.clear();
    version.clear();
  }
}

std::string Pad(const std::string& text, size_t width, char align) {
  const size_t length = static_cast<size_t>(CountCodePoints(text));
  const size_t pad = width > length ? width - length : 0;
  const size_t left = align == '<' ? 0 : align == '>' ? pad : pad / 2;
  return std::string(left, ' ') + text + std::string(pad - left, ' ');
}

}  // namespace

std::string ResultsTable(const Value& results, std::string_view section) {
  const Row header = {section == "groups" ? "Groups" : "Tasks",
                      "Version",
                      "Filter",
                      "n-shot",
                      "Metric",
                      "",
                      "Value",
                      "",
                      "Stderr"};
  std::vector<Row> rows;
  const Value& figures = *results.Find(section);
  const Hierarchy hierarchy(*results.Find("group_subtasks"), figures);
  for (const auto& [name, depth] : hierarchy.order())
    AddRows(results, *figures.Find(name), name, depth, &rows);
  std::string lines[2];  // the header and the line below it
  std::array<size_t, kColumns> widths{};
  std::array<char, kColumns> align{};
  for (size_t column = 0; column < kColumns; ++column) {
    // Numbers are set to the right; a column with "N/A" in it is text.
    bool right = column == 1 || column == 3 || column == 6 || column == 8;
    widths[column] = std::max<size_t>(3, header[column].size());
    for (const Row& row : rows) {
      widths[column] = std::max(widths[column], static_cast<size_t>(CountCodePoints(row[column])));
      right = right && row[column].find("N/A") == std::string::npos;
    }
    align[column] = right ? '>' : '<';
    lines[0] += "|" + Pad(header[column], widths[column], '^');
    lines[1] += "|" + std::string(widths[column] - (right ? 1 : 0), '-') + (right ? ":" : "");
  }
  std::string table = lines[0] + "|\n" + lines[1] + "|\n";
  for (const Row& row : rows) {
    for (size_t column = 0; column < kColumns; ++column)
      table += "|" + Pad(row[column], widths[column], align[column]);
    table += "|\n";
  }
  return table;
}

}  // namespace octavo
