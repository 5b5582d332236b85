// Jinja's expressions: the half of the parser below the tags.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "text/jinja/ast.h"
#include "text/jinja/lexer.h"

namespace octavo::jinja {

// Reads tokens from the front; each Parse function leaves the cursor behind what it read.
class ExpressionParser {
 protected:
  static constexpr int kMaxDepth = 200;  // of tags, brackets and operators open at once

  explicit ExpressionParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

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
  Status ErrorAt(int line, std::string_view message) const;
  // "{% for %}: ", the tag that is being read.
  std::string Where() const {
    return tag_.empty() ? "" : tag_ == "{{" ? "{{ }}: " : "{% " + tag_ + " %}: ";
  }
  Status Expected(std::string_view what) const;
  Status ExpectOperator(std::string_view op) {
    return SkipOperator(op) ? OkStatus() : Expected("'" + std::string(op) + "'");
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
    explicit Level(ExpressionParser& parser) : parser_(parser) { ++parser_.depth_; }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Status Check() const {
      return parser_.depth_ <= kMaxDepth
                 ? OkStatus()
                 : parser_.Error("nested deeper than " + std::to_string(kMaxDepth) + " levels");
    }

   private:
    ExpressionParser& parser_;
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

  ExpressionPtr Make(ExpressionKind kind, int line) const;
  // Every node passes here: the tree stays shallow enough to be walked by recursion.
  Result<ExpressionPtr> Finish(ExpressionPtr node) const;
  template <typename... Children>
  Result<ExpressionPtr> MakeWith(ExpressionKind kind, int line, Children... children) const {
    ExpressionPtr node = Make(kind, line);
    (node->children.push_back(std::move(children)), ...);
    return Finish(std::move(node));
  }
  Result<ExpressionPtr> ParseExpression(bool with_conditional = true);
  Result<ExpressionPtr> ParseConditional();
  Result<ExpressionPtr> ParseOr();
  Result<ExpressionPtr> ParseAnd();
  Result<ExpressionPtr> ParseNot();
  bool SkipComparison(Comparison* comparison);
  Result<ExpressionPtr> ParseCompare();
  // Levels of binding: 0 is + and -, 1 is ~, 2 is * / // %, 3 is **, then unary operators. All,
  // ** too, group from the left.
  bool SkipArithmetic(int level, BinaryOperator* op);
  Result<ExpressionPtr> ParseArithmetic(int level);
  Result<ExpressionPtr> ParseConcat();
  // A sign binds tighter than ** and than filters: -5 | abs is 5.
  Result<ExpressionPtr> ParseUnary(bool with_filters);
  ExpressionPtr MakeConstant(Value value, int line) const;
  Result<ExpressionPtr> ParsePrimary();
  ExpressionPtr NameOrConstant(const Token& token);
  bool AtTupleEnd() const;
  // One expression, or several with commas: a tuple. `in_parentheses`: may be empty.
  Result<ExpressionPtr> ParseTuple(bool in_parentheses, bool with_conditional);
  Result<ExpressionPtr> ParseList();
  Result<ExpressionPtr> ParseDict();
  Result<ExpressionPtr> ParsePostfix(ExpressionPtr node);
  Result<ExpressionPtr> ParseDot(ExpressionPtr object);
  Result<ExpressionPtr> ParseSubscript(ExpressionPtr object);
  Result<ExpressionPtr> ParseCall(ExpressionPtr callee);
  Result<CallArguments> ParseArguments();
  Status ParseArgument(CallArguments* arguments);
  Result<ExpressionPtr> ParseFiltersAndTests(ExpressionPtr node);
  // A dotted name, as filters and tests may have.
  Result<std::string> ParseDottedName();
  // One "| name(arguments)".
  Result<ExpressionPtr> ParseFilter(ExpressionPtr value);
  Result<ExpressionPtr> ParseFilterName(ExpressionPtr value, int line);
  // The filters of {% filter a | b %} and {% set x | a | b %}; what they are applied to is null.
  Result<ExpressionPtr> ParseFilterChain();
  bool AtTestArgument() const;
  Result<ExpressionPtr> ParseTest(ExpressionPtr value);
  // Inside of {% if %} and a if b else c an unknown name fails only when it is reached.
  void NoteUnknown(int line, std::string message);
  Status CheckUnknown() const;

  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::string tag_;  // that is being read
  bool soft_ = false;
  std::vector<Status> unknown_;  // filters and tests that do not exist
  std::vector<Macro*> open_macros_;
};

}  // namespace octavo::jinja
