// --- long conversations: only the visible part is in the page ---------------------------------------------------
let conversation = null;
let loading = new Map();
const LEAST = 400;

// Steps of this session, without those of sub-agents that are shown in it.
const ownEntries = (within) => all(".entry", within).filter((entry) => !entry.closest(".subagent"));

const isFilled = (chunk) => Boolean(one(".entry", chunk));

async function fill(chunk, again = false) {
  if (!again && isFilled(chunk)) return;
  const from = chunk.dataset.from;
  if (!loading.has(from)) {
    const steps = conversation.dataset.steps;
    loading.set(from, page(`${steps}${steps.includes("?") ? "&" : "?"}from=${from}`).finally(() => loading.delete(from)));
  }
  const { ok, document: found } = await loading.get(from);
  if (!ok || !chunk.isConnected || (!again && isFilled(chunk))) return;
  chunk.replaceChildren(...found.body.childNodes);
  chunk.style.minHeight = "";
  localise(chunk);
  markWords(chunk);
  addCopyButtons(chunk);
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
    if (!target.isConnected) continue;
    if (isIntersecting) fill(target);
    else empty(target);
  }
}, { rootMargin: "2000px" });

function startConversation() {
  near.disconnect();
  loading = new Map();
  conversation = one("#conversation");
  findForm = one("[data-find]");
  matches = [];
  match = -1;
  if (conversation) {
    const filled = one(".chunk > *");
    const height = filled ? Math.max(filled.parentElement.offsetHeight, LEAST) : LEAST;
    for (const chunk of all(".chunk")) {
      if (!isFilled(chunk)) {
        chunk.replaceChildren();
        chunk.style.minHeight = `${height}px`;
      }
    }
    arrive();
    for (const chunk of all(".chunk")) near.observe(chunk);
  }
  addCopyButtons(document);
  const outline = one("#outline");
  // A phone shows the conversation first.
  if (outline && matchMedia("(max-width: 60rem)").matches) outline.closest("details").open = false;
  if (outline) {
    page(outline.dataset.from).then(({ ok, document: found }) => {
      if (!ok || !outline.isConnected) return;
      outline.replaceChildren(...found.body.childNodes);
      localise(outline);
      if (conversation) followPrompts();
    });
  }
  if (findForm) startFind();
}

// Everything that hides an element is opened.
function reveal(element) {
  for (let fold = element.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
}

// Scrolls to the target of the address; the step may be in a chunk that was just loaded.
function arrive() {
  const wanted = location.hash.startsWith("#m-") ? document.getElementById(location.hash.slice(1)) : null;
  if (!wanted) return;
  for (const before of all(".entry.target")) before.classList.remove("target");
  wanted.classList.add("target");
  markWords(wanted.parentElement);
  reveal(wanted);
  const marked = one("details mark", wanted);
  if (marked) reveal(marked);
  wanted.scrollIntoView({ block: "start" });
}

async function goTo(seq, id) {
  if (!conversation) {
    location.href = `${one("#pane").dataset.base}?at=${id}#m-${id}`;
    return;
  }
  const size = Number(conversation.dataset.size);
  const from = Math.floor(seq / size) * size;
  const chunk = one(`.chunk[data-from="${from}"]`);
  if (!chunk) return;
  await fill(chunk);
  history.replaceState(history.state, "", `#m-${id}`);
  arrive();
}

let scrolled = null;
function followPrompts() {
  const links = all(".prompts a");
  const rail = one(".timeline");
  let timer;
  const update = () => {
    const here = ownEntries(document).find((entry) => entry.checkVisibility() && entry.getBoundingClientRect().bottom > 120);
    const seq = here ? Number(here.dataset.seq) : 0;
    let now = null;
    for (const link of links) if (Number(link.dataset.seq) <= seq) now = link;
    for (const link of links) link.classList.toggle("now", link === now);
    // The rail follows the reader, without moving the page.
    if (now && rail.scrollHeight > rail.clientHeight) {
      const [inside, box] = [now.getBoundingClientRect(), rail.getBoundingClientRect()];
      if (inside.top < box.top || inside.bottom > box.bottom) rail.scrollTop += inside.top - box.top - box.height / 2;
    }
  };
  if (scrolled) removeEventListener("scroll", scrolled);
  scrolled = () => { clearTimeout(timer); timer = setTimeout(update, 100); };
  addEventListener("scroll", scrolled, { passive: true });
  update();
  for (const link of links) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      goTo(Number(link.dataset.seq), new URL(link.href).hash.slice(3));
    });
  }
}

