//! One conversation, and text as it is generated.

use crate::callbacks::Callbacks;
use crate::error::{address, room, status};
use crate::model::{bytes, taken_text, Opened};
use crate::options::c_text;
use crate::{sys, Cancel, Chat, Error, ErrorKind, Forced, Model, Pooling, Prompt, Result, Sampling, SessionOptions};
use std::cell::Cell;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex};

/// One conversation on a model: a KV cache, a position, and how tokens are chosen. It can be sent to another thread,
/// and not shared.
pub struct Session<'m> {
    pub(crate) raw: NonNull<sys::jit_session>,
    pub(crate) model: &'m Model,
    handle: Canceller,
    pub(crate) callbacks: Callbacks<'m>,
    _cancel: Option<Cancel>,
    _opened: Arc<Opened>,
    not_shared: PhantomData<Cell<()>>,
}

// SAFETY: a jit_session belongs to one thread at a time, any of them.
unsafe impl Send for Session<'_> {}

/// Cancels what a session computes, from any thread. It does nothing once the session is gone.
#[derive(Clone)]
pub struct Canceller(Arc<Mutex<Target>>);

struct Target(*mut sys::jit_session);

// SAFETY: jit_session_cancel may be called from any thread; the mutex keeps the session open meanwhile.
unsafe impl Send for Target {}

impl Canceller {
    /// The call that computes on the session, or else the next one that will, ends with
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled).
    pub fn cancel(&self) {
        let target = self.0.lock().unwrap_or_else(|e| e.into_inner());
        // SAFETY: open, or null, which does nothing.
        unsafe { sys::jit_session_cancel(target.0) }
    }
}

