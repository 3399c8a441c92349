"""llama-cpp-python's names over jitrun: `from jitrun.llama_cpp import Llama`.

What its README shows runs as it stands. What jitrun does not do is refused by the argument's name, and never ignored
when it could change a text; arguments that only concern speed or memory are taken. docs/python.md lists both. The
functions of llama.h (llama_model_load_from_file and so on) are not here.
"""
from .._library import lib as _lib
from . import _other_name
from .llama import Llama, LlamaState
from .llama_cache import LlamaCache, LlamaDiskCache, LlamaRAMCache
from .llama_grammar import LlamaGrammar
from .llama_lists import LogitsProcessorList, StoppingCriteriaList
from .llama_tokenizer import LlamaTokenizer
from .names import (GGML_TYPE_F16, GGML_TYPE_F32, GGML_TYPE_Q8_0, LLAMA_DEFAULT_SEED, LLAMA_POOLING_TYPE_CLS,
                    LLAMA_POOLING_TYPE_LAST, LLAMA_POOLING_TYPE_MEAN, LLAMA_POOLING_TYPE_NONE, LLAMA_POOLING_TYPE_RANK,
                    LLAMA_POOLING_TYPE_UNSPECIFIED, LLAMA_SPLIT_MODE_LAYER, LLAMA_SPLIT_MODE_NONE,
                    LLAMA_SPLIT_MODE_ROW)

__version__ = _lib.version

__all__ = [
    "GGML_TYPE_F16", "GGML_TYPE_F32", "GGML_TYPE_Q8_0", "LLAMA_DEFAULT_SEED", "LLAMA_POOLING_TYPE_CLS",
    "LLAMA_POOLING_TYPE_LAST", "LLAMA_POOLING_TYPE_MEAN", "LLAMA_POOLING_TYPE_NONE", "LLAMA_POOLING_TYPE_RANK",
    "LLAMA_POOLING_TYPE_UNSPECIFIED", "LLAMA_SPLIT_MODE_LAYER", "LLAMA_SPLIT_MODE_NONE", "LLAMA_SPLIT_MODE_ROW",
    "Llama", "LlamaCache", "LlamaDiskCache", "LlamaGrammar", "LlamaRAMCache", "LlamaState", "LlamaTokenizer",
    "LogitsProcessorList", "StoppingCriteriaList",
]
