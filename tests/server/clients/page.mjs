// tests/server/clients/page.mjs PROGRAM FOLDER QUICK SLOW GUARDED KEY - the web page in a real browser, against three
// servers: one that is quick and has two models, the first with a hostile name; one that is slow; one that wants a key.
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openBrowser } from "./browser.mjs";
import { finish, must, same, test } from "./checks.mjs";

const [program, folder, quick, slow, guarded, key] = process.argv.slice(2);
const HOSTILE = `<img src=x onerror="window.hit=1"><script>window.hit=1</script>`;
let browser;
try {
	browser = await openBrowser(program, folder);
} catch (e) {
	console.log(`# skipped: ${program} does not start: ${e.message}`);
	process.exit(77);
}
const quoted = JSON.stringify;
const last = `document.querySelector("#talk .turn:last-child")`;
const ended = `document.getElementById("stop").hidden && !!${last}?.querySelector(".under .quiet")`;

async function ask(page, text) {
	await page.click("#input");
	await page.type(text);
	await page.press("Enter", 13);
}
async function set(page, id, value) {
	await page.run(`{ const e = document.getElementById(${quoted(id)}); e.value = ${quoted(value)}; e.dispatchEvent(new Event("change")); }`);
}
// The sum of a series of /metrics.
async function metric(server, name) {
	const text = await (await fetch(server + "/metrics")).text();
	return [...text.matchAll(new RegExp("^" + name + "\\{.*\\} (\\S+)$", "gm"))].reduce((sum, m) => sum + Number(m[1]), 0);
}
// Nothing that was hostile has become an element, or ran; other than the page's own there are none that could.
async function untouched(page) {
	same(await page.run("window.hit"), undefined, "the hostile script ran");
	same(await page.run(`document.querySelectorAll("img, iframe, #talk script, #side script, option *").length`), 0, "elements out of text");
}

await test("a conversation: what is typed is answered with the server's own text", async () => {
	const page = await browser.openPage(quick + "/");
	await set(page, "temperature", "0");
	await set(page, "most", "40");
	await set(page, "system", "You are a king.");
	await ask(page, "Tell me of the sea");
	await page.until(ended);
	const body = { temperature: 0, max_tokens: 40, messages: [{ role: "system", content: "You are a king." }, { role: "user", content: "Tell me of the sea" }] };
	const wanted = await (await fetch(quick + "/v1/chat/completions", { method: "POST", body: quoted(body) })).json();
	const plain = text => text.replace(/\s+/g, " ").trim();
	same(plain(await page.run(`${last}.querySelector(".text").innerText`)), plain(wanted.choices[0].message.content), "the answer");
	must(/^40 tokens · [\d.]+ tokens\/s/.test(await page.run(`${last}.querySelector(".under .quiet").textContent`)), "its numbers");
	await ask(page, "And then?");
	await page.until(`document.querySelectorAll("#talk .turn").length === 4 && ${ended}`);
	await page.click("#fresh");
	same(await page.run(`document.querySelectorAll("#talk .turn").length`), 0, "turns of a new conversation");
	await set(page, "system", "");
	same(page.troubles, [], "troubles");
});

await test("a stream is shown while it comes, and stops when it is told to", async () => {
	const page = await browser.openPage(slow + "/"), before = await metric(slow, "jitserve_answers_cancelled_total");
	await set(page, "temperature", "0");
	await set(page, "most", "900");
	await page.run(`window.seen = new Set(), new MutationObserver(() => seen.add(document.querySelector("#talk .assistant .text")?.textContent.length))
		.observe(document.getElementById("talk"), { subtree: true, childList: true, characterData: true })`);
	await ask(page, "Once upon a time");
	await page.until("seen.size > 5", "five lengths of an answer");
	same(await page.run(`document.getElementById("send").hidden`), true, "the button to send is away");
	await page.click("#stop");
	await page.until(ended);
	must(/stopped$/.test(await page.run(`${last}.querySelector(".under .quiet").textContent`)), "it says that it was stopped");
	const length = await page.run(`${last}.querySelector(".text").textContent.length`);
	for (const end = Date.now() + 20000; await metric(slow, "jitserve_answers_cancelled_total") === before; )
		must(Date.now() < end, "the server went on");
	same(await page.run(`${last}.querySelector(".text").textContent.length`), length, "nothing more comes");
	await ask(page, "Again");
	await page.until("document.querySelectorAll('#talk .turn').length === 4 && !document.getElementById('stop').hidden");
	await page.press("Escape", 27);
	await page.until(ended);
	same(page.troubles, [], "troubles");
});

