//! Options, by the names of their fields.

use crate::error::{address, status};
use crate::{sys, Error, Result};
use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int};
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A text for C, which has no zero byte inside.
pub(crate) fn c_text(what: &str, text: impl Into<Vec<u8>>) -> Result<CString> {
    CString::new(text).map_err(|e| {
        Error::argument(format!("{} has a zero byte at {}: text without one was expected", what, e.nul_position()))
    })
}

fn address_of(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(ptr::null(), |t| t.as_ptr())
}

/// A request to stop that threads share: models and sessions opened with it look at it while they load or compute.
#[derive(Clone)]
pub struct Cancel(Arc<CancelHandle>);

struct CancelHandle(NonNull<sys::jit_cancel>);

// SAFETY: jit_cancel_set and jit_cancel_get may be called from any thread.
unsafe impl Send for CancelHandle {}
unsafe impl Sync for CancelHandle {}

impl Drop for CancelHandle {
    fn drop(&mut self) {
        // SAFETY: models and sessions that were given it hold a clone.
        unsafe { sys::jit_cancel_close(self.0.as_ptr()) }
    }
}

impl Cancel {
    /// A request that is not made yet.
    pub fn new() -> Result<Self> {
        // SAFETY: err is room for an error.
        let raw = address(|err| unsafe { sys::jit_cancel_open(err) })?;
        Ok(Cancel(Arc::new(CancelHandle(raw))))
    }

    /// true: what runs ends with [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), and so does whatever would
    /// compute later, until it is false again.
    pub fn set(&self, asked: bool) {
        // SAFETY: open as long as self.
        unsafe { sys::jit_cancel_set(self.0 .0.as_ptr(), asked as c_int) }
    }

    /// Whether it is asked for.
    pub fn get(&self) -> bool {
        // SAFETY: open as long as self.
        unsafe { sys::jit_cancel_get(self.0 .0.as_ptr()) != 0 }
    }

    fn raw(this: &Option<Cancel>) -> *mut sys::jit_cancel {
        this.as_ref().map_or(ptr::null_mut(), |c| c.0 .0.as_ptr())
    }
}

