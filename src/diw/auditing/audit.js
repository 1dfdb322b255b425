"use strict";

// The page works from a file on disk: no network, marks are kept by the browser (localStorage).
const data = JSON.parse(document.getElementById("audit").textContent);
const STEP = 60; // cards that are made at a time
const store = "diw-audit-" + data.id;
const gallery = document.getElementById("gallery");
const byId = (name) => document.getElementById(name);
const names = { wrong: "Wrong", right: "Right", drop: "Drop" };
let marks = {};
let shown = []; // places of rows that pass the filters
let made = 0;

function load() {
  try {
    marks = JSON.parse(localStorage.getItem(store)) || {};
  } catch {
    byId("kept").textContent = "This browser does not keep marks over a reload: save often.";
  }
}

function keep() {
  try {
    localStorage.setItem(store, JSON.stringify(marks));
  } catch {
    byId("kept").textContent = "This browser does not keep marks over a reload: save often.";
  }
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function svg(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

function content(place) {
  if (data.images) {
    const row = data.rows[place];
    const words = "Sample " + (place + 1) + ", labelled " + data.classes[row.given];
    return element("img", { src: data.images[place], alt: words, class: "sample" });
  }
  if (!data.cells) return element("p", { class: "where" }, "");
  const list = element("dl", { class: "cells" });
  data.columns.forEach((name, number) => {
    const text = data.cells[place][number];
    list.append(element("dt", {}, name), element("dd", {}, text === "" ? "–" : text));
  });
  return list;
}

function card(place) {
  const row = data.rows[place];
  const choice = element("select", { "aria-label": "The right label" });
  data.classes.forEach((name, number) => {
    if (number !== row.given) choice.append(element("option", { value: number }, name));
  });
  const given = data.classes[row.given];
  const label = element("p", { class: "labels" }, element("b", { class: "given" }, given));
  if (row.suggested !== row.given) {
    const sure = row.probability === null ? "" : " " + Math.round(100 * row.probability) + "%";
    label.append(" → ", element("b", {}, data.classes[row.suggested]), sure);
  }
  const where = row.row === null ? row.file : row.file + ", row " + row.row;
  const scores = "score " + row.score.toFixed(2) + ", weight " + row.weight.toFixed(2);
  const buttons = element("div", { class: "marks", role: "group", "aria-label": "Mark" });
  for (const kind of ["wrong", "right", "drop"]) {
    const button = element("button", { type: "button", "data-mark": kind }, names[kind]);
    button.addEventListener("click", () => toggle(place, kind, Number(choice.value)));
    buttons.append(button);
  }
  const made = element(
    "li",
    { class: "card", tabindex: "0", "data-place": place },
    content(place),
    label,
    element("p", { class: "where", title: where }, where),
    element("p", { class: "where" }, scores),
    buttons,
    choice
  );
  choice.addEventListener("change", () => set(place, "wrong", Number(choice.value)));
  paint(made, place);
  return made;
}

function paint(made, place) {
  const row = data.rows[place];
  const mark = marks[row.key];
  made.dataset.mark = mark ? mark.mark : "";
  for (const button of made.querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(Boolean(mark) && button.dataset.mark === mark.mark));
  }
  const label = mark && mark.mark === "wrong" ? mark.label : row.suggested;
  if (label !== row.given) made.querySelector("select").value = String(label);
}

function set(place, mark, label) {
  const row = data.rows[place];
  marks[row.key] = mark === "wrong" ? { mark, label } : { mark };
  keep();
  repaint(place);
}

function toggle(place, mark, label) {
  const now = marks[data.rows[place].key];
  if (now && now.mark === mark) clear(place);
  else set(place, mark, label);
}

function clear(place) {
  delete marks[data.rows[place].key];
  keep();
  repaint(place);
}

function repaint(place) {
  const made = gallery.querySelector('[data-place="' + place + '"]');
  if (made) paint(made, place);
  progress();
}

function progress() {
  const counts = { wrong: 0, right: 0, drop: 0 };
  for (const row of data.rows) if (marks[row.key]) counts[marks[row.key].mark] += 1;
  const done = counts.wrong + counts.right + counts.drop;
  byId("bar").value = done;
  byId("done").textContent =
    done.toLocaleString("en") + " of " + data.rows.length.toLocaleString("en") + " marked: " +
    counts.wrong + " wrong, " + counts.right + " right, " + counts.drop + " to drop";
  byId("save").disabled = done === 0;
}

function filter() {
  const given = byId("given").value;
  const suggested = byId("suggested").value;
  const state = byId("state").value;
  const least = Number(byId("threshold").value);
  shown = data.rows.flatMap((row, place) => {
    const marked = Boolean(marks[row.key]);
    const passes =
      (given === "" || row.given === Number(given)) &&
      (suggested === "" || row.suggested === Number(suggested)) &&
      (state === "" || (state === "marked") === marked) &&
      row.score >= least;
    return passes ? [place] : [];
  });
  gallery.replaceChildren();
  made = 0;
  more();
  byId("found").textContent =
    shown.length.toLocaleString("en") + (shown.length === 1 ? " sample" : " samples") + " shown";
}

function more() {
  gallery.append(...shown.slice(made, made + STEP).map(card));
  made = Math.min(shown.length, made + STEP);
}

function moveThreshold() {
  const least = Number(byId("threshold").value);
  const { edges, counts, wrong } = data.histogram;
  let above = 0;
  let bad = 0;
  counts.forEach((count, bin) => {
    if (edges[bin] >= least - 1e-9) {
      above += count;
      bad += wrong ? wrong[bin] : 0;
    }
  });
  let text = above.toLocaleString("en") + " of " + data.total.toLocaleString("en") +
    " training samples score " + least.toFixed(2) + " or more";
  if (wrong && above) {
    const all = wrong.reduce((a, b) => a + b, 0);
    text += "; " + Math.round((100 * bad) / above) + "% of them are mislabelled, which is " +
      Math.round((100 * bad) / all) + "% of all mislabelled ones";
  }
  byId("above").textContent = text + ".";
  byId("cut").setAttribute("x1", least * 1000);
  byId("cut").setAttribute("x2", least * 1000);
}

function drawHistogram() {
  const { edges, counts, wrong } = data.histogram;
  const box = byId("histogram");
  const root = (value) => Math.sqrt(value); // few suspects beside many others stay visible
  const top = root(Math.max(...counts, 1));
  counts.forEach((count, bin) => {
    const x = 1000 * edges[bin] + 1;
    const width = 1000 * (edges[bin + 1] - edges[bin]) - 2;
    const bar = (height, kind) =>
      box.append(svg("rect", { x, width, y: 200 - height, height, class: kind }));
    bar((196 * root(count)) / top, "all");
    if (wrong) bar((196 * root(wrong[bin])) / top, "wrong");
  });
  box.append(svg("line", { id: "cut", y1: 0, y2: 200, class: "cut" }));
}

function save() {
  const quoted = (text) => '"' + String(text).replaceAll('"', '""') + '"';
  const lines = ["file,row,label,mark,correct,content"];
  for (const row of data.rows) {
    const mark = marks[row.key];
    if (!mark) continue;
    const correct = mark.mark === "wrong" ? data.classes[mark.label] : "";
    const cells = [row.file, row.row === null ? "" : row.row, data.classes[row.given], mark.mark];
    lines.push([...cells, correct, row.content].map(quoted).join(","));
  }
  const file = new Blob([lines.join("\n") + "\n"], { type: "text/csv" });
  const link = element("a", { href: URL.createObjectURL(file), download: "corrections.csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function step(from, by) {
  const cards = [...gallery.children];
  const next = cards[cards.indexOf(from) + by];
  if (next) next.focus();
  else if (by > 0 && made < shown.length) {
    more();
    step(from, by);
  }
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (["SELECT", "INPUT"].includes(event.target.tagName)) return;
  const on = event.target.closest(".card");
  if (!on) {
    // Nothing is chosen yet: a key that marks or moves on chooses the first sample in view.
    if (!["ArrowRight", "j", "n", "w", "r", "d"].includes(event.key)) return;
    const first = [...gallery.children].find((card) => card.getBoundingClientRect().top >= 0);
    if (first) first.focus();
    return;
  }
  const place = Number(on.dataset.place);
  const row = data.rows[place];
  const digit = /^[0-9]$/.test(event.key) ? Number(event.key) : -1;
  if (event.key === "w") set(place, "wrong", Number(on.querySelector("select").value));
  else if (event.key === "r") set(place, "right");
  else if (event.key === "d") set(place, "drop");
  else if (event.key === "u") clear(place);
  else if (digit >= 0 && digit < data.classes.length && digit !== row.given) {
    set(place, "wrong", digit);
  } else if (["ArrowRight", "ArrowDown", "j", "n"].includes(event.key)) step(on, 1);
  else if (["ArrowLeft", "ArrowUp", "k", "p"].includes(event.key)) step(on, -1);
  else return;
  event.preventDefault();
  if (["w", "r", "d"].includes(event.key) || digit >= 0) step(on, 1);
}

load();
byId("bar").max = data.rows.length;
byId("threshold").value = data.threshold;
drawHistogram();
moveThreshold();
filter();
progress();
for (const name of ["given", "suggested", "state"]) byId(name).addEventListener("change", filter);
byId("threshold").addEventListener("input", () => {
  moveThreshold();
  filter();
});
byId("save").addEventListener("click", save);
document.addEventListener("keydown", press);
new IntersectionObserver((entries) => {
  if (entries.some((entry) => entry.isIntersecting) && made < shown.length) more();
}, { rootMargin: "600px" }).observe(byId("end"));
