//! Functions that the library calls: progress of loading and of prompts, logits before a choice; those that panic, that
//! break off, and that are dropped.

mod support;

use jitrun::*;
use std::ops::ControlFlow::{Break, Continue};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use support::*;

#[test]
fn progress_of_loading() {
    let mut told = Vec::new();
    let model = Model::open_with_progress(path(), &one_thread(), |done, total| {
        told.push((done, total));
        Continue(())
    })
    .unwrap();
    assert!(!told.is_empty() && told.windows(2).all(|w| w[0].0 <= w[1].0 && w[0].1 == w[1].1), "{:?}", told);
    assert!(told.iter().all(|&(done, total)| done <= total && total > 0));
    assert!(model.info().unwrap().weight_bytes > 0);
    let mut calls = 0;
    let e = Model::open_with_progress(path(), &one_thread(), |_, _| {
        calls += 1;
        Break(())
    });
    assert_eq!((e.err().unwrap().kind(), calls), (ErrorKind::Argument, 1));
    let panicked = catch_unwind(|| Model::open_with_progress(path(), &one_thread(), |_, _| panic!("while loading")));
    assert_eq!(said(panicked.err().unwrap()), "while loading");
    let e = Model::open_with_progress("no such file", &one_thread(), |_, _| panic!("never")).err().unwrap();
    assert_eq!(e.kind(), ErrorKind::Io);
}

#[test]
fn progress_of_prompts() {
    let (model, told) = (model(), Mutex::new(Vec::new()));
    let prompt = long_prompt(&model);
    let small = || options().set("batch", 8).unwrap();
    let mut session = model.session(&small()).unwrap();
    let mut whole = model.session(&options()).unwrap();
    whole.feed(&prompt).unwrap();
    let expected = bits(whole.logits().unwrap());
    session
        .set_prompt_fn(|computed, length| {
            told.lock().unwrap().push((computed, length));
            Continue(())
        })
        .unwrap();
    session.feed(&prompt).unwrap();
    assert_eq!(bits(session.logits().unwrap()), expected);
    {
        let told = told.lock().unwrap();
        assert!(told.len() >= prompt.len() / 8 && told.windows(2).all(|w| w[0].0 < w[1].0), "{:?}", told);
        assert!(told.iter().all(|t| t.1 == prompt.len()) && told.last().unwrap().0 == prompt.len());
    }
    // Breaking off: the session is where its last pass left it, and goes on.
    let calls = AtomicUsize::new(0);
    let mut session = model.session(&small()).unwrap();
    session.set_prompt_fn(|_, _| if calls.fetch_add(1, SeqCst) == 1 { Break(()) } else { Continue(()) }).unwrap();
    assert_eq!(session.feed(&prompt).unwrap_err().kind(), ErrorKind::Cancelled);
    assert!(!session.is_empty() && session.len() < prompt.len() && calls.load(SeqCst) == 2);
    let there = session.len();
    session.feed(&prompt[there..]).unwrap();
    assert_eq!(bits(session.logits().unwrap()), expected);
    // A panic comes through each call that computes, and leaves a session that goes on.
    let armed = AtomicUsize::new(0);
    let mut session = model.session(&small()).unwrap();
    session
        .set_prompt_fn(|_, _| if armed.swap(0, SeqCst) == 1 { panic!("in a prompt") } else { Continue(()) })
        .unwrap();
    for which in 0..5 {
        armed.store(1, SeqCst);
        session.rewind(0).unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| match which {
            0 => session.feed(&prompt),
            1 => session.feed_text(PROMPT, false),
            2 => session.feed_logits(&prompt).map(drop),
            3 => session.score(&prompt).map(drop),
            _ => session.embed(&prompt, Pooling::Mean, true).map(drop),
        }));
        assert_eq!(said(panicked.unwrap_err()), "in a prompt", "{}", which);
    }
    session.rewind(0).unwrap();
    session.feed(&prompt).unwrap();
    assert_eq!(bits(session.logits().unwrap()), expected);
    // Ended, it is told of nothing.
    session.clear_prompt_fn().unwrap();
    armed.store(1, SeqCst);
    session.rewind(0).unwrap();
    session.feed(&prompt).unwrap();
    assert_eq!(armed.load(SeqCst), 1);
}

