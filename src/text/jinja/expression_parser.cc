#include "text/jinja/expression_parser.h"

#include <fmt/format.h>

#include <array>

namespace octavo::jinja {

namespace {

constexpr int kMaxTreeDepth = 300;  // of an expression: a + b + c ... is one level each

}  // namespace

Status ExpressionParser::ErrorAt(int line, std::string_view message) const {
  return CorruptFile(fmt::format("line {}: {}{}", line, Where(), message));
}

Status ExpressionParser::Expected(std::string_view what) const {
  return Error(fmt::format("expected {}, found {}", what, Describe(Current())));
}

ExpressionPtr ExpressionParser::Make(ExpressionKind kind, int line) const {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  return node;
}

Result<ExpressionPtr> ExpressionParser::Finish(ExpressionPtr node) const {
  const auto count = [&](const ExpressionPtr& child) {
    if (child != nullptr) node->depth = std::max(node->depth, child->depth + 1);
  };
  for (const ExpressionPtr& child : node->children) count(child);
  for (const ExpressionPtr& child : node->arguments.positional) count(child);
  for (const auto& [name, child] : node->arguments.named) count(child);
  count(node->arguments.star);
  count(node->arguments.double_star);
  if (node->depth > kMaxTreeDepth) {
    return ErrorAt(node->line, fmt::format("an expression of more than {} levels", kMaxTreeDepth));
  }
  return node;
}

Result<ExpressionPtr> ExpressionParser::ParseExpression(bool with_conditional) {
  const Level level(*this);
  OCTAVO_RETURN_IF_ERROR(level.Check());
  return with_conditional ? ParseConditional() : ParseOr();
}

Result<ExpressionPtr> ExpressionParser::ParseConditional() {
  const Level level(*this);
  OCTAVO_RETURN_IF_ERROR(level.Check());
  const int line = Current().line;
  // Whether an unknown filter is an error now or when it is reached depends on what is around it,
  // and that is known only behind the value.
  const size_t unknown_before = unknown_.size();
  OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr value, ParseOr());
  while (SkipName("if")) {
    const Scoped<bool> soft(soft_, true);
    unknown_.resize(unknown_before);
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr condition, ParseOr());
    ExpressionPtr other;
    if (SkipName("else")) {
      OCTAVO_ASSIGN_OR_RETURN(other, ParseConditional());
    }
    OCTAVO_ASSIGN_OR_RETURN(value, MakeWith(ExpressionKind::kConditional, line, std::move(value),
                                            std::move(condition), std::move(other)));
  }
  return value;
}

Result<ExpressionPtr> ExpressionParser::ParseOr() {
  OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr left, ParseAnd());
  while (AtName("or")) {
    const int line = Current().line;
    Next();
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr right, ParseAnd());
    OCTAVO_ASSIGN_OR_RETURN(left,
                            MakeWith(ExpressionKind::kOr, line, std::move(left), std::move(right)));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::ParseAnd() {
  OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr left, ParseNot());
  while (AtName("and")) {
    const int line = Current().line;
    Next();
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr right, ParseNot());
    OCTAVO_ASSIGN_OR_RETURN(
        left, MakeWith(ExpressionKind::kAnd, line, std::move(left), std::move(right)));
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::ParseNot() {
  if (!AtName("not")) return ParseCompare();
  const Level level(*this);
  OCTAVO_RETURN_IF_ERROR(level.Check());
  const int line = Current().line;
  Next();
  OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr operand, ParseNot());
  return MakeWith(ExpressionKind::kNot, line, std::move(operand));
}

