#!/usr/bin/env python3
"""tests/sweep/sweep.py - models of random configurations, computed by jitrun and by transformers.

  tests/sweep/sweep.py --jitrun build/jitrun [--families NAME,...] [--number N] [--seed S] [--jobs N] [--seconds N]
                       [--out FILE] [--only FAMILY:NUMBER] [--keep DIR] [--bad DIR] [--list]
  tests/sweep/sweep.py --jitrun build/jitrun --replay DIR

For each case a configuration is drawn (families.py), some of its fields are left out or become null, 0, 1 or the
class's default, and transformers makes a model of it with random weights, saves it, and computes its logits in float32
(reference.py). jitrun then opens the folder and continues the same prompts of token ids; all of its log probabilities
are compared with those of transformers at the same place, and each token must be the likeliest. Nothing is fetched.

Verdicts of a prompt: equal; differ, with how much of the largest logit; unstable, where transformers itself differs as
much between float32 and float64; no numbers, where it computes none; refused, with jitrun's sentence; died, where a
signal ended it. A case that transformers does not build is not counted. The exit status is 1 when anything differed or
died, 2 when the tool itself failed; refusals are listed and do not count. Needs torch and transformers: CONTRIBUTING.md
says when to run it. What --bad has kept, models that were not all equal with what transformers computes, --replay tries
again without these.
"""
import argparse
import collections
import json
import math
import multiprocessing
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from families import FAMILIES  # noqa: E402

GENERATED = 4
TOLERANCE = 5e-5     # of the largest logit
SHOWN = 6            # runs of a family that differ and are printed; --out has all
LONG = 4200          # past the windows that classes have by default
options = None


def prompts_of(r, vocab, config):
    """Token ids of several lengths: one, few, some dozen, and now and then more than any usual window."""
    lengths = [1, r.randint(2, 9), r.randint(20, 75)]
    if r.random() < 0.3:
        lengths.append(r.randint(90, 200))
    window = config.get("sliding_window", 0)
    if r.random() < (0.25 if window is None or window == 4096 or "sliding_window" not in config else 0.01) / 4:
        lengths.append(LONG + r.randint(0, 100))
    original = config.get("original_max_position_embeddings")
    scaling = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if original and "longrope" in (scaling.get("type"), scaling.get("rope_type")):
        # The factors for long contexts hold for a whole session here; in transformers from the length on.
        lengths = [n for n in lengths if not n <= original < n + GENERATED]
    return [[r.randrange(vocab) for _ in range(n)] for n in lengths]


def run_jitrun(folder, ids, vocab):
    """(the run's object, None) or (None, the last sentence of standard error with the exit status)."""
    command = [options.jitrun, folder, "--prompt-ids", ",".join(map(str, ids)), "-n", str(GENERATED),
               "-c", str(len(ids) + GENERATED), "--temp", "0", "--repeat-penalty", "1", "--ignore-eos", "-t", "1",
               "--kv-type", "f32", "--json", "--logprobs", str(vocab), "-q"] + options.option
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    if done.returncode == 0:
        return json.loads(done.stdout.splitlines()[-1]), None
    lines = done.stderr.strip().splitlines() or [""]
    return None, (done.returncode, lines[-1].replace(folder, "DIR"))


def log_softmax(row):
    most = max(row)
    total = most + math.log(sum(math.exp(x - most) for x in row))
    return [x - total for x in row]


def worst_of(rows, run):
    """The largest difference of a log probability, as a part of the largest logit; and whether ids are the likeliest.
    """
    worst, right = 0.0, True
    for row, token in zip(rows, run["logprobs"]):
        want = log_softmax(row)
        got = {t["id"]: t["logprob"] for t in token["top"]}
        if len(got) != len(want):
            return math.inf, False
        largest = max(1.0, max(map(abs, row)))
        worst = max(worst, max(abs(want[i] - got[i]) for i in got) / largest)
        right = right and max(want) - want[token["id"]] <= 2 * TOLERANCE * largest
    return worst, right


