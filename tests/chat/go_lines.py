#!/usr/bin/env python3
"""Lines for go_cases and go_witness: templates in Go's language with conversations, drawn at random.

    go_lines.py lines SEED COUNT [FOLDER]   prints lines; FOLDER: templates in files are drawn, too
    go_lines.py compare LINES OURS GOS      says where the answers differ, and how many lines were the same
"""
import json
import os
import random
import re
import sys

# ---- templates: the ways in which published ones are written

FAMILIES = [
    # turns, with a system message, a prompt and a response
    "{{ if .System }}<|im_start|>system\n{{ .System }}<|im_end|>\n{{ end }}{{ if .Prompt }}<|im_start|>user\n"
    "{{ .Prompt }}<|im_end|>\n{{ end }}<|im_start|>assistant\n{{ .Response }}<|im_end|>\n",
    "{{ .System }}\n\n{{- if .Prompt }}\nQ: {{ .Prompt }}\n{{ end }}A: ",
    "{{- if .Suffix }}<PRE> {{ .Prompt }} <SUF>{{ .Suffix }} <MID>{{ else }}[INST]{{ with .System }} <<SYS>>{{ . }}"
    "<</SYS>>{{ end }}{{ .Prompt }} [/INST] {{ .Response }}</s><s>{{ end }}",
    "{{ if and .System (not .Suffix) }}{{ .System }}: {{ end }}{{ .Prompt }}{{ if .Response }} = {{ .Response }} !"
    "{{ else }} ?{{ end }}",
    # messages, the last of which is answered
    "{{- range $i, $_ := .Messages }}\n{{- $last := eq (len (slice $.Messages $i)) 1 }}<|{{ .Role }}|>\n{{ .Content }}"
    "{{ if not (and $last (eq .Role \"assistant\")) }}<|end|>\n{{ end }}{{ if and $last (ne .Role \"assistant\") }}"
    "<|assistant|>\n{{ end }}{{ end }}",
    # with tools, calls and reasoning
    """{{- $lastUser := -1 -}}
{{- range $i, $m := .Messages -}}{{- if eq $m.Role "user" }}{{ $lastUser = $i }}{{ end -}}{{- end -}}
{{- if or .System .Tools }}<|im_start|>system
{{ if .System }}{{ .System }}{{ end }}
{{- if .Tools }}

# Tools
<tools>
{{- range .Tools }}
{"type": "function", "function": {{ .Function }}}
{{- end }}
</tools>
{{- end -}}
<|im_end|>
{{ end }}
{{- range $i, $m := .Messages }}
{{- $last := eq (len (slice $.Messages $i)) 1 -}}
{{- if eq .Role "user" }}<|im_start|>user
{{ .Content }}
{{- if and $.IsThinkSet (eq $i $lastUser) }}
{{- if $.Think }} /think{{ else }} /no_think{{ end -}}
{{- end }}<|im_end|>
{{ else if eq .Role "assistant" }}<|im_start|>assistant
{{ if (and $.IsThinkSet (and .Thinking (or $last (gt $i $lastUser)))) -}}
<think>{{ .Thinking }}</think>
{{ end -}}
{{ if .Content }}{{ .Content }}
{{- else if .ToolCalls }}<tool_call>
{{ range .ToolCalls }}{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}
{{ end }}</tool_call>
{{- end }}{{ if not $last }}<|im_end|>
{{ end }}
{{- else if eq .Role "tool" }}<|im_start|>user
<tool_response>
{{ .ToolName }}: {{ .Content }} ({{ .ToolCallID }})
</tool_response><|im_end|>
{{ end }}
{{- if and (ne .Role "assistant") $last }}<|im_start|>assistant
{{ if and $.IsThinkSet (not $.Think) -}}
<think>

</think>

{{ end -}}
{{ end }}
{{- end }}""",
    # tools as types, with the date and the level of reasoning
    """<|start|>system<|message|>Date: {{ currentDate }}, before it {{ yesterdayDate }}
{{- if and .IsThinkSet .Think (ne .ThinkLevel "") }}
Reasoning: {{ .ThinkLevel }}
{{- else if or (not .IsThinkSet) (and .IsThinkSet .Think) }}
Reasoning: medium
{{- end }}<|end|>
{{- $known := "" }}
{{- range .Messages }}{{ range .ToolCalls }}{{ if ne .Function.Name "" }}{{ $known = .Function.Name }}{{ end }}{{ end }}{{ end }}
{{- if .Tools }}<|start|>developer<|message|>namespace functions {
{{- range .Tools }}
{{- if .Function.Description }}
// {{ .Function.Description }}
{{- end }}
{{- if and .Function.Parameters.Properties (gt (len .Function.Parameters.Properties) 0) }}
type {{ .Function.Name }} = (_: {
{{- range $name, $prop := .Function.Parameters.Properties }}
{{- if $prop.Description }}
  // {{ $prop.Description }}
{{- end }}
  {{ $name }}: {{ if gt (len $prop.Type) 1 }}{{ range $i, $t := $prop.Type }}{{ if $i }} | {{ end }}{{ $t }}{{ end }}
{{- else }}{{ index $prop.Type 0 }}{{ end }} {{ toTypeScriptType $prop }} {{ $prop.ToTypeScriptType }},
{{- end }}
}) => any;
{{- else }}
type {{ .Function.Name }} = () => any;
{{- end }}
{{- end }}
} // {{ $known }}<|end|>
{{- end }}
{{- range .Messages }}
{{- if eq .Role "user" }}<|start|>user<|message|>{{ .Content }}<|end|>
{{- else if eq .Role "assistant" }}
{{- if .Thinking }}<|start|>assistant<|channel|>analysis<|message|>{{ .Thinking }}<|end|>{{ end }}
{{- range .ToolCalls }}<|start|>assistant to={{ .Function.Name }}<|message|>{{ json .Function.Arguments }}<|call|>{{ end }}
{{- if .Content }}<|start|>assistant<|message|>{{ .Content }}<|end|>{{ end }}
{{- else if or (eq .Role "tool" "function") }}<|start|>{{ .ToolName }} to=assistant<|message|>{{ .Content }}<|end|>
{{- end }}
{{- end }}<|start|>assistant""",
    # Mistral's way: tools before the last message of the user, results as JSON
    """{{- range $index, $_ := .Messages }}
{{- if eq .Role "user" }}
{{- if and (le (len (slice $.Messages $index)) 2) $.Tools }}[AVAILABLE_TOOLS] {{ $.Tools }}[/AVAILABLE_TOOLS]
{{- end }}[INST] {{ if and $.System (eq (len (slice $.Messages $index)) 1) }}{{ $.System }}

{{ end }}{{ .Content }}[/INST]
{{- else if eq .Role "assistant" }}
{{- if .Content }} {{ .Content }}
{{- else if .ToolCalls }}[TOOL_CALLS] [
{{- range $n, $call := .ToolCalls }}{{ if $n }}, {{ end }}{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}, "id": {{ json .ID }}}
{{- end }}]
{{- end }}</s>
{{- else if eq .Role "tool" }}[TOOL_RESULTS] {"content": {{ .Content }}}[/TOOL_RESULTS]
{{- end }}
{{- end }}""",
    # templates in templates, arguments one by one
    """{{- define "arguments" }}{{ range $k, $v := . }}<arg name="{{ $k }}">{{ $v }}</arg>{{ else }}none{{ end }}{{ end -}}
{{- define "call" }}<call {{ .Function.Name }} #{{ .Function.Index }}>{{ template "arguments" .Function.Arguments }}</call>{{ end -}}
{{ block "head" . }}{{ with .System }}S={{ . }}{{ else }}no system{{ end }}{{ end }}
{{- range .Messages }}{{ if eq .Role "system" }}{{ continue }}{{ end }}
{{ printf "%-9s|%q" .Role .Content }}{{ range .ToolCalls }}{{ template "call" . }}{{ end }}
{{- if and (eq .Role "tool") (eq .Content "stop") }}{{ break }}{{ end }}{{ end }}
{{ json .Messages }}
{{- with $x := .Tools }} {{ len $x }} {{ (index $x 0).Function.Name }} {{ json (index $x 0) }}{{ end }}""",
]