bool ExpressionParser::SkipComparison(Comparison* comparison) {
  static constexpr std::pair<std::string_view, Comparison> kSymbols[] = {
      {"==", Comparison::kEqual},  {"!=", Comparison::kNotEqual},
      {"<", Comparison::kLess},    {"<=", Comparison::kLessEqual},
      {">", Comparison::kGreater}, {">=", Comparison::kGreaterEqual}};
  for (const auto& [symbol, meaning] : kSymbols) {
    if (SkipOperator(symbol)) {
      *comparison = meaning;
      return true;
    }
  }
  *comparison = Comparison::kIn;
  if (SkipName("in")) return true;
  if (!AtName("not") || Ahead().kind != TokenKind::kName || Ahead().text != "in") return false;
  Next();
  Next();
  *comparison = Comparison::kNotIn;
  return true;
}

Result<ExpressionPtr> ExpressionParser::ParseCompare() {
  const int line = Current().line;
  OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr first, ParseArithmetic(0));
  Comparison comparison;
  if (!SkipComparison(&comparison)) return first;
  ExpressionPtr node = Make(ExpressionKind::kCompare, line);
  node->children.push_back(std::move(first));
  do {
    node->comparisons.push_back(comparison);
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr operand, ParseArithmetic(0));
    node->children.push_back(std::move(operand));
  } while (SkipComparison(&comparison));
  return Finish(std::move(node));
}

bool ExpressionParser::SkipArithmetic(int level, BinaryOperator* op) {
  struct Row {
    int level;
    std::string_view symbol;
    BinaryOperator op;
  };
  static constexpr Row kRows[] = {
      {0, "+", BinaryOperator::kAdd},          {0, "-", BinaryOperator::kSubtract},
      {2, "*", BinaryOperator::kMultiply},     {2, "/", BinaryOperator::kDivide},
      {2, "//", BinaryOperator::kFloorDivide}, {2, "%", BinaryOperator::kModulo},
      {3, "**", BinaryOperator::kPower}};
  for (const Row& row : kRows) {
    if (row.level == level && SkipOperator(row.symbol)) {
      *op = row.op;
      return true;
    }
  }
  return false;
}

Result<ExpressionPtr> ExpressionParser::ParseArithmetic(int level) {
  if (level == 1) return ParseConcat();
  if (level == 4) return ParseUnary(true);
  OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr left, ParseArithmetic(level + 1));
  BinaryOperator op;
  int line = Current().line;
  while (SkipArithmetic(level, &op)) {
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr right, ParseArithmetic(level + 1));
    OCTAVO_ASSIGN_OR_RETURN(
        left, MakeWith(ExpressionKind::kBinary, line, std::move(left), std::move(right)));
    left->binary_operator = op;
    line = Current().line;
  }
  return left;
}

Result<ExpressionPtr> ExpressionParser::ParseConcat() {
  const int line = Current().line;
  OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr first, ParseArithmetic(2));
  if (!AtOperator("~")) return first;
  ExpressionPtr node = Make(ExpressionKind::kConcat, line);
  node->children.push_back(std::move(first));
  while (SkipOperator("~")) {
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr part, ParseArithmetic(2));
    node->children.push_back(std::move(part));
  }
  return Finish(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::ParseUnary(bool with_filters) {
  const Level level(*this);
  OCTAVO_RETURN_IF_ERROR(level.Check());
  const int line = Current().line;
  ExpressionPtr node;
  if (AtOperator("-") || AtOperator("+")) {
    const auto kind = AtOperator("-") ? ExpressionKind::kNegate : ExpressionKind::kPositive;
    Next();
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr operand, ParseUnary(false));
    OCTAVO_ASSIGN_OR_RETURN(node, MakeWith(kind, line, std::move(operand)));
  } else {
    OCTAVO_ASSIGN_OR_RETURN(node, ParsePrimary());
  }
  OCTAVO_ASSIGN_OR_RETURN(node, ParsePostfix(std::move(node)));
  return with_filters ? ParseFiltersAndTests(std::move(node))
                      : Result<ExpressionPtr>(std::move(node));
}

ExpressionPtr ExpressionParser::MakeConstant(Value value, int line) const {
  ExpressionPtr node = Make(ExpressionKind::kConstant, line);
  node->constant = std::move(value);
  return node;
}