// --- a session that grows while it is read -----------------------------------------------------------------------
const atEnd = () => innerHeight + scrollY > document.documentElement.scrollHeight - 160;

async function grow() {
  const chunks = all(".chunk");
  const last = chunks[chunks.length - 1];
  if (!last || !isFilled(last)) return;
  const follows = atEnd();
  const size = Number(conversation.dataset.size);
  const before = Number(conversation.dataset.total);
  await fill(last, true);
  let now = Number(last.dataset.from) + ownEntries(last).length;
  if (now === Number(last.dataset.from) + size) {
    const next = document.createElement("section");
    next.className = "chunk";
    next.dataset.from = now;
    last.after(next);
    await fill(next);
    now += ownEntries(next).length;
    if (!isFilled(next)) next.remove();
  }
  if (now <= before) return;
  conversation.dataset.total = now;
  if (follows) scrollTo(0, document.documentElement.scrollHeight);
  else one("[data-action=latest]").hidden = false;
}

function toLatest(button) {
  button.hidden = true;
  scrollTo(0, document.documentElement.scrollHeight);
}

// --- one session after another, while the list stays ---------------------------------------------------------------
let shownPane = location.pathname + location.search;

async function openBeside(address, push) {
  const { ok, document: found } = await page(address);
  const [pane, fresh] = [one("#pane"), one("#pane", found)];
  if (!ok || !pane || !fresh) {
    location.href = address;
    return;
  }
  pane.replaceWith(fresh);
  document.title = found.title;
  if (push) history.pushState({ pane: true }, "", address);
  shownPane = location.pathname + location.search;
  const path = new URL(address, location.href).pathname;
  for (const link of all(".beside a")) {
    if (new URL(link.href).pathname === path) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  localise(fresh);
  scrollTo(0, 0);
  startConversation();
  watchMore();
}

function startBeside() {
  const list = one(".beside");
  if (!list) return;
  history.replaceState({ pane: true }, "");
  list.addEventListener("click", (event) => {
    const link = event.target.closest("li a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    openBeside(link.href, true);
  });
  addEventListener("popstate", (event) => {
    // Within one session, only the place changes.
    if (event.state?.pane && location.pathname + location.search !== shownPane) openBeside(location.href, false);
  });
}

// --- sub-agents in the place where they were started ----------------------------------------------------------------
async function showSubAgent(fold) {
  const { from, next = "0" } = fold.dataset;
  fold.dataset.loading = "yes";
  const { ok, document: found } = await page(`${from}/steps?from=${next}`);
  delete fold.dataset.loading;
  const steps = all(".entry", found);
  one(".more-steps", fold)?.remove();
  if (!ok || steps.length === 0) return;
  const part = document.createElement("div");
  part.append(...found.body.childNodes);
  for (const link of all("a[href^='?']", part)) link.href = `${from}${link.getAttribute("href")}`;
  fold.append(part);
  localise(part);
  addCopyButtons(document);
  fold.dataset.next = Number(steps[steps.length - 1].dataset.seq) + 1;
  const more = document.createElement("button");
  more.type = "button";
  more.className = "more-steps";
  more.dataset.action = "more-steps";
  more.textContent = "More steps";
  // A page of steps that is not full is the last one.
  if (steps.length >= Number(one("#conversation")?.dataset.size || 40)) fold.append(more);
}

// This event does not bubble.
document.addEventListener("toggle", (event) => {
  const fold = event.target;
  if (fold.matches(".subagent[open]") && !fold.dataset.next && !fold.dataset.loading) showSubAgent(fold);
}, true);

// --- copying -------------------------------------------------------------------------------------------------------
function addCopyButtons(within) {
  for (const block of all(".conversation pre", within)) {
    if (block.previousElementSibling?.matches(".copy")) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.dataset.action = "copy";
    button.textContent = "Copy";
    block.before(button);
  }
}

async function copy(button) {
  let text = button.dataset.copy;
  if (button.dataset.copyFrom) text = await (await fetch(button.dataset.copyFrom)).text();
  if (text === undefined) text = button.nextElementSibling.textContent;
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Copying is not allowed";
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}
