// Makes the pages quicker to use; every page works without it.
"use strict";

const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));

// Times are sent in UTC and shown in local time.
const clock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
function localise(within) {
  for (const time of all("time[datetime]", within)) {
    const moment = new Date(time.dateTime);
    if (!Number.isNaN(moment.valueOf())) {
      time.title = time.dateTime;
      time.textContent = clock.format(moment);
    }
  }
}

async function page(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  const text = await answer.text();
  return { ok: answer.ok, document: new DOMParser().parseFromString(text, "text/html") };
}

// --- light and dark ---------------------------------------------------------------------------------------------
function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme === "dark"
    || (root.dataset.theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
}

// --- lists that update while the user types ---------------------------------------------------------------------
let latest = 0;
async function refresh(form) {
  const turn = ++latest;
  const asked = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value !== "") asked.append(name, value);
  }
  const address = `${form.getAttribute("action")}?${asked}`;
  const { document: found } = await page(address);
  if (turn !== latest) return;
  const results = one("#results");
  const fresh = one("#results", found);
  if (!results || !fresh) return;
  results.replaceChildren(...fresh.childNodes);
  history.replaceState(null, "", address);
  for (const link of all(".switch a")) {
    const same = all(".switch a", found).find((other) => other.textContent === link.textContent);
    if (same) link.href = same.getAttribute("href");
  }
  localise(results);
  watchMore();
}

function live(form) {
  let timer;
  const soon = () => { clearTimeout(timer); timer = setTimeout(() => refresh(form), 180); };
  form.addEventListener("input", (event) => { if (event.target.type !== "range") soon(); });
  form.addEventListener("submit", (event) => { event.preventDefault(); refresh(form); });
}

// --- endless lists -----------------------------------------------------------------------------------------------
const nearEnd = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    if (isIntersecting) loadMore(target);
  }
}, { rootMargin: "600px" });

async function loadMore(link) {
  nearEnd.unobserve(link);
  const { ok, document: found } = await page(link.href);
  if (!ok || !link.isConnected) return;
  const rows = one("#rows");
  const added = all("#rows > *", found);
  added.forEach(localise);
  rows.append(...added);
  const next = one(".more", found);
  if (next) link.closest("p").replaceWith(next.closest("p"));
  else link.closest("p").remove();
  watchMore();
}

function watchMore() {
  for (const link of all(".more")) nearEnd.observe(link);
}

// --- long conversations: only the visible part is in the page ---------------------------------------------------
const conversation = one("#conversation");
const loading = new Map();
const LEAST = 400;

async function fill(chunk) {
  if (chunk.firstElementChild && chunk.firstElementChild.matches(".entry")) return;
  const from = chunk.dataset.from;
  if (!loading.has(from)) {
    loading.set(from, page(`${conversation.dataset.steps}${conversation.dataset.steps.includes("?") ? "&" : "?"}from=${from}`).finally(() => loading.delete(from)));
  }
  const { ok, document: found } = await loading.get(from);
  if (!ok || (chunk.firstElementChild && chunk.firstElementChild.matches(".entry"))) return;
  chunk.replaceChildren(...found.body.childNodes);
  chunk.style.minHeight = "";
  localise(chunk);
  markWords(chunk);
  near.unobserve(chunk);
  near.observe(chunk);
}

// Unloaded chunks keep their height.
function empty(chunk) {
  if (!chunk.firstElementChild || chunk.contains(document.activeElement)) return;
  chunk.style.minHeight = `${Math.max(chunk.offsetHeight, LEAST)}px`;
  chunk.replaceChildren();
}

const near = new IntersectionObserver((seen) => {
  for (const { target, isIntersecting } of seen) {
    if (isIntersecting) fill(target);
    else empty(target);
  }
}, { rootMargin: "2000px" });

function startConversation() {
  const filled = one(".chunk > .entry");
  const height = filled ? Math.max(filled.parentElement.offsetHeight, LEAST) : LEAST;
  for (const chunk of all(".chunk")) {
    if (!one(".entry", chunk)) {
      chunk.replaceChildren();
      chunk.style.minHeight = `${height}px`;
    }
  }
  arrive();
  for (const chunk of all(".chunk")) near.observe(chunk);
  const outline = one("#outline");
  if (outline) {
    page(outline.dataset.from).then(({ ok, document: found }) => {
      if (!ok) return;
      outline.replaceChildren(...found.body.childNodes);
      localise(outline);
      followPrompts();
    });
  }
}