/// What an answer keeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Grammar<'a> {
    /// A JSON value that a JSON Schema allows; `{}` is any value. Objects have no other members than `properties`
    /// names, unless the schema says otherwise.
    JsonSchema(&'a str),
    /// The same, where objects without `additionalProperties` may have other members, as JSON Schema says.
    OpenJsonSchema(&'a str),
    /// A text of a regular expression, as ECMA-262 writes them.
    Regex(&'a str),
    /// A text of a grammar of rules, which begins with `root`.
    Gbnf(&'a str),
    /// A text of a grammar of rules as Lark writes them, which begins with `start`.
    Lark(&'a str),
}

impl<'a> Grammar<'a> {
    fn raw(self) -> (c_int, &'a [u8]) {
        match self {
            Grammar::JsonSchema(text) => (sys::JIT_GRAMMAR_JSON_SCHEMA, text.as_bytes()),
            Grammar::OpenJsonSchema(text) => {
                (sys::JIT_GRAMMAR_JSON_SCHEMA | sys::JIT_GRAMMAR_ADDITIONAL, text.as_bytes())
            }
            Grammar::Regex(text) => (sys::JIT_GRAMMAR_REGEX, text.as_bytes()),
            Grammar::Gbnf(text) => (sys::JIT_GRAMMAR_GBNF, text.as_bytes()),
            Grammar::Lark(text) => (sys::JIT_GRAMMAR_LARK, text.as_bytes()),
        }
    }
}

impl Model {
    /// A new session.
    pub fn session(&self, options: &SessionOptions) -> Result<Session<'_>> {
        // SAFETY: what the options point to lives until the end of the call, and cancel is kept.
        let raw = options.with_raw(|o| address(|err| unsafe { sys::jit_session_open(self.raw(), o, err) }))?;
        Ok(Session::of(self, raw, options.cancelled_by()))
    }
}

impl<'m> Session<'m> {
    pub(crate) fn of(model: &'m Model, raw: NonNull<sys::jit_session>, cancel: Option<Cancel>) -> Self {
        let handle = Canceller(Arc::new(Mutex::new(Target(raw.as_ptr()))));
        let (callbacks, _opened) = (Callbacks::none(), model.opened());
        Session { raw, model, handle, callbacks, _cancel: cancel, _opened, not_shared: PhantomData }
    }

    /// Calls the library, and has a panic of a callback go on behind it.
    pub(crate) fn call(
        &mut self,
        call: impl FnOnce(*mut sys::jit_session, *mut sys::jit_error) -> c_int,
    ) -> Result<()> {
        let s = self.raw.as_ptr();
        let result = status(|err| call(s, err));
        self.callbacks.resume();
        result
    }

    /// The model that it is on.
    pub fn model(&self) -> &'m Model {
        self.model
    }

    /// What cancels it from another thread.
    pub fn canceller(&self) -> Canceller {
        self.handle.clone()
    }

    /// Appends tokens and computes them.
    pub fn feed(&mut self, ids: &[i32]) -> Result<()> {
        // SAFETY: a list and its length.
        self.call(|s, err| unsafe { sys::jit_session_feed(s, ids.as_ptr(), ids.len(), err) })
    }

    /// The same, and gives the logits after each of the tokens: a row of as many floats as the vocabulary has tokens
    /// for each, one behind the other.
    ///
    /// ```no_run
    /// # fn f(model: &jitrun::Model, session: &mut jitrun::Session<'_>, ids: &[i32]) -> jitrun::Result<()> {
    /// let logits = session.feed_logits(ids)?;
    /// for (row, id) in logits.chunks_exact(model.info()?.vocab).zip(ids) {
    ///     println!("after {id}: the first token has {}", row[0]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn feed_logits(&mut self, ids: &[i32]) -> Result<Vec<f32>> {
        let mut out = rows(ids.len(), self.model.vocab)?;
        let (at, n, to, room) = (ids.as_ptr(), ids.len(), out.as_mut_ptr(), out.len());
        // SAFETY: as many floats as the room says.
        self.call(|s, err| unsafe { sys::jit_session_feed_logits(s, at, n, to, room, err) })?;
        Ok(out)
    }

    /// The same for text. `parse_special`: false is for text that others wrote.
    pub fn feed_text(&mut self, text: &str, parse_special: bool) -> Result<()> {
        let (at, n, parse) = (text.as_ptr().cast(), text.len(), parse_special as c_int);
        // SAFETY: a text and its length.
        self.call(|s, err| unsafe { sys::jit_session_feed_text(s, at, n, parse, err) })
    }

    /// Chooses the next token.
    pub fn next_token(&mut self) -> Result<i32> {
        let mut id = 0;
        // SAFETY: room for a number.
        self.call(|s, err| unsafe { sys::jit_session_next(s, &mut id, err) })?;
        Ok(id)
    }

    pub(crate) fn text_of(&mut self, id: i32) -> Result<Vec<u8>> {
        let (mut n, mut err) = (0, room());
        // SAFETY: what is given is copied before the next call.
        unsafe {
            let text = sys::jit_session_text(self.raw.as_ptr(), id, &mut n, &mut err);
            if text.is_null() {
                status(|out| {
                    *out = err;
                    err.code
                })?;
            }
            Ok(bytes(text, n).to_vec())
        }
    }

    /// The text that a token completes, once for each token, in order: whole characters.
    pub fn text(&mut self, id: i32) -> Result<String> {
        self.text_bytes(id).map(lossy)
    }

    /// The same as bytes, which are whole characters unless the model writes none.
    pub fn text_bytes(&mut self, id: i32) -> Result<Vec<u8>> {
        if id < 0 {
            return Err(Error::argument(format!("the token is {}: 0 or more was expected", id)));
        }
        self.text_of(id)
    }

    /// The text that was held back, at the end.
    pub fn flush(&mut self) -> Result<String> {
        self.text_of(-1).map(lossy)
    }

    /// The logits after the last token: one for each token of the vocabulary, in the library's own memory.
    pub fn logits(&mut self) -> Result<&[f32]> {
        // SAFETY: vocab floats, valid until the next call, for which self is borrowed.
        unsafe {
            let logits = address(|err| sys::jit_session_logits(self.raw.as_ptr(), err) as *mut f32);
            self.callbacks.resume();
            Ok(std::slice::from_raw_parts(logits?.as_ptr(), self.model.vocab))
        }
    }

    /// Right after [`next_token`](Self::next_token): the natural logarithm of the chosen token's probability, and the n
    /// likeliest tokens with theirs, as the model says, before all sampling.
    pub fn logprobs(&mut self, n: usize) -> Result<(f32, Vec<(i32, f32)>)> {
        let (mut chosen, mut top) = (0.0, room_for_logprobs(n));
        let (at, n) = (top.as_mut_ptr(), top.len());
        // SAFETY: room for n entries.
        self.call(|s, err| unsafe { sys::jit_session_logprobs(s, &mut chosen, at, n, err) })?;
        Ok((chosen, top.iter().map(|t| (t.id, t.logprob)).collect()))
    }

    /// The same as the token was drawn from, behind all of the sampling and a grammar: of the n likeliest, as many as
    /// there are. Where the likeliest token is taken, that is one.
    pub fn sampled_logprobs(&mut self, n: usize) -> Result<(f32, Vec<(i32, f32)>)> {
        let (mut chosen, mut top, mut found) = (0.0, room_for_logprobs(n), 0);
        let (at, n) = (top.as_mut_ptr(), top.len());
        // SAFETY: room for n entries.
        self.call(|s, err| unsafe { sys::jit_session_sampled_logprobs(s, &mut chosen, at, n, &mut found, err) })?;
        Ok((chosen, top.iter().take(found).map(|t| (t.id, t.logprob)).collect()))
    }

    /// Appends tokens, and gives the natural logarithm of each one's probability after everything before it.
    pub fn score(&mut self, ids: &[i32]) -> Result<Vec<f32>> {
        let mut out = rows(ids.len(), 1)?;
        let (at, n) = (ids.as_ptr(), ids.len());
        // SAFETY: as many floats as tokens.
        let to = out.as_mut_ptr();
        self.call(|s, err| unsafe { sys::jit_session_score(s, at, n, to, err) })?;
        Ok(out)
    }

    /// Appends tokens, and gives their embedding; `normalise`: each row has length 1. [`Pooling::None`] gives the
    /// hidden states of all tokens, of which the model makes its logits.
    pub fn embed(&mut self, ids: &[i32], pooling: Pooling, normalise: bool) -> Result<Vec<f32>> {
        let mut options = sys::jit_embedding_options::new();
        options.pooling = pooling.raw();
        options.normalise = normalise as c_int;
        let mut out = match pooling {
            Pooling::Last | Pooling::Mean | Pooling::Cls => rows(1, self.model.embedding)?,
            Pooling::None => rows(ids.len(), self.model.hidden)?,
            Pooling::Rank => rows(1, 1)?,
        };
        let (at, n, to, n_out) = (ids.as_ptr(), ids.len(), out.as_mut_ptr(), out.len());
        // SAFETY: room for n_out floats.
        self.call(|s, err| unsafe { sys::jit_session_embed(s, at, n, &options, to, n_out, err) })?;
        Ok(out)
    }

    /// How many tokens it has, the last chosen one included.
    pub fn len(&self) -> usize {
        // SAFETY: open.
        unsafe { sys::jit_session_length(self.raw.as_ptr()) }
    }

    /// Whether it has no tokens.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its tokens.
    pub fn ids(&self) -> &[i32] {
        // SAFETY: as many as the length; whatever changes them borrows self for itself.
        unsafe {
            let ids = sys::jit_session_ids(self.raw.as_ptr());
            if ids.is_null() {
                return &[];
            }
            std::slice::from_raw_parts(ids, self.len())
        }
    }

    /// Forgets every token from position n on. Then feed at least one.
    pub fn rewind(&mut self, n: usize) -> Result<()> {
        // SAFETY: open.
        self.call(|s, err| unsafe { sys::jit_session_rewind(s, n, err) })
    }

    /// Writes its tokens and its cache into a file.
    pub fn save(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_text("the path", path.as_ref().as_os_str().as_bytes())?;
        // SAFETY: a text.
        self.call(|s, err| unsafe { sys::jit_session_save(s, path.as_ptr(), err) })
    }

    /// Reads them back, into a session without tokens.
    pub fn restore(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_text("the path", path.as_ref().as_os_str().as_bytes())?;
        // SAFETY: a text.
        self.call(|s, err| unsafe { sys::jit_session_restore(s, path.as_ptr(), err) })
    }

    /// What it has computed so far, and what that took.
    pub fn stats(&self) -> Result<sys::jit_session_stats> {
        let mut out = sys::jit_session_stats::new();
        // SAFETY: the struct has its size.
        status(|err| unsafe { sys::jit_session_get_stats(self.raw.as_ptr(), &mut out, err) })?;
        Ok(out)
    }

    /// What it launched and moved on a card; an error on a device that does not count.
    pub fn card_stats(&self) -> Result<sys::jit_card_stats> {
        let mut out = sys::jit_card_stats::new();
        // SAFETY: the struct has its size.
        status(|err| unsafe { sys::jit_session_get_card_stats(self.raw.as_ptr(), &mut out, err) })?;
        Ok(out)
    }

    /// Every kernel that it has used, as a table, or `json` as one JSON object. Times are those of a session with the
    /// option `profile`.
    pub fn report(&mut self, json: bool) -> Result<String> {
        // SAFETY: the text is taken over.
        unsafe {
            let text = address(|err| sys::jit_session_report(self.raw.as_ptr(), json as c_int, err))?;
            Ok(lossy(taken_text(text)))
        }
    }

    /// Writes what every worker did when, in Chrome's trace format, of a session with `profile` `events`.
    pub fn trace(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_text("the path", path.as_ref().as_os_str().as_bytes())?;
        // SAFETY: a text.
        self.call(|s, err| unsafe { sys::jit_session_trace(s, path.as_ptr(), err) })
    }

    /// A session with the same tokens and a copy of the cache. It has none of the callbacks.
    pub fn fork(&self, options: &SessionOptions) -> Result<Session<'m>> {
        // SAFETY: as in Model::session.
        let raw = options.with_raw(|o| address(|err| unsafe { sys::jit_session_fork(self.raw.as_ptr(), o, err) }))?;
        Ok(Session::of(self.model, raw, options.cancelled_by()))
    }

    /// How tokens are chosen from the next one on.
    pub fn set_sampling(&mut self, sampling: &Sampling) -> Result<()> {
        // SAFETY: what it points to is copied.
        sampling.with_raw(|p| status(|err| unsafe { sys::jit_session_set_sampling(self.raw.as_ptr(), p, err) }))
    }

    /// Texts that end an answer and are not part of it; an empty list: those of the model's files.
    pub fn set_stop(&mut self, texts: &[&str]) -> Result<()> {
        let texts = texts.iter().map(|&t| c_text("a stop text", t)).collect::<Result<Vec<_>>>()?;
        let list: Vec<*const c_char> = texts.iter().map(|t| t.as_ptr()).collect();
        // SAFETY: the texts are copied.
        status(|err| unsafe { sys::jit_session_set_stop(self.raw.as_ptr(), list.as_ptr(), list.len(), err) })
    }

    /// The number of the stop text that was found.
    pub fn stopped(&self) -> Option<usize> {
        // SAFETY: open.
        let n = unsafe { sys::jit_session_stopped(self.raw.as_ptr()) };
        (n >= 0).then_some(n as usize)
    }

    /// What the text from here on keeps to. `None` ends it. Set it behind the prompt, and anew for another answer.
    pub fn set_grammar(&mut self, grammar: Option<Grammar<'_>>) -> Result<()> {
        let (kind, text) = grammar.map_or((sys::JIT_GRAMMAR_NONE, &b""[..]), |g| g.raw());
        self.set_raw_grammar(kind, text)
    }

    /// The same for the answer to a conversation, whose rendering is `prompt`: the model may reason before the
    /// grammar's part of it, unless the conversation is [without reasoning](crate::Chat::without_reasoning).
    ///
    /// ```no_run
    /// # fn f(model: &jitrun::Model, session: &mut jitrun::Session<'_>, chat: &jitrun::Chat) -> jitrun::Result<()> {
    /// let prompt = model.render(chat)?;
    /// session.feed(prompt.ids())?;
    /// session.begin_grammar(jitrun::Grammar::Regex("yes|no"), chat, &prompt)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin_grammar(&mut self, grammar: Grammar<'_>, chat: &Chat, prompt: &Prompt) -> Result<()> {
        let (kind, text) = grammar.raw();
        chat.with_grammar_options(kind, text, prompt, None, |o| {
            // SAFETY: everything is copied.
            self.call(|s, err| unsafe { sys::jit_session_begin_grammar(s, o, err) })
        })
    }

    /// Has the answer to a conversation be a call, which [`Model::force_call`] or
    /// [`Model::force_call_behind`](crate::Model::force_call_behind) made. Feed [`Forced::ids`](crate::Forced::ids)
    /// before.
    pub fn begin_call(&mut self, forced: &Forced, chat: &Chat, prompt: &Prompt) -> Result<()> {
        if !forced.behind_reasoning() {
            return self.set_raw_grammar(forced.kind, &forced.grammar);
        }
        chat.with_grammar_options(forced.kind, &forced.grammar, prompt, Some(&forced.prompt), |o| {
            // SAFETY: everything is copied.
            self.call(|s, err| unsafe { sys::jit_session_begin_grammar(s, o, err) })
        })
    }

    pub(crate) fn set_raw_grammar(&mut self, kind: c_int, text: &[u8]) -> Result<()> {
        let (at, n) = (text.as_ptr().cast(), text.len());
        // SAFETY: a text and its length, copied.
        status(|err| unsafe { sys::jit_session_set_grammar(self.raw.as_ptr(), kind, at, n, err) })
    }

    /// Whether the text is right as it stands; `None`: there is no grammar.
    pub fn grammar_complete(&mut self) -> Option<bool> {
        // SAFETY: open.
        let said = unsafe { sys::jit_session_grammar_complete(self.raw.as_ptr()) };
        (said >= 0).then_some(said != 0)
    }

    /// Text as it is generated, of at most so many tokens.
    pub fn generate(&mut self, most: usize) -> Generation<'_, 'm> {
        let (ids, logprobs) = (Vec::new(), Vec::new());
        Generation { session: self, most, likeliest: None, ids, logprobs, finish: None, over: false }
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let mut target = self.handle.0.lock().unwrap_or_else(|e| e.into_inner());
        target.0 = ptr::null_mut();
        // SAFETY: closed once; nothing borrows it.
        unsafe { sys::jit_session_close(self.raw.as_ptr()) }
    }
}

