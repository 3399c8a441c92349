//! Models, sessions, batches and conversations, with the model in `JITRUN_MODEL`; `JITRUN_IDS` is what the program
//! `jitrun` generates behind "Once upon a time", greedily.

mod support;

use jitrun::*;
use std::thread;
use support::*;

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
fn seeded_bytes_are_those_of_the_program() {
    let (model, (ids, bytes)) = (model(), expected_seeded());
    let sampling = model.sampling_defaults().unwrap().set("temperature", 1.2).unwrap().set("seed", 7).unwrap();
    let mut session = model.session(&options().sampling(&sampling)).unwrap();
    session.feed_text(PROMPT, false).unwrap();
    let mut text = Vec::new();
    for &id in &ids {
        assert_eq!(session.next_token().unwrap(), id);
        let (logprob, sampled) = (session.logprobs(0).unwrap().0, session.sampled_logprobs(40).unwrap());
        assert!(logprob <= 0.0 && sampled.0 <= 0.0 && sampled.1.len() <= 40 && sampled.1.iter().any(|t| t.0 == id));
        let sum: f32 = sampled.1.iter().map(|t| t.1.exp()).sum();
        assert!(sum < 1.001 && sampled.1.windows(2).all(|w| w[0].1 >= w[1].1), "{}", sum);
        text.extend(session.text_bytes(id).unwrap());
    }
    text.extend(session.flush().unwrap().into_bytes());
    assert_eq!(text, bytes);
    // In a batch of several, with the same seed and with another one, all at once.
    let mut batch = model.batch(&batch_options()).unwrap();
    let prompts = vec![model.tokenize(PROMPT, true, false).unwrap(); 3];
    let mut told = vec![String::new(); 3];
    let made = batch.generate(&prompts, &sampling, ids.len(), |number, text| told[number] += text).unwrap();
    for (completion, told) in made.iter().zip(&told) {
        assert_eq!((&completion.ids, completion.text.as_bytes(), &completion.text), (&ids, &bytes[..], told));
        assert_eq!(completion.finish, Finish::Length);
    }
}

#[test]
fn batches_of_several_prompts() {
    let model = model();
    let texts = [PROMPT, "The sea", "A king", "In the morning the old woman went out, and"];
    let prompts: Vec<Vec<i32>> = texts.iter().map(|text| model.tokenize(text, true, false).unwrap()).collect();
    let alone: Vec<(Vec<i32>, String)> = prompts
        .iter()
        .map(|prompt| {
            let mut session = model.session(&options()).unwrap();
            session.feed(prompt).unwrap();
            let mut generation = session.generate(16);
            let text = generation.by_ref().map(|t| t.unwrap()).collect();
            (generation.ids().to_vec(), text)
        })
        .collect();
    let mut batch = model.batch(&batch_options().set("tokens", 7).unwrap()).unwrap();
    // One of the caller's own is told of after it, once.
    let own = batch.add(&Sampling::new()).unwrap();
    batch.session(own).unwrap().submit(&prompts[0]).unwrap();
    let made = batch.generate(&prompts, &Sampling::new(), 16, |_, _| ()).unwrap();
    assert!(made.iter().zip(&alone).all(|(done, (ids, text))| &done.ids == ids && &done.text == text));
    assert_eq!(batch.pending(), 1);
    assert_eq!(batch.step().unwrap(), [own]);
    assert_eq!(batch.session(own).unwrap().next_token().unwrap(), alone[0].0[0]);
    assert_eq!(batch.pending(), 1);
    assert_eq!(batch.step().unwrap(), [own]);
    let mut session = batch.session(own).unwrap();
    assert_eq!((session.len(), session.model().info().unwrap().vocab), (prompts[0].len() + 1, 4096));
    // What computes at once, alone, and what only asks.
    session.rewind(0).unwrap();
    session.feed_text(PROMPT, false).unwrap();
    assert_eq!(session.next_token().unwrap(), alone[0].0[0]);
    session.rewind(0).unwrap();
    let rows = session.feed_logits(&prompts[1]).unwrap();
    assert_eq!(bits(&rows[rows.len() - 4096..]), bits(session.logits().unwrap()));
    session.rewind(0).unwrap();
    session.feed(&prompts[1]).unwrap();
    assert_eq!(bits(&rows[rows.len() - 4096..]), bits(session.logits().unwrap()));
    session.rewind(0).unwrap();
    assert_eq!(session.score(&prompts[1]).unwrap().len(), prompts[1].len());
    session.rewind(0).unwrap();
    assert_eq!(session.embed(&prompts[1], Pooling::Last, true).unwrap().len(), 256);
    assert!(session.report(false).unwrap().contains("matmul") && session.stats().unwrap().prompt_tokens > 0);
    let file = std::env::temp_dir().join(format!("jitrun-rust-batch-{}", std::process::id()));
    session.save(&file).unwrap();
    session.rewind(0).unwrap();
    session.restore(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(session.ids(), prompts[1]);
    let fork = session.fork(&options()).unwrap();
    session.set_grammar(Some(Grammar::Regex("[0-9]+"))).unwrap();
    assert_eq!((session.grammar_complete(), session.stopped()), (Some(false), None));
    session.set_grammar(None).unwrap();
    session.set_stop(&["x"]).unwrap();
    session.set_sampling(&Sampling::new()).unwrap();
    // Forgetting, and what a prompt shares with one that is remembered.
    assert!(batch.remove(own));
    let id = batch.add(&Sampling::new()).unwrap();
    let long = long_prompt(&model).repeat(4);
    batch.session(id).unwrap().submit(&long).unwrap();
    while batch.step().unwrap().is_empty() {}
    batch.remove(id);
    let reused = |batch: &mut Batch<'_>| {
        let id = batch.add(&Sampling::new()).unwrap();
        let reused = batch.session(id).unwrap().submit(&long).unwrap();
        batch.remove(id);
        reused
    };
    assert!(reused(&mut batch) > 100);
    assert!(batch.forget(&long[..9]) > 0);
    assert!(reused(&mut batch) < 9); // what the other prompts begin with, too
    assert!(batch.forget(&[]) > 0);
    assert_eq!((batch.forget(&[]), reused(&mut batch)), (0, 0));
    assert!(batch.stats().unwrap().reused_tokens > 0);
    drop(batch);
    assert_eq!(fork.ids(), prompts[1]);
    // Errors and panics leave no session behind.
    let mut batch = model.batch(&batch_options()).unwrap();
    assert!(batch.generate(&[vec![1], vec![-1]], &Sampling::new(), 4, |_, _| ()).is_err());
    let told = std::panic::AssertUnwindSafe(|_: usize, _: &str| panic!("told"));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        batch.generate(&prompts, &Sampling::new(), 4, |number, text| (told.0)(number, text)).map(drop)
    }));
    assert_eq!(said(panicked.unwrap_err()), "told");
    assert_eq!(batch.pending(), 0);
    assert!(batch.generate(&prompts, &Sampling::new(), 0, |_, _| ()).unwrap().iter().all(|done| done.text.is_empty()));
    assert!(batch.generate(&[[0i32; 0]], &Sampling::new(), 1, |_, _| ()).is_err());
}

