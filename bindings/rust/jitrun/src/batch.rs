//! Many sessions of one model, computed together.

use crate::error::{address, status};
use crate::model::Opened;
use crate::session::lossy;
use crate::{
    sys, BatchOptions, Cancel, Chat, Error, Finish, Forced, Grammar, Model, Pooling, Prompt, Result, Sampling, Session,
};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::panic::resume_unwind;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// Computes many sessions of a model together. What each gives is the same as if it were alone.
///
/// ```no_run
/// # use jitrun::{BatchOptions, Model, Sampling};
/// # let model = Model::open("model.gguf")?;
/// let mut batch = model.batch(&BatchOptions::new())?;
/// for prompt in ["Once upon a time", "The sea"] {
///     let id = batch.add(&Sampling::new())?;
///     batch.session(id).unwrap().submit(&model.tokenize(prompt, true, false)?)?;
/// }
/// while batch.pending() > 0 {
///     for id in batch.step()? {
///         let token = batch.session(id).unwrap().next_token()?;
///         if model.is_end(token) {
///             batch.remove(id);
///         }
///     }
/// }
/// # Ok::<(), jitrun::Error>(())
/// ```
pub struct Batch<'m> {
    raw: NonNull<sys::jit_batch>,
    model: &'m Model,
    sessions: BTreeMap<SessionId, Session<'m>>,
    ready: Vec<*mut sys::jit_session>,
    untold: Vec<SessionId>,
    _cancel: Option<Cancel>,
    _opened: Arc<Opened>,
}

// SAFETY: a batch and its sessions belong to one thread at a time, any of them, and the sessions never leave it.
unsafe impl Send for Batch<'_> {}

/// Which session of a batch. No other batch has the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(u64);

impl Model {
    /// A batch without sessions.
    pub fn batch(&self, options: &BatchOptions) -> Result<Batch<'_>> {
        // SAFETY: what the options point to lives until the end of the call, and cancel is kept.
        let raw = address(|err| unsafe { sys::jit_batch_open(self.raw(), &options.raw(), err) })?;
        let (sessions, ready, untold) = (BTreeMap::new(), Vec::new(), Vec::new());
        Ok(Batch { raw, model: self, sessions, ready, untold, _cancel: options.cancelled_by(), _opened: self.opened() })
    }
}