def keep_bad(reference, folder, out, prompts):
    """The model of a case that is not all equal, and what its answers are."""
    if not options.bad or all(run["verdict"] in ("equal", "unstable") for run in out["runs"]):
        return
    to = os.path.join(options.bad, out["case"].replace(":", "-"))
    shutil.copytree(folder, to)
    answers = []
    for ids in prompts[:3]:
        text, rows = list(ids), []
        for _ in range(GENERATED):
            rows.append(reference.logits(text, 1)[0])
            text.append(max(range(len(rows[-1])), key=rows[-1].__getitem__))
        answers.append({"ids": ids, "continued": text[len(ids):], "rows": rows})
    with open(os.path.join(to, "reference.json"), "w") as f:
        json.dump({"case": out["case"], "vocab": reference.vocab, "answers": answers}, f)


def replay(folder):
    """The verdict of each kept prompt; behind a token that is chosen otherwise nothing is compared."""
    with open(os.path.join(folder, "reference.json")) as f:
        kept = json.load(f)
    out = {"case": kept["case"], "family": kept["case"].split(":")[0], "runs": [], "varied": []}
    with open(os.path.join(folder, "config.json")) as f:
        out["config"] = json.load(f)
    for answer in kept["answers"]:
        run, failed = run_jitrun(folder, answer["ids"], kept["vocab"])
        more = {"length": len(answer["ids"])}
        if failed:
            more.update(verdict="died" if failed[0] < 0 or failed[0] > 127 else "refused", says=failed[1])
            out["runs"].append(more)
            continue
        same = 1
        while same < GENERATED and run["ids"][:same] == answer["continued"][:same]:
            same += 1
        worst, right = worst_of(answer["rows"][:same], dict(run, logprobs=run["logprobs"][:same]))
        out["runs"].append(dict(more, by=worst, verdict="equal" if worst <= TOLERANCE and right else "differ"))
    return out


def judge(reference, folder, ids):
    run, failed = run_jitrun(folder, ids, reference.vocab)
    if failed:
        return ("died" if failed[0] < 0 or failed[0] > 127 else "refused"), {"says": failed[1]}
    if len(run["ids"]) != GENERATED:
        return "differ", {"by": math.inf, "stopped": run["stopped"]}
    text = ids + run["ids"][:-1]
    rows = reference.logits(text, GENERATED)
    if not all(math.isfinite(x) for row in rows for x in row):
        return "no numbers", {}
    worst, right = worst_of(rows, run)
    if worst <= TOLERANCE and right:
        return "equal", {"by": worst}
    try:
        exact = reference.logits(text, GENERATED, double=True)
    except Exception:  # a class that computes in float32 alone
        return "differ", {"by": worst}
    own = max(abs(a - b) for x, y in zip(rows, exact) for a, b in zip(log_softmax(x), log_softmax(y)))
    own /= max(1.0, max(abs(x) for row in exact for x in row))
    if own > TOLERANCE / 4 or worst_of(exact, run)[0] <= TOLERANCE:
        return "unstable", {"by": worst, "own": own}
    return "differ", {"by": worst, "own": own}


def one_case(case):
    """What came of a case: a dictionary for the report."""
    from reference import Reference  # torch is loaded by the workers alone

    family, number = case
    r = random.Random(f"{options.seed}:{family}:{number}")
    fields = dict(FAMILIES[family](r), model_type=family)
    folder = options.keep or tempfile.mkdtemp(prefix="sweep-", dir=options.tmp)
    out = {"case": f"{family}:{number}", "family": family, "runs": []}
    try:
        os.makedirs(folder, exist_ok=True)
        try:
            reference = Reference(folder, fields, r)
            rows = reference.logits([1, 3], 1)
        except Exception as e:  # whatever a class says of what it does not take
            return dict(out, unbuilt=f"{type(e).__name__}: {e}"[:300])
        out.update(varied=reference.varied, whole=reference.whole, rewritten=reference.rewritten,
                   config=reference.config)
        if not all(map(math.isfinite, rows[0])):
            return dict(out, unbuilt="transformers computes no numbers")
        prompts = prompts_of(r, reference.vocab, reference.config)
        for ids in prompts:
            verdict, more = judge(reference, folder, ids)
            out["runs"].append(dict(more, length=len(ids), verdict=verdict))
            if verdict in ("refused", "died"):
                break
        keep_bad(reference, folder, out, prompts)
        return out
    except Exception as e:
        return dict(out, failed=f"{type(e).__name__}: {e}"[:500])
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)


