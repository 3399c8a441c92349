//! What a model's files say of themselves.

use crate::error::status;
use crate::model::bytes;
use crate::options::c_text;
use crate::{sys, Model, Result};
use std::ffi::CStr;

/// A value of a model's metadata.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A text.
    Text(String),
    /// A text whose bytes are no UTF-8.
    Bytes(Vec<u8>),
    /// A whole number.
    Integer(i64),
    /// A real number, or a whole one beyond `i64`.
    Real(f64),
    /// A truth value.
    Bool(bool),
    /// A list. Lists and objects in it are [`Value::Other`].
    List(Vec<Value>),
    /// Nothing (`null`).
    Null,
    /// A list or an object in a list, whose items the library does not give.
    Other,
}

/// A model's metadata: every key of a GGUF file, or of config.json and generation_config.json.
///
/// ```no_run
/// # let model = jitrun::Model::open("model.gguf")?;
/// use jitrun::Value;
///
/// let metadata = model.metadata();
/// if let Some(Value::List(tokens)) = metadata.get("tokenizer.ggml.tokens")? {
///     println!("{} tokens", tokens.len());
/// }
/// for entry in metadata.iter() {
///     let (key, value) = entry?;
///     println!("{key}: {value:?}");
/// }
/// # Ok::<(), jitrun::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Metadata<'m>(&'m Model);

impl Model {
    /// What the model's files say of themselves, by key.
    pub fn metadata(&self) -> Metadata<'_> {
        Metadata(self)
    }
}

impl<'m> Metadata<'m> {
    /// How many keys there are.
    pub fn len(&self) -> usize {
        // SAFETY: open.
        unsafe { sys::jit_model_metadata_count(self.0.raw()) }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key: of the first in the order of the files.
    pub fn get(&self, key: &str) -> Result<Option<Value>> {
        let key = c_text("the key", key)?;
        // SAFETY: a text.
        let number = unsafe { sys::jit_model_metadata_find(self.0.raw(), key.as_ptr()) };
        if number < 0 {
            return Ok(None);
        }
        self.value(number as usize).map(Some)
    }

    /// The keys in the order of the files.
    pub fn keys(&self) -> impl Iterator<Item = Result<String>> + 'm {
        let this = *self;
        (0..self.len()).map(move |number| this.row(number).map(|row| key_of(&row)))
    }

    /// Keys and values in the order of the files.
    pub fn iter(&self) -> impl Iterator<Item = Result<(String, Value)>> + 'm {
        let this = *self;
        (0..self.len()).map(move |number| {
            let row = this.row(number)?;
            Ok((key_of(&row), this.value(number)?))
        })
    }

    fn row(&self, number: usize) -> Result<sys::jit_metadata> {
        let mut row = sys::jit_metadata::new();
        // SAFETY: the struct has its size.
        status(|err| unsafe { sys::jit_model_metadata(self.0.raw(), number, &mut row, err) })?;
        Ok(row)
    }

    fn value(&self, number: usize) -> Result<Value> {
        let row = self.row(number)?;
        if row.kind != sys::JIT_METADATA_ARRAY {
            return Ok(plain(&row));
        }
        let mut list = Vec::new();
        for at in 0..row.n {
            let mut item = sys::jit_metadata::new();
            // SAFETY: the struct has its size.
            status(|err| unsafe { sys::jit_model_metadata_item(self.0.raw(), number, at, &mut item, err) })?;
            list.push(plain(&item));
        }
        Ok(Value::List(list))
    }
}

fn key_of(row: &sys::jit_metadata) -> String {
    // SAFETY: a text that lives as long as the model, which is borrowed.
    unsafe { CStr::from_ptr(row.key) }.to_string_lossy().into_owned()
}

/// What has no items, or none that can be asked for.
fn plain(row: &sys::jit_metadata) -> Value {
    match row.kind {
        sys::JIT_METADATA_STRING => {
            // SAFETY: n bytes that live as long as the model, which is borrowed.
            let bytes = unsafe { bytes(row.text, row.n) }.to_vec();
            String::from_utf8(bytes).map_or_else(|e| Value::Bytes(e.into_bytes()), Value::Text)
        }
        sys::JIT_METADATA_INTEGER => Value::Integer(row.integer),
        sys::JIT_METADATA_REAL => Value::Real(row.real),
        sys::JIT_METADATA_BOOL => Value::Bool(row.integer != 0),
        sys::JIT_METADATA_NULL => Value::Null,
        _ => Value::Other,
    }
}
