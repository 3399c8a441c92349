"""The names of llama-cpp-python: what its README shows, and what is refused."""
import itertools
import json
import os
import sys
import tempfile
import threading
import unittest

from jitrun.llama_cpp import (GGML_TYPE_Q8_0, LLAMA_POOLING_TYPE_CLS, LLAMA_POOLING_TYPE_MEAN, LLAMA_POOLING_TYPE_NONE,
                              Llama, LlamaGrammar, LlamaRAMCache, LogitsProcessorList, StoppingCriteriaList)
from jitrun.llama_cpp.llama_chat_format import FORMATS
from jitrun.llama_cpp.llama_speculative import LlamaPromptLookupDecoding

MODEL = os.environ["JITRUN_MODEL"]
llm = Llama(model_path=MODEL, verbose=False, n_ctx=512, seed=1337)
MESSAGES = [{"role": "system", "content": "You are an assistant."}, {"role": "user", "content": "Describe it."}]
USER_DETAIL = {"type": "function", "function": {"name": "UserDetail", "parameters": {
    "type": "object", "title": "UserDetail", "properties": {
        "name": {"title": "Name", "type": "string", "maxLength": 6}, "age": {"title": "Age", "type": "integer"}},
    "required": ["name", "age"], "additionalProperties": False}}}