# ---- templates at random

VALUES = [".System", ".Messages", ".Tools", ".Think", ".Nope", "$", ".", "(index .Messages 0)", "(index .Messages 0).Role",
          "(index .Messages 0).ToolCalls", "1", "-3", "2.5", "1e6", "'a'", "0x1F", "1_000", '"text"', '"q\\"\\t\\u00e9"', "`raw`",
          "true", "false", "nil", "(len .Messages)", "(len .System)", "(slice .System 1)", "(slice .Messages 1)",
          "(index .Tools 0).Function.Parameters", "(index .Tools 0).Function.Parameters.Properties", "(index .Tools 0)",
          "(index .Tools 0).Function.Parameters.Required", "(print .System 1 2)", "(index .System 0)", "$.Response", "(.Nope)",
          "(index .Tools 0).Function.Parameters.Properties.a.Type", "(index .Tools 0).Function.Parameters.Properties.a",
          "(index .Tools 0).Function.Parameters.Properties.o.Properties.Len", "(index .Messages 0).Content",
          "(index .Tools 0).Function.Parameters.Properties.o.Properties.ToMap", "(not .Think)", "(json .System)", "$x", "$y",
          "(index .Messages 1).ToolCalls", "(index (index .Messages 1).ToolCalls 0).Function.Arguments", "(.Tools.String)",
          "(index (index .Messages 1).ToolCalls 0).Function.Arguments.a", "currentDate", "(and .Nope .System)",
          "(or .Nope .System 1)", "(index (index .Messages 1).ToolCalls 0).Function.Arguments.nope", ".ThinkLevel"]
