//! Many sessions of one model, computed together.

use crate::error::{address, status};
use crate::{sys, BatchOptions, Cancel, Canceller, Grammar, Model, Result, Sampling, Session};
use std::collections::BTreeMap;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

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
    _cancel: Option<Cancel>,
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
        let (sessions, ready) = (BTreeMap::new(), Vec::new());
        Ok(Batch { raw, model: self, sessions, ready, _cancel: options.cancelled_by() })
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
        self.sessions.remove(&id).is_some()
    }

    /// At most one pass over what is pending. The sessions whose tokens are all computed by now, each told once.
    pub fn step(&mut self) -> Result<Vec<SessionId>> {
        let (mut n, most) = (0, self.ready.len());
        let at = self.ready.as_mut_ptr();
        // SAFETY: room for `most` addresses.
        status(|err| unsafe { sys::jit_batch_step(self.raw.as_ptr(), at, most, &mut n, err) })?;
        let ready = &self.ready[..n];
        let mut ids = BTreeMap::new();
        for (id, session) in &self.sessions {
            ids.insert(session.raw.as_ptr(), *id);
        }
        Ok(ready.iter().filter_map(|s| ids.get(s).copied()).collect())
    }

    /// How many sessions have tokens to compute, or are ready and were not told yet.
    pub fn pending(&self) -> usize {
        // SAFETY: open.
        unsafe { sys::jit_batch_pending(self.raw.as_ptr()) }
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

/// A session of a batch, as long as the batch does nothing else.
pub struct BatchSession<'b, 'm>(&'b mut Session<'m>);

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

    /// Chooses the next token; the next step computes it.
    pub fn next_token(&mut self) -> Result<i32> {
        self.0.next_token()
    }

    /// As [`Session::text`].
    pub fn text(&mut self, id: i32) -> Result<String> {
        self.0.text(id)
    }

    /// As [`Session::flush`].
    pub fn flush(&mut self) -> Result<String> {
        self.0.flush()
    }

    /// As [`Session::logits`].
    pub fn logits(&mut self) -> Result<&[f32]> {
        self.0.logits()
    }

    /// As [`Session::logprobs`].
    pub fn logprobs(&mut self, n: usize) -> Result<(f32, Vec<(i32, f32)>)> {
        self.0.logprobs(n)
    }

    /// As [`Session::ids`].
    pub fn ids(&self) -> &[i32] {
        self.0.ids()
    }

    /// As [`Session::rewind`].
    pub fn rewind(&mut self, n: usize) -> Result<()> {
        self.0.rewind(n)
    }

    /// As [`Session::set_sampling`].
    pub fn set_sampling(&mut self, sampling: &Sampling) -> Result<()> {
        self.0.set_sampling(sampling)
    }

    /// As [`Session::set_stop`].
    pub fn set_stop(&mut self, texts: &[&str]) -> Result<()> {
        self.0.set_stop(texts)
    }

    /// As [`Session::stopped`].
    pub fn stopped(&self) -> Option<usize> {
        self.0.stopped()
    }

    /// As [`Session::set_grammar`].
    pub fn set_grammar(&mut self, grammar: Option<Grammar<'_>>) -> Result<()> {
        self.0.set_grammar(grammar)
    }

    /// As [`Session::grammar_complete`].
    pub fn grammar_complete(&mut self) -> Option<bool> {
        self.0.grammar_complete()
    }

    /// As [`Session::canceller`].
    pub fn canceller(&self) -> Canceller {
        self.0.canceller()
    }
}
