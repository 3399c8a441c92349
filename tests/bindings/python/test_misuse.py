"""Programs that are wrong: values of a wrong kind in every place, objects closed or dropped while another thread
computes with them, streams that are left or share a batch, empty prompts and those that are too long. Each ends in one
exception that names what is wrong, and nothing hangs."""
import asyncio
import decimal
import gc
import os
import subprocess
import sys
import threading
import unittest

import jitrun
from jitrun import CHATML, Model

try:
    import numpy
except ImportError:
    numpy = None

MODEL = os.environ["JITRUN_MODEL"]
QUICK = os.environ.get("JITRUN_TEST_QUICK")
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
LONG = "Once upon a time there was a king who had three daughters. " * 8
model = Model(MODEL, threads=1, context=64)


class Index:
    """An integer that raises when it is asked for its value."""

    def __index__(self):
        raise ZeroDivisionError("of the program")


class Wrong(unittest.TestCase):
    ODD = [None, True, -1, 1 << 31, 1 << 70, 1.5, float("nan"), "", "a\0b", "\ud800", b"x", [1.5], [-5], [1 << 40],
           ["a"], [True], [None], [[]], {"a": "b"}, {1.5: 2}, (1, 2), object(), int, memoryview(b"ab"), {"a"},
           "x" * 600, decimal.Decimal("1.5"), [decimal.Decimal("1.5")], bytearray(b"a"), [{"role": 5}],
           Exception("x"), Index(), [Index()]]
    if numpy is not None:
        ODD += [numpy.float32(1.5), [numpy.float32(1.5)], numpy.array([1.5]), numpy.array([[1]], dtype=numpy.int32)]
    turn = 0

    def each(self, name, call, *names):
        """Calls it with every odd value: an exception has one of the names, or is the library's."""
        Wrong.turn += 1
        for i, odd in enumerate(self.ODD):
            if QUICK and (i + Wrong.turn) % 3:
                continue
            with self.subTest(argument=name, value=repr(odd)[:40]):
                try:
                    made = call(odd)
                    if hasattr(made, "close"):
                        made.close()
                except ZeroDivisionError:
                    pass  # the program's own
                except jitrun.JitrunError as e:
                    self.assertTrue(str(e) and "\n" not in str(e))
                except (TypeError, ValueError) as e:
                    self.assertTrue(any(n in str(e) for n in (name, *names)), str(e))

    def each_of(self, call, names, *more):
        for name in names:
            self.each(name, lambda odd, name=name: call(**{name: odd}), *more)

    def test_models(self):
        m = model
        self.each("path", Model)
        self.each_of(lambda **o: Model(MODEL, **{"threads": 1, **o}),
                     ["device", "isa", "threads", "context", "kv", "speculate", "cache_dir", "cache_limit", "numerics",
                      "tune", "weight_cache_limit"])
        for odd in (5, "x", [], {}):
            with self.assertRaisesRegex(TypeError, "progress is .*, expected a function"):
                Model(MODEL, progress=odd)
            with self.assertRaisesRegex(TypeError, "until is .*, expected a function"):
                m.generate("a", max_tokens=1, until=odd)
        self.each("text", m.tokenize)
        self.each("ids", m.detokenize)
        self.each("id", m.token)
        self.each("id", m.is_end)
        self.each("spelling", m.find_token)
        self.each("prompt", m.prompt_ids)
        self.each("texts", m.embed)
        self.each("text", m.score)
        self.each("given", lambda odd: m.score("a", given=odd), "prompt")
        self.each("pooling", lambda odd: m.embed("a", pooling=odd))
        self.each("messages", lambda odd: m.render(odd, template=CHATML), "message 0")
        self.each_of(lambda **o: m.render("a", **{"template": CHATML, **o}), ["tools", "variables", "now", "template"],
                     "a tool is")
        for make in (lambda **o: m.parse("a", **o), m.reader):
            self.each_of(lambda **o: make(**{"template": CHATML, **o}), ["tools", "prompt", "template", "id"],
                         "a tool is")
        self.each("text", lambda odd: m.parse(odd, template=CHATML))
        self.each("text", lambda odd: m.reader(template=CHATML).feed(odd))
        self.each("token", lambda odd: m.reader(template=CHATML).feed("a", odd))

    def test_generations(self):
        m, b = model, model.batch(context=32)
        one = {"max_tokens": 1}
        names = ["stop", "schema", "regex", "grammar", "logprobs", "max_tokens"]
        self.each("prompt", lambda odd: m.generate(odd, **one))
        self.each_of(lambda **o: m.generate("a", **{**one, **o}), [*names, "session"])
        self.each("messages", lambda odd: m.chat(odd, template=CHATML, **one), "message 0")
        self.each_of(lambda **o: m.chat("a", **{"template": CHATML, "tools": [TOOL], **one, **o}),
                     [*names, "session", "tools", "variables", "template", "now", "tool_choice"], "a tool is",
                     "function")
        self.each("prompts", lambda odd: b.generate(odd, **one), "prompt")
        self.each("prompts", lambda odd: b.generate([odd], **one), "prompt")
        self.each_of(lambda **o: b.generate(["a"], **{**one, **o}), [*names, "each"], "there is no argument 'role'")
        self.each("each", lambda odd: b.generate(["a"], each=[odd], **one), "there is no argument")
        self.each("conversations", lambda odd: b.chat(odd, template=CHATML, **one), "messages", "message 0")
        self.each_of(lambda **o: b.chat(["a"], **{"template": CHATML, **one, **o}),
                     ["tools", "tool_choice", "variables", "template", "stop", "now"], "a tool is", "function")
        self.each("session", lambda odd: b.submit(odd, "x"))
        s = b.session()
        self.each("prompt", lambda odd: b.submit(s, odd))
        self.each("most", b.step)
        self.each("ids", b.forget)

    def test_sessions(self):
        self.each_of(lambda **o: model.session(**o), [
            "context", "threads", "batch", "kv", "speculate", *jitrun.SAMPLING_PARAMETERS])
        self.each_of(lambda **o: model.batch(**{"context": 16, **o}), [
            "context", "threads", "tokens", "kv", "speculate", "max_pass_ms", "kv_bytes"])
        s = model.session(context=64)
        s.feed("Once")
        self.each_of(lambda **o: s.fork(**o), ["context", "threads", "kv", "speculate"])
        self.each("prompt", lambda odd: s.rewind(0).feed(odd) and None)
        self.each("token", s.text)
        self.each("n", lambda odd: s.rewind(odd) and None)
        self.each("n", lambda odd: s.logprobs(odd))
        self.each("ids", lambda odd: s.rewind(0).score(odd))
        self.each("ids", lambda odd: s.rewind(0).embed(odd))
        self.each("path", lambda odd: model.session(context=8).restore(odd) and None)
        self.each("stop", lambda odd: s.set_stop(odd) and None)
        self.each_of(lambda **o: s.set_grammar(**o) and None, ["schema", "regex", "grammar"])
        self.each_of(lambda **o: s.set_grammar(**{"regex": "a", "behind_reasoning": "x", **o}) and None,
                     ["behind_reasoning", "template"])

    def test_numbers_are_never_cut(self):
        for wrong in (1.5, decimal.Decimal(1), "1", True, *([numpy.float32(1), numpy.float64(1)] if numpy else [])):
            for call in (lambda v: model.detokenize([v]), lambda v: model.session().feed([v]),
                         lambda v: model.session().score([v])):
                with self.assertRaisesRegex(TypeError, "expected integers"):
                    call(wrong)
        for wrong in ({1.5: 1}, {1: "1"}, {1: True}, [(1.5, 1)], [(1,)], "ab"):
            with self.assertRaisesRegex(TypeError, "logit_bias"):
                model.session(logit_bias=wrong)
        model.session(logit_bias={"1": 1.5, 2: -float("inf")})  # as JSON has them
        if numpy:
            self.assertEqual(model.detokenize(numpy.array([300, 301], dtype=numpy.int64)), model.detokenize([300, 301]))

    def test_texts_may_have_any_characters(self):
        reply = model.chat("a\0b", template=CHATML, max_tokens=2)
        self.assertTrue(reply.ids)
        s = model.session().feed("a")
        s.set_grammar(regex="[a-z ]+", behind_reasoning="a\0b").next()
        said = [model.reader(template=CHATML).feed(t)[0].text for t in ("é", "é".encode())]
        self.assertEqual(said, ["é", "é"])


