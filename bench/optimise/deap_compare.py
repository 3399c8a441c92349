#!/usr/bin/python3
"""bench/optimise/deap_compare.py - NSGA-II and NSGA-III of jitopt beside those of DEAP (Debian: python3-deap).

    bench/optimise/deap_compare.py --jitopt build/jitopt --seeds 5 zdt1 zdt2 dtlz2

Both have the same population, number of evaluations, crossover and mutation. What is compared is the volume that the
first front dominates below the reference: each program computes that of its own front, exactly. Processor time is that
of whole runs; jitopt's has its start.
"""
import argparse
import json
import random
import resource
import statistics
import subprocess

from deap import base, creator, tools
from deap.benchmarks import dtlz2, zdt1, zdt2, zdt3, zdt4, zdt6
from deap.benchmarks.tools import hypervolume

PROBLEMS = {
    "zdt1": (zdt1, 30, 2, 1.1),
    "zdt2": (zdt2, 30, 2, 1.1),
    "zdt3": (zdt3, 30, 2, 1.1),
    "zdt4": (zdt4, 10, 2, 1.1),
    "zdt6": (zdt6, 10, 2, 1.1),
    "dtlz2": (lambda x: dtlz2(x, 3), 12, 3, 2.0),
}


def deap_run(name, method, seed, evaluations):
    function, n, m, reference = PROBLEMS[name]
    low, high = [0.0] * n, [1.0] * n
    if name == "zdt4":
        low[1:], high[1:] = [-5.0] * (n - 1), [5.0] * (n - 1)
    random.seed(seed)
    weights = tuple([-1.0] * m)
    creator.create("Fitness", base.Fitness, weights=weights)
    creator.create("Individual", list, fitness=creator.Fitness)
    directions = tools.uniform_reference_points(m, 99 if m == 2 else 12)
    size = 100 if method == "nsga2" else len(directions) + (-len(directions)) % 4
    eta, rate = (15.0, 0.9) if method == "nsga2" else (30.0, 1.0)
    select = tools.selNSGA2 if method == "nsga2" else tools.selNSGA3WithMemory(directions)

    def judged(population):
        for one in population:
            if not one.fitness.valid:
                one.fitness.values = function(one)
        return population

    population = judged(
        [creator.Individual(random.uniform(a, b) for a, b in zip(low, high)) for _ in range(size)]
    )
    population = select(population, size)
    done = size
    while done + size <= evaluations:
        if method == "nsga2":
            parents = tools.selTournamentDCD(population, size)
        else:
            parents = random.sample(population, size)
        children = [creator.Individual(one) for one in parents]
        for a, b in zip(children[::2], children[1::2]):
            if random.random() <= rate:
                tools.cxSimulatedBinaryBounded(a, b, eta, low, high)
            for one in (a, b):
                tools.mutPolynomialBounded(one, 20.0, low, high, 1.0 / n)
        population = select(population + judged(children), size)
        done += size
    front = tools.sortNondominated(population, size, first_front_only=True)[0]
    return hypervolume(front, [reference] * m)


def jitopt_run(program, name, method, seed, evaluations):
    _, n, m, reference = PROBLEMS[name]
    command = [program, "problem", name, "-m", method, "-e", str(evaluations), "--seed", str(seed), "--json"]
    command += ["-n", str(n), "--objectives", str(m), "--reference", str(reference)]
    if method == "nsga2":
        command += ["-p", "100"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["volume"]


def used(who):
    u = resource.getrusage(who)
    return u.ru_utime + u.ru_stime


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--jitopt", default="build/jitopt")
    p.add_argument("--seeds", type=int, default=5)
    p.add_argument("--evaluations", type=int, default=25000)
    p.add_argument("--methods", default="nsga2,nsga3")
    p.add_argument("problems", nargs="+", choices=list(PROBLEMS))
    a = p.parse_args()
    for name in a.problems:
        for method in a.methods.split(","):
            ours, theirs = [], []
            time_ours = time_theirs = 0.0
            for seed in range(1, a.seeds + 1):
                before = used(resource.RUSAGE_CHILDREN)
                ours.append(jitopt_run(a.jitopt, name, method, seed, a.evaluations))
                time_ours += used(resource.RUSAGE_CHILDREN) - before
                before = used(resource.RUSAGE_SELF)
                theirs.append(deap_run(name, method, seed, a.evaluations))
                time_theirs += used(resource.RUSAGE_SELF) - before
            ratio = time_theirs / max(time_ours, 1e-9)
            print(
                f"{name} {method}: volume {statistics.median(ours):.5f} ({min(ours):.5f} to {max(ours):.5f}),"
                f" DEAP {statistics.median(theirs):.5f} ({min(theirs):.5f} to {max(theirs):.5f});"
                f" DEAP takes {ratio:.0f} times the processor time",
                flush=True,
            )


main()
