// tests/server/clients/page.mjs PROGRAM FOLDER QUICK SLOW GUARDED KEY - the web page in a real browser, against three
// servers: one that is quick and has two models, the first with a hostile name; one that is slow; one that wants a key.
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

await browser.close();
finish();