// Scrolls to the target of the address; the step may be in a chunk that was just loaded.
function arrive() {
  const wanted = location.hash.startsWith("#m-") ? document.getElementById(location.hash.slice(1)) : null;
  if (!wanted) return;
  for (const before of all(".entry.target")) before.classList.remove("target");
  wanted.classList.add("target");
  markWords(wanted.parentElement);
  const folded = one("details mark", wanted);
  if (folded) folded.closest("details").open = true;
  wanted.scrollIntoView({ block: "start" });
}

async function goTo(seq, id) {
  const size = Number(conversation.dataset.size);
  const from = Math.floor(seq / size) * size;
  const chunk = one(`.chunk[data-from="${from}"]`);
  if (!chunk) return;
  await fill(chunk);
  history.replaceState(null, "", `#m-${id}`);
  arrive();
}

function followPrompts() {
  const links = all(".prompts a");
  let timer;
  const update = () => {
    const entries = all(".entry");
    const here = entries.find((entry) => entry.getBoundingClientRect().bottom > 90);
    const seq = here ? Number(here.dataset.seq) : 0;
    let now = null;
    for (const link of links) if (Number(link.dataset.seq) <= seq) now = link;
    for (const link of links) link.classList.toggle("now", link === now);
  };
  addEventListener("scroll", () => { clearTimeout(timer); timer = setTimeout(update, 100); }, { passive: true });
  update();
  for (const link of links) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      goTo(Number(link.dataset.seq), new URL(link.href).hash.slice(3));
    });
  }
}

// --- find in a session: the server also searches what is not in the page ----------------------------------------
const findForm = one("[data-find]");
let matches = [];
let match = -1;

function words() {
  const box = findForm && one("input[name=q]", findForm);
  const text = box ? box.value : "";
  return text.replace(/\b\w+:(?=\S)/g, "").split(/[\s"()*]+/).filter((word) => word.length > 1 && word[0] !== "-");
}

function markWords(within) {
  if (!within) return;
  for (const mark of all("mark.found", within)) mark.replaceWith(mark.textContent);
  within.normalize();
  const wanted = words().map((word) => word.toLowerCase());
  if (wanted.length === 0) return;
  const texts = document.createTreeWalker(within, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (texts.nextNode()) if (!texts.currentNode.parentElement.closest("header, summary .badge")) nodes.push(texts.currentNode);
  for (const node of nodes) {
    const lower = node.data.toLowerCase();
    if (lower.length !== node.data.length || !wanted.some((word) => lower.includes(word))) continue;
    const parts = document.createDocumentFragment();
    let at = 0;
    while (at < lower.length) {
      let next = -1;
      let length = 0;
      for (const word of wanted) {
        const found = lower.indexOf(word, at);
        if (found >= 0 && (next < 0 || found < next)) { next = found; length = word.length; }
      }
      if (next < 0) break;
      parts.append(node.data.slice(at, next));
      const mark = document.createElement("mark");
      mark.className = "found";
      mark.textContent = node.data.slice(next, next + length);
      parts.append(mark);
      at = next + length;
    }
    parts.append(node.data.slice(at));
    node.replaceWith(parts);
  }
}

function startFind() {
  let timer;
  const status = one("output", findForm);
  const steps = all("button", findForm);
  const query = async () => {
    const text = one("input[name=q]", findForm).value.trim();
    matches = [];
    match = -1;
    status.textContent = "";
    if (text) {
      const last = /[\w]$/.test(text) ? `${text}*` : text;
      const answer = await fetch(`${findForm.getAttribute("action")}?q=${encodeURIComponent(last)}`);
      const found = answer.ok ? await answer.json() : { matches: [], complete: true };
      matches = found.matches;
      status.textContent = matches.length === 0 ? "No matches" : `${matches.length}${found.complete ? "" : " or more"}`;
    }
    for (const button of steps) button.disabled = matches.length === 0;
    all(".chunk").forEach(markWords);
  };
  findForm.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(query, 250); });
  findForm.addEventListener("submit", (event) => { event.preventDefault(); step(1); });
  if (one("input[name=q]", findForm).value) query();
}

function step(by) {
  if (matches.length === 0) return;
  match = (match + by + matches.length) % matches.length;
  one("output", findForm).textContent = `${match + 1} of ${matches.length}`;
  goTo(matches[match].seq, matches[match].id);
}

// --- server-sent events -----------------------------------------------------------------------------------------
function listen() {
  const bar = one("#progress");
  const events = new EventSource("/events");
  let news = null;
  let waited = false;
  events.onmessage = (event) => {
    const now = JSON.parse(event.data);
    if (now.sync) {
      const part = now.sync.bytes ? Math.floor((100 * now.sync.bytes_done) / now.sync.bytes) : 0;
      bar.hidden = false;
      bar.textContent = `Syncing: ${now.sync.files_done} of ${now.sync.files} files, ${Math.min(part, 100)} %`;
    } else if (!bar.dataset.kept) {
      bar.hidden = true;
    }
    if (news !== null && now.news > news && ["/", "/sessions"].includes(document.body.dataset.place) && !conversation) {
      bar.hidden = false;
      bar.dataset.kept = "yes";
      bar.replaceChildren("New activity. ");
      const link = document.createElement("a");
      link.href = location.href;
      link.textContent = "Refresh";
      bar.append(link);
    }
    news = now.news;
    const waiting = one("[data-wait=secrets]");
    if (waiting && now.secrets) {
      waited = true;
      const [done, every] = now.secrets;
      const shown = one("progress", waiting);
      if (shown) { shown.max = every; shown.value = done; }
      const text = one("[role=status]", waiting);
      if (text) text.textContent = `Scanning: ${done} of ${every} sessions.`;
    } else if (waiting && (waited || !now.secrets)) {
      setTimeout(() => location.reload(), 300);
    }
  };
  addEventListener("pagehide", () => events.close());
}

// --- buttons and keys --------------------------------------------------------------------------------------------------
async function copy(button) {
  let text = button.dataset.copy;
  if (button.dataset.copyFrom) text = await (await fetch(button.dataset.copyFrom)).text();
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copying is not allowed";
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}

const actions = {
  theme: switchTheme,
  keys: () => one("#keys").showModal(),
  copy,
  link: (link) => { navigator.clipboard.writeText(link.href).catch(() => {}); },
  "find-next": () => step(1),
  "find-previous": () => step(-1),
};

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-action]");
  if (target) actions[target.dataset.action]?.(target);
});

