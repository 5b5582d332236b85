// The interpreter's insides: scopes, and what walks the tree.
#pragma once

#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/jinja/ast.h"
#include "text/jinja/builtins.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/runtime.h"

namespace octavo::jinja {

// Names set in a template, a loop's round, a macro call ...; what is not here is looked for in the
// parent. Shared, because macros remember where they were defined.
class Scope {
 public:
  explicit Scope(std::shared_ptr<Scope> parent = nullptr) : parent_(std::move(parent)) {}
  const std::shared_ptr<Scope>& parent() const { return parent_; }
  const Value* Find(const std::string& name) const {
    const auto found = values_.find(name);
    return found == values_.end() ? nullptr : &found->second;
  }
  void Set(const std::string& name, Value value) { values_[name] = std::move(value); }

 private:
  std::shared_ptr<Scope> parent_;
  std::unordered_map<std::string, Value> values_;
};

using ScopePtr = std::shared_ptr<Scope>;

// How a block ended.
enum class Flow { kNext, kBreak, kContinue };

// One rendering. Errors carry the line of the innermost expression or statement.
class Interpreter {
 public:
  Interpreter(const ParsedTemplate& parsed, const Limits& limits, const std::tm& now);
  Result<Rendered> Run(const octavo::Value& variables);

 private:
  friend class MacroObject;
  friend class LoopObject;
  friend class BlockFunction;

  Result<Flow> ExecuteBlock(const Block& block, const ScopePtr& scope);
  Result<Flow> Execute(const Statement& statement, const ScopePtr& scope);
  Result<Flow> ExecuteKind(const Statement& statement, const ScopePtr& scope);
  Result<Flow> ExecutePrint(const Statement& statement, const ScopePtr& scope);
  Result<Flow> ExecuteIf(const Statement& statement, const ScopePtr& scope);
  Result<Flow> ExecuteFor(const Statement& statement, const ScopePtr& scope);
  Result<Flow> ExecuteSet(const Statement& statement, const ScopePtr& scope);
  Result<Flow> ExecuteWith(const Statement& statement, const ScopePtr& scope);
  Result<Flow> ExecuteCallBlock(const Statement& statement, const ScopePtr& scope);
  Result<Flow> ExecuteFilterBlock(const Statement& statement, const ScopePtr& scope);
  Result<Flow> ExecuteAutoescape(const Statement& statement, const ScopePtr& scope);
  Result<Flow> ExecuteGeneration(const Statement& statement, const ScopePtr& scope);
  // All rounds of a loop over `iterable`; `depth` counts the calls of a recursive loop.
  Result<Flow> RunLoop(const Statement& statement, const ScopePtr& scope, const Value& iterable,
                       int depth);
  Result<std::vector<Value>> LoopItems(const Statement& statement, const ScopePtr& scope,
                                       const Value& iterable);

  // What a block prints, as a value.
  Result<Value> Capture(const Block& block, const ScopePtr& scope, Flow* flow);
  Status Assign(const Target& target, Value value, Scope& into, const ScopePtr& scope);
  Value Lookup(const std::string& name, const ScopePtr& scope);
  Value MakeMacro(const Macro& macro, const ScopePtr& scope);
  Value MakeBlockReferences();

  Result<Value> Evaluate(const Expression& expression, const ScopePtr& scope);
  Result<Value> EvaluateKind(const Expression& expression, const ScopePtr& scope);
  Result<Value> EvaluateList(const Expression& expression, const ScopePtr& scope);
  Result<Value> EvaluateDict(const Expression& expression, const ScopePtr& scope);
  Result<Value> EvaluateSubscript(const Expression& expression, const ScopePtr& scope);
  Result<Value> EvaluateCall(const Expression& expression, const ScopePtr& scope);
  Result<Value> EvaluateFilter(const Expression& expression, const ScopePtr& scope,
                               const Value* input);
  Result<Value> EvaluateTest(const Expression& expression, const ScopePtr& scope);
  Result<Value> EvaluateUnary(const Expression& expression, const ScopePtr& scope);
  Result<Value> EvaluateChoice(const Expression& expression, const ScopePtr& scope);
  Result<Value> EvaluateBinary(const Expression& expression, const ScopePtr& scope);
  Result<Value> EvaluateConcat(const Expression& expression, const ScopePtr& scope);
  Result<Value> EvaluateCompare(const Expression& expression, const ScopePtr& scope);
  Result<Arguments> EvaluateArguments(const CallArguments& arguments, const ScopePtr& scope);
  Result<Value> Call(const Value& callee, Arguments arguments);

  Status Enter(int line);
  Status Locate(Status status, int line);
  Status Write(std::string_view text);

  const ParsedTemplate& parsed_;
  Runtime runtime_;
  ScopePtr root_;
  std::string main_out_;
  std::string* out_;  // where printed text goes
  std::vector<std::pair<int64_t, int64_t>> spans_;
  const std::string* tag_ = nullptr;  // that is being run
  int depth_ = 0;
  bool located_ = false;  // the error on its way up has a line
};

}  // namespace octavo::jinja
