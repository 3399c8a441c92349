//! The C interface of jitrun 0.3.0, as it is: jitrun.h and the headers beside it.
//!
//! `man 3 jitrun` says what each function does; the crate `jitrun` is the safe way to it. Written by
//! `declarations.py` from `jitrun-abi.json`.
#![allow(non_camel_case_types)]
#![warn(missing_docs)]

use core::marker::{PhantomData, PhantomPinned};
pub use std::os::raw::{c_char, c_int, c_void};

#[cfg(test)]
mod layout;

/// `JIT_OK`.
pub const JIT_OK: c_int = 0;
/// `JIT_ERROR_IO`.
pub const JIT_ERROR_IO: c_int = 1;
/// `JIT_ERROR_FORMAT`.
pub const JIT_ERROR_FORMAT: c_int = 2;
/// `JIT_ERROR_UNSUPPORTED`.
pub const JIT_ERROR_UNSUPPORTED: c_int = 3;
/// `JIT_ERROR_MEMORY`.
pub const JIT_ERROR_MEMORY: c_int = 4;
/// `JIT_ERROR_ARGUMENT`.
pub const JIT_ERROR_ARGUMENT: c_int = 5;
/// `JIT_ERROR_DEVICE`.
pub const JIT_ERROR_DEVICE: c_int = 6;
/// `JIT_ERROR_CONTEXT`.
pub const JIT_ERROR_CONTEXT: c_int = 7;
/// `JIT_ERROR_CANCELLED`.
pub const JIT_ERROR_CANCELLED: c_int = 8;
/// `JIT_ERROR_STALLED`.
pub const JIT_ERROR_STALLED: c_int = 9;

/// `JIT_TUNE_QUICK`.
pub const JIT_TUNE_QUICK: c_int = 0;
/// `JIT_TUNE_CACHED`.
pub const JIT_TUNE_CACHED: c_int = 1;
/// `JIT_TUNE_OFF`.
pub const JIT_TUNE_OFF: c_int = 2;

/// `JIT_NUMERICS_EXACT`.
pub const JIT_NUMERICS_EXACT: c_int = 0;
/// `JIT_NUMERICS_BOUNDED`.
pub const JIT_NUMERICS_BOUNDED: c_int = 1;
/// `JIT_NUMERICS_ALWAYS_BOUNDED`.
pub const JIT_NUMERICS_ALWAYS_BOUNDED: c_int = 2;

/// `JIT_BOUNDED_NONE`.
pub const JIT_BOUNDED_NONE: c_int = 0;
/// `JIT_BOUNDED_PROMPTS`.
pub const JIT_BOUNDED_PROMPTS: c_int = 1;
/// `JIT_BOUNDED_ALL`.
pub const JIT_BOUNDED_ALL: c_int = 2;

/// `JIT_METADATA_STRING`.
pub const JIT_METADATA_STRING: c_int = 0;
/// `JIT_METADATA_INTEGER`.
pub const JIT_METADATA_INTEGER: c_int = 1;
/// `JIT_METADATA_REAL`.
pub const JIT_METADATA_REAL: c_int = 2;
/// `JIT_METADATA_BOOL`.
pub const JIT_METADATA_BOOL: c_int = 3;
/// `JIT_METADATA_ARRAY`.
pub const JIT_METADATA_ARRAY: c_int = 4;
/// `JIT_METADATA_NULL`.
pub const JIT_METADATA_NULL: c_int = 5;
/// `JIT_METADATA_OTHER`.
pub const JIT_METADATA_OTHER: c_int = 6;

/// `JIT_SPECULATE_OFF`.
pub const JIT_SPECULATE_OFF: c_int = -1;
/// `JIT_SPECULATE_AUTO`.
pub const JIT_SPECULATE_AUTO: c_int = 0;

/// `JIT_KV_F16`.
pub const JIT_KV_F16: c_int = 0;
/// `JIT_KV_F32`.
pub const JIT_KV_F32: c_int = 1;
/// `JIT_KV_Q8_0`.
pub const JIT_KV_Q8_0: c_int = 2;

/// `JIT_PROFILE_OFF`.
pub const JIT_PROFILE_OFF: c_int = 0;
/// `JIT_PROFILE_SUMS`.
pub const JIT_PROFILE_SUMS: c_int = 1;
/// `JIT_PROFILE_EVENTS`.
pub const JIT_PROFILE_EVENTS: c_int = 2;

/// `JIT_POOL_LAST`.
pub const JIT_POOL_LAST: c_int = 0;
/// `JIT_POOL_MEAN`.
pub const JIT_POOL_MEAN: c_int = 1;
/// `JIT_POOL_NONE`.
pub const JIT_POOL_NONE: c_int = 2;
/// `JIT_POOL_RANK`.
pub const JIT_POOL_RANK: c_int = 3;
/// `JIT_POOL_CLS`.
pub const JIT_POOL_CLS: c_int = 4;

/// `JIT_LOGPROBS_MOST`.
pub const JIT_LOGPROBS_MOST: c_int = 256;

/// `JIT_LAUNCH_TOKEN`.
pub const JIT_LAUNCH_TOKEN: c_int = 0;
/// `JIT_LAUNCH_LAYER`.
pub const JIT_LAUNCH_LAYER: c_int = 1;
/// `JIT_LAUNCH_OP`.
pub const JIT_LAUNCH_OP: c_int = 2;

/// `JIT_GRAMMAR_NONE`.
pub const JIT_GRAMMAR_NONE: c_int = 0;
/// `JIT_GRAMMAR_JSON_SCHEMA`.
pub const JIT_GRAMMAR_JSON_SCHEMA: c_int = 1;
/// `JIT_GRAMMAR_REGEX`.
pub const JIT_GRAMMAR_REGEX: c_int = 2;
/// `JIT_GRAMMAR_GBNF`.
pub const JIT_GRAMMAR_GBNF: c_int = 3;
/// `JIT_GRAMMAR_CALL`.
pub const JIT_GRAMMAR_CALL: c_int = 4;
/// `JIT_GRAMMAR_LARK`.
pub const JIT_GRAMMAR_LARK: c_int = 5;

/// `JIT_GRAMMAR_ADDITIONAL`.
pub const JIT_GRAMMAR_ADDITIONAL: c_int = 256;

/// `JIT_ANSWER_NOTHING`.
pub const JIT_ANSWER_NOTHING: c_int = 0;
/// `JIT_ANSWER_TEXT`.
pub const JIT_ANSWER_TEXT: c_int = 1;
/// `JIT_ANSWER_REASONING`.
pub const JIT_ANSWER_REASONING: c_int = 2;
/// `JIT_ANSWER_CALL`.
pub const JIT_ANSWER_CALL: c_int = 3;
/// `JIT_ANSWER_ARGUMENTS`.
pub const JIT_ANSWER_ARGUMENTS: c_int = 4;
/// `JIT_ANSWER_CALL_END`.
pub const JIT_ANSWER_CALL_END: c_int = 5;

/// `JIT_TOKEN_NORMAL`.
pub const JIT_TOKEN_NORMAL: c_int = 1;
/// `JIT_TOKEN_UNKNOWN`.
pub const JIT_TOKEN_UNKNOWN: c_int = 2;
/// `JIT_TOKEN_CONTROL`.
pub const JIT_TOKEN_CONTROL: c_int = 3;
/// `JIT_TOKEN_USER`.
pub const JIT_TOKEN_USER: c_int = 4;
/// `JIT_TOKEN_UNUSED`.
pub const JIT_TOKEN_UNUSED: c_int = 5;
/// `JIT_TOKEN_BYTE`.
pub const JIT_TOKEN_BYTE: c_int = 6;

/// `JIT_TYPE_BOOL`.
pub const JIT_TYPE_BOOL: c_int = 0;
/// `JIT_TYPE_F32`.
pub const JIT_TYPE_F32: c_int = 1;
/// `JIT_TYPE_F64`.
pub const JIT_TYPE_F64: c_int = 2;
/// `JIT_TYPE_I32`.
pub const JIT_TYPE_I32: c_int = 3;
/// `JIT_TYPE_U32`.
pub const JIT_TYPE_U32: c_int = 4;
/// `JIT_TYPE_I64`.
pub const JIT_TYPE_I64: c_int = 5;
/// `JIT_TYPE_U64`.
pub const JIT_TYPE_U64: c_int = 6;
/// `JIT_TYPE_F16`.
pub const JIT_TYPE_F16: c_int = 7;
/// `JIT_TYPE_BF16`.
pub const JIT_TYPE_BF16: c_int = 8;
/// `JIT_TYPE_I8`.
pub const JIT_TYPE_I8: c_int = 9;
/// `JIT_TYPE_U8`.
pub const JIT_TYPE_U8: c_int = 10;
/// `JIT_TYPE_I16`.
pub const JIT_TYPE_I16: c_int = 11;
/// `JIT_TYPE_U16`.
pub const JIT_TYPE_U16: c_int = 12;

/// `JIT_SCALAR`.
pub const JIT_SCALAR: c_int = 0;
/// `JIT_IN`.
pub const JIT_IN: c_int = 1;
/// `JIT_OUT`.
pub const JIT_OUT: c_int = 2;
/// `JIT_INOUT`.
pub const JIT_INOUT: c_int = 3;

/// `JIT_RUNS_NATIVE`.
pub const JIT_RUNS_NATIVE: c_int = 0;
/// `JIT_RUNS_INTERPRETED`.
pub const JIT_RUNS_INTERPRETED: c_int = 1;

/// `JIT_CODE_GENERATED`.
pub const JIT_CODE_GENERATED: c_int = 0;
/// `JIT_CODE_MEMORY`.
pub const JIT_CODE_MEMORY: c_int = 1;
/// `JIT_CODE_DISK`.
pub const JIT_CODE_DISK: c_int = 2;
/// `JIT_CODE_PACK`.
pub const JIT_CODE_PACK: c_int = 3;

/// `JIT_SPECIALISING`.
pub const JIT_SPECIALISING: c_int = 0;
/// `JIT_SPECIALISED`.
pub const JIT_SPECIALISED: c_int = 1;
/// `JIT_SPECIALISE_FAILED`.
pub const JIT_SPECIALISE_FAILED: c_int = 2;

/// `JIT_TRAIN_CONSTANT`.
pub const JIT_TRAIN_CONSTANT: c_int = 0;
/// `JIT_TRAIN_COSINE`.
pub const JIT_TRAIN_COSINE: c_int = 1;
/// `JIT_TRAIN_LINEAR`.
pub const JIT_TRAIN_LINEAR: c_int = 2;

/// `JIT_TRAIN_PEFT`.
pub const JIT_TRAIN_PEFT: c_int = 0;
/// `JIT_TRAIN_GGUF`.
pub const JIT_TRAIN_GGUF: c_int = 1;
/// `JIT_TRAIN_WEIGHTS`.
pub const JIT_TRAIN_WEIGHTS: c_int = 2;

