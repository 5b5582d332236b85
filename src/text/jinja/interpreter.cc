#include "text/jinja/interpreter.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "text/jinja/builtins.h"
#include "text/jinja/operators.h"
#include "text/jinja/parser.h"
#include "text/jinja/print.h"
#include "text/jinja/scope.h"

namespace octavo::jinja {

namespace {

constexpr int64_t kBytesOfClosure = 512;  // a macro and its scope, which live until the end

}  // namespace

Interpreter::Interpreter(const ParsedTemplate& parsed, const Limits& limits, const std::tm& now)
    : parsed_(parsed), runtime_(limits, now), root_(std::make_shared<Scope>()), out_(&main_out_) {}

Result<Rendered> Interpreter::Run(const octavo::Value& variables) {
  if (variables.is_object()) {
    for (const auto& [name, json] : variables.as_object()) {
      OCTAVO_ASSIGN_OR_RETURN(Value value, Value::FromJson(json));
      root_->Set(name, std::move(value));
    }
  }
  OCTAVO_ASSIGN_OR_RETURN([[maybe_unused]] const Flow flow, ExecuteBlock(parsed_.body, root_));
  return Rendered{std::move(main_out_), std::move(spans_)};
}

Status Interpreter::Locate(Status status, int line) {
  if (located_) return status;
  located_ = true;
  const std::string tag = tag_ == nullptr ? ""
                          : *tag_ == "{{" ? "{{ }}: "
                                          : "{% " + *tag_ + " %}: ";
  return Status(status.code(), fmt::format("line {}: {}{}", line, tag, status.message()));
}

Status Interpreter::Enter(int line) {
  OCTAVO_RETURN_IF_ERROR(runtime_.ChargeSteps(1));
  if (depth_ < runtime_.limits().max_depth) return OkStatus();
  return Locate(InvalidArgument(fmt::format("the template runs deeper than {} levels (a macro that "
                                            "calls itself without end?)",
                                            runtime_.limits().max_depth)),
                line);
}

Status Interpreter::Write(std::string_view text) {
  OCTAVO_RETURN_IF_ERROR(runtime_.ChargeBytes(static_cast<int64_t>(text.size())));
  if (static_cast<int64_t>(out_->size() + text.size()) > runtime_.limits().max_output_bytes) {
    return InvalidArgument(
        fmt::format("the template writes more than {} bytes", runtime_.limits().max_output_bytes));
  }
  *out_ += text;
  return OkStatus();
}

Result<Flow> Interpreter::ExecuteBlock(const Block& block, const ScopePtr& scope) {
  for (const auto& statement : block) {
    OCTAVO_ASSIGN_OR_RETURN(const Flow flow, Execute(*statement, scope));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Value> Interpreter::Capture(const Block& block, const ScopePtr& scope, Flow* flow) {
  std::string text;
  std::string* const before = std::exchange(out_, &text);
  Result<Flow> result = ExecuteBlock(block, scope);
  out_ = before;
  OCTAVO_ASSIGN_OR_RETURN(const Flow ended_by, std::move(result));
  if (flow != nullptr) *flow = ended_by;
  return Value::String(std::move(text), runtime_.autoescape);
}

Result<Flow> Interpreter::Execute(const Statement& statement, const ScopePtr& scope) {
  OCTAVO_RETURN_IF_ERROR(Enter(statement.line));
  ++depth_;
  const std::string* const tag_before = tag_;
  if (statement.kind != StatementKind::kText) tag_ = &statement.name;
  Result<Flow> flow = ExecuteKind(statement, scope);
  if (!flow.ok()) flow = Locate(flow.status(), statement.line);
  tag_ = tag_before;
  --depth_;
  return flow;
}

Result<Flow> Interpreter::ExecuteKind(const Statement& statement, const ScopePtr& scope) {
  switch (statement.kind) {
    case StatementKind::kText:
      OCTAVO_RETURN_IF_ERROR(Write(statement.text));
      return Flow::kNext;
    case StatementKind::kPrint:
      return ExecutePrint(statement, scope);
    case StatementKind::kIf:
      return ExecuteIf(statement, scope);
    case StatementKind::kFor:
      return ExecuteFor(statement, scope);
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
    case StatementKind::kSet:
    case StatementKind::kSetBlock:
      return ExecuteSet(statement, scope);
    case StatementKind::kWith:
      return ExecuteWith(statement, scope);
    case StatementKind::kMacro:
      OCTAVO_RETURN_IF_ERROR(runtime_.ChargeBytes(kBytesOfClosure));
      scope->Set(statement.macro->name, MakeMacro(*statement.macro, scope));
      return Flow::kNext;
    case StatementKind::kCallBlock:
      return ExecuteCallBlock(statement, scope);
    case StatementKind::kFilterBlock:
      return ExecuteFilterBlock(statement, scope);
    case StatementKind::kBlock:
      return ExecuteBlock(statement.blocks[0], std::make_shared<Scope>(root_));
    case StatementKind::kAutoescape:
      return ExecuteAutoescape(statement, scope);
    case StatementKind::kGeneration:
      return ExecuteGeneration(statement, scope);
    case StatementKind::kNoLoader:
      return Unsupported("there are no other templates to load");
  }
  return Internal("unknown statement");
}

Result<Flow> Interpreter::ExecutePrint(const Statement& statement, const ScopePtr& scope) {
  OCTAVO_ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.expressions[0], scope));
  if (value.is_undefined() && !runtime_.limits().print_undefined)
    return InvalidArgument(value.undefined_reason());
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime_, value));
  const bool escape = runtime_.autoescape && !value.is_markup();
  OCTAVO_RETURN_IF_ERROR(Write(escape ? EscapeHtml(text) : text));
  return Flow::kNext;
}

