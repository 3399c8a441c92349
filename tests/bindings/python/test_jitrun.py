"""The package jitrun: every public function, the same tokens as the program jitrun, threads, and misuse."""
import asyncio
import gc
import json
import math
import os
import random
import subprocess
import sys
import threading
import unittest

if os.environ.get("JITRUN_WITHOUT_NUMPY"):
    sys.modules["numpy"] = None

import jitrun  # noqa: E402
from jitrun import CHATML, Model  # noqa: E402

MODEL = os.environ["JITRUN_MODEL"]
PROGRAM = os.environ.get("JITRUN_PROGRAM", "")
TOOL = {"type": "function", "function": {"name": "add", "parameters": {
    "type": "object", "properties": {"a": {"type": "integer"}, "s": {"type": "string", "maxLength": 4}},
    "required": ["a", "s"], "additionalProperties": False}}}
TOOLS = CHATML + "{# <tool_call> #}"
# Of models that may begin with reasoning, and of models whose prompt begins it.
MAY_REASON = TOOLS + "{# <think></think> #}"
REASONS = MAY_REASON.replace("assistant\\n' }}", "assistant\\n<think>\\n' }}")
model = Model(MODEL, threads=2)


def program(*args):
    """What the program jitrun says of a generation."""
    said = subprocess.run([PROGRAM, MODEL, "-q", "--json", *args], capture_output=True, text=True, check=True)
    return json.loads(said.stdout.splitlines()[-1])