/// `JIT_ADAPTERS_MOST`.
pub const JIT_ADAPTERS_MOST: c_int = 64;
/// `JIT_ADAPTERS_TOGETHER`.
pub const JIT_ADAPTERS_TOGETHER: c_int = 8;

/// `JIT_OPTIMISE_CMA`.
pub const JIT_OPTIMISE_CMA: c_int = 0;
/// `JIT_OPTIMISE_NSGA2`.
pub const JIT_OPTIMISE_NSGA2: c_int = 1;
/// `JIT_OPTIMISE_NSGA3`.
pub const JIT_OPTIMISE_NSGA3: c_int = 2;
/// `JIT_OPTIMISE_MOEAD`.
pub const JIT_OPTIMISE_MOEAD: c_int = 3;

/// `JIT_BOUNDS_BOX`.
pub const JIT_BOUNDS_BOX: c_int = 0;
/// `JIT_BOUNDS_PENALTY`.
pub const JIT_BOUNDS_PENALTY: c_int = 1;

/// `JIT_RESTARTS_NONE`.
pub const JIT_RESTARTS_NONE: c_int = 0;
/// `JIT_RESTARTS_SAME`.
pub const JIT_RESTARTS_SAME: c_int = 1;
/// `JIT_RESTARTS_IPOP`.
pub const JIT_RESTARTS_IPOP: c_int = 2;
/// `JIT_RESTARTS_BIPOP`.
pub const JIT_RESTARTS_BIPOP: c_int = 3;