await test("hostile text stays text, wherever it comes from", async () => {
	const page = await browser.openPage(quick + "/");
	const texts = [HOSTILE, "# " + HOSTILE, "- " + HOSTILE, "> **" + HOSTILE + "**", "1. `" + HOSTILE + "`", "```" + "html\n" + HOSTILE + "\n```",
		"[a](javascript:window.hit=1)", "&lt;b&gt;"];
	const chunks = [{ choices: [{ delta: { role: "assistant", reasoning_content: HOSTILE } }] }, ...texts.map(t => ({ choices: [{ delta: { content: t + "\n\n" } }] })),
		{ choices: [{ delta: {}, finish_reason: HOSTILE }], timings: { predicted_n: HOSTILE, predicted_per_second: 1 } }];
	await page.answer("/v1/chat/completions", "text/event-stream", chunks.map(c => "data: " + quoted(c) + "\n\n").join("") + "data: [DONE]\n\n");
	await ask(page, HOSTILE);
	await page.until(ended);
	const shown = await page.run(`${last}.textContent`);
	must(shown.split(HOSTILE).length >= 8 && shown.includes("[a](javascript:window.hit=1)") && shown.includes("&lt;b&gt;"), "all of it can be read: " + shown);
	same(await page.run(`document.querySelector("#talk .user .text").textContent`), HOSTILE, "what was typed");
	same(await page.run(`document.querySelectorAll("#talk a").length`), 0, "links");
	await page.answer("/v1/chat/completions", "text/event-stream", "data: " + quoted({ error: { message: HOSTILE } }) + "\n\n");
	await ask(page, "again");
	await page.until(`document.querySelectorAll("#talk .turn").length === 4 && ${ended}`);
	same(await page.run(`${last}.querySelector(".trouble").textContent`), HOSTILE, "an error's text");
	await page.answer("/v1/chat/completions", "", null);
	await page.until(`document.querySelectorAll("#list li").length === 2`, "two models");
	same(await page.run(`document.querySelector("#list b").textContent`), HOSTILE, "the name of a model");
	same(await page.run(`document.querySelector("#model option").textContent`), HOSTILE, "the same, to be chosen");
	await untouched(page);
});

await test("the browser lets nothing else run", async () => {
	const page = await browser.openPage(quick + "/");
	const refused = text => page.run(`(() => { try { ${text}; return false; } catch (e) { return e instanceof TypeError || e instanceof EvalError; } })()`);
	must(await refused(`document.body.insertAdjacentHTML("beforeend", "<b>x</b>")`), "markup out of text");
	must(await refused(`document.getElementById("talk").innerHTML = "<b>x</b>"`), "innerHTML");
	must(await refused(`document.createElement("script").text = "window.hit = 1"`), "a script's text");
	await page.run(`window.refused = []; document.addEventListener("securitypolicyviolation", e => refused.push(e.effectiveDirective));
		{ const b = document.createElement("button"); document.body.append(b); b.setAttribute("class", "x");
		const i = new Image(); i.src = "/livez"; document.body.append(i); fetch("http://127.0.0.1:1/").catch(() => {});
		const s = document.createElement("style"); s.append("body { display: none }"); document.body.append(s); }`);
	await page.until(`["img-src", "connect-src", "style-src-elem"].every(d => refused.includes(d))`, "loads from elsewhere are refused");
	await untouched({ run: async t => t.includes("querySelector") ? 0 : page.run(t) });
});

await test("models are listed, chosen and loaded", async () => {
	const page = await browser.openPage(quick + "/");
	await page.until(`document.querySelectorAll("#list li").length === 2`);
	const state = n => page.run(`document.querySelectorAll("#list .state")[${n}].textContent`);
	same([await state(0), await state(1)], ["loaded", "unloaded"], "states");
	await page.run(`document.getElementById("model").value = "other"`);
	await set(page, "most", "5");
	await ask(page, "Hello");
	await page.until(ended);
	await page.until(`document.querySelectorAll("#list .state")[1].textContent === "loaded"`, "the other model is loaded");
	same(await metric(quick, "jitserve_model_loads_total"), 2, "loads");
	await page.run(`document.getElementById("side").hidden && document.getElementById("side-button").click()`);
	await page.until(`Number(document.getElementById("rate").textContent) >= 0 && document.querySelector("#rates polyline").getAttribute("points").length > 5`);
	same(page.troubles, [], "troubles");
});