class Prompts(unittest.TestCase):
    def test_empty(self):
        begun = model.tokenize("", add_special=True)
        self.assertEqual(model.prompt_ids(""), begun)
        s, b = model.session(), model.batch()
        t = b.session()
        s.feed("")
        b.submit(t, "")
        self.assertEqual((s.ids, t.ids), (begun, begun))
        alone = model.generate("", max_tokens=4, temperature=0).text
        self.assertEqual([c.text for c in b.generate(["", ""], max_tokens=4, temperature=0)], [alone, alone])
        with self.assertRaisesRegex(jitrun.ArgumentError, "feed at least one token"):
            model.generate([], max_tokens=1)
        with self.assertRaisesRegex(ValueError, r"prompts\[1\] has no tokens"):
            b.generate(["a", []], max_tokens=1)
        self.assertEqual(b.generate([]), [])
        self.assertEqual(len(s.score([])), 0)
        with self.assertRaises(jitrun.ArgumentError):
            s.embed([])
        bare = Model(MODEL, threads=1).session(context=8)
        for call in (bare.next, bare.logits):
            with self.assertRaises(jitrun.ArgumentError):
                call()
        for template in ("", "{# nothing #}"):  # conversations that come out empty
            try:
                b.chat(["a"], template=template, max_tokens=1)
            except jitrun.ArgumentError as e:
                self.assertIn("no tokens", str(e))

    def test_too_long(self):
        ids, full = model.tokenize(LONG), "the context of 64 tokens is full"
        s, b = model.session(context=64), model.batch(context=64)
        for call in (s.feed, s.score, s.embed):
            with self.assertRaisesRegex(jitrun.ContextError, full):
                call(ids[:65])
            self.assertEqual(len(s), 0)
            call(ids[:64])
            s.rewind(0)
        g = model.generate(ids[:64], temperature=0)
        self.assertEqual((len(g.ids), g.finish_reason), (1, "length"))
        for call in (lambda: model.generate(LONG), lambda: b.generate(["a", LONG], max_tokens=2),
                     lambda: model.chat(LONG, template=CHATML), lambda: b.chat([LONG], template=CHATML)):
            with self.assertRaisesRegex(jitrun.ContextError, full):
                call()
        self.assertEqual(b.pending, 0)
        self.assertEqual(b.generate(["Once"], max_tokens=4, temperature=0)[0].ids,
                         model.generate("Once", max_tokens=4, temperature=0).ids)