class Texts(unittest.TestCase):
    def test_same_tokens_as_the_program(self):
        for prompt, options, args in (
                ("Once upon a time", {"seed": 3}, ["-s", "3"]),
                ("The king", {"temperature": 0}, ["--temp", "0"]),
                ("Größe 日本", {"seed": 5, "top_k": 7, "top_p": 0.5, "min_p": 0, "repeat_penalty": 1.2},
                 ["-s", "5", "--top-k", "7", "--top-p", "0.5", "--min-p", "0", "--repeat-penalty", "1.2"])):
            said = program("-p", prompt, "-n", "12", *args)
            got = model.generate(prompt, max_tokens=12, **options)
            self.assertEqual(model.prompt_ids(prompt), said["prompt_ids"])
            self.assertEqual(got.ids, said["ids"])
            self.assertEqual(got.text, said["text"])

    def test_stream_is_the_text(self):
        whole = model.generate("Once", max_tokens=20, seed=1)
        pieces = list(model.stream("Once", max_tokens=20, seed=1))
        self.assertEqual("".join(pieces), whole.text)
        self.assertGreater(len(pieces), 5)
        self.assertEqual(whole.finish_reason, "length")
        self.assertEqual(whole.usage.completion_tokens, 20)
        self.assertEqual(model.detokenize(whole.ids), whole.text)

    def test_a_used_session_answers_as_a_new_one(self):
        fresh = Model(MODEL, threads=1)
        for prompt in ("Once upon a time", "Once upon a hill", "Once upon a time", "日"):
            a = model.generate(prompt, max_tokens=9, seed=2, stop=["zzz"])
            b = fresh.generate(prompt, max_tokens=9, seed=2, session=fresh.session())
            self.assertEqual((a.ids, a.text), (b.ids, b.text))
        left = model.stream("Once", max_tokens=9, schema=True, stop="a", seed=3)
        next(left)
        left.close()
        after, new = [m.generate("Once", max_tokens=9, seed=3) for m in (model, fresh)]
        self.assertEqual(after.ids, new.ids)

    def test_stops(self):
        whole = model.generate("Once upon a time", max_tokens=30, seed=3).text
        stop = whole[10:14]
        g = model.generate("Once upon a time", max_tokens=30, seed=3, stop=stop)
        self.assertEqual(g.text, whole[:whole.index(stop)])
        self.assertEqual(g.finish_reason, "stop")
        self.assertEqual(model.generate("Once", max_tokens=0).text, "")
        self.assertEqual(model.generate("Once", seed=1, until=lambda ids: len(ids) == 3).usage.completion_tokens, 3)
        small = model.session(context=16)
        g = model.generate("Once", session=small, ignore_end=True)
        self.assertEqual(g.finish_reason, "length")
        self.assertEqual(len(small), 17)  # one token is chosen behind the last position

    def test_seed_is_drawn_and_told(self):
        a = model.generate("Once", max_tokens=8)
        self.assertEqual(model.generate("Once", max_tokens=8, seed=a.seed).ids, a.ids)
        self.assertNotEqual(a.seed, model.generate("Once", max_tokens=1).seed)

    def test_grammars(self):
        schema = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}},
                  "required": ["a", "b"], "additionalProperties": False}
        for given in (schema, json.dumps(schema)):
            value = model.generate("It is ", schema=given, max_tokens=200, seed=1).parsed
            self.assertIsInstance(value["a"], int)
            self.assertIn(value["b"], "xy")
        self.assertRegex(model.generate("In ", regex="[0-9]{4}-[a-c]", max_tokens=40, seed=1).text, "^[0-9]{4}-[a-c]$")
        self.assertIn(model.generate("In ", grammar='root ::= "yes" | "no"', max_tokens=40, seed=1).text, ("yes", "no"))
        rules = jitrun.Lark('start: "yes" | "no"')
        self.assertIn(model.generate("In ", grammar=rules, max_tokens=40, seed=1).text, ("yes", "no"))
        with self.assertRaisesRegex(ValueError, "cut off"):
            model.generate("It is ", schema=schema, max_tokens=2, seed=1).parsed
        with self.assertRaisesRegex(ValueError, "without a schema"):
            model.generate("It is ", max_tokens=2).parsed
        with self.assertRaisesRegex(TypeError, "expected one of them"):
            model.generate("a", schema=True, regex="a")
        with self.assertRaises(jitrun.JitrunError):
            model.generate("a", grammar="no rules")

    def test_pydantic(self):
        try:
            import pydantic
        except ImportError:
            self.skipTest("there is no pydantic")

        class Point(pydantic.BaseModel):
            x: int
            name: str = pydantic.Field(max_length=5)

        if hasattr(Point, "model_json_schema"):
            Point.model_config["extra"] = "forbid"
        else:
            Point.__config__.extra = "forbid"
        point = model.generate("It is ", schema=Point, max_tokens=200, seed=1).parsed
        self.assertIsInstance(point, Point)
        reply = model.chat("where", schema=Point, template=CHATML, max_tokens=200, seed=2)
        self.assertIsInstance(reply.parsed, Point)
        reply = model.chat("where", tools=[Point], tool_choice="Point", template=TOOLS, max_tokens=200, seed=2)
        self.assertIsInstance(reply.tool_calls[0].value["x"], int)

    def test_pydantic_of_both_versions(self):
        class Second:  # what version 2 has
            @classmethod
            def model_json_schema(cls):
                return {"enum": [1, 2]}

            @classmethod
            def model_validate_json(cls, text):
                return ("second", json.loads(text))

        class First:  # what version 1 has
            __fields__ = {}
            schema = Second.model_json_schema
            parse_raw = Second.model_validate_json

        for kind in (First, Second):
            self.assertIn(model.generate("It is ", schema=kind, seed=1).parsed[1], (1, 2))

    def test_logprobs(self):
        g = model.generate("Once", max_tokens=4, temperature=0, logprobs=3)
        self.assertEqual([p.id for p in g.logprobs], g.ids)
        for p in g.logprobs:
            self.assertEqual(p.top[0], (p.id, p.logprob))
            self.assertEqual(len(p.top), 3)


