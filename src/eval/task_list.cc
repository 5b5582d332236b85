#include "eval/task_list.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/suggest.h"

namespace octavo {

#define OCTAVO_TASKS(family) extern const TaskFamily family;
#include "eval/tasks/tasks.inc"
#undef OCTAVO_TASKS

namespace {

constexpr const TaskFamily* kFamilies[] = {
#define OCTAVO_TASKS(family) &family,
#include "eval/tasks/tasks.inc"
#undef OCTAVO_TASKS
};

template <typename Named>
const Named* FindNamed(std::span<const Named> list, std::string_view name) {
  const auto found = std::find_if(list.begin(), list.end(),
                                  [&](const Named& entry) { return entry.name == name; });
  return found == list.end() ? nullptr : &*found;
}

class Selector {
 public:
  explicit Selector(std::optional<int64_t> num_fewshot) : num_fewshot_(num_fewshot) {}

  Status AddOwn(const TaskDefinition& task) {
    if (FindNamed<TaskDefinition>(definitions_, task.name) != nullptr ||
        FindNamed<TaskGroup>(groups_, task.name) != nullptr)
      return AlreadyExists(
          fmt::format("there is a task \"{}\" already; give yours another name", task.name));
    definitions_.push_back(task);
    return Add(task.name);
  }

  Status Add(const std::string& name) {
    if (const TaskGroup* group = FindNamed<TaskGroup>(groups_, name)) {
      if (FindNamed<TaskGroup>(selection_.groups, name) != nullptr) return OkStatus();
      selection_.groups.push_back(*group);
      for (const std::string& member : group->members) {
        OCTAVO_RETURN_IF_ERROR(Add(member));
      }
      return OkStatus();
    }
    const TaskDefinition* definition = FindNamed<TaskDefinition>(definitions_, name);
    if (definition == nullptr) return Unknown(name);
    const bool there = std::any_of(selection_.tasks.begin(), selection_.tasks.end(),
                                   [&](const Task& task) { return task.name() == name; });
    if (there) return OkStatus();
    OCTAVO_ASSIGN_OR_RETURN(Task task, Task::Make(*definition, num_fewshot_));
    selection_.tasks.push_back(std::move(task));
    return OkStatus();
  }

  TaskSelection Take() { return std::move(selection_); }

 private:
  Status Unknown(const std::string& name) const {
    std::vector<std::string> all, outermost;
    for (const TaskDefinition& task : definitions_) all.push_back(task.name);
    for (const TaskGroup& group : groups_) all.push_back(group.name);
    const auto in_a_group = [&](const std::string& candidate) {
      return std::any_of(groups_.begin(), groups_.end(), [&](const TaskGroup& group) {
        return std::count(group.members.begin(), group.members.end(), candidate) > 0;
      });
    };
    std::remove_copy_if(all.begin(), all.end(), std::back_inserter(outermost), in_a_group);
    return NotFound(fmt::format("there is no task \"{}\"{}; there are {} and what they hold", name,
                                DidYouMean(name, all), fmt::join(outermost, ", ")));
  }

  std::optional<int64_t> num_fewshot_;
  std::vector<TaskDefinition> definitions_ = AllTasks();
  std::vector<TaskGroup> groups_ = AllGroups();
  TaskSelection selection_;
};

}  // namespace

std::vector<TaskDefinition> AllTasks() {
  std::vector<TaskDefinition> all;
  for (const TaskFamily* family : kFamilies) {
    for (TaskDefinition& task : family->tasks()) all.push_back(std::move(task));
  }
  return all;
}

std::vector<TaskGroup> AllGroups() {
  std::vector<TaskGroup> all;
  for (const TaskFamily* family : kFamilies) {
    if (family->groups == nullptr) continue;
    for (TaskGroup& group : family->groups()) all.push_back(std::move(group));
  }
  return all;
}

Result<TaskSelection> SelectTasks(std::span<const std::string> names,
                                  std::optional<int64_t> num_fewshot,
                                  std::span<const TaskDefinition> own) {
  Selector selector(num_fewshot);
  for (const TaskDefinition& task : own) {
    OCTAVO_RETURN_IF_ERROR(selector.AddOwn(task));
  }
  for (const std::string& name : names) {
    OCTAVO_RETURN_IF_ERROR(selector.Add(name));
  }
  return selector.Take();
}

std::vector<std::string> TasksOfGroup(const TaskGroup& group, std::span<const TaskGroup> groups) {
  std::vector<std::string> tasks;
  for (const std::string& member : group.members) {
    const TaskGroup* inner = FindNamed(groups, member);
    if (inner == nullptr) {
      tasks.push_back(member);
    } else {
      for (std::string& task : TasksOfGroup(*inner, groups)) tasks.push_back(std::move(task));
    }
  }
  return tasks;
}

}  // namespace octavo
