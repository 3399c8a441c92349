//! What the tests share: the model in `JITRUN_MODEL`, and what the program `jitrun` makes of it.
#![allow(dead_code)]

use jitrun::*;

pub const PROMPT: &str = "Once upon a time";

pub const CHATML: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

pub const TOOLS: &str = r#"[{"type": "function", "function": {"name": "weather", "parameters": {"type": "object",
    "properties": {"sky": {"enum": ["blue", "grey"]}}, "required": ["sky"]}}}]"#;

pub fn path() -> String {
    std::env::var("JITRUN_MODEL").expect("JITRUN_MODEL is the path of a model")
}

pub fn one_thread() -> ModelOptions {
    ModelOptions::new().set("threads", 1).unwrap()
}

pub fn model() -> Model {
    Model::open_with(path(), &one_thread()).unwrap()
}

pub fn options() -> SessionOptions {
    SessionOptions::new().set("context", 256).unwrap().set("threads", 1).unwrap()
}

pub fn batch_options() -> BatchOptions {
    BatchOptions::new().set("context", 256).unwrap().set("threads", 1).unwrap()
}

fn ids_of(variable: &str) -> Vec<i32> {
    let ids = std::env::var(variable).unwrap_or_else(|_| panic!("{} is a list of tokens", variable));
    ids.split(',').map(|id| id.trim().parse().unwrap()).collect()
}

/// What the program generates behind [`PROMPT`], greedily.
pub fn expected() -> Vec<i32> {
    ids_of("JITRUN_IDS")
}

/// What it generates with the model's defaults, a temperature of 1.2 and the seed 7: tokens, and its very bytes.
pub fn expected_seeded() -> (Vec<i32>, Vec<u8>) {
    let file = std::env::var("JITRUN_SEEDED_TEXT").expect("JITRUN_SEEDED_TEXT is the path of a text");
    (ids_of("JITRUN_SEEDED_IDS"), std::fs::read(file).unwrap())
}

/// A prompt of many tokens.
pub fn long_prompt(model: &Model) -> Vec<i32> {
    let text = "Once upon a time there was a king who had three daughters, and they lived by the sea. ".repeat(2);
    model.tokenize(&text, true, false).unwrap()
}

/// The bits of floats, which must be equal.
pub fn bits(floats: &[f32]) -> Vec<u32> {
    floats.iter().map(|f| f.to_bits()).collect()
}

/// What a panic says.
pub fn said(panic: Box<dyn std::any::Any + Send>) -> String {
    panic.downcast_ref::<&str>().map(|text| text.to_string()).expect("a panic of the test's own")
}