class Chats(unittest.TestCase):
    def test_reply(self):
        r = model.chat([{"role": "user", "content": "Hello"}], template=CHATML, max_tokens=8, seed=1)
        p = model.render("Hello", template=CHATML)
        self.assertEqual(p.text, "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n")
        self.assertEqual(r.text, model.generate(p.ids, max_tokens=8, seed=1).text)
        self.assertEqual(r.message, {"role": "assistant", "content": r.text})
        parts = model.render([{"role": "user", "content": [{"type": "text", "text": "Hello"}]}], template=CHATML)
        self.assertEqual(parts, p)
        more = model.chat([{"role": "user", "content": "Hello"}, r.message, {"role": "user", "content": "And"}],
                          template=CHATML, max_tokens=3)
        self.assertGreater(more.usage.cached_tokens, 0)
        self.assertIn("off", model.render("a", template="{{ switch }}", variables={"switch": "off"}).text)
        self.assertEqual(model.render("a", template="{{ add_generation_prompt }}", generation=False).text, "False")
        self.assertEqual(model.render("a", template="{{ strftime_now('%Y') }}", now=0).text, "1970")
        with self.assertRaisesRegex(jitrun.UnsupportedError, "no chat template"):
            model.chat("Hello")

    def test_stream(self):
        s = model.chat_stream("Hello", template=CHATML, max_tokens=8, seed=1)
        events = list(s)
        self.assertTrue(all(e.kind == "text" for e in events))
        self.assertEqual("".join(e.text for e in events), s.reply.text)
        self.assertEqual(s.reply.text, model.chat("Hello", template=CHATML, max_tokens=8, seed=1).text)
        self.assertEqual(s.finish_reason, "length")

    def test_forced_calls(self):
        def weather(city: str, days: int = 1) -> str:
            """The weather of a city."""
            return city * days

        for tools, choice, name in (([TOOL], "required", "add"), ([TOOL, weather], "weather", "weather"),
                                    ([weather], {"type": "function", "function": {"name": "weather"}}, "weather")):
            r = model.chat("Go", tools=tools, tool_choice=choice, template=TOOLS, max_tokens=700, seed=5,
                           parallel_tool_calls=False)
            if r.finish_reason == "length":  # a text without a limit may be long
                continue
            self.assertEqual(r.finish_reason, "tool_calls")
            self.assertEqual([c.name for c in r.tool_calls], [name])
            self.assertTrue(r.tool_calls[0].whole)
            self.assertIsInstance(r.tool_calls[0].value, dict)
            self.assertEqual(r.message["tool_calls"][0]["function"]["arguments"], r.tool_calls[0].arguments)
        r = model.chat("Go", tools=[TOOL], tool_choice="add", template=TOOLS, max_tokens=300, seed=4)
        self.assertIsInstance(r.tool_calls[0].value["a"], int)
        events = list(model.chat_stream("Go", tools=[TOOL], tool_choice="add", template=TOOLS, max_tokens=300, seed=4))
        self.assertEqual(events[0].kind, "call")
        self.assertEqual(events[-1].kind, "call_end")
        self.assertEqual("".join(e.text for e in events if e.kind == "arguments"), r.tool_calls[0].arguments)
        self.assertFalse(model.chat("Go", tools=[TOOL], tool_choice="none", template=TOOLS, max_tokens=2).tool_calls)
        for choice, what in (("nobody", "nobody"), (7, "tool_choice is 7"), ({"a": 1}, "tool_choice is")):
            with self.assertRaisesRegex((ValueError, TypeError), what):
                model.chat("Go", tools=[TOOL], tool_choice=choice, template=TOOLS)
        with self.assertRaisesRegex(ValueError, "there are no tools"):
            model.chat("Go", tool_choice="required", template=TOOLS)
        with self.assertRaisesRegex(TypeError, "another form"):
            model.chat("Go", tools=[TOOL], tool_choice="required", schema=True, template=TOOLS)

    def test_reasoning_before_a_schema(self):
        schema = {"type": "object", "properties": {"a": {"enum": ["yes", "no"]}}, "required": ["a"]}
        calls = {"tools": [TOOL], "tool_choice": "add", "parallel_tool_calls": False}
        assert REASONS != MAY_REASON
        opens = {"logit_bias": {model.tokenize("<")[0]: 60.0}}
        for given in ({"schema": schema}, calls):
            # The prompt is within the reasoning, and the model does not end it by itself.
            r = model.chat("Go", template=REASONS, max_tokens=9, seed=1, **given)
            self.assertEqual((r.finish_reason, r.text, r.tool_calls), ("length", "", []))
            self.assertTrue(r.reasoning)
            # The model begins it, or does not.
            if "schema" in given:
                r = model.chat("Go", template=MAY_REASON, max_tokens=20, seed=1, **opens, **given)
                self.assertEqual((r.text, r.finish_reason), ("", "length"))
            b = model.batch(context=512)
            for r in (model.chat("Go", template=MAY_REASON, max_tokens=300, seed=4, temperature=0, **given),
                      b.chat(["Go"], template=MAY_REASON, max_tokens=300, seed=4, temperature=0, **given)[0]):
                self.assertFalse(r.reasoning)
                if "schema" in given:
                    self.assertIn(r.parsed["a"], ("yes", "no"))
                else:
                    self.assertEqual([c.name for c in r.tool_calls], ["add"])
                    self.assertIsInstance(r.tool_calls[0].value["a"], int)
            b.close()
        # It shall not reason, and so it does not begin to.
        r = model.chat("Go", template=MAY_REASON, max_tokens=60, seed=1, schema=schema, thinking=False, **opens)
        self.assertIn(r.parsed["a"], ("yes", "no"))

    def test_reasoning_of_a_session(self):
        prompt = model.render("Go", template=REASONS)
        with model.session(context=256, temperature=0) as s:
            s.feed(prompt.ids)
            s.set_grammar(regex="yes|no", behind_reasoning=prompt.text, template=REASONS)
            s.feed(model.tokenize("Let me see. yes or no"))
            self.assertIs(s.grammar_complete, False)
            s.feed(model.tokenize("</think>\n\n"))
            said = []
            while not s.grammar_complete:
                said.append(s.next())
            self.assertIn(model.detokenize(said).strip(), ("yes", "no"))
            s.set_grammar(regex="yes|no")  # from its first token on
            with self.assertRaisesRegex(jitrun.ArgumentError, "does not allow"):
                s.feed(model.tokenize("Let me see"))
            with self.assertRaisesRegex(TypeError, "behind_reasoning is int"):
                s.set_grammar(regex="a", behind_reasoning=1)

    def test_parse(self):
        said = ('<think>Well</think>Look: <tool_call>{"name": "add", "arguments": {"a": 1, "s": "é"}}</tool_call>')
        m = model.parse(said, tools=[TOOL], template=TOOLS, id="x")
        self.assertEqual(m, {"role": "assistant", "reasoning_content": "Well", "content": "Look: ", "tool_calls": [
            {"id": "x_0", "type": "function", "function": {"name": "add", "arguments": '{"a":1,"s":"é"}'}}]})
        self.assertEqual(model.parse("a</think>b", template="", prompt="<think>")["reasoning_content"], "a")
        reader = model.reader(tools=[TOOL], template=TOOLS)
        data, events = said.encode(), []
        for i in range(len(data)):
            events += reader.feed(data[i:i + 1])
        events += reader.finish()
        self.assertEqual([e.kind for e in events if e.kind in ("call", "call_end")], ["call", "call_end"])
        self.assertEqual(json.loads("".join(e.text for e in events if e.kind == "arguments")), {"a": 1, "s": "é"})
        with self.assertRaisesRegex(jitrun.ArgumentError, "finished"):
            reader.feed(b"a")

    def test_control_tokens_are_marks(self):
        with open(MODEL, "rb") as f:
            data = f.read()
        with open("marks.gguf", "wb") as f:  # token 0, of control, is spelled as a mark
            f.write(data.replace(b"<|begin_of_text|>", b"<|tool_call_end|>", 1))
        tools, template = [TOOL], CHATML + "{# <|tool_call_start|> #}"
        with Model("marks.gguf", threads=1) as m:
            reader = m.reader(tools=tools, template=template)
            events = reader.feed(b"<|tool_call_start|>[add(a=1, s='b')]")
            events += reader.feed(b"", 0)  # without it, what follows would be the call's
            events += reader.feed(b" and so on") + reader.finish()
        self.assertEqual([e.kind for e in events], ["call", "arguments", "call_end", "text"])
        self.assertEqual(events[-1].text.strip(), "and so on")

    def test_arguments_are_objects_for_templates(self):
        call = {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}]}
        both = [{"role": "user", "content": "a"}, call]
        show = "{% for m in messages if m.tool_calls %}{{ m.tool_calls[0].function.arguments HOW }}{% endfor %}"
        self.assertEqual(model.render(both, template=show.replace(" HOW", ".a")).text, "1")
        self.assertEqual(model.render(both, template=show.replace("HOW", "+ '!'")).text, '{"a":1}!')


