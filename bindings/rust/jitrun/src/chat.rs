//! Conversations: chat templates, tools, and answers as text, reasoning and calls.

use crate::error::{address, status};
use crate::model::{bytes, taken_text};
use crate::options::c_text;
use crate::session::lossy;
use crate::{sys, Error, Finish, Grammar, Model, Result, Session};
use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int};
use std::ptr::{self, NonNull};

/// A conversation: messages, the tools that the model may call, and the template that writes them.
///
/// ```
/// let chat = jitrun::Chat::new().system("Be brief.").user("What is a \"quark\"?");
/// assert_eq!(chat.messages(), r#"[{"role":"system","content":"Be brief."},{"role":"user","content":"What is a \"quark\"?"}]"#);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Chat {
    messages: Vec<String>,
    tools: Option<String>,
    variables: Option<String>,
    template: Option<String>,
    template_name: Option<String>,
    unfinished: bool,
    now: Option<i64>,
    call_id: Option<String>,
    one_call: bool,
    keep_reasoning: bool,
    without_reasoning: bool,
}

fn json_string(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn optional(what: &str, text: &Option<String>) -> Result<Option<CString>> {
    text.as_ref().map(|t| c_text(what, t.as_str())).transpose()
}

fn at(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(ptr::null(), |t| t.as_ptr())
}

impl Chat {
    /// A conversation without messages.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a message with a role and a text.
    pub fn message(self, role: &str, content: &str) -> Self {
        let json = format!("{{\"role\":{},\"content\":{}}}", json_string(role), json_string(content));
        self.message_json(&json)
    }

    /// Appends a system message.
    pub fn system(self, content: &str) -> Self {
        self.message("system", content)
    }

    /// Appends what the user says.
    pub fn user(self, content: &str) -> Self {
        self.message("user", content)
    }

    /// Appends what the model said.
    pub fn assistant(self, content: &str) -> Self {
        self.message("assistant", content)
    }

    /// Appends what a tool answered to a call.
    pub fn tool_result(self, call: &str, content: &str) -> Self {
        let (call, content) = (json_string(call), json_string(content));
        self.message_json(&format!("{{\"role\":\"tool\",\"tool_call_id\":{},\"content\":{}}}", call, content))
    }

    /// Appends a message in the form of OpenAI's API, as [`Reply::message`] is.
    pub fn message_json(mut self, json: &str) -> Self {
        self.messages.push(json.to_owned());
        self
    }

    /// What the model may call: a JSON array of `{"type": "function", "function": {"name", "parameters"}}`.
    pub fn tools(mut self, json: &str) -> Self {
        self.tools = Some(json.to_owned());
        self
    }

    /// A JSON object of what else the template knows, such as `{"enable_thinking": false}`.
    pub fn variables(mut self, json: &str) -> Self {
        self.variables = Some(json.to_owned());
        self
    }

    /// Tells the template that the model shall not reason (`enable_thinking` is false). Then a grammar holds from the
    /// answer's first token on.
    pub fn without_reasoning(mut self) -> Self {
        self.without_reasoning = true;
        self
    }

    /// A template instead of the model's own.
    pub fn template(mut self, text: &str) -> Self {
        self.template = Some(text.to_owned());
        self
    }

    /// Which of the model's templates.
    pub fn template_name(mut self, name: &str) -> Self {
        self.template_name = Some(name.to_owned());
        self
    }

    /// The text ends with the last message instead of beginning an answer.
    pub fn without_generation_prompt(mut self) -> Self {
        self.unfinished = true;
        self
    }

    /// The time for templates that write the date: seconds since 1970, UTC.
    pub fn now(mut self, seconds: i64) -> Self {
        self.now = Some(seconds);
        self
    }

    /// What the ids of calls begin with, instead of "call": "x_0", "x_1" and so on.
    pub fn call_id(mut self, id: &str) -> Self {
        self.call_id = Some(id.to_owned());
        self
    }

    /// An answer has one call at most: nothing is told of what follows it, and a forced call is the only one.
    pub fn one_call(mut self) -> Self {
        self.one_call = true;
        self
    }

    /// Reasoning is part of an answer's text, with its marks.
    pub fn keep_reasoning(mut self) -> Self {
        self.keep_reasoning = true;
        self
    }

    fn all_variables(&self) -> Option<String> {
        let given = self.variables.as_deref().map(str::trim_start);
        if !self.without_reasoning {
            return self.variables.clone();
        }
        let rest = given.and_then(|text| text.strip_prefix('{')).map(str::trim_start);
        match (given, rest) {
            (Some(_), None) => self.variables.clone(), // it is no object, as the library will say
            (_, Some(rest)) if !rest.starts_with('}') => Some(format!("{{\"enable_thinking\":false,{}", rest)),
            _ => Some("{\"enable_thinking\":false}".to_owned()),
        }
    }

    /// Calls with what a grammar is told of the conversation.
    pub(crate) fn with_grammar_options<R>(
        &self,
        kind: c_int,
        text: &[u8],
        prompt: &Prompt,
        opening: Option<&[u8]>,
        then: impl FnOnce(&sys::jit_grammar_options) -> Result<R>,
    ) -> Result<R> {
        let tools = optional("tools", &self.tools)?;
        let (template, name) = match self.without_reasoning {
            true => (Some(CString::default()), None),
            false => (optional("the template", &self.template)?, optional("the template's name", &self.template_name)?),
        };
        let opening = opening.map(|text| c_text("what opens the call", text)).transpose()?;
        let mut options = sys::jit_grammar_options::new();
        options.kind = kind;
        options.behind_reasoning = 1;
        options.text = text.as_ptr().cast();
        options.n = text.len();
        options.prompt = prompt.bytes.as_ptr().cast();
        options.n_prompt = prompt.bytes.len();
        options.tools = at(&tools);
        options.template_text = at(&template);
        options.template_name = at(&name);
        options.opening = at(&opening);
        then(&options)
    }

    /// The messages as a JSON array.
    pub fn messages(&self) -> String {
        format!("[{}]", self.messages.join(","))
    }
}

/// A conversation as the model's template writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    bytes: Vec<u8>,
    ids: Vec<i32>,
}