/// Room for n rows of floats.
fn rows(n: usize, width: usize) -> Result<Vec<f32>> {
    let mut out = Vec::new();
    let floats = n.checked_mul(width).filter(|&all| out.try_reserve_exact(all).is_ok());
    let floats = floats.ok_or_else(|| Error::memory(format!("no memory for {} rows of {} floats", n, width)))?;
    out.resize(floats, 0.0);
    Ok(out)
}

/// Room for n entries, or for as many as show the library that they are too many.
fn room_for_logprobs(n: usize) -> Vec<sys::jit_logprob> {
    vec![sys::jit_logprob { id: 0, logprob: 0.0 }; n.min(sys::JIT_LOGPROBS_MOST as usize + 1)]
}

pub(crate) fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned())
}

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// An end token, a stop text, or the grammar's end.
    Stop,
    /// The number of tokens that was asked for, or the context's end.
    Length,
}

/// An iterator over texts, made by [`Session::generate`]. It ends after the first error.
pub struct Generation<'s, 'm> {
    session: &'s mut Session<'m>,
    most: usize,
    likeliest: Option<usize>,
    ids: Vec<i32>,
    logprobs: Vec<TokenLogprobs>,
    finish: Option<Finish>,
    over: bool,
}

/// How likely the model held a token that was generated, and the likeliest tokens in its place.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TokenLogprobs {
    /// The token.
    pub id: i32,
    /// The natural logarithm of its probability.
    pub logprob: f32,
    /// The likeliest tokens with theirs.
    pub top: Vec<(i32, f32)>,
}

