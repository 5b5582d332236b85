// Table: rows of cells that are printed aligned, and written as JSON from the same cells.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/value.h"

namespace octavo {

// What JSON has, and how people read it.
struct Cell {
  Value value;
  std::string text;

  Cell(std::string value_);                                     // NOLINT: implicit on purpose
  Cell(std::string_view value_) : Cell(std::string(value_)) {}  // NOLINT
  Cell(const char* value_) : Cell(std::string(value_)) {}       // NOLINT
  Cell(int64_t value_);                                         // NOLINT
  Cell(Value value_, std::string text_);
  // Strings, printed with `separator` between them; "-" where there are none.
  static Cell List(const std::vector<std::string>& items, std::string_view separator);
};

struct Column {
  std::string key;      // in JSON: "bits_per_weight"
  std::string heading;  // in print: "bits/weight"
  bool right = false;   // numbers
};

struct Table {
  std::string key;    // in JSON: "layers"
  std::string title;  // in print, above the table
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;
  std::vector<std::string> notes = {};  // below the table; also in JSON
};

// Title, headings, rows, notes; columns two spaces apart, two spaces before each line. Text of the
// last column is broken at spaces where a line would be longer than `width`.
std::string TableText(const Table& table, size_t width = 110);
// {"rows": [{key: value, ...}, ...], "notes": [...]}; notes only where there are any.
Value TableJson(const Table& table);
// {table.key: TableJson(table), ...}.
Value TablesJson(const std::vector<Table>& tables);

// "1.2 kB", "3.4 MB", "5.6 GB", decimal as checkpoints are counted; bytes below 1000 as they are.
Cell BytesCell(int64_t bytes);
// "12.3 %" of a share between 0 and 1.
Cell ShareCell(double share);
// A number with so many digits behind the point.
Cell NumberCell(double number, int digits);

}  // namespace octavo