VERBS = ["%v", "%s", "%d", "%q", "%x", "%X", "%5v|", "%-8s|", "%05d", "%+d", "%.2s", "%6.2f", "%e", "%g", "%t", "%c", "%U", "%%",
         "%+v", "%T", "%o", "%#x", "% d", "%*d", "%z", "%.3d", "%b", "%G", "%+q", "%08.3f", "%", "%3c|", "%-5t|"]


def expression(r, depth):
    if depth == 0 or r.random() < .4:
        return r.choice(VALUES)
    name = r.choice(["eq", "ne", "lt", "le", "gt", "ge", "and", "or", "not", "len", "index", "slice", "print", "println", "printf",
                     "json", "html", "js", "urlquery", "toTypeScriptType", "pipe"])
    one = lambda: expression(r, depth - 1)
    if name == "pipe":
        return "(%s | %s)" % (one(), r.choice(["json", "len", "print", "html", "not", "printf \"%v\"", "js", "urlquery", "eq 1"]))
    if name == "printf":
        form = "".join(r.choice(VERBS) + r.choice(["", " ", "é"]) for _ in range(r.randint(0, 3)))
        return "(printf %s %s)" % (json.dumps(form, ensure_ascii=False), " ".join(one() for _ in range(r.randint(0, 3))))
    count = {"not": 1, "len": 1, "json": 1, "toTypeScriptType": 1}.get(name, r.randint(1, 3) if r.random() < .8 else 2)
    if name in ("lt", "le", "gt", "ge", "ne"):
        count = 2
    return "(%s %s)" % (name, " ".join(one() for _ in range(count)))


def bare(text):
    return text[1:-1] if text.startswith("(") and text.endswith(")") and text.count("(") == 1 else text


def left(r):
    return r.choice(["{{", "{{ ", "{{- ", "{{-\n"])


def right(r):
    return r.choice(["}}", " }}", " -}}", "\t-}}"])


def action(r, text):
    return left(r) + text + right(r)


