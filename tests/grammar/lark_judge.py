#!/usr/bin/env python3
"""lark_judge.py PROGRAM FROM N - grammars drawn at random, and texts: what PROGRAM (t_lark --judge) takes by them, beside
what Lark takes (Earley, all ways to cut a text into terminals), and a plain chart over the rules that Lark has read.

Python's expressions give one match at a place, Lark asks them for the beginnings of that as well, and a grammar means
all texts of a terminal. So the chart is made twice: with the beginnings that Python's `match` gives, and with all that
`fullmatch` takes. What Lark takes is to be taken, and so is all of the first chart, and nothing that the second one does
not take. Only terminals with a repetition of as few as possible are told apart by them.
"""
import json
import random
import re
import subprocess
import sys

import lark

PLAIN = ["a", "b", "ab", "c", "1", "+", ",", "(", "é", "aa", "x", "\\n", "\\\\", "\\\"", "\\x61", "\\u00e9", "\\d"]
EXPRESSIONS = ["/[ab]/", "/a+/", "/[^a]/", "/ab?/", "/(a|ab)c?/", "/\\d+/", "/a{2}/", "/a{1,2}b/", "/[a-c]{,2}c/", "/x|y/i",
               "/(?:ab)+/", "/\\w/", "/[\\w.]+/", "/\\s/", "/a.b/s", "/./", "/a # c\n b/x", "/(?i:A)b/", "/[]a]/", "/\\//",
               "/[\\d+]/", "/\\W/", "/(?P<n>a)b/", "/[é-ü]/", "/é+/i", "/\\+/", "/\\x62/", "/[^\\s\\d]/", "/(?i)AB/"]
LAZY = ["/a.*?b/", "/\".*?\"/", "/a+?b*/", "/a??b/", "/(ab)*?a/", "/.+?b/", "/a{1,3}?/", "/a.*?bc*/", "/\\(.*?\\)/",
        "/a.*?b.*?c/", "/[ab]*?ab/"]
COMMON = ["INT", "WORD", "CNAME", "WS", "NUMBER", "SIGNED_INT", "LETTER", "NEWLINE", "DIGIT", "HEXDIGIT", "DECIMAL",
          "FLOAT", "SIGNED_FLOAT", "SIGNED_NUMBER", "WS_INLINE", "SH_COMMENT"]
FEW = re.compile(r"[*+?}]\?")  # a repetition of as few as possible
RULES_MOST, PARSED_MOST = 120, 8  # beyond, Lark may take minutes
LETTERS = "aab bcc1+,(xé\n.\\\"-0#X2)eE"


class Draw(random.Random):
    def some(self, percent):
        return self.randrange(100) < percent


