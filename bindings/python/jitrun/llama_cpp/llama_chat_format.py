"""Chat formats by name: templates for models whose files have none, or have another one."""
from __future__ import annotations

from typing import Any, Dict, Optional

from ..chat import CHATML

_HEAD = ("{% for m in messages %}{{ '<|im_start|>' + ('user' if m.role == 'tool' else m.role) + '\\n' }}"
         "{% if m.role == 'tool' %}{{ '<tool_response>\\n' + m.content + '\\n</tool_response>' }}"
         "{% else %}{{ m.content or '' }}{% endif %}"
         "{% for c in m.tool_calls or [] %}{{ '\\n<tool_call>\\n' }}"
         "{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}{{ '\\n</tool_call>' }}"
         "{% endfor %}{{ '<|im_end|>\\n' }}{% endfor %}"
         "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
CHATML_TOOLS = ("{% if tools %}{{ '<|im_start|>system\\nThese functions can be called, each by its JSON Schema:\\n' }}"
                "{% for t in tools %}{{ t.function | tojson }}{{ '\\n' }}{% endfor %}"
                "{{ 'A call is written <tool_call>\\n{\"name\": NAME, \"arguments\": {...}}\\n</tool_call>"
                "<|im_end|>\\n' }}{% endif %}" + _HEAD)
LLAMA_2 = ("{% set ns = namespace(system='') %}{% for m in messages %}"
           "{% if m.role == 'system' %}{% set ns.system = '<<SYS>>\\n' + m.content + '\\n<</SYS>>\\n\\n' %}"
           "{% elif m.role == 'user' %}{{ (bos_token or '') + '[INST] ' + ns.system + m.content + ' [/INST]' }}"
           "{% set ns.system = '' %}{% else %}"
           "{{ ' ' + (m.content or '') + ' ' + (eos_token or '') }}{% endif %}{% endfor %}")
ALPACA = ("{% for m in messages %}{% if m.role == 'system' %}{{ m.content + '\\n\\n' }}"
          "{% elif m.role == 'user' %}{{ '### Instruction:\\n' + m.content + '\\n\\n' }}"
          "{% else %}{{ '### Response:\\n' + (m.content or '') + '\\n\\n' }}{% endif %}{% endfor %}"
          "{% if add_generation_prompt %}{{ '### Response:\\n' }}{% endif %}")
VICUNA = ("{% for m in messages %}{% if m.role == 'system' %}{{ m.content + ' ' }}"
          "{% elif m.role == 'user' %}{{ 'USER: ' + m.content + ' ' }}"
          "{% else %}{{ 'ASSISTANT: ' + (m.content or '') + (eos_token or '') }}{% endif %}{% endfor %}"
          "{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}")
LLAMA_3 = ("{{ bos_token or '' }}{% for m in messages %}{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + "
           "(m.content or '') + '<|eot_id|>' }}{% endfor %}"
           "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}")
GEMMA = ("{{ bos_token or '' }}{% for m in messages %}"
         "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else 'user') + '\n' + (m.content or '') + "
         "'<end_of_turn>\n' }}{% endfor %}"
         "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}")
MISTRAL = ("{{ bos_token or '' }}{% for m in messages %}{% if m.role == 'assistant' %}"
           "{{ ' ' + (m.content or '') + (eos_token or '') }}{% else %}{{ '[INST] ' + m.content + ' [/INST]' }}"
           "{% endif %}{% endfor %}")
ZEPHYR = ("{% for m in messages %}{{ '<|' + m.role + '|>\n' + (m.content or '') + (eos_token or '') + '\n' }}"
          "{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% endif %}")
FORMATS: Dict[str, str] = {"chatml": CHATML, "chatml-function-calling": CHATML_TOOLS, "llama-2": LLAMA_2,
                           "llama-3": LLAMA_3, "gemma": GEMMA, "mistral-instruct": MISTRAL, "zephyr": ZEPHYR,
                           "qwen": CHATML, "alpaca": ALPACA, "vicuna": VICUNA}


def template_of(chat_format: Optional[str], model: Any, tools: bool) -> Optional[str]:
    """The template's text; None: the model's own."""
    if chat_format is None:
        if model.info.has_chat_template:
            return None
        return CHATML_TOOLS if tools else CHATML
    if chat_format == "chat_template.default":
        return None
    return CHATML_TOOLS if FORMATS[chat_format] == CHATML and tools else FORMATS[chat_format]


def check(chat_format: Optional[str]) -> None:
    """Whether there is such a format."""
    if chat_format is not None and chat_format != "chat_template.default" and chat_format not in FORMATS:
        raise ValueError(f"chat_format is {chat_format!r}, expected {', '.join(sorted(FORMATS))}, or None for the "
                         "model's own template")
