//! Functions of the program that the library calls: before a token is chosen, and while a prompt is computed. A panic
//! in one ends the library's call with an error, and goes on behind it: it never unwinds through C.

use crate::error::status;
use crate::{sys, BatchSession, Result, Session};
use std::any::Any;
use std::ops::ControlFlow;
use std::os::raw::{c_int, c_void};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr::{self, NonNull};

type LogitsFn<'m> = dyn FnMut(&mut [f32], &[i32]) -> ControlFlow<()> + Send + 'm;
type PromptFn<'m> = dyn FnMut(usize, usize) -> ControlFlow<()> + Send + 'm;
pub(crate) type ProgressFn<'p> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'p;

/// A panic that waits for the end of the library's call.
#[derive(Default)]
struct Held(Option<Box<dyn Any + Send>>);

impl Held {
    /// Calls a function of the program's for the library: 0 to go on. Behind a panic nothing more is called.
    fn guard(&mut self, call: impl FnOnce() -> ControlFlow<()>) -> c_int {
        if self.0.is_some() {
            return 1;
        }
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(ControlFlow::Continue(())) => 0,
            Ok(ControlFlow::Break(())) => 1,
            Err(panic) => {
                self.0 = Some(panic);
                1
            }
        }
    }
}

/// What the address that the library has leads to.
struct Functions<'m> {
    logits: Option<Box<LogitsFn<'m>>>,
    prompt: Option<Box<PromptFn<'m>>>,
    held: Held,
}

/// The functions of a session. They stay where they are as long as the session is open, and go after it.
pub(crate) struct Callbacks<'m>(Option<NonNull<Functions<'m>>>);

impl<'m> Callbacks<'m> {
    pub(crate) fn none() -> Self {
        Callbacks(None)
    }

    fn there(&mut self) -> NonNull<Functions<'m>> {
        *self.0.get_or_insert_with(|| {
            let made = Box::new(Functions { logits: None, prompt: None, held: Held::default() });
            NonNull::from(Box::leak(made))
        })
    }

    /// The panic of the call that has just ended.
    pub(crate) fn panicked(&mut self) -> Option<Box<dyn Any + Send>> {
        // SAFETY: no call of the library runs, so nothing else has the address in use.
        self.0.and_then(|at| unsafe { (*at.as_ptr()).held.0.take() })
    }

    /// Has it go on.
    pub(crate) fn resume(&mut self) {
        if let Some(panic) = self.panicked() {
            resume_unwind(panic);
        }
    }
}

impl Drop for Callbacks<'_> {
    fn drop(&mut self) {
        if let Some(at) = self.0.take() {
            // SAFETY: made by Box::leak; the session, which had the address, is closed.
            drop(unsafe { Box::from_raw(at.as_ptr()) });
        }
    }
}

unsafe fn list<'a, T>(at: *const T, n: usize) -> &'a [T] {
    if at.is_null() {
        &[]
    } else {
        std::slice::from_raw_parts(at, n)
    }
}

unsafe extern "C" fn on_logits(user: *mut c_void, logits: *mut f32, n: usize, ids: *const i32, n_ids: usize) -> c_int {
    // SAFETY: the address of a session's functions, whose session runs this call; both lists are valid during it.
    let Functions { logits: function, held, .. } = &mut *user.cast::<Functions<'_>>();
    let (logits, ids) = (std::slice::from_raw_parts_mut(logits, n), list(ids, n_ids));
    function.as_mut().map_or(0, |f| held.guard(|| f(logits, ids)))
}

unsafe extern "C" fn on_prompt(user: *mut c_void, computed: usize, length: usize) -> c_int {
    // SAFETY: as in on_logits.
    let Functions { prompt: function, held, .. } = &mut *user.cast::<Functions<'_>>();
    function.as_mut().map_or(0, |f| held.guard(|| f(computed, length)))
}

/// Calls the library with a function that hears of what is loaded, and then has its panic go on.
pub(crate) fn with_progress<R>(
    function: &mut ProgressFn<'_>,
    call: impl FnOnce(sys::jit_progress_fn, *mut c_void) -> R,
) -> R {
    struct Loading<'a, 'p> {
        function: &'a mut ProgressFn<'p>,
        held: Held,
    }
    unsafe extern "C" fn on_progress(user: *mut c_void, done: u64, total: u64) -> c_int {
        // SAFETY: the address below, on the thread and during the call that it was given to.
        let Loading { function, held } = &mut *user.cast::<Loading<'_, '_>>();
        held.guard(|| function(done, total))
    }
    let mut loading = Loading { function, held: Held::default() };
    let result = call(Some(on_progress), ptr::addr_of_mut!(loading).cast());
    if let Some(panic) = loading.held.0.take() {
        drop(result);
        resume_unwind(panic);
    }
    result
}