Result<Flow> Interpreter::ExecuteIf(const Statement& statement, const ScopePtr& scope) {
  for (size_t i = 0; i < statement.blocks.size(); ++i) {
    bool taken = i == statement.expressions.size();  // else
    if (!taken) {
      OCTAVO_ASSIGN_OR_RETURN(const Value condition, Evaluate(*statement.expressions[i], scope));
      taken = condition.Truthy();
    }
    if (taken) return ExecuteBlock(statement.blocks[i], scope);
  }
  return Flow::kNext;
}

Result<Flow> Interpreter::ExecuteSet(const Statement& statement, const ScopePtr& scope) {
  Flow flow = Flow::kNext;
  Value value;
  if (statement.kind == StatementKind::kSet) {
    OCTAVO_ASSIGN_OR_RETURN(value, Evaluate(*statement.expressions[0], scope));
  } else {
    OCTAVO_ASSIGN_OR_RETURN(value,
                            Capture(statement.blocks[0], std::make_shared<Scope>(scope), &flow));
    if (flow != Flow::kNext) return flow;
    if (const auto& filters = statement.expressions[0]) {
      OCTAVO_ASSIGN_OR_RETURN(value, EvaluateFilter(*filters, scope, &value));
    }
  }
  OCTAVO_RETURN_IF_ERROR(Assign(statement.target, std::move(value), *scope, scope));
  return flow;
}

Status Interpreter::Assign(const Target& target, Value value, Scope& into, const ScopePtr& scope) {
  if (!target.items.empty()) {
    OCTAVO_ASSIGN_OR_RETURN(std::vector<Value> values, Iterate(runtime_, value));
    if (values.size() != target.items.size()) {
      return InvalidArgument(
          fmt::format("{} values to unpack, expected {}", values.size(), target.items.size()));
    }
    for (size_t i = 0; i < values.size(); ++i) {
      OCTAVO_RETURN_IF_ERROR(Assign(target.items[i], std::move(values[i]), into, scope));
    }
    return OkStatus();
  }
  if (target.attribute.empty()) {
    into.Set(target.name, std::move(value));
    return OkStatus();
  }
  auto* names = Lookup(target.name, scope).As<Namespace>();
  if (names == nullptr) {
    return InvalidArgument("'" + target.name + "' is no namespace, its attributes cannot be set");
  }
  names->members.Set(Value::String(target.attribute), std::move(value));
  return OkStatus();
}