class Batches(unittest.TestCase):
    def test_many_prompts_are_as_alone(self):
        prompts = ["Once upon a time", "The king", [0, 453, 310], "日本", "Once upon a time"]
        with model.batch(context=256) as b:
            got = b.generate(prompts, max_tokens=11, seed=3)
            for p, c in zip(prompts, got):
                alone = model.generate(p, max_tokens=11, seed=3)
                self.assertEqual((c.ids, c.text, c.finish_reason), (alone.ids, alone.text, alone.finish_reason))
            self.assertGreater(b.stats["passes"], 0)
            self.assertEqual(b.pending, 0)
            each = b.generate(prompts[:2], max_tokens=5, each=[{"seed": 1}, {"seed": 2, "top_k": 5}])
            self.assertEqual([c.seed for c in each], [1, 2])
            self.assertEqual(b.generate([], max_tokens=3), [])
            self.assertEqual(b.generate(["a"], max_tokens=0)[0].text, "")
            value = b.generate(["It is "] * 2, schema={"enum": [7, 8]}, max_tokens=9, seed=1, logprobs=1)
            self.assertIn(value[0].parsed, (7, 8))
            self.assertEqual(len(value[0].logprobs), len(value[0].ids))
            pieces = [w for i, w in b.stream(["Once", "The"], max_tokens=4, seed=1)]
            self.assertEqual(sum(isinstance(w, jitrun.Completion) for w in pieces), 2)
            self.assertGreaterEqual(b.forget(), 1)
            with self.assertRaisesRegex(ValueError, "each has 1 entries, expected 2"):
                b.generate(["a", "b"], each=[{}])

    def test_chats(self):
        with model.batch(context=512) as b:
            replies = b.chat(["Go", "And"], tools=[TOOL], tool_choice="add", template=TOOLS, max_tokens=300, seed=4)
            alone = model.chat("Go", tools=[TOOL], tool_choice="add", template=TOOLS, max_tokens=300, seed=4)
            self.assertEqual(replies[0].tool_calls[0].value, alone.tool_calls[0].value)
            self.assertEqual(replies[1].finish_reason, "tool_calls")

    def test_own_loop(self):
        with model.batch(context=64) as b:
            s = b.session(temperature=0)
            self.assertEqual(b.submit(s, "Once upon"), 0)
            ids = []
            while len(ids) < 5:
                for ready in b.step():
                    self.assertIs(ready, s)
                    ids.append(ready.next())
            self.assertEqual(ids, model.generate("Once upon", max_tokens=5, temperature=0).ids)
            with self.assertRaisesRegex(ValueError, "not one of this batch"):
                b.submit(model.session(context=16), "a")
        left = model.batch(context=64)
        stream = left.stream(["Once", "The"], max_tokens=50)
        next(stream)
        stream.close()
        left.close()


