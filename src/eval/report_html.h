// Pieces of the report's page: text, tables, figures.
#pragma once

#include <string>
#include <string_view>

#include "inspect/table.h"

namespace octavo {

// `text` between tags or in a quoted attribute; control characters become U+FFFD.
std::string HtmlEscape(std::string_view text);

// Title and notes around the table; one that is sortable sorts by the numbers of its cells.
std::string TableHtml(const Table& table, bool sortable);

// `plot` is HTML, the rest text.
std::string FigureHtml(std::string_view caption, const std::string& plot, std::string_view words);

}  // namespace octavo
