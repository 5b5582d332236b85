#include "eval/report_html.h"

#include <fmt/format.h>

namespace octavo {

namespace {

// A cell whose number sorts it.
std::string CellHtml(const Cell& cell, const Column& column) {
  std::string value;
  if (cell.value.is_number()) value = fmt::format(" data-value=\"{}\"", cell.value.as_double());
  const char* style = column.right ? " class=\"right\"" : "";
  return fmt::format("<td{}{}>{}</td>", style, value, HtmlEscape(cell.text));
}

}  // namespace

std::string HtmlEscape(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') {
          escaped += "\uFFFD";
        } else {
          escaped += c;
        }
    }
  }
  return escaped;
}

std::string TableHtml(const Table& table, bool sortable) {
  std::string html;
  if (!table.title.empty()) html += fmt::format("<h3>{}</h3>\n", HtmlEscape(table.title));
  html += fmt::format("<div class=\"table\"><table{}>\n<thead><tr>",
                      sortable ? " class=\"sortable\"" : "");
  for (const Column& column : table.columns) {
    html += fmt::format("<th{}>{}</th>", column.right ? " class=\"right\"" : "",
                        HtmlEscape(column.heading));
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) html += CellHtml(row[i], table.columns[i]);
    html += "</tr>\n";
  }
  html += "</tbody></table></div>\n";
  for (const std::string& note : table.notes)
    html += fmt::format("<p class=\"soft\">{}</p>\n", HtmlEscape(note));
  return html;
}

std::string FigureHtml(std::string_view caption, const std::string& plot, std::string_view words) {
  return fmt::format("<figure><figcaption>{}</figcaption>\n{}<p class=\"soft\">{}</p></figure>\n",
                     HtmlEscape(caption), plot, HtmlEscape(words));
}

}  // namespace octavo