class Numbers(unittest.TestCase):
    def test_embeddings(self):
        hidden = model.info.hidden
        one = model.embed("Once upon a time")
        self.assertEqual(len(one), hidden)
        self.assertEqual([len(e) for e in model.embed(["a b", "c"])], [hidden, hidden])
        ids = model.tokenize("Once upon a time", add_special=True)
        self.assertEqual(list(model.embed(ids)), list(one))
        rows = model.embed(ids, pooling="none")
        self.assertEqual(rows.shape, (len(ids), hidden))
        self.assertEqual(list(rows.tolist()[-1]), list(one))
        unit = model.embed(ids, normalise=True)
        self.assertAlmostEqual(math.fsum(x * x for x in unit), 1, 5)
        self.assertNotEqual(list(model.embed(ids, pooling="mean")), list(one))
        self.assertEqual(model.embed([]), [])
        s = model.session(context=64)
        both = s.embed_texts([ids, ids[:2]], pooling="last")
        self.assertEqual([list(e) for e in both], [list(one), list(model.embed(ids[:2]))])
        zeros = [[0] * len(ids), [0, 0]] # types, which a model without such does not look at
        self.assertEqual([list(e) for e in s.embed_texts([ids, ids[:2]], pooling="last", types=zeros)],
                         [list(e) for e in both])

    def test_logits(self):
        s = model.session(context=32)
        with self.assertRaisesRegex(jitrun.JitrunError, "."):
            s.logits()
        s.feed("Once upon")
        view, copy = s.logits(), s.logits(copy=True)
        self.assertEqual(len(view), model.info.vocab)
        self.assertEqual(list(view), list(copy))
        best = max(range(len(view)), key=lambda i: view[i])
        s.set_sampling(temperature=0)
        self.assertEqual(s.next(), best)
        with self.assertRaises((ValueError, TypeError)):
            view[0] = 1
        address = memoryview(view).tolist()[0]
        s.close()
        del s
        gc.collect()
        self.assertEqual(memoryview(view).tolist()[0], address)  # the session's memory is there as long as the view is

    def test_scores(self):
        text = model.score("Once upon a time")
        self.assertEqual(text.logprobs[0], 0)
        behind = model.score(" a time", given="Once upon")
        self.assertEqual(list(behind.logprobs), list(text.logprobs)[-len(behind.ids):])
        self.assertAlmostEqual(behind.total, math.fsum(behind.logprobs))
        self.assertEqual(list(model.score(text.ids).logprobs), list(text.logprobs))


