#include "text/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/jinja/expression_parser.h"

namespace octavo::jinja {

namespace {

class Parser : private ExpressionParser {
 public:
  explicit Parser(std::vector<Token> tokens) : ExpressionParser(std::move(tokens)) {}

  Result<ParsedTemplate> Run() {
    OCTAVO_ASSIGN_OR_RETURN(parsed_.body, ParseBlock({}));
    return std::move(parsed_);
  }

 private:
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

  ParsedTemplate parsed_;
  int open_loops_ = 0;
};

}  // namespace

Result<ParsedTemplate> Parse(std::string_view source) {
  OCTAVO_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenize(source));
  return Parser(std::move(tokens)).Run();
}

}  // namespace octavo::jinja