await test("what is running is shown", async () => {
	const page = await browser.openPage(slow + "/"), control = new AbortController();
	const running = fetch(slow + "/v1/completions", { method: "POST", signal: control.signal, body: quoted({ prompt: "The", max_tokens: 900, ignore_eos: true, n: 3 }) }).catch(() => {});
	await page.until(`document.getElementById("running").textContent === "3" && Number(document.getElementById("rate").textContent) >= 0`);
	must((await page.run(`document.querySelector("#list .state").textContent`)) === "3 running", "at its model");
	control.abort();
	await running;
	await page.until(`document.getElementById("running").textContent === "0"`);
});

await test("a server that wants a key gets it", async () => {
	const page = await browser.openPage(guarded + "/");
	await page.until(`!document.getElementById("side").hidden && document.getElementById("foot").textContent.includes("API Key")`, "the key is asked for");
	await set(page, "key", key);
	await page.until(`document.querySelectorAll("#list li").length === 1`);
	await set(page, "most", "4");
	await ask(page, "Hello");
	await page.until(ended);
	must(await page.run(`${last}.querySelector(".trouble").hidden`), "it is answered");
	same(await page.run(`JSON.stringify(localStorage).includes(${quoted(key)})`), false, "the key outlives the tab");
});

await test("it fits a phone", async () => {
	const page = await browser.openPage(quick + "/");
	await page.send("Emulation.setDeviceMetricsOverride", { width: 360, height: 640, deviceScaleFactor: 1, mobile: true });
	await page.go(quick + "/");
	const wide = "x".repeat(3000);
	await page.answer("/v1/chat/completions", "text/event-stream",
		"data: " + quoted({ choices: [{ delta: { content: wide + "\n```\n" + wide + "\n```\n" } }] }) + "\n\ndata: [DONE]\n\n");
	await ask(page, wide);
	await page.until(ended);
	same(await page.run("document.documentElement.scrollWidth <= 360 && document.getElementById('scroll').scrollWidth <= 360"), true, "nothing sticks out");
	must(await page.run("document.getElementById('send').getBoundingClientRect().bottom <= 640"), "the button is in sight");
});

// A stream of this text, as the server writes one.
const stream = (text, more = {}) => [{ choices: [{ delta: { content: text } }] }, { choices: [], ...more }].map(c => "data: " + quoted(c) + "\n\n").join("") + "data: [DONE]\n\n";
const count = (page, selector) => page.run(`document.querySelectorAll(${quoted(selector)}).length`);
const text = (page, selector) => page.run(`document.querySelector(${quoted(selector)})?.textContent`);
// A page whose answers are this text; wide enough for the list of conversations.
async function talking(answer, url = quick + "/", more = {}) {
	const page = await browser.openPage(url);
	await page.send("Emulation.setDeviceMetricsOverride", { width: 1280, height: 800, deviceScaleFactor: 1, mobile: false });
	await page.go(url);
	await page.run(`document.getElementById("nav").hidden && document.getElementById("nav-button").click()`);
	await page.answer("/v1/chat/completions", "text/event-stream", stream(answer, more));
	return page;
}
async function say(page, words) {
	const before = page.asked.length;
	await ask(page, words);
	await page.until(`${ended} && ${last}.querySelector(".text").textContent !== ""`, "an answer to " + words);
	must(page.asked.length > before, "a request");
	return JSON.parse(page.asked[page.asked.length - 1]);
}
async function shown(page, answer) {
	await page.answer("/v1/chat/completions", "text/event-stream", stream(answer));
	await page.click("#fresh");
	return say(page, "Show it");
}
const names = page => page.run(`[...document.querySelectorAll("#talks .open b")].map(b => b.textContent)`);

