#include "text/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "text/jinja/lexer.h"

namespace octavo::jinja {

namespace {

constexpr int kMaxParseDepth = 200;  // of tags, brackets and operators open at once
constexpr int kMaxTreeDepth = 300;   // of an expression: a + b + c ... is one level each

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<ParsedTemplate> Run() {
    OCTAVO_ASSIGN_OR_RETURN(parsed_.body, ParseBlock({}));
    return std::move(parsed_);
  }

 private:
  // --- tokens

  const Token& Current() const { return tokens_[at_]; }
  const Token& Ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void Next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool At(TokenKind kind) const { return Current().kind == kind; }
  bool AtName(std::string_view name) const {
    return At(TokenKind::kName) && Current().text == name;
  }
  bool AtOperator(std::string_view op) const {
    return At(TokenKind::kOperator) && Current().text == op;
  }
  bool SkipName(std::string_view name) {
    if (!AtName(name)) return false;
    Next();
    return true;
  }
  bool SkipOperator(std::string_view op) {
    if (!AtOperator(op)) return false;
    Next();
    return true;
  }

  Status Error(std::string_view message) const { return ErrorAt(Current().line, message); }
  Status ErrorAt(int line, std::string_view message) const {
    return CorruptFile(fmt::format("line {}: {}{}", line, Where(), message));
  }
  // "{% for %}: ", the tag that is being read.
  std::string Where() const {
    return tag_.empty() ? "" : tag_ == "{{" ? "{{ }}: " : "{% " + tag_ + " %}: ";
  }
  Status Expected(std::string_view what) const {
    return Error(fmt::format("expected {}, found {}", what, Describe(Current())));
  }
  Status ExpectOperator(std::string_view op) {
    return SkipOperator(op) ? OkStatus() : Expected(fmt::format("'{}'", op));
  }
  Status ExpectBlockEnd() {
    if (!At(TokenKind::kBlockEnd)) return Expected("end of statement block");
    Next();
    return OkStatus();
  }
  Result<std::string> ExpectName() {
    if (!At(TokenKind::kName)) return Expected("a name");
    std::string name = Current().text;
    Next();
    return name;
  }

  // Counts what is open while it lives.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) { ++parser_.depth_; }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Status Check() const {
      return parser_.depth_ <= kMaxParseDepth
                 ? OkStatus()
                 : parser_.Error(fmt::format("nested deeper than {} levels", kMaxParseDepth));
    }