#[test]
fn logprobs_of_generations() {
    let (model, ids) = (model(), expected());
    let mut session = model.session(&options()).unwrap();
    session.feed_text(PROMPT, false).unwrap();
    let mut generation = session.generate(6).with_logprobs(2);
    generation.by_ref().for_each(|t| drop(t.unwrap()));
    assert_eq!(generation.logprobs().len(), 6);
    for (one, &id) in generation.logprobs().iter().zip(&ids) {
        assert!(one.id == id && one.top.len() == 2 && one.top[0] == (id, one.logprob) && one.logprob < 0.0);
    }
    assert!(generation.next().is_none());
    let e = session.generate(1).with_logprobs(1000).next().unwrap().unwrap_err();
    assert_eq!(e.kind(), ErrorKind::Argument);
    assert!(session.generate(3).logprobs().is_empty());
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
    // What may become a stop text is held back, and given at the end.
    session.rewind(prompt - 1).unwrap();
    session.feed(&last).unwrap();
    session.set_stop(&[&format!("{}?", &whole[whole.len() - 3..])]).unwrap();
    let held: String = session.generate(24).map(|t| t.unwrap()).collect();
    assert_eq!(held, whole);
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
    let schema = r#"{"type": "object", "properties": {"a": {"enum": [1]}}, "required": ["a"]}"#;
    for (grammar, others) in [(Grammar::JsonSchema(schema), false), (Grammar::OpenJsonSchema(schema), true)] {
        session.set_grammar(None).unwrap();
        session.rewind(0).unwrap();
        session.feed_text(PROMPT, false).unwrap();
        session.set_grammar(Some(grammar)).unwrap();
        let fed = session.feed(&model.tokenize(r#"{"a": 1, "b": 2}"#, false, false).unwrap());
        assert_eq!(fed.is_ok(), others, "{:?}", fed);
    }
    assert!(session.set_grammar(Some(Grammar::JsonSchema("{"))).is_err());
    assert!(session.set_grammar(Some(Grammar::Gbnf("nothing"))).is_err());
    session.set_grammar(Some(Grammar::Lark("start: start \"b\" | \"a\""))).unwrap();
    assert!(session.set_grammar(Some(Grammar::Lark("root ::= \"a\""))).is_err());
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
    let given = Chat::new().template("{{ a }}{{ strftime_now('%Y') }}").variables(r#"{"a": "b"}"#).now(930_000_000);
    assert_eq!(model.render(&given).unwrap().text(), "b1999");
    let e = model.render(&Chat::new().user("Hello").template_name("tool_use")).unwrap_err();
    assert!(e.kind() != ErrorKind::Memory && e.message().contains("template"), "{}", e);
    assert!(model.render(&given.template_name("tool_use")).is_err());
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
    // The reader gives the same, however the answer is cut.
    let two = format!("{} {}", said, r#"<tool_call>{"name": "weather", "arguments": {"sky": "grey"}}</tool_call> End"#);
    let events = |chat: &Chat, cuts: usize, cut: bool| {
        let mut reader = Answer::without_model(chat, None).unwrap();
        let mut all = Vec::new();
        for part in two.as_bytes().chunks(cuts) {
            all.extend(reader.feed(part, Some(0)).unwrap());
        }
        all.extend(reader.finish(cut).unwrap());
        assert!(reader.feed(b"more", None).is_err());
        let (mut text, mut calls) = (String::new(), Vec::new());
        for event in all {
            match event {
                Event::Text(more) => text += &more,
                Event::Call { call, id, name } => calls.push((call, id, name, String::new(), false)),
                Event::Arguments { call, text } => calls[call].3 += &text,
                Event::CallEnd { call, whole } => calls[call].4 = whole,
                other => panic!("{:?}", other),
            }
        }
        (text, calls)
    };
    let chat = Chat::new().tools(TOOLS).template("{{ messages }}");
    let whole = events(&chat, two.len(), false);
    assert_eq!((whole.1.len(), whole.1[1].0, &whole.1[1].1[..], whole.1[1].4), (2, 1, "call_1", true));
    assert!((1..9).all(|cuts| events(&chat, cuts, false) == whole));
    let one = chat.clone().one_call().call_id("mine");
    let first = events(&one, 3, false);
    assert_eq!((first.1.len(), &first.1[0].1[..]), (1, "mine_0"));
    assert!(one.parse_answer(&two, false).unwrap().contains("mine_0"));
    // An answer that was cut off: what is not there yet is not added.
    let elements = chat.clone().template("<tool_call>\n<function=f>\n<parameter=x>\n{{ tools }}");
    let open = "<tool_call>\n<function=weather>\n<parameter=sky>\nblue\n</parameter>\n";
    assert!(elements.parse_answer(open, false).unwrap().contains(r#""{\"sky\":\"blue\"}""#));
    assert!(elements.parse_answer(open, true).unwrap().contains(r#""{\"sky\":\"blue""#));
    assert_eq!(model.parse_cut_answer(&elements, open).unwrap(), elements.parse_answer(open, true).unwrap());
    assert_eq!(model.parse_answer(&elements, open).unwrap(), elements.parse_answer(open, false).unwrap());
    let thinking = Chat::new().template("{{ '<think>' }}");
    let json = thinking.parse_answer("<think>\nHm.\n</think>\n\nYes.", false).unwrap();
    assert!(
        json.contains(r#""reasoning_content": "Hm.""#) || json.contains(r#""reasoning_content":"Hm.""#),
        "{}",
        json
    );
    let json = thinking.clone().keep_reasoning().parse_answer("<think>\nHm.\n</think>\n\nYes.", false).unwrap();
    assert!(json.contains("<think>") && !json.contains("reasoning_content"), "{}", json);
    // A forced call by hand: what opens it is fed, and the reader is told.
    let chat = Chat::new().template(CHATML).user("Hello").tools(TOOLS).one_call();
    let forced = model.force_call(&chat, None).unwrap();
    assert_eq!(model.tokenize(&forced.prompt(), false, true).unwrap(), forced.ids());
    let prompt = model.render(&chat).unwrap();
    let mut reader = Answer::new(&model, &chat, &prompt, Some(&forced)).unwrap();
    let rest = r#"weather", "arguments": {"sky": "grey"}}</tool_call>"#;
    let events = reader.feed(rest.as_bytes(), None).unwrap();
    assert!(matches!(&events[0], Event::Call { name, .. } if name == "weather"), "{:?} {}", events, forced.prompt());
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

#[test]
fn reasoning_before_a_grammar() {
    let model = model();
    let teaching = "{% for t in tools %}<tool_call>{{ t | tojson }}</tool_call>\n{% endfor %}";
    let may = format!("{}{}{{# <think></think> #}}", teaching, CHATML);
    let within = may.replace("<|im_start|>assistant\n{% endif", "<|im_start|>assistant\n<think>\n{% endif");
    assert_ne!(may, within);
    let schema =
        Grammar::JsonSchema(r#"{"type": "object", "properties": {"a": {"enum": ["yes", "no"]}}, "required": ["a"]}"#);
    let large = || options().set("context", 512).unwrap();
    let chat = |template: &str| Chat::new().template(template).user("Go").tools(TOOLS).one_call();
    let is_json = |text: &str| {
        let text: String = text.split_whitespace().collect();
        text == r#"{"a":"yes"}"# || text == r#"{"a":"no"}"#
    };
    // The prompt is within the reasoning, and the model does not end it by itself.
    let mut session = model.session(&large()).unwrap();
    let reply = session.chat_grammar(&chat(&within), schema, 9, |_| ()).unwrap();
    assert_eq!((reply.finish, &reply.text[..], reply.reasoning.is_empty()), (Finish::Length, "", false));
    let prompt = model.render(&chat(&within)).unwrap();
    let forced = model.force_call_behind(&chat(&within), None, &prompt).unwrap();
    assert!(forced.behind_reasoning() && forced.ids().is_empty() && !forced.prompt().is_empty());
    assert!(!model.force_call(&chat(&within), None).unwrap().behind_reasoning());
    let reply = session.chat_forced(&chat(&within), &forced, 9, |_| ()).unwrap();
    assert_eq!((&reply.text[..], reply.calls.len(), reply.reasoning.is_empty()), ("", 0, false));
    // The model may begin it, and does not.
    let reply = session.chat_grammar(&chat(&may), schema, 60, |_| ()).unwrap();
    assert!(is_json(&reply.text) && reply.reasoning.is_empty() && reply.finish == Finish::Stop, "{:?}", reply);
    let prompt = model.render(&chat(&may)).unwrap();
    let forced = model.force_call_behind(&chat(&may), Some("weather"), &prompt).unwrap();
    let reply = session.chat_forced(&chat(&may), &forced, 100, |_| ()).unwrap();
    assert!(reply.calls[0].whole && reply.calls[0].name == "weather", "{:?}", reply);
    // It does where its mark is likely, but for a conversation without reasoning.
    let opens = model.tokenize("<", false, false).unwrap()[0];
    session.set_sampling(&Sampling::new().logit_bias(&[(opens, 60.0)])).unwrap();
    let reply = session.chat_grammar(&chat(&may), schema, 20, |_| ()).unwrap();
    assert_eq!((&reply.text[..], reply.finish), ("", Finish::Length));
    for variables in [None, Some("{}"), Some(r#" { "other": 1 }"#)] {
        let mut chat = chat(&format!("{{{{ enable_thinking }}}}{{{{ other }}}}{}", may)).without_reasoning();
        if let Some(json) = variables {
            chat = chat.variables(json);
        }
        let text = model.render(&chat).unwrap().text();
        assert!(text.starts_with("False") && text.starts_with("False1") == variables.map_or(false, |v| v.len() > 2));
        assert!(is_json(&session.chat_grammar(&chat, schema, 60, |_| ()).unwrap().text));
    }
    assert!(model.render(&chat(&may).variables("7").without_reasoning()).is_err());
    // By hand, alone and in a batch.
    let mut batch = model.batch(&batch_options()).unwrap();
    let id = batch.add(&Sampling::new()).unwrap();
    let mut member = batch.session(id).unwrap();
    let mut alone = model.session(&large()).unwrap();
    let prompt = model.render(&chat(&within)).unwrap();
    alone.feed(prompt.ids()).unwrap();
    member.feed(prompt.ids()).unwrap();
    alone.begin_grammar(Grammar::Regex("yes|no"), &chat(&within), &prompt).unwrap();
    member.begin_grammar(Grammar::Regex("yes|no"), &chat(&within), &prompt).unwrap();
    for text in ["Let me see. yes or no", "</think>\n\n"] {
        assert_eq!((alone.grammar_complete(), member.grammar_complete()), (Some(false), Some(false)));
        alone.feed_text(text, false).unwrap();
        member.feed_text(text, false).unwrap();
    }
    let text: String = alone.generate(40).map(|t| t.unwrap()).collect();
    assert!(["yes", "no"].contains(&text.trim()), "{}", text);
    let at = member.len();
    assert_eq!(member.next_token().unwrap(), alone.ids()[at]);
    alone.set_grammar(Some(Grammar::Regex("yes|no"))).unwrap();
    assert!(alone.feed_text("Let me see", false).unwrap_err().message().contains("does not allow"));
    let forced = model.force_call_behind(&chat(&within), None, &prompt).unwrap();
    member.set_grammar(None).unwrap();
    member.begin_call(&forced, &chat(&within), &prompt).unwrap();
    assert_eq!(member.grammar_complete(), Some(false));
}