await test("conversations are kept, found, renamed, deleted, exported and imported", async () => {
	const page = await talking("A word of amber"), downloads = join(folder, "downloads");
	await page.until(`document.getElementById("kept").textContent.includes("Kept")`);
	for (let n; (n = await count(page, "#talks li")); await page.until(`document.querySelectorAll("#talks li").length === ${n - 1}`)) {
		await page.click("#talks .open");
		await page.click("#talks [data-key$=delete]");
	}
	await say(page, "First <b>question</b>");
	await page.click("#fresh");
	await page.answer("/v1/chat/completions", "text/event-stream", stream("Another of basalt"));
	await say(page, "Second question");
	same(await names(page), ["Second question", "First <b>question</b>"], "the list");
	await page.go(quick + "/");
	await page.until(`document.querySelectorAll("#talk .turn").length === 2`, "the open conversation is back after a reload");
	same(await text(page, "#talk .assistant .text"), "Another of basalt", "its answer");
	const other = await browser.openPage(quick + "/");
	await other.until(`document.querySelectorAll("#talks li").length === 2`, "another tab lists them, too");
	await page.click("#find");
	await page.type("AMBER");
	await page.until(`document.querySelectorAll("#talks li").length === 1`);
	same(await names(page), ["First <b>question</b>"], "found by a word of an answer");
	await page.click("#talks .open");
	same(await text(page, "#talk .user .text"), "First <b>question</b>", "it is opened");
	await page.click("#talks [data-key$=rename]");
	await page.type(HOSTILE);
	await page.press("Enter", 13);
	await page.until(`document.querySelector("#talks .open b")?.textContent === ${quoted(HOSTILE)}`, "the new name");
	await untouched(page);
	mkdirSync(downloads);
	await page.send("Page.setDownloadBehavior", { behavior: "allow", downloadPath: downloads });
	await page.click("#export");
	/* The browser makes the file before it has written it. */
	let file, before;
	for (const end = Date.now() + 20000; !before; await new Promise(done => setTimeout(done, 50))) {
		must(Date.now() < end, "no file was exported");
		file = readdirSync(downloads).find(f => f.endsWith(".json"));
		try { before = file && JSON.parse(readFileSync(join(downloads, file))); } catch { before = undefined; }
	}
	same(before.conversations.map(c => c.name).sort(), ["", HOSTILE], "names in the file");
	await page.run(`{ const f = document.getElementById("find"); f.value = ""; f.dispatchEvent(new Event("input")); }`);
	for (const n of [1, 0]) {
		await page.click("#talks .open");
		await page.click("#talks [data-key$=delete]");
		await page.until(`document.querySelectorAll("#talks li").length === ${n}`);
	}
	same(await count(page, "#talk .turn"), 0, "turns of what was deleted");
	await page.click("#note button");
	await page.until(`document.querySelectorAll("#talks li").length === 1 && document.querySelectorAll("#talk .turn").length === 2`, "the last is back");
	await page.click("#talks [data-key$=delete]");
	await page.pick("#import-file", [join(downloads, file)]);
	await page.until(`document.querySelectorAll("#talks li").length === 2`, "imported");
	await page.pick("#import-file", [join(downloads, file)]);
	await page.until(`document.getElementById("note").textContent.includes("already")`, "what is here already");
	same(await count(page, "#talks li"), 2, "no conversation is there twice");
	for (let i = 0; i < 3; i++) { /* an answer that is there before the store is read hides no conversation */
		await page.go(quick + "/");
		await page.run(`{ const i = document.getElementById("input"); document.getElementById("fresh").click(); i.value = "early"; document.getElementById("form").requestSubmit(); }`);
		await page.until(`document.querySelectorAll("#talks li").length === 3`, "with an early question");
		await page.until(ended);
		same(await count(page, "#talks li"), 3, "conversations after it");
		await page.click("#talks [aria-current] ~ [data-key$=delete]");
		await page.until(`document.querySelectorAll("#talks li").length === 2`);
	}
	await page.go(quick + "/");
	await page.until(`document.querySelectorAll("#talks li").length === 2`, "they are kept");
	same((await names(page)).sort(), [HOSTILE, "Second question"].sort(), "their names");
	same(page.troubles, [], "troubles");
});

await test("the page says that it keeps conversations when it has listed those it keeps", async () => {
	const page = await talking("x");
	/* A store that is slow, as on a machine that is busy: what waits for the end of a transaction is told late. */
	await page.send("Page.addScriptToEvaluateOnNewDocument", { source: `{
		const own = Object.getOwnPropertyDescriptor(IDBTransaction.prototype, "oncomplete");
		Object.defineProperty(IDBTransaction.prototype, "oncomplete", { ...own, set(f) { own.set.call(this, e => setTimeout(() => f(e), 300)); } });
	}` });
	await page.go(quick + "/");
	await page.until(`document.getElementById("kept").textContent !== ""`);
	same(await count(page, "#talks li"), 2, "conversations listed then");
	same(page.troubles, [], "troubles");
});