def report(results):
    """A table by family, then what differed, and refusals by their sentence. True: nothing differed or died."""
    verdicts = ("equal", "differ", "died", "unstable", "no numbers", "refused")
    table = collections.defaultdict(collections.Counter)
    refused = collections.defaultdict(list)
    for x in results:
        count = table[x["family"]]
        count["cases"] += 1
        count["unbuilt"] += "unbuilt" in x
        count["failed"] += "failed" in x
        for run in x["runs"]:
            count[run["verdict"]] += 1
            if run["verdict"] == "refused":
                refused[re.sub(r"\d+(\.\d+)?", "#", run["says"])].append((x["case"], run["says"]))
    columns = ("cases", "unbuilt", "failed") + verdicts
    print(f"{'family':18}" + "".join(f"{c:>11}" for c in columns))
    total = collections.Counter()
    for family in sorted(table):
        print(f"{family:18}" + "".join(f"{table[family][c]:11}" for c in columns))
        total.update(table[family])
    print(f"{'all':18}" + "".join(f"{total[c]:11}" for c in columns))
    shown = collections.Counter()
    for x in results:
        for run in x["runs"]:
            shown[x["family"]] += run["verdict"] in ("differ", "died")
            if run["verdict"] in ("differ", "died") and shown[x["family"]] <= SHOWN:
                print(f"\n{run['verdict']} {x['case']}, {run['length']} ids, by {run.get('by', 0):.3g}: "
                      f"{run.get('says', '')} varied: {x['varied']}\n  {json.dumps(x['config'])}")
        if "failed" in x:
            print(f"\nfailed {x['case']}: {x['failed']}")
    print()
    for cases in sorted(refused.values(), key=len, reverse=True):
        print(f"refused {len(cases)}, first {cases[0][0]}: {cases[0][1]}")
    return total["differ"] + total["died"] == 0, total["failed"] == 0


def main():
    global options
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jitrun", default="build/jitrun", help="the program to judge")
    parser.add_argument("--families", default="", help="names with commas between; all where none is said")
    parser.add_argument("--number", type=int, default=8, help="cases of each family")
    parser.add_argument("--first", type=int, default=0, help="the number of the first case of each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=0, help="begin no case after so long; 0: all cases")
    parser.add_argument("--out", help="a line of JSON for each case goes to this file")
    parser.add_argument("--only", help="one case, FAMILY:NUMBER, with the seed it had")
    parser.add_argument("--keep", help="with --only: the folder that its model is left in")
    parser.add_argument("--bad", help="a folder for the models of cases that are not all equal")
    parser.add_argument("--replay", help="try again what --bad kept in this folder; needs no torch")
    parser.add_argument("--option", action="append", default=[], help="a further argument of jitrun")
    parser.add_argument("--tmp", help="where folders of models are made for a moment")
    parser.add_argument("--list", action="store_true", help="print the names of the families")
    options = parser.parse_args()
    if options.list:
        print("\n".join(FAMILIES))
        return 0
    if options.replay:
        folders = sorted(os.path.join(options.replay, n) for n in os.listdir(options.replay))
        with multiprocessing.get_context("fork").Pool(options.jobs) as pool:
            equal, _ = report(pool.map(replay, [n for n in folders if os.path.exists(n + "/reference.json")]))
        return 0 if equal else 1
    names = [n for n in options.families.split(",") if n] or list(FAMILIES)
    unknown = [n for n in names if n not in FAMILIES]
    if unknown or (options.keep and not options.only) or not os.access(options.jitrun, os.X_OK):
        parser.error(f"no such family: {', '.join(unknown)}" if unknown else "--keep needs --only"
                     if options.keep and not options.only else f"{options.jitrun} is no program")
    cases = [(n, i) for i in range(options.first, options.first + options.number) for n in names]
    if options.only:
        cases = [(options.only.split(":")[0], int(options.only.split(":")[1]))]
    from reference import VERSIONS

    print(VERSIONS, flush=True)
    end = time.monotonic() + options.seconds if options.seconds else math.inf
    results, out = [], open(options.out, "w") if options.out else None
    with multiprocessing.get_context("fork").Pool(min(options.jobs, len(cases))) as pool:
        for x in pool.imap_unordered(one_case, cases, chunksize=1):
            results.append(x)
            if out:
                out.write(json.dumps(x) + "\n")
                out.flush()
            if time.monotonic() > end:
                print(f"stopped behind {len(results)} of {len(cases)} cases")
                pool.terminate()
                break
    equal, worked = report(results)
    return 0 if equal and worked else 1 if not equal else 2


if __name__ == "__main__":
    sys.exit(main())
