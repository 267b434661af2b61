// --- lists that update while the user types ---------------------------------------------------------------------
let latest = 0;
async function refresh(form) {
  const turn = ++latest;
  const asked = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    if (value !== "") asked.append(name, value);
  }
  const address = `${form.getAttribute("action")}?${asked}`;
  const { ok, document: found } = await page(address);
  if (turn !== latest) return;
  const results = one("#results");
  const fresh = one(ok ? "#results" : ".refused", found);
  if (!results || !fresh) return;
  results.replaceChildren(...fresh.childNodes);
  if (!ok) return;
  history.replaceState(null, "", address);
  // Links outside of the results keep the filters, too.
  for (const selector of [".bar .switch", ".side nav"]) {
    const [shown, now] = [one(selector), one(selector, found)];
    if (shown && now) shown.replaceChildren(...now.childNodes);
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
  rows.append(...all("#rows > *", found));
  localise(rows);
  const next = one(".more", found);
  if (next) link.closest("p").replaceWith(next.closest("p"));
  else link.closest("p").remove();
  watchMore();
}

function watchMore() {
  for (const link of all(".more")) nearEnd.observe(link);
}

// --- sub-agents unfold below the session that started them ---------------------------------------------------------
async function showAgents(link, event) {
  event.preventDefault();
  const row = link.closest(".row");
  const shown = row.nextElementSibling?.matches(".nested") ? row.nextElementSibling : null;
  link.setAttribute("aria-expanded", String(!shown));
  if (shown) {
    shown.remove();
    return;
  }
  const { ok, document: found } = await page(link.href);
  if (!ok) {
    location.href = link.href;
    return;
  }
  const nested = document.createElement("li");
  nested.className = "nested";
  const list = document.createElement("ul");
  list.className = "rows";
  list.append(...all("#rows > .row", found));
  nested.append(list);
  row.after(nested);
  localise(nested);
}

// --- sessions that are selected ------------------------------------------------------------------------------------
function countSelected() {
  const form = one("#selected");
  if (!form) return;
  const count = all(".pick:checked").length;
  one("output", form).textContent = `${count} selected:`;
}

function selectAll() {
  for (const pick of all(".pick")) pick.checked = true;
  countSelected();
}

// The form is emptied after this event.
document.addEventListener("reset", () => setTimeout(countSelected));
document.addEventListener("change", (event) => { if (event.target.matches(".pick")) countSelected(); });

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