await test("hostile files to import are refused in one sentence, or stay text", async () => {
	const page = await talking("x"), user = { parent: -1, role: "user", content: HOSTILE };
	await page.until(`document.querySelectorAll("#talks li").length === 2`);
	const file = (nodes, more) => quoted({ format: "jitrun.conversations", version: 1, conversations: [{ id: "a", nodes, ...more }] });
	const bad = ["{", "null", "[]", "{}", quoted({ format: HOSTILE }), quoted({ format: "jitrun.conversations", version: 1, conversations: [null] }), file([]), file([null]),
		file([{ parent: 0, role: "user", content: "" }]), file([{ ...user, parent: -2 }]), file([{ ...user, role: "system" }]), file([{ ...user, content: { toString: 1 } }]), file([user, user, { ...user, parent: 1 }]),
		file([user, { ...user, parent: 0 }]), file([{ ...user, parent: "__proto__" }])];
	for (const [i, words] of bad.entries()) {
		writeFileSync(join(folder, `bad${i}.json`), words);
		await page.pick("#import-file", [join(folder, `bad${i}.json`)]);
		await page.until(`document.getElementById("note").textContent.startsWith("“bad${i}.json” is not imported: ")`, words);
		same(await count(page, "#talks li"), 2, "conversations after " + words);
	}
	const nodes = [{ ...user, next: 7, files: [{ name: HOSTILE, content: HOSTILE }, null] }, { parent: 0, role: "assistant", content: HOSTILE + "\n\n- " + HOSTILE, reasoning: HOSTILE, said: HOSTILE, trouble: HOSTILE, used: HOSTILE }];
	writeFileSync(join(folder, "good.json"), file(nodes, { name: HOSTILE, id: "../" + HOSTILE, changed: 8e15, first: "x", __proto__: { x: 1 } }));
	await page.pick("#import-file", [join(folder, "good.json")]);
	await page.until(`document.querySelectorAll("#talks li").length === 3`);
	await page.click("#talks .open");
	await page.until(`document.querySelectorAll("#talk .turn").length === 2`);
	must((await text(page, "#talk")).split(HOSTILE).length >= 7, "all of it can be read");
	await untouched(page);
	await page.click("#talks [data-key$=delete]");
	same(page.troubles, [], "troubles");
});

await test("an edited message and another answer are versions to page through", async () => {
	const page = await talking("Answer A");
	await say(page, "Question one");
	await page.answer("/v1/chat/completions", "text/event-stream", stream("Answer B"));
	await page.click("#talk .user .change");
	await page.type(" and more");
	await page.press("Enter", 13);
	await page.until(`${last}?.querySelector(".text").textContent === "Answer B" && ${ended}`);
	same(JSON.parse(page.asked.at(-1)).messages, [{ role: "user", content: "Question one and more" }], "what is asked");
	same(await text(page, "#talk .user .versions > span"), "2 / 2", "versions");
	await page.click("#talk .user .versions button:first-child");
	same(await page.run(`[...document.querySelectorAll("#talk .text")].map(t => t.textContent)`), ["Question one", "Answer A"], "the first");
	await page.answer("/v1/chat/completions", "text/event-stream", stream("Answer C"));
	await page.click("#talk .assistant .change");
	await page.until(`${last}?.querySelector(".text").textContent === "Answer C" && ${ended}`);
	await page.go(quick + "/");
	await page.until(`document.querySelectorAll("#talk .versions").length === 2`, "both are kept");
	same(await page.run(`[...document.querySelectorAll("#talk .text")].map(t => t.textContent)`), ["Question one", "Answer C"], "what was shown last");
	await page.click("#talk .user .change");
	await page.type("x");
	await page.press("Escape", 27);
	same([await count(page, ".edit"), await text(page, "#talk .user .text")], [0, "Question one"], "an edit that is given up");
	same(page.troubles, [], "troubles");
});