/// Options by the names of their fields, and what is not set by name.
macro_rules! options {
    ($(#[$about:meta])* $name:ident, $raw:ident, $set:ident $(, $other:ident: $kind:ty)*) => {
        $(#[$about])*
        pub struct $name {
            raw: sys::$raw,
            texts: Vec<CString>,
            $($other: Option<$kind>,)*
        }

        // SAFETY: its addresses are those of `texts`, which it owns.
        unsafe impl Send for $name {}
        unsafe impl Sync for $name {}

        impl $name {
            /// All defaults.
            pub fn new() -> Self {
                $name { raw: sys::$raw::new(), texts: Vec::new() $(, $other: None)* }
            }

            /// Sets the field with this name, or with that of the option of the program `jitrun` that means the same;
            /// '-' and '_' are the same. The error says which names there are, or what was expected.
            pub fn set(mut self, name: &str, value: impl ToString) -> Result<Self> {
                let (name, value) = (c_text("the name of an option", name)?, c_text(name, value.to_string())?);
                // SAFETY: the struct has its size; the value lives in `texts`.
                status(|err| unsafe { sys::$set(&mut self.raw, name.as_ptr(), value.as_ptr(), err) })?;
                self.texts.push(value);
                Ok(self)
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }
    };
}

/// Of options that have a `cancel`.
macro_rules! cancelled {
    ($($name:ident)*) => {
        $(impl $name {
            /// What ends an opening, and what is computed later.
            pub fn cancel(mut self, cancel: &Cancel) -> Self {
                self.cancel = Some(cancel.clone());
                self
            }

            pub(crate) fn cancelled_by(&self) -> Option<Cancel> {
                self.cancel.clone()
            }
        })*
    };
}
cancelled!(ModelOptions BatchOptions SessionOptions);

options! {
    /// How a [`Model`](crate::Model) is opened: the fields of `jit_model_options`, by name.
    ///
    /// ```
    /// let options = jitrun::ModelOptions::new().set("device", "cpu")?.set("threads", 2)?;
    /// assert!(options.set("thread", 2).is_err());
    /// # Ok::<(), jitrun::Error>(())
    /// ```
    ModelOptions, jit_model_options, jit_model_options_set, cancel: Cancel, session: SessionOptions
}

options! {
    /// How a [`Batch`](crate::Batch) is opened: the fields of `jit_batch_options`, by name.
    BatchOptions, jit_batch_options, jit_batch_options_set, cancel: Cancel
}

options! {
    /// How a [`Session`](crate::Session) is opened: the fields of `jit_session_options`, by name, and how tokens are
    /// chosen. All defaults take the likeliest token.
    SessionOptions, jit_session_options, jit_session_options_set, cancel: Cancel, sampling: Sampling, card: CardOptions
}

options! {
    /// How a session runs on a graphics card: the fields of `jit_card_options`, by name.
    ///
    /// ```
    /// let card = jitrun::CardOptions::new().set("launch", "layer")?;
    /// let options = jitrun::SessionOptions::new().set("context", 512)?.card(card);
    /// # Ok::<(), jitrun::Error>(())
    /// ```
    CardOptions, jit_card_options, jit_card_options_set
}

options! {
    /// What [`write_objects`](crate::write_objects) writes: the fields of `jit_objects_options`, by name.
    ObjectsOptions, jit_objects_options, jit_objects_options_set
}

impl ObjectsOptions {
    pub(crate) fn raw(&self) -> &sys::jit_objects_options {
        &self.raw
    }
}

impl ModelOptions {
    /// The session to come: what it needs and cannot have beside the weights is refused before they load.
    ///
    /// ```
    /// use jitrun::{ModelOptions, SessionOptions};
    /// let options = ModelOptions::new().session(SessionOptions::new().set("context", 8192)?);
    /// # Ok::<(), jitrun::Error>(())
    /// ```
    pub fn session(mut self, session: SessionOptions) -> Self {
        self.session = Some(session);
        self
    }

    pub(crate) fn with_raw<R>(&self, then: impl FnOnce(sys::jit_model_options) -> R) -> R {
        let mut raw = sys::jit_model_options { cancel: Cancel::raw(&self.cancel), ..self.raw };
        match &self.session {
            None => then(raw),
            Some(session) => session.with_raw(|p| {
                raw.session = p;
                then(raw)
            }),
        }
    }
}

impl BatchOptions {
    pub(crate) fn raw(&self) -> sys::jit_batch_options {
        sys::jit_batch_options { cancel: Cancel::raw(&self.cancel), ..self.raw }
    }
}

impl SessionOptions {
    /// How tokens are chosen.
    pub fn sampling(mut self, sampling: &Sampling) -> Self {
        self.sampling = Some(sampling.clone());
        self
    }

    /// How it runs on a graphics card.
    pub fn card(mut self, card: CardOptions) -> Self {
        self.card = Some(card);
        self
    }

    pub(crate) fn with_raw<R>(&self, then: impl FnOnce(&sys::jit_session_options) -> R) -> R {
        let mut raw = sys::jit_session_options { cancel: Cancel::raw(&self.cancel), ..self.raw };
        raw.card = self.card.as_ref().map_or(ptr::null(), |card| &card.raw);
        match &self.sampling {
            None => then(&raw),
            Some(sampling) => sampling.with_raw(|p| {
                raw.sampling = p;
                then(&raw)
            }),
        }
    }
}

/// How tokens are chosen: the fields of `jit_sampling`, by name. All defaults take the likeliest token;
/// [`Model::sampling_defaults`](crate::Model::sampling_defaults) has what the model's makers say.
///
/// ```
/// use jitrun::Sampling;
/// let sampling = Sampling::new().set("temperature", 0.7)?.set("top_k", 40)?.set("seed", 7)?;
/// let e = Sampling::new().set("top_p", 1.5).unwrap_err();
/// assert_eq!(e.kind(), jitrun::ErrorKind::Argument);
/// # Ok::<(), jitrun::Error>(())
/// ```
#[derive(Clone)]
pub struct Sampling {
    raw: sys::jit_sampling,
    samplers: Option<CString>,
    breakers: Option<Vec<CString>>,
    bias: Vec<sys::jit_logit_bias>,
}

// SAFETY: its addresses are set when the library is called, to what it owns.
unsafe impl Send for Sampling {}
unsafe impl Sync for Sampling {}

impl Default for Sampling {
    fn default() -> Self {
        Self::new()
    }
}

impl Sampling {
    /// All defaults: the likeliest token is chosen.
    pub fn new() -> Self {
        Sampling { raw: sys::jit_sampling::new(), samplers: None, breakers: None, bias: Vec::new() }
    }

    /// Sets the field with this name, or with that of the option of the program `jitrun` that means the same.
    pub fn set(mut self, name: &str, value: impl ToString) -> Result<Self> {
        let (name, value) = (c_text("the name of an option", name)?, c_text(name, value.to_string())?);
        // SAFETY: the struct has its size; a text that it borrows is kept below.
        status(|err| unsafe { sys::jit_sampling_set(&mut self.raw, name.as_ptr(), value.as_ptr(), err) })?;
        if self.raw.samplers == value.as_ptr() {
            self.samplers = Some(value);
        }
        self.raw.samplers = ptr::null();
        Ok(self)
    }

    /// What is added to the logits of tokens: finite numbers, or -infinity, after which a token is never chosen.
    pub fn logit_bias(mut self, bias: &[(i32, f32)]) -> Self {
        self.bias = bias.iter().map(|&(id, bias)| sys::jit_logit_bias { id, bias }).collect();
        self
    }

    /// The texts at which the search for repetitions begins anew (DRY).
    pub fn dry_breakers(mut self, texts: &[&str]) -> Result<Self> {
        self.breakers = Some(texts.iter().map(|&t| c_text("a text of dry_breakers", t)).collect::<Result<_>>()?);
        Ok(self)
    }

    /// Its numbers. The addresses are null.
    pub fn numbers(&self) -> sys::jit_sampling {
        self.raw
    }

    /// The samplers in the order of their use; `None`: the usual ones.
    pub fn samplers(&self) -> Option<&str> {
        self.samplers.as_ref().and_then(|text| text.to_str().ok())
    }

    /// Copies all that raw points to.
    pub(crate) fn of_raw(raw: &sys::jit_sampling) -> Self {
        let mut made = Self::new();
        // SAFETY: as jitrun.h describes the fields.
        unsafe {
            if !raw.samplers.is_null() {
                made.samplers = Some(CStr::from_ptr(raw.samplers).to_owned());
            }
            if !raw.dry_breakers.is_null() {
                let texts = std::slice::from_raw_parts(raw.dry_breakers, raw.n_dry_breakers as usize);
                made.breakers = Some(texts.iter().map(|&t| CStr::from_ptr(t).to_owned()).collect());
            }
            if !raw.logit_bias.is_null() {
                made.bias = std::slice::from_raw_parts(raw.logit_bias, raw.n_logit_bias as usize).to_vec();
            }
        }
        made.raw = sys::jit_sampling {
            samplers: ptr::null(),
            dry_breakers: ptr::null(),
            logit_bias: ptr::null(),
            n_dry_breakers: 0,
            n_logit_bias: 0,
            ..*raw
        };
        made
    }

    pub(crate) fn with_raw<R>(&self, then: impl FnOnce(&sys::jit_sampling) -> R) -> R {
        let mut raw = self.raw;
        raw.samplers = address_of(&self.samplers);
        let breakers: Vec<*const c_char> = self.breakers.iter().flatten().map(|t| t.as_ptr()).collect();
        if self.breakers.is_some() {
            raw.dry_breakers = breakers.as_ptr();
            raw.n_dry_breakers = breakers.len() as c_int;
        }
        if !self.bias.is_empty() {
            raw.logit_bias = self.bias.as_ptr();
            raw.n_logit_bias = self.bias.len() as c_int;
        }
        then(&raw)
    }
}
