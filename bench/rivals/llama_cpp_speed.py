"""Tokens per second of one GGUF file in llama.cpp, as JSON. Tokens are not chosen, only computed: that favours the rival."""
import argparse
import json
import os
import time

import llama_cpp


class Model:
    def __init__(self, path: str, threads: int):
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
        if not self.model:
            raise SystemExit(f"llama.cpp cannot load {path}")
        self.vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        self.threads = threads

    def context(self, sequences: int, positions: int):
        params = llama_cpp.llama_context_default_params()
        params.n_ctx = sequences * ((positions + 255) // 256 * 256)
        params.n_seq_max = sequences
        params.n_batch = params.n_ubatch = 512
        params.n_threads = params.n_threads_batch = self.threads
        context = llama_cpp.llama_init_from_model(self.model, params)
        if not context:
            raise SystemExit("llama.cpp makes no context")
        return context

    def run(self, context, rows):
        """rows: (sequence, position, wants logits)"""
        batch = llama_cpp.llama_batch_init(len(rows), 0, 1)
        batch.n_tokens = len(rows)
        for i, (sequence, position, logits) in enumerate(rows):
            batch.token[i] = (position * 7919 + sequence * 31 + 13) % self.vocab
            batch.pos[i] = position
            batch.n_seq_id[i] = 1
            batch.seq_id[i][0] = sequence
            batch.logits[i] = logits
        start = time.perf_counter()
        status = llama_cpp.llama_decode(context, batch)
        llama_cpp.llama_synchronize(context)
        seconds = time.perf_counter() - start
        llama_cpp.llama_batch_free(batch)
        if status != 0:
            raise SystemExit(f"llama_decode: {status}")
        return seconds


def best(run, seconds: float, at_least: int):
    rates = []
    start = time.perf_counter()
    while len(rates) < at_least or time.perf_counter() - start < seconds:
        rates.append(run())
    return max(rates)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--context", type=int, default=16)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--batch", default="1,8,32")
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    model = Model(options.model, len(os.sched_getaffinity(0)))

    context = model.context(1, options.prefill)

    def prefill():
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
        return options.prefill / model.run(context, [(0, p, p + 1 == options.prefill) for p in range(options.prefill)])

    result = {"prefill_tokens_per_second": best(prefill, options.seconds, 3), "decode": []}
    llama_cpp.llama_free(context)
    for sequences in (int(s) for s in options.batch.split(",")):
        context = model.context(sequences, options.context + options.decode)

        def decode():
            llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)
            for sequence in range(sequences):
                model.run(context, [(sequence, p, False) for p in range(options.context)])
            seconds = sum(
                model.run(context, [(s, options.context + step, True) for s in range(sequences)]) for step in range(options.decode)
            )
            return sequences * options.decode / seconds

        result["decode"].append({"sequences": sequences, "tokens_per_second": best(decode, options.seconds, 1)})
        llama_cpp.llama_free(context)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