/// `jit_model`, whose inside is the library's own.
#[repr(C)]
pub struct jit_model {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_session`, whose inside is the library's own.
#[repr(C)]
pub struct jit_session {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_cancel`, whose inside is the library's own.
#[repr(C)]
pub struct jit_cancel {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_batch`, whose inside is the library's own.
#[repr(C)]
pub struct jit_batch {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_answer`, whose inside is the library's own.
#[repr(C)]
pub struct jit_answer {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_compute`, whose inside is the library's own.
#[repr(C)]
pub struct jit_compute {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_kernel`, whose inside is the library's own.
#[repr(C)]
pub struct jit_kernel {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_buffer`, whose inside is the library's own.
#[repr(C)]
pub struct jit_buffer {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_launch`, whose inside is the library's own.
#[repr(C)]
pub struct jit_launch {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_graph`, whose inside is the library's own.
#[repr(C)]
pub struct jit_graph {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_executable`, whose inside is the library's own.
#[repr(C)]
pub struct jit_executable {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_specialiser`, whose inside is the library's own.
#[repr(C)]
pub struct jit_specialiser {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_train`, whose inside is the library's own.
#[repr(C)]
pub struct jit_train {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_adapter`, whose inside is the library's own.
#[repr(C)]
pub struct jit_adapter {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_image_encoder`, whose inside is the library's own.
#[repr(C)]
pub struct jit_image_encoder {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_image`, whose inside is the library's own.
#[repr(C)]
pub struct jit_image {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_prompt`, whose inside is the library's own.
#[repr(C)]
pub struct jit_prompt {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_optimiser`, whose inside is the library's own.
#[repr(C)]
pub struct jit_optimiser {
    inside: [u8; 0],
    neither_send_nor_sync: PhantomData<(*mut u8, PhantomPinned)>,
}

/// `jit_progress_fn` of jitrun.h.
pub type jit_progress_fn = Option<unsafe extern "C" fn(user: *mut c_void, done: u64, total: u64) -> c_int>;

/// `jit_logits_fn` of jitrun_logits.h.
pub type jit_logits_fn = Option<
    unsafe extern "C" fn(user: *mut c_void, logits: *mut f32, n_logits: usize, ids: *const i32, n_ids: usize) -> c_int,
>;

/// `jit_prompt_fn` of jitrun_logits.h.
pub type jit_prompt_fn = Option<unsafe extern "C" fn(user: *mut c_void, computed: usize, length: usize) -> c_int>;

/// `jit_objective_fn` of jitrun_optimise.h.
pub type jit_objective_fn = Option<
    unsafe extern "C" fn(user: *mut c_void, x: *const f64, count: usize, values: *mut f64) -> c_int,
>;

/// `jit_error` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_error {
    /// `int code`.
    pub code: c_int,
    /// `int reserved`.
    pub reserved: [c_int; 3],
    /// `char message`.
    pub message: [c_char; 512],
}

/// `jit_model_options` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_model_options {
    /// `size_t size`.
    pub size: usize,
    /// `const char * device`.
    pub device: *const c_char,
    /// `const char * isa`.
    pub isa: *const c_char,
    /// `int threads`.
    pub threads: c_int,
    /// `int sealed`.
    pub sealed: c_int,
    /// `const char * cache_dir`.
    pub cache_dir: *const c_char,
    /// `uint64_t cache_limit`.
    pub cache_limit: u64,
    /// `int f32_activations`.
    pub f32_activations: c_int,
    /// `int bounded_numerics`.
    pub bounded_numerics: c_int,
    /// `int tune`.
    pub tune: c_int,
    /// `int perf_map`.
    pub perf_map: c_int,
    /// `const char * dump_ir`.
    pub dump_ir: *const c_char,
    /// `const char * dump_asm`.
    pub dump_asm: *const c_char,
    /// `jit_progress_fn progress`.
    pub progress: jit_progress_fn,
    /// `void * progress_user`.
    pub progress_user: *mut c_void,
    /// `const char * jitdump`.
    pub jitdump: *const c_char,
    /// `int gdb`.
    pub gdb: c_int,
    /// `int copy_weights`.
    pub copy_weights: c_int,
    /// `jit_cancel * cancel`.
    pub cancel: *mut jit_cancel,
    /// `const char * weight_cache`.
    pub weight_cache: *const c_char,
    /// `uint64_t weight_cache_limit`.
    pub weight_cache_limit: u64,
    /// `const struct jit_session_options * session`.
    pub session: *const jit_session_options,
    /// `const char * ranks`.
    pub ranks: *const c_char,
    /// `const char * split`.
    pub split: *const c_char,
}

impl jit_model_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_model_options>();
        made
    }
}

impl Default for jit_model_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_model_info` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_model_info {
    /// `size_t size`.
    pub size: usize,
    /// `const char * description`.
    pub description: *const c_char,
    /// `int vocab`.
    pub vocab: c_int,
    /// `int layers`.
    pub layers: c_int,
    /// `int hidden`.
    pub hidden: c_int,
    /// `int context_trained`.
    pub context_trained: c_int,
    /// `int has_tokenizer`.
    pub has_tokenizer: c_int,
    /// `uint64_t file_bytes`.
    pub file_bytes: u64,
    /// `uint64_t weight_bytes`.
    pub weight_bytes: u64,
    /// `uint64_t token_bytes`.
    pub token_bytes: u64,
    /// `double load_seconds`.
    pub load_seconds: f64,
    /// `int has_chat_template`.
    pub has_chat_template: c_int,
    /// `int has_sampling`.
    pub has_sampling: c_int,
    /// `const char * weight_cache_trouble`.
    pub weight_cache_trouble: *const c_char,
    /// `int pooling`.
    pub pooling: c_int,
    /// `int bounded`.
    pub bounded: c_int,
    /// `double bounded_gain`.
    pub bounded_gain: f64,
    /// `int encodes`.
    pub encodes: c_int,
    /// `int embedding`.
    pub embedding: c_int,
    /// `const char * ranks`.
    pub ranks: *const c_char,
}

impl jit_model_info {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_model_info>();
        made
    }
}

impl Default for jit_model_info {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_metadata` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_metadata {
    /// `size_t size`.
    pub size: usize,
    /// `const char * key`.
    pub key: *const c_char,
    /// `int kind`.
    pub kind: c_int,
    /// `int item_kind`.
    pub item_kind: c_int,
    /// `int64_t integer`.
    pub integer: i64,
    /// `double real`.
    pub real: f64,
    /// `const char * text`.
    pub text: *const c_char,
    /// `size_t n`.
    pub n: usize,
}

impl jit_metadata {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_metadata>();
        made
    }
}

impl Default for jit_metadata {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_chat_options` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_chat_options {
    /// `size_t size`.
    pub size: usize,
    /// `const char * messages`.
    pub messages: *const c_char,
    /// `const char * tools`.
    pub tools: *const c_char,
    /// `const char * variables`.
    pub variables: *const c_char,
    /// `const char * template_text`.
    pub template_text: *const c_char,
    /// `int no_generation_prompt`.
    pub no_generation_prompt: c_int,
    /// `int has_now`.
    pub has_now: c_int,
    /// `int64_t now`.
    pub now: i64,
    /// `const char * template_name`.
    pub template_name: *const c_char,
}

impl jit_chat_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_chat_options>();
        made
    }
}

impl Default for jit_chat_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_chat` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_chat {
    /// `size_t size`.
    pub size: usize,
    /// `char * text`.
    pub text: *mut c_char,
    /// `size_t n`.
    pub n: usize,
    /// `int32_t * ids`.
    pub ids: *mut i32,
    /// `size_t n_ids`.
    pub n_ids: usize,
}

impl jit_chat {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_chat>();
        made
    }
}

impl Default for jit_chat {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_device_info` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_device_info {
    /// `size_t size`.
    pub size: usize,
    /// `char name`.
    pub name: [c_char; 32],
    /// `char about`.
    pub about: [c_char; 200],
    /// `char why_not`.
    pub why_not: [c_char; 512],
}

impl jit_device_info {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_device_info>();
        made
    }
}

impl Default for jit_device_info {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_logit_bias` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_logit_bias {
    /// `int32_t id`.
    pub id: i32,
    /// `float bias`.
    pub bias: f32,
}

/// `jit_sampling` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_sampling {
    /// `size_t size`.
    pub size: usize,
    /// `float temperature`.
    pub temperature: f32,
    /// `int top_k`.
    pub top_k: c_int,
    /// `float top_p`.
    pub top_p: f32,
    /// `float min_p`.
    pub min_p: f32,
    /// `float repeat_penalty`.
    pub repeat_penalty: f32,
    /// `int repeat_window`.
    pub repeat_window: c_int,
    /// `uint64_t seed`.
    pub seed: u64,
    /// `const char * samplers`.
    pub samplers: *const c_char,
    /// `const char *const * dry_breakers`.
    pub dry_breakers: *const *const c_char,
    /// `const jit_logit_bias * logit_bias`.
    pub logit_bias: *const jit_logit_bias,
    /// `int n_dry_breakers`.
    pub n_dry_breakers: c_int,
    /// `int n_logit_bias`.
    pub n_logit_bias: c_int,
    /// `float typical_p`.
    pub typical_p: f32,
    /// `float top_n_sigma`.
    pub top_n_sigma: f32,
    /// `float frequency_penalty`.
    pub frequency_penalty: f32,
    /// `float presence_penalty`.
    pub presence_penalty: f32,
    /// `float dynatemp_range`.
    pub dynatemp_range: f32,
    /// `float dynatemp_exponent`.
    pub dynatemp_exponent: f32,
    /// `float xtc_probability`.
    pub xtc_probability: f32,
    /// `float xtc_threshold`.
    pub xtc_threshold: f32,
    /// `float dry_multiplier`.
    pub dry_multiplier: f32,
    /// `float dry_base`.
    pub dry_base: f32,
    /// `int dry_allowed_length`.
    pub dry_allowed_length: c_int,
    /// `int dry_window`.
    pub dry_window: c_int,
    /// `int mirostat`.
    pub mirostat: c_int,
    /// `int min_keep`.
    pub min_keep: c_int,
    /// `float mirostat_tau`.
    pub mirostat_tau: f32,
    /// `float mirostat_eta`.
    pub mirostat_eta: f32,
    /// `float adaptive_target`.
    pub adaptive_target: f32,
    /// `float adaptive_decay`.
    pub adaptive_decay: f32,
}

impl jit_sampling {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_sampling>();
        made
    }
}

impl Default for jit_sampling {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_session_options` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_session_options {
    /// `size_t size`.
    pub size: usize,
    /// `int context`.
    pub context: c_int,
    /// `int threads`.
    pub threads: c_int,
    /// `int batch`.
    pub batch: c_int,
    /// `int kv`.
    pub kv: c_int,
    /// `int speculate`.
    pub speculate: c_int,
    /// `int profile`.
    pub profile: c_int,
    /// `const jit_sampling * sampling`.
    pub sampling: *const jit_sampling,
    /// `const jit_card_options * card`.
    pub card: *const jit_card_options,
    /// `jit_cancel * cancel`.
    pub cancel: *mut jit_cancel,
    /// `const struct jit_draft_options * draft`.
    pub draft: *const jit_draft_options,
}

impl jit_session_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_session_options>();
        made
    }
}

impl Default for jit_session_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_embedding_options` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_embedding_options {
    /// `size_t size`.
    pub size: usize,
    /// `int pooling`.
    pub pooling: c_int,
    /// `int normalise`.
    pub normalise: c_int,
}

impl jit_embedding_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_embedding_options>();
        made
    }
}

impl Default for jit_embedding_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_logprob` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_logprob {
    /// `int32_t id`.
    pub id: i32,
    /// `float logprob`.
    pub logprob: f32,
}

/// `jit_session_stats.speculation` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_session_stats_speculation {
    /// `int tokens`.
    pub tokens: c_int,
    /// `int reserved`.
    pub reserved: c_int,
    /// `uint64_t passes`.
    pub passes: u64,
    /// `uint64_t drafted`.
    pub drafted: u64,
    /// `uint64_t accepted`.
    pub accepted: u64,
}

/// `jit_session_stats` of jitrun.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_session_stats {
    /// `size_t size`.
    pub size: usize,
    /// `uint64_t prompt_tokens`.
    pub prompt_tokens: u64,
    /// `uint64_t decode_tokens`.
    pub decode_tokens: u64,
    /// `double prompt_seconds`.
    pub prompt_seconds: f64,
    /// `double decode_seconds`.
    pub decode_seconds: f64,
    /// `uint64_t kernels`.
    pub kernels: u64,
    /// `uint64_t kernels_generated`.
    pub kernels_generated: u64,
    /// `uint64_t kernels_from_cache`.
    pub kernels_from_cache: u64,
    /// `uint64_t kernels_from_pack`.
    pub kernels_from_pack: u64,
    /// `uint64_t cache_damaged`.
    pub cache_damaged: u64,
    /// `uint64_t cache_store_failed`.
    pub cache_store_failed: u64,
    /// `uint64_t cache_evicted`.
    pub cache_evicted: u64,
    /// `double generate_seconds`.
    pub generate_seconds: f64,
    /// `uint64_t code_bytes`.
    pub code_bytes: u64,
    /// `uint64_t kv_bytes`.
    pub kv_bytes: u64,
    /// `int threads`.
    pub threads: c_int,
    /// `int context`.
    pub context: c_int,
    /// `uint64_t decode_passes`.
    pub decode_passes: u64,
    /// `uint64_t drafted`.
    pub drafted: u64,
    /// `uint64_t accepted`.
    pub accepted: u64,
    /// `jit_session_stats_speculation speculation`.
    pub speculation: [jit_session_stats_speculation; 3],
    /// `uint64_t kernels_background`.
    pub kernels_background: u64,
    /// `uint64_t kernel_stalls`.
    pub kernel_stalls: u64,
    /// `uint64_t cache_unreadable`.
    pub cache_unreadable: u64,
}

impl jit_session_stats {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_session_stats>();
        made
    }
}

impl Default for jit_session_stats {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_card_options` of jitrun_cards.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_card_options {
    /// `size_t size`.
    pub size: usize,
    /// `int launch`.
    pub launch: c_int,
    /// `int workgroups`.
    pub workgroups: c_int,
    /// `int units`.
    pub units: c_int,
    /// `int reserved`.
    pub reserved: c_int,
}

impl jit_card_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_card_options>();
        made
    }
}

impl Default for jit_card_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_card_stats` of jitrun_cards.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_card_stats {
    /// `size_t size`.
    pub size: usize,
    /// `uint64_t launches`.
    pub launches: u64,
    /// `uint64_t barriers`.
    pub barriers: u64,
    /// `uint64_t instructions`.
    pub instructions: u64,
    /// `uint64_t load_bytes`.
    pub load_bytes: u64,
    /// `uint64_t load128_bytes`.
    pub load128_bytes: u64,
    /// `uint64_t store_bytes`.
    pub store_bytes: u64,
    /// `uint64_t scalar_bytes`.
    pub scalar_bytes: u64,
    /// `uint64_t weight_bytes`.
    pub weight_bytes: u64,
    /// `uint64_t cache_bytes`.
    pub cache_bytes: u64,
    /// `uint64_t commands`.
    pub commands: u64,
}

impl jit_card_stats {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_card_stats>();
        made
    }
}

impl Default for jit_card_stats {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_objects_options` of jitrun_cards.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_objects_options {
    /// `size_t size`.
    pub size: usize,
    /// `const char * target`.
    pub target: *const c_char,
    /// `const char * dir`.
    pub dir: *const c_char,
    /// `int kv`.
    pub kv: c_int,
    /// `int f32_activations`.
    pub f32_activations: c_int,
    /// `int bounded_numerics`.
    pub bounded_numerics: c_int,
    /// `int reserved`.
    pub reserved: c_int,
}

impl jit_objects_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_objects_options>();
        made
    }
}

impl Default for jit_objects_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_objects` of jitrun_cards.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_objects {
    /// `size_t size`.
    pub size: usize,
    /// `size_t kernels`.
    pub kernels: usize,
    /// `size_t programs`.
    pub programs: usize,
    /// `uint64_t bytes`.
    pub bytes: u64,
}

impl jit_objects {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_objects>();
        made
    }
}

impl Default for jit_objects {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_grammar_options` of jitrun_grammar.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_grammar_options {
    /// `size_t size`.
    pub size: usize,
    /// `int kind`.
    pub kind: c_int,
    /// `int behind_reasoning`.
    pub behind_reasoning: c_int,
    /// `const char * text`.
    pub text: *const c_char,
    /// `size_t n`.
    pub n: usize,
    /// `const char * prompt`.
    pub prompt: *const c_char,
    /// `size_t n_prompt`.
    pub n_prompt: usize,
    /// `const char * tools`.
    pub tools: *const c_char,
    /// `const char * template_text`.
    pub template_text: *const c_char,
    /// `const char * template_name`.
    pub template_name: *const c_char,
    /// `const char * opening`.
    pub opening: *const c_char,
}

impl jit_grammar_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_grammar_options>();
        made
    }
}

impl Default for jit_grammar_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_batch_options` of jitrun_batch.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_batch_options {
    /// `size_t size`.
    pub size: usize,
    /// `int threads`.
    pub threads: c_int,
    /// `int tokens`.
    pub tokens: c_int,
    /// `int context`.
    pub context: c_int,
    /// `int kv`.
    pub kv: c_int,
    /// `int speculate`.
    pub speculate: c_int,
    /// `int max_pass_ms`.
    pub max_pass_ms: c_int,
    /// `uint64_t kv_bytes`.
    pub kv_bytes: u64,
    /// `jit_cancel * cancel`.
    pub cancel: *mut jit_cancel,
    /// `const struct jit_draft_options * draft`.
    pub draft: *const jit_draft_options,
}

impl jit_batch_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_batch_options>();
        made
    }
}

impl Default for jit_batch_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_batch_stats` of jitrun_batch.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_batch_stats {
    /// `size_t size`.
    pub size: usize,
    /// `uint64_t passes`.
    pub passes: u64,
    /// `uint64_t tokens`.
    pub tokens: u64,
    /// `uint64_t prompt_tokens`.
    pub prompt_tokens: u64,
    /// `uint64_t decode_tokens`.
    pub decode_tokens: u64,
    /// `uint64_t reused_tokens`.
    pub reused_tokens: u64,
    /// `uint64_t set_back`.
    pub set_back: u64,
    /// `uint64_t pages`.
    pub pages: u64,
    /// `uint64_t pages_used`.
    pub pages_used: u64,
    /// `uint64_t pages_kept`.
    pub pages_kept: u64,
    /// `uint64_t kv_bytes`.
    pub kv_bytes: u64,
    /// `double seconds`.
    pub seconds: f64,
    /// `uint64_t width`.
    pub width: [u64; 16],
    /// `uint64_t pages_shared`.
    pub pages_shared: u64,
    /// `uint64_t context`.
    pub context: u64,
}

impl jit_batch_stats {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_batch_stats>();
        made
    }
}

impl Default for jit_batch_stats {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_answer_options` of jitrun_answers.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_answer_options {
    /// `size_t size`.
    pub size: usize,
    /// `const char * tools`.
    pub tools: *const c_char,
    /// `const char * prompt`.
    pub prompt: *const c_char,
    /// `size_t n_prompt`.
    pub n_prompt: usize,
    /// `const char * template_text`.
    pub template_text: *const c_char,
    /// `const char * template_name`.
    pub template_name: *const c_char,
    /// `const char * opened`.
    pub opened: *const c_char,
    /// `const char * id`.
    pub id: *const c_char,
    /// `int one_call`.
    pub one_call: c_int,
    /// `int keep_reasoning`.
    pub keep_reasoning: c_int,
    /// `int cut`.
    pub cut: c_int,
    /// `int reserved`.
    pub reserved: c_int,
}

impl jit_answer_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_answer_options>();
        made
    }
}

