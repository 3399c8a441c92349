//! Models, sessions, batches and conversations, with the model in `JITRUN_MODEL`; `JITRUN_IDS` is what the program
//! `jitrun` generates behind "Once upon a time", greedily.

use jitrun::*;
use std::thread;

const PROMPT: &str = "Once upon a time";

fn model() -> Model {
    let path = std::env::var("JITRUN_MODEL").expect("JITRUN_MODEL is the path of a model");
    Model::open_with(path, &ModelOptions::new().set("threads", 1).unwrap()).unwrap()
}

fn options() -> SessionOptions {
    SessionOptions::new().set("context", 256).unwrap().set("threads", 1).unwrap()
}

fn expected() -> Vec<i32> {
    let ids = std::env::var("JITRUN_IDS").expect("JITRUN_IDS is a list of tokens");
    ids.split(',').map(|id| id.trim().parse().unwrap()).collect()
}

const CHATML: &str = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}\
    {% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

const TOOLS: &str = r#"[{"type": "function", "function": {"name": "weather", "parameters": {"type": "object",
    "properties": {"sky": {"enum": ["blue", "grey"]}}, "required": ["sky"]}}}]"#;

#[test]
fn ids_are_those_of_the_program() {
    let (model, ids) = (model(), expected());
    let mut session = model.session(&options()).unwrap();
    session.feed_text(PROMPT, false).unwrap();
    let prompt = session.len();
    let mut generation = session.generate(ids.len());
    let text: String = generation.by_ref().map(|t| t.unwrap()).collect();
    assert_eq!(generation.ids(), ids);
    assert_eq!(generation.finish(), Some(Finish::Length));
    assert_eq!(session.ids()[prompt..], ids);
    assert!(!session.is_empty());
    assert!(model.detokenize(session.ids()).unwrap().ends_with(&text));
}

#[test]
fn logits_are_borrowed_and_greedy_takes_the_largest() {
    let model = model();
    let mut session = model.session(&options()).unwrap();
    assert_eq!(session.logits().unwrap_err().kind(), ErrorKind::Argument);
    session.feed(&model.tokenize(PROMPT, true, false).unwrap()).unwrap();
    let logits = session.logits().unwrap();
    assert_eq!(logits.len(), model.info().unwrap().vocab);
    let mut largest = 0;
    for (i, logit) in logits.iter().enumerate() {
        if *logit > logits[largest] {
            largest = i;
        }
    }
    let sum: f64 = logits.iter().map(|&l| f64::from(l).exp()).sum();
    let logprob = f64::from(logits[largest]) - sum.ln();
    let id = session.next_token().unwrap();
    assert_eq!(id, largest as i32);
    let (chosen, top) = session.logprobs(3).unwrap();
    assert_eq!((top.len(), top[0]), (3, (id, chosen)));
    assert!((f64::from(chosen) - logprob).abs() < 1e-4, "{} {}", chosen, logprob);
    assert_eq!(session.logprobs(10000).unwrap_err().kind(), ErrorKind::Argument);
    assert!(!session.text(id).unwrap().is_empty());
    assert_eq!(session.text(-1).unwrap_err().kind(), ErrorKind::Argument);
}

#[test]
fn a_batch_gives_the_same_tokens() {
    let (model, ids) = (model(), expected());
    let mut batch = model.batch(&BatchOptions::new().set("threads", 1).unwrap().set("context", 256).unwrap()).unwrap();
    let prompt = model.tokenize(PROMPT, true, false).unwrap();
    let other = model.tokenize("The sea", true, false).unwrap();
    let names: Vec<SessionId> = (0..3).map(|_| batch.add(&Sampling::new()).unwrap()).collect();
    for (i, &id) in names.iter().enumerate() {
        batch.session(id).unwrap().submit(if i == 1 { &other } else { &prompt }).unwrap();
    }
    let mut said = vec![Vec::new(); 3];
    while batch.pending() > 0 {
        for id in batch.step().unwrap() {
            let which = names.iter().position(|&n| n == id).unwrap();
            said[which].push(batch.session(id).unwrap().next_token().unwrap());
            if said[which].len() == ids.len() {
                assert!(batch.remove(id));
                assert!(batch.session(id).is_none() && !batch.remove(id));
            }
        }
    }
    assert_eq!((&said[0], &said[2]), (&ids, &ids));
    assert_ne!(said[1], ids);
    assert!(batch.stats().unwrap().passes > 0);
}

