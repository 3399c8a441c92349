//! Programs that are wrong, or careless: values out of range, empty prompts and those that are too long, panics in
//! functions, generations left in their middle, sessions forgotten or dropped while others cancel them.

mod support;

use jitrun::*;
use std::mem;
use std::ops::ControlFlow;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use support::*;

fn sentence(e: Error, kind: ErrorKind, word: &str) {
    assert_eq!(e.kind(), kind, "{}", e);
    assert!(e.to_string().contains(word) && !e.to_string().contains('\n'), "{} does not say {}", e, word);
}

#[test]
fn values_out_of_range() {
    let model = model();
    let mut session = model.session(&options()).unwrap();
    for id in [-1, i32::MIN, i32::MAX, model.info().unwrap().vocab as i32] {
        let word = "not in 0..";
        sentence(session.feed(&[id]).unwrap_err(), ErrorKind::Argument, word);
        sentence(session.feed_logits(&[id]).unwrap_err(), ErrorKind::Argument, word);
        sentence(session.score(&[id]).unwrap_err(), ErrorKind::Argument, word);
        sentence(session.embed(&[id], Pooling::Last, true).unwrap_err(), ErrorKind::Argument, word);
        sentence(model.detokenize(&[id]).unwrap_err(), ErrorKind::Argument, word);
        assert!(session.text(id).is_err() && !model.is_end(id));
    }
    session.feed_text(PROMPT, false).unwrap();
    session.next_token().unwrap();
    for n in [usize::MAX, 1 << 40, sys::JIT_LOGPROBS_MOST as usize + 1] {
        assert_eq!(session.logprobs(n).unwrap_err().kind(), ErrorKind::Argument);
        assert_eq!(session.sampled_logprobs(n).unwrap_err().kind(), ErrorKind::Argument);
        assert_eq!(session.rewind(n).unwrap_err().kind(), ErrorKind::Argument);
    }
    sentence(session.set_stop(&["a\0b"]).unwrap_err(), ErrorKind::Argument, "zero byte");
    sentence(session.save("a\0b").unwrap_err(), ErrorKind::Argument, "zero byte");
    assert_eq!(session.save("/no/such/folder/file").unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(session.trace("/no/such/folder/file").unwrap_err().kind(), ErrorKind::Argument);
    assert!(session.restore("/dev/null").is_err());
    for (name, value) in
        [("context", "-1"), ("context", "9999999999999"), ("threads", "x"), ("context", "a\0b"), ("", "")]
    {
        assert!(
            SessionOptions::new().set(name, value).is_err() || {
                let made = SessionOptions::new().set(name, value).unwrap();
                model.session(&made).is_err()
            }
        );
    }
    for message in ["{", "7", "[7]", "null", "{}, 7", "\0"] {
        assert!(model.render(&Chat::new().message_json(message).template(CHATML)).is_err(), "{}", message);
    }
    for wrong in ["", "{", "a\0b"] {
        assert!(model.render(&Chat::new().user("a").template(CHATML).tools(wrong)).is_err(), "tools {}", wrong);
        assert!(model.render(&Chat::new().user("a").template(CHATML).variables(wrong)).is_err(), "{}", wrong);
    }
}

#[test]
fn empty_prompts_and_those_that_are_too_long() {
    let model = model();
    let begun = model.tokenize("", true, false).unwrap();
    let mut session = model.session(&options()).unwrap();
    session.feed_text("", false).unwrap();
    assert_eq!(session.ids(), begun);
    let alone: String = session.generate(4).map(|t| t.unwrap()).collect();
    let mut batch = model.batch(&BatchOptions::new().set("context", 64).unwrap().set("threads", 1).unwrap()).unwrap();
    let made = batch.generate(&[begun], &Sampling::new(), 4, |_, _| ()).unwrap();
    assert_eq!(made[0].text, alone);
    sentence(
        batch.generate(&[vec![5], vec![]], &Sampling::new(), 4, |_, _| ()).unwrap_err(),
        ErrorKind::Argument,
        "prompt 1 has no tokens",
    );
    assert_eq!(batch.generate(&[[0; 0]; 0], &Sampling::new(), 4, |_, _| ()).unwrap(), []);
    let mut bare = model.session(&options().set("context", 64).unwrap()).unwrap();
    sentence(bare.next_token().unwrap_err(), ErrorKind::Argument, "feed at least one token");
    assert_eq!(bare.logits().unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(bare.embed(&[], Pooling::Mean, false).unwrap_err().kind(), ErrorKind::Argument);
    assert!(bare.score(&[]).unwrap().is_empty() && bare.feed_logits(&[]).unwrap().is_empty());
    bare.feed(&[]).unwrap();
    assert!(bare.generate(3).next().unwrap().is_err());
    // As many tokens as there is room for, and one more.
    let ids: Vec<i32> = (0..65).map(|i| 300 + i).collect();
    let full = "the context of 64 tokens is full";
    sentence(bare.feed(&ids).unwrap_err(), ErrorKind::Context, full);
    sentence(bare.score(&ids).unwrap_err(), ErrorKind::Context, full);
    sentence(bare.feed_logits(&ids).unwrap_err(), ErrorKind::Context, full);
    sentence(bare.embed(&ids, Pooling::Last, true).unwrap_err(), ErrorKind::Context, full);
    sentence(bare.feed_text(&PROMPT.repeat(90), false).unwrap_err(), ErrorKind::Context, full);
    assert!(bare.is_empty());
    bare.feed(&ids[..64]).unwrap();
    let mut generation = bare.generate(9);
    generation.by_ref().for_each(|t| drop(t.unwrap()));
    assert_eq!((generation.ids().len(), generation.finish()), (1, Some(Finish::Length)));
    let error = batch.generate(&[&ids[..4], &ids], &Sampling::new(), 4, |_, _| ()).unwrap_err();
    sentence(error, ErrorKind::Context, full);
    assert_eq!(batch.pending(), 0);
}

#[test]
fn panics_while_texts_are_told() {
    let (model, ids) = (model(), expected());
    let mut batch = model.batch(&batch_options()).unwrap();
    let prompt = model.tokenize(PROMPT, true, false).unwrap();
    for _ in 0..3 {
        let prompts = [&prompt, &prompt];
        let told = AssertUnwindSafe(|| batch.generate(&prompts, &Sampling::new(), 8, |_, _| panic!("while told")));
        assert_eq!(catch_unwind(told).unwrap_err().downcast_ref::<&str>(), Some(&"while told"));
        assert_eq!((batch.pending(), batch.step().unwrap()), (0, vec![]));
    }
    let made = batch.generate(&[&prompt], &Sampling::new(), ids.len(), |_, _| ()).unwrap();
    assert_eq!(made[0].ids, ids);
    let opened = catch_unwind(|| Model::open_with_progress(path(), &one_thread(), |_, _| panic!("while loading")));
    assert_eq!(opened.err().unwrap().downcast_ref::<&str>(), Some(&"while loading"));
}

#[test]
fn generations_left_and_sessions_forgotten() {
    let (model, ids) = (model(), expected());
    let mut session = model.session(&options()).unwrap();
    session.feed_text(PROMPT, false).unwrap();
    session.generate(9).next().unwrap().unwrap();
    mem::forget(session.generate(9));
    assert_eq!(session.next_token().unwrap(), ids[1]);
    // Forgetting is safe, so what was forgotten keeps the model, whose kernels its threads make.
    for turn in 0..6 {
        let other = Model::open_with(path(), &one_thread()).unwrap();
        let mut forgotten = other.session(&options()).unwrap();
        if turn % 2 == 0 {
            forgotten.feed_text(PROMPT, false).unwrap();
            forgotten.set_prompt_fn(|_, _| ControlFlow::Continue(())).unwrap();
        }
        let canceller = forgotten.canceller();
        let mut batch = other.batch(&batch_options()).unwrap();
        let id = batch.add(&Sampling::new()).unwrap();
        batch.session(id).unwrap().submit(&[5, 6]).unwrap();
        mem::forget(forgotten);
        mem::forget(batch);
        drop(other);
        canceller.cancel();
    }
}

#[test]
fn sessions_dropped_while_others_cancel_them() {
    let model = model();
    for _ in 0..6 {
        let mut session = model.session(&options()).unwrap();
        let (canceller, over) = (session.canceller(), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        canceller.cancel();
                    }
                });
            }
            for _ in 0..20 {
                if let Err(e) = session.feed(&[300; 8]) {
                    assert!(matches!(e.kind(), ErrorKind::Cancelled | ErrorKind::Context), "{}", e);
                }
            }
            drop(session);
            over.store(true, Ordering::Relaxed);
        });
    }
}
