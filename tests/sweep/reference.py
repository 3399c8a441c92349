"""tests/sweep/reference.py - what transformers computes for a configuration: a model with random weights in a folder,
and its logits behind a prompt. Needs torch and transformers; nothing is fetched.
"""
import copy
import dataclasses
import json
import math
import os
import random
import warnings

import torch
import transformers

transformers.utils.logging.set_verbosity(transformers.logging.CRITICAL)
transformers.utils.logging.disable_progress_bar()
warnings.filterwarnings("ignore")
torch.set_num_threads(1)

CLASSES = {"mistral4": "Mistral4ForCausalLM"}  # which the automatic classes do not know
VERSIONS = f"torch {torch.__version__}, transformers {transformers.__version__}"
# Sizes that every file says, and what says nothing of what is computed.
KEPT = {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "layer_types", "layers_block_type",
        "hybrid_override_pattern", "bos_token_id", "eos_token_id", "pad_token_id", "use_cache", "initializer_range",
        "attention_dropout", "vocab_size_per_layer_input"}


def class_fields(config):
    """The fields of a configuration's own class with their defaults."""
    usual = {f.name for f in dataclasses.fields(transformers.PretrainedConfig)}
    for f in dataclasses.fields(type(config)):
        if f.name in usual or f.name in KEPT or f.name.startswith("_"):
            continue
        default = f.default
        if default is dataclasses.MISSING:
            default = f.default_factory() if f.default_factory is not dataclasses.MISSING else None
        yield f.name, default


def vary(r, config, fields):
    """Some fields absent, null, 0, 1 or what the class has. Returns what was done, for the report."""
    known = list(class_fields(config))
    done = []
    for name, default in r.sample(known, min(len(known), r.choice([0, 0, 1, 1, 2, 3]))):
        how = r.choice(["absent", "absent", "null", "default", "0", "1"])
        if how == "absent":
            if name not in fields:
                continue
            del fields[name]
        elif how == "default":
            if isinstance(default, float) and not math.isfinite(default):
                continue
            fields[name] = list(default) if isinstance(default, tuple) else copy.deepcopy(default)
            if isinstance(default, tuple) and any(isinstance(x, float) and math.isinf(x) for x in default):
                fields[name] = [0.0, {"__float__": "Infinity"}]
        else:
            if how != "null" and not isinstance(default, (int, float, type(None))):
                continue
            fields[name] = None if how == "null" else type(default)(int(how)) if default is not None else int(how)
        done.append(f"{name} {how}")
    return done


def write_config(folder, fields):
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(fields, f, indent=1)


def randomise(model, seed):
    """Weights by which every part of the model counts."""
    g = torch.Generator().manual_seed(seed)

    def noise(t, scale):
        return torch.randn(t.shape, generator=g) * scale

    with torch.no_grad():
        for name, t in model.state_dict(keep_vars=True).items():
            if not t.is_floating_point():
                continue
            last = name.rsplit(".", 1)[-1]
            if last == "A_log":
                t.copy_(torch.log(1 + 7 * torch.rand(t.shape, generator=g)))
            elif t.ndim < 2 and ("norm" in name or last in ("D", "layer_scalar", "scale", "per_expert_scale")):
                t.add_(noise(t, 0.2))
            elif t.ndim < 2:
                t.copy_(noise(t, 0.3))
            elif "embed" in name:
                t.copy_(noise(t, 0.7))
            elif "conv" in name and t.ndim == 3:
                t.copy_(noise(t, 0.6))
            else:
                turned = "experts" in name and type(model).__name__.startswith("GptOss")
                t.copy_(noise(t, 1.2 / math.sqrt(t.shape[-2 if turned else -1])))
        model.tie_weights()


class Reference:
    """A model of these fields in the folder, saved there."""

    def __init__(self, folder, fields, r):
        write_config(folder, fields)
        config = transformers.AutoConfig.from_pretrained(folder)
        self.varied = vary(r, config, fields)
        write_config(folder, fields)
        config = transformers.AutoConfig.from_pretrained(folder)
        how = dict(attn_implementation="eager", experts_implementation="eager", dtype=torch.float32)
        if config.model_type in CLASSES:
            model = getattr(transformers, CLASSES[config.model_type])._from_config(config, **how)
        else:
            model = transformers.AutoModelForCausalLM.from_config(config, **how)
        self.model = model.eval()
        size = sum(p.numel() for p in self.model.parameters())
        if size > 40_000_000:
            raise ValueError(f"{size} weights are too many for a sweep")
        randomise(self.model, r.randrange(1 << 31))
        self.vocab = config.vocab_size
        self.whole = r.random() < 0.2
        self.model.save_pretrained(folder, save_original_format=not self.whole)
        self.rewritten = r.random() < 0.5  # else the file is as transformers saves it
        if self.rewritten:
            fields = dict(fields, architectures=[type(self.model).__name__], torch_dtype="float32")
            write_config(folder, fields)
        with open(os.path.join(folder, "config.json")) as f:
            self.config = json.load(f)

    def logits(self, ids, positions, double=False):
        """Of the last so many positions: a row each, as lists of floats."""
        model = copy.deepcopy(self.model).double() if double else self.model
        with torch.no_grad():
            out = model(torch.tensor([ids]), use_cache=False).logits[0, -positions:]
        return out.double().tolist()