impl Prompt {
    /// The text; bytes that are no UTF-8 are U+FFFD.
    pub fn text(&self) -> String {
        lossy(self.bytes.clone())
    }

    /// The tokens of the whole conversation.
    pub fn ids(&self) -> &[i32] {
        &self.ids
    }
}

/// What became known of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// More text.
    Text(String),
    /// More of the model's reasoning.
    Reasoning(String),
    /// A call begins.
    Call {
        /// Its number from 0.
        call: usize,
        /// Its id.
        id: String,
        /// The function's name.
        name: String,
    },
    /// More of a call's arguments, which together are JSON text.
    Arguments {
        /// The call's number.
        call: usize,
        /// The text.
        text: String,
    },
    /// A call ends.
    CallEnd {
        /// Its number.
        call: usize,
        /// Whether the arguments are complete.
        whole: bool,
    },
}

/// What makes an answer a call of a tool: made by [`Model::force_call`].
#[derive(Debug, Clone)]
pub struct Forced {
    pub(crate) kind: c_int,
    pub(crate) grammar: Vec<u8>,
    pub(crate) prompt: Vec<u8>,
    ids: Vec<i32>,
    opened: Option<CString>,
    behind_reasoning: bool,
}

impl Forced {
    /// What opens the call, behind the conversation's prompt.
    pub fn prompt(&self) -> String {
        lossy(self.prompt.clone())
    }

    /// Its tokens, to be fed behind those of the prompt, for programs that generate by themselves. There are none where
    /// the model may reason first.
    pub fn ids(&self) -> &[i32] {
        &self.ids
    }

    /// Whether the model may reason before it calls.
    pub fn behind_reasoning(&self) -> bool {
        self.behind_reasoning
    }
}

impl Model {
    /// Writes a conversation by the chat template.
    pub fn render(&self, chat: &Chat) -> Result<Prompt> {
        let messages = c_text("messages", chat.messages())?;
        let (tools, variables) = (optional("tools", &chat.tools)?, optional("variables", &chat.all_variables())?);
        let template = optional("the template", &chat.template)?;
        let name = optional("the template's name", &chat.template_name)?;
        let mut options = sys::jit_chat_options::new();
        options.messages = messages.as_ptr();
        options.tools = at(&tools);
        options.variables = at(&variables);
        options.template_text = at(&template);
        options.template_name = at(&name);
        options.no_generation_prompt = chat.unfinished as c_int;
        options.has_now = chat.now.is_some() as c_int;
        options.now = chat.now.unwrap_or(0);
        let mut out = sys::jit_chat::new();
        // SAFETY: the texts live until the end of the call; what is given is copied and given back.
        unsafe {
            status(|err| sys::jit_chat_render(self.raw(), &options, &mut out, err))?;
            let ids = if out.ids.is_null() { &[] } else { std::slice::from_raw_parts(out.ids, out.n_ids) };
            let prompt = Prompt { bytes: bytes(out.text, out.n).to_vec(), ids: ids.to_vec() };
            sys::jit_chat_free(&mut out);
            Ok(prompt)
        }
    }