class Streams(unittest.TestCase):
    def test_several_of_one_batch(self):
        """Each is told of its own sessions alone, whoever computes the pass."""
        prompts = [f"Number {i}" for i in range(4)]
        want = [model.generate(p, max_tokens=12, temperature=0).ids for p in prompts]
        b = model.batch(context=64)
        streams = [b.stream([p], max_tokens=12, temperature=0) for p in prompts]
        got, mine = {}, b.session(temperature=0)
        b.submit(mine, "Once")
        told = []
        while streams:
            for s in list(streams):
                what = next(s, None)
                if what is None:
                    streams.remove(s)
                elif isinstance(what[1], jitrun.Completion):
                    got[tuple(what[1].ids)] = True
            told += b.step()
        self.assertEqual(set(got), {tuple(w) for w in want})
        self.assertEqual(told, [mine])
        results, errors = [None] * 4, []

        def run(i):
            try:
                results[i] = [c.ids for c in b.generate([prompts[i]] * 2, max_tokens=12, temperature=0)]
            except BaseException as e:
                errors.append(e)

        threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(4)]
        [t.start() for t in threads]
        [t.join(60) for t in threads]
        self.assertEqual(([t.is_alive() for t in threads], errors), ([False] * 4, []))
        self.assertEqual(results, [[w, w] for w in want])

    def test_left_in_their_middle(self):
        b, want = model.batch(context=64), model.generate("Once", max_tokens=8, temperature=0).ids
        for _ in range(6):
            for stream in (model.stream("Once"), model.chat_stream("Once", template=CHATML), b.stream(["Once", "a"])):
                next(stream)
                del stream
            gc.collect()
        self.assertEqual(b.pending, 0)

        async def leave():
            async for _ in model.stream("Once"):
                break
            async for _ in model.chat_stream("Once", template=CHATML):
                break

        asyncio.run(leave())
        self.assertEqual(model.generate("Once", max_tokens=8, temperature=0).ids, want)
        self.assertEqual(b.generate(["Once"], max_tokens=8, temperature=0)[0].ids, want)

    def test_exceptions_of_functions(self):
        want = model.generate("Once", max_tokens=8, temperature=0).ids
        for thrown in (ZeroDivisionError("x"), KeyboardInterrupt(), SystemExit(3), StopIteration(), GeneratorExit()):
            def fail(*_):
                raise thrown

            for call in (lambda: model.generate("Once", until=fail), lambda: Model(MODEL, progress=fail),
                         lambda: model.chat("Once", template=CHATML, until=fail)):
                with self.assertRaises(BaseException) as caught:
                    call()
                # StopIteration would end a loop over the text in silence.
                said = caught.exception
                self.assertIs(said.__cause__ if isinstance(said, RuntimeError) else said, thrown)
            self.assertEqual(model.generate("Once", max_tokens=8, temperature=0).ids, want)

    def test_sessions_that_cannot_compute(self):
        b, s = model.batch(context=32), model.session()
        member = b.session()
        with self.assertRaises((jitrun.JitrunError, TypeError, ValueError)):
            model.generate("Once", max_tokens=2, session=member)
        g = model.stream("Once", session=s)
        next(g)
        s.close()
        with self.assertRaises(jitrun.ClosedError):
            list(g)
        stream = b.stream(["Once", "a"])
        next(stream)
        b.close()
        with self.assertRaises(jitrun.ClosedError):
            list(stream)