impl<'m> Batch<'m> {
    /// A new session.
    pub fn add(&mut self, sampling: &Sampling) -> Result<SessionId> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let batch = self.raw.as_ptr();
        // SAFETY: the sampling is copied.
        let raw = sampling.with_raw(|p| address(|err| unsafe { sys::jit_batch_session(batch, p, err) }))?;
        let id = SessionId(NEXT.fetch_add(1, Ordering::Relaxed));
        self.sessions.insert(id, Session::of(self.model, raw, None));
        self.ready.resize(self.sessions.len(), ptr::null_mut());
        Ok(id)
    }

    /// A session, which can be used until the batch is; `None`: there is no such session.
    pub fn session(&mut self, id: SessionId) -> Option<BatchSession<'_, 'm>> {
        self.sessions.get_mut(&id).map(BatchSession)
    }

    /// Closes a session. false: there was no such session.
    pub fn remove(&mut self, id: SessionId) -> bool {
        self.untold.retain(|&other| other != id);
        self.sessions.remove(&id).is_some()
    }

    /// At most one pass over what is pending. The sessions whose tokens are all computed by now, each told once. A
    /// panic of a callback goes on behind it: then the next step tells of the sessions that are ready.
    pub fn step(&mut self) -> Result<Vec<SessionId>> {
        if !self.untold.is_empty() {
            return Ok(std::mem::take(&mut self.untold));
        }
        let (mut n, most) = (0, self.ready.len());
        let at = self.ready.as_mut_ptr();
        // SAFETY: room for `most` addresses.
        let result = status(|err| unsafe { sys::jit_batch_step(self.raw.as_ptr(), at, most, &mut n, err) });
        let (mut ids, mut panic) = (BTreeMap::new(), None);
        for (id, session) in &mut self.sessions {
            ids.insert(session.raw.as_ptr(), *id);
            let other = session.callbacks.panicked();
            panic = panic.or(other);
        }
        let ready = if result.is_ok() { &self.ready[..n] } else { &[] };
        let told = ready.iter().filter_map(|s| ids.get(s).copied()).collect();
        if let Some(panic) = panic {
            self.untold = told;
            resume_unwind(panic);
        }
        result.map(|_| told)
    }

    /// How many sessions have tokens to compute, or are ready and were not told yet.
    pub fn pending(&self) -> usize {
        // SAFETY: open.
        self.untold.len() + unsafe { sys::jit_batch_pending(self.raw.as_ptr()) }
    }

    /// Forgets what is remembered of closed sessions that begin with these tokens; of no tokens: of all. How many
    /// sessions these were.
    pub fn forget(&mut self, ids: &[i32]) -> usize {
        // SAFETY: a list and its length.
        unsafe { sys::jit_batch_forget(self.raw.as_ptr(), ids.as_ptr(), ids.len()) }
    }

    /// Goes on from many prompts at once, each with at most so many tokens, and tells `told` of the texts as they come,
    /// with the number of their prompt. Each text is the same as alone.
    ///
    /// ```no_run
    /// # use jitrun::{BatchOptions, Model, Sampling};
    /// # let model = Model::open("model.gguf")?;
    /// let mut batch = model.batch(&BatchOptions::new())?;
    /// let prompts = [model.tokenize("Once upon a time", true, false)?, model.tokenize("The sea", true, false)?];
    /// for completion in batch.generate(&prompts, &Sampling::new(), 64, |_, _| ())? {
    ///     println!("{}", completion.text);
    /// }
    /// # Ok::<(), jitrun::Error>(())
    /// ```
    pub fn generate(
        &mut self,
        prompts: &[impl AsRef<[i32]>],
        sampling: &Sampling,
        most: usize,
        told: impl FnMut(usize, &str),
    ) -> Result<Vec<Completion>> {
        Run { batch: self, names: BTreeMap::new(), others: Vec::new() }.all(prompts, sampling, most, told)
    }

    /// What it has computed so far.
    pub fn stats(&self) -> Result<sys::jit_batch_stats> {
        let mut out = sys::jit_batch_stats::new();
        // SAFETY: the struct has its size.
        status(|err| unsafe { sys::jit_batch_get_stats(self.raw.as_ptr(), &mut out, err) })?;
        Ok(out)
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.sessions.clear();
        // SAFETY: its sessions are closed.
        unsafe { sys::jit_batch_close(self.raw.as_ptr()) }
    }
}

/// The sessions of one [`Batch::generate`], which go when it ends, and others that became ready meanwhile.
struct Run<'b, 'm> {
    batch: &'b mut Batch<'m>,
    names: BTreeMap<SessionId, usize>,
    others: Vec<SessionId>,
}

impl Run<'_, '_> {
    fn all(
        &mut self,
        prompts: &[impl AsRef<[i32]>],
        sampling: &Sampling,
        most: usize,
        mut told: impl FnMut(usize, &str),
    ) -> Result<Vec<Completion>> {
        let made = |_| Completion { text: String::new(), ids: Vec::new(), finish: Finish::Length };
        let mut out: Vec<Completion> = (0..prompts.len()).map(made).collect();
        for (number, prompt) in prompts.iter().enumerate() {
            if prompt.as_ref().is_empty() {
                return Err(Error::argument(format!("prompt {} has no tokens: one at least was expected", number)));
            }
            if most > 0 {
                let id = self.batch.add(sampling)?;
                self.names.insert(id, number);
                self.batch.session(id).map(|mut s| s.submit(prompt.as_ref())).transpose()?;
            }
        }
        let mut open = self.names.len();
        while open > 0 {
            let ready = self.batch.step()?;
            if ready.is_empty() && self.batch.pending() == 0 {
                return Err(Error::argument("a session of the batch's generation has nothing to compute: a fault"));
            }
            for id in ready {
                let (number, session) = match (self.names.get(&id), self.batch.sessions.get_mut(&id)) {
                    (Some(&number), Some(session)) => (number, session),
                    _ => {
                        self.others.push(id);
                        continue;
                    }
                };
                let done = &mut out[number];
                let mut generation = session.generate(most - done.ids.len());
                let (token, mut text) = generation.step()?;
                let over = token.is_none() || generation.finish().is_some() || done.ids.len() + 1 == most;
                if over && token.is_some() {
                    text.extend(generation.step()?.1);
                }
                done.finish = generation.finish().unwrap_or(done.finish);
                done.ids.extend(token);
                if !text.is_empty() {
                    let text = lossy(text);
                    told(number, &text);
                    done.text += &text;
                }
                if over {
                    self.batch.remove(id);
                    open -= 1;
                }
            }
        }
        Ok(out)
    }
}

