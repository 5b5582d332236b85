#!/usr/bin/env python3
"""Makes tests/data/eval/own: what lm-evaluation-harness asks and scores of the tasks that shared/goldens/eval has not.

The documents are tests/data/eval/docs/<task>/<split>.jsonl, written for this repository in the layout in which each data set is published.
Everything else is the installed official YAML; only the keys of the data set are replaced. The model is data/stories260k; humaneval's answers
are made up, and are not run.

  python3 -m venv VENV
  VENV/bin/pip install -r tools/goldens/eval_tasks_requirements.txt
  VENV/bin/python tools/goldens/eval_tasks.py
"""

import json
import os
import pathlib
import sys
import tempfile
import types

os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", TOKENIZERS_PARALLELISM="false")
SCRATCH = tempfile.TemporaryDirectory()  # the caches of the libraries must not outlive this program
os.environ.update(HF_HOME=SCRATCH.name, HF_DATASETS_CACHE=f"{SCRATCH.name}/datasets")
# humaneval loads its scorer when its file is read; nothing is scored here.
evaluate = types.ModuleType("evaluate")
evaluate.load = lambda _: types.SimpleNamespace(compute=lambda **_: None)
sys.modules["evaluate"] = evaluate

import lm_eval  # noqa: E402
import yaml  # noqa: E402
from lm_eval import simple_evaluate  # noqa: E402
from lm_eval.models.huggingface import HFLM  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
DATA = REPOSITORY / "tests" / "data"
OFFICIAL = pathlib.Path(lm_eval.__file__).parent / "tasks"
TASKS = {
    "arc_easy": "arc/arc_easy.yaml",
    "piqa": "piqa/piqa.yaml",
    "winogrande": "winogrande/default.yaml",
    "boolq": "super_glue/boolq/default.yaml",
    "openbookqa": "openbookqa/openbookqa.yaml",
    "humaneval": "humaneval/humaneval.yaml",
}
ANSWERS = ["    return x + x\n", "    return \"\"\n"]


class Recorder(HFLM):
    """An HFLM that answers what it is told to."""

    def generate_until(self, requests, **_):
        return [ANSWERS[request.doc_id] for request in requests]


def write_task(folder, name, official):
    files = {path.stem: str(path) for path in sorted((DATA / "eval" / "docs" / name).glob("*.jsonl"))}
    data = {"dataset_path": "json", "dataset_name": None, "dataset_kwargs": {"data_files": files}}
    config = {"include": str(OFFICIAL / official), "task": name, **data}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def run(lm, manager, name, **settings):
    defaults = {"bootstrap_iters": 0, "log_samples": True, "confirm_run_unsafe_code": True, "predict_only": name == "humaneval"}
    return simple_evaluate(model=lm, tasks=[name], task_manager=manager, **defaults, **settings)


def rows_of(variant, samples):
    for sample in samples:
        kept = ("doc_id", "target", "arguments", "resps", "filtered_resps", "filter", "prompt_hash", "target_hash", "doc_hash")
        yield {"variant": variant, **{key: sample[key] for key in kept}, "metrics": {name: sample[name] for name in sample["metrics"]}}


def main():
    lm = Recorder(str(REPOSITORY / "data" / "stories260k"), device="cpu", dtype="float32", batch_size=1)
    lm.tokenizer.chat_template = (DATA / "templates" / "smollm2.jinja").read_text()
    variants = {
        "0shot": {"num_fewshot": 0},
        "3shot": {"num_fewshot": 3},
        "chat": {"num_fewshot": 2, "apply_chat_template": True, "fewshot_as_multiturn": True},
    }
    out = DATA / "eval" / "own"
    out.mkdir(parents=True, exist_ok=True)
    results = {}
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(work)
        for name, official in TASKS.items():
            write_task(folder, name, official)
        manager = TaskManager(include_path=work, include_defaults=False)
        for name in TASKS:
            rows = []
            for variant, settings in variants.items():
                found = run(lm, manager, name, **settings)
                rows += rows_of(variant, found["samples"][name])
                if variant == "0shot":
                    results[name] = found["results"][name]
            text = "".join(json.dumps(row, ensure_ascii=False, default=str) + "\n" for row in rows)
            (out / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (out / "results.json").write_text(json.dumps(results, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
