"""The package jitrun: functions that the library calls while it computes, and what is known of a model besides."""
import gc
import math
import os
import threading
import unittest

import jitrun
from jitrun import Model

MODEL = os.environ["JITRUN_MODEL"]
model = Model(MODEL, threads=1, context=256)
IDS = model.prompt_ids("Once upon a time")


def generated(session, n=6):
    return [session.next() for _ in range(n)]


class Logits(unittest.TestCase):
    def test_changes_what_is_chosen(self):
        plain = model.session(temperature=0).feed(IDS)
        without = generated(plain)
        seen = []

        def ban(logits, ids):
            seen.append((len(logits), list(ids)))
            logits[without[0]] = -math.inf

        s = model.session(temperature=0).feed(IDS).set_logits_fn(ban)
        first = s.next()
        self.assertNotEqual(first, without[0])
        self.assertEqual(seen[0], (model.info.vocab, list(IDS)))
        s.next()
        self.assertEqual(seen[1][1], list(IDS) + [first])
        # The model's own logits are told as ever.
        self.assertTrue(math.isfinite(s.logits()[without[0]]))
        s.set_logits_fn(None)
        n = len(seen)
        s.next()
        self.assertEqual(len(seen), n)
        only = model.session(temperature=1, seed=1).feed(IDS)

        def one(logits, ids):
            for i in range(len(logits)):
                logits[i] = -math.inf if i != 40 else 0.0

        self.assertEqual(generated(only.set_logits_fn(one), 3), [40, 40, 40])

    def test_gives_up_and_raises(self):
        s = model.session().feed(IDS).set_logits_fn(lambda logits, ids: True)
        with self.assertRaises(jitrun.Cancelled):
            s.next()

        def wrong(logits, ids):
            raise KeyError("mine")

        with self.assertRaisesRegex(KeyError, "mine"):
            s.set_logits_fn(wrong).next()
        s.set_logits_fn(None).next()

        def nan(logits, ids):
            logits[3] = math.nan

        with self.assertRaises(jitrun.JitrunError):
            s.set_logits_fn(nan).next()
        for bad in (7, "a", []):
            with self.assertRaisesRegex(TypeError, "expected a function"):
                s.set_logits_fn(bad)
            with self.assertRaisesRegex(TypeError, "expected a function"):
                s.set_prompt_fn(bad)

    def test_must_not_use_its_session(self):
        s = model.session().feed(IDS)
        for use in (lambda: s.next(), lambda: s.feed([1]), lambda: len(s), lambda: s.ids, lambda: s.rewind(0),
                    lambda: s.set_logits_fn(None), lambda: s.logits()):
            s.set_logits_fn(lambda logits, ids, use=use: use() and None)
            with self.assertRaisesRegex(jitrun.ArgumentError, "must not use it"):
                s.next()
        s.set_logits_fn(lambda logits, ids: s.cancel())
        with self.assertRaises(jitrun.Cancelled):
            for _ in range(3):
                s.next()

    def test_of_a_batch(self):
        alone = model.session(temperature=0).feed(IDS)
        banned = generated(alone, 1)[0]

        def ban(logits, ids):
            logits[banned] = -math.inf

        other = generated(model.session(temperature=0).feed(IDS).set_logits_fn(ban), 4)
        with model.batch(context=128) as batch:
            one, two = batch.session(temperature=0), batch.session(temperature=0)
            one.set_logits_fn(ban)
            out = {one: [], two: []}
            for s in out:
                batch.submit(s, IDS)
            while min(len(v) for v in out.values()) < 4:
                for s in batch.step():
                    out[s].append(s.next())
            self.assertEqual(out[one][:4], other)
            self.assertEqual(out[two][0], banned)
            one.set_logits_fn(lambda logits, ids: two.ids and None)
            with self.assertRaisesRegex(jitrun.ArgumentError, "nor its batch"):
                while True:
                    for s in batch.step():
                        s.next()

    def test_is_held_as_long_as_it_is_called(self):
        for _ in range(20):
            s = model.session(temperature=0).feed(IDS).set_logits_fn(lambda logits, ids: None)
            s.set_logits_fn(lambda logits, ids: None)
            gc.collect()
            s.next()
            del s
            gc.collect()
        self.assertEqual(jitrun.hooks._kept, {})
        # A session of a batch that goes while a pass of another thread computes.
        with model.batch(context=128) as batch:
            stays = batch.session(temperature=0)
            batch.submit(stays, IDS)
            for _ in range(20):
                s = batch.session(temperature=0)
                s.set_prompt_fn(lambda done, length: None)
                batch.submit(s, IDS)
                t = threading.Thread(target=batch.step)
                t.start()
                del s
                gc.collect()
                t.join()
        gc.collect()