   private:
    Parser& parser_;
  };

  // Sets a member for a while.
  template <typename T>
  class Scoped {
   public:
    Scoped(T& member, T value)
        : member_(member), before_(std::exchange(member, std::move(value))) {}
    ~Scoped() { member_ = std::move(before_); }
    Scoped(const Scoped&) = delete;
    Scoped& operator=(const Scoped&) = delete;

   private:
    T& member_;
    T before_;
  };

  // --- expressions

  ExpressionPtr Make(ExpressionKind kind, int line) const {
    auto node = std::make_unique<Expression>();
    node->kind = kind;
    node->line = line;
    return node;
  }

  // Every node passes here: the tree stays shallow enough to be walked by recursion.
  Result<ExpressionPtr> Finish(ExpressionPtr node) const {
    const auto count = [&](const ExpressionPtr& child) {
      if (child != nullptr) node->depth = std::max(node->depth, child->depth + 1);
    };
    for (const ExpressionPtr& child : node->children) count(child);
    for (const ExpressionPtr& child : node->arguments.positional) count(child);
    for (const auto& [name, child] : node->arguments.named) count(child);
    count(node->arguments.star);
    count(node->arguments.double_star);
    if (node->depth > kMaxTreeDepth) {
      return ErrorAt(node->line,
                     fmt::format("an expression of more than {} levels", kMaxTreeDepth));
    }
    return node;
  }

  template <typename... Children>
  Result<ExpressionPtr> MakeWith(ExpressionKind kind, int line, Children... children) const {
    ExpressionPtr node = Make(kind, line);
    (node->children.push_back(std::move(children)), ...);
    return Finish(std::move(node));
  }

  Result<ExpressionPtr> ParseExpression(bool with_conditional = true) {
    const Level level(*this);
    OCTAVO_RETURN_IF_ERROR(level.Check());
    return with_conditional ? ParseConditional() : ParseOr();
  }

  Result<ExpressionPtr> ParseConditional() {
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

  Result<ExpressionPtr> ParseOr() {
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr left, ParseAnd());
    while (AtName("or")) {
      const int line = Current().line;
      Next();
      OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr right, ParseAnd());
      OCTAVO_ASSIGN_OR_RETURN(
          left, MakeWith(ExpressionKind::kOr, line, std::move(left), std::move(right)));
    }
    return left;
  }

  Result<ExpressionPtr> ParseAnd() {
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

  Result<ExpressionPtr> ParseNot() {
    if (!AtName("not")) return ParseCompare();
    const Level level(*this);
    OCTAVO_RETURN_IF_ERROR(level.Check());
    const int line = Current().line;
    Next();
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr operand, ParseNot());
    return MakeWith(ExpressionKind::kNot, line, std::move(operand));
  }

  bool SkipComparison(Comparison* comparison) {
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

  Result<ExpressionPtr> ParseCompare() {
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

  // Levels of binding: 0 is + and -, 1 is ~, 2 is * / // %, 3 is **, then unary operators. All,
  // ** too, group from the left.
  bool SkipArithmetic(int level, BinaryOperator* op) {
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

  Result<ExpressionPtr> ParseArithmetic(int level) {
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

  Result<ExpressionPtr> ParseConcat() {
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

  // A sign binds tighter than ** and than filters: -5 | abs is 5.
  Result<ExpressionPtr> ParseUnary(bool with_filters) {
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

  ExpressionPtr MakeConstant(Value value, int line) const {
    ExpressionPtr node = Make(ExpressionKind::kConstant, line);
    node->constant = std::move(value);
    return node;
  }

  Result<ExpressionPtr> ParsePrimary() {
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

  ExpressionPtr NameOrConstant(const Token& token) {
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

  bool AtTupleEnd() const {
    return At(TokenKind::kPrintEnd) || At(TokenKind::kBlockEnd) || At(TokenKind::kEnd) ||
           AtOperator(")") || AtName("recursive");
  }

  // One expression, or several with commas: a tuple. `in_parentheses`: may be empty.
  Result<ExpressionPtr> ParseTuple(bool in_parentheses, bool with_conditional) {
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

  Result<ExpressionPtr> ParseList() {
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

  Result<ExpressionPtr> ParseDict() {
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

  Result<ExpressionPtr> ParsePostfix(ExpressionPtr node) {
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

  Result<ExpressionPtr> ParseDot(ExpressionPtr object) {
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

  Result<ExpressionPtr> ParseSubscript(ExpressionPtr object) {
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

  Result<ExpressionPtr> ParseCall(ExpressionPtr callee) {
    ExpressionPtr node = Make(ExpressionKind::kCall, Current().line);
    node->children.push_back(std::move(callee));
    OCTAVO_ASSIGN_OR_RETURN(node->arguments, ParseArguments());
    return Finish(std::move(node));
  }

  Result<CallArguments> ParseArguments() {
    OCTAVO_RETURN_IF_ERROR(ExpectOperator("("));
    CallArguments arguments;
    while (!AtOperator(")")) {
      OCTAVO_RETURN_IF_ERROR(ParseArgument(&arguments));
      if (!SkipOperator(",")) break;
    }
    OCTAVO_RETURN_IF_ERROR(ExpectOperator(")"));
    return arguments;
  }

  Status ParseArgument(CallArguments* arguments) {
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

  Result<ExpressionPtr> ParseFiltersAndTests(ExpressionPtr node) {
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

  // A dotted name, as filters and tests may have.
  Result<std::string> ParseDottedName() {
    OCTAVO_ASSIGN_OR_RETURN(std::string name, ExpectName());
    while (SkipOperator(".")) {
      OCTAVO_ASSIGN_OR_RETURN(const std::string part, ExpectName());
      name += "." + part;
    }
    return name;
  }

  // One "| name(arguments)".
  Result<ExpressionPtr> ParseFilter(ExpressionPtr value) {
    const int line = Current().line;
    OCTAVO_RETURN_IF_ERROR(ExpectOperator("|"));
    return ParseFilterName(std::move(value), line);
  }

  Result<ExpressionPtr> ParseFilterName(ExpressionPtr value, int line) {
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

  // The filters of {% filter a | b %} and {% set x | a | b %}; what they are applied to is null.
  Result<ExpressionPtr> ParseFilterChain() {
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr node, ParseFilterName(nullptr, Current().line));
    while (AtOperator("|")) {
      OCTAVO_ASSIGN_OR_RETURN(node, ParseFilter(std::move(node)));
    }
    return node;
  }

  bool AtTestArgument() const {
    if (At(TokenKind::kName)) return !AtName("else") && !AtName("or") && !AtName("and");
    return At(TokenKind::kString) || At(TokenKind::kInteger) || At(TokenKind::kFloat) ||
           AtOperator("(") || AtOperator("[") || AtOperator("{");
  }

  Result<ExpressionPtr> ParseTest(ExpressionPtr value) {
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

  // Inside of {% if %} and a if b else c an unknown name fails only when it is reached.
  void NoteUnknown(int line, std::string message) {
    if (!soft_) unknown_.push_back(ErrorAt(line, message));
  }
  Status CheckUnknown() const { return unknown_.empty() ? OkStatus() : unknown_.front(); }

  // --- statements

  std::unique_ptr<Statement> MakeStatement(StatementKind kind, int line) const {
    auto statement = std::make_unique<Statement>();
    statement->kind = kind;
    statement->line = line;
    statement->name = tag_;
    return statement;
  }

  // Up to one of the `end` tags, whose name is then the current token; to the end of the template
  // where there are none.
  Result<Block> ParseBlock(std::vector<std::string_view> end) {
    const Level level(*this);
    OCTAVO_RETURN_IF_ERROR(level.Check());
    const std::string opened_by = tag_;
    const int opened_at = Current().line;
    Block block;
    while (!At(TokenKind::kEnd)) {
      if (At(TokenKind::kBlockBegin)) {
        Next();
        if (!At(TokenKind::kName)) return Error("a tag without a name");
        if (std::any_of(end.begin(), end.end(), [&](auto name) { return AtName(name); })) {
          return block;
        }
        OCTAVO_RETURN_IF_ERROR(AppendStatement(&block));
      } else if (At(TokenKind::kPrintBegin)) {
        OCTAVO_RETURN_IF_ERROR(AppendPrint(&block));
      } else {
        OCTAVO_CHECK(At(TokenKind::kData)) << Describe(Current());
        block.push_back(MakeStatement(StatementKind::kText, Current().line));
        block.back()->text = Current().text;
        Next();
      }
    }
    if (end.empty()) return block;
    tag_ = opened_by;
    return ErrorAt(opened_at,
                   fmt::format("unexpected end of template, {{% {} %}} is missing", end.back()));
  }

  Status AppendPrint(Block* block) {
    const Scoped<std::string> tag(tag_, "{{");
    auto statement = MakeStatement(StatementKind::kPrint, Current().line);
    Next();
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr value, ParseTuple(false, true));
    OCTAVO_RETURN_IF_ERROR(CheckUnknown());
    if (!At(TokenKind::kPrintEnd)) return Expected("end of print statement");
    Next();
    statement->expressions.push_back(std::move(value));
    block->push_back(std::move(statement));
    return OkStatus();
  }

  Status AppendStatement(Block* block) {
    struct Tag {
      std::string_view name;
      Result<std::unique_ptr<Statement>> (Parser::*parse)();
    };
    static constexpr Tag kTags[] = {{"for", &Parser::ParseFor},
                                    {"if", &Parser::ParseIf},
                                    {"set", &Parser::ParseSet},
                                    {"with", &Parser::ParseWith},
                                    {"macro", &Parser::ParseMacro},
                                    {"call", &Parser::ParseCallBlock},
                                    {"filter", &Parser::ParseFilterBlock},
                                    {"block", &Parser::ParseNamedBlock},
                                    {"autoescape", &Parser::ParseAutoescape},
                                    {"generation", &Parser::ParseGeneration},
                                    {"print", &Parser::ParsePrint},
                                    {"break", &Parser::ParseLoopControl},
                                    {"continue", &Parser::ParseLoopControl},
                                    {"include", &Parser::ParseNoLoader},
                                    {"import", &Parser::ParseNoLoader},
                                    {"from", &Parser::ParseNoLoader},
                                    {"extends", &Parser::ParseNoLoader}};
    const std::string name = Current().text;
    const auto* tag = std::find_if(std::begin(kTags), std::end(kTags),
                                   [&](const Tag& t) { return t.name == name; });
    if (tag == std::end(kTags)) return Error("unknown tag '" + name + "'");
    const Scoped<std::string> current(tag_, name);
    Next();
    OCTAVO_ASSIGN_OR_RETURN(std::unique_ptr<Statement> statement, (this->*tag->parse)());
    OCTAVO_RETURN_IF_ERROR(CheckUnknown());
    block->push_back(std::move(statement));
    return OkStatus();
  }

  // Behind the tag's head: the body, then the end tag.
  Result<Block> ParseBody(std::string_view end) {
    OCTAVO_RETURN_IF_ERROR(CheckUnknown());
    OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
    OCTAVO_ASSIGN_OR_RETURN(Block body, ParseBlock({end}));
    Next();
    return body;
  }

  Result<Target> ParseTarget(bool with_namespace, bool with_tuple = true) {
    const Level level(*this);
    OCTAVO_RETURN_IF_ERROR(level.Check());
    Target tuple;
    bool is_tuple = false;
    while (true) {
      Target item;
      if (SkipOperator("(")) {
        OCTAVO_ASSIGN_OR_RETURN(item, ParseTarget(with_namespace));
        OCTAVO_RETURN_IF_ERROR(ExpectOperator(")"));
      } else {
        OCTAVO_ASSIGN_OR_RETURN(item.name, ExpectName());
        static constexpr std::string_view kConstants[] = {"true", "false", "none",
                                                          "True", "False", "None"};
        if (std::count(std::begin(kConstants), std::end(kConstants), item.name) != 0) {
          return Error("'" + item.name + "' cannot be set");
        }
        if (with_namespace && SkipOperator(".")) {
          OCTAVO_ASSIGN_OR_RETURN(item.attribute, ExpectName());
        }
      }
      tuple.items.push_back(std::move(item));
      if (!with_tuple || !SkipOperator(",")) break;
      is_tuple = true;
      if (AtOperator("=") || AtName("in") || AtOperator(")")) break;
    }
    return is_tuple ? std::move(tuple) : std::move(tuple.items[0]);
  }

  Result<std::unique_ptr<Statement>> ParseFor() {
    auto statement = MakeStatement(StatementKind::kFor, Current().line);
    OCTAVO_ASSIGN_OR_RETURN(statement->target, ParseTarget(false));
    if (!SkipName("in")) return Expected("'in'");
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr iterable, ParseTuple(false, false));
    statement->expressions.push_back(std::move(iterable));
    ExpressionPtr filter;
    const Scoped<bool> soft(soft_, false);
    if (SkipName("if")) {
      OCTAVO_ASSIGN_OR_RETURN(filter, ParseExpression());
    }
    statement->expressions.push_back(std::move(filter));
    statement->recursive = SkipName("recursive");
    OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
    OCTAVO_RETURN_IF_ERROR(CheckUnknown());
    {
      const Scoped<int> loops(open_loops_, open_loops_ + 1);
      OCTAVO_ASSIGN_OR_RETURN(Block body, ParseBlock({"else", "endfor"}));
      statement->blocks.push_back(std::move(body));
    }
    Block otherwise;
    if (SkipName("else")) {
      OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
      OCTAVO_ASSIGN_OR_RETURN(otherwise, ParseBlock({"endfor"}));
    }
    statement->blocks.push_back(std::move(otherwise));
    Next();
    OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
    return statement;
  }

  Result<std::unique_ptr<Statement>> ParseIf() {
    auto statement = MakeStatement(StatementKind::kIf, Current().line);
    const Scoped<bool> soft(soft_, true);
    while (true) {
      OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr condition, ParseTuple(false, false));
      statement->expressions.push_back(std::move(condition));
      OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
      OCTAVO_ASSIGN_OR_RETURN(Block body, ParseBlock({"elif", "else", "endif"}));
      statement->blocks.push_back(std::move(body));
      if (!SkipName("elif")) break;
    }
    if (SkipName("else")) {
      OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
      OCTAVO_ASSIGN_OR_RETURN(Block otherwise, ParseBlock({"endif"}));
      statement->blocks.push_back(std::move(otherwise));
    }
    Next();
    OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
    return statement;
  }

  Result<std::unique_ptr<Statement>> ParseSet() {
    auto statement = MakeStatement(StatementKind::kSet, Current().line);
    OCTAVO_ASSIGN_OR_RETURN(statement->target, ParseTarget(true));
    ExpressionPtr value;
    if (SkipOperator("=")) {
      OCTAVO_ASSIGN_OR_RETURN(value, ParseTuple(false, true));
      OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
      statement->expressions.push_back(std::move(value));
      return statement;
    }
    statement->kind = StatementKind::kSetBlock;
    if (SkipOperator("|")) {
      OCTAVO_ASSIGN_OR_RETURN(value, ParseFilterChain());
    }
    statement->expressions.push_back(std::move(value));
    OCTAVO_ASSIGN_OR_RETURN(Block body, ParseBody("endset"));
    statement->blocks.push_back(std::move(body));
    OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
    return statement;
  }

  Result<std::unique_ptr<Statement>> ParseWith() {
    auto statement = MakeStatement(StatementKind::kWith, Current().line);
    while (!At(TokenKind::kBlockEnd)) {
      if (!statement->targets.empty()) OCTAVO_RETURN_IF_ERROR(ExpectOperator(","));
      OCTAVO_ASSIGN_OR_RETURN(Target target, ParseTarget(false, false));
      OCTAVO_RETURN_IF_ERROR(ExpectOperator("="));
      OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr value, ParseExpression());
      statement->targets.push_back(std::move(target));
      statement->expressions.push_back(std::move(value));
    }
    const Scoped<bool> soft(soft_, false);
    OCTAVO_ASSIGN_OR_RETURN(Block body, ParseBody("endwith"));
    statement->blocks.push_back(std::move(body));
    OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
    return statement;
  }

  Status ParseParameters(Macro* macro) {
    OCTAVO_RETURN_IF_ERROR(ExpectOperator("("));
    while (!AtOperator(")")) {
      OCTAVO_ASSIGN_OR_RETURN(std::string name, ExpectName());
      if (std::count(macro->parameters.begin(), macro->parameters.end(), name) != 0) {
        return Error("the parameter '" + name + "' occurs twice");
      }
      macro->parameters.push_back(std::move(name));
      if (SkipOperator("=")) {
        OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr value, ParseExpression());
        macro->defaults.push_back(std::move(value));
      } else if (!macro->defaults.empty()) {
        return Error("a parameter without a default behind one with a default");
      }
      if (!SkipOperator(",")) break;
    }
    return ExpectOperator(")");
  }

  Status ParseMacroBody(Macro* macro, std::string_view end) {
    open_macros_.push_back(macro);
    const Scoped<int> loops(open_loops_, 0);
    const Scoped<bool> soft(soft_, false);
    Result<Block> body = ParseBody(end);
    open_macros_.pop_back();
    OCTAVO_ASSIGN_OR_RETURN(macro->body, std::move(body));
    return ExpectBlockEnd();
  }

  Result<std::unique_ptr<Statement>> ParseMacro() {
    auto statement = MakeStatement(StatementKind::kMacro, Current().line);
    statement->macro = std::make_shared<Macro>();
    OCTAVO_ASSIGN_OR_RETURN(statement->macro->name, ExpectName());
    OCTAVO_RETURN_IF_ERROR(ParseParameters(statement->macro.get()));
    OCTAVO_RETURN_IF_ERROR(ParseMacroBody(statement->macro.get(), "endmacro"));
    return statement;
  }

  Result<std::unique_ptr<Statement>> ParseCallBlock() {
    auto statement = MakeStatement(StatementKind::kCallBlock, Current().line);
    statement->macro = std::make_shared<Macro>();
    statement->macro->name = "caller";
    if (AtOperator("(")) OCTAVO_RETURN_IF_ERROR(ParseParameters(statement->macro.get()));
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr call, ParseExpression());
    if (call->kind != ExpressionKind::kCall) return Error("expected a call");
    statement->expressions.push_back(std::move(call));
    OCTAVO_RETURN_IF_ERROR(ParseMacroBody(statement->macro.get(), "endcall"));
    return statement;
  }

  Result<std::unique_ptr<Statement>> ParseFilterBlock() {
    auto statement = MakeStatement(StatementKind::kFilterBlock, Current().line);
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr filter, ParseFilterChain());
    statement->expressions.push_back(std::move(filter));
    const Scoped<bool> soft(soft_, false);
    OCTAVO_ASSIGN_OR_RETURN(Block body, ParseBody("endfilter"));
    statement->blocks.push_back(std::move(body));
    OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
    return statement;
  }

  Result<std::unique_ptr<Statement>> ParseNamedBlock() {
    auto statement = MakeStatement(StatementKind::kBlock, Current().line);
    OCTAVO_ASSIGN_OR_RETURN(statement->name, ExpectName());
    if (AtName("scoped") || AtName("required")) {
      return Unsupported(fmt::format("line {}: {{% block {} %}}", Current().line, Current().text));
    }
    if (!parsed_.blocks.emplace(statement->name, statement.get()).second) {
      return Error("the block '" + statement->name + "' is defined twice");
    }
    const Scoped<int> loops(open_loops_, 0);
    const Scoped<bool> soft(soft_, false);
    OCTAVO_ASSIGN_OR_RETURN(Block body, ParseBody("endblock"));
    statement->blocks.push_back(std::move(body));
    SkipName(statement->name);
    OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
    return statement;
  }

  Result<std::unique_ptr<Statement>> ParseAutoescape() {
    auto statement = MakeStatement(StatementKind::kAutoescape, Current().line);
    OCTAVO_ASSIGN_OR_RETURN(ExpressionPtr value, ParseExpression());
    statement->expressions.push_back(std::move(value));
    OCTAVO_ASSIGN_OR_RETURN(Block body, ParseBody("endautoescape"));
    statement->blocks.push_back(std::move(body));
    OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
    return statement;
  }

  Result<std::unique_ptr<Statement>> ParseGeneration() {
    auto statement = MakeStatement(StatementKind::kGeneration, Current().line);
    const Scoped<int> loops(open_loops_, 0);
    const Scoped<bool> soft(soft_, false);
    OCTAVO_ASSIGN_OR_RETURN(Block body, ParseBody("endgeneration"));
    statement->blocks.push_back(std::move(body));
    OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
    return statement;
  }

  Result<std::unique_ptr<Statement>> ParsePrint() {
    return Unsupported(fmt::format("line {}: {{% print %}}", Current().line));
  }

  Result<std::unique_ptr<Statement>> ParseLoopControl() {
    const bool is_break = tag_ == "break";
    if (open_loops_ == 0) return Error("outside of a loop");
    auto statement =
        MakeStatement(is_break ? StatementKind::kBreak : StatementKind::kContinue, Current().line);
    OCTAVO_RETURN_IF_ERROR(ExpectBlockEnd());
    return statement;
  }

  Result<std::unique_ptr<Statement>> ParseNoLoader() {
    auto statement = MakeStatement(StatementKind::kNoLoader, Current().line);
    while (!At(TokenKind::kBlockEnd)) {
      if (At(TokenKind::kEnd)) return Expected("end of statement block");
      Next();
    }
    Next();
    return statement;
  }

  std::vector<Token> tokens_;
  ParsedTemplate parsed_;
  size_t at_ = 0;
  int depth_ = 0;
  std::string tag_;  // that is being read
  bool soft_ = false;
  std::vector<Status> unknown_;  // filters and tests that do not exist
  int open_loops_ = 0;
  std::vector<Macro*> open_macros_;
};

}  // namespace

Result<ParsedTemplate> Parse(std::string_view source) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  return Parser(std::move(tokens)).Run();
}

}  // namespace octavo::jinja