Result<Flow> Interpreter::ExecuteWith(const Statement& statement, const ScopePtr& scope) {
  const auto inner = std::make_shared<Scope>(scope);
  for (size_t i = 0; i < statement.targets.size(); ++i) {
    OCTAVO_ASSIGN_OR_RETURN(Value value, Evaluate(*statement.expressions[i], scope));
    OCTAVO_RETURN_IF_ERROR(Assign(statement.targets[i], std::move(value), *inner, scope));
  }
  return ExecuteBlock(statement.blocks[0], inner);
}

Result<Flow> Interpreter::ExecuteCallBlock(const Statement& statement, const ScopePtr& scope) {
  const Expression& call = *statement.expressions[0];
  OCTAVO_ASSIGN_OR_RETURN(const Value callee, Evaluate(*call.children[0], scope));
  OCTAVO_ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(call.arguments, scope));
  OCTAVO_RETURN_IF_ERROR(runtime_.ChargeBytes(kBytesOfClosure));
  arguments.named.emplace_back("caller", MakeMacro(*statement.macro, scope));
  OCTAVO_ASSIGN_OR_RETURN(const Value value, Call(callee, std::move(arguments)));
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime_, value));
  OCTAVO_RETURN_IF_ERROR(Write(text));
  return Flow::kNext;
}

Result<Flow> Interpreter::ExecuteFilterBlock(const Statement& statement, const ScopePtr& scope) {
  Flow flow = Flow::kNext;
  OCTAVO_ASSIGN_OR_RETURN(Value value,
                          Capture(statement.blocks[0], std::make_shared<Scope>(scope), &flow));
  if (flow != Flow::kNext) return flow;
  OCTAVO_ASSIGN_OR_RETURN(value, EvaluateFilter(*statement.expressions[0], scope, &value));
  OCTAVO_ASSIGN_OR_RETURN(const std::string text, ToText(runtime_, value));
  OCTAVO_RETURN_IF_ERROR(Write(text));
  return flow;
}

Result<Flow> Interpreter::ExecuteAutoescape(const Statement& statement, const ScopePtr& scope) {
  OCTAVO_ASSIGN_OR_RETURN(const Value value, Evaluate(*statement.expressions[0], scope));
  const bool before = std::exchange(runtime_.autoescape, value.Truthy());
  Result<Flow> flow = ExecuteBlock(statement.blocks[0], std::make_shared<Scope>(scope));
  runtime_.autoescape = before;
  return flow;
}

Result<Flow> Interpreter::ExecuteGeneration(const Statement& statement, const ScopePtr& scope) {
  OCTAVO_ASSIGN_OR_RETURN(const Value value,
                          Capture(statement.blocks[0], std::make_shared<Scope>(scope), nullptr));
  const auto begin = static_cast<int64_t>(main_out_.size());
  spans_.emplace_back(begin, begin + static_cast<int64_t>(value.as_string().size()));
  OCTAVO_RETURN_IF_ERROR(Write(value.as_string()));
  return Flow::kNext;
}

Value Interpreter::Lookup(const std::string& name, const ScopePtr& scope) {
  for (const Scope* at = scope.get(); at != nullptr; at = at->parent().get()) {
    if (const Value* found = at->Find(name)) return *found;
  }
  if (name == "self") return MakeBlockReferences();
  Value global = FindGlobal(name);
  return global.is_undefined() ? Value::UndefinedBecause("'" + name + "' is undefined") : global;
}