await test("Markdown becomes elements", async () => {
	const page = await talking("x"), html = selector => page.run(`document.querySelector("#talk .assistant .text ${selector}")?.outerHTML`);
	await shown(page, "| a | b |\n|:--|--:|\n| **1** | `x\\|y` |\n| 2 |\n\n1. one\n  - two\n    - three\n2. four\n\n- [x] done\n- [ ] open\n\na\n\n---\n\n~~gone~~ snake_case_name 2*3*4 \\*plain\\*");
	same(await html("table"), `<table><thead><tr><th scope="col">a</th><th class="right" scope="col">b</th></tr></thead><tbody><tr><td><strong>1</strong></td><td class="right"><code>x|y</code></td></tr><tr><td>2</td><td class="right"></td></tr></tbody></table>`, "a table");
	same(await html("ol"), `<ol start="1"><li>one<ul><li>two<ul><li>three</li></ul></li></ul></li><li>four</li></ol>`, "lists");
	same(await page.run(`[...document.querySelectorAll("#talk .task input")].map(i => [i.checked, i.disabled])`), [[true, true], [false, true]], "task boxes");
	same([await count(page, "#talk hr"), await html("del"), await text(page, "#talk .assistant .text > p:last-child")], [1, "<del>gone</del>", "gone snake_case_name 234 *plain*"], "the rest");
	const links = { "[a](https://a.org/x_(y)?q=1)": "https://a.org/x_(y)?q=1", "see https://b.org/p.": "https://b.org/p", "<https://c.org>": "https://c.org/" };
	await shown(page, Object.keys(links).join("\n\n"));
	same(await page.run(`[...document.querySelectorAll("#talk .assistant .text a")].map(a => [a.href, a.rel, a.target])`), Object.values(links).map(l => [l, "noopener noreferrer", "_blank"]), "links");
	const refused = ["[a](javascript:window.hit=1)", "[a](http://a.org)", "[a](data:text/html,x)", "[a](//a.org)", "[a](/x)", "[a](JaVaScRiPt:hit=1)", "[a](https:javascript:1)", "[a](blob:https://a.org/x)", "![a](http://a.org/i.png)", "http://a.org"];
	await shown(page, refused.join("\n\n"));
	same(await count(page, "#talk .assistant .text a, #talk .assistant img"), 0, "links to elsewhere");
	same(await page.run(`[...document.querySelectorAll("#talk .assistant .text p")].map(p => p.textContent)`), refused, "they can be read");
	await shown(page, "```c\nint x = 10; // \"no\"\nchar *s = \"<b>\";\n```");
	same(await page.run(`[...document.querySelectorAll("#talk pre span")].map(s => s.className + " " + s.textContent)`), ["key int", "num 10", `com // "no"`, "key char", `str "<b>"`], "colours");
	same(await text(page, "#talk pre"), `int x = 10; // "no"\nchar *s = "<b>";`, "the code itself");
	same(page.troubles, [], "troubles");
});

await test("formulas become MathML, and what is not known stays", async () => {
	const page = await talking("x");
	await shown(page, "$\\frac{1}{x_i^2}$ and \\(\\sqrt[3]{\\alpha}\\) and\n\n$$\\sum_{i=1}^n \\begin{pmatrix} a & b \\\\ c & d \\end{pmatrix}$$");
	same(await page.run(`[...document.querySelectorAll("#talk math")].map(m => m.innerHTML)`), ["<mrow><mfrac><mn>1</mn><msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup></mfrac></mrow>", "<mrow><mroot><mi>α</mi><mn>3</mn></mroot></mrow>",
		`<mrow><munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><mrow><mo>(</mo><mtable class=""><mtr><mtd><mi>a</mi></mtd><mtd><mi>b</mi></mtd></mtr><mtr><mtd><mi>c</mi></mtd><mtd><mi>d</mi></mtd></mtr></mtable><mo>)</mo></mrow></mrow>`], "formulas");
	const plain = ["It costs $5 and $10.", "$HOME/bin:$PATH", "$\\href{javascript:1}{x}$", "$\\unknown_a *b* c$", "$x^2^3$", "$\\frac{1}$", "\\(\\left( x\\)", "$\\constructor$", "$$\\begin{__proto__}x\\end{__proto__}$$"];
	await shown(page, plain.join("\n\n"));
	same(await page.run(`[...document.querySelectorAll("#talk .assistant .text p")].map(p => p.textContent)`), plain, "text");
	await shown(page, "$" + "{".repeat(500) + "x" + "}".repeat(500) + "$\n\n" + ">".repeat(3000) + "x\n\n" + "*_[`$".repeat(4000) + "\n\n" + "- ".repeat(2000) + "x");
	await page.click("#fresh");
	await untouched(page);
	same(page.troubles, [], "troubles");
});