impl Default for jit_answer_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_answer_event` of jitrun_answers.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_answer_event {
    /// `size_t size`.
    pub size: usize,
    /// `int kind`.
    pub kind: c_int,
    /// `int call`.
    pub call: c_int,
    /// `const char * text`.
    pub text: *const c_char,
    /// `size_t n`.
    pub n: usize,
    /// `const char * id`.
    pub id: *const c_char,
    /// `const char * name`.
    pub name: *const c_char,
    /// `int whole`.
    pub whole: c_int,
    /// `int reserved`.
    pub reserved: c_int,
}

impl jit_answer_event {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_answer_event>();
        made
    }
}

impl Default for jit_answer_event {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_forced_options` of jitrun_answers.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_forced_options {
    /// `size_t size`.
    pub size: usize,
    /// `const char * tools`.
    pub tools: *const c_char,
    /// `const char * function`.
    pub function: *const c_char,
    /// `const char * template_text`.
    pub template_text: *const c_char,
    /// `const char * template_name`.
    pub template_name: *const c_char,
    /// `int one_call`.
    pub one_call: c_int,
    /// `int reserved`.
    pub reserved: c_int,
    /// `const char * prompt`.
    pub prompt: *const c_char,
    /// `size_t n_prompt`.
    pub n_prompt: usize,
}

impl jit_forced_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_forced_options>();
        made
    }
}

impl Default for jit_forced_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_forced_call` of jitrun_answers.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_forced_call {
    /// `size_t size`.
    pub size: usize,
    /// `int kind`.
    pub kind: c_int,
    /// `int behind_reasoning`.
    pub behind_reasoning: c_int,
    /// `char * grammar`.
    pub grammar: *mut c_char,
    /// `size_t n_grammar`.
    pub n_grammar: usize,
    /// `char * prompt`.
    pub prompt: *mut c_char,
    /// `size_t n_prompt`.
    pub n_prompt: usize,
    /// `int32_t * ids`.
    pub ids: *mut i32,
    /// `size_t n_ids`.
    pub n_ids: usize,
    /// `char * opened`.
    pub opened: *mut c_char,
}

impl jit_forced_call {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_forced_call>();
        made
    }
}

impl Default for jit_forced_call {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_token` of jitrun_tokens.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_token {
    /// `size_t size`.
    pub size: usize,
    /// `const char * text`.
    pub text: *const c_char,
    /// `size_t n_text`.
    pub n_text: usize,
    /// `size_t n_bytes`.
    pub n_bytes: usize,
    /// `int kind`.
    pub kind: c_int,
    /// `int is_end`.
    pub is_end: c_int,
}

impl jit_token {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_token>();
        made
    }
}

impl Default for jit_token {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_needs` of jitrun_options.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_needs {
    /// `size_t size`.
    pub size: usize,
    /// `uint64_t weight_bytes`.
    pub weight_bytes: u64,
    /// `uint64_t token_bytes`.
    pub token_bytes: u64,
    /// `uint64_t kv_bytes`.
    pub kv_bytes: u64,
    /// `uint64_t pass_bytes`.
    pub pass_bytes: u64,
    /// `uint64_t available_bytes`.
    pub available_bytes: u64,
    /// `int context`.
    pub context: c_int,
    /// `int context_trained`.
    pub context_trained: c_int,
}

impl jit_needs {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_needs>();
        made
    }
}

impl Default for jit_needs {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_embedding_text` of jitrun_texts.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_embedding_text {
    /// `const int32_t * ids`.
    pub ids: *const i32,
    /// `const int32_t * types`.
    pub types: *const i32,
    /// `size_t n`.
    pub n: usize,
}

/// `jit_compute_options` of jitrun_kernel.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_compute_options {
    /// `size_t size`.
    pub size: usize,
    /// `const char * device`.
    pub device: *const c_char,
    /// `const char * isa`.
    pub isa: *const c_char,
    /// `int threads`.
    pub threads: c_int,
    /// `int sealed`.
    pub sealed: c_int,
    /// `const char * cache_dir`.
    pub cache_dir: *const c_char,
    /// `uint64_t cache_limit`.
    pub cache_limit: u64,
    /// `const char * dump_ir`.
    pub dump_ir: *const c_char,
    /// `const char * dump_asm`.
    pub dump_asm: *const c_char,
    /// `const char * jitdump`.
    pub jitdump: *const c_char,
    /// `int perf_map`.
    pub perf_map: c_int,
    /// `int gdb`.
    pub gdb: c_int,
    /// `jit_cancel * cancel`.
    pub cancel: *mut jit_cancel,
    /// `const char * trace`.
    pub trace: *const c_char,
}

impl jit_compute_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_compute_options>();
        made
    }
}

impl Default for jit_compute_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_compute_info` of jitrun_kernel.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_compute_info {
    /// `size_t size`.
    pub size: usize,
    /// `const char * device`.
    pub device: *const c_char,
    /// `const char * target`.
    pub target: *const c_char,
    /// `int threads`.
    pub threads: c_int,
    /// `int in_place`.
    pub in_place: c_int,
    /// `uint64_t generated`.
    pub generated: u64,
    /// `uint64_t from_disk`.
    pub from_disk: u64,
    /// `uint64_t from_pack`.
    pub from_pack: u64,
    /// `uint64_t generated_ns`.
    pub generated_ns: u64,
    /// `uint64_t from_disk_ns`.
    pub from_disk_ns: u64,
    /// `uint64_t code_bytes`.
    pub code_bytes: u64,
}

impl jit_compute_info {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_compute_info>();
        made
    }
}

impl Default for jit_compute_info {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_kernel_options` of jitrun_kernel.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_kernel_options {
    /// `size_t size`.
    pub size: usize,
    /// `const char * source`.
    pub source: *const c_char,
    /// `size_t n`.
    pub n: usize,
    /// `const char * path`.
    pub path: *const c_char,
    /// `const char * kernel`.
    pub kernel: *const c_char,
    /// `const char * constants`.
    pub constants: *const c_char,
    /// `int check`.
    pub check: c_int,
    /// `int reserved`.
    pub reserved: c_int,
    /// `char * messages`.
    pub messages: *mut c_char,
    /// `size_t n_messages`.
    pub n_messages: usize,
}

impl jit_kernel_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_kernel_options>();
        made
    }
}

impl Default for jit_kernel_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_parameter` of jitrun_kernel.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_parameter {
    /// `size_t size`.
    pub size: usize,
    /// `const char * name`.
    pub name: *const c_char,
    /// `int type`.
    pub r#type: c_int,
    /// `int access`.
    pub access: c_int,
    /// `int dims`.
    pub dims: c_int,
    /// `int reserved`.
    pub reserved: c_int,
    /// `uint64_t extent`.
    pub extent: [u64; 4],
    /// `uint64_t elements`.
    pub elements: u64,
    /// `uint64_t bytes`.
    pub bytes: u64,
}

impl jit_parameter {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_parameter>();
        made
    }
}

impl Default for jit_parameter {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_kernel_report` of jitrun_kernel.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_kernel_report {
    /// `size_t size`.
    pub size: usize,
    /// `const char * name`.
    pub name: *const c_char,
    /// `const char * key`.
    pub key: *const c_char,
    /// `int runs`.
    pub runs: c_int,
    /// `int code`.
    pub code: c_int,
    /// `uint64_t code_ns`.
    pub code_ns: u64,
    /// `uint64_t code_bytes`.
    pub code_bytes: u64,
    /// `uint64_t units`.
    pub units: u64,
    /// `uint64_t bytes_read`.
    pub bytes_read: u64,
    /// `uint64_t bytes_written`.
    pub bytes_written: u64,
    /// `uint64_t operations`.
    pub operations: u64,
    /// `uint64_t launches`.
    pub launches: u64,
    /// `uint64_t last_ns`.
    pub last_ns: u64,
    /// `const char * tuned`.
    pub tuned: *const c_char,
}

impl jit_kernel_report {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_kernel_report>();
        made
    }
}

impl Default for jit_kernel_report {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_work` of jitrun_kernel.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_work {
    /// `size_t size`.
    pub size: usize,
    /// `uint64_t bytes`.
    pub bytes: u64,
    /// `uint64_t operations`.
    pub operations: u64,
    /// `uint64_t copied`.
    pub copied: u64,
    /// `uint64_t memory`.
    pub memory: u64,
}

impl jit_work {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_work>();
        made
    }
}

impl Default for jit_work {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_prediction` of jitrun_kernel.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_prediction {
    /// `size_t size`.
    pub size: usize,
    /// `char device`.
    pub device: [c_char; 32],
    /// `double seconds`.
    pub seconds: f64,
    /// `double memory_seconds`.
    pub memory_seconds: f64,
    /// `double arithmetic_seconds`.
    pub arithmetic_seconds: f64,
    /// `double copy_seconds`.
    pub copy_seconds: f64,
    /// `double start_seconds`.
    pub start_seconds: f64,
    /// `double bandwidth`.
    pub bandwidth: f64,
    /// `double arithmetic`.
    pub arithmetic: f64,
    /// `double link`.
    pub link: f64,
    /// `char why_not`.
    pub why_not: [c_char; 512],
}

impl jit_prediction {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_prediction>();
        made
    }
}

impl Default for jit_prediction {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_graph_options` of jitrun_graph.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_graph_options {
    /// `size_t size`.
    pub size: usize,
    /// `const char * source`.
    pub source: *const c_char,
    /// `size_t n`.
    pub n: usize,
    /// `const char * path`.
    pub path: *const c_char,
    /// `const char * sizes`.
    pub sizes: *const c_char,
}

impl jit_graph_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_graph_options>();
        made
    }
}

impl Default for jit_graph_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_tensor` of jitrun_graph.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_tensor {
    /// `size_t size`.
    pub size: usize,
    /// `const char * name`.
    pub name: *const c_char,
    /// `int type`.
    pub r#type: c_int,
    /// `int rank`.
    pub rank: c_int,
    /// `uint64_t dim`.
    pub dim: [u64; 8],
    /// `uint64_t elements`.
    pub elements: u64,
    /// `uint64_t bytes`.
    pub bytes: u64,
    /// `uint32_t value`.
    pub value: u32,
    /// `int reserved`.
    pub reserved: c_int,
}

impl jit_tensor {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_tensor>();
        made
    }
}

impl Default for jit_tensor {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_executable_report` of jitrun_graph.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_executable_report {
    /// `size_t size`.
    pub size: usize,
    /// `uint32_t kernels`.
    pub kernels: u32,
    /// `uint32_t on_host`.
    pub on_host: u32,
    /// `uint64_t generated`.
    pub generated: u64,
    /// `uint64_t open_ns`.
    pub open_ns: u64,
    /// `uint64_t bytes`.
    pub bytes: u64,
    /// `uint64_t all_bytes`.
    pub all_bytes: u64,
    /// `uint64_t constant_bytes`.
    pub constant_bytes: u64,
    /// `uint64_t last_ns`.
    pub last_ns: u64,
}

impl jit_executable_report {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_executable_report>();
        made
    }
}

impl Default for jit_executable_report {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_specialisation` of jitrun_graph.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_specialisation {
    /// `size_t size`.
    pub size: usize,
    /// `const char * sizes`.
    pub sizes: *const c_char,
    /// `int state`.
    pub state: c_int,
    /// `int ahead`.
    pub ahead: c_int,
    /// `uint32_t kernels`.
    pub kernels: u32,
    /// `uint32_t on_host`.
    pub on_host: u32,
    /// `uint64_t generated`.
    pub generated: u64,
    /// `uint64_t began_ns`.
    pub began_ns: u64,
    /// `uint64_t took_ns`.
    pub took_ns: u64,
    /// `uint64_t waited_ns`.
    pub waited_ns: u64,
    /// `uint64_t uses`.
    pub uses: u64,
}

impl jit_specialisation {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_specialisation>();
        made
    }
}