Result<ExpressionPtr> ExpressionParser::ParsePrimary() {
  const Token token = Current();
  switch (token.kind) {
    case TokenKind::kName:
      Next();
      return NameOrConstant(token);
    case TokenKind::kString: {
      std::string text;
      for (; At(TokenKind::kString); Next()) text += Current().text;
      return MakeConstant(Value::String(std::move(text)), token.line);
    }
    case TokenKind::kInteger:
      Next();
      return MakeConstant(Value::Int(token.integer), token.line);
    case TokenKind::kFloat:
      Next();
      return MakeConstant(Value::Float(token.real), token.line);
    default:
      break;
  }
  if (SkipOperator("(")) {
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr inner, ParseTuple(true, true));
    OCTAVO_RETURN_IF_ERROR(ExpectOperator(")"));
    return inner;
  }
  if (AtOperator("[")) return ParseList();
  if (AtOperator("{")) return ParseDict();
  return Expected("an expression");
}

ExpressionPtr ExpressionParser::NameOrConstant(const Token& token) {
  const std::string& name = token.text;
  if (name == "true" || name == "True") return MakeConstant(Value::Bool(true), token.line);
  if (name == "false" || name == "False") return MakeConstant(Value::Bool(false), token.line);
  if (name == "none" || name == "None") return MakeConstant(Value::None(), token.line);
  for (Macro* macro : open_macros_) {
    macro->uses_caller |= name == "caller";
    macro->uses_varargs |= name == "varargs";
    macro->uses_kwargs |= name == "kwargs";
  }
  ExpressionPtr node = Make(ExpressionKind::kName, token.line);
  node->name = name;
  return node;
}

bool ExpressionParser::AtTupleEnd() const {
  return At(TokenKind::kPrintEnd) || At(TokenKind::kBlockEnd) || At(TokenKind::kEnd) ||
         AtOperator(")") || AtName("recursive");
}