class Completions(unittest.TestCase):
    def test_call(self):
        said = llm("Q: Name the planets in the solar system? A: ", max_tokens=32, stop=["Q:", "\n"], echo=True)
        self.assertRegex(said["id"], "^cmpl-")
        self.assertEqual(said["object"], "text_completion")
        self.assertEqual(said["model"], MODEL)
        choice = said["choices"][0]
        self.assertTrue(choice["text"].startswith("Q: Name the planets in the solar system? A: "))
        self.assertNotIn("\n", choice["text"])
        self.assertIn(choice["finish_reason"], ("stop", "length"))
        usage = said["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])

    def test_stream(self):
        whole = llm.create_completion("Once upon a time", max_tokens=20, seed=4)
        chunks = list(llm.create_completion("Once upon a time", max_tokens=20, seed=4, stream=True))
        self.assertEqual("".join(c["choices"][0]["text"] for c in chunks), whole["choices"][0]["text"])
        self.assertEqual([c["choices"][0]["finish_reason"] for c in chunks][-2:], [None, "length"])
        self.assertEqual(len({c["id"] for c in chunks}), 1)
        echoed = list(llm("Once", max_tokens=4, stream=True, echo=True))
        self.assertEqual(echoed[0]["choices"][0]["text"], "Once")

    def test_options(self):
        same = [llm("Once", max_tokens=12)["choices"][0]["text"] for _ in range(2)]
        self.assertEqual(*same)  # the seed of the constructor
        drawn = {llm("Once", max_tokens=12, seed=-1)["choices"][0]["text"] for _ in range(4)}
        self.assertGreater(len(drawn), 1)
        greedy = llm("Once", max_tokens=12, temperature=0)["choices"][0]["text"]
        self.assertEqual(llm("Once", max_tokens=12, top_k=1)["choices"][0]["text"], greedy)
        first = llm.tokenize(greedy.encode(), add_bos=False)[0]
        other = llm("Once", max_tokens=12, temperature=0, logit_bias={str(first): -100})["choices"][0]["text"]
        self.assertNotEqual(other, greedy)
        self.assertEqual(llm(llm.tokenize(b"Once"), max_tokens=12, temperature=0)["choices"][0]["text"], greedy)
        mine = StoppingCriteriaList([lambda ids, logits: len(logits) == llm.n_vocab() and len(ids) >= 6])
        said = llm("Once", max_tokens=50, stopping_criteria=mine)
        self.assertEqual(said["usage"]["total_tokens"], 6)
        self.assertEqual(llm("Once", max_tokens=-1, temperature=0)["usage"]["total_tokens"] <= 512, True)
        for name, value in (("frequency_penalty", 1.5), ("presence_penalty", 1.5), ("repeat_penalty", 1.8),
                            ("mirostat_mode", 2), ("typical_p", 0.2), ("min_p", 0.9), ("top_p", 0.01)):
            changed = llm("Once upon a time there", max_tokens=60, **{name: value})["choices"][0]["text"]
            self.assertNotEqual(changed, llm("Once upon a time there", max_tokens=60)["choices"][0]["text"], name)

    def test_logprobs(self):
        said = llm("Once upon a", max_tokens=3, temperature=0, logprobs=2, echo=True)["choices"][0]
        lp = said["logprobs"]
        self.assertEqual("".join(lp["tokens"]), said["text"])
        self.assertEqual(lp["text_offset"], [0, *itertools.accumulate(len(t) for t in lp["tokens"])][:-1])
        self.assertIsNone(lp["token_logprobs"][0])
        self.assertTrue(all(p <= 0 for p in lp["token_logprobs"][1:]))
        self.assertEqual(lp["top_logprobs"][-1][lp["tokens"][-1]], lp["token_logprobs"][-1])
        self.assertGreaterEqual(len(lp["top_logprobs"][1]), 2)
        alone = llm("Once upon a", max_tokens=3, temperature=0, logprobs=2)["choices"][0]["logprobs"]
        self.assertEqual(alone["token_logprobs"], lp["token_logprobs"][-3:])
        self.assertEqual(alone["text_offset"], lp["text_offset"][-3:])

    def test_grammars(self):
        rules = LlamaGrammar.from_string('root ::= "yes" | "no"')
        self.assertIn(llm("Is it?", grammar=rules)["choices"][0]["text"], ("yes", "no"))
        schema = LlamaGrammar.from_json_schema(json.dumps({"enum": [3, 4]}))
        self.assertIn(json.loads(llm("Is it?", grammar=schema)["choices"][0]["text"]), (3, 4))
        with tempfile.NamedTemporaryFile("w", suffix=".gbnf") as f:
            f.write('root ::= [a-c]')
            f.flush()
            self.assertIn(llm("Is it?", grammar=LlamaGrammar.from_file(f.name))["choices"][0]["text"], "abc")


class Chats(unittest.TestCase):
    def test_plain(self):
        said = llm.create_chat_completion(messages=MESSAGES, max_tokens=20)
        self.assertEqual(said["object"], "chat.completion")
        message = said["choices"][0]["message"]
        self.assertEqual(message["role"], "assistant")
        chunks = list(llm.create_chat_completion(messages=MESSAGES, max_tokens=20, stream=True))
        self.assertEqual(chunks[0]["choices"][0]["delta"], {"role": "assistant"})
        text = "".join(c["choices"][0]["delta"].get("content", "") for c in chunks)
        self.assertEqual(text, message["content"])
        self.assertEqual(chunks[-1]["choices"][0]["finish_reason"], said["choices"][0]["finish_reason"])
        self.assertEqual(chunks[0]["object"], "chat.completion.chunk")
        lp = llm.create_chat_completion(messages=MESSAGES, max_tokens=3, logprobs=True, top_logprobs=2)["choices"][0]
        self.assertEqual([len(t["top_logprobs"]) for t in lp["logprobs"]["content"]], [2, 2, 2])

    def test_formats(self):
        more = [*MESSAGES, {"role": "assistant", "content": "It is."}, {"role": "user", "content": "And?"}]
        for name, text in FORMATS.items():
            said = llm._model.render(more, template=text).text
            places = [said.index(m["content"]) for m in more]
            self.assertEqual(places, sorted(places), name)
        self.assertIn("[INST] <<SYS>>\nYou are an assistant.\n<</SYS>>\n\nDescribe it. [/INST] It is. ",
                      llm._model.render(more, template=FORMATS["llama-2"]).text)
        for name in ("llama-2", "chatml", "chatml-function-calling"):
            with Llama(model_path=MODEL, chat_format=name, n_ctx=256) as one:
                self.assertTrue(one.create_chat_completion(messages=MESSAGES, max_tokens=2)["usage"]["prompt_tokens"])
        with self.assertRaisesRegex(ValueError, "chat_format is 'pirate'"):
            Llama(model_path=MODEL, chat_format="pirate")

    def test_json(self):
        said = llm.create_chat_completion(
            messages=[{"role": "system", "content": "You answer in JSON."}, {"role": "user", "content": "Who won?"}],
            response_format={"type": "json_object", "schema": {
                "type": "object", "properties": {"team_name": {"type": "string", "maxLength": 8}},
                "required": ["team_name"], "additionalProperties": False}}, temperature=0.7)
        self.assertEqual(list(json.loads(said["choices"][0]["message"]["content"])), ["team_name"])
        said = llm.create_chat_completion(messages=MESSAGES, response_format={
            "type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["u", "v"]}}})
        self.assertIn(json.loads(said["choices"][0]["message"]["content"]), "uv")
        said = llm.create_chat_completion(messages=MESSAGES, response_format={"type": "json_object"}, max_tokens=20)
        self.assertTrue(said["choices"][0]["message"]["content"].lstrip().startswith("{"))
        with self.assertRaisesRegex(ValueError, "response_format is"):
            llm.create_chat_completion(messages=MESSAGES, response_format={"type": "xml"})

    def test_tools(self):
        forced = {"type": "function", "function": {"name": "UserDetail"}}
        with Llama(model_path=MODEL, chat_format="chatml-function-calling", n_ctx=1024) as one:
            said = one.create_chat_completion(messages=MESSAGES, tools=[USER_DETAIL], tool_choice=forced, seed=3)
            choice = said["choices"][0]
            self.assertEqual(choice["finish_reason"], "tool_calls")
            self.assertIsNone(choice["message"]["content"])
            call = choice["message"]["tool_calls"][0]
            self.assertEqual((call["type"], call["function"]["name"]), ("function", "UserDetail"))
            detail = json.loads(call["function"]["arguments"])
            self.assertIsInstance(detail["age"], int)
            chunks = list(one.create_chat_completion(messages=MESSAGES, tools=[USER_DETAIL], tool_choice=forced,
                                                     seed=3, stream=True))
            deltas = [c["choices"][0]["delta"] for c in chunks if "tool_calls" in c["choices"][0]["delta"]]
            self.assertEqual(deltas[0]["tool_calls"][0]["function"]["name"], "UserDetail")
            told = "".join(d["tool_calls"][0]["function"]["arguments"] for d in deltas)
            self.assertEqual(json.loads(told), detail)
            old = one.create_chat_completion(messages=MESSAGES, functions=[USER_DETAIL["function"]],
                                             function_call={"name": "UserDetail"}, seed=3)["choices"][0]
            self.assertEqual(old["finish_reason"], "function_call")
            self.assertEqual(json.loads(old["message"]["function_call"]["arguments"]), detail)
            more = [*MESSAGES, choice["message"],
                    {"role": "tool", "tool_call_id": call["id"], "content": "done"}]
            self.assertTrue(one.create_chat_completion(messages=more, tools=[USER_DETAIL], max_tokens=2))


class Others(unittest.TestCase):
    def test_tokens(self):
        ids = llm.tokenize(b"Hello, world!")
        self.assertEqual(ids[0], llm.token_bos())
        self.assertEqual(llm.tokenize(b"Hello, world!", add_bos=False), ids[1:])
        self.assertEqual(llm.detokenize(ids), b"Hello, world!")
        begun = llm.detokenize(ids[:3])
        self.assertEqual(begun + llm.detokenize(ids[3:], prev_tokens=ids[:3]), llm.detokenize(ids))
        self.assertIn(b"<", llm.detokenize(ids[:1], special=True))
        self.assertEqual(llm.tokenizer().decode(llm.tokenizer().encode("Größe")), "Größe")
        with self.assertRaisesRegex(TypeError, "expected bytes"):
            llm.tokenize("Hello")
        self.assertEqual(llm.n_ctx(), 512)
        self.assertEqual((llm.n_vocab(), llm.n_embd()), (4096, 256))
        self.assertEqual(llm.metadata["general.architecture"], "qwen3")
        self.assertEqual(llm.token_eos(), 1)
        self.assertEqual(llm.detokenize([llm.token_nl()]), b"\n")

    def test_embeddings(self):
        with Llama(model_path=MODEL, embedding=True) as one:
            said = one.create_embedding("Hello, world!")
            self.assertEqual(len(said["data"][0]["embedding"]), 256)
            both = one.create_embedding(["Hello, world!", "Goodbye, world!"])
            self.assertEqual([d["index"] for d in both["data"]], [0, 1])
            self.assertEqual(both["data"][0]["embedding"], said["data"][0]["embedding"])
            self.assertAlmostEqual(sum(x * x for x in one.embed("a", normalize=True)), 1, 5)
            self.assertEqual(one.embed("a", return_count=True)[1], 2)
            with self.assertRaisesRegex(ValueError, "exceed context window of 512"):
                one.embed("a " * 600, truncate=False)
            self.assertEqual(len(one.embed("a " * 600)), 256)
        with Llama(model_path=MODEL, pooling_type=LLAMA_POOLING_TYPE_MEAN) as one:
            self.assertEqual(len(one.embed("a b")), 256)
        with Llama(model_path=MODEL, pooling_type=LLAMA_POOLING_TYPE_NONE) as one:
            self.assertEqual(len(one.embed("a")), 2)

    def test_token_by_token(self):
        with Llama(model_path=MODEL, seed=1) as one:
            ids = one.tokenize(b"Once upon")
            one.eval(ids)
            self.assertEqual((one.n_tokens, list(one.input_ids)), (len(ids), ids))
            token = one.sample(temp=0)
            self.assertEqual(one.n_tokens, len(ids))
            self.assertEqual(one.sample(temp=0), token)
            state = one.save_state()
            one.eval([token])
            one.load_state(state)
            self.assertEqual(one.eval_tokens, ids)
            one.reset()
            self.assertEqual(one.n_tokens, 0)
            some = list(itertools.islice(one.generate(ids, temp=0), 5))
            self.assertEqual(some[0], token)
            self.assertEqual(one.detokenize(some).decode(),
                             one("Once upon", max_tokens=5, temperature=0)["choices"][0]["text"])
            one.set_cache(LlamaRAMCache())
            one.set_seed(3)

    def test_refused_by_name(self):
        class Other:
            pass

        for options, what in (({"lora_path": "x"}, "lora_path"), ({"draft_model": Other()}, "draft_model"),
                              ({"rope_freq_base": 1e6}, "rope_freq_base"), ({"chat_handler": 1}, "chat_handler"),
                              ({"tensor_split": [1]}, "tensor_split"), ({"kv_overrides": {"a": 1}}, "kv_overrides"),
                              ({"pooling_type": LLAMA_POOLING_TYPE_CLS}, "pooling_type"),
                              ({"type_k": GGML_TYPE_Q8_0}, "type_k"), ({"type_k": 2, "type_v": 2}, "type_k"),
                              ({"vocab_only": True}, "vocab_only"), ({"nothing": 1}, "nothing")):
            with self.assertRaisesRegex((ValueError, TypeError), what):
                Llama(model_path=MODEL, **options)
        for options, what in (({"tfs_z": 0.5}, "tfs_z"), ({"suffix": "x"}, "suffix"), ({"nothing": 1}, "nothing"),
                              ({"logits_processor": LogitsProcessorList([lambda i, s: s])}, "logits_processor")):
            with self.assertRaisesRegex((ValueError, TypeError), what):
                llm("Once", **options)
        with self.assertRaisesRegex(ValueError, "exceed context window of 512"):
            llm("a " * 600)
        with self.assertRaises(Exception):
            Llama(model_path="/nosuch.gguf")
        Llama(model_path=MODEL, use_mlock=True, n_batch=8, flash_attn=True,
              type_k=GGML_TYPE_Q8_0, type_v=GGML_TYPE_Q8_0,
              draft_model=LlamaPromptLookupDecoding(num_pred_tokens=10)).close()

    def test_under_its_own_name(self):
        import jitrun.llama_cpp

        sys.modules["llama_cpp"] = jitrun.llama_cpp
        try:
            import llama_cpp.llama_chat_format
            from llama_cpp.llama_grammar import LlamaGrammar as OtherGrammar
            from llama_cpp.llama_speculative import LlamaPromptLookupDecoding as Other
            import llama_cpp.llama_tokenizer

            self.assertIs(OtherGrammar, LlamaGrammar)
            self.assertIs(Other, LlamaPromptLookupDecoding)
            self.assertIs(llama_cpp.llama_chat_format.FORMATS, FORMATS)
            self.assertIs(llama_cpp.llama_tokenizer.LlamaTokenizer, jitrun.llama_cpp.LlamaTokenizer)
            with Llama(model_path=MODEL, draft_model=Other(num_pred_tokens=10), verbose=False) as one:
                yes = one("Is it? ", grammar=OtherGrammar.from_string('root ::= "yes"'), max_tokens=5)
                self.assertEqual(yes["choices"][0]["text"], "yes")
            with self.assertRaises(ModuleNotFoundError):
                import llama_cpp.nothing
        finally:
            for name in [name for name in sys.modules if name.split(".")[0] == "llama_cpp"]:
                del sys.modules[name]
        for name in ("llama_grammar", "llama_speculative"):
            self.assertEqual(sys.modules["jitrun.llama_cpp." + name].__spec__.name, "jitrun.llama_cpp." + name)

    def test_from_pretrained(self):
        with tempfile.TemporaryDirectory() as d:
            folder = os.path.join(d, "models--a--b", "snapshots", "0")
            os.makedirs(folder)
            os.symlink(MODEL, os.path.join(folder, "tale-q8_0.gguf"))
            with Llama.from_pretrained(repo_id="a/b", filename="*q8_0.gguf", cache_dir=d, verbose=False) as one:
                self.assertEqual(one("Once", max_tokens=2)["usage"]["completion_tokens"], 2)
            with self.assertRaisesRegex(ValueError, "jitrun pull hf.co/a/c"):
                Llama.from_pretrained(repo_id="a/c", filename="*q8_0.gguf", cache_dir=d)

    def test_threads(self):
        want, got = llm("The king", max_tokens=10, seed=1)["choices"][0]["text"], []
        threads = [threading.Thread(target=lambda: got.append(
            llm("The king", max_tokens=10, seed=1)["choices"][0]["text"])) for _ in range(5)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertEqual(got, [want] * 5)


if __name__ == "__main__":
    unittest.main()
