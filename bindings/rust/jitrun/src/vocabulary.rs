//! A model's vocabulary, token by token.

use crate::error::status;
use crate::model::bytes;
use crate::options::c_text;
use crate::{sys, Model, Result};
use std::ffi::CStr;
use std::os::raw::c_char;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TokenKind {
    /// A piece of text.
    Normal,
    /// It stands for text that has no token.
    Unknown,
    /// A control token: no text becomes it, unless `parse_special` is asked for.
    Control,
    /// A text that always becomes this one token.
    User,
    /// The vocabulary has no text for it, or says that it is not used.
    Unused,
    /// One byte of what no other token spells.
    Byte,
}

/// An entry of the vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Token {
    /// Its number.
    pub id: i32,
    /// How the vocabulary spells it: "\u{120}the", "<0x0A>"; `None`: it has no text.
    pub spelling: Option<Vec<u8>>,
    /// What it adds to a text, which may be a part of a character; of a control token, its spelling.
    pub bytes: Vec<u8>,
    /// What it is.
    pub kind: TokenKind,
    /// Whether it ends a generation.
    pub is_end: bool,
}

impl Model {
    /// One token of the vocabulary.
    ///
    /// ```no_run
    /// # let model = jitrun::Model::open("model.gguf")?;
    /// let token = model.token(42)?;
    /// println!("{:?} {}", token.kind, String::from_utf8_lossy(&token.bytes));
    /// # Ok::<(), jitrun::Error>(())
    /// ```
    pub fn token(&self, id: i32) -> Result<Token> {
        let (mut raw, mut room) = (sys::jit_token::new(), vec![0u8; 64]);
        self.token_into(id, &mut raw, &mut room)?;
        if raw.n_bytes > room.len() {
            room.resize(raw.n_bytes, 0);
            self.token_into(id, &mut raw, &mut room)?;
        }
        room.truncate(raw.n_bytes);
        let kind = match raw.kind {
            sys::JIT_TOKEN_NORMAL => TokenKind::Normal,
            sys::JIT_TOKEN_UNKNOWN => TokenKind::Unknown,
            sys::JIT_TOKEN_CONTROL => TokenKind::Control,
            sys::JIT_TOKEN_USER => TokenKind::User,
            sys::JIT_TOKEN_BYTE => TokenKind::Byte,
            _ => TokenKind::Unused,
        };
        debug_assert!(kind != TokenKind::Unused || raw.kind == sys::JIT_TOKEN_UNUSED);
        // SAFETY: n_text bytes that live as long as the model.
        let spelling = (!raw.text.is_null()).then(|| unsafe { bytes(raw.text, raw.n_text) }.to_vec());
        Ok(Token { id, spelling, bytes: room, kind, is_end: raw.is_end != 0 })
    }

    fn token_into(&self, id: i32, out: &mut sys::jit_token, room: &mut [u8]) -> Result<()> {
        let (at, n) = (room.as_mut_ptr().cast::<c_char>(), room.len());
        // SAFETY: room for n bytes.
        status(|err| unsafe { sys::jit_model_token(self.raw(), id, out, at, n, err) })
    }

    /// All tokens of the vocabulary, from 0.
    pub fn tokens(&self) -> impl Iterator<Item = Result<Token>> + '_ {
        (0..self.vocab as i32).map(move |id| self.token(id))
    }

    /// The token that the vocabulary spells exactly so.
    pub fn find_token(&self, text: impl AsRef<[u8]>) -> Option<i32> {
        let text = text.as_ref();
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

    /// All roles, and the tokens that have them.
    pub fn roles(&self) -> Result<Vec<(String, Option<i32>)>> {
        // SAFETY: texts that live as long as the library.
        let names = (0..).map(|number| unsafe { text_of(sys::jit_token_role(number)) });
        names.map_while(|name| name).map(|name| Ok((name.to_owned(), self.role(name)?))).collect()
    }

    /// The texts that end a generation by the model's own files.
    pub fn stop_texts(&self) -> Vec<String> {
        // SAFETY: texts that live as long as the model.
        let texts = (0..).map(|number| unsafe { text_of(sys::jit_model_stop(self.raw(), number)) });
        texts.map_while(|text| text.map(str::to_owned)).collect()
    }
}

/// `None`: there are no more.
unsafe fn text_of<'a>(text: *const c_char) -> Option<&'a str> {
    (!text.is_null()).then(|| CStr::from_ptr(text).to_str().unwrap_or_default())
}