Result<Value> Interpreter::Evaluate(const Expression& expression, const ScopePtr& scope) {
  OCTAVO_RETURN_IF_ERROR(Enter(expression.line));
  ++depth_;
  Result<Value> value = EvaluateKind(expression, scope);
  --depth_;
  if (!value.ok()) return Locate(value.status(), expression.line);
  if (value->depth() > kMaxNesting) {
    return Locate(
        InvalidArgument(fmt::format("a value is nested deeper than {} levels", kMaxNesting)),
        expression.line);
  }
  return value;
}

Result<Value> Interpreter::EvaluateKind(const Expression& expression, const ScopePtr& scope) {
  switch (expression.kind) {
    case ExpressionKind::kConstant:
      return expression.constant;
    case ExpressionKind::kName:
      return Lookup(expression.name, scope);
    case ExpressionKind::kList:
    case ExpressionKind::kTuple:
      return EvaluateList(expression, scope);
    case ExpressionKind::kDict:
      return EvaluateDict(expression, scope);
    case ExpressionKind::kAttribute:
    case ExpressionKind::kItem:
    case ExpressionKind::kSlice:
      return EvaluateSubscript(expression, scope);
    case ExpressionKind::kCall:
      return EvaluateCall(expression, scope);
    case ExpressionKind::kFilter:
      return EvaluateFilter(expression, scope, nullptr);
    case ExpressionKind::kTest:
      return EvaluateTest(expression, scope);
    case ExpressionKind::kNegate:
    case ExpressionKind::kPositive:
    case ExpressionKind::kNot:
      return EvaluateUnary(expression, scope);
    case ExpressionKind::kAnd:
    case ExpressionKind::kOr:
    case ExpressionKind::kConditional:
      return EvaluateChoice(expression, scope);
    case ExpressionKind::kBinary:
      return EvaluateBinary(expression, scope);
    case ExpressionKind::kConcat:
      return EvaluateConcat(expression, scope);
    case ExpressionKind::kCompare:
      return EvaluateCompare(expression, scope);
  }
  return Internal("unknown expression");
}

Result<Value> Interpreter::EvaluateList(const Expression& expression, const ScopePtr& scope) {
  std::vector<Value> items;
  OCTAVO_RETURN_IF_ERROR(runtime_.ChargeItems(expression.children.size()));
  for (const ExpressionPtr& child : expression.children) {
    OCTAVO_ASSIGN_OR_RETURN(Value item, Evaluate(*child, scope));
    items.push_back(std::move(item));
  }
  return Value::MakeList(std::move(items), expression.kind == ExpressionKind::kList
                                               ? ListKind::kList
                                               : ListKind::kTuple);
}

Result<Value> Interpreter::EvaluateDict(const Expression& expression, const ScopePtr& scope) {
  Dict dict;
  OCTAVO_RETURN_IF_ERROR(runtime_.ChargeItems(2 * expression.children.size()));
  for (size_t i = 0; i < expression.children.size(); i += 2) {
    OCTAVO_ASSIGN_OR_RETURN(Value key, Evaluate(*expression.children[i], scope));
    if (!IsHashable(key)) {
      return TypeError(fmt::format("unhashable type: '{}'", key.type_name()));
    }
    OCTAVO_ASSIGN_OR_RETURN(Value value, Evaluate(*expression.children[i + 1], scope));
    dict.Set(std::move(key), std::move(value));
  }
  return Value::MakeDict(std::move(dict));
}

Result<Value> Interpreter::EvaluateSubscript(const Expression& expression, const ScopePtr& scope) {
  OCTAVO_ASSIGN_OR_RETURN(const Value object, Evaluate(*expression.children[0], scope));
  if (expression.kind == ExpressionKind::kAttribute) {
    return GetAttribute(runtime_, object, expression.name);
  }
  if (expression.kind == ExpressionKind::kItem) {
    OCTAVO_ASSIGN_OR_RETURN(const Value key, Evaluate(*expression.children[1], scope));
    return GetItem(runtime_, object, key);
  }
  Value bounds[3] = {Value::None(), Value::None(), Value::None()};
  for (size_t i = 0; i < 3; ++i) {
    if (expression.children[i + 1] == nullptr) continue;
    OCTAVO_ASSIGN_OR_RETURN(bounds[i], Evaluate(*expression.children[i + 1], scope));
  }
  return Slice(runtime_, object, bounds[0], bounds[1], bounds[2]);
}