impl Generation<'_, '_> {
    /// Keeps the log probabilities of each token, and of the n likeliest in its place: see
    /// [`logprobs`](Self::logprobs).
    pub fn with_logprobs(mut self, n: usize) -> Self {
        self.likeliest = Some(n);
        self
    }

    /// Those of the tokens so far; none without [`with_logprobs`](Self::with_logprobs).
    pub fn logprobs(&self) -> &[TokenLogprobs] {
        &self.logprobs
    }

    /// The tokens so far, without one that ended the text.
    pub fn ids(&self) -> &[i32] {
        &self.ids
    }

    /// Why it ended; `None`: it goes on, or an error ended it.
    pub fn finish(&self) -> Option<Finish> {
        self.finish
    }

    /// The next token and the text that it completes; `None` and the rest at the end.
    pub(crate) fn step(&mut self) -> Result<(Option<i32>, Vec<u8>)> {
        if self.finish.is_none() && self.ids.len() >= self.most {
            self.finish = Some(Finish::Length);
        }
        if self.finish.is_none() {
            match self.session.next_token() {
                Ok(id) if self.session.model.is_end(id) => self.finish = Some(Finish::Stop),
                Ok(id) => {
                    if let Some(n) = self.likeliest {
                        let (logprob, top) = self.session.logprobs(n)?;
                        self.logprobs.push(TokenLogprobs { id, logprob, top });
                    }
                    self.ids.push(id);
                    let text = self.session.text_of(id)?;
                    if self.session.stopped().is_some() {
                        self.finish = Some(Finish::Stop);
                    }
                    return Ok((Some(id), text));
                }
                Err(e) if e.kind() == ErrorKind::Context => self.finish = Some(Finish::Length),
                Err(e) if e.kind() == ErrorKind::Argument && self.session.grammar_complete() == Some(true) => {
                    self.finish = Some(Finish::Stop)
                }
                Err(e) => return Err(e),
            }
        }
        Ok((None, self.session.text_of(-1)?))
    }
}

impl Iterator for Generation<'_, '_> {
    type Item = Result<String>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.over {
            match self.step() {
                Err(e) => {
                    self.over = true;
                    return Some(Err(e));
                }
                Ok((id, text)) => {
                    self.over = id.is_none();
                    if !text.is_empty() {
                        return Some(Ok(lossy(text)));
                    }
                }
            }
        }
        None
    }
}

impl std::iter::FusedIterator for Generation<'_, '_> {}