def body(r, depth, loop):
    out = []
    for _ in range(r.randint(1, 3)):
        kind = r.choice(["text", "text", "action", "action", "if", "with", "range", "set", "comment", "leave", "template"])
        e = bare(expression(r, 2))
        if kind == "text" or depth == 0:
            out.append(r.choice([" a ", "\n", "  x\n\t", "<|b|>", "}", "{ {", "é ", "%"]))
        elif kind == "action":
            out.append(action(r, e))
        elif kind == "comment":
            out.append(r.choice(["{{/* a */}}", " {{- /* }} */ -}} "]))
        elif kind == "set":
            out.append(action(r, r.choice(["$x := ", "$x = ", "$y = ", "$y := "]) + e))
        elif kind == "leave" and loop:
            out.append(action(r, "if " + e) + action(r, r.choice(["break", "continue"])) + action(r, "end"))
        elif kind == "template":
            out.append(action(r, "template \"%s\"%s" % (r.choice(["t", "t", "u"]), r.choice(["", " .", " $x", " .System"]))))
        elif kind in ("if", "with"):
            out.append(action(r, kind + " " + r.choice(["", "", "$x := "]) + e) + body(r, depth - 1, loop))
            if kind == "if" and r.random() < .4:
                out.append(action(r, "else if " + bare(expression(r, 1))) + body(r, depth - 1, loop))
            if r.random() < .5:
                out.append(action(r, "else") + body(r, depth - 1, loop))
            out.append(action(r, "end"))
        elif kind == "range":
            over = r.choice([".Messages", ".Tools", "$.Messages", "$.Tools", ".ToolCalls", e, "(slice $.Messages 1)",
                             "(index $.Tools 0).Function.Parameters.Properties",
                             "(index (index $.Messages 1).ToolCalls 0).Function.Arguments"])
            out.append(action(r, "range " + r.choice(["", "$x := ", "$i, $x := ", "$x, $y := "]) + over))
            out.append(r.choice(["{{ . }}", "{{ $x }}", "{{ .Role }}:", "", "{{ $y }}"]) + body(r, depth - 1, True))
            if r.random() < .3:
                out.append(action(r, "else") + body(r, depth - 1, loop))
            out.append(action(r, "end"))
    return "".join(out)


def template(r):
    text = "{{ $x := 1 }}{{ $y := .System }}"
    if r.random() < .5:
        text += "{{ define \"t\" }}[{{ . }}|{{ $ }}]{{ end }}"
    text += body(r, 3, False)
    return text if "essages" in text else text + "{{/**/}}{{ len .Messages }}"


# ---- conversations

WORDS = ["hi", "a <b> & \"c\"", "é中\U0001f600", "line\nbreak", "\\ \t ", "<|im_end|>", "{{ .X }}", "'", "  spaces  ", "", "12", "\u2028",
         "stop", "\x7f", "<think>x</think>"]


def words(r, most=3):
    return " ".join(r.choice(WORDS) for _ in range(r.randint(1, most)))


def value(r, depth=2):
    kind = r.choice(["text", "int", "real", "bool", "null", "list", "object"] if depth else ["text", "int", "real"])
    if kind == "text":
        return words(r, 2)
    if kind == "int":
        return r.choice([0, 1, -7, 42, 1000000, 123456789, 2**53, -1])
    if kind == "real":
        return r.choice([0.5, -2.25, 1e-7, 3e25, 1234567.5, 1e21, 1e20, 0.1, 100.0, 1e6])
    if kind == "list":
        return [value(r, depth - 1) for _ in range(r.randint(0, 3))]
    if kind == "object":
        return {words(r, 1) + str(i): value(r, depth - 1) for i in range(r.randint(0, 3))}
    return {"bool": r.random() < .5, "null": None}[kind]


def arguments(r):
    o = {k: value(r) for k in r.sample(["b", "a", "zeta", "Name", "é", "a<b"], r.randint(0, 4))}
    return o


def schema(r, depth=2):
    o = {}
    if r.random() < .9:
        o["type"] = r.choice(["string", "integer", "number", "boolean", "array", "object", "null", "odd", ["string", "null"], ["integer"]])
    if r.random() < .5:
        o["description"] = words(r)
    if r.random() < .2:
        o["enum"] = [value(r, 0) for _ in range(r.randint(0, 3))]
    if r.random() < .2:
        o["items"] = r.choice([{"type": "string"}, True, {"b": 1, "a": [2]}, None])
    if r.random() < .2:
        o["default"] = 1
    if depth and r.random() < .2:
        o["anyOf"] = [schema(r, depth - 1) for _ in range(r.randint(0, 2))]
    if depth and r.random() < .3:
        o["properties"] = {k: schema(r, depth - 1) for k in r.sample(["z", "y", "x"], r.randint(0, 3))}
        o["required"] = ["z"]
    return o


