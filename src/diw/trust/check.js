"use strict";

// The page works from a file on disk: no network, answers are kept by the browser (localStorage).
const data = JSON.parse(document.getElementById("rows").textContent);
const LETTERS = "abefghilmoqstvyz"; // those that no other key of this page or of the audit's has
const MOST = 24; // class buttons at a time, where there are more classes than keys
const PAUSE = 120; // seconds after which somebody was away
const store = "diw-trust-" + data.id;
const byId = (name) => document.getElementById(name);
const keys = data.classes.map((_, number) => (number < 10 ? String(number) : LETTERS[number - 10]));
const many = data.classes.length > 10 + LETTERS.length;
let answers = {}; // by key of the row: { right: number or null, note }
let before = []; // what undo brings back: { place, answer }
let list = data.rows.map((_, place) => place); // the rows of this pass
let at = 0; // where in the list
let again = false; // whether this is the second pass
let open = true; // whether the row shown waits for its (new) answer
let unsure = false;
let seconds = [];
let since = Date.now();

function load() {
  for (const row of data.rows) if (row.answer) answers[row.key] = row.answer;
  try {
    Object.assign(answers, JSON.parse(localStorage.getItem(store)) || {});
  } catch {
    forgetful();
  }
}

function keep() {
  try {
    localStorage.setItem(store, JSON.stringify(answers));
  } catch {
    forgetful();
  }
}

function forgetful() {
  byId("kept").textContent = "This browser does not keep answers over a reload: save often.";
}

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const row = () => data.rows[list[at]];
const answer = () => answers[row().key];
const doubted = (one) => one && (one.note === "unsure" || one.note === "cannot tell");
const named = (one) => (one.right === null ? one.note : data.classes[one.right]);

function content(place) {
  if (data.images) {
    const image = element("img", { src: data.images[place], alt: "The image to be labelled" });
    image.addEventListener("load", () => {
      image.className = Math.max(image.naturalWidth, image.naturalHeight) < 160 ? "small" : "";
    });
    return [image];
  }
  const made = [];
  const cells = data.cells[place];
  if (data.text !== null) made.push(element("p", { class: "text" }, cells[data.text]));
  const rest = element("dl", { class: "cells" });
  data.columns.forEach((name, number) => {
    if (number === data.text) return;
    rest.append(element("dt", {}, name), element("dd", {}, cells[number] || "–"));
  });
  if (rest.children.length) made.push(rest);
  return made;
}

function paint() {
  const one = answer();
  byId("sample").replaceChildren(...content(list[at]));
  // The folder of an image is its given label.
  const seen = data.show_given || (one && !open);
  const image = seen ? row().file : row().file.split(/[\\/]/).pop();
  byId("where").textContent =
    row().row === null ? image : row().file + ", row " + row().row;
  byId("number").textContent =
    (again ? "Second look: " : "") + (at + 1).toLocaleString("en") + " of " +
    list.length.toLocaleString("en");
  unsure = Boolean(one) && !open && one.note === "unsure";
  paintGiven();
  paintClasses();
  progress();
}

function paintGiven() {
  const one = answer();
  const given = data.classes[row().given];
  if (one && !open) byId("given").textContent = "You said " + named(one) + "; given as " + given + ".";
  else byId("given").textContent = data.show_given ? "Given as " + given + "." : "";
  byId("unsure").setAttribute("aria-pressed", String(unsure));
  for (const note of ["cannot", "drop"]) {
    const is = one && !open && one.right === null && one.note.startsWith(note);
    byId(note).setAttribute("aria-pressed", String(Boolean(is)));
  }
}

function shownClasses() {
  const all = data.classes.map((_, number) => number);
  const asked = byId("search").value.trim().toLowerCase();
  if (asked) {
    const from = (number) => data.classes[number].toLowerCase().indexOf(asked);
    return all.filter((number) => from(number) >= 0).sort((a, b) => from(a) - from(b)).slice(0, MOST);
  }
  if (!many) return all;
  const used = {};
  for (const one of Object.values(answers)) used[one.right] = (used[one.right] || 0) + 1;
  return all.sort((a, b) => (used[b] || 0) - (used[a] || 0) || a - b).slice(0, MOST);
}

function paintClasses() {
  const one = answer();
  const buttons = shownClasses().map((number) => {
    const chosen = Boolean(one) && !open && one.right === number;
    const button = element("button", { type: "button", "aria-pressed": String(chosen) });
    button.dataset.number = number;
    if (keys[number]) button.append(element("kbd", {}, keys[number]), " ");
    button.append(data.classes[number]);
    button.addEventListener("click", () => say({ right: number, note: unsure ? "unsure" : "" }));
    return button;
  });
  const focused = document.activeElement && document.activeElement.dataset.number;
  byId("classes").replaceChildren(...buttons);
  const same = buttons.find((button) => button.dataset.number === focused);
  if (same) same.focus();
}

function say(one) {
  const shown = row();
  before.push({ place: list[at], answer: answers[shown.key] });
  answers[shown.key] = one;
  const took = (Date.now() - since) / 1000;
  if (took < PAUSE) seconds = [...seconds.slice(-19), took];
  keep();
  byId("search").value = "";
  byId("said").textContent =
    "You said " + named(one) + (one.note === "unsure" ? ", not sure" : "") + "; it was given as " +
    data.classes[shown.given] + ".";
  advance();
}