class Sessions(unittest.TestCase):
    def test_everything(self):
        s = model.session(context=64, temperature=0, profile=True, threads=1)
        self.assertEqual(len(s), 0)
        s.feed("Once upon").feed(model.tokenize(" a time"))
        self.assertEqual(s.ids, model.prompt_ids("Once upon") + model.tokenize(" a time"))
        first = s.next()
        text = s.text(first)
        self.assertEqual(text, model.detokenize([first]))
        chosen, top = s.logprobs(2)
        self.assertEqual(top[0], (first, chosen))
        self.assertEqual(s.sampled_logprobs(5)[1][0].id, first)
        self.assertEqual(s.text(), "")
        other = s.fork(temperature=0)
        self.assertEqual(other.next(), s.next())
        s.rewind(2)
        self.assertEqual(len(s), 2)
        s.feed([300])
        s.save("session.bin")
        with model.session(context=64, temperature=0) as again:
            self.assertEqual(again.restore("session.bin").next(), s.next())
        self.assertEqual(s.stats["context"], 64)
        self.assertEqual(len(s.stats["speculation"]), 3)
        self.assertIn("matmul", s.report())
        json.loads(s.report(as_json=True))
        self.assertIsNone(s.stopped)
        self.assertIsNone(s.grammar_complete)
        s.set_grammar(regex="a|ab")
        self.assertIs(s.grammar_complete, False)
        s.set_stop(["x", "y"]).set_stop(None).set_grammar()
        self.assertEqual(len(s.score([300, 301])), 2)
        self.assertEqual(len(s.embed([300])), model.info.hidden)

    def test_cancel(self):
        s = model.session(context=64)
        s.cancel()
        with self.assertRaises(jitrun.Cancelled):
            s.feed("Once upon a time")
        s.feed("Once")


class Models(unittest.TestCase):
    def test_what_there_is(self):
        self.assertEqual(model.metadata["general.architecture"], "qwen3")
        self.assertEqual(len(dict(model.metadata)), len(model.metadata))
        self.assertEqual(len(model.metadata["tokenizer.ggml.tokens"]), model.info.vocab)
        self.assertIsNone(model.metadata.get("nothing"))
        self.assertEqual(model.roles["bos"], 0)
        self.assertIsNone(model.roles["fim_prefix"])
        t = model.token(300)
        self.assertEqual(model.find_token(t.spelling), 300)
        self.assertTrue(model.is_end(model.roles["eos"]))
        self.assertEqual(t.kind, "normal")
        self.assertAlmostEqual(model.sampling_defaults["temperature"], 0.8, 6)
        text = "Größe 日本 <|im_end|>"
        self.assertEqual(model.detokenize(model.tokenize(text)), text)
        self.assertEqual(model.detokenize_bytes(model.tokenize(text.encode())), text.encode())
        self.assertEqual(jitrun.devices()[0].name, "cpu")
        self.assertIn("qwen3", repr(model))
        self.assertRegex(jitrun.__version__, r"^\d+\.\d+\.\d+$")

    def test_options(self):
        seen = []
        m = Model(MODEL, threads=1, context=48, kv="q8_0", speculate="off", tune="off", cache_dir="",
                  progress=lambda done, total: seen.append((done, total)))
        self.assertEqual(seen[-1][0], seen[-1][1])
        self.assertEqual(m.session().stats["context"], 48)
        m.close()
        with self.assertRaisesRegex(RuntimeError, "no more"):
            def stop(done, total):
                raise RuntimeError("no more")
            Model(MODEL, progress=stop)
        with self.assertRaises(jitrun.ArgumentError):
            Model(MODEL, progress=lambda *_: True)
        for options, what in (({"kv": "f8"}, "kv is 'f8', expected f16"), ({"tune": 3}, "tune is 3"),
                              ({"numerics": "x"}, "numerics"), ({"device": "toaster"}, "toaster"),
                              ({"threads": -1}, "threads"), ({"context": 1 << 40}, "context"),
                              ({"context": "4"}, "context is '4'"), ({"isa": "a\0b"}, "NUL")):
            with self.assertRaisesRegex((ValueError, TypeError, jitrun.JitrunError), what):
                Model(MODEL, **options)
        with self.assertRaisesRegex(jitrun.FileError, "/nosuch.gguf"):
            Model("/nosuch.gguf")
        with self.assertRaisesRegex(jitrun.FormatError, "."):
            Model(__file__)

    def test_closed(self):
        m = Model(MODEL, threads=1)
        s, b = m.session(context=32), m.batch(context=32)
        member, g = b.session(), m.stream("Once", max_tokens=5)
        meta = m.metadata
        next(g)
        m.close()
        m.close()
        for use in (lambda: m.tokenize("a"), lambda: m.generate("a"), lambda: m.embed("a"), lambda: m.session(),
                    lambda: m.batch(), lambda: m.chat("a", template=CHATML), lambda: m.token(1), lambda: m.metadata,
                    lambda: m.parse("a"), lambda: m.__enter__()):
            with self.assertRaisesRegex(jitrun.ClosedError, "the model is closed"):
                use()
        s.feed("Once")  # what was opened before goes on
        self.assertIsInstance(s.next(), int)
        self.assertEqual(meta["general.architecture"], "qwen3")
        list(g)
        b.close()
        member.set_sampling(seed=1)
        with self.assertRaisesRegex(jitrun.ClosedError, "the batch is closed"):
            b.step()
        s.close()
        for use in (s.next, s.logits, lambda: s.feed("a"), lambda: len(s), lambda: s.ids, s.report, lambda: s.stats,
                    lambda: s.text(1), lambda: s.score([1]), lambda: s.embed([1]), s.fork, lambda: s.rewind(0),
                    lambda: s.set_sampling(), lambda: s.set_stop("a"), lambda: s.stopped, lambda: s.save("x")):
            with self.assertRaisesRegex(jitrun.ClosedError, "the session is closed"):
                use()
        s.cancel()
        self.assertTrue(s.closed)

    def test_order_of_going(self):
        for order in range(6):
            m = Model(MODEL, threads=1)
            s = m.session(context=16)
            s.feed("Once")
            things = [m, s, s.logits()]
            del m, s
            random.Random(order).shuffle(things)
            while things:
                things.pop()
                gc.collect()

    def test_exit_with_all_open(self):
        code = ("import jitrun,os;m=jitrun.Model(os.environ['JITRUN_MODEL']);s=m.session(context=16);b=m.batch();"
                "t=b.session();s.feed('Once');l=s.logits();g=m.stream('a');next(g)")
        said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        self.assertEqual((said.returncode, said.stderr), (0, ""))