#[test]
fn logits_before_a_choice() {
    let (model, ids) = (model(), expected());
    let vocab = model.info().unwrap().vocab;
    let prompt = model.tokenize(PROMPT, true, false).unwrap();
    for speculate in ["off", "auto", "4"] {
        let seen = Mutex::new(Vec::new());
        let mut session = model.session(&options().set("speculate", speculate).unwrap()).unwrap();
        session
            .set_logits_fn(|logits, ids| {
                assert_eq!(logits.len(), vocab);
                seen.lock().unwrap().push(ids.to_vec());
                Continue(())
            })
            .unwrap();
        session.feed(&prompt).unwrap();
        let mut generation = session.generate(ids.len());
        generation.by_ref().for_each(|t| drop(t.unwrap()));
        assert_eq!(generation.ids(), ids);
        let all: Vec<i32> = prompt.iter().chain(&ids).copied().collect();
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), ids.len());
        assert!(seen.iter().enumerate().all(|(i, s)| s[..] == all[..prompt.len() + i]));
    }
    // What it forbids is not chosen; the model's own logits are as ever.
    let mut session = model.session(&options()).unwrap();
    session.feed(&prompt).unwrap();
    let own = bits(session.logits().unwrap());
    session
        .set_logits_fn(|logits, _| {
            logits[ids[0] as usize] = f32::NEG_INFINITY;
            Continue(())
        })
        .unwrap();
    assert_ne!(session.next_token().unwrap(), ids[0]);
    session.rewind(prompt.len() - 1).unwrap();
    session.feed(&prompt[prompt.len() - 1..]).unwrap();
    assert_eq!(bits(session.logits().unwrap()), own);
    // A fork has none, and neither has a session of which it was cleared.
    let mut fork = session.fork(&options()).unwrap();
    fork.feed(&ids[..1]).unwrap();
    fork.rewind(prompt.len() - 1).unwrap();
    fork.feed(&prompt[prompt.len() - 1..]).unwrap();
    assert_eq!(fork.next_token().unwrap(), ids[0]);
    session.clear_logits_fn().unwrap();
    assert_eq!(session.next_token().unwrap(), ids[0]);
    // Numbers that are none, and breaking off.
    session
        .set_logits_fn(|logits, _| {
            logits[7] = f32::NAN;
            Continue(())
        })
        .unwrap();
    let e = session.next_token().unwrap_err();
    assert!(e.kind() == ErrorKind::Argument && e.message().contains("token 7"), "{}", e);
    session.set_logits_fn(|_, _| Break(())).unwrap();
    assert_eq!(session.next_token().unwrap_err().kind(), ErrorKind::Cancelled);
    session.clear_logits_fn().unwrap();
    assert_eq!(session.next_token().unwrap(), ids[1]);
}

#[test]
fn panics_come_out_of_generations() {
    let (model, ids, calls) = (model(), expected(), AtomicUsize::new(0));
    let mut session = model.session(&options()).unwrap();
    session.feed_text(PROMPT, false).unwrap();
    session
        .set_logits_fn(|_, _| if calls.fetch_add(1, SeqCst) == 3 { panic!("before a choice") } else { Continue(()) })
        .unwrap();
    let mut generation = session.generate(ids.len());
    let panicked = catch_unwind(AssertUnwindSafe(|| generation.by_ref().for_each(|t| drop(t.unwrap()))));
    assert_eq!(said(panicked.unwrap_err()), "before a choice");
    assert_eq!(generation.ids(), &ids[..3]);
    generation.by_ref().for_each(|t| drop(t.unwrap()));
    assert_eq!(generation.ids(), ids);
    // In several threads at once.
    thread::scope(|scope| {
        for which in 0..3 {
            let (model, ids) = (&model, &ids);
            scope.spawn(move || {
                let mut session = model.session(&options()).unwrap();
                session.feed_text(PROMPT, false).unwrap();
                let canceller = session.canceller();
                session
                    .set_logits_fn(move |_, so_far| match so_far.len() % (which + 2) {
                        0 => panic!("in a thread"),
                        _ => {
                            canceller.cancel(); // what computes next ends
                            Continue(())
                        }
                    })
                    .unwrap();
                let (mut panics, mut cancelled) = (0, 0);
                for _ in 0..12 {
                    match catch_unwind(AssertUnwindSafe(|| session.next_token())) {
                        Err(panic) => panics += (said(panic) == "in a thread") as usize,
                        Ok(Err(e)) => cancelled += (e.kind() == ErrorKind::Cancelled) as usize,
                        Ok(Ok(_)) => (),
                    }
                }
                assert!(panics + cancelled > 5 && cancelled > 0, "{} {}", panics, cancelled);
                session.clear_logits_fn().unwrap();
                let prompt = session.model().tokenize(PROMPT, true, false).unwrap();
                session.rewind(0).unwrap();
                while session.feed(&prompt).is_err() {}
                let mut generation = session.generate(ids.len());
                generation.by_ref().for_each(|t| drop(t.unwrap()));
                assert_eq!(generation.ids(), &ids[..]);
            });
        }
    });
}

