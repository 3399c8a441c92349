//! `cargo run --example generate MODEL [PROMPT]` - prints the text that a model writes behind a prompt.

use jitrun::{Model, SessionOptions};
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("the path of a model was expected")?;
    let prompt = arguments.next().unwrap_or_else(|| "Once upon a time".to_owned());
    let model = Model::open(path)?;
    let options = SessionOptions::new().set("context", 512)?.sampling(&model.sampling_defaults()?.set("seed", 7)?);
    let mut session = model.session(&options)?;
    session.feed_text(&prompt, false)?;
    print!("{}", prompt);
    let mut generation = session.generate(64);
    for text in &mut generation {
        print!("{}", text?);
        std::io::stdout().flush()?;
    }
    println!("\n[{} tokens]", generation.ids().len());
    Ok(())
}