impl Drop for Run<'_, '_> {
    fn drop(&mut self) {
        for id in self.names.keys() {
            self.batch.remove(*id);
        }
        self.batch.untold.append(&mut self.others);
    }
}

/// What [`Batch::generate`] made of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// The text.
    pub text: String,
    /// Its tokens, without one that ended it.
    pub ids: Vec<i32>,
    /// Why it ended.
    pub finish: Finish,
}

/// A session of a batch, as long as the batch does nothing else. What only asks is there, too, as of a [`Session`].
pub struct BatchSession<'b, 'm>(pub(crate) &'b mut Session<'m>);

impl<'b, 'm> BatchSession<'b, 'm> {
    /// Appends tokens, which the steps to come compute. How many need not be computed, since another session of the
    /// batch begins with them.
    pub fn submit(&mut self, ids: &[i32]) -> Result<usize> {
        let mut reused = 0;
        let (s, at, n) = (self.0.raw.as_ptr(), ids.as_ptr(), ids.len());
        // SAFETY: a list and its length.
        status(|err| unsafe { sys::jit_session_submit(s, at, n, &mut reused, err) })?;
        Ok(reused)
    }
}

impl<'m> Deref for BatchSession<'_, 'm> {
    type Target = Session<'m>;

    fn deref(&self) -> &Session<'m> {
        self.0
    }
}

/// What changes a session, by the same name. There is no `DerefMut`: a session must not leave its batch.
macro_rules! forward {
    ($($name:ident($($given:ident: $kind:ty),*) -> $out:ty;)*) => {
        impl BatchSession<'_, '_> {
            $(#[doc = concat!("As [`Session::", stringify!($name), "`].")]
            pub fn $name(&mut self, $($given: $kind),*) -> $out {
                self.0.$name($($given),*)
            })*
        }
    };
}

forward! {
    next_token() -> Result<i32>;
    text(id: i32) -> Result<String>;
    text_bytes(id: i32) -> Result<Vec<u8>>;
    flush() -> Result<String>;
    logits() -> Result<&[f32]>;
    logprobs(n: usize) -> Result<(f32, Vec<(i32, f32)>)>;
    sampled_logprobs(n: usize) -> Result<(f32, Vec<(i32, f32)>)>;
    feed(ids: &[i32]) -> Result<()>;
    feed_text(text: &str, parse_special: bool) -> Result<()>;
    feed_logits(ids: &[i32]) -> Result<Vec<f32>>;
    score(ids: &[i32]) -> Result<Vec<f32>>;
    embed(ids: &[i32], pooling: Pooling, normalise: bool) -> Result<Vec<f32>>;
    rewind(n: usize) -> Result<()>;
    save(path: impl AsRef<Path>) -> Result<()>;
    restore(path: impl AsRef<Path>) -> Result<()>;
    report(json: bool) -> Result<String>;
    set_sampling(sampling: &Sampling) -> Result<()>;
    set_stop(texts: &[&str]) -> Result<()>;
    set_grammar(grammar: Option<Grammar<'_>>) -> Result<()>;
    begin_grammar(grammar: Grammar<'_>, chat: &Chat, prompt: &Prompt) -> Result<()>;
    begin_call(forced: &Forced, chat: &Chat, prompt: &Prompt) -> Result<()>;
    grammar_complete() -> Option<bool>;
}
