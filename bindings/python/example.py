"""What the package does, shortly: python3 example.py MODEL"""
import sys

from jitrun import CHATML, Model

with Model(sys.argv[1]) as model:
    print(model.info.description)

    # Text as it comes. The same seed gives the same text, on every machine.
    for piece in model.stream("Once upon a time", max_tokens=24, seed=7):
        print(piece, end="", flush=True)
    print()

    # An answer that keeps to a JSON Schema.
    schema = {"type": "object", "properties": {"king": {"type": "boolean"}, "age": {"type": "integer"}},
              "required": ["king", "age"], "additionalProperties": False}
    print(model.generate("The king was ", schema=schema, max_tokens=100, seed=7).parsed)

    # A conversation; CHATML stands in for models whose files have no template.
    template = None if model.info.has_chat_template else CHATML
    print(model.chat([{"role": "user", "content": "Who are you?"}], template=template, max_tokens=24, seed=7).text)

    # Many prompts at one call, an embedding, and how likely a text is.
    with model.batch(context=256) as batch:
        for c in batch.generate(["The king", "The sea", "One day"], max_tokens=8, seed=7):
            print(repr(c.text))
    print(len(model.embed("a ship")), model.score(" a time", given="Once upon").total)