Result<Arguments> Interpreter::EvaluateArguments(const CallArguments& arguments,
                                                 const ScopePtr& scope) {
  Arguments values;
  for (const ExpressionPtr& argument : arguments.positional) {
    OCTAVO_ASSIGN_OR_RETURN(Value value, Evaluate(*argument, scope));
    values.positional.push_back(std::move(value));
  }
  for (const auto& [name, argument] : arguments.named) {
    OCTAVO_ASSIGN_OR_RETURN(Value value, Evaluate(*argument, scope));
    values.named.emplace_back(name, std::move(value));
  }
  if (arguments.star != nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(const Value star, Evaluate(*arguments.star, scope));
    OCTAVO_ASSIGN_OR_RETURN(const std::vector<Value> items, Iterate(runtime_, star));
    values.positional.insert(values.positional.end(), items.begin(), items.end());
  }
  if (arguments.double_star != nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(const Value star, Evaluate(*arguments.double_star, scope));
    if (!star.is_dict()) return TypeError("the argument behind ** must be a mapping");
    OCTAVO_RETURN_IF_ERROR(runtime_.ChargeItems(star.as_dict().size()));
    for (const auto& [key, value] : star.as_dict().entries()) {
      if (!key.is_string()) return TypeError("keywords must be strings");
      const bool given_twice = std::any_of(
          arguments.named.begin(), arguments.named.end(),
          [&, &name = key](const auto& other) { return other.first == name.as_string(); });
      if (given_twice) {
        return TypeError("the argument '" + key.as_string() + "' is given twice");
      }
      values.named.emplace_back(key.as_string(), value);
    }
  }
  return values;
}

Result<Value> Interpreter::Call(const Value& callee, Arguments arguments) {
  if (callee.is_undefined()) return InvalidArgument(callee.undefined_reason());
  auto* callable = callee.As<CallableObject>();
  if (callable == nullptr || !callable->callable()) {
    return TypeError(fmt::format("'{}' object is not callable", callee.type_name()));
  }
  return callable->Call(runtime_, std::move(arguments));
}

Result<Value> Interpreter::EvaluateCall(const Expression& expression, const ScopePtr& scope) {
  OCTAVO_ASSIGN_OR_RETURN(const Value callee, Evaluate(*expression.children[0], scope));
  OCTAVO_ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(expression.arguments, scope));
  return Call(callee, std::move(arguments));
}

// `input` is what the innermost filter of a {% filter %} or {% set %} chain gets.
Result<Value> Interpreter::EvaluateFilter(const Expression& expression, const ScopePtr& scope,
                                          const Value* input) {
  if (expression.builtin == nullptr) {
    return InvalidArgument("no filter named '" + expression.name + "'");
  }
  Value value;
  const ExpressionPtr& child = expression.children[0];
  if (child == nullptr) {
    OCTAVO_CHECK(input != nullptr);
    value = *input;
  } else if (input != nullptr) {
    OCTAVO_ASSIGN_OR_RETURN(value, EvaluateFilter(*child, scope, input));
  } else {
    OCTAVO_ASSIGN_OR_RETURN(value, Evaluate(*child, scope));
  }
  OCTAVO_ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(expression.arguments, scope));
  return expression.builtin->Call(runtime_, value, std::move(arguments));
}