#[test]
fn functions_live_as_long_as_their_session() {
    let model = model();
    let held = Arc::new(());
    let mut session = model.session(&options()).unwrap();
    let one = held.clone();
    session
        .set_logits_fn(move |_, _| {
            let _ = &one;
            Continue(())
        })
        .unwrap();
    let two = held.clone();
    session
        .set_prompt_fn(move |_, _| {
            let _ = &two;
            Continue(())
        })
        .unwrap();
    assert_eq!(Arc::strong_count(&held), 3);
    let three = held.clone();
    session
        .set_logits_fn(move |_, _| {
            let _ = &three;
            Continue(())
        })
        .unwrap();
    assert_eq!(Arc::strong_count(&held), 3);
    session.clear_prompt_fn().unwrap();
    session.clear_prompt_fn().unwrap();
    assert_eq!(Arc::strong_count(&held), 2);
    // It goes with its session to another thread.
    let mut session = thread::scope(|scope| {
        let moved = scope.spawn(move || {
            session.feed_text(PROMPT, false).unwrap();
            session.next_token().unwrap();
            session
        });
        moved.join().unwrap()
    });
    assert_eq!(session.next_token().unwrap(), expected()[1]);
    drop(session);
    assert_eq!(Arc::strong_count(&held), 1);
    // What panics when it is dropped does so behind the library's close.
    struct Loud;
    impl Drop for Loud {
        fn drop(&mut self) {
            panic!("dropped");
        }
    }
    let mut session = model.session(&options()).unwrap();
    let loud = Loud;
    session
        .set_logits_fn(move |_, _| {
            let _ = &loud;
            Continue(())
        })
        .unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| drop(session)));
    assert_eq!(said(panicked.unwrap_err()), "dropped");
}

#[test]
fn sessions_of_a_batch_have_them() {
    let (model, ids) = (model(), expected());
    let (told, armed) = (Mutex::new(Vec::new()), AtomicUsize::new(1));
    let mut batch = model.batch(&batch_options().set("tokens", 8).unwrap()).unwrap();
    let prompt = model.tokenize(PROMPT, true, false).unwrap();
    let long = long_prompt(&model);
    let (short, other) = (batch.add(&Sampling::new()).unwrap(), batch.add(&Sampling::new()).unwrap());
    {
        let mut session = batch.session(other).unwrap();
        session
            .set_prompt_fn(|computed, length| {
                told.lock().unwrap().push((computed, length));
                if computed > 20 && armed.swap(0, SeqCst) == 1 {
                    panic!("in a step")
                }
                Continue(())
            })
            .unwrap();
        session.submit(&long).unwrap();
    }
    let mut session = batch.session(short).unwrap();
    session
        .set_logits_fn(|logits, _| {
            logits[ids[0] as usize] += 0.0;
            Continue(())
        })
        .unwrap();
    session.submit(&prompt).unwrap();
    let (mut said_short, mut panics, mut cancelled) = (Vec::new(), 0, 0);
    while batch.pending() > 0 {
        let ready = match catch_unwind(AssertUnwindSafe(|| batch.step())) {
            Ok(ready) => ready.unwrap(),
            Err(panic) => {
                assert_eq!(said(panic), "in a step");
                panics += 1;
                continue;
            }
        };
        for id in ready {
            if id == short {
                said_short.push(batch.session(id).unwrap().next_token().unwrap());
                if said_short.len() == ids.len() {
                    batch.session(id).unwrap().clear_logits_fn().unwrap();
                    assert!(batch.remove(id));
                }
            } else {
                // The panic cancelled it: it is told once, and goes on behind what it has.
                let mut session = batch.session(id).unwrap();
                match session.next_token() {
                    Err(e) => {
                        assert_eq!(e.kind(), ErrorKind::Cancelled);
                        cancelled += 1;
                        let there = session.len();
                        assert!(there < long.len());
                        session.submit(&long[there..]).unwrap();
                    }
                    Ok(_) => {
                        session.clear_prompt_fn().unwrap();
                        assert!(batch.remove(id));
                    }
                }
            }
        }
    }
    assert_eq!((&said_short, panics, cancelled), (&ids, 1, 1));
    assert!(told.lock().unwrap().last().unwrap().0 == long.len());
}