await test("files become part of a message", async () => {
	const page = await talking("x"), name = join(folder, "notes `<b>.txt"), body = "line\n```\n" + HOSTILE + "\n";
	writeFileSync(name, body);
	writeFileSync(join(folder, "data.bin"), Buffer.from([0x89, 0x50, 0, 0xff]));
	writeFileSync(join(folder, "other.txt"), "other");
	await page.drop("#input", [name, join(folder, "data.bin")]);
	await page.until(`document.querySelectorAll("#files li").length === 1`);
	must((await text(page, "#note")).includes("“data.bin” is neither a text file nor a picture."), "other files are refused");
	await page.pick("#attach-file", [join(folder, "other.txt")]);
	await page.until(`document.querySelectorAll("#files li").length === 2`);
	await page.click("#files li:last-child button");
	const asked = await say(page, "Read it");
	same(asked.messages.at(-1).content, "Read it\n\nFile notes `<b>.txt:\n````\n" + body + "````", "the message");
	same([await count(page, "#files li"), await text(page, "#talk .file pre")], [0, body], "it is shown");
	await untouched(page);
	same(page.troubles, [], "troubles");
});

await test("pictures become part of a message", async () => {
	const page = await talking("x"), name = join(folder, "dot.png");
	const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
	writeFileSync(name, Buffer.from(dot, "base64"));
	await page.drop("#input", [name]);
	await page.until(`document.querySelector("#files img.picture")?.naturalWidth === 1`);
	await page.run(`{
		const d = new DataTransfer(), bytes = Uint8Array.from(atob("${dot}"), c => c.charCodeAt(0));
		d.items.add(new File([bytes], "pasted.png", { type: "image/png" }));
		document.querySelector("#input").dispatchEvent(new ClipboardEvent("paste", { clipboardData: d, bubbles: true, cancelable: true }));
	}`);
	await page.until(`document.querySelectorAll("#files img.picture").length === 2`);
	const url = "data:image/png;base64," + dot, asked = await say(page, "Look"), picture = { type: "image_url", image_url: { url } };
	same(asked.messages.at(-1).content, [picture, picture, { type: "text", text: "Look" }], "the message");
	same([await count(page, "#files li"), await page.run(`document.querySelector("#talk img.picture").src`)], [0, url], "it is shown");
	must(!(await page.run("window.hit")), "no script was run");
	same(page.troubles, [], "troubles");
});

await test("settings reach the request, and wrong ones are told", async () => {
	const page = await talking("{}", quick + "/", { usage: { total_tokens: 100 } }), schema = { type: "object", properties: { a: { type: "integer" } } };
	const given = { temperature: "0,5", "top-p": "0.9", "top-k": "7", "min-p": "0.1", repeat: "1.1", seed: "42", most: "9", thinking: "off", schema: quoted(schema) };
	for (const [id, value] of Object.entries(given)) await set(page, id, value);
	const { messages, stream: streams, stream_options, model, ...asked } = await say(page, "Hello");
	same(asked, { temperature: 0.5, top_p: 0.9, top_k: 7, min_p: 0.1, repeat_penalty: 1.1, seed: 42, max_tokens: 9, chat_template_kwargs: { enable_thinking: false },
		response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema } } }, "the request");
	const context = (await (await fetch(quick + "/v1/models")).json()).data[0].context_length;
	await page.until(`document.getElementById("left").textContent === ${quoted((context - 100).toLocaleString("en") + " of " + context.toLocaleString("en") + " tokens left")}`, "tokens left");
	for (const [id, value, words] of [["schema", "{", "is not JSON"], ["schema", "[]", "must be an object"], ["temperature", "-1", "Temperature must be at least 0"], ["seed", "1.5", "Seed must be a whole number"], ["most", "x", "Most tokens must be a whole number"]]) {
		const good = given[id], before = page.asked.length;
		await set(page, id, value);
		await ask(page, "Hello");
		must((await text(page, "#note")).includes(words) && (await text(page, "#faults")).includes(words), id + " " + value + ": " + await text(page, "#note"));
		same([await page.run("document.activeElement.id"), await page.run(`document.getElementById(${quoted(id)}).getAttribute("aria-invalid")`), page.asked.length, await page.run(`document.getElementById("input").value`)], [id, "true", before, "Hello"], "what is wrong");
		await set(page, id, good);
		await page.run(`document.getElementById("input").value = ""`);
	}
	await page.answer("/v1/chat/completions", "", null);
	await set(page, "most", "60");
	await page.click("#fresh");
	await ask(page, "An object");
	await page.until(ended);
	must(/^\s*\{/.test(await text(page, "#talk .assistant .text")), "the server keeps to the schema: " + await text(page, "#talk .assistant"));
	for (const id of Object.keys(given)) await set(page, id, "");
	same(page.troubles, [], "troubles");
});

