// --- server-sent events -----------------------------------------------------------------------------------------
function listen() {
  const bar = one("#progress");
  const events = new EventSource("/events");
  let news = null;
  let waited = false;
  let reloads = 0;
  events.onmessage = (event) => {
    const now = JSON.parse(event.data);
    if (now.sync) {
      const part = now.sync.bytes ? Math.floor((100 * now.sync.bytes_done) / now.sync.bytes) : 0;
      bar.hidden = false;
      bar.textContent = `Syncing: ${now.sync.files_done} of ${now.sync.files} files, ${Math.min(part, 100)} %`;
      // The first sessions appear by themselves.
      if (one("[data-empty]") && now.sync.files_done > 0 && !reloads) reloads = setTimeout(() => location.reload(), 1000);
    } else if (!bar.dataset.kept) {
      bar.hidden = true;
    }
    if (news !== null && now.news > news) {
      if (conversation) grow();
      else if (["/", "/sessions"].includes(document.body.dataset.place) && !one("#narrowed")) {
        bar.hidden = false;
        bar.dataset.kept = "yes";
        bar.replaceChildren("New activity. ");
        const link = document.createElement("a");
        link.href = location.href;
        link.textContent = "Refresh";
        bar.append(link);
      }
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
const actions = {
  theme: switchTheme,
  keys: () => one("#keys").showModal(),
  palette: openPalette,
  copy,
  agents: showAgents,
  "select-all": selectAll,
  "more-steps": (button) => showSubAgent(button.closest(".subagent")),
  latest: toLatest,
  link: (link) => { navigator.clipboard.writeText(link.href).catch(() => {}); },
  "find-next": () => step(1),
  "find-previous": () => step(-1),
};

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-action]");
  if (target) actions[target.dataset.action]?.(target, event);
  for (const menu of all("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

function move(by, selector) {
  const entries = all(selector).filter((entry) => entry.checkVisibility());
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

const places = { h: "/", s: "/sessions", f: "/files", u: "/usage", t: "/tools", i: "/insights", l: "/library", a: "/audit" };
let going = false;
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    event.preventDefault();
    openPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || one("dialog[open]")) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (going) {
    going = false;
    if (places[event.key]) { location.href = places[event.key]; event.preventDefault(); }
    return;
  }
  const entry = one("#pane") ? ".entry" : "[data-entry]";
  const keys = {
    "/": () => one("[data-key='/']").focus(),
    f: () => one("[data-key=f]")?.focus(),
    g: () => { going = true; setTimeout(() => { going = false; }, 1500); },
    j: () => move(1, entry),
    k: () => move(-1, entry),
    n: () => prompt(1),
    p: () => prompt(-1),
    o: () => { const here = one(".here details"); if (here) here.open = !here.open; },
    x: () => one(".here .pick")?.click(),
    t: switchTheme,
    "?": () => one("#keys").showModal(),
  };
  if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
});

localise(document);
all("form[data-live]").forEach(live);
// A phone shows what is found first.
if (matchMedia("(max-width: 60rem)").matches) for (const fold of all(".narrow")) fold.open = false;
all("[data-moments]").forEach(startSlider);
watchMore();
startConversation();
startBeside();
addEventListener("hashchange", arrive);
listen();