impl Default for jit_specialisation {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_train_options` of jitrun_train.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_train_options {
    /// `size_t size`.
    pub size: usize,
    /// `const char * model`.
    pub model: *const c_char,
    /// `const char * targets`.
    pub targets: *const c_char,
    /// `const char * device`.
    pub device: *const c_char,
    /// `const char * isa`.
    pub isa: *const c_char,
    /// `const char * cache_dir`.
    pub cache_dir: *const c_char,
    /// `jit_cancel * cancel`.
    pub cancel: *mut jit_cancel,
    /// `uint64_t seed`.
    pub seed: u64,
    /// `int threads`.
    pub threads: c_int,
    /// `int context`.
    pub context: c_int,
    /// `int full`.
    pub full: c_int,
    /// `int rank`.
    pub rank: c_int,
    /// `int rslora`.
    pub rslora: c_int,
    /// `int dora`.
    pub dora: c_int,
    /// `int schedule`.
    pub schedule: c_int,
    /// `int warmup`.
    pub warmup: c_int,
    /// `int steps`.
    pub steps: c_int,
    /// `float alpha`.
    pub alpha: f32,
    /// `float rate`.
    pub rate: f32,
    /// `float least_rate`.
    pub least_rate: f32,
    /// `float weight_decay`.
    pub weight_decay: f32,
    /// `float beta1`.
    pub beta1: f32,
    /// `float beta2`.
    pub beta2: f32,
    /// `float epsilon`.
    pub epsilon: f32,
    /// `float clip`.
    pub clip: f32,
    /// `float dropout`.
    pub dropout: f32,
    /// `int keep_activations`.
    pub keep_activations: c_int,
    /// `int reserved`.
    pub reserved: c_int,
}

impl jit_train_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_train_options>();
        made
    }
}

impl Default for jit_train_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_train_report` of jitrun_train.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_train_report {
    /// `size_t size`.
    pub size: usize,
    /// `uint64_t step`.
    pub step: u64,
    /// `uint64_t rows`.
    pub rows: u64,
    /// `uint64_t tokens`.
    pub tokens: u64,
    /// `uint64_t counted`.
    pub counted: u64,
    /// `double loss`.
    pub loss: f64,
    /// `double norm`.
    pub norm: f64,
    /// `double rate`.
    pub rate: f64,
    /// `double seconds`.
    pub seconds: f64,
}

impl jit_train_report {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_train_report>();
        made
    }
}

impl Default for jit_train_report {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_train_tensor` of jitrun_train.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_train_tensor {
    /// `size_t size`.
    pub size: usize,
    /// `const char * name`.
    pub name: *const c_char,
    /// `uint64_t rows`.
    pub rows: u64,
    /// `uint64_t cols`.
    pub cols: u64,
    /// `uint64_t elements`.
    pub elements: u64,
    /// `const float * values`.
    pub values: *const f32,
    /// `const float * gradients`.
    pub gradients: *const f32,
}

impl jit_train_tensor {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_train_tensor>();
        made
    }
}

impl Default for jit_train_tensor {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_adapter_info` of jitrun_adapters.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_adapter_info {
    /// `size_t size`.
    pub size: usize,
    /// `int rank`.
    pub rank: c_int,
    /// `int matrices`.
    pub matrices: c_int,
    /// `uint64_t bytes`.
    pub bytes: u64,
    /// `uint64_t fingerprint`.
    pub fingerprint: u64,
    /// `size_t invocation`.
    pub invocation: usize,
}

impl jit_adapter_info {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_adapter_info>();
        made
    }
}

impl Default for jit_adapter_info {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_image_options` of jitrun_images.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_image_options {
    /// `size_t size`.
    pub size: usize,
    /// `const char * name`.
    pub name: *const c_char,
    /// `uint64_t max_bytes`.
    pub max_bytes: u64,
    /// `uint64_t max_pixels`.
    pub max_pixels: u64,
}

impl jit_image_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_image_options>();
        made
    }
}

impl Default for jit_image_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_image_info` of jitrun_images.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_image_info {
    /// `size_t size`.
    pub size: usize,
    /// `int width`.
    pub width: c_int,
    /// `int height`.
    pub height: c_int,
    /// `int tokens`.
    pub tokens: c_int,
    /// `int parts`.
    pub parts: c_int,
    /// `uint64_t key`.
    pub key: u64,
    /// `int encoded`.
    pub encoded: c_int,
    /// `int reserved`.
    pub reserved: c_int,
}

impl jit_image_info {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_image_info>();
        made
    }
}

impl Default for jit_image_info {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_optimise_options` of jitrun_optimise.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_optimise_options {
    /// `size_t size`.
    pub size: usize,
    /// `const double * start`.
    pub start: *const f64,
    /// `const double * start_low`.
    pub start_low: *const f64,
    /// `const double * start_high`.
    pub start_high: *const f64,
    /// `const double * lower`.
    pub lower: *const f64,
    /// `const double * upper`.
    pub upper: *const f64,
    /// `uint64_t seed`.
    pub seed: u64,
    /// `double sigma`.
    pub sigma: f64,
    /// `double crossover_eta`.
    pub crossover_eta: f64,
    /// `double mutation_eta`.
    pub mutation_eta: f64,
    /// `double crossover`.
    pub crossover: f64,
    /// `double mutation`.
    pub mutation: f64,
    /// `int method`.
    pub method: c_int,
    /// `int dimension`.
    pub dimension: c_int,
    /// `int objectives`.
    pub objectives: c_int,
    /// `int population`.
    pub population: c_int,
    /// `int divisions`.
    pub divisions: c_int,
    /// `int separable`.
    pub separable: c_int,
    /// `int passive`.
    pub passive: c_int,
    /// `int bounds`.
    pub bounds: c_int,
    /// `int restarts`.
    pub restarts: c_int,
    /// `int runs`.
    pub runs: c_int,
}

impl jit_optimise_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_optimise_options>();
        made
    }
}

impl Default for jit_optimise_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_optimise_state` of jitrun_optimise.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_optimise_state {
    /// `size_t size`.
    pub size: usize,
    /// `uint64_t evaluations`.
    pub evaluations: u64,
    /// `uint64_t generations`.
    pub generations: u64,
    /// `double best_value`.
    pub best_value: f64,
    /// `double sigma`.
    pub sigma: f64,
    /// `double condition`.
    pub condition: f64,
    /// `const char * why`.
    pub why: *const c_char,
    /// `int method`.
    pub method: c_int,
    /// `int dimension`.
    pub dimension: c_int,
    /// `int objectives`.
    pub objectives: c_int,
    /// `int run`.
    pub run: c_int,
    /// `int small`.
    pub small: c_int,
    /// `int over`.
    pub over: c_int,
}

impl jit_optimise_state {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_optimise_state>();
        made
    }
}

