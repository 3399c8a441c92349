//! A model.

use crate::callbacks::{with_progress, ProgressFn};
use crate::error::{address, status};
use crate::options::c_text;
use crate::session::lossy;
use crate::{sys, Cancel, Error, ModelOptions, Result, Sampling};
use std::ffi::CStr;
use std::ops::ControlFlow;
use std::os::raw::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A model's weights, tokenizer and machine code, ready to compute. Threads may share it.
pub struct Model {
    opened: Arc<Opened>,
    pub(crate) vocab: usize,
    pub(crate) hidden: usize,
    pub(crate) embedding: usize,
}

// SAFETY: a jit_model may be used from any number of threads.
unsafe impl Send for Opened {}
unsafe impl Sync for Opened {}

/// What the library has of a model. Sessions and batches hold it besides borrowing the model: one that is forgotten
/// instead of dropped has threads that go on with it.
pub(crate) struct Opened {
    raw: NonNull<sys::jit_model>,
    _cancel: Option<Cancel>,
}

/// What a model is.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelInfo {
    /// One line: "qwen3, 28 layers, hidden 1024, Q8_0".
    pub description: String,
    /// How many tokens there are.
    pub vocab: usize,
    /// How many layers.
    pub layers: usize,
    /// Floats of an embedding.
    pub hidden: usize,
    /// Positions it was trained for.
    pub context_trained: usize,
    /// Whether its files have a tokenizer.
    pub has_tokenizer: bool,
    /// Whether its files have a chat template.
    pub has_chat_template: bool,
    /// Whether its files say how tokens are to be chosen.
    pub has_sampling: bool,
    /// Bytes of packed weights in memory.
    pub weight_bytes: u64,
    /// Bytes of weights read to make one token.
    pub token_bytes: u64,
    /// Bytes of the weight files.
    pub file_bytes: u64,
    /// Seconds that opening took.
    pub load_seconds: f64,
    /// How the model's files say that rows become an embedding; `None`: they do not.
    pub pooling: Option<Pooling>,
    /// What of the results depends on more than the tokens, where `bounded_numerics` was asked for.
    pub bounded: Bounded,
    /// How many times as many products of BF16 pairs as of floats this CPU makes; 0: not measured.
    pub bounded_gain: f64,
    /// It encodes texts and generates none.
    pub encodes: bool,
    /// Numbers of a text's embedding.
    pub embedding: usize,
    /// Why packed weights could not be kept for the next time; `None`: they were, or need not be.
    pub weight_cache_trouble: Option<String>,
}

/// What of the results of a model is in the bounded class of numerics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bounded {
    /// All is exact.
    None,
    /// Products of cards for prompts: results depend on how a prompt is cut.
    Prompts,
    /// Products of CPUs, in batches as well: results depend on tokens alone.
    All,
}

/// What becomes of the rows of a text's tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// The last token's row.
    Last,
    /// The mean of all rows.
    Mean,
    /// All rows, one after the other.
    None,
    /// The text's score by the model's classifier.
    Rank,
    /// The first token's hidden state.
    Cls,
}

impl Pooling {
    pub(crate) fn raw(self) -> c_int {
        match self {
            Pooling::Last => sys::JIT_POOL_LAST,
            Pooling::Mean => sys::JIT_POOL_MEAN,
            Pooling::None => sys::JIT_POOL_NONE,
            Pooling::Rank => sys::JIT_POOL_RANK,
            Pooling::Cls => sys::JIT_POOL_CLS,
        }
    }
}

/// Copies a list that the library made, and gives it back.
pub(crate) unsafe fn taken<T: Copy>(list: *mut T, n: usize) -> Vec<T> {
    let copy = if list.is_null() { Vec::new() } else { std::slice::from_raw_parts(list, n).to_vec() };
    sys::jit_free(list.cast());
    copy
}

/// The same of a text that ends with a zero byte.
pub(crate) unsafe fn taken_text(text: NonNull<c_char>) -> Vec<u8> {
    taken(text.as_ptr().cast(), CStr::from_ptr(text.as_ptr()).to_bytes().len())
}

/// Bytes as the library gives them; null is none.
pub(crate) unsafe fn bytes<'a>(text: *const c_char, n: usize) -> &'a [u8] {
    if text.is_null() || n == 0 {
        &[]
    } else {
        std::slice::from_raw_parts(text.cast(), n)
    }
}

