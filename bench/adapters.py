#!/usr/bin/env python3
"""What adapters cost, in processor time: prompts, and requests with different adapters in one batch.

    adapters.py BUILD MODEL ADAPTER... [--rounds N]

BUILD has jitrun and jitserve, and MODEL a tokenizer. The first part runs prompts of 512 tokens with and without the
first adapter in turns, less prompts of 2 tokens. The second part sends 16 requests of 64 tokens at once: without an
adapter, with the first one, and with all of them in turn. Both use one thread, so that other processes count little."""
import argparse
import json
import os
import resource
import subprocess
import sys
import threading
import time
import urllib.request

PORT = 18933


def used(command):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    run = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if run.returncode:
        sys.exit(run.stderr.decode())
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def prompt_cost(args, adapter):
    times = {}
    for n in (512, 2):
        ids = ",".join(str(1 + i % 4000) for i in range(n))
        command = [args.build + "/jitrun", args.model, "--prompt-ids", ids, "-n", "1", "--ignore-eos", "--temp", "0",
                   "--speculate", "off", "-t", "1", "-q"]
        times[n] = used(command + (["--lora", adapter] if adapter else []))
    return times[512] - times[2]


def ask(model, number, tokens):
    body = {"model": model, "prompt": "Once upon a time there was %d" % number, "max_tokens": tokens,
            "ignore_eos": True, "temperature": 0, "seed": number}
    request = urllib.request.Request("http://127.0.0.1:%d/v1/completions" % PORT, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=600) as answer:
        if json.load(answer)["usage"]["completion_tokens"] != tokens:
            sys.exit("an answer has too few tokens")


def batch_cost(server, names, tokens):
    def now():
        with open("/proc/%d/stat" % server.pid, encoding="ascii") as f:
            return int(f.read().rsplit(")", 1)[1].split()[11]) / os.sysconf("SC_CLK_TCK")

    threads = [threading.Thread(target=ask, args=(names[i % len(names)], i, tokens)) for i in range(16)]
    before = now()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return now() - before


def batches(args):
    command = [args.build + "/jitserve", args.model, "--alias", "plain", "--port", str(PORT), "--no-replay", "--quiet",
               "-t", "1", "--parallel", "16", "--speculate", "off", "--context", "256"]
    names = ["a%d" % i for i in range(len(args.adapter))]
    for name, path in zip(names, args.adapter):
        command += ["--lora", name + "=" + path]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        while True:
            try:
                urllib.request.urlopen("http://127.0.0.1:%d/health" % PORT, timeout=2).close()
                break
            except OSError:
                time.sleep(0.3)
        cases = (["plain"], names[:1], names)
        for case in cases:
            batch_cost(server, case, 8)
        for _ in range(args.rounds):
            plain, one, all_of_them = (batch_cost(server, case, 64) for case in cases)
            print("16 requests: without %.2f s, one adapter %.2f s, %d adapters %.2f s: %.3f of the speed of one" %
                  (plain, one, len(names), all_of_them, one / all_of_them))
        server.terminate()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("model")
    parser.add_argument("adapter", nargs="+")
    parser.add_argument("--rounds", type=int, default=4)
    args = parser.parse_args()
    prompt_cost(args, None), prompt_cost(args, args.adapter[0])
    for _ in range(args.rounds):
        plain, adapted = prompt_cost(args, None), prompt_cost(args, args.adapter[0])
        print("a prompt of 512 tokens: %.2f s, with an adapter %.2f s: %.3f" % (plain, adapted, adapted / plain))
    batches(args)


main()