#[test]
fn sampling_by_name() {
    let (model, seeds) = (model(), [1, 2, 1]);
    let said: Vec<String> = seeds
        .iter()
        .map(|seed| {
            let sampling = Sampling::new().set("--temp", 1.5).unwrap().set("seed", seed).unwrap();
            let sampling = sampling.set("samplers", "top_k;temperature").unwrap().set("top-k", 50).unwrap();
            let mut session = model.session(&options().sampling(&sampling)).unwrap();
            session.feed_text(PROMPT, false).unwrap();
            session.generate(24).map(|t| t.unwrap()).collect()
        })
        .collect();
    assert_eq!(said[0], said[2]);
    assert_ne!(said[0], said[1]);
    let mut session = model.session(&options()).unwrap();
    session.feed_text(PROMPT, false).unwrap();
    let first = expected()[0];
    session.set_sampling(&Sampling::new().logit_bias(&[(first, f32::NEG_INFINITY)])).unwrap();
    assert_ne!(session.next_token().unwrap(), first);
    session.set_sampling(&Sampling::new().dry_breakers(&["\n"]).unwrap().set("dry_multiplier", 1).unwrap()).unwrap();
    let e = Sampling::new().set("top_q", 1).err().unwrap();
    assert!(e.kind() == ErrorKind::Argument && e.message().contains("top_q"), "{}", e);
    assert!(Sampling::new().set("top_k", "4\0").is_err());
    assert!(
        Sampling::new().set("samplers", "no such sampler").is_err() || {
            let sampling = Sampling::new().set("samplers", "no such sampler").unwrap();
            session.set_sampling(&sampling).unwrap_err().message().contains("no such sampler")
        }
    );
    assert!(model.sampling_defaults().is_ok());
}

#[test]
fn embeddings_scores_and_tokens() {
    let model = model();
    let info = model.info().unwrap();
    let ids = model.tokenize("a small house", true, false).unwrap();
    let mut session = model.session(&options()).unwrap();
    let rows = session.embed(&ids, Pooling::None, false).unwrap();
    assert_eq!(rows.len(), info.hidden * ids.len());
    session.rewind(0).unwrap();
    let last = session.embed(&ids, Pooling::Last, false).unwrap();
    assert_eq!(last, rows[rows.len() - info.hidden..]);
    let of_text = model.embed("a small house", Pooling::Mean).unwrap();
    let length: f32 = of_text.iter().map(|x| x * x).sum();
    assert!((length - 1.0).abs() < 1e-4, "{}", length);
    assert!(model.embed("a", Pooling::Rank).is_err());
    session.rewind(0).unwrap();
    let scores = session.score(&ids).unwrap();
    assert!(scores.len() == ids.len() && scores.iter().all(|&s| s <= 0.0));
    assert_eq!(model.role("no such role").unwrap_err().kind(), ErrorKind::Argument);
    if let Some(bos) = model.role("bos").unwrap() {
        assert!(bos >= 0);
    }
    assert_eq!(model.find_token("no such token of any vocabulary"), None);
    assert!(info.description.contains("layers") && info.has_tokenizer);
}