def tools(r):
    all_of = []
    for _ in range(r.randint(0, 2)):
        f = {"name": r.choice(["look", "f<1>"])}
        if r.random() < .8:
            f["description"] = words(r)
        if r.random() < .9:
            f["parameters"] = {"type": "object"}
            if r.random() < .9:
                f["parameters"]["properties"] = {k: schema(r) for k in r.sample(["a", "o", "c", "Ab"], r.randint(0, 4))}
            if r.random() < .6:
                f["parameters"]["required"] = r.sample(["a", "o"], r.randint(0, 2))
            if r.random() < .2:
                f["parameters"]["$defs"] = {"z": 1, "a": {"type": "string"}}
        all_of.append({"type": "function", "function": f})
    return all_of


def conversation(r):
    out = []
    for _ in range(r.randint(0, 6)):
        role = r.choice(["system", "user", "user", "assistant", "assistant", "tool"])
        m = {"role": role, "content": words(r)}
        if role == "assistant" and r.random() < .5:
            m["tool_calls"] = []
            for i in range(r.randint(1, 2)):
                call = {"function": {"name": r.choice(["look", "find"]), "arguments": arguments(r)}}
                if r.random() < .7:
                    call["id"] = "call_%d" % i
                if r.random() < .5:
                    call["function"]["index"] = i
                m["tool_calls"].append(call)
            if r.random() < .7:
                m["content"] = ""
        if role == "assistant" and r.random() < .4:
            m["thinking"] = words(r)
        if role == "tool":
            m["tool_name"] = "look"
            if r.random() < .5:
                m["tool_call_id"] = "call_0"
        out.append(m)
    return out


def line(r, files):
    o = {"template": r.choice(FAMILIES + files) if r.random() < .5 else template(r), "messages": conversation(r)}
    if r.random() < .6:
        o["tools"] = tools(r)
    if r.random() < .5:
        o["think"] = r.random() < .5
    if r.random() < .3:
        o["effort"] = r.choice(["low", "high", "none", "medium"])
    if r.random() < .1:
        o["messages"] = []
        o["prompt"] = r.choice(WORDS)
        o["suffix"] = r.choice(WORDS)
    return o


# ---- what is not the same in both

# Go prints where a value lies in memory; the newer of its versions write some of JSON's escapes another way.
# Types of the witness have other names; before them an escaped asterisk may stand.
TYPES = re.compile(r"(?:\b|(?<=2A))(main|template|api)\.\w+")
OURS_ALONE = ["as an address", "as addresses", "is not supported"]


def compare(lines, ours, gos):
    same = refused = alone = bad = 0
    for text, a, b in zip(open(lines), open(ours), open(gos)):
        a, b = json.loads(a), json.loads(b)
        if "error" in a and any(words in a["error"] for words in OURS_ALONE):
            alone += 1
        elif "error" in a and "error" in b:
            refused += 1
        elif "error" in b and re.search(r"range can't iterate over -?\d+$", b["error"]):
            alone += 1  # newer versions of Go can
        elif "text" in a and "text" in b and TYPES.sub("", a["text"]) == TYPES.sub("", b["text"]):
            same += 1
        else:
            bad += 1
            if bad <= 10:
                print("differs:", text.strip(), "\n  ours:", json.dumps(a), "\n  Go's:", json.dumps(b))
    print("%d texts are the same, %d are refused by both, %d by us alone, %d differ" % (same, refused, alone, bad))
    return 1 if bad or same < 10 else 0


if sys.argv[1] == "lines":
    draw = random.Random(int(sys.argv[2]))
    more = []
    for folder in sys.argv[4:]:
        for entry in sorted(os.listdir(folder)):
            if entry.endswith(".gotmpl"):
                more.append(open(os.path.join(folder, entry), newline="").read().replace("\r\n", "\n"))
    for _ in range(int(sys.argv[3])):
        print(json.dumps(line(draw, more)))
else:
    sys.exit(compare(*sys.argv[2:5]))