Result<ExpressionPtr> ExpressionParser::ParseTuple(bool in_parentheses, bool with_conditional) {
  const int line = Current().line;
  std::vector<ExpressionPtr> items;
  bool is_tuple = false;
  while (!AtTupleEnd()) {
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr item, ParseExpression(with_conditional));
    items.push_back(std::move(item));
    if (!SkipOperator(",")) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return std::move(items[0]);
  if (items.empty() && !in_parentheses) return Expected("an expression");
  ExpressionPtr node = Make(ExpressionKind::kTuple, line);
  node->children = std::move(items);
  return Finish(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::ParseList() {
  ExpressionPtr node = Make(ExpressionKind::kList, Current().line);
  Next();
  while (!AtOperator("]")) {
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr item, ParseExpression());
    node->children.push_back(std::move(item));
    if (!SkipOperator(",")) break;
  }
  OCTAVO_RETURN_IF_ERROR(ExpectOperator("]"));
  return Finish(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::ParseDict() {
  ExpressionPtr node = Make(ExpressionKind::kDict, Current().line);
  Next();
  while (!AtOperator("}")) {
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr key, ParseExpression());
    OCTAVO_RETURN_IF_ERROR(ExpectOperator(":"));
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr value, ParseExpression());
    node->children.push_back(std::move(key));
    node->children.push_back(std::move(value));
    if (!SkipOperator(",")) break;
  }
  OCTAVO_RETURN_IF_ERROR(ExpectOperator("}"));
  return Finish(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::ParsePostfix(ExpressionPtr node) {
  while (true) {
    if (AtOperator(".")) {
      OCTAVO_ASSIGN_OR_RETURN(node, ParseDot(std::move(node)));
    } else if (AtOperator("[")) {
      OCTAVO_ASSIGN_OR_RETURN(node, ParseSubscript(std::move(node)));
    } else if (AtOperator("(")) {
      OCTAVO_ASSIGN_OR_RETURN(node, ParseCall(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExpressionPtr> ExpressionParser::ParseDot(ExpressionPtr object) {
  const int line = Current().line;
  Next();
  if (At(TokenKind::kInteger)) {
    ExpressionPtr key = MakeConstant(Value::Int(Current().integer), line);
    Next();
    return MakeWith(ExpressionKind::kItem, line, std::move(object), std::move(key));
  }
  if (!At(TokenKind::kName)) return Expected("a name or a number behind '.'");
  ExpressionPtr node = Make(ExpressionKind::kAttribute, line);
  node->name = Current().text;
  Next();
  node->children.push_back(std::move(object));
  return Finish(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::ParseSubscript(ExpressionPtr object) {
  const int line = Current().line;
  Next();
  std::array<ExpressionPtr, 3> parts;  // start, stop, step
  size_t part = 0;
  bool is_slice = false;
  while (true) {
    if (AtOperator(":")) {
      Next();
      is_slice = true;
      if (++part > 2) return Error("a slice has at most three parts");
    } else if (AtOperator("]")) {
      break;
    } else if (AtOperator(",")) {
      return Unsupported(fmt::format("line {}: {}several subscripts in one [ ]", line, Where()));
    } else {
      if (parts[part] != nullptr) return Expected("']'");
      OCTAVO_ASSIGN_OR_RETURN(parts[part], ParseExpression());
    }
  }
  Next();
  if (is_slice) {
    return MakeWith(ExpressionKind::kSlice, line, std::move(object), std::move(parts[0]),
                    std::move(parts[1]), std::move(parts[2]));
  }
  if (parts[0] == nullptr) return Error("expected an expression in [ ]");
  return MakeWith(ExpressionKind::kItem, line, std::move(object), std::move(parts[0]));
}

Result<ExpressionPtr> ExpressionParser::ParseCall(ExpressionPtr callee) {
  ExpressionPtr node = Make(ExpressionKind::kCall, Current().line);
  node->children.push_back(std::move(callee));
  OCTAVO_ASSIGN_OR_RETURN(node->arguments, ParseArguments());
  return Finish(std::move(node));
}

Result<CallArguments> ExpressionParser::ParseArguments() {
  OCTAVO_RETURN_IF_ERROR(ExpectOperator("("));
  CallArguments arguments;
  while (!AtOperator(")")) {
    OCTAVO_RETURN_IF_ERROR(ParseArgument(&arguments));
    if (!SkipOperator(",")) break;
  }
  OCTAVO_RETURN_IF_ERROR(ExpectOperator(")"));
  return arguments;
}

Status ExpressionParser::ParseArgument(CallArguments* arguments) {
  if (SkipOperator("*")) {
    if (arguments->star != nullptr || arguments->double_star != nullptr) {
      return Error("'*' may be given once, before '**'");
    }
    OCTAVO_ASSIGN_OR_RETURN(arguments->star, ParseExpression());
    return OkStatus();
  }
  if (SkipOperator("**")) {
    if (arguments->double_star != nullptr) return Error("'**' may be given once");
    OCTAVO_ASSIGN_OR_RETURN(arguments->double_star, ParseExpression());
    return OkStatus();
  }
  if (arguments->double_star != nullptr) return Error("an argument behind '**'");
  const bool named =
      At(TokenKind::kName) && Ahead().kind == TokenKind::kOperator && Ahead().text == "=";
  if (named) {
    std::string name = Current().text;
    Next();
    Next();
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr value, ParseExpression());
    for (const auto& [given, unused] : arguments->named) {
      if (given == name) return Error("the argument '" + name + "' is given twice");
    }
    arguments->named.emplace_back(std::move(name), std::move(value));
    return OkStatus();
  }
  if (!arguments->named.empty() || arguments->star != nullptr) {
    return Error("a positional argument behind a named one");
  }
  OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr value, ParseExpression());
  arguments->positional.push_back(std::move(value));
  return OkStatus();
}

Result<ExpressionPtr> ExpressionParser::ParseFiltersAndTests(ExpressionPtr node) {
  while (true) {
    if (AtOperator("|")) {
      OCTAVO_ASSIGN_OR_RETURN(node, ParseFilter(std::move(node)));
    } else if (AtName("is")) {
      OCTAVO_ASSIGN_OR_RETURN(node, ParseTest(std::move(node)));
    } else if (AtOperator("(")) {
      OCTAVO_ASSIGN_OR_RETURN(node, ParseCall(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<std::string> ExpressionParser::ParseDottedName() {
  OCTAVO_ASSIGN_OR_RETURN(std::string name, ExpectName());
  while (SkipOperator(".")) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string part, ExpectName());
    name += "." + part;
  }
  return name;
}

Result<ExpressionPtr> ExpressionParser::ParseFilter(ExpressionPtr value) {
  const int line = Current().line;
  OCTAVO_RETURN_IF_ERROR(ExpectOperator("|"));
  return ParseFilterName(std::move(value), line);
}

Result<ExpressionPtr> ExpressionParser::ParseFilterName(ExpressionPtr value, int line) {
  ExpressionPtr node = Make(ExpressionKind::kFilter, line);
  OCTAVO_ASSIGN_OR_RETURN(node->name, ParseDottedName());
  node->children.push_back(std::move(value));
  if (AtOperator("(")) {
    OCTAVO_ASSIGN_OR_RETURN(node->arguments, ParseArguments());
  }
  node->builtin = FindFilter(node->name);
  if (node->builtin == nullptr) NoteUnknown(line, "no filter named '" + node->name + "'");
  return Finish(std::move(node));
}

Result<ExpressionPtr> ExpressionParser::ParseFilterChain() {
  OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr node, ParseFilterName(nullptr, Current().line));
  while (AtOperator("|")) {
    OCTAVO_ASSIGN_OR_RETURN(node, ParseFilter(std::move(node)));
  }
  return node;
}

bool ExpressionParser::AtTestArgument() const {
  if (At(TokenKind::kName)) return !AtName("else") && !AtName("or") && !AtName("and");
  return At(TokenKind::kString) || At(TokenKind::kInteger) || At(TokenKind::kFloat) ||
         AtOperator("(") || AtOperator("[") || AtOperator("{");
}

Result<ExpressionPtr> ExpressionParser::ParseTest(ExpressionPtr value) {
  const int line = Current().line;
  Next();
  const bool negated = SkipName("not");
  ExpressionPtr node = Make(ExpressionKind::kTest, line);
  OCTAVO_ASSIGN_OR_RETURN(node->name, ParseDottedName());
  node->children.push_back(std::move(value));
  if (AtOperator("(")) {
    OCTAVO_ASSIGN_OR_RETURN(node->arguments, ParseArguments());
  } else if (AtTestArgument()) {
    if (AtName("is")) return Error("tests cannot be chained with 'is'");
    const Level level(*this);
    OCTAVO_RETURN_IF_ERROR(level.Check());
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr argument, ParsePrimary());
    OCTAVO_ASSIGN_OR_RETURN(argument, ParsePostfix(std::move(argument)));
    node->arguments.positional.push_back(std::move(argument));
  }
  node->builtin = FindTest(node->name);
  if (node->builtin == nullptr) NoteUnknown(line, "no test named '" + node->name + "'");
  OCTAVO_ASSIGN_OR_RETURN(node, Finish(std::move(node)));
  if (!negated) return node;
  return MakeWith(ExpressionKind::kNot, line, std::move(node));
}

void ExpressionParser::NoteUnknown(int line, std::string message) {
  if (!soft_) unknown_.push_back(ErrorAt(line, message));
}

Status ExpressionParser::CheckUnknown() const {
  return unknown_.empty() ? OkStatus() : unknown_.front();
}
}  // namespace octavo::jinja
