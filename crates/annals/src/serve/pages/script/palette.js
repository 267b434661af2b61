// --- the palette: anything by its name ------------------------------------------------------------------------------
const palette = one("#palette");
const paletteBox = one("input", palette);
const paletteList = one("#palette-list");
let paletteTurn = 0;

function ownOffers() {
  const pages = all(".side nav a").map((link) => ({ kind: "Page", title: link.textContent.trim(), href: link.href }));
  for (const [title, href] of [["Week", "/week"], ["Compare", "/compare"], ["Latest files", "/files?view=latest"], ["Slowest calls", "/tools/calls?order=slowest"], ["Secrets", "/secrets"], ["Gaps", "/gaps"]]) pages.push({ kind: "Page", title, href });
  return [
    ...pages,
    { kind: "Action", title: "Switch between light and dark", run: switchTheme },
    { kind: "Action", title: "Keyboard shortcuts", run: () => one("#keys").showModal() },
    { kind: "Action", title: "Copy the address of this page", run: () => navigator.clipboard.writeText(location.href).catch(() => {}) },
  ];
}

function showOffers(offers) {
  paletteList.replaceChildren(...offers.map((offer, number) => {
    const item = document.createElement("li");
    item.id = `offer-${number}`;
    item.role = "option";
    for (const [name, text] of [["kind", offer.kind], ["title", offer.title], ["detail", offer.detail]]) {
      if (!text) continue;
      const part = document.createElement("span");
      part.className = name;
      part.textContent = text;
      item.append(part);
    }
    item.addEventListener("click", () => take(offer));
    item.offer = offer;
    return item;
  }));
  choose(0);
}

function choose(number) {
  const items = all("li", paletteList);
  if (items.length === 0) return paletteBox.removeAttribute("aria-activedescendant");
  const at = (number + items.length) % items.length;
  items.forEach((item, place) => item.setAttribute("aria-selected", String(place === at)));
  paletteBox.setAttribute("aria-activedescendant", items[at].id);
  items[at].scrollIntoView({ block: "nearest" });
}

function take(offer) {
  palette.close();
  if (offer.run) offer.run();
  else location.href = offer.href;
}

async function findOffers() {
  const turn = ++paletteTurn;
  const text = paletteBox.value.trim();
  const wanted = text.toLowerCase();
  const own = ownOffers().filter((offer) => offer.title.toLowerCase().includes(wanted));
  if (!text) showOffers(own);
  const answer = await fetch(`/palette?q=${encodeURIComponent(text)}`);
  if (turn !== paletteTurn || !answer.ok) return;
  const { items } = await answer.json();
  showOffers(text ? [...own, ...items] : [...items, ...own]);
}

function openPalette() {
  if (palette.open) return;
  paletteBox.value = "";
  palette.showModal();
  paletteBox.focus();
  findOffers();
}

paletteBox.addEventListener("input", findOffers);
paletteBox.addEventListener("keydown", (event) => {
  const items = all("li", paletteList);
  const at = items.findIndex((item) => item.getAttribute("aria-selected") === "true");
  if (event.key === "ArrowDown") choose(at + 1);
  else if (event.key === "ArrowUp") choose(at - 1);
  else if (event.key === "Enter" && items[at]) take(items[at].offer);
  else return;
  event.preventDefault();
});
palette.addEventListener("click", (event) => { if (event.target === palette) palette.close(); });
