//! A model.

use crate::error::{address, status};
use crate::options::c_text;
use crate::{sys, Cancel, Error, ModelOptions, Result, Sampling};
use std::ffi::CStr;
use std::os::raw::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};

/// A model's weights, tokenizer and machine code, ready to compute. Threads may share it.
pub struct Model {
    raw: NonNull<sys::jit_model>,
    pub(crate) vocab: usize,
    pub(crate) hidden: usize,
    _cancel: Option<Cancel>,
}

// SAFETY: a jit_model may be used from any number of threads.
unsafe impl Send for Model {}
unsafe impl Sync for Model {}

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
}

/// Copies a list that the library made, and gives it back.
pub(crate) unsafe fn taken<T: Copy>(list: *mut T, n: usize) -> Vec<T> {
    let copy = if list.is_null() { Vec::new() } else { std::slice::from_raw_parts(list, n).to_vec() };
    sys::jit_free(list.cast());
    copy
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
        let path = c_text("the path of the model", path.as_ref().as_os_str().as_bytes())?;
        // SAFETY: what the options point to lives until the end of the call.
        let raw = address(|err| unsafe { sys::jit_model_open(path.as_ptr(), &options.raw(), err) })?;
        let mut model = Model { raw, vocab: 0, hidden: 0, _cancel: options.cancelled_by() };
        let info = model.info()?;
        model.vocab = info.vocab;
        model.hidden = info.hidden;
        Ok(model)
    }

    pub(crate) fn raw(&self) -> *mut sys::jit_model {
        self.raw.as_ptr()
    }

    /// What it is.
    pub fn info(&self) -> Result<ModelInfo> {
        let mut raw = sys::jit_model_info::new();
        // SAFETY: the struct has its size; the description lives as long as the model.
        unsafe {
            status(|err| sys::jit_model_get_info(self.raw(), &mut raw, err))?;
            Ok(ModelInfo {
                description: CStr::from_ptr(raw.description).to_string_lossy().into_owned(),
                vocab: raw.vocab as usize,
                layers: raw.layers as usize,
                hidden: raw.hidden as usize,
                context_trained: raw.context_trained as usize,
                has_tokenizer: raw.has_tokenizer != 0,
                has_chat_template: raw.has_chat_template != 0,
                has_sampling: raw.has_sampling != 0,
                weight_bytes: raw.weight_bytes,
                token_bytes: raw.token_bytes,
            })
        }
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

    /// Tokens to text; bytes that are no UTF-8 become U+FFFD.
    pub fn detokenize(&self, ids: &[i32]) -> Result<String> {
        let mut n = 0;
        // SAFETY: a list and its length; the text is taken over.
        unsafe {
            let text = address(|err| sys::jit_model_detokenize(self.raw(), ids.as_ptr(), ids.len(), &mut n, err))?;
            Ok(String::from_utf8_lossy(&taken(text.as_ptr().cast::<u8>(), n)).into_owned())
        }
    }

    /// Whether the token ends a generation.
    pub fn is_end(&self, id: i32) -> bool {
        // SAFETY: the model is open.
        unsafe { sys::jit_model_is_end(self.raw(), id) != 0 }
    }

    /// The token that the vocabulary spells exactly so.
    pub fn find_token(&self, text: &str) -> Option<i32> {
        // SAFETY: text and its length.
        let id = unsafe { sys::jit_model_find_token(self.raw(), text.as_ptr().cast(), text.len()) };
        (id >= 0).then_some(id)
    }

    /// The token with a role, such as "bos" or "fim_prefix".
    pub fn role(&self, role: &str) -> Result<Option<i32>> {
        let (role, mut id) = (c_text("the role", role)?, -1);
        // SAFETY: a text and room for a number.
        status(|err| unsafe { sys::jit_model_role(self.raw(), role.as_ptr(), &mut id, err) })?;
        Ok((id >= 0).then_some(id))
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
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: no session is open: each borrows the model.
        unsafe { sys::jit_model_close(self.raw()) }
    }
}