impl Default for jit_optimise_state {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_draft_options` of jitrun_draft.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_draft_options {
    /// `size_t size`.
    pub size: usize,
    /// `jit_model * model`.
    pub model: *mut jit_model,
    /// `int kv`.
    pub kv: c_int,
    /// `int context`.
    pub context: c_int,
    /// `int max`.
    pub max: c_int,
    /// `int min`.
    pub min: c_int,
    /// `float min_p`.
    pub min_p: f32,
    /// `int reserved`.
    pub reserved: c_int,
}

impl jit_draft_options {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_draft_options>();
        made
    }
}

impl Default for jit_draft_options {
    fn default() -> Self {
        Self::new()
    }
}

/// `jit_draft_stats` of jitrun_draft.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct jit_draft_stats {
    /// `size_t size`.
    pub size: usize,
    /// `uint64_t requests`.
    pub requests: u64,
    /// `uint64_t proposed`.
    pub proposed: u64,
    /// `uint64_t used`.
    pub used: u64,
    /// `uint64_t accepted`.
    pub accepted: u64,
    /// `double seconds`.
    pub seconds: f64,
    /// `double gain`.
    pub gain: f64,
    /// `const char * trouble`.
    pub trouble: *const c_char,
}

impl jit_draft_stats {
    /// All zeros, which are the defaults, and its size.
    pub fn new() -> Self {
        // SAFETY: numbers and addresses that may be null: zeros are a value of it.
        let mut made: Self = unsafe { core::mem::zeroed() };
        made.size = core::mem::size_of::<jit_draft_stats>();
        made
    }
}

impl Default for jit_draft_stats {
    fn default() -> Self {
        Self::new()
    }
}

extern "C" {
    /// `jit_version` of jitrun.h.
    pub fn jit_version() -> *const c_char;
    /// `jit_cancel_open` of jitrun.h.
    pub fn jit_cancel_open(err: *mut jit_error) -> *mut jit_cancel;
    /// `jit_cancel_close` of jitrun.h.
    pub fn jit_cancel_close(c: *mut jit_cancel);
    /// `jit_cancel_set` of jitrun.h.
    pub fn jit_cancel_set(c: *mut jit_cancel, requested: c_int);
    /// `jit_cancel_get` of jitrun.h.
    pub fn jit_cancel_get(c: *const jit_cancel) -> c_int;
    /// `jit_model_open` of jitrun.h.
    pub fn jit_model_open(
        path: *const c_char,
        options: *const jit_model_options,
        err: *mut jit_error,
    ) -> *mut jit_model;
    /// `jit_model_written` of jitrun.h.
    pub fn jit_model_written(m: *mut jit_model, err: *mut jit_error) -> c_int;
    /// `jit_model_close` of jitrun.h.
    pub fn jit_model_close(m: *mut jit_model);
    /// `jit_model_get_info` of jitrun.h.
    pub fn jit_model_get_info(m: *const jit_model, out: *mut jit_model_info, err: *mut jit_error) -> c_int;
    /// `jit_model_tokenize` of jitrun.h.
    pub fn jit_model_tokenize(
        m: *const jit_model,
        text: *const c_char,
        n: usize,
        add_special: c_int,
        parse_special: c_int,
        ids: *mut *mut i32,
        n_ids: *mut usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_model_detokenize` of jitrun.h.
    pub fn jit_model_detokenize(
        m: *const jit_model,
        ids: *const i32,
        n: usize,
        n_text: *mut usize,
        err: *mut jit_error,
    ) -> *mut c_char;
    /// `jit_model_is_end` of jitrun.h.
    pub fn jit_model_is_end(m: *const jit_model, id: i32) -> c_int;
    /// `jit_model_metadata_count` of jitrun.h.
    pub fn jit_model_metadata_count(m: *const jit_model) -> usize;
    /// `jit_model_metadata` of jitrun.h.
    pub fn jit_model_metadata(m: *const jit_model, number: usize, out: *mut jit_metadata, err: *mut jit_error) -> c_int;
    /// `jit_chat_render` of jitrun.h.
    pub fn jit_chat_render(
        m: *const jit_model,
        options: *const jit_chat_options,
        out: *mut jit_chat,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_chat_free` of jitrun.h.
    pub fn jit_chat_free(out: *mut jit_chat);
    /// `jit_device_count` of jitrun.h.
    pub fn jit_device_count() -> usize;
    /// `jit_device_get_info` of jitrun.h.
    pub fn jit_device_get_info(number: usize, out: *mut jit_device_info, err: *mut jit_error) -> c_int;
    /// `jit_model_sampling_defaults` of jitrun.h.
    pub fn jit_model_sampling_defaults(m: *const jit_model, out: *mut jit_sampling, err: *mut jit_error) -> c_int;
    /// `jit_session_open` of jitrun.h.
    pub fn jit_session_open(
        m: *mut jit_model,
        options: *const jit_session_options,
        err: *mut jit_error,
    ) -> *mut jit_session;
    /// `jit_session_close` of jitrun.h.
    pub fn jit_session_close(s: *mut jit_session);
    /// `jit_session_cancel` of jitrun.h.
    pub fn jit_session_cancel(s: *mut jit_session);
    /// `jit_session_feed` of jitrun.h.
    pub fn jit_session_feed(s: *mut jit_session, ids: *const i32, n: usize, err: *mut jit_error) -> c_int;
    /// `jit_session_feed_text` of jitrun.h.
    pub fn jit_session_feed_text(
        s: *mut jit_session,
        text: *const c_char,
        n: usize,
        parse_special: c_int,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_next` of jitrun.h.
    pub fn jit_session_next(s: *mut jit_session, id: *mut i32, err: *mut jit_error) -> c_int;
    /// `jit_session_logits` of jitrun.h.
    pub fn jit_session_logits(s: *mut jit_session, err: *mut jit_error) -> *const f32;
    /// `jit_session_score` of jitrun.h.
    pub fn jit_session_score(
        s: *mut jit_session,
        ids: *const i32,
        n: usize,
        logprob: *mut f32,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_embed` of jitrun.h.
    pub fn jit_session_embed(
        s: *mut jit_session,
        ids: *const i32,
        n: usize,
        options: *const jit_embedding_options,
        out: *mut f32,
        n_out: usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_logprobs` of jitrun.h.
    pub fn jit_session_logprobs(
        s: *mut jit_session,
        chosen: *mut f32,
        top: *mut jit_logprob,
        n: usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_sampled_logprobs` of jitrun.h.
    pub fn jit_session_sampled_logprobs(
        s: *mut jit_session,
        chosen: *mut f32,
        top: *mut jit_logprob,
        n: usize,
        n_top: *mut usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_text` of jitrun.h.
    pub fn jit_session_text(s: *mut jit_session, id: i32, n: *mut usize, err: *mut jit_error) -> *const c_char;
    /// `jit_session_length` of jitrun.h.
    pub fn jit_session_length(s: *const jit_session) -> usize;
    /// `jit_session_ids` of jitrun.h.
    pub fn jit_session_ids(s: *const jit_session) -> *const i32;
    /// `jit_session_rewind` of jitrun.h.
    pub fn jit_session_rewind(s: *mut jit_session, n: usize, err: *mut jit_error) -> c_int;
    /// `jit_session_save` of jitrun.h.
    pub fn jit_session_save(s: *mut jit_session, path: *const c_char, err: *mut jit_error) -> c_int;
    /// `jit_session_restore` of jitrun.h.
    pub fn jit_session_restore(s: *mut jit_session, path: *const c_char, err: *mut jit_error) -> c_int;
    /// `jit_session_fork` of jitrun.h.
    pub fn jit_session_fork(
        s: *const jit_session,
        options: *const jit_session_options,
        err: *mut jit_error,
    ) -> *mut jit_session;
    /// `jit_session_set_sampling` of jitrun.h.
    pub fn jit_session_set_sampling(s: *mut jit_session, p: *const jit_sampling, err: *mut jit_error) -> c_int;
    /// `jit_session_set_stop` of jitrun.h.
    pub fn jit_session_set_stop(
        s: *mut jit_session,
        texts: *const *const c_char,
        n: usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_stopped` of jitrun.h.
    pub fn jit_session_stopped(s: *const jit_session) -> c_int;
    /// `jit_session_get_stats` of jitrun.h.
    pub fn jit_session_get_stats(s: *const jit_session, out: *mut jit_session_stats, err: *mut jit_error) -> c_int;
    /// `jit_session_report` of jitrun.h.
    pub fn jit_session_report(s: *mut jit_session, json: c_int, err: *mut jit_error) -> *mut c_char;
    /// `jit_session_trace` of jitrun.h.
    pub fn jit_session_trace(s: *mut jit_session, path: *const c_char, err: *mut jit_error) -> c_int;
    /// `jit_session_get_card_stats` of jitrun_cards.h.
    pub fn jit_session_get_card_stats(s: *const jit_session, out: *mut jit_card_stats, err: *mut jit_error) -> c_int;
    /// `jit_model_alive` of jitrun_cards.h.
    pub fn jit_model_alive(m: *const jit_model, err: *mut jit_error) -> c_int;
    /// `jit_write_objects` of jitrun_cards.h.
    pub fn jit_write_objects(
        path: *const c_char,
        options: *const jit_objects_options,
        out: *mut jit_objects,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_set_grammar` of jitrun_grammar.h.
    pub fn jit_session_set_grammar(
        s: *mut jit_session,
        kind: c_int,
        text: *const c_char,
        n: usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_begin_grammar` of jitrun_grammar.h.
    pub fn jit_session_begin_grammar(
        s: *mut jit_session,
        options: *const jit_grammar_options,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_grammar_complete` of jitrun_grammar.h.
    pub fn jit_session_grammar_complete(s: *mut jit_session) -> c_int;
    /// `jit_batch_open` of jitrun_batch.h.
    pub fn jit_batch_open(m: *mut jit_model, options: *const jit_batch_options, err: *mut jit_error) -> *mut jit_batch;
    /// `jit_batch_close` of jitrun_batch.h.
    pub fn jit_batch_close(b: *mut jit_batch);
    /// `jit_batch_session` of jitrun_batch.h.
    pub fn jit_batch_session(b: *mut jit_batch, sampling: *const jit_sampling, err: *mut jit_error) -> *mut jit_session;
    /// `jit_session_submit` of jitrun_batch.h.
    pub fn jit_session_submit(
        s: *mut jit_session,
        ids: *const i32,
        n: usize,
        reused: *mut usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_batch_step` of jitrun_batch.h.
    pub fn jit_batch_step(
        b: *mut jit_batch,
        ready: *mut *mut jit_session,
        most: usize,
        n: *mut usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_batch_pending` of jitrun_batch.h.
    pub fn jit_batch_pending(b: *const jit_batch) -> usize;
    /// `jit_batch_forget` of jitrun_batch.h.
    pub fn jit_batch_forget(b: *mut jit_batch, ids: *const i32, n: usize) -> usize;
    /// `jit_batch_get_stats` of jitrun_batch.h.
    pub fn jit_batch_get_stats(b: *const jit_batch, out: *mut jit_batch_stats, err: *mut jit_error) -> c_int;
    /// `jit_answer_open` of jitrun_answers.h.
    pub fn jit_answer_open(
        m: *const jit_model,
        options: *const jit_answer_options,
        err: *mut jit_error,
    ) -> *mut jit_answer;
    /// `jit_answer_close` of jitrun_answers.h.
    pub fn jit_answer_close(a: *mut jit_answer);
    /// `jit_answer_feed` of jitrun_answers.h.
    pub fn jit_answer_feed(a: *mut jit_answer, text: *const c_char, n: usize, err: *mut jit_error) -> c_int;
    /// `jit_answer_mark` of jitrun_answers.h.
    pub fn jit_answer_mark(a: *const jit_answer, id: i32, n: *mut usize) -> *const c_char;
    /// `jit_answer_finish` of jitrun_answers.h.
    pub fn jit_answer_finish(a: *mut jit_answer, cut: c_int, err: *mut jit_error) -> c_int;
    /// `jit_answer_next` of jitrun_answers.h.
    pub fn jit_answer_next(a: *mut jit_answer, out: *mut jit_answer_event, err: *mut jit_error) -> c_int;
    /// `jit_chat_parse` of jitrun_answers.h.
    pub fn jit_chat_parse(
        m: *const jit_model,
        text: *const c_char,
        n: usize,
        options: *const jit_answer_options,
        err: *mut jit_error,
    ) -> *mut c_char;
    /// `jit_call_force` of jitrun_answers.h.
    pub fn jit_call_force(
        m: *const jit_model,
        options: *const jit_forced_options,
        out: *mut jit_forced_call,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_forced_call_free` of jitrun_answers.h.
    pub fn jit_forced_call_free(out: *mut jit_forced_call);
    /// `jit_free` of jitrun_tokens.h.
    pub fn jit_free(p: *mut c_void);
    /// `jit_model_token` of jitrun_tokens.h.
    pub fn jit_model_token(
        m: *const jit_model,
        id: i32,
        out: *mut jit_token,
        bytes: *mut c_char,
        room: usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_model_find_token` of jitrun_tokens.h.
    pub fn jit_model_find_token(m: *const jit_model, text: *const c_char, n: usize) -> i32;
    /// `jit_token_role` of jitrun_tokens.h.
    pub fn jit_token_role(number: usize) -> *const c_char;
    /// `jit_model_role` of jitrun_tokens.h.
    pub fn jit_model_role(m: *const jit_model, role: *const c_char, id: *mut i32, err: *mut jit_error) -> c_int;
    /// `jit_model_stop` of jitrun_tokens.h.
    pub fn jit_model_stop(m: *const jit_model, number: usize) -> *const c_char;
    /// `jit_model_metadata_find` of jitrun_tokens.h.
    pub fn jit_model_metadata_find(m: *const jit_model, key: *const c_char) -> i64;
    /// `jit_model_metadata_item` of jitrun_tokens.h.
    pub fn jit_model_metadata_item(
        m: *const jit_model,
        number: usize,
        item: usize,
        out: *mut jit_metadata,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_set_logits_fn` of jitrun_logits.h.
    pub fn jit_session_set_logits_fn(
        s: *mut jit_session,
        r#fn: jit_logits_fn,
        user: *mut c_void,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_feed_logits` of jitrun_logits.h.
    pub fn jit_session_feed_logits(
        s: *mut jit_session,
        ids: *const i32,
        n: usize,
        logits: *mut f32,
        n_logits: usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_set_prompt_fn` of jitrun_logits.h.
    pub fn jit_session_set_prompt_fn(
        s: *mut jit_session,
        r#fn: jit_prompt_fn,
        user: *mut c_void,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_model_options_set` of jitrun_options.h.
    pub fn jit_model_options_set(
        options: *mut jit_model_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_options_set` of jitrun_options.h.
    pub fn jit_session_options_set(
        options: *mut jit_session_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_batch_options_set` of jitrun_options.h.
    pub fn jit_batch_options_set(
        options: *mut jit_batch_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_card_options_set` of jitrun_options.h.
    pub fn jit_card_options_set(
        options: *mut jit_card_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_draft_options_set` of jitrun_options.h.
    pub fn jit_draft_options_set(
        options: *mut jit_draft_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_embedding_options_set` of jitrun_options.h.
    pub fn jit_embedding_options_set(
        options: *mut jit_embedding_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_chat_options_set` of jitrun_options.h.
    pub fn jit_chat_options_set(
        options: *mut jit_chat_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_answer_options_set` of jitrun_options.h.
    pub fn jit_answer_options_set(
        options: *mut jit_answer_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_forced_options_set` of jitrun_options.h.
    pub fn jit_forced_options_set(
        options: *mut jit_forced_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_grammar_options_set` of jitrun_options.h.
    pub fn jit_grammar_options_set(
        options: *mut jit_grammar_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_objects_options_set` of jitrun_options.h.
    pub fn jit_objects_options_set(
        options: *mut jit_objects_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_compute_options_set` of jitrun_options.h.
    pub fn jit_compute_options_set(
        options: *mut jit_compute_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_kernel_options_set` of jitrun_options.h.
    pub fn jit_kernel_options_set(
        options: *mut jit_kernel_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_graph_options_set` of jitrun_options.h.
    pub fn jit_graph_options_set(
        options: *mut jit_graph_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_train_options_set` of jitrun_options.h.
    pub fn jit_train_options_set(
        options: *mut jit_train_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_optimise_options_set` of jitrun_options.h.
    pub fn jit_optimise_options_set(
        options: *mut jit_optimise_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_image_options_set` of jitrun_options.h.
    pub fn jit_image_options_set(
        options: *mut jit_image_options,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_sampling_set` of jitrun_options.h.
    pub fn jit_sampling_set(
        p: *mut jit_sampling,
        name: *const c_char,
        value: *const c_char,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_model_needs` of jitrun_options.h.
    pub fn jit_model_needs(
        path: *const c_char,
        session: *const jit_session_options,
        out: *mut jit_needs,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_embed_texts` of jitrun_texts.h.
    pub fn jit_session_embed_texts(
        s: *mut jit_session,
        texts: *const jit_embedding_text,
        n: usize,
        options: *const jit_embedding_options,
        out: *mut f32,
        n_out: usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_model_tokenize_pair` of jitrun_texts.h.
    pub fn jit_model_tokenize_pair(
        m: *const jit_model,
        texts: *const *const c_char,
        n_texts: *const usize,
        parse_special: c_int,
        ids: *mut *mut i32,
        types: *mut *mut i32,
        n: *mut usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_compute_open` of jitrun_kernel.h.
    pub fn jit_compute_open(options: *const jit_compute_options, err: *mut jit_error) -> *mut jit_compute;
    /// `jit_compute_written` of jitrun_kernel.h.
    pub fn jit_compute_written(c: *mut jit_compute, err: *mut jit_error) -> c_int;
    /// `jit_compute_close` of jitrun_kernel.h.
    pub fn jit_compute_close(c: *mut jit_compute);
    /// `jit_compute_get_info` of jitrun_kernel.h.
    pub fn jit_compute_get_info(c: *const jit_compute, out: *mut jit_compute_info, err: *mut jit_error) -> c_int;
    /// `jit_kernel_open` of jitrun_kernel.h.
    pub fn jit_kernel_open(
        c: *mut jit_compute,
        options: *const jit_kernel_options,
        err: *mut jit_error,
    ) -> *mut jit_kernel;
    /// `jit_kernel_close` of jitrun_kernel.h.
    pub fn jit_kernel_close(k: *mut jit_kernel);
    /// `jit_kernel_parameters` of jitrun_kernel.h.
    pub fn jit_kernel_parameters(k: *const jit_kernel) -> usize;
    /// `jit_kernel_parameter` of jitrun_kernel.h.
    pub fn jit_kernel_parameter(
        k: *const jit_kernel,
        number: usize,
        out: *mut jit_parameter,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_kernel_find` of jitrun_kernel.h.
    pub fn jit_kernel_find(k: *const jit_kernel, name: *const c_char) -> c_int;
    /// `jit_kernel_get_report` of jitrun_kernel.h.
    pub fn jit_kernel_get_report(k: *const jit_kernel, out: *mut jit_kernel_report, err: *mut jit_error) -> c_int;
    /// `jit_buffer_open` of jitrun_kernel.h.
    pub fn jit_buffer_open(c: *mut jit_compute, bytes: u64, err: *mut jit_error) -> *mut jit_buffer;
    /// `jit_buffer_close` of jitrun_kernel.h.
    pub fn jit_buffer_close(b: *mut jit_buffer);
    /// `jit_buffer_bytes` of jitrun_kernel.h.
    pub fn jit_buffer_bytes(b: *const jit_buffer) -> u64;
    /// `jit_buffer_write` of jitrun_kernel.h.
    pub fn jit_buffer_write(b: *mut jit_buffer, at: u64, from: *const c_void, bytes: u64, err: *mut jit_error) -> c_int;
    /// `jit_buffer_read` of jitrun_kernel.h.
    pub fn jit_buffer_read(b: *const jit_buffer, at: u64, to: *mut c_void, bytes: u64, err: *mut jit_error) -> c_int;
    /// `jit_buffer_memory` of jitrun_kernel.h.
    pub fn jit_buffer_memory(b: *mut jit_buffer) -> *mut c_void;
    /// `jit_launch_open` of jitrun_kernel.h.
    pub fn jit_launch_open(k: *mut jit_kernel, err: *mut jit_error) -> *mut jit_launch;
    /// `jit_launch_close` of jitrun_kernel.h.
    pub fn jit_launch_close(l: *mut jit_launch);
    /// `jit_launch_set_buffer` of jitrun_kernel.h.
    pub fn jit_launch_set_buffer(
        l: *mut jit_launch,
        parameter: usize,
        b: *mut jit_buffer,
        at: u64,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_launch_set_memory` of jitrun_kernel.h.
    pub fn jit_launch_set_memory(
        l: *mut jit_launch,
        parameter: usize,
        p: *mut c_void,
        bytes: u64,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_launch_set_real` of jitrun_kernel.h.
    pub fn jit_launch_set_real(l: *mut jit_launch, parameter: usize, value: *const f64, err: *mut jit_error) -> c_int;
    /// `jit_launch_set_integer` of jitrun_kernel.h.
    pub fn jit_launch_set_integer(l: *mut jit_launch, parameter: usize, value: i64, err: *mut jit_error) -> c_int;
    /// `jit_launch_set_bits` of jitrun_kernel.h.
    pub fn jit_launch_set_bits(l: *mut jit_launch, parameter: usize, bits: u64, err: *mut jit_error) -> c_int;
    /// `jit_launch_run` of jitrun_kernel.h.
    pub fn jit_launch_run(l: *mut jit_launch, err: *mut jit_error) -> c_int;
    /// `jit_launch_tune` of jitrun_kernel.h.
    pub fn jit_launch_tune(l: *mut jit_launch, err: *mut jit_error) -> c_int;
    /// `jit_device_predict` of jitrun_kernel.h.
    pub fn jit_device_predict(
        number: usize,
        work: *const jit_work,
        out: *mut jit_prediction,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_device_choose` of jitrun_kernel.h.
    pub fn jit_device_choose(work: *const jit_work, out: *mut jit_prediction, err: *mut jit_error) -> c_int;
    /// `jit_graph_open` of jitrun_graph.h.
    pub fn jit_graph_open(options: *const jit_graph_options, err: *mut jit_error) -> *mut jit_graph;
    /// `jit_graph_close` of jitrun_graph.h.
    pub fn jit_graph_close(g: *mut jit_graph);
    /// `jit_graph_write` of jitrun_graph.h.
    pub fn jit_graph_write(g: *const jit_graph, path: *const c_char, err: *mut jit_error) -> c_int;
    /// `jit_graph_add_input` of jitrun_graph.h.
    pub fn jit_graph_add_input(
        g: *mut jit_graph,
        name: *const c_char,
        r#type: c_int,
        dims: *const u64,
        rank: usize,
        value: *mut u32,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_graph_add_constant` of jitrun_graph.h.
    pub fn jit_graph_add_constant(
        g: *mut jit_graph,
        r#type: c_int,
        dims: *const u64,
        rank: usize,
        data: *const c_void,
        value: *mut u32,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_graph_add_node` of jitrun_graph.h.
    pub fn jit_graph_add_node(
        g: *mut jit_graph,
        operation: *const c_char,
        operands: *const u32,
        n: usize,
        value: *mut u32,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_graph_add_kernel` of jitrun_graph.h.
    pub fn jit_graph_add_kernel(
        g: *mut jit_graph,
        kernel: *const jit_kernel_options,
        gradient: *const c_char,
        operands: *const u32,
        n: usize,
        value: *mut u32,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_graph_add_output` of jitrun_graph.h.
    pub fn jit_graph_add_output(g: *mut jit_graph, name: *const c_char, value: u32, err: *mut jit_error) -> c_int;
    /// `jit_graph_add_text` of jitrun_graph.h.
    pub fn jit_graph_add_text(g: *mut jit_graph, text: *const c_char, err: *mut jit_error) -> c_int;
    /// `jit_graph_inputs` of jitrun_graph.h.
    pub fn jit_graph_inputs(g: *const jit_graph) -> usize;
    /// `jit_graph_outputs` of jitrun_graph.h.
    pub fn jit_graph_outputs(g: *const jit_graph) -> usize;
    /// `jit_graph_input` of jitrun_graph.h.
    pub fn jit_graph_input(g: *const jit_graph, number: usize, out: *mut jit_tensor, err: *mut jit_error) -> c_int;
    /// `jit_graph_output` of jitrun_graph.h.
    pub fn jit_graph_output(g: *const jit_graph, number: usize, out: *mut jit_tensor, err: *mut jit_error) -> c_int;
    /// `jit_graph_value` of jitrun_graph.h.
    pub fn jit_graph_value(g: *const jit_graph, value: u32, out: *mut jit_tensor, err: *mut jit_error) -> c_int;
    /// `jit_graph_interpret` of jitrun_graph.h.
    pub fn jit_graph_interpret(
        g: *const jit_graph,
        r#in: *const *const c_void,
        n_in: usize,
        out: *const *mut c_void,
        n_out: usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_graph_vjp` of jitrun_graph.h.
    pub fn jit_graph_vjp(
        g: *const jit_graph,
        inputs: *const usize,
        n: usize,
        with_outputs: c_int,
        err: *mut jit_error,
    ) -> *mut jit_graph;
    /// `jit_graph_jvp` of jitrun_graph.h.
    pub fn jit_graph_jvp(
        g: *const jit_graph,
        inputs: *const usize,
        n: usize,
        with_outputs: c_int,
        err: *mut jit_error,
    ) -> *mut jit_graph;
    /// `jit_graph_vmap` of jitrun_graph.h.
    pub fn jit_graph_vmap(
        g: *const jit_graph,
        size: u64,
        axes: *const c_int,
        n: usize,
        err: *mut jit_error,
    ) -> *mut jit_graph;
    /// `jit_executable_open` of jitrun_graph.h.
    pub fn jit_executable_open(c: *mut jit_compute, g: *const jit_graph, err: *mut jit_error) -> *mut jit_executable;
    /// `jit_executable_close` of jitrun_graph.h.
    pub fn jit_executable_close(x: *mut jit_executable);
    /// `jit_executable_run` of jitrun_graph.h.
    pub fn jit_executable_run(
        x: *mut jit_executable,
        r#in: *const *const c_void,
        n_in: usize,
        out: *const *mut c_void,
        n_out: usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_executable_get_report` of jitrun_graph.h.
    pub fn jit_executable_get_report(
        x: *const jit_executable,
        out: *mut jit_executable_report,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_executable_write_report` of jitrun_graph.h.
    pub fn jit_executable_write_report(
        x: *const jit_executable,
        path: *const c_char,
        text: c_int,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_specialiser_open` of jitrun_graph.h.
    pub fn jit_specialiser_open(
        c: *mut jit_compute,
        options: *const jit_graph_options,
        err: *mut jit_error,
    ) -> *mut jit_specialiser;
    /// `jit_specialiser_close` of jitrun_graph.h.
    pub fn jit_specialiser_close(s: *mut jit_specialiser);
    /// `jit_specialiser_get` of jitrun_graph.h.
    pub fn jit_specialiser_get(
        s: *mut jit_specialiser,
        sizes: *const c_char,
        err: *mut jit_error,
    ) -> *mut jit_executable;
    /// `jit_specialiser_ahead` of jitrun_graph.h.
    pub fn jit_specialiser_ahead(s: *mut jit_specialiser, sizes: *const c_char, err: *mut jit_error) -> c_int;
    /// `jit_specialiser_count` of jitrun_graph.h.
    pub fn jit_specialiser_count(s: *mut jit_specialiser) -> usize;
    /// `jit_specialiser_report` of jitrun_graph.h.
    pub fn jit_specialiser_report(
        s: *mut jit_specialiser,
        number: usize,
        out: *mut jit_specialisation,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_train_open` of jitrun_train.h.
    pub fn jit_train_open(options: *const jit_train_options, err: *mut jit_error) -> *mut jit_train;
    /// `jit_train_close` of jitrun_train.h.
    pub fn jit_train_close(t: *mut jit_train);
    /// `jit_train_feed` of jitrun_train.h.
    pub fn jit_train_feed(
        t: *mut jit_train,
        ids: *const i32,
        counts: *const u8,
        texts: *const i32,
        n: usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_train_forget` of jitrun_train.h.
    pub fn jit_train_forget(t: *mut jit_train);
    /// `jit_train_step` of jitrun_train.h.
    pub fn jit_train_step(t: *mut jit_train, out: *mut jit_train_report, err: *mut jit_error) -> c_int;
    /// `jit_train_evaluate` of jitrun_train.h.
    pub fn jit_train_evaluate(t: *mut jit_train, out: *mut jit_train_report, err: *mut jit_error) -> c_int;
    /// `jit_train_tensors` of jitrun_train.h.
    pub fn jit_train_tensors(t: *const jit_train) -> usize;
    /// `jit_train_get_tensor` of jitrun_train.h.
    pub fn jit_train_get_tensor(
        t: *const jit_train,
        number: usize,
        out: *mut jit_train_tensor,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_train_set_tensor` of jitrun_train.h.
    pub fn jit_train_set_tensor(
        t: *mut jit_train,
        number: usize,
        values: *const f32,
        n: usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_train_save` of jitrun_train.h.
    pub fn jit_train_save(t: *const jit_train, path: *const c_char, format: c_int, err: *mut jit_error) -> c_int;
    /// `jit_train_write_state` of jitrun_train.h.
    pub fn jit_train_write_state(t: *const jit_train, path: *const c_char, err: *mut jit_error) -> c_int;
    /// `jit_train_read_state` of jitrun_train.h.
    pub fn jit_train_read_state(t: *mut jit_train, path: *const c_char, err: *mut jit_error) -> c_int;
    /// `jit_model_adapters` of jitrun_adapters.h.
    pub fn jit_model_adapters(m: *mut jit_model, ranks: c_int, err: *mut jit_error) -> c_int;
    /// `jit_adapter_open` of jitrun_adapters.h.
    pub fn jit_adapter_open(m: *mut jit_model, path: *const c_char, err: *mut jit_error) -> *mut jit_adapter;
    /// `jit_adapter_close` of jitrun_adapters.h.
    pub fn jit_adapter_close(a: *mut jit_adapter);
    /// `jit_adapter_get_info` of jitrun_adapters.h.
    pub fn jit_adapter_get_info(a: *const jit_adapter, out: *mut jit_adapter_info, err: *mut jit_error) -> c_int;
    /// `jit_session_set_adapters` of jitrun_adapters.h.
    pub fn jit_session_set_adapters(
        s: *mut jit_session,
        adapters: *const *mut jit_adapter,
        scales: *const f32,
        n: usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_adapter_begins` of jitrun_adapters.h.
    pub fn jit_adapter_begins(a: *const jit_adapter, ids: *const i32, n: usize) -> usize;
    /// `jit_session_set_adapters_from` of jitrun_adapters.h.
    pub fn jit_session_set_adapters_from(
        s: *mut jit_session,
        adapters: *const *mut jit_adapter,
        scales: *const f32,
        n: usize,
        from: usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_image_encoder_open` of jitrun_images.h.
    pub fn jit_image_encoder_open(
        m: *mut jit_model,
        c: *mut jit_compute,
        path: *const c_char,
        mmproj: *const c_char,
        err: *mut jit_error,
    ) -> *mut jit_image_encoder;
    /// `jit_image_encoder_close` of jitrun_images.h.
    pub fn jit_image_encoder_close(e: *mut jit_image_encoder);
    /// `jit_image_open` of jitrun_images.h.
    pub fn jit_image_open(
        encoder: *mut jit_image_encoder,
        bytes: *const c_void,
        n: usize,
        options: *const jit_image_options,
        err: *mut jit_error,
    ) -> *mut jit_image;
    /// `jit_image_close` of jitrun_images.h.
    pub fn jit_image_close(image: *mut jit_image);
    /// `jit_image_get_info` of jitrun_images.h.
    pub fn jit_image_get_info(image: *const jit_image, out: *mut jit_image_info, err: *mut jit_error) -> c_int;
    /// `jit_image_encode` of jitrun_images.h.
    pub fn jit_image_encode(image: *mut jit_image, err: *mut jit_error) -> c_int;
    /// `jit_session_feed_image` of jitrun_images.h.
    pub fn jit_session_feed_image(s: *mut jit_session, image: *mut jit_image, err: *mut jit_error) -> c_int;
    /// `jit_prompt_open` of jitrun_images.h.
    pub fn jit_prompt_open(
        encoder: *mut jit_image_encoder,
        text: *const c_char,
        n: usize,
        parse_special: c_int,
        images: *const *mut jit_image,
        n_images: usize,
        err: *mut jit_error,
    ) -> *mut jit_prompt;
    /// `jit_prompt_chat` of jitrun_images.h.
    pub fn jit_prompt_chat(
        encoder: *mut jit_image_encoder,
        options: *const jit_chat_options,
        images: *const *mut jit_image,
        n_images: usize,
        err: *mut jit_error,
    ) -> *mut jit_prompt;
    /// `jit_prompt_close` of jitrun_images.h.
    pub fn jit_prompt_close(p: *mut jit_prompt);
    /// `jit_prompt_ids` of jitrun_images.h.
    pub fn jit_prompt_ids(p: *const jit_prompt, n: *mut usize) -> *const i32;
    /// `jit_prompt_text` of jitrun_images.h.
    pub fn jit_prompt_text(p: *const jit_prompt, n: *mut usize) -> *const c_char;
    /// `jit_session_feed_prompt` of jitrun_images.h.
    pub fn jit_session_feed_prompt(
        s: *mut jit_session,
        p: *const jit_prompt,
        reused: *mut usize,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_optimiser_open` of jitrun_optimise.h.
    pub fn jit_optimiser_open(options: *const jit_optimise_options, err: *mut jit_error) -> *mut jit_optimiser;
    /// `jit_optimiser_close` of jitrun_optimise.h.
    pub fn jit_optimiser_close(o: *mut jit_optimiser);
    /// `jit_optimiser_count` of jitrun_optimise.h.
    pub fn jit_optimiser_count(o: *const jit_optimiser) -> usize;
    /// `jit_optimiser_ask` of jitrun_optimise.h.
    pub fn jit_optimiser_ask(o: *mut jit_optimiser, x: *mut f64, err: *mut jit_error) -> c_int;
    /// `jit_optimiser_tell` of jitrun_optimise.h.
    pub fn jit_optimiser_tell(o: *mut jit_optimiser, values: *const f64, err: *mut jit_error) -> c_int;
    /// `jit_optimiser_get_state` of jitrun_optimise.h.
    pub fn jit_optimiser_get_state(o: *const jit_optimiser, out: *mut jit_optimise_state, err: *mut jit_error) -> c_int;
    /// `jit_optimiser_best` of jitrun_optimise.h.
    pub fn jit_optimiser_best(o: *const jit_optimiser, x: *mut f64, value: *mut f64, err: *mut jit_error) -> c_int;
    /// `jit_optimiser_population` of jitrun_optimise.h.
    pub fn jit_optimiser_population(
        o: *const jit_optimiser,
        x: *mut f64,
        values: *mut f64,
        front: *mut i32,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_optimiser_save` of jitrun_optimise.h.
    pub fn jit_optimiser_save(o: *const jit_optimiser, path: *const c_char, err: *mut jit_error) -> c_int;
    /// `jit_optimiser_load` of jitrun_optimise.h.
    pub fn jit_optimiser_load(path: *const c_char, err: *mut jit_error) -> *mut jit_optimiser;
    /// `jit_optimiser_run` of jitrun_optimise.h.
    pub fn jit_optimiser_run(
        o: *mut jit_optimiser,
        f: jit_objective_fn,
        user: *mut c_void,
        evaluations: u64,
        target: *const f64,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_hypervolume` of jitrun_optimise.h.
    pub fn jit_hypervolume(
        points: *const f64,
        count: usize,
        objectives: c_int,
        reference: *const f64,
        volume: *mut f64,
        err: *mut jit_error,
    ) -> c_int;
    /// `jit_session_get_draft_stats` of jitrun_draft.h.
    pub fn jit_session_get_draft_stats(s: *const jit_session, out: *mut jit_draft_stats, err: *mut jit_error) -> c_int;
}