class Threads(unittest.TestCase):
    def test_many_at_once(self):
        want = [model.generate(f"Number {i}", max_tokens=10, seed=i).ids for i in range(6)]
        got, errors = [None] * 6, []

        def run(i):
            try:
                got[i] = model.generate(f"Number {i}", max_tokens=10, seed=i).ids
            except Exception as e:
                errors.append(e)

        threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(errors, [])
        self.assertEqual(got, want)

    def test_one_session_and_several_threads(self):
        s, errors = model.session(context=512), []
        s.feed("Once")

        def run():
            try:
                for _ in range(20):
                    s.next()
                    s.stats
            except Exception as e:
                errors.append(e)

        threads = [threading.Thread(target=run) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(errors, [])
        self.assertGreater(len(s), 60)

    def test_gil_is_released(self):
        s, stop, count = model.session(context=1024, threads=1), threading.Event(), [0]

        def tick():
            while not stop.is_set():
                count[0] += 1

        t = threading.Thread(target=tick)
        t.start()
        s.feed([300] * 1000)
        during = count[0]
        stop.set()
        t.join()
        self.assertGreater(during, 1000)

    def test_cancel_from_elsewhere(self):
        s = model.session(context=1024, threads=1)
        timer = threading.Timer(0.02, s.cancel)
        timer.start()
        with self.assertRaises(jitrun.Cancelled):
            while True:
                s.rewind(0)
                s.feed([300] * 1000)
        timer.join()

    def test_asyncio(self):
        async def all_of_it():
            g = await model.generate_async("Once", max_tokens=6, seed=1)
            pieces = [p async for p in model.stream("Once", max_tokens=6, seed=1)]
            self.assertEqual("".join(pieces), g.text)
            replies = await asyncio.gather(*[model.chat_async("x", template=CHATML, max_tokens=5, seed=i)
                                             for i in range(3)])
            self.assertEqual(len(replies), 3)
            events = [e async for e in model.chat_stream("x", template=CHATML, max_tokens=5, seed=1)]
            self.assertEqual("".join(e.text for e in events), replies[1].text)
            self.assertEqual(len(await model.embed_async("a")), model.info.hidden)
            task = asyncio.create_task(model.generate_async("Once", ignore_end=True))
            await asyncio.sleep(0.02)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            again = await model.generate_async("Once", max_tokens=6, seed=1)
            self.assertEqual(again.ids, g.ids)

        asyncio.run(all_of_it())


class Misuse(unittest.TestCase):
    ODD = [None, True, -1, 0, 1 << 31, 1 << 70, 1.5, float("nan"), float("inf"), "", "a\0b", "\udc80", b"x", [], [1.5],
           [-1], [1 << 40], ["a"], {}, {"a": 1}, (1, 2), object(), int, lambda: 1, memoryview(b"ab"), "x" * 5000]

    def test_no_argument_crashes(self):
        s, m, tried = model.session(context=32), model, 0
        s.feed("Once")
        calls = [
            lambda a: m.tokenize(a), lambda a: m.detokenize(a), lambda a: m.token(a), lambda a: m.find_token(a),
            lambda a: m.is_end(a), lambda a: m.embed(a), lambda a: m.score(a), lambda a: m.render(a, template=CHATML),
            lambda a: m.render("a", tools=a, template=CHATML), lambda a: m.render("a", variables=a, template=CHATML),
            lambda a: m.render("a", template=a), lambda a: m.parse(a, template=CHATML),
            lambda a: m.parse("a", tools=a, template=CHATML), lambda a: m.generate(a, max_tokens=1),
            lambda a: m.generate("a", max_tokens=1, stop=a), lambda a: m.generate("a", max_tokens=1, schema=a),
            lambda a: m.generate("a", max_tokens=1, regex=a), lambda a: m.generate("a", max_tokens=1, grammar=a),
            lambda a: m.generate("a", max_tokens=1, logprobs=a), lambda a: m.generate("a", max_tokens=1, session=a),
            lambda a: m.chat("a", template=CHATML, max_tokens=1, tools=a, tool_choice="required"),
            lambda a: m.chat("a", template=CHATML, max_tokens=1, tools=[TOOL], tool_choice=a),
            lambda a: s.feed(a), lambda a: s.text(a), lambda a: s.rewind(a), lambda a: s.logprobs(a),
            lambda a: s.score(a), lambda a: s.embed(a), lambda a: s.embed([1], pooling=a), lambda a: s.restore(a),
            lambda a: s.set_stop(a), lambda a: s.save(a) if not isinstance(a, (str, bytes)) else None,
            lambda a: m.session(context=a), lambda a: m.session(threads=a), lambda a: m.session(speculate=a),
            lambda a: m.batch(kv_bytes=a, context=16), lambda a: m.metadata[a],
            *[lambda a, n=n: s.set_sampling(**{n: a}) for n in jitrun.SAMPLING_PARAMETERS],
        ]
        for call in calls:
            for a in self.ODD:
                tried += 1
                try:
                    call(a)
                except (TypeError, ValueError, KeyError, MemoryError, OSError, jitrun.JitrunError) as e:
                    self.assertTrue(str(e))
        self.assertGreater(tried, 1500)
        s.set_sampling(seed=1).rewind(0).feed("Once").next()

    def test_random_calls(self):
        rng = random.Random(7)
        s = model.session(context=64)
        b = model.batch(context=64)
        for _ in range(300):
            call = rng.choice([
                lambda: s.next(), lambda: s.feed([rng.randrange(-2, 4098)]), lambda: s.rewind(rng.randrange(80)),
                lambda: s.text(rng.randrange(-3, 4100)), lambda: s.logits(), lambda: s.logprobs(rng.randrange(300)),
                lambda: s.set_grammar(regex=rng.choice(["a+", "(", "[0-9]"])), lambda: s.set_grammar(),
                lambda: s.set_sampling(top_k=rng.randrange(-2, 9)), lambda: s.score([rng.randrange(4096)]),
                lambda: s.cancel(), lambda: s.fork(), lambda: b.step(), lambda: b.submit(b.session(), [5]),
                lambda: s.embed([rng.randrange(4096)], pooling=rng.choice(["last", "mean", "none", "rank"]))])
            try:
                call()
            except (jitrun.JitrunError, ValueError):
                pass

    def test_names_are_checked(self):
        for call in (lambda: model.generate("a", tempreature=1), lambda: model.session(nothing=1),
                     lambda: model.chat("a", template=CHATML, top_kk=1)):
            with self.assertRaisesRegex(TypeError, "there is no"):
                call()
        import copy
        import pickle
        for make in (copy.copy, copy.deepcopy, pickle.dumps):
            with self.assertRaises(TypeError):
                make(model)


if __name__ == "__main__":
    unittest.main()