    /// What makes the next answer of a conversation a call of one of its tools, or of the one with this name.
    pub fn force_call(&self, chat: &Chat, function: Option<&str>) -> Result<Forced> {
        self.force(chat, function, None)
    }

    /// The same, and the model may reason before it calls. `prompt`: the conversation as it was rendered.
    pub fn force_call_behind(&self, chat: &Chat, function: Option<&str>, prompt: &Prompt) -> Result<Forced> {
        self.force(chat, function, Some(prompt))
    }

    fn force(&self, chat: &Chat, function: Option<&str>, prompt: Option<&Prompt>) -> Result<Forced> {
        let tools = optional("tools", &chat.tools)?;
        let function = function.map(|f| c_text("the function's name", f)).transpose()?;
        let template = optional("the template", &chat.template)?;
        let name = optional("the template's name", &chat.template_name)?;
        let mut options = sys::jit_forced_options::new();
        options.tools = at(&tools);
        options.function = at(&function);
        options.one_call = chat.one_call as c_int;
        options.template_text = at(&template);
        options.template_name = at(&name);
        if let Some(prompt) = prompt {
            options.prompt = prompt.bytes.as_ptr().cast();
            options.n_prompt = prompt.bytes.len();
        }
        let mut out = sys::jit_forced_call::new();
        // SAFETY: as in render.
        unsafe {
            status(|err| sys::jit_call_force(self.raw(), &options, &mut out, err))?;
            let behind_reasoning = out.behind_reasoning != 0;
            let fed = !behind_reasoning && !out.ids.is_null();
            let ids = if fed { std::slice::from_raw_parts(out.ids, out.n_ids) } else { &[] };
            let opened = (!behind_reasoning && !out.opened.is_null()).then(|| CStr::from_ptr(out.opened).to_owned());
            let grammar = bytes(out.grammar, out.n_grammar).to_vec();
            let prompt = bytes(out.prompt, out.n_prompt).to_vec();
            let (kind, ids) = (out.kind, ids.to_vec());
            let forced = Forced { kind, grammar, prompt, ids, opened, behind_reasoning };
            sys::jit_forced_call_free(&mut out);
            Ok(forced)
        }
    }

    /// A whole answer as a message in the form of OpenAI's API, in JSON.
    pub fn parse_answer(&self, chat: &Chat, answer: impl AsRef<[u8]>) -> Result<String> {
        parse(self.raw(), chat, answer.as_ref(), false)
    }

    /// The same of an answer that was cut off, as at a limit of tokens: a call that was not closed is not whole.
    pub fn parse_cut_answer(&self, chat: &Chat, answer: impl AsRef<[u8]>) -> Result<String> {
        parse(self.raw(), chat, answer.as_ref(), true)
    }
}

impl Chat {
    /// As [`Model::parse_answer`], without a model: for a conversation with a [`template`](Chat::template). `cut`: it
    /// was cut off.
    ///
    /// ```
    /// # let tools = r#"[{"type": "function", "function": {"name": "weather"}}]"#;
    /// let chat = jitrun::Chat::new().template("{{ messages }}").tools(tools);
    /// let said = r#"<tool_call>{"name": "weather", "arguments": {"sky": "blue"}}</tool_call>"#;
    /// assert!(chat.parse_answer(said, false)?.contains("tool_calls"));
    /// # Ok::<(), jitrun::Error>(())
    /// ```
    pub fn parse_answer(&self, answer: impl AsRef<[u8]>, cut: bool) -> Result<String> {
        parse(ptr::null(), self, answer.as_ref(), cut)
    }
}

fn parse(model: *const sys::jit_model, chat: &Chat, answer: &[u8], cut: bool) -> Result<String> {
    with_answer_options(chat, None, None, |mut o| {
        o.cut = cut as c_int;
        let (text, n) = (answer.as_ptr().cast(), answer.len());
        // SAFETY: a text and its length; the result is taken over.
        unsafe {
            let json = address(|err| sys::jit_chat_parse(model, text, n, &o, err))?;
            Ok(lossy(taken_text(json)))
        }
    })
}