#[test]
fn stop_texts_grammars_and_files() {
    let model = model();
    let mut session = model.session(&options()).unwrap();
    session.feed_text(PROMPT, false).unwrap();
    let prompt = session.len();
    let whole: String = session.generate(24).map(|t| t.unwrap()).collect();
    let stop = &whole[whole.len() / 2..whole.len() / 2 + 3];
    session.rewind(prompt - 1).unwrap();
    let last = model.tokenize(PROMPT, true, false).unwrap()[prompt - 1..].to_vec();
    session.feed(&last).unwrap();
    session.set_stop(&[stop]).unwrap();
    let cut: String = session.generate(24).map(|t| t.unwrap()).collect();
    assert_eq!(cut, whole[..whole.find(stop).unwrap()]);
    assert_eq!(session.stopped(), Some(0));
    let file = std::env::temp_dir().join(format!("jitrun-rust-{}", std::process::id()));
    session.save(&file).unwrap();
    let mut again = model.session(&options()).unwrap();
    again.restore(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(again.ids(), session.ids());
    let fork = session.fork(&options()).unwrap();
    assert_eq!(fork.ids(), session.ids());
    drop(fork);

    let mut session = model.session(&options()).unwrap();
    session.feed_text(PROMPT, false).unwrap();
    assert_eq!(session.grammar_complete(), None);
    session.set_grammar(Some(Grammar::Regex("(red|blue) [0-9]{2}"))).unwrap();
    assert_eq!(session.grammar_complete(), Some(false));
    let text: String = session.generate(40).map(|t| t.unwrap()).collect();
    let words: Vec<&str> = text.split(' ').collect();
    assert!(["red", "blue"].contains(&words[0]) && words[1].parse::<u32>().is_ok(), "{}", text);
    assert_eq!(session.grammar_complete(), Some(true));
    assert!(session.set_grammar(Some(Grammar::JsonSchema("{"))).is_err());
    assert!(session.set_grammar(Some(Grammar::Gbnf("nothing"))).is_err());
    session.set_grammar(None).unwrap();
}

#[test]
fn conversations_and_tools() {
    let model = model();
    let chat = Chat::new().template(CHATML).system("a \"b\" \\ \u{1} \n").user("Hello");
    let prompt = model.render(&chat).unwrap();
    assert!(prompt.text().contains("a \"b\" \\ \u{1} \n") && prompt.text().ends_with("assistant\n"));
    assert!(!model.render(&chat.clone().without_generation_prompt()).unwrap().text().ends_with("assistant\n"));
    assert!(!prompt.ids().is_empty());
    assert_eq!(model.render(&chat.clone().message_json("{")).unwrap_err().kind(), ErrorKind::Argument);
    let mut session = model.session(&options()).unwrap();
    let mut told = String::new();
    let reply = session
        .chat(&chat, 12, |event| {
            if let Event::Text(text) = event {
                told += text;
            }
        })
        .unwrap();
    assert_eq!(told, reply.text);
    assert!(!reply.ids.is_empty());
    let next = chat.message_json(&reply.message()).user("And?").tools(TOOLS);
    let forced = model.force_call(&next, Some("weather")).unwrap();
    let reply = session.chat_forced(&next, &forced, 100, |_| ()).unwrap();
    let call = &reply.calls[0];
    assert!(call.name == "weather" && call.whole && call.arguments.contains("\"sky\""), "{:?}", reply);
    assert!(reply.message().contains("\"tool_calls\":[{"), "{}", reply.message());
    let done = next.message_json(&reply.message()).tool_result(&call.id, "grey");
    assert!(model.render(&done).unwrap().text().contains("grey"));
    assert!(model.force_call(&done, Some("no such tool")).is_err());
    let said = r#"Well. <tool_call>{"name": "weather", "arguments": {"sky": "blue"}}</tool_call>"#;
    let json = model.parse_answer(&done, said).unwrap();
    assert!(json.contains("\"weather\"") && json.contains("\"Well."), "{}", json);
}

#[test]
fn threads_and_cancelling() {
    let (model, ids) = (model(), expected());
    thread::scope(|scope| {
        for _ in 0..3 {
            let mut session = model.session(&options()).unwrap();
            let ids = &ids;
            scope.spawn(move || {
                session.feed_text(PROMPT, false).unwrap();
                let mut generation = session.generate(ids.len());
                generation.by_ref().for_each(|t| drop(t.unwrap()));
                assert_eq!(generation.ids(), ids);
            });
        }
    });
    let cancel = Cancel::new().unwrap();
    let mut session = model.session(&options().cancel(&cancel)).unwrap();
    let canceller = session.canceller();
    thread::spawn(move || canceller.cancel()).join().unwrap();
    let e = session.feed_text(PROMPT, false).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Cancelled);
    session.feed_text(PROMPT, false).unwrap();
    cancel.set(true);
    assert!(cancel.get());
    assert_eq!(session.feed_text(PROMPT, false).unwrap_err().kind(), ErrorKind::Cancelled);
    cancel.set(false);
    session.feed_text(PROMPT, false).unwrap();
    let canceller = session.canceller();
    drop(session);
    canceller.cancel();
}

#[test]
fn errors_are_sentences() {
    let e = Model::open("/no/such/model.gguf").err().unwrap();
    assert!(e.kind() == ErrorKind::Io && e.to_string().contains("/no/such/model.gguf"), "{}", e);
    assert!(Model::open("a\0b").err().unwrap().message().contains("zero byte"));
    let model = model();
    let mut session = model.session(&options().set("context", 4).unwrap()).unwrap();
    assert_eq!(session.feed(&[1; 5]).unwrap_err().kind(), ErrorKind::Context);
    assert_eq!(session.feed(&[-1]).unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(session.rewind(9).unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(session.len(), 0);
    session.feed_text("Once", false).unwrap();
    let mut generation = session.generate(100);
    for text in generation.by_ref() {
        text.unwrap();
    }
    assert_eq!(generation.finish(), Some(Finish::Length));
    assert!(options().set("context", "many").is_err());
    assert_eq!(version(), env!("CARGO_PKG_VERSION"));
}
