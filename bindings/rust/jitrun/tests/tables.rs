//! What a model says of itself: metadata, vocabulary, needs, devices; logits of all tokens; and files about kernels.

mod support;

use jitrun::*;
use support::*;

struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("jitrun-rust-{}-{}", name, std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn metadata_by_key() {
    let model = model();
    let metadata = model.metadata();
    assert_eq!(metadata.get("general.architecture").unwrap(), Some(Value::Text("qwen3".to_owned())));
    assert_eq!(metadata.get("qwen3.block_count").unwrap(), Some(Value::Integer(6)));
    assert_eq!(metadata.get("qwen3.rope.freq_base").unwrap(), Some(Value::Real(1e6)));
    assert_eq!(metadata.get("tokenizer.ggml.add_bos_token").unwrap(), Some(Value::Bool(true)));
    assert_eq!(metadata.get("no such key").unwrap(), None);
    assert!(metadata.get("a\0b").is_err());
    let tokens = match metadata.get("tokenizer.ggml.tokens").unwrap() {
        Some(Value::List(tokens)) => tokens,
        other => panic!("{:?}", other),
    };
    assert_eq!(tokens.len(), model.info().unwrap().vocab);
    assert_eq!(tokens[5], Value::Text("$".to_owned()));
    let kinds = metadata.get("tokenizer.ggml.token_type").unwrap();
    assert!(matches!(kinds, Some(Value::List(kinds)) if kinds[0] == Value::Integer(3)));
    let keys: Vec<String> = metadata.keys().map(|key| key.unwrap()).collect();
    let entries: Vec<(String, Value)> = metadata.iter().map(|entry| entry.unwrap()).collect();
    assert!(keys.len() == metadata.len() && !metadata.is_empty() && keys[0] == "general.architecture");
    assert!(entries.iter().zip(&keys).all(|(entry, key)| entry.0 == *key));
    assert!(entries.iter().all(|(key, value)| metadata.get(key).unwrap().as_ref() == Some(value)));
}

#[test]
fn metadata_of_a_directory() {
    let folder = Folder::new("config");
    let shared = match std::env::var("JITRUN_SHARED") {
        Ok(shared) if std::path::Path::new(&shared).join("models/tale-qwen3").is_dir() => shared,
        _ => return,
    };
    for file in std::fs::read_dir(format!("{}/models/tale-qwen3", shared)).unwrap() {
        let file = file.unwrap();
        std::os::unix::fs::symlink(file.path(), folder.at(file.file_name().to_str().unwrap())).unwrap();
    }
    std::fs::remove_file(folder.at("generation_config.json")).unwrap();
    let config = r#"{"none": null, "bool": false, "mixed": [1, "a", null, true, 1.5, [2], {"b": 3}], "empty": []}"#;
    std::fs::write(folder.at("generation_config.json"), config).unwrap();
    let model = Model::open_with(&folder.0, &one_thread()).unwrap();
    let get = |key| model.metadata().get(&format!("generation_config.{}", key)).unwrap();
    assert_eq!((get("none"), get("bool")), (Some(Value::Null), Some(Value::Bool(false))));
    let text = Value::Text("a".to_owned());
    let (one, half) = (Value::Integer(1), Value::Real(1.5));
    let items = vec![one, text, Value::Null, Value::Bool(true), half, Value::Other, Value::Other];
    assert_eq!(get("mixed"), Some(Value::List(items)));
    assert_eq!(get("empty"), Some(Value::List(Vec::new())));
}

#[test]
fn the_vocabulary() {
    let model = model();
    let tokens: Vec<Token> = model.tokens().map(|token| token.unwrap()).collect();
    assert_eq!(tokens.len(), model.info().unwrap().vocab);
    for token in &tokens {
        assert_eq!(token, &model.token(token.id).unwrap());
        let spelling = token.spelling.as_ref().unwrap();
        assert_eq!(model.find_token(spelling), Some(token.id));
        assert_eq!(token.is_end, model.is_end(token.id));
        if token.kind == TokenKind::Normal {
            assert_eq!(model.detokenize(&[token.id]).unwrap(), String::from_utf8_lossy(&token.bytes));
        } else {
            assert!(token.kind == TokenKind::Control && &token.bytes == spelling);
        }
    }
    // The bytes of a text's tokens are the text, whole or cut within a character.
    let text = "h\u{e9}llo \u{1f600} \u{65e5}";
    let ids = model.tokenize(text, false, false).unwrap();
    let bytes: Vec<u8> = ids.iter().flat_map(|&id| tokens[id as usize].bytes.clone()).collect();
    assert_eq!(bytes, text.as_bytes());
    assert!(ids.iter().any(|&id| std::str::from_utf8(&tokens[id as usize].bytes).is_err()));
    assert_eq!(model.find_token("no such token of any vocabulary"), None);
    assert_eq!(model.token(-1).unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(model.token(tokens.len() as i32).unwrap_err().kind(), ErrorKind::Argument);
    let roles = model.roles().unwrap();
    let of = |name: &str| roles.iter().find(|role| role.0 == name).unwrap().1;
    assert_eq!((of("bos"), of("eos"), of("fim_prefix")), (Some(0), Some(1), None));
    assert!(roles.iter().all(|(name, id)| model.role(name).unwrap() == *id));
    assert_eq!(model.role("no such role").unwrap_err().kind(), ErrorKind::Argument);
    assert!(model.stop_texts().is_empty());
}

#[test]
fn logits_of_every_token() {
    let (model, prompt) = (model(), expected());
    let info = model.info().unwrap();
    let mut session = model.session(&options()).unwrap();
    let rows = session.feed_logits(&prompt).unwrap();
    assert_eq!(rows.len(), prompt.len() * info.vocab);
    let mut one = model.session(&options()).unwrap();
    for (row, &id) in rows.chunks_exact(info.vocab).zip(&prompt) {
        one.feed(&[id]).unwrap();
        assert_eq!(bits(row), bits(one.logits().unwrap()));
    }
    assert_eq!(bits(&rows[rows.len() - info.vocab..]), bits(session.logits().unwrap()));
    // Scores are of these logits.
    session.rewind(0).unwrap();
    let scores = session.score(&prompt).unwrap();
    for (i, row) in rows.chunks_exact(info.vocab).enumerate().take(prompt.len() - 1) {
        let largest = f64::from(row.iter().copied().fold(f32::MIN, f32::max));
        let sum: f64 = row.iter().map(|&l| (f64::from(l) - largest).exp()).sum();
        let logprob = f64::from(row[prompt[i + 1] as usize]) - largest - sum.ln();
        assert!((f64::from(scores[i + 1]) - logprob).abs() < 1e-4, "{} {}", scores[i + 1], logprob);
    }
    let (ids, of_text) = model.score(PROMPT).unwrap();
    assert_eq!(ids, model.tokenize(PROMPT, true, false).unwrap());
    session.rewind(0).unwrap();
    assert_eq!(bits(&session.score(&ids).unwrap()), bits(&of_text));
    // Hidden states: a row for each token, whichever way the prompt is cut.
    session.rewind(0).unwrap();
    let hidden = session.embed(&prompt, Pooling::None, false).unwrap();
    session.rewind(0).unwrap();
    let mut cut = session.embed(&prompt[..5], Pooling::None, false).unwrap();
    cut.extend(session.embed(&prompt[5..], Pooling::None, false).unwrap());
    assert_eq!((bits(&hidden), hidden.len()), (bits(&cut), prompt.len() * info.hidden));
    assert_eq!(session.feed_logits(&[-1]).unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(session.feed_logits(&[1; 1000]).unwrap_err().kind(), ErrorKind::Context);
    assert!(session.feed_logits(&[]).map_or(true, |rows| rows.is_empty()));
}

#[test]
fn what_a_model_needs_and_where_it_runs() {
    let session = SessionOptions::new().set("context", 512).unwrap();
    let needs = model_needs(path(), Some(&session)).unwrap();
    let model = model();
    let info = model.info().unwrap();
    assert_eq!((needs.context, needs.token_bytes), (512, info.token_bytes));
    assert!(needs.weight_bytes >= info.weight_bytes && needs.weight_bytes < 2 * info.weight_bytes);
    assert_eq!(needs.context_trained as usize, info.context_trained);
    assert!(needs.kv_bytes > 0 && needs.pass_bytes > 0 && needs.available_bytes > 0);
    assert!(model_needs(path(), None).unwrap().kv_bytes > needs.kv_bytes);
    assert_eq!(model_needs("no such file", None).unwrap_err().kind(), ErrorKind::Io);
    assert!(info.file_bytes > 6_000_000 && info.load_seconds > 0.0 && info.pooling.is_none());
    assert_eq!((info.bounded, info.bounded_gain, info.weight_cache_trouble), (Bounded::None, 0.0, None));
    model.alive().unwrap();
    let found = devices().unwrap();
    assert!(found[0].name == "cpu" && !found[0].about.is_empty() && found[0].why_not.is_none(), "{:?}", found);
    let opened = Model::open_with(path(), &one_thread().session(options().set("context", 64).unwrap()));
    assert!(opened.is_ok());
    let huge = SessionOptions::new().set("context", 1 << 30).unwrap();
    let e = Model::open_with(path(), &one_thread().session(huge)).err().unwrap();
    assert!(matches!(e.kind(), ErrorKind::Memory | ErrorKind::Argument), "{}", e);
    assert_eq!(CardOptions::new().set("workgroups", -1).unwrap_err().kind(), ErrorKind::Argument);
    assert!(CardOptions::new().set("workgroup", 1).is_err());
    let defaults = model.sampling_defaults().unwrap();
    assert_eq!((defaults.numbers().top_k, defaults.samplers()), (40, None));
    assert_eq!(defaults.set("samplers", "top_k;min_p").unwrap().samplers(), Some("top_k;min_p"));
}

#[test]
fn a_simulated_card_counts() {
    let model = Model::open_with(path(), &one_thread().set("device", "sim:gfx1100").unwrap()).unwrap();
    let card = CardOptions::new().set("launch", "layer").unwrap().set("units", 1).unwrap();
    let mut session = model.session(&options().set("context", 8).unwrap().card(card)).unwrap();
    session.feed(&[0]).unwrap();
    let counted = session.card_stats().unwrap();
    assert!(counted.launches > 1 && counted.instructions > 0 && counted.weight_bytes > 0);
}

#[test]
fn files_about_kernels() {
    let folder = Folder::new("files");
    let options_of = one_thread().set("dump_ir", folder.at("ir")).unwrap().set("cache_dir", "").unwrap();
    let model = Model::open_with(path(), &options_of).unwrap();
    let mut session = model.session(&options().set("profile", "events").unwrap()).unwrap();
    session.feed_text(PROMPT, false).unwrap();
    session.next_token().unwrap();
    session.next_token().unwrap();
    let stats = session.stats().unwrap();
    assert_eq!((stats.prompt_tokens, stats.decode_tokens, stats.context, stats.threads), (5, 1, 256, 1));
    assert!(stats.kernels > 0 && stats.kernels == stats.kernels_generated && stats.kv_bytes > 0);
    assert!(session.card_stats().is_err());
    let (table, json) = (session.report(false).unwrap(), session.report(true).unwrap());
    assert!(table.contains("matmul") && json.starts_with('{') && json.contains("\"matmul"), "{}", table);
    session.trace(folder.at("trace")).unwrap();
    assert!(std::fs::read_to_string(folder.at("trace")).unwrap().contains("traceEvents"));
    assert_eq!(session.trace(folder.at("no/trace")).unwrap_err().kind(), ErrorKind::Io);
    model.written().unwrap();
    assert!(std::fs::metadata(folder.at("ir")).unwrap().len() > 1000);
    let objects = ObjectsOptions::new().set("target", "gfx1101").unwrap().set("dir", folder.at("objects")).unwrap();
    let written = write_objects(path(), &objects).unwrap();
    let files = std::fs::read_dir(folder.at("objects")).unwrap().count() as u64;
    assert!(written.kernels > 10 && written.programs > 0 && written.bytes > 0 && files > 10);
    assert!(write_objects(path(), &ObjectsOptions::new()).is_err());
    let full = one_thread().set("dump_ir", "/dev/full").unwrap().set("cache_dir", "").unwrap();
    let model = Model::open_with(path(), &full).unwrap();
    model.session(&options()).unwrap().feed(&[0]).unwrap();
    assert_eq!(model.written().unwrap_err().kind(), ErrorKind::Io);
}