await test("without IndexedDB the page works, and keeps what it can", async () => {
	for (const without of [`get() { throw new DOMException("no", "SecurityError"); }`, "value: undefined", "value: { open() { const r = {}; setTimeout(() => r.onerror(new Event('error'))); return r; } }"]) {
		const page = await talking("Here");
		await page.send("Page.addScriptToEvaluateOnNewDocument", { source: `Object.defineProperty(window, "indexedDB", { ${without} })` });
		await page.go(quick + "/");
		await page.until(`document.getElementById("kept").textContent.includes("keeps nothing")`, "it says so");
		await say(page, "One");
		await page.click("#fresh");
		await say(page, "Two");
		same(await names(page), ["Two", "One"], "the tab's own list");
		same(page.troubles, [], "troubles");
	}
});

await test("everything has a name, and the keyboard reaches it", async () => {
	const page = await talking("First part.\n\nSecond part.");
	await say(page, "Hello");
	same(await page.run(`[...document.querySelectorAll("#live p")].map(p => p.textContent)`), ["First part.", "Second part."], "what is read out");
	const { nodes } = await page.send("Accessibility.getFullAXTree"), wanted = ["button", "textbox", "searchbox", "combobox", "link", "navigation", "complementary", "article", "list", "log"];
	const nameless = nodes.filter(n => !n.ignored && wanted.includes(n.role?.value) && !n.name?.value && n.role.value !== "list");
	same(nameless.map(n => n.role.value), [], "elements without a name");
	for (const role of ["navigation", "main", "complementary", "searchbox", "article", "log"]) must(nodes.some(n => !n.ignored && n.role?.value === role), "there is no " + role);
	await page.click("#find");
	await page.type("nothing has this");
	await page.until(`document.querySelectorAll("#talks li").length === 0`);
	await page.run("document.activeElement.blur(), document.body.focus()");
	const reached = [];
	for (let i = 0; i < 60; i++) {
		await page.press("Tab", 9);
		reached.push(await page.run("(e => e === document.body ? \"\" : e.id || e.title || e.textContent)(document.activeElement)"));
	}
	const at = ["nav-button", "fresh", "side-button", "find", "export", "import", "Edit", "Try again", "attach", "input", "system", "schema", "key"].map(n => reached.indexOf(n, reached.indexOf("nav-button")));
	must(at.every((n, i) => n >= 0 && (!i || n > at[i - 1])), "the order of the focus: " + reached);
	await page.send("Emulation.setDeviceMetricsOverride", { width: 375, height: 640, deviceScaleFactor: 1, mobile: true });
	await page.go(quick + "/");
	await page.click("#nav-button");
	await page.press("Escape", 27);
	same([await page.run("document.activeElement.id"), await page.run("document.getElementById('nav').hidden")], ["nav-button", true], "Escape closes");
});

await test("nothing is behind the message, in both sizes", async () => {
	const page = await talking("x"), wide = "y".repeat(600);
	for (const [width, height] of [[375, 640], [1280, 700]]) {
		await page.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 500 });
		await page.go(quick + "/");
		const table = "| " + "long_word_in_a_head | ".repeat(12) + "\n|" + "---|".repeat(12) + "\n\n$$" + "x + ".repeat(200) + "y$$\n\n" + wide;
		await page.answer("/v1/chat/completions", "text/event-stream", stream(table + "\n\npart\n\n".repeat(40)) .replace("data: [DONE]\n\n", "data: " + quoted({ error: { message: "The prompt exceeds the context. ".repeat(12) } }) + "\n\n"));
		await page.click("#fresh");
		await ask(page, "Hello " + wide);
		await page.until(ended);
		await page.until(`(() => { const f = document.getElementById("form").getBoundingClientRect(), t = document.querySelector("#talk .turn:last-child"), e = t.querySelector(".trouble").getBoundingClientRect();
			return !t.querySelector(".trouble").hidden && t.getBoundingClientRect().bottom <= f.top + 1 && e.bottom <= f.top && e.top > 0; })()`, "the error is in sight at " + width);
		must(await page.run(`document.documentElement.scrollWidth <= ${width} && document.getElementById("scroll").scrollWidth <= document.getElementById("scroll").clientWidth`), "nothing sticks out at " + width);
	}
});

await browser.close();
finish();