class Maker:
    """One grammar, and texts that it may take."""

    def __init__(self, seed):
        self.d = Draw(seed)
        self.rules = ["start"] + self.d.sample(["r", "s", "t", "u_1"], self.d.randrange(4))
        self.terminals = self.d.sample(["A", "B", "_C"], self.d.randrange(4))
        self.template = self.d.some(20)
        self.lazy = self.d.some(25)
        self.imports = self.d.sample(COMMON, self.d.randrange(3)) if self.d.some(30) else []
        self.bodies = {}

    def literal(self):
        d = self.d
        if d.some(45):
            return '"%s"' % d.choice(PLAIN) + ("i" if d.some(15) else "")
        if d.some(15):
            return d.choice(['"a".."c"', '"0".."9"', '"é".."ü"'])
        return d.choice(LAZY) if self.lazy and d.some(30) else d.choice(EXPRESSIONS)

    def atom(self, depth, names, in_terminal):
        d = self.d
        x = d.randrange(100)
        if depth and x < 18:
            return "(%s)" % self.alternatives(depth - 1, names, in_terminal)
        if depth and x < 26:
            return "[%s]" % self.alternatives(depth - 1, names, in_terminal)
        if x < 66 and names:
            name = d.choice(names)
            return name
        if not in_terminal and self.template and x < 74:
            return "pair{%s, %s}" % (d.choice(names + ['"a"', '/b+/']), d.choice(names + ['","', '"x"']))
        return self.literal()

    def item(self, depth, names, in_terminal):
        d, one = self.d, self.atom(depth, names, in_terminal)
        x = d.randrange(100)
        if x < 10:
            return one + d.choice("?*+")
        if x < 15:
            return one + "~%d" % d.randrange(1, 4)
        if x < 19:
            low = d.randrange(3)
            return one + "~%d..%d" % (low, low + d.randrange(3))
        return one

    def alternatives(self, depth, names, in_terminal):
        d = self.d
        return " | ".join(" ".join(self.item(depth, names, in_terminal)
                                   for _ in range(d.randrange(0 if not in_terminal and d.some(20) else 1, 4)))
                          for _ in range(d.randrange(1, 4)))

    def grammar(self):
        d, lines = self.d, []
        terminals = self.terminals + self.imports
        for name in self.rules:
            mark = d.choice(["", "", "", "?", "!"])
            priority = ".%d" % d.randrange(3) if d.some(10) else ""
            body = self.alternatives(2, self.rules + terminals * 2, False)
            if d.some(15):
                body = body.replace(" | ", "\n    | ")
            if d.some(10):
                body += " -> other"
            lines.append("%s%s%s: %s%s" % (mark, name, priority, body, " // that" if d.some(10) else ""))
        for i, name in enumerate(self.terminals):
            lines.append("%s%s: %s" % (name, ".2" if d.some(10) else "",
                                       self.alternatives(1, self.terminals[i + 1:] + self.imports, True)))
        if self.template:
            lines.append("pair{x, y}: x y | x \"-\" pair{y, x}" if d.some(50) else "pair{x, y}: x (y x)*")
        d.shuffle(lines)
        for name in self.imports:
            lines.insert(d.randrange(len(lines) + 1), "%%import common.%s" % name)
        if d.some(40):
            lines.append("%%ignore %s" % d.choice(['" "', '/ +/', '","', '/#[^\\n]*/', '"\\n" | " "'] + self.terminals))
        return "\n".join(lines) + "\n"

    def texts(self, samples):
        d, out = self.d, {""}
        for _ in range(25):
            out.add("".join(d.choice(LETTERS) for _ in range(d.randrange(1, 7))))
        for text in samples:
            out.add(text)
            for _ in range(2):
                i = d.randrange(len(text) + 1)
                out.add(text[:i] + d.choice(LETTERS) + text[i:] if d.some(60) else text[:i] + text[i + 1:])
        return sorted(t for t in out if len(t) <= 14 and "\0" not in t)


class Chart:
    """All that the rules which Lark read take, with a test for the text of a terminal."""

    def __init__(self, parser, whole):
        self.rules = {}
        for r in parser.rules:
            self.rules.setdefault(r.origin.name, []).append([s for s in r.expansion])
        self.expressions = {t.name: re.compile(t.pattern.to_regexp()) for t in parser.terminals}
        self.ignored = parser.ignore_tokens
        self.whole = whole
        self.known = {}

    def is_text(self, name, text):
        key = name, text
        if key not in self.known:
            e = self.expressions[name]
            found = e.fullmatch(text) if self.whole or not FEW.search(e.pattern) else e.match(text)
            self.known[key] = bool(text) and found is not None and found.end() == len(text)
        return self.known[key]

    def takes(self, text):
        n = len(text)
        skips = [[j for j in range(i + 1, n + 1) if any(self.is_text(t, text[i:j]) for t in self.ignored)]
                 for i in range(n + 1)]
        past = [set() for _ in range(n + 1)]
        for i in range(n, -1, -1):
            past[i] = {i}.union(*[past[j] for j in skips[i]])
        ends = {}

        def terminal(name, i):
            if (name, i) not in ends:
                ends[name, i] = set().union(*[past[j] for j in range(i + 1, n + 1) if self.is_text(name, text[i:j])])
            return ends[name, i]

        found = {(name, i): set() for name in self.rules for i in range(n + 1)}
        changed = True
        while changed:
            changed = False
            for (name, i), have in found.items():
                for expansion in self.rules[name]:
                    at = {i}
                    for s in expansion:
                        at = set().union(*[terminal(s.name, k) if s.is_term else found.get((s.name, k), set())
                                           for k in at])
                    if not at <= have:
                        have |= at
                        changed = True
        return any(n in found["start", i] for i in past[0])


