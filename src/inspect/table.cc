#include "inspect/table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace octavo {

namespace {

constexpr size_t kGap = 2;

// Columns on the screen: bytes that do not continue a UTF-8 character.
size_t Width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

// Lines of at most `width` where spaces allow it.
std::vector<std::string> Break(std::string_view text, size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (Width(line) + 1 + Width(word) <= width) {
      line.append(" ").append(word);
    } else {
      lines.emplace_back(word);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void AppendPadded(std::string_view text, size_t width, bool right, std::string* line) {
  const std::string padding(width - std::min(width, Width(text)), ' ');
  line->append(kGap, ' ');
  line->append(right ? padding : std::string())
      .append(text)
      .append(right ? std::string() : padding);
}

void AppendLine(std::string line, std::string* text) {
  line.erase(line.find_last_not_of(' ') + 1);
  text->append(line).append("\n");
}

}  // namespace

Cell::Cell(std::string value_) : value(value_), text(std::move(value_)) {}
Cell::Cell(int64_t value_) : value(value_), text(std::to_string(value_)) {}
Cell::Cell(Value value_, std::string text_) : value(std::move(value_)), text(std::move(text_)) {}

Cell Cell::List(const std::vector<std::string>& items, std::string_view separator) {
  Value list = Value::MakeArray();
  list.as_array().assign(items.begin(), items.end());
  return {std::move(list), items.empty() ? "-" : fmt::format("{}", fmt::join(items, separator))};
}

std::string TableText(const Table& table, size_t width) {
  std::vector<size_t> widths;
  for (const Column& column : table.columns) widths.push_back(Width(column.heading));
  for (const auto& row : table.rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i].text));
  }
  std::string text = table.title.empty() ? std::string() : table.title + "\n";
  std::string line;
  size_t before_last = kGap;
  for (size_t i = 0; i < widths.size(); ++i) {
    AppendPadded(table.columns[i].heading, widths[i], table.columns[i].right, &line);
    if (i + 1 < widths.size()) before_last += widths[i] + kGap;
  }
  AppendLine(std::move(line), &text);
  const size_t room = std::max<size_t>(width > before_last ? width - before_last : 0, 30);
  for (const auto& row : table.rows) {
    line.clear();
    for (size_t i = 0; i + 1 < row.size(); ++i)
      AppendPadded(row[i].text, widths[i], table.columns[i].right, &line);
    if (table.columns.back().right) {
      AppendPadded(row.back().text, widths.back(), true, &line);
      AppendLine(std::move(line), &text);
      continue;
    }
    for (const std::string& part : Break(row.back().text, room)) {
      line.resize(std::max(line.size(), line.empty() ? before_last - kGap : 0), ' ');
      AppendPadded(part, 0, false, &line);
      AppendLine(std::exchange(line, {}), &text);
    }
  }
  for (const std::string& note : table.notes) {
    for (const std::string& part : Break(note, width - kGap))
      AppendLine(std::string(kGap, ' ') + part, &text);
  }
  return text;
}

Value TableJson(const Table& table) {
  Value rows = Value::MakeArray();
  for (const auto& row : table.rows) {
    Value object = Value::MakeObject();
    for (size_t i = 0; i < row.size(); ++i) object.Set(table.columns[i].key, row[i].value);
    rows.as_array().push_back(std::move(object));
  }
  Value json = Value::MakeObject();
  json.Set("rows", std::move(rows));
  if (!table.notes.empty()) json.Set("notes", Cell::List(table.notes, "\n").value);
  return json;
}

Value TablesJson(const std::vector<Table>& tables) {
  Value json = Value::MakeObject();
  for (const Table& table : tables) json.Set(table.key, TableJson(table));
  return json;
}

Cell BytesCell(int64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes < 1000) return {bytes, fmt::format("{} B ", bytes)};
  if (bytes < 1'000'000) return {bytes, fmt::format("{:.1f} kB", size / 1e3)};
  if (bytes < 1'000'000'000) return {bytes, fmt::format("{:.1f} MB", size / 1e6)};
  return {bytes, fmt::format("{:.2f} GB", size / 1e9)};
}

Cell ShareCell(double share) {
  return {share, fmt::format("{:.1f} %", 100 * share)};
}

Cell NumberCell(double number, int digits) {
  return {number, fmt::format("{:.{}f}", number, digits)};
}

}  // namespace octavo
