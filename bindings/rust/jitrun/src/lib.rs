//! Run large language models with jitrun.
//!
//! A [`Model`] is a GGUF or safetensors file made ready; a [`Session`] is one conversation on it; a [`Batch`] computes
//! many sessions together. The same tokens give the same bits on every machine, alone and in a batch.
//!
//! ```no_run
//! use jitrun::{Model, SessionOptions};
//!
//! let model = Model::open("model.gguf")?;
//! let options = SessionOptions::new().set("context", 512)?.sampling(&model.sampling_defaults()?);
//! let mut session = model.session(&options)?;
//! session.feed_text("Once upon a time", false)?;
//! for text in session.generate(64) {
//!     print!("{}", text?);
//! }
//! # Ok::<(), jitrun::Error>(())
//! ```
//!
//! # What does not compile
//!
//! A session cannot outlive its model:
//!
//! ```compile_fail,E0505
//! # fn f(model: jitrun::Model) -> jitrun::Result<()> {
//! let mut session = model.session(&jitrun::SessionOptions::new())?;
//! drop(model);
//! session.feed(&[1])?;
//! # Ok(())
//! # }
//! ```
//!
//! Logits are the library's own memory, valid until the next call on their session:
//!
//! ```compile_fail,E0499
//! # fn f(session: &mut jitrun::Session<'_>) -> jitrun::Result<()> {
//! let logits = session.logits()?;
//! session.feed(&[1])?;
//! println!("{}", logits[0]);
//! # Ok(())
//! # }
//! ```
//!
//! A session belongs to one thread at a time:
//!
//! ```compile_fail,E0277
//! fn shared<T: Sync>() {}
//! shared::<jitrun::Session<'static>>();
//! ```
//!
//! Sessions of a batch cannot be used while it computes:
//!
//! ```compile_fail,E0499
//! # fn f(batch: &mut jitrun::Batch<'_>, id: jitrun::SessionId) -> jitrun::Result<()> {
//! let mut session = batch.session(id).unwrap();
//! batch.step()?;
//! session.next_token()?;
//! # Ok(())
//! # }
//! ```
//!
//! A session of a batch does not leave it, and does not outlive it:
//!
//! ```compile_fail,E0596
//! # fn f(batch: &mut jitrun::Batch<'_>, id: jitrun::SessionId, other: &mut jitrun::Session<'_>) {
//! let mut session = batch.session(id).unwrap();
//! std::mem::swap(&mut *session, other);
//! # }
//! ```
//!
//! ```compile_fail,E0505
//! # fn f(mut batch: jitrun::Batch<'_>, id: jitrun::SessionId) -> jitrun::Result<()> {
//! let mut session = batch.session(id).unwrap();
//! drop(batch);
//! session.next_token()?;
//! # Ok(())
//! # }
//! ```
//!
//! A callback cannot have what is gone before its session:
//!
//! ```compile_fail,E0597
//! # fn f(model: &jitrun::Model) -> jitrun::Result<()> {
//! # use std::ops::ControlFlow;
//! let mut session = model.session(&jitrun::SessionOptions::new())?;
//! let banned = vec![7];
//! session.set_logits_fn(|logits, _| {
//!     banned.iter().for_each(|&id: &usize| logits[id] = f32::NEG_INFINITY);
//!     ControlFlow::Continue(())
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! nor use its session, nor what must stay on its thread, nor keep the logits:
//!
//! ```compile_fail,E0499
//! # fn f(mut session: jitrun::Session<'_>) -> jitrun::Result<()> {
//! # use std::ops::ControlFlow;
//! session.set_prompt_fn(|_, _| {
//!     session.rewind(0).unwrap();
//!     ControlFlow::Continue(())
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! ```compile_fail,E0277
//! # fn f(session: &mut jitrun::Session<'_>) -> jitrun::Result<()> {
//! # use std::ops::ControlFlow;
//! let counted = std::rc::Rc::new(std::cell::Cell::new(0));
//! session.set_prompt_fn(move |computed, _| {
//!     counted.set(computed);
//!     ControlFlow::Continue(())
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! ```compile_fail,E0521
//! # fn f<'m>(session: &mut jitrun::Session<'m>, mut kept: Vec<&'m [f32]>) -> jitrun::Result<()> {
//! # use std::ops::ControlFlow;
//! session.set_logits_fn(move |logits, _| {
//!     kept.push(logits);
//!     ControlFlow::Continue(())
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! Metadata and a reader of answers do not outlive the model:
//!
//! ```compile_fail,E0505
//! # fn f(model: jitrun::Model) {
//! let metadata = model.metadata();
//! drop(model);
//! println!("{}", metadata.len());
//! # }
//! ```
//!
//! ```compile_fail,E0505
//! # fn f(model: jitrun::Model, chat: &jitrun::Chat) -> jitrun::Result<()> {
//! let mut reader = jitrun::Answer::new(&model, chat, &model.render(chat)?, None)?;
//! drop(model);
//! reader.finish(false)?;
//! # Ok(())
//! # }
//! ```
#![warn(missing_docs)]

mod batch;
mod callbacks;
mod chat;
mod error;
mod machine;
mod metadata;
mod model;
mod options;
mod session;
mod vocabulary;

pub use batch::{Batch, BatchSession, Completion, SessionId};
pub use chat::{Answer, Call, Chat, Event, Forced, Prompt, Reply};
pub use error::{Error, ErrorKind, Result};
pub use jitrun_sys as sys;
pub use machine::{devices, model_needs, write_objects, Device};
pub use metadata::{Metadata, Value};
pub use model::{Bounded, Model, ModelInfo, Pooling};
pub use options::{BatchOptions, Cancel, CardOptions, ModelOptions, ObjectsOptions, Sampling, SessionOptions};
pub use session::{Canceller, Finish, Generation, Grammar, Session, TokenLogprobs};
pub use vocabulary::{Token, TokenKind};

macro_rules! opaque {
    ($($name:ty),*) => {
        $(impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        })*
    };
}
opaque!(Model, ModelOptions, SessionOptions, BatchOptions, CardOptions, ObjectsOptions);
opaque!(Sampling, Cancel, Canceller);
opaque!(Session<'_>, Batch<'_>, BatchSession<'_, '_>, Generation<'_, '_>, Answer<'_>);

/// The version of the library that is loaded.
pub fn version() -> &'static str {
    // SAFETY: a text that lives as long as the library.
    let text = unsafe { std::ffi::CStr::from_ptr(sys::jit_version()) };
    text.to_str().unwrap_or("")
}

/// What may go to another thread, and what threads may share.
#[allow(dead_code)]
fn threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<(Model, Session<'_>, Batch<'_>, Answer<'_>, Cancel, Canceller, Generation<'_, '_>)>();
    send::<(ModelOptions, SessionOptions, BatchOptions, CardOptions, ObjectsOptions, Sampling, Chat, Forced, Prompt)>();
    sync::<(Model, Cancel, Canceller, Metadata<'_>)>();
    sync::<(ModelOptions, SessionOptions, BatchOptions, CardOptions, ObjectsOptions, Sampling, Chat, Forced, Prompt)>();
}