Result<Value> Interpreter::EvaluateTest(const Expression& expression, const ScopePtr& scope) {
  if (expression.builtin == nullptr) {
    return InvalidArgument("no test named '" + expression.name + "'");
  }
  OCTAVO_ASSIGN_OR_RETURN(const Value value, Evaluate(*expression.children[0], scope));
  OCTAVO_ASSIGN_OR_RETURN(Arguments arguments, EvaluateArguments(expression.arguments, scope));
  return expression.builtin->Call(runtime_, value, std::move(arguments));
}

Result<Value> Interpreter::EvaluateUnary(const Expression& expression, const ScopePtr& scope) {
  OCTAVO_ASSIGN_OR_RETURN(const Value operand, Evaluate(*expression.children[0], scope));
  if (expression.kind == ExpressionKind::kNot) return Value::Bool(!operand.Truthy());
  return expression.kind == ExpressionKind::kNegate ? Negate(operand) : Positive(operand);
}

// and, or, and a if b else c: not every operand is evaluated.
Result<Value> Interpreter::EvaluateChoice(const Expression& expression, const ScopePtr& scope) {
  if (expression.kind == ExpressionKind::kConditional) {
    OCTAVO_ASSIGN_OR_RETURN(const Value condition, Evaluate(*expression.children[1], scope));
    if (condition.Truthy()) return Evaluate(*expression.children[0], scope);
    if (expression.children[2] != nullptr) return Evaluate(*expression.children[2], scope);
    return Value::UndefinedBecause("the condition is false and there is no else");
  }
  OCTAVO_ASSIGN_OR_RETURN(Value left, Evaluate(*expression.children[0], scope));
  if (left.Truthy() == (expression.kind == ExpressionKind::kOr)) return left;
  return Evaluate(*expression.children[1], scope);
}

Result<Value> Interpreter::EvaluateBinary(const Expression& expression, const ScopePtr& scope) {
  OCTAVO_ASSIGN_OR_RETURN(const Value left, Evaluate(*expression.children[0], scope));
  OCTAVO_ASSIGN_OR_RETURN(const Value right, Evaluate(*expression.children[1], scope));
  return Apply(runtime_, expression.binary_operator, left, right);
}

Result<Value> Interpreter::EvaluateConcat(const Expression& expression, const ScopePtr& scope) {
  std::string text;
  bool markup = runtime_.autoescape;
  std::vector<Value> parts;
  for (const ExpressionPtr& child : expression.children) {
    OCTAVO_ASSIGN_OR_RETURN(Value part, Evaluate(*child, scope));
    parts.push_back(std::move(part));
  }
  // Outside of autoescape the result is plain, whatever the parts are.
  for (const Value& part : parts) {
    OCTAVO_ASSIGN_OR_RETURN(const std::string piece, ToText(runtime_, part));
    text += markup && !part.is_markup() ? EscapeHtml(piece) : piece;
  }
  return Value::String(std::move(text), markup);
}

Result<Value> Interpreter::EvaluateCompare(const Expression& expression, const ScopePtr& scope) {
  OCTAVO_ASSIGN_OR_RETURN(Value left, Evaluate(*expression.children[0], scope));
  for (size_t i = 0; i < expression.comparisons.size(); ++i) {
    OCTAVO_ASSIGN_OR_RETURN(Value right, Evaluate(*expression.children[i + 1], scope));
    OCTAVO_ASSIGN_OR_RETURN(const bool holds,
                            Compare(runtime_, expression.comparisons[i], left, right));
    if (!holds) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

struct Template::State {
  ParsedTemplate parsed;
};

Template::Template(std::unique_ptr<State> state) : state_(std::move(state)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<Template> Template::Compile(std::string_view source) {
  auto state = std::make_unique<State>();
  OCTAVO_ASSIGN_OR_RETURN(state->parsed, Parse(source));
  return Template(std::move(state));
}

Result<Rendered> Template::Render(const octavo::Value& variables, const std::tm& now,
                                  const Limits& limits) const {
  return Interpreter(state_->parsed, limits, now).Run(variables);
}

}  // namespace octavo::jinja
