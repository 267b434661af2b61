// Makes the pages quicker to use; every page works without it.
"use strict";

const one = (selector, within = document) => within.querySelector(selector);
const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));

// --- times are sent in UTC and shown in local time ---------------------------------------------------------------
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const calendar = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
const short = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto", style: "short" });

function ago(moment) {
  const seconds = (moment - Date.now()) / 1000;
  const steps = [[60, 1, "second"], [3600, 60, "minute"], [86400, 3600, "hour"], [7 * 86400, 86400, "day"]];
  const step = steps.find(([end]) => Math.abs(seconds) < end);
  if (step) return relative.format(Math.round(seconds / step[1]), step[2]);
  const year = moment.getFullYear() === new Date().getFullYear() ? "" : ` ${moment.getFullYear()}`;
  return short.format(moment) + year;
}

function localise(within) {
  for (const time of all("time[datetime]", within)) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.valueOf())) continue;
    const whole = exact.format(moment);
    time.title = `${whole} (${time.dateTime})`;
    time.textContent = time.dataset.how === "ago" ? ago(moment) : whole;
  }
  const lists = all("[data-days]", within);
  if (within.matches?.("[data-days]")) lists.push(within);
  lists.forEach(separateDays);
}

// Days begin at local midnight; the server only knows those of UTC.
function separateDays(list) {
  for (const day of all(":scope > .day", list)) day.remove();
  let before = "";
  for (const row of all(":scope > .row", list)) {
    const time = one("time[datetime]", row);
    const day = time ? calendar.format(new Date(time.dateTime)) : "No time";
    if (day !== before) {
      const head = document.createElement("li");
      head.className = "day";
      head.textContent = day;
      row.before(head);
      before = day;
    }
  }
}

async function page(address) {
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  const text = await answer.text();
  return { ok: answer.ok, document: new DOMParser().parseFromString(text, "text/html") };
}

// --- light and dark ------------------------------------------------------------------------------------------------
function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme === "dark"
    || (root.dataset.theme === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  root.dataset.theme = dark ? "light" : "dark";
  document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=strict`;
}