function advance() {
  const waits = (place) => !answers[data.rows[place].key];
  const rest = list.map((_, step) => (at + 1 + step) % list.length);
  const next = again
    ? at + 1 < list.length ? at + 1 : undefined
    : rest.find((step) => waits(list[step]));
  if (next === undefined) finish();
  else go(next, true);
}

function go(to, fresh) {
  at = Math.min(Math.max(to, 0), list.length - 1);
  open = fresh || !answer();
  since = Date.now();
  paint();
}

function finish() {
  open = false;
  if (again) {
    again = false;
    list = data.rows.map((_, place) => place);
    at = 0;
  }
  paint();
  byId("said").textContent += " All are checked. Save verified.csv.";
  byId("save").focus();
}

function lookAgain() {
  const doubtful = data.rows.map((_, place) => place);
  list = doubtful.filter((place) => doubted(answers[data.rows[place].key]));
  again = true;
  byId("said").textContent = "";
  go(0, true);
}

function undo() {
  const last = before.pop();
  const place = last ? last.place : list[at];
  const key = data.rows[place].key;
  if (last && last.answer) answers[key] = last.answer;
  else delete answers[key];
  keep();
  if (!list.includes(place)) {
    again = false;
    list = data.rows.map((_, number) => number);
  }
  byId("said").textContent = "Undone.";
  go(list.indexOf(place), true);
}

function toggleUnsure() {
  const one = answer();
  if (one && !open && one.right !== null) {
    one.note = one.note === "unsure" ? "" : "unsure";
    keep();
    paint();
  } else {
    unsure = !unsure;
    paintGiven();
  }
}

function progress() {
  const all = data.rows.map((one) => answers[one.key]).filter(Boolean);
  const count = (note) => all.filter((one) => one.note === note).length;
  const left = data.rows.length - all.length;
  const sorted = [...seconds].sort((a, b) => a - b);
  const each = sorted.length ? sorted[Math.floor(sorted.length / 2)] : 0;
  const minutes = Math.max(1, Math.round((each * left) / 60));
  const notes = ["unsure", "cannot tell", "drop"].filter(count).map((note) => count(note) + " " + note);
  byId("bar").value = all.length;
  byId("done").textContent =
    all.length.toLocaleString("en") + " of " + data.rows.length.toLocaleString("en") + " checked" +
    (notes.length ? ": " + notes.join(", ") : "") +
    (left && each ? "; about " + minutes + " min left" : "");
  byId("save").disabled = all.length === 0;
  const doubtful = all.filter(doubted).length;
  byId("again").hidden = again || left > 0 || doubtful === 0;
  byId("again").textContent = "Look again at " + doubtful;
}

function save() {
  const quoted = (text) => '"' + String(text).replaceAll('"', '""') + '"';
  const lines = ["file,row,label,right,note,drawn,content"];
  for (const one of data.rows) {
    const said = answers[one.key];
    if (!said) continue;
    const right = said.right === null ? "" : data.classes[said.right];
    const cells = [one.file, one.row === null ? "" : one.row, data.classes[one.given], right];
    lines.push([...cells, said.note, one.drawn, one.content].map(quoted).join(","));
  }
  const file = new Blob([lines.join("\n") + "\n"], { type: "text/csv" });
  const link = element("a", { href: URL.createObjectURL(file), download: "verified.csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function press(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target === byId("search");
  const first = byId("classes").firstElementChild;
  const number = keys.indexOf(event.key);
  if (typing && event.key === "Enter" && first) {
    first.click();
    byId("search").blur();
  } else if (typing && event.key === "Escape") {
    byId("search").value = "";
    byId("search").blur();
    paintClasses();
  } else if (typing) return;
  else if (number >= 0) say({ right: number, note: unsure ? "unsure" : "" });
  else if (event.key === "/") byId("search").focus();
  else if (event.key === "x") toggleUnsure();
  else if (event.key === "c") say({ right: null, note: "cannot tell" });
  else if (event.key === "d") say({ right: null, note: "drop" });
  else if (event.key === "u") undo();
  else if (["ArrowRight", "ArrowDown", "j", "n"].includes(event.key)) go(at + 1);
  else if (["ArrowLeft", "ArrowUp", "k", "p"].includes(event.key)) go(at - 1);
  else return;
  event.preventDefault();
}

load();
byId("bar").max = data.rows.length;
byId("finder").hidden = data.classes.length <= 10;
byId("search").addEventListener("input", paintClasses);
byId("unsure").addEventListener("click", toggleUnsure);
byId("cannot").addEventListener("click", () => say({ right: null, note: "cannot tell" }));
byId("drop").addEventListener("click", () => say({ right: null, note: "drop" }));
byId("undo").addEventListener("click", undo);
byId("back").addEventListener("click", () => go(at - 1));
byId("next").addEventListener("click", () => go(at + 1));
byId("again").addEventListener("click", lookAgain);
byId("save").addEventListener("click", save);
document.addEventListener("keydown", press);
const waiting = data.rows.findIndex((one) => !answers[one.key]);
go(waiting < 0 ? 0 : waiting);