class Threads(unittest.TestCase):
    def test_closed_while_another_thread_computes(self):
        for _ in range(4):
            m = Model(MODEL, threads=1, context=256)
            s, b = m.session(), m.batch()
            member = b.session(temperature=0)
            b.submit(member, LONG)
            said = []

            def run(call):
                try:
                    while True:
                        call()
                except BaseException as e:
                    said.append(e)

            def one():
                s.rewind(0)
                s.feed(LONG)
                s.next()

            calls = [one, lambda: b.generate(["Once", LONG], max_tokens=4),
                     lambda: m.generate("Once", max_tokens=4), lambda: m.tokenize(LONG), lambda: m.embed("Once")]
            threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
            [t.start() for t in threads]
            threading.Event().wait(0.03)
            for thing in (s, b, m):
                thing.close()
            [t.join(60) for t in threads]
            self.assertEqual([t.is_alive() for t in threads], [False] * 5)
            self.assertTrue(all(isinstance(e, jitrun.ClosedError) for e in said), said)

    def test_sessions_dropped_while_their_batch_computes(self):
        b = model.batch(context=64)
        want = model.generate("Once", max_tokens=8, temperature=0).ids
        over, errors = threading.Event(), []

        def drop():
            try:
                while not over.is_set():
                    s = b.session(temperature=0)
                    b.submit(s, "a b c d e f")
                    ring = [s]
                    ring.append(ring)  # for the collector
                    del s, ring
                    gc.collect()
            except BaseException as e:
                errors.append(e)

        threads = [threading.Thread(target=drop, daemon=True) for _ in range(2)]
        [t.start() for t in threads]
        for _ in range(6 if QUICK else 40):
            self.assertEqual(b.generate(["Once"], max_tokens=8, temperature=0)[0].ids, want)
        over.set()
        [t.join(60) for t in threads]
        gc.collect()
        self.assertEqual((errors, b.step(), b.pending), ([], [], 0))

    def test_a_session_dropped_within_a_turn(self):
        b, entered, leave = model.batch(context=32), threading.Event(), threading.Event()
        s = b.session()
        b.submit(s, "Once")

        def hold():
            with b._lock:
                entered.set()
                leave.wait(60)

        t = threading.Thread(target=hold)
        t.start()
        entered.wait(60)
        del s  # this thread does not wait
        self.assertEqual(len(b._lock._ended), 1)
        leave.set()
        t.join()
        self.assertEqual((len(b._lock._ended), b.pending), (0, 0))

    def test_one_reader_and_several_threads(self):
        reader, events, lock = model.reader(template=CHATML), [], threading.Lock()

        def run():
            for _ in range(300):
                made = reader.feed("abc ")
                with lock:
                    events.extend(made)

        threads = [threading.Thread(target=run) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        events += reader.finish()
        self.assertEqual("".join(e.text for e in events).replace(" ", ""), "abc" * 1200)

    def test_ids_that_change_meanwhile(self):
        if numpy is None:
            self.skipTest("there is no numpy")
        ids, over = numpy.full(60, 300, dtype=numpy.int32), threading.Event()

        def change():
            while not over.is_set():
                ids[:] = 1 << 30
                ids[:] = 300

        t = threading.Thread(target=change)
        t.start()
        s = model.session(context=64)
        for _ in range(20 if QUICK else 200):
            s.rewind(0)
            try:
                s.feed(ids)
            except jitrun.ArgumentError:
                pass
            self.assertTrue(all(i == 300 for i in s.ids))
        over.set()
        t.join()

    def test_the_program_ends_while_threads_compute(self):
        code = ("import jitrun,os,threading,time\nm=jitrun.Model(os.environ['JITRUN_MODEL'],threads=1,context=1024)\n"
                "s=m.session();b=m.batch();t=b.session();b.submit(t,[300]*1000)\n"
                "def run(call):\n"
                "    while True:\n"
                "        call()\n"
                "def one():\n    s.rewind(0);s.feed([300]*1000)\n"
                "for call in (one, b.step, lambda: m.tokenize('a b c '*2000), lambda: m.generate('a', max_tokens=3)):\n"
                "    threading.Thread(target=run,args=(call,),daemon=True).start()\n"
                "time.sleep(0.03)\n")
        for _ in range(3 if QUICK else 20):
            said = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True,
                                  timeout=60)
            self.assertEqual((said.returncode, said.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