fn with_answer_options<R>(
    chat: &Chat,
    prompt: Option<&Prompt>,
    forced: Option<&Forced>,
    then: impl FnOnce(sys::jit_answer_options) -> Result<R>,
) -> Result<R> {
    let tools = optional("tools", &chat.tools)?;
    let template = optional("the template", &chat.template)?;
    let name = optional("the template's name", &chat.template_name)?;
    let id = optional("the id of calls", &chat.call_id)?;
    let mut options = sys::jit_answer_options::new();
    options.id = at(&id);
    options.one_call = chat.one_call as c_int;
    options.keep_reasoning = chat.keep_reasoning as c_int;
    options.tools = at(&tools);
    options.template_text = at(&template);
    options.template_name = at(&name);
    if let Some(prompt) = prompt {
        options.prompt = prompt.bytes.as_ptr().cast();
        options.n_prompt = prompt.bytes.len();
    }
    if let Some(forced) = forced {
        options.opened = at(&forced.opened);
    }
    then(options)
}

/// Reads an answer while it is generated: the same events for every model family, however its bytes are cut.
pub struct Answer<'m> {
    raw: NonNull<sys::jit_answer>,
    model: PhantomData<&'m Model>,
}

// SAFETY: a jit_answer belongs to one thread at a time.
unsafe impl Send for Answer<'_> {}

impl<'m> Answer<'m> {
    /// A reader for the answer to a conversation, whose rendering is `prompt`.
    pub fn new(model: &'m Model, chat: &Chat, prompt: &Prompt, forced: Option<&Forced>) -> Result<Self> {
        with_answer_options(chat, Some(prompt), forced, |o| {
            // SAFETY: all but the model is copied.
            let raw = address(|err| unsafe { sys::jit_answer_open(model.raw(), &o, err) })?;
            Ok(Answer { raw, model: PhantomData })
        })
    }

    /// A reader without a model, for a conversation with a [`template`](Chat::template): no token is a mark.
    pub fn without_model(chat: &Chat, forced: Option<&Forced>) -> Result<Answer<'static>> {
        with_answer_options(chat, None, forced, |o| {
            // SAFETY: everything is copied.
            let raw = address(|err| unsafe { sys::jit_answer_open(ptr::null(), &o, err) })?;
            Ok(Answer { raw, model: PhantomData })
        })
    }

    /// The next bytes, and the token that they are of: some tokens that have no text are marks.
    pub fn feed(&mut self, text: &[u8], token: Option<i32>) -> Result<Vec<Event>> {
        let a = self.raw.as_ptr();
        // SAFETY: a text and its length; a mark lives as long as the answer.
        unsafe {
            status(|err| sys::jit_answer_feed(a, text.as_ptr().cast(), text.len(), err))?;
            let mut events = self.events()?;
            if let Some(token) = token {
                let mut n = 0;
                let mark = sys::jit_answer_mark(a, token, &mut n);
                if n > 0 && !mark.is_null() {
                    status(|err| sys::jit_answer_feed(a, mark, n, err))?;
                    events.extend(self.events()?);
                }
            }
            Ok(events)
        }
    }

    /// Nothing more comes: what was held back. `cut`: the model had more to say.
    pub fn finish(&mut self, cut: bool) -> Result<Vec<Event>> {
        // SAFETY: open.
        status(|err| unsafe { sys::jit_answer_finish(self.raw.as_ptr(), cut as c_int, err) })?;
        self.events()
    }

    fn events(&mut self) -> Result<Vec<Event>> {
        let mut events = Vec::new();
        let mut e = sys::jit_answer_event::new();
        loop {
            // SAFETY: the struct has its size; what it points to is copied before the next feed.
            unsafe {
                status(|err| sys::jit_answer_next(self.raw.as_ptr(), &mut e, err))?;
                let text = || String::from_utf8_lossy(bytes(e.text, e.n)).into_owned();
                let word = |t: *const c_char| CStr::from_ptr(t).to_string_lossy().into_owned();
                let call = e.call as usize;
                events.push(match e.kind {
                    sys::JIT_ANSWER_TEXT => Event::Text(text()),
                    sys::JIT_ANSWER_REASONING => Event::Reasoning(text()),
                    sys::JIT_ANSWER_CALL => Event::Call { call, id: word(e.id), name: word(e.name) },
                    sys::JIT_ANSWER_ARGUMENTS => Event::Arguments { call, text: text() },
                    sys::JIT_ANSWER_CALL_END => Event::CallEnd { call, whole: e.whole != 0 },
                    sys::JIT_ANSWER_NOTHING => return Ok(events),
                    _ => continue, // of a later library
                });
            }
        }
    }
}

impl Drop for Answer<'_> {
    fn drop(&mut self) {
        // SAFETY: closed once.
        unsafe { sys::jit_answer_close(self.raw.as_ptr()) }
    }
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Call {
    /// Its id, for [`Chat::tool_result`].
    pub id: String,
    /// The function's name.
    pub name: String,
    /// The arguments, JSON text.
    pub arguments: String,
    /// Whether the arguments are complete.
    pub whole: bool,
}