class Prompts(unittest.TestCase):
    def test_told(self):
        told = []
        s = model.session().set_prompt_fn(lambda done, length: told.append((done, length)))
        s.feed(IDS)
        self.assertEqual(told[-1], (len(IDS), len(IDS)))
        self.assertEqual(told, sorted(told))
        n = len(told)
        s.set_prompt_fn(None).feed(IDS)
        self.assertEqual(len(told), n)

    def test_gives_up_and_raises(self):
        long = list(IDS) * 40
        s = model.session(batch=16).set_prompt_fn(lambda done, length: True)
        with self.assertRaises(jitrun.Cancelled):
            s.feed(long[:200])
        self.assertLess(len(s), 200)

        def wrong(done, length):
            raise LookupError("mine")

        s = model.session(batch=16).set_prompt_fn(wrong)
        with self.assertRaisesRegex(LookupError, "mine"):
            s.feed(long[:200])
        with model.batch(context=256, tokens=16) as batch:
            one = batch.session()
            one.set_prompt_fn(wrong)
            batch.submit(one, long[:200])
            with self.assertRaisesRegex(LookupError, "mine"):
                for _ in range(40):
                    batch.step()


class Besides(unittest.TestCase):
    def test_feed_logits(self):
        rows = model.session().feed_logits(IDS)
        self.assertEqual(len(rows), len(IDS))
        s = model.session()
        for row, token in zip(rows.tolist(), IDS):
            s.feed([token])
            self.assertEqual(row, s.logits().tolist())
        self.assertEqual(len(model.session().feed_logits([])), 0)

    def test_needs(self):
        n = jitrun.needs(MODEL, context=128)
        self.assertEqual(n.context, 128)
        self.assertGreater(n.weight_bytes, 0)
        self.assertGreater(jitrun.needs(MODEL, context=256).kv_bytes, n.kv_bytes)
        self.assertGreater(n.kv_bytes, jitrun.needs(MODEL, context=128, kv="q8_0").kv_bytes)
        self.assertTrue(n.fits)
        self.assertFalse(n._replace(weight_bytes=1 << 60).fits or n._replace(available_bytes=0).fits)
        self.assertTrue(n._replace(available_bytes=None).fits)
        with self.assertRaises(jitrun.FileError):
            jitrun.needs("none.gguf")

    def test_of_models(self):
        self.assertEqual(model.stop, [])
        model.check_device()
        self.assertEqual(model.info.bounded, "none")
        self.assertIsNone(model.info.weight_cache_trouble)
        self.assertGreaterEqual(model.info.bounded_gain, 0)

    def test_additional_properties(self):
        schema = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["b"], "minProperties": 2}
        s = model.session(temperature=0).feed(IDS)
        with self.assertRaises(jitrun.JitrunError):
            s.set_grammar(schema=schema)
        s.set_grammar(schema=schema, additional_properties=True)
        with self.assertRaisesRegex(TypeError, "no schema"):
            s.set_grammar(regex="a", additional_properties=True)


if __name__ == "__main__":
    unittest.main()
