// tests/server/clients/browser.mjs - a headless Chromium, driven over the pipe that it offers for that: no package is
// needed. What goes wrong in a page (exceptions, refused loads, console errors) is collected.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";

const WAIT_MS = 60000;

export async function openBrowser(program, folder) {
	const profile = mkdtempSync(join(folder, "profile-"));
	const child = spawn(program, ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--no-first-run", "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe",
		"--user-data-dir=" + profile, "about:blank"], { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
	const waiting = new Map(), pages = new Map();
	let number = 0, rest = Buffer.alloc(0);
	const gone = new Promise(done => child.on("exit", done));
	child.on("error", () => {});
	const ask = (method, params = {}, sessionId) => new Promise((done, failed) => {
		const id = ++number;
		const timer = setTimeout(() => failed(new Error(method + ": no answer")), WAIT_MS);
		waiting.set(id, { done: v => { clearTimeout(timer); done(v); }, failed: e => { clearTimeout(timer); failed(e); } });
		child.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
	});
	const hear = message => {
		const w = waiting.get(message.id);
		if (w) {
			waiting.delete(message.id);
			if (message.error) w.failed(new Error(message.error.message));
			else w.done(message.result);
		} else {
			pages.get(message.sessionId)?.(message.method, message.params);
		}
	};
	child.stdio[3].on("error", () => {});
	child.stdio[4].on("data", more => {
		rest = Buffer.concat([rest, more]);
		for (let end; (end = rest.indexOf(0)) >= 0; rest = rest.subarray(end + 1)) hear(JSON.parse(rest.subarray(0, end)));
	});
	await ask("Browser.getVersion");
	const close = async () => {
		await ask("Browser.close").catch(() => {});
		setTimeout(() => child.kill("SIGKILL"), 5000).unref();
		await gone;
		rmSync(profile, { recursive: true, force: true });
	};
	return { openPage: url => openPage(ask, pages, url), close };
}

async function openPage(ask, pages, url) {
	const { targetId } = await ask("Target.createTarget", { url: "about:blank" });
	const { sessionId } = await ask("Target.attachToTarget", { targetId, flatten: true });
	const send = (method, params) => ask(method, params, sessionId), troubles = [], asked = [];
	let answerWith = null;
	pages.set(sessionId, (method, p) => {
		if (method === "Runtime.exceptionThrown") troubles.push(p.exceptionDetails.exception?.description || p.exceptionDetails.text);
		if (method === "Log.entryAdded" && p.entry.level === "error") troubles.push(p.entry.text);
		if (method === "Fetch.requestPaused") asked.push(p.request.postData);
		if (method === "Fetch.requestPaused") send("Fetch.fulfillRequest", { requestId: p.requestId, ...answerWith });
	});
	for (const domain of ["Page", "Runtime", "Log"]) await send(domain + ".enable");
	const run = async text => {
		const r = await send("Runtime.evaluate", { expression: text, awaitPromise: true, returnByValue: true });
		if (r.exceptionDetails) throw new Error(r.exceptionDetails.exception?.description || r.exceptionDetails.text);
		return r.result.value;
	};
	const until = async (text, what) => {
		for (const end = Date.now() + WAIT_MS; Date.now() < end; await new Promise(done => setTimeout(done, 50)))
			if (await run(text)) return;
		throw new Error("it never came to be: " + (what || text));
	};
	const press = async (key, code, modifiers = 0) => {
		for (const type of ["keyDown", "keyUp"])
			await send("Input.dispatchKeyEvent", { type, key, code: key, modifiers, windowsVirtualKeyCode: code, text: type === "keyDown" && key === "Enter" ? "\r" : undefined });
	};
	const middle = selector => run(`(() => { const e = document.querySelector(${JSON.stringify(selector)}); e.scrollIntoView({ block: "nearest" });
		const r = e.getBoundingClientRect(); return { x: r.x + r.width / 2, y: r.y + r.height / 2 }; })()`);
	const click = async selector => {
		const at = await middle(selector);
		for (const type of ["mousePressed", "mouseReleased"])
			await send("Input.dispatchMouseEvent", { type, ...at, button: "left", clickCount: 1 });
	};
	// Files of this machine, dragged onto an element, or picked for an input.
	const drop = async (selector, files) => {
		const at = await middle(selector), data = { items: [], files, dragOperationsMask: 1 };
		for (const type of ["dragEnter", "dragOver", "drop"]) await send("Input.dispatchDragEvent", { type, ...at, data });
	};
	const pick = async (selector, files) => {
		const { result } = await send("Runtime.evaluate", { expression: `document.querySelector(${JSON.stringify(selector)})` });
		await send("DOM.setFileInputFiles", { files, objectId: result.objectId });
	};
	// From now on requests to this path get this body instead of the server's answer; null: the server's again.
	const answer = async (path, type, body) => {
		answerWith = body === null ? null : { responseCode: 200, responseHeaders: [{ name: "Content-Type", value: type }],
			body: Buffer.from(body).toString("base64") };
		await (body === null ? send("Fetch.disable") : send("Fetch.enable", { patterns: [{ urlPattern: "*" + path }] }));
	};
	const go = async to => {
		await send("Page.navigate", { url: to });
		await until("document.readyState === 'complete' && !!document.getElementById('input')", to);
	};
	await go(url);
	return { send, run, until, press, click, drop, pick, answer, go, troubles, asked, type: text => send("Input.insertText", { text }) };
}