/// A whole answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reply {
    /// What is neither reasoning nor a call.
    pub text: String,
    /// The model's reasoning; empty where it gave none.
    pub reasoning: String,
    /// The calls of tools.
    pub calls: Vec<Call>,
    /// The tokens that were generated, without one that ended the answer.
    pub ids: Vec<i32>,
    /// Why it ended.
    pub finish: Finish,
}

impl Reply {
    /// The answer in the form of OpenAI's API: put it behind the others of its conversation by [`Chat::message_json`].
    pub fn message(&self) -> String {
        let mut out = format!("{{\"role\":\"assistant\",\"content\":{}", json_string(&self.text));
        if !self.reasoning.is_empty() {
            out += &format!(",\"reasoning_content\":{}", json_string(&self.reasoning));
        }
        if !self.calls.is_empty() {
            let one = |c: &Call| {
                let (id, name, arguments) = (json_string(&c.id), json_string(&c.name), json_string(&c.arguments));
                format!(
                    "{{\"id\":{},\"type\":\"function\",\"function\":{{\"name\":{},\"arguments\":{}}}}}",
                    id, name, arguments
                )
            };
            out += &format!(",\"tool_calls\":[{}]", self.calls.iter().map(one).collect::<Vec<_>>().join(","));
        }
        out + "}"
    }
}

impl<'m> Session<'m> {
    /// Answers a conversation with at most so many tokens, and tells `told` of the answer while it comes. Of what the
    /// session has, the beginning that the conversation shares is kept.
    pub fn chat(&mut self, chat: &Chat, most: usize, told: impl FnMut(&Event)) -> Result<Reply> {
        self.answer(chat, None, None, most, told)
    }

    /// The same for an answer that keeps to a grammar, behind the model's reasoning.
    pub fn chat_grammar(
        &mut self,
        chat: &Chat,
        grammar: Grammar<'_>,
        most: usize,
        told: impl FnMut(&Event),
    ) -> Result<Reply> {
        self.answer(chat, None, Some(grammar), most, told)
    }

    /// The same for an answer that must be a call.
    pub fn chat_forced(
        &mut self,
        chat: &Chat,
        forced: &Forced,
        most: usize,
        told: impl FnMut(&Event),
    ) -> Result<Reply> {
        self.answer(chat, Some(forced), None, most, told)
    }

    fn answer(
        &mut self,
        chat: &Chat,
        forced: Option<&Forced>,
        grammar: Option<Grammar<'_>>,
        most: usize,
        mut told: impl FnMut(&Event),
    ) -> Result<Reply> {
        let prompt = self.model.render(chat)?;
        let mut ids = prompt.ids.clone();
        ids.extend(forced.iter().flat_map(|f| f.ids.iter()));
        if ids.is_empty() {
            return Err(Error::argument("the conversation has no tokens: one at least was expected"));
        }
        let mut reader = Answer::new(self.model, chat, &prompt, forced)?;
        let shared = self.ids().iter().zip(&ids).take_while(|(a, b)| a == b).count().min(ids.len() - 1);
        self.set_grammar(None)?;
        self.rewind(shared)?;
        self.feed(&ids[shared..])?;
        if let Some(forced) = forced {
            self.begin_call(forced, chat, &prompt)?;
        }
        if let Some(grammar) = grammar {
            self.begin_grammar(grammar, chat, &prompt)?;
        }
        let (text, reasoning, calls) = (String::new(), String::new(), Vec::new());
        let mut reply = Reply { text, reasoning, calls, ids: Vec::new(), finish: Finish::Length };
        let mut take = |reply: &mut Reply, events: Vec<Event>| {
            for event in events {
                told(&event);
                reply.take(event);
            }
        };
        let mut generation = self.generate(most);
        loop {
            let (id, text) = generation.step()?;
            take(&mut reply, reader.feed(&text, id)?);
            if id.is_none() {
                break;
            }
        }
        reply.finish = generation.finish().unwrap_or(Finish::Length);
        reply.ids = generation.ids().to_vec();
        let rest = reader.finish(reply.finish == Finish::Length)?;
        take(&mut reply, rest);
        self.set_grammar(None)?;
        Ok(reply)
    }
}

impl Reply {
    fn take(&mut self, event: Event) {
        match event {
            Event::Text(text) => self.text += &text,
            Event::Reasoning(text) => self.reasoning += &text,
            Event::Call { id, name, .. } => self.calls.push(Call { id, name, ..Call::default() }),
            Event::Arguments { call, text } => self.calls[call].arguments += &text,
            Event::CallEnd { call, whole } => self.calls[call].whole = whole,
        }
    }
}