impl Model {
    /// Opens a .gguf file, a .safetensors file with config.json beside it, or a directory that holds either.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path, &ModelOptions::new())
    }

    /// The same with options.
    pub fn open_with(path: impl AsRef<Path>, options: &ModelOptions) -> Result<Self> {
        Self::open_raw(path.as_ref(), options, None)
    }

    /// The same, and `function` hears how many bytes are loaded, of how many. `Break` gives up, with an error. A panic
    /// goes on behind the call.
    ///
    /// ```no_run
    /// # use jitrun::{Model, ModelOptions};
    /// let model = Model::open_with_progress("model.gguf", &ModelOptions::new(), |done, total| {
    ///     eprint!("\r{} %", done * 100 / total.max(1));
    ///     std::ops::ControlFlow::Continue(())
    /// })?;
    /// # Ok::<(), jitrun::Error>(())
    /// ```
    pub fn open_with_progress(
        path: impl AsRef<Path>,
        options: &ModelOptions,
        mut function: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<Self> {
        Self::open_raw(path.as_ref(), options, Some(&mut function))
    }

    fn open_raw(path: &Path, options: &ModelOptions, progress: Option<&mut ProgressFn<'_>>) -> Result<Self> {
        let path = c_text("the path of the model", path.as_os_str().as_bytes())?;
        let open = |function, user| {
            options.with_raw(|mut raw| {
                raw.progress = function;
                raw.progress_user = user;
                // SAFETY: what the options point to lives until the end of the call.
                let raw = address(|err| unsafe { sys::jit_model_open(path.as_ptr(), &raw, err) })?;
                let opened = Arc::new(Opened { raw, _cancel: options.cancelled_by() });
                Ok(Model { opened, vocab: 0, hidden: 0, embedding: 0 })
            })
        };
        let mut model = match progress {
            None => open(None, ptr::null_mut()),
            Some(function) => with_progress(function, open),
        }?;
        let info = model.info()?;
        model.vocab = info.vocab;
        model.hidden = info.hidden;
        model.embedding = info.embedding;
        Ok(model)
    }

    pub(crate) fn raw(&self) -> *mut sys::jit_model {
        self.opened.raw.as_ptr()
    }

    /// For sessions, to keep.
    pub(crate) fn opened(&self) -> Arc<Opened> {
        Arc::clone(&self.opened)
    }

    /// What it is.
    pub fn info(&self) -> Result<ModelInfo> {
        let mut raw = sys::jit_model_info::new();
        let text = |at: *const c_char| {
            // SAFETY: null, or a text that lives as long as the model.
            (!at.is_null()).then(|| unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned())
        };
        // SAFETY: the struct has its size.
        unsafe {
            status(|err| sys::jit_model_get_info(self.raw(), &mut raw, err))?;
            Ok(ModelInfo {
                description: text(raw.description).unwrap_or_default(),
                vocab: raw.vocab as usize,
                layers: raw.layers as usize,
                hidden: raw.hidden as usize,
                context_trained: raw.context_trained as usize,
                has_tokenizer: raw.has_tokenizer != 0,
                has_chat_template: raw.has_chat_template != 0,
                has_sampling: raw.has_sampling != 0,
                weight_bytes: raw.weight_bytes,
                token_bytes: raw.token_bytes,
                file_bytes: raw.file_bytes,
                load_seconds: raw.load_seconds,
                pooling: match raw.pooling {
                    sys::JIT_POOL_LAST => Some(Pooling::Last),
                    sys::JIT_POOL_MEAN => Some(Pooling::Mean),
                    sys::JIT_POOL_RANK => Some(Pooling::Rank),
                    sys::JIT_POOL_CLS => Some(Pooling::Cls),
                    _ => None,
                },
                bounded: match raw.bounded {
                    sys::JIT_BOUNDED_NONE => Bounded::None,
                    sys::JIT_BOUNDED_PROMPTS => Bounded::Prompts,
                    _ => Bounded::All,
                },
                bounded_gain: raw.bounded_gain,
                encodes: raw.encodes != 0,
                embedding: raw.embedding as usize,
                weight_cache_trouble: text(raw.weight_cache_trouble),
            })
        }
    }

    /// Whether the files of `dump_ir`, `dump_asm`, `perf_map` and `jitdump` could be written whole. Ask at the end.
    pub fn written(&self) -> Result<()> {
        // SAFETY: open.
        status(|err| unsafe { sys::jit_model_written(self.raw(), err) })
    }

    /// Whether its device computes: an error once it has failed for good, with the sentence that says how.
    pub fn alive(&self) -> Result<()> {
        // SAFETY: open.
        status(|err| unsafe { sys::jit_model_alive(self.raw(), err) })
    }

    /// Text to tokens. `add_special`: with those that the model wants before and behind a text. `parse_special`: text
    /// such as `<|im_start|>` becomes that token; false is for text that others wrote.
    pub fn tokenize(&self, text: &str, add_special: bool, parse_special: bool) -> Result<Vec<i32>> {
        let (mut ids, mut n) = (ptr::null_mut(), 0);
        let (special, parse) = (add_special as c_int, parse_special as c_int);
        // SAFETY: text and its length; the list is taken over.
        unsafe {
            let at = text.as_ptr().cast();
            status(|err| sys::jit_model_tokenize(self.raw(), at, text.len(), special, parse, &mut ids, &mut n, err))?;
            Ok(taken(ids, n))
        }
    }

    /// Tokens to text; bytes that are no UTF-8 become U+FFFD. [`token`](Self::token) has a token's own bytes.
    pub fn detokenize(&self, ids: &[i32]) -> Result<String> {
        let mut n = 0;
        // SAFETY: a list and its length; the text is taken over.
        unsafe {
            let text = address(|err| sys::jit_model_detokenize(self.raw(), ids.as_ptr(), ids.len(), &mut n, err))?;
            Ok(lossy(taken(text.as_ptr().cast::<u8>(), n)))
        }
    }

    /// Whether the token ends a generation.
    pub fn is_end(&self, id: i32) -> bool {
        // SAFETY: the model is open.
        unsafe { sys::jit_model_is_end(self.raw(), id) != 0 }
    }

    /// How the model's makers say that tokens are to be chosen. Its seed is 0: set another for other texts.
    pub fn sampling_defaults(&self) -> Result<Sampling> {
        let mut raw = sys::jit_sampling::new();
        // SAFETY: the struct has its size.
        status(|err| unsafe { sys::jit_model_sampling_defaults(self.raw(), &mut raw, err) })?;
        Ok(Sampling::of_raw(&raw))
    }

    /// The embedding of a text of its own, of length 1.
    pub fn embed(&self, text: &str, pooling: Pooling) -> Result<Vec<f32>> {
        let ids = self.tokenize(text, true, false)?;
        if ids.is_empty() {
            return Err(Error::argument("the text has no tokens: one at least was expected"));
        }
        let options = crate::SessionOptions::new().set("context", ids.len())?;
        self.session(&options)?.embed(&ids, pooling, true)
    }

    /// The tokens of a text of its own, and the natural logarithm of each one's probability after those before it.
    ///
    /// ```no_run
    /// # let model = jitrun::Model::open("model.gguf")?;
    /// let (ids, logprobs) = model.score("Once upon a time")?;
    /// println!("{} tokens, {}", ids.len(), logprobs.iter().sum::<f32>());
    /// # Ok::<(), jitrun::Error>(())
    /// ```
    pub fn score(&self, text: &str) -> Result<(Vec<i32>, Vec<f32>)> {
        let ids = self.tokenize(text, true, false)?;
        let options = crate::SessionOptions::new().set("context", ids.len().max(1))?;
        let logprobs = self.session(&options)?.score(&ids)?;
        Ok((ids, logprobs))
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: no session is open: each holds this.
        unsafe { sys::jit_model_close(self.raw.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BatchOptions, SessionOptions};

    #[test]
    fn what_is_forgotten_keeps_the_model() {
        let model = Model::open(std::env::var("JITRUN_MODEL").unwrap()).unwrap();
        let opened = Arc::downgrade(&model.opened);
        std::mem::forget(model.session(&SessionOptions::new()).unwrap());
        let mut batch = model.batch(&BatchOptions::new()).unwrap();
        batch.add(&Sampling::new()).unwrap();
        std::mem::forget(batch);
        drop(model);
        assert_eq!(opened.strong_count(), 3);
        let model = Model::open(std::env::var("JITRUN_MODEL").unwrap()).unwrap();
        let opened = Arc::downgrade(&model.opened);
        drop(model.session(&SessionOptions::new()).unwrap());
        drop(model);
        assert_eq!(opened.strong_count(), 0);
    }
}