def sample(parser, d, tries=30):
    """Texts of the rules, by drawing."""
    rules = {}
    for r in parser.rules:
        rules.setdefault(r.origin.name, []).append(r.expansion)
    expressions = {t.name: re.compile(t.pattern.to_regexp()) for t in parser.terminals}
    words = {}
    for name, e in expressions.items():
        words[name] = [w for w in ("".join(d.choice(LETTERS + "ab") for _ in range(d.randrange(1, 6)))
                                   for _ in range(600)) if e.fullmatch(w)][:20]
        for w in ("a", "b", "ab", "aa", "x", "1", "é", "\"a\"", "(a)", "abc"):
            if e.fullmatch(w):
                words[name].append(w)

    def make(name, depth):
        if depth > 12:
            raise RecursionError
        out = ""
        for s in d.choice(rules[name]):
            if s.is_term and not words[s.name]:
                raise RecursionError
            out += d.choice(words[s.name]) if s.is_term else make(s.name, depth + 1)
            if parser.ignore_tokens and d.some(20) and words[parser.ignore_tokens[0]]:
                out += d.choice(words[parser.ignore_tokens[0]])
        return out

    for _ in range(tries):
        try:
            yield make("start", 0)
        except RecursionError:
            pass


def main():
    program, first, count = sys.argv[1].split(), int(sys.argv[2]), int(sys.argv[3])
    p = subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    grammars = texts = taken = refused = wrong = beyond = large = 0
    for seed in range(first, first + count):
        maker = Maker(seed)
        grammar = maker.grammar()
        try:
            parser = lark.Lark(grammar, parser="earley", lexer="dynamic_complete", ambiguity="forest")
            if len(parser.rules) > RULES_MOST:
                raise ValueError("too many rules for Lark to go through them soon")
            if any(re.compile(t.pattern.to_regexp()).fullmatch("") for t in parser.terminals):
                raise ValueError("a terminal may be empty")
        except Exception as e:  # the grammar is none, or one that Lark does not do
            refused += 1
            continue
        some = maker.texts([t for t in sample(parser, maker.d) if len(t) <= 14])
        p.stdin.write(json.dumps({"grammar": grammar, "texts": some}) + "\n")
        p.stdin.flush()
        said = json.loads(p.stdout.readline())
        chart = Chart(parser, True)
        least = Chart(parser, False) if maker.lazy else chart
        if "that no text is right by" in said.get("error", ""):
            said = {"takes": [0] * len(some)}
        elif "more work" in said.get("error", "") or "too many ways" in said.get("error", "") or "too large" in said.get("error", ""):
            large += 1
            continue
        if "error" in said:
            print(f"seed {seed}: refused: {said['error']}\n{grammar}")
            wrong += 1
            continue
        grammars += 1
        for text, takes in zip(some, said["takes"]):
            if takes > 1:  # a budget was not enough
                large += 1
                break
            texts += 1
            taken += takes
            if not least.takes(text) <= bool(takes) <= chart.takes(text):
                print(f"seed {seed}: {text!r} is {'taken' if takes else 'not taken'}\n{grammar}")
                wrong += 1
                break
            if not text or len(text) > PARSED_MOST:
                continue
            try:
                parser.parse(text)
                if not takes:
                    print(f"seed {seed}: Lark takes {text!r}\n{grammar}")
                    wrong += 1
                    break
            except lark.exceptions.UnexpectedInput:
                beyond += takes
    p.stdin.close()
    p.wait()
    print(f"# {grammars} grammars, {texts} texts, {taken} of them taken, {beyond} of these not by Python's choice of a match; "
          f"{refused} grammars are none for Lark, {large} take too much work; {wrong} wrong")
    sys.exit(wrong > 0 or grammars < count // 8 or taken * 20 < texts)


if __name__ == "__main__":
    main()