function move(by, selector) {
  const entries = all(selector);
  if (entries.length === 0) return;
  let at = entries.findIndex((entry) => entry.classList.contains("here"));
  if (at < 0) at = entries.findIndex((entry) => entry.getBoundingClientRect().top > 60) - (by > 0 ? 1 : 0);
  const next = entries[Math.min(Math.max(at + by, 0), entries.length - 1)];
  for (const entry of all(".here")) entry.classList.remove("here");
  next.classList.add("here");
  next.scrollIntoView({ block: "nearest" });
  const focus = one("a, summary", next);
  if (focus) focus.focus({ preventScroll: true });
}

function prompt(by) {
  const links = all(".prompts a");
  const at = links.findIndex((link) => link.classList.contains("now"));
  const next = links[at + by];
  if (next) next.click();
}

const places = { h: "/", s: "/sessions", t: "/tools", u: "/usage", l: "/library", a: "/audit" };
let going = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (going) {
    going = false;
    if (places[event.key]) { location.href = places[event.key]; event.preventDefault(); }
    return;
  }
  const entry = conversation ? ".entry" : "[data-entry]";
  const keys = {
    "/": () => one("[data-key='/']").focus(),
    f: () => one("[data-key=f]")?.focus(),
    g: () => { going = true; setTimeout(() => { going = false; }, 1500); },
    j: () => move(1, entry),
    k: () => move(-1, entry),
    n: () => prompt(1),
    p: () => prompt(-1),
    o: () => { const here = one(".here details"); if (here) here.open = !here.open; },
    t: switchTheme,
    "?": () => one("#keys").showModal(),
  };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});

// --- the library at another time --------------------------------------------------------------------------------
function startSlider(slider) {
  const moments = slider.dataset.moments.split(" ");
  const form = slider.form;
  const told = one("output", slider.parentElement);
  const date = one("input[name=as_of]", form);
  slider.addEventListener("input", () => {
    const moment = moments[Number(slider.value)] || "";
    date.value = moment.slice(0, 19);
    told.textContent = moment ? `as of ${moment.slice(0, 16).replace("T", " ")} UTC` : "current";
    slider.setAttribute("aria-valuetext", told.textContent);
  });
  slider.addEventListener("change", () => refresh(form));
}

localise(document);
all("form[data-live]").forEach(live);
all("[data-moments]").forEach(startSlider);
watchMore();
if (conversation) startConversation();
if (findForm) startFind();
addEventListener("hashchange", arrive);
listen();
