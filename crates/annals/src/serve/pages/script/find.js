// --- find in a session: the server also searches what is not in the page ----------------------------------------
let findForm = null;
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
  while (texts.nextNode()) if (!texts.currentNode.parentElement.closest("header, summary .badge, .copy")) nodes.push(texts.currentNode);
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
  const form = findForm;
  const status = one("output", form);
  const steps = all("button", form);
  const query = async () => {
    const text = one("input[name=q]", form).value.trim();
    matches = [];
    match = -1;
    status.textContent = "";
    if (text) {
      const last = /[\w]$/.test(text) ? `${text}*` : text;
      const answer = await fetch(`${form.getAttribute("action")}?q=${encodeURIComponent(last)}`);
      const found = answer.ok ? await answer.json() : { matches: [], complete: true };
      if (!form.isConnected) return;
      matches = found.matches;
      status.textContent = matches.length === 0 ? "No matches" : `${matches.length}${found.complete ? "" : " or more"}`;
    }
    for (const button of steps) button.disabled = matches.length === 0;
    all(".chunk, #narrowed").forEach(markWords);
  };
  form.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(query, 250); });
  form.addEventListener("submit", (event) => { event.preventDefault(); step(1); });
  if (one("input[name=q]", form).value) query();
}

function step(by) {
  if (matches.length === 0) return;
  match = (match + by + matches.length) % matches.length;
  one("output", findForm).textContent = `${match + 1} of ${matches.length}`;
  goTo(matches[match].seq, matches[match].id);
}