impl<'m> Session<'m> {
    /// From the next choice on, the function sees the logits and the tokens behind which they are, before a token is
    /// chosen, and may change them: each must be a finite number then, or -infinity, after which that token is not
    /// chosen. Grammar and sampling work on what it leaves. `Break` ends the choice with
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled). A panic goes on behind the call that chooses. A fork of
    /// the session has no such function.
    ///
    /// ```no_run
    /// # fn f(session: &mut jitrun::Session<'_>) -> jitrun::Result<()> {
    /// use std::ops::ControlFlow;
    ///
    /// session.set_logits_fn(|logits, ids| {
    ///     if let Some(&last) = ids.last() {
    ///         logits[last as usize] = f32::NEG_INFINITY; // no token twice in a row
    ///     }
    ///     ControlFlow::Continue(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_logits_fn(
        &mut self,
        function: impl FnMut(&mut [f32], &[i32]) -> ControlFlow<()> + Send + 'm,
    ) -> Result<()> {
        let (s, at) = (self.raw.as_ptr(), self.callbacks.there());
        // SAFETY: the address is valid as long as the session.
        status(|err| unsafe { sys::jit_session_set_logits_fn(s, Some(on_logits), at.as_ptr().cast(), err) })?;
        // SAFETY: no call of the library runs.
        let old = unsafe { (*at.as_ptr()).logits.replace(Box::new(function)) };
        drop(old);
        Ok(())
    }

    /// Ends what [`set_logits_fn`](Self::set_logits_fn) began.
    pub fn clear_logits_fn(&mut self) -> Result<()> {
        let s = self.raw.as_ptr();
        // SAFETY: open.
        status(|err| unsafe { sys::jit_session_set_logits_fn(s, None, ptr::null_mut(), err) })?;
        // SAFETY: no call of the library runs.
        let old = self.callbacks.0.and_then(|at| unsafe { (*at.as_ptr()).logits.take() });
        drop(old);
        Ok(())
    }

    /// From the next pass on, the function hears after each pass over tokens of a prompt how many of the session's
    /// tokens are computed, of how many. `Break` ends the computation with
    /// [`ErrorKind::Cancelled`](crate::ErrorKind::Cancelled), unless it has come to its end. A panic goes on behind the
    /// call that computes. A fork of the session has no such function.
    ///
    /// ```no_run
    /// # fn f(session: &mut jitrun::Session<'_>, text: &str) -> jitrun::Result<()> {
    /// session.set_prompt_fn(|computed, length| {
    ///     eprint!("\r{computed} of {length}");
    ///     std::ops::ControlFlow::Continue(())
    /// })?;
    /// session.feed_text(text, false)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_prompt_fn(&mut self, function: impl FnMut(usize, usize) -> ControlFlow<()> + Send + 'm) -> Result<()> {
        let (s, at) = (self.raw.as_ptr(), self.callbacks.there());
        // SAFETY: the address is valid as long as the session.
        status(|err| unsafe { sys::jit_session_set_prompt_fn(s, Some(on_prompt), at.as_ptr().cast(), err) })?;
        // SAFETY: no call of the library runs.
        let old = unsafe { (*at.as_ptr()).prompt.replace(Box::new(function)) };
        drop(old);
        Ok(())
    }

    /// Ends what [`set_prompt_fn`](Self::set_prompt_fn) began.
    pub fn clear_prompt_fn(&mut self) -> Result<()> {
        let s = self.raw.as_ptr();
        // SAFETY: open.
        status(|err| unsafe { sys::jit_session_set_prompt_fn(s, None, ptr::null_mut(), err) })?;
        // SAFETY: no call of the library runs.
        let old = self.callbacks.0.and_then(|at| unsafe { (*at.as_ptr()).prompt.take() });
        drop(old);
        Ok(())
    }
}

impl<'m> BatchSession<'_, 'm> {
    /// As [`Session::set_logits_fn`].
    pub fn set_logits_fn(
        &mut self,
        function: impl FnMut(&mut [f32], &[i32]) -> ControlFlow<()> + Send + 'm,
    ) -> Result<()> {
        self.0.set_logits_fn(function)
    }

    /// As [`Session::clear_logits_fn`].
    pub fn clear_logits_fn(&mut self) -> Result<()> {
        self.0.clear_logits_fn()
    }

    /// As [`Session::set_prompt_fn`]: how far the steps of the batch have come with it.
    pub fn set_prompt_fn(&mut self, function: impl FnMut(usize, usize) -> ControlFlow<()> + Send + 'm) -> Result<()> {
        self.0.set_prompt_fn(function)
    }

    /// As [`Session::clear_prompt_fn`].
    pub fn clear_prompt_fn(&mut self) -> Result<()> {
        self.0.clear_prompt_fn()
    }
}
