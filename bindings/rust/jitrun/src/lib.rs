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
#![warn(missing_docs)]

mod batch;
mod chat;
mod error;
mod model;
mod options;
mod session;

pub use batch::{Batch, BatchSession, SessionId};
pub use chat::{Answer, Call, Chat, Event, Forced, Prompt, Reply};
pub use error::{Error, ErrorKind, Result};
pub use jitrun_sys as sys;
pub use model::{Model, ModelInfo, Pooling};
pub use options::{BatchOptions, Cancel, ModelOptions, Sampling, SessionOptions};
pub use session::{Canceller, Finish, Generation, Grammar, Session};

macro_rules! opaque {
    ($($name:ty),*) => {
        $(impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        })*
    };
}
opaque!(Model, ModelOptions, SessionOptions, BatchOptions, Sampling, Cancel, Canceller);
opaque!(Session<'_>, Batch<'_>, BatchSession<'_, '_>, Generation<'_, '_>, Answer<'_>);

/// The version of the library that is loaded.
pub fn version() -> &'static str {
    // SAFETY: a text that lives as long as the library.
    let text = unsafe { std::ffi::CStr::from_ptr(sys::jit_version()) };
    text.to_str().unwrap_or("")
}
